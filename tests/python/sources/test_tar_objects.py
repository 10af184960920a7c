"""Masks and objects in tars."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from indexes import rest  # noqa: E402
from object_server import ObjectServer  # noqa: E402
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
    "mask": stoker.Mask(".seg.png", fill=255),
    "boxes": stoker.Boxes(".json:objects.bbox", format="xywh"),
    "labels": stoker.PerObject(".json:objects.categories"),
    "area": stoker.PerObject("json:objects.area", dtype="float32"),
    "pose": stoker.Keypoints("pose.json:", flip_pairs=[(0, 1)]),
}


def write(path, samples):
    """Writes an archive of samples, lists of (extension, bytes)."""
    with tarfile.open(path, "w") as tar:
        for key, sample in samples:
            for extension, data in sample.items():
                info = tarfile.TarInfo(f"train/{key}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def members(row, root, **others):
    document = {"w": row["w"], "objects": list_of_objects(row["objects"]), "caption": "\u00e4]"}
    return {
        "seg.png": (root / row["mask"]).read_bytes(),
        "jpg": (root / row["file_name"]).read_bytes(),
        "pose.json": json.dumps(row["pose"]).encode(),
        "json": json.dumps(document).encode(),
        **others,
    }


@pytest.fixture(scope="module")
def archives(made, tmp_path_factory):
    """Returns the samples, the folder of their files, and a pattern of three archives."""
    root = tmp_path_factory.mktemp("tars")
    rows = write_scenes(made, root)
    samples = [(f"{i:03d}", members(row, root)) for i, row in enumerate(rows)]
    for shard in range(3):
        write(root / f"{shard}.tar", samples[shard * 4 : shard * 4 + 4])
    rest()
    return rows, root, f"{root}/*.tar"


def test_the_same_batches_as_of_files(archives):
    rows, root, pattern = archives
    expected = as_files(rows, root, "width")
    source = stoker.tar(pattern, columns=COLUMNS)
    check_same(source, expected)
    check_same(stoker.tar(pattern, columns=COLUMNS), expected)  # by its index
    assert source.object_counts.tolist() == [i % 4 for i in range(SAMPLES)]
    assert source.path(7, "mask") == str(root / "1.tar")


def test_masks_are_those_of_pillow(archives):
    pytest.importorskip("PIL", reason="Pillow is not installed here")
    _, root, pattern = archives
    check_mask(stoker.tar(pattern, columns={"mask": COLUMNS["mask"]}), 6, root / "6.png")


def test_masks_next_to_images_with_a_usual_extension(archives, tmp_path):
    rows, root, _ = archives
    samples = [(str(i), {"png": (root / row["mask"]).read_bytes()}) for i, row in enumerate(rows)]
    for (_, sample), row in zip(samples, rows):
        sample["jpg"] = (root / row["file_name"]).read_bytes()
    file = write(tmp_path / "a.tar", samples)
    source = stoker.tar(file, columns={"mask": stoker.Mask("PNG", fill=255)})
    check_same(source, as_files(rows, root, "width", "boxes", "labels", "area", "pose"))
    assert stoker.tar(file)._native.fingerprint != source._native.fingerprint


def test_json_may_be_a_column_of_text_too(archives):
    rows, _, pattern = archives
    source = stoker.tar(pattern, columns={"meta": ".json", **COLUMNS})
    batch = next(iter(stoker.Loader(source, [stoker.Resize((32, 32))], batch_size=SAMPLES)))
    assert batch.keys() == ("image", "mask", "meta", "boxes", "labels", "area", "pose")
    assert [json.loads(text)["w"] for text in batch.meta] == [row["w"] for row in rows]
    assert [len(boxes) for boxes in batch.boxes] == [i % 4 for i in range(SAMPLES)]


def test_archives_behind_urls(archives):
    rows, root, _ = archives
    with ObjectServer(root) as server:
        source = stoker.tar(f"{server.url}/{{0..2}}.tar", columns=COLUMNS)
        check_same(source, as_files(rows, root, "width"))


def test_labels_of_text_are_classes(archives, tmp_path):
    rows, root, _ = archives
    names = ["cat", "dog", "ant"]
    samples = []
    for i, row in enumerate(rows):
        labels = json.dumps([names[c % 3] for c in row["objects"]["categories"]]).encode()
        samples.append((str(i), members(row, root, **{"names.json": labels})))
    file = write(tmp_path / "a.tar", samples)
    columns = {"boxes": COLUMNS["boxes"], "labels": stoker.PerObject(".names.json")}
    source = stoker.tar(file, columns=columns)
    assert source.classes == ["ant", "cat", "dog"]
    labels = np.concatenate([batch["labels"][0] for batch in batches(source, shuffle=False)])
    assert labels.tolist() == [(1, 2, 0)[c % 3] for row in rows for c in row["objects"]["categories"]]


def test_a_source_tells_of_itself_and_can_be_pickled(archives):
    _, _, pattern = archives
    source = stoker.tar(pattern, label=None, columns={"meta": ".json", **COLUMNS})
    shown = repr(source)
    assert "label=None, columns={'meta': '.json', 'mask': stoker.Mask('.seg.png', fill=255)" in shown
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == shown
    less = stoker.tar(pattern, columns={"mask": COLUMNS["mask"]})
    assert less._native.fingerprint != source._native.fingerprint


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"json": b"{"}, "the json of the sample 'train/1', at its byte 1: the JSON is truncated"),
        ({"json": b'{"objects": {"bbox": [[1, 2]]}}'}, "byte 22: 'boxes' has a box of 2 numbers"),
        ({"json": b"\xff"}, "is not UTF-8"),
        ({"pose.json": b"[]"}, "has 0 objects in sample 1"),
        ({"json": None}, "has no member with the extension 'json'"),
        ({"seg.png": None}, "has no member with the extension 'seg.png'"),
        ({"cls": b"1"}, "label"),
    ],
)
def test_wrong_members(archives, tmp_path, others, words):
    rows, root, _ = archives
    wrong = {name: data for name, data in members(rows[1], root, **others).items() if data is not None}
    file = write(tmp_path / "a.tar", [("0", members(rows[0], root)), ("1", wrong)])
    with pytest.raises(ValueError, match=words) as caught:
        stoker.tar(file, columns=COLUMNS)
    assert caught.value.file == str(file)


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        ({"mask": stoker.Mask("jpg")}, ValueError, "has no image|begin with"),
        ({"mask": stoker.Mask("a b")}, ValueError, "must have one extension, not 'a b'"),
        ({"mask": stoker.Mask(["a.png"])}, TypeError, "must be the name of one of the members"),
        ({"m": stoker.Mask("png"), "n": stoker.Mask(".png")}, ValueError, "two columns have the extension"),
        ({"boxes": stoker.Boxes(":bbox")}, ValueError, "does not begin with an extension"),
        ({"boxes": stoker.Boxes("json:a.")}, ValueError, "has a dot without a key"),
        ({"boxes": stoker.Boxes("x.npy:a")}, ValueError, "does not begin with an extension"),
        ({"label": stoker.PerObject("json:a")}, ValueError, "columns has the name 'label'"),
    ],
)
def test_wrong_columns(archives, columns, kind, words):
    with pytest.raises(kind, match=words):
        stoker.tar(archives[2], columns=columns)


def test_the_extension_of_all_images_is_no_masks(archives):
    with pytest.raises(ValueError, match="the mask 'mask' has the extension of the images, 'png'"):
        stoker.tar(archives[2], image="png", columns={"mask": stoker.Mask("png")})


def test_masks_next_to_arrays(archives, tmp_path):
    """An archive with arrays has records, and its masks are members of their own."""
    rows, root, _ = archives
    array = io.BytesIO()
    np.save(array, np.arange(3, dtype=np.float32))
    samples = [(f"{i}", members(row, root, npy=array.getvalue())) for i, row in enumerate(rows)]
    path = write(tmp_path / "arrays.tar", samples)
    columns = {"mask": COLUMNS["mask"], "emb": ".npy"}
    recipe = [stoker.CenterCrop(24)]
    for with_array, without in zip(
        stoker.Loader(stoker.tar(path, columns=columns), recipe, batch_size=4),
        stoker.Loader(stoker.tar(path, columns={"mask": COLUMNS["mask"]}), recipe, batch_size=4),
        strict=True,
    ):
        assert np.array_equal(with_array.mask, without.mask)
        assert np.array_equal(with_array.image, without.image)
        assert (with_array.emb == np.arange(3)).all()
