"""DataLoader: a loader with the names and meanings of PyTorch's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from stoker import _checks
from stoker._buckets import Buckets
from stoker._errors import UnimplementedError
from stoker._mix import BatchTransform, split
from stoker._parameters import Transform, checked_views
from stoker._runtime import Runtime
from stoker._sources import Source
from stoker.torch import _options
from stoker.torch._dataset import Dataset
from stoker.torch._iterator import Iterator
from stoker.torch._sampler import BatchSampler, Sequential, Shuffled
from stoker.torch._share import Share


# tools/generate.py writes the lines between `remainder` and `buffers`, in the docstring and in the signature,
# and those between `remainder` and `runtime` in the dictionary of options.
class DataLoader:
    """Batches of transformed images as torch tensors, in the memory that stoker's workers wrote.

        loader = stoker.torch.DataLoader(
            stoker.image_folder("photos/train"),
            [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip(),
             stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))],
            batch_size=256, shuffle=True)
        for epoch in range(90):
            loader.set_epoch(epoch)  # optional: each `for` takes the next epoch
            for images, labels in loader:
                ...

    Batches are (images, labels), or images alone if the source has nothing else; further columns of
    `stoker.files` follow. `batch["label"]` are the labels, too:

    - images: (rows, 3, height, width) float32, value / 255 or normalised; or as dtype and layout say.
    - labels: (rows,), int64, or as given to `stoker.files`; with `MixUp` or `CutMix` (rows, num_classes),
      float32.

    They stay valid for as long as the program keeps them, or views of them; keeping labels keeps no images.
    On a device `buffers` batches of images can be held; labels are copies there, because the originals share
    memory with their images. Threads, signals, errors and memory are those of `stoker.Loader`.

    It has the options and attributes of torch's DataLoader. It is not a subclass of torch's
    DataLoader: code that finds one by `isinstance` rebuilds it with a sampler per process, and this loader
    already has its process's share.

    Args:
        source: a `stoker.Source`: the photographs or arrays.
        transforms: stoker's, as for `stoker.Loader`.
        views: lists of transforms for several views of each image, as for `stoker.Loader`.
        batch_size: rows per batch; with batch_tokens the most rows of one, where None and 1 mean no limit.
        batch_tokens, tokens: as for `stoker.Loader`, on the CPU. Processes share batches, so they have
            different numbers of rows in a step.
        shuffle: a new order each epoch.
        drop_last: drop a last batch that is not full.
        dtype: of transformed images: torch.float32 (the default), torch.float16, torch.bfloat16, torch.uint8,
            or their names. Without transforms the rows of arrays keep their type and shape.
        layout: "NCHW" (the default), or "NHWC", whose batches are channels last: `images.permute(0, 3, 1, 2)`
            is a torch.channels_last tensor.
        device: of the tensors: a torch.device, or its name. "cuda" is PyTorch's current device when batches
            are requested. On a GPU, a batch's memory is reused after the work of the stream that was
            PyTorch's current one when the batch was taken: let it wait for other streams that use the batch.
        seed: determines the order and every random transform.
        rank: this process' number, and
        world: the number of processes; give both or neither. None: torch.distributed's when batches or their
            number are requested; if it is not initialised by then, RANK and WORLD_SIZE of the environment;
            without WORLD_SIZE, 0 of 1. If these change, iterations end with a CancelledError, and epochs
            that were iterated as 0 of 1 do not count.
        remainder: how to treat samples that do not divide evenly among processes: "pad" (repeat samples from
            the start of the order, so that all have the same number of batches, as DistributedSampler does),
            "drop", or "uneven" (each sample exactly once).
        padding, buckets, channels, exif_orientation, geometry, max_pixels: as for `stoker.Loader`.
        max_scans, accept_truncated, accept_16_bits, on_bad, max_bad_fraction: as for `stoker.Loader`.
        bad_samples_file, cache, depth, wait_target, weight, lent_batches, runtime: as for `stoker.Loader`.
        buffers: as for `stoker.Loader.to_device`: the number of batches to allocate on a GPU.
        decode: "full" or "scaled", as for `stoker.Loader`; or "device": the GPU decodes packed JPEGs, and
            baseline JPEGs with a crop index, at their full size, as with `to_device(decode="device")`.
        crop_bytes: as for `stoker.Loader.to_device`.
        sample_ids, paths: adds the columns "sample_id", (rows,) int64 on the CPU, and "path", a list of str,
            as `stoker.Loader` does.
        start_epoch: as for `stoker.Loader`.
        pin_memory: copy batches on the CPU into pinned memory, if there is a GPU, as torch's DataLoader
            does, for programs that copy them to a GPU themselves. device="cuda" costs less.
        others: torch's num_workers, persistent_workers, prefetch_factor, multiprocessing_context, in_order
            and pin_memory_device change nothing here. Its sampler, batch_sampler, collate_fn, generator,
            worker_init_fn and timeout would: they may be None (timeout 0; collate_fn torch's own).

    Raises:
        ValueError, TypeError: naming the option. For an option of torch's DataLoader that would lose its
            meaning, the TypeError names the replacement.
    """

    def __init__(
        self,
        source: Source,
        transforms: Iterable[Transform | BatchTransform] = (),
        *,
        views: Iterable[Iterable[Transform]] = (),
        batch_size: int | None = 1,
        batch_tokens: int | None = None,
        tokens: str | None = None,
        shuffle: bool | None = False,
        drop_last: bool = False,
        dtype: torch.dtype | str | None = None,
        layout: str | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        remainder: str = "pad",
        padding: str = "none",
        buckets: Buckets | str | None = None,
        channels: str | int = "rgb",
        exif_orientation: bool = True,
        geometry: bool = False,
        max_pixels: int = 268435456,
        max_scans: int = 200,
        accept_truncated: bool = False,
        accept_16_bits: bool = False,
        on_bad: str | Mapping[str, str] = "fail",
        max_bad_fraction: float = 0.01,
        bad_samples_file: str | os.PathLike[str] | None = None,
        cache: str | None = None,
        depth: int | None = None,
        wait_target: float = 0.005,
        weight: float = 1.0,
        lent_batches: int | None = None,
        buffers: int = 4,
        decode: str = "full",
        crop_bytes: int | None = None,
        runtime: Runtime | None = None,
        pin_memory: bool = False,
        sample_ids: bool = False,
        paths: bool = False,
        start_epoch: int = 0,
        **others: Any,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "others")}
        _options.check(others)
        if isinstance(source, Dataset):
            source = source.source
        if isinstance(source, (torch.utils.data.Dataset, torch.utils.data.DataLoader)):
            instead = "stoker.image_folder(…), stoker.files(…) or stoker.arrays(…)"
            if isinstance(source, torch.utils.data.Subset):
                instead = "source.split(…) or source.subset(…) of one of stoker's sources"
            given = f"{type(source).__module__}.{type(source).__name__}"
            raise TypeError(f"source is a {given}, which makes samples in Python; give {instead}")
        images, processor, mix, own = split(transforms)
        last = [transform for transform in (processor, mix, own) if transform is not None]
        views = checked_views(views)
        floats = processor is None and bool(images or views)  # a processor has a type of its own
        dtype = dtype or ("float32" if floats else "uint8")
        on_device = _checks.choice("decode", decode, ("full", "scaled", "device")) == "device"
        if batch_tokens is not None and str(device).startswith("cuda"):
            raise UnimplementedError(
                f"batch_tokens makes batches of any number of rows, and device={str(device)!r} has room for "
                "rows of a fixed number",
                advice='Give device="cpu", and copy batches to the GPU',
            )
        most_rows = None if batch_tokens is not None and batch_size == 1 else batch_size
        options: dict[str, Any] = {
            "source": source,
            "transforms": [*images, *last] if last else images,
            "views": views,
            "batch_size": most_rows,
            "batch_tokens": batch_tokens,
            "tokens": tokens,
            "shuffle": _checks.boolean("shuffle", False if shuffle is None else shuffle),
            "drop_remainder": _checks.boolean("drop_last", drop_last),
            "dtype": str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype,
            "layout": layout or ("NCHW" if floats else "NHWC"),
            "seed": seed,
            "decode": "full" if on_device else decode,
            "remainder": remainder,
            "padding": padding,
            "buckets": buckets,
            "channels": channels,
            "exif_orientation": exif_orientation,
            "geometry": geometry,
            "max_pixels": max_pixels,
            "max_scans": max_scans,
            "accept_truncated": accept_truncated,
            "accept_16_bits": accept_16_bits,
            "on_bad": on_bad,
            "max_bad_fraction": max_bad_fraction,
            "bad_samples_file": bad_samples_file,
            "cache": cache,
            "depth": depth,
            "wait_target": wait_target,
            "weight": weight,
            "lent_batches": lent_batches,
            "runtime": runtime,
            "sample_ids": sample_ids,
            "paths": paths,
        }
        to_device = {
            "buffers": buffers,
            "decode": "device" if on_device else "workers",
            "crop_bytes": crop_bytes,
        }
        self._share = Share(
            options, rank=rank, world=world, device=device, to_device=to_device, start_epoch=start_epoch
        )
        made_of = {name: options[name] for name in ("source", "transforms", "views")}
        self._arguments = {**arguments, **others, **made_of}
        pins = _checks.boolean("pin_memory", pin_memory)
        self._pin_memory = pins and not str(device).startswith("cuda")  # nothing to pin there
        self._dataset = Dataset(options)
        kind = Shuffled if options["shuffle"] else Sequential
        self._sampler = kind(self._dataset, self._share)
        rows = None if most_rows is None else int(most_rows)
        self._batch_sampler = BatchSampler(self._sampler, rows, bool(drop_last), self._share)

    # --- iterating ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        """Takes the next epoch, or that of `set_epoch`, or continues after `load_state_dict`.

        The epoch is chosen when the first batch is requested; creating an iterator and dropping it changes
        nothing.
        """
        return Iterator(self._share, self._pin_memory)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next `for` take this epoch, for the order and all random transforms; as
        DistributedSampler's.

        After `load_state_dict` of a state in the middle of that epoch the next `for` continues there.
        """
        self._share.set_epoch(epoch)

    def __len__(self) -> int:
        """Returns the number of batches of an epoch for this process, with its current rank."""
        return len(self._share)

    # --- attributes --------------------------------------------------------------------------------

    @property
    def source(self) -> Source:
        """The source of the samples."""
        return self._dataset.source

    @property
    def classes(self) -> list[str]:
        """The source's class names by label; empty if there are none."""
        return self._dataset.classes

    @property
    def dataset(self) -> Dataset:
        """The samples, by the names of torchvision's datasets; `len(loader.dataset)` is their number."""
        return self._dataset

    @property
    def sampler(self) -> Sequential | Shuffled:
        """This process' samples, in the order of the next epoch; has `set_epoch`."""
        return self._sampler

    @property
    def batch_sampler(self) -> BatchSampler:
        """This process' samples in batches; iterating over it takes an epoch.

        A batch whose samples were all dropped (on_bad) is a DataLossError of a loader that is made from it.
        """
        return self._batch_sampler

    @property
    def drop_last(self) -> bool:
        """Whether a last batch that is not full is dropped."""
        return self._batch_sampler.drop_last

    @property
    def batch_size(self) -> int | None:
        """Rows per batch; with batch_tokens the most rows of one, and None means no limit."""
        return self._batch_sampler.batch_size

    @property
    def pin_memory(self) -> bool:
        """Whether batches on the CPU are copied into pinned memory, if there is a GPU."""
        return self._pin_memory

    def __getattr__(self, name: str) -> Any:
        """Returns other attributes of torch's DataLoader, with their values for no worker processes."""
        if name in _options.OPTIONS:
            return _options.OPTIONS[name].now
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _options.OPTIONS:
            raise AttributeError(f"{name} is fixed when a stoker.torch.DataLoader is made")
        super().__setattr__(name, value)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self._share.device

    def stats(self) -> dict[str, Any]:
        """See `stoker.Loader.stats`."""
        return self._share.stats()

    def __repr__(self) -> str:
        return f"<stoker.torch.DataLoader of {self._share!r}>"

    # --- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the latest `for`: a few numbers, as in torchdata's StatefulDataLoader.

        It is after the last delivered batch; after a finished epoch, at the start of the next one.
        """
        return self._share.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next `for` continue there, with the same batches; nothing is replayed. {} changes
        nothing.

        The state may come from another number of processes or batch size; see
        `stoker.Loader.load_state_dict`. The next `for` and `sampler` then have the rest of its epoch;
        `len(loader)` and `len(sampler)` are those of whole epochs.

        Raises:
            FailedPreconditionError: the state comes from a loader with other options or samples.
            ValueError, TypeError: it is not a loader's state.
        """
        if state != {}:
            self._share.load_state_dict(state)

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends production now; all iterators raise CancelledError. Tensors stay valid.

        Optional: a loader that nothing refers to closes itself.
        """
        self._share.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments, without the place, as `stoker.Loader` does."""
        return _made, (self._arguments,)


def _made(arguments: dict[str, Any]) -> DataLoader:
    """For pickle, which passes no keywords."""
    return DataLoader(**arguments)
