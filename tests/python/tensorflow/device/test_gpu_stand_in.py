"""Runs test_gpu_dataset.py on a GPU that is made up: TensorFlow's runtime is real, its device is not."""

import os
import pathlib
import re
import shutil

import compiled
import forks
import pytest
import tensorflow as tf
from repository import ROOT

HERE = pathlib.Path(__file__).parent
SOURCES = [
    HERE / "gpu_stand_in.cc",
    *(
        ROOT / name
        for name in ("gpu/backend/host_streams.cc", "core/system/start_thread.cc", "core/system/machine.cc")
    ),
]


@pytest.fixture(scope="module")
def stand_in():
    """The stand-in as a library. TensorFlow's headers for it are C, but its streams are C++20."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    if tf.test.is_built_with_cuda():
        pytest.skip("this TensorFlow has kernels for GPUs itself")
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", f"-I{ROOT}"]
    include = ["-isystem", tf.sysconfig.get_include()]
    link = [*tf.sysconfig.get_link_flags(), "-l:libtensorflow_cc.so.2"]
    command = ["g++", *flags, *include, *SOURCES, *link]
    headers = sorted(path for room in ("core", "gpu") for path in (ROOT / room).rglob("*.h"))
    return compiled.library("gpu_stand_in", command, [*SOURCES, *headers], tf.__version__)


@pytest.mark.long
def test_datasets_on_the_stand_in(stand_in):
    environment = {**os.environ, "STOKER_STAND_IN": str(stand_in), "CUDA_VISIBLE_DEVICES": ""}
    words = ["pytest", "-q", "-p", "no:cacheprovider", "-k", "not xla", HERE / "test_gpu_dataset.py"]
    run = forks.run("-m", *words, env=environment, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    summary = run.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"\d+ passed, 1 deselected.*", summary), run.stdout
