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


def make(folder, size=32, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(size)], **options)


def arrays(batches):
    """Returns (images, labels) of tensors, as arrays that are kept."""
    return [tuple(np.array(column) for column in batch) for batch in batches]


# The host as a device has streams, copies and a ring of buffers, as a GPU has.
DEVICES = pytest.mark.parametrize("device", ["cpu", "host"])


# --- the same batches -------------------------------------------------------------------------------


OPTIONS = ({}, {"dtype": "float32", "layout": "NCHW"}, {"dtype": "float16"}, {"drop_remainder": True})


@DEVICES
@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_bytes(made, options, device):
    loader = make(made, **options)
    there = loader.to_device(device)
    assert len(there) == len(loader) and there.device == device and there.loader is loader
    same(arrays(there.epoch(2)), taken(loader.epoch(2)))
    assert repr(there) == f"{loader!r}.to_device({device!r})"
    device = there
    assert repr(device.epoch(2)) == f"{device!r}.epoch(2)"


@DEVICES
def test_images_alone(device):
    rows = np.arange(20, dtype="int16").reshape(10, 2)
    loader = stoker.Loader(stoker.arrays(rows), batch_size=4)
    tensors = list(loader.to_device(device))
    assert [t.shape for t in tensors] == [(4, 2), (4, 2), (2, 2)]
    np.testing.assert_array_equal(np.concatenate([np.asarray(t) for t in tensors]), rows)


@DEVICES
def test_soft_labels(made, device):
    mixed = [stoker.RandomResizedCrop(16), stoker.RandomErasing(0.5), stoker.MixUp()]
    loader = stoker.Loader(stoker.image_folder(made), mixed, batch_size=8, dtype="float32")
    _, labels = next(iter(loader.to_device(device).epoch(0)))
    assert labels.shape == (8, 3) and labels.dtype == "float32"
    same(arrays(loader.to_device(device).epoch(0)), taken(loader.epoch(0)))


@DEVICES
def test_sample_ids(made, device):
    loader = make(made)
    iterator, there = iter(loader.epoch(0)), iter(loader.to_device(device).epoch(0))
    for _ in range(len(loader)):
        next(iterator), next(there)
        np.testing.assert_array_equal(iterator.sample_ids, there.sample_ids)


@DEVICES
def test_a_bad_sample_takes_the_place_of_its_batch(made, tmp_path, device):
    shutil.copytree(made, tmp_path / "photos")
    bad = sorted((tmp_path / "photos").rglob("*.jpg"))[9]
    bad.write_bytes(b"not a photograph")
    loader = make(tmp_path / "photos", shuffle=False)
    device = iter(loader.to_device(device))
    next(device)
    with pytest.raises(stoker.Error) as caught:
        next(device)
    assert caught.value.file == str(bad)
    assert loader.state_dict()["batch"] == 2
    assert sum(1 for _ in device) == len(loader) - 2


def test_unknown_devices_are_refused(made):
    loader = make(made)
    for wrong in ("gpu", "mps", "CPU", "", "cpu:", "cpu:1", "cuda:", "cuda:x", "host:0"):
        with pytest.raises(ValueError, match=r'no device is called .* Use "cpu", "cuda", .* or "host"'):
            loader.to_device(wrong)
    for buffers in (1, 65, -1):
        for device in ("cpu", "host"):
            with pytest.raises(ValueError, match="buffers"):
                loader.to_device(device, buffers=buffers)
    for wrong in (None, 0, b"cpu"):
        with pytest.raises(TypeError, match="device"):
            loader.to_device(wrong)


def test_cpu_has_another_name(made):
    device = make(made).to_device("cpu:0")
    assert device.device == "cpu" and repr(device).endswith(".to_device('cpu')")
    assert {images.device for images, _ in device} == {"cpu"}


# --- epochs and state -------------------------------------------------------------------------------


@DEVICES
def test_epochs_are_the_loaders(made, device):
    loader, wanted = make(made), make(made)
    device = loader.to_device(device)
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


@DEVICES
def test_resuming_in_the_middle(made, device):
    loader = make(made)
    name, device = device, loader.to_device(device)
    for _ in device:
        pass
    for n, _ in enumerate(device):
        if n == 2:
            break
    state = json.loads(json.dumps(device.state_dict()))
    assert (state["epoch"], state["batch"]) == (1, 3)
    wanted = [*taken(loader.epoch(1))[3:], *taken(loader.epoch(2))]
    again = make(made, depth=1)
    again.to_device(name).load_state_dict(state)
    device = again.to_device(name)
    same([*arrays(device), *arrays(device)], wanted)
    # Saved by one loader, loaded by the other.
    loader.load_state_dict(state)
    assert device.state_dict()["epoch"] == 3
    same([*taken(loader), *arrays(loader.to_device("cpu"))], wanted)


