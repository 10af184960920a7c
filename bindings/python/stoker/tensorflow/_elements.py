"""The types and shapes of a loader's batches in TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def element_spec(loader: Loader, sample_ids: bool = False, paths: bool = False) -> Any:
    """Returns a TensorSpec for images, for labels if there are any, and for the requested extras.

    The batch dimension is known unless it varies.
    """
    varies = loader._drops_rows or loader._native.last_rows != loader.batch_size
    rows = None if varies else loader.batch_size
    elements = [(_type(dtype), shape) for dtype, shape in loader._elements]
    elements += [(tf.int64, ())] if sample_ids else []
    elements += [(tf.string, ())] if paths else []
    specs = tuple(tf.TensorSpec((rows, *shape), dtype) for dtype, shape in elements)
    return specs if len(specs) > 1 else specs[0]


def _type(dtype: str) -> tf.DType:
    return tf.string if dtype == "bytes" else tf.as_dtype(dtype)
