"""The `stoker` command: the native one, which lies in this package."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys

# Commands that need Python: name → what takes the arguments after it and returns the exit code.
_IN_PYTHON = {
    "build-tf-plugin": "stoker.tensorflow.build:main",
}


def main() -> int:
    """Runs `stoker ARGUMENTS`; returns only from commands that are Python's own."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in _IN_PYTHON:
        return _call(_IN_PYTHON[arguments[0]], arguments[1:])
    command = pathlib.Path(__file__).with_name("stoker")
    try:
        os.execv(command, [str(command), *arguments])
    except OSError as error:
        print(f"stoker: cannot run {command}: {error.strerror}", file=sys.stderr)
    return 126


def _call(function: str, arguments: list[str]) -> int:
    module, _, name = function.partition(":")
    return int(getattr(importlib.import_module(module), name)(arguments))


if __name__ == "__main__":
    sys.exit(main())
