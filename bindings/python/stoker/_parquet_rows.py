"""Samples in Parquet files with the images in them, read by pyarrow."""

from __future__ import annotations

import glob
import json
import os
import threading
import warnings
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _parquet
from stoker._errors import DataLossError, InvalidArgumentError, MemoryWarning, NotFoundError
from stoker._sources import DatasetSource, _column_name, _column_names, _is_list, _path, from_dataset

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

    Each row is a sample, in the order of the files. Parquet compresses whole row groups, so one row costs its
    row group: of each that is needed the column of images is read, once, and kept in memory, until others
    take more than `cache_bytes`; the one that was not used for longest goes first. Where all row groups fit,
    each is read once. Where they do not, a shuffled epoch reads nearly a whole row group for each sample:
    this call warns, and writing the table as Arrow files, for `stoker.arrow`, is the remedy. In the files'
    own order each row group is read once an epoch. Calls and shuffles are as of `from_dataset`.

    Args:
        files: a path, a pattern with `*` or `?` (sorted), or a list of paths.
        image: the column of encoded images: binary, or a struct with `bytes` in it (Hugging Face's `Image`).
        label: the column of labels: integers or text, whose values are classes, sorted. "auto": "label", if
            there is one; None: batches have none. `source.classes` has the names of a `ClassLabel`.
        columns: further columns: numbers, bool, or lists of numbers of one length. They and the labels are
            read by this call, and stay in memory.
        cache_bytes: of images in memory, at least one row group's.
        threads: that read, 1 to 256.

    Raises:
        ImportError: pyarrow is not installed.
        NotFoundError: no such file (a FileNotFoundError).
        InvalidArgumentError: no rows, no Parquet file, a column that is not there or of another type, a null
            in a label or a column, files with different columns (a ValueError). Of images nulls are known
            when they are read.
    """
    image = _column_name("image", image)
    if label is not None and label != "auto":
        label = _column_name("label", label)
    names = [] if columns is None else _column_names("columns", columns)
    for name in names:
        if name in ("image", "label") or names.count(name) > 1:
            raise InvalidArgumentError(f"columns has {name!r}, which is the name of another column")
    cache_bytes = _checks.integer("cache_bytes", cache_bytes, 1, 2**62)
    rows = ParquetRows(_files(files), image, label, names, cache_bytes)
    if rows.image_bytes > cache_bytes:
        warnings.warn(
            f"the images have {rows.image_bytes >> 20:,} MiB, and cache_bytes is {cache_bytes >> 20:,} MiB: "
            f"a shuffled epoch reads a row group of {rows.largest_group >> 20:,} MiB for nearly each sample; "
            "raise cache_bytes, or write the table as Arrow files for stoker.arrow",
            MemoryWarning,
            stacklevel=2,
        )
    source = from_dataset(rows, threads=threads, class_names=rows.classes or None)
    return _Parquet(source._native, source._spec, f"stoker.parquet({rows.described})", source._calls)


class _Parquet(DatasetSource):
    """The source that `parquet` returns. What is beside images needs no reading."""

    def _beside(self, sample: int) -> list[Any]:
        return [rows[sample] for rows in self._rows.beside.values()]

    def _labels(self) -> Any:
        return self._rows.beside["label"].tolist()

    @property
    def _rows(self) -> ParquetRows:
        rows: ParquetRows = self._calls.dataset
        return rows


def _files(files: Any) -> list[str]:
    if not isinstance(files, (str, bytes, os.PathLike)):
        if not _is_list(files):
            raise TypeError(f"files must be a path, a pattern, or a list of paths, not {files!r:.80}")
        listed = [os.path.abspath(os.fsdecode(_path(f"files[{i}]", path))) for i, path in enumerate(files)]
    else:
        given = os.path.abspath(os.fsdecode(_path("files", files)))
        listed = [given] if os.path.exists(given) or not glob.has_magic(given) else sorted(glob.glob(given))
        if not listed:
            raise NotFoundError("no file matches", given)
    if not listed:
        raise InvalidArgumentError("files is empty")
    return listed


class ParquetRows:
    """The rows of files, as `from_dataset` takes them. Thread-safe."""

    def __init__(
        self, paths: list[str], image: str, label: str | None, names: list[str], cache_bytes: int
    ) -> None:
        self._paths = paths
        self._image = image
        self._groups: list[tuple[int, int]] = []  # (file, row group), by number
        self._firsts = [0]  # the first row of each
        self._cache = _Cache(self._read, cache_bytes)
        self.image_bytes = 0  # of all images, about
        self.largest_group = 0  # of those, in bytes
        self.classes: list[str] = []
        parts: list[dict[str, Any]] = []
        for number, path in enumerate(paths):
            with _opened(path) as file:
                parts.append(self._add(number, file, label, names))
        if self._firsts[-1] == 0:
            raise InvalidArgumentError("the files have no rows", paths[0])
        self.beside = self._joined(parts)
        self.described = repr(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, i: int) -> dict[str, Any]:
        group = bisect_right(self._firsts, i) - 1
        content = self._cache.get(group)[i - self._firsts[group]]
        if not content.is_valid:
            path = self._paths[self._groups[group][0]]
            raise ValueError(f"{path}: row {i} of all, in column {self._image!r}, has no image")
        image = memoryview(content.as_buffer())
        return {"image": image, **{name: rows[i] for name, rows in self.beside.items()}}

    def _add(self, number: int, file: Any, label: str | None, names: list[str]) -> dict[str, Any]:
        """Notes the row groups of a file, and returns its labels and columns."""
        path, schema = self._paths[number], file.schema_arrow
        if label == "auto":
            label = "label" if "label" in schema.names else None
        for name in (self._image, *([] if label is None else [label]), *names):
            if name not in schema.names:
                has = ", ".join(schema.names[:30])
                raise InvalidArgumentError(f"there is no column {name!r}; there is {has}", path)
        _check_images(path, self._image, schema.field(self._image).type)
        for group in range(file.num_row_groups):
            described = file.metadata.row_group(group)
            if described.num_rows == 0:
                continue
            columns = [described.column(i) for i in range(described.num_columns)]
            names_in = (self._image, f"{self._image}.bytes")
            images = sum(c.total_uncompressed_size for c in columns if c.path_in_schema in names_in)
            self.image_bytes += images
            self.largest_group = max(self.largest_group, images)
            self._groups.append((number, group))
            self._firsts.append(self._firsts[-1] + described.num_rows)
        wanted = (
            {name: name for name in names} if label is None else {"label": label, **{n: n for n in names}}
        )
        table = file.read(columns=list(dict.fromkeys(wanted.values())))
        rows = {name: _parquet.rows_of(path, of, table.column(of)) for name, of in wanted.items()}
        if label is not None:
            classes = _class_names(schema, label)
            if number > 0 and classes != self.classes:
                raise InvalidArgumentError(f"the class names differ from those in {self._paths[0]}", path)
            self.classes = classes
        for name, values in rows.items():
            if isinstance(values, list) and name != "label":
                raise InvalidArgumentError(
                    f"column {name!r} is text, which parquet() has no columns of", path
                )
        return rows

    def _joined(self, parts: list[dict[str, Any]]) -> dict[str, npt.NDArray[Any]]:
        """The labels and columns of all files; labels that are text become classes."""
        first = parts[0]
        for path, part in zip(self._paths, parts):
            described = {name: _type_of(rows) for name, rows in part.items()}
            if described != {name: _type_of(rows) for name, rows in first.items()}:
                raise InvalidArgumentError(f"the columns differ from those in {self._paths[0]}", path)
        if isinstance(first.get("label"), list):
            self.classes = sorted({name for part in parts for name in part["label"]})
            numbers = {name: number for number, name in enumerate(self.classes)}
            for part in parts:
                part["label"] = np.array([numbers[name] for name in part["label"]], np.int64)
        joined = {name: np.concatenate([part[name] for part in parts]) for name in first}
        labels = joined.get("label")
        if labels is not None and self.classes:
            unnamed = np.flatnonzero((labels < 0) | (labels >= len(self.classes)))
            if len(unnamed):
                raise InvalidArgumentError(
                    f"label {labels[unnamed[0]]} of row {unnamed[0]} has no class name; leave the labels "
                    "out, if they are unknown: label=None"
                )
        return joined

    def _read(self, group: int) -> Any:
        """The images of a row group, an array of pyarrow."""
        import pyarrow

        number, in_file = self._groups[group]
        path = self._paths[number]
        with _opened(path) as file:
            try:
                is_struct = pyarrow.types.is_struct(file.schema_arrow.field(self._image).type)
                wanted = f"{self._image}.bytes" if is_struct else self._image
                column = file.read_row_group(in_file, columns=[wanted]).column(0)
            except (pyarrow.ArrowException, OSError) as error:
                raise DataLossError(f"row group {in_file} cannot be read: {error}", path) from error
        array = column.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):
            array = pyarrow.concat_arrays(array.chunks)
        array = array.flatten()[0] if is_struct else array
        if len(array) != self._firsts[group + 1] - self._firsts[group]:
            raise DataLossError(f"row group {in_file} has changed since the file was opened", path)
        return array


class _Cache:
    """Remembers what `read` returns for numbers, in so many bytes. Each is read by one thread, once."""

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
                before = self._kept.pop(number, None)  # where it went meanwhile, and was read again
                self._kept[number] = made
                self._bytes += made.nbytes - (0 if before is None else before.nbytes)
                self._reading.pop(number, None)
                while self._bytes > self._most and len(self._kept) > 1:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
            return made


def _opened(path: str) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet as pq
    except ImportError as error:
        raise ImportError(f"{path} is read by pyarrow; try: pip install pyarrow") from error
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise NotFoundError("no such file", path) from None
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidArgumentError(f"pyarrow cannot read this: {error}", path) from error


def _check_images(path: str, name: str, kind: Any) -> None:
    from pyarrow import types

    of_bytes = kind
    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        of_bytes = kind.field("bytes").type
    if not (types.is_binary(of_bytes) or types.is_large_binary(of_bytes)):
        raise InvalidArgumentError(f"column {name!r} is {kind}, no encoded images", path)


def _class_names(schema: Any, label: str) -> list[str]:
    """Of Hugging Face's ClassLabel; none if the column is none."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return list(features[label]["names"]) if features[label]["_type"] == "ClassLabel" else []
    except (KeyError, TypeError, ValueError):
        return []


def _type_of(rows: Any) -> Any:
    return "text" if isinstance(rows, list) else (rows.dtype, rows.shape[1:])
