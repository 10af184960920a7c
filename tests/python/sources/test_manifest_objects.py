"""Masks and objects in manifests of JSON lines."""

import csv
import json
import pickle
import shutil

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from scenes import (  # noqa: E402
    SAMPLES,
    as_files,
    batches,
    check_mask,
    check_same,
    list_of_objects,
    write_scenes,
)

COLUMNS = {
    "mask": stoker.Mask("mask", fill=255),
    "width": "w",
    "boxes": stoker.Boxes("objects.bbox", format="xywh"),
    "labels": stoker.PerObject("objects.categories"),
    "area": stoker.PerObject("objects.area", dtype="float32"),
    "pose": stoker.Keypoints("pose", flip_pairs=[(0, 1)]),
}


@pytest.fixture(scope="module")
def lines(made, tmp_path_factory):
    """Returns the lines of a manifest, and the folder of its files."""
    root = tmp_path_factory.mktemp("manifest")
    return write_scenes(made, root), root


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_same_batches_as_of_files(lines):
    rows, root = lines
    source = stoker.manifest(write(root / "metadata.jsonl", rows), columns=COLUMNS)
    check_same(source, as_files(rows, root))
    assert source.object_counts.tolist() == [i % 4 for i in range(SAMPLES)]
    assert source.path(3, "mask") == str(root / "3.png")


def test_a_list_of_objects_is_read_likewise(lines):
    rows, root = lines
    listed = [{**row, "objects": list_of_objects(row["objects"])} for row in rows]
    flat = [{**row, "pose": np.reshape(row["pose"], (-1, 6)).tolist()} for row in listed]
    file = write(root / "listed.ndjson", flat)
    check_same(stoker.manifest(file, columns=COLUMNS), as_files(rows, root))


def test_masks_are_those_of_pillow(lines):
    pytest.importorskip("PIL", reason="Pillow is not installed here")
    rows, root = lines
    source = stoker.manifest(write(root / "metadata.jsonl", rows), columns=COLUMNS)
    check_mask(source, 5, root / "5.png")


def test_masks_in_csv(lines, tmp_path):
    rows, root = lines
    for i, row in enumerate(rows):
        shutil.copy(root / row["mask"], tmp_path / str(i))  # a path that is a number
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [("path", "seg", "w"), *((row["file_name"], i, row["w"]) for i, row in enumerate(rows))]
        )
    for row in rows:
        shutil.copy(root / row["file_name"], tmp_path)
    columns = {"mask": stoker.Mask("seg", fill=255), "width": "w"}
    source = stoker.manifest(tmp_path / "a.csv", columns=columns)
    check_same(source, as_files(rows, root, "boxes", "labels", "area", "pose"))


def test_labels_of_text_are_classes(lines):
    rows, root = lines
    names = ["cat", "dog", "ant"]
    named = [
        {
            **row,
            "objects": {**row["objects"], "categories": [names[c % 3] for c in row["objects"]["categories"]]},
        }
        for row in rows
    ]
    source = stoker.manifest(write(root / "named.jsonl", named), columns=COLUMNS)
    assert source.classes == ["ant", "cat", "dog"]
    labels = np.concatenate([batch["labels"][0] for batch in batches(source, shuffle=False)])
    numbers = [(1, 2, 0)[c % 3] for row in rows for c in row["objects"]["categories"]]
    assert labels.tolist() == numbers


def test_a_source_tells_of_itself_and_can_be_pickled(lines):
    rows, root = lines
    source = stoker.manifest(write(root / "metadata.jsonl", rows), columns=COLUMNS)
    assert "'boxes': stoker.Boxes('objects.bbox', format='xywh')" in repr(source)
    assert "'mask': stoker.Mask('mask', fill=255)" in repr(source)
    again = pickle.loads(pickle.dumps(source))
    check_same(again, source)


WHOLE = {"path": "a.jpg", "b": [[1, 2, 3, 4]], "n": [1], "m": "a.png"}
BOXES = {"boxes": stoker.Boxes("b"), "n": stoker.PerObject("n")}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"b": [[1, 2, 3]]}, "'boxes' has a box of 3 numbers"),
        ({"b": [1, 2, 3, 4]}, "'boxes' has a number, not a list of numbers, for an object"),
        ({"b": [[1, 2, 3, "4"]]}, "'boxes' has text, not a number"),
        ({"b": [[1, 2, 3, None]]}, "'boxes' has null, not a number"),
        ({"b": [[1, 2, 3, [4]]]}, "'boxes' has lists in a list"),
        ({"b": [[1, 2, 3, 1e300]]}, "which float32 cannot hold"),
        ({"b": None}, "'boxes' is not a list of objects"),
        ({"b": []}, "'boxes' has 0 objects, and 'n' has 1 object"),
        ({"n": [[1]]}, "'n' has a list; the objects before it have a number"),
        ({"n": ["x"]}, "'n' has text"),
        ({"n": [{}]}, "'n' has an object, not a number"),
    ],
)
def test_wrong_objects(tmp_path, line, words):
    file = write(tmp_path / "a.jsonl", [WHOLE, {**WHOLE, **line}])
    with pytest.raises(ValueError, match="line 2: ") as caught:
        stoker.manifest(file, columns=BOXES)
    assert words in str(caught.value) and caught.value.file == str(file)


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        ({"boxes": stoker.Boxes("x")}, ValueError, "line 1: key 'x' is missing"),
        ({"boxes": stoker.Boxes("b.x")}, ValueError, "line 1: 'b' is not an object, with the key 'x'"),
        ({"boxes": stoker.Boxes("b"), "c": stoker.PerObject("b")}, ValueError, "belongs to two columns"),
        ({"boxes": stoker.Boxes("b"), "c": stoker.PerObject("b.c")}, ValueError, "inside of another"),
        ({"boxes": stoker.Boxes("b..c")}, ValueError, "has a dot without a key"),
        ({"boxes": stoker.Boxes([[]])}, TypeError, "must be the name of one of the columns of the file"),
        ({"boxes": 5}, TypeError, "must be the name of one of the columns of the file"),
        ({"mask": stoker.Mask("m", root="/")}, ValueError, "has a root"),
        ({"mask": stoker.Mask("n")}, ValueError, "line 1: key 'n' is a list, not a path"),
        ({"mask": stoker.Mask("absent")}, ValueError, "there is no column 'absent'"),
        ({"a": "n", "b": "n"}, ValueError, "column 'n' is wanted twice"),
        ({"image": "n"}, ValueError, "columns has the name 'image'"),
        ({"a\nb": "n"}, ValueError, "not one line of Unicode"),
        ({"k": stoker.Keypoints("b")}, ValueError, "'k' has points of 4 numbers"),
    ],
)
def test_wrong_columns(tmp_path, columns, kind, words):
    file = write(tmp_path / "a.jsonl", [WHOLE])
    with pytest.raises(kind, match=words):
        stoker.manifest(file, columns=columns)


def test_the_advice_names_columns_of_objects(tmp_path):
    with pytest.raises(ValueError, match=r"or take boxes and other values of objects .*stoker.Boxes"):
        stoker.manifest(write(tmp_path / "a.jsonl", [WHOLE]))


def test_other_files_have_no_objects(tmp_path):
    (tmp_path / "a.csv").write_text("path,b\na.jpg,1\n")
    with pytest.raises(ValueError, match="are read from JSON lines only"):
        stoker.manifest(tmp_path / "a.csv", columns={"boxes": stoker.Boxes("b")})
    with pytest.raises(NotImplementedError, match="are named by a list"):
        stoker.manifest(tmp_path / "a.parquet", columns={"mask": stoker.Mask("b")})
