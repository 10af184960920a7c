"""Sources made from other sources: some of their samples, several sources together, or clips of them."""

from __future__ import annotations

import functools
import math
import os
import uuid
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _stoker
from stoker._errors import FailedPreconditionError, InvalidArgumentError, counted
from stoker._runtime import Runtime
from stoker._sources import Source, _absolute


class Derived(Source):
    """Samples of other sources; the library asks these sources for them."""

    def __init__(
        self,
        native: _stoker.Source,
        text: str,
        parts: list[Source],
        made_by: tuple[Any, tuple[Any, ...]] | None = None,
    ) -> None:
        """`parts`: the sources whose samples follow each other in this one."""
        super().__init__(native, {"kind": "derived", "key": uuid.uuid4().hex}, text)
        self._parts = parts
        self._made_by = made_by

    def _labels_of(self, samples: npt.NDArray[np.uint64] | None = None) -> npt.NDArray[Any]:
        if self._kept_labels is not None:
            return super()._labels_of(samples)
        if len(self._parts) == 1:
            (part,) = self._parts
            return part.labels if samples is None else part._labels_of(samples)
        if samples is None:
            return np.concatenate([part._labels_of() for part in self._parts])
        ends = np.cumsum([len(part) for part in self._parts], dtype=np.uint64)
        part_of = np.searchsorted(ends, samples, side="right")
        by_part = [
            part._labels_of(samples[part_of == i] - (end - np.uint64(len(part))))
            for i, (part, end) in enumerate(zip(self._parts, ends))
        ]
        labels = np.concatenate(by_part)
        labels[np.argsort(part_of, kind="stable")] = labels.copy()
        return labels

    def _label_rows(self) -> npt.NDArray[Any]:
        return self._parts[0]._label_rows()


class _Subset(Derived):
    """Some of the samples of a source, which is not a subset itself."""

    def __init__(self, source: Source, native: _stoker.Source, text: str) -> None:
        self._of: Source = source._of if isinstance(source, _Subset) else source
        super().__init__(native, text, [self._of])

    def _labels_of(self, samples: npt.NDArray[np.uint64] | None = None) -> npt.NDArray[Any]:
        if self._kept_labels is not None:
            return super()._labels_of(samples)
        ids = self._ids()
        return self._of._labels_of(ids if samples is None else ids[samples])

    def _ids(self) -> npt.NDArray[Any]:
        """The ids that the samples have in the source that they are some of."""
        ids: npt.NDArray[Any] = _stoker.subset_ids(self._native)
        of = _stoker.subset_ids(self._of._native)
        if len(of):  # of `from_hf`, whose samples are some of those in the files: where in these they are
            order = np.argsort(of)
            ids = order[np.searchsorted(of, ids, sorter=order)].astype(np.uint64)
        return ids

    def __reduce__(self) -> tuple[Any, ...]:
        ids = self._ids().astype(np.min_scalar_type(len(self._of)))
        return _chosen_of_same, (self._of, self._of._native.fingerprint, ids, self._text)


class _Weighted(Derived):
    """A source's samples in the order that weights choose."""

    def __init__(self, source: Source, native: _stoker.Source, weights: Any, samples: int | None) -> None:
        super().__init__(native, f"{source!r}.weighted(…)", [source])
        self._of = source
        self._choice = weights, samples

    def __reduce__(self) -> tuple[Any, ...]:
        return _weighted_same, (self._of, self._of._native.fingerprint, *self._choice)


class _Sized(Derived):
    """A source with facts about its images, which pickling keeps."""

    def __init__(self, source: Source, native: _stoker.Source) -> None:
        super().__init__(native, f"stoker.sized({source!r})", [source])

    def __reduce__(self) -> tuple[Any, ...]:
        (source,) = self._parts
        return _sized_same, (source, source._native.fingerprint, self._native.facts)


def _chosen_of_same(source: Source, fingerprint: str, ids: npt.NDArray[Any], text: str) -> Source:
    """For pickle."""
    return _chosen(_same(source, fingerprint), ids, text)


def _weighted_same(source: Source, fingerprint: str, weights: Any, samples: int | None) -> Source:
    """For pickle."""
    return weighted(_same(source, fingerprint), weights, samples)


