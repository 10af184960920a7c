"""The columns of `geometry=True` in TensorFlow."""

import stoker
import tensorflow as tf
from tensors import arrays, same

STEPS = [stoker.RandomResizedCrop(30), stoker.RandomHorizontalFlip(), stoker.RandomRotation(20)]


def test_batches_are_the_loaders(made, op):
    loader = stoker.Loader(stoker.image_folder(made), STEPS, batch_size=8, seed=5, geometry=True)
    dataset = loader.as_tf_dataset(epoch=0, op=op)
    spec = dataset.element_spec
    assert list(spec) == ["image", "label", "geometry", "original_size"]
    assert (spec["geometry"].shape.as_list(), spec["geometry"].dtype) == ([8, 2, 3], tf.float32)
    assert (spec["original_size"].shape.as_list(), spec["original_size"].dtype) == ([8, 2], tf.int32)
    same(arrays(dataset, *spec), arrays(loader.epoch(0)))
