"""Writes small data sets of images with boxes."""

import json
import shutil


def write_coco(path, images, folder):
    """Writes `path`, of COCO's format, and copies the images to `folder`: image i has i % 3 boxes."""
    for each in (path.parent, folder):
        each.mkdir(parents=True, exist_ok=True)
    names = [shutil.copy(image, folder) for image in images]
    objects = [i for i in range(len(images)) for _ in range(i % 3)]
    made = {
        "images": [{"id": i, "file_name": name.name} for i, name in enumerate(map(type(path), names))],
        "annotations": [
            {"id": i, "image_id": image, "category_id": 7, "bbox": [1, 2, 3, 4]}
            for i, image in enumerate(objects)
        ],
        "categories": [{"id": 7, "name": "x"}],
    }
    path.write_text(json.dumps(made))


def write_yolo(folder, images):
    """Writes `data.yaml` and the splits train and val, in which each image has one box."""
    for split in ("train", "val"):
        for name in ("images", "labels"):
            (folder / name / split).mkdir(parents=True)
        for image in images:
            copy = shutil.copy(image, folder / "images" / split)
            labels = folder / "labels" / split / type(folder)(copy).with_suffix(".txt").name
            labels.write_text("0 0.5 0.5 0.25 1\n")
    (folder / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [x]\n")


def write_voc(folder, images, sizes=None, split="train"):
    """Writes the folder VOC2012 of images and masks: image i has i % 3 cats, the second of them difficult.
    `sizes`: heights and widths to write; None for none.
    """
    for name in ("JPEGImages", "Annotations", "SegmentationClass", "SegmentationObject"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images):
        copy = folder / "JPEGImages" / type(folder)(image).name
        shutil.copy(image, copy)
        (folder / "Annotations" / f"{copy.stem}.xml").write_text(voc_annotation(i % 3, sizes and sizes[i]))
        for name in ("SegmentationClass", "SegmentationObject"):
            (folder / name / f"{copy.stem}.png").write_bytes(b"")
    for name in ("Main", "Segmentation"):
        (folder / "ImageSets" / name).mkdir(parents=True, exist_ok=True)
        names = [f"{type(folder)(image).stem}\n" for image in images]
        (folder / "ImageSets" / name / f"{split}.txt").write_text("".join(names))


def voc_annotation(objects, size=None):
    made = "".join(
        f"<object><name>cat</name><difficult>{i % 2}</difficult><bndbox><xmin>{1 + i}</xmin><ymin>2</ymin>"
        "<xmax>7</xmax><ymax>8</ymax></bndbox></object>"
        for i in range(objects)
    )
    written = f"<size><width>{size[1]}</width><height>{size[0]}</height></size>" if size else ""
    return f"<annotation>{written}{made}</annotation>"
