"""A dataset of the prebuilt ops, where the dataset op cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def variant(ops: Any, loader: Loader, epoch: Optional[int], spec: Any) -> tf.Tensor:
    """The handle of a dataset with the same elements as the dataset op's.

    The epoch is the state of a scan(): TensorFlow keeps it in checkpoints, symbolic ones too, and a
    scan asks for one batch after another, which is what stoker reads ahead of.
    """
    columns = tf.nest.flatten(spec)
    names = {"key": loader._key, "spec": loader._spec}

    def batch(state: tf.Tensor, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
        if epoch is None:
            state = ops.stoker_epoch(current=state, index=index, **names)
            state.set_shape(())
        tensors = ops.stoker_batch_at(
            epoch=state, index=index, output_types=[column.dtype for column in columns], **names
        )
        for tensor, column in zip(tensors, columns):
            tensor.set_shape(column.shape)
        return state, tf.nest.pack_sequence_as(spec, tensors)

    first = tf.constant(-1 if epoch is None else epoch, tf.int64)
    return tf.data.experimental.to_variant(tf.data.Dataset.range(len(loader)).scan(first, batch))
