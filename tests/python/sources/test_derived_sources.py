"""Sources made from others: chosen, combined and weighted samples. NumPy only."""

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]
WHOLE = [stoker.Resize((16, 16))]


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


def paths_of(source):
    return [source.path(i) for i in range(len(source))]


def numbers(samples, **options):
    """Returns samples in memory whose rows are their numbers, with labels 0, 1 and 2 in turn."""
    return stoker.arrays(np.arange(samples), np.arange(samples) % 3, **options)


def rows_of(source):
    return np.concatenate([images for images, _ in stoker.Loader(source, batch_size=7)]).tolist()


# --- subset -----------------------------------------------------------------------------------------


def test_a_subset_has_the_same_samples(made):
    folder = stoker.image_folder(made)
    ids = [41, 3, 3, 17, 0]
    chosen = folder.subset(ids)
    assert len(chosen) == 5 and chosen.classes == folder.classes and chosen.has_labels
    assert paths_of(chosen) == [folder.path(i) for i in ids]
    images, labels = next(iter(stoker.Loader(chosen, WHOLE, batch_size=5)))
    (all_images, all_labels), *_ = stoker.Loader(folder, WHOLE, batch_size=60)
    np.testing.assert_array_equal(images, all_images[ids])
    np.testing.assert_array_equal(labels, all_labels[ids])


@pytest.mark.parametrize("world", [1, 3, 8])
def test_a_subset_is_a_list_of_the_same_files(made, world):
    """The same bytes as from `files` with these paths, for every rank."""
    folder = stoker.image_folder(made)
    ids = np.random.default_rng(0).permutation(60)[:50]
    listed = stoker.files([folder.path(i) for i in ids], folder.labels[ids])
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 3}
        same(taken(make(folder.subset(ids), **options)), taken(make(listed, **options)))


def test_everything_of_a_subset_of_files_and_arrays(made):
    folder = stoker.image_folder(made)
    places = np.random.default_rng(0).random((60, 2))
    listed = stoker.files(paths_of(folder), folder.labels.tolist(), columns={"place": places})
    chosen = listed.subset([8, 1])
    batch = next(iter(stoker.Loader(chosen, WHOLE, batch_size=2)))
    np.testing.assert_array_equal(batch["place"], places[[8, 1]])
    assert chosen._beside(0)[0] == folder.labels[8]
    np.testing.assert_array_equal(chosen._beside(0)[1], places[8])
    assert chosen._image(1) == listed._image(1)

    held = numbers(10).subset([7, 2])
    assert rows_of(held) == [7, 2] and held._image(0) == 7 and held._beside(0) == [1]
    assert held.labels.tolist() == [1, 2]
    with pytest.raises(ValueError, match="has no files"):
        held.path(0)


def test_kinds_of_indices():
    for indices in ([4, 2], (4, 2), np.array([4, 2], np.int8), np.array([4, 2], np.uint64), range(4, 0, -2)):
        assert rows_of(numbers(10).subset(indices)) == [4, 2]
    assert rows_of(numbers(10).subset([9, 8, 7, 6]).subset([3, 0])) == [6, 9]


@pytest.mark.parametrize(
    ("indices", "error", "words"),
    [
        ([], ValueError, "no sample"),
        ([3, 10], ValueError, r"indices\[1\] is 10, and .* has 10 samples"),
        ([3, -1], ValueError, r"indices\[1\] is -1"),
        ([True] * 10, TypeError, "filter"),
        ([0.5], TypeError, "integers"),
        ([[1]], TypeError, "integers"),
        (3, TypeError, "integers"),
        ("3", TypeError, "integers"),
        ([2**63], ValueError, "indices"),
    ],
)
def test_refused_indices(indices, error, words):
    with pytest.raises(error, match=words):
        numbers(10).subset(indices)


def test_a_state_knows_the_choice():
    loader = stoker.Loader(numbers(10).subset([1, 2, 3]), batch_size=1)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = stoker.Loader(numbers(10).subset([1, 2, 3]), batch_size=1)
    again.load_state_dict(state)
    assert [images.item() for images, _ in again] == [2, 3]
    with pytest.raises(stoker.FailedPreconditionError, match="the data set's fingerprint was"):
        stoker.Loader(numbers(10).subset([1, 2, 4]), batch_size=1).load_state_dict(state)


