"""Compares affine transforms with the layers of Keras that docs/from-tf-data.md names for them, given what is
drawn: ranges of one value draw it.

STOKER_PHOTOS: a directory of photographs; a few made ones otherwise. Run with -s to see the differences.
"""

import inspect
import math

import numpy as np
import pytest
import stoker
from drawing import between_pixels, decoded, made_arrays, photographs

keras = pytest.importorskip("keras")
layers = keras.layers

SIDES = (200, 224)
# Keras' names of what surrounds an image, and ours.
MODES = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "wrap": "wrap"}


@pytest.fixture(scope="module")
def images():
    read = [decoded(path).transpose(1, 2, 0) for path in photographs()[::133]]
    crop = stoker.Compose([stoker.Resize(224), stoker.CenterCrop(SIDES)])
    return [crop(np.ascontiguousarray(image)) for image in read or made_arrays([(240, 300)] * 6)]


def turned(degrees, **options):
    return (
        layers.RandomRotation((degrees / 360, degrees / 360), **options),
        lambda **ours: stoker.RandomRotation((degrees, degrees), fill=None, **ours),
        rotation(degrees),
    )


def rotation(degrees):
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return [cosine, -sine, 0, sine, cosine, 0]


def zoomed(height, width, **options):
    both = [(height, height), None if width is None else (width, width)]
    across = 1 + (height if width is None else width)
    return (
        layers.RandomZoom(*both, **options),
        lambda **ours: stoker.RandomZoom(*both, **ours),
        [across, 0, 0, 0, 1 + height, 0],
    )


def moved(height, width, **options):
    both = [(height, height), (width, width)]
    return (
        layers.RandomTranslation(*both, **options),
        lambda **ours: stoker.RandomTranslation(*both, **ours),
        [1, 0, -width * SIDES[1], 0, 1, -height * SIDES[0]],
    )


def sheared(x, y, **options):
    return (
        layers.RandomShear((x, x), (y, y), **options),
        lambda **ours: stoker.RandomShear((x, x), (y, y), **ours),
        [1, x, x * (SIDES[0] - 1) / 2, y, 1, y * (SIDES[1] - 1) / 2],
    )


DRAWN = {
    "RandomRotation 23 degrees": (turned, 23),
    "RandomRotation -36 degrees": (turned, -36),
    "RandomZoom out": (zoomed, 0.213, None),
    "RandomZoom in and out": (zoomed, -0.3, 0.15),
    "RandomTranslation": (moved, 0.131, -0.217),
    "RandomShear of columns": (sheared, 0.2171, 0),
    "RandomShear": (sheared, 0.1037, 0.2971),
}


def sampled_at(matrix):
    """The positions in the image that an output pixel comes from: columns, and rows."""
    a, b, c, d, e, f = matrix
    height, width = SIDES
    y, x = np.mgrid[0:height, 0:width] - np.array([(height - 1) / 2, (width - 1) / 2]).reshape(2, 1, 1)
    return a * x + b * y + c + (width - 1) / 2, d * x + e * y + f + (height - 1) / 2


def on_seam(matrix):
    """Marks positions between the last pixel and the first. TensorFlow takes one of them; stoker blends."""
    return np.logical_or(*(at % n > n - 1 - 1e-3 for at, n in zip(sampled_at(matrix), SIDES[::-1])))


def pixels_of(layer, image, sign):
    drawn = layer.get_random_transformation(image, training=True)
    if "shear_factor" in drawn:
        drawn["shear_factor"] = sign * np.abs(drawn["shear_factor"])
    return np.asarray(layer.transform_images(image.astype(np.float32), drawn, training=True))


def with_sign(matrix, sign):
    a, b, c, d, e, f = matrix
    return [a, sign * b, sign * c, sign * d, e, sign * f]


