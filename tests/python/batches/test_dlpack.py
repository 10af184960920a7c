"""Tensors as DLPack, NumPy and memoryview see them."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

DTYPES = ("uint8", "float16", "bfloat16", "float32")
CPU = (1, 0)


# --- DLPack's structs once more, by its header, so that capsules are read as a consumer does ---------


class View(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # called without the GIL


class Old(ctypes.Structure):
    _fields_ = (("tensor", View), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", View),
    )


KINDS = {b"dltensor": Old, b"dltensor_versioned": Versioned}
USED = ctypes.c_char_p(b"used")  # lives as long as every capsule named so

get_name = ctypes.pythonapi.PyCapsule_GetName
get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.restype, set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def looked_into(capsule):
    """Returns the content of a capsule, and its address; the capsule keeps it."""
    name = get_name(capsule)
    address = get_pointer(capsule, name)
    managed = KINDS[name].from_address(address)
    managed.capsule = capsule  # keeps it
    return managed, address


def taken(capsule):
    """Returns the content of a capsule, and its address; the caller must call the deleter."""
    managed, address = looked_into(capsule)
    del managed.capsule
    assert set_name(capsule, USED) == 0
    return managed, address


# --- loaders ----------------------------------------------------------------------------------------


def make(folder, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 1, **options}
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(32)], **options)


@pytest.fixture
def loader(made):
    return make(made)


@pytest.fixture
def tensors(loader):
    """Images and labels."""
    return next(iter(loader.to_device("cpu")))


def lent(loader):
    gc.collect()
    return loader.stats()["lent_batches"]


# --- properties of a tensor -------------------------------------------------------------------------


def test_tensor_attributes(tensors):
    images, labels = tensors
    assert (images.shape, images.ndim, images.dtype, images.nbytes) == ((8, 32, 32, 3), 4, "uint8", 24576)
    assert (labels.shape, labels.ndim, labels.dtype, labels.nbytes) == ((8,), 1, "int64", 64)
    assert images.device == "cpu" and images.__dlpack_device__() == CPU
    assert repr(images) == "<stoker.Tensor (8, 32, 32, 3) uint8 on cpu>"
    assert type(images) is stoker.Tensor and stoker.Tensor.__module__ == "stoker"
    with pytest.raises(TypeError):
        stoker.Tensor()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_capsules_describe_the_tensor(made, dtype, version):
    images, _ = next(iter(make(made, dtype=dtype, layout="NCHW").to_device("cpu")))
    managed, _ = looked_into(images.__dlpack__(max_version=version))
    assert isinstance(managed, Versioned if version and version[0] >= 1 else Old)
    if isinstance(managed, Versioned):
        assert (managed.major, managed.minor, managed.flags) == (1, 0, 0)
    view = managed.tensor
    codes = {"uint8": (1, 8), "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32)}
    assert (view.code, view.bits, view.lanes) == (*codes[dtype], 1)
    assert (view.device_type, view.device_id, view.byte_offset) == (1, 0, 0)
    assert view.shape[: view.ndim] == [8, 3, 32, 32]
    assert view.strides[: view.ndim] == [3 * 32 * 32, 32 * 32, 32, 1]
    assert view.data % 64 == 0 and view.data == looked_into(images.__dlpack__())[0].tensor.data


@pytest.mark.parametrize(
    ("dtype", "code"),
    [
        *(("bool", 6), ("uint8", 1), ("int8", 0), ("uint16", 1), ("int16", 0), ("uint32", 1), ("int32", 0)),
        *(("uint64", 1), ("int64", 0), ("float16", 2), ("float32", 2), ("float64", 2)),
    ],
)
def test_every_type_of_arrays(dtype, code):
    rows = (np.arange(24).reshape(6, 4) % 2).astype(dtype)
    (tensor,) = stoker.Loader(stoker.arrays(rows), batch_size=6).to_device("cpu")
    view = looked_into(tensor.__dlpack__())[0].tensor
    assert (view.code, view.bits) == (code, 8 * rows.itemsize) and tensor.dtype == dtype
    for seen in (np.asarray(tensor), np.from_dlpack(tensor), np.asarray(memoryview(tensor))):
        np.testing.assert_array_equal(seen, rows)
        assert seen.dtype == rows.dtype


# --- arguments --------------------------------------------------------------------------------------


def test_streams_are_for_devices(tensors):
    for stream in (0, 1, 2, -1, 12345678, 2**70, np.int64(1), "1"):
        with pytest.raises(BufferError, match="must be None"):
            tensors[0].__dlpack__(stream=stream)
    assert tensors[0].__dlpack__(stream=None)


def test_devices(tensors):
    for device in (CPU, None, (np.int32(1), np.uint8(0))):
        assert tensors[0].__dlpack__(dl_device=device)
    for other in ((2, 0), (1, 1), (3, 0)):
        for copy in (None, True, False):
            with pytest.raises(BufferError, match="on cpu"):
                tensors[0].__dlpack__(dl_device=other, copy=copy)


def test_wrong_arguments(tensors):
    """BufferErrors: after a TypeError PyTorch asks again with fewer arguments."""
    for wrong in ({"max_version": 1}, {"max_version": (1,)}, {"dl_device": "cpu"}, {"dl_device": (1, 0.0)}):
        with pytest.raises(BufferError, match="two integers"):
            tensors[0].__dlpack__(**wrong)
    for wrong in ({"max_version": (2**70, 0)}, {"dl_device": (1, -(2**70))}, {"max_version": (True, 0)}):
        with pytest.raises(BufferError, match="integers of 64 bits"):
            tensors[0].__dlpack__(**wrong)
    with pytest.raises(BufferError, match="copy is 'yes'"):
        tensors[0].__dlpack__(copy="yes")
    for wrong in ((None,), {"steam": None}):
        with pytest.raises(TypeError):
            tensors[0].__dlpack__(*wrong) if isinstance(wrong, tuple) else tensors[0].__dlpack__(**wrong)


def test_a_copy_shares_no_memory(tensors, loader):
    labels = tensors[1]
    before = np.array(labels)
    managed, address = taken(labels.__dlpack__(copy=True, max_version=(1, 0)))
    assert managed.flags == 2 and managed.tensor.data != looked_into(labels.__dlpack__())[0].tensor.data
    copied = np.ctypeslib.as_array((ctypes.c_int64 * 8).from_address(managed.tensor.data))
    np.testing.assert_array_equal(copied, before)
    copied += 1
    np.testing.assert_array_equal(np.asarray(labels), before)
    managed.deleter(address)
    copies = [np.array(labels), np.asarray(labels, copy=True)]
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # Python 3.9 has none newer than 2.0
        copies.append(np.from_dlpack(labels, copy=True))
    for other in copies:
        other += 1
        np.testing.assert_array_equal(np.asarray(labels), before)
    # A copy keeps nothing of the batch.
    kept = tensors[0].__dlpack__(copy=True)
    del tensors, labels
    assert kept


# --- lifetimes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_give_back(made, version):
    loader = make(made)
    images, labels = next(iter(loader.to_device("cpu")))
    never_used = images.__dlpack__(max_version=version)
    managed, address = taken(images.__dlpack__(max_version=version))
    del images, labels
    assert lent(loader) == 1
    del never_used
    assert lent(loader) == 1
    thread = threading.Thread(target=managed.deleter, args=(address,))
    thread.start()
    thread.join()
    assert lent(loader) == 0


def test_labels_keep_no_images(loader):
    images, labels = next(iter(loader.to_device("cpu")))
    values = np.array(labels)
    kept = np.from_dlpack(labels)
    del images, labels
    assert lent(loader) == 0
    np.testing.assert_array_equal(kept, values)


def test_views_outlive_everything(made):
    views = []
    loader = make(made)
    wanted = [images.copy() for images, _ in loader.epoch(0)]
    for images, _ in loader.to_device("cpu").epoch(0):
        views.append((np.from_dlpack(images), memoryview(images), np.asarray(images)))
    assert lent(loader) == len(loader)
    del loader, images
    gc.collect()
    for seen, want in zip(views, wanted):
        for view in seen:
            np.testing.assert_array_equal(np.asarray(view), want)


def test_many_tensors_leave_nothing(loader):
    for _ in range(3):
        for images, labels in loader.to_device("cpu"):
            for _ in range(50):
                images.__dlpack__()
                labels.__dlpack__(max_version=(1, 0))
                np.from_dlpack(images)
                managed, address = taken(labels.__dlpack__(copy=True))
                managed.deleter(address)
    references = sys.getrefcount(np.dtype("uint8"))
    del images, labels
    assert lent(loader) == 0
    for images, _ in loader.to_device("cpu"):
        for _ in range(50):
            np.asarray(images)
    assert sys.getrefcount(np.dtype("uint8")) < references + 50
    assert loader.stats()["lent_bytes"] == loader.stats()["batch_bytes"]


# --- NumPy and memoryview ---------------------------------------------------------------------------


def test_numpy_shares_the_memory(tensors):
    for tensor in tensors:
        shared = np.asarray(tensor)
        imported = np.from_dlpack(tensor)
        assert shared.ctypes.data == imported.ctypes.data == looked_into(tensor.__dlpack__())[0].tensor.data
        assert shared.flags.writeable and shared.flags.c_contiguous and not shared.flags.owndata
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # which asks for versioned capsules
            assert imported.flags.writeable
        shared[0] += 1
        np.testing.assert_array_equal(imported, shared)


def test_numpy_in_other_types(tensors):
    as_floats = np.asarray(tensors[0], dtype="float32")
    assert as_floats.dtype == np.float32
    np.testing.assert_array_equal(as_floats, np.asarray(tensors[0]).astype("float32"))
    with pytest.raises(ValueError, match="copy"):
        tensors[0].__array__(dtype="float32", copy=False)
    assert tensors[0].__array__("uint8", False).ctypes.data == np.asarray(tensors[0]).ctypes.data


def test_memoryviews(tensors, made):
    view = memoryview(tensors[1])
    assert (view.shape, view.itemsize, view.nbytes, view.readonly) == ((8,), 8, 64, False)
    view[0] = 77
    assert np.asarray(tensors[1])[0] == 77
    assert bytes(tensors[0]) == np.asarray(tensors[0]).tobytes()
    assert memoryview(tensors[0]).cast("B").nbytes == tensors[0].nbytes
    images, _ = next(iter(make(made, dtype="bfloat16").to_device("cpu")))
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(images)


def test_bfloat16_without_ml_dtypes(made, monkeypatch):
    """If it is missing NumPy has no such arrays, and tensors work as before."""
    import importlib.util

    find = importlib.util.find_spec
    without = lambda name, *package: None if name == "ml_dtypes" else find(name, *package)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", without)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    loader = make(made, dtype="bfloat16")
    for iterable in (loader, loader.epoch(0)):
        with pytest.raises(ImportError, match="pip install ml_dtypes"):
            iter(iterable)
    assert loader.state_dict()["epoch"] == 0
    images, _ = next(iter(loader.to_device("cpu")))
    assert looked_into(images.__dlpack__())[0].tensor.code == 4
    with pytest.raises(ImportError):
        np.asarray(images)


# --- JAX --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_accepts_tensors(made, dtype):
    jax = pytest.importorskip("jax", reason="JAX is not installed here")
    loader = make(made, dtype=dtype)
    arrays = [images.tobytes() for images, _ in loader.epoch(0)]
    kept = []
    with jax.default_device(jax.devices("cpu")[0]):
        for images, _ in loader.to_device("cpu").epoch(0):
            array = jax.dlpack.from_dlpack(images)
            assert array.unsafe_buffer_pointer() == looked_into(images.__dlpack__())[0].tensor.data
            assert array.dtype == dtype and array.shape == images.shape
            kept.append(array)
    del images
    assert lent(loader) == len(loader)
    for array, wanted in zip(kept, arrays):
        assert np.asarray(array).tobytes() == wanted
    del array, kept
    assert lent(loader) == 0
