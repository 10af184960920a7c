"""Transforms that draw the size of an image, against Pillow and torchvision."""

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL", minversion="13")

import PIL.Image

SIDE = 400
SIZES = [(49, 147), (83, 121), (121, 83), (1, 60), (60, 1), (97, 97), (64, 48), (33, 50), (101, 203)]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("sizes"), np.random.default_rng(2)
    for n, size in enumerate(SIZES):
        noise = random.integers(0, 255, (*size, 3), np.uint8)
        PIL.Image.fromarray(noise).save(folder / f"{n}.png")
    return sorted(folder.iterdir())


def images_of(paths, transform):
    """Returns the images without their padding."""
    steps = [transform, stoker.PadTo(SIDE)]
    (batch,) = stoker.Loader(stoker.files(paths), steps, batch_size=len(paths))
    rows, sizes = batch
    return stoker.unpadded(rows, sizes)


def size_after(image, min_size, max_size=None):
    """Returns the (height, width) of RandomShortestSize.make_params."""
    r = min_size / min(image.height, image.width)
    if max_size is not None:
        r = min(r, max_size / max(image.height, image.width))
    return max(1, int(image.height * r)), max(1, int(image.width * r))


@pytest.mark.parametrize(("min_size", "max_size"), [(49, 400), (97, 150), (200, 150), (31, 31)])
def test_the_shortest_side(paths, min_size, max_size):
    made = images_of(paths, stoker.RandomShortestSize(min_size, max_size, "bicubic"))
    for path, image in zip(paths, made):
        original = PIL.Image.open(path)
        height, width = size_after(original, min_size, max_size)
        wanted = original.resize((width, height), PIL.Image.Resampling.BICUBIC)
        assert np.array_equal(image, np.asarray(wanted))


@pytest.mark.parametrize(("min_size", "max_size"), [(49, 400), (97, 150), (200, 150), (77, None)])
def test_the_shortest_side_is_torchvisions(min_size, max_size):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    resize = v2.RandomShortestSize(min_size, max_size)
    for width, height in np.random.default_rng(5).integers(30, 300, (200, 2)).tolist():
        image = PIL.Image.new("RGB", (width, height))
        assert resize.make_params([image])["size"] == size_after(image, min_size, max_size)


def scaled(image, target_size, scale):
    """Returns the (height, width) of ScaleJitter.make_params, in float32 as there."""
    fits = min(target_size[1] / image.height, target_size[0] / image.width)
    r = np.float32(fits) * np.float32(scale)
    return max(1, int(np.float32(image.height) * r)), max(1, int(np.float32(image.width) * r))


TARGETS = [((200, 100), 1.3), ((100, 200), 0.5), ((150, 150), 1.0), ((70, 90), 1.7)]


@pytest.mark.parametrize(("target_size", "scale"), TARGETS)
def test_scale_jitter(paths, target_size, scale):
    made = images_of(paths, stoker.ScaleJitter(target_size, (scale, scale), "bicubic"))
    for path, image in zip(paths, made):
        original = PIL.Image.open(path)
        height, width = scaled(original, target_size, scale)
        wanted = original.resize((width, height), PIL.Image.Resampling.BICUBIC)
        assert np.array_equal(image, np.asarray(wanted))


@pytest.mark.parametrize(("target_size", "scale"), TARGETS)
def test_scale_jitter_is_torchvisions(target_size, scale):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    jitter = v2.ScaleJitter(target_size, (scale, scale))
    for width, height in np.random.default_rng(5).integers(30, 300, (200, 2)).tolist():
        image = PIL.Image.new("RGB", (width, height))
        assert jitter.make_params([image])["size"] == scaled(image, target_size, scale)


def test_each_of_the_sizes_is_drawn(paths):
    sizes, count = [40, 50, 60], 300
    made = images_of([paths[2]] * count, stoker.RandomShortestSize(sizes, antialias=False))
    drawn = np.bincount([image.shape[1] for image in made])
    assert set(np.flatnonzero(drawn)) == set(sizes)
    assert min(drawn[sizes]) > count / 3 - 5 * np.sqrt(count * 2 / 9)  # 5 deviations of independent draws


def test_a_size_and_a_list_of_one_are_equal():
    one, listed = stoker.RandomShortestSize(800), stoker.RandomShortestSize(np.array([800]))
    assert one == listed and hash(one) == hash(listed) and one.min_size == (800,)
    with pytest.raises(ValueError, match="RandomShortestSize: it draws a size for each image"):
        stoker.Compose([one])
