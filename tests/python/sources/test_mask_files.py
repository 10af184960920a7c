"""stoker.masks and the columns stoker.Mask and stoker.Image: which files a sample has. Nothing is decoded."""

import os
import pathlib
import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")


@pytest.fixture
def folders(tmp_path):
    """Folders of images and masks, which have their own names as bytes."""
    for path in ("images/b.jpg", "images/a/7.jpg", "masks/b_m.png", "masks/a/7_m.png", "masks/b.png"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.encode())
    return tmp_path / "images", tmp_path / "masks"


def paths_of(source):
    return [(source.path(i), source.path(i, "mask")) for i in range(len(source))]


def unequal(source, other):
    return source._native.fingerprint != other._native.fingerprint


# --- masks ------------------------------------------------------------------------------------------


def test_two_folders_are_joined(folders, monkeypatch):
    images, masks = folders
    source = stoker.masks(images, masks, suffix="_m", fill=255)
    assert paths_of(source) == [
        (f"{images}/a/7.jpg", f"{masks}/a/7_m.png"),
        (f"{images}/b.jpg", f"{masks}/b_m.png"),
    ]
    assert source.path(1, "image") == source.path(1) == f"{images}/b.jpg"
    assert source._image(1) == b"images/b.jpg" and source._beside(1) == [b"masks/b_m.png"]
    assert not source.has_labels and source.classes == []
    assert repr(source) == f"stoker.masks('{images}', '{masks}', suffix='_m', fill=255)"
    monkeypatch.chdir(images.parent)
    relative = stoker.masks("images", "masks", suffix="_m", fill=255)
    monkeypatch.chdir("/")
    assert paths_of(relative) == paths_of(source) and not unequal(relative, source)


def test_images_of_other_formats_are_a_warning(folders):
    images, masks = folders
    assert stoker.masks(images, masks, suffix="_m").skipped == {}
    (images / "a/8.jxl").write_bytes(b"x")
    with pytest.warns(stoker.SkippedFilesWarning, match=r"1 image file is skipped.*a/8\.jxl") as caught:
        source = stoker.masks(images, masks, suffix="_m")
    assert source.skipped == source.subset([1]).skipped == {".jxl": 1} and caught[0].filename == __file__
    (masks / "a/8_m.png").write_bytes(b"x")
    with pytest.raises(stoker.InvalidArgumentError, match=r"'a/8_m\.png'\) has no image in .*\.jxl 1"):
        stoker.masks(images, masks, suffix="_m")


def test_the_spec_names_the_folders(folders):
    images, masks = folders
    spec = stoker.masks(images, masks, suffix="_m")._spec
    assert spec == {
        "kind": "masks",
        "images": str(images),
        "masks": str(masks),
        "suffix": "_m",
        "samples": 2,
        "fingerprint": spec["fingerprint"],
    }
    assert stoker.masks(images, masks, suffix="_m", fill=7)._spec["fill"] == "7"


def test_what_is_made_of_masks_has_them(folders):
    source = stoker.masks(*folders, suffix="_m")
    (last,) = paths_of(source.subset([1]))
    assert last == paths_of(source)[1]
    both = stoker.combine([source, source])
    assert paths_of(both) == 2 * paths_of(source)
    assert both._beside(3) == [b"masks/b_m.png"]
    assert paths_of(source.weighted([1, 2])) == paths_of(source.repeated(3)) == paths_of(source)
    with pytest.raises(ValueError, match=r"masks, filled with 0.*masks, filled with 255"):
        stoker.combine([source, stoker.masks(*folders, suffix="_m", fill=255)])


def test_files_without_partners_are_counted(folders):
    images, masks = folders
    with pytest.raises(
        stoker.InvalidArgumentError, match=r"1 image \('a/7\.jpg'\) has no mask in '"
    ) as error:
        stoker.masks(images, masks)
    assert "stoker.files" not in str(error.value) and "files()" in error.value.advice
    (masks / "c_m.png").touch()
    with pytest.raises(ValueError, match=r"1 mask \('c_m\.png'\) has no image in '"):
        stoker.masks(images, masks, suffix="_m")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"suffix": 5}, TypeError, "suffix must be a string"),
        ({"suffix": "a/b"}, ValueError, "slash"),
        ({"suffix": "_none"}, ValueError, "no mask in this folder"),
        ({"fill": 256}, ValueError, "fill"),
        ({"fill": -1}, ValueError, "fill"),
        ({"fill": 0.5}, TypeError, "fill"),
        ({"images": "/none"}, FileNotFoundError, "/none"),
        ({"masks": "/none"}, FileNotFoundError, "/none"),
        ({"masks": None}, TypeError, "masks must be a path"),
        ({"masks": "https://example.org/m"}, NotImplementedError, "folders of objects"),
    ],
)
def test_wrong_arguments_of_masks(folders, options, kind, words):
    images, masks = folders
    with pytest.raises(kind, match=words):
        stoker.masks(**{"images": images, "masks": masks, "suffix": "_m", **options})


