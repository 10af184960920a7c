"""What a loader's batches look like to TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def element_spec(loader: Loader) -> Any:
    """(images, labels), or images: a TensorSpec each."""
    rows = loader.batch_size if _all_full(loader) else None
    height, width = _size(loader)
    images = tf.TensorSpec((rows, height, width, 3), tf.as_dtype(loader._options["dtype"]))
    if not loader.source.has_labels:
        return images
    return images, tf.TensorSpec((rows,), tf.int64)


def _size(loader: Loader) -> tuple[int, int]:
    for transform in reversed(loader._transforms):
        spec = transform._spec()
        if "height" in spec:
            return spec["height"], spec["width"]
    raise ValueError("no transform makes the images one size")


def _all_full(loader: Loader) -> bool:
    """Whether every batch of this rank has batch_size rows."""
    options = loader._options
    if options["drop_remainder"]:
        return True
    samples, rank, world = len(loader.source), options["rank"], options["world"]
    rows = {
        "uneven": (samples - rank + world - 1) // world,  # rank, rank + world, …
        "drop": samples // world,
        "pad": (samples + world - 1) // world,
    }[options["remainder"]]
    return rows % options["batch_size"] == 0
