"""Images for the tests of processors: any size and aspect ratio, and every mode that files have."""

import io
import random

import numpy as np
from PIL import Image

ORIENTATION = 0x0112  # the tag of EXIF


def pixels(width, height, channels, seed):
    """Returns smooth colours with some noise, as photographs have."""
    if width * height > 10**7:  # of repeated parts
        part = pixels(width // 10, height // 10, channels, seed)
        return np.tile(part, (10, 10, 1))
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    waves = [128 + 100 * np.sin(x / (3 + 5 * c) + seed) * np.cos(y / (4 + 3 * c)) for c in range(channels)]
    noisy = np.stack(waves, axis=-1) + rng.integers(-20, 20, (height, width, 1))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def encoded(width, height, mode, form, seed, orientation=None):
    """Returns an image file."""
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    array = pixels(width, height, channels, seed)
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array, mode)
    options = {}
    if orientation is not None:
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        options["exif"] = exif
    if form == "JPEG":
        options.update(quality=90, subsampling=seed % 3 if mode == "RGB" else -1)
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def files(count, seed=0):
    """Yields (name, bytes) of images; the first have the extreme sizes."""
    draws = random.Random(seed)
    sizes = [(1, 1), (1, 2000), (2000, 1), (8000, 6000), (3, 3), (27, 29), (224, 224), (640, 480), (2, 300)]
    kinds = [("RGB", "JPEG"), ("RGB", "PNG"), ("L", "JPEG"), ("L", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"),
             ("CMYK", "JPEG")]  # fmt: skip
    for i in range(count):
        if i < len(sizes):
            width, height = sizes[i]
        else:
            area, aspect = 10 ** draws.uniform(2, 6.2), 2 ** draws.uniform(-3, 3)
            width, height = (max(1, round((area * by) ** 0.5)) for by in (aspect, 1 / aspect))
        mode, form = ("RGB", "JPEG") if i == 3 else kinds[draws.randrange(len(kinds))]
        turned = draws.randrange(1, 9) if form == "JPEG" and i % 4 == 0 else None
        yield (
            f"{i}: {width} x {height} {mode} {form} {turned}",
            encoded(width, height, mode, form, i, turned),
        )
