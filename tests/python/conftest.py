"""Fixtures of the Python tests: the repository, its build, and photographs.

Run by `./dev test`, or by hand: .venv/bin/python -m pytest tests/python
"""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from repository import BUILD, ROOT

# A shell that starts the tests in the background ignores SIGINT, and programs that they start would inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# If tests give programs a terminal, its cursor can be moved, whatever the tests' own terminal is.
os.environ["TERM"] = "xterm"

# Index files of the tests' shards, and TensorFlow's plugin, are not put into the user's cache folder.
os.environ["XDG_CACHE_HOME"] = str(BUILD / "cache")

# TensorFlow's kernels and allocator are the same on all CPUs; by itself it uses oneDNN's on some only.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def program_of_tools():
    """Returns a function that imports a program of tools/ by its name."""

    def imported(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.fixture(scope="session")
def build():
    """The build folder: STOKER_BUILD, or build/."""
    return BUILD


@pytest.fixture(scope="session")
def command(build):
    """The stoker command, as a path."""
    path = build / "stoker"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture(scope="session")
def photos():
    """A folder of photographs in class folders: STOKER_PHOTOS."""
    if "STOKER_PHOTOS" not in os.environ:
        pytest.skip("STOKER_PHOTOS names no folder of photographs")
    return pathlib.Path(os.environ["STOKER_PHOTOS"]).resolve()


def make_photos(folder, count, classes):
    """Makes photographs by the package's own `stoker synth`."""
    subprocess.run(
        [sys.executable, "-m", "stoker", "synth", folder, "--count", str(count), "--classes", str(classes)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder of 60 synthetic photographs in 3 classes."""
    pytest.importorskip("stoker", reason="the package is not installed here")
    return make_photos(tmp_path_factory.mktemp("synth") / "made", 60, 3)
