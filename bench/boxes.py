"""Photographs and the boxes of their objects on one core: stoker, torchvision's v2 transforms, and
Albumentations.

    python bench/boxes.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 640] [--only NAME,…]

PHOTOS is a folder of photographs. Each gets 7 boxes on average, as in COCO, at random places. Each loader
decodes it, takes a crop that keeps some of the boxes (torchvision's RandomIoUCrop, Albumentations'
RandomSizedBBoxSafeCrop, which draws nothing else), resizes it to size × size, flips it at random, and drops
boxes that are too small: the recipe of SSD and of RT-DETR without their colours. Batches have 16 images of
uint8. torchvision decodes by its own decoder, Albumentations by OpenCV; they are measured if they are
installed. Their samples are loaded one after the other in this process, as a worker of a DataLoader does, and
stacked into batches.

How they are compared: bench/in_turns.py.
"""

import numpy as np
from in_turns import compare, endless, photographs

BATCH = 16


def make_boxes(photos, folder):
    """Returns the path, the boxes (xyxy) and the labels of each photograph."""
    from PIL import Image

    random = np.random.default_rng(1)
    samples = []
    for path in photographs(photos):
        with Image.open(path) as photo:
            size = np.array([*photo.size, *photo.size])
        count = int(random.geometric(1 / 8)) - 1  # 7 on average, and sometimes none
        first, last = random.random((count, 2)), random.random((count, 2))
        boxes = np.concatenate([np.minimum(first, last), np.maximum(first, last)], 1) * size
        samples.append((str(path), boxes.round(2).tolist(), random.integers(0, 80, count).tolist()))
    return samples


def loader_of(samples, recipe):
    """Returns a loader of one thread, of uint8."""
    import stoker

    paths, boxes, labels = zip(*samples)
    columns = {
        "boxes": stoker.Boxes([np.array(b, np.float32).reshape(-1, 4) for b in boxes]),
        "labels": stoker.PerObject([np.array(each, np.int64) for each in labels]),
    }
    return stoker.Loader(
        stoker.files(paths, columns=columns),
        recipe,
        batch_size=BATCH,
        shuffle=True,
        exif_orientation=False,
        runtime=stoker.Runtime(threads=1),
    )


def by_stoker(samples, size):
    import stoker

    recipe = [
        stoker.RandomIoUCrop(),
        stoker.Resize((size, size)),
        stoker.RandomHorizontalFlip(),
        stoker.SanitizeBoundingBoxes(),
    ]
    yield from (len(batch.image) for batch in endless(loader_of(samples, recipe)))


def by_torchvision(samples, size):
    import torch
    from torchvision import tv_tensors
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    recipe = v2.Compose(
        [
            v2.RandomIoUCrop(),
            v2.Resize((size, size), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.SanitizeBoundingBoxes(),
        ]
    )

    def load(i):
        path, boxes, labels = samples[i]
        image = tv_tensors.Image(decode_image(path, ImageReadMode.RGB))
        boxes = torch.tensor(boxes).reshape(-1, 4)
        boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=image.shape[-2:])
        made = recipe({"image": image, "boxes": boxes, "labels": torch.tensor(labels, dtype=torch.int64)})
        return made["image"]

    yield from stacked(load, len(samples), torch.stack)


def by_albumentations(samples, size):
    import albumentations
    import cv2

    cv2.setNumThreads(1)
    recipe = albumentations.Compose(
        [
            albumentations.RandomSizedBBoxSafeCrop(height=size, width=size),
            albumentations.HorizontalFlip(),
        ],
        bbox_params=albumentations.BboxParams(
            format="pascal_voc",
            label_fields=["labels"],
            min_width=1,
            min_height=1,
            filter_invalid_bboxes=True,
        ),
    )

    def load(i):
        path, boxes, labels = samples[i]
        image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
        return recipe(image=image, bboxes=np.array(boxes).reshape(-1, 4), labels=labels)["image"]

    yield from stacked(load, len(samples), np.stack)


LOADERS = {"stoker": by_stoker, "torchvision v2": by_torchvision, "Albumentations": by_albumentations}
NEEDS = {"torchvision v2": "torchvision", "Albumentations": "albumentations"}


def stacked(load, count, stack):
    random = np.random.default_rng(0)
    while True:
        order = random.permutation(count)
        for begin in range(0, count, BATCH):
            yield len(stack([load(i) for i in order[begin : begin + BATCH]]))


if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_boxes, size=640)
