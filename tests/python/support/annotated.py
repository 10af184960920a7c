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
