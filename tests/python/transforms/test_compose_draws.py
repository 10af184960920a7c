"""Tests the draws of `Compose` when it is called without a position, like the `transform=` of a dataset."""

import concurrent.futures
import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

# Each pixel contains its position: RandomCrop(1) shows what was drawn, out of a million positions.
PLACES = np.arange(1000 * 1000, dtype="<u4").view(np.uint8).reshape(1000, 1000, 4)[:, :, :3].copy()


def drawn(compose, **key):
    """Returns the position that one call drew."""
    return int.from_bytes(compose(PLACES, **key).tobytes(), "little")


def several(compose, count=50, **key):
    return [drawn(compose, **key) for _ in range(count)]


def crop(**options):
    return stoker.Compose([stoker.RandomCrop(1)], **options)


def test_each_call_draws_anew():
    places = several(crop(), 200)
    assert len(set(places)) == 200
    # Over the whole image: of 200 in each quarter 50, and 6 is the deviation.
    quarters = [(place // 1000 // 500, place % 1000 // 500) for place in places]
    assert all(25 < quarters.count((y, x)) < 75 for y in (0, 1) for x in (0, 1))


def test_chances_are_met():
    compose = stoker.Compose([stoker.CenterCrop(2), stoker.RandomHorizontalFlip(0.25)])
    image = np.stack([np.zeros((2, 2), np.uint8), np.ones((2, 2), np.uint8), np.zeros((2, 2), np.uint8)], 2)
    image[:, 1] = 9
    flipped = sum(int(compose(image)[0, 0, 0] == 9) for _ in range(400))
    assert 70 < flipped < 130  # 100, and 9 is the deviation


def test_the_nth_call_is_position_n():
    for seed in (0, 7):
        assert several(crop(seed=seed)) == [drawn(crop(), seed=seed, position=n) for n in range(50)]
    assert several(crop(seed=1)) != several(crop(seed=2))
    assert several(crop(), seed=9, epoch=2) == [drawn(crop(), seed=9, epoch=2, position=n) for n in range(50)]


def test_a_position_is_exact_and_not_counted():
    compose = crop(seed=3)
    first = several(compose, 5)
    assert len({drawn(compose, position=17) for _ in range(5)}) == 1
    assert first + several(compose, 5) == several(crop(seed=3), 10)


def test_threads_never_draw_the_same():
    compose = crop(seed=5)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        lists = list(threads.map(lambda _: several(compose, 100), range(4)))
    together = [place for places in lists for place in places]
    assert sorted(together) == sorted(several(crop(seed=5), 400))


def test_copies_draw_differently():
    """Copies draw differently from the original, from each other, and from their own copies; the same in each
    run.
    """

    def drawn_by_copies():
        compose = crop(seed=6)
        first = pickle.loads(pickle.dumps(compose))
        copies = [first, copy.copy(compose), copy.deepcopy(compose), copy.deepcopy(first)]
        assert all(repr(it) == repr(compose) and "seed=6" in repr(it) for it in copies)
        assert len({drawn(it, position=3) for it in (compose, *copies)}) == 1
        assert several(compose) == several(crop(seed=6))
        return [several(it) for it in copies]

    copies = drawn_by_copies()
    assert len({place for places in (several(crop(seed=6)), *copies) for place in places}) > 247
    assert drawn_by_copies() == copies


@pytest.mark.parametrize(("seed", "kind"), [(-1, ValueError), (1 << 64, ValueError), (None, TypeError)])
def test_bad_seeds(seed, kind):
    with pytest.raises(kind, match="seed"):
        crop(seed=seed)


# --- processes --------------------------------------------------------------------------------------

PROGRAM = """
import json, multiprocessing, os, sys
from test_compose_draws import crop, several

def tell(end, compose):
    end.send([several(compose), several(crop(seed=3))])

def of_multiprocessing(how, compose):
    context = multiprocessing.get_context(how)
    ends = []
    for _ in range(2):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=tell, args=(send, compose))
        process.start()
        ends.append((receive, process))
    told = [receive.recv() for receive, _ in ends]
    for _, process in ends:
        process.join()
    return told

def of_fork(compose):
    told = []
    for _ in range(2):
        receive, send = os.pipe()
        if os.fork() == 0:
            os.write(send, json.dumps([several(compose)]).encode())
            os._exit(0)
        os.close(send)
        told.append(json.loads(os.fdopen(receive).read()))
        os.wait()
    return told

if __name__ == "__main__":
    compose = crop(seed=3)
    how = sys.argv[1]
    children = []
    for _ in range(2):
        children += of_fork(compose) if how == "os.fork" else of_multiprocessing(how, compose)
    print(json.dumps([several(compose), *(places for told in children for places in told)]))
"""

TASKS = """
import concurrent.futures, json, multiprocessing, sys
from test_compose_draws import PLACES, crop

if __name__ == "__main__":
    compose = crop(seed=3)
    context = multiprocessing.get_context(sys.argv[1])
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        crops = list(executor.map(compose, [PLACES] * 20))
    with context.Pool(2) as pool:
        crops += pool.map(compose, [PLACES] * 20, chunksize=1)
    print(json.dumps([int.from_bytes(crop.tobytes(), "little") for crop in crops]))
"""

FORKS = """
import json, multiprocessing, os
from test_compose_draws import crop, several

def here_and_forked(compose):
    receive, send = os.pipe()
    if os.fork() == 0:
        os.write(send, json.dumps(several(compose)).encode())
        os._exit(0)
    os.close(send)
    told = json.loads(os.fdopen(receive).read())
    os.wait()
    return [several(compose), told]

def tell(end, compose):
    end.send(here_and_forked(compose))

def of_multiprocessing(compose):
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=tell, args=(send, compose))
    process.start()
    told = receive.recv()
    process.join()
    return told

context = multiprocessing.get_context("fork")
compose = crop(seed=3)
receive, send = os.pipe()
if os.fork() == 0:  # its first process of multiprocessing has the number of the parent's first one
    os.write(send, json.dumps(of_multiprocessing(compose)).encode())
    os._exit(0)
os.close(send)
told = json.loads(os.fdopen(receive).read())
print(json.dumps([*of_multiprocessing(compose), *told, several(compose)]))
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Returns what a program prints."""
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent), prepend=os.pathsep)

    def printed(program, *arguments):
        script = tmp_path / "program.py"
        script.write_text(program)
        done = subprocess.run(
            [sys.executable, script, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return printed


@pytest.mark.long
@pytest.mark.parametrize("how", ["fork", "spawn", "os.fork"])
def test_processes_draw_differently(how, run):
    """Compares siblings, those of the next epoch, those that were given the Compose and those that made
    it.
    """
    parent, *children = run(PROGRAM, how)
    assert parent == several(crop(seed=3))
    if how != "os.fork":
        given, made = children[::2], children[1::2]
        if how == "fork":  # the process decides, not where the Compose was made
            assert given == made
        assert run(PROGRAM, how) == [parent, *children]
        children = given
    assert len(children) == 4
    together = [place for places in [parent, *children] for place in places]
    assert len(set(together)) > len(together) - 3  # of 250 among a million


@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_tasks_of_a_pool_draw_differently(how, run):
    """The Compose is pickled for each task."""
    places = run(TASKS, how)
    assert len(places) == 40 and len(set(places)) > 38  # of a million


def test_forks_of_forks_draw_differently(run):
    """Forks by os.fork from a process of multiprocessing, and the other way round."""
    processes = run(FORKS)
    assert len(processes) == 5 and processes[-1] == several(crop(seed=3))
    together = [place for places in processes for place in places]
    assert len(set(together)) > len(together) - 3


class Dataset:
    """As torchvision's: a transform is called with a sample and nothing else."""

    def __init__(self, transform):
        self._transform = transform

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return drawn(lambda image, **_: self._transform(image))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_as_the_transform_of_a_torch_dataset(workers, how):
    data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed here")
    if workers == 0 and how == "spawn":
        pytest.skip("there is nothing to spawn")
    context = how if workers else None
    loader = data.DataLoader(
        Dataset(crop()), batch_size=8, num_workers=workers, multiprocessing_context=context
    )
    places = [int(place) for _ in range(2) for batch in loader for place in batch]
    assert len(places) == 128 and len(set(places)) > 126
