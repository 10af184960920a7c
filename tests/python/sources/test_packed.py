"""stoker.packed: what `stoker pack` makes of a folder takes its place."""

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, same_for_ranks, same_for_settings, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *map(os.fspath, arguments)],
        check=True,
        capture_output=True,
        timeout=120,
    ).stdout


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


@pytest.fixture(scope="module")
def packed(made, tmp_path_factory):
    """`made`, packed into several shards."""
    folder = tmp_path_factory.mktemp("packed") / "set"
    command("pack", made, folder, "--shard-size", "100KB")
    assert len(list(folder.glob("0*.stoker"))) > 3
    return folder


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, packed, world):
    same_for_ranks(partial(make, stoker.packed(packed)), partial(make, stoker.image_folder(made)), world)


def test_the_same_bytes_with_any_threads_and_depth(made, packed):
    wanted = taken(make(stoker.image_folder(made)))
    same_for_settings(make, lambda: stoker.packed(packed), wanted)


def test_the_same_bytes_on_devices(made, packed):
    for device in ("cpu", "host"):
        loaders = [
            make(source).to_device(device) for source in (stoker.packed(packed), stoker.image_folder(made))
        ]
        ours, theirs = ([np.array(batch[0]) for batch in loader] for loader in loaders)
        same([(image,) for image in ours], [(image,) for image in theirs])


@pytest.mark.parametrize("begins_packed", [True, False])
def test_a_state_goes_on_with_the_other(made, packed, begins_packed):
    sources = [stoker.packed(packed), stoker.image_folder(made)]
    first, second = sources if begins_packed else sources[::-1]
    loader = make(first)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = taken(iterator)
    again = make(second)
    again.load_state_dict(state)
    same(taken(again), rest)


def test_a_source_tells_of_itself(made, packed, monkeypatch):
    source, folder = stoker.packed(packed), stoker.image_folder(made)
    assert len(source) == 60 and source.has_labels and source.classes == folder.classes
    assert source.labels.tolist() == folder.labels.tolist()
    assert source._native.fingerprint == folder._native.fingerprint
    for i in (0, 17, 59):
        assert os.path.join(made, source.name(i)) == folder.path(i)
        size = source.image_size(i)
        assert size == stoker.decode_image(folder.path(i)).shape[:2]
        assert pathlib.Path(source.path(i)).parent == packed and source.path(i).endswith(".stoker")
        np.testing.assert_array_equal(
            stoker.decode_image(source._image(i)), stoker.decode_image(folder.path(i))
        )
    with pytest.raises(IndexError):
        source.name(60)
    assert repr(source) == f"stoker.packed('{packed}')"
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._spec == source._spec
    monkeypatch.chdir(packed.parent)
    here = stoker.packed("set")
    monkeypatch.chdir("/")
    same(taken(make(here)), taken(make(folder)))


def test_stats_count_packed_jpegs(made, packed):
    loaders = [make(source) for source in (stoker.packed(packed), stoker.image_folder(made))]
    for loader in loaders:
        taken(loader)
    count = loaders[0].stats()["packed"]
    assert count > 40 and loaders[1].stats()["packed"] == 0
    assert f'jpeg_images_total{{loader="loader",decoder="stoker-packed"}} {count}' in loaders[0].prometheus()


def test_derived_sources(made, packed):
    source, folder = stoker.packed(packed), stoker.image_folder(made)
    for derive in (
        lambda s: s.subset(range(30, 3, -1)),
        lambda s: s.split(0.3, seed=2)[1],
        lambda s: s.filter(labels=s.classes[1:]),
        lambda s: s.balanced(),
        lambda s: stoker.combine([s, s.subset(range(5))]),
    ):
        same(taken(make(derive(source))), taken(make(derive(folder))))


def test_a_folder_and_its_set_together(made, packed):
    mixed = stoker.combine([stoker.packed(packed), stoker.image_folder(made)])
    twice = stoker.combine([stoker.image_folder(made), stoker.image_folder(made)])
    same(taken(make(mixed)), taken(make(twice)))


def test_unpack_gives_the_files_back(made, packed, tmp_path):
    command("unpack", packed, tmp_path / "out")
    before = {p.relative_to(made): p.read_bytes() for p in made.rglob("*.jpg")}
    after = {p.relative_to(tmp_path / "out"): p.read_bytes() for p in (tmp_path / "out").rglob("*.*")}
    assert before == after


def test_splits_in_place_of_classes_are_warned_of(made, packed, tmp_path):
    photos, parent = tmp_path / "photos", tmp_path / "packed"
    for part in ("val", "train"):
        shutil.copytree(made, photos / part)
        shutil.copytree(packed, parent / part)
    command("pack", photos, tmp_path / "whole")
    with pytest.warns(UserWarning, match="holds train, val, which look like splits") as warned:
        source = stoker.packed(tmp_path / "whole")
    assert source.classes == ["train", "val"] and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(source))
        stoker.packed(parent / "train")
    with pytest.raises(
        stoker.InvalidArgumentError,
        match=f"holds packed sets: train, val.*pass {re.escape(str(parent))}/train",
    ):
        stoker.packed(parent)


