"""Epochs of batches, kept and compared."""

import numpy as np
import stoker


def taken(iteration):
    """Returns copies of all batches: a list of (images, labels)."""
    return [tuple(column.copy() for column in columns) for columns in iteration]


def same(some, others):
    assert len(some) == len(others)
    for columns, expected in zip(some, others):
        for column, wanted in zip(columns, expected):
            np.testing.assert_array_equal(column, wanted)


def same_for_settings(make, source, wanted):
    """Compares an epoch, with any threads and depth, with the wanted one. `source`: makes a source."""
    for threads, depth in [(1, 1), (3, 2), (8, 9)]:
        runtime = stoker.Runtime(threads=threads)
        same(taken(make(source(), runtime=runtime, depth=depth)), wanted)


def same_for_ranks(ours, theirs, world):
    """Compares the loaders that two functions make with these options, in two epochs of each rank."""
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        loaders = ours(**options), theirs(**options)
        for _ in range(2):
            iterators = [iter(loader) for loader in loaders]
            same(*[taken(iterator) for iterator in iterators])
            np.testing.assert_array_equal(*[iterator.sample_ids for iterator in iterators])
