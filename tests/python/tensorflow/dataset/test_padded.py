"""Padded batches (PadTo) in TensorFlow: the padded tensor and the sizes."""

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import arrays, same

STEPS = [stoker.Resize(30, max_size=44), stoker.RandomHorizontalFlip(), stoker.PadTo((44, 48))]


def loader_of(made, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 5, **options}
    return stoker.Loader(stoker.image_folder(made), STEPS, **options)


@pytest.mark.parametrize("ids", [False, True])
def test_batches_are_the_loaders(made, op, ids):
    loader = loader_of(made, sample_ids=ids)
    dataset = loader.as_tf_dataset(epoch=0, op=op)
    names = ("image", "label", "image_size", "sample_id")[: 3 + ids]
    shapes = [
        (dataset.element_spec[name].shape.as_list(), dataset.element_spec[name].dtype) for name in names
    ]
    wanted = [([8, 44, 48, 3], tf.uint8), ([8], tf.int64), ([8, 2], tf.int32), ([8], tf.int64)]
    assert shapes == wanted[: 3 + ids]
    same(arrays(dataset, *names), arrays(loader.epoch(0)))


def test_elements_by_name(made, op):
    for element in loader_of(made).as_tf_dataset(op=op).take(1):
        assert set(element) == {"image", "label", "image_size"}
        images = stoker.unpadded(element["image"], element["image_size"])
        assert [list(image.shape) for image in images] == [
            [*size, 3] for size in element["image_size"].numpy().tolist()
        ]


def test_the_documented_ragged_tensor_has_the_images(made, op):
    for batch in loader_of(made).as_tf_dataset(op=op).take(2):
        images, sizes = batch["image"], batch["image_size"]
        tallest, widest = tf.unstack(tf.reduce_max(sizes, axis=0))
        lengths = (sizes[:, 0], tf.repeat(sizes[:, 1], sizes[:, 0]))
        ragged = tf.RaggedTensor.from_tensor(images[:, :tallest, :widest], lengths=lengths)
        for image, wanted in zip(ragged, stoker.unpadded(images, sizes)):
            assert np.array_equal(image.to_tensor().numpy(), wanted.numpy())


LARGEST = [STEPS[0], STEPS[1], stoker.PadTo("batch", multiple=8)]


def test_batches_may_have_the_size_of_their_largest_image(made, op):
    loader = stoker.Loader(stoker.image_folder(made), LARGEST, batch_size=4, shuffle=True)
    dataset = loader.as_tf_dataset(epoch=0, op=op)
    assert dataset.element_spec["image"].shape.as_list()[1:] == [None, None, 3]
    same(arrays(dataset, "image", "label", "image_size"), arrays(loader.epoch(0)))


def test_a_model_is_trained_with_images_of_any_size(made, op):
    loader = stoker.Loader(stoker.image_folder(made), LARGEST, batch_size=4, dtype="float32")
    dataset = loader.as_tf_dataset(op=op).map(lambda batch: (batch["image"], batch["label"]))
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((None, None, 3)), layers.Conv2D(2, 3), layers.GlobalAveragePooling2D(), layers.Dense(9)]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()
