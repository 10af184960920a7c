"""Recipes: the same bytes for any threads, depth and executor, and wherever a transform is executed."""

import itertools
import json
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CROP = {"name": "RandomResizedCrop", "height": 48, "width": 40}
FLIP = {"name": "RandomHorizontalFlip"}
JITTER = {"name": "ColorJitter", "brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "hue": [-0.1, 0.1]}
TRAINING = {
    "transforms": [
        CROP,
        FLIP,
        {"name": "RandAugment"},
        JITTER,
        {"name": "RandomGrayscale", "p": 0.2},
        {"name": "GaussianBlur", "kernel_height": 5, "kernel_width": 3},
        {"name": "RandomCrop", "height": 44, "width": 40, "padding": [2, 2, 2, 2], "padding_mode": "reflect"},
        {"name": "Normalize", "mean": MEAN, "std": STD},
        {"name": "RandomErasing", "noise": True},
    ],
    "dtype": "float32",
    "layout": "NCHW",
}
RECIPES = {
    "training": TRAINING,
    "mixed": {
        **TRAINING,
        "mix": {"choices": [{"name": "MixUp", "alpha": 0.2}, {"name": "CutMix", "alpha": 1.0}]},
    },
    "cifar": {
        "transforms": [
            {"name": "CenterCrop", "height": 32, "width": 32},
            {"name": "RandomCrop", "height": 32, "width": 32, "padding": [4, 4, 4, 4]},
            FLIP,
            {"name": "AutoAugment", "policy": "cifar10", "interpolation": "bilinear"},
        ]
    },
    "padded": {
        "transforms": [
            {"name": "Resize", "size": 30, "max_size": 44},
            FLIP,
            JITTER,
            {"name": "Normalize", "mean": MEAN, "std": STD},
            {"name": "RandomErasing", "noise": True},
            {"name": "PadTo", "height": 44, "width": 48},
        ],
        "dtype": "float16",
        "layout": "NCHW",
    },
    "wide": {"transforms": [CROP, {"name": "TrivialAugmentWide"}, {"name": "RandomVerticalFlip"}]},
}


def bench(command, made, path, *options, cwd=None):
    done = subprocess.run(
        [command, "bench", made, "--recipe", path, "--json", "--digest", "--batch-size", "16", *options],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", ["training", *(pytest.param(n, marks=pytest.mark.long) for n in RECIPES if n != "training")]
)
def test_one_digest(command, made, tmp_path, name):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(RECIPES[name]))
    digests = set()
    for threads, depth, executor in itertools.product((1, 2, 8), (1, 4), ("tbb", "threads")):
        machine = ["--threads", str(threads), "--depth", str(depth), "--executor", executor]
        report = bench(command, made, path, "--epochs", "2", "--seed", "7", *machine)
        digests.add(report["digest"])
    assert len(digests) == 1, digests
    assert bench(command, made, path, "--epochs", "2", "--seed", "8")["digest"] not in digests
    stages = report["stages"]["microseconds_per_image"]
    assert stages["augment"] > 0
    assert (stages["mix"] > 0) == (name == "mixed")


def rows(made, transforms, **options):
    """Returns all rows of two epochs; transforms are keyed by their place."""
    loader = stoker.Loader(
        stoker.image_folder(made), transforms, batch_size=16, seed=3, shuffle=True, **options
    )
    return np.concatenate([images.copy() for _ in range(2) for images, _ in loader])


def test_fused_and_tiled_transforms_agree(made):
    crop, gray = stoker.RandomResizedCrop(40), stoker.RandomGrayscale(1)
    for moved in (stoker.RandomHorizontalFlip(1), stoker.RandomVerticalFlip(1), stoker.CenterCrop(32)):
        fused, on_tile = [crop, moved, gray], [crop, gray, moved]
        assert "tile" not in stoker.Compose(fused).explain().splitlines()[1]
        assert "tile" in stoker.Compose(on_tile).explain().splitlines()[2]
        np.testing.assert_array_equal(rows(made, fused), rows(made, on_tile))


