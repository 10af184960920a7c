"""`stoker show`: the sheet is the first batch of a loader, and replaces nothing but a sheet."""

import json
import subprocess

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL")

import PIL.Image
import PIL.ImageOps

GAP = 2
PALE = (224, 224, 192)
TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def show(command):
    """Returns a function that runs the command, and returns what it prints; `code`: its exit code."""

    def run(*arguments, code=0):
        done = subprocess.run(
            [command, "show", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture(scope="module")
def made(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("show") / "made"
    subprocess.run([command, "synth", folder, "--count", "20", "--classes", "3"], check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def masked(made, tmp_path_factory):
    """Two folders: the images, and masks of rectangles with names that end in _mask."""
    masks = tmp_path_factory.mktemp("masks")
    for number, path in enumerate(sorted(made.rglob("*.jpg"))):
        with PIL.Image.open(path) as image:
            width, height = PIL.ImageOps.exif_transpose(image).size
        mask = np.zeros((height, width), np.uint8)
        mask[: mask.shape[0] // 2] = number + 1
        mask[:, :9] = 255
        (masks / path.parent.name).mkdir(exist_ok=True)
        PIL.Image.fromarray(mask).save(masks / path.parent.name / f"{path.stem}_mask.png")
    return made, masks


def images_of(path, count, columns, size=48):
    """Returns the images of a sheet, after a check that the rest is white."""
    with PIL.Image.open(path) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        sheet = np.array(image)
    across = min(columns, count)
    assert sheet.shape == (-(-count // across) * (size + GAP) - GAP, across * (size + GAP) - GAP, 3)
    images = []
    for i in range(count):
        top, left = (place * (size + GAP) for place in divmod(i, across))
        box = sheet[top : top + size, left : left + size]
        images.append(box.copy())
        box[:] = 255
    assert (sheet == 255).all()
    return np.stack(images)


def batch_of(source, transforms, count, **options):
    return next(iter(stoker.Loader(source, transforms, batch_size=count, **options)))


def test_the_sheet_is_the_first_batch(show, made, tmp_path):
    out = tmp_path / "sheet.png"
    for seed in (0, 7):
        printed = show(made, "--out", out, "--size", 48, "--count", 7, "--columns", 3, "--seed", seed)
        source = stoker.image_folder(made)
        images, labels = batch_of(source, TRAIN, 7, shuffle=True, seed=seed)
        assert (images_of(out, 7, 3) == images).all()
        names = [source.classes[label] for label in labels]
        *rows, last = printed.splitlines()
        assert rows == [", ".join(names[:3]), ", ".join(names[3:6]), names[6]]
        assert last.startswith(f"{out}: 7 samples, 3 to a line, 148 × 148 pixels, ")


def test_eval_has_the_folders_order(show, made, tmp_path):
    out = tmp_path / "sheet.png"
    report = json.loads(show(made, "--out", out, "--transform", "eval", "--size", 48, "--json"))
    transforms = [stoker.Resize(48 * 256 // 224), stoker.CenterCrop(48)]
    source = stoker.image_folder(made)
    images, labels = batch_of(source, transforms, 20)
    assert (images_of(out, 20, 8) == images).all()
    assert report == {
        "source": f"image_folder({made})", "out": str(out), "samples": 20, "columns": 8,
        "labels": [source.classes[label] for label in labels],
        "width": 8 * 50 - 2, "height": 3 * 50 - 2, "bytes": out.stat().st_size,
    }  # fmt: skip


@pytest.mark.parametrize("options", ["--normalize", "--normalize --dtype float16", "--layout NCHW"])
def test_normalized_images_have_their_colours(show, made, tmp_path, options):
    show(made, "--out", tmp_path / "a.png", "--size", 48)
    show(made, "--out", tmp_path / "b.png", "--size", 48, *options.split())
    a, b = (images_of(tmp_path / name, 20, 8).astype(int) for name in ("a.png", "b.png"))
    assert abs(a - b).max() <= 1


def test_gray_images_are_gray(show, made, tmp_path):
    show(made, "--out", tmp_path / "a.png", "--size", 48, "--channels", "gray")
    sheet = images_of(tmp_path / "a.png", 20, 8)
    images, _ = batch_of(stoker.image_folder(made), TRAIN, 20, shuffle=True, channels="gray")
    assert (sheet == images).all()


def test_labels_of_mixed_rows(show, made, tmp_path):
    recipe = tmp_path / "recipe.json"
    transforms = [{"name": "RandomResizedCrop", "height": 48, "width": 48}]
    mix = {"choices": [{"name": "CutMix"}]}
    recipe.write_text(json.dumps({"transforms": transforms, "dtype": "float32", "mix": mix}))
    out = tmp_path / "sheet.png"
    report = json.loads(show(made, "--out", out, "--recipe", recipe, "--count", 8, "--json"))
    source = stoker.image_folder(made)
    mixed = [stoker.RandomResizedCrop(48), stoker.CutMix()]
    images, weights = batch_of(source, mixed, 8, shuffle=True, dtype="float32")
    assert (images_of(out, 8, 8) == np.rint(images * 255)).all()
    parts = [{source.classes[i]: weight for i, weight in enumerate(row) if weight} for row in weights]
    assert any(len(part) == 2 for part in parts)
    assert report["labels"] == [
        " + ".join(name if weight == 1 else f"{name} {weight:.2f}" for name, weight in part.items())
        for part in parts
    ]


def test_masks_are_drawn_over_their_images(show, masked, tmp_path):
    folder, masks = masked
    out = tmp_path / "sheet.png"
    options = ["--size", 48, "--seed", 3, "--source-option", "fill=255"]
    printed = show(folder, "--masks", masks, "--suffix", "_mask", "--out", out, *options)
    assert printed.count("\n") == 1  # there are no labels
    source = stoker.masks(folder, masks, suffix="_mask", fill=255)
    images, values = batch_of(source, TRAIN, 20, shuffle=True, seed=3)
    drawn = images_of(out, 20, 8)
    assert (drawn[values == 0] == images[values == 0]).all()
    for value, colour in ((1, (128, 0, 0)), (2, (0, 128, 0)), (3, (128, 128, 0)), (255, (224, 224, 192))):
        there = values == value
        assert there.any()
        assert (drawn[there] == (images[there].astype(int) + colour + 1) // 2).all()


def test_masks_of_16_bits_have_the_colours_of_their_lower_byte(show, masked, tmp_path):
    folder, masks = masked
    for path in masks.rglob("*_mask.png"):
        mask = np.array(PIL.Image.open(path)).astype(np.uint16)
        mask[mask != 255] *= 256 + 1  # 257 for 1
        mask[:, -9:] = 512
        copy = tmp_path / "masks" / path.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(mask).save(copy)
    out = tmp_path / "sheet.png"
    options = ["--masks", tmp_path / "masks", "--suffix", "_mask", "--source-option", "dtype=uint16"]
    show(folder, *options, "--out", out, "--size", 48, "--seed", 3)
    source = stoker.masks(folder, tmp_path / "masks", suffix="_mask", dtype="uint16")
    images, values = batch_of(source, TRAIN, 20, shuffle=True, seed=3)
    drawn = images_of(out, 20, 8)
    for value, colour in ((257, (128, 0, 0)), (514, (0, 128, 0)), (255, PALE), (512, PALE)):
        there = values == value
        assert there.any()
        assert (drawn[there] == (images[there].astype(int) + colour + 1) // 2).all()
    assert (drawn[values == 0] == images[values == 0]).all()
    sheet = tmp_path / "batch.png"
    stoker.show((images, values)).save(sheet)
    assert (images_of(sheet, 20, 8) == drawn).all()


def test_nothing_but_a_sheet_is_replaced(show, made, tmp_path):
    sheet, other, photograph = tmp_path / "sheet.png", tmp_path / "other.png", tmp_path / "photograph.png"
    for _ in range(2):
        show(made, "--out", sheet, "--size", 8, "--count", 1)
    link = tmp_path / "link.png"
    link.symlink_to(sheet)
    show(made, "--out", link, "--size", 16, "--count", 1)
    assert link.is_symlink() and images_of(sheet, 1, 8, size=16).size
    other.write_bytes(b"")
    PIL.Image.new("RGB", (3, 3)).save(photograph)
    before = photograph.read_bytes()
    for path in (other, photograph):
        error = show(made, "--out", path, "--size", 8, code=3)
        assert f"{path}: cannot write: a file that is not a contact sheet is in the way. Name" in error
    assert other.read_bytes() == b"" and photograph.read_bytes() == before
    assert "its folder does not exist" in show(made, "--out", tmp_path / "no" / "a.png", code=3)
    assert "Is a directory" in show(made, "--out", tmp_path, code=3)


def test_errors(show, made, tmp_path):
    out = tmp_path / "sheet.png"
    for options, text in (
        (["--size", 16384], "the sheet would have 131086 × 49156 pixels; it may have"),
        (["--count", 4097], "4097 is not a whole number from 1 to 4096"),
        (["--columns", 0], "0 is not a whole number from 1 to 4096"),
        (["--suffix", "_mask"], "--suffix requires --masks"),
        (["--masks", made, "--source-option", "label="], "The names for masks are: masks suffix fill"),
        (["--out", ""], "--out is empty"),
    ):
        assert text in show(made, *([] if "--out" in options else ["--out", out]), *options, code=2)
    assert "no such" in show(tmp_path / "nowhere", "--out", out, code=1).lower()
    (tmp_path / "bad" / "class").mkdir(parents=True)
    (tmp_path / "bad" / "class" / "bad.jpg").write_bytes(b"text")
    assert "bad.jpg" in show(tmp_path / "bad", "--out", out, code=1)
    recipe = tmp_path / "views.json"
    view = {"transforms": [{"name": "RandomResizedCrop", "height": 48, "width": 48}]}
    recipe.write_text(json.dumps({"views": [view, view]}))
    assert "has several views, and a contact sheet shows one" in show(
        made, "--out", out, "--recipe", recipe, code=2
    )
    assert not out.exists()
