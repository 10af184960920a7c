"""Programs that end in a process of their own."""

import os
import subprocess
import sys

# `threads_left(name, most)` waits until there are at most this many threads of this name, and returns their
# number. A thread that was joined is listed for a moment longer.
BEGINNING = """
import contextlib, os, pathlib, stoker, threading, time
def threads(name):
    found = 0
    for path in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):
            found += path.read_text() == name + "\\n"
    return found
def threads_left(name, most):
    deadline = time.monotonic() + 30
    while threads(name) > most and time.monotonic() < deadline: time.sleep(0.01)
    return threads(name)
"""


def check(program):
    """Runs BEGINNING and the program, which must end within a minute, without output on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGINNING + program],
        capture_output=True, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert (done.returncode, done.stderr.decode()) == (0, "")
