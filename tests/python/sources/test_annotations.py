"""Images with boxes, from COCO's, VOC's and YOLO's files. tests/io/annotations has the cases of their
parsers.
"""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from annotated import write_coco, write_voc

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
    annotations = [{"id": 1, "image_id": 5, "category_id": 3, "bbox": [10, 4, 8, 6]}]
    files = coco()
    image.save(files[1] / "5.jpg", exif=exif)
    resize = [stoker.Resize((20, 40))]
    stored, viewed = {"width": 40, "height": 20}, {"width": 20, "height": 40}
    for size, exif_orientation, box in (
        (stored, False, [10, 4, 8, 6]),
        (viewed, True, [20, 2, 16, 3]),
        ({}, True, [20, 2, 16, 3]),
    ):
        files = coco(images=[{"id": 5, "file_name": "5.jpg", **size}], annotations=annotations)
        (batch,) = stoker.Loader(stoker.coco(*files), resize, batch_size=1, exif_orientation=exif_orientation)
        assert batch.boxes[0].tolist() == [box]
    for size, exif_orientation in ((stored, True), (viewed, False)):
        files = coco(images=[{"id": 5, "file_name": "5.jpg", **size}], annotations=annotations)
        loader = stoker.Loader(stoker.coco(*files), resize, batch_size=1, exif_orientation=exif_orientation)
        with pytest.raises(stoker.DataLossError, match="EXIF orientation"):
            list(loader)


@pytest.mark.parametrize("kind", ["coco", "voc"])
def test_an_image_of_another_size_is_its_samples_error(made, tmp_path, kind):
    """The files of annotations name both sizes, for loaders and `stoker verify`."""
    images = sorted(made.rglob("*.jpg"))[:4]
    sizes = [stoker.decode_image(path).shape[:2] for path in images]
    if kind == "coco":
        write_coco(tmp_path / "a.json", images, tmp_path / "photos")
        named, source_options = tmp_path / "a.json", ["--source-option", f"images={tmp_path / 'photos'}"]
        text = json.loads(named.read_text())
        for image, (height, width) in zip(text["images"], sizes):
            image.update(width=width + (image["id"] == 2), height=height)
        text["annotations"].append({"id": 9, "image_id": 1, "category_id": 7, "bbox": [-9, 1, 8, 8]})
        named.write_text(json.dumps(text))
        arguments = named, tmp_path / "photos"
    else:
        write_voc(tmp_path / "VOC2012", images, [(h, w + (i == 2)) for i, (h, w) in enumerate(sizes)])
        named, source_options = tmp_path / f"VOC2012/Annotations/{images[2].stem}.xml", []
        arguments = (tmp_path,)
    source = getattr(stoker, kind)(*arguments)
    words = re.escape(f"the image has {sizes[2][1]} × {sizes[2][0]} pixels, but {named} says that it has")
    for recipe in ([stoker.Resize((20, 20))], [stoker.Mosaic(32)]):
        with pytest.raises(stoker.DataLossError, match=words) as error:
            list(stoker.Loader(source, recipe, batch_size=4))
        assert error.value.file == source.path(2)
    (batch,) = stoker.Loader(
        source, [stoker.Resize((20, 20))], batch_size=4, on_bad="drop", max_bad_fraction=1, sample_ids=True
    )
    assert batch.sample_id.tolist() == [0, 1, 3]
    unchecked = getattr(stoker, kind)(*arguments, check_sizes=False)
    assert repr(unchecked).endswith(", check_sizes=False)")
    assert pickle.loads(pickle.dumps(unchecked))._spec == unchecked._spec
    assert unchecked._spec["fingerprint"] == source._spec["fingerprint"]
    (batch,) = stoker.Loader(unchecked, [stoker.Resize((20, 20))], batch_size=4)
    assert len(batch.image) == 4
    given = named if kind == "coco" else tmp_path / "VOC2012"
    verified = subprocess.run(
        [sys.executable, "-m", "stoker", "verify", given, *source_options, "--json"], capture_output=True
    )
    report = json.loads(verified.stdout)
    assert verified.returncode == 1 and [bad["id"] for bad in report["bad"]] == [2]
    assert re.match(words, report["bad"][0]["cause"])
    assert report["boxes_without_area"] == (1 if kind == "coco" else 0)
    source_options += ["--source-option", "check_sizes=off"]
    subprocess.run([sys.executable, "-m", "stoker", "verify", given, *source_options], check=True)


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
    labels.write_text("1 0.5 0.5 0.25 1\n1 0 0 0 0 0\n")
    with pytest.raises(stoker.InvalidArgumentError, match="line 2: 6 numbers on this line") as caught:
        stoker.yolo(yolo, "val")
    assert str(labels) in str(caught.value)
    with pytest.raises(stoker.InvalidArgumentError, match="no images for 'test'"):
        stoker.yolo(yolo, "test")
    (yolo.parent / "images/val/d.exr").write_bytes(b"x")
    labels.unlink()
    with pytest.raises(stoker.InvalidArgumentError, match="1 image has no file of labels"):
        stoker.yolo(yolo, "val")
    labels.write_text("")
    with pytest.warns(stoker.SkippedFilesWarning, match="exr"):
        stoker.yolo(yolo, "val")


