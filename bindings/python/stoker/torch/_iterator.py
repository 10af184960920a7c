"""Iterator: batches as torch's tensors."""

from __future__ import annotations

import threading
from typing import Any, Union

import torch

from stoker._batch import Batch as Columns
from stoker._iterator import DeviceIterator
from stoker._stoker import Tensor
from stoker.torch import _accelerate
from stoker.torch._share import Share

Batch = Union[torch.Tensor, Columns[torch.Tensor]]


class Iterator:
    """One iteration. A bad sample makes its batch an error; the next `next` continues after it."""

    def __init__(self, share: Share, pin_memory: bool = False) -> None:
        self._share = share
        self._pins = pin_memory
        self._begun: DeviceIterator | None = None  # at the first batch
        self._followed: _accelerate.Followed | None = None
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Batch:
        """Returns the next batch; raises what `stoker.Iterator` does."""
        begun = self._begun or self._begin()
        try:
            batch = next(begun)
        except StopIteration:
            if self._followed is not None:
                _accelerate.end(self._followed)
            raise
        if self._followed is not None:
            self._followed.end_of_dataloader = _is_last(begun)
        made = taken(batch)
        return _pinned(made) if self._pins else made

    def _begin(self) -> DeviceIterator:
        with self._lock:
            if self._begun is None:
                self._pins = self._pins and torch.cuda.is_available()
                self._begun = self._share.begin()
                self._followed = _accelerate.followed()
            return self._begun

    @property
    def sample_ids(self) -> torch.Tensor:
        """The source's samples in the rows of the last batch, (rows,) int64, on the CPU."""
        if self._begun is None:
            return torch.empty(0, dtype=torch.int64)
        return torch.from_numpy(self._begun.sample_ids.astype("int64"))

    def __repr__(self) -> str:
        return f"<stoker.torch.Iterator of {self._begun or self._share!r}>"


def _is_last(iteration: DeviceIterator) -> bool:
    """Returns whether no batch of the epoch follows the one that was taken."""
    _, following, start = iteration._native.position.get() or (0, 0, 0)
    batches: Any = iteration._loader
    return bool(following == batches.loader._native.batches_from(start))


def taken(batch: Tensor | Columns[Tensor]) -> Batch:
    """Returns stoker's batch as torch tensors, without a copy."""
    if isinstance(batch, Tensor):
        return _tensor(batch)
    images, *others = (column if isinstance(column, list) else _tensor(column) for column in batch)
    # On a device, the other columns share one of few buffers with the images; clone them so that keeping
    # labels does not keep a buffer. Strings are lists.
    if batch[0].device != "cpu":
        others = [column if isinstance(column, list) else column.clone() for column in others]
    return batch._make([images, *others])


def _tensor(tensor: Tensor) -> torch.Tensor:
    from_dlpack: Any = torch.utils.dlpack.from_dlpack  # takes objects with __dlpack__, and says so otherwise
    made: torch.Tensor = from_dlpack(tensor)
    if made.is_cuda:  # PyTorch works on its current stream, and never destroys one
        tensor.record_stream(torch.cuda.current_stream(made.device))
    return made


def _pinned(batch: Batch) -> Batch:
    """Returns a copy in memory that torch pins, and keeps until copies from it are done."""
    if isinstance(batch, torch.Tensor):
        return batch.pin_memory()
    return batch._make(column if isinstance(column, list) else column.pin_memory() for column in batch)