# --- split ------------------------------------------------------------------------------------------


def test_a_split_is_disjoint_complete_and_stable(made):
    folder = stoker.image_folder(made)
    train, validation = folder.split(0.25, seed=3)
    assert len(validation) == 15 and len(train) == 45
    assert sorted(paths_of(train) + paths_of(validation)) == sorted(paths_of(folder))
    again = stoker.image_folder(made).split(0.25, seed=3)[1]
    assert paths_of(again) == paths_of(validation)
    assert paths_of(folder.split(0.25, seed=4)[1]) != paths_of(validation)
    seen = [images.copy() for images, _ in stoker.Loader(validation, WHOLE, batch_size=15)]
    whole = next(iter(stoker.Loader(folder, WHOLE, batch_size=60)))[0]
    np.testing.assert_array_equal(seen[0], whole[[paths_of(folder).index(p) for p in paths_of(validation)]])


def test_splits_without_labels():
    train, validation = stoker.arrays(np.arange(10)).split(0.2)
    assert not train.has_labels and len(validation) == 2


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 2, 0.01])
def test_refused_fractions(fraction):
    with pytest.raises(ValueError, match="split"):
        numbers(10).split(fraction)


# --- filter -----------------------------------------------------------------------------------------


def test_filter_by_a_mask():
    ages = np.arange(10) * 10
    assert rows_of(numbers(10).filter(ages >= 50)) == [5, 6, 7, 8, 9]
    assert rows_of(numbers(3).filter([True, False, True])) == [0, 2]


def test_filter_by_labels(made):
    assert rows_of(numbers(10).filter(labels=[2, 0])) == [0, 2, 3, 5, 6, 8, 9]
    folder = stoker.image_folder(made)
    name = folder.classes[1]
    chosen = folder.filter(labels={name})
    assert len(chosen) == 20 and set(chosen.labels.tolist()) == {1} and chosen.classes == folder.classes
    assert paths_of(folder.filter(labels=[name, 2])) == paths_of(folder)[20:]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, TypeError, "one of them"),
        ({"mask": [True] * 3, "labels": [1]}, TypeError, "one of them"),
        ({"mask": [True] * 2}, ValueError, r"shape \(2,\).* has 3 samples"),
        ({"mask": [1, 0, 1]}, TypeError, "booleans"),
        ({"mask": [False] * 3}, ValueError, "no sample"),
        ({"labels": [7]}, ValueError, "no sample"),
        ({"labels": ["cat"]}, ValueError, "no class 'cat'"),
        ({"labels": "cat"}, TypeError, "several"),
        ({"labels": 3}, TypeError, "several"),
        ({"labels": [0.5]}, TypeError, "integer"),
    ],
)
def test_refused_filters(given, error, words):
    with pytest.raises(error, match=words):
        numbers(3).filter(**given)


def test_filter_needs_labels_that_are_class_numbers():
    with pytest.raises(ValueError, match="has no labels"):
        stoker.arrays(np.arange(3)).filter(labels=[1])
    for labels in (np.ones(3, np.float32), np.ones((3, 2), np.int64)):
        with pytest.raises(ValueError, match="not class numbers"):
            stoker.arrays(np.arange(3), labels).filter(labels=[1])
    rows = np.random.default_rng(0).random((3, 2))
    np.testing.assert_array_equal(stoker.arrays(np.arange(3), rows).subset([2, 0]).labels, rows[[2, 0]])


# --- combine ----------------------------------------------------------------------------------------


def test_combined_samples_follow_each_other(made):
    folder = stoker.image_folder(made)
    first, second = folder.split(0.3, seed=1)
    both = stoker.combine([first, second, folder])
    assert len(both) == 120 and both.classes == folder.classes
    assert paths_of(both) == paths_of(first) + paths_of(second) + paths_of(folder)
    assert both.labels.tolist() == [*first.labels, *second.labels, *folder.labels]
    images, labels = next(iter(stoker.Loader(both, WHOLE, batch_size=120)))
    order = np.argsort(paths_of(both)[:60])  # the folder's, which is sorted
    np.testing.assert_array_equal(images[:60][order], images[60:])
    np.testing.assert_array_equal(labels[:60][order], labels[60:])


