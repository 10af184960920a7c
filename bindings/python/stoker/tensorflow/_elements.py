"""What a loader's batches look like to TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def element_spec(loader: Loader, sample_ids: bool = False, paths: bool = False) -> Any:
    """(images, labels), or images, and what was asked for: a TensorSpec each.

    The batch dimension is known unless it varies.
    """
    native = loader._native
    rows = loader.batch_size if native.last_rows == loader.batch_size else None
    elements = [(tf.as_dtype(dtype), shape) for dtype, shape in loader._elements]
    elements += [(tf.int64, ())] if sample_ids else []
    elements += [(tf.string, ())] if paths else []
    specs = tuple(tf.TensorSpec((rows, *shape), dtype) for dtype, shape in elements)
    return specs if len(specs) > 1 else specs[0]
