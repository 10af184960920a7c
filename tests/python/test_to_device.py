"""Loader.to_device: the same batches, epochs and state; the process' end, threads; no driver touched."""

import gc
import json
import pathlib
import shutil
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402


def make(folder, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(32)], **options)


def arrays(batches):
    """(images, labels) of tensors, as arrays that are kept."""
    return [tuple(np.array(column) for column in batch) for batch in batches]


# --- the same batches -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"dtype": "float32", "layout": "NCHW"}, {"drop_remainder": True}])
def test_the_same_bytes(made, options):
    loader = make(made, **options)
    device = loader.to_device("cpu")
    assert len(device) == len(loader) and device.device == "cpu" and device.loader is loader
    same(arrays(device.epoch(2)), taken(loader.epoch(2)))
    assert repr(device) == f"{loader!r}.to_device('cpu')"
    assert repr(device.epoch(2)) == f"{device!r}.epoch(2)"


def test_images_alone(made):
    rows = np.arange(20, dtype="int16").reshape(10, 2)
    loader = stoker.Loader(stoker.arrays(rows), batch_size=4)
    tensors = list(loader.to_device("cpu"))
    assert [t.shape for t in tensors] == [(4, 2), (4, 2), (2, 2)]
    np.testing.assert_array_equal(np.concatenate([np.asarray(t) for t in tensors]), rows)


def test_soft_labels(made):
    loader = stoker.Loader(
        stoker.image_folder(made), [stoker.Resize((16, 16)), stoker.MixUp()], batch_size=8, dtype="float32"
    )
    _, labels = next(iter(loader.to_device("cpu")))
    assert labels.shape == (8, 3) and labels.dtype == "float32"


def test_sample_ids(made):
    loader = make(made)
    iterator, device = iter(loader.epoch(0)), iter(loader.to_device("cpu").epoch(0))
    for _ in range(len(loader)):
        next(iterator), next(device)
        np.testing.assert_array_equal(iterator.sample_ids, device.sample_ids)


def test_a_bad_sample_takes_the_place_of_its_batch(made, tmp_path):
    shutil.copytree(made, tmp_path / "photos")
    bad = sorted((tmp_path / "photos").rglob("*.jpg"))[9]
    bad.write_bytes(b"not a photograph")
    loader = make(tmp_path / "photos", shuffle=False)
    device = iter(loader.to_device("cpu"))
    next(device)
    with pytest.raises(stoker.Error) as caught:
        next(device)
    assert caught.value.file == str(bad)
    assert loader.state_dict()["batch"] == 2
    assert len(list(device)) == len(loader) - 2


def test_nothing_else_is_a_device(made):
    loader = make(made)
    for wrong in ("gpu", "CPU", "", "cpu:0"):
        with pytest.raises(ValueError, match="device"):
            loader.to_device(wrong)
    for wrong in (None, 0, b"cpu"):
        with pytest.raises(TypeError, match="device"):
            loader.to_device(wrong)


# --- epochs and state -------------------------------------------------------------------------------


def test_epochs_are_the_loaders(made):
    loader, wanted = make(made), make(made)
    device = loader.to_device("cpu")
    other = loader.to_device("cpu")
    for iterable in (device, loader, other, device.epoch(4), loader, device):
        if isinstance(iterable, stoker.Epoch):
            same(arrays(iterable), taken(wanted.epoch(4)))
        elif iterable is loader:
            same(taken(loader), taken(wanted))
        else:
            same(arrays(iterable), taken(wanted))
    assert loader.state_dict() == device.state_dict() == wanted.state_dict()
    assert loader.state_dict()["epoch"] == 5


def test_resuming_in_the_middle(made):
    loader = make(made)
    device = loader.to_device("cpu")
    list(device)
    for n, _ in enumerate(device):
        if n == 2:
            break
    state = json.loads(json.dumps(device.state_dict()))
    assert (state["epoch"], state["batch"]) == (1, 3)
    wanted = [*taken(loader.epoch(1))[3:], *taken(loader.epoch(2))]
    again = make(made, depth=1)
    again.to_device("cpu").load_state_dict(state)
    device = again.to_device("cpu")
    same([*arrays(device), *arrays(device)], wanted)
    # Saved by the one, taken by the other.
    loader.load_state_dict(state)
    assert device.state_dict()["epoch"] == 3
    same([*taken(loader), *arrays(loader.to_device("cpu"))], wanted)


