"""RF-DETR's training images: stoker, and RF-DETR's own dataset class.

    python bench/rf_detr.py PHOTOS [--rounds 7] [--seconds 4] [--cores 0] [--size 560] [--only NAME,…]

PHOTOS is a folder of photographs. Each gets 7 boxes on average, as in COCO, at random places, in a file of
COCO's format that both read. The recipe is RF-DETR's default, that of rfdetr.datasets.coco: half of the
images are resized to a shorter side of 400, 500 or 600 pixels and cropped; then all are resized to size ×
size, flipped at random and normalized to float32. Boxes are shares of the image (cx, cy, w, h); those outside
a crop are dropped. Batches have 16 images. Loaders named "whole" leave the crops out (scale_jitter=False);
those named "scales" draw one of RF-DETR's 8 sizes for each image, and pad the batch to its largest
(multi_scale="per-sample").

RF-DETR's class decodes with simplejpeg, at a reduced size where that is enough, if simplejpeg is installed,
and its batches are collated by its own function: in this process on one core, as a worker of a DataLoader
does, and in a worker process for each of several cores. Workers are ahead by some batches, so take 10 seconds
or more for several cores. The class is measured if rfdetr is installed, which is not among stoker's
requirements.

How they are compared: bench/in_turns.py.
"""

import functools
import json
import os
import pathlib

from boxes import BATCH, make_boxes
from in_turns import SPEED, compare, endless, torch_batches

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PATCH = {"patch_size": 14, "num_windows": 4}  # sizes are multiples of 56


def make_coco(photos, folder):
    """Writes a file of COCO's format to the folder; returns it and the photographs' folder for each image."""
    from PIL import Image

    images, annotations = [], []
    for path, boxes, labels in make_boxes(photos, folder):
        with Image.open(path) as photo:
            width, height = photo.size
        name = str(pathlib.Path(path).relative_to(photos))
        images.append({"id": len(images), "file_name": name, "width": width, "height": height})
        for (left, top, right, bottom), label in zip(boxes, labels):
            box = [left, top, right - left, bottom - top]
            about = {"id": len(annotations) + 1, "image_id": len(images) - 1, "category_id": label}
            annotations.append({**about, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
    categories = [{"id": label, "name": f"class {label}"} for label in range(80)]
    made = {"images": images, "annotations": annotations, "categories": categories}
    file = folder / "annotations.json"
    file.write_text(json.dumps(made), encoding="utf-8")
    return [(str(file), str(photos.resolve()))] * len(images)


def by_stoker(samples, size, crops=True, scales=False):
    import stoker

    shorter, crop = stoker.RandomShortestSize([400, 500, 600]), stoker.RandomSizeCrop(384, 600, square=True)
    squares = [stoker.Resize((size + 56 * n, size + 56 * n)) for n in range(-3, 5)]
    recipe = [
        *([stoker.RandomApply([shorter, crop], p=0.5)] if crops else []),
        stoker.RandomChoice(squares) if scales else stoker.Resize((size, size)),
        *([stoker.SanitizeBoundingBoxes()] if crops else []),
        stoker.RandomHorizontalFlip(),
        stoker.ConvertBoundingBoxFormat("cxcywh", normalized=True),
        stoker.Normalize(mean=MEAN, std=STD),
        *([stoker.PadTo("batch", multiple=56)] if scales else []),
    ]
    loader = stoker.Loader(
        stoker.coco(*samples[0]),
        recipe,
        batch_size=BATCH,
        shuffle=True,
        dtype="float32",
        layout="NCHW",
        exif_orientation=False,
        runtime=stoker.Runtime(threads=len(os.sched_getaffinity(0))),
    )
    yield from (len(batch.image) for batch in endless(loader))


def by_rfdetr(samples, size, crops=True, scales=False):
    from rfdetr.datasets.coco import (
        CocoDetection,
        draft_size_for_transforms,
        make_coco_transforms_square_div_64,
    )
    from rfdetr.utilities.tensors import make_collate_fn

    file, photos = samples[0]
    options = {"multi_scale": scales, "scale_jitter": crops, **PATCH}
    dataset = CocoDetection(
        photos,
        file,
        make_coco_transforms_square_div_64("train", size, **options),
        draft_size=draft_size_for_transforms("train", size, **options),
    )
    yield from torch_batches(dataset, BATCH, make_collate_fn(pack=True))


LOADERS = {}
NEEDS = {}
for title, options in (("", {}), (" (whole)", {"crops": False}), (" (scales)", {"scales": True})):
    LOADERS["stoker" + title] = functools.partial(by_stoker, **options)
    LOADERS["RF-DETR" + title] = functools.partial(by_rfdetr, **options)
    NEEDS["RF-DETR" + title] = "rfdetr"

if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_coco, size=560, columns=SPEED)
