"""Iterations over a loader, and over one epoch of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar, Union

import numpy as np
import numpy.typing as npt

from stoker import _stoker
from stoker._batch import Batch

if TYPE_CHECKING:
    from stoker._device_loader import OnDevices
    from stoker._loader import Loader

Array = npt.NDArray[Any]
Element = TypeVar("Element")


def no_array(self: object, *unused: object, **options: object) -> NoReturn:
    """The `__array__` of objects that give batches: by itself NumPy would make an array of one object."""
    raise TypeError(_no_array(self))


def no_shape(self: object) -> NoReturn:
    """The `shape` of objects that give batches, which they do not have. Keras asks objects with `__array__`
    for it.
    """
    raise AttributeError(_no_array(self))


def _no_array(of: object) -> str:
    name = type(of).__name__
    return (
        f"a stoker.{name} is not an array. Keras' fit, evaluate and predict take a loader's as_tf_dataset(); "
        f"to have its batches, iterate over the {name} itself"
    )


class _Iteration(_stoker.Batches, Generic[Element]):
    """The common part of all iterators."""

    def __init__(self, loader: Loader | OnDevices[Any], native: _stoker.Iterator) -> None:
        named = loader._batch_type if len(loader._batch_type._names) > 1 else None
        super().__init__(native, named, *loader._extras)
        self._loader = loader
        self._native = native

    @property
    def sample_ids(self) -> npt.NDArray[np.uint64]:
        """The source's samples in the rows of the last batch, (rows,); of the last one of any thread."""
        return np.array(self._native.sample_ids, np.uint64)

    def __repr__(self) -> str:
        position = self._native.position.get()
        at = "not begun" if position is None else f"at batch {position[1]} of epoch {position[0]}"
        return f"<stoker.{type(self).__name__} {at}, over {self._loader!r}>"


class Iterator(_Iteration[Array]):
    """One iteration. A bad sample makes its batch an error; the next `next` continues after it.

    Threads may share it: each batch, and each error, goes to one of them; each gets a StopIteration.

    `next` returns the next batch. If a signal handler raises an exception in it, as Ctrl-C does, nothing is
    lost in a `for` loop (CPython 3.10 or later): the next `next` returns the batch. In `batch = next(it)`
    CPython itself may run the handler after the call and before the assignment.

    Raises:
        StopIteration: the epoch has ended.
        DataLossError, NotFoundError, …: a sample of the batch; has `file`, `offset` and `cause`.
        ResourceExhaustedError: the program already holds as many batches as it may; nothing is lost.
        CancelledError: the loader was closed.
        FailedPreconditionError: this is a forked process.
    """

    if TYPE_CHECKING:

        def __next__(self) -> Array | Batch[Array]: ...


class DeviceIterator(_Iteration[_stoker.Tensor]):
    """One iteration of a `DeviceLoader`; like `Iterator`, but its batches are `Tensor`s."""

    if TYPE_CHECKING:

        def __next__(self) -> _stoker.Tensor | Batch[_stoker.Tensor]: ...


class SplitIterator(_Iteration[_stoker.Tensor]):
    """One iteration of a `SplitLoader`; like `DeviceIterator`, but each batch is a tuple with a part for each
    device.
    """

    if TYPE_CHECKING:

        def __next__(self) -> tuple[_stoker.Tensor | Batch[_stoker.Tensor], ...]: ...


Made = TypeVar("Made", bound=Union[Iterator, DeviceIterator, SplitIterator], covariant=True)


class _Iterates(Protocol[Made]):
    def __len__(self) -> int: ...
    def _iterate(self, epoch: int | None, repeat: bool) -> Made: ...


class Epoch(Generic[Made]):
    """One epoch, each time that it is iterated; `Loader.epoch` returns it."""

    def __init__(self, loader: _Iterates[Made], epoch: int) -> None:
        self._loader = loader
        self._epoch = epoch

    def __iter__(self) -> Made:
        return self._loader._iterate(self._epoch, repeat=True)

    def __len__(self) -> int:
        """Batches."""
        return len(self._loader)

    __array__ = no_array
    shape = property(no_shape)

    def __repr__(self) -> str:
        return f"{self._loader!r}.epoch({self._epoch})"
