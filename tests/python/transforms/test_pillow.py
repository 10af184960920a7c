"""Compares pixels with Pillow, torchvision and TensorFlow, through the program apply_plan.

STOKER_BUILD: the build directory (repository.py).
STOKER_PHOTOS: a directory of photographs, compared as well when set.
"""

import os
import pathlib
import subprocess

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from repository import BUILD

APPLY_PLAN = BUILD / "tests" / "transforms" / "plan" / "apply_plan"
EVALUATION = ["resize=256", "center_crop=224x224"]

pytestmark = pytest.mark.skipif(not APPLY_PLAN.exists(), reason=f"{APPLY_PLAN} is not built")


def apply_plan(transforms, files, shape, dtype=np.uint8):
    """Returns rows of our transforms, and for each file (box, resized size, flip)."""
    done = subprocess.run([APPLY_PLAN, *transforms, "--", *files], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    numbers = [[int(n) for n in line.split()] for line in done.stderr.decode().splitlines()]
    shape = (3, *shape) if "nchw" in transforms else (*shape, 3)
    rows = np.frombuffer(done.stdout, dtype).reshape(len(files), *shape)
    return rows, [(tuple(n[0:4]), tuple(n[4:6]), bool(n[6])) for n in numbers]


def open_image(path):
    return PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")


def center_crop(image, height, width):
    """Crops an array at least that large, like torchvision."""
    y = int(round((image.shape[0] - height) / 2.0))
    x = int(round((image.shape[1] - width) / 2.0))
    return image[y : y + height, x : x + width]


def shorter_side_to(size, width, height):
    if width <= height:
        return size, int(size * height / width)
    return int(size * width / height), size


class Differences:
    """Returns the largest and mean absolute difference over many images."""

    def __init__(self):
        self.largest, self.total, self.values, self.images = 0.0, 0.0, 0, 0

    def add(self, ours, theirs):
        difference = np.abs(ours.astype(np.float64) - np.asarray(theirs, np.float64))
        self.largest = max(self.largest, float(difference.max()))
        self.total += float(difference.sum())
        self.values += difference.size
        self.images += 1

    def report(self, what):
        mean = self.total / self.values
        print(f"\n{what}: {self.images} images, largest {self.largest:.4g}, mean {mean:.5f}")


def synthetic_arrays():
    random = np.random.default_rng(1)
    sizes = [(1, 1), (2, 300), (223, 224), (256, 256), (257, 1023), (375, 500), (640, 480)]
    sizes += [(2100, 1500), (3000, 40), (17, 4000)]
    for height, width in sizes:
        yield random.integers(0, 256, (height, width, 3), np.uint8)
        yield random.choice(np.array([0, 255], np.uint8), (height, width, 3))
        y, x = np.mgrid[0:height, 0:width]
        yield np.stack([x % 256, y % 256, (x + y) // 2 % 256], -1).astype(np.uint8)


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic")
    files = []
    for n, array in enumerate(synthetic_arrays()):
        image = PIL.Image.fromarray(array)
        if n % 5 == 4:
            image = image.convert("L")
        path = folder / f"{n:03}.jpg"
        image.save(path, quality=95, subsampling=n % 3)
        files.append(path)
    return files


@pytest.fixture(scope="session")
def photos():
    folder = os.environ.get("STOKER_PHOTOS")
    if not folder:
        pytest.skip("STOKER_PHOTOS is not set")
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.name[0] != ".")
    assert files
    return files[::5]


@pytest.fixture(params=["synthetic", pytest.param("photos", marks=pytest.mark.long)])
def files(request):
    return request.getfixturevalue(request.param)


def test_decoding_is_pillows(files):
    for path in files:
        wanted = np.asarray(open_image(path))
        height, width = wanted.shape[:2]
        rows, _ = apply_plan([f"center_crop={height}x{width}"], [path], (height, width))
        assert np.array_equal(rows[0], wanted), path


def test_evaluation_is_pillows(files):
    rows, _ = apply_plan(EVALUATION, files, (224, 224))
    differences = Differences()
    for path, row in zip(files, rows):
        image = open_image(path)
        resized = image.resize(shorter_side_to(256, *image.size), PIL.Image.Resampling.BILINEAR)
        differences.add(row, center_crop(np.asarray(resized), 224, 224))
    differences.report("Resize(256) + CenterCrop(224), Pillow")
    assert differences.largest <= 1


def test_training_is_pillows(files):
    rows, drawn = apply_plan(["random_resized_crop=224x224", "flip=0.5"], files, (224, 224))
    differences = Differences()
    for path, row, ((x, y, width, height), _, flip) in zip(files, rows, drawn):
        cut = open_image(path).crop((x, y, x + width, y + height))
        resized = np.asarray(cut.resize((224, 224), PIL.Image.Resampling.BILINEAR))
        differences.add(row, resized[:, ::-1] if flip else resized)
    differences.report("RandomResizedCrop(224) + flip, Pillow")
    assert differences.largest <= 1


@pytest.mark.parametrize("size", [(7, 5), (64, 96), (700, 300)])
def test_other_sizes_are_pillows(synthetic, size):
    height, width = size
    rows, _ = apply_plan([f"resize={height}x{width}"], synthetic, size)
    for path, row in zip(synthetic, rows):
        wanted = open_image(path).resize((width, height), PIL.Image.Resampling.BILINEAR)
        assert np.abs(row.astype(int) - np.asarray(wanted, int)).max() <= 1, path


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_pillows(tmp_path, orientation):
    random = np.random.default_rng(orientation)
    small = PIL.Image.fromarray(random.integers(0, 256, (12, 17, 3), np.uint8))
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "turned.jpg"
    small.resize((340, 240), PIL.Image.Resampling.BICUBIC).save(path, quality=95, exif=exif)
    image = open_image(path)
    resized = image.resize(shorter_side_to(64, *image.size), PIL.Image.Resampling.BILINEAR)
    rows, _ = apply_plan(["resize=64", "center_crop=51x61"], [path], (51, 61))
    difference = rows[0].astype(int) - center_crop(np.asarray(resized), 51, 61)
    assert np.abs(difference).max() <= 1


def test_normalized_is_torchvisions_formula(synthetic):
    shape = (224, 224)
    floats, _ = apply_plan([*EVALUATION, "normalize", "f32"], synthetic, shape, np.float32)
    bytes_, _ = apply_plan(EVALUATION, synthetic, shape)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    assert np.abs(floats - (bytes_ / 255.0 - mean) / std).max() < 1e-6


def test_types_and_layouts_are_of_the_same_pixels(files):
    shape = (224, 224)
    values, _ = apply_plan(EVALUATION, files, shape)
    planes, _ = apply_plan([*EVALUATION, "nchw"], files, shape)
    np.testing.assert_array_equal(planes, values.transpose(0, 3, 1, 2))
    floats, _ = apply_plan([*EVALUATION, "nchw", "f32"], files, shape, np.float32)
    np.testing.assert_array_equal(floats, planes.astype(np.float32) * np.float32(1 / 255))
    halves, _ = apply_plan([*EVALUATION, "nchw", "f16"], files, shape, np.float16)
    np.testing.assert_array_equal(halves, floats.astype(np.float16))


def test_evaluation_is_torchvisions(files):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    rows, _ = apply_plan(EVALUATION, files, (224, 224))
    differences = Differences()
    for path, row in zip(files, rows):
        tensor = torch.from_numpy(np.array(open_image(path))).permute(2, 0, 1)
        resized = functional.resize(tensor, [256], antialias=True)
        theirs = functional.center_crop(resized, [224, 224]).permute(1, 2, 0).numpy()
        differences.add(row, theirs)
    differences.report("Resize(256) + CenterCrop(224), torchvision's antialiased u8 tensors")
    assert differences.largest <= 1


def kolmogorov_smirnov(ours, theirs):
    """Returns p of the two-sample test; ties make it larger than it is, never smaller (Press et al.:
    Numerical Recipes, 14.3).
    """
    values = np.concatenate([ours, theirs])
    ranks = [np.searchsorted(np.sort(side), values, "right") / len(side) for side in (ours, theirs)]
    largest = np.abs(ranks[0] - ranks[1]).max()
    root = np.sqrt(len(ours) * len(theirs) / (len(ours) + len(theirs)))
    x = (root + 0.12 + 0.11 / root) * largest
    if x < 0.2:
        return 1.0  # where the series below converges slowly
    terms = np.arange(1, 101)
    return float(np.clip(2 * np.sum((-1.0) ** (terms - 1) * np.exp(-2 * (terms * x) ** 2)), 0, 1))


def of_boxes(boxes, width, height):
    """Returns the compared numbers of boxes (x, y, width, height) in an image of that size."""
    x, y, w, h = np.asarray(boxes, np.float64).T
    return {
        "share of the area": w * h / (width * height),
        "log of the ratio": np.log(w / h),
        "place across": x[w < width] / (width - w[w < width]),
        "place down": y[h < height] / (height - h[h < height]),
        "as wide or high": (w == width) * 1.0 + (h == height) * 2.0,
    }


# The last has no room for most of what is drawn: some take the central fallback.
@pytest.mark.parametrize(("width", "height"), [(500, 375), (375, 500), (1024, 683), (40, 400)])
def test_boxes_are_distributed_as_torchvisions(width, height):
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torchvision.transforms")
    draws = 30_000
    done = subprocess.run(
        [APPLY_PLAN, "random_resized_crop=224x224", "--", f"{width}x{height}x{draws}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    ours = [[int(n) for n in line.split()] for line in done.stdout.splitlines()]
    assert len(ours) == draws
    torch.manual_seed(1)
    image = torch.empty(1).expand(3, height, width)
    get_params = transforms.RandomResizedCrop.get_params
    drawn = (get_params(image, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(draws))
    theirs = [(x, y, w, h) for y, x, h, w in drawn]
    them = of_boxes(theirs, width, height)
    chances = {
        what: kolmogorov_smirnov(values, them[what]) for what, values in of_boxes(ours, width, height).items()
    }
    print(f"\n{draws} boxes in {width} x {height}:", {k: round(p, 4) for k, p in chances.items()})
    assert min(chances.values()) > 1e-4, chances


def test_the_comparison_of_distributions_sees_differences():
    random = np.random.default_rng(1)
    one, other = random.random(30_000), random.random(30_000)
    assert kolmogorov_smirnov(one, other) > 1e-4
    assert kolmogorov_smirnov(one, other**1.1) < 1e-4
    assert kolmogorov_smirnov(one, other * 0.97) < 1e-4


def two_taps(array, size, axis):
    """Interpolates linearly along an axis, with pixels' centres at halves, no wider when it shrinks."""
    length = array.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, length - 1)
    share = (at - low).reshape([-1 if a == axis else 1 for a in range(3)])
    return array.take(low, axis) * (1 - share) + array.take(high, axis) * share


def test_plain_bilinear_is_two_taps(files):
    rows, drawn = apply_plan(["plain", *EVALUATION], files, (224, 224))
    differences = Differences()
    for path, row, (_, (width, height), _) in zip(files, rows, drawn):
        array = np.asarray(open_image(path), np.float64)
        resized = two_taps(two_taps(array, width, 1), height, 0)
        differences.add(row, center_crop(resized, 224, 224))
    differences.report("plain bilinear, two taps (float64, not rounded)")
    assert differences.largest <= 0.55


def test_plain_bilinear_is_tensorflows(files):
    tf = pytest.importorskip("tensorflow", minversion="2")
    rows, drawn = apply_plan(["plain", *EVALUATION], files, (224, 224))
    differences = Differences()
    for path, row, (_, (width, height), _) in zip(files, rows, drawn):
        array = np.asarray(open_image(path))
        resized = tf.image.resize(array, [height, width], method="bilinear", antialias=False)
        differences.add(row, center_crop(resized.numpy(), 224, 224))
    differences.report("plain bilinear, tf.image.resize (float32, not rounded)")
    assert differences.largest <= 0.75
