"""Compares pixels of all transforms with torchvision's, with the same drawn parameters, through draw_plan.

The inputs of torchvision's functions are our own rows of the resampling that comes first, which
test_pillow.py compares separately. Run with -s to see how far apart they are.
"""

import numpy as np
import pytest
from drawing import (
    DRAW_PLAN,
    Differences,
    applied,
    between_pixels,
    decoded,
    made_arrays,
    mirrored,
    photographs,
    theirs,
    write_jpegs,
)

torch = pytest.importorskip("torch")
F = pytest.importorskip("torchvision.transforms.v2.functional")

pytestmark = pytest.mark.skipif(not DRAW_PLAN.exists(), reason=f"{DRAW_PLAN} is not built")

SIZE = 224
BEFORE = {
    "evaluation": [{"name": "Resize", "size": 256}, {"name": "CenterCrop", "height": SIZE, "width": SIZE}],
    "training": [{"name": "RandomResizedCrop", "height": SIZE, "width": SIZE}],
}
MODES = ["constant", "edge", "reflect", "symmetric"]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
NORMALIZE = {"name": "Normalize", "mean": MEAN, "std": STD}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    torch.set_num_threads(1)
    sizes = [(375, 500), (500, 375), (256, 256), (300, 700), (260, 225), (640, 480)]
    return photographs() or write_jpegs(tmp_path_factory.mktemp("made"), made_arrays(sizes * 6))


@pytest.fixture(scope="session", params=BEFORE)
def images(request, files):
    """Returns how the list of transforms begins, and the images at that point."""
    before = BEFORE[request.param]
    rows, _ = applied(before, files, (SIZE, SIZE))
    return request.param, before, rows


def compared(what, images, transforms, files, fill=None):
    """Of the whole list; and of those images where all that was drawn is one step that moves pixels to
    the nearest place, how many values differ that rounding does not explain."""
    kind, before, rows = images
    ours, samples = applied([*before, *transforms], files, (SIZE, SIZE))
    all_, nearest, unexplained = Differences(), Differences(), 0
    for row, our, sample in zip(rows, ours, samples):
        image = mirrored(F, sample, torch.from_numpy(row.copy()))
        for step in sample["steps"]:
            image = theirs(F, step, image, fill)
        all_.add(our, image.numpy())
        if [s.get("interpolation") for s in sample["steps"]] == ["nearest"]:
            nearest.add(our, image.numpy())
            step = sample["steps"][0]
            explained = between_pixels(step["matrix"], SIZE, SIZE, divisor=step["divisor"])
            unexplained += np.count_nonzero((our != image.numpy()) & ~explained)
    all_.report(f"{what}, {kind}")
    if nearest.images:
        nearest.report(f"{what}, {kind}, one step, nearest")
    return all_, nearest, unexplained


def named(name, **options):
    return {"name": name, **options}


def ids(cases):
    return [pytest.param(*case, id=case[0]) for case in cases]


