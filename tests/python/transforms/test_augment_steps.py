"""Steps on finished images against torchvision's functional transforms, through apply_step.

STOKER_BUILD: the build directory (repository.py).
STOKER_PHOTOS: a directory of photographs, compared as well when set.
"""

import math
import os
import pathlib
import subprocess

import numpy as np
import PIL.Image
import pytest
from repository import BUILD

torch = pytest.importorskip("torch")
F = pytest.importorskip("torchvision.transforms.v2.functional")

APPLY_STEP = BUILD / "tests" / "transforms" / "augment" / "apply_step"
SIZE = 224
PHOTOS = 40

pytestmark = pytest.mark.skipif(not APPLY_STEP.exists(), reason=f"{APPLY_STEP} is not built")


def words(*parts):
    return ",".join(str(part) for part in parts)


def inverse_affine(angle=0.0, translate=(0.0, 0.0), scale=1.0, shear=(0.0, 0.0)):
    """Returns the matrix of the map R(angle) S(scale) shears, then the translation: output to input, both
    centred.
    """
    rotation, shear_x, shear_y = (math.radians(a) for a in (angle, *shear))
    a = math.cos(rotation - shear_y) / math.cos(shear_y)
    b = -a * math.tan(shear_x) - math.sin(rotation)
    c = math.sin(rotation - shear_y) / math.cos(shear_y)
    d = -c * math.tan(shear_x) + math.cos(rotation)
    matrix = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    for row in (0, 3):
        matrix[row + 2] = -matrix[row] * translate[0] - matrix[row + 1] * translate[1]
    return matrix


def affine_case(mode, fill=None, **parameters):
    name = "faded" if mode == "bilinear" and fill else mode
    step = words(name, *inverse_affine(**parameters), *(fill or (0, 0, 0)))
    everything = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
    everything.update(parameters)
    interpolation = getattr(F.InterpolationMode, mode.upper())
    return step, lambda image: F.affine(
        image, **everything, interpolation=interpolation, fill=fill and list(fill)
    )


def blur_case(taps, sigma):
    step = words("blur", *taps, *sigma)
    return step, lambda image: F.gaussian_blur(image, list(taps), list(sigma))


def pad_case(mode, pad, fill=0):
    number = ["constant", "edge", "reflect", "symmetric"].index(mode)
    left, top, right, bottom = pad
    window = (-left, -top, SIZE + left + right, SIZE + top + bottom)
    step = words("reframe", *window, number, *[fill] * 3)
    return step, lambda image: F.pad(image, list(pad), fill=fill, padding_mode=mode)


def hsv_changed(image, shift, saturation, value):
    """Hue, saturation and value by their formulas, in binary64."""
    channels = image.numpy().astype(np.float64)
    most, least = channels.max(0), channels.min(0)
    span = np.maximum(most - least, 1)
    red, green, blue = channels
    sixths = np.select(
        [most == red, most == green],
        [(green - blue) / span, (blue - red) / span + 2],
        (red - green) / span + 4,
    )
    hue = (sixths / 6 + shift) % 1
    new_saturation = np.minimum((most - least) / np.maximum(most, 1) * saturation, 1)
    new_value = np.minimum(most * value, 255)
    made = []
    for offset in (5, 3, 1):  # Wikipedia: HSL and HSV, the alternative formula
        k = (offset + 6 * hue) % 6
        made.append(new_value * (1 - new_saturation * np.clip(np.minimum(k, 4 - k), 0, 1)))
    return torch.from_numpy(np.floor(np.stack(made) + 0.5).astype(np.uint8))


def hsv_case(*changes):
    return words("hsv", *changes), lambda image: hsv_changed(image, *changes)


def one_number(name, function, values):
    return [(words(name, v), lambda image, v=v: function(image, v)) for v in values]


# Some sizes, and those of AutoAugment.
FACTORS = [0.0, 0.1, 0.73, 1.0, 1.5, 1.9, *(1 + sign * k / 10 for k in range(1, 10) for sign in (-1, 1))]

