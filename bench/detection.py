"""The images of torchvision's training of detectors (references/detection): stoker, and its own loader.

    python bench/detection.py PHOTOS [--rounds 7] [--seconds 4] [--cores 0] [--size 800] [--only NAME,…]

PHOTOS is a folder of photographs with boxes at random places, as in bench/rf_detr.py; those without boxes
are left out, as in the reference. The preset is "multiscale": the shorter side becomes 480 to `size` pixels
unless the longer one would be more than 1,333; flip at random; boxes as corners. A batch is 4 float32 images
of their own sizes, and the boxes, labels and id of each.

The reference is torchvision's CocoDetection with transforms.v2 on Pillow's images, which is its default, and
a DataLoader with the reference's collate function: in this process on one core, as a worker does, and with a
worker process for each of several cores. It is measured if torchvision and pycocotools are installed. Workers
are ahead by some batches, so take 10 seconds or more for several cores.

How they are compared: bench/in_turns.py.
"""

import os

from in_turns import SPEED, compare, torch_batches
from rf_detr import make_coco

BATCH, LONGEST = 4, 1333


def by_stoker(samples, size):
    import stoker
    import stoker.torch

    recipe = [
        stoker.RandomShortestSize(list(range(480, size + 1, 32)), max_size=LONGEST),
        stoker.RandomHorizontalFlip(),
        stoker.ConvertBoundingBoxFormat("xyxy"),
        stoker.SanitizeBoundingBoxes(),
        stoker.PadTo("batch"),
    ]
    loader = stoker.torch.DataLoader(
        stoker.coco(*samples[0], keep_empty=False),
        recipe,
        batch_size=BATCH,
        shuffle=True,
        exif_orientation=False,
        runtime=stoker.Runtime(threads=len(os.sched_getaffinity(0))),
    )
    while True:
        for batch in loader:
            images, _ = stoker.torch.images_and_targets(batch)
            yield len(images)


def by_torchvision(samples, size):
    import torch
    from torchvision import datasets
    from torchvision.transforms import v2

    file, photos = samples[0]
    recipe = [
        v2.RandomShortestSize(list(range(480, size + 1, 32)), max_size=LONGEST),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.ConvertBoundingBoxFormat("XYXY"),
        v2.SanitizeBoundingBoxes(),
        v2.ToPureTensor(),
    ]
    dataset = datasets.CocoDetection(photos, file, transforms=v2.Compose(recipe))
    dataset.ids = [image for image in dataset.ids if dataset.coco.getAnnIds(image)]
    dataset = datasets.wrap_dataset_for_transforms_v2(dataset, target_keys=("boxes", "labels", "image_id"))
    yield from torch_batches(dataset, BATCH, lambda batch: tuple(zip(*batch)))


LOADERS = {"stoker": by_stoker, "torchvision": by_torchvision}
NEEDS = {"torchvision": "torchvision, pycocotools"}

if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_coco, size=800, columns=SPEED)
