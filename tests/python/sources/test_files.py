"""stoker.files: lists of image files, with labels and further columns. NumPy only."""

import os
import pathlib
import pickle
import shutil

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def listed(folder):
    """Returns a folder's paths and labels, in its order."""
    source = stoker.image_folder(folder)
    return [source.path(i) for i in range(len(source))], source.labels.tolist()


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


def columns_for(samples):
    """Returns two further columns, by sample."""
    return {
        "age": np.arange(samples, dtype=np.uint8) * 3,
        "place": np.random.default_rng(0).random((samples, 2)),
    }


def test_paths_of_other_systems_are_explained(tmp_path, monkeypatch):
    """On the way that reads images, and where folders, manifests and single images are opened."""
    monkeypatch.chdir(tmp_path)
    for path, words in (
        (r"a\0.png", "Write / between folders"),
        (r"C:\photos\0.png", "without a drive"),
        (f"file://{tmp_path}/0.png", "without file://"),
        ("~/0.png", "Only shells take ~"),
        ("S3://bucket/0.png", "URLs that begin with http://"),
    ):
        for opened in (
            lambda path: next(iter(make(stoker.files([path])))),
            stoker.image_folder,
            lambda path: stoker.manifest(path + ".csv"),
            stoker.decode_image,
        ):
            with pytest.raises(stoker.NotFoundError, match=words):
                opened(path)


# --- the samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, world):
    paths, labels = listed(made)
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        folder = make(stoker.image_folder(made), **options)
        files = make(stoker.files(paths, labels), **options)
        for _ in range(2):
            theirs, ours = iter(folder), iter(files)
            same(taken(ours), taken(theirs))
            np.testing.assert_array_equal(ours.sample_ids, theirs.sample_ids)


def test_order_and_duplicates(made):
    paths, _ = listed(made)
    given = [paths[5], paths[2], paths[5], paths[9]]
    source = stoker.files(given)
    assert [source.path(i) for i in range(len(source))] == given
    images = next(iter(stoker.Loader(source, [stoker.Resize((16, 16))], batch_size=4)))
    np.testing.assert_array_equal(images[0], images[2])
    assert (images[0] != images[1]).any()
    assert not source.has_labels and source.classes == []


class Path:
    def __fspath__(self):
        return b"/a\xff"


@pytest.mark.parametrize(
    "paths",
    [
        ["/a/b", "/c"],
        ("/a/b", b"/c"),
        [pathlib.Path("/a/b"), Path()],
        np.array(["/a/b", "/c"]),
        np.array([b"/a/b", b"/c"]),
        np.array(["/a/b", "/c"], object),
        ["/ä", "/\udcff"],
    ],
)
def test_kinds_of_paths(paths):
    source = stoker.files(paths)
    assert [os.fsencode(source.path(i)) for i in range(2)] == [os.fsencode(path) for path in paths]


def test_a_generator_and_a_series():
    assert stoker.files(f"/{i}" for i in range(5)).path(4) == "/4"
    pandas = pytest.importorskip("pandas", reason="pandas is not installed here")
    frame = pandas.DataFrame({"path": ["/a", "/b", "/c"], "label": [1, 0, 1], "age": [3.5, 4.5, 5.5]})
    frame = frame[frame.label == 1]  # its index has a gap
    source = stoker.files(frame.path, frame.label, columns=frame[["age"]])
    assert source.path(1) == "/c" and source._beside(1) == [1, 5.5]


def test_any_bytes_in_names(made, tmp_path):
    paths, _ = listed(made)
    name = bytes(byte for byte in range(1, 256) if byte != ord("/"))
    try:
        shutil.copy(paths[0], os.fsencode(tmp_path) + b"/" + name)
    except OSError:
        pytest.skip("this file system refuses such names")
    source = stoker.files([name, paths[0]], root=tmp_path)
    assert os.fsencode(source.path(0)) == os.fsencode(tmp_path) + b"/" + name
    first, second = next(iter(stoker.Loader(source, [stoker.Resize((16, 16))], batch_size=2)))
    np.testing.assert_array_equal(first, second)