@pytest.fixture
def voc(tmp_path):
    """A data set of three images, of 0, 1 and 2 objects; returns the folder that VOCdevkit is in."""
    images = [tmp_path / f"{i}.jpg" for i in range(3)]
    for image in images:
        image.write_bytes(b"x")
    write_voc(tmp_path / "VOCdevkit/VOC2007", images)
    return tmp_path


def test_voc_has_the_objects_of_a_list(voc):
    source = stoker.voc(voc, "2007")
    folder = voc / "VOCdevkit/VOC2007"
    assert [source.path(i) for i in range(3)] == [str(folder / f"JPEGImages/{i}.jpg") for i in range(3)]
    assert source.object_counts.tolist() == [0, 1, 2]
    assert len(source.classes) == 20 and source.classes == sorted(source.classes)
    assert repr(source) == f"stoker.voc({str(voc)!r}, '2007', 'train')"
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._spec == source._spec
    unsaid = stoker.voc(folder)
    for same in (stoker.voc(folder, "2007"), unsaid, pickle.loads(pickle.dumps(unsaid))):
        assert same._spec["fingerprint"] == source._spec["fingerprint"]


def test_voc_takes_options(voc):
    options = {"keep_difficult": False, "one_based": False, "class_names": ["dog", "cat"]}
    source = stoker.voc(voc, "2007", **options)
    assert source.object_counts.tolist() == [0, 1, 1] and source.classes == ["dog", "cat"]
    assert repr(source).endswith(", keep_difficult=False, one_based=False, class_names=['dog', 'cat'])")
    assert pickle.loads(pickle.dumps(source))._spec == source._spec
    masks = stoker.voc(voc, "2007", task="segmentation", instances=True, fill=0)
    assert masks.path(1, "instances").endswith("SegmentationObject/1.png")
    assert repr(masks).endswith("'train', 'segmentation', instances=True, fill=0)")
    assert pickle.loads(pickle.dumps(masks))._spec == masks._spec
    with pytest.raises(stoker.InvalidArgumentError, match="task"):
        stoker.voc(voc, "2007", task="keypoints")
    for option in ({"instances": True}, {"fill": 0}):
        with pytest.raises(stoker.InvalidArgumentError, match="instances and fill are of segmentation"):
            stoker.voc(voc, "2007", **option)
    with pytest.raises(stoker.InvalidArgumentError, match="are of detection"):
        stoker.voc(voc, "2007", task="segmentation", class_names=["cat"])
    with pytest.raises(stoker.InvalidArgumentError, match="class_names"):
        stoker.voc(voc, "2007", class_names=["a\nb"])


def test_wrong_data_sets_of_voc_are_named(voc):
    with pytest.raises(stoker.NotFoundError, match="no folder VOC2012"):
        stoker.voc(voc)
    with pytest.raises(stoker.NotFoundError, match="The folder has: train"):
        stoker.voc(voc, "2007", "val")
    wrong = voc / "VOCdevkit/VOC2007/Annotations/1.xml"
    wrong.write_text(wrong.read_text().replace("cat", "lynx"))
    with pytest.raises(stoker.InvalidArgumentError, match="line 1: 'lynx' is not one of the 20") as caught:
        stoker.voc(voc, "2007")
    assert str(wrong) in str(caught.value)