def test_combined_arrays_and_columns(made):
    assert rows_of(stoker.combine(numbers(n) for n in (2, 1, 3))) == [0, 1, 0, 0, 1, 2]
    paths = paths_of(stoker.image_folder(made))
    parts = [stoker.files(paths[:n], columns={"age": np.arange(n)}) for n in (2, 3)]
    batch = next(iter(stoker.Loader(stoker.combine(parts), WHOLE, batch_size=5)))
    assert batch["age"].tolist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"sources": []}, ValueError, "no source"),
        ({"sources": numbers(3)}, TypeError, "list of sources"),
        ({"sources": [numbers(3), "photos"]}, TypeError, r"sources\[1\]"),
        ({"sources": [numbers(3), stoker.arrays(np.arange(3))]}, ValueError, "field 1 is 'label'.* nothing"),
        ({"sources": [numbers(3)] * 2, "samples": 5}, ValueError, "weights"),
        ({"sources": [numbers(3)] * 2, "weights": [1]}, ValueError, "1 weights for 2 sources"),
        ({"sources": [numbers(3)] * 2, "weights": [1, -1]}, ValueError, r"weights\[1\]"),
        ({"sources": [numbers(3)] * 2, "weights": "ab"}, TypeError, "weights"),
        ({"sources": [numbers(3)] * 2, "weights": [[1, 1]]}, TypeError, "weights"),
        ({"sources": [numbers(3)] * 2, "weights": [1, 1], "samples": 0}, ValueError, "samples"),
        ({"sources": [numbers(3), numbers(3).repeated(2)]}, ValueError, "order of its own"),
    ],
)
def test_refused_combinations(given, error, words):
    with pytest.raises(error, match=words):
        stoker.combine(**given)


# --- orders of their own ----------------------------------------------------------------------------


def mixed():
    """Draws samples 0 to 9 three times as often as samples 10 to 99."""
    held = numbers(100)
    return stoker.combine([held.subset(range(10)), held.subset(range(10, 100))], [3, 1], samples=80)


ORDERED = {
    "mixed": mixed,
    "weighted": lambda: numbers(100).weighted(1 + np.arange(100) % 7, samples=90),
    "balanced": lambda: numbers(100).subset(np.r_[:50, 51:99:3]).balanced(samples=70),
    "replaced": lambda: numbers(100).balanced(replacement=True),
    "repeated": lambda: numbers(100).repeated(4),
}


def positions_of(source, world, epoch, batch_size=4):
    """Returns the row at each position of an epoch, over all ranks together."""
    found = {}
    for rank in range(world):
        loader = stoker.Loader(source, batch_size=batch_size, seed=3, rank=rank, world=world)
        rows = np.concatenate([images for images, _ in loader.epoch(epoch)])
        found.update({rank + world * i: row for i, row in enumerate(rows)})
    return [found[position] for position in range(len(found))]


@pytest.mark.parametrize("kind", ORDERED)
def test_ranks_share_the_order_of_one(kind):
    alone = positions_of(ORDERED[kind](), 1, 5)
    for world in (3, 8):
        assert positions_of(ORDERED[kind](), world, 5, batch_size=3) == alone
    assert positions_of(ORDERED[kind](), 1, 6) != alone


@pytest.mark.parametrize("kind", ORDERED)
def test_entering_an_epoch_in_its_middle(kind):
    loader = stoker.Loader(ORDERED[kind](), batch_size=7, seed=3, shuffle=True)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    again = stoker.Loader(ORDERED[kind](), batch_size=7, seed=3, shuffle=True)
    again.load_state_dict(loader.state_dict())
    rest = taken(iterator)
    assert len(rest) == len(loader) - 4
    same(taken(again), rest)
    other = stoker.Loader(ORDERED["weighted" if kind == "mixed" else "mixed"](), batch_size=7, seed=3)
    with pytest.raises(
        stoker.FailedPreconditionError, match=r"samples: the (data set has|samples are different)"
    ):
        other.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("kind", ORDERED)
