"""Fixtures of the TensorFlow tests, which need the package and TensorFlow installed, and run twice: with the
dataset op that is built for this TensorFlow, and with the prebuilt fallback.

Run by `./dev test`, or by hand: python -m pytest tests/python/tensorflow
"""

import os
import pathlib
import subprocess
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", minversion="2")
np = pytest.importorskip("numpy")
stoker = pytest.importorskip("stoker")

# Two devices for tf.distribute; this must come before TensorFlow looks at any.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

HERE = pathlib.Path(__file__).parent
SIZE = 32
SAMPLES = 48


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


def noting(seen):
    """A step for map() that adds what passes through to `seen`."""

    def note(images, labels):
        seen.append((images.copy(), labels.copy()))
        return images, labels

    def noted(images, labels):
        result = tf.numpy_function(note, [images, labels], [tf.uint8, tf.int64])
        return tf.ensure_shape(result[0], images.shape), tf.ensure_shape(result[1], labels.shape)

    return noted


def arrays(dataset, *names):
    """Returns all batches, as arrays that do not depend on stoker's memory. `names`: all columns of batches
    that are dictionaries, in the order that is wanted.
    """
    if names:
        batches = list(dataset)
        assert all(type(batch) is dict and set(batch) == set(names) for batch in batches)
        dataset = [[batch[name] for name in names] for batch in batches]
    return [tuple(np.array(column) for column in batch) for batch in dataset]


def same(got, want):
    """Returns whether two lists of batches are equal to the byte."""
    assert len(got) == len(want)
    for batch, expected in zip(got, want):
        for column, other in zip(batch, expected):
            np.testing.assert_array_equal(np.asarray(column), np.asarray(other))


@pytest.fixture
def python():
    """Runs a script of this folder in a process of its own, and returns what it printed."""

    def run(script, *arguments, timeout=120, status=0, **environment):
        process = subprocess.run(
            [sys.executable, str(HERE / script), *map(str, arguments)],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert process.returncode == status, process.stderr[-3000:]
        return process.stdout

    return run
