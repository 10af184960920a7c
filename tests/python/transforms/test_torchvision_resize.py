"""resampler="torchvision" against torchvision's resize of uint8 tensors: the same bytes."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
import stoker

torch = pytest.importorskip("torch")
F = pytest.importorskip("torchvision.transforms.v2.functional")
Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

each_filter = pytest.mark.parametrize("name", ["bilinear", "bicubic", "lanczos"])
CASES = Path(__file__).parents[2] / "transforms" / "resize" / "torchvision_test.cc"

# (height, width) of the image and of the result.
SIZES = [
    ((1, 1), (1, 1)),
    ((1, 1), (9, 5)),
    ((1, 60), (7, 7)),
    ((60, 1), (7, 20)),
    ((2, 3), (14, 21)),
    ((1, 2000), (28, 392)),
    ((3000, 7), (1, 224)),
    ((4000, 30), (7, 1)),
    ((375, 500), (224, 224)),
    ((375, 500), (375, 224)),
    ((375, 500), (224, 500)),
    ((480, 640), (224, 224)),
    ((1024, 1024), (1008, 1036)),
    ((333, 250), (332, 251)),
    ((224, 224), (1500, 1100)),
]


def images(random, size):
    """Noise, and black and white noise, with which filters overshoot most."""
    yield random.integers(0, 256, (*size, 3), np.uint8)
    yield random.integers(0, 2, (*size, 3), np.uint8) * np.uint8(255)


def theirs(pixels, size, name):
    """torchvision's pixels. Bilinear ones are floats on some CPUs; earlier versions have no Lanczos."""
    if not F._geometry._do_native_uint8_resize_on_cpu(F.InterpolationMode(name)):
        assert name != "bicubic"
        pytest.skip(f"torchvision does not resize bytes by {name} on this CPU")
    tensor = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)
    resized = F.resize(tensor, list(size), interpolation=F.InterpolationMode(name), antialias=True)
    return resized.permute(1, 2, 0).numpy()


def resize(size, name):
    return stoker.Resize(size, interpolation=name, resampler="torchvision")


@each_filter
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_pixels_are_the_same(name, before, after):
    compose = stoker.Compose([resize(after, name)])
    for pixels in images(np.random.default_rng(1), before):
        np.testing.assert_array_equal(compose(pixels), theirs(pixels, after, name))


@each_filter
def test_pixels_of_random_sizes_are_the_same(name):
    random = np.random.default_rng(2)
    for _ in range(100):
        before, after = random.integers(1, 300, 2), tuple(map(int, random.integers(1, 300, 2)))
        compose = stoker.Compose([resize(after, name)])
        for pixels in images(random, before):
            assert np.array_equal(compose(pixels), theirs(pixels, after, name)), (before, after)