def test_explain_describes_a_recipe(made):
    transforms = [
        stoker.RandomResizedCrop(40, scale=(0.2, 1)),
        stoker.RandomHorizontalFlip(0.3),
        stoker.ColorJitter(brightness=0.4),
        stoker.Normalize(MEAN, STD),
        stoker.RandomErasing(value="random"),
    ]
    compose = stoker.Compose(transforms, dtype="float32")
    lines = compose.explain().splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "RandomResizedCrop(40 × 40, scale 0.2 to 1)",
        "RandomHorizontalFlip(p 0.3)",
        "ColorJitter(brightness 0.6 to 1.4)",
        "Normalize(mean (0.485, 0.456, 0.406), std (0.229, 0.224, 0.225))",
        "RandomErasing(noise)",
    ]
    for line, where in zip(lines, ("fused", "fused", "tile", "fused", "row")):
        assert f"  {where} " in line
    assert "RandomHorizontalFlip(p=0.3),  # fused" in repr(compose)
    loader = stoker.Loader(stoker.image_folder(made), transforms, batch_size=8, dtype="float32")
    assert loader.explain() == compose.explain()


def test_the_command_explains_and_measures(command, made, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(TRAINING))
    done = subprocess.run(
        [command, "explain", made, "--recipe", path, "--json", "--images", "20", "--rounds", "2"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["images"] == 40 and told["refused"] == 0 and told["shape"] == [3, 44, 40]
    assert [one["where"] for one in told["transforms"]] == [*["fused"] * 2, *["tile"] * 5, "fused", "row"]
    for one in told["transforms"]:
        assert ("microseconds" in one) == (one["where"] != "fused")
    assert told["transforms"][3]["microseconds"] > 0
    text = subprocess.run(
        [command, "explain", "--transform", "eval"], capture_output=True, text=True, timeout=60
    )
    assert text.returncode == 0 and "CenterCrop(224 × 224)" in text.stdout and "µs" not in text.stdout


@pytest.mark.parametrize(
    "recipe, words, code",
    [
        ("nonsense", "is not JSON", 2),
        ("1" * 3_000_000, "longer than 1048576 bytes", 2),
        ('{"transforms": [{"name": "Reduce"}]}', "Reduce", 2),
        ('{"transforms": [], "batch_size": 3}', '"batch_size" is not a known key', 2),
        ('{"transforms": [{"name": "RandomErasing", "p": 2}]}', "transforms[0].p", 2),
        ('{"transforms": [{"name": "RandomErasing", "value": [0, 0, 0], "noise": true}]}', "noise", 2),
        (json.dumps({**TRAINING, "mix": {"choices": [{"name": "MixUp", "alpha": -1}]}}), "alpha", 2),
        ('{"transforms": [{"name": "ColorJitter"}]}', "transforms[0], ColorJitter: images differ in size", 2),
    ],
    ids=lambda v: str(v)[:40],
)
def test_bad_recipes(command, tmp_path, recipe, words, code):
    path = tmp_path / "recipe.json"
    path.write_text(recipe)
    done = subprocess.run([command, "explain", "--recipe", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and words in done.stderr, done.stderr


def test_a_recipe_is_shuffled_and_its_mix_is_told(command, made, tmp_path):
    path = tmp_path / "eval"  # also the name of a transform of the command's
    path.write_text(json.dumps(RECIPES["mixed"]))
    report = bench(command, made, path.name, cwd=tmp_path)
    assert report["options"]["shuffle"] is True
    assert report["options"]["mix"] == "MixUp(alpha 0.2) or CutMix"
    assert report["options"]["plan"].endswith("; batches: MixUp(alpha 0.2) or CutMix")
    done = subprocess.run([command, "explain", "--recipe", path], capture_output=True, text=True, timeout=60)
    assert "MixUp(alpha 0.2) or CutMix\n      batch" in done.stdout
    mix = stoker.MixUp(num_classes=3)
    source = stoker.arrays(np.zeros((4, 8, 8, 3), np.uint8), np.zeros(4, np.int64))
    loader = stoker.Loader(source, [mix], batch_size=2)
    assert loader.explain().splitlines() == [
        "rows are copied as they are",
        f"{mix!r}  batch  once all its rows are complete",
    ]


def test_recipes_that_cannot_be(command, tmp_path):
    missing, both = ["--recipe", str(tmp_path / "none.json")], ["--recipe", "a.json", "--size", "64"]
    for options, code, words in ((missing, 1, "none.json"), (both, 2, "--size")):
        done = subprocess.run([command, "explain", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and words in done.stderr, done.stderr
