"""The Python package: a folder's index, its own or another one."""

import os
import pickle
import shutil
import subprocess
import sys
import warnings

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip()]


def index_of(folder, *arguments):
    subprocess.run(
        [sys.executable, "-m", "stoker", "index", folder, *arguments],
        check=True,
        capture_output=True,
        timeout=120,
    )


def epoch(source):
    """Returns the loader, and copies of the batches of its second epoch."""
    loader = stoker.Loader(source, TRAIN, batch_size=8, shuffle=True, seed=7)
    return loader, taken(loader.epoch(1))


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return stoker.image_folder(*arguments, **options)


@pytest.fixture(name="own")
def fixture_own(made, tmp_path):
    """A copy of the folder, with an index of its own."""
    folder = tmp_path / "own"
    shutil.copytree(made, folder)
    index_of(folder)
    return folder


@pytest.mark.parametrize("indexed", [False, True])
def test_class_names_of_the_training_set(own, tmp_path, indexed):
    """A class without images, or without a folder, renumbers nothing."""
    train = stoker.image_folder(own)
    last = len(train.classes) - 1
    assert last >= 2
    folder = tmp_path / "val"
    shutil.copytree(own, folder, ignore=shutil.ignore_patterns(".stoker-index"))
    for image in (folder / train.classes[1]).iterdir():
        image.unlink()
    if indexed:
        index_of(folder)
    with pytest.raises(ValueError, match=r"removing one renumbers those after it.*allow_empty.*class_names"):
        stoker.image_folder(folder)
    emptied = quietly(folder, allow_empty=True)
    names = tmp_path / "classes.txt"
    names.write_text("\n".join(train.classes) + "\n")
    (folder / train.classes[1]).rmdir()
    if indexed:
        index_of(folder)
    labels = [label for label in train.labels.tolist() if label != 1]
    assert sorted(set(quietly(folder).labels.tolist())) == [*range(last)]  # what the advice must not lead to
    for source in (
        emptied,
        quietly(folder, class_names=train.classes, allow_empty=True),
        quietly(folder, class_names=names, allow_empty=True),
    ):
        assert source.classes == train.classes and source.labels.tolist() == labels
        assert source._native.fingerprint == emptied._native.fingerprint
        if source is not emptied:
            again = pickle.loads(pickle.dumps(source))
            assert again._spec == source._spec and repr(again) == repr(source)
            assert again.labels.tolist() == labels
            assert (source.image_size(0) is not None) == indexed
    with pytest.raises(ValueError, match=r"1 of the classes given have no folder.*allow_empty"):
        stoker.image_folder(folder, class_names=train.classes)
    with pytest.raises(ValueError, match="not one of the 1 class name given"):
        stoker.image_folder(folder, class_names=train.classes[:1], allow_empty=True)


def test_an_index_changes_no_pixel_and_is_counted(made, tmp_path):
    index = tmp_path / "made.index"
    index_of(made, "--out", index)
    plain, expected = epoch(stoker.image_folder(made))
    indexed, batches = epoch(stoker.image_folder(made, crop_index=index))
    same(batches, expected)
    stats = indexed.stats()
    assert stats["indexed"] > 0 and stats["index_stale"] == stats["index_contradicted"] == 0
    assert plain.stats()["indexed"] == 0
    again = pickle.loads(pickle.dumps(indexed.source))
    assert repr(again) == repr(indexed.source) and str(index) in repr(again)
    assert again._spec == indexed.source._spec


def test_crop_index_selects_the_index(made, tmp_path):
    for nothing in (None, "off", "auto"):
        quietly(made, crop_index=nothing)
    with pytest.raises(stoker.NotFoundError, match="missing"):
        stoker.image_folder(made, crop_index=tmp_path / "missing")
    off, none = (stoker.image_folder(made, crop_index=c) for c in ("off", None))
    assert off._spec == none._spec
    with pytest.raises(stoker.InvalidArgumentError, match="this is not an index file"):
        stoker.image_folder(made, crop_index=tmp_path)
    with pytest.raises(stoker.InvalidArgumentError, match="crop_index is empty"):
        stoker.image_folder(made, crop_index="")
    with pytest.raises(TypeError, match="crop_index"):
        stoker.image_folder(made, crop_index=3)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "photo.jpg").write_bytes(next(made.rglob("*.jpg")).read_bytes())
    (folder / ".stoker-index").write_bytes(b"damaged" * 20)
    with pytest.warns(stoker.CropIndexWarning, match="this is not an index file"):
        damaged = stoker.image_folder(folder)
    assert len(epoch(damaged)[1]) == 1


def test_the_same_list_with_and_without(own):
    by_index, listed = quietly(own), quietly(own, crop_index=None)
    assert len(by_index) == len(listed) and by_index.classes == listed.classes
    assert by_index._spec["fingerprint"] == listed._spec["fingerprint"]
    assert [by_index.path(i) for i in range(len(listed))] == [listed.path(i) for i in range(len(listed))]


def test_an_image_is_noticed_whose_folder_has_its_old_time(own):
    folder = os.path.dirname(stoker.image_folder(own, crop_index=None).path(0))
    before = os.stat(folder)
    shutil.copy(stoker.image_folder(own).path(0), os.path.join(folder, "smuggled.jpg"))
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.warns(stoker.CropIndexWarning, match="has changed.* the index knows 60 of its 61 images"):
        assert len(stoker.image_folder(own)) == 61


def test_a_folder_that_has_changed(own):
    first = stoker.image_folder(own).path(0)
    shutil.copy(first, os.path.join(os.path.dirname(first), "added.jpg"))
    with pytest.warns(stoker.CropIndexWarning, match="has changed.* the index knows 60 of its 61 images"):
        source = stoker.image_folder(own)
    assert len(source) == 61
    loader, _ = epoch(source)
    assert loader.stats()["indexed"] > 0
    index_of(own)
    assert len(quietly(own)) == 61


def test_an_index_of_another_version(own):
    index = own / ".stoker-index"
    content = bytearray(index.read_bytes())
    content[8] = 1
    index.write_bytes(content)
    with pytest.warns(stoker.CropIndexWarning, match=r"of version 1.*Run `stoker index` again"):
        assert len(stoker.image_folder(own)) == 60
    with pytest.raises(stoker.UnimplementedError, match=r"of version 1.*Run `stoker index` again"):
        stoker.image_folder(own, crop_index=index)


def test_sizes_without_opening_files(own):
    image = pytest.importorskip("PIL.Image")
    ops = pytest.importorskip("PIL.ImageOps")
    listed, by_index = stoker.image_folder(own, crop_index=None), stoker.image_folder(own)
    turned = image.open(by_index.path(3)).convert("RGB").resize((40, 20))
    exif = image.Exif()
    exif[0x0112] = 6
    turned.save(by_index.path(3), exif=exif)
    index_of(own)
    by_index = stoker.image_folder(own)
    for sample in range(60):
        with image.open(by_index.path(sample)) as photo:
            assert by_index.image_size(sample) == ops.exif_transpose(photo).size[::-1]
        assert listed.image_size(sample) is None
    assert by_index.image_size(3) == (40, 20)
    os.remove(by_index.path(3))
    assert by_index.image_size(3) == (40, 20)
    for sample in (-1, 60):
        with pytest.raises(IndexError, match="0 to 59"):
            by_index.image_size(sample)
