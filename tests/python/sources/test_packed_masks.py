"""`stoker pack` of images and masks: the set takes the place of the two folders."""

import json
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
from epochs import same, taken  # noqa: E402

SAMPLES = 12
FILL = 255
RECIPE = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip(), stoker.RandomRotation(20)]


def run(*words):
    done = subprocess.run(
        [sys.executable, "-m", "stoker", *map(str, words), "--json"], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Images, and masks of every depth."""
    root = tmp_path_factory.mktemp("packed_masks")
    rng = np.random.default_rng(3)
    for sample in range(SAMPLES):
        height, width = rng.integers(60, 120, 2)
        values = rng.integers(0, 7, (height // 9 + 1, width // 7 + 1)).repeat(9, 0).repeat(7, 1)
        values = np.ascontiguousarray(values[:height, :width])
        name = f"{'ab'[sample % 2]}/{sample:02d}"
        for folder in ("images", "masks"):
            (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(
            root / "images" / f"{name}.jpg"
        )
        mask = Image.fromarray(values.astype(np.uint8) * 9, "P" if sample % 3 == 0 else "L")
        if sample % 3 == 0:
            mask.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
        if sample % 3 == 1:
            mask = Image.fromarray(values.astype(np.uint16) * 9000)
        mask.save(root / "masks" / f"{name}_m.png")
    return root / "images", root / "masks"


@pytest.fixture(scope="module")
def packed(folders):
    images, masks = folders
    options = {"masks": masks, "suffix": "_m", "dtype": "uint16", "fill": FILL}
    words = [word for name, value in options.items() for word in ("--source-option", f"{name}={value}")]
    report = run("pack", images, images.parent / "set", *words)
    assert report["samples"] == SAMPLES and report["images"] == report["packed"] == 2 * SAMPLES
    return images.parent / "set"


def make(source, **options):
    return stoker.Loader(source, RECIPE, batch_size=5, shuffle=True, seed=7, **options)


def masks_of(folders):
    return stoker.masks(*folders, suffix="_m", dtype="uint16", fill=FILL)


def test_batches_are_those_of_the_folders(folders, packed):
    source = stoker.packed(packed)
    assert len(source) == SAMPLES
    batches = taken(make(source))
    assert batches[0][1].dtype == np.uint16
    same(batches, taken(make(masks_of(folders))))
    chosen = [5, 3, 0, 11]
    same(taken(make(source.subset(chosen))), taken(make(masks_of(folders).subset(chosen))))


def test_masks_of_8_bits(folders, tmp_path):
    images, masks = folders
    few = tmp_path / "images"
    for path in images.rglob("*.jpg"):
        if int(path.stem) % 3 == 1:  # 16 bits
            continue
        (few / path.relative_to(images)).parent.mkdir(parents=True, exist_ok=True)
        (few / path.relative_to(images)).write_bytes(path.read_bytes())
        mask = path.relative_to(images).with_name(f"{path.stem}_m.png")
        (tmp_path / "masks" / mask).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "masks" / mask).write_bytes((masks / mask).read_bytes())
    options = ["--source-option", f"masks={tmp_path / 'masks'}", "--source-option", "suffix=_m"]
    run("pack", few, tmp_path / "set", "--threads", 1, *options)
    source = stoker.packed(tmp_path / "set")
    files = stoker.masks(few, tmp_path / "masks", suffix="_m")
    for one, other in ((source, files), (source.subset([6, 2, 0]), files.subset([6, 2, 0]))):
        batches = taken(make(one))
        assert batches[0][1].dtype == np.uint8
        same(batches, taken(make(other)))


def test_a_record_has_no_values_besides_its_images(packed):
    source = stoker.packed(packed)
    native = source._native
    assert native.unpack(3, native.read(3))[1] == [] and native.row(3) == []


def test_a_state_continues_on_either(folders, packed):
    wanted = taken(make(masks_of(folders)))
    loader = make(masks_of(folders))
    next(iter(loader))
    other = make(stoker.packed(packed))
    other.load_state_dict(loader.state_dict())
    same(taken(other), wanted[1:])


def test_every_file_comes_back(folders, packed, tmp_path):
    assert run("pack", "--verify", packed)["damaged"] == 0
    assert run("verify", packed)["bad"] == []
    report = run("unpack", packed, tmp_path / "out")
    assert report["files"] == 2 * SAMPLES
    for field, folder in zip(("image", "mask"), folders):
        files = [path.relative_to(folder) for path in folder.rglob("*.*g")]
        assert len(files) == SAMPLES
        for path in files:
            assert (tmp_path / "out" / field / path).read_bytes() == (folder / path).read_bytes()


def test_all_images_are_listed(packed):
    listed = run("pack", "--list", packed)["photographs"]
    assert [(one["id"], one["field"]) for one in listed[:3]] == [(0, "image"), (0, "mask"), (1, "image")]
    assert len(listed) == 2 * SAMPLES
    assert listed[1]["path"] == "a/00_m.png" and listed[1]["stored_bytes"] < listed[1]["bytes"]
