"""Batches that are mixed, as tensors."""

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import SIZE, arrays, same

MIX = stoker.RandomChoice([stoker.MixUp(0.2), stoker.CutMix(1.0)], p=[0.5, 0.5])


@pytest.fixture
def mixing(made):
    def loader(**options):
        options = {"batch_size": 8, "shuffle": True, "seed": 5, "dtype": "float32", **options}
        return stoker.Loader(stoker.image_folder(made), [stoker.RandomResizedCrop(SIZE), MIX], **options)

    return loader


def test_elements_and_batches(mixing, op):
    dataset = mixing().as_tf_dataset(op=op)
    assert dataset.element_spec == (
        tf.TensorSpec((8, SIZE, SIZE, 3), tf.float32),
        tf.TensorSpec((8, 3), tf.float32),
    )
    same(arrays(dataset), arrays(mixing().epoch(0)))
    short = mixing(batch_size=10).as_tf_dataset(op=op)
    assert short.element_spec[1] == tf.TensorSpec((None, 3), tf.float32)
    same(arrays(short), arrays(mixing(batch_size=10).epoch(0)))


def test_a_checkpoint_goes_on_with_the_same_batches(mixing, op, tmp_path):
    whole = arrays(mixing().epoch(0))
    iterator = iter(mixing().as_tf_dataset(op=op))
    first = [next(iterator) for _ in range(2)]
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    same(first, whole[:2])
    other = iter(mixing().as_tf_dataset(op=op))
    tf.train.Checkpoint(iterator=other).restore(saved)
    same(list(other), whole[2:])


def test_fit_with_categorical_crossentropy(mixing, op):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 3)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile("sgd", "categorical_crossentropy", metrics=["categorical_accuracy"])
    history = model.fit(mixing().as_tf_dataset(op=op), epochs=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all() and len(history.history["loss"]) == 3
