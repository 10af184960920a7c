"""Images with boxes, from COCO's and YOLO's files. tests/io/annotations has the cases of their parsers."""

import json
import pickle

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")


@pytest.fixture
def coco(tmp_path):
    """Writes a file of three images and two boxes, with changes; returns it, and the folder."""

    def write(**changes):
        made = {
            "images": [{"id": i, "file_name": f"{i}.jpg"} for i in (9, 2, 5)],
            "annotations": [
                {"id": i, "image_id": 5, "category_id": category, "bbox": [1, 2, 3, 4]}
                for i, category in enumerate((8, 3))
            ],
            "categories": [{"id": 8, "name": "dog"}, {"id": 3, "name": "cat"}],
        }
        (tmp_path / "a.json").write_text(json.dumps({**made, **changes}))
        return tmp_path / "a.json", tmp_path

    return write


def test_coco_has_images_by_id_and_names_by_label(coco):
    json_file, folder = coco()
    source = stoker.coco(json_file, folder)
    assert [source.path(i) for i in range(len(source))] == [str(folder / f"{i}.jpg") for i in (2, 5, 9)]
    assert source.classes == ["", "", "", "cat", "", "", "", "", "dog"]
    assert not source.has_labels
    assert repr(source) == f"stoker.coco({str(json_file)!r}, {str(folder)!r})"


def test_coco_takes_options(coco):
    source = stoker.coco(*coco(), keep_empty=False, contiguous_labels=True)
    assert len(source) == 1 and source.classes == ["cat", "dog"]
    assert repr(source).endswith(", keep_empty=False, contiguous_labels=True)")
    again = pickle.loads(pickle.dumps(source))
    assert len(again) == 1 and again._spec == source._spec
    with pytest.raises(TypeError, match="keep_empty"):
        stoker.coco(*coco(), keep_empty="yes")


def test_coco_leaves_crowds_out(coco):
    objects = [
        {"id": i, "image_id": 5, "category_id": 3, "bbox": [1, 2, 3 + i, 4], "iscrowd": i % 2}
        for i in range(3)
    ]
    files = coco(annotations=objects)
    source = stoker.coco(*files, keep_crowd=False)
    assert repr(source).endswith(", keep_crowd=False)")
    assert pickle.loads(pickle.dumps(source))._spec == source._spec
    assert source._spec["fingerprint"] != stoker.coco(*files)._spec["fingerprint"]
    alone = coco(annotations=[objects[1]])
    assert len(stoker.coco(*alone, keep_empty=False)) == 1
    with pytest.raises(stoker.InvalidArgumentError, match="other than crowds"):
        stoker.coco(*alone, keep_empty=False, keep_crowd=False)


def test_coco_says_why_there_are_no_keypoints(coco):
    files = coco()
    assert repr(stoker.coco(*files)) == repr(stoker.coco(*files, keypoints="auto"))
    assert repr(stoker.coco(*files, keypoints=False)).endswith(", keypoints=False)")
    with pytest.raises(stoker.InvalidArgumentError, match="annotation 0 has no 'keypoints'"):
        stoker.coco(*files, keypoints=True)
    with pytest.raises(TypeError, match="keypoints"):
        stoker.coco(*files, keypoints="on")


def test_boxes_of_coco_are_those_of_the_decoded_image(coco):
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.new("RGB", (40, 20))
    exif = image.getexif()
    exif[0x112] = 6  # turned by 90 degrees
    files = coco(
        images=[{"id": 5, "file_name": "5.jpg", "width": 40, "height": 20}],
        annotations=[{"id": 1, "image_id": 5, "category_id": 3, "bbox": [10, 4, 8, 6]}],
    )
    image.save(files[1] / "5.jpg", exif=exif)
    source = stoker.coco(*files)
    for exif_orientation, box in ((False, [10, 4, 8, 6]), (True, [20, 2, 16, 3])):
        resize = [stoker.Resize((20, 40))]
        (batch,) = stoker.Loader(source, resize, batch_size=1, exif_orientation=exif_orientation)
        assert batch.boxes[0].tolist() == [box]


def test_wrong_files_of_coco_are_named(coco, tmp_path):
    json_file, folder = coco(annotations=[{"id": 4, "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4]}])
    with pytest.raises(
        stoker.InvalidArgumentError, match="annotation 4 has image_id 1, and no image"
    ) as caught:
        stoker.coco(json_file, folder)
    assert str(json_file) in str(caught.value)
    with pytest.raises(stoker.NotFoundError, match="none"):
        stoker.coco(tmp_path / "none.json", folder)
    with pytest.raises(stoker.NotFoundError, match="folder of images"):
        stoker.coco(json_file, tmp_path / "none")


@pytest.fixture
def yolo(tmp_path):
    """A data set of two splits; returns its YAML file."""
    for name in ("images/train", "images/val", "labels/train", "labels/val"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("train/b", "train/a", "val/c"):
        (tmp_path / "images" / f"{name}.jpg").write_bytes(b"x")
        (tmp_path / "labels" / f"{name}.txt").write_text("1 0.5 0.5 0.25 1\n")
    (tmp_path / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")
    return tmp_path / "data.yaml"


def test_yolo_has_the_images_of_a_split(yolo):
    source = stoker.yolo(yolo)
    assert [source.path(i) for i in range(2)] == [str(yolo.parent / f"images/train/{i}.jpg") for i in "ab"]
    assert source.classes == ["cat", "dog"] and not source.has_labels
    assert repr(source) == f"stoker.yolo({str(yolo)!r}, 'train')"
    assert len(stoker.yolo(yolo, "val", threads=1)) == 1
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._spec == source._spec


def test_wrong_data_sets_for_yolo_are_named(yolo):
    labels = yolo.parent / "labels/val/c.txt"
    labels.write_text("1 0.5 0.5 0.25 1\n1 0 0 0 0 0 0\n")
    with pytest.raises(stoker.InvalidArgumentError, match="line 2: 7 numbers on this line") as caught:
        stoker.yolo(yolo, "val")
    assert str(labels) in str(caught.value)
    with pytest.raises(stoker.InvalidArgumentError, match="no images for 'test'"):
        stoker.yolo(yolo, "test")
    (yolo.parent / "images/val/d.gif").write_bytes(b"x")
    labels.unlink()
    with pytest.raises(stoker.InvalidArgumentError, match="1 image has no file of labels"):
        stoker.yolo(yolo, "val")
    labels.write_text("")
    with pytest.warns(stoker.SkippedFilesWarning, match="gif"):
        stoker.yolo(yolo, "val")
