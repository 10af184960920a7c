"""A loader's cache of photographs: batches are those of a loader without one; later epochs come from it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


@pytest.fixture
def folder(made, tmp_path):
    """60 photographs, of which some are no baseline JPEGs, or damaged."""
    folder = tmp_path / "photos"
    shutil.copytree(made, folder)
    paths = sorted(folder.rglob("*.jpg"))
    for path in paths[4::20]:
        path.write_bytes(path.read_bytes()[:-1000])
    pillow = pytest.importorskip("PIL.Image")
    for path in paths[5::15]:
        pillow.open(path).save(path, "jpeg", progressive=True)
    for suffix, some in {"png": paths[8::15], "webp": paths[11::15]}.items():  # WebPs are not packed
        for path in some:
            pillow.open(path).save(path, suffix)
    return folder


@pytest.mark.parametrize("kind", ["ram", "dir"])
def test_batches_are_the_same(folder, tmp_path, kind):
    cache = {"ram": "ram:64MiB", "dir": f"dir:{tmp_path}/cache:64MiB"}[kind]
    source = stoker.image_folder(folder)
    plain, cached = (make(source, on_bad="substitute", max_bad_fraction=1, cache=c) for c in (None, cache))
    for _ in range(4):
        same(taken(cached), taken(plain))
    stats = cached.stats()
    assert plain.stats()["cache"] is None
    assert stats["cache"]["place"] == cache
    assert stats["cache"]["hits"] >= 100
    assert 40 <= stats["cache"]["packed"] < stats["cache"]["kept"] <= 60
    assert stats["cache"]["bytes"] <= stats["cache"]["most_bytes"] == 64 << 20
    assert stats["packed"] > 0
    assert 'stoker_cache_samples_total{loader="a",result="hit"}' in cached.prometheus("a")


def test_states_go_on_with_and_without_it(folder, tmp_path):
    source = stoker.image_folder(folder)
    options = {"on_bad": "drop", "max_bad_fraction": 1}
    cached = make(source, **options, cache=f"dir:{tmp_path}/cache:64MiB")
    batches = iter(cached)
    next(batches)
    state = cached.state_dict()
    rest = [tuple(column.copy() for column in batch) for batch in batches]
    plain = make(source, **options)
    plain.load_state_dict(state)
    same(taken(plain), rest)


PROGRAM = """
import sys
import numpy as np
import stoker

folder, cache, rank, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
loader = stoker.Loader(
    stoker.image_folder(folder), [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()],
    batch_size=8, shuffle=True, seed=7, rank=rank, world=2, on_bad="drop", max_bad_fraction=1,
    cache=cache or None)
hash = 0
for _ in range(epochs):
    for images, labels in loader:
        places = np.arange(images.size).reshape(images.shape)
        hash = (hash * 31 + int(np.sum(images.astype("u8") * places))) % 2**61
        print("batch", flush=True)
print(hash, loader.stats()["cache"] and loader.stats()["cache"]["hits"])
"""


def started(folder, cache, rank, epochs):
    command = [sys.executable, "-c", PROGRAM, str(folder), cache, str(rank), str(epochs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)


def results(programs):
    outputs = [program.communicate(timeout=120)[0] for program in programs]
    assert all(program.returncode == 0 for program in programs)
    return [output.splitlines()[-1].split() for output in outputs]


@pytest.mark.parametrize("kind", ["ram", "dir"])
def test_processes_share_it(folder, tmp_path, kind):
    cache = {"ram": "ram:64MiB", "dir": f"dir:{tmp_path}/cache:64MiB"}[kind]
    wanted = results([started(folder, "", rank, 4) for rank in (0, 1)])
    got = results([started(folder, cache, rank, 4) for rank in (0, 1)])
    assert [one[0] for one in got] == [one[0] for one in wanted]
    assert all(int(one[1]) > 20 for one in got)


def test_a_killed_process_leaves_right_bytes_behind(folder, tmp_path):
    cache = f"dir:{tmp_path}/cache:64MiB"
    wanted = results([started(folder, "", 0, 2)])
    for batches in range(1, 5):
        program = started(folder, cache, 0, 50)
        for _ in range(batches):
            program.stdout.readline()
        time.sleep(0.003 * batches)
        program.send_signal(signal.SIGKILL)
        program.communicate()
        assert results([started(folder, cache, 0, 2)])[0][0] == wanted[0][0]


def test_a_changed_file_is_read_again(made, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(made, folder)
    cache = f"dir:{tmp_path}/cache:64MiB"
    source = stoker.image_folder(folder)
    loader = make(source, cache=cache)
    list(loader)
    one, other = (pathlib.Path(source.path(id)) for id in (0, 1))
    one.write_bytes(other.read_bytes())
    loader.close()
    fresh = make(source, cache=cache)
    same(taken(fresh), taken(make(source)))


@pytest.mark.parametrize(
    ("cache", "error", "said"),
    [
        (8 << 30, TypeError, "cache must be a str"),
        ("8GiB", ValueError, 'cache is "8GiB".*ram:8GiB'),
        ("ram:8", ValueError, "Give a size of 1MiB or more"),
        ("dir:8GiB", ValueError, "dir:FOLDER:SIZE"),
        ("dir:/dev/null/cache:8GiB", OSError, "/dev/null/cache"),
        ("ram:1000TB", stoker.ResourceExhaustedError, "working memory|has room for"),
        ("\udcff", ValueError, "UTF-8"),
    ],
)
def test_wrong_caches_are_refused(made, cache, error, said):
    with pytest.raises(error, match=said):
        make(stoker.image_folder(made), cache=cache)


def test_samples_without_files_are_refused(made):
    np = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="in memory already"):
        stoker.Loader(stoker.arrays(np.zeros((4, 8, 8, 3), "u1")), batch_size=2, cache="ram:1MiB")
    photos = [(pathlib.Path(stoker.image_folder(made).path(i)).read_bytes(), i) for i in range(4)]
    with pytest.raises(ValueError, match="is called for its samples"):
        make(stoker.from_dataset(photos), cache="ram:1MiB")


def test_bench_has_it(command, made, tmp_path):
    def digest(*options):
        done = subprocess.run(
            [command, "bench", made, "--size", "32", "--epochs", "3", "--digest", "--json", *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        report = json.loads(done.stdout)
        return report["digest"], report["cache"]

    plain, none = digest()
    cached, cache = digest("--cache", f"dir:{tmp_path}/cache:64MiB")
    assert none is None
    assert cached == plain
    assert cache["hits"] >= 60
    assert cache["kept"] == 60
