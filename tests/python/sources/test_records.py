"""stoker.records: records of equal size in files, against NumPy's reading of them."""

import itertools
import json
import os
import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

CIFAR = [("label", "uint8"), ("image", "uint8", (3, 32, 32))]


def written(path, array, header=b""):
    path.write_bytes(header + array.tobytes())
    return path


def noise(dtype, rows, seed=0):
    made = np.empty(rows, dtype)
    bytes_ = np.random.default_rng(seed).integers(0, 128, made.nbytes, np.uint8)
    return np.frombuffer(bytes_.tobytes(), dtype).reshape(rows)


def test_cifar(tmp_path):
    parts = [noise(CIFAR, 23, seed) for seed in range(3)]
    paths = [written(tmp_path / f"data_batch_{i}.bin", part) for i, part in enumerate(parts)]
    whole = np.concatenate([np.fromfile(path, CIFAR) for path in paths])
    source = stoker.records(paths, CIFAR)
    assert len(source) == 69 and source.has_labels and source.classes == []
    loader = stoker.Loader(source, batch_size=10, shuffle=True, seed=3)
    for _ in range(2):
        seen = []
        iterator = iter(loader)
        for batch in iterator:
            ids = iterator.sample_ids
            np.testing.assert_array_equal(batch["image"], whole["image"][ids])
            np.testing.assert_array_equal(batch["label"], whole["label"][ids])
            assert batch["image"].shape[1:] == (3, 32, 32)
            seen += ids.tolist()
        assert sorted(seen) == list(range(69)) and seen != sorted(seen)


def test_equals_arrays_of_them_for_any_ranks(tmp_path):
    whole = noise(CIFAR, 50)
    records = stoker.records(written(tmp_path / "all", whole), CIFAR)
    arrays = stoker.arrays(whole["image"], whole["label"])
    for world in (1, 3, 8):
        for rank in range(world):
            options = {"batch_size": 4, "shuffle": True, "seed": 5, "rank": rank, "world": world}
            ours, theirs = (list(stoker.Loader(source, **options)) for source in (records, arrays))
            for (image, label), (image_there, label_there) in itertools.zip_longest(ours, theirs):
                np.testing.assert_array_equal(image, image_there)
                np.testing.assert_array_equal(label, label_there)


def test_mnist(tmp_path):
    """Images after a header, without a dtype of fields."""
    images = noise("uint8", (11, 28, 28))
    path = written(tmp_path / "train-images-idx3-ubyte", images, b"\0\0\x08\x03" + bytes(12))
    source = stoker.records(path, "uint8", (28, 28), offset=16)
    np.testing.assert_array_equal(np.concatenate(list(stoker.Loader(source, batch_size=4))), images)
    assert not source.has_labels


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4), 5])
def test_any_type_and_shape(tmp_path, dtype, shape):
    rows = np.random.default_rng(1).integers(0, 2, np.empty((9, *np.empty(shape).shape)).shape).astype(dtype)
    source = stoker.records(os.fspath(written(tmp_path / "rows", rows)), np.dtype(dtype), shape)
    batch = next(iter(stoker.Loader(source, batch_size=9)))
    assert batch.dtype == rows.dtype
    np.testing.assert_array_equal(batch, rows)


def test_without_images(tmp_path):
    kind = np.dtype([("tokens", "uint16", (5,)), ("weight", "float32")])  # weights are not aligned
    whole = noise(kind, 8)
    source = stoker.records(written(tmp_path / "tokens", whole), kind)
    batch = next(iter(stoker.Loader(source, batch_size=8)))
    np.testing.assert_array_equal(batch["tokens"], whole["tokens"])
    np.testing.assert_array_equal(
        batch["weight"].view("uint32"), np.ascontiguousarray(whole["weight"]).view("uint32")
    )
    with pytest.raises(ValueError, match="has no files"):
        source.path(0)


def test_images_are_transformed(tmp_path):
    kind = [("label", "uint8"), ("image", "uint8", (32, 40, 3))]
    whole = noise(kind, 6)
    transforms = [stoker.RandomResizedCrop(16), stoker.RandomHorizontalFlip()]
    records = stoker.records(written(tmp_path / "all", whole), kind)
    arrays = stoker.arrays(whole["image"], whole["label"])
    ours, theirs = (next(iter(stoker.Loader(s, transforms, batch_size=6))) for s in (records, arrays))
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_a_file_that_is_cut(tmp_path):
    path = written(tmp_path / "cut", noise(CIFAR, 4))
    source = stoker.records(path, CIFAR)
    wanted = np.fromfile(path, CIFAR)["image"]
    os.truncate(path, 3 * 3073 + 100)
    np.testing.assert_array_equal(next(iter(stoker.Loader(source, batch_size=4)))[0], wanted)
    with pytest.raises(stoker.DataLossError, match="100 bytes of 3073") as raised:
        stoker.records(path, CIFAR)
    assert raised.value.file == os.fspath(path) and raised.value.offset == 3 * 3073
    os.truncate(path, 0)
    with pytest.raises(stoker.DataLossError, match="no records"):
        stoker.records(path, CIFAR)


def test_other_processes_open_it(tmp_path):
    whole = noise(CIFAR, 9)
    source = stoker.records([written(tmp_path / "all", whole)], CIFAR)
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(next(iter(stoker.Loader(again, batch_size=9)))[0], whole["image"])
    spec = json.loads(json.dumps(source._spec))
    assert spec["record"] == "label uint8, image uint8 3 32 32" and spec["offset"] == "0"
    opened = {name: spec[name].encode() for name in ("paths", "record", "offset")}
    assert stoker._stoker.open_source("records", opened, 0).fingerprint == source._native.fingerprint


def test_what_it_refuses(tmp_path):
    path = written(tmp_path / "all", noise("uint8", 12))
    with pytest.raises(FileNotFoundError):
        stoker.records(tmp_path / "none", "uint8")
    with pytest.raises(ValueError, match="empty"):
        stoker.records([], "uint8")
    with pytest.raises(TypeError, match="path"):
        stoker.records([5], "uint8")
    with pytest.raises(ValueError, match="byte order"):
        stoker.records(path, ">u2")
    with pytest.raises(TypeError, match="complex"):
        stoker.records(path, "complex64")
    with pytest.raises(TypeError, match="field 'a'"):
        stoker.records(path, [("a", "S4")])
    with pytest.raises(ValueError, match="align"):
        stoker.records(path, np.dtype([("a", "u4"), ("b", "u1")], align=True))
    with pytest.raises(ValueError, match="byte 4"):
        stoker.records(path, np.dtype([("a", "u1"), ("b", "u4")], align=True))
    with pytest.raises(ValueError, match="space"):
        stoker.records(path, [("a b", "u4")])
    with pytest.raises(ValueError, match="leave out shape"):
        stoker.records(path, [("a", "u4")], (3,))
    with pytest.raises(ValueError, match="offset"):
        stoker.records(path, "u4", offset=-1)
    with pytest.raises(ValueError, match="shape"):
        stoker.records(path, "u4", (0,))
    with pytest.raises(ValueError, match="line feed"):
        stoker.records("a\nb", "u4")
