"""Sources: lists of the samples that exist."""

from __future__ import annotations

import codecs
import functools
import json
import os
import re
import uuid
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _calls, _checks, _image_columns, _object_columns, _parquet, _stoker
from stoker._errors import (
    CropIndexWarning,
    InvalidArgumentError,
    SkippedFilesWarning,
    UnimplementedError,
    counted,
)

__all__ = [
    "ImageFolder",
    "Source",
    "TFRecord",
    "Tar",
    "arrays",
    "files",
    "from_dataset",
    "image_folder",
    "manifest",
    "masks",
    "tar",
    "tfrecord",
]


# The query of a URL that is quoted: it may be a signature.
_QUERY = re.compile(r"""(?<=://)([^\s?]*)\?\S*?(?=['"](?:[,)\]}]|$)|\s|$)""")
_MOST_SHARDS = 1_000_000  # bytes of a list of archives in JSON: a loader spec has 1 MiB


class Source:
    """A numbered, immutable list of samples. Thread-safe; many loaders may share one.

    Made by `image_folder`, `masks`, `packed`, `manifest`, `files`, `tar`, `tfrecord`, `arrow`, `records`,
    `arrays`, `from_dataset`, `from_hf` and `combine`, and by the functions below.

    A source is pickled as what it was made of, without the samples: files must be in the same place where it
    is unpickled. Labels and columns in memory are pickled with it. A source of `arrays` cannot be
    pickled. `copy` and `deepcopy` return the source itself.
    """

    def __init__(self, native: _stoker.Source, spec: dict[str, Any], text: str) -> None:
        self._native = native
        self._spec = {**spec, "samples": len(native)}
        self._text = text
        self._columns: dict[str, Any] = {}  # arrays and lists in memory, in the order of a batch
        self._kept_labels: npt.NDArray[Any] | None = None
        # Labels that come with the images, by sample, and which of them were read.
        self._read: tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None = None
        # The function and the arguments that make the source again, for pickle.
        self._made_by: tuple[Any, tuple[Any, ...]] | None = None

    def __len__(self) -> int:
        """Samples."""
        return len(self._native)

    @property
    def classes(self) -> list[str]:
        """Class names by label; empty if labels have no names, or if there are no labels."""
        return self._native.classes

    @property
    def skipped(self) -> dict[str, int]:
        """The number of image files that were left out of the source, by extension: files of other formats in
        its folders, and samples without an image in its archives.
        """
        return self._native.skipped

    @property
    def has_labels(self) -> bool:
        """Whether batches have labels."""
        return self._native.has_labels

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The label of each sample, in the source's order: a read-only array, of the type that batches have.

            counts = np.bincount(source.labels, minlength=len(source.classes))
            weights = len(source) / (len(counts) * np.maximum(counts, 1))  # of each class

        Labels that were text are the numbers of their classes, as in batches. The source keeps the array: in
        its own size, but `arrays` have it already, and `weighted`, `balanced` and `repeated` share that of
        their source.

        Where labels come with the images, the first use asks for all of them: each record of `tfrecord` is
        read, without decoding, and the object of `from_dataset` is asked for each sample, one after another,
        by this thread, and does what it does for a sample (decoding, where it decodes). Each label is read
        once: what is made of the source, subsets of subsets too, shares what was read, and one byte for each
        sample is kept next to the labels.

        A record that cannot be read is an error. `stoker verify` lists the ids of bad samples: choose the
        others first, `source.subset(good).labels`.

        Raises:
            InvalidArgumentError: there are no labels (a ValueError).
            DataLossError, NotFoundError, …: a record cannot be read. An object's own exceptions are raised as
                they are.
        """
        if self._kept_labels is None:
            if not self.has_labels:
                raise InvalidArgumentError(f"{self!r} {self._lacks_labels()}")
            labels = self._labels_of().view()
            labels.setflags(write=False)
            self._kept_labels = labels
        return self._kept_labels

    @property
    def object_counts(self) -> npt.NDArray[np.int64] | None:
        """The number of objects of each sample, in the source's order: a new int64 array, (samples,). None if
        samples have no objects. It reads nothing. Choose samples by it as by any array:
        `source.filter(source.object_counts <= 100)`.
        """
        return self._native.object_counts()

    def _lacks_labels(self) -> str:
        """Says that there are no labels."""
        if "labels" in self._native.objects:
            return "has no label for each image; its column 'labels' has one for each object"
        return "has no labels"

    def _labels_of(self, samples: npt.NDArray[np.uint64] | None = None) -> npt.NDArray[Any]:
        """The labels of some samples, or of all. There must be labels. Those that it must read are kept."""
        if self._kept_labels is not None:
            return self._kept_labels if samples is None else self._kept_labels[samples]
        if "label" in self._columns:
            labels = np.asarray(self._columns["label"])
            return labels if samples is None else labels[samples]
        ids = np.arange(len(self), dtype=np.uint64) if samples is None else samples
        if self._native.labels_in_memory:
            return self._native.labels(ids)
        labels = self._once_read(ids)
        return labels if samples is None else labels[ids]

    def _once_read(self, samples: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
        """Returns labels by sample, after those of `samples` were read that were not read before."""
        if self._read is None:
            none = self._label_rows()
            self._read = np.empty((len(self), *none.shape[1:]), none.dtype), np.zeros(len(self), bool)
        labels, known = self._read
        missing = np.unique(samples[~known[samples]])
        if len(missing):
            labels[missing] = self._read_labels(missing)
            known[missing] = True
        return labels

    def _label_rows(self) -> npt.NDArray[Any]:
        """An empty array of the labels' type and shape. There must be labels."""
        return self._native.labels(np.empty(0, np.uint64))

    def _read_labels(self, samples: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
        """Reads labels that come with the images."""
        return self._native.labels(samples)

    def subset(self, indices: Any) -> Source:
        """Some of the samples, in the order of `indices`; one that occurs twice is two samples.

            first_thousand = source.subset(range(1000))

        They are renumbered, from 0: `path` and an iterator's `sample_ids` follow. Labels keep their
        numbers. Nothing is copied: the choice takes 4 bytes for each sample.

        Args:
            indices: integers: a list, a range, an array.

        Raises:
            ValueError: no index, or one that is not of a sample.
        """
        from stoker import _derived  # which derives from this class

        return _derived.subset(self, indices)

    def split(self, fraction: float, *, seed: int = 0, stratify: bool = False) -> tuple[Source, Source]:
        """Two subsets without a common sample, divided at random: for training, and for validation.

            train, validation = source.split(0.2, seed=1)

        The second has `fraction` of the samples, rounded down, as with Keras' validation_split. Both are in
        the source's order. The same number of samples, fraction and seed give the same division anywhere,
        and a larger fraction adds samples to the validation.

        With `stratify` each class is split separately: the validation has as many samples as without
        `stratify`, and of each class its share of them, rounded up or down: up where the remainders are
        largest; ties are broken at random. A small class may fall entirely into one part; one of a single
        sample always does. This division depends on all labels, and a larger fraction may also take samples
        away.

        Args:
            fraction: of the samples, between 0 and 1.
            seed: 0 to 2**64 - 1.
            stratify: split each class separately, by its `labels`, which are read first where they come with
                the images.

        Raises:
            ValueError: the fraction leaves one of them without a sample; `stratify`, and labels that are not
                class numbers, or none.
        """
        from stoker import _derived  # which derives from this class

        return _derived.split(self, fraction, seed, stratify)

    def filter(self, mask: Any = None, *, labels: Iterable[Any] | None = None) -> Source:
        """The samples where `mask` is true, or those with one of these labels, in the source's order.

            adults = source.filter(ages >= 18)
            pets = source.filter(labels=["cat", "dog"])

        Labels and `classes` stay as they are, also where a class has no samples left.

        Args:
            mask: an array of booleans, one for each sample.
            labels: class numbers, or names of `classes`; where labels are bool, also True and False.

        Raises:
            ValueError: no sample is left; a mask of another length; no such class.
        """
        from stoker import _derived  # which derives from this class

        return _derived.filtered(self, mask, labels)

    def weighted(self, weights: Any, *, samples: int | None = None) -> Source:
        """The same samples, drawn with replacement: each with a probability proportional to its weight.

            source.weighted(np.where(rare, 10, 1))

        As torch's WeightedRandomSampler does. The order is a function of the loader's seed, the epoch and
        the position, so ranks share it exactly; `shuffle` changes nothing. It takes 16 bytes for each sample.
        To weight some of the samples, choose them first. There is no such order without replacement, which
        would sort all samples for each epoch; `balanced` and `combine` have orders without replacement.

        Args:
            weights: a number for each sample, 0 or more.
            samples: of an epoch, over all ranks; None means as many as there are.

        Raises:
            ValueError: weights that are none; a source that has an order already.
        """
        from stoker import _derived

        return _derived.weighted(self, weights, samples)

    def balanced(self, *, replacement: bool = False, samples: int | None = None) -> Source:
        """The same samples, in epochs that have all classes equally often.

        Without replacement, classes differ by at most one sample in an epoch, and so do the samples of a
        class: each comes again once all others of its class have come, and a large class continues with other
        samples in the next epoch. With replacement, each position draws a class and one of its samples.
        `shuffle` changes nothing, `seed` does. Where labels come with the images, they are read first, as by
        `labels`, and again where the source is unpickled.

        Args:
            replacement: as above.
            samples: of an epoch, over all ranks; None means as many as there are.

        Raises:
            ValueError: labels that are not class numbers; a source that has an order already.
        """
        from stoker import _derived

        return _derived.balanced(self, replacement, samples)

    def repeated(self, times: int, *, samples: int | None = None) -> Source:
        """Each sample `times` times in a row, transformed again each time: repeated augmentation.

        As torchvision's and timm's RASampler: the repetitions are spread over the ranks, and an epoch has as
        many samples as without, so that it has 1 / `times` of the different ones. They are shuffled, or in
        the source's order if it is a weighted one.

        Args:
            times: 1 or more.
            samples: of an epoch, over all ranks, at most `times` as many as there are; None means as many as
                there are.
        """
        from stoker import _derived

        return _derived.repeated(self, times, samples)

    @property
    def unsized(self) -> npt.NDArray[np.uint64]:
        """The ids of the samples whose `image_size` is not known, of any of several images: a new array.
        Nothing is read.
        """
        unknown = np.flatnonzero(self._native.facts["width"] == 0)
        if self._native.varies:
            unknown = np.unique(np.searchsorted(np.cumsum(self._native.image_counts), unknown, side="right"))
        return unknown.astype(np.uint64)

    @property
    def _root(self) -> str | None:
        """The folder that the samples are listed from, if there is one."""
        return None

    @property
    def _has_files(self) -> bool:
        return not self._native.in_memory

    def path(self, sample: int, column: str | None = None, frame: int = 0) -> str:
        """The file of a sample, by its id in an iterator's `sample_ids`; of one in an archive the archive.

        Args:
            sample: its id.
            column: of images or masks; None means the first one, the image.
            frame: of a clip; of a list of images, which of them.

        Raises:
            IndexError: there is no such sample, or no such frame.
            InvalidArgumentError: samples in memory have no files; a column without files (a ValueError).
        """
        if not self._has_files:
            raise InvalidArgumentError(f"{self!r} has no files")
        counts = [max(count, 1) for count in self._native.counts]
        at = 0
        if column is not None:
            columns = self._native.names[: len(counts)]
            if column not in columns:
                raise InvalidArgumentError(f"{self!r} has no files of {column!r:.80}, but of {columns}")
            at = columns.index(column)
        frame = _checks.integer("frame", frame, -(2**128), 2**128)
        if not 0 <= frame < counts[at]:
            raise IndexError(f"frame is {frame}; the column has frames 0 to {counts[at] - 1}")
        return os.fsdecode(self._native.path(self._number(sample), sum(counts[:at]) + frame))

    def image_size(self, sample: int, frame: int = 0) -> tuple[int, int] | None:
        """Height and width of a sample's image, turned as its EXIF tag says; nothing is read.

        It is the size when `stoker index` or `stoker pack` was run, or the one that `sized` knows. None:
        nothing knows it, or the file was damaged or of an unknown format.

        Args:
            sample: its id.
            frame: of a list of images, which of them.

        Raises:
            IndexError: there is no such sample, or no such image.
        """
        frame = _checks.integer("frame", frame, -(2**128), 2**128)
        pieces = max(self._native.pieces, 1)
        if not 0 <= frame < pieces:
            raise IndexError(f"frame is {frame}; a sample has frames 0 to {pieces - 1}")
        return self._native.image_size(self._number(sample), frame)

    def _number(self, sample: int) -> int:
        number = _checks.integer("sample", sample, -(2**128), 2**128)
        if not 0 <= number < len(self):
            raise IndexError(f"sample is {number}; the source has samples 0 to {len(self) - 1}")
        return number

    def _image(self, sample: int) -> Any:
        """The bytes of a sample's encoded image, or its row of the first column."""
        if not self._has_files:
            if self._columns:
                return next(iter(self._columns.values()))[sample]
            return self._native.row(sample)[0]
        encoded = self._bytes(sample)
        return self._native.unpack(sample, encoded)[0] if self._native.has_records else encoded

    def _bytes(self, sample: int, piece: int = 0) -> bytes:
        """The bytes that a sample has in its file; `piece`: in that of a further image."""
        begin, length = self._native.range(sample, piece) or (0, -1)
        path = self._native.path(sample, piece)
        if _is_url(path):
            return self._native.read(sample, piece)
        with open(path, "rb") as file:
            file.seek(begin)
            return file.read(length)

    def _beside(self, sample: int) -> list[Any]:
        """A sample's values other than its image, in the order of a batch's columns: further images and masks
        as bytes, and the label.
        """
        further = [self._bytes(sample, piece) for piece in range(1, self._native.pieces)]
        if self._columns:
            beside = list(self._columns.values())[0 if self._has_files else 1 :]
            return [*further, *(rows[sample] for rows in beside)]
        if self._native.has_records:
            return self._native.unpack(sample, self._bytes(sample))[1]
        rows = self._native.row(sample)
        return [*further, *rows] if self._has_files else rows[1:]

    def __repr__(self) -> str:
        return _QUERY.sub(r"\1?…", self._text)

    def __copy__(self) -> Source:
        return self

    def __deepcopy__(self, memo: Any) -> Source:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._made_by is not None:
            return self._made_by
        if "image" not in self._columns:
            raise TypeError(f"{self!r} cannot be pickled; open it in each process")
        raise TypeError(
            "a stoker.arrays source cannot be pickled: it shares the arrays' memory; "
            "pickle the arrays, and call stoker.arrays in each process"
        )


class _Opened(Source):
    """The source that the library opens by its kind and arguments."""

    def __init__(self, kind: str, given: dict[str, bytes], text: str, threads: int = 0) -> None:
        native = _stoker.open_source(kind, given, threads)
        if native.skipped:
            warnings.warn(native.skipped_warning, SkippedFilesWarning, stacklevel=3)
        # A spec is UTF-8. Where a path is not, the loader still works: only other processes cannot find it.
        spec = {name: value.decode("utf-8", "replace") for name, value in given.items()}
        # It hashes the whole list, so it is taken once; other processes compare theirs with it.
        super().__init__(native, {"kind": kind, **spec, "fingerprint": native.fingerprint}, text)
        self._given = given
        self._made_by = type(self), (kind, given, text)


def _add(given: dict[str, bytes], options: dict[str, tuple[Any, Any]]) -> str:
    """Adds options, (value, default) by name, that are not the defaults; returns their text for repr()."""
    text = ""
    for name, (value, default) in options.items():
        if isinstance(default, bool):
            value = _checks.boolean(name, value)
        if value != default:
            shown = ("on" if value else "off") if isinstance(value, bool) else value
            given[name] = os.fsencode(str(shown))
            text += f", {name}={value!r}"
    return text


class ImageFolder(_Opened):
    """The source that `image_folder` returns."""

    @property
    def _root(self) -> str:
        return os.fsdecode(self._given["directory"])


def image_folder(
    directory: str | os.PathLike[Any],
    *,
    threads: int = 0,
    crop_index: str | os.PathLike[Any] | None = "auto",
    class_names: Iterable[str] | str | os.PathLike[Any] | None = None,
    allow_empty: bool = False,
) -> ImageFolder:
    """A folder of photographs, listed like torchvision's ImageFolder and Keras do.

    The folders in it, sorted by name, are the classes; every image below one, however deep, is a sample
    with that class' number as label (int64). A folder of images without folders has no labels. This
    function lists it, or reads the list from its index; hidden files are skipped, symbolic links are
    followed. Files are opened when they are needed.

    Images are recognised by the extensions of torchvision and Keras: .jpg .jpeg .png .ppm .bmp .pgm .tif
    .tiff .webp .gif, and of further formats that are decoded (.avif .heic .jp2 …), in any case. Files of
    others (.jxl .exr .psd …) are skipped, with a `SkippedFilesWarning`, and counted in `skipped`. A class
    folder that has nothing else is an error, as with torchvision; Keras counts it as a class. Classes that
    are all named like splits (train, val, …) are a UserWarning.

    Args:
        directory: its path.
        threads: for listing folders, 0 to 256; 0 means the cores allotted.
        crop_index: the index that `stoker index` made, which saves listing the folder and makes random crops
            cheaper without changing a pixel. "auto": the folder's own (`.stoker-index` in it), if it has
            one; one that cannot be used is a `CropIndexWarning`. "off" or None: no index. Or the path of
            an index, which must exist. If the folder has changed since, it is listed, with a
            `CropIndexWarning`, too.
        class_names: the classes by label, for a folder whose classes are numbered as another's:
            `image_folder("photos/val", class_names=train.classes)`; or a file with a name on each line. Each
            class folder must be one of them. None: the names of the folders, sorted.
        allow_empty: a class may be without images, and one of `class_names` without a folder.

    Raises:
        NotFoundError: no such folder, or index (a FileNotFoundError).
        InvalidArgumentError: not a folder, no image in it, images next to class folders, a class without
            images unless `allow_empty`, a folder that is not in `class_names`, or a file that is not an
            index (a ValueError).
        DataLossError: the given index is damaged.
        PermissionDeniedError: it or a folder in it may not be read (a PermissionError).
    """
    path = _absolute("directory", directory)
    if isinstance(crop_index, (str, bytes)) and not crop_index:
        raise InvalidArgumentError('crop_index is empty; give "auto", "off" or the path of an index')
    named = crop_index not in ("auto", "off", None)
    index = _absolute("crop_index", crop_index) if named else b"auto" if crop_index == "auto" else b"off"
    threads = _checks.integer("threads", threads, 0, 256)
    given = {"directory": path}
    text = repr(os.fsdecode(path))
    if crop_index != "auto":
        given["crop_index"] = index
        text += f", crop_index={os.fsdecode(index) if named else None!r}"
    names = [] if class_names is None else _names_in(class_names)
    if names:
        given["class_names"] = b"\n".join(names)
        shown = repr([os.fsdecode(name) for name in names])
        text += f", class_names={shown if len(shown) < 200 else shown[:200] + '…'}"
    text += _add(given, {"allow_empty": (allow_empty, False)})
    source = ImageFolder("image_folder", given, f"stoker.image_folder({text})", threads)
    if splits := source._native.split_warning(path):
        warnings.warn(splits, stacklevel=2)
    if source._native.warning:
        warnings.warn(source._native.warning, CropIndexWarning, stacklevel=2)
    return source


def masks(
    images: str | os.PathLike[Any],
    masks: str | os.PathLike[Any],
    *,
    suffix: str = "",
    fill: int = 0,
    dtype: Any = "uint8",
) -> Source:
    """Images and their masks, in two folders: for semantic segmentation.

        source = stoker.masks("street/images", "street/masks", fill=255)
        recipe = [stoker.RandomResizedCrop(256), stoker.RandomHorizontalFlip()]
        for images, masks in stoker.Loader(source, recipe, batch_size=16, shuffle=True):
            ...  # uint8 (16, 256, 256, 3), and uint8 (16, 256, 256)

    The mask of `images/a/7.jpg` is `masks/a/7.png`, and with `suffix="_mask"` `masks/a/7_mask.png`. Samples
    are sorted by the paths of their images. Images are recognised as by `image_folder`, with its warning
    about other formats; hidden files are ignored, and subfolders are not classes. Of the folder of masks,
    files without the suffix are ignored, so that it may have others; with a suffix, it may also be the folder
    of images.

    What a mask is, and what transforms do with it, is described at `Mask`. `files` takes images and masks
    with other names, and with labels and further values.

    Args:
        images: the folder of images.
        masks: the folder of masks.
        suffix: the end of a mask's name, before ".png".
        fill: the value of pixels outside the image, as of `Mask`.
        dtype: that of the masks, as of `Mask`: "uint8" or "uint16".

    Raises:
        NotFoundError: no such folder (a FileNotFoundError).
        InvalidArgumentError: images without a mask, and masks without an image, with the number and the first
            of each; names that differ in their extensions only; a folder without images, or without masks;
            the same folder twice, and no suffix; a suffix with a slash (a ValueError).
        PermissionDeniedError: a folder may not be read (a PermissionError).
    """
    given = {"images": _absolute("images", images), "masks": _absolute("masks", masks)}
    text = ", ".join(repr(os.fsdecode(path)) for path in given.values())
    of = _image_columns.mask_dtype(dtype)
    options = {
        "suffix": (_checks.text("suffix", suffix), ""),
        "fill": (_checks.integer("fill", fill, 0, int(np.iinfo(of).max)), 0),
        "dtype": (of.name, "uint8"),
    }
    text += _add(given, options)
    return _Opened("masks", given, f"stoker.masks({text})")


class Tar(_Opened):
    """The source that `tar` returns."""


def tar(
    shards: str | os.PathLike[Any] | Iterable[Any],
    *,
    image: str | None = None,
    label: str | None = ".cls",
    columns: Mapping[str, Any] | None = None,
    threads: int = 0,
    cache: str | os.PathLike[Any] | None = None,
    cache_bytes: int | None = None,
) -> Tar:
    """Samples in tar archives (shards), as WebDataset writes them.

        source = stoker.tar("shards/{000..127}.tar")

    Members that are neighbours in an archive and have the same name to its first dot are a sample:
    `train/17.jpg` is its image, and `train/17.cls` its label, a class number (int64). Either all samples have
    a label or none has one. Other members are columns, if they are asked for. Samples without an image are
    skipped, with a `SkippedFilesWarning`, and counted in `skipped`.

        source = stoker.tar("shards/*.tar", label=None, columns={"caption": ".txt", "meta": ".json"})
        for batch in stoker.Loader(source, [stoker.Resize((224, 224))], batch_size=64):
            images, captions = batch["image"], batch["caption"]  # a list of 64 str

    Masks are members of their own, and boxes and other values of objects (docs/boxes.md) are read from JSON
    members when the source is opened:

        # 17.jpg, 17.seg.png, and 17.json: {"objects": {"bbox": [[1, 2, 3, 4]], "categories": [7]}}
        columns = {"mask": stoker.Mask(".seg.png", fill=255),
                   "boxes": stoker.Boxes(".json:objects.bbox", format="xywh"),
                   "labels": stoker.PerObject(".json:objects.categories")}
        source = stoker.tar("scenes/*.tar", label=None, columns=columns)

    Nothing is read from front to back: any sample of any archive may be the next one of a shuffled epoch,
    and epochs, ranks and states are exact, as of a folder of the same samples. For that, each archive is
    indexed once, by libarchive, and the index is kept in your cache folder (`~/.cache/stoker/index`) until
    the archive changes. Where that folder cannot be written to, archives are indexed each time.
    Archives are not compressed, and must not change while they are used: the images of another archive in
    the same place would come with the old labels.

    Args:
        shards: a pattern, or a list of paths or URLs (https://, http://, s3://, gs://). In a pattern
            `{000..127}` is a range and `{a,b}` a choice, as in WebDataset; `*` and `?` find files of this
            machine, sorted; `one::other` is two patterns; and a backslash escapes the next character.
        image: extensions of images, the preferred one first; None: "jpg;jpeg;png;webp". An extension is all
            after the first dot: `image="left.png"` takes `17.left.png` of `17.left.png` and `17.right.png`.
            If all begin with "*.", samples have any number of images, for a `stoker.processor`:
            `image="*.jpg;*.png"` takes `17.0.jpg`, `17.1.png`, … in the order of their numbers, with or
            without gaps, or `17.jpg` alone. A sample without images needs a member of a column, such as
            `17.txt`. An image with a number or a usual extension that is not taken counts in `skipped`, as
            `*.webp`. No extension is preferred, and there are no arrays, masks and values of objects.
        label: ".cls"; None means samples have no labels, regardless of their .cls members.
        columns: extensions by name. The contents of each sample's member with the extension are a column of
            the batch, after the labels: an array for .npy; a list of str, from UTF-8, for those that
            WebDataset decodes as text or number (.txt .text .transcript .json .cls .cls2 .class .count .index
            .inx .id); and of bytes for others. JSON is text: `json.loads(batch["meta"][0])`. All samples must
            have it. Text and bytes, at most 1 MiB each, are read with the index and kept in memory, 16 bytes
            and the text a sample: captions of 100 bytes take 1.2 GB for ten million samples. At most half of
            the memory that is available is used. Arrays take 16 bytes a sample, and are read with the images,
            in one request that has all that lies between them in the archive: put the image and the arrays of
            a sample next to each other. All have the type and shape of the first sample's: numbers or bool,
            in C order, little-endian. An array that has another type or shape, or is damaged, makes its
            sample a bad one (`on_bad`). Instead of an extension: `Mask(extension)`, whose members are then
            not taken as images, and `Boxes(key)`, `Keypoints(key)` and `PerObject(key)`, with the extension
            of JSON members, a colon, and the keys in their documents joined by dots, as in `manifest`. Masks
            come after the images, and columns of objects after all others. All samples have the members,
            with empty lists if there are no objects. The index keeps the JSON, which is at most 1 MiB for a
            sample.
        threads: for indexing archives, 0 to 256; 0 means the cores allotted.
        cache: for URLs, a folder on a local disk that keeps what was read, for later epochs and for other
            processes of this machine; None means nothing is kept. Ranges are kept as they are, with
            checksums; if an object changes, its old ranges are not used. Files of this machine are not
            cached.
        cache_bytes: how many bytes the cache may take, at least 65,536; required with `cache`.

    Raises:
        NotFoundError: no such archive (a FileNotFoundError).
        InvalidArgumentError: no image in any archive, labels or columns of some samples only, labels that
            are not integers, text that is not UTF-8, JSON without the columns' objects, boxes that are
            reversed or coordinates that are not finite, two members with the same name, a link instead of a
            file, a wrong pattern; with "*.", two images of a sample with one number, more than 1,024 images,
            a number of 2^32 or more, members of a sample that lie apart (a ValueError).
        ResourceExhaustedError: the columns take too much memory (a MemoryError).
        DataLossError: an archive, or the first sample's array, is cut off or damaged; `file` and `offset` say
            where.
        UnimplementedError: an archive is compressed; a command instead of a path, or `*` in a URL; an array
            without elements, in Fortran order, or of Python objects, text, structures, complex or big-endian
            numbers.
        PermissionDeniedError: an archive, or a folder to search, may not be read (a PermissionError).
        UnavailableError: libarchive is not installed; or, for a URL, libcurl, or the server does not answer.
    """
    given = {**_shards(shards), **_cache(cache, cache_bytes)}
    text = _shown_shards(given)
    if image is not None and not isinstance(image, str):
        raise TypeError(f'image must be extensions as "jpg;png", not {image!r:.80}')
    if label is not None and not isinstance(label, str):
        raise TypeError(f'label must be ".cls", or None, not {label!r:.80}')
    if label == "":
        raise InvalidArgumentError('label is empty; give ".cls", or None for no labels')
    chosen = {} if image is None else {"image": image}
    chosen |= {} if label == ".cls" else {"label": label or ""}
    text += "".join(f", {name}={value or None!r}" for name, value in chosen.items())
    if columns:
        chosen |= _tar_columns(columns)
        text += f", columns={dict(columns)!r}"
    given |= {name: os.fsencode(value) for name, value in chosen.items()}
    return Tar("tar", given, f"stoker.tar({text})", _checks.integer("threads", threads, 0, 256))


def _tar_columns(columns: Any) -> dict[str, str]:
    if not isinstance(columns, Mapping):
        raise TypeError(f'columns must be extensions by name, as {{"caption": ".txt"}}, not {columns!r:.80}')
    keyed = {name: column for name, column in columns.items() if _is_keyed(column)}
    texts = {name: column for name, column in columns.items() if not _is_keyed(column)}
    for name, extension in texts.items():
        if not isinstance(name, str) or not isinstance(extension, str):
            raise TypeError(f"columns must be extensions by name, not {extension!r:.80} by {name!r:.80}")
        if "\n" in name or "\0" in name or not _checks.is_unicode(name):
            raise InvalidArgumentError(f"columns has the name {name!r:.80}, which is not one line of Unicode")
        if not extension or set(extension) & set(" /;\n\0") or not _checks.is_unicode(extension):
            raise InvalidArgumentError(
                f'columns[{name!r}] must be an extension as ".txt", not {extension!r:.80}'
            )
    chosen = {"columns": "\n".join(f"{name} {extension}" for name, extension in texts.items())}
    if keyed:
        chosen["keyed_columns"] = _keyed_columns(keyed, "members").decode()
    return chosen


class TFRecord(_Opened):
    """The source that `tfrecord` returns."""


def tfrecord(
    shards: str | os.PathLike[Any] | Iterable[Any],
    *,
    image: str = "image/encoded",
    label: str | None = "image/class/label",
    columns: Iterable[str] | Mapping[str, Any] | None = None,
    class_names: Iterable[str] | None = None,
    threads: int = 0,
    cache: str | os.PathLike[Any] | None = None,
    cache_bytes: int | None = None,
) -> TFRecord:
    """Samples in TFRecord files, a `tf.train.Example` in each record. TensorFlow is not needed.

        source = stoker.tfrecord("train-*.tfrecord", image="image/encoded", label="image/class/label")

    Objects (docs/boxes.md) as TensorFlow's Object Detection API writes them are columns by names of your own:

        columns = {"boxes": stoker.Boxes("image/object/bbox", normalized=True),
                   "labels": stoker.PerObject("image/object/class/label"),
                   "height": "image/height"}
        source = stoker.tfrecord("coco-*.tfrecord", label=None, columns=columns)

    Nothing is read from front to back: any record of any file may be the next one of a shuffled epoch, and
    epochs, ranks and states are exact, as of a folder of the same samples. For that, the lengths of the
    records of each file are read once, and kept in your cache folder (`~/.cache/stoker/index`) until the
    file changes. Where that folder cannot be written to, files are indexed each time.

    Checksums are always checked: those of lengths when a file is indexed, those of data when a record's turn
    comes. A damaged record is a DataLossError of its batch, and one that does not have the features of the
    first record, with as many values, is an UnimplementedError, with the file and the record's offset.

    Args:
        shards: a pattern, or a list of paths, as of `tar`: "train-*.tfrecord", "{00000..01023}-of-01024".
        image: the feature that is the encoded image (JPEG, PNG, WebP): one value of bytes.
        label: the feature that is the label: one integer (int64), as it is in the record; None means batches
            have no labels.
        columns: further features, of integers (int64) or floats (float32), with as many values in every
            record as in the first, or of one byte string of at most 1 MiB. Each is a column of the batch,
            after the labels, under its name: `batch["image/height"]`; byte strings are a list of bytes, and
            not for batches on a device, unless a `Map` replaces them. Lists of several lengths must be
            padded, or written as one byte string (`tf.io.serialize_tensor`). Or a dictionary of columns by
            the names that they get: a str is a feature, and columns of objects come after all others.
            `Boxes(key)` takes the floats in key/xmin, key/ymin, key/xmax and key/ymax, which are fractions in
            the Object Detection API, and `PerObject(feature)` integers (int64), floats (float32), or for
            "labels" byte strings, whose sorted values are `source.classes`. A record without the features has
            no objects. These values are in memory: each file is read once for them, and the index keeps
            them.
        class_names: `source.classes`, by label; a label without a name is then an error of its batch. None:
            labels have no names.
        threads: for indexing files, 0 to 256; 0 means the cores allotted.
        cache, cache_bytes: for URLs, as of `tar`.

    Raises:
        NotFoundError: no such file (a FileNotFoundError).
        InvalidArgumentError: no records; a feature that the first record does not have, with those that it
            has, or of a wrong type; columns of other numbers of objects; boxes that are reversed or not
            finite; a wrong pattern (a ValueError).
        DataLossError: a file is cut off, damaged or not a TFRecord file; `file` and `offset` say where.
        UnimplementedError: a file is compressed, with the command that decompresses it; a column of several
            byte strings, or without values, in the first record.
    """
    given = {**_shards(shards), **_cache(cache, cache_bytes)}
    if not isinstance(image, str):
        raise TypeError(f"image must be the name of a feature, not {image!r:.80}")
    if label is not None and (not isinstance(label, str) or not label):
        raise TypeError(f"label must be the name of a feature, or None, not {label!r:.80}")
    names = [] if columns is None or isinstance(columns, Mapping) else _column_names("columns", columns)
    keyed = _keyed_columns(columns, "features").decode() if isinstance(columns, Mapping) else ""
    classes = [] if class_names is None else [os.fsdecode(name) for name in _class_names(class_names)]
    for name in (*names, *classes):
        if "\n" in name or "\0" in name:
            raise InvalidArgumentError(f"{name!r:.80} is a name with a line break or a NUL")
    text = f"{_shown_shards(given)}, image={image!r}, label={label!r}"
    if columns:
        text += f", columns={dict(columns) if isinstance(columns, Mapping) else names!r}"
    chosen = {"image": image, "label": label or "", "columns": "\n".join(names)}
    chosen |= {"class_names": "\n".join(classes), **({"keyed_columns": keyed} if keyed else {})}
    given |= {name: os.fsencode(value) for name, value in chosen.items()}
    threads = _checks.integer("threads", threads, 0, 256)
    return TFRecord("tfrecord", given, f"stoker.tfrecord({text})", threads)


def _shards(shards: Any) -> dict[str, bytes]:
    """A pattern and, if it may have relative paths, their root: this folder."""
    if isinstance(shards, (str, bytes, os.PathLike)):
        pattern = os.fsencode(shards)
        is_absolute = (pattern.startswith(b"/") or _is_url(pattern)) and b"::" not in pattern
    elif _is_list(shards):
        paths = [_path(f"shards[{i}]", path) for i, path in enumerate(shards)]
        if not paths:
            raise InvalidArgumentError("shards is empty")
        pattern = _pattern_of(paths)
        is_absolute = all(path.startswith(b"/") or _is_url(path) for path in paths)
    else:
        raise TypeError(f"shards must be a pattern or a list of paths, not {shards!r:.80}")
    return {"shards": pattern} if is_absolute else {"shards": pattern, "root": os.getcwdb()}


def _shown_shards(given: dict[str, bytes]) -> str:
    shown = os.fsdecode(given["shards"])
    return repr(shown if len(shown) < 200 else shown[:200] + "…")


def _pattern_of(paths: list[bytes]) -> bytes:
    """A pattern that matches these paths."""
    pattern = b"::".join(_quoted(path) for path in paths)
    if _json_bytes(pattern) > _MOST_SHARDS // 2:  # what they have in common stands there once
        first, last = min(paths), max(paths)
        same = next((i for i, pair in enumerate(zip(first, last)) if len(set(pair)) > 1), len(first))
        common = first[:same]
        pattern = _quoted(common) + b"{" + b",".join(_quoted(path[len(common) :]) for path in paths) + b"}"
    if _json_bytes(pattern) > _MOST_SHARDS:
        raise InvalidArgumentError(
            f"shards has {len(paths)} paths of {sum(map(len, paths))} bytes in all, more than a loader's "
            'description holds. Give a pattern: "shards/{00000..19999}.tar", "shards/*.tar"'
        )
    return pattern


def _json_bytes(pattern: bytes) -> int:
    """The bytes that it takes in a loader's description, where letters beyond ASCII take six or more."""
    return len(json.dumps(pattern.decode("utf-8", "replace")))


def _cache(cache: Any, cache_bytes: Any) -> dict[str, bytes]:
    """The arguments of the cache, as they are in a spec."""
    if cache is None and cache_bytes is None:
        return {}
    if cache is None or cache_bytes is None:
        given, missing = ("cache_bytes", "cache") if cache is None else ("cache", "cache_bytes")
        raise InvalidArgumentError(f"{given} was given, and no {missing}; give both")
    return {
        "cache": _absolute("cache", cache),
        "cache_bytes": b"%d" % _checks.integer("cache_bytes", cache_bytes, 1 << 16, 1 << 60),
    }


def _quoted(path: bytes) -> bytes:
    """A pattern that matches a path. Two colons would end it, also with one of the characters next to it."""
    return re.sub(rb"([\\{},*?]|^:|:$|:(?=:)|(?<=:):)", rb"\\\1", path)


def _absolute(name: str, path: Any) -> bytes:
    encoded = _path(name, path)
    return encoded if _is_url(encoded) else os.path.abspath(encoded)


def _is_url(path: bytes) -> bool:
    """Whether it names a remote object."""
    return path.startswith((b"http://", b"https://", b"s3://", b"gs://"))


def _path(name: str, path: Any) -> bytes:
    try:
        return os.fsencode(path)
    except TypeError:
        raise TypeError(f"{name} must be a path, not {path!r:.80}") from None
    except ValueError as error:
        raise ValueError(f"{name} is {path!r:.80}: {error}") from None


def arrays(images: Any, labels: Any = None) -> Source:
    """Samples in memory.

    The arrays are kept, not copied, while a loader uses them; they must not change meanwhile. Other
    objects are converted to arrays, and rows that are not in C order are copied once. A path is that of an
    .npy file, which is read; give np.load(path, mmap_mode="r") for one that is larger than memory, and do not
    shorten the file then: the system would end the process.

    Without transforms, rows of any type and shape are copied into batches unchanged. Transforms require
    images of uint8 (height, width, 3). Arrays are not shared with other processes, which make their own
    arrays and loaders.

    Args:
        images: (samples, ...): bool, an integer of 8 to 64 bits, float16, bfloat16, float32 or float64; or
            the path of an .npy file of them.
        labels: (samples, ...), of any of these types, or a path; None means batches are images alone. Single
            integers are class numbers, and so are bool (0 and 1), which stay bool in batches.

    Raises:
        ValueError: no samples, or different numbers of them; more than seven dimensions in a row; a file that
            is no .npy file, or is cut.
        TypeError: another element type.
        OSError: a file that cannot be read.
    """
    columns = {"image": _column("images", images)}
    if labels is not None:
        columns["label"] = _column("labels", labels)
        if len(columns["label"]) != len(columns["image"]):
            rows = counted(len(columns["label"]), "row", "rows")
            raise InvalidArgumentError(f"labels has {rows}, and images has {len(columns['image'])}")
    native = _stoker.arrays(columns["image"], columns.get("label"))
    described = ", ".join(f"{column.dtype} {column.shape}" for column in columns.values())
    source = Source(native, {"kind": "arrays", "key": uuid.uuid4().hex}, f"stoker.arrays({described})")
    source._columns = columns
    return source


class _Files(Source):
    """The source that `files` returns."""

    def __init__(self, native: _stoker.Source, columns: dict[str, Any], text: str) -> None:
        super().__init__(native, {"kind": "files", "key": uuid.uuid4().hex}, text)
        self._columns = columns

    def __reduce__(self) -> tuple[Any, ...]:
        counts = self._native.image_counts if self._native.varies else None
        return _files, (self._native.given_paths, self._columns, self.classes, self._text, counts)


def _files(
    given: list[tuple[str, str, int, bytes, bytes]],
    columns: dict[str, Any],
    classes: list[str],
    text: str,
    counts: npt.NDArray[np.int64] | None = None,
) -> Source:
    names = [os.fsencode(name) for name in classes]
    further = [(name, dtype, fill, paths.split(b"\0")[:-1], root) for name, dtype, fill, paths, root in given]
    _, _, _, listed, root = further.pop(0)
    paths: list[Any] = listed
    if counts is not None:
        ends = np.cumsum(counts).tolist()
        paths = [listed[begin:end] for begin, end in zip([0, *ends], ends)]
    native = _stoker.files(paths, root, further, _native(columns), names)
    return _Files(native, columns, text)


def files(
    paths: Iterable[Any],
    labels: Any = None,
    *,
    columns: Mapping[str, Any] | None = None,
    root: str | os.PathLike[Any] | None = None,
    class_names: Iterable[str] | None = None,
) -> Source:
    """Image files that a program lists itself, with labels and other values of its own.

        source = stoker.files(["a.jpg", "b.jpg"], [0, 1], root="photos", columns={"age": [31, 54]})
        for images, labels, ages in stoker.Loader(source, [stoker.Resize((224, 224))], batch_size=2):
            ...

    Each path is a sample, in this order; one that occurs twice is two samples. Files are opened when they
    are needed: one that is missing, or is not an image, is then an error that names it.

    If paths are lists of paths, each list is a sample, which may have no image, one or several: for a
    `Loader` whose last transform is a `stoker.processor`.

        turns = stoker.files([["a.jpg", "b.jpg"], []], columns={"text": ["Compare them.", "Hello."]})

    The labels and columns are kept, not copied, as by `arrays`; they must not change while a loader uses
    them.

    Args:
        paths: of str, bytes or os.PathLike: a list, an array, a pandas Series; or a list of such lists, each
            of at most 1,024 paths. Names may be any bytes; those that begin with https://, http://, s3:// or
            gs:// are URLs of objects.
        labels: a row for each path: class numbers (integers or bool), or an array of any shape and number
            type; None means batches have none.
        columns: further values by name, a row for each path: an array of numbers, or a list of str or of
            bytes. Each is a column of the batch, after the labels: `batch["age"]`. One of strings is a list.
            Strings are copied by this call. Or further files, `Mask(paths)` and `Image(paths)`: these columns
            come after the images and before the labels. Or values of the objects in each image, `Boxes`,
            `Keypoints` and `PerObject`: in a batch each of these columns is a `Ragged`, whose rows may have
            different numbers of objects (docs/boxes.md).
        root: the folder of relative paths, or a URL without a query; None means the working folder. It is
            made absolute here: a later os.chdir changes nothing. A state compares paths as they are given, so
            that the folder may be elsewhere when it is loaded.
        class_names: `source.classes`, by label; None means labels have no names.

    Raises:
        ValueError: no paths; an empty path, or one with a NUL; other numbers of labels, rows or masks than
            paths, or lists of them; masks or further images next to lists; a longer list; a label without a
            class name; a column with the name "image" or "label"; samples whose columns of objects have
            different numbers of them; a second column of boxes.
        TypeError: not a path, by its index; values that are neither numbers nor strings; labels that are not
            numbers.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError(f"paths must be a list of paths, not one: {paths!r:.80}; try stoker.image_folder(…)")
    if not _is_list(paths):
        raise TypeError(f"paths must be a list of paths, not a {type(paths).__name__}: {paths!r:.80}")
    beside = _beside_images(labels, columns)
    further = _further_images(beside)
    names = [] if class_names is None else _class_names(class_names)
    native = _stoker.files(paths, _root(root), further, _native(beside), names)
    if native.varies:
        text = counted(len(native), "list", "lists")
    else:
        first = os.fsdecode(native.path(0))
        text = f"{first!r} and {len(native) - 1} more" if len(native) > 1 else repr(first)
    return _Files(native, beside, f"stoker.files({text})")


def _root(root: Any) -> bytes:
    return b"" if root is None else _absolute("root", root)


def _further_images(columns: dict[str, Any]) -> list[tuple[str, str, int, list[Any], bytes]]:
    """Takes the columns of files from `columns`, and returns them as the library takes them."""
    images = (_image_columns.Image, _image_columns.Mask)
    names = [name for name, column in columns.items() if isinstance(column, images)]
    taken = [(name, columns.pop(name)) for name in names]
    return [(name, *column.native(), _root(column.root)) for name, column in taken]


def _native(columns: dict[str, Any]) -> dict[str, Any]:
    """Returns columns in memory as the library takes them."""
    return {
        name: column.native(f"columns[{name!r}]") if isinstance(column, _object_columns.Objects) else column
        for name, column in columns.items()
    }


class DatasetSource(Source):
    """The source that `from_dataset` returns."""

    def __init__(self, native: _stoker.Source, spec: dict[str, Any], text: str, calls: _calls.Calls) -> None:
        super().__init__(native, spec, text)
        self._calls = calls

    @property
    def _has_files(self) -> bool:
        return False

    def _image(self, sample: int) -> Any:
        return self._calls.image(sample)

    def _beside(self, sample: int) -> list[Any]:
        return self._calls.rows(sample) if self._calls.first_rows else self._native.row(sample)

    def _read_labels(self, samples: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
        first = self._calls.first_rows[0][1]
        labels = np.empty((len(samples), *first.shape), first.dtype)
        for i, sample in enumerate(samples):
            labels[i] = self._calls.rows(int(sample))[0]
        return labels


def from_dataset(
    dataset: Any, *, threads: int = 4, class_names: Iterable[str] | None = None
) -> DatasetSource:
    """Samples that a Python object gives: a database, an archive, a bucket, a function of the program's own.

        class Rows:
            def __len__(self):
                return len(names)

            def __getitem__(self, i):
                return database.get(names[i]), labels[i]

        loader = stoker.Loader(stoker.from_dataset(Rows()), [stoker.Resize((224, 224))], batch_size=64)

    `dataset[i]` is one of
      - an image: its encoded bytes (bytes, bytearray, memoryview, an array of uint8), the path of its file
        (str, os.PathLike), or {"bytes": …, "path": …} (Hugging Face's Image(decode=False)), where bytes that
        are None mean the file;
      - the pixels of an image, of any size: a Pillow image, as torchvision's datasets give; an array of
        uint8, (height, width, 3), (height, width, 1) or (height, width); or a PyTorch tensor of uint8,
        (3, height, width), (1, height, width) or (height, width). Gray becomes three equal channels, and
        Pillow's other modes are converted to "RGB", without alpha. They are not turned by EXIF;
      - a tuple of an image and a label: a number, or an array of the same shape for all samples;
      - a dictionary with "image", and numbers or arrays by name. Each is a column of the batch; "label" is
        the label.

    This call asks for sample 0, whose types and shapes all others must have. Further calls come from threads
    of their own, one sample each, ahead of the batches. Python runs one thread at a time: what the calls do
    while they hold the interpreter limits the loader. `loader.stats()` counts them as reading, and its
    advice names them. The order, shards, decoding, transforms and states are those of other sources: a
    state does not know whether `dataset` has changed, only its length, types and shapes.

    What a call raises is an UnavailableError of its batch, which names the sample and the exception; a
    stoker.Error keeps its class, file and offset. ResourceExhaustedError and CancelledError would mean
    something to the loader, and become UnavailableError. When memory is short, a sample is asked for again
    later.
    A loader that is closed waits for the calls in progress; a call cannot close one. The source can be
    pickled if `dataset` can.

    Args:
        dataset: has `__len__` and `__getitem__`, which are called by several threads at a time.
        threads: that call it, 1 to 256, for all loaders and iterators with this source and one Runtime.
        class_names: `source.classes`, by label; None means labels have no names.

    Raises:
        TypeError: not such an object, or sample 0 is something else.
        ValueError: it is empty, or has 2**32 samples or more.
    """
    threads = _checks.integer("threads", threads, 1, 256)
    calls = _calls.Calls(dataset)
    names = [] if class_names is None else _class_names(class_names)
    if names and not calls.has_labels:
        raise InvalidArgumentError(f"class_names were given, and the samples of {calls.name} have no label")
    text = f"stoker.from_dataset({calls.name}, {len(calls)} samples)"
    source = _called(calls, calls.name, {}, names, threads, text)
    class_names = [os.fsdecode(name) for name in names] or None
    source._made_by = functools.partial(from_dataset, threads=threads, class_names=class_names), (dataset,)
    return source


def called(
    images: Any, identity: str, columns: dict[str, Any], class_names: list[str], threads: int, text: str
) -> DatasetSource:
    """Images that calls of an object give, and columns in memory. For `parquet` and `from_hf`.

    `identity`: the same for the same images. `columns`: arrays and lists of strings; a label comes first.
    """
    threads = _checks.integer("threads", threads, 1, 256)
    names = [os.fsencode(name) for name in class_names]
    return _called(_calls.Calls(images, text), identity, columns, names, threads, text)


def _called(
    calls: _calls.Calls,
    identity: str,
    columns: dict[str, Any],
    class_names: list[bytes],
    threads: int,
    text: str,
) -> DatasetSource:
    rows = calls.first_rows
    native = _stoker.dataset(
        calls.load, calls.name, identity, len(calls), rows, columns, class_names, threads
    )
    return DatasetSource(native, {"kind": "dataset", "key": uuid.uuid4().hex}, text, calls)


def manifest(
    path: str | os.PathLike[Any],
    *,
    root: str | os.PathLike[Any] | None = None,
    path_column: str | None = None,
    label_column: str | None = "auto",
    columns: Iterable[str] | Mapping[str, Any] | None = None,
) -> Source:
    """A file that lists image files, with labels and further columns.

        source = stoker.manifest("photos/train.csv", columns=["age"])  # path,label,age,…
        for images, labels, ages in stoker.Loader(source, [stoker.Resize((224, 224))], batch_size=2):
            ...

    Each row is a sample, in the file's order; one that occurs twice is two samples. The file is read once,
    by this call; images are opened when they are needed, and one that is missing is then an error that names
    it.

    A .csv file has commas, a .tsv file tabs, both in UTF-8 and as RFC 4180 describes them; the first line
    names the columns. As with pandas, a column is int64 if all of its fields are integers, and float64 if
    they are numbers; else it is text, a list of str in a batch. A column without a name is left out: pandas
    writes its index as one. Lines that have only blanks are skipped.

    In a .jsonl file each line is a JSON object with the keys of the first line: integers, numbers, true or
    false, text, or a list of numbers, which is a vector.

    Masks, and in a .jsonl file the objects of each image, are columns that are named (docs/boxes.md):

        # {"file_name": "a.jpg", "mask": "a.png", "objects": {"bbox": [[1, 2, 3, 4]], "categories": [7]}}
        columns = {"mask": stoker.Mask("mask", fill=255),
                   "boxes": stoker.Boxes("objects.bbox", format="xywh"),
                   "labels": stoker.PerObject("objects.categories")}
        source = stoker.manifest("photos/metadata.jsonl", columns=columns)

    A .parquet file is read by pyarrow, with the types that it has: numbers, bool, text, bytes, and lists of
    numbers, which are vectors. Other processes cannot open it by a loader's spec, as tf.data's service would.

    Labels that are text are classes: `source.classes` has them sorted, and a label is its class' number.
    Labels that are bool are the integers 0 and 1.

    Args:
        path: of the file, or a URL, but not of a .parquet file.
        root: the folder of relative paths, or a URL without a query; None means that of the file. Relative
            paths are names, which stoker encodes for a URL.
        path_column: the column of paths; None means the first of "path", "file_name", "filename", "image" and
            "filepath" that there is. In JSON lines it may have a list of paths on each line.
        label_column: the column of labels; "auto": "label", if there is one; None means batches have none.
        columns: further columns, in this order; None means all that there are. Each is a column of the batch,
            after the labels; `batch["age"]` is one. Or a dictionary of columns by the names that they get:
            `Mask(name)` takes the paths of masks, which come after the images, from the column of that name;
            a str another column's values; and, in JSON lines, `Boxes(key)`, `Keypoints(key)` and
            `PerObject(key)` the values of objects. Their keys are joined by dots: "objects.bbox" is the list
            of boxes in {"objects": {"bbox": [[…], …]}}, or each box in {"objects": [{"bbox": […]}, …]}. Each
            line has them, and they come after all other columns. `PerObject` for "labels" may be text, whose
            sorted values are `source.classes`, if there is no label.

    Raises:
        NotFoundError: no such file (a FileNotFoundError).
        InvalidArgumentError: another kind of file; a column that is not there; with line and byte, a row with
            more or fewer fields than columns, a missing path, label or number, wrong quotes, or a
            value of another type, boxes that are reversed or coordinates that are not finite, columns with
            different numbers of objects (a ValueError).
        PermissionDeniedError: the file may not be read (a PermissionError).
        UnimplementedError: the URL of a .parquet file (a NotImplementedError).
        ImportError: a .parquet file, and no pyarrow.
    """
    given = {"path": _absolute("path", path)}
    if root is not None:
        given["root"] = _absolute("root", root)
    arguments: dict[str, Any] = {name: os.fsdecode(value) for name, value in given.items()}
    if path_column is not None:
        arguments["path_column"] = _column_name("path_column", path_column)
        given["path_column"] = path_column.encode()
    if label_column != "auto":
        label = None if label_column is None else _column_name("label_column", label_column)
        arguments["label_column"] = label
        given["label_column"] = (label or "").encode()
    if isinstance(columns, Mapping):
        arguments["columns"] = dict(columns)
        given["keyed_columns"] = _keyed_columns(columns, "columns of the file")
        given["columns"] = b""
    elif columns is not None:
        arguments["columns"] = _column_names("columns", columns)
        given["columns"] = _csv_record(arguments["columns"]).encode()
    named = [f"{name}={value!r}" for name, value in arguments.items() if name != "path"]
    text = f"stoker.manifest({', '.join([repr(arguments['path']), *named])})"
    if given["path"].lower().endswith(b".parquet"):
        return _parquet_manifest(arguments, text)
    return _Opened("manifest", given, text)


def _parquet_manifest(arguments: dict[str, Any], text: str) -> Source:
    label = (arguments["label_column"] or "") if "label_column" in arguments else None
    path = arguments["path"]
    if isinstance(arguments.get("columns"), dict):
        raise UnimplementedError(
            "columns of a Parquet file are named by a list",
            advice="Write JSON lines, or give masks and boxes to stoker.files",
        )
    if _is_url(os.fsencode(path)):
        raise UnimplementedError(
            "a manifest in a Parquet file is read from a local file only",
            advice="Download it, and name the folder of its images with root",
        )
    listed = _parquet.read(path, arguments.get("path_column"), label, arguments.get("columns"))
    root = arguments.get("root", os.path.dirname(path))
    source = files(
        listed.paths, listed.labels, columns=listed.columns, root=root, class_names=listed.class_names
    )
    # It hashes the whole list, so it is taken once; other processes compare theirs with it.
    made = Source(source._native, {**source._spec, "fingerprint": source._native.fingerprint}, text)
    made._made_by = _parquet_manifest, (arguments, text)
    made._columns = source._columns
    return made


def _keyed_columns(columns: Mapping[str, Any], keys: str) -> bytes:
    """The columns that a source reads from its files by their keys, as it takes them
    (io/annotations/keyed_column.h). `keys`: what a str is, for messages.
    """
    records = []
    for name, column in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"columns must have names, not {name!r:.80}")
        is_objects = isinstance(column, _object_columns.Objects)
        if isinstance(column, str):
            kind, key, *options = "value", column
        elif is_objects and isinstance(column.values, str):
            kind, key, *options = column.keyed()
        elif isinstance(column, _image_columns.Mask) and isinstance(column.paths, str):
            if column.root is not None:
                raise InvalidArgumentError(f"columns[{name!r}] has a root; masks are found like the images")
            kind, key, *options = column.keyed()
        else:
            raise TypeError(
                f"columns[{name!r}] must be the name of one of the {keys}, or a stoker.Mask, Boxes, "
                f"Keypoints or PerObject of one, not {column!r:.80}"
            )
        for described, text in ((f"the name {name!r:.80}", name), (f"the key {key!r:.80}", key)):
            if not text or set(text) & set("\n\r\0") or not _checks.is_unicode(text):
                raise InvalidArgumentError(f"columns has {described}, which is not one line of Unicode")
        if name in ("image", "label"):
            raise InvalidArgumentError(f"columns has the name {name!r}; give it another one")
        records.append(_csv_record([name, kind, key, *options]))
    return "\n".join(records).encode()


def _is_keyed(column: Any) -> bool:
    """Whether it is a description of a column, which `_keyed_columns` checks."""
    return isinstance(column, (_object_columns.Objects, _image_columns.Image, _image_columns.Mask))


def _csv_record(fields: list[str]) -> str:
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields)


def _column_name(name: str, value: Any) -> str:
    text = _checks.text(name, value)
    if not text or not _checks.is_unicode(text):
        raise InvalidArgumentError(f"{name} is {text!r}; it must be the name of a column")
    return text


def _column_names(name: str, values: Any) -> list[str]:
    if isinstance(values, (str, bytes)) or not _is_list(values):
        raise TypeError(f"{name} must be a list of names, not {values!r:.80}")
    return [_column_name(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _is_list(values: Any) -> bool:
    """Whether it has an order of its own, and one dimension."""
    unordered = isinstance(values, (dict, set, frozenset))
    return isinstance(values, Iterable) and not unordered and getattr(values, "ndim", 1) == 1


def _names_in(class_names: Any) -> list[bytes]:
    """Names of class folders: a list, or those on the lines of a file."""
    if isinstance(class_names, (str, bytes, os.PathLike)):
        _checks.refuse_lfs_pointer(os.fsdecode(class_names))
        with open(class_names, "rb") as file:
            class_names = file.read().removeprefix(codecs.BOM_UTF8).splitlines()
    names = _class_names(class_names)
    for i, name in enumerate(names):
        if not name or b"\n" in name:
            raise InvalidArgumentError(f"class_names[{i}] is not a folder's name: {os.fsdecode(name)!r:.80}")
    return names


def _class_names(names: Any) -> list[bytes]:
    if isinstance(names, (str, bytes)) or not _is_list(names):
        raise TypeError(f"class_names must be a list of names, by label, not {names!r:.80}")
    encoded = []
    for i, name in enumerate(names):
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"class_names[{i}] must be a name, not {name!r:.80}")
        encoded.append(os.fsencode(name))
    if not encoded:
        raise InvalidArgumentError("class_names is empty; leave it out, or name the classes")
    return encoded


def _beside_images(labels: Any, columns: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arrays and lists of strings that `files` takes, by the names of their columns."""
    made: dict[str, Any] = {} if labels is None else {"label": _column("labels", labels)}
    if columns is None:
        return made
    if not hasattr(columns, "items"):
        raise TypeError(f"columns must be a dictionary of arrays, not {columns!r:.80}")
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"columns must have names, not {name!r:.80}")
        if name in ("", "image", "label") or "\0" in name or not _checks.is_unicode(name):
            raise InvalidArgumentError(f"columns has the name {name!r}; give it another one")
        if isinstance(values, (_image_columns.Image, _image_columns.Mask)):
            made[name] = values
            continue
        described = f"columns[{name!r}]"
        if isinstance(values, _object_columns.Objects):
            made[name] = values.converted(described)
            continue
        strings = _strings(described, values)
        made[name] = _column(described, values) if strings is None else strings
    return made


def _strings(name: str, values: Any) -> list[str] | list[bytes] | None:
    """A list of the strings that these are; None means they are something else."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind not in "OSUT":
        return None
    if not _is_list(values):
        return None
    listed = list(values)
    for kind, word in ((str, "a str"), (bytes, "bytes")):
        if listed and isinstance(listed[0], kind):
            for i, value in enumerate(listed):
                if not isinstance(value, kind):
                    raise TypeError(f"{name} begins with {word}, but at {i} has {value!r:.80}")
                if isinstance(value, str) and not _checks.is_unicode(value):
                    raise InvalidArgumentError(f"{name} has {value!r:.80} at {i}, which is not Unicode")
            return listed
    return None


def _loaded(path: str | os.PathLike[Any]) -> npt.NDArray[Any]:
    """The array in an .npy file."""
    try:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidArgumentError(f"{os.fspath(path)!r} is not an array: {error}") from None


def _column(name: str, values: Any) -> npt.NDArray[Any]:
    if isinstance(values, (dict, set, frozenset)):
        raise TypeError(f"{name} is a {type(values).__name__}; it must be an array")
    if isinstance(values, os.PathLike) or (isinstance(values, str) and values.endswith(".npy")):
        values = _loaded(values)
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of several shapes
        hint = ""
        if name == "images" and isinstance(values, tuple) and len(values) == 2:
            hint = "; did you mean stoker.arrays(images, labels), two arguments?"
        elif name.startswith("columns["):
            hint = "; give values of each image's objects as stoker.PerObject or stoker.Boxes"
        raise InvalidArgumentError(f"{name} is not an array: {error}{hint}") from None
    if array.dtype.name not in _checks.ELEMENTS:
        kinds = ", ".join(_checks.ELEMENTS) + (", or strings" if name.startswith("columns[") else "")
        raise TypeError(f"{name} is an array of {array.dtype}; it must be of {kinds}")
    if array.ndim == 0 or array.size == 0:
        raise InvalidArgumentError(f"{name} has the shape {array.shape}; it must have samples")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array[0].flags.c_contiguous else np.ascontiguousarray(array)
