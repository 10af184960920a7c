"""Resize with max_size, against Pillow and torchvision."""

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL", minversion="13")

import PIL.Image
from pillow_sizes import resized, size_after, viewed

# As (size, max_size), with a crop that is within every image.
SIZES = [(90, 110), (90, 130), (200, 10000), (None, 120)]


def center_of(image, side):
    top, left = (round((length - side) / 2) for length in image.shape[:2])
    return image[top : top + side, left : left + side]


@pytest.mark.parametrize(("size", "max_size"), SIZES)
def test_photographs_are_pillows(photos, size, max_size):
    paths = sorted(photos.rglob("*.[jJ]*"))[:12]
    steps = [stoker.Resize(size, "bicubic", max_size), stoker.CenterCrop(50)]
    (rows,) = stoker.Loader(stoker.files(paths), steps, batch_size=len(paths))
    for path, row in zip(paths, rows):
        wanted = resized(viewed(path), size, max_size, "bicubic")
        assert np.array_equal(row, center_of(wanted, 50))


@pytest.mark.parametrize(("size", "max_size"), [*SIZES, (40, 41), (1, 2)])
def test_sizes_are_torchvisions(size, max_size):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    resize = v2.Resize(size, max_size=max_size)
    for height, width in np.random.default_rng(5).integers(100, 200, (50, 2)).tolist():
        made = resize(PIL.Image.new("RGB", (width, height)))
        assert (made.height, made.width) == size_after(size, max_size, height, width)


@pytest.mark.parametrize(
    ("resize", "message"),
    [
        (stoker.Resize(None, max_size=9), r"Resize: max_size sets only the longer side"),
        (stoker.Resize(None), "Resize: neither size nor max_size is given"),
        (stoker.Resize(40, max_size=40), "Resize: max_size = 40 is not above size = 40"),
        (stoker.Resize((40, 40), max_size=50), "Resize: max_size = 50 together with height and width"),
    ],
)
def test_what_is_refused(resize, message):
    source = stoker.arrays(np.zeros((2, 8, 8, 3), np.uint8))
    with pytest.raises(ValueError, match=message):
        stoker.Loader(source, [resize], batch_size=2)