def test_relative_paths(made, monkeypatch):
    paths, labels = listed(made)
    names = [os.path.relpath(path, made) for path in paths]
    wanted = taken(make(stoker.files(paths, labels)))
    monkeypatch.chdir(made)
    here = stoker.files(names, labels)
    monkeypatch.chdir(made.parent)
    below = stoker.files(names, labels, root=made.name)
    monkeypatch.chdir("/")
    for source in (here, below, stoker.files(names, labels, root=made)):
        assert source.path(3) == paths[3]
        same(taken(make(source)), wanted)


def test_a_missing_file_is_its_samples_error(made, tmp_path):
    paths, labels = listed(made)
    gone = str(tmp_path / "gone.jpg")
    loader = stoker.Loader(stoker.files([*paths[:3], gone], labels[:4]), TRAIN, batch_size=2)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(FileNotFoundError, match=r"gone\.jpg") as error:
        next(iterator)
    assert error.value.file == gone


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (([],), ValueError, "no path"),
        ((["/a", ""],), ValueError, r"paths\[1\] is empty"),
        ((["/a", "/b\0c"],), ValueError, r"paths\[1\] contains a NUL"),
        ((["/a", 5],), TypeError, r"paths\[1\] must be a path, not 5"),
        ((["/a", None],), TypeError, r"paths\[1\] must be a path, not None"),
        (("/a",), TypeError, "paths must be a list of paths"),
        ((pathlib.Path("/a"),), TypeError, "paths must be a list of paths, not one"),
        (({"/a": 1},), TypeError, "paths must be a list of paths"),
        (({"/a"},), TypeError, "paths must be a list of paths"),
        ((np.array([["/a"]]),), TypeError, "paths must be a list of paths"),
        ((7,), TypeError, "paths must be a list of paths"),
        ((["/a", {1: "ä" * 60}],), TypeError, r"paths\[1\] must be a path, not {1: 'ää"),
        ((["/a", "/\ud800"],), ValueError, r"paths\[1\] must be a path, not '/\\ud800'"),
        ((["/a"], [1, 2]), ValueError, "'label' has 2 rows for 1 path"),
        ((["/a"], ["cat"]), TypeError, "labels is an array of"),
    ],
)
def test_wrong_arguments(arguments, kind, words):
    with pytest.raises(kind, match=words):
        stoker.files(*arguments)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"columns": [1, 2]}, TypeError, "columns must be a dictionary"),
        ({"columns": {3: [1, 2]}}, TypeError, "columns must have names"),
        ({"columns": {"label": [1, 2]}}, ValueError, "columns has the name 'label'"),
        ({"columns": {"image": [1, 2]}}, ValueError, "columns has the name 'image'"),
        ({"columns": {"": [1, 2]}}, ValueError, "columns has the name ''"),
        ({"columns": {"a\0": [1, 2]}}, ValueError, r"columns has the name 'a\\x00'"),
        ({"columns": {"\udcff": [1, 2]}}, ValueError, r"columns has the name '\\udcff'"),
        ({"columns": {"age": [1, 2, 3]}}, ValueError, "'age' has 3 rows for 2 paths"),
        ({"columns": {"age": [None, "y"]}}, TypeError, r"columns\['age'\] is an array of .* or strings"),
        ({"columns": {"age": [["x"], ["y"]]}}, TypeError, r"columns\['age'\] is an array of"),
        (
            {"columns": {"age": ["x", None]}},
            TypeError,
            r"columns\['age'\] begins with a str, but at 1 has None",
        ),
        (
            {"columns": {"age": [b"x", "y"]}},
            TypeError,
            r"columns\['age'\] begins with bytes, but at 1 has 'y'",
        ),
        (
            {"columns": {"age": ["x", "\ud800"]}},
            ValueError,
            r"columns\['age'\] has '\\ud800' at 1, which is not",
        ),
        ({"columns": {"age": ["x"]}}, ValueError, "'age' has 1 row for 2 paths"),
        ({"columns": {"age": {"x", "y"}}}, TypeError, r"columns\['age'\] is a set"),
        ({"class_names": ["x"]}, ValueError, "no labels"),
        ({"class_names": {"x": 0}}, TypeError, "class_names must be a list of names"),
        ({"class_names": {"x", "y"}}, TypeError, "class_names must be a list of names"),
        ({"class_names": "xy"}, TypeError, "class_names must be a list of names"),
        ({"class_names": ["x", 1]}, TypeError, r"class_names\[1\] must be a name, not 1"),
        ({"class_names": []}, ValueError, "class_names is empty"),
        ({"labels": [0, 1], "class_names": ["x"]}, ValueError, "has 1 at 1, and there is 1 class name"),
        ({"labels": [0.0, 1.0], "class_names": ["x"]}, ValueError, "its rows are float64"),
        ({"root": 5}, TypeError, "root must be a path"),
    ],
)
def test_wrong_options(options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.files(["/a", "/b"], **options)


def test_a_source_tells_of_itself():
    source = stoker.files(["/a.jpg", "/b.jpg"], [1, 0], class_names=["ant", "bee"])
    assert len(source) == 2 and source.classes == ["ant", "bee"] and source.has_labels
    assert repr(source) == "stoker.files('/a.jpg' and 1 more)"
    assert repr(stoker.files(["/a.jpg"])) == "stoker.files('/a.jpg')"
    with pytest.raises(IndexError):
        source.path(2)


def test_arrays_are_kept_and_not_copied(made):
    paths, _ = listed(made)
    place = np.zeros((1, 2))
    source = stoker.files(paths[:9], columns={"place": np.broadcast_to(place, (9, 2))})
    place[:] = 3  # before any loader uses it
    batches = taken(make(source))
    assert len(batches) == 2 and all((places == 3).all() for _, places in batches)


# --- batches ----------------------------------------------------------------------------------------


def test_a_batch_of_four_columns(made):
    paths, labels = listed(made)
    columns = columns_for(60)
    loader = make(stoker.files(paths, labels, columns=columns))
    wanted = taken(make(stoker.image_folder(made)))
    iterator = iter(loader)
    rows = 0
    for batch, (images, numbers) in zip(iterator, wanted):
        ids = iterator.sample_ids
        rows += len(ids)
        assert len(batch) == 4 and isinstance(batch, tuple)
        np.testing.assert_array_equal(batch[0], images)
        np.testing.assert_array_equal(batch["label"], numbers)
        np.testing.assert_array_equal(batch["age"], columns["age"][ids])
        np.testing.assert_array_equal(batch.place, columns["place"][ids])
        assert batch.age.dtype == np.uint8 and batch.place.shape == (len(ids), 2)
        assert all(column.ctypes.data % 64 == 0 and column.flags.writeable for column in batch)
    assert rows == 60


def test_columns_without_labels(made):
    paths, _ = listed(made)
    age = np.arange(60)
    iterator = iter(make(stoker.files(paths, columns={"age": age})))
    rows = 0
    for images, ages in iterator:
        assert len(images) == len(ages)
        rows += len(ages)
        np.testing.assert_array_equal(ages, age[iterator.sample_ids])
    assert rows == 60


CAPTIONS = [f"{'ä' * (i % 3)} photo {i}" if i % 7 else "" for i in range(60)]
RAW = [bytes(range(i)) for i in range(60)]  # with NULs, and bytes that are not UTF-8


@pytest.mark.parametrize("device", [None, "cpu", "host"])
def test_strings_are_lists(made, device):
    paths, labels = listed(made)
    loader = make(
        stoker.files(paths, labels, columns={"caption": CAPTIONS, "raw": RAW, "age": np.arange(60)})
    )
    iterator = iter(loader if device is None else loader.to_device(device))
    rows = 0
    for batch in iterator:
        ids = iterator.sample_ids
        rows += len(ids)
        assert batch.keys() == ("image", "label", "caption", "raw", "age")
        assert batch["caption"] == [CAPTIONS[i] for i in ids]
        assert batch["raw"] == [RAW[i] for i in ids]
        np.testing.assert_array_equal(np.asarray(batch["age"]), ids)
    assert rows == 60


@pytest.mark.parametrize(
    "captions",
    [
        tuple(CAPTIONS),
        np.array(CAPTIONS),
        np.array(CAPTIONS, object),
        (caption for caption in CAPTIONS),
        [np.str_(caption) for caption in CAPTIONS],
        *(
            [np.array(CAPTIONS, np.dtypes.StringDType())]
            if hasattr(getattr(np, "dtypes", None), "StringDType")
            else []
        ),
    ],
)
def test_kinds_of_strings(made, captions):
    loader = make(stoker.files(listed(made)[0], columns={"caption": captions}), shuffle=False)
    assert [text for _, texts in loader for text in texts] == CAPTIONS


def test_strings_of_a_table(made):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed here")
    frame = pandas.DataFrame({"path": listed(made)[0], "caption": CAPTIONS})
    for column in (frame.caption, frame.caption.astype("string")):
        loader = make(stoker.files(frame.path, columns={"caption": column}), shuffle=False)
        assert [text for _, texts in loader for text in texts] == CAPTIONS


def test_strings_outlive_what_they_were_made_of(made):
    source = stoker.files(listed(made)[0], columns={"caption": [str(i) * 50 for i in range(60)]})
    batch = next(iter(make(source, shuffle=False)))
    del source
    assert batch.caption == [str(i) * 50 for i in range(8)]
    assert pickle.loads(pickle.dumps(batch)).caption == batch.caption


def test_names_that_are_no_attributes(made):
    paths, _ = listed(made)
    names = ["image/class", "_x", "class", "count", "keys", "ä"]
    source = stoker.files(paths[:8], columns={name: np.full(8, i) for i, name in enumerate(names)})
    batch = next(iter(make(source)))
    assert list(batch.keys()) == ["image", *names]
    for i, name in enumerate(names):
        assert (batch[name] == i).all()


def test_tensors_have_the_same_columns(made):
    source = stoker.files(*listed(made), columns=columns_for(60))
    for device in ("cpu", "host"):
        batches = []
        for batch in make(source).to_device(device):
            assert batch.keys() == ("image", "label", "age", "place")
            batches.append(tuple(np.from_dlpack(tensor).copy() for tensor in batch))
        same(batches, taken(make(source)))


def test_class_numbers_are_mixed(made):
    paths, labels = listed(made)
    columns, options = columns_for(60), {"batch_size": 8, "shuffle": True, "seed": 7}
    recipe = [*TRAIN, stoker.MixUp()]
    folder = stoker.Loader(stoker.image_folder(made), recipe, **options)
    files = stoker.Loader(
        stoker.files(paths, np.array(labels, np.uint16), columns=columns, class_names=["a", "b", "c"]),
        recipe,
        **options,
    )
    iterator = iter(files)
    rows = 0
    for batch, (images, soft) in zip(iterator, taken(folder)):
        rows += len(images)
        np.testing.assert_array_equal(batch["image"], images)
        np.testing.assert_array_equal(batch["label"], soft)
        np.testing.assert_array_equal(batch["age"], columns["age"][iterator.sample_ids])  # unchanged
    assert rows == 60


# --- states -----------------------------------------------------------------------------------------


def test_resuming(made):
    paths, labels = listed(made)

    def loader():
        return make(stoker.files(paths, labels, columns=columns_for(60)))

    first = iter(one := loader())
    next(first), next(first)
    two = loader()
    two.load_state_dict(one.state_dict())
    same(taken(two), taken(first))


def test_a_state_of_other_samples_is_refused(made, tmp_path):
    paths, labels = listed(made)
    names = [os.path.relpath(path, made) for path in paths]
    columns = columns_for(60)
    state = make(stoker.files(names, labels, columns=columns, root=made)).state_dict()
    make(stoker.files(names, labels, columns=columns, root=tmp_path)).load_state_dict(state)
    others = columns_for(60)
    others["age"][17] += 1
    captioned, mended = ({"caption": [*CAPTIONS[:59], last]} for last in ("teh cat", "the cat"))
    with pytest.raises(stoker.FailedPreconditionError, match="other options or samples"):
        make(stoker.files(names, columns=mended)).load_state_dict(
            make(stoker.files(names, columns=captioned)).state_dict()
        )
    for source in (
        stoker.files(names[::-1], labels, columns=columns, root=made),
        stoker.files(names, labels[::-1], columns=columns, root=made),
        stoker.files(names, labels, columns=others, root=made),
        stoker.files(names, labels, root=made),
    ):
        with pytest.raises(stoker.FailedPreconditionError, match="other options or samples"):
            make(source).load_state_dict(state)