def test_other_ranks_finish_an_epoch(kind):
    loader = stoker.Loader(ORDERED[kind](), batch_size=7, seed=3)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    rest = np.concatenate([images for images, _ in iterator]).tolist()
    for rank in range(3):
        part = stoker.Loader(ORDERED[kind](), batch_size=4, seed=3, rank=rank, world=3)
        part.load_state_dict(state)
        assert np.concatenate([images for images, _ in part]).tolist() == rest[rank::3]


@pytest.mark.parametrize("kind", ORDERED)
def test_sample_ids_are_those_of_the_rows(kind):
    source = ORDERED[kind]()
    iterator = iter(stoker.Loader(source, batch_size=9))
    for images, labels in iterator:
        np.testing.assert_array_equal(images, [source._image(i) for i in iterator.sample_ids])
        np.testing.assert_array_equal(labels, images % 3)


def test_a_mixture_has_its_shares():
    rows = np.array(positions_of(mixed(), 1, 0))
    assert len(rows) == 80 and (rows < 10).sum() == 60
    assert np.bincount(rows[rows < 10]).tolist() == [6] * 10
    assert np.bincount(rows[rows >= 10]).max() == 1
    four = np.concatenate([positions_of(mixed(), 1, epoch) for epoch in range(4)])
    assert np.bincount(four[four >= 10]).max() == 1  # 4 × 20 of 90: no sample has come twice


def test_classes_are_balanced(made):
    folder = stoker.image_folder(made)
    tail = folder.subset([*range(20), 20, 40, 41])
    loader = stoker.Loader(tail.balanced(samples=31), WHOLE, batch_size=31, drop_remainder=True)
    counts = [np.bincount(labels).tolist() for _, labels in loader]
    assert sorted(counts[0]) == [10, 10, 11]


def test_weights_are_probabilities():
    """40,000 draws: weight 0 never, weights 1 and 3 within five standard deviations (87)."""
    source = stoker.arrays(np.arange(3), np.arange(3)).weighted([0, 1, 3], samples=40000)
    counts = np.bincount(positions_of(source, 1, 0, batch_size=1000), minlength=3)
    assert counts[0] == 0 and abs(counts[1] - 10000) < 435


def test_repeated_photographs_differ_by_their_crops(made):
    folder = stoker.image_folder(made)
    iterator = iter(stoker.Loader(folder.repeated(3), TRAIN, batch_size=6, seed=1))
    images, _ = next(iterator)
    first, *_, last = iterator.sample_ids
    assert iterator.sample_ids.tolist() == [first] * 3 + [last] * 3
    assert all((images[i] != images[j]).any() for i, j in ((0, 1), (1, 2), (0, 2)))
    assert len(stoker.Loader(folder.repeated(3), TRAIN, batch_size=6)) == 10
    assert len(stoker.Loader(folder.repeated(3, samples=180), TRAIN, batch_size=6)) == 30


@pytest.mark.parametrize(
    ("make_it", "error", "words"),
    [
        (lambda s: s.weighted([1, 2]), ValueError, "2 weights for 3 samples"),
        (lambda s: s.weighted([0, 0, 0]), ValueError, "all weights are 0"),
        (lambda s: s.weighted([1, 1, np.nan]), ValueError, r"weights\[2\] is nan"),
        (lambda s: s.weighted(None), TypeError, "weights"),
        (lambda s: s.weighted([1, 1, 1], samples=0), ValueError, "samples"),
        (lambda s: s.weighted([1, 1, 1]).balanced(), ValueError, "order of its own"),
        (lambda s: s.balanced().subset([1]), ValueError, "order of its own"),
        (lambda s: s.balanced().split(0.5), ValueError, "order of its own"),
        (lambda s: s.balanced().filter(labels=[1]), ValueError, "order of its own"),
        (lambda s: s.balanced(replacement=1), TypeError, "replacement"),
        (lambda s: stoker.arrays(np.arange(3)).balanced(), ValueError, "no labels"),
        (lambda s: s.repeated(0), ValueError, "times"),
        (lambda s: s.repeated(2, samples=7), ValueError, "7 samples"),
    ],
)
def test_refused_orders(make_it, error, words):
    with pytest.raises(error, match=words):
        make_it(numbers(3))
