"""Every filter against Pillow's, on sizes that photographs have and on hostile ones."""

import io

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL", minversion="13")  # older ones always begin with the columns

import PIL.Image
import PIL.ImageOps

FILTERS = {
    "nearest": PIL.Image.Resampling.NEAREST,
    "bilinear": PIL.Image.Resampling.BILINEAR,
    "bicubic": PIL.Image.Resampling.BICUBIC,
    "lanczos": PIL.Image.Resampling.LANCZOS,
    "box": PIL.Image.Resampling.BOX,
}
each_filter = pytest.mark.parametrize("name", FILTERS)

# (height, width) of the image and of the result.
SIZES = [
    ((1, 1), (1, 1)),
    ((1, 1), (9, 5)),
    ((1, 60), (7, 7)),
    ((60, 1), (7, 20)),
    ((2, 3), (14, 21)),  # × 7
    ((31, 17), (217, 119)),
    ((400, 640), (10, 16)),  # ÷ 40
    ((1200, 80), (30, 2)),
    ((2000, 37), (1, 1)),
    ((375, 500), (224, 224)),
    ((375, 500), (375, 224)),  # one axis stays
    ((480, 640), (224, 224)),  # samples exactly between two outputs
    ((300, 500), (225, 375)),
    ((97, 64), (48, 33)),
    ((333, 250), (332, 251)),
]


