"""Iterator: batches as torch's tensors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Union

import torch

from stoker import _stoker
from stoker._batch import Batch as Columns
from stoker._iterator import DeviceIterator
from stoker._ragged import Ragged
from stoker._stoker import Tensor
from stoker.torch import _accelerate
from stoker.torch._share import Share

Batch = Union[torch.Tensor, Columns[torch.Tensor]]


class Iterator(_stoker.LaterBatches):
    """One iteration. A bad sample makes its batch an error; the next `next` continues after it.

    `next` returns the next batch, and raises what that of `stoker.Iterator` does.
    """

    def __init__(self, share: Share, pin_memory: bool = False) -> None:
        making = _Making(share, pin_memory)
        super().__init__(making.begin, making.batch, making.end)
        self._share = share

    if TYPE_CHECKING:

        def __next__(self) -> Batch: ...

    @property
    def sample_ids(self) -> torch.Tensor:
        """The source's samples in the rows of the last batch, (rows,) int64, on the CPU."""
        if self.begun is None:
            return torch.empty(0, dtype=torch.int64)
        return torch.from_numpy(self.begun.sample_ids.astype("int64"))

    def __repr__(self) -> str:
        return f"<stoker.torch.Iterator of {self.begun or self._share!r}>"


def taken(batch: Tensor | Columns[Tensor]) -> Batch:
    """Returns stoker's batch as torch tensors, without a copy."""
    if isinstance(batch, Tensor):
        return _tensor(batch)
    images, *others = (_column(column) for column in batch)
    # On a device, the other columns share one of few buffers with the images; clone them so that keeping
    # labels does not keep a buffer. Strings are lists.
    if not isinstance(batch[0], Ragged) and batch[0].device != "cpu":
        others = [column if isinstance(column, list) else column.clone() for column in others]
    return batch._make([images, *others])


def _column(column: Any) -> Any:
    """Returns a column: a list of strings, a tensor, or a `Ragged` of tensors."""
    if isinstance(column, Ragged):
        return Ragged(_tensor(column.values), _tensor(column.offsets))
    return column if isinstance(column, list) else _tensor(column)


def _tensor(tensor: Tensor) -> torch.Tensor:
    from_dlpack: Any = torch.utils.dlpack.from_dlpack  # takes objects with __dlpack__, and says so otherwise
    made: torch.Tensor = from_dlpack(tensor)
    if made.is_cuda:  # PyTorch works on its current stream, and never destroys one
        tensor.record_stream(torch.cuda.current_stream(made.device))
    return made


class _Making:
    """Makes torch's batches of an iteration, and tells accelerate where it is.

    With `pins`, tensors are copies in memory that torch pins, and keeps until copies from it are done.
    """

    def __init__(self, share: Share, pins: bool) -> None:
        self._share = share
        self._pins = pins
        self._begun: DeviceIterator | None = None
        self._followed: _accelerate.Followed | None = None
        self._lock = threading.RLock()  # a signal handler may ask for a batch meanwhile

    def begin(self) -> DeviceIterator:
        with self._lock:
            if self._begun is None:
                self._pins = self._pins and torch.cuda.is_available()
                begun = self._share.begin()
                self._followed = _accelerate.followed()
                self._begun = begun  # last: if a signal handler raises before it, the next call begins
            return self._begun

    def batch(self, batch: Tensor | Columns[Tensor], name: tuple[int, int, int]) -> Batch:
        if self._followed is not None and self._begun is not None:
            _, index, start = name
            loader: Any = self._begun._loader
            self._followed.end_of_dataloader = index + 1 == loader.loader._native.batches_from(start)
        made = taken(batch)
        if not self._pins:
            return made
        if isinstance(made, torch.Tensor):
            return made.pin_memory()
        return made._make(column if isinstance(column, list) else column.pin_memory() for column in made)

    def end(self) -> None:
        if self._followed is not None:
            with self._lock:  # threads that share the iterator all come to its end
                _accelerate.end(self._followed)
