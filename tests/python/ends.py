"""Programs that end in a process of their own."""

import os
import subprocess
import sys

# `threads_left(name, most)`: how many threads of this name there are, once it is at most so many. A thread
# that was joined is listed for a moment longer.
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
    """Runs BEGINNING and the program; it has to end within a minute, with nothing to say."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGINNING + program],
        capture_output=True, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert (done.returncode, done.stderr.decode()) == (0, "")