def _same(source: Source, fingerprint: str) -> Source:
    """Returns the source that was unpickled, whose samples have the numbers that they had."""
    if source._native.fingerprint == fingerprint:
        return source
    raise FailedPreconditionError(
        f"{source!r} has other samples than when its subset or weights were pickled",
        advice="Choose from the source again, or give it the files that it had",
    )


def combine(sources: Iterable[Source], weights: Any = None, *, samples: int | None = None) -> Source:
    """Combines several sources into one.

        both = stoker.combine([stoker.image_folder("photos/a"), stoker.image_folder("photos/b")])
        mixed = stoker.combine([small, large], weights=[0.3, 0.7])

    Samples are those of the first source, then those of the second, and so on; ids and `path` are numbered
    accordingly. All sources must have the same columns. Class names must be equal; if some sources have none,
    the result has none.

    With `weights` an epoch has `samples` samples, of which each source has its weight's share, rounded up or
    down at random, in random order. Samples of one source come equally often, give or take one: none comes
    twice before all have come, and a source that is larger than its share continues with other samples in the
    next epoch. A loader's `shuffle` then changes nothing; `seed` does.

    Args:
        sources: one or more.
        weights: a number for each of them, 0 or more; None means each sample once an epoch.
        samples: samples of an epoch, over all ranks; None means as many as there are. Only with weights.

    Raises:
        ValueError: naming the difference between the sources, a source that has an order already, as
            `weighted` makes one, or wrong weights.
    """
    if isinstance(sources, Source) or not isinstance(sources, Iterable):
        raise TypeError(f"sources must be a list of sources, not {sources!r:.80}")
    listed = list(sources)
    for i, source in enumerate(listed):
        if not isinstance(source, Source):
            raise TypeError(f"sources[{i}] must be a Source, not {source!r:.80}")
    if weights is None and samples is not None:
        raise InvalidArgumentError("samples is the length of a mixture's epoch, which has weights")
    weights = None if weights is None else _weights(weights)
    native = _stoker.combine([source._native for source in listed], weights, _samples(samples))
    text = f"[{listed[0]!r}" + (f" and {len(listed) - 1} more]" if len(listed) > 1 else "]")
    text = f"stoker.combine({text}{'' if weights is None else ', weights'})"
    again = functools.partial(combine, samples=samples)
    return Derived(native, text, listed, (again, (listed, weights)))


def clips(
    source: Source | Mapping[str, Source],
    *,
    by: str | None = None,
    frames: int = 8,
    stride: int = 1,
    step: int = 1,
) -> Source:
    """Clips: samples of several images that follow each other in a source, of one camera or several.

        frames = stoker.image_folder("episodes/front")  # a folder for each episode
        clips = stoker.clips(frames, by="label", frames=8, stride=2)
        for batch in stoker.Loader(clips, [stoker.RandomResizedCrop(224)], batch_size=16, shuffle=True):
            batch["image"]  # uint8 (16, 8, 224, 224, 3)
            batch["label"]  # int64 (16, 8)

    A source's samples are the frames, in the order of time. A clip has the frames i, i + stride, … of one
    episode, and never reaches into the next one; each `step`th frame of an episode begins a clip, so clips
    overlap. With shuffle=True their order is random. Images stay where they are: in files, archives,
    packed sets or objects; a frame is read and decoded in each clip that has it.

    All images of a clip get the same random draw, also those of other cameras if they have the same size: the
    same crop, the same colours, the same erased rectangles. The images of one camera must have one size.

    Other columns are those of the first source, with the values of all frames: (rows, frames, …). That is so
    for its label, too, which is a column like the others; a column of text has that of the first frame.

    Args:
        source: the frames, or a dictionary of several cameras' frames by the name of their column, as
            {"front": …, "wrist": …}. All have the same number of frames, taken at the same times. The column
            of a single source is "image".
        by: the column of the first source that tells episodes apart: frames that follow each other with an
            equal number or text are one. None: all frames are one episode.
        frames: of a clip, of each camera.
        stride: from each frame of a clip to its next one.
        step: from the first frame of a clip to the first frame of the next clip.

    Raises:
        ValueError: cameras with other numbers of frames; samples with several images, with objects, without
            encoded images, or with values that are read with the images (labels of `tfrecord`, arrays in
            archives); a source that calls the program, or has an order, as `weighted` makes one; no column
            `by`, or one of arrays; no episode that is long enough; more than 1,024 images in a clip.
    """
    cameras = dict(source) if isinstance(source, Mapping) else {"image": source}
    for name, camera in cameras.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"names of cameras are text, not {name!r:.80}")
        if not isinstance(camera, Source):
            raise TypeError(f"{name!r} must be a Source, not {camera!r:.80}")
    numbers = {
        name: _checks.integer(name, value, 1, 2**32 - 1)
        for name, value in (("frames", frames), ("stride", stride), ("step", step))
    }
    made = _clips(source, None if by is None else _checks.text("by", by), numbers)
    theirs = dict.fromkeys(camera._native.warning for camera in cameras.values())
    if made._native.warning != "; and ".join(filter(None, theirs)):
        warnings.warn(made._native.warning, stacklevel=2)
    return made