EXACT = [
    ("RandomHorizontalFlip", [named("RandomHorizontalFlip")]),
    ("RandomVerticalFlip", [named("RandomVerticalFlip")]),
    ("brightness", [named("ColorJitter", brightness=[0.2, 1.8], p=0.8)]),
    ("RandomSolarize", [named("RandomSolarize", threshold=100.5)]),
    ("RandomInvert", [named("RandomInvert")]),
    *[(f"RandomPosterize {n}", [named("RandomPosterize", bits=n)]) for n in (0, 1, 4, 7, 8)],
    *[
        (f"RandomAdjustSharpness {x}", [named("RandomAdjustSharpness", sharpness_factor=x)])
        for x in (0, 0.3, 1, 2, 7.5)
    ],
    ("RandomAutocontrast", [named("RandomAutocontrast")]),
    ("RandomEqualize", [named("RandomEqualize")]),
    ("RandomApply", [
        named("RandomApply", p=0.8, transforms=[
            named("ColorJitter", brightness=[0.2, 1.8]), named("RandomSolarize", threshold=128, p=0.2)])]),
    ("RandomChoice of flips", [
        named("RandomChoice", p=[1, 2], transforms=[
            named("RandomHorizontalFlip", p=1), named("RandomVerticalFlip", p=1)])]),
    ("RandomOrder of trees", [
        named("RandomOrder", transforms=[
            named("RandomChoice", transforms=[
                named("RandomVerticalFlip", p=1), named("RandomSolarize", threshold=99, p=1)]),
            named("RandomApply", p=0.5, transforms=[
                named("ColorJitter", brightness=[0.2, 1.8]), named("RandomHorizontalFlip")])])]),
    *[
        (f"Pad {mode}", [
            named("Pad", padding=[3, 20, 7, 90], padding_mode=mode, fill=[9, 0, 255]),
            named("RandomCrop", height=SIZE, width=SIZE),
            named("RandomHorizontalFlip"),
        ])
        for mode in MODES
    ],
    *[
        (f"RandomCrop {mode}", [
            named("RandomCrop", height=SIZE, width=SIZE, padding=[28] * 4, padding_mode=mode),
            named("RandomVerticalFlip"),
        ])
        for mode in MODES
    ],
]  # fmt: skip


@pytest.mark.parametrize(("what", "transforms"), ids(EXACT))
def test_transform_equals_torchvision(what, transforms, images, files):
    if transforms[0]["name"] in ("Pad", "RandomCrop"):
        # A step, so that there is one image to pad: as it is, all of that is fused.
        transforms = [named("ColorJitter", brightness=[0.9, 0.9]), *transforms]
    assert compared(what, images, transforms, files)[0].largest == 0


# One operation, whose results differ by its rounding: at most by 1, and this share of the values.
ROUNDED = [
    ("contrast", [named("ColorJitter", contrast=[0.2, 1.8])], 2e-4),
    ("saturation", [named("ColorJitter", saturation=[0.2, 1.8])], 2e-4),
    ("hue", [named("ColorJitter", hue=[-0.5, 0.5])], 1e-3),
    ("RandomGrayscale", [named("RandomGrayscale", p=0.5)], 2e-4),
    ("GaussianBlur 23", [named("GaussianBlur", kernel_width=23, kernel_height=23)], 2e-3),
    ("GaussianBlur 9 x 3", [named("GaussianBlur", kernel_width=9, kernel_height=3, sigma=[1, 5])], 2e-3),
]


@pytest.mark.parametrize(("what", "transforms", "share"), ids(ROUNDED))
def test_transform_differs_from_torchvision_by_rounding_only(what, transforms, share, images, files):
    differences, *_ = compared(what, images, transforms, files)
    assert differences.largest <= 1
    assert differences.share <= share


