"""The Python package: the batches of a loader, and who owns them. NumPy only."""

import gc
import json
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
import digest  # noqa: E402
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip()]
EVALUATION = [stoker.Resize(73), stoker.CenterCrop(64)]


def make(folder, transforms=TRAIN, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(stoker.image_folder(folder), transforms, **options)


def bench(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "bench", folder, "--size", "64", "--batch-size", "8", "--seed", "7",
         "--digest", "--json", *map(str, arguments)],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)["digest"]


# --- the batches ------------------------------------------------------------------------------------


def test_three_loops_are_the_commands_three_epochs(made):
    loader = make(made)
    assert digest.of_epochs((e, loader) for e in range(3)) == bench(made, "--epochs", 3)


def test_pinned_epochs_are_the_same_ones(made):
    loader = make(made)
    assert digest.of_epochs((e, loader.epoch(e)) for e in range(3)) == bench(made, "--epochs", 3)
    same(taken(loader.epoch(5)), taken(loader.epoch(5)))
    assert loader.state_dict()["epoch"] == 0  # they take no epoch


def test_evaluation_and_float32(made):
    loader = make(made, EVALUATION, shuffle=False)
    assert digest.of_epochs([(0, loader)]) == bench(made, "--transform", "eval")
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    loader = make(made, [*TRAIN, stoker.Normalize(mean, std)], dtype=np.float32)
    assert digest.of_epochs([(0, loader)]) == bench(made, "--normalize")


def test_on_real_photographs(photos):
    loader = make(photos)
    assert digest.of_epochs((e, loader) for e in range(2)) == bench(photos, "--epochs", 2)


@pytest.mark.parametrize(
    "how",
    [{"threads": 1}, {"threads": 3, "reader": "pread"}, {"executor": "threads", "memory_budget": 16 << 20}],
)
def test_a_runtime_of_ones_own(made, how):
    loader = make(made, runtime=stoker.Runtime(**how), depth=2)
    assert digest.of_epochs([(0, loader)]) == bench(made)
    assert loader.stats()["threads"] == how.get("threads", loader.stats()["threads"])
    assert loader.stats()["memory_budget"] == how.get("memory_budget", loader.stats()["memory_budget"])


def test_shapes_dtypes_and_memory(made):
    loader = make(made)
    assert len(loader) == 8 and len(loader.epoch(3)) == 8
    rows = []
    for images, labels in loader:
        rows.append(len(images))
        assert images.shape == (len(images), 64, 64, 3) and images.dtype == np.uint8
        assert labels.shape == (len(images),) and labels.dtype == np.int64
        for column in (images, labels):
            assert column.flags.c_contiguous and column.flags.writeable
            assert not column.flags.owndata  # a view of the batch
            assert column.ctypes.data % 64 == 0
        assert set(labels) <= {0, 1, 2}
        images[:] = 0
        labels[:] = -5
    assert rows == [8] * 7 + [4]
    assert len(list(make(made, drop_remainder=True))) == len(make(made, drop_remainder=True)) == 7


NORMALIZED = [*TRAIN, stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]


