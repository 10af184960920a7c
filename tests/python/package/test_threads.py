"""Calls on the threads of a program give the results of one thread, byte for byte."""

import concurrent.futures
import gc
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from stoker import _decode  # noqa: E402

THREADS = 8
TRAINING = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip(), stoker.ColorJitter(0.4, 0.4)]


def on_threads(work, threads=THREADS):
    """Returns the results of `work(0)`, `work(1)`, …, which begin at the same time; raises their errors."""
    ready = threading.Barrier(threads)

    def begin(number):
        ready.wait(60)
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


@pytest.fixture(scope="module")
def files(made):
    """The bytes of photographs, some of them damaged."""
    whole = [path.read_bytes() for path in sorted(made.glob("*/*.jpg"))[:20]]
    draw = random.Random(3)
    damaged = []
    for file in whole[:6]:
        place = draw.randrange(200, len(file) // 2)
        damaged += [file[:place], file[:place] + draw.randbytes(40) + file[place + 40 :]]
    return [*whole, *damaged, b"", b"no image"]


def result_of(call):
    """Returns the bytes of the arrays that a call returns, or its error."""
    try:
        made = call()
    except stoker.Error as error:
        return type(error).__name__, str(error)
    arrays = made if isinstance(made, list) else list(made.values()) if isinstance(made, dict) else [made]
    return [(array.dtype.name, array.shape, array.tobytes()) for array in arrays]


def random_calls(files, count=250):
    """Returns functions without arguments; the same ones each time."""
    draw = random.Random(7)
    composes = [
        stoker.Compose(TRAINING, seed=1),
        stoker.Compose(TRAINING, dtype="float32", layout="NCHW", accept_truncated=True),
        stoker.Compose([stoker.Resize(90, max_size=400), stoker.PadTo("batch", multiple=32)]),
        stoker.Compose([]),
    ]
    processors = [
        stoker.processor({"image_processor_type": "Qwen2VLImageProcessor"}, max_pixels=1 << 17),
        stoker.processor({"image_processor_type": "Siglip2ImageProcessor"}, dtype="float16"),
        stoker.processor({"image_processor_type": "CLIPImageProcessor"}, resampler="pillow"),
    ]
    calls = []
    for _ in range(count):
        file, one = draw.choice(files), draw.random()
        compose, processor, several = (
            draw.choice(composes),
            draw.choice(processors),
            draw.sample(files[:20], 3),
        )
        if one < 0.4:
            key = {"seed": draw.randrange(9), "epoch": draw.randrange(9), "position": draw.randrange(1 << 40)}
            calls.append(lambda compose=compose, file=file, key=key: compose(file, **key))
        elif one < 0.7:
            options = {
                "mode": draw.choice(["rgb", "gray", "rgba", "unchanged"]),
                "size": draw.choice([None, 40, (30, 50)]),
                "region": draw.choice([None, (3, 5, 60, 70)]),
                "accept_truncated": draw.random() < 0.5,
                "max_pixels": draw.choice([1 << 28, 1 << 27, 10_000]),
            }
            calls.append(lambda file=file, options=options: stoker.decode_image(file, **options))
        elif one < 0.9:
            calls.append(lambda processor=processor, file=file: processor(file))
        elif one < 0.95:
            calls.append(lambda processor=processor, several=several: processor(several))
        else:
            calls.append(lambda several=several: stoker.decode_images(several, size=(40, 40)))
    return calls


def test_random_calls_are_those_of_one_thread(files):
    calls = random_calls(files)
    wanted = [result_of(call) for call in calls]
    assert any(isinstance(result, tuple) for result in wanted)

    def work(number):
        order = list(range(len(calls)))
        random.Random(number).shuffle(order)
        return [(i, result_of(calls[i])) for i in order]

    for results in on_threads(work):
        assert all(result == wanted[i] for i, result in results)


def test_a_position_makes_a_call_independent_of_threads(made):
    """In any order on any thread, a call with a position makes that row of a loader's epoch."""
    source = stoker.image_folder(made)
    paths = [source.path(i) for i in range(len(source))]
    compose = stoker.Compose(TRAINING, seed=5)
    loader = stoker.Loader(source, TRAINING, batch_size=len(paths), seed=5)
    order = random.Random(1).sample(range(len(paths)), len(paths))

    def row(position):
        with open(paths[position], "rb") as file:
            return position, compose(file.read(), epoch=2, position=position)

    (wanted, _), *_ = loader.epoch(2)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for position, image in pool.map(row, order):
            np.testing.assert_array_equal(image, wanted[position])


def test_threads_that_call_first_have_one_budget(monkeypatch):
    """They make one each, and all of them keep the same one."""
    made_by = stoker._stoker.DecodeMemory

    def slowly():
        time.sleep(0.05)
        return made_by()

    monkeypatch.setattr(stoker._stoker, "DecodeMemory", slowly)
    monkeypatch.setattr(_decode, "_shared", {})
    budgets = on_threads(lambda _: _decode._memory())
    assert all(budget is budgets[0] for budget in budgets)


# --- loaders ------------------------------------------------------------------------------------------


def test_each_batch_goes_to_one_thread(made):
    """Of one iterator, while other threads ask the loader for what they may ask for at any time."""
    loader = stoker.Loader(
        stoker.image_folder(made), TRAINING, batch_size=3, shuffle=True, seed=4, sample_ids=True
    )
    wanted = {batch["sample_id"].tobytes(): batch["image"].tobytes() for batch in loader.epoch(0)}
    iterator = iter(loader)

    def work(number):
        mine = []
        for batch in iterator:
            mine.append((batch["sample_id"].tobytes(), batch["image"].tobytes()))
            assert len(iterator.sample_ids) == 3  # of some thread's last batch, whole
            assert loader.state_dict()["epoch"] <= 1 and loader.stats()["batches"] > 0
            repr(iterator)
        return mine

    batches = [batch for mine in on_threads(work) for batch in mine]
    assert len(batches) == len(wanted) and dict(batches) == wanted
    assert loader.state_dict() == {**loader.state_dict(), "epoch": 1, "batch": 0}


def test_iterators_of_one_loader_take_epochs_of_their_own(made):
    loader = stoker.Loader(stoker.image_folder(made), TRAINING, batch_size=20, shuffle=True, seed=4)
    epochs = on_threads(lambda _: [images.tobytes() for images, _ in loader])
    assert sorted(epochs) == sorted([i.tobytes() for i, _ in loader.epoch(k)] for k in range(THREADS))


def test_a_bad_sample_is_the_error_of_one_thread(tmp_path, files):
    folder = tmp_path / "class"
    folder.mkdir()
    for i, file in enumerate(files[:20]):
        (folder / f"{i:02}.jpg").write_bytes(b"\xff\xd8\xff" if i % 5 == 3 else file)
    iterator = iter(stoker.Loader(stoker.image_folder(tmp_path), TRAINING, batch_size=1))

    def work(_):
        batches, errors = 0, []
        while True:
            try:
                next(iterator)
                batches += 1
            except stoker.DataLossError as error:
                errors.append(os.path.basename(error.file))
            except StopIteration:
                return batches, errors

    results = on_threads(work)
    assert sum(batches for batches, _ in results) == 16
    assert sorted(name[:2] for _, errors in results for name in errors) == ["03", "08", "13", "18"]


class Numbers:
    """A dataset whose calls show up in the list of calls."""

    def __init__(self, files):
        self._files = files

    def __len__(self):
        return len(self._files)

    def __getitem__(self, i):
        stoker._stoker.calls_in_progress()
        return self._files[i], i


def test_functions_of_the_program_on_many_threads(files):
    """A dataset and a Map on threads of their own, by loaders that threads make, iterate and drop."""
    source = stoker.from_dataset(Numbers(files[:20]), threads=4)

    def invert(batch):
        return {"image": 255 - batch["image"]}

    def work(_):
        loader = stoker.Loader(source, [*TRAINING, stoker.Map(invert, threads=2)], batch_size=4, seed=2)
        rows = [(images.tobytes(), labels.tolist()) for images, labels in loader]
        del loader
        gc.collect()
        return rows

    wanted = [
        ((255 - images).tobytes(), labels.tolist())
        for images, labels in stoker.Loader(source, TRAINING, batch_size=4, seed=2)
    ]
    assert all(rows == wanted for rows in on_threads(work, 4))
    assert stoker._stoker.calls_in_progress() == []


def test_iterations_that_begin_late_begin_once(made):
    """The iterators of PyTorch and JAX, whose first batch chooses the iteration."""
    loader = stoker.Loader(stoker.image_folder(made), TRAINING, batch_size=3, sample_ids=True)
    begun = []

    def begin():
        begun.append(iter(loader))
        time.sleep(0.05)
        return begun[0]

    iterator = stoker._stoker.LaterBatches(begin, lambda batch, name: (name[1], batch["sample_id"]), None)
    seen = on_threads(lambda _: [(index, ids.tolist()) for index, ids in iterator])
    assert iterator.begun is begun[0]
    batches = sorted(batch for mine in seen for batch in mine)
    assert batches == [(i, [3 * i, 3 * i + 1, 3 * i + 2]) for i in range(len(loader))]


def test_threads_make_the_default_runtime(made):
    """The threads that need it first; each processor keeps it for its next list."""
    program = """
import concurrent.futures, glob, sys, stoker
files = [open(name, "rb").read() for name in sorted(glob.glob(sys.argv[1] + "/*/*.jpg"))[:3]]
processor = stoker.processor({"image_processor_type": "CLIPImageProcessor"})
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    made = set(pool.map(lambda _: processor(files)["pixel_values"].tobytes(), range(40)))
    assert made == {processor(files)["pixel_values"].tobytes()}
"""
    run(program, made)


# --- the interpreter ----------------------------------------------------------------------------------


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FREE = not getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.skipif(not FREE, reason="this Python has a GIL")
def test_the_gil_stays_off():
    assert run("import stoker, sys; print(sys._is_gil_enabled())") == "False\n"


@pytest.mark.skipif(FREE, reason="CPython leaves locks of its own taken: a dict's, which the child waits for")
def test_forks_while_threads_call(made):
    """Calls hold no lock of the bindings at a fork, which a child could wait for."""
    program = """
import glob, os, sys, threading, stoker
class Numbers:
    def __len__(self): return 50
    def __getitem__(self, i): return files[i % len(files)]
files = [open(name, "rb").read() for name in sorted(glob.glob(sys.argv[1] + "/*/*.jpg"))[:10]]
source = stoker.from_dataset(Numbers(), threads=4)
transforms = [stoker.RandomResizedCrop(32)]
ended = threading.Event()
def work():
    while not ended.is_set():
        for _ in stoker.Loader(source, transforms, batch_size=4): stoker.decode_image(files[0])
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        stoker.decode_image(files[0])
        stoker._stoker.calls_in_progress()
        os._exit(len(list(stoker.Loader(stoker.image_folder(sys.argv[1]), transforms, batch_size=60))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
ended.set()
for thread in threads: thread.join()
"""
    run(program.replace("import glob", "import warnings; warnings.simplefilter('ignore')\nimport glob"), made)
