"""Ragged: a column of a batch whose rows have different numbers of objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np

from stoker import _checks
from stoker._errors import InvalidArgumentError, counted

Values = TypeVar("Values")


class Ragged(Generic[Values]):
    """Rows of different lengths: the boxes, or other values, of the objects of each image of a batch.

        boxes = stoker.Ragged(np.zeros((5, 4), np.float32), np.array([0, 3, 3, 5]))
        boxes[0], boxes[1]  # (3, 4) and (0, 4)
        boxes.padded(100, fill=-1)  # (3, 100, 4)

    `values` has the objects of all rows, one row after another, and those of row i are
    `values[offsets[i] : offsets[i + 1]]`. Both are arrays of the kind that the batch has: of NumPy, PyTorch
    or JAX. `torch.nested.nested_tensor_from_jagged(boxes.values, boxes.offsets)` and
    `tf.RaggedTensor.from_row_splits(boxes.values, boxes.offsets)` take them as they are.

    Args:
        values: (objects, …).
        offsets: (rows + 1,) int64, from 0 to the number of objects; int32 in JAX without x64.
    """

    __slots__ = ("_offsets", "_values")

    def __init__(self, values: Values, offsets: Values) -> None:
        self._values = values
        self._offsets = offsets

    @property
    def values(self) -> Values:
        """The objects of all rows, one row after another, (objects, …)."""
        return self._values

    @property
    def offsets(self) -> Values:
        """Where the objects of each row begin in `values`, and their number: (rows + 1,) int64."""
        return self._offsets

    def __len__(self) -> int:
        """Rows."""
        return len(self._of(self.offsets)) - 1

    @overload
    def __getitem__(self, row: SupportsIndex, /) -> Values: ...
    @overload
    def __getitem__(self, row: slice, /) -> Ragged[Values]: ...
    def __getitem__(self, row: Any, /) -> Any:
        """Returns the values of a row, (objects, …), or a `Ragged` of neighbouring rows: views."""
        values, offsets = self._of(self.values), self._of(self.offsets)
        if isinstance(row, slice):
            begin, end, step = row.indices(len(self))
            if step != 1:
                raise InvalidArgumentError("a Ragged has slices of neighbouring rows only, with a step of 1")
            bounds = offsets[begin : max(begin, end) + 1]
            return Ragged(values[int(bounds[0]) : int(bounds[-1])], bounds - bounds[0])
        rows = len(self)
        index = row.__index__()
        if not -rows <= index < rows:
            raise IndexError(f"row {index} of {rows}")
        index %= rows
        return values[int(offsets[index]) : int(offsets[index + 1])]

    def __iter__(self) -> Iterator[Values]:
        """Iterates over the rows, each (objects, …)."""
        values, bounds = self._of(self.values), self._of(self.offsets).tolist()
        return (values[begin:end] for begin, end in zip(bounds, bounds[1:]))

    @property
    def counts(self) -> Values:
        """The number of objects of each row, (rows,) int64."""
        offsets = self._of(self.offsets)
        return offsets[1:] - offsets[:-1]  # type: ignore[no-any-return]

    def padded(self, most: int | None = None, fill: Any = 0) -> Values:
        """Returns an array of all rows, (rows, most, …), where `fill` follows the objects of a row.

        With `most` its shape is the same for each batch, as jit and XLA want it. JAX's arrays are padded by
        NumPy, so that nothing is compiled for each number of objects: call it outside of functions that jit
        compiles.

        Args:
            most: objects of a row; None means the most that a row of this batch has.
            fill: a number.

        Raises:
            ValueError: a row has more objects.
        """
        offsets = self._of(self.offsets)
        bounds = offsets if hasattr(offsets, "new_full") else np.asarray(offsets)
        counts = bounds[1:] - bounds[:-1]
        largest = int(counts.max()) if len(counts) else 0
        most = largest if most is None else _checks.integer("most", most, 0, 2**31)
        if largest > most:
            row = int(counts.argmax())
            raise InvalidArgumentError(
                f"row {row} has {counted(largest, 'object', 'objects')}, more than most, which is {most}"
            )
        dense: Any
        held: Any = self.values
        if hasattr(offsets, "new_full"):
            dense = _padded_tensor(held, counts, most, fill)
        else:
            values: Any = np.asarray(held)
            dense = np.full((len(counts), most, *values.shape[1:]), fill, values.dtype)
            dense[np.arange(most) < counts[:, None]] = values
        jax: Any = sys.modules.get("jax")
        if jax is not None and isinstance(held, jax.Array):
            dense = jax.device_put(dense, held.sharding)
        return dense  # type: ignore[no-any-return]

    def to(self, *arguments: Any, **options: Any) -> Ragged[Values]:
        """Returns the same on another device, or with values of another type, as torch.Tensor.to does."""
        values: Any = self._of(self.values).to(*arguments, **options)
        given = {"non_blocking": options["non_blocking"]} if "non_blocking" in options else {}
        return Ragged(values, self._of(self.offsets).to(values.device, **given))

    def pin_memory(self) -> Ragged[Values]:
        """Returns a copy in memory that torch pins, as torch.Tensor.pin_memory does."""
        return Ragged(self._of(self.values).pin_memory(), self._of(self.offsets).pin_memory())

    @staticmethod
    def _of(array: Any) -> Any:
        """Returns an array; that of a `stoker.Tensor`, which cannot be sliced."""
        return array if hasattr(array, "__getitem__") else np.asarray(array)

    def __array__(self, *unused: Any, **options: Any) -> Any:
        """Raises TypeError: NumPy would make an array of rows, or fail, depending on their numbers."""
        raise TypeError(
            "a stoker.Ragged is not one array: take its `values` and `offsets`, or `padded(most)`"
        )

    def __repr__(self) -> str:
        values: Any = self.values
        shape = getattr(values, "shape", None)
        described = "" if shape is None else f", {values.dtype} {tuple(shape)}"
        return f"<stoker.Ragged of {counted(len(self), 'row', 'rows')}{described}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ragged, (self.values, self.offsets)


def _padded_tensor(values: Any, counts: Any, most: int, fill: Any) -> Any:
    """Returns the rows of a tensor of PyTorch."""
    dense = values.new_full((len(counts), most, *values.shape[1:]), fill)
    places = counts.new_ones(most).cumsum(0) - 1
    dense[places < counts[:, None]] = values
    return dense
