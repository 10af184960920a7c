"""The elements of a loader's dataset: their structure, types and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import tensorflow as tf

from stoker import _checks
from stoker._errors import InvalidArgumentError

if TYPE_CHECKING:
    from stoker import Loader


class Elements(NamedTuple):
    """A structure of `TensorSpec`s and `RaggedTensorSpec`s, and where its tensors come from."""

    spec: Any
    # The tensors that the ops give: those of the structure, as tf.nest.flatten has them, then values and
    # offsets of each ragged one.
    specs: list[tf.TensorSpec]
    # For each of them, a column of the batch, or -1 for sample ids, -2 for paths, -3 - i for the offsets of
    # column i.
    columns: list[int]

    def packed(self, tensors: Sequence[tf.Tensor]) -> Any:
        """Returns an element of the tensors that `specs` describes."""
        flat: list[tf.TypeSpec] = tf.nest.flatten(self.spec)
        dense = iter(tensors)
        parts = iter(tensors[sum(not is_ragged(spec) for spec in flat) :])
        made = [_ragged(next(parts), next(parts)) if is_ragged(spec) else next(dense) for spec in flat]
        return tf.nest.pack_sequence_as(self.spec, made)

    @property
    def are_dense(self) -> bool:
        """Whether the ops give the elements as they are."""
        return not any(is_ragged(spec) for spec in tf.nest.flatten(self.spec))


def is_ragged(spec: tf.TypeSpec) -> bool:
    """Returns whether it is of a ragged column."""
    return isinstance(spec, tf.RaggedTensorSpec)


def _ragged(values: tf.Tensor, offsets: tf.Tensor) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_splits(values, offsets, validate=False)


def elements_of(
    loader: Loader,
    *,
    sample_ids: bool = False,
    paths: bool = False,
    names: bool = False,
    sample_weight: Optional[str] = None,
) -> Elements:
    """Returns the elements of a dataset.

    Keras takes the second tensor of a tuple for labels and the third one for weights, so a tuple has nothing
    else: with other columns elements are dictionaries.
    """
    keys = loader._names(sample_ids, paths)
    if sample_weight is not None:
        return _elements(loader, _weighted(loader, keys, sample_weight, names))
    if names or keys[1:] not in ((), (_target(loader, keys),)):
        return _elements(loader, {key: key for key in keys})
    return _elements(loader, keys if len(keys) > 1 else keys[0])


def _target(loader: Loader, keys: tuple[str, ...]) -> Optional[str]:
    """Returns the column that `fit` takes for labels: the label, or else the only mask or further image."""
    if "label" in keys:
        return "label"
    return keys[1] if loader.source._native.counts == [0, 0] else None


def _weighted(loader: Loader, keys: tuple[str, ...], weight: str, names: bool) -> Any:
    """Returns the names of the columns as Keras takes them: inputs, labels and weights."""
    weight = _checks.text("sample_weight", weight)
    if loader._mix is not None:
        raise InvalidArgumentError(
            f"sample_weight is {weight!r}, and {loader._mix!r} mixes rows, but not their weights",
            advice="Without sample_weight, names=True has the column: weigh mixed rows in a map",
        )
    target = _target(loader, keys)
    if target is None:
        raise InvalidArgumentError(f"sample_weight is {weight!r}, and {loader.source!r} has no labels")
    others = keys[1:]
    if weight not in others or weight in (target, "sample_id", "path"):
        listed = ", ".join(key for key in others if key != target) or "no column but images and labels"
        raise InvalidArgumentError(f"sample_weight is {weight!r}; {loader.source!r} has {listed}")
    dtype, shape = loader._elements[keys.index(weight)]
    if weight in loader._native.ragged:
        raise InvalidArgumentError(f"sample_weight is {weight!r}, which is of objects; a weight is a number")
    if shape != () or dtype in ("string", "bytes"):
        kind = f"{dtype} of shape {shape}" if shape else dtype
        raise InvalidArgumentError(f"sample_weight is {weight!r}, which is {kind}; a weight is a number")
    inputs = {key: key for key in keys if key not in (target, weight)} if names else keys[0]
    return inputs, target, weight


def _elements(loader: Loader, structure: Any) -> Elements:
    """Returns the elements that a structure of columns' names describes."""
    made = {
        name: (number, dtype, shape)
        for number, (name, (dtype, shape)) in enumerate(zip(loader._native.names, loader._elements))
    }
    made.setdefault("sample_id", (-1, "int64", ()))
    made.setdefault("path", (-2, "string", ()))
    # The batch dimension is known unless it varies.
    rows = None if loader._drops_rows or loader._rows_vary else loader.batch_size

    ragged = set(loader._native.ragged)

    def spec(name: str) -> tf.TypeSpec:
        _, dtype, shape = made[name]
        if name in ragged:
            return tf.RaggedTensorSpec((rows, None, *shape), type_of(dtype), 1, tf.int64)
        return tf.TensorSpec((rows, *shape), type_of(dtype))

    names = tf.nest.flatten(structure)
    dense = [name for name in names if name not in ragged]
    specs = [spec(name) for name in dense]
    columns = [made[name][0] for name in dense]
    for name in (name for name in names if name in ragged):
        number, dtype, shape = made[name]
        specs.append(tf.TensorSpec((None, *shape), type_of(dtype)))
        specs.append(tf.TensorSpec((None if rows is None else rows + 1,), tf.int64))
        columns += [number, -3 - number]
    return Elements(tf.nest.map_structure(spec, structure), specs, columns)


def type_of(dtype: str) -> tf.DType:
    """Returns TensorFlow's type of a column."""
    return tf.string if dtype == "bytes" else tf.as_dtype(dtype)