def test_any_bytes_in_names(tmp_path):
    for folder, name in ((b"i", b"\xff.jpg"), (b"m", b"\xff\xfe.png")):
        try:
            os.makedirs(os.fsencode(tmp_path) + b"/" + folder)
            pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + folder + b"/" + name)).touch()
        except OSError:
            pytest.skip("this file system refuses such names")
    source = stoker.masks(tmp_path / "i", tmp_path / "m", suffix="\udcfe")
    assert os.fsencode(source.path(0, "mask")).endswith(b"\xff\xfe.png")
    assert paths_of(pickle.loads(pickle.dumps(source))) == paths_of(source)


# --- columns of files -------------------------------------------------------------------------------


def test_columns_of_files_come_before_labels(folders):
    images, masks = folders
    source = stoker.files(
        ["b.jpg", "a/7.jpg"],
        [1, 0],
        columns={
            "age": [31, 54],
            "mask": stoker.Mask(["b_m.png", f"{masks}/a/7_m.png"], fill=255, root=masks),
            "right": stoker.Image([images / "a/7.jpg", "b.jpg"]),
        },
        root=images,
        class_names=["ant", "bee"],
    )
    assert source._native.names == ["image", "mask", "right", "label", "age"]
    assert paths_of(source)[0] == (f"{images}/b.jpg", f"{masks}/b_m.png")
    assert source.path(1, "right") == f"{images}/b.jpg"
    assert source._beside(1) == [b"masks/a/7_m.png", b"images/b.jpg", 0, 54]
    assert source.labels.tolist() == [1, 0]
    assert repr(source) == f"stoker.files('{images}/b.jpg' and 1 more)"
    with pytest.raises(ValueError, match=r"no files of 'age', but of \['image', 'mask', 'right'\]"):
        source.path(0, "age")
    with pytest.raises(IndexError):
        source.path(2, "mask")


@pytest.mark.parametrize("make", [list, tuple, iter, np.array, lambda paths: map(pathlib.Path, paths)])
def test_kinds_of_paths(make):
    source = stoker.files(["/a", "/b"], columns={"mask": stoker.Mask(make(["/x", "/y"]))})
    assert paths_of(source) == [("/a", "/x"), ("/b", "/y")]


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (lambda: stoker.Mask("/a"), TypeError, "stoker.Mask takes a list of paths, not '/a'"),
        (lambda: stoker.Image({"/a"}), TypeError, "stoker.Image takes a list of paths"),
        (lambda: stoker.Mask(5), TypeError, "stoker.Mask takes a list of paths, not 5"),
        (lambda: stoker.Mask(np.array([["/a"]])), TypeError, "stoker.Mask takes a list of paths"),
        (lambda: stoker.Mask(["/a"], fill=300), ValueError, "fill"),
        (lambda: stoker.Mask(["/a", 5]), TypeError, r"m\[1\] must be a path, not 5"),
        (lambda: stoker.Mask(["/a"]), ValueError, "'m' has 1 path for 2 images"),
        (lambda: stoker.Mask(["/a", ""]), ValueError, r"m\[1\] is empty"),
        (lambda: stoker.Mask(["/a", "/b"], root=5), TypeError, "root must be a path"),
    ],
)
def test_wrong_columns_of_files(column, kind, words):
    with pytest.raises(kind, match=words):
        stoker.files(["/a", "/b"], columns={"m": column()})


def test_columns_of_files_tell_of_themselves():
    assert repr(stoker.Mask(["/a", "/b"], 255)) == "stoker.Mask('/a' and 1 more, fill=255)"
    assert repr(stoker.Image(["/a"])) == "stoker.Image(['/a'])"


# --- other processes --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["masks", "files", "subset"])
def test_masks_are_pickled(folders, kind, monkeypatch):
    monkeypatch.chdir(folders[0])
    masks = stoker.masks(*folders, suffix="_m", fill=3)
    right = stoker.Image(["c", "d"])
    columns = {"mask": stoker.Mask(["/x", "ä"], 3), "text": ["x", "y"], "right": right}
    listed = stoker.files(["b.jpg", "/\udcff"], [True, False], columns=columns)
    source = {"masks": masks, "files": listed, "subset": masks.subset([1])}[kind]
    pickled = pickle.dumps(source)
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert again is not source and type(again) is type(source) and repr(again) == repr(source)
    assert paths_of(again) == paths_of(source) and not unequal(again, source)
    assert again._native.names == source._native.names


def test_the_fingerprint_is_of_files_and_fill(folders):
    def listed(**options):
        mask = stoker.Mask(options.pop("masks", ["/1", "/2"]), **options)
        return stoker.files(["/a", "/b"], columns={"mask": mask})

    assert not unequal(listed(), listed(root="/elsewhere"))
    assert unequal(listed(), listed(fill=1))
    assert unequal(listed(), listed(masks=["/2", "/1"]))
    assert unequal(listed(), stoker.files(["/a", "/b"]))
