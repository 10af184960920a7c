"""Libraries that tests compile, kept in the build's folder for the next test, or run, that needs the same."""

import fcntl
import hashlib
import os
import shlex
import subprocess
import time

from repository import BUILD


def library(name, command, made_from, about):
    """Returns the library that `command -o PATH` makes.

    Args:
        made_from: files whose change makes another one.
        about: what else does, as the version of TensorFlow. The compiler's is looked up.
    """
    version = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=True).stdout
    told = [shlex.join(map(str, command)), version, about, *(path.read_text() for path in made_from)]
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    folder = BUILD / "cache" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{key}.so"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in folder.glob(f"{name}-*"):
                if old.stat().st_mtime < time.time() - 86400:  # of a day ago: no run is about to load it
                    old.unlink()
            begun = path.with_suffix(".begun")
            subprocess.run([*map(str, command), "-o", str(begun)], check=True)
            os.replace(begun, path)
        os.utime(path)  # used now
    return path
