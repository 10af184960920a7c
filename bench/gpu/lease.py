"""Runs the schedule (steps.py) against the clock, and keeps what comes of it.

Nothing ends a lease early: a step that fails, hangs or cannot be killed costs its own figures, a disk that is
full costs the file. Nothing makes it late: the steps have limits, the report has one, and at the very end a
thread prints the ten numbers and ends the process if the rest of it is not done.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.util
import itertools
import math
import os
import pathlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import background
import pack
import processes
import reading
import results
import steps
from steps import Settings, Slot, Step

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAST_LINES = 40  # of a failed step's output, kept in the results
MOST_OUTPUT = 12 << 20  # bytes of the file with all output
LAST_SECONDS = 3  # in which the ten numbers are printed in any case
CUDA_PROGRAMS = "/usr/local/cuda/bin"


def say(text: str) -> None:
    """Prints; a pipe that nobody reads, or a full disk on its other side, ends nothing."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")  # at once: threads may print at the same time
        sys.stdout.flush()


def age() -> float:
    """Returns for how many seconds this process has been there: its own start took some."""
    try:
        ticks = int(pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


class Clock:
    """Seconds since the program's start, and how many a step gets."""

    def __init__(
        self, seconds: float, now: Callable[[], float] = time.monotonic, passed: float | None = None
    ) -> None:
        self.seconds, self.read = seconds, now
        self.begun = now() - (age() if passed is None else passed)
        self.cut_at, self.why_cut = math.inf, ""

    def cut(self, reason: str) -> None:
        """Takes all time from the steps, from now on."""
        self.cut_at, self.why_cut = min(self.cut_at, self.now()), self.why_cut or reason

    def now(self) -> float:
        return self.read() - self.begun

    def left(self, until: float) -> float:
        return min(until, self.cut_at) - self.now()

    @property
    def end_of_steps(self) -> float:
        return self.seconds - min(steps.REPORT_SECONDS, self.seconds / 2)

    def until(self, slot: Slot) -> float:
        """Returns when a slot ends: the schedule is for steps.SECONDS."""
        return min(slot.until * self.seconds / steps.SECONDS, self.end_of_steps)


@functools.cache
def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of its parent
        return False


class Attempt:
    """A run of a step: what it has printed, and how it ended."""

    def __init__(self, step: Step, name: str, begun: float) -> None:
        self.step, self.name, self.begun = step, name, begun
        self.outcome, self.reason, self.cpu_seconds = "ok", "", 0.0
        self.rows: list[dict[str, Any]] = []
        self.last: list[str] = []  # lines that are no figures
        self.not_preloaded = ""  # the loader's complaint: the library's own kernels ran
        self.not_read = ""  # a line that should have been figures

    def read(self, line: str) -> dict[str, Any] | None:
        """Returns the figures in a line."""
        figures = reading.figures(line, self.step.prints, self.step.keep)
        if "cannot be preloaded" in line:
            self.not_preloaded = line
        if figures is None:
            self.last.append(line)
            if self.step.prints == "json" and line.startswith("{"):
                self.not_read = f"not read: {line[:100]}"
            del self.last[:-LAST_LINES]
        else:
            self.rows.append(figures)
        return figures

    def add(self, ended: processes.Ended) -> bool:
        """Takes note of the end of a command; returns whether to go on with the next one."""
        self.cpu_seconds += ended.cpu_seconds
        if ended.code == 0 and self.not_preloaded:
            self.outcome, self.reason = "failed", self.not_preloaded
            return False
        if ended.code == 0:
            return True
        if ended.code is None and self.step.lasts:
            self.reason = "held to the end"
            return False
        self.outcome = "killed" if ended.code is None and ended.seconds else "failed"
        self.reason = ended.reason or f"exit code {ended.code}"
        return False

    def check(self, doubts: str) -> None:
        """A test that left something out has not ended well; a figure that nothing proves is doubtful."""
        left_out = reading.left_out(self.step.prints, self.rows, self.last)
        if self.outcome == "ok" and left_out:
            self.outcome = "failed"
        told = [self.reason, left_out if self.outcome == "failed" else "", self.not_read, doubts]
        self.reason = "; ".join(dict.fromkeys(filter(None, told)))


class Lease:
    def __init__(
        self, settings: Settings, clock: Clock, found: results.Results, outputs: results.File
    ) -> None:
        self.settings, self.clock, self.results, self.outputs = settings, clock, found, outputs
        self.id = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.attempts = itertools.count(1)
        self.why_no_gpu: str | None = None if settings.on_gpu else "needs a GPU"
        self.library_path: str | None = None
        self.not_run: dict[str, list[str]] = {}

    # --- what a step needs --------------------------------------------------------------------------------

    def wait_for_gpu(self) -> str:
        """Returns why there is no GPU, as the process says that looks for it."""
        told = self.results.wait_for_figure("context", self.clock.left(steps.KNOWN_AT)) or {}
        if told.get("links"):
            self.library_path = told["links"]
        if told or background.device_files():
            return told.get("why_no_gpu", "")
        return f"nothing answered: {self.results.of('context').why}"

    def missing(self, need: str) -> str:
        """Returns what of a need is not there; empty means it is."""
        kind, _, name = need.partition(":")
        if kind in ("gpu", "device"):
            if self.why_no_gpu is None:
                self.why_no_gpu = self.wait_for_gpu()
            return "" if kind == "device" and not self.settings.on_gpu else self.why_no_gpu
        found = {"module": has_module, "program": shutil.which, "file": os.path.exists}[kind](name)
        return "" if found else f"needs {name}"

    def ended_so(self, tests: Iterable[str], *outcomes: str) -> list[str]:
        found = {test: self.results.of(test).outcome for test in tests}
        return [f"{test}: {found[test]}" for test in found if found[test] in outcomes]

    def doubts(self, step: Step) -> str:
        """Returns the tests that do not prove the step's figures, which it has nevertheless."""
        tests = self.ended_so(step.proven_by, "killed", "not run")
        tests += self.ended_so(step.doubted_by, "failed", "killed", "not run")
        return f"not proven: {', '.join(tests)}" if tests else ""

    def seconds_for(self, step: Step, until: float) -> float:
        return min(self.clock.left(until), step.stop)

    def why_not(self, step: Step, until: float) -> str:
        if self.clock.why_cut:
            return self.clock.why_cut
        lacks = next(filter(None, map(self.missing, step.needs)), "")
        red = ", ".join(self.ended_so(step.proven_by, "failed"))
        seconds = self.seconds_for(step, until)
        if lacks or red:
            return lacks or f"its figures would mean nothing: {red}"
        if seconds < max(step.least, 0.1):
            return f"no time: {max(0, seconds):.0f} s are left, and it needs {step.least:.0f}"
        return ""

    # --- running it ---------------------------------------------------------------------------------------

    def environment(self, step: Step) -> dict[str, str]:
        made = pack.environment(self.settings.work)
        made.update(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1", XLA_PYTHON_CLIENT_PREALLOCATE="false")
        if self.library_path:
            paths = [self.library_path, *filter(None, [made.get("LD_LIBRARY_PATH")])]
            made["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
        made.update(step.env)
        return made

    def take(self, step: Step, until: float) -> str:
        """Runs a step if it can run; returns its outcome."""
        begun = self.clock.now()
        attempt = Attempt(step, "", begun)
        attempt.reason = self.why_not(step, until)
        if attempt.reason:
            attempt.outcome = "not run"
            return self.end(attempt)
        attempt.name = f"{self.id} {next(self.attempts)}"
        end = begun + self.seconds_for(step, until)
        for command in step.commands:
            ended = processes.run(command, lambda: self.clock.left(end), self.reader(attempt),
                                  self.environment(step), str(ROOT))  # fmt: skip
            if not attempt.add(ended):
                break
        attempt.check(self.doubts(step))
        return self.end(attempt)

    def reader(self, attempt: Attempt) -> Callable[[str], None]:
        name = attempt.step.name

        def read(line: str) -> None:
            now = self.clock.now()
            self.outputs.add(f"{now:6.1f} {name}: {line}")
            figures = attempt.read(line)
            if figures is not None:
                self.results.add(
                    "figure", step=name, attempt=attempt.name, clock=round(now, 1), figures=figures
                )

        return read

    def end(self, attempt: Attempt) -> str:
        seconds = self.clock.now() - attempt.begun
        bad = attempt.outcome in ("failed", "killed")
        if attempt.outcome == "not run":
            self.not_run.setdefault(attempt.reason, []).append(attempt.step.name)
        else:
            self.tell(attempt, seconds)
        self.results.add(
            "step",
            step=attempt.step.name,
            attempt=attempt.name,
            outcome=attempt.outcome,
            reason=attempt.reason,
            clock=round(attempt.begun, 1),
            seconds=round(seconds, 1),
            cpu_seconds=round(attempt.cpu_seconds, 1),
            output=attempt.last if bad else [],
        )
        return attempt.outcome

    def tell(self, attempt: Attempt, seconds: float) -> None:
        told = ": ".join(filter(None, [attempt.outcome, attempt.reason]))
        name, cpu_seconds = attempt.step.name, attempt.cpu_seconds
        say(f"{attempt.begun:6.1f}  {name:28} {told:44} {seconds:6.1f} s {cpu_seconds:7.1f} CPU-s")
        for line in attempt.last[-12:] if attempt.outcome in ("failed", "killed") else ():
            say(f"        {line[:200]}")

    def tell_not_run(self) -> None:
        """Says what was left out since the last call, with each reason once."""
        reasons, self.not_run = self.not_run, {}
        for reason, names in reasons.items():
            say(f"{self.clock.now():6.1f}  not run: {reason}: {', '.join(names)}")

    def start(self, step: Step, until: float) -> threading.Thread:
        """Runs a step on a thread, which nobody waits for without a limit."""
        thread = threading.Thread(target=self.take_or_say, args=(step, until), daemon=True)
        thread.start()
        return thread

    def take_or_say(self, step: Step, until: float) -> None:
        try:
            self.take(step, until)
        except Exception as error:  # of ours: the others go on
            attempt = Attempt(step, "", self.clock.now())
            attempt.outcome, attempt.reason = "failed", f"{type(error).__name__}: {error}"
            self.end(attempt)

    def take_all(self, some: Iterable[Step], until: float, at_once: int = 1) -> None:
        """Runs steps, `at_once` at a time. A step's thread that does not end in time is not waited for."""
        waiting, running = list(some), {}
        if any(need in step.needs for step in waiting for need in ("device", "gpu")):
            self.missing("gpu")  # known from now on, so that no step waits for it
        while waiting or running:
            running = {thread: end for thread, end in running.items()
                       if thread.is_alive() and self.clock.left(end) > -2 * processes.PATIENCE}  # fmt: skip
            while waiting and len(running) < at_once:
                step = waiting.pop(0)
                running[self.start(step, until)] = self.clock.now() + self.seconds_for(step, until)
            for thread in [*running][:1]:
                thread.join(processes.LOOK)

    def take_slot(self, slot: Slot) -> None:
        at_once, until = max(2, len(self.settings.cores)) if slot.together else 1, self.clock.until(slot)
        say(f"{self.clock.now():6.1f}  -- {slot.what}, until {until:.0f}")
        self.take_all(slot.steps, until, at_once)
        self.tell_not_run()

    def start_background(self) -> None:
        for step in steps.background(self.settings):
            self.start(step, self.clock.end_of_steps)

    def take_schedule(self, slots: Sequence[Slot]) -> None:
        self.start_background()
        for slot in slots:
            self.take_slot(slot)
        self.take_all(self.unfinished(slots), self.clock.end_of_steps)
        self.tell_not_run()

    def unfinished(self, slots: Iterable[Slot]) -> list[Step]:
        """Returns the steps that had too little time, or lacked a file that another step may have made:
        what the others left over is theirs. Those that make what others need come first, sanitizers last.
        """
        some = [step for slot in slots for step in slot.steps]
        preparing = [step.name for slot in [*slots][: steps.PREPARING] for step in slot.steps]

        def worth(step: Step) -> tuple[bool, bool, bool]:
            killed = self.results.of(step.name).outcome == "killed"
            return step.name not in preparing, step.prints == "sanitizer", killed

        return sorted(filter(self.may_end_well, some), key=worth)

    def may_end_well(self, step: Step) -> bool:
        of = self.results.of(step.name)
        files = {f"needs {path}" for kind, _, path in (need.partition(":") for need in step.needs)
                 if kind == "file"}  # fmt: skip
        return of.outcome == "killed" or of.reason.startswith("no time") or of.reason in files

    def take_only(self, names: Sequence[str]) -> None:
        """Runs the named steps, after what they need: a second call may be on a machine that has nothing
        yet."""
        self.start_background()
        slots = steps.schedule(self.settings)
        for slot in slots[: steps.PREPARING]:
            self.take_all(slot.steps, self.clock.end_of_steps, at_once=2)
        known = [step for slot in slots for step in slot.steps]
        known += steps.variants(self.settings)
        for name in names:
            chosen = [step for step in known if step.name == name]
            if name == "variants":
                chosen = [*steps.all_crops(self.settings), *steps.variants(self.settings)]
            if not chosen:
                say(f"there is no step {name}; there are {', '.join(step.name for step in known)}")
            self.take_all(chosen, self.clock.end_of_steps)
        self.tell_not_run()