def test_no_memory_beside_the_loaders(made):
    """The memory of one engine, whichever way its batches are taken."""
    loader = make(made, size=96, depth=64, dtype="float32")
    before = loader.stats()
    device = loader.to_device("cpu")
    assert device.stats()["memory_used"] == before["memory_used"]
    list(device)
    assert device.stats()["batches"] == loader.stats()["batches"] == len(loader)
    # Reading and decoding have grown their buffers, of some 10 MB; another engine would have its slots
    # besides, of 57 MB.
    grown = device.stats()["memory_used"] - before["memory_used"]
    assert before["depth"] == 64 and grown < 64 * before["batch_bytes"]


def test_a_device_gets_the_loaders_memory(made):
    """A program that only takes batches on a device pays for one engine."""
    loader = make(made, depth=4, runtime=stoker.Runtime(threads=1))
    before = loader.stats()["memory_used"]
    device = loader.to_device("host")
    assert before / 2 < device.stats()["memory_used"] < before * 1.5
    assert loader.stats()["memory_used"] == device.stats()["memory_used"]
    assert len(list(loader.epoch(0))) == len(loader)  # a program that wants another engine gets one


def test_iterators_side_by_side(made):
    """A ring of buffers each, and an epoch each."""
    loader = make(made)
    device = loader.to_device("host")
    wanted = [taken(loader.epoch(epoch)) for epoch in range(2)]
    seen = [[], []]
    for batches in zip(device, device):
        for kept, columns in zip(seen, batches):
            kept.append(tuple(np.array(column) for column in columns))
    for kept, expected in zip(seen, wanted):
        same(kept, expected)


def test_what_the_host_as_a_device_says(made):
    device = make(made).to_device("host", buffers=3)
    iterator = iter(device)
    held = [next(iterator) for _ in range(3)]
    images, labels = held[0]
    assert images.device == labels.device == "host" and images.__dlpack_device__() == (1, 0)
    assert repr(images) == "<stoker.Tensor (8, 32, 32, 3) uint8 on host>"
    with pytest.raises(stoker.ResourceExhaustedError, match="raise buffers"):
        next(iterator)
    with pytest.raises(BufferError, match="copies"):
        images.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="stream"):
        images.__dlpack__(stream=1)
    assert device.state_dict()["batch"] == 3
    del held, labels
    next(iterator)
    kept = np.from_dlpack(images)
    wanted = kept.copy()
    del images
    assert len([np.array(images) for images, _ in iterator]) == 4
    np.testing.assert_array_equal(kept, wanted)  # was not overwritten
    stats = device.stats()
    assert stats["device"] == "host" and stats["copied_batches"] >= 8
    assert stats["device_bytes"] >= 3 * 8 * 32 * 32 * 3
    assert stats["copied_bytes"] >= 60 * 32 * 32 * 3
    assert stats["pinned_bytes"] > 0 and stats["invalidated_captures"] == 0


def test_on_a_device_labels_keep_the_batch(made):
    iterator = iter(make(made).to_device("host", buffers=2))
    kept = [next(iterator)[1] for _ in range(2)]
    with pytest.raises(stoker.ResourceExhaustedError, match="labels lie with their"):
        next(iterator)
    del kept
    next(iterator)


def test_no_cuda_says_why(made):
    loader = make(made)
    try:
        device = loader.to_device("cuda")
    except stoker.FailedPreconditionError as error:
        assert "cuda:0" in str(error)
        assert len(list(loader)) == len(loader)
    else:
        assert device.device == "cuda:0"


# --- the end ----------------------------------------------------------------------------------------


@DEVICES
def test_close_leaves_the_loader(made, device):
    loader = make(made)
    with loader.to_device(device) as device:
        iterator = iter(device)
        images, _ = next(iterator)
    for iterable in (iterator, device, device.epoch(1)):
        with pytest.raises(stoker.CancelledError, match="closed"):
            next(iter(iterable))
    assert np.asarray(images).sum() > 0
    assert len(list(loader)) == len(list(loader.to_device("cpu"))) == len(loader)


@DEVICES
def test_close_ends_a_wait(made, tmp_path, device):
    """Close ends the wait of a thread for a batch that takes a second or more."""
    (tmp_path / "class").mkdir()
    photo = next(made.rglob("*.jpg"))
    for n in range(4000):
        (tmp_path / "class" / f"{n}.jpg").symlink_to(photo)
    loader = make(tmp_path, batch_size=4000, depth=1, runtime=stoker.Runtime(threads=1))
    device = loader.to_device(device)
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
    assert len(seen) == 1 and "closed" in seen[0] and loader.stats()["samples"] < 4000


def test_the_iterator_keeps_what_it_needs(made):
    iterator = iter(make(made).to_device("cpu"))
    gc.collect()
    batches = list(iterator)
    del iterator
    gc.collect()
    assert len(batches) == 8 and all(np.asarray(images).sum() > 0 for images, _ in batches)


