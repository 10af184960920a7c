"""Whether a loader's first batch is what the workload asks for. Only then it is timed."""

import numpy as np
from environments import Failed
from PIL import Image
from workload import BATCH, MEAN, SIZE, STD, center

STRIDE = 4  # of the pixels that are compared
# Grey levels in the mean of eval's batch. Another geometry, by a pixel, is 5; red and blue exchanged are 20.
MOST_DIFFERENT = 8
MOST_OFF = 25  # grey levels in the mean of a batch


def reference(files):
    """Returns eval's images, made by Pillow, with every STRIDE-th row and column."""
    made = np.empty((len(files), SIZE // STRIDE, SIZE // STRIDE, 3), np.int16)
    for row, path in zip(made, files):
        with Image.open(path) as image:
            width, height, left, top = center(*image.size)
            resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
            row[:] = np.asarray(resized)[top : top + SIZE : STRIDE, left : left + SIZE : STRIDE]
    return made


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
    """Returns what the table says of the output.

    eval: images must be near those of `expected`, and no two near the same one. The others are random: the
    mean of each channel must be near that of `expected`, and no two images may be alike.
    """
    seen = np.rint(pixels(batch, workload)).astype(np.int16)[:, ::STRIDE, ::STRIDE]
    if workload.train:
        off = np.abs(seen.mean((0, 1, 2)) - expected.mean((0, 1, 2))).max()
        if not off <= MOST_OFF:
            raise Failed(f"the mean of its batch is off by {off:.1f} grey levels")
        if len({image.tobytes() for image in seen}) != BATCH:
            raise Failed("its batch has an image twice")
        return ""
    differences = np.stack([np.abs(expected - image).mean((1, 2, 3)) for image in seen])
    mean = differences.min(1).mean()
    if mean > MOST_DIFFERENT:
        raise Failed(f"its images differ from Pillow's by {mean:.1f} grey levels in the mean")
    if len(set(differences.argmin(1))) != BATCH:
        raise Failed("two of its images are those of one photograph")
    return f"{mean:.1f}"
