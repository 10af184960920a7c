"""The work that all loaders do: the transform, the type of its output, and the photographs."""

import pathlib
import random
from typing import NamedTuple

BATCH, SIZE = 64, 224
# The mean and the standard deviation of ImageNet, for values from 0 to 1.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Workload(NamedTuple):
    """A transform of photographs, in batches of BATCH images of SIZE × SIZE pixels.

    train: RandomResizedCrop of 8 to 100 % of the area, ratio 3/4 to 4/3, and a flip; shuffled.
    recipe: train, then RandAugment(2, magnitude 7), Normalize, RandomErasing(0.25), as for "ResNet strikes
        back" (Wightman, Touvron, Jégou, 2021).
    eval: the shorter side to 256 pixels, then the centre; the first batch has the first files.
    Types other than uint8 are normalised by MEAN and STD.
    """

    transform: str
    dtype: str = "uint8"
    planar: bool = False  # NCHW, not NHWC; libraries for which only one is natural use that

    @property
    def train(self):
        return self.transform != "eval"

    @property
    def normalized(self):
        return self.dtype != "uint8"


WORKLOADS = {
    "train": Workload("train"),
    "train-f32": Workload("train", "float32"),
    "train-f16": Workload("train", "float16", planar=True),
    "eval": Workload("eval"),
    "recipe": Workload("recipe", "float32", planar=True),
}


class Data(NamedTuple):
    """The photographs, and what the loaders may use to read them."""

    photos: pathlib.Path  # class folders of JPEGs
    prepared: pathlib.Path  # the folder of what `prepare` of an adapter made
    cores: int

    def files(self):
        """Returns the paths, in the order of their names, as text."""
        paths = (p for p in self.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        return sorted(map(str, paths))

    def endless(self, shuffled):
        """Yields the paths of one pass after another, each in an order of its own if shuffled."""
        files = self.files()
        while True:
            if shuffled:
                random.shuffle(files)
            yield from files


def random_crop(width, height, draws):
    """Draws the crop of RandomResizedCrop as (left, top, width, height), for loaders that have no such
    transform. `draws` has uniform(low, high), as random and NumPy's generators."""
    from math import exp, log, sqrt

    for _ in range(10):
        area = width * height * draws.uniform(0.08, 1)
        ratio = exp(draws.uniform(log(3 / 4), log(4 / 3)))
        w, h = round(sqrt(area * ratio)), round(sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(draws.uniform(0, width - w + 1)), int(draws.uniform(0, height - h + 1)), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def center(width, height):
    """Returns eval's geometry, as torchvision has it: the whole image's size, left and top of its centre."""
    short = min(width, height)
    w, h = int(256 * width / short), int(256 * height / short)
    return w, h, round((w - SIZE) / 2), round((h - SIZE) / 2)


def normalize(images):
    """Returns a NumPy batch, normalised by MEAN and STD, for loaders that have no such transform."""
    import numpy as np

    return (images - np.float32(MEAN) * 255) / (np.float32(STD) * 255)
