"""DataLoader: a loader with the names and meanings that PyTorch's users know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from stoker import _checks
from stoker._mix import BatchTransform, split
from stoker._runtime import Runtime
from stoker._sources import Source
from stoker._transforms import Transform
from stoker.torch import _options
from stoker.torch._dataset import Dataset
from stoker.torch._iterator import Iterator
from stoker.torch._sampler import BatchSampler, Sequential, Shuffled
from stoker.torch._share import Share


class DataLoader:
    """Batches of transformed images as torch tensors, in the memory that stoker made them in.

        loader = stoker.torch.DataLoader(
            stoker.image_folder("photos/train"),
            [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip(),
             stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))],
            batch_size=256, shuffle=True)
        for epoch in range(90):
            loader.set_epoch(epoch)  # if you like: each `for` takes the next epoch anyway
            for images, labels in loader:
                ...

    Batches are (images, labels), or images alone where the source has no labels:

    - images: (rows, 3, height, width) float32, value / 255 or normalised; or as dtype and layout say.
    - labels: (rows,), int64; with `MixUp` or `CutMix` (rows, num_classes), float32.

    They are the program's for as long as it keeps them, or views of them; keeping labels keeps no images.
    On a device `buffers` batches of images can be held; labels are copies, for there they lie with their
    images. Everything else is as `stoker.Loader` has it: threads, signals, errors, memory.

    Programs written for torch's DataLoader find its options and attributes. It is not a subclass of torch's
    DataLoader: code that finds one by `isinstance` rebuilds it with a sampler per process, and this loader
    already has its process's share.

    Args:
        source: what `stoker.image_folder` or `stoker.arrays` returns.
        transforms: stoker's, as `stoker.Loader` takes them.
        batch_size: rows of a batch.
        shuffle: a new order each epoch.
        drop_last: leave out a last batch that is not full.
        dtype: of transformed images: torch.float32 (None: that), torch.float16, torch.bfloat16, torch.uint8,
            or their names. Without transforms rows of arrays keep their type and shape.
        layout: "NCHW" (None: that); or "NHWC", whose batches are channels last: `images.permute(0, 3, 1, 2)`
            is a torch.channels_last tensor.
        device: where tensors are: a torch.device, or its name. "cuda": PyTorch's current one, as it is when
            batches are asked for.
        seed: of the order and of every random transform.
        rank: this process' number, and
        world: the number of processes; both or neither. None: torch.distributed's, as they are when batches
            or their number are asked for; where it is not initialised by then, RANK and WORLD_SIZE of the
            environment; where there is no WORLD_SIZE either, 0 of 1. Where these change, iterations end with
            a CancelledError, and epochs that were iterated as 0 of 1 do not count.
        remainder: what becomes of samples that do not divide evenly among processes: "pad" (the order
            begins again, so that all have equally many batches, as with DistributedSampler), "drop", or
            "uneven" (each exactly once).
        exif_orientation, max_pixels, max_scans, depth, lent_batches, runtime: as `stoker.Loader`.
        buffers: as `stoker.Loader.to_device`: batches that there is memory for on a GPU.
        pin_memory: copy batches on the CPU into pinned memory, where there is a GPU, as torch's DataLoader
            does: for programs that copy them to a GPU themselves. device="cuda" costs less.
        others: torch's num_workers, persistent_workers, prefetch_factor, multiprocessing_context, in_order
            and pin_memory_device change nothing here. Its sampler, batch_sampler, collate_fn, generator,
            worker_init_fn and timeout would: they may be None (timeout 0; collate_fn torch's own).

    Raises:
        ValueError, TypeError: naming the option. Where one of torch's DataLoader would lose its meaning, a
            TypeError says what does its work here.
    """

    def __init__(
        self,
        source: Source,
        transforms: Iterable[Transform | BatchTransform] = (),
        *,
        batch_size: int = 1,
        shuffle: bool | None = False,
        drop_last: bool = False,
        dtype: torch.dtype | str | None = None,
        layout: str | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        remainder: str = "pad",
        exif_orientation: bool = True,
        max_pixels: int = _checks.MAX_PIXELS,
        max_scans: int = _checks.MAX_SCANS,
        depth: int | None = None,
        lent_batches: int | None = None,
        buffers: int = 4,
        runtime: Runtime | None = None,
        pin_memory: bool = False,
        **others: Any,
    ) -> None:
        _options.check(others)
        if isinstance(source, Dataset):
            source = source.source
        if isinstance(source, (torch.utils.data.Dataset, torch.utils.data.DataLoader)):
            raise TypeError(
                f"source is a {type(source).__name__} of PyTorch's, which makes samples in Python; "
                "give stoker.image_folder(…) or stoker.arrays(…)"
            )
        images, mix = split(transforms)
        dtype = dtype or ("float32" if images else "uint8")
        options: dict[str, Any] = {
            "source": source,
            "transforms": images if mix is None else [*images, mix],
            "batch_size": batch_size,
            "shuffle": _checks.boolean("shuffle", False if shuffle is None else shuffle),
            "drop_remainder": _checks.boolean("drop_last", drop_last),
            "dtype": str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype,
            "layout": layout or ("NCHW" if images else "NHWC"),
            "seed": seed,
            "remainder": remainder,
            "exif_orientation": exif_orientation,
            "max_pixels": max_pixels,
            "max_scans": max_scans,
            "depth": depth,
            "lent_batches": lent_batches,
            "runtime": runtime,
        }
        self._share = Share(options, rank=rank, world=world, device=device, buffers=buffers)
        pins = _checks.boolean("pin_memory", pin_memory)
        self._pin_memory = pins and not str(device).startswith("cuda")  # nothing to pin there
        self._dataset = Dataset(options)
        kind = Shuffled if options["shuffle"] else Sequential
        self._sampler = kind(self._dataset, self._share)
        self._batch_sampler = BatchSampler(self._sampler, int(batch_size), bool(drop_last), self._share)

    # --- iterating ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        """Takes the next epoch, or that of `set_epoch`; or goes on where `load_state_dict` said.

        The epoch is chosen when the first batch is asked for; creating an iterator and dropping it changes
        nothing.
        """
        return Iterator(self._share, self._pin_memory)

    def set_epoch(self, epoch: int) -> None:
        """The next `for` takes this epoch; as DistributedSampler's, for all that is drawn.

        After `load_state_dict` of a state in the middle of that epoch the next `for` goes on there.
        """
        self._share.set_epoch(epoch)

    def __len__(self) -> int:
        """Batches of an epoch, for this process: of the rank that it has now."""
        return len(self._share)

    # --- what it is --------------------------------------------------------------------------------

    @property
    def source(self) -> Source:
        """Where the samples come from."""
        return self._dataset.source

    @property
    def classes(self) -> list[str]:
        """The source's class names by label; empty where there are none."""
        return self._dataset.classes

    @property
    def dataset(self) -> Dataset:
        """The samples, by the names of torchvision's datasets; `len(loader.dataset)` is their number."""
        return self._dataset

    @property
    def sampler(self) -> Sequential | Shuffled:
        """Which samples this process has, in the order of the next epoch; has `set_epoch`."""
        return self._sampler

    @property
    def batch_sampler(self) -> BatchSampler:
        """The same in batches; iterating over it takes an epoch."""
        return self._batch_sampler

    @property
    def drop_last(self) -> bool:
        """Whether a last batch that is not full is left out."""
        return self._batch_sampler.drop_last

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        return self._batch_sampler.batch_size

    @property
    def pin_memory(self) -> bool:
        """Whether batches are copied into pinned memory, where there is a GPU. Not those on a GPU."""
        return self._pin_memory

    def __getattr__(self, name: str) -> Any:
        """What else torch's DataLoader has, as it is where there are no worker processes."""
        if name in _options.OPTIONS:
            return _options.OPTIONS[name].now
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _options.OPTIONS:
            raise AttributeError(f"{name} is decided when a stoker.torch.DataLoader is made")
        super().__setattr__(name, value)

    @property
    def device(self) -> torch.device:
        """Where tensors are."""
        return self._share.device

    def stats(self) -> dict[str, Any]:
        """As `stoker.Loader.stats`."""
        return self._share.stats()

    def __repr__(self) -> str:
        return f"<stoker.torch.DataLoader of {self._share!r}>"

    # --- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the latest `for` is: a few numbers, as torchdata's StatefulDataLoader has it.

        Batches that were delivered are past. After a finished epoch: the start of the next one.
        """
        return self._share.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next `for` goes on there, with the same batches; nothing is replayed. {} changes nothing.

        Raises:
            FailedPreconditionError: the state is that of a loader with other options or samples.
            ValueError, TypeError: it is no state of a loader.
        """
        if state != {}:
            self._share.load_state_dict(state)

    # --- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends production now, in all iterators: CancelledError from there on. Tensors stay valid.

        Not needed: a loader that nothing refers to closes itself.
        """
        self._share.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.torch.DataLoader cannot be pickled; make one in each process")
