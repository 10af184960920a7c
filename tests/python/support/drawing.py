"""Runs the program draw_plan, and torchvision for comparison.

STOKER_BUILD: the build directory (repository.py).
STOKER_PHOTOS: a directory of photographs; a few made ones otherwise.
"""

import json
import math
import os
import pathlib
import subprocess

import numpy as np
import PIL.Image
import PIL.ImageOps
from repository import BUILD

DRAW_PLAN = BUILD / "tests" / "transforms" / "plan" / "draw_plan"


def spec_of(transforms, **options):
    return json.dumps({"transforms": transforms, **options})


def drawn(transforms, width, height, count, **options):
    """Returns what is drawn for `count` images of that size."""
    command = [DRAW_PLAN, spec_of(transforms, **options), f"{width}x{height}x{count}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def applied(transforms, files, shape, dtype="uint8"):
    """Returns the rows (three planes each) and what was drawn for them."""
    command = [DRAW_PLAN, spec_of(transforms, dtype=dtype, layout="NCHW"), *files]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rows = np.frombuffer(done.stdout, dtype).reshape(len(files), 3, *shape)
    return rows, [json.loads(line) for line in done.stderr.decode().splitlines()]


def decoded(path):
    """Returns three planes, as Pillow decodes them (test_pillow.py compares our decoder with Pillow)."""
    image = PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def photographs():
    folder = os.environ.get("STOKER_PHOTOS")
    files = [p for p in pathlib.Path(folder).rglob("*") if p.is_file()] if folder else []
    return sorted(p for p in files if p.name[0] != ".")


def made_arrays(sizes, seed=7):
    """Returns noise on slopes, with fully saturated colours, and flat parts."""
    random = np.random.default_rng(seed)
    for height, width in sizes:
        y, x = np.mgrid[0:height, 0:width]
        slopes = np.stack([255 * x / width, 255 * y / height, 127 + 127 * np.sin((x + y) / 9)], -1)
        image = slopes + random.normal(0, 20, (height, width, 3))
        image[: height // 4, : width // 4] = random.integers(0, 256, 3)
        yield np.clip(image, 0, 255).astype(np.uint8)


def write_jpegs(folder, arrays):
    files = []
    for n, array in enumerate(arrays):
        files.append(folder / f"{n:03}.jpg")
        PIL.Image.fromarray(array).save(files[-1], quality=95, subsampling=0)
    return files


class Differences:
    """The differences between our values and theirs, over many images. Shares are 0 if there are no
    images.
    """

    def __init__(self):
        self.largest, self.total, self.values, self.differing, self.beyond_one = 0.0, 0.0, 0, 0, 0
        self.images = 0

    def add(self, ours, theirs):
        difference = np.abs(ours.astype(np.float64) - np.asarray(theirs, np.float64))
        self.largest = max(self.largest, float(difference.max()))
        self.total += float(difference.sum())
        self.differing += int(np.count_nonzero(difference))
        self.beyond_one += int(np.count_nonzero(difference > 1))
        self.values += difference.size
        self.images += 1

    @property
    def share(self):
        """The share of values that differ."""
        return self.differing / max(1, self.values)

    @property
    def share_beyond_one(self):
        return self.beyond_one / max(1, self.values)

    def report(self, what):
        print(
            f"\n{what}: {self.images} images, largest {self.largest:.4g}, "
            f"mean {self.total / max(1, self.values):.3g}, {self.share:.3g} differ, "
            f"{self.share_beyond_one:.3g} by more than 1"
        )


# ---- torchvision's functions for our steps.


def inverse_of(matrix):
    """Returns the arguments of torchvision's affine or rotate for the matrix of one of a policy's steps."""
    a, b, c, d, e, f = matrix
    if (a, e) == (1, 1) and (b, d) == (0, 0):
        return "translate", [-c, -f]
    if (a, e) == (1, 1):
        return "shear", [math.degrees(math.atan(b)), math.degrees(math.atan(d))]
    return "rotate", math.degrees(math.atan2(d, a))


def coefficients_of(step, height, width):
    """Returns torchvision's coefficients of a projective map."""
    matrix = np.array([*step["matrix"], *step["divisor"], 1]).reshape(3, 3)
    to_middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    whole = np.linalg.inv(to_middle) @ matrix @ to_middle
    return (whole / whole[2, 2]).ravel()[:8].tolist()


def theirs_of_affine(functional, step, image, fill):
    mode = functional.InterpolationMode(step["interpolation"])
    if any(step["divisor"]):
        coefficients = coefficients_of(step, *image.shape[-2:])
        options = {"interpolation": mode, "fill": fill, "coefficients": coefficients}
        return functional.perspective(image, None, None, **options)
    kind, value = inverse_of(step["matrix"])
    if kind == "rotate":
        return functional.rotate(image, value, interpolation=mode, fill=fill)
    if kind == "translate":
        translate = [int(v) for v in value]
        return functional.affine(image, 0.0, translate, 1.0, [0.0, 0.0], interpolation=mode, fill=fill)
    return functional.affine(image, 0.0, [0, 0], 1.0, value, interpolation=mode, fill=fill, center=[0, 0])


def between_pixels(matrix, height, width, within=1e-3, divisor=(0, 0)):
    """Marks where the source position of a pixel is so close to the border between two pixels that rounding
    decides which one it is: (height, width).
    """
    a, b, c, d, e, f = matrix
    y, x = np.mgrid[0:height, 0:width] - np.array([(height - 1) / 2, (width - 1) / 2]).reshape(2, 1, 1)
    by = divisor[0] * x + divisor[1] * y + 1
    places = (a * x + b * y + c) / by + (width - 1) / 2, (d * x + e * y + f) / by + (height - 1) / 2
    within = within * np.maximum(1, 1 / np.abs(by))
    return np.logical_or(*(np.abs(place - np.floor(place) - 0.5) < within for place in places))


def theirs_of_reframe(functional, step, image):
    x, y, width, height = step["window"]
    rows, columns = image.shape[-2:]
    sides = [max(0, -x), max(0, -y), max(0, x + width - columns), max(0, y + height - rows)]
    if any(sides):
        fill = list(step["fill"]) if step["padding_mode"] == "constant" else 0
        image = functional.pad(image, sides, fill=fill, padding_mode=step["padding_mode"])
    return functional.crop(image, y + sides[1], x + sides[0], height, width)


def theirs(functional, step, image, fill=None):
    """Returns torchvision's result of one step on a tensor. `fill`: None if torchvision is given none."""
    name = step["name"]
    if name in ("AdjustBrightness", "AdjustContrast", "AdjustSaturation", "AdjustSharpness"):
        return getattr(functional, f"adjust_{name[6:].lower()}")(image, step["factor"])
    if name == "AdjustHue":
        return functional.adjust_hue(image, step["shift"])
    if name == "Grayscale":
        return functional.rgb_to_grayscale(image, 3)
    if name == "PermuteChannels":
        return functional.permute_channels(image, step["from"])
    if name == "Posterize":
        return functional.posterize(image, step["bits"])
    if name == "Solarize":
        return functional.solarize(image, step["threshold"])
    if name in ("Invert", "AutoContrast", "Equalize"):
        return getattr(functional, name.lower())(image)
    if name == "Blur":
        return functional.gaussian_blur(image, step["taps"], [step["sigma_x"], step["sigma_y"]])
    if name == "Affine":
        return theirs_of_affine(functional, step, image, fill)
    if name == "Reframe":
        return theirs_of_reframe(functional, step, image)
    if name == "Mix":  # as torchvision's AugMix.forward
        mix = step["weight"] * image
        for chain in step["chains"]:
            copy = image
            for each in chain["steps"]:
                copy = theirs(functional, each, copy, fill)
            mix.add_(chain["weight"] * copy)
        return mix.to(image.dtype)
    assert name == "Mirror", name
    image = functional.horizontal_flip(image) if step["columns"] else image
    return functional.vertical_flip(image) if step["rows"] else image


def mirrored(functional, sample, image):
    """Returns the flips that were fused."""
    image = functional.horizontal_flip(image) if sample["geometry"]["mirror_columns"] else image
    return functional.vertical_flip(image) if sample["geometry"]["mirror_rows"] else image
