"""stoker.arrays: NumPy arrays, shuffled and batched."""

import gc
import os
import pickle
import weakref

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
TYPES += ["float16", "float32", "float64"]


def rows(dtype, *shape):
    return np.random.default_rng(0).integers(0, 2**15, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (28, 28), (5, 4, 3, 2)])
def test_any_type_and_shape(dtype, shape):
    images, labels = rows(dtype, 37, *shape), rows("int32", 37)
    loader = stoker.Loader(stoker.arrays(images, labels), batch_size=8, shuffle=True, seed=4)
    assert loader._elements == [(dtype, shape), ("int32", ())]
    for _ in range(2):
        seen = []
        iterator = iter(loader)
        for some, those in iterator:
            assert some.dtype == images.dtype and some.shape[1:] == shape and those.dtype == np.int32
            np.testing.assert_array_equal(some, images[iterator.sample_ids])
            np.testing.assert_array_equal(those, labels[iterator.sample_ids])
            assert some.flags.writeable and some.ctypes.data % 64 == 0
            seen += iterator.sample_ids.tolist()
        assert sorted(seen) == list(range(37)) and seen != sorted(seen)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="no bfloat16 without ml_dtypes")
    images = rows("float32", 9, 3).astype(ml_dtypes.bfloat16)
    loader = stoker.Loader(stoker.arrays(images), batch_size=9)
    np.testing.assert_array_equal(next(iter(loader)), images)


def test_without_labels_and_in_order():
    images = rows("float32", 10, 2)
    batches = list(stoker.Loader(stoker.arrays(images), batch_size=4))
    np.testing.assert_array_equal(np.concatenate(batches), images)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a.T,
        lambda a: np.asfortranarray(a),
        lambda a: np.broadcast_to(a[0], (5, 12)),
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: a.tolist(),
    ],
)
def test_other_layouts(change):
    images = change(rows("int64", 10, 12))
    batches = list(stoker.Loader(stoker.arrays(images), batch_size=3))
    np.testing.assert_array_equal(np.concatenate(batches), images)


def test_a_memory_mapped_file(tmp_path):
    np.save(tmp_path / "a.npy", rows("uint8", 10, 6))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(next(iter(stoker.Loader(stoker.arrays(mapped), batch_size=10))), mapped)


class Watched(np.ndarray):
    """An array that can be referred to weakly."""


def test_arrays_are_kept_and_let_go():
    images = Watched((1000, 100), np.uint8)
    images[:] = 0
    there = weakref.ref(images)
    loader = stoker.Loader(stoker.arrays(images), batch_size=10)
    del images
    gc.collect()
    assert there() is not None
    batch = next(iter(loader))
    assert not batch.any()
    del loader, batch
    gc.collect()
    assert there() is None


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ((np.zeros((0, 3)),), ValueError, "images"),
        ((np.zeros((3, 0)),), ValueError, "images"),
        ((np.float32(1),), ValueError, "images"),
        ((np.zeros(3), np.zeros(4)), ValueError, "labels"),
        ((np.zeros(3), "abc"), TypeError, "labels"),
        ((["a", "b"],), TypeError, "images"),
        (([object()],), TypeError, "images"),
        ((np.zeros(3, "complex64"),), TypeError, "images"),
        ((np.zeros(3, "datetime64[s]"),), TypeError, "images"),
        ((np.zeros(3, "longdouble"),), TypeError, "images .* float16, bfloat16, float32, float64"),
        (({"a": 1},), TypeError, "images is a dict"),
        (((np.zeros((3, 4)), np.zeros(3)),), ValueError, r"did you mean stoker.arrays\(images, labels\)"),
        ((np.zeros((1,) * 9),), ValueError, "dimension"),
    ],
)
def test_bad_arrays(arguments, kind, word):
    with pytest.raises(kind, match=word):
        stoker.arrays(*arguments)


def test_arrays_are_not_pickled():
    with pytest.raises(TypeError, match="in each process"):
        pickle.dumps(stoker.arrays(np.zeros(3)))


def test_arrays_have_no_files():
    with pytest.raises(ValueError, match="has no files"):
        stoker.arrays(np.zeros(3)).path(0)


def test_transforms_want_images():
    crop = [stoker.RandomResizedCrop(8)]
    with pytest.raises(ValueError, match=r"uint8 \(height, width, 3\)"):
        stoker.Loader(stoker.arrays(np.zeros((4, 8, 8, 3), np.float32)), crop, batch_size=1)
    images = rows("uint8", 4, 9, 9, 3)
    assert next(iter(stoker.Loader(stoker.arrays(images), crop, batch_size=4))).shape == (4, 8, 8, 3)


def test_npy_files(tmp_path):
    images, labels = rows("float32", 7, 3), np.arange(7)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    batch = next(
        iter(stoker.Loader(stoker.arrays(tmp_path / "x.npy", os.fspath(tmp_path / "y.npy")), batch_size=7))
    )
    np.testing.assert_array_equal(batch[0], images)
    np.testing.assert_array_equal(batch[1], labels)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"x\.npy"):
        stoker.arrays(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"x\.npy"):
        stoker.arrays(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        stoker.arrays(tmp_path / "none.npy")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        stoker.arrays(tmp_path / "objects.npy")
