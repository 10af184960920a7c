"""Dataset: a source under torchvision's names."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from stoker import _options
from stoker._compose import Compose
from stoker._errors import UnimplementedError
from stoker._mix import split
from stoker._sources import Source
from stoker.torch._sampler import Batch


class Dataset(torch.utils.data.Dataset[Any]):
    """The samples of a source, with the names of torchvision's ImageFolder.

    A loader makes whole batches and never asks for single samples. For programs that do, `dataset[i]` is a
    row of a batch, (image, label) and what else it has, transformed as by the loader except for mixing and
    `Map`. It is made during the call, on the calling thread, with new random parameters from torch's random
    numbers. A sample that cannot be decoded is an error, also with `on_bad`. Samples of several images, as
    those of `stoker.masks`, samples with objects, and `geometry=True` are an UnimplementedError. Attributes
    that a source does not have (files of arrays, labels of a folder without classes) are an AttributeError.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._source: Source = options["source"]
        transforms, self._processor, mix, _ = split(options["transforms"])
        self._mixes = mix is not None
        self._has_geometry: bool = options["geometry"]
        self._extras = (options["sample_ids"], options["paths"])
        self._dtype = getattr(torch, options["dtype"])
        given = _options.of_images(options)
        given["dtype"] = {"bfloat16": "float32"}.get(options["dtype"], options["dtype"])  # NumPy lacks it
        if options["runtime"] is not None:
            given["memory_budget"] = options["runtime"]._native.describe()["memory_budget"]
        # One for each view; none means rows of arrays are unchanged. Single samples with objects are not
        # made, and transforms of boxes compile only for a source that has them.
        views = options["views"] or [transforms] * bool(transforms)
        if self._source._native.objects or self._processor is not None:
            views = []
        self._composes = [Compose(view, **given) for view in views]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"dataset.{name} cannot be set: the loader would not see it; make a loader with other "
                "transforms=, or of another folder"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """The number of samples, over all processes."""
        return len(self._source)

    @property
    def source(self) -> Source:
        """The `stoker.Source`."""
        return self._source

    @property
    def classes(self) -> list[str]:
        """Class names by label."""
        return self._source.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Labels by class name."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def root(self) -> str:
        """The folder."""
        self._need(self._source._root is not None, "root")
        return str(self._source._root)

    @cached_property
    def targets(self) -> Any:
        """The labels: a list, or for arrays the array."""
        self._need(self._source.has_labels, "targets")
        columns = self._source._columns
        return columns["label"] if "image" in columns else self._source.labels.tolist()

    @cached_property
    def samples(self) -> list[tuple[str, int]]:
        """The file and label of each sample, if it is one image."""
        self._need(self._source._has_files and not self._source._native.varies, "samples")
        return [(self._source.path(i), label) for i, label in enumerate(self.targets)]

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """Another name of `samples`."""
        return self.samples

    def _need(self, there: bool, name: str) -> None:
        if not there:
            raise AttributeError(f"{self._source!r} has no {name}")

    # --- samples -----------------------------------------------------------------------------------

    def __getitem__(self, index: int) -> Any:
        """Returns one sample: (image, label) and its further columns, or the image alone."""
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        image, *made = self._images(number)
        beside = [*self._source._beside(number), *made]
        if self._extras[0]:
            beside.append(number)
        if self._extras[1]:
            beside.append(self._source.path(number))
        return (image, *beside) if beside else image

    def _images(self, number: int) -> list[torch.Tensor]:
        """Returns the image, its size if it is padded, and its further views."""
        if self._source._native.counts not in ([], [0]):
            raise UnimplementedError(
                f"single samples of {self._source!r} are not made, which have several images each",
                advice="Iterate over the DataLoader, which makes batches of images and masks",
            )
        if self._source._native.objects:
            raise UnimplementedError(
                f"single samples of {self._source!r} are not made, whose images have objects",
                advice="Iterate over the DataLoader, whose batches have them",
            )
        if self._processor is not None:
            raise UnimplementedError(
                f"single samples are not made by {self._processor!r}",
                advice="Iterate over the DataLoader, or call the processor",
            )
        if self._has_geometry:
            raise UnimplementedError(
                "single samples with the columns of geometry=True are not made",
                advice="Iterate over the DataLoader, whose batches have them",
            )
        image = self._source._image(number)
        if not self._composes:
            return [torch.tensor(image)]
        made = []
        for compose in self._composes:
            draw = int(torch.empty((), dtype=torch.int64).random_())
            array, size = compose._made(image, None, 0, draw)
            made.append(torch.from_numpy(array).to(self._dtype))
            if size is not None:
                made.append(torch.tensor(size, dtype=torch.int32))
        return made

    def __getitems__(self, indices: list[int]) -> Any:
        """Returns a batch that the loader makes, or a list of samples.

        For a torch.utils.data.DataLoader made from a loader's `dataset`, `batch_sampler` (possibly wrapped in
        one that skips batches) and `collate_fn`, without worker processes.
        """
        if isinstance(indices, Batch):
            return indices.made()
        if self._mixes:
            raise TypeError(
                "MixUp and CutMix mix batches of the loader's own, and these samples were chosen by another "
                "sampler; leave them out of transforms=, and mix in collate_fn"
            )
        return [self[index] for index in indices]

    def __repr__(self) -> str:
        return f"<stoker.torch dataset of {self._source!r}: {len(self)} samples>"
