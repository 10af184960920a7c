"""The examples' photographs: from the folder on the command line, or synthetic ones.

In your own program, use the path of your folder instead of `photographs.folder(__doc__)`.
"""

import argparse
import subprocess
import sys
import tempfile


def folder(about: str, count: int = 120, classes: int = 4) -> str:
    """The folder to use. Synthetic photographs are deleted when the program ends."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", help="photographs in class folders; made when left out")
    parser.add_argument("--quick", action="store_true", help="3 rounds, for tests: verdicts mean nothing")
    given = parser.parse_args().folder
    return given if given is not None else _made(count, classes)


def _made(count: int, classes: int) -> str:
    _kept.append(tempfile.TemporaryDirectory(prefix="stoker-photographs-"))
    options = ["--count", str(count), "--classes", str(classes)]
    synth = [sys.executable, "-m", "stoker", "synth", _kept[-1].name, *options]
    subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)
    return _kept[-1].name


_kept: list[tempfile.TemporaryDirectory] = []  # a directory lives as long as this refers to it
