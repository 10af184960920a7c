"""DataLoader: a loader with the names and meanings that PyTorch's users know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

import torch

from stoker import _checks
from stoker._iterator import DeviceIterator
from stoker._loader import Loader
from stoker._mix import BatchTransform, split
from stoker._runtime import Runtime
from stoker._sources import Source
from stoker._stoker import Tensor
from stoker._transforms import Transform

Batch = Union[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]

# Options of torch.utils.data.DataLoader that stoker has no use for, and what does their work.
_ELSEWHERE = {
    "num_workers": "decoding is done by threads in this process, as many as there are cores allotted to it; "
    "runtime=stoker.Runtime(threads=…) sets their number",
    "persistent_workers": "its threads stay as long as the loader",
    "worker_init_fn": "there are no worker processes; every draw follows from seed=",
    "multiprocessing_context": "there are no worker processes",
    "timeout": "there are no worker processes to wait for; Ctrl-C ends a wait",
    "prefetch_factor": "depth= is the number of batches in production",
    "in_order": "batches always come in order",
    "generator": "seed= decides the order and every random transform, whatever torch.manual_seed says",
    "sampler": "shuffle=, rank= and world= decide the order; for a subset give a folder of its own",
    "batch_sampler": "batch_size=, shuffle= and drop_last= decide what is in a batch",
    "collate_fn": "batches are made in one piece; MixUp and CutMix are the last of transforms=",
    "pin_memory": "device='cuda' gives batches that are on the GPU already; a copy of one's own from pinned "
    "memory is not known to stoker",
    "pin_memory_device": "device='cuda:0' gives batches that are on the GPU already",
}


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
        device: where tensors are: a torch.device, or its name. "cuda": PyTorch's current one.
        seed: of the order and of every random transform.
        rank: this process' number, and
        world: the number of processes. None: torch.distributed's where it is initialised, else 0 of 1.
        remainder: what becomes of samples that do not divide evenly among processes: "pad" (the order
            begins again, so that all have equally many batches, as with DistributedSampler), "drop", or
            "uneven" (each exactly once).
        exif_orientation, depth, lent_batches, runtime: as `stoker.Loader`.
        buffers: as `stoker.Loader.to_device`: batches that there is memory for on a GPU.

    Raises:
        ValueError, TypeError: naming the option. Options of torch's DataLoader that have no meaning here
            (num_workers, pin_memory, collate_fn, …) are TypeErrors that say what has.
    """

    def __init__(
        self,
        source: Source,
        transforms: Iterable[Transform | BatchTransform] = (),
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        dtype: torch.dtype | str | None = None,
        layout: str | None = None,
        device: torch.device | str = "cpu",
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        remainder: str = "pad",
        exif_orientation: bool = True,
        depth: int | None = None,
        lent_batches: int | None = None,
        buffers: int = 4,
        runtime: Runtime | None = None,
        **others: Any,
    ) -> None:
        for name in others:
            _refuse(name)
        if isinstance(source, (torch.utils.data.Dataset, torch.utils.data.DataLoader)):
            raise TypeError(
                f"source is a {type(source).__name__} of PyTorch's, which makes samples in Python; "
                "give stoker.image_folder(…) or stoker.arrays(…)"
            )
        place = _device_name(device)
        images, mix = split(transforms)
        dtype = dtype or ("float32" if images else "uint8")
        self._loader = Loader(
            source,
            images if mix is None else [*images, mix],
            batch_size=batch_size,
            shuffle=_checks.boolean("shuffle", shuffle),
            drop_remainder=_checks.boolean("drop_last", drop_last),
            dtype=str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype,
            layout=layout or ("NCHW" if images else "NHWC"),
            seed=seed,
            rank=_distributed("get_rank", 0) if rank is None else rank,
            world=_distributed("get_world_size", 1) if world is None else world,
            remainder=remainder,
            exif_orientation=exif_orientation,
            depth=depth,
            lent_batches=lent_batches,
            runtime=runtime,
        )
        self._batches = self._loader.to_device(place, buffers=buffers)
        there = self._batches.device
        self._device = torch.device("cpu" if there == "host" else there)

    # --- iterating ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        """Takes the next epoch, or that of `set_epoch`; or goes on where `load_state_dict` said."""
        return Iterator(iter(self._batches))

    def set_epoch(self, epoch: int) -> None:
        """The next `for` takes this epoch; as DistributedSampler's, for all that is drawn.

        After `load_state_dict` of a state in the middle of that epoch the next `for` goes on there.
        """
        number = _checks.epoch(epoch)
        if self._loader._resume is not None and self._loader._resume[0] == number:
            return
        self._loader._start_at(number, 0)

    def __len__(self) -> int:
        """Batches of an epoch, for this process."""
        return len(self._loader)

    # --- what it is --------------------------------------------------------------------------------

    @property
    def source(self) -> Source:
        """Where the samples come from."""
        return self._loader.source

    @property
    def classes(self) -> list[str]:
        """The source's class names by label; empty where there are none."""
        return self._loader.classes

    @property
    def dataset(self) -> Source:
        """The same, by PyTorch's name; `len(loader.dataset)` is its number of samples."""
        return self._loader.source

    @property
    def drop_last(self) -> bool:
        """Whether a last batch that is not full is left out."""
        return bool(self._loader._options["drop_remainder"])

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        return self._loader.batch_size

    @property
    def device(self) -> torch.device:
        """Where tensors are."""
        return self._device

    def stats(self) -> dict[str, Any]:
        """As `stoker.Loader.stats`."""
        return self._batches.stats()

    def __repr__(self) -> str:
        return f"<stoker.torch.DataLoader of {self._batches!r}>"

    # --- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the latest `for` is: a few numbers, as torchdata's StatefulDataLoader has it.

        Batches that were delivered are past. After a finished epoch: the start of the next one.
        """
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next `for` goes on there, with the same batches; nothing is replayed. {} changes nothing.

        Raises:
            FailedPreconditionError: the state is that of a loader with other options or samples.
            ValueError, TypeError: it is no state of a loader.
        """
        if state != {}:
            self._loader.load_state_dict(state)

    # --- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends production now, in all iterators: CancelledError from there on. Tensors stay valid.

        Not needed: a loader that nothing refers to closes itself.
        """
        self._batches.close()
        self._loader.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.torch.DataLoader cannot be pickled; make one in each process")


class Iterator:
    """One iteration. A bad sample makes its batch an error; `next` after it goes on behind that."""

    def __init__(self, tensors: DeviceIterator) -> None:
        self._tensors = tensors

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Batch:
        """The next batch; raises what `stoker.Iterator` does."""
        batch = next(self._tensors)
        if isinstance(batch, Tensor):
            return _taken(batch)
        images, labels = map(_taken, batch)
        # On a device both lie in one of its few buffers: who collects labels shall not hold those.
        return images, labels if batch[1].device == "cpu" else labels.clone()

    @property
    def sample_ids(self) -> torch.Tensor:
        """Which samples of the source the rows of the last batch are, (rows,) int64, on the CPU."""
        return torch.from_numpy(self._tensors.sample_ids.astype("int64"))

    def __repr__(self) -> str:
        return f"<stoker.torch.Iterator of {self._tensors!r}>"


def _taken(tensor: Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.from_dlpack(tensor)
    return made


def _device_name(device: Any) -> str:
    """What `Loader.to_device` calls it. "cuda" is PyTorch's current device."""
    if not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a torch.device or its name, not {device!r:.80}")
    if str(device) == "cuda":
        return f"cuda:{torch.cuda.current_device()}"
    return str(device)


def _distributed(getter: str, otherwise: int) -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return int(getattr(torch.distributed, getter)()) if there else otherwise


def _refuse(name: str) -> None:
    if name in _ELSEWHERE:
        raise TypeError(f"stoker.torch.DataLoader has no {name}: {_ELSEWHERE[name]}")
    raise TypeError(f"stoker.torch.DataLoader has no option {name!r}")