def sized(
    source: Source,
    sizes: Any = None,
    *,
    index: str | os.PathLike[Any] | None = None,
    runtime: Runtime | None = None,
) -> Source:
    """The same samples, with the size of each image: `image_size`. Samples have one encoded image, or lists
    of any number of images.

        source = stoker.sized(stoker.tar("shards/{000..127}.tar"), index="sizes")
        source.image_size(0)  # (height, width)
        known = source.subset(np.setdiff1d(np.arange(len(source)), source.unsized))

    Where the source knows sizes itself, by `stoker index` or `stoker pack`, these are used. Of the other
    images the headers are read, on all threads of the Runtime and without the GIL: the first 64 KiB of most
    images, all of other files and of TFRecords. `parquet` and `from_dataset` are asked for each sample, on
    their own threads. Images whose header cannot be read have no known size, with a warning that counts
    them; `unsized` lists them. Pickling keeps the sizes, 24 bytes an image, and nothing is read again.

    Args:
        source: any but arrays, those with clips or several columns of images, and those with an order, as
            `weighted` makes one, which comes after sizes.
        sizes: (samples, 2) integers: the height and width of each image as stored, as columns of a table may
            have them; nothing is read then. Of lists of images: a list of (images of the sample, 2), or one
            array, (images of all samples, 2). EXIF tags are not known, so these images must not be turned by
            90°. None: headers are read.
        index: a file that keeps the sizes. It is written if it is not there, and otherwise read; then only
            the headers of up to 8 images are compared with it, and unknown sizes are read again. The file
            that `stoker index` wrote is read, too. None: headers are read each time.
        runtime: the Runtime whose workers read; None means the default one.

    Returns:
        A source with the same samples, files, columns, fingerprint and states.

    Raises:
        ValueError: a wrong number of sizes; a side that is not 1 to 65535; a size other than the source
            knows; a source that has no such samples, or an order; `index` is another kind of file.
        FailedPreconditionError: `index` is the index of other samples, or a header differs from it.
        DataLossError, UnimplementedError: `index` is damaged, or of another version.
        Error: `index` cannot be read or written; nothing else is read then.
        TypeError: naming the argument.
    """
    if not isinstance(source, Source):
        raise TypeError(f"source must be a Source, not {source!r:.80}")
    if sizes is not None and (index is not None or runtime is not None):
        raise InvalidArgumentError("index and runtime are for reading headers; sizes are given")
    if runtime is not None and not isinstance(runtime, Runtime):
        raise TypeError(f"runtime must be a stoker.Runtime, not {runtime!r:.80}")
    if sizes is not None:
        if source._native.varies and not isinstance(sizes, np.ndarray):
            sizes = _sizes_of_lists(source, sizes)
        return _Sized(source, _stoker.sized(source._native, _sizes(sizes)))
    path = b"" if index is None else _absolute("index", index)
    used = _stoker.Runtime() if runtime is None else runtime._native
    made = _Sized(source, _stoker.sized_by_headers(source._native, path, used))
    theirs = source._native.warning
    if made._native.warning != theirs:
        warnings.warn(made._native.warning.removeprefix(theirs).removeprefix("; and "), stacklevel=2)
    return made


def _sized_same(source: Source, fingerprint: str, facts: npt.NDArray[Any]) -> Source:
    """For pickle."""
    source = _same(source, fingerprint)
    return _Sized(source, _stoker.sized_by_facts(source._native, facts))


