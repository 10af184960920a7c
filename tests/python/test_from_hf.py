"""stoker.from_hf: the samples of a dataset of Hugging Face's datasets."""

import pathlib
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
datasets = pytest.importorskip("datasets", reason="datasets is not installed here")
pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
from epochs import same, same_for_ranks, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


@pytest.fixture(scope="module")
def of_paths(made):
    """The photographs of `made` as a dataset of paths, with further columns."""
    source = stoker.image_folder(made)
    count = len(source)
    columns = {
        "image": [source.path(i) for i in range(count)],
        "label": source._labels(),
        "age": [float(i) for i in range(count)],
        "name": [f"ä{i}" for i in range(count)],
        "box": [[i, i + 1] for i in range(count)],
    }
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=source.classes),
            "age": datasets.Value("float32"),
            "name": datasets.Value("string"),
            "box": datasets.List(datasets.Value("int16"), length=2),
        }
    )
    return datasets.Dataset.from_dict(columns, features=features)


@pytest.fixture(scope="module")
def of_files(of_paths, tmp_path_factory):
    """The same in three Arrow files."""
    folder = tmp_path_factory.mktemp("hf")
    of_paths.save_to_disk(folder, num_shards=3)
    return datasets.load_from_disk(folder)


@pytest.fixture(scope="module")
def in_memory(of_files, tmp_path_factory):
    """The same in memory."""
    folder = tmp_path_factory.mktemp("memory")
    of_files.save_to_disk(folder)
    return datasets.load_from_disk(folder, keep_in_memory=True)


def is_ranges(source):
    return source._native.range(0) is not None


def check(dataset, columns=()):
    """A dataset's samples are those that it gives itself."""
    source = stoker.from_hf(dataset, columns=columns)
    assert len(source) == len(dataset)
    name = next(n for n, feature in dataset.features.items() if isinstance(feature, datasets.Image))
    raw = dataset.cast_column(name, datasets.Image(decode=False))
    for i, row in enumerate(raw):
        image = row[name]["bytes"] or pathlib.Path(row[name]["path"]).read_bytes()
        if is_ranges(source):
            begin, length = source._native.range(i)
            assert pathlib.Path(source.path(i)).read_bytes()[begin : begin + length] == image
        beside = source._native.row(i)
        for column, value in zip(["label", *columns], beside):
            np.testing.assert_array_equal(value, row[column])
    return source


@pytest.mark.parametrize("world", [1, 3, 8])
@pytest.mark.parametrize("form", ["of_files", "of_paths", "in_memory"])
def test_the_same_bytes_as_the_folder(made, request, form, world):
    source = stoker.from_hf(request.getfixturevalue(form))
    assert source.classes == stoker.image_folder(made).classes
    same_for_ranks(partial(make, source), partial(make, stoker.image_folder(made)), world)


def test_rows_that_datasets_has_chosen(of_files):
    columns = ["age", "name", "box"]
    assert is_ranges(check(of_files, columns))
    for chosen in (
        of_files.select(range(13, 47)),
        of_files.select(range(13, 47)).select(range(5, 12)),
        of_files.select([59, 0, 7, 7]),
        of_files.shuffle(seed=3),
        of_files.train_test_split(0.3, seed=2)["test"],
        of_files.filter(lambda age: age % 3 == 0, input_columns="age"),
        of_files.shard(4, 1),
        of_files.sort("age", reverse=True),
        datasets.concatenate_datasets([of_files, of_files.select(range(3, 20))]),
        of_files.map(lambda row: {"age": row["age"] + 1}, remove_columns=[]),
        of_files.with_format("numpy"),
    ):
        assert is_ranges(check(chosen, columns)), chosen
    renamed = of_files.rename_column("image", "img").remove_columns(["box"])
    assert is_ranges(stoker.from_hf(renamed, columns=["age"]))
    assert stoker.from_hf(renamed).classes == stoker.from_hf(of_files).classes


def test_a_shuffled_dataset_is_a_subset(of_files):
    shuffled = of_files.shuffle(seed=3)
    order = stoker.from_hf(of_files).subset([int(row["age"]) for row in shuffled.remove_columns("image")])
    same(taken(make(stoker.from_hf(shuffled))), taken(make(order)))


def test_datasets_in_memory_and_of_paths(of_paths, in_memory):
    memory = stoker.from_hf(in_memory.select([5, 3]), columns=["age", "box"])
    assert len(memory) == 2
    (batch,) = stoker.Loader(memory, TRAIN, batch_size=2)
    assert batch["age"].tolist() == [5, 3] and batch["box"].tolist() == [[5, 6], [3, 4]]
    with pytest.raises(stoker.InvalidArgumentError, match=r"'name' is text.*save_to_disk"):
        stoker.from_hf(in_memory, columns=["name"])
    paths = stoker.from_hf(of_paths.select([5, 3]), columns=["name"])
    (batch,) = stoker.Loader(paths, TRAIN, batch_size=2)
    assert batch["name"] == ["ä5", "ä3"]


def test_files_that_were_replaced_are_not_read(of_files, tmp_path):
    of_files.select(range(5)).save_to_disk(tmp_path / "one")
    dataset = datasets.load_from_disk(tmp_path / "one")
    assert is_ranges(stoker.from_hf(dataset))
    (path,) = (tmp_path / "one").glob("*.arrow")
    path.rename(tmp_path / "moved.arrow")
    source = stoker.from_hf(dataset)
    assert is_ranges(source) and source.path(0) == str(tmp_path / "moved.arrow")
    (tmp_path / "moved.arrow").unlink()
    source = stoker.from_hf(dataset)
    assert not is_ranges(source)
    assert len(taken(stoker.Loader(source, TRAIN, batch_size=2))) == 3


def test_what_is_wrong(of_files, in_memory):
    with pytest.raises(TypeError, match=r"several splits \(a, b\)"):
        stoker.from_hf(datasets.DatasetDict({"a": of_files, "b": of_files}))
    with pytest.raises(TypeError, match="without streaming=True"):
        stoker.from_hf(of_files.to_iterable_dataset())
    with pytest.raises(TypeError, match=r"a datasets.Dataset, not list"):
        stoker.from_hf([1])

    def wrong(words, dataset, **options):
        with pytest.raises(stoker.InvalidArgumentError, match=words):
            stoker.from_hf(dataset, **options)

    wrong("no rows", of_files.select([]))
    wrong("no column of the type Image.*label, age", of_files.remove_columns("image"))
    wrong("there is no column 'x'", of_files, image="x")
    wrong("'age' is float, no encoded images", of_files, image="age")
    wrong("'age' has no labels", of_files, label="age")
    wrong("columns has 'label'", of_files, columns=["label"])
    unknown = datasets.Dataset.from_dict(
        {"image": [{"bytes": b"x", "path": None}], "label": [-1]},
        features=of_files.select_columns(["image", "label"]).features,
    )
    wrong("label -1 of row 0 has no class name.*label=None", unknown)
    nothing = datasets.Dataset.from_dict(
        {"image": [None]}, features=datasets.Features({"image": datasets.Image()})
    )
    wrong("row 0 of column 'image' has no image", nothing)
    assert not stoker.from_hf(unknown, label=None).has_labels
