"""The `stoker` command: runs the native command, which lies in this package."""

from __future__ import annotations

import importlib
import os
import pathlib
import subprocess
import sys

# Commands that need Python: name → (function that takes the arguments after it and returns the exit code,
# help).
_IN_PYTHON = {
    "build-tf-plugin": (
        "stoker.tensorflow.build:main",
        "Build stoker's dataset op for the TensorFlow that is installed",
    ),
}
_EXTENDED = {"doctor": "stoker._doctor:main"}  # native commands that Python adds to


def main() -> int:
    """Runs `stoker ARGUMENTS`; returns only from commands that are implemented in Python."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] == "help":  # as the native command: `help bench` is `bench --help`
        arguments = [*arguments[1:], "--help"]
    if arguments and arguments[0] in _IN_PYTHON:
        return _call(_IN_PYTHON[arguments[0]][0], arguments[1:])
    if arguments and arguments[0] in _EXTENDED:
        return _call(_EXTENDED[arguments[0]], arguments[1:])
    command = pathlib.Path(__file__).with_name("stoker")
    try:
        if arguments in (["--help"], ["-h"]):
            return _help(command)
        os.execv(command, [str(command), *arguments])
    except OSError as error:
        print(f"stoker: cannot run {command}: {error.strerror}", file=sys.stderr)
    return 126


def _help(command: pathlib.Path) -> int:
    """Returns the native command's help, with the commands that are implemented in Python."""
    code = subprocess.run([command, "--help"], check=False).returncode
    print("Commands in Python:")
    for name, (_, text) in _IN_PYTHON.items():
        print(f"  {name:31} {text}")
    return code


def _call(function: str, arguments: list[str]) -> int:
    module, _, name = function.partition(":")
    try:
        command = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "tensorflow":
            raise
        print(
            "stoker: TensorFlow is not installed for this Python: there is nothing to build for",
            file=sys.stderr,
        )
        return 1
    return int(command(arguments))


if __name__ == "__main__":
    sys.exit(main())
