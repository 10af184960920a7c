"""Compares the draws of the random transforms with torchvision's, through draw_plan.

Both sides' seeds are fixed, so that a test passes always or never. A p below 1e-4 fails. How small a
deviation is found: for two samples of 20,000, Kolmogorov and Smirnov's test finds distributions that are
0.036 apart somewhere (a range that is 3.6 % too long or is shifted by that) with a probability of 0.99;
the chi-square test finds a probability of 0.5 that is off by 0.032, and one of 14 equal ones that is 32 %
too large, or 11 % in test_operations_are_equally_frequent. test_deviations_are_found shows it.
"""

import collections
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from drawing import DRAW_PLAN, coefficients_of, drawn

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
geometry = pytest.importorskip("torchvision.transforms.v2.functional._geometry")

pytestmark = pytest.mark.skipif(not DRAW_PLAN.exists(), reason=f"{DRAW_PLAN} is not built")

DRAWS = 20_000
LEAST_P = 1e-4


def resized(height, width):
    return {"name": "Resize", "height": height, "width": width}


def draws(transform, height=224, width=224, count=DRAWS, **options):
    """Returns what one transform draws for an image of that size."""
    return drawn([resized(height, width), transform], width, height, count, **options)


@pytest.fixture(autouse=True)
def seeded():
    torch.set_num_threads(1)
    torch.manual_seed(1)


# ---- Two samples: the probability that what they are drawn from is the same.


def kolmogorov_smirnov(ours, theirs):
    values = np.concatenate([ours, theirs])
    ranks = [np.searchsorted(np.sort(side), values, "right") / len(side) for side in (ours, theirs)]
    largest = np.abs(ranks[0] - ranks[1]).max()
    root = np.sqrt(len(ours) * len(theirs) / (len(ours) + len(theirs)))
    x = (root + 0.12 + 0.11 / root) * largest  # Press et al.: Numerical Recipes, 14.3
    if x < 0.2:
        return 1.0
    terms = np.arange(1, 101)
    return float(np.clip(2 * np.sum((-1.0) ** (terms - 1) * np.exp(-2 * (terms * x) ** 2)), 0, 1))


