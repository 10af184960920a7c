"""Epochs of batches, kept and compared."""

import numpy as np


def taken(iteration):
    """Copies of all batches: a list of (images, labels)."""
    return [tuple(column.copy() for column in columns) for columns in iteration]


def same(some, others):
    assert len(some) == len(others)
    for columns, expected in zip(some, others):
        for column, wanted in zip(columns, expected):
            np.testing.assert_array_equal(column, wanted)