def _sizes_of_lists(source: Source, sizes: Any) -> npt.NDArray[Any]:
    """Returns the sizes of all images of a list with those of each sample."""
    counts = source._native.image_counts.tolist()
    each = [np.asarray(of_sample) for of_sample in sizes]
    if len(each) != len(counts):
        raise InvalidArgumentError(f"sizes are of {len(each)} samples, and {source!r} has {len(counts)}")
    for i, (of_sample, count) in enumerate(zip(each, counts)):
        if of_sample.shape != (count, 2) and (count or of_sample.size):
            has = counted(count, "image", "images")
            raise InvalidArgumentError(
                f"sizes[{i}] has the shape {of_sample.shape}, and sample {i} has {has}: give ({count}, 2)"
            )
    return np.concatenate([of_sample for of_sample in each if of_sample.size] or [np.zeros((0, 2), np.int64)])


def _sizes(sizes: Any) -> npt.NDArray[np.int32]:
    """Returns a copy of sizes, which does not change with the program's array."""
    given = np.asarray(sizes)
    if given.dtype.kind not in "iu":
        raise TypeError(f"sizes must be integers, (samples, 2), not an array of {given.dtype}")
    if given.ndim != 2 or given.shape[1] != 2:
        raise InvalidArgumentError(f"sizes must have the shape (samples, 2), not {given.shape}")
    if given.size and max(given.max(), -int(given.min())) > np.iinfo(np.int32).max:
        raise InvalidArgumentError(
            f"sizes are {given.min()} to {given.max()}; sides are 1 to {_checks.MOST_PIXELS}"
        )
    return given.astype(np.int32)


def _clips(source: Source | Mapping[str, Source], by: str | None, numbers: dict[str, int]) -> Source:
    """`clips`, of valid arguments and without a warning: for pickle, too."""
    cameras = dict(source) if isinstance(source, Mapping) else {"image": source}
    native = _stoker.clips([(name, camera._native) for name, camera in cameras.items()], by or "", **numbers)
    text = repr(source) if isinstance(source, Source) else f"{{{', '.join(map(repr, cameras))}}}"
    arguments = "".join(
        f", {name}={value}" for name, value in numbers.items() if value != 1 or name == "frames"
    )
    text = f"stoker.clips({text}{f', by={by!r}' if by else ''}{arguments})"
    given = cameras if isinstance(source, Mapping) else source
    return Derived(native, text, list(cameras.values()), (_clips, (given, by, numbers)))


def _weights(weights: Any) -> npt.NDArray[np.float64]:
    """Returns a copy, which does not change with the program's array."""
    try:
        numbers = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights must be a list of numbers, not {weights!r:.80}") from None
    if numbers.ndim != 1:
        raise TypeError(f"weights must be a list of numbers; these have the shape {numbers.shape}")
    return numbers


def _samples(samples: int | None) -> int:
    """Returns the number of samples of an epoch; 0 means as many as there are."""
    return 0 if samples is None else _checks.integer("samples", samples, 1, 2**53)


def weighted(source: Source, weights: Any, samples: int | None) -> Source:
    """`Source.weighted`."""
    weights = _weights(weights)
    native = _stoker.weighted(source._native, weights, _samples(samples))
    return _Weighted(source, native, weights, samples)


def balanced(source: Source, replacement: bool, samples: int | None) -> Source:
    """`Source.balanced`."""
    replacement = _checks.boolean("replacement", replacement)
    positions = _samples(samples)
    _stoker.check_no_order("balanced", source._native)
    classes = np.empty(0, np.int64)
    of_objects = "labels" in source._native.objects
    if (of_objects or source.has_labels) and not source._native.labels_in_memory:
        classes = _class_numbers(source, "balanced", "weighted takes any weights")
        classes = classes.astype(np.int64, copy=False)
    native = _stoker.balanced(source._native, replacement, positions, classes)
    text = f"{source!r}.balanced({'replacement=True' if replacement else ''})"
    return Derived(native, text, [source], (balanced, (source, replacement, samples)))


def repeated(source: Source, times: int, samples: int | None) -> Source:
    """`Source.repeated`."""
    times = _checks.integer("times", times, 1, 2**32 - 1)
    native = _stoker.repeated(source._native, times, _samples(samples))
    text = f"{source!r}.repeated({times})"
    return Derived(native, text, [source], (repeated, (source, times, samples)))


