"""Labels: which ones are class numbers, source.labels, and what is made of them. NumPy only."""

import io
import json
import pathlib
import pickle
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import tfrecords

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

WHOLE = [stoker.Resize((8, 8))]


class Pairs:
    """A dataset of (path, label)."""

    def __init__(self, paths, labels):
        self.paths, self.labels = paths, labels

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.paths[i], self.labels[i]


def paths_in(folder):
    source = stoker.image_folder(folder)
    return [source.path(i) for i in range(len(source))]


def labels_in_batches(source, *transforms):
    loader = stoker.Loader(source, [*WHOLE, *transforms], batch_size=4)
    return np.concatenate([batch["label"] for batch in loader])


# --- class numbers ----------------------------------------------------------------------------------


def arrays_of(paths, labels):
    return stoker.arrays(np.zeros((len(paths), 8, 8, 3), np.uint8), labels)


def jsonl_of(folder, kind):
    """Labels are written as this type, int or bool."""

    def made(paths, labels):
        lines = [{"path": path, "label": kind(label)} for path, label in zip(paths, labels)]
        (folder / "listed.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return stoker.manifest(folder / "listed.jsonl")

    return made


def test_labels_that_are_bool_are_classes_0_and_1(made, tmp_path):
    """In each source and of each type, next to the integers that they mean."""
    numbers = [1, 0, 1, 1, 0, 1]
    paths = paths_in(made)[: len(numbers)]
    one_hot = labels_in_batches(arrays_of(paths, numbers), stoker.MixUp(num_classes=2))
    for name, make, dtype in (
        ("arrays", arrays_of, bool),
        ("files", stoker.files, bool),
        ("manifest", jsonl_of(tmp_path, bool), np.int64),
        ("from_dataset", lambda paths, labels: stoker.from_dataset(Pairs(paths, labels)), bool),
    ):
        for labels in (
            [bool(number) for number in numbers],
            np.array(numbers, bool),
            np.array([2 * number for number in numbers], np.uint8).view(bool),
            [np.bool_(number) for number in numbers],
            [np.array(bool(number)) for number in numbers],
        ):
            source = make(paths, labels)
            in_batches = labels_in_batches(source)
            assert (in_batches.dtype, in_batches.tolist()) == (dtype, numbers), name
            np.testing.assert_array_equal(labels_in_batches(source, stoker.MixUp(num_classes=2)), one_hot)
            assert len(source.filter(labels=[1])) == 4 and len(source.filter(labels=[0])) == 2
            assert labels_in_batches(source.balanced(samples=4)).tolist().count(1) == 2, name


def test_labels_that_are_bool_have_class_names(made):
    paths = paths_in(made)[:3]
    for make in (
        stoker.files,
        lambda paths, labels, **names: stoker.from_dataset(Pairs(paths, labels), **names),
    ):
        source = make(paths, [True, False, True], class_names=["no", "yes"])
        assert source.classes == ["no", "yes"] and labels_in_batches(source).dtype == bool
    source = stoker.files(paths, [True, False, True], class_names=["no", "yes"])
    for yes in ("yes", True, np.True_, 1):
        assert [source.filter(labels=[yes]).path(i) for i in range(2)] == paths[::2]
    with pytest.raises(ValueError, match="has 1 at 0, and there is 1 class name"):
        stoker.files(paths, [True, False, True], class_names=["no"])


def test_what_is_a_mask_is_no_list_of_classes():
    """Among integers, where True would be class 1."""
    with pytest.raises(TypeError, match="integer"):
        stoker.arrays(np.arange(3), [0, 1, 2]).filter(labels=[True, False, True])
    for labels in (np.ones((3, 2), bool), np.ones(3, np.float32)):
        with pytest.raises(ValueError, match="labels of"):
            stoker.arrays(np.arange(3), labels).balanced()


# --- source.labels ----------------------------------------------------------------------------------


def tfrecord_of(folder):
    def made(paths, labels):
        parts = np.array_split(np.arange(len(paths)), 3)
        for part, ids in enumerate(parts):
            examples = [{"image": pathlib.Path(paths[i]).read_bytes(), "label": int(labels[i])} for i in ids]
            records = [tfrecords.record(tfrecords.example(features)) for features in examples]
            (folder / f"{part}.tfrecord").write_bytes(b"".join(records))
        return stoker.tfrecord(str(folder / "*.tfrecord"), image="image", label="label")

    return made


def tar_of(folder):
    def made(paths, labels):
        with tarfile.open(folder / "a.tar", "w") as archive:
            for i, (path, label) in enumerate(zip(paths, labels)):
                members = {"jpg": pathlib.Path(path).read_bytes(), "cls": str(label).encode()}
                for extension, data in members.items():
                    member = tarfile.TarInfo(f"{i:04}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        return stoker.tar(folder / "a.tar")

    return made


def records_of(folder):
    def made(paths, labels):
        rows = np.zeros(len(paths), [("label", np.int16), ("image", np.uint8, (8, 8, 3))])
        rows["label"] = labels
        rows.tofile(folder / "rows.bin")
        return stoker.records(folder / "rows.bin", rows.dtype)

    return made


def packed_of(made, folder):
    """It has the labels of the folder."""
    subprocess.run(
        [sys.executable, "-m", "stoker", "pack", str(made), str(folder)], check=True, capture_output=True
    )
    return stoker.packed(folder)


def derived_from(source, balances):
    """Returns sources of each kind that are made from one, with the ids that they have in it."""
    few = np.array([3, 0, 3, 58])
    subset = source.subset(few)
    both = [subset, source]
    return [
        (source, np.arange(60)),
        (subset, few),
        (subset.subset([2, 1]), few[[2, 1]]),
        (source.weighted(np.arange(60)), np.arange(60)),
        (source.repeated(3), np.arange(60)),
        (source.balanced() if balances else source, np.arange(60)),
        (subset.repeated(2), few),
        (stoker.combine(both, weights=[1, 2]), np.array([*few, *range(60)])),
        (stoker.combine([subset, source, source.subset([7])]), np.array([*few, *range(60), 7])),
        (stoker.combine(both).subset([63, 0, 5, 5]), np.array([59, 3, 1, 1])),
    ]


def test_labels_are_those_of_batches(made, tmp_path):
    paths = paths_in(made)
    numbers = np.random.default_rng(0).integers(0, 5, len(paths)).astype(np.int16)
    folders = np.array([sorted({*map(parent_of, paths)}).index(parent_of(path)) for path in paths], np.int16)
    for name, make, given, dtype in (
        ("arrays", arrays_of, numbers, np.int16),
        ("files", stoker.files, numbers, np.int16),
        ("vectors", lambda paths, labels: stoker.files(paths, np.stack([labels] * 3, 1)), numbers, np.int16),
        ("folder", lambda paths, labels: stoker.image_folder(made), folders, np.int64),
        ("packed", lambda paths, labels: packed_of(made, tmp_path / "packed"), folders, np.int64),
        ("manifest", jsonl_of(tmp_path, int), numbers, np.int64),
        ("tar", tar_of(tmp_path), numbers, np.int64),
        ("records", records_of(tmp_path), numbers, np.int16),
        ("tfrecord", tfrecord_of(tmp_path), numbers, np.int64),
        ("from_dataset", lambda paths, labels: stoker.from_dataset(Pairs(paths, labels)), numbers, np.int16),
    ):
        opened = make(paths, given)
        for source, ids in derived_from(opened, name != "vectors"):
            labels = source.labels
            assert labels.dtype == dtype and not labels.flags.writeable and source.labels is labels, name
            np.testing.assert_array_equal(labels if labels.ndim == 1 else labels[:, 2], given[ids], name)
        np.testing.assert_array_equal(opened.labels, labels_in_batches(opened))
        assert labels_in_batches(opened).dtype == opened.labels.dtype
        assert np.shares_memory(opened.weighted(np.ones(60)).labels, opened.labels), name
        if opened.labels.ndim == 1:  # class numbers
            np.testing.assert_array_equal(opened.filter(labels=[1, 4]).labels, given[np.isin(given, [1, 4])])
            train, validation = opened.split(0.3, seed=5)
            assert sorted([*train.labels, *validation.labels]) == sorted(given)


def parent_of(path):
    return pathlib.Path(path).parent.name


def test_classes_are_balanced_where_labels_are_read(made, tmp_path):
    """As where they are in memory."""
    paths, labels = paths_in(made), [-1] * 50 + [3] * 10
    for options in ({}, {"replacement": True}, {"samples": 9}):
        wanted = labels_in_batches(stoker.files(paths, labels).balanced(**options))
        for make in (tfrecord_of(tmp_path), lambda *columns: stoker.from_dataset(Pairs(*columns))):
            source = make(paths, labels).balanced(**options)
            np.testing.assert_array_equal(labels_in_batches(source), wanted)
    again = pickle.loads(pickle.dumps(tfrecord_of(tmp_path)(paths, labels).balanced(samples=9)))
    np.testing.assert_array_equal(labels_in_batches(again), wanted)


def test_labels_in_memory_are_not_kept_for_a_choice(made):
    source = stoker.image_folder(made)
    source.filter(labels=[1])
    source.split(0.5, stratify=True)
    assert source._kept_labels is None and source._read is None


def test_labels_of_text_are_class_numbers(tmp_path):
    (tmp_path / "listed.csv").write_text("path,label\na.jpg,dog\nb.jpg,cat\nc.jpg,dog\n")
    source = stoker.manifest(tmp_path / "listed.csv")
    assert source.labels.tolist() == [1, 0, 1] and source.balanced().labels.tolist() == [1, 0, 1]


def test_arrays_are_not_copied_for_their_labels():
    labels = np.arange(6)
    source = stoker.arrays(np.arange(6), labels)
    assert np.shares_memory(source.labels, labels) and labels.flags.writeable


class Noted(Pairs):
    """Notes the samples that it is asked for."""

    def __init__(self, *columns):
        super().__init__(*columns)
        self.asked = []

    def __getitem__(self, i):
        self.asked.append(i)
        return super().__getitem__(i)


def test_a_program_is_asked_for_each_label_once(made):
    """Also by a subset of a subset, and by the parts of a split."""
    dataset = Noted(paths_in(made), [i % 3 for i in range(60)])
    source = stoker.from_dataset(dataset)
    dataset.asked.clear()
    assert source.subset([7, 5, 7]).labels.tolist() == [1, 2, 1] and dataset.asked == [5, 7]
    train = source.subset(range(20))
    assert train.labels.tolist() == [i % 3 for i in range(20)]
    assert sorted(dataset.asked) == list(range(20))
    assert train.subset([1, 2]).labels.tolist() == [1, 2]
    for part in train.split(0.5, stratify=True):
        assert len(part.labels) == len(part.subset([0, 1]).balanced().labels) + 8
    both = stoker.combine([train, source.subset([19, 3])])
    assert both.subset([20, 21, 1]).labels.tolist() == [1, 0, 1] and len(dataset.asked) == 20
    parts = source.split(0.2, stratify=True)
    assert sorted(dataset.asked) == list(range(60))
    assert np.bincount(stoker.combine(parts).labels).tolist() == [20] * 3
    assert np.bincount(source.labels).tolist() == [20] * 3 and len(dataset.asked) == 60


def test_no_label_is_read_for_wrong_arguments(made):
    paths = paths_in(made)
    dataset = Noted(paths, [i % 3 for i in range(60)])
    source = stoker.from_dataset(dataset, class_names=["a", "b", "c"])
    fractions = Noted(paths, np.ones(60, np.float32))
    of_fractions = stoker.from_dataset(fractions)
    ordered = source.weighted(np.ones(60))
    for asked in (dataset.asked, fractions.asked):
        asked.clear()
    for error, words, call in (
        (ValueError, "between 0 and 1", lambda: source.split(1.5, stratify=True)),
        (ValueError, "leaves one part empty", lambda: source.split(0.001, stratify=True)),
        (ValueError, "order of its own", lambda: ordered.split(0.5, stratify=True)),
        (ValueError, "split: .*not class numbers", lambda: of_fractions.split(0.5, stratify=True)),
        (ValueError, "no class 'd'", lambda: source.filter(labels=["a", "d"])),
        (TypeError, "must be several", lambda: source.filter(labels="a")),
        (ValueError, "order of its own", lambda: ordered.filter(labels=["a"])),
        (ValueError, "filter: .*not class numbers", lambda: of_fractions.filter(labels=[1])),
        (ValueError, "order of its own", lambda: ordered.balanced()),
        (ValueError, "balanced: .*not class numbers", lambda: of_fractions.balanced()),
        (ValueError, "samples", lambda: source.balanced(samples=0)),
    ):
        with pytest.raises(error, match=words):
            call()
        assert dataset.asked == fractions.asked == [], words
    assert len(source.filter(labels=["a"])) == 20 and len(dataset.asked) == 60


def test_what_is_wrong_with_labels_is_said(made, tmp_path):
    with pytest.raises(ValueError, match="has no labels"):
        _ = stoker.arrays(np.arange(3)).labels
    paths = paths_in(made)[:6]

    class Short(Pairs):
        def __getitem__(self, i):
            return self.paths[i], [0, 1, 2][i]

    with pytest.raises(IndexError):
        _ = stoker.from_dataset(Short(paths, None)).labels
    source = tfrecord_of(tmp_path)(paths, range(6))
    content = bytearray((tmp_path / "1.tfrecord").read_bytes())
    content[-20] ^= 1
    (tmp_path / "1.tfrecord").write_bytes(content)
    with pytest.raises(stoker.DataLossError, match="checksum") as raised:
        _ = source.labels
    assert raised.value.file == str(tmp_path / "1.tfrecord") and raised.value.offset > 0
    assert source.subset([5, 0]).labels.tolist() == [5, 0]
    with pytest.raises(stoker.DataLossError, match="checksum"):
        source.balanced()


# --- split(stratify=True) ---------------------------------------------------------------------------


def test_stratified_parts_have_all_classes_in_proportion():
    """Divisions of random sizes: no class is off by a whole sample in any."""
    random = np.random.default_rng(1)
    for seed in range(50):
        labels = random.choice(random.integers(-5, 300, 12), random.integers(2, 200))
        source = stoker.arrays(np.arange(len(labels)), labels.astype([np.int64, np.uint8][seed % 2]))
        fraction = random.uniform(0.01, 0.99)
        try:
            plain = source.split(fraction, seed=seed)
        except ValueError as error:
            with pytest.raises(ValueError, match="leaves one part empty"):
                source.split(fraction, seed=seed, stratify=True)
            assert "leaves one part empty" in str(error)
            continue
        parts = source.split(fraction, seed=seed, stratify=True)
        assert [len(part) for part in parts] == [len(part) for part in plain]
        train, validation = (np.array(rows_of(part)) for part in parts)
        assert sorted([*train, *validation]) == list(range(len(labels)))
        for number in np.unique(source.labels):
            share = (source.labels == number).sum() * len(validation) / len(labels)
            assert abs((source.labels[validation] == number).sum() - share) < 1


def rows_of(source):
    return np.concatenate([images for images, _ in stoker.Loader(source, batch_size=7)]).tolist()


def test_a_stratified_part_is_pickled(made):
    folder = stoker.image_folder(made)
    train, validation = folder.split(0.25, seed=3, stratify=True)
    assert np.bincount(validation.labels).tolist() == [5, 5, 5]
    for part in (train, validation):
        again = pickle.loads(pickle.dumps(part))
        assert [again.path(i) for i in range(len(again))] == [part.path(i) for i in range(len(part))]
        np.testing.assert_array_equal(again.labels, part.labels)
    once_more = validation.split(0.2, stratify=True)
    assert np.bincount(once_more[1].labels).tolist() == [1, 1, 1]


def test_class_numbers_may_be_in_a_column():
    """As Keras' data sets have them."""
    source = stoker.arrays(np.arange(8), np.array([[0], [1]] * 4, np.uint8))
    assert rows_of(source.filter(labels=[1])) == [1, 3, 5, 7]
    assert sorted(source.split(0.5, stratify=True)[1].labels[:, 0]) == [0, 0, 1, 1]


def test_classes_of_one_sample_are_in_one_part():
    source = stoker.arrays(np.arange(12), [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])
    seen = set()
    for seed in range(30):
        _, validation = source.split(0.25, seed=seed, stratify=True)
        assert np.bincount(validation.labels)[0] == 2 and len(validation) == 3
        seen.add(max(validation.labels.tolist()))
    assert seen == {1, 2, 3, 4}


def test_refused_stratified_splits():
    for labels, words in ((None, "no labels"), (np.ones(3, np.float32), "not class numbers")):
        with pytest.raises(ValueError, match=f"split: .*{words}"):
            stoker.arrays(np.arange(3), labels).split(0.5, stratify=True)
    with pytest.raises(TypeError, match="stratify must be True or False"):
        stoker.arrays(np.arange(3), [0, 1, 2]).split(0.5, stratify=[0, 1, 2])
    with pytest.raises(ValueError, match="order of its own"):
        stoker.arrays(np.arange(3), [0, 1, 2]).balanced().split(0.5, stratify=True)
