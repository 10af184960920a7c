"""Batches with columns of objects, from files to NumPy's arrays and a program's functions."""

import gc
import pickle

import numpy as np
import PIL.Image
import pytest
import stoker

COUNTS = [3, 0, 2, 1, 5, 0, 0, 4, 1, 2, 0]
SIDE = 16
AS_IT_IS = [stoker.Resize((SIDE, SIDE))]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ragged")
    random = np.random.default_rng(3)
    made = [folder / f"{i}.png" for i in range(len(COUNTS))]
    for path in made:
        PIL.Image.fromarray(random.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(path)
    return made


def objects():
    """Returns boxes inside of the images, and a label of each."""
    random = np.random.default_rng(5)
    corners = [random.integers(0, SIDE // 2, (count, 2)) for count in COUNTS]
    boxes = [np.hstack([corner, corner + 4]).astype(np.float32) for corner in corners]
    return boxes, [random.integers(0, 90, count) for count in COUNTS]


BOXES, LABELS = objects()


@pytest.fixture
def source(paths):
    columns = {"boxes": stoker.Boxes(BOXES), "labels": stoker.PerObject(LABELS)}
    return stoker.files(paths, np.arange(len(paths)), columns=columns)


def check(ragged, rows, ids):
    """Checks that these are the objects of the samples."""
    assert len(ragged) == len(ids)
    for row, sample in zip(ragged, ids, strict=True):
        np.testing.assert_array_equal(row, rows[sample], strict=True)


def check_all(loader, epochs=1):
    seen = []
    for _ in range(epochs):
        iterator = iter(loader)
        for batch in iterator:
            check(batch.boxes, BOXES, iterator.sample_ids)
            check(batch.labels, LABELS, iterator.sample_ids)
            np.testing.assert_array_equal(batch.label, iterator.sample_ids)
            seen.append(batch)
    assert sum(len(batch.label) for batch in seen) == epochs * len(COUNTS)
    return seen


@pytest.mark.parametrize("batch_size", [1, 4, 11])
def test_each_row_has_the_objects_of_its_sample(source, batch_size):
    loader = stoker.Loader(source, AS_IT_IS, batch_size=batch_size, shuffle=True, seed=batch_size)
    assert loader._native.ragged == ["boxes", "labels"]
    check_all(loader, epochs=3)
    check_all(pickle.loads(pickle.dumps(loader)))


def test_subset_and_combination(source):
    ids = [7, 4, 1]
    both = stoker.combine([source.subset(ids), source])
    loader = stoker.Loader(both, AS_IT_IS, batch_size=5)
    iterator = iter(loader)
    for batch in iterator:
        samples = [[*ids, *range(len(COUNTS))][i] for i in iterator.sample_ids]
        check(batch.boxes, BOXES, samples)
        check(batch.labels, LABELS, samples)


def test_no_sample_has_objects(paths):
    source = stoker.files(paths, columns={"boxes": stoker.Boxes([[]] * len(paths))})
    for batch in stoker.Loader(source, AS_IT_IS, batch_size=4):
        assert batch.boxes.values.shape == (0, 4)
        assert batch.boxes.counts.tolist() == [0] * len(batch.image)
        assert batch.boxes.padded().shape == (len(batch.image), 0, 4)


def test_rows_that_are_dropped(paths):
    bad = paths[0].parent / "bad.png"
    bad.write_bytes(b"no image")
    given = [*paths]
    for sample in (1, 4, 10):
        given[sample] = bad
    source = stoker.files(given, columns={"boxes": stoker.Boxes(BOXES), "labels": stoker.PerObject(LABELS)})
    loader = stoker.Loader(source, AS_IT_IS, batch_size=4, on_bad="drop", max_bad_fraction=1)
    iterator = iter(loader)
    seen = []
    for batch in iterator:
        check(batch.boxes, BOXES, iterator.sample_ids)
        check(batch.labels, LABELS, iterator.sample_ids)
        seen += iterator.sample_ids.tolist()
    assert seen == [0, 2, 3, 5, 6, 7, 8, 9]
    loader = stoker.Loader(source, AS_IT_IS, batch_size=4, on_bad="substitute", max_bad_fraction=1)
    iterator = iter(loader)
    for batch in iterator:
        check(batch.boxes, BOXES, iterator.sample_ids)


def test_values_and_offsets_keep_their_memory(source):
    loader = stoker.Loader(source, AS_IT_IS, batch_size=4)
    offsets = [batch.boxes.offsets for batch in loader]
    values = [batch.labels[2] for batch in loader]
    del loader
    gc.collect()
    assert [numbers.tolist() for numbers in offsets] == [[0, 3, 3, 5, 6], [0, 5, 5, 5, 9], [0, 1, 3, 3]]
    for value, sample in zip(values, (2, 6, 10), strict=True):
        np.testing.assert_array_equal(value, LABELS[sample])


def test_memory_is_aligned_and_shared(source):
    for batch in stoker.Loader(source, AS_IT_IS, batch_size=4):
        for array in (batch.boxes.values, batch.boxes.offsets, batch.labels.values):
            assert array.ctypes.data % 64 == 0
            assert array.flags.writeable and array.flags.c_contiguous and array.base is not None


def test_a_function_of_batches(source):
    def changed(batch):
        batch.boxes.values[:] += 1
        batch["labels"][0][:] = 7
        with pytest.raises(ValueError, match="read-only"):
            batch.boxes.offsets[:] = 0

    first = next(iter(stoker.Loader(source, [*AS_IT_IS, stoker.Map(changed)], batch_size=4)))
    check(first.boxes, [box + 1 for box in BOXES], range(4))
    assert first.labels[0].tolist() == [7, 7, 7]
    check(first.labels[1:], LABELS[1:], range(3))


def test_what_a_function_of_batches_returns(source):
    def returned(batch):
        return {"boxes": stoker.Ragged(batch.boxes.values * 2, batch.boxes.offsets), "labels": batch.labels}

    first = next(iter(stoker.Loader(source, [*AS_IT_IS, stoker.Map(returned)], batch_size=4)))
    check(first.boxes, [box * 2 for box in BOXES], range(4))
    check(first.labels, LABELS, range(4))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda boxes: boxes.values, "must be a stoker.Ragged with the offsets that it had"),
        (lambda boxes: boxes[:1], "must be a stoker.Ragged with the offsets that it had"),
        (lambda boxes: stoker.Ragged(boxes.values[:, :2], boxes.offsets), r"float32 of shape \(6, 4\)"),
    ],
)
def test_what_a_function_may_not_return(source, make, text):
    loader = stoker.Loader(
        source, [*AS_IT_IS, stoker.Map(lambda batch: {"boxes": make(batch.boxes)})], batch_size=4
    )
    with pytest.raises(stoker.UnavailableError, match=text):
        next(iter(loader))