@pytest.mark.parametrize("transforms", [TRAIN, NORMALIZED])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_the_float32_rounded(made, transforms, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes", reason="no bfloat16 without ml_dtypes").bfloat16
    for layout in ("NHWC", "NCHW"):
        how = {"dtype": dtype, "layout": layout}
        wanted = [(i.astype(dtype), n) for i, n in make(made, transforms, **{**how, "dtype": "float32"})]
        for (images, labels), (rounded, numbers) in zip(make(made, transforms, **how), wanted):
            assert images.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(images.view(np.uint16), rounded.view(np.uint16))
            np.testing.assert_array_equal(labels, numbers)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_planes_are_the_transpose(made, dtype):
    planes = taken(make(made, layout="NCHW", dtype=dtype))
    for (images, _), (values, _) in zip(planes, taken(make(made, dtype=dtype))):
        assert images.shape == (len(images), 3, 64, 64) and images.flags.c_contiguous
        np.testing.assert_array_equal(images, values.transpose(0, 3, 1, 2))
    compose = stoker.Compose(EVALUATION, dtype=dtype)
    planar = stoker.Compose(EVALUATION, dtype=dtype, layout="NCHW")
    planar = pickle.loads(pickle.dumps(planar))
    assert "layout='NCHW'" in repr(planar) and "layout" not in repr(compose)
    pixels = np.random.default_rng(1).integers(0, 256, (90, 70, 3), np.uint8)
    np.testing.assert_array_equal(planar(pixels), compose(pixels).transpose(2, 0, 1))


def test_a_state_is_of_a_layout(made):
    with pytest.raises(stoker.FailedPreconditionError, match="other options"):
        make(made, layout="NCHW").load_state_dict(make(made).state_dict())


def test_rows_that_are_copied_have_no_layout():
    with pytest.raises(ValueError, match="layout is NCHW"):
        stoker.Loader(stoker.arrays(np.zeros((4, 8, 8, 3), np.uint8)), batch_size=1, layout="NCHW")


def test_labels_and_ids_belong_to_the_files(made):
    loader = make(made)
    source = loader.source
    iterator = iter(loader)
    seen = []
    for _, labels in iterator:
        assert iterator.sample_ids.shape == labels.shape
        for sample, label in zip(iterator.sample_ids, labels):
            assert source.path(sample).split("/")[-2] == source.classes[label] == loader.classes[label]
        seen += iterator.sample_ids.tolist()
    assert sorted(seen) == list(range(60))
    for none in (60, -1, 2**70):
        with pytest.raises(IndexError):
            source.path(none)
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again.path(59) == source.path(59)


def test_pickling_another_source_of_files_says_what_to_do(made):
    source = stoker.Source(stoker.image_folder(made)._native, {}, "stoker.listed(…)")
    assert source.path(59) == stoker.image_folder(made).path(59)
    with pytest.raises(TypeError, match=r"stoker.listed\(…\) cannot be pickled; open it in each process"):
        pickle.dumps(source)


def test_a_relative_folder_is_the_same_from_elsewhere(made, monkeypatch):
    monkeypatch.chdir(made.parent)
    loader = make(made.name)
    monkeypatch.chdir("/")
    assert loader.source._spec["directory"] == str(made)  # other processes open it by its spec
    same(taken(loader), taken(make(made)))


def test_a_flat_folder_gives_images_alone(made, tmp_path):
    for n, path in enumerate(sorted(made.rglob("*.jpg"))[:5]):
        (tmp_path / f"{n}.jpg").write_bytes(path.read_bytes())
    source = stoker.image_folder(tmp_path)
    assert source.classes == [] and not source.has_labels
    batches = list(stoker.Loader(source, TRAIN, batch_size=2))
    assert [batch.shape for batch in batches] == [(2, 64, 64, 3), (2, 64, 64, 3), (1, 64, 64, 3)]


def test_ranks_together_have_every_sample_once(made):
    seen = []
    for rank in range(3):
        iterator = iter(make(made, rank=rank, world=3))
        for _ in iterator:
            seen += iterator.sample_ids.tolist()
    assert sorted(seen) == list(range(60))


def test_repr_and_stats(made):
    loader = make(made)
    assert repr(made.name)[1:-1] in repr(loader) and "batch_size=8" in repr(loader)
    assert "RandomResizedCrop" in repr(loader) and "60 samples, 8 batches" in repr(loader)
    assert "rank" not in repr(loader)  # only what differs from the defaults
    assert "epoch(3)" in repr(loader.epoch(3))
    iterator = iter(make(made).epoch(3))
    next(iterator)
    assert "at batch 1 of epoch 3" in repr(iterator) and "not begun" in repr(iter(loader))
    resize = "Resize(size=6, interpolation='bilinear', max_size=None, antialias=True, resampler='pillow')"
    assert repr(stoker.Resize(6)) == resize
    assert "threads=2" in repr(stoker.Runtime(threads=2))
    for _ in loader:
        pass
    stats = loader.stats()
    assert stats["batches"] == 8 and stats["samples"] >= 60 and stats["bytes_read"] > 0
    assert stats["memory_used"] <= stats["memory_budget"]


# --- iterating --------------------------------------------------------------------------------------


def test_an_early_break_takes_the_epoch(made):
    loader = make(made)
    epochs = [taken(loader.epoch(e)) for e in range(3)]
    for _ in loader:
        break
    for n, columns in enumerate(loader):
        if n == 3:
            same([columns], [epochs[1][3]])
            break
    same(taken(loader), epochs[2])


def test_an_exception_in_the_loop(made):
    loader = make(made)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    same(taken(loader), taken(loader.epoch(1)))


def test_two_iterators_at_once(made):
    loader = make(made)
    some, others = [], []
    for mine, yours in zip(loader, loader):
        some.append(tuple(c.copy() for c in mine))
        others.append(tuple(c.copy() for c in yours))
    first, second = taken(loader.epoch(0)), taken(loader.epoch(1))
    same(some, first)
    same(others, second)


def test_an_exhausted_iterator_stays_exhausted(made):
    iterator = iter(make(made))
    assert len(list(iterator)) == 8
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_two_loaders_share_the_default_runtime(made):
    training, validation = make(made), make(made, EVALUATION, shuffle=False)
    for _ in zip(training, validation):
        pass
    assert training.stats()["memory_budget"] == validation.stats()["memory_budget"]


def test_threads_share_an_iterator(made):
    iterator = iter(make(made, batch_size=1))
    seen = [[] for _ in range(4)]

    def work(mine):
        for images, _ in iterator:
            mine.append(images.tobytes())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    everything = sorted(image for mine in seen for image in mine)
    assert everything == sorted(i.tobytes() for i, _ in make(made, batch_size=1))


def test_closing_ends_a_wait_elsewhere(made):
    loader = make(made)
    ended = threading.Event()

    def work():
        try:
            while True:
                for _ in loader:
                    pass
        except stoker.CancelledError:
            ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    loader.close()
    thread.join(60)
    assert ended.is_set()
    with make(made) as other:
        images, _ = next(iter(other))
        kept = images.copy()
    np.testing.assert_array_equal(images, kept)
    with pytest.raises(stoker.CancelledError):
        next(iter(other))


# --- lifetimes --------------------------------------------------------------------------------------


def test_arrays_outlive_everything(made):
    loader = make(made)
    wanted = taken(loader.epoch(0))
    batches = list(loader)
    views = [(images[1:, ::2], labels[1:]) for images, labels in batches]
    del loader, batches
    gc.collect()
    same(views, [(images[1:, ::2], labels[1:]) for images, labels in wanted])


def test_memory_comes_back_with_the_last_view(made):
    loader = make(made)
    iterator = iter(loader)
    images, labels = next(iterator)
    held = images[2]
    assert loader.stats()["lent_batches"] == 1
    del images
    assert loader.stats()["lent_batches"] == 1
    del held
    assert loader.stats()["lent_batches"] == 0
    assert labels.sum() >= 0  # valid still


def test_labels_of_an_epoch_keep_no_images(made):
    runtime = stoker.Runtime(memory_budget=8 << 20)
    loader = make(made, runtime=runtime, depth=2, batch_size=1, lent_batches=2)
    labels = [labels for _, labels in loader]
    assert len(labels) == 60 and loader.stats()["lent_batches"] == 0
    wanted = [labels for _, labels in taken(loader.epoch(0))]
    for mine, label in zip(labels, wanted):
        np.testing.assert_array_equal(mine, label)


def test_a_list_of_batches_is_warned_of_once(made):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runtime = stoker.Runtime(memory_budget=3 << 20, threads=1)
        loader = make(made, runtime=runtime, batch_size=20, depth=1)
        kept = [list(loader) for _ in range(6)]
    assert sum(len(batches) for batches in kept) == 18
    memory = [w for w in caught if issubclass(w.category, stoker.MemoryWarning)]
    assert len(memory) == 1 and "memory budget" in str(memory[0].message)
    assert memory[0].filename == __file__
    same(kept[4], taken(loader.epoch(4)))


def test_a_hard_limit_on_lent_batches(made):
    loader = make(made, lent_batches=2)
    iterator = iter(loader)
    held = [next(iterator), next(iterator)]
    with pytest.raises(stoker.ResourceExhaustedError, match="lent_batches") as caught:
        next(iterator)
    assert isinstance(caught.value, MemoryError)
    held.pop()
    held.append(next(iterator))  # nothing was lost
    same([held[1]], [taken(make(made).epoch(0))[2]])
