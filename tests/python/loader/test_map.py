"""stoker.Map: the program's own functions after the transforms. NumPy only."""

import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
import ends  # noqa: E402
import odd_exceptions  # noqa: E402
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(folder, *after, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    source = folder if hasattr(folder, "classes") else stoker.image_folder(folder)
    return stoker.Loader(source, [*TRAIN, *after], **options)


def inverted(batches):
    return [(255 - images, labels + 10) for images, labels in batches]


def in_place(batch):
    batch["image"][...] = 255 - batch["image"]
    batch.label[...] += 10


def row_in_place(image, label):
    image[...] = 255 - image
    return image, label + 10


FORMS = {
    "in place": stoker.Map(in_place),
    "a tuple": stoker.Map(lambda batch: (255 - batch.image, batch.label + 10)),
    "a list": stoker.Map(lambda batch: [255 - batch.image, batch.label + 10]),
    "a dictionary": stoker.Map(lambda batch: {"label": batch.label + 10, "image": 255 - batch.image}),
    "some columns": stoker.Map(lambda batch: (np.subtract(255, batch[0], out=batch[0]), batch[1] + 10)),
    "rows": stoker.Map(row_in_place, rows=True),
    "rows of new arrays": stoker.Map(lambda image, label: (255 - image, int(label) + 10), rows=True),
    "rows in dictionaries": stoker.Map(
        lambda image, label: {"label": label + 10, "image": 255 - image}, rows=True
    ),
    "threads": stoker.Map(in_place, threads=4),
    "a partial": stoker.Map(functools.partial(row_in_place), rows=True, threads=2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", [1, 3])
def test_batches_are_mapped(made, form, world):
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        plain, mapped = make(made, **options), make(made, FORMS[form], **options)
        for _ in range(2):
            same(taken(mapped), inverted(taken(plain)))
        same(taken(mapped.epoch(1)), inverted(taken(plain.epoch(1))))


def test_one_column(made):
    folder = stoker.image_folder(made)
    source = stoker.files([folder.path(i) for i in range(20)])
    plain = [images for (images,) in taken((batch,) for batch in make(source))]
    for function in (lambda images: 255 - images, lambda images: np.subtract(255, images, out=images)):
        mapped = [images for (images,) in taken((batch,) for batch in make(source, stoker.Map(function)))]
        same([(images,) for images in mapped], [(255 - images,) for images in plain])
    rows = make(source, stoker.Map(lambda image: 255 - image, rows=True))
    same([(images.copy(),) for images in rows], [(255 - images,) for images in plain])


def test_columns_that_others_are_made_of():
    a, b = np.arange(20, dtype=np.int64), np.arange(20, 40, dtype=np.int64)
    swap = stoker.Map(lambda batch: (batch[1], batch[0]))
    for left, right in stoker.Loader(stoker.arrays(a, b), [swap], batch_size=5):
        np.testing.assert_array_equal(left, right + 20)
    flip = stoker.Map(lambda batch: {"image": batch[0][::-1]})
    batches = taken(stoker.Loader(stoker.arrays(a, b), [flip], batch_size=5))
    np.testing.assert_array_equal(batches[0][0], [4, 3, 2, 1, 0])


def test_text_can_be_read(made):
    folder = stoker.image_folder(made)
    paths = [folder.path(i) for i in range(20)]
    source = stoker.files(paths, [0] * 20, columns={"caption": [f"number {i}" for i in range(20)]})

    def number(batch):
        batch["label"][...] = [int(caption.split()[1]) for caption in batch["caption"]]

    def number_of_row(image, label, caption):
        return image, int(caption.split()[1]), caption

    for transform in (stoker.Map(number), stoker.Map(number_of_row, rows=True)):
        iterator = iter(make(source, transform))
        for batch in iterator:
            np.testing.assert_array_equal(batch["label"], iterator.sample_ids)
            assert batch["caption"] == [f"number {i}" for i in iterator.sample_ids]
    with pytest.raises(stoker.UnavailableError, match="'caption', which is text and cannot be changed"):
        next(iter(make(source, stoker.Map(lambda batch: {"caption": ["x"] * len(batch[0])}))))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16"])
def test_types_and_layouts_of_the_loader(made, dtype):
    def check(batch):
        assert batch[0].dtype == dtype and batch[0].shape[1:] == (3, 48, 48)
        batch[0][...] = 1

    for images, _ in make(made, stoker.Map(check), dtype=dtype, layout="NCHW"):
        assert (images == 1).all()


def test_after_mixing(made):
    soft = []

    def note(batch):
        soft.append(batch.label.copy())
        batch.label[...] = 0

    loader = make(made, stoker.MixUp(num_classes=3), stoker.Map(note))
    assert all((labels == 0).all() for _, labels in loader)
    assert soft[0].dtype == np.float32 and ((soft[0] > 0) & (soft[0] < 1)).any()


@pytest.mark.parametrize("device", ["cpu", "host"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_on_devices(made, device, dtype):
    normalize = [stoker.Normalize((0.5,) * 3, (0.5,) * 3)] if dtype == "float32" else []
    loader = make(made, *normalize, stoker.Map(in_place), dtype=dtype)
    got = [tuple(np.from_dlpack(tensor).copy() for tensor in batch) for batch in loader.to_device(device)]
    same(got, taken(loader.epoch(0)))


# --- the calls --------------------------------------------------------------------------------------


def test_each_batch_is_mapped_once_and_in_order(made):
    calls = []
    loader = make(made, stoker.Map(lambda batch: calls.append(int(batch.label.sum()))))
    wanted = [int(labels.sum()) for _ in range(2) for _, labels in taken(loader)]
    assert calls[:16] == wanted


def test_calls_are_made_ahead(made):
    called = threading.Semaphore(0)
    loader = make(made, stoker.Map(lambda batch: called.release()), depth=3)
    next(iter(loader))
    for _ in range(3):  # without asking for another batch
        assert called.acquire(timeout=60)


def test_as_many_threads_as_were_asked_for(made):
    meeting, met = threading.Barrier(4), threading.local()  # passed only if four calls are made at a time

    def meet(batch):
        if not hasattr(met, "once"):
            met.once = True  # lasts from call to call
            meeting.wait(timeout=60)

    assert len(taken(make(made, stoker.Map(meet, threads=4), depth=5))) == 8


def test_random_numbers_are_the_same_for_any_threads(made):
    def noise(batch, rng):
        batch.label[...] = rng.integers(0, 1 << 40, len(batch.label))

    def noise_of_row(image, label, rng):
        return image, rng.integers(0, 1 << 40)

    for function, rows in ((noise, False), (noise_of_row, True)):
        wanted = None
        for threads in (1, 4):
            loader = make(made, stoker.Map(function, rows=rows, rng=True, threads=threads))
            got = [labels.tolist() for _ in range(2) for _, labels in loader]
            wanted = wanted or got
            assert got == wanted
        assert len({label for labels in wanted for label in labels}) == 120
        other = make(made, stoker.Map(function, rows=rows, rng=True), seed=8)
        assert next(iter(other))[1].tolist() != wanted[0]


def test_stats_and_advice_name_the_function(made):
    def slow_function(batch):
        time.sleep(0.1)

    loader = make(made, stoker.Map(slow_function))
    taken(loader)
    stats = loader.stats()
    assert stats["map_seconds"] >= 0.16 and stats["waited"]["map"] > 0
    advice = stats["advice"]
    assert "our function" in advice and "slow_function" in advice and "on more threads" in advice
    assert "then batches: " in stats["plan"]
    assert "slow_function" in loader.explain() and "slow_function" in repr(loader)
    assert 'cause="map"' in loader.prometheus()


def test_calls_are_counted(made):
    loader = make(made, stoker.Map(lambda batch: time.sleep(0.01)), depth=4)
    next(iter(loader))
    loader.close()
    stats = loader.stats()  # batches that nobody took were mapped, too
    assert 1 <= stats["map_calls"] <= 5
    assert stats["map_seconds"] >= 0.01 * stats["map_calls"]
    assert f'stoker_map_calls_total{{loader="loader"}} {stats["map_calls"]}' in loader.prometheus()


def test_ranks_draw_other_numbers(made):
    # Both ranks begin with the same sample. (Batches may be mapped again, for a further iteration.)
    source = stoker.image_folder(made).subset([3] * 32)
    drawn = [set(), set()]
    for rank in (0, 1):

        def noise(batch, rng, rank=rank):
            drawn[rank].add(int(rng.integers(0, 1 << 60)))

        taken(make(source, stoker.Map(noise, rng=True), shuffle=False, rank=rank, world=2).epoch(0))
    assert [len(numbers) for numbers in drawn] == [2, 2] and drawn[0].isdisjoint(drawn[1])


def test_no_two_batches_of_an_epoch_draw_the_same_numbers(made):
    """Also where other ranks finish it."""
    drawn = []

    def noise(batch, rng):
        batch.label[...] = rng.integers(0, 1 << 60)

    def first_labels(batches):
        return [int(labels[0]) for _, labels in batches]

    one = make(made, stoker.Map(noise, rng=True), batch_size=4)
    iterator = iter(one)
    drawn += first_labels([next(iterator), next(iterator)])
    for rank in range(3):
        other = make(made, stoker.Map(noise, rng=True, threads=2), batch_size=5, rank=rank, world=3)
        other.load_state_dict(one.state_dict())
        drawn += first_labels(other)
    assert len(drawn) == 2 + 4 + 4 + 4 and len(set(drawn)) == len(drawn)


def test_shapes_that_a_function_changes_are_its_own(made):
    def reshape(batch):
        batch.label.shape = (2, -1)
        batch.label[...] = 7
        batch.image.dtype = np.int8

    for images, labels in make(made, stoker.Map(reshape)).epoch(0):
        assert images.dtype == np.uint8 and labels.ndim == 1 and (labels == 7).all()


def test_what_a_function_keeps_on_a_device_is_limited(made):
    kept = []
    loader = make(made, stoker.Map(lambda batch: kept.append(batch.image)), lent_batches=4)
    to_host = loader.to_device("host")
    words = "by the map function and on their way to the device; lent_batches allows the function 4"
    with pytest.raises(stoker.ResourceExhaustedError, match=words):
        for epoch in range(4):
            for _ in to_host.epoch(epoch):
                pass
    assert 4 <= len(kept) <= 32
    kept.clear()
    next(iter(to_host.epoch(9)))


def test_there_is_a_warning_of_what_a_function_keeps_on_a_device():
    kept, rows = [], np.zeros((64, 1 << 18), np.uint8)
    loader = stoker.Loader(
        stoker.arrays(rows, np.zeros(64, np.int64)),
        [stoker.Map(lambda batch: kept.append(batch[0]))],
        batch_size=32,
        runtime=stoker.Runtime(memory_budget=64 << 20),
    ).to_device("host", buffers=2)
    with pytest.warns(stoker.MemoryWarning, match="are held outside stoker"):
        for epoch in range(10):
            for _ in loader.epoch(epoch):
                pass


def test_what_a_function_keeps_stays_as_it_was(made):
    kept = []
    loader = make(
        made, stoker.Map(lambda batch: kept.append((batch, batch.image.copy(), batch.label.copy())))
    )
    for _ in range(3):
        for _ in loader:
            pass
    del loader
    gc.collect()
    assert len(kept) >= 24
    for batch, images, labels in kept:
        np.testing.assert_array_equal(batch.image, images)
        np.testing.assert_array_equal(batch.label, labels)


# --- errors -----------------------------------------------------------------------------------------


def errors_of(loader):
    errors, rows, iterator = [], 0, iter(loader)
    while True:
        try:
            rows += len(next(iterator)[0])
        except stoker.Error as error:
            errors.append(error)
        except StopIteration:
            return errors, rows


def test_what_a_function_raises_names_batch_and_function(made):
    calls = []

    def fragile(batch):
        calls.append(batch.label.copy())
        if len(calls) == 3:
            raise KeyError("no such thing")

    loader = make(made, stoker.Map(fragile))
    errors, rows = errors_of(loader)
    assert rows == 52 and len(errors) == 1 and isinstance(errors[0], stoker.UnavailableError)
    assert errors[0].file.endswith("fragile")
    assert errors[0].cause.startswith("batch 2 of epoch 0: KeyError: 'no such thing' (")
    assert "test_map.py" in errors[0].cause and "in fragile)" in errors[0].cause
    assert loader.stats()["lent_batches"] == 0  # nobody keeps the batch that failed


def test_what_a_function_of_rows_raises_names_the_sample(made):
    def fragile(image, label):
        if label == 2:
            raise ValueError("two")

    loader = make(made, stoker.Map(fragile, rows=True), shuffle=False)
    errors, rows = errors_of(loader)
    first = loader.source.labels.tolist().index(2)
    assert (
        rows < 60 and f"batch {first // 8} of epoch 0: sample {first}: ValueError: two (" in errors[0].cause
    )
    assert "in fragile)" in errors[0].cause


@pytest.mark.parametrize(("error", "words"), odd_exceptions.ODD)
def test_exceptions_with_odd_messages(made, error, words):
    def fragile(batch):
        raise error

    with pytest.raises(stoker.UnavailableError, match=words):
        next(iter(make(made, stoker.Map(fragile))))


def test_errors_in_libraries_name_the_users_line(made):
    def singular(batch):
        np.linalg.inv(np.zeros((2, 2)))

    with pytest.raises(stoker.UnavailableError, match=r"LinAlgError: .*test_map.py, line \d+, in singular\)"):
        next(iter(make(made, stoker.Map(singular))))


NONSENSE = {
    "a number": (lambda images, labels: 5, "it returned a int; it must return None, a tuple of 2"),
    "one array": (lambda images, labels: images, "it returned a ndarray; it must return None, a tuple of 2"),
    "a longer tuple": (lambda images, labels: (images, labels, labels), "it returned a tuple of 3"),
    "an unknown column": (
        lambda images, labels: {"mask": labels},
        "it returned 'mask'; a batch has image, label",
    ),
    "another type": (
        lambda images, labels: (images / 255, None),
        r"'image' as float64 of shape \(8, 48, 48, 3\); it must be uint8 of shape \(8, 48, 48, 3\)",
    ),
    "another shape": (lambda images, labels: (None, labels[:-1]), r"'label' as int64 of shape \(7,\)"),
    "objects": (lambda images, labels: (None, [object()] * 8), "'label' as object"),
    "None in a list": (lambda images, labels: (None, [None] * 8), "'label' as object"),
    "ragged": (lambda images, labels: (None, [[1], [1, 2]]), "ValueError|'label' as object"),
    "a changed type": (
        lambda images, labels: (setattr(labels, "dtype", "float64"), labels + 1),
        "'label' as float64",
    ),
    "changed shape": (lambda images, labels: images.resize(3), "cannot resize"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_an_error(made, case):
    function, words = NONSENSE[case]
    with pytest.raises(stoker.UnavailableError, match=words):
        next(iter(make(made, stoker.Map(lambda batch: function(*batch)))))


ROW_NONSENSE = {
    "a number": (lambda image, label: 5, "sample 0: TypeError: it returned a int"),
    "another type": (lambda image, label: (image / 2, label), "its row of 'image' as float64"),
    "a fraction": (lambda image, label: (image, 1.5), "its row of 'label' as float64"),
    "too large": (lambda image, label: (image, 2**63), "its row of 'label' as uint64"),
    "a vector": (lambda image, label: (image, [1, 2]), r"its row of 'label' as int64 of shape \(2,\)"),
    "text": (lambda image, label: (image, "cat"), "its row of 'label' as <U3"),
}


@pytest.mark.parametrize("case", ROW_NONSENSE)
def test_nonsense_of_rows_is_an_error(made, case):
    function, words = ROW_NONSENSE[case]
    with pytest.raises(stoker.UnavailableError, match=words):
        next(iter(make(made, stoker.Map(function, rows=True), shuffle=False)))


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "words"),
    [
        ((5,), {}, TypeError, "Map.function must be a function, not 5"),
        ((in_place,), {"threads": 0}, ValueError, "Map.threads is 0"),
        ((in_place,), {"threads": 257}, ValueError, "Map.threads is 257"),
        ((in_place,), {"rows": 1}, TypeError, "Map.rows must be True or False"),
        ((in_place,), {"rng": None}, TypeError, "Map.rng must be True or False"),
    ],
)
def test_wrong_arguments(arguments, options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.Map(*arguments, **options)


def test_wrong_places(made):
    own = stoker.Map(in_place)
    with pytest.raises(TypeError, match=r"transforms\[0\] is Map\(in_place\); .* must be the last one"):
        stoker.Loader(stoker.image_folder(made), [own, *TRAIN], batch_size=8)
    with pytest.raises(TypeError, match=r"try \[Map\(in_place\)\]"):
        stoker.Loader(stoker.image_folder(made), own, batch_size=8)
    with pytest.raises(TypeError, match="is called with batches of a Loader"):
        stoker.Compose([*TRAIN, own])


# --- states and ends --------------------------------------------------------------------------------


def test_resuming(made):
    first = iter(one := make(made, stoker.Map(in_place)))
    next(first), next(first)
    two = make(made, stoker.Map(in_place, threads=3))
    two.load_state_dict(one.state_dict())
    same(taken(two), taken(first))
    with pytest.raises(stoker.FailedPreconditionError, match="map was in_place and is none"):
        make(made).load_state_dict(one.state_dict())


@pytest.mark.parametrize("flag", ["rows", "rng"])
def test_states_know_how_the_function_is_called(made, flag):
    def function(*unused):
        return None

    state = make(made, stoker.Map(function, **{flag: True})).state_dict()
    make(made, stoker.Map(function, **{flag: True}, threads=2)).load_state_dict(state)
    words = rf"map was function, {flag}=True and is function\. "
    with pytest.raises(stoker.FailedPreconditionError, match=words):
        make(made, stoker.Map(function)).load_state_dict(state)


def test_a_function_whose_object_has_the_loader_is_let_go(made):
    class Trainer:
        def __init__(self):
            self.loader = make(made, stoker.Map(self.change))

        def change(self, batch):
            in_place(batch)

    trainer = Trainer()
    next(iter(trainer.loader))
    there = weakref.ref(trainer)
    del trainer
    deadline = time.monotonic() + 60
    while there() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert there() is None


def test_a_call_may_not_use_its_loader(made):
    errors = []

    def close(batch):
        try:
            loader.close()
        except stoker.FailedPreconditionError as error:
            errors.append(error)

    loader = make(made, stoker.Map(close))
    taken(loader)
    assert len(errors) >= 8 and "cannot be closed from inside a Map function" in str(errors[0])


DERIVED = {
    "from_dataset": lambda source: source,
    "subset": lambda source: source.subset(range(16)),
    "filter": lambda source: source.filter(np.arange(len(source)) < 16),
    "combine": lambda source: stoker.combine([source, source.subset(range(16))]),
    "weighted": lambda source: source.subset(range(16)).weighted(np.ones(16)),
}


@pytest.mark.parametrize("of", ["Map", *DERIVED])
@pytest.mark.parametrize("over", ["the same iterator", "a new one", "one epoch", "a device's"])
def test_a_call_may_not_iterate_its_loader(made, of, over):
    def take(*unused):
        if iterators:
            next(iterators[0]())

    class Taking(list):
        def __getitem__(self, i):
            take()
            return super().__getitem__(i)

    iterators, folder = [], stoker.image_folder(made)
    if of == "Map":
        loader = make(made, stoker.Map(take))
    else:
        dataset = stoker.from_dataset(Taking([folder.path(i) for i in range(60)]))
        loader = make(DERIVED[of](dataset))
    first = iter(loader)
    to_host = loader.to_device("host")
    iterators.append(
        {
            "the same iterator": lambda: first,
            "a new one": lambda: iter(loader),
            "one epoch": lambda: iter(loader.epoch(3)),
            "a device's": lambda: iter(to_host),
        }[over]
    )
    kind = stoker.UnavailableError if of == "Map" else stoker.FailedPreconditionError
    with pytest.raises(kind, match="a loader cannot be iterated in a call that it makes"):
        next(first)


def test_a_call_may_iterate_another_loader(made):
    other = iter(make(made, seed=8))
    taken_there = []

    def mix(batch):
        images, _ = next(other)
        taken_there.append(images)
        batch.image[...] = batch.image // 2 + images // 2

    images, _ = next(iter(make(made)))
    mixed, _ = next(iter(make(made, stoker.Map(mix))))
    np.testing.assert_array_equal(mixed, images // 2 + taken_there[0] // 2)


def test_closing_waits_for_the_call(made):
    entered, go = threading.Event(), threading.Event()

    def wait(batch):
        entered.set()
        go.wait(60)

    loader = make(made, stoker.Map(wait))
    iterator = iter(loader)

    def take():
        with pytest.raises(stoker.CancelledError):
            next(iterator)

    taking = threading.Thread(target=take)
    taking.start()
    assert entered.wait(60)
    closing = threading.Thread(target=loader.close)
    closing.start()
    taking.join(60)  # threads that wait for a batch are released at once
    assert not taking.is_alive() and closing.is_alive()
    assert loader.stats()["map_seconds"] == 0
    go.set()
    closing.join(60)
    assert not closing.is_alive()


@pytest.mark.parametrize("of", ["Map", *DERIVED])
@pytest.mark.parametrize("device", [None, "host"])
def test_closing_names_a_call_that_hangs(made, monkeypatch, of, device):
    entered, go, said = threading.Event(), threading.Event(), []

    def hang(*unused):
        entered.set()
        go.wait(60)

    class Hanging(list):
        def __getitem__(self, i):
            if loaders:
                hang()
            return super().__getitem__(i)

    def warn(text, *unused, **others):
        said.append(text)
        go.set()

    loaders, folder = [], stoker.image_folder(made)
    paths = [folder.path(i) for i in range(60)]
    if of == "Map":
        loaders.append(make(made, stoker.Map(hang)))
    else:
        loaders.append(make(DERIVED[of](stoker.from_dataset(Hanging(paths), threads=1))))
    loader = loaders[0] if device is None else loaders[0].to_device(device)
    monkeypatch.setattr(stoker._user_code, "_HANGS", 0.1)
    monkeypatch.setattr(warnings, "warn", warn)

    def take():
        with pytest.raises(stoker.CancelledError):
            next(iter(loader))

    taking = threading.Thread(target=take)
    taking.start()
    assert entered.wait(60)
    loader.close()
    taking.join(60)
    with_what = "hang with batch 0 of epoch 0" if of == "Map" else "Hanging with sample"
    assert len(said) == 1 and said[0].startswith("close() waits for ") and with_what in said[0]
    assert "test_map.py, line" in said[0] and "in hang)" in said[0]  # not the line of threading.py


ENDS = {
    "leaving in the middle": "next(iter(make()))",
    "an exception": "next(iter(make())); raise SystemExit(0)",
    "a thread that loads": """
loader = make()
def work():
    while True:
        for _ in loader: pass
threading.Thread(target=work, daemon=True).start()
next(iter(loader))""",
    "a child": """
loader = make()
next(iter(loader))
child = os.fork()
if child == 0:
    try:
        next(iter(loader))
    except stoker.FailedPreconditionError:
        os._exit(len(next(iter(make()))[0]))
assert os.waitpid(child, 0)[1] == 4 << 8""",
    "a child that closes what it inherited": """
loader = make(threads=2)
iterator = iter(loader)
next(iterator)
child = os.fork()
if child == 0:
    loader.close()
    del iterator, loader
    os._exit(3)
assert os.waitpid(child, 0)[1] == 3 << 8
assert len(next(iterator)[0]) == 4""",
    "a child of a call": """
def fork(batch):
    child = os.fork()
    if child == 0:
        raise SystemExit(5)
    assert os.waitpid(child, 0)[1] == 5 << 8
assert len(next(iter(make(fork)))[0]) == 4""",
    "a child that returns from a call": """
def fork(batch):
    child = os.fork()
    if child != 0:
        assert os.waitpid(child, 0)[1] == 0
assert len(next(iter(make(fork)))[0]) == 4""",
    "children of a function of rows": """
read, write = os.pipe()
def fork(image, label):
    child = os.fork()
    if child == 0:
        os.write(write, b"c")
    else:
        assert os.waitpid(child, 0)[1] == 0
loader = make(fork, rows=True, batch_size=6)
assert len(next(iter(loader))[0]) == 6
loader.close()
os.close(write)
calls = len(os.read(read, 1 << 16))
assert 6 <= calls <= loader.stats()["samples"] and calls % 6 == 0, calls""",
    "a child that changes its row": """
def fork(image, label):
    child = os.fork()
    if child != 0:
        assert os.waitpid(child, 0)[1] == 0
    return 255 - image, label
assert len(next(iter(make(fork, rows=True)))[0]) == 4""",
    "calls that use stoker": """
def decode(batch):
    time.sleep(0.02)
    stoker.decode_image(folder.path(0))
next(iter(make(decode, threads=3)))""",
    "a loader that is being released": """
def slow(batch):
    time.sleep(0.1)
def work():
    for _ in range(100):
        next(iter(make(slow)))
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)""",
    "Ctrl-C": """
import signal
def hang(batch):
    if not go.is_set():
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        go.wait(60)
go = threading.Event()
loader = make(hang)
iterator = iter(loader)
try:
    next(iterator)
except KeyboardInterrupt:
    go.set()
assert go.is_set() and len(next(iterator)[0]) == 4""",
    "Ctrl-C, and again": """
import signal
def hang(batch):
    go.wait(60)
def interrupted(does):
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        does()
    except KeyboardInterrupt:
        return True
go = threading.Event()
loader = make(hang)
for epoch in (0, 5, 7, 5):  # an engine that is somewhere else waits for its call
    assert interrupted(lambda: next(iter(loader.epoch(epoch))))
go.set()
assert len(next(iter(loader.epoch(6)))[0]) == 4
go.clear()
to_host = make(hang).to_device("host")
for epoch in (0, 5, 7):
    assert interrupted(lambda: next(iter(to_host.epoch(epoch))))
assert interrupted(to_host.close)
go.set()""",
    "ten loaders": """
for _ in range(10):
    with make() as one:
        next(iter(one))
del one
assert threads_left("stoker/map", 1) <= 1""",
}


@pytest.mark.parametrize("end", ENDS)
def test_ends(made, end):
    program = f"""
folder = stoker.image_folder({str(made)!r})
def change(batch):
    batch.image[...] = 255 - batch.image
def make(function=change, batch_size=4, **options):
    transforms = [stoker.Resize((16, 16)), stoker.Map(function, **options)]
    return stoker.Loader(folder, transforms, batch_size=batch_size)
{ENDS[end]}
"""
    ends.check(program)


CHILDREN = {
    "prints": ("print('said', flush=False)", 0, "said\n", ""),
    "exits with words": ("sys.exit('words')", 1, "", "words\n"),
    "exits with a number": ("sys.exit(7)", 7, "", ""),
    "exits": ("sys.exit()", 0, "", ""),
    "raises": ("1 / 0", 1, "", "ZeroDivisionError: division by zero\n"),
    "has no output": ("sys.stdout = None; sys.exit(3)", 3, "", ""),
}


@pytest.mark.parametrize("case", CHILDREN)
@pytest.mark.parametrize("of", ["Map", "from_dataset"])
def test_what_a_forked_child_says(made, case, of):
    does, code, output, errors = CHILDREN[case]
    program = f"""
import os, stoker, sys
folder = stoker.image_folder({str(made)!r})
calling, forked = [], []
def fork(*unused):
    if not calling or forked:
        return
    forked.append(child := os.fork())
    if child == 0:
        {does}
    else:
        assert os.waitpid(child, 0)[1] == {code} << 8
class Forks(list):
    def __getitem__(self, i):
        fork()
        return super().__getitem__(i)
if {of!r} == "Map":
    source, more = folder, [stoker.Map(fork)]
else:
    source, more = stoker.from_dataset(Forks(folder.path(i) for i in range(8)), threads=1), []
calling.append(True)
next(iter(stoker.Loader(source, [stoker.Resize((16, 16)), *more], batch_size=4)))
assert forked
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        timeout=60,
        env=environment,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, output), done.stderr
    assert done.stderr.endswith(errors) and (errors or not done.stderr)


@pytest.mark.parametrize("warns", ["default", "error"])
def test_a_program_whose_call_hangs_can_be_ended(made, warns):
    program = f"""
import atexit, stoker, sys, threading
stoker._user_code._HANGS = 0.1
def hang(batch):
    entered.set()
    threading.Event().wait()
entered = threading.Event()
loader = stoker.Loader(
    stoker.image_folder({str(made)!r}), [stoker.Resize((16, 16)), stoker.Map(hang)], batch_size=4)
def take():
    next(iter(loader))
threading.Thread(target=take, daemon=True).start()
entered.wait()
print("kept by a buffer")
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    program = subprocess.Popen(
        [sys.executable, "-W", warns, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    warning = program.stderr.readline()
    assert "RuntimeWarning: the end of the program waits for the call of hang with batch 0 of " in warning
    assert "<string>" in warning and "in hang)" in warning
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=60)
    assert (program.returncode, output) == (130, "kept by a buffer\n")
    assert errors.endswith("KeyboardInterrupt\n")


@pytest.mark.long
def test_releasing_a_loader_names_its_own_call_that_hangs(made):
    entered, others, go = threading.Event(), threading.Event(), threading.Event()

    def hang(batch):
        entered.set()
        go.wait(60)

    def hang_too(batch):
        others.set()
        go.wait(60)

    def interrupted():
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            next(iter(loaders[0]))
        except KeyboardInterrupt:
            return True
        return False

    loaders = [make(made, stoker.Map(hang_too))]
    assert interrupted() and others.wait(60)
    kept = loaders.pop()
    loaders.append(make(made, stoker.Map(hang)))
    assert interrupted() and entered.wait(60)
    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loaders.clear()
    go.set()
    kept.close()
    assert len(said) == 1 and said[0].category is RuntimeWarning
    assert str(said[0].message).startswith("releasing a loader waits for the call of hang with batch 0 of ")
