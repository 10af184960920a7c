"""Fixtures of the TensorFlow tests, which need the package and TensorFlow installed, and run twice: with the
dataset op that is built for this TensorFlow, and with the prebuilt fallback.

Run by `./dev test`, or by hand: python -m pytest tests/python/tensorflow
"""

import os
import subprocess
import sys

import forks
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", minversion="2")
stoker = pytest.importorskip("stoker")
from tensors import SAMPLES, SIZE  # noqa: E402

# Two devices for tf.distribute; this must come before TensorFlow looks at any.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder of 48 photographs in 3 classes."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run(
        [sys.executable, "-m", "stoker", "synth", str(folder), "--count", str(SAMPLES), "--classes", "3"],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(params=["native", "fallback"])
def op(request):
    return request.param


@pytest.fixture
def make(made):
    """A new loader over the photographs: 6 batches of 8 in an epoch, shuffled."""

    def loader(folder=None, **options):
        options = {"batch_size": 8, "shuffle": True, "seed": 5, **options}
        return stoker.Loader(stoker.image_folder(folder or made), [stoker.RandomResizedCrop(SIZE)], **options)

    return loader


@pytest.fixture
def python(request):
    """Runs a script of the test's folder in a process of its own, and returns what it printed."""

    def run(script, *arguments, timeout=120, status=0):
        process = forks.run(request.path.with_name(script), *arguments, timeout=timeout)
        assert process.returncode == status, process.stderr[-3000:]
        return process.stdout

    return run
