"""Batches of a tf.data.Dataset, kept and compared."""

import numpy as np
import tensorflow as tf

SIZE = 32
SAMPLES = 48


def noting(seen):
    """A step for map() that adds what passes through to `seen`."""

    def note(images, labels):
        seen.append((images.copy(), labels.copy()))
        return images, labels

    def noted(images, labels):
        result = tf.numpy_function(note, [images, labels], [tf.uint8, tf.int64])
        return tf.ensure_shape(result[0], images.shape), tf.ensure_shape(result[1], labels.shape)

    return noted


def arrays(dataset, *names):
    """Returns all batches, as arrays that do not depend on stoker's memory. `names`: all columns of batches
    that are dictionaries, in the order that is wanted.
    """
    if names:
        batches = list(dataset)
        assert all(type(batch) is dict and set(batch) == set(names) for batch in batches)
        dataset = [[batch[name] for name in names] for batch in batches]
    return [tuple(np.array(column) for column in batch) for batch in dataset]


def same(got, want):
    """Returns whether two lists of batches are equal to the byte."""
    assert len(got) == len(want)
    for batch, expected in zip(got, want):
        for column, other in zip(batch, expected):
            np.testing.assert_array_equal(np.asarray(column), np.asarray(other))