def test_a_function_of_rows(source):
    def changed(image, label, boxes, labels):
        assert image.shape == (SIDE, SIDE, 3)
        assert boxes.shape == (COUNTS[label], 4)
        boxes += label
        return {"labels": labels + 1}

    loader = stoker.Loader(source, [*AS_IT_IS, stoker.Map(changed, rows=True)], batch_size=4)
    iterator = iter(loader)
    for batch in iterator:
        check(batch.boxes, [box + i for i, box in enumerate(BOXES)], iterator.sample_ids)
        check(batch.labels, [label + 1 for label in LABELS], iterator.sample_ids)


def test_a_function_that_adds_a_column(source):
    def count(batch):
        return {"count": batch.boxes.counts}

    transforms = [*AS_IT_IS, stoker.Map(count, columns={"count": "int64"})]
    counts = [batch["count"] for batch in stoker.Loader(source, transforms, batch_size=4)]
    assert np.concatenate(counts).tolist() == COUNTS


def test_tensors_on_the_cpu(source):
    loader = stoker.Loader(source, AS_IT_IS, batch_size=4).to_device("cpu")
    iterator = iter(loader)
    for batch in iterator:
        assert isinstance(batch.boxes.values, stoker.Tensor)
        assert batch.boxes.offsets.dtype == "int64"
        check(batch.boxes, BOXES, iterator.sample_ids)
        check(batch.labels, LABELS, iterator.sample_ids)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"views": [AS_IT_IS, AS_IT_IS]}, "several views"),
        ({"transforms": [*AS_IT_IS, stoker.MixUp()]}, "MixUp"),
    ],
)
def test_refused(source, options, text):
    with pytest.raises(stoker.Error, match=text):
        stoker.Loader(source, **{"transforms": [], "batch_size": 4, **options})


def test_explain_mentions_them(source):
    told = stoker.Loader(source, AS_IT_IS, batch_size=4).explain().split("\n")
    assert told[-2:] == [
        f"column {name!r}: of objects, which follow the images" for name in ("boxes", "labels")
    ]


def test_refused_on_a_device(source):
    with pytest.raises(stoker.UnimplementedError, match="device"):
        next(iter(stoker.Loader(source, AS_IT_IS, batch_size=4).to_device("host")))