def subset(source: Source, indices: Any) -> Source:
    """`Source.subset`."""
    chosen = np.asarray(indices)
    if chosen.size == 0:
        raise InvalidArgumentError(f"subset: no sample of {source!r} was chosen")
    if chosen.dtype == bool:
        raise TypeError("indices are booleans, and must be integers; a mask is for source.filter(mask)")
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise TypeError(f"indices must be a list of integers, not {indices!r:.80}")
    if (negative := chosen < 0).any():
        at = int(negative.argmax())
        raise InvalidArgumentError(f"indices[{at}] is {chosen[at]}; samples are numbered from 0")
    return _chosen(source, chosen)


def _chosen(source: Source, ids: npt.NDArray[Any], text: str | None = None) -> Source:
    native = _stoker.subset(source._native, ids.astype(np.uint64, copy=False))
    if text is None:
        text = f"<{len(native)} of {counted(len(source), 'sample', 'samples')} of {source!r}>"
    return _Subset(source, native, text)


def split(source: Source, fraction: float, seed: int, stratify: bool) -> tuple[Source, Source]:
    """`Source.split`."""
    fraction = _checks.real("fraction", fraction)
    seed = _checks.integer("seed", seed, 0, 2**64 - 1)
    classes = np.empty(0, np.int64)
    if _checks.boolean("stratify", stratify):
        _stoker.check_split(source._native, fraction)
        classes = _class_numbers(source, "split", "divide the samples yourself, with source.subset")
        classes = classes.astype(np.int64, copy=False)
    parts = _stoker.split(source._native, fraction, seed, classes)
    training, validation = (
        _Subset(
            source, part, f"<{name} {len(part)} of {counted(len(source), 'sample', 'samples')} of {source!r}>"
        )
        for name, part in zip(("training", "validation"), parts)
    )
    return training, validation


def filtered(source: Source, mask: Any, labels: Any) -> Source:
    """`Source.filter`."""
    if (mask is None) == (labels is None):
        raise TypeError("filter takes a mask or labels=, one of them")
    if mask is None:
        _stoker.check_no_order("subset", source._native)
        dtype = _check_class_numbers(source, "filter", "give a mask")
        chosen = sorted(_label_numbers(source, labels, dtype.kind == "b"))
        keep = np.isin(_class_numbers(source, "filter", "give a mask"), chosen)
    else:
        keep = np.asarray(mask)
        if keep.dtype != bool:
            raise TypeError(f"mask must be an array of booleans, not {mask!r:.80}")
        if keep.shape != (len(source),):
            raise InvalidArgumentError(
                f"mask has the shape {keep.shape}; {source!r} has {counted(len(source), 'sample', 'samples')}"
            )
    ids = np.flatnonzero(keep)
    if not len(ids):
        raise InvalidArgumentError(f"filter: no sample of {source!r} was chosen")
    return _chosen(source, ids)


def _check_class_numbers(source: Source, what: str, otherwise: str) -> np.dtype[Any]:
    """Returns the type of the labels, which the function `what` needs to be class numbers."""
    if not source.has_labels:
        raise InvalidArgumentError(f"{what}: {source!r} {source._lacks_labels()}")
    none = source._label_rows()
    if none.dtype.kind not in "biu" or math.prod(none.shape[1:]) != 1:
        raise InvalidArgumentError(f"{what}: labels of {source!r} are not class numbers; {otherwise}")
    return none.dtype


def _class_numbers(source: Source, what: str, otherwise: str) -> npt.NDArray[Any]:
    """Returns the label of each sample, for the function `what`."""
    _check_class_numbers(source, what, otherwise)
    return source._labels_of().reshape(len(source))


def _label_numbers(source: Source, labels: Any, are_bool: bool) -> set[int]:
    """Returns the numbers of labels, which may be given as class names, and as bool if they `are_bool`."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise TypeError(f"labels must be several, as [3] or ['cat'] are, not {labels!r:.80}")
    numbers = {name: i for i, name in enumerate(source.classes)}
    chosen = set()
    for label in labels:
        if isinstance(label, str) and label not in numbers:
            raise InvalidArgumentError(f"filter: {source!r} has no class {label!r}")
        if are_bool and isinstance(label, (bool, np.bool_)):
            label = int(label)
        chosen.add(
            numbers[label] if isinstance(label, str) else _checks.integer("label", label, -(2**63), 2**63 - 1)
        )
    return chosen
