"""The examples' data set: red, green and blue boxes and diamonds on noise, with boxes, polygons and masks.

In your own program, use your own files instead of those that `shapes.make(folder)` writes.
"""

import json
import pathlib

import numpy as np
from PIL import Image, ImageDraw

CLASSES = ("red", "green", "blue")
OUTLINES = np.array([[(0, 0), (1, 0), (1, 1), (0, 1)], [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)]])
LARGEST = 192  # pixels, of a side


def make(folder: pathlib.Path, count: int = 48) -> None:
    """Writes images/, masks/ (0 is background), COCO's boxes.json, and labels/ and data.yaml of YOLO."""
    random = np.random.default_rng(1)
    images, annotations = [], []
    for name in ("images", "masks", "labels"):
        (folder / name).mkdir()
    for number in range(count):
        width, height = map(int, random.integers(LARGEST // 2, LARGEST, 2, endpoint=True))
        noise = random.integers(90, 170, (height // 8, width // 8, 3), np.uint8)
        image = Image.fromarray(noise).resize((width, height), Image.BICUBIC)
        mask = Image.new("L", image.size)
        lines = []
        for label in range(random.integers(0, 4)):  # sometimes none
            w, h = map(int, random.uniform(0.2, 0.5, 2) * image.size)
            left, top = map(int, random.integers(0, (width - w, height - h)))
            points = ((left, top) + random.choice(OUTLINES) * (w, h)).ravel().tolist()
            colour = [40, 40, 40]
            colour[label] = 240
            ImageDraw.Draw(image).polygon(points, tuple(colour))
            ImageDraw.Draw(mask).polygon(points, label + 1)
            shape = {"bbox": [left, top, w, h], "area": w * h, "segmentation": [points], "iscrowd": 0}
            about = {"id": len(annotations) + 1, "image_id": number, "category_id": label + 1}
            annotations.append({**about, **shape})
            lines.append(
                f"{label} {(left + w / 2) / width} {(top + h / 2) / height} {w / width} {h / height}\n"
            )
        image.save(folder / "images" / f"{number:03}.jpg", quality=95)
        mask.save(folder / "masks" / f"{number:03}.png")
        (folder / "labels" / f"{number:03}.txt").write_text("".join(lines))
        images.append({"id": number, "file_name": f"{number:03}.jpg", "width": width, "height": height})
    categories = [{"id": id, "name": name} for id, name in enumerate(CLASSES, 1)]
    coco = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "boxes.json").write_text(json.dumps(coco))
    names = ", ".join(CLASSES)
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images\nval: images\nnames: [{names}]\n")
