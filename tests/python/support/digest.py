"""Computes the digest of `stoker bench --digest` (bindings/cli/bench/digest.h) from Python's batches."""

import numpy as np
import xxhash


class Digest:
    """Adds for each batch, in order: epoch, index, rows, ids; for each column dtype, shape, elements."""

    def __init__(self):
        self._hash = xxhash.xxh64()

    def add(self, epoch, index, ids, *columns):
        self._hash.update(np.array([epoch, index, len(ids)], "<u8").tobytes())
        self._hash.update(np.asarray(ids, "<u8").tobytes())
        for column in columns:
            values = getattr(column, "values", column)  # of a stoker.Ragged
            self._hash.update(values.dtype.name.encode())
            self._hash.update(np.array(values.shape, "<u8").tobytes())
            if values is not column:
                self._hash.update(column.offsets)
            self._hash.update(np.ascontiguousarray(values))

    def hexdigest(self):
        return self._hash.hexdigest()


def of_epochs(iterations):
    """Returns the digest of (epoch, iterable) pairs whose iterators have sample_ids."""
    digest = Digest()
    for epoch, iteration in iterations:
        iterator = iter(iteration)
        for index, columns in enumerate(iterator):
            digest.add(epoch, index, iterator.sample_ids, *columns)
    return digest.hexdigest()
