"""A loader's order under PyTorch's names: its sampler and its batch_sampler.

Programs use their length, set the epoch, and make other loaders from them that skip batches, as
accelerate's skip_first_batches does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stoker._errors import DataLossError
from stoker._iterator import DeviceIterator
from stoker._loader import Place
from stoker.torch._iterator import taken
from stoker.torch._share import Share


class Batch(list[int]):
    """The ids of a batch's samples, as a batch_sampler yields them, and the iteration that makes it."""

    def __init__(
        self, samples: list[int], place: Place, iteration: DeviceIterator | None = None, drops: bool = False
    ) -> None:
        super().__init__(samples)
        self._chosen = tuple(samples)
        self._place = place
        self._iteration = iteration
        self._drops = drops  # bad samples

    def made(self) -> Any:
        """Returns the batch. Skipped batches before it are not made. With `on_bad` some of its samples may be
        others.

        Raises:
            TypeError: the list was changed, which the loader cannot follow.
            DataLossError: all its samples were dropped, and a batch_sampler cannot leave it out.
        """
        if self._iteration is None:
            raise TypeError("stoker makes batches in the process that asks for them; use num_workers=0")
        native = self._iteration._native
        epoch, index, start = self._place
        if native.position.get() != self._place:
            native.seek(*self._place)
        batch = next(self._iteration, None)
        followed = native.position.get() == (epoch, index + 1, start)
        if self._drops and (batch is None or not followed):
            raise DataLossError(
                f"all samples of batch {index} of epoch {epoch} were dropped (on_bad)",
                advice="A batch_sampler cannot leave a batch out: iterate over the loader, or substitute",
            )
        if batch is None or not followed or tuple(self) != self._chosen:
            raise TypeError(
                "the samples of this batch were changed after the loader chose them; make a new list of them "
                "and make the batches of one iteration in one thread"
            )
        return taken(batch)

    def __reduce__(self) -> Any:
        """Pickles without the iteration; `made` then raises in the worker.

        Raising here would make torch's loader hang.
        """
        return Batch, (list(self), self._place)


class _OfShare:
    """The functions of both samplers, which come before those of torch's classes."""

    def __init__(self, dataset: Any, share: Share) -> None:
        super().__init__(dataset)  # type: ignore[call-arg]  # torch's class
        self._share = share

    def __iter__(self) -> Iterator[int]:
        """Yields this process' samples, in the order of the next epoch, which stays the next one."""
        return self._share.order()

    def __len__(self) -> int:
        """Returns the number of samples."""
        return self._share.samples()

    def set_epoch(self, epoch: int) -> None:
        """Does what the loader's `set_epoch` does."""
        self._share.set_epoch(epoch)


class Sequential(_OfShare, torch.utils.data.SequentialSampler):
    """The sampler of a loader that does not shuffle."""


class Shuffled(_OfShare, torch.utils.data.RandomSampler):
    """The sampler of a loader that shuffles."""


class BatchSampler(torch.utils.data.BatchSampler):
    """The batch_sampler of a loader: the samples of each batch."""

    def __init__(
        self, sampler: Sequential | Shuffled, batch_size: int | None, drop_last: bool, share: Share
    ) -> None:
        super().__init__(sampler, 1 if batch_size is None else batch_size, drop_last)
        self.batch_size = batch_size  # None, as torch's loaders have it
        self._share = share

    def __iter__(self) -> Iterator[list[int]]:
        """Takes the next epoch, or continues after `load_state_dict`, as a `for` over the loader does."""
        iteration, loader, (epoch, first, start) = self._share.begin_epoch()
        order = loader._native
        for number in range(first, order.batches_from(start)):
            place = epoch, number, start
            yield Batch(order.sample_ids(*place), place, iteration, loader._drops_rows)

    def __len__(self) -> int:
        """Returns the number of batches of an epoch, for this process."""
        return len(self._share)

    def set_epoch(self, epoch: int) -> None:
        """Does what the loader's `set_epoch` does."""
        self._share.set_epoch(epoch)
