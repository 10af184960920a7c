"""Samples in Parquet files with the images in them, read by pyarrow."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import threading
import warnings
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np

from stoker import _checks, _stoker, _tables
from stoker._errors import DataLossError, InvalidArgumentError, MemoryWarning
from stoker._sources import DatasetSource, _column_name, _column_names, _is_list, _path, called

__all__ = ["parquet"]


def parquet(
    files: str | os.PathLike[Any] | Iterable[Any],
    *,
    image: str = "image",
    label: str | None = "auto",
    columns: Iterable[str] | None = None,
    cache_bytes: int = 2**30,
    threads: int = 4,
) -> DatasetSource:
    """Samples in Parquet files that hold the images themselves, as on Hugging Face's hub. pyarrow reads them.

        source = stoker.parquet("data/train-*.parquet", label="label")

    Each row is a sample, in the order of the files. Parquet compresses whole row groups, so reading one row
    costs its row group: of each needed row group the column of images is read, once, and kept in memory until
    others take more than `cache_bytes`; the least recently used one is dropped first. If all row groups fit,
    each is read once. If they do not, a shuffled epoch reads nearly a whole row group for each sample: this
    call warns, and the remedy is to write the table as Arrow files, for `stoker.arrow`. In the files' own
    order each row group is read once an epoch. Calls and shuffles are as for `from_dataset`.

    Args:
        files: a pattern, as of `tar`, or a list of paths.
        image: the column of encoded images: binary, or a struct with `bytes` in it (Hugging Face's `Image`).
        label: the column of labels: integers, bool (0 and 1), or text, whose values are classes, sorted.
            "auto": "label", if there is one, next to the image; None means batches have none.
            `source.classes` has the names of a `ClassLabel`.
        columns: further columns: numbers, bool, vectors of numbers, text, or binary. They and the labels are
            read by this call, and stay in memory.
        cache_bytes: bytes of images in memory; in addition each thread has the row group that it reads or
            uses, so row groups should be much smaller.
        threads: number of threads that read, 1 to 256.

    Raises:
        ImportError: pyarrow is not installed.
        NotFoundError: no such file (a FileNotFoundError).
        InvalidArgumentError: no rows, not a Parquet file, a column that does not exist or has another type, a
            null in a label or a column, a label without a class name, files with different columns (a
            ValueError). A null image is this error of its batch.
        DataLossError: labels or columns are damaged; for images, and if the file has changed since this call,
            the error of their batch.
        PermissionDeniedError: a file may not be read (a PermissionError).
        UnimplementedError: pyarrow does not support what the file has (a NotImplementedError).
    """
    image = _column_name("image", image)
    if label is not None and label != "auto":
        label = _column_name("label", label)
    names = _tables.check_names([] if columns is None else _column_names("columns", columns))
    cache_bytes = _checks.integer("cache_bytes", cache_bytes, 1, 2**62)
    paths = _files(files)
    images = ParquetImages(paths, image, cache_bytes)
    beside = _Beside(image, label, names)
    for path in paths:
        with _tables.opened(path) as file:
            images.add(path, file)
            beside.add(path, file)
    if len(images) == 0:
        raise InvalidArgumentError("the files have no rows", paths[0])
    if images.bytes > cache_bytes:
        warnings.warn(
            f"the images have {images.bytes >> 20:,} MiB, and cache_bytes is {cache_bytes >> 20:,} MiB: "
            f"a shuffled epoch reads a row group of {images.largest_group >> 20:,} MiB for nearly each "
            "sample; raise cache_bytes, or write the table as Arrow files for stoker.arrow",
            MemoryWarning,
            stacklevel=2,
        )
    described = repr(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    made, classes = beside.made()
    source = called(images, images.identity(), made, classes, threads, f"stoker.parquet({described})")
    options: dict[str, Any] = {"image": image, "label": label, "columns": names}
    again = functools.partial(parquet, **options, cache_bytes=cache_bytes, threads=threads)
    source._made_by = again, (paths,)
    return source


def _files(files: Any) -> list[str]:
    if isinstance(files, (str, bytes, os.PathLike)):
        given = _path("files", files)
        listed = [given] if os.path.exists(given) else _stoker.shards(given, os.getcwdb())
    elif _is_list(files):
        listed = [_path(f"files[{i}]", path) for i, path in enumerate(files)]
    else:
        raise TypeError(f"files must be a path, a pattern, or a list of paths, not {files!r:.80}")
    if not listed:
        raise InvalidArgumentError("files is empty")
    paths = [os.fsdecode(os.path.abspath(path)) for path in listed]
    for path in paths:
        if os.path.isdir(path):
            raise InvalidArgumentError("this is a folder", path, advice=f"Name its files: {path}/*.parquet")
    return paths


class ParquetImages:
    """The images of files, by number. Thread-safe once all files have been added."""

    def __init__(self, paths: list[str], image: str, cache_bytes: int) -> None:
        self.bytes = 0  # of all images, approximately
        self.largest_group = 0  # bytes of the largest row group
        self._image = image
        self._versions: dict[str, tuple[int, ...]] = {}  # of files, by path
        self._groups: list[tuple[str, int]] = []  # (path, row group), by number
        self._sizes: list[int] = []  # bytes of each row group
        self._firsts = [0]  # the first row of each row group
        self._cache = _Cache(self._read, cache_bytes)

    def add(self, path: str, file: Any) -> None:
        """Notes the row groups of a file."""
        self._versions[path] = _version(path)
        _tables.check_images(path, self._image, _field(path, file.schema_arrow, self._image).type)
        for group in range(file.num_row_groups):
            described = file.metadata.row_group(group)
            if described.num_rows == 0:
                continue
            columns = [described.column(i) for i in range(described.num_columns)]
            names = (self._image, f"{self._image}.bytes")
            self._sizes.append(sum(c.total_uncompressed_size for c in columns if c.path_in_schema in names))
            self.bytes += self._sizes[-1]
            self.largest_group = max(self.largest_group, self._sizes[-1])
            self._groups.append((path, group))
            self._firsts.append(self._firsts[-1] + described.num_rows)

    def identity(self) -> str:
        """Equal for files with as many rows and bytes of images in their row groups."""
        sizes = np.array([self._firsts[1:], self._sizes], np.int64)
        return hashlib.blake2b(sizes.tobytes(), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, i: int) -> memoryview:
        group = bisect_right(self._firsts, i) - 1
        content = self._cache.get(group)[i - self._firsts[group]]
        if not content.is_valid:
            raise InvalidArgumentError(
                f"row {i} of the source has no image in column {self._image!r}", self._groups[group][0]
            )
        return memoryview(content.as_buffer())

    def _read(self, group: int) -> _Group:
        path, in_file = self._groups[group]
        if os.path.exists(path) and _version(path) != self._versions[path]:
            raise DataLossError("the file has changed since it was opened", path)
        with _tables.opened(path) as file:
            is_struct = str(file.schema_arrow.field(self._image).type).startswith("struct")
            wanted = f"{self._image}.bytes" if is_struct else self._image
            # An array of pyarrow has at most 2 GiB of bytes, and a row group may have more.
            batches = file.iter_batches(_ROWS_OF_ARRAY, row_groups=[in_file], columns=[wanted])
            arrays = [batch.column(self._image) for batch in batches]
        return _Group([array.flatten()[0] for array in arrays] if is_struct else arrays)


_ROWS_OF_ARRAY = 16


class _Group:
    """Returns the images of a row group: arrays of pyarrow with _ROWS_OF_ARRAY each, or fewer."""

    def __init__(self, arrays: list[Any]) -> None:
        self.nbytes = sum(array.nbytes for array in arrays)
        self._arrays = arrays
        self._firsts = list(itertools.accumulate(map(len, arrays), initial=0))

    def __getitem__(self, row: int) -> Any:
        at = bisect_right(self._firsts, row) - 1
        return self._arrays[at][row - self._firsts[at]]


def _version(path: str) -> tuple[int, ...]:
    """Returns numbers that change if the file was replaced or written to."""
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _field(path: str, schema: Any, name: str) -> Any:
    """Returns a column's description, whose name must be that of one column only."""
    if schema.names.count(name) > 1:
        raise InvalidArgumentError(f"there are {schema.names.count(name)} columns {name!r}", path)
    if name not in schema.names:
        has = ", ".join(schema.names[:30])
        advice = "Name the columns that are meant: image=, label=, columns="
        raise InvalidArgumentError(f"there is no column {name!r}; there is {has}", path, advice=advice)
    return schema.field(name)


class _Beside:
    """The labels and columns of files, read when these are added."""

    def __init__(self, image: str, label: str | None, names: list[str]) -> None:
        self._image = image
        self._label = label
        self._names = names
        self._first: str | None = None  # the first file
        self._class_names: list[str] = []  # the same in each file
        self._parts: dict[str, list[Any]] = {}  # rows of each file that has some, by name in a batch

    def add(self, path: str, file: Any) -> None:
        schema = file.schema_arrow
        if self._label == "auto":
            self._label = "label" if "label" in schema.names and self._image != "label" else None
        wanted = {name: name for name in self._names}
        if self._label is not None:
            wanted = {"label": self._label, **wanted}
        for name in wanted.values():
            _field(path, schema, name)
        class_names = [] if self._label is None else _class_names(schema, self._label)
        if self._first is None:
            self._first, self._class_names = path, class_names
        if class_names != self._class_names:
            raise InvalidArgumentError(f"the class names differ from those in {self._first}", path)
        if not wanted or file.metadata.num_rows == 0:
            return
        table = file.read(columns=list(dict.fromkeys(wanted.values())))
        for name, of in wanted.items():
            rows = _tables.rows_of(path, of, table.column(of))
            if name == "label":
                rows = _tables.labels_of(path, of, rows)
            parts = self._parts.setdefault(name, [])
            if parts and _type_of(rows) != _type_of(parts[0]):
                kinds = f"{_type_of(rows)}, and before it {_type_of(parts[0])}"
                raise InvalidArgumentError(f"the columns of the files differ: {of!r} is {kinds}", path)
            parts.append(rows)

    def made(self) -> tuple[dict[str, Any], list[str]]:
        """Returns the columns by name, and the class names."""
        columns: dict[str, Any] = {}
        for name, parts in self._parts.items():
            as_list = isinstance(parts[0], list)
            columns[name] = list(itertools.chain(*parts)) if as_list else np.concatenate(parts)
        if "label" not in columns:
            return columns, []
        columns["label"], classes = _tables.classed(columns["label"], self._class_names)
        return columns, classes


class _Cache:
    """Caches the results of `read` for numbers, in at most `most` bytes. Each is read by one thread, once."""

    def __init__(self, read: Any, most: int) -> None:
        self._read = read
        self._most = most
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Any] = OrderedDict()  # the one used last is at the end
        self._reading: dict[int, threading.Lock] = {}

    def get(self, number: int) -> Any:
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
            reading = self._reading.setdefault(number, threading.Lock())
        with reading:
            with self._lock:
                if number in self._kept:  # another thread has read it meanwhile
                    return self._kept[number]
            made = self._read(number)
            with self._lock:
                before = self._kept.pop(number, None)  # it was dropped meanwhile, and read again
                self._kept[number] = made
                self._bytes += made.nbytes - (0 if before is None else before.nbytes)
                self._reading.pop(number, None)
                while self._bytes > self._most and len(self._kept) > 1:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
            return made


def _class_names(schema: Any, label: str) -> list[str]:
    """Returns the names of Hugging Face's ClassLabel; empty if the column is not one."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return list(features[label]["names"]) if features[label]["_type"] == "ClassLabel" else []
    except (KeyError, TypeError, ValueError):
        return []


def _type_of(rows: Any) -> str:
    if isinstance(rows, list):
        return type(rows[0]).__name__
    return f"{rows.dtype}{list(rows.shape[1:]) or ''}"