def chi_square_tail(value, degrees):
    half = torch.tensor([degrees / 2, value / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def evenness(counts, weights):
    """Tests counts that are expected to be proportional to the weights."""
    expected = weights / weights.sum() * sum(counts)
    return chi_square_tail(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


def chi_square(ours, theirs):
    """Tests two samples of anything that can be counted; rare values are counted together."""
    counts = [collections.Counter(side) for side in (ours, theirs)]
    table = np.array([[c[kind] for c in counts] for kind in counts[0] | counts[1]], float)
    rare = table.sum(1) < 20
    table = np.vstack([table[~rare], table[rare].sum(0, keepdims=True)])
    table = table[table.sum(1) > 0]
    if len(table) == 1:
        return 1.0  # both have nothing but the same
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    return chi_square_tail(((table - expected) ** 2 / expected).sum(), len(table) - 1)


def check(**chances):
    print("\np:", {what: round(p, 4) for what, p in chances.items()})
    assert min(chances.values()) > LEAST_P, chances


def found(test, deviating, samples=200):
    """Returns the share of samples whose deviation a test finds."""
    return np.mean([test(*deviating(np.random.default_rng(seed))) < LEAST_P for seed in range(samples)])


def test_deviations_are_found():
    def longer(random):
        return random.random(DRAWS), 1.036 * random.random(DRAWS)

    def likelier(random):
        return random.random(DRAWS) < 0.5, random.random(DRAWS) < 0.532

    def one_of_14(random):
        weights = np.ones(14)
        weights[3] = 1.32
        other = random.choice(14, DRAWS, p=weights / weights.sum())
        return random.integers(0, 14, DRAWS), other

    def equal_but_one(random):
        weights = np.ones(23)
        weights[:9] = 0.5
        weights[9:18] = 0.5
        weights[20] = 1.11
        return np.bincount(random.choice(23, 100_000, p=weights / weights.sum())), 1 - (weights == 0.5) / 2

    def none(random):
        return random.random(DRAWS), random.random(DRAWS)

    powers = [found(kolmogorov_smirnov, longer), found(chi_square, likelier), found(chi_square, one_of_14)]
    powers.append(found(evenness, equal_but_one))
    print("\nfound:", powers)
    assert min(powers) >= 0.98
    assert found(kolmogorov_smirnov, none) == 0


# ---- Each transform.


def test_color_jitter():
    ranges = {"brightness": [0.6, 1.4], "contrast": [0.2, 1.1], "saturation": [0.0, 2.0], "hue": [-0.1, 0.3]}
    ours = [s["steps"] for s in draws({"name": "ColorJitter", **ranges})]
    transform = v2.ColorJitter(**ranges)
    theirs = [transform.make_params([]) for _ in range(DRAWS)]
    names = ["AdjustBrightness", "AdjustContrast", "AdjustSaturation", "AdjustHue"]
    orders = [tuple(names.index(s["name"]) for s in steps) for steps in ours]
    their_orders = [tuple(p["fn_idx"].tolist()) for p in theirs]
    assert set(orders) == set(their_orders)
    assert len(set(orders)) == 24
    of = [{s["name"]: s.get("factor", s.get("shift")) for s in steps} for steps in ours]
    chances = {
        option: kolmogorov_smirnov(
            np.array([s[name] for s in of]), np.array([p[f"{option}_factor"] for p in theirs])
        )
        for option, name in zip(ranges, names)
    }
    check(order=chi_square(orders, their_orders), **chances)


def test_parts_of_color_jitter_that_change_nothing_are_left_out():
    steps = [s["steps"] for s in draws({"name": "ColorJitter", "contrast": [0.5, 1.5]}, count=100)]
    assert {tuple(s["name"] for s in all_) for all_ in steps} == {("AdjustContrast",)}


def test_photometric_distortion():
    ours = [s["steps"] for s in draws({"name": "RandomPhotometricDistort", "p": 0.6})]
    transform = v2.RandomPhotometricDistort(p=0.6)
    theirs = [transform.make_params([torch.zeros(3, 1, 1)]) for _ in range(DRAWS)]
    options = ["brightness", "contrast", "saturation", "hue"]
    names = [f"Adjust{option.capitalize()}" for option in options]

    def order(drawn):
        before = [0, 1, 2, 3] if drawn["contrast_before"] else [0, 2, 3, 1]
        made = [n for n in before if drawn[f"{options[n]}_factor"] is not None]
        permutation = drawn["channel_permutation"]
        return (*made, None if permutation is None else tuple(permutation.tolist()))

    def our_order(steps):
        permutations = [tuple(s["from"]) for s in steps if s["name"] == "PermuteChannels"]
        assert len(permutations) < 2 and (not permutations or steps[-1]["name"] == "PermuteChannels")
        made = [names.index(s["name"]) for s in steps if s["name"] in names]
        return (*made, permutations[0] if permutations else None)

    chances = {
        option: kolmogorov_smirnov(
            np.array([s.get("factor", s.get("shift")) for steps in ours for s in steps if s["name"] == name]),
            np.array([p[f"{option}_factor"] for p in theirs if p[f"{option}_factor"] is not None]),
        )
        for option, name in zip(options, names)
    }
    our_orders, their_orders = [our_order(steps) for steps in ours], [order(drawn) for drawn in theirs]
    assert {drawn[-1] for drawn in our_orders} == {drawn[-1] for drawn in their_orders}
    check(
        steps=chi_square([drawn[:-1] for drawn in our_orders], [drawn[:-1] for drawn in their_orders]),
        channels=chi_square([str(drawn[-1]) for drawn in our_orders], [str(d[-1]) for d in their_orders]),
        **chances,
    )


def test_probabilities():
    class Counting:
        def transform(self, image, params):
            return image + 1

    def their_draws(kind, p, *first):
        transform = type("Counted", (Counting, kind), {})(*first, p=p)
        image = torch.zeros(3, 1, 1)
        return [bool(transform(image)[0, 0, 0] == 1) for _ in range(DRAWS)]

    def our_draws(name, p, happened, **options):
        return [happened(s) for s in draws({"name": name, "p": p, **options})]

    check(
        horizontal=chi_square(
            our_draws("RandomHorizontalFlip", 0.3, lambda s: s["geometry"]["mirror_columns"]),
            their_draws(v2.RandomHorizontalFlip, 0.3),
        ),
        vertical=chi_square(
            our_draws("RandomVerticalFlip", 0.5, lambda s: s["geometry"]["mirror_rows"]),
            their_draws(v2.RandomVerticalFlip, 0.5),
        ),
        gray=chi_square(
            our_draws("RandomGrayscale", 0.1, lambda s: len(s["steps"]) == 1),
            their_draws(v2.RandomGrayscale, 0.1),
        ),
        solarize=chi_square(
            our_draws("RandomSolarize", 0.2, lambda s: len(s["steps"]) == 1, threshold=128),
            their_draws(v2.RandomSolarize, 0.2, 128),
        ),
        invert=chi_square(
            our_draws("RandomInvert", 0.4, lambda s: len(s["steps"]) == 1),
            their_draws(v2.RandomInvert, 0.4),
        ),
        posterize=chi_square(
            our_draws("RandomPosterize", 0.6, lambda s: len(s["steps"]) == 1, bits=4),
            their_draws(v2.RandomPosterize, 0.6, 4),
        ),
        sharpness=chi_square(
            our_draws("RandomAdjustSharpness", 0.7, lambda s: len(s["steps"]) == 1, sharpness_factor=2),
            their_draws(v2.RandomAdjustSharpness, 0.7, 2),
        ),
        autocontrast=chi_square(
            our_draws("RandomAutocontrast", 0.35, lambda s: len(s["steps"]) == 1),
            their_draws(v2.RandomAutocontrast, 0.35),
        ),
        equalize=chi_square(
            our_draws("RandomEqualize", 0.9, lambda s: len(s["steps"]) == 1),
            their_draws(v2.RandomEqualize, 0.9),
        ),
        apply=chi_square(
            our_draws(
                "RandomApply",
                0.8,
                lambda s: len(s["steps"]) == 2,
                transforms=[{"name": "RandomSolarize", "threshold": t, "p": 1} for t in (1, 2)],
            ),
            [
                v2.RandomApply([lambda image: image + 1], p=0.8)(torch.zeros(1)).item() == 1
                for _ in range(DRAWS)
            ],
        ),
        erasing=chi_square(
            our_draws("RandomErasing", 0.25, lambda s: len(s["erasures"]) == 1, scale=[0.1, 0.2]),
            their_draws(v2.RandomErasing, 0.25),
        ),
    )


def test_choices_and_orders():
    """Each transform is a digit: ours has it as threshold, theirs appends it to a number."""

    def solarize(digit):
        return {"name": "RandomSolarize", "threshold": digit, "p": 1}

    def digits(sample):
        return int("".join(str(int(step["threshold"])) for step in sample["steps"]) or 0)

    def ours(name, held, **options):
        return [digits(s) for s in draws({"name": name, "transforms": held, **options})]

    def appends(digit):
        return lambda number: 10 * number + digit

    def theirs(transform):
        return [transform(0) for _ in range(DRAWS)]

    p = [1.0, 0, 2.5, 0.5]
    four, their_four = [solarize(d) for d in (1, 2, 3, 4)], [appends(d) for d in (1, 2, 3, 4)]
    of_weights, of_orders = ours("RandomChoice", four, p=p), ours("RandomOrder", four)
    assert set(of_weights) == {1, 3, 4} and len(set(of_orders)) == 24
    nested = [
        {"name": "RandomChoice", "transforms": four[:2], "p": [3, 1]},
        {"name": "RandomApply", "transforms": four[2:], "p": 0.3},
    ]
    their_nested = [v2.RandomChoice(their_four[:2], [3, 1]), v2.RandomApply(their_four[2:], 0.3)]
    check(
        choice=chi_square(ours("RandomChoice", four), theirs(v2.RandomChoice(their_four))),
        weights=chi_square(of_weights, theirs(v2.RandomChoice(their_four, p))),
        orders=chi_square(of_orders, theirs(v2.RandomOrder(their_four))),
        tree=chi_square(ours("RandomOrder", nested), theirs(v2.RandomOrder(their_nested))),
    )


def test_gaussian_blur():
    options = {"kernel_width": 23, "kernel_height": 5, "sigma": [0.1, 2.0]}
    ours = [s["steps"][0] for s in draws({"name": "GaussianBlur", **options})]
    assert {tuple(s["taps"]) for s in ours} == {(23, 5)}
    assert all(s["sigma_x"] == s["sigma_y"] for s in ours)
    transform = v2.GaussianBlur((23, 5), (0.1, 2.0))
    theirs = np.array([transform.make_params([])["sigma"][0] for _ in range(DRAWS)])
    check(sigma=kolmogorov_smirnov(np.array([s["sigma_x"] for s in ours]), theirs))


@pytest.mark.parametrize(
    ("height", "width", "pad_if_needed"), [(32, 32, False), (40, 26, False), (20, 50, True)]
)
def test_random_crop(height, width, pad_if_needed):
    options = {"padding": [4, 1, 2, 3], "pad_if_needed": pad_if_needed}
    ours = drawn([{"name": "RandomCrop", "height": 32, "width": 32, **options}], width, height, DRAWS)
    transform = v2.RandomCrop(32, **options)
    image = torch.zeros(3, height, width)
    theirs = []
    for params in (transform.make_params([image]) for _ in range(DRAWS)):
        left, top = params["padding"][:2]
        theirs.append((params["left"] - left, params["top"] - top))
    places = [tuple(s["geometry"]["box"][:2]) for s in ours]
    assert set(places) == set(theirs)
    check(
        places=chi_square(places, theirs),
        across=chi_square([x for x, _ in places], [x for x, _ in theirs]),
        down=chi_square([y for _, y in places], [y for _, y in theirs]),
    )


# The last two have no room for most of what is drawn: some images are left as they are.
@pytest.mark.parametrize(
    ("height", "width", "scale", "ratio"),
    [
        (224, 224, [0.02, 0.33], [0.3, 3.3]),
        (100, 300, [0.1, 0.2], [0.5, 1.0]),
        (32, 200, [0.3, 0.9], [0.3, 3.3]),
        (224, 224, [0.9, 1.0], [0.2, 5.0]),
    ],
)
def test_random_erasing(height, width, scale, ratio):
    transform = {"name": "RandomErasing", "p": 1, "scale": scale, "ratio": ratio}
    ours = [s["erasures"][0]["box"] for s in draws(transform, height, width) if s["erasures"]]
    make_params = v2.RandomErasing(p=1, scale=scale, ratio=ratio).make_params
    image = torch.zeros(3, 1, 1).expand(3, height, width)
    their_draws = (make_params([image]) for _ in range(DRAWS))
    theirs = [[p["j"], p["i"], p["w"], p["h"]] for p in their_draws if p["v"] is not None]

    def of_boxes(boxes):
        x, y, w, h = np.asarray(boxes, np.float64).T
        return w * h / (width * height), np.log(h / w), x / (width - w), y / (height - h)

    parts = {
        name: kolmogorov_smirnov(our, their)
        for name, our, their in zip(("area", "ratio", "across", "down"), of_boxes(ours), of_boxes(theirs))
    }
    none = [[i < len(side) for i in range(DRAWS)] for side in (ours, theirs)]
    check(erased=chi_square(*none), **parts)


def test_noise_has_its_own_key_for_each_sample():
    transform = {"name": "RandomErasing", "p": 1, "scale": [0.1, 0.2], "noise": True}
    keys = {s["erasures"][0]["noise"] for s in draws(transform, count=1000, dtype="float32")}
    assert len(keys) == 1000


def test_rotation():
    ours = [s["steps"][0]["matrix"] for s in draws({"name": "RandomRotation", "degrees": [-20, 130]})]
    angles = np.degrees([math.atan2(m[3], m[0]) for m in ours])
    make_params = v2.RandomRotation((-20, 130)).make_params
    check(angle=kolmogorov_smirnov(angles, np.array([make_params([])["angle"] for _ in range(DRAWS)])))


def test_affine():
    options = {"degrees": [0, 0], "scale": [0.5, 2], "translate_x": 0.1, "translate_y": 0.02}
    shears = {"degrees": [0, 0], "shear_x": [-10, 40], "shear_y": [0, 5]}
    moved, sheared = (
        np.array([s["steps"][0]["matrix"] for s in draws({"name": "RandomAffine", **o})]).T
        for o in (options, shears)
    )
    image = torch.zeros(3, 1, 1).expand(3, 224, 224)
    transform = v2.RandomAffine(0, translate=(0.1, 0.02), scale=(0.5, 2), shear=(-10, 40, 0, 5))
    theirs = [transform.make_params([image]) for _ in range(DRAWS)]
    translations = [p["translate"] for p in theirs]
    ours = [(round(-m[2] / m[0]), round(-m[5] / m[0])) for m in moved.T]
    assert {abs(x) for x, _ in ours} == set(range(23))
    check(
        scale=kolmogorov_smirnov(1 / moved[0], np.array([p["scale"] for p in theirs])),
        across=chi_square([x for x, _ in ours], [x for x, _ in translations]),
        down=chi_square([y for _, y in ours], [y for _, y in translations]),
        shear_x=kolmogorov_smirnov(
            np.degrees(np.arctan(sheared[1])), np.array([p["shear"][0] for p in theirs])
        ),
        shear_y=kolmogorov_smirnov(
            np.degrees(np.arctan(sheared[3])), np.array([p["shear"][1] for p in theirs])
        ),
    )


def test_hsv():
    transform = {"name": "RandomHSV", "hue": [-0.1, 0.3], "saturation": [0.3, 1.7], "value": [1.5, 1.5]}
    steps = [s["steps"][0] for s in draws(transform)]
    assert {step["value"] for step in steps} == {1.5}
    random = np.random.default_rng(1)
    check(
        shift=kolmogorov_smirnov(np.array([s["shift"] for s in steps]), random.uniform(-0.1, 0.3, DRAWS)),
        saturation=kolmogorov_smirnov(
            np.array([s["saturation"] for s in steps]), random.uniform(0.3, 1.7, DRAWS)
        ),
    )


@pytest.mark.parametrize(("height", "width", "scale"), [(224, 224, 0.5), (60, 101, 0.6), (33, 20, 0.25)])
def test_perspective(height, width, scale):
    transform = {"name": "RandomPerspective", "distortion_scale": scale, "p": 0.7}
    ours = [s["steps"] for s in draws(transform, height, width)]
    transform = v2.RandomPerspective(scale)
    image = torch.zeros(3, 1, 1).expand(3, height, width)
    theirs = [transform.make_params([image])["coefficients"] for _ in range(DRAWS)]

    def corners_of(coefficients):
        right, bottom = width - 1, height - 1
        corners = np.array([[0, right, right, 0], [0, 0, bottom, bottom], [1] * 4])
        moved = np.linalg.inv(np.array([*coefficients, 1]).reshape(3, 3)) @ corners
        return (moved[:2] / moved[2]).ravel()

    ours_moved = np.array([corners_of(coefficients_of(s[0], height, width)) for s in ours if s])
    assert np.abs(ours_moved - ours_moved.round()).max() < 1e-6
    theirs_moved = np.array([corners_of(each) for each in theirs])
    columns = zip(ours_moved.round().astype(int).T, theirs_moved.round().astype(int).T)
    check(
        applied=chi_square([bool(s) for s in ours], [random < 0.7 for random in torch.rand(DRAWS).tolist()]),
        **{f"corners[{i}]": chi_square(list(our), list(their)) for i, (our, their) in enumerate(columns)},
    )


# ---- Policies: every operation with every strength, and how often.

LINSPACE = """
import numpy as np, torch


def linspace(start, end, steps):
    start, end = np.float32(start), np.float32(end)
    step = (end - start) / np.float32(steps - 1)
    places = np.arange(steps, dtype=np.float32)
    upwards, downwards = start + step * places, end - step * (np.float32(steps - 1) - places)
    return torch.from_numpy(np.where(places < steps // 2, upwards, downwards))
"""
LINSPACE_IS_TORCHS = """
for steps in range(2, 100):
    for end in (0.3, 0.9, 0.99, 30.0, 32.0, 135.0, *(150 / 331 * size for size in range(1, 600))):
        assert torch.equal(linspace(0.0, end, steps), torch.linspace(0.0, end, steps)), (end, steps)
    assert torch.equal(linspace(1.0, 0.0, steps), torch.linspace(1.0, 0.0, steps)), steps
"""


@pytest.fixture
def one_at_a_time(monkeypatch):
    """torch.linspace as torch computes it where it has no vectors: its vectors, which depend on the CPU,
    differ in the last bit, and where that is cut to an integer, by a pixel."""
    names = {}
    exec(LINSPACE, names)
    monkeypatch.setattr(torch, "linspace", names["linspace"])


def test_linspace_matches_torch():
    done = subprocess.run(
        [sys.executable, "-c", LINSPACE + LINSPACE_IS_TORCHS],
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def affine(matrix):
    """Returns rounded steps: torchvision's angles go through degrees and back."""
    matrix = tuple(round(float(m), 6) + 0.0 for m in matrix)
    return () if matrix == (1, 0, 0, 0, 1, 0) else (("Affine", *matrix),)


def their_steps(name, magnitude, height, width):
    """Returns torchvision's result for an operation of its policies, as our steps: one, or none if the image
    is unchanged.
    """
    inverse = geometry._get_inverse_affine_matrix
    if name == "Identity":
        return ()
    if name in ("ShearX", "ShearY"):
        angle = math.degrees(math.atan(magnitude))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        return affine(inverse([-width / 2, -height / 2], 0.0, [0.0, 0.0], 1.0, shear))
    if name in ("TranslateX", "TranslateY"):
        by = float(int(magnitude))
        return affine(
            inverse([0.0, 0.0], 0.0, [by, 0.0] if name == "TranslateX" else [0.0, by], 1.0, [0.0, 0.0])
        )
    if name == "Rotate":
        return affine(inverse([0.0, 0.0], -(magnitude % 360), [0.0, 0.0], 1.0, [0.0, 0.0]))
    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
        factor = float(np.float32(1 + magnitude)) if name == "Brightness" else 1.0 + magnitude
        return () if factor == 1 else (("AdjustSaturation" if name == "Color" else f"Adjust{name}", factor),)
    if name == "Posterize":
        return (("Posterize", int(magnitude)),)
    if name == "Solarize":
        return (("Solarize", float(np.float32(255 * magnitude))),)
    return ((name,),)


def our_steps(sample):
    steps = []
    for step in sample["steps"]:
        if step["name"] == "Mix":
            for chain in step["chains"]:
                steps += our_steps(chain)
        elif step["name"] == "Affine":
            steps += affine(step["matrix"])
        else:
            steps.append((step["name"], *(v for k, v in step.items() if k not in ("name", "transform"))))
    return tuple(steps)


def recorded(policy, height, width, count):
    """Returns the steps of each of `count` calls, without the pixels."""
    calls = []

    class Recording(type(policy)):
        def _apply_image_or_video_transform(self, image, name, magnitude, interpolation, fill):
            calls[-1] += their_steps(name, magnitude, height, width)
            return image

    policy.__class__ = Recording
    image = torch.zeros(3, 1, 1).expand(3, height, width)
    for _ in range(count):
        calls.append(())
        policy(image)
    return calls


def possible(space, bins, of, height, width):
    """Returns the steps of all operations of the strengths `of`, in both directions."""
    steps = set()
    for name, (magnitudes, signed) in space.items():
        values = magnitudes(bins, height, width)
        for magnitude in [0.0] if values is None else [float(values[bin_]) for bin_ in of]:
            steps.add(their_steps(name, magnitude, height, width))
            if signed:
                steps.add(their_steps(name, -magnitude, height, width))
    return steps


# 14 operations in 2 directions: one is not among 700 draws with a probability below 1e-9.
@pytest.mark.parametrize(("height", "width"), [(224, 224), (32, 32), (97, 300)])
@pytest.mark.parametrize("bins", [31, 10, 2])
@pytest.mark.usefixtures("one_at_a_time")
def test_rand_augments_operations_are_torchvisions(height, width, bins):
    space = v2.RandAugment._AUGMENTATION_SPACE
    for magnitude in range(bins):
        options = {"num_ops": 1, "magnitude": magnitude, "num_magnitude_bins": bins}
        ours = {our_steps(s) for s in draws({"name": "RandAugment", **options}, height, width, 700)}
        assert ours == possible(space, bins, [magnitude], height, width), magnitude


# 14 operations, 31 strengths, 2 directions.
@pytest.mark.parametrize(("bins", "count"), [(31, 20_000), (10, 7_000), (2, 2_000), (64, 40_000)])
@pytest.mark.usefixtures("one_at_a_time")
def test_trivial_augments_operations_are_torchvisions(bins, count):
    transform = {"name": "TrivialAugmentWide", "num_magnitude_bins": bins}
    ours = {our_steps(s) for s in draws(transform, count=count)}
    assert ours == possible(v2.TrivialAugmentWide._AUGMENTATION_SPACE, bins, range(bins), 224, 224)


@pytest.mark.parametrize(("height", "width"), [(224, 224), (97, 300)])
@pytest.mark.parametrize("all_ops", [True, False])
@pytest.mark.usefixtures("one_at_a_time")
def test_augmixs_operations_are_torchvisions(height, width, all_ops):
    options = {"severity": 10, "mixture_width": 1, "chain_depth": 1, "all_ops": all_ops}
    ours = {our_steps(s) for s in draws({"name": "AugMix", **options}, height, width, 10_000)}
    space = v2.AugMix._AUGMENTATION_SPACE if all_ops else v2.AugMix._PARTIAL_AUGMENTATION_SPACE
    assert ours == possible(space, 10, range(10), height, width)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_augmixs_weights_and_depths(alpha):
    mixes = [s["steps"][0] for s in draws({"name": "AugMix", "mixture_width": 2, "alpha": alpha})]
    images, shares = (torch._sample_dirichlet(torch.tensor([alpha] * 2).expand(DRAWS, -1)) for _ in range(2))
    weights = np.array([[m["weight"], *(chain["weight"] for chain in m["chains"])] for m in mixes])
    assert weights.sum(1) == pytest.approx(1, abs=1e-6)
    theirs = torch.stack([images[:, 0], *(shares * images[:, 1:]).T]).numpy()
    sides = zip(weights.T, theirs)
    check(**{f"weights[{i}]": kolmogorov_smirnov(our, their) for i, (our, their) in enumerate(sides)})


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
@pytest.mark.parametrize(("height", "width"), [(224, 224), (32, 32)])
@pytest.mark.usefixtures("one_at_a_time")
def test_auto_augments_operations_are_torchvisions(policy, height, width):
    possible_pairs = set()
    space = v2.AutoAugment._AUGMENTATION_SPACE
    for pair in v2.AutoAugment(v2.AutoAugmentPolicy(policy))._policies:
        options = []
        for name, probability, bin_ in pair:
            done = possible({name: space[name]}, 10, [bin_], height, width) if probability > 0 else set()
            options.append(done | ({()} if probability < 1 else set()))
        possible_pairs |= {first + second for first in options[0] for second in options[1]}
    ours = {our_steps(s) for s in draws({"name": "AutoAugment", "policy": policy}, height, width, 60_000)}
    assert ours == possible_pairs


POLICIES = [
    ({"name": "RandAugment", "num_ops": 1, "magnitude": 9}, lambda: v2.RandAugment(num_ops=1)),
    ({"name": "RandAugment", "num_ops": 2, "magnitude": 5}, lambda: v2.RandAugment(magnitude=5)),
    ({"name": "TrivialAugmentWide"}, v2.TrivialAugmentWide),
    (
        {"name": "AugMix", "severity": 2, "mixture_width": 1, "chain_depth": 1},
        lambda: v2.AugMix(2, mixture_width=1, chain_depth=1),
    ),
    ({"name": "AugMix", "severity": 1, "all_ops": False}, lambda: v2.AugMix(1, all_ops=False)),
    *[
        ({"name": "AutoAugment", "policy": p}, lambda p=p: v2.AutoAugment(v2.AutoAugmentPolicy(p)))
        for p in ("imagenet", "cifar10", "svhn")
    ],
]


@pytest.mark.parametrize(("ours", "theirs"), POLICIES)
@pytest.mark.usefixtures("one_at_a_time")
def test_policies_are_as_frequent_as_torchvisions(ours, theirs):
    steps = [our_steps(s) for s in draws(ours)]
    check(steps=chi_square(steps, recorded(theirs(), 224, 224, DRAWS)))


def test_operations_are_equally_frequent():
    """9 operations go in two directions."""
    transform = {"name": "RandAugment", "num_ops": 1, "magnitude": 9}
    ours = collections.Counter(our_steps(s) for s in draws(transform, count=100_000))
    once = {(), *((name,) for name in ("Posterize", "Solarize", "AutoContrast", "Equalize"))}
    weights = np.array([1.0 if steps == () or steps[0][:1] in once else 0.5 for steps in ours])
    assert len(ours) == 23
    assert np.count_nonzero(weights == 0.5) == 18
    check(operations=evenness(np.array(list(ours.values())), weights))