@each_filter
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_of_images_that_are_turned_are_the_same(name, orientation):
    """Columns of the image as viewed come first."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    for before, after in [((120, 90), (63, 45)), ((40, 30), (280, 210)), ((250, 20), (9, 17))]:
        compose = stoker.Compose([resize(after, name)])
        for pixels in images(np.random.default_rng(3), before):
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "png", exif=exif)
            viewed = ImageOps.exif_transpose(Image.open(file))
            np.testing.assert_array_equal(compose(file.getvalue()), theirs(viewed, after, name))


@each_filter
def test_a_crop_after_it_does_not_change_its_pixels(name):
    """The largest weight counts, which may be that of a pixel that is cut off."""
    compose = stoker.Compose([resize((70, 50), name), stoker.CenterCrop(20)])
    for before in [(90, 61), (375, 500), (30, 21)]:
        for pixels in images(np.random.default_rng(4), before):
            wanted = theirs(pixels, (70, 50), name)[25:45, 15:35]
            np.testing.assert_array_equal(compose(pixels), wanted)


def noise(width, height, channels):
    """The noise of NoiseFor in torchvision_test.cc."""
    size = width * height * channels
    powers = np.multiply.accumulate(np.full(size, 1664525, np.uint32), dtype=np.uint32)
    before = np.concatenate([np.ones(1, np.uint32), powers[:-1]])
    states = powers + np.uint32(1013904223) * np.cumsum(before, dtype=np.uint32)
    values = states >> 24 if width % 2 == 0 else 255 * (states >> 31)
    return values.astype(np.uint8).reshape(height, width, channels)


def fnv_1a(data):
    result = 0xCBF29CE484222325
    for byte in data:
        result = (result ^ byte) * 0x100000001B3 % 2**64
    return result


def golden_cases():
    number = r"(\d+)"
    case = rf"{{{{{number}, {number}}}, {{{number}, {number}}}, k(\w+), {number}, (0x\w+)}}"
    found = re.findall(case, CASES.read_text(encoding="utf-8"))
    assert len(found) > 20
    return found


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: "-".join(case[:6]))
def test_torchvision_makes_the_golden_hashes(case):
    width, height, to_width, to_height, channels = (int(case[i]) for i in (0, 1, 2, 3, 5))
    pixels = theirs(noise(width, height, channels), (to_height, to_width), case[4].lower())
    assert fnv_1a(pixels.tobytes()) == int(case[6], 16)


def compare_with_a_resize(transform, before, name, flips=False):
    """The transform resizes all of the image to the size that it draws."""
    steps = [stoker.RandomHorizontalFlip(1)] if flips else []
    compose = stoker.Compose([*steps, transform, stoker.PadTo(256)])
    for pixels in images(np.random.default_rng(5), before):
        ours = compose(pixels)
        ours = ours[0] if isinstance(ours, tuple) else ours
        viewed = pixels[:, ::-1] if flips else pixels
        height, width = (int(np.nonzero(ours.any(axis=(1 - axis, 2)))[0][-1]) + 1 for axis in (0, 1))
        wanted = theirs(viewed, (height, width), name)
        np.testing.assert_array_equal(ours[:height, :width], wanted)


@each_filter
@pytest.mark.parametrize("flips", [False, True])
def test_pixels_of_all_transforms_that_resize_are_the_same(name, flips):
    options = {"interpolation": name, "resampler": "torchvision"}
    for transform in (
        stoker.Resize(90, max_size=130, **options),
        stoker.RandomShortestSize([70, 80, 90], max_size=130, **options),
        stoker.ScaleJitter((120, 100), (0.5, 1.5), **options),
        stoker.RandomResizedCrop((96, 130), scale=(1, 1), ratio=(1.25, 1.25), **options),
    ):
        compare_with_a_resize(transform, (120, 150), name, flips)


@each_filter
@pytest.mark.parametrize("mode", ["rgb", "gray"])
def test_pixels_of_decode_image_are_the_same(name, mode):
    pixels = next(images(np.random.default_rng(6), (90, 121)))
    pixels = pixels if mode == "rgb" else pixels[:, :, 0]
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    options = {"size": (50, 64), "interpolation": name, "resampler": "torchvision"}
    wanted = theirs(pixels.reshape(90, 121, -1), (50, 64), name)
    ours = stoker.decode_image(file.getvalue(), mode, **options)
    np.testing.assert_array_equal(ours.reshape(wanted.shape), wanted)
    (listed,) = stoker.decode_images([file.getvalue()], mode, **options)
    np.testing.assert_array_equal(listed, ours)


def test_images_that_are_resampled_in_floats_are_refused():
    file = io.BytesIO()
    Image.fromarray(np.zeros((9, 9, 4), np.uint8)).save(file, "png")
    for asked in ({"mode": "rgba"}, {"mode": "unchanged"}, {"dtype": "uint16"}):
        with pytest.raises(ValueError, match="resampler = torchvision for pixels of 16 bits or with alpha"):
            stoker.decode_image(file.getvalue(), size=5, resampler="torchvision", **asked)
    with pytest.raises(ValueError, match="resampler = torchvision with dtype uint16"):
        stoker.Compose([resize(9, "bicubic")], dtype="uint16")


def test_filters_that_torchvision_does_not_have_are_refused():
    with pytest.raises(ValueError, match="resampler = torchvision with interpolation = box"):
        stoker.Compose([resize(9, "box")])
    with pytest.raises(ValueError, match="resampler = torchvision without antialias"):
        stoker.Compose([stoker.Resize(9, antialias=False, resampler="torchvision")])
    with pytest.raises(ValueError, match="resampler = pillow_exact without antialias"):
        stoker.Compose([stoker.Resize(9, antialias=False, resampler="pillow_exact")])
