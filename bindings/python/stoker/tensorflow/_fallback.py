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
    batches = len(loader)

    def batch(state: tf.Tensor, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
        taken = ops.stoker_epoch(current=state, **names)
        taken.set_shape(())
        tensors = ops.stoker_batch_at(
            epoch=taken, index=index, output_types=[column.dtype for column in columns], **names
        )
        for tensor, column in zip(tensors, columns):
            tensor.set_shape(column.shape)
        return taken, tf.nest.pack_sequence_as(spec, tensors)

    def one_epoch(first: Any) -> tf.data.Dataset:
        return tf.data.Dataset.range(batches).scan(first, batch)

    if epoch is not None:
        dataset = one_epoch(tf.constant(epoch, tf.int64))
    else:
        # One element above the batches: tf.data service then gives an epoch to one worker as a whole.
        # Each would take an epoch of its own otherwise.
        undecided = tf.constant(-1, tf.int64)
        dataset = tf.data.Dataset.from_tensors(undecided).flat_map(one_epoch)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    return tf.data.experimental.to_variant(dataset)