# A step, what torchvision does, and how far apart they may be: the fraction of values that differ,
# by 1 at most. 0: equal.
EXACT = [
    *one_number("brightness", F.adjust_brightness, FACTORS),
    *one_number("posterize", F.posterize, [0, 1, 3, 4, 8]),
    *one_number("solarize", F.solarize, [0.0, 85.3, 128.0, 255.0]),
    ("invert", F.invert),
    ("autocontrast", F.autocontrast),
    ("equalize", F.equalize),
    ("mirror,1,0", F.horizontal_flip),
    ("mirror,0,1", F.vertical_flip),
    ("reframe,20,30,100,120,0", lambda image: F.crop(image, 30, 20, 120, 100)),
    ("reframe,-20,130,100,120,0", lambda image: F.crop(image, 130, -20, 120, 100)),
    pad_case("constant", (4, 5, 6, 7), 99),
    pad_case("edge", (4, 5, 6, 7)),
    pad_case("reflect", (40, 5, 223, 7)),
    pad_case("symmetric", (40, 5, 223, 7)),
    affine_case("nearest"),
    affine_case("nearest", translate=[31, -17]),
    affine_case("nearest", angle=90.0, fill=(9, 8, 7)),
]
CLOSE = [
    (2e-4, [("grayscale", lambda image: F.rgb_to_grayscale(image, 3))]),
    (2e-4, one_number("contrast", F.adjust_contrast, FACTORS)),
    (2e-4, one_number("saturation", F.adjust_saturation, FACTORS)),
    (2e-4, one_number("sharpness", F.adjust_sharpness, FACTORS)),
    (1e-3, one_number("hue", F.adjust_hue, [-0.5, -0.1, 0.0, 0.05, 0.3, 0.5])),
    (
        1e-3,
        [
            hsv_case(0, 1, 1),
            hsv_case(0.013, 0.4371, 1.3137),
            hsv_case(-0.5, 1.7, 0.6151),
            hsv_case(0.3137, 9, 2.5193),
        ],
    ),
    (
        2e-3,
        [
            blur_case((1, 1), (1.0, 1.0)),
            blur_case((3, 3), (0.8, 0.8)),
            blur_case((9, 5), (1.5, 0.3)),
            blur_case((23, 23), (0.1, 0.1)),
            blur_case((23, 23), (2.0, 2.0)),
        ],
    ),
    (
        1e-2,
        [
            affine_case("bilinear", angle=17.0),
            affine_case("bilinear", shear=[0.0, 17.0]),
            affine_case("bilinear", angle=17.0, fill=(0, 0, 0)),
            affine_case("bilinear", angle=-50.0, fill=(200, 100, 50)),
            affine_case("bilinear", scale=1.31, translate=[3, -11]),
        ],
    ),
]
NEAREST = [
    affine_case("nearest", angle=30.0),
    affine_case("nearest", angle=-13.7, fill=(1, 2, 255)),
    affine_case("nearest", shear=[17.0, 0.0]),
    affine_case("nearest", shear=[0.0, -9.3]),
    affine_case("nearest", scale=0.7, angle=45.0),
]


def photographs():
    folder = os.environ.get("STOKER_PHOTOS")
    paths = sorted(pathlib.Path(folder).rglob("*.[jJ]*")) if folder else []
    for path in paths[:: max(1, len(paths) // PHOTOS)][:PHOTOS]:
        image = PIL.Image.open(path).convert("RGB").resize((SIZE, SIZE))
        yield np.asarray(image).transpose(2, 0, 1)


@pytest.fixture(scope="session")
def images():
    random = np.random.default_rng(5)
    made = [
        random.integers(0, 256, (3, SIZE, SIZE), np.uint8),
        np.full((3, SIZE, SIZE), 77, np.uint8),
        np.broadcast_to(np.arange(SIZE, dtype=np.uint8), (3, SIZE, SIZE)),
    ]
    return np.ascontiguousarray([*photographs()] or made)


def apply_step(step, images):
    command = [APPLY_STEP, step, str(images.shape[3]), str(images.shape[2]), str(len(images))]
    done = subprocess.run(command, input=images.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, np.uint8)


def differences(step, theirs, images):
    """The absolute difference of each value."""
    wanted = np.stack([theirs(torch.from_numpy(image)).numpy() for image in images])
    got = apply_step(step, images).reshape(wanted.shape)
    differ = np.abs(got.astype(int) - wanted.astype(int))
    part = np.mean(differ != 0)
    print(f"\n{step}: largest {differ.max()}, mean {differ.mean():.6f}, {part:.6f} differ")
    return differ


def named(cases):
    return [pytest.param(*case, id=case[0]) for case in cases]


@pytest.mark.parametrize(("step", "theirs"), named(EXACT))
def test_step_equals_torchvision(step, theirs, images):
    assert differences(step, theirs, images).max() == 0


@pytest.mark.parametrize(
    ("step", "theirs", "fraction"),
    named([(*case, fraction) for fraction, cases in CLOSE for case in cases]),
)
def test_step_differs_from_torchvision_by_rounding_only(step, theirs, fraction, images):
    differ = differences(step, theirs, images)
    assert differ.max() <= 1
    assert np.mean(differ != 0) <= fraction


@pytest.mark.parametrize(("step", "theirs"), named(NEAREST))
def test_the_same_pixels(step, theirs, images):
    assert np.mean(differences(step, theirs, images) != 0) < 1e-3