def compared(layer, ours, image, matrix, seam, nearest):
    """The largest difference. RandomShear draws a sign, so that of the sign with which it is smaller."""
    largest = []
    for sign in (1, -1) if isinstance(layer, layers.RandomShear) else (1,):
        of_sign = with_sign(matrix, sign)
        left_out = on_seam(of_sign) if seam else np.zeros(SIDES, bool)
        if nearest:
            left_out |= between_pixels(of_sign, *SIDES)
        assert left_out.mean() < 0.02
        largest.append(np.abs(ours - pixels_of(layer, image, sign))[~left_out].max())
    return min(largest)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
@pytest.mark.parametrize("drawn", DRAWN)
def test_pixels_are_those_of_the_layer(drawn, interpolation, images):
    make, *values = DRAWN[drawn]
    nearest = interpolation == "nearest"
    for theirs, mode in MODES.items():
        layer, transform, matrix = make(*values, fill_mode=theirs, interpolation=interpolation)
        transforms = [stoker.CenterCrop(SIDES), transform(padding_mode=mode, interpolation=interpolation)]
        compose = stoker.Compose(transforms)
        largest = max(
            compared(layer, compose(image, position=n), image, matrix, mode == "wrap", nearest)
            for n, image in enumerate(images)
        )
        print(f"\n{drawn}, {theirs}, {interpolation}: {len(images)} images, largest {largest:.4g}")
        assert largest <= (0 if nearest else 0.51)  # stoker rounds to bytes


def test_midway_between_two_pixels_the_layer_may_take_the_other(images):
    """TensorFlow rounds away from zero, and stoker to even."""
    for factor, least in ((0.2, 0), (1.0, 0.5)):
        layer, transform, matrix = zoomed(factor, None, fill_mode="reflect", interpolation="nearest")
        transforms = [stoker.CenterCrop(SIDES), transform(padding_mode="symmetric", interpolation="nearest")]
        differ = (stoker.Compose(transforms)(images[0]) != pixels_of(layer, images[0], 1)).any(-1)
        print(f"\nRandomZoom {factor}: {differ.mean():.3g} of the pixels differ")
        assert differ.mean() > least
        assert not (differ & ~between_pixels(matrix, *SIDES)).any()


def test_defaults_are_those_of_the_layers():
    for name in ("RandomZoom", "RandomTranslation", "RandomShear"):
        ours = inspect.signature(getattr(stoker, name)).parameters
        theirs = inspect.signature(getattr(layers, name)).parameters
        for option, parameter in ours.items():
            if option == "padding_mode":
                assert parameter.default == MODES[theirs["fill_mode"].default]
            elif option == "fill":
                assert parameter.default == theirs["fill_value"].default
            elif option in ("x_factor", "y_factor"):
                assert parameter.default == (theirs[option].default,) * 2
            else:
                assert parameter.default == theirs[option].default, option


def test_a_fill_of_rotations_is_blended_twice_along_the_border(images):
    """As torchvision does, and Keras does not. None is Keras' 0; that is what docs/from-tf-data.md names."""
    layer = layers.RandomRotation((0.1, 0.1), fill_mode="constant", fill_value=127.0)
    transform = stoker.RandomRotation((36, 36), "bilinear", fill=127)
    compose = stoker.Compose([stoker.CenterCrop(SIDES), transform])
    difference = np.stack([np.abs(compose(image) - pixels_of(layer, image, 1)).max(-1) for image in images])
    places = sampled_at(rotation(36))
    outside = np.logical_or.reduce([(at < 0) | (at > n - 1) for at, n in zip(places, SIDES[::-1])])
    differ = difference > 0.51
    print(f"\nfill 127: {differ.mean():.3g} of the pixels differ, by up to {difference.max():.3g}")
    assert 0 < differ.sum() < 2 * sum(SIDES) * len(images)
    assert not (differ & ~outside).any()


def test_shears_have_both_signs():
    transform = stoker.RandomShear((0.2, 0.2), padding_mode="constant", fill=255)
    compose = stoker.Compose([stoker.CenterCrop(20), transform])
    corners = [compose(np.zeros((20, 20, 3), np.uint8), position=n)[-1, [0, -1], 0] for n in range(100)]
    assert {tuple(corner) for corner in corners} == {(0, 255), (255, 0)}