JITTER = {"brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.6, 1.4], "hue": [-0.1, 0.1]}


def policy(name, interpolation="nearest", **options):
    return [named(name, interpolation=interpolation, **options)]


# Several operations: the first's rounding is another's input, which may stretch it. The share of values
# that are off by more than 1. Where a single operation moved pixels to the nearest place: the share that
# differs at all. Each of them lies on the border between two pixels, where the last bit decides; shears
# by SVHN's strengths put whole rows there (by 0.1: one in ten).
POLICIES = [
    ("RandAugment", policy("RandAugment"), 1e-3, 1e-3),
    ("RandAugment 3 of 15, bilinear", policy("RandAugment", "bilinear", num_ops=3, magnitude=15), 5e-3, 0),
    ("TrivialAugmentWide", policy("TrivialAugmentWide"), 1e-3, 1e-3),
    ("TrivialAugmentWide, bilinear", policy("TrivialAugmentWide", "bilinear"), 1e-3, 0),
    ("TrivialAugmentWide, fill", policy("TrivialAugmentWide", fill=[124, 116, 104]), 1e-3, 1e-3),
    ("AutoAugment imagenet", policy("AutoAugment", policy="imagenet"), 1e-3, 1e-3),
    ("AutoAugment cifar10", policy("AutoAugment", policy="cifar10"), 1e-3, 1e-3),
    ("AutoAugment svhn", policy("AutoAugment", policy="svhn"), 5e-3, 1e-2),
    ("AugMix", [named("AugMix")], 1e-3, 0),
    ("AugMix, nearest, fill", policy("AugMix", severity=10, mixture_width=5, fill=[124, 116, 104]), 5e-3, 0),
    ("ColorJitter", [named("ColorJitter", **JITTER)], 1e-3, 0),
    ("RandomPhotometricDistort", [named("RandomPhotometricDistort", p=0.7)], 1e-3, 0),
    ("RandomPerspective", [named("RandomPerspective", fill=None)], 0, 0),
    ("RandomPerspective, fill", [named("RandomPerspective", p=1, fill=[124, 116, 104])], 0, 0),
    ("RandomPerspective, nearest", policy("RandomPerspective"), 1e-3, 1e-3),
]


@pytest.mark.parametrize(("what", "transforms", "share", "share_nearest"), ids(POLICIES))
def test_several_operations(what, transforms, share, share_nearest, images, files):
    fill = transforms[0].get("fill")
    all_, nearest, unexplained = compared(what, images, transforms, files, fill)
    assert unexplained == 0
    assert all_.share_beyond_one <= share
    assert nearest.share <= share_nearest


def test_bilinear_with_a_fill(files):
    """With a fill torchvision blends the border twice; without one, once."""
    before, fill = BEFORE["training"], [124, 116, 104]
    rows, _ = applied(before, files, (SIZE, SIZE))
    ours, samples = applied(
        [*before, *policy("TrivialAugmentWide", "bilinear", fill=fill)], files, (SIZE, SIZE)
    )
    differences = Differences()
    for row, our, sample in zip(rows, ours, samples):
        if [s["name"] for s in sample["steps"]] == ["Affine"]:
            differences.add(our, theirs(F, sample["steps"][0], torch.from_numpy(row.copy()), fill).numpy())
    differences.report("bilinear with a fill")
    assert differences.images > 0
    assert differences.largest <= 1


# ---- Affine transforms, of ranges of one value, which draw it. Only the distance of a move is random.


def turned(angle):
    return (
        named("RandomRotation", degrees=[angle, angle]),
        lambda image, moved, **options: F.rotate(image, angle, **options),
    )


def mapped(angle, scale, shear):
    of_shear = {"shear_x": [shear[0]] * 2, "shear_y": [shear[1]] * 2}
    return (
        named("RandomAffine", degrees=[angle, angle], scale=[scale, scale], **of_shear),
        lambda image, moved, **options: F.affine(image, angle, moved, scale, shear, **options),
    )


AFFINE = {
    "RandomRotation 20.5": turned(20.5),
    "RandomRotation -90": turned(-90),
    "RandomRotation 500.25": turned(500.25),
    "RandomAffine scale 0.713": mapped(0, 0.713, [0, 0]),
    "RandomAffine shear 31, -12.5": mapped(0, 1, [31, -12.5]),
    "RandomAffine of all": mapped(-797.3, 1.4, [-20, 8]),
}


def compare_affine(spec, transform, before, files, mode, fill, center):
    """Returns the differences. Those of nearest are pixels whose place rounding decides."""
    rows, _ = applied(before, files, (SIZE, SIZE))
    ours, samples = applied([*before, {**spec, "interpolation": mode}], files, (SIZE, SIZE))
    options = {"interpolation": F.InterpolationMode(mode), "fill": fill, "center": center}
    differences = Differences()
    for row, our, sample in zip(rows, ours, samples):
        matrix = sample["steps"][0]["matrix"]
        a, b, c, d, e, f = matrix
        pivot = np.zeros(2) if center is None else np.array(center) - SIZE / 2
        moved = np.linalg.solve([[a, b], [d, e]], pivot - [c, f]) - pivot
        assert np.abs(moved - moved.round()).max() < 1e-9
        wanted = transform(torch.from_numpy(row.copy()), [int(v) for v in moved.round()], **options).numpy()
        if mode == "nearest":
            assert not ((our != wanted).any(0) & ~between_pixels(matrix, SIZE, SIZE)).any()
        differences.add(our, wanted)
    return differences


@pytest.mark.parametrize("what", AFFINE)
def test_affine_transforms_equal_torchvisions(what, files):
    before = BEFORE["evaluation"]
    for mode in ("nearest", "bilinear"):
        for fill in (0, None, [124, 116, 104]):
            for center in (None, [30, 200]):
                spec, transform = AFFINE[what]
                spec = {**spec, "fill": [0] * 3 if fill == 0 else fill}
                if center is not None:
                    spec.update(center_x=center[0], center_y=center[1])
                if spec["name"] == "RandomAffine":
                    spec.update(translate_x=0.2, translate_y=0.1)
                differences = compare_affine(spec, transform, before, files[::80], mode, fill, center)
                differences.report(f"{what}, {mode}, fill {fill}, center {center}")
                assert mode == "nearest" or differences.largest <= 1
                assert differences.share <= 1e-3


# ---- Erasing.


def philox(counter, key):
    """Philox4x32-10 of the blocks counter, 0, 0, 0. (Salmon et al., SC 2011)"""
    low = np.uint64(0xFFFFFFFF)
    words = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    keys = [np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)]
    for _ in range(10):
        a, b = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (b >> np.uint64(32)) ^ words[1] ^ keys[0],
            b & low,
            (a >> np.uint64(32)) ^ words[3] ^ keys[1],
            a & low,
        ]
        keys = [(keys[0] + np.uint64(0x9E3779B9)) & low, (keys[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(words, -1).reshape(-1)


def noise_of(key, height, width):
    """Normal numbers, channel by channel and row by row."""
    count = 3 * height * width
    words = philox(np.arange((count + 3) // 4), key)[:count]
    u = torch.from_numpy((words.astype(np.float64) + 0.5) / 2**32)
    return torch.special.ndtri(u).to(torch.float32).reshape(3, height, width)


def their_erased(sample, image):
    for erasure in sample["erasures"]:
        x, y, width, height = erasure["box"]
        if "noise" in erasure:
            values = noise_of(erasure["noise"], height, width)
        else:
            values = torch.tensor(erasure["value"]).reshape(3, 1, 1)
        image = F.erase(image, y, x, height, width, values)
    return image


def test_erasing_of_bytes(images, files):
    kind, before, rows = images
    erasing = named("RandomErasing", p=0.7, value=[10, 20.7, 255])
    ours, samples = applied([*before, erasing], files, (SIZE, SIZE))
    differences = Differences()
    for row, our, sample in zip(rows, ours, samples):
        differences.add(our, their_erased(sample, torch.from_numpy(row.copy())).numpy())
    differences.report(f"RandomErasing, {kind}")
    assert differences.largest == 0
    erased = np.mean([len(s["erasures"]) for s in samples])
    assert abs(erased - 0.7) < 4 * np.sqrt(0.7 * 0.3 / len(samples))  # of independent draws: 4 deviations


@pytest.mark.parametrize("kind", ["value behind Normalize", "value before Normalize", "noise"])
def test_erasing_of_floats(kind, images, files):
    _, before, rows = images
    value = [0.1, -3.0, 0.7]
    erasing = named("RandomErasing", p=0.7, **({"noise": True} if kind == "noise" else {"value": value}))
    order = [erasing, NORMALIZE] if kind == "value before Normalize" else [NORMALIZE, erasing]
    ours, samples = applied([*before, *order], files, (SIZE, SIZE), "float32")
    differences, erased = Differences(), Differences()
    for row, our, sample in zip(rows, ours, samples):
        image = F.to_dtype(torch.from_numpy(row.copy()), torch.float32, scale=True)
        if kind == "value before Normalize":
            for x, y, width, height in (e["box"] for e in sample["erasures"]):
                image = F.erase(image, y, x, height, width, torch.tensor(value).reshape(3, 1, 1))
            image = F.normalize(image, MEAN, STD)
        else:
            image = their_erased(sample, F.normalize(image, MEAN, STD))
        differences.add(our, image.numpy())
        for x, y, width, height in (e["box"] for e in sample["erasures"]):
            box = np.s_[:, y : y + height, x : x + width]
            erased.add(our[box], image.numpy()[box])
    differences.report(f"RandomErasing, {kind}, float32")
    erased.report("of that the boxes")
    assert differences.largest < 2e-6
    assert erased.largest < (2e-6 if kind == "value before Normalize" else 5e-7)


# ---- Crops of whole images, without resampling.


def place_of(sample):
    """Returns where the crop begins in the image, or outside."""
    x, y = sample["geometry"]["box"][:2]
    for step in sample["steps"]:
        if step["name"] == "Reframe":
            x, y = x + step["window"][0], y + step["window"][1]
    return x, y


def compare_crops(what, files, size, flip=True, **options):
    """`options`: those of RandomCrop."""
    transforms = [named("RandomCrop", height=size, width=size, **options)]
    transforms += [named("RandomHorizontalFlip")] * flip
    ours, samples = applied(transforms, files, (size, size))
    mode = options.get("padding_mode", "constant")
    fill = options.get("fill", [0, 0, 0]) if mode == "constant" else 0
    differences, flips = Differences(), 0
    for path, our, sample in zip(files, ours, samples):
        image = torch.from_numpy(decoded(path))
        left, top, right, bottom = options.get("padding", [0] * 4)
        lacks = [max(0, size - s - p) for s, p in zip(image.shape[1:], (top + bottom, left + right))]
        sides = [left + lacks[1], top + lacks[0], right + lacks[1], bottom + lacks[0]]
        x, y = place_of(sample)
        flipped = sample["geometry"]["mirror_columns"] or any(s["name"] == "Mirror" for s in sample["steps"])
        flips += flipped
        padded = F.pad(image, sides, fill=fill, padding_mode=mode) if any(sides) else image
        assert 0 <= x + sides[0] <= padded.shape[2] - size
        assert 0 <= y + sides[1] <= padded.shape[1] - size
        wanted = F.crop(padded, y + sides[1], x + sides[0], size, size)
        differences.add(our, (F.horizontal_flip(wanted) if flipped else wanted).numpy())
    differences.report(f"{what}, {mode}")
    assert 0 < flips < len(files)
    assert differences.largest == 0


@pytest.mark.parametrize("mode", MODES)
def test_crops_of_photographs(mode, files):
    large = [path for path in files[::4] if min(decoded(path).shape[1:]) >= 140]
    compare_crops(
        "RandomCrop(160) of whole images",
        large,
        160,
        padding=[40, 30, 20, 50],
        padding_mode=mode,
        fill=[1, 2, 3],
    )


@pytest.mark.parametrize("mode", MODES)
def test_crops_of_small_images(mode, tmp_path):
    """CIFAR's recipe."""
    files = write_jpegs(tmp_path, made_arrays([(32, 32)] * 200))
    compare_crops("RandomCrop(32, padding=4) of 32 x 32", files, 32, padding=[4] * 4, padding_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_images_that_are_too_small(mode, tmp_path):
    sizes = [(20, 50), (50, 20), (32, 31), (17, 17), (40, 40), (30, 30), (31, 64), (18, 25)]
    files = write_jpegs(tmp_path, made_arrays(sizes * 6))
    compare_crops("RandomCrop(32, pad_if_needed)", files, 32, pad_if_needed=True, padding_mode=mode)