def random_voc(folder, rng, image_module):
    """Writes images of VOC's layout, with boxes and masks that have a palette."""
    objects = ["aeroplane", "cat", "person", "tvmonitor"]
    names = [f"2007_{i:06}" for i in range(12)]
    for name in names:
        width, height = (int(side) for side in rng.integers(20, 60, 2))
        made = ""
        for _ in range(rng.integers(0, 5)):
            left, top = rng.integers(1, [width, height])
            right, bottom = rng.integers([left, top], [width + 1, height + 1])
            flags = "".join(
                f"<{flag}>{rng.integers(2)}</{flag}>" for flag in ("truncated", "difficult", "occluded")
            )
            part = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin></bndbox></part>"
            made += (
                f"\n<object>\n<name>{rng.choice(objects)}</name>\n<pose>Left</pose>{flags}\n<bndbox><xmin>{left}"
                f"</xmin><ymin>{top}.25</ymin><xmax>{right}</xmax><ymax>{bottom}.5</ymax></bndbox>"
                f"{part * int(rng.integers(2))}\n</object>"
            )
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        text = f"<annotation><folder>VOC2007</folder><filename>{name}.jpg</filename>{size}{made}</annotation>"
        (folder / "Annotations" / f"{name}.xml").write_text(text)
        pixels = rng.integers(0, 255, (height, width, 3), np.uint8)
        image_module.fromarray(pixels).save(folder / "JPEGImages" / f"{name}.jpg")
        for kind in ("SegmentationClass", "SegmentationObject"):
            mask = image_module.fromarray(
                rng.choice([0, 1, 2, 20, 255], (height, width)).astype(np.uint8), "P"
            )
            mask.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
            mask.save(folder / kind / f"{name}.png")
    for task in ("Main", "Segmentation"):
        order = rng.permutation(names)
        (folder / "ImageSets" / task / "val.txt").write_text("".join(f"{name}\n" for name in order))


def test_voc_is_read_as_by_torchvision(voc):
    datasets = pytest.importorskip("torchvision.datasets")
    image_module = pytest.importorskip("PIL.Image")
    random_voc(voc / "VOCdevkit/VOC2007", np.random.default_rng(5), image_module)
    source = stoker.voc(voc, "2007", "val")
    theirs = datasets.VOCDetection(voc, "2007", "val")
    assert [source.path(i) for i in range(len(source))] == [str(path) for path in theirs.images]
    (batch,) = stoker.Loader(source, [stoker.PadTo(60)], batch_size=len(source))
    seen = 0
    for i, (_, wanted) in enumerate(theirs):
        objects = wanted["annotation"].get("object", [])
        assert len(batch["boxes"][i]) == len(objects)
        for k, each in enumerate(objects):
            seen += 1
            box = [float(each["bndbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")]
            assert batch["boxes"][i][k].tolist() == [box[0] - 1, box[1] - 1, *box[2:]]
            assert source.classes[batch["labels"][i][k]] == each["name"]
            for flag in ("difficult", "truncated", "occluded"):
                assert batch[flag][i][k] == int(each[flag])
    assert seen > 10


def test_masks_of_voc_are_those_of_torchvision(voc):
    datasets = pytest.importorskip("torchvision.datasets")
    image_module = pytest.importorskip("PIL.Image")
    random_voc(voc / "VOCdevkit/VOC2007", np.random.default_rng(6), image_module)
    source = stoker.voc(voc, "2007", "val", "segmentation", instances=True)
    theirs = datasets.VOCSegmentation(voc, "2007", "val")
    batches = stoker.Loader(source, [stoker.PadTo(60)], batch_size=1)
    for i, batch in enumerate(batches):
        wanted = np.asarray(theirs[i][1])
        height, width = wanted.shape
        assert source.path(i, "mask") == str(theirs.masks[i])
        instances = np.asarray(image_module.open(source.path(i, "instances")))
        for name, values in (("mask", wanted), ("instances", instances)):
            mask = batch[name][0]
            assert np.array_equal(mask[:height, :width], values)
            assert (mask[height:] == 255).all() and (mask[:, width:] == 255).all()
