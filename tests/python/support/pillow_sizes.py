"""Resize with max_size as torchvision and Pillow do it: the reference of tests."""

import numpy as np
import PIL.Image
import PIL.ImageOps


def size_after(size, max_size, height, width):
    """Returns the (height, width) of torchvision.transforms.v2.Resize(size, max_size=max_size)."""
    short, long = sorted((height, width))
    if size is None:
        new = (int(max_size * short / long), max_size)
    else:
        new = (size, int(size * long / short))
        if new[1] > max_size:
            new = (int(max_size * new[0] / new[1]), max_size)
    new = (max(1, new[0]), new[1])
    return new if height <= width else new[::-1]


def resized(image, size, max_size, interpolation):
    """Returns Pillow's image, resized by Pillow, as uint8 (height, width, 3). `interpolation`: "bicubic",
    …
    """
    height, width = size_after(size, max_size, image.height, image.width)
    return np.asarray(image.resize((width, height), getattr(PIL.Image.Resampling, interpolation.upper())))


def viewed(path):
    """Returns the photograph as Pillow decodes it, turned as its EXIF orientation says."""
    return PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")
