"""stoker.from_hf: the samples of a dataset of Hugging Face's datasets."""

import ctypes
import mmap
import pathlib
import pickle
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
datasets = pytest.importorskip("datasets", reason="datasets is not installed here")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
from epochs import same, same_for_ranks, taken  # noqa: E402
from stoker import _huggingface  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


@pytest.fixture(scope="module")
def of_paths(made):
    """Returns the photographs of `made` as a dataset of paths, with further columns."""
    source = stoker.image_folder(made)
    count = len(source)
    columns = {
        "image": [source.path(i) for i in range(count)],
        "label": source.labels.tolist(),
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
    """Returns the same in three Arrow files."""
    folder = tmp_path_factory.mktemp("hf")
    of_paths.save_to_disk(folder, num_shards=3)
    return datasets.load_from_disk(folder)


@pytest.fixture(scope="module")
def in_memory(of_files, tmp_path_factory):
    """Returns the same in memory."""
    folder = tmp_path_factory.mktemp("memory")
    of_files.save_to_disk(folder)
    return datasets.load_from_disk(folder, keep_in_memory=True)


def is_ranges(source):
    return source._native.range(0) is not None


def check(dataset, columns=()):
    """A dataset's samples are those that it gives itself."""
    source = stoker.from_hf(dataset, columns=columns)
    dataset = dataset.with_format(None)
    assert len(source) == len(dataset)
    name = next(n for n, feature in dataset.features.items() if isinstance(feature, datasets.Image))
    raw = dataset.cast_column(name, datasets.Image(decode=False))
    for i, row in enumerate(raw):
        image = row[name]["bytes"] or pathlib.Path(row[name]["path"]).read_bytes()
        if is_ranges(source):
            begin, length = source._native.range(i)
            assert pathlib.Path(source.path(i)).read_bytes()[begin : begin + length] == image
        else:
            assert bytes(source._image(i)) == image
        beside = source._beside(i)
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


def test_labels_that_are_bool_are_integers(of_files):
    even = [age % 2 == 0 for age in of_files["age"]]
    source = stoker.from_hf(of_files.add_column("even", even), label="even")
    assert source.labels.tolist() == [int(is_even) for is_even in even]


def test_a_shuffled_dataset_is_a_subset(of_files):
    shuffled = of_files.shuffle(seed=3)
    order = stoker.from_hf(of_files).subset([int(row["age"]) for row in shuffled.remove_columns("image")])
    same(taken(make(stoker.from_hf(shuffled))), taken(make(order)))


def test_datasets_in_memory_and_of_paths(of_paths, in_memory):
    memory = stoker.from_hf(in_memory.select([5, 3]), columns=["age", "box"])
    assert len(memory) == 2
    (batch,) = stoker.Loader(memory, TRAIN, batch_size=2)
    assert batch["age"].tolist() == [5, 3] and batch["box"].tolist() == [[5, 6], [3, 4]]
    check(in_memory.shuffle(seed=1), ["age", "name", "box"])
    check(of_paths.shuffle(seed=1), ["age", "name", "box"])
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
    wrong("'age' is float, and does not hold encoded images", of_files, image="age")
    wrong("'age' has float32 in it; labels are", of_files, label="age")
    wrong("'box' has vectors in it; labels are", of_files, label="box")
    wrong("columns has 'label', which is the name", of_files, columns=["label"])
    wrong("columns has 'age' twice", of_files, columns=["age", "age"])
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


def with_rows(of_files, **rows):
    """Returns a dataset in memory, of bytes and paths, with these rows instead of its first ones, by
    column.
    """
    columns = of_files.cast_column("image", datasets.Image(decode=False)).to_dict()
    for name, values in rows.items():
        columns[name][: len(values)] = values
    return datasets.Dataset.from_dict(columns, features=of_files.features)


def saved(dataset, folder):
    dataset.save_to_disk(folder)
    return datasets.load_from_disk(folder)


@pytest.mark.parametrize("on_disk", [False, True])
def test_rows_that_were_not_chosen_may_be_anything(of_files, tmp_path, on_disk):
    rows = {"image": [None], "label": [1, -1, 1, None], "name": ["odd", "odd", None], "age": [None]}
    dataset = with_rows(of_files, **rows)
    dataset = saved(dataset, tmp_path) if on_disk else dataset
    columns = ["age", "name", "box"]
    assert is_ranges(check(dataset.select(range(4, 20)), columns)) == on_disk
    check(dataset.select([20, 7, 7, 5]), columns)
    check(
        dataset.filter(lambda label: (label or -1) >= 0, input_columns="label").select(range(2, 20)), columns
    )
    of_names = stoker.from_hf(dataset.select([9, 4, 6, 4]), label="name")
    assert of_names.classes == ["ä4", "ä6", "ä9"] and of_names.labels.tolist() == [2, 0, 1, 0]

    def wrong(words, chosen, **options):
        with pytest.raises(stoker.InvalidArgumentError, match=words):
            stoker.from_hf(dataset.select(chosen), **options)

    wrong("row 2 of column 'image' has no image", [5, 6, 0])
    wrong("label -1 of row 1 has no class name.*label=None", [5, 1])
    wrong("column 'label' has no value in row 2", [7, 8, 3])
    wrong("column 'name' has no value in row 1", [1, 2], columns=["name"], label=None)
    assert len(stoker.from_hf(dataset.select([1, 2, 3]), label=None)) == 3


def test_some_images_are_bytes_and_some_paths(made, of_files, tmp_path):
    path = stoker.image_folder(made).path(7)
    dataset = with_rows(of_files, image=[{"bytes": None, "path": path}] * 3)
    columns = ["age", "name", "box"]
    assert repr(check(dataset, columns)) == "stoker.from_hf(60 images in memory)"
    check(dataset.select([5, 1, 4, 0]), columns)
    files = check(dataset.select([2, 0]), columns)
    assert files.path(1) == path and repr(files) == "stoker.from_hf(2 images in files)"
    both = datasets.concatenate_datasets([of_files.select(range(10, 20)), dataset])
    assert not is_ranges(check(both, columns))
    only = check(both.select([3, 9, 0]), columns)
    assert is_ranges(only) and repr(only) == "stoker.from_hf(3 images in 1 Arrow file)"


def test_images_at_urls_are_refused(of_files):
    for url in ("https://example.com/a.jpg", "zip://a.jpg::/data/x.zip"):
        dataset = with_rows(of_files, image=[{"bytes": None, "path": url}])
        with pytest.raises(stoker.InvalidArgumentError, match=rf"row 1 .* is at '{url}'.*save_to_disk\(\)"):
            stoker.from_hf(dataset.select([4, 0]))
        check(dataset.select([4, 1]))


def test_a_state_knows_the_images_in_memory(in_memory):
    def digest(chosen, **options):
        return stoker.from_hf(in_memory.select(chosen), **options)._native.fingerprint

    all_of = [digest(range(9)), digest([*range(8), 9]), digest(range(9), label=None)]
    assert digest(range(9)) == all_of[0] and len({*all_of, digest(range(9), columns=["name"])}) == 4


def test_other_forms_of_images_and_columns(of_files, tmp_path):
    images = [row["bytes"] for row in of_files.cast_column("image", datasets.Image(decode=False))["image"]]
    for i, kind in enumerate([pa.binary(), pa.large_binary(), pa.struct({"bytes": pa.binary()})]):
        values = [{"bytes": image} for image in images] if pa.types.is_struct(kind) else images
        dataset = saved(datasets.Dataset(pa.table({"image": pa.array(values, kind)})), tmp_path / str(i))
        for chosen in (dataset, dataset.select([8, 1])):
            source = stoker.from_hf(chosen, image="image")
            assert is_ranges(source) and source._image(1) == images[1]
    features = datasets.Features(
        {
            "label": datasets.Image(),
            "matrix": datasets.Array2D((2, 3), "int32"),
            "words": datasets.Value("string"),
        }
    )
    matrices = [[[i, 1, 2], [3, 4, 5]] for i in range(4)]
    rows = [{"bytes": image, "path": None} for image in images[:4]]
    columns = {"label": rows, "matrix": matrices, "words": list("abca")}
    dataset = saved(datasets.Dataset.from_dict(columns, features=features), tmp_path / "matrix")
    assert not stoker.from_hf(dataset).has_labels, "the image is not the label, too"
    source = stoker.from_hf(dataset.select([3, 1]), label="words", columns=["matrix"])
    assert source.classes == ["a", "b"] and is_ranges(source)
    assert [row[0] for row in map(source._beside, range(2))] == [0, 1]
    assert source._beside(1)[1].tolist() == matrices[1]


def test_a_file_that_is_mapped_in_several_parts(of_files):
    chunk = of_files.data.column("image").chunks[0]
    buffer = chunk.field("bytes").buffers()[2]
    page = mmap.PAGESIZE
    middle = (buffer.address + buffer.size // 2) // page * page
    before = len(_huggingface._mapped_files())
    lines = pathlib.Path("/proc/self/maps").read_bytes().count(b"\n")
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.madvise(ctypes.c_void_p(middle), ctypes.c_size_t(page), 1) == 0, "MADV_RANDOM"
    assert pathlib.Path("/proc/self/maps").read_bytes().count(b"\n") > lines
    assert len(_huggingface._mapped_files()) <= before
    assert is_ranges(check(of_files))


@pytest.mark.parametrize("name", ["a b ", "a\nb", "a\\012b", "ä"])
def test_names_of_folders(of_files, tmp_path, name):
    dataset = saved(of_files.select(range(3)), tmp_path / name)
    source = check(dataset)
    assert is_ranges(source) and source.path(0).startswith(str(tmp_path / name))


def test_sources_can_be_pickled(of_paths, of_files, in_memory):
    chosen = of_files.shuffle(seed=1).select([*range(40), 3, 3])
    for dataset in (of_paths, of_files, in_memory, chosen):
        source = stoker.from_hf(dataset, columns=["age", "name"])
        for made_of in (source, source.subset([3, 1, 3]), source.split(0.3, seed=2)[0].subset(range(5, 12))):
            again = pickle.loads(pickle.dumps(made_of))
            assert repr(again) == repr(made_of) and again.classes == source.classes
            assert again._native.fingerprint == made_of._native.fingerprint
            batches, wanted = ([batch["age"].tolist() for batch in make(it)] for it in (again, made_of))
            assert batches == wanted
