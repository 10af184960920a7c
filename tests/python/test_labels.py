"""Labels: which ones are class numbers, source.labels, and what is made of them. NumPy only."""

import json

import numpy as np
import pytest

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


def manifest_of(folder):
    def made(paths, labels):
        lines = [{"path": path, "label": bool(label)} for path, label in zip(paths, labels)]
        (folder / "listed.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return stoker.manifest(folder / "listed.jsonl")

    return made


def test_labels_that_are_bool_are_classes_0_and_1(made, tmp_path):
    """In each source and of each type, next to the integers that they stand for."""
    numbers = [1, 0, 1, 1, 0, 1]
    paths = paths_in(made)[: len(numbers)]
    one_hot = labels_in_batches(arrays_of(paths, numbers), stoker.MixUp(num_classes=2))
    for name, make, dtype in (
        ("arrays", arrays_of, bool),
        ("files", stoker.files, bool),
        ("manifest", manifest_of(tmp_path), np.int64),
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
            if name == "from_dataset":  # whose labels come with the images
                continue
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
