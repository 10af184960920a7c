"""Share: this process' batches, as tensors on the requested device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch

from stoker import _checks
from stoker._device_loader import DeviceLoader, checked_options
from stoker._errors import FailedPreconditionError, InvalidArgumentError
from stoker._iterator import DeviceIterator
from stoker._loader import Loader, Place
from stoker.torch import _ranks


class Share:
    """A `Loader` of this process' rank, and its batches on a device.

    Programs make loaders before torch.distributed is initialised, and before PyTorch's current device is
    set. So a loader is opened at once, which checks every option; if this process has another rank when
    batches or their number are requested, a loader of that rank replaces it. "cuda" is PyTorch's current
    device at that time.

    Thread-safe.
    """

    def __init__(
        self,
        options: dict[str, Any],
        *,
        rank: int | None,
        world: int | None,
        device: Any,
        to_device: dict[str, Any],
        start_epoch: int,
    ) -> None:
        if not isinstance(device, (str, torch.device)):
            raise TypeError(f"device must be a torch.device or its name, not {device!r:.80}")
        if (rank is None) != (world is None):
            raise InvalidArgumentError("rank= and world= belong together: give both, or neither")
        self._options = options
        self._given = None if rank is None or world is None else (rank, world)
        self._where = str(device)
        checked_options(to_device)
        self._to_device = to_device
        self._lock = threading.RLock()  # a signal handler may save the state meanwhile
        self._closed = False
        self._loader: Loader | None = None
        self._batches: DeviceLoader | None = None
        self._epoch = _checks.epoch(start_epoch, "start_epoch")  # epoch at which the next loader begins
        self._group = _ranks.of_process_group()  # the group when it was last looked at
        self._open(self._given or self._group or (0, 1))

    def _open(self, rank: _ranks.Rank) -> Loader:
        number, world = rank
        loader = Loader(**self._options, rank=number, world=world)
        loader._native.next_epoch = self._epoch
        if self._closed:
            loader.close()
        elif self._where != "cuda":
            self._batches = loader.to_device(self._where, **self._to_device)
        self._loader, self._rank = loader, rank
        return loader

    # --- rank and loader, at first use ---------------------------------------------------------------------

    @property
    def loader(self) -> Loader:
        """The loader of this process' current rank."""
        with self._lock:
            return self._loader_of(self._now())

    def __len__(self) -> int:
        """Returns the number of batches in an epoch; the same for all ranks except with "uneven"."""
        with self._lock:
            return len(self._loader_of(self._now(rank_counts=self._options["remainder"] == "uneven")))

    def _now(self, rank_counts: bool = True) -> _ranks.Rank:
        """Returns the given rank, otherwise the process group's, also after its end, otherwise the
        environment's.
        """
        if self._given is not None:
            return self._given
        self._group = _ranks.of_process_group() or self._group
        return self._group or _ranks.of_environment(rank_counts) or (0, 1)

    def _loader_of(self, rank: _ranks.Rank) -> Loader:
        if self._loader is not None:
            if rank == self._rank:
                return self._loader
            self._let_go(self._loader, rank)
        return self._open(rank)

    def _let_go(self, loader: Loader, rank: _ranks.Rank) -> None:
        """Closes the loader before another one needs its memory. Its iterations are cancelled.

        Epochs iterated as the only process do not count, so that ranks agree on the epoch.
        """
        if loader._native.restored is not None:
            was, now = ("rank {} of {}".format(*ranks) for ranks in (self._rank, rank))
            raise FailedPreconditionError(
                f"load_state_dict was called when this process was {was}, and now it is {now}",
                advice="Call it after torch.distributed.init_process_group, or give rank= and world=",
            )
        if self._rank[1] > 1:
            self._epoch = loader._native.next_epoch
        self._close()
        self._loader = self._batches = None

    @property
    def batches(self) -> DeviceLoader:
        """The loader whose batches are tensors on the device."""
        with self._lock:
            loader = self.loader
            where = self._device()
            if self._batches is None or (self._where == "cuda" and self._batches.device != where):
                self._batches = loader.to_device(where, **self._to_device)
            return self._batches

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        batches = self._batches  # read once: another thread may reset it
        there = self._device() if batches is None else batches.device
        return torch.device("cpu" if there == "host" else there)

    def _device(self) -> str:
        return f"cuda:{torch.cuda.current_device()}" if self._where == "cuda" else self._where

    # --- iterating ---------------------------------------------------------------------------------

    def begin(self) -> DeviceIterator:
        """An iteration that takes the next epoch with its first batch, or continues a restored state."""
        with self._lock:
            return iter(self.batches)

    def begin_epoch(self) -> tuple[DeviceIterator, Loader, Place]:
        """Does the same, and returns its loader and its first batch, whose epoch it has taken."""
        with self._lock:
            batches = self.batches
            iteration = iter(batches)
            return iteration, batches.loader, iteration._native.begin()

    def order(self) -> Iterator[int]:
        """This process' samples, in the order of the next epoch, or of what was left of a restored one."""
        native = self.loader._native
        epoch, _, start = native.next_place
        for batch in range(native.batches_from(start)):
            yield from native.sample_ids(epoch, batch, start)

    def samples(self) -> int:
        """The number of this process' samples in an epoch; with batch_tokens in the next one, as a whole."""
        loader = self.loader
        native = loader._native
        if loader._options["batch_tokens"] != 0:
            return native.rows_of_epoch(native.next_place[0])
        return (len(loader) - 1) * loader.batch_size + native.last_rows

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration take this epoch, or continue in its middle after a restored state."""
        number = _checks.epoch(epoch)
        with self._lock:
            self._epoch = number
            if self._loader is not None:
                self._loader._native.next_epoch = number

    def state_dict(self) -> dict[str, Any]:
        """The position of the latest iteration."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration continue at the state."""
        with self._lock:
            if self._loader is not None and self._rank != self._now():
                self._loader._native.restore(self._epoch, 0, 0)  # the place there is another rank's
            loader = self.loader
            loader.load_state_dict(state)
            epoch, *in_it = loader._native.next_place
            self._epoch = epoch + any(in_it)

    # --- statistics and closing -------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """See `stoker.Loader.stats`."""
        with self._lock:
            loader = self._loader if self._batches is None else self._batches
            return {} if loader is None else loader.stats()

    def close(self) -> None:
        """Ends production now."""
        with self._lock:
            self._closed = True
            self._close()

    def _close(self) -> None:
        if self._batches is not None:
            self._batches.close()
        if self._loader is not None:
            self._loader.close()

    def __repr__(self) -> str:
        return repr(self._loader if self._batches is None else self._batches)
