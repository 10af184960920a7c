"""The Python package: its public names, and its texts about itself."""

import gc
import inspect
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

CLASSES = [name for name in stoker.__all__ if inspect.isclass(getattr(stoker, name))]
CROP = [stoker.RandomResizedCrop(8)]


def test_public_names_are_those_of_all():
    program = "import stoker; print(*(n for n in dir(stoker) if not n.startswith('_')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(n for n in stoker.__all__ if not n.startswith("_"))


@pytest.mark.parametrize("name", [n for n in stoker.__all__ if not n.startswith("_")])
def test_everything_has_a_docstring(name):
    told = inspect.getdoc(getattr(stoker, name))
    assert told and len(told) > 25
    assert not told.startswith(f"{name}(")  # the docstring that a dataclass has by itself


@pytest.mark.parametrize("name", CLASSES)
def test_properties_and_methods_have_docstrings(name):
    kind = getattr(stoker, name)
    if issubclass(kind, BaseException):
        return
    for member, value in vars(kind).items():
        if not member.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_objects_tell_what_they_are(made):
    loader = stoker.Loader(stoker.image_folder(made), CROP, batch_size=4)
    tensors = loader.to_device("cpu")
    monitor, trace = loader.monitor(interval=2), loader.trace("some.json")
    objects = [
        *(loader, loader.epoch(1), iter(loader), loader.source, stoker.arrays(np.zeros((2, 3)))),
        *(tensors, iter(tensors), next(iter(tensors))[0], monitor, trace, stoker.Runtime(threads=1)),
        *(stoker.Compose(CROP), stoker.MixUp(), stoker.CutMix(), stoker.RandomChoice([stoker.MixUp()])),
    ]
    for thing in objects:
        assert " object at 0x" not in repr(thing)
        assert type(thing).__name__ in repr(thing) or "stoker." in repr(thing)
    assert repr(monitor) == f"<stoker.Monitor of {loader!r}, every 2 s, stopped>"
    with monitor:
        assert repr(monitor).endswith("running>")
    assert "'some.json', stopped" in repr(trace)
    del objects, thing, tensors, loader, trace
    gc.collect()
    assert "a loader that has gone" in repr(monitor)


def test_as_tf_dataset_without_tensorflow_says_what_to_install():
    program = """
import sys
sys.modules["tensorflow"] = None  # as where it is not installed
import numpy as np, stoker
loader = stoker.Loader(stoker.arrays(np.zeros((2, 3))), batch_size=1)
try:
    loader.as_tf_dataset()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "as_tf_dataset() needs TensorFlow" in done.stdout and "pip install tensorflow" in done.stdout


def test_a_loader_is_no_array(made):
    loader = stoker.Loader(stoker.image_folder(made), CROP, batch_size=4)
    for thing in (loader, loader.epoch(0), loader.to_device("cpu")):
        with pytest.raises(TypeError, match=f"a stoker.{type(thing).__name__} is not an array"):
            np.asarray(thing)
        assert not hasattr(thing, "shape")


def test_counts_of_one_are_singular(made):
    source = stoker.arrays(np.zeros((1, 8, 8, 3), np.uint8))
    assert repr(stoker.Loader(source, batch_size=4)).endswith("1 sample, 1 batch an epoch>")
    two = stoker.arrays(np.zeros((2, 8, 8, 3), np.uint8))
    assert repr(stoker.Loader(two, batch_size=1)).endswith("2 samples, 2 batches an epoch>")
    for words, make in (
        (
            "1 batch of .* and 1 worker need",
            lambda: stoker.Loader(
                stoker.image_folder(made),
                [stoker.RandomResizedCrop(224)],
                batch_size=64,
                depth=1,
                runtime=stoker.Runtime(threads=1, memory_budget=1 << 20),
            ),
        ),
        (
            "no full batch is left: 1 sample for batches of 4",
            lambda: stoker.Loader(source, batch_size=4, drop_remainder=True),
        ),
        ("labels has 1 row, and images has 2", lambda: stoker.arrays(np.zeros((2, 3)), [1])),
        ("has 1 element; it must have 2", lambda: stoker.RandomResizedCrop(8, scale=[1])),
        (
            "p has 1 element; it must have 2",
            lambda: stoker.RandomChoice([stoker.MixUp(), stoker.CutMix()], p=[1]),
        ),
    ):
        with pytest.raises(stoker.Error, match=words):
            make()
