"""What a loader's batches look like to TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def element_spec(loader: Loader) -> Any:
    """(images, labels), or images: a TensorSpec each. The batch dimension is known unless it varies."""
    native = loader._native
    rows = loader.batch_size if native.last_rows == loader.batch_size else None
    specs = tuple(tf.TensorSpec((rows, *shape), tf.as_dtype(dtype)) for dtype, shape in loader._elements)
    return specs if len(specs) > 1 else specs[0]
