"""Keras' own tests of `image_dataset_from_directory`, with stoker in it (keras_directory.py)."""

import importlib.util
import os
import pathlib
import re

import forks
import keras
import keras_directory
import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
SUITE = "keras.src.utils.image_dataset_utils_test"


@pytest.mark.long
def test_keras_own_tests():
    if importlib.util.find_spec(SUITE) is None:
        pytest.skip("this Keras comes without its tests")
    words = ["pytest", "-q", "-p", "keras_directory", "-p", "no:cacheprovider", "-c", os.devnull]
    where = ["--rootdir", HERE, "--pyargs", SUITE, "-k", "not grain"]
    done = forks.run("-m", *words, *where, timeout=600, env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 15
    assert int(re.search(r"stoker made (\d+) data sets", done.stdout)[1]) >= 20


@pytest.mark.parametrize(
    "chosen",
    [
        {"label_mode": "int"},
        {"label_mode": "categorical"},
        {"label_mode": "binary", "labels": [i % 2 for i in range(48)]},
        {"label_mode": None},
        {"label_mode": "int", "crop_to_aspect_ratio": True, "image_size": (30, 30)},
        {"label_mode": "int", "pad_to_aspect_ratio": True},
        {"label_mode": None, "color_mode": "grayscale"},
    ],
    ids=["int", "categorical", "binary", "no labels", "crop", "pad", "gray"],
)
def test_batches_are_those_of_keras(made, monkeypatch, chosen):
    """Labels and order are the same; pixels are rounded to whole numbers, and JPEGs are decoded with
    smooth chroma, as libjpeg does by default and TensorFlow does not."""
    options = {"image_size": (20, 30), "batch_size": 7, "shuffle": False, "verbose": False, **chosen}
    reference = keras.utils.image_dataset_from_directory(made, **options)
    wanted = list(reference)
    monkeypatch.setattr(
        keras.src.utils.image_dataset_utils,
        "_paths_and_labels_to_dataset_tf",
        keras_directory.dataset,
    )
    dataset = keras.utils.image_dataset_from_directory(made, **options)
    assert dataset.class_names == reference.class_names
    assert dataset.element_spec == reference.element_spec
    found = list(dataset)
    assert len(found) == len(wanted) == 7
    for a, b in zip(found, wanted):
        images, expected = (a[0], b[0]) if chosen["label_mode"] else (a, b)
        assert images.shape == expected.shape and images.dtype == expected.dtype
        assert np.abs(images - expected).mean() < 2
        if chosen["label_mode"]:
            np.testing.assert_array_equal(a[1], b[1])
            assert a[1].dtype == b[1].dtype