def test_no_memory_beside_the_loaders(made):
    """One engine's, whichever way its batches are taken."""
    loader = make(made, depth=64, dtype="float32")
    before = loader.stats()
    device = loader.to_device("cpu")
    assert device.stats()["memory_used"] == before["memory_used"]
    list(device)
    assert device.stats()["batches"] == loader.stats()["batches"] == len(loader)
    # Decoding has grown its scratch; another engine would have its slots besides.
    grown = device.stats()["memory_used"] - before["memory_used"]
    assert before["depth"] == 64 and grown < 64 * before["batch_bytes"]


# --- the end ----------------------------------------------------------------------------------------


def test_close_leaves_the_loader(made):
    loader = make(made)
    with loader.to_device("cpu") as device:
        iterator = iter(device)
        images, _ = next(iterator)
    for iterable in (iterator, device, device.epoch(1)):
        with pytest.raises(stoker.CancelledError, match="closed"):
            next(iter(iterable))
    assert np.asarray(images).sum() > 0
    assert len(list(loader)) == len(list(loader.to_device("cpu"))) == len(loader)
    with pytest.raises(TypeError, match="pickled"):
        device.__reduce__()


def test_close_ends_a_wait(made, tmp_path):
    """Of a thread that waits for a batch that takes a second or more."""
    (tmp_path / "class").mkdir()
    photo = next(made.rglob("*.jpg"))
    for n in range(4000):
        (tmp_path / "class" / f"{n}.jpg").symlink_to(photo)
    loader = make(tmp_path, batch_size=4000, depth=1, runtime=stoker.Runtime(threads=1))
    device = loader.to_device("cpu")
    seen = []

    def wait():
        try:
            next(iter(device))
        except stoker.CancelledError as error:
            seen.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    device.close()
    thread.join()
    assert seen == ["the loader was closed."] and loader.stats()["samples"] < 4000


def test_the_iterator_keeps_what_it_needs(made):
    iterator = iter(make(made).to_device("cpu"))
    gc.collect()
    batches = list(iterator)
    del iterator
    gc.collect()
    assert len(batches) == 8 and all(np.asarray(images).sum() > 0 for images, _ in batches)


def test_threads_share_an_iterator(made):
    loader = make(made)
    iterator = iter(loader.to_device("cpu"))
    seen = []

    def work():
        for images, _ in iterator:
            seen.append(np.from_dlpack(images).tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(images.tobytes() for images, _ in loader.epoch(0))


HEAD = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np
import stoker
loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], batch_size=4)
device = loader.to_device("cpu")
"""


@pytest.mark.parametrize(
    "program",
    [
        "iterator = iter(device); images, labels = next(iterator)",
        "kept = list(device); del loader, device",
        "kept = [np.from_dlpack(images) for images, _ in device]; sys.modules['kept'] = kept",
        "kept = [images.__dlpack__() for images, _ in device]; sys.modules['kept'] = kept",
        "kept = [memoryview(images) for images, _ in device]; sys.modules['kept'] = kept",
        "class Cycle: pass\nc = Cycle(); c.me = c; c.iterator = iter(device); c.batch = next(c.iterator)",
        "def work():\n    while True:\n        for _ in device: pass\n"
        "iterator = iter(device); next(iterator)\n"
        "threading.Thread(target=work, daemon=True).start()",
        "import ctypes\nfor images, _ in device: ctypes.pythonapi.Py_IncRef(ctypes.py_object(images))",
    ],
)
def test_leaving_with_live_tensors(made, program):
    command = [sys.executable, "-c", HEAD + textwrap.dedent(program), str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- no driver --------------------------------------------------------------------------------------

CPU_ONLY = (
    HEAD
    + """
for images, labels in device:
    np.from_dlpack(images)
for images, labels in loader:
    pass
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print(sorted(name for name in loaded if "libcuda" in name or "libnvidia" in name))
print([name for name in ("torch", "tensorflow", "jax", "cupy") if name in sys.modules])
"""
)


def test_no_driver_is_loaded(made):
    command = [sys.executable, "-c", CPU_ONLY, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n[]\n", "")


def test_no_driver_is_looked_for(made, tmp_path):
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("there is no strace here")
    log = tmp_path / "log"
    watched = [strace, "-f", "-o", log, "-e", "trace=open,openat,openat2"]
    command = [*watched, sys.executable, "-c", CPU_ONLY, made]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240)
    calls = log.read_text() if log.exists() else ""
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    assert "_stoker" in calls  # it has seen what was opened
    assert [line for line in calls.splitlines() if "libcuda" in line or "/dev/nvidia" in line] == []


def test_the_package_has_no_driver_among_its_libraries():
    """What the loader of the system would load with it."""
    folder = pathlib.Path(stoker.__file__).parent
    for library in [*folder.glob("_stoker*.so"), *folder.glob("libstoker.so*")]:
        listed = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
        assert "libcuda" not in listed, listed
