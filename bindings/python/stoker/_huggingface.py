"""Samples of a dataset of Hugging Face's `datasets`."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import uuid
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stoker import _stoker, _tables
from stoker._errors import InvalidArgumentError, counted
from stoker._sources import Source, _column_name, _column_names, called, files

__all__ = ["from_hf"]


def from_hf(
    dataset: Any,
    *,
    image: str | None = None,
    label: str | None = "auto",
    columns: Iterable[str] | None = None,
    threads: int = 4,
) -> Source:
    """The samples of a `datasets.Dataset` (Hugging Face).

        dataset = datasets.load_from_disk("beans").shuffle(seed=1).select(range(500))
        loader = stoker.Loader(stoker.from_hf(dataset), [stoker.Resize((224, 224))], batch_size=64)

    Sample i is `dataset[i]`, after `select`, `shuffle`, `filter`, `train_test_split`, `concatenate_datasets`,
    `rename_column`. Changes that `set_transform` and `set_format` make to rows are not made. Where the images
    are decides how they are read:
      - in the dataset's Arrow files, as after `load_dataset`, `map` and `load_from_disk`: as byte ranges of
      these files, as by `stoker.arrow`, 4 bytes of memory an image. The files must stay in place.
      - in files of their own (`Image` with a path): as by `stoker.files`.
      - in memory (`from_dict`, `keep_in_memory=True`), or some as bytes and some as paths: by calls as of
        `stoker.from_dataset`, under Python's interpreter lock, with a copy of each image. `save_to_disk`
        and `load_from_disk` make Arrow files of it.
    `repr(source)` says which it is. Labels and columns are copied into memory by this call. Rows that were
    not chosen may have nulls, or other things that are refused. A source that is not made of paths keeps the
    dataset, and is pickled with it.

    A column of lists of images, as `List(Image())`, makes samples of any number of images, for a loader whose
    last transform is a `stoker.processor`. Lists are refused if they are in memory, or if some of their
    images are bytes and some paths.

    Args:
        dataset: a `Dataset`; not a `DatasetDict`, whose splits are datasets, nor a streamed one.
        image: the column of encoded images, or of lists of them; None means the only one of the type `Image`,
            or else the only one of lists of `Image`.
        label: the column of labels: integers, bool (0 and 1), or text, whose values are classes, sorted.
            "auto": the only `ClassLabel`, or "label", if there is one, next to the image; None means batches
            have none. `source.classes` has the names of a `ClassLabel`.
        columns: further columns: numbers, bool, vectors of numbers, text, or binary.
        threads: number of threads that call a dataset in memory, as for `from_dataset`.

    Raises:
        TypeError: not a `Dataset`.
        InvalidArgumentError: a column that is not there, or of another type; a null, a label without a class
            name, an image at a URL, or more than 1,024 images, with the row in `dataset` (a ValueError). A
            list that is null has no images.
    """
    _check(dataset)
    names = _tables.check_names([] if columns is None else _column_names("columns", columns))
    image = _image_column(dataset, image)
    label = _label_column(dataset, label, image)
    chosen = None if dataset._indices is None else dataset._indices.column(0).to_numpy()
    images = _Images(dataset.data.column(image).chunks, image, chosen)
    beside, classes = _beside(dataset, label, names, chosen)
    source = _source(images, beside, classes, threads)
    if not images.in_files:  # otherwise it is a list of files
        again = functools.partial(from_hf, image=image, label=label, columns=names, threads=threads)
        source._made_by = again, (dataset,)
    return source


def _check(dataset: Any) -> None:
    if isinstance(dataset, dict):
        raise TypeError(f"dataset has several splits ({', '.join(map(str, dataset))}); give one: dataset[…]")
    if not all(hasattr(dataset, name) for name in ("data", "features", "_indices")):
        hint = "; load it without streaming=True" if type(dataset).__name__.startswith("Iterable") else ""
        raise TypeError(f"dataset must be a datasets.Dataset, not {type(dataset).__name__}{hint}")
    if dataset.num_rows == 0:
        raise InvalidArgumentError("dataset has no rows")


def _of_type(features: Any, kind: str) -> list[str]:
    return [name for name, feature in features.items() if type(feature).__name__ == kind]


def _known(dataset: Any, name: str) -> str:
    if name not in dataset.features:
        raise InvalidArgumentError(f"there is no column {name!r}; there is {', '.join(dataset.features)}")
    return name


def _image_column(dataset: Any, image: str | None) -> str:
    if image is not None:
        return _known(dataset, _column_name("image", image))
    lists = {name: getattr(feature, "feature", None) for name, feature in dataset.features.items()}
    found = _of_type(dataset.features, "Image") or _of_type(lists, "Image")
    if len(found) == 1:
        return found[0]
    has = f"{len(found)} columns of the type Image" if found else "no column of the type Image"
    raise InvalidArgumentError(
        f"dataset has {has}; name one by image: {', '.join(found or dataset.features)}"
    )


def _label_column(dataset: Any, label: str | None, image: str) -> str | None:
    if label != "auto":
        return None if label is None else _known(dataset, _column_name("label", label))
    found = _of_type(dataset.features, "ClassLabel")
    if len(found) == 1:
        return found[0]
    return "label" if "label" in dataset.features and image != "label" else None


class _Images:
    """The images that were chosen from a column: where the bytes of each are, and its path, or nulls.

    Attributes:
        name: of the column.
        contents: arrays of pyarrow with the bytes. Arrays without a chosen row are left out.
        rows: the chosen rows, in all arrays together.
        counts: the number of images of each row of the arrays; None means one.
        by_path: whether a chosen image has a path, and no bytes.
        in_files: whether there are images, and all have.
        in_order: whether `rows` are 0, 1, 2, … without a gap to the end.
    """

    def __init__(self, chunks: list[Any], name: str, chosen: npt.NDArray[Any] | None) -> None:
        of_lists = _tables.is_list(chunks[0].type)
        _tables.check_images(None, name, chunks[0].type.value_type if of_lists else chunks[0].type)
        self.in_order = chosen is None
        if chosen is None:
            self.rows = np.arange(sum(map(len, chunks)))
        else:
            chunks, self.rows = _with_rows(chunks, chosen.astype(np.int64))
        self.name = name
        self._size = sum(map(len, chunks))
        self._numbers, self.counts = self.rows, None
        if of_lists:
            chunks, self.counts = _unlisted(chunks)
            of_rows = self.counts[self.rows]
            if (too_many := of_rows > _stoker.MOST_IMAGES).any():
                row = int(too_many.argmax())
                raise InvalidArgumentError(
                    f"row {row} of column {name!r} has {of_rows[row]} images; at most "
                    f"{_stoker.MOST_IMAGES} are possible"
                )
            self._numbers = _spans(np.cumsum(self.counts)[self.rows], self.counts[self.rows])
        self.contents, self._paths = _parts(chunks)
        self._firsts = np.cumsum([0, *[len(chunk) for chunk in self.contents]]).tolist()
        self.by_path = self._nulls(self.contents)
        nowhere = self.by_path if self._paths is None else self.by_path & self._nulls(self._paths)
        if nowhere.any():
            raise InvalidArgumentError(f"{self._place(int(nowhere.argmax()))} has no image")
        self.in_files = len(self.by_path) != 0 and bool(self.by_path.all())
        if self.by_path.any():
            self._check_paths()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        """Returns the bytes of an image, or its path."""
        part = bisect_right(self._firsts, self.rows[i]) - 1
        row = int(self.rows[i]) - self._firsts[part]
        if not self.by_path[i]:
            return memoryview(self.contents[part][row].as_buffer())
        assert self._paths is not None
        return self._paths[part][row].as_py()

    def paths(self) -> list[str]:
        """The images that have no bytes."""
        import pyarrow

        assert self._paths is not None
        column = _taken(pyarrow.chunked_array(self._paths), self._numbers[self.by_path])
        listed: list[str] = column.to_pylist()
        return listed

    def identity(self) -> str:
        """Equal for images of the same lengths."""
        lengths = np.concatenate([np.diff(_ends(array)) for array in self.contents])[self.rows]
        return hashlib.blake2b(lengths.tobytes(), digest_size=16).hexdigest()

    def spread(self, values: npt.NDArray[Any] | list[Any]) -> npt.NDArray[Any] | list[Any]:
        """Returns the values of images at their rows, and any values at the other rows."""
        if self.in_order:
            return values
        if isinstance(values, list):
            spread = [values[0]] * self._size
            for row, value in zip(self.rows.tolist(), values):
                spread[row] = value
            return spread
        array = np.zeros((self._size, *values.shape[1:]), values.dtype)
        array[self.rows] = values
        return array

    def _nulls(self, arrays: list[Any]) -> npt.NDArray[np.bool_]:
        nulls: npt.NDArray[np.bool_] = np.concatenate([np.asarray(array.is_null()) for array in arrays])
        return nulls[self._numbers]

    def _place(self, image: int) -> str:
        """Returns where a chosen image is, in messages."""
        if self.counts is None:
            return f"row {image} of column {self.name!r}"
        ends = np.cumsum(self.counts[self.rows])
        row = int(np.searchsorted(ends, image, side="right"))
        return f"image {image - ends[row] + self.counts[self.rows[row]]} of row {row} of column {self.name!r}"

    def _check_paths(self) -> None:
        for i, path in zip(np.flatnonzero(self.by_path), self.paths()):
            if "://" in path or "::" in path:
                raise InvalidArgumentError(
                    f"{self._place(int(i))} is at {path!r:.200}, which is not the path of a file",
                    advice="save_to_disk() puts the bytes of images into its files; open these by "
                    "load_from_disk()",
                )


def _with_rows(chunks: list[Any], rows: npt.NDArray[np.int64]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Returns the arrays that have one of the rows, and the rows' numbers in these."""
    lengths = np.array([len(chunk) for chunk in chunks])
    ends = np.cumsum(lengths)
    part = np.searchsorted(ends, rows, side="right")
    used = np.zeros(len(chunks), bool)
    used[part] = True
    left_out = np.cumsum(np.where(used, 0, lengths))
    return [chunk for chunk, is_used in zip(chunks, used) if is_used], rows - left_out[part]


