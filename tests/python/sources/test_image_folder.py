"""image_folder lists what torchvision's ImageFolder lists, in its order, with its labels.

Compared with torchvision where it can be imported, and always with the same rules written out in a
few lines over os.walk. The program under test is tests/io/folder/list_folder.cc.
"""

import os
import random
import subprocess
import warnings

import pytest

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif", ".avif")


@pytest.fixture(name="list_folder")
def fixture_list_folder(build):
    """Runs the program: returns (exit code, samples or None, standard error)."""
    program = build / "tests/io/list_folder"
    if not program.is_file():
        pytest.skip(f"{program} is not built")

    def run(directory, threads=2):
        ran = subprocess.run(
            [program, os.fsencode(directory), str(threads)], capture_output=True, check=False
        )
        if ran.returncode != 0:
            return ran.returncode, None, os.fsdecode(ran.stderr)
        samples = []
        for record in ran.stdout.split(b"\0")[:-1]:
            label, path = record.split(b" ", 1)
            samples.append((os.fsdecode(path), int(label)))
        return 0, samples, ""

    return run


def by_walk(directory):
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    samples = []
    for label, name in enumerate(classes):
        walk = os.walk(os.path.join(directory, name), followlinks=True)
        for root, _, files in sorted(walk):
            for file in sorted(files):
                if file.lower().endswith(EXTENSIONS):
                    samples.append((os.path.join(root, file), label))
    return samples


def by_torchvision(directory):
    datasets = pytest.importorskip("torchvision.datasets")
    return datasets.ImageFolder(str(directory)).samples


def write(root, *paths):
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")


def awkward_names(root):
    write(
        root,
        "b/2.jpg",
        "b/1.PNG",
        "B/x.jpeg",
        "a/10.jpg",
        "a/9.jpg",
        "a/9.jpg.txt",
        "note.txt",
        "a!/1.jpg",
        "a/b!/1.jpg",
        "a/b/1.jpg",
        "a/b/c/1.jpg",
        "a/z.tiff",
        "é/ü.jpg",
        "日/本.webp",
        "a/new\nline.jpg",
        "a/ .jpg",
        "a/\U0001f600.jpg",
        "a/\uffee.jpg",
        "a/x.JpEg",
        "a/xjpg",
    )


def links(root):
    write(root, "a/1.jpg", "a/deep/2.jpg", "elsewhere/3.jpg")
    (root / "b").mkdir()
    (root / "b/file.jpg").symlink_to("../a/1.jpg")
    (root / "b/once").symlink_to("../a")
    (root / "b/twice").symlink_to("../a")
    (root / "b/dangling.jpg").symlink_to("nowhere")
    (root / "c").symlink_to("elsewhere")


def random_tree(root):
    draw = random.Random(7)
    parts = ["a", "A", "a!", "a b", "0", "10", "9", "é", "_", "z"]
    for _ in range(400):
        folder = "/".join(draw.choice(parts) for _ in range(draw.randint(1, 4)))
        name = draw.choice(parts) + str(draw.randint(0, 99)) + draw.choice(EXTENSIONS + (".txt",))
        write(root, folder + "/0.jpg", folder + "/" + name)


@pytest.mark.parametrize("tree", [awkward_names, links, random_tree])
@pytest.mark.parametrize("reference", [by_walk, by_torchvision])
def test_the_list_matches_the_reference(list_folder, tmp_path, tree, reference):
    tree(tmp_path)
    expected = reference(tmp_path)
    assert len(expected) > 3
    for threads in (1, 2, 8):
        assert list_folder(tmp_path, threads) == (0, expected, "")


def test_names_that_are_not_utf8_are_listed_in_bytewise_order(list_folder, tmp_path):
    # Python sorts such bytes as lone surrogates, below U+E000.
    write(tmp_path, "a/\udcff.jpg", "a/\uffee.jpg", "a/z.jpg")
    _, listed, _ = list_folder(tmp_path)
    assert sorted(listed) == sorted(by_walk(tmp_path))
    names = [os.path.basename(os.fsencode(path)) for path, _ in listed]
    assert names == [b"z.jpg", b"\xef\xbf\xae.jpg", b"\xff.jpg"]


def test_hidden_entries_are_skipped(list_folder, tmp_path):
    write(tmp_path, "a/1.jpg", "a/._1.jpg", ".ipynb_checkpoints/1.jpg")
    assert list_folder(tmp_path)[1] == [(str(tmp_path / "a/1.jpg"), 0)]


def test_an_empty_class_is_refused_as_torchvision_does(list_folder, tmp_path):
    write(tmp_path, "a/1.jpg", "b/readme.txt")
    code, _, message = list_folder(tmp_path)
    assert code == 1
    assert "'b'" in message
    datasets = pytest.importorskip("torchvision.datasets")
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(str(tmp_path))


def test_other_formats_are_left_out_with_a_warning(tmp_path):
    stoker = pytest.importorskip("stoker", reason="the package is not installed here")
    write(tmp_path, "a/1.jpg", "a/2.exr", "b/1.png", "b/photo.PSD")
    with pytest.warns(
        stoker.SkippedFilesWarning, match=r"2 image files are skipped.*\.exr 1, \.psd 1.* a/2\.exr"
    ):
        source = stoker.image_folder(tmp_path)
    assert source.skipped == {".exr": 1, ".psd": 1}
    assert [source.path(i) for i in range(len(source))] == [str(tmp_path / p) for p in ("a/1.jpg", "b/1.png")]


def test_splits_in_place_of_classes_are_warned_of(tmp_path):
    stoker = pytest.importorskip("stoker", reason="the package is not installed here")
    write(tmp_path, "train/cat/1.jpg", "train/dog/2.jpg", "val/cat/3.jpg")
    with pytest.warns(UserWarning, match="holds train, val, which look like splits") as warned:
        assert stoker.image_folder(tmp_path).classes == ["train", "val"]
    assert str(warned[0].message).endswith(f"pass {tmp_path}/train") and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stoker.image_folder(tmp_path / "train").classes == ["cat", "dog"]


def test_a_class_of_other_formats_only(tmp_path):
    """torchvision refuses it too; Keras counts it as a class (docs/from-tf-data.md)."""
    stoker = pytest.importorskip("stoker", reason="the package is not installed here")
    write(tmp_path, "a/1.jpg", "b/2.exr")
    with pytest.raises(ValueError, match=r"'b' \(but \.exr 1\).*Convert them to JPEG or PNG"):
        stoker.image_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="b"):
        by_torchvision(tmp_path)
