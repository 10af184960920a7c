"""Photographs and their masks on one core: stoker.masks, their packed set, two stoker loaders zipped,
torchvision's v2 transforms, and Albumentations.

    python bench/masks.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 256] [--only NAME,…]

PHOTOS is a folder of photographs. Masks are made of them in a temporary folder: palette PNGs with 21
classes, in patches that follow the photographs' edges, as annotators draw them. Each loader decodes both,
takes the same random crop of both (RandomResizedCrop, nearest for the mask), and flips them; batches have 16
pairs of uint8. torchvision and Albumentations are measured if they are installed; their samples are loaded
one after the other in this process, as a worker of a DataLoader does, and stacked into batches.

How they are compared: bench/in_turns.py.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
from in_turns import compare, endless, photographs

CLASSES = 21
BATCH = 16
OPTIONS = {"batch_size": BATCH, "shuffle": True, "exif_orientation": False}


def make_masks(photos, folder):
    """Writes a palette PNG of each photograph's bright and dark patches, packs both, returns the paths."""
    from PIL import Image, ImageFilter

    colours = np.random.default_rng(1).integers(0, 256, 768, np.uint8).tobytes()
    pairs = []
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for i, path in enumerate(photographs(photos)):
        with Image.open(path) as photo:
            small = photo.convert("L").filter(ImageFilter.GaussianBlur(4))
        values = (np.asarray(small, np.uint16) * CLASSES // 256).astype(np.uint8)
        mask = Image.fromarray(values, mode="P")
        mask.putpalette(colours)
        pairs.append((str(folder / f"images/{i}.jpg"), str(folder / f"masks/{i}.png")))
        os.symlink(path.resolve(), pairs[-1][0])
        mask.save(pairs[-1][1])
    words = ["pack", folder / "images", folder / "set", "--source-option", f"masks={folder / 'masks'}"]
    subprocess.run([sys.executable, "-m", "stoker", *map(str, words)], check=True)
    return pairs


def by_stoker(pairs, size):
    import stoker

    images, masks = zip(*pairs)
    yield from _batches_of(stoker.files(images, columns={"mask": stoker.Mask(masks)}), size)


def by_packed(pairs, size):
    import stoker

    yield from _batches_of(stoker.packed(pathlib.Path(pairs[0][0]).parents[1] / "set"), size)


def _batches_of(source, size):
    import stoker

    recipe = [stoker.RandomResizedCrop(size), stoker.RandomHorizontalFlip()]
    loader = stoker.Loader(source, recipe, runtime=stoker.Runtime(threads=1), **OPTIONS)
    yield from (len(batch.image) for batch in endless(loader))


def by_two_loaders(pairs, size):
    import stoker

    flip = stoker.RandomHorizontalFlip()
    runtime = stoker.Runtime(threads=1)
    both = [
        endless(stoker.Loader(stoker.files(paths), recipe, runtime=runtime, **OPTIONS))
        for paths, recipe in zip(
            zip(*pairs),
            (
                [stoker.RandomResizedCrop(size), flip],
                [stoker.RandomResizedCrop(size, interpolation="nearest"), flip],
            ),
        )
    ]
    yield from (len(images) for images, _ in zip(*both))


def by_torchvision(pairs, size):
    import torch
    from PIL import Image
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    recipe = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])

    def load(i):
        image, mask = (Image.open(path) for path in pairs[i])
        image = tv_tensors.Image(torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1))
        return recipe(image, tv_tensors.Mask(torch.from_numpy(np.array(mask))))

    yield from stacked(load, len(pairs), torch.stack)


def by_albumentations(pairs, size):
    import albumentations
    import cv2
    from PIL import Image

    cv2.setNumThreads(1)
    recipe = albumentations.Compose(
        [albumentations.RandomResizedCrop(size=(size, size)), albumentations.HorizontalFlip()]
    )

    def load(i):
        image = cv2.cvtColor(cv2.imread(pairs[i][0]), cv2.COLOR_BGR2RGB)
        made = recipe(image=image, mask=np.array(Image.open(pairs[i][1])))
        return made["image"], made["mask"]

    yield from stacked(load, len(pairs), np.stack)


LOADERS = {
    "stoker.masks": by_stoker,
    "packed set": by_packed,
    "two stoker loaders": by_two_loaders,
    "torchvision v2": by_torchvision,
    "Albumentations": by_albumentations,
}
NEEDS = {"torchvision v2": "torchvision", "Albumentations": "albumentations"}


def stacked(load, count, stack):
    random = np.random.default_rng(0)
    while True:
        order = random.permutation(count)
        for begin in range(0, count, BATCH):
            images, masks = zip(*map(load, order[begin : begin + BATCH]))
            yield len(stack(images)) + 0 * len(stack(masks))


if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_masks, size=256)
