"""Runs a command for a limited time, and hands on what it prints, line by line.

Nothing here waits without a limit: not for a command that ignores signals, nor for one that the kernel cannot
end, nor for the end of a pipe that a grandchild holds open.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Optional

PATIENCE = 3.0  # seconds for which a killed command is waited for
LOOK = 0.05  # seconds between two looks at a command that prints nothing
LONGEST_LINE = 1 << 20


class Ended(NamedTuple):
    code: Optional[int]  # None: it did not end by itself, and `reason` says why
    reason: str
    seconds: float
    cpu_seconds: float  # its own, and those of the children that it has waited for


class Lines:
    """Cuts bytes into lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self.on_line, self.rest = on_line, b""

    def add(self, data: bytes) -> None:
        *whole, self.rest = (self.rest + data).split(b"\n")
        for line in whole:
            self.on_line(line.decode(errors="replace").rstrip("\r"))
        if len(self.rest) > LONGEST_LINE:
            self.end()

    def end(self) -> None:
        if self.rest:
            self.on_line(self.rest.decode(errors="replace"))
        self.rest = b""


class Child:
    """A command in a session of its own, so that it is killed together with what it has started."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self.process = subprocess.Popen(
            command, env=env, cwd=cwd, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.pipe = self.process.stdout.fileno()
        os.set_blocking(self.pipe, False)
        self.open = True
        self.cpu_seconds = 0.0

    def read(self, seconds: float, lines: Lines) -> None:
        """Waits for output, and takes all that there is."""
        if not self.open:
            return time.sleep(seconds)
        ready, _, _ = select.select([self.pipe], [], [], seconds)
        while ready:
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                return None
            if not data:
                self.open = False
                return None
            lines.add(data)
        return None

    def has_ended(self) -> bool:
        if self.process.returncode is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self.process.returncode is not None

    def kill(self) -> bool:
        """Ends it and what it has started; returns whether it is gone, in the end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        limit = time.monotonic() + PATIENCE
        while not self.has_ended() and time.monotonic() < limit:
            time.sleep(LOOK)
        return self.has_ended()


def run(
    command: Sequence[str],
    limit: Callable[[], float],
    on_line: Callable[[str], None],
    env: Mapping[str, str],
    cwd: str = ".",
) -> Ended:
    """Runs a command until `limit()` seconds are left no more, which is asked again and again."""
    begun = time.monotonic()
    try:
        child = Child(command, env, cwd)
    except OSError as error:
        return Ended(None, str(error), 0.0, 0.0)
    lines, reason, gone = Lines(on_line), "", False
    try:
        while not child.has_ended():
            left = limit()
            if left <= 0:
                reason = f"ended after {time.monotonic() - begun:.0f} s"
                break
            child.read(min(LOOK, left), lines)
    finally:
        gone = child.kill()  # what it has started, too, if it has ended by itself
    child.read(0, lines)
    lines.end()
    child.process.stdout.close()
    if not gone:
        reason += f"; process {child.process.pid} cannot be killed"
    code = None if reason else child.process.returncode
    return Ended(code, reason, time.monotonic() - begun, child.cpu_seconds)