def test_errors(made, packed, tmp_path):
    with pytest.raises(stoker.NotFoundError):
        stoker.packed(tmp_path / "nowhere")
    with pytest.raises(stoker.InvalidArgumentError, match="this folder is not a packed set"):
        stoker.packed(made)
    with pytest.raises(TypeError):
        stoker.packed(7)
    copy = tmp_path / "copy"
    shutil.copytree(packed, copy)
    (copy / "00001.stoker").rename(copy / "1")
    with pytest.raises(stoker.NotFoundError, match=r"00001\.stoker: this shard of the packed set is missing"):
        stoker.packed(copy)
    (copy / "1").rename(copy / "00001.stoker")
    (copy / "index.stoker").unlink()
    with pytest.raises(stoker.NotFoundError, match="packing has not finished"):
        stoker.packed(copy)


def test_a_damaged_photograph_is_named(packed, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(packed, copy)
    source = stoker.packed(copy)
    path, (begin, length) = pathlib.Path(source.path(21)), source._native.range(21)
    content = bytearray(path.read_bytes())
    content[begin + length // 2] ^= 1
    path.write_bytes(content)
    whole = [stoker.Resize((48, 48))]  # a crop may not need the bytes
    loader = stoker.Loader(source, whole, batch_size=1)
    iterator = iter(loader)
    for _ in range(21):
        next(iterator)
    with pytest.raises(stoker.DataLossError, match=re.escape(f"({source.name(21)})")) as failed:
        next(iterator)
    assert failed.value.file == str(path) and begin <= failed.value.offset < begin + length
    rows = stoker.Loader(source, whole, batch_size=1, on_bad="drop", max_bad_fraction=1)
    assert sum(len(images) for images, _ in rows) == 59


@pytest.mark.parametrize("place", ["first rows", "header", "last rows"])
@pytest.mark.parametrize("half", [False, True], ids=["a byte", "half of them"])
def test_a_crop_of_the_centre_needs_the_header_but_not_the_outer_rows(tmp_path, place, half):
    from PIL import Image

    (tmp_path / "photos").mkdir()
    noise = np.random.default_rng(1).integers(0, 255, (400, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "photos" / "1.jpg", quality=90)
    command("pack", tmp_path / "photos", tmp_path / "set")

    def batches(transforms):
        loader = stoker.Loader(stoker.packed(tmp_path / "set"), transforms, batch_size=1)
        return [images.copy() for images, *_ in loader]

    centre, whole = [stoker.CenterCrop(16)], [stoker.Resize((48, 48))]
    sound = batches(centre)
    batches(whole)
    shard = tmp_path / "set" / "00000.stoker"
    begin, length = stoker.packed(tmp_path / "set")._native.range(0)
    content = bytearray(shard.read_bytes())
    header = begin + int.from_bytes(content[begin + 8 : begin + 12], "little")
    first, bytes_of_part = {
        "first rows": (begin + 12, length // 40),
        "header": (header, 32),
        "last rows": (begin + length - 4 - length // 40, length // 40),
    }[place]
    for at in range(first, first + (bytes_of_part // 2 if half else 1)):
        content[at] ^= 0xFF
    shard.write_bytes(content)
    if place == "header":
        with pytest.raises(stoker.DataLossError):
            batches(centre)
    else:
        assert np.array_equal(batches(centre), sound)
    with pytest.raises(stoker.DataLossError, match=r"\(1\.jpg\)"):
        batches(whole)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decode": "scaled"},
        {"exif_orientation": False},
        {"on_bad": "substitute"},
        {"on_bad": "substitute", "decode": "scaled"},
    ],
)
def test_small_crops_read_a_part_of_the_set_and_have_the_bytes_of_the_folder(made, packed, tmp_path, options):
    """With on_bad, some photographs are damaged in both, and others take their places."""
    folder, crop = made, [stoker.RandomResizedCrop(16, scale=(0.02, 0.1))]
    if "on_bad" in options:
        folder = tmp_path / "photos"
        shutil.copytree(made, folder)
        for path in sorted(folder.rglob("*.jpg"))[::5]:
            path.write_bytes(path.read_bytes()[:200])
        command("pack", folder, tmp_path / "set", "--shard-size", "100KB")
        packed = tmp_path / "set"
    sources = [stoker.packed(packed), stoker.image_folder(folder)]
    ours, theirs = (
        stoker.Loader(source, crop, batch_size=8, shuffle=True, seed=3, **options) for source in sources
    )
    for _ in range(2):
        same(taken(ours), taken(theirs))
    whole = sum(file.stat().st_size for file in packed.glob("0*.stoker"))
    assert ours.stats()["bytes_read"] < 2 * 0.95 * whole