def _parts(chunks: list[Any]) -> tuple[list[Any], list[Any] | None]:
    """Returns the bytes in arrays of images, and the paths, if there are any."""
    kind = chunks[0].type
    if kind.num_fields == 0:
        return chunks, None
    parts = [dict(zip([field.name for field in kind], chunk.flatten())) for chunk in chunks]
    return [part["bytes"] for part in parts], [part["path"] for part in parts] if "path" in parts[0] else None


def _unlisted(chunks: list[Any]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Returns the images in arrays of lists, where they are in memory, and the number of each list's."""
    from pyarrow import compute

    images, counts = [], []
    for chunk in chunks:
        counts.append(compute.list_value_length(chunk).fill_null(0).to_numpy(zero_copy_only=False))
        inside = chunk.flatten()  # a copy if there is a null
        if chunk.null_count and hasattr(chunk, "offsets"):
            all_of = chunk.values[chunk.offsets[0].as_py() : chunk.offsets[-1].as_py()]
            inside = all_of if len(all_of) == len(inside) else inside
        images.append(inside)
    return images, np.concatenate(counts).astype(np.int64)


def _spans(ends: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the `counts` numbers before each end, one after the other."""
    return np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum())


def _taken(column: Any, rows: npt.NDArray[Any]) -> Any:
    import pyarrow
    from pyarrow import types

    wider = {types.is_string: pyarrow.large_string(), types.is_binary: pyarrow.large_binary()}
    for is_kind, wide in wider.items():
        if is_kind(column.type):  # their arrays have at most 2 GiB; taken rows come in one array
            column = column.cast(wide)
    return column.take(pyarrow.array(rows))


def _beside(
    dataset: Any, label: str | None, names: list[str], chosen: npt.NDArray[Any] | None
) -> tuple[dict[str, npt.NDArray[Any] | list[Any]], list[str]]:
    """Returns the labels and columns of chosen rows in memory, by their names in a batch, and the class
    names.
    """

    def rows_of(name: str) -> Any:
        column = dataset.data.column(_known(dataset, name))
        return _tables.rows_of(None, name, column if chosen is None else _taken(column, chosen))

    beside: dict[str, Any] = {}
    classes: list[str] = []
    if label is not None:
        names_of = list(getattr(dataset.features[label], "names", None) or [])
        beside["label"], classes = _tables.classed(_tables.labels_of(None, label, rows_of(label)), names_of)
    for name in names:
        beside[name] = rows_of(name)
    return beside, classes


def _source(images: _Images, beside: dict[str, Any], classes: list[str], threads: int) -> Source:
    counts = images.counts
    count = counted(len(images), *(("image", "images") if counts is None else ("sample", "samples")))
    if images.in_files:
        paths: Any = images.paths()
        if counts is not None:
            listed = iter(paths)
            paths = [list(itertools.islice(listed, number)) for number in counts[images.rows].tolist()]
        further = {name: rows for name, rows in beside.items() if name != "label"}
        source = files(paths, beside.get("label"), columns=further, class_names=classes or None)
        source._text = f"stoker.from_hf({count} in files)"
        return source
    found = None if images.by_path.any() else _runs(images.contents)
    if counts is not None and len(images.by_path) == 0:  # wherever the images of other rows are
        found, counts = ([], []), np.zeros_like(counts)
    if found is None:
        if counts is not None:
            raise InvalidArgumentError(
                f"column {images.name!r} has lists of images in memory, some images as bytes and some as "
                "paths, or null lists over images",
                advice="save_to_disk() puts images in memory into Arrow files, which load_from_disk() or "
                "stoker.arrow opens; stoker.arrow also takes null lists",
            )
        text = f"stoker.from_hf({count} in memory)"
        return called(images, images.identity(), beside, classes, threads, text)
    text = f"stoker.from_hf({count} in {counted(len(found[0]), 'Arrow file', 'Arrow files')})"
    spread = {name: images.spread(values) for name, values in beside.items()}
    numbers = np.array([] if counts is None else np.cumsum(counts), np.uint64)
    native = _stoker.ranges(
        *found, numbers, spread, [os.fsencode(name) for name in classes], text[len("stoker.") :]
    )
    if not images.in_order:
        native = _stoker.subset(native, images.rows.astype(np.uint64))
    return Source(native, {"kind": "dataset", "key": uuid.uuid4().hex}, text)


def _ends(array: Any) -> npt.NDArray[np.int64]:
    """Returns where the rows of a binary array begin and end in its bytes, one number more than rows."""
    wide = np.int64 if str(array.type) == "large_binary" else np.int32
    offsets = np.frombuffer(array.buffers()[1], wide)
    return offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _runs(contents: list[Any]) -> tuple[list[bytes], list[tuple[int, int, npt.NDArray[np.int64]]]] | None:
    """Returns the files that pyarrow has mapped, and where in them each array's rows are; None means some
    arrays are in memory.

    pyarrow does not say which file a buffer belongs to, and a table may be a slice of a file, or several
    files together; the system knows which file is mapped at the buffer's address.
    """
    mapped = _mapped_files()
    begins = [part.begin for part in mapped]
    numbers: dict[bytes, int] = {}
    runs = []
    for array in filter(len, contents):  # lists may have no images
        data, ends = array.buffers()[2], _ends(array)
        if data is None:
            return None
        at = bisect_right(begins, data.address) - 1
        if at < 0 or data.address + ends[-1] > mapped[at].end:
            return None
        place = mapped[at].offset + data.address - mapped[at].begin
        path = _path_of(mapped[at].path, place, data, int(ends[0]), int(ends[-1]))
        if path is None:
            return None
        runs.append((numbers.setdefault(path, len(numbers)), place, ends))
    return list(numbers), runs


class _Mapped(NamedTuple):
    """A part of a file that this process has mapped."""

    begin: int  # addresses
    end: int
    offset: int  # in the file
    file: bytes  # device and inode
    path: bytes  # as the system shows it


def _mapped_files() -> list[_Mapped]:
    """Returns what this process has mapped, by address. Parts of a file that follow each other are joined."""
    found: list[_Mapped] = []
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            fields = line.rstrip(b"\n").split(None, 5)
            if len(fields) < 6 or not fields[5].startswith(b"/"):
                continue
            begin, end = (int(address, 16) for address in fields[0].split(b"-"))
            part = _Mapped(begin, end, int(fields[2], 16), b" ".join(fields[3:5]), fields[5])
            if found and _continues(found[-1], part):
                part = found.pop()._replace(end=end)
            found.append(part)
    return found


def _continues(one: _Mapped, other: _Mapped) -> bool:
    """Returns whether another part follows in memory and in the file: the system may map a file in several
    parts.
    """
    return (
        one.end == other.begin
        and one.offset + one.end - one.begin == other.offset
        and (one.file, one.path) == (other.file, other.path)
    )


def _path_of(shown: bytes, offset: int, data: Any, begin: int, end: int) -> bytes | None:
    """Returns the path of a mapped file; None if it was removed. The system shows a line break as \\012."""
    for path in (shown, shown.replace(b"\\012", b"\n")):
        if _has(path, offset + begin, data, begin, end):
            return path
    return None


def _has(path: bytes, offset: int, data: Any, begin: int, end: int) -> bool:
    """Returns whether the file with this path still has the mapped bytes: it may have been replaced since."""
    expected = data.slice(begin, min(end - begin, 4096)).to_pybytes()
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return bool(file.read(len(expected)) == expected)
    except OSError:
        return False