def images(random, size, gray):
    """Noise, black and white noise, and edges: where filters overshoot most."""
    shape = size if gray else (*size, 3)
    yield random.integers(0, 256, shape, np.uint8)
    yield random.integers(0, 2, shape, np.uint8) * np.uint8(255)
    coarse = random.integers(0, 2, [-(-side // 7) for side in size], np.uint8) * np.uint8(255)
    edges = coarse.repeat(7, 0).repeat(7, 1)[: size[0], : size[1]]
    yield edges if gray else np.stack([edges, 255 - edges, edges], 2)


def encoded(image, **options):
    file = io.BytesIO()
    image.save(file, "png", **options)
    return file.getvalue()


def is_pillows(name, ours, theirs):
    """Bilinear is within one level, all others are exact."""
    difference = np.abs(np.asarray(ours).astype(int) - np.asarray(theirs.convert("RGB"), int))
    return difference.max() <= (name == "bilinear")


def is_exact(ours, theirs):
    return np.array_equal(ours, theirs.convert("RGB"))


@each_filter
@pytest.mark.parametrize("gray", [False, True], ids=["rgb", "gray"])
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_resize_is_pillows(name, gray, before, after):
    compose = stoker.Compose([stoker.Resize(after, interpolation=name)])
    exact = stoker.Compose([stoker.Resize(after, interpolation=name, resampler="pillow_exact")])
    for pixels in images(np.random.default_rng(1), before, gray):
        image = PIL.Image.fromarray(pixels)
        wanted = image.resize(after[::-1], FILTERS[name])
        assert is_pillows(name, compose(encoded(image)), wanted)
        assert is_exact(exact(encoded(image)), wanted)


@each_filter
def test_random_sizes_are_pillows(name):
    random = np.random.default_rng(2)
    for _ in range(60):
        before, after = random.integers(1, 200, 2), tuple(map(int, random.integers(1, 120, 2)))
        compose = stoker.Compose([stoker.Resize(after, interpolation=name)])
        exact = stoker.Compose([stoker.Resize(after, interpolation=name, resampler="pillow_exact")])
        for pixels in images(random, tuple(before), random.integers(2) == 0):
            image = PIL.Image.fromarray(pixels)
            wanted = image.resize(after[::-1], FILTERS[name])
            assert is_pillows(name, compose(encoded(image)), wanted), (before, after)
            assert is_exact(exact(encoded(image)), wanted), (before, after)


@each_filter
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_that_are_turned_are_pillows(name, orientation):
    """Clamping depends on which axis comes first, as viewed."""
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    for before, after in [((120, 90), (63, 45)), ((40, 30), (280, 210)), ((112, 96), (56, 48))]:
        compose = stoker.Compose([stoker.Resize(after, interpolation=name)])
        for pixels in images(np.random.default_rng(3), before, gray=False):
            image = PIL.Image.fromarray(pixels)
            wanted = PIL.ImageOps.exif_transpose(PIL.Image.open(io.BytesIO(encoded(image, exif=exif))))
            wanted = wanted.resize(after[::-1], FILTERS[name])
            assert is_pillows(name, compose(encoded(image, exif=exif)), wanted)


@each_filter
@pytest.mark.parametrize("size", [(375, 500), (90, 61)])
def test_shorter_side_and_crop_are_pillows(name, size):
    compose = stoker.Compose([stoker.Resize(64, interpolation=name), stoker.CenterCrop(48)])
    height, width = (64, 64 * size[1] // size[0]) if size[0] < size[1] else (64 * size[0] // size[1], 64)
    top, left = round((height - 48) / 2), round((width - 48) / 2)
    for pixels in images(np.random.default_rng(4), size, gray=False):
        image = PIL.Image.fromarray(pixels)
        wanted = image.resize((width, height), FILTERS[name]).crop((left, top, left + 48, top + 48))
        assert is_pillows(name, compose(encoded(image)), wanted)


@each_filter
def test_random_resized_crop_is_pillows(name):
    """The box does not depend on the filter: nearest shows where it begins."""
    random = np.random.default_rng(5)
    rows, columns = np.mgrid[:120, :160].astype(np.uint8)
    places = encoded(PIL.Image.fromarray(np.stack([rows, columns, rows], 2)))
    side = round((0.3 * 120 * 160) ** 0.5)

    def crop(interpolation, seed):
        options = {"scale": (0.3, 0.3), "ratio": (1, 1), "interpolation": interpolation}
        return stoker.Compose([stoker.RandomResizedCrop(40, **options)], seed=seed)

    for seed in range(8):
        top, left = (int(place) for place in np.asarray(crop("nearest", seed)(places))[0, 0, :2])
        pixels = random.integers(0, 256, (120, 160, 3), np.uint8)
        cut = PIL.Image.fromarray(pixels[top : top + side, left : left + side])
        ours = crop(name, seed)(encoded(PIL.Image.fromarray(pixels)))
        assert is_pillows(name, ours, cut.resize((40, 40), FILTERS[name]))


def keys_weights(before, after):
    """Keys' cubic with a = -0.5, four samples for each output, normalized over those that exist."""
    centers = (np.arange(after) + 0.5) * before / after - 0.5
    distance = np.abs(np.arange(before) - centers[:, None])
    inner = (1.5 * distance - 2.5) * distance**2 + 1
    outer = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    weights = np.select([distance < 1, distance < 2], [inner, outer])
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("before", "after"), [((375, 500), (224, 224)), ((40, 90), (97, 31)), ((5, 3), (20, 20))]
)
def test_bicubic_without_antialias_takes_four_samples(before, after):
    """Does what tf.image.resize does, except for the rounding of the first axis to levels."""
    compose = stoker.Compose([stoker.Resize(after, interpolation="bicubic", antialias=False)])
    pixels = np.random.default_rng(6).integers(64, 192, (*before, 3), np.uint8)
    rows, columns = keys_weights(before[0], after[0]), keys_weights(before[1], after[1])
    wanted = np.einsum("yh,xw,hwc->yxc", rows, columns, pixels, optimize=True)
    difference = np.abs(compose(encoded(PIL.Image.fromarray(pixels))) - wanted)
    assert difference.max() < 1.5
    assert difference.mean() < 0.4


@pytest.mark.parametrize(
    ("size", "most"),
    [((100, 150), 2), ((190, 290), 2), ((210, 290), 2), ((400, 600), 2), ((185, 295), 23), ((190, 310), 23)],
)
def test_bicubic_of_torchvisions_tensors(size, most):
    """They always begin with the columns. Where stoker and Pillow do not, noise differs by more."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    image = np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8)
    ours = stoker.Compose([stoker.Resize(size, interpolation="bicubic")])(image)

    def largest(theirs):
        return int(np.abs(np.asarray(theirs).astype(int) - ours).max())

    def resized(image):
        return functional.resize(image, list(size), interpolation=functional.InterpolationMode.BICUBIC)

    assert largest(resized(PIL.Image.fromarray(image))) == 0
    difference = largest(resized(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0))
    assert difference <= most and (most == 2 or difference > 2)
