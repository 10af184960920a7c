"""Checks that a loader's first batch is what the workload asks for. Otherwise the loader is not timed."""

import numpy as np
from environments import Failed
from PIL import Image
from workload import BATCH, MEAN, SIZE, STD, center

STRIDE = 4  # of the pixels that are compared
# Differences in grey levels. Where a library crops a pixel further, the mean of a batch is 5, and that of an
# image of fine texture 25. Exchanged red and blue are 20, other photographs 40 to 100.
MOST_OF_BATCH, MOST_OF_IMAGE = 8, 35
MOST_OF_CHANNEL = 30  # between the means of random crops, and of the centres of other photographs


def reference(files):
    """Returns eval's images, made by Pillow, with every STRIDE-th row and column."""
    made = np.empty((len(files), SIZE // STRIDE, SIZE // STRIDE, 3), np.int16)
    for row, path in zip(made, files):
        with Image.open(path) as image:
            width, height, left, top = center(*image.size)
            resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
            row[:] = np.asarray(resized)[top : top + SIZE : STRIDE, left : left + SIZE : STRIDE]
    return made


def expected(files, workload):
    """Returns what check() needs: the images of the first files for eval, of any for the other workloads."""
    return reference(files[:: len(files) // BATCH][:BATCH] if workload.train else files[:BATCH])


def pixels(batch, workload):
    """Returns a batch as NHWC with values from 0 to 255; raises Failed if shape or type are wrong."""
    if batch.shape == (BATCH, 3, SIZE, SIZE):
        batch = batch.transpose(0, 2, 3, 1)
    if batch.shape != (BATCH, SIZE, SIZE, 3) or batch.dtype != workload.dtype:
        raise Failed(f"its batch is {batch.dtype} {batch.shape}")
    if workload.normalized:
        return (batch.astype(np.float32) * np.float32(STD) + np.float32(MEAN)) * 255
    return batch


def check(batch, workload, expected):
    """Returns what the table says of the output; raises Failed if it is wrong.

    eval: the images must be near those of `expected`, one by one. The others are random: the mean of each
    channel must be near that of `expected`, and no two images may be alike.
    """
    seen = np.rint(pixels(batch, workload)).astype(np.int16)[:, ::STRIDE, ::STRIDE]
    if workload.train:
        off = np.abs(seen.mean((0, 1, 2)) - expected.mean((0, 1, 2))).max()
        if not off <= MOST_OF_CHANNEL:
            raise Failed(f"the mean of a channel is off by {off:.1f} grey levels")
        if len({image.tobytes() for image in seen}) != BATCH:
            raise Failed("its batch has an image twice")
        return ""
    differences = np.abs(expected - seen).mean((1, 2, 3))
    mean, worst = differences.mean(), differences.max()
    if worst > MOST_OF_IMAGE:
        raise Failed(f"image {differences.argmax()} differs from Pillow's by {worst:.1f} grey levels")
    if mean > MOST_OF_BATCH:
        raise Failed(f"its images differ from Pillow's by {mean:.1f} grey levels in the mean")
    return f"{mean:.1f}"
