"""A dataset made from the prebuilt ops, if the dataset op cannot be built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker.tensorflow import _elements

if TYPE_CHECKING:
    from stoker import Loader


def variant(
    ops: Any, loader: Loader, epoch: Optional[int], elements: _elements.Elements, extras: dict[str, bool]
) -> tf.Tensor:
    """Returns the handle of a dataset with the same elements as the dataset op's.

    The epoch is the state of a scan(): TensorFlow keeps it in checkpoints, symbolic ones too, with a state
    of the loader next to it, so that another loader refuses it. It is decided in a separate step, because a
    scan() loses its state if its function fails, so that a bad first batch would lose the epoch. The
    batches are requested one after another, so that stoker can prefetch; TensorFlow might turn a map() into
    a parallel one.
    """
    names = {"key": loader._key, "spec": loader._spec}

    def name(saved: Any, index: tf.Tensor) -> tuple[Any, tuple[tf.Tensor, tf.Tensor]]:
        current, state = saved
        pinned = epoch is not None
        current = ops.stoker_epoch(current=current, index=index, state=state, pinned=pinned, **names)
        current.set_shape(())
        return (current, state), (current, index)

    types = [_elements.type_of(dtype) for dtype, _ in loader._elements]
    numbers = [*range(len(types)), *[-1] * extras["sample_ids"], *[-2] * extras["paths"]]
    types += [tf.int64] * extras["sample_ids"] + [tf.string] * extras["paths"]
    ragged = [loader._native.names.index(name) for name in loader._native.ragged]
    numbers += [-3 - number for number in ragged]
    types += [tf.int64] * len(ragged)

    def batch(current: tf.Tensor, index: tf.Tensor) -> Any:
        made = ops.stoker_batch_at(
            epoch=current, index=index, output_types=types, offsets=bool(ragged), **names, **extras
        )
        tensors = dict(zip(numbers, made))
        for number, spec in zip(elements.columns, elements.specs):
            tensors[number].set_shape(spec.shape)
        return elements.packed([tensors[number] for number in elements.columns])

    state = loader._native.state_at(0, 0, 0).encode()
    first = tf.constant(-1 if epoch is None else epoch, tf.int64), tf.constant(list(state), tf.uint8)
    batches = tf.data.Dataset.range(len(loader)).scan(first, name).map(batch, synchronous=True)
    if loader._drops_rows:
        batches = batches.filter(lambda *made: _rows_of(tf.nest.flatten(made)[0]) > 0)
    return tf.data.experimental.to_variant(batches)


def _rows_of(column: Any) -> tf.Tensor:
    return column.nrows() if isinstance(column, tf.RaggedTensor) else tf.shape(column)[0]
