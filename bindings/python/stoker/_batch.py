"""Batch: the columns of a batch, by position and by name."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from stoker._stoker import Tensor

Column = TypeVar("Column", covariant=True)


class Batch(tuple[Column, ...]):
    """A batch of samples that have more than an image: a named tuple of columns.

        images, labels = batch
        batch["label"], batch.label, batch[1]
        "label" in batch, dict(batch)

    `batch_type` makes its classes, one for each list of names, so that pytrees of two loaders are equal.
    """

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __new__(cls, *columns: Any, **named: Any) -> Any:
        """Makes a batch of columns, or as a tuple of one iterable of them, as code that moves batches between
        devices does: `type(batch)(move(column) for column in batch)`.
        """
        if len(columns) == 1 and not named:
            return cls._make(columns[0])
        return super().__new__(cls, *columns, **named)

    if TYPE_CHECKING:  # the classes of `batch_type` have these

        @classmethod
        def _make(cls, columns: Iterable[Any]) -> Batch[Any]: ...
        def __getattr__(self, name: str) -> Column: ...

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Column: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Column, ...]: ...
    @overload
    def __getitem__(self, key: str, /) -> Column: ...
    def __getitem__(self, key: Any, /) -> Any:
        if not isinstance(key, str):
            return tuple.__getitem__(self, key)
        if key not in self._names:
            raise KeyError(f"a batch has {', '.join(self._names)}; not {key}")
        return tuple.__getitem__(self, self._names.index(key))

    def __contains__(self, key: object, /) -> bool:
        """Returns whether there is a column with this name; other objects are looked for among the
        columns.
        """
        return key in self._names if isinstance(key, str) else tuple.__contains__(self, key)

    def keys(self) -> tuple[str, ...]:
        """Returns the names of the columns, so that `dict(batch)` and `**batch` have them."""
        return self._names

    def record_stream(self, stream: Any) -> None:
        """Declares that the batch is used on this CUDA stream; see `Tensor.record_stream`. Its tensors share
        their memory, so this names the stream for all of them.

        Raises:
            TypeError: this is not a batch of `Tensor`s, as `Loader.to_device` gives them.
            ValueError: not a stream, or the batch is not on a GPU.
        """
        images: Any = self[0]
        if not isinstance(images, Tensor):
            raise TypeError(f"record_stream is for batches of stoker.Tensor, not of {type(images).__name__}")
        images.record_stream(stream)

    def __repr__(self) -> str:
        return f"Batch({', '.join(f'{name}={self[name]!r}' for name in self._names)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (self._names, tuple(self))


_types: dict[tuple[str, ...], type[Batch[Any]]] = {}


def batch_type(names: tuple[str, ...]) -> type[Batch[Any]]:
    """Returns the class of batches with these columns. Names that cannot be attributes are keys only."""
    if names not in _types:
        fields: Any = collections.namedtuple("Batch", names, rename=True)  # type: ignore[misc]
        made = type("Batch", (Batch, fields), {"__slots__": (), "_names": names, "__doc__": Batch.__doc__})
        _types.setdefault(names, made)  # if two threads make one, the first one's is kept
    return _types[names]


def _batch(names: tuple[str, ...], columns: tuple[Any, ...]) -> Batch[Any]:
    return batch_type(names)._make(columns)