@DEVICES
def test_threads_share_an_iterator(made, device):
    loader = make(made)
    iterator = iter(loader.to_device(device, buffers=8))
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
names = sys.argv[2].split(",")
device = loader.to_device(names if len(names) > 1 else names[0], buffers=64)
"""


@DEVICES
@pytest.mark.parametrize(
    "program",
    [
        "iterator = iter(device); images, labels = next(iterator)",
        "kept = list(device); del loader, device",
        "kept = [np.from_dlpack(images) for images, _ in device]; sys.modules['kept'] = kept",
        "kept = [images.__dlpack__() for images, _ in device]; sys.modules['kept'] = kept",
        "kept = [memoryview(images) for images, _ in device]; sys.modules['kept'] = kept",
        "for _ in device: pass",
        "class Cycle: pass\nc = Cycle(); c.me = c; c.iterator = iter(device); c.batch = next(c.iterator)",
        "def work():\n    while True:\n        for _ in device: pass\n"
        "iterator = iter(device); next(iterator)\n"
        "threading.Thread(target=work, daemon=True).start()",
        "import ctypes\nfor images, _ in device: ctypes.pythonapi.Py_IncRef(ctypes.py_object(images))",
    ],
)
def test_leaving_with_live_tensors(made, program, device):
    command = [sys.executable, "-c", HEAD + textwrap.dedent(program), str(made), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.parametrize("device", ["loader", "cpu", "host"])
def test_a_handler_that_saves_and_raises_loses_no_batch(made, tmp_path, device):
    """The handler takes its time, so that the awaited batch is ready when it raises."""
    (tmp_path / "class").mkdir()
    photo = next(made.rglob("*.jpg"))
    for n in range(4000):
        (tmp_path / "class" / f"{n}.jpg").symlink_to(photo)
    program = """
import signal, time
def make():
    loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], shuffle=True,
                           batch_size=2000, runtime=stoker.Runtime(threads=1))
    return loader, loader if sys.argv[2] == "loader" else loader.to_device(sys.argv[2])
def first(iterator):
    images, _ = next(iterator)
    return np.array(images).tobytes(), iterator.sample_ids.tolist()
class Stop(Exception): pass
saved = []
def handler(number, frame):
    saved.append(loader.state_dict())
    print("in", frame.f_code.co_name)
    while there.stats()["samples"] < 2000: time.sleep(0.01)
    time.sleep(1.5)
    raise Stop
loader, there = make()
iterator = iter(there)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    next(iterator)
    print("did not wait")
except Stop:
    saved.append(loader.state_dict())
print([(state["epoch"], state["batch"]) for state in saved])
wanted = first(iter(make()[1].epoch(0)))
print(first(iterator) == wanted, loader.state_dict()["batch"])
loader, there = make()
loader.load_state_dict(saved[0])
print(first(iter(there)) == wanted, loader.state_dict()["batch"])
"""
    command = [sys.executable, "-c", HEAD.replace("sys.argv[2]", "'cpu'") + program, str(tmp_path), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "in <module>\n[(0, 0), (0, 0)]\nTrue 1\nTrue 1\n"


@pytest.mark.parametrize("device", ["cpu", "host", "host,host"])
def test_a_forked_child_gets_an_error_and_ends(made, device):
    program = """
import os
faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the child
iterator = iter(device)
kept = next(iterator)
child = os.fork()
if child == 0:
    for use in (lambda: next(iterator), lambda: next(iter(device))):
        try:
            use()
        except stoker.FailedPreconditionError as error:
            print("fork" in str(error), flush=True)
    device.stats(), repr(device), device.state_dict(), device.close()
    del iterator, kept, device, loader
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
del kept
print(sum(1 for _ in iterator) == len(loader) - 1)
"""
    # Python 3.12 and later warn of os.fork() beside threads.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", HEAD + program]
    done = subprocess.run([*command, str(made), device], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == "True\n" * 3


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
    command = [sys.executable, "-c", CPU_ONLY, str(made), "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n[]\n", "")


def test_no_driver_is_looked_for(made, tmp_path):
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("there is no strace here")
    log = tmp_path / "log"
    watched = [strace, "-f", "-o", log, "-e", "trace=open,openat,openat2"]
    command = [*watched, sys.executable, "-c", CPU_ONLY, made, "cpu"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240)
    calls = log.read_text() if log.exists() else ""
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    assert "_stoker" in calls  # strace has seen what was opened
    assert [line for line in calls.splitlines() if "libcuda" in line or "/dev/nvidia" in line] == []


def test_the_package_has_no_driver_among_its_libraries():
    """Lists what the system's loader would load with it."""
    folder = pathlib.Path(stoker.__file__).parent
    for library in [*folder.glob("_stoker*.so"), *folder.glob("libstoker.so*")]:
        listed = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
        assert "libcuda" not in listed, listed


def test_pinned_memory_needs_a_gpu(made):
    try:
        loader = make(made, pin_memory=True)
    except stoker.FailedPreconditionError as error:
        assert "pin_memory needs a GPU" in str(error)
    else:
        same(taken(loader.epoch(0)), taken(make(made).epoch(0)))
        assert "pin_memory=True" in repr(loader)
    with pytest.raises(TypeError, match="pin_memory"):
        make(made, pin_memory=1)
    loader = make(made, pin_memory=False)
    assert "pin_memory" not in repr(loader) and loader.stats()["pinned_bytes"] == 0
