"""Samples of equal size in files, one after the other."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._sources import Source, _absolute, _Opened

__all__ = ["records"]


def records(
    paths: str | os.PathLike[Any] | Iterable[str | os.PathLike[Any]],
    dtype: npt.DTypeLike,
    shape: int | Iterable[int] = (),
    *,
    offset: int = 0,
) -> Source:
    """Samples of equal size that lie in files one after the other.

        cifar = stoker.records(
            [f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)],
            [("label", "uint8"), ("image", "uint8", (3, 32, 32))])
        mnist = stoker.records("train-images-idx3-ubyte", "uint8", (28, 28), offset=16)
        tokens = stoker.records("train.bin", [("tokens", "uint16", (1025,))])

    This call reads the files into memory that loaders share: they must fit into half of the available memory.
    Later changes of the files do not disturb a loader. For files that are larger than memory give `np.memmap`
    arrays to `stoker.arrays`.

    Without transforms, rows are copied into batches unchanged. Transforms require a first column of uint8
    (height, width, 3).

    Args:
        paths: a path, or several: samples are numbered in their order.
        dtype: the type of a number ("uint8", "float32", …), or a structured dtype of NumPy: the fields of a
            record as they lie in the file. Each is a column of the batch. A field with the name "image" comes
            first, and one with the name "label" is the label.
        shape: the shape of a sample, if dtype is the type of a number; the column has the name "image".
        offset: bytes before the first record of each file.

    Raises:
        ValueError: no files; a dtype with gaps, of another byte order, or with a field that `arrays` does not
            take.
        TypeError: not a path; an element type that `arrays` does not take.
        DataLossError: a file without records, or whose last record is incomplete.
        NotFoundError: no such file (a FileNotFoundError).
        ResourceExhaustedError: the files do not fit into memory (a MemoryError).
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    absolute = [_absolute("paths", path) for path in paths]
    if not absolute:
        raise InvalidArgumentError("paths is empty; give the path of a file, or several")
    for path in absolute:
        if b"\n" in path:
            raise InvalidArgumentError(f"{os.fsdecode(path)!r} has a line feed, which records() cannot take")
    shape = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    fields = _fields(np.dtype(dtype), shape)
    offset = _checks.integer("offset", offset, 0, 2**62)
    record = ", ".join(" ".join([name, kind.name, *map(str, rows)]) for name, kind, rows in fields)
    given = {"paths": b"\n".join(absolute), "record": record.encode(), "offset": b"%d" % offset}
    text = repr(os.fsdecode(absolute[0])) + (f" and {len(absolute) - 1} more" if len(absolute) > 1 else "")
    source = _Opened("records", given, f"stoker.records({text}, {record})")
    again = functools.partial(records, offset=offset)
    source._made_by = again, ([os.fsdecode(path) for path in absolute], dtype, shape)
    fields.sort(key=lambda field: field[0] != "image")  # the order in a batch
    for i, (name, kind, rows) in enumerate(fields):
        source._columns[name] = source._native.rows(i).view(kind).reshape(len(source), *rows)
    return source


def _fields(dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """Returns the name, element type and row shape of each field, in the order of the file."""
    if dtype.names is None:
        base, rows = dtype.subdtype or (dtype, ())
        return [("image", _element("dtype", base), (*_dimensions(shape), *rows))]
    if shape:
        raise InvalidArgumentError("dtype has fields with shapes of their own; leave out shape")
    assert dtype.fields is not None
    fields, end = [], 0
    for name in dtype.names:
        field, start = dtype.fields[name][:2]
        base, rows = field.subdtype or (field, ())
        if start != end:
            raise InvalidArgumentError(
                f"field {name!r} is at byte {start}, and the one before it ends at {end}"
            )
        if not name.isprintable() or any(c in " ," for c in name):
            raise InvalidArgumentError(
                f"field {name!r} has a name with a space, a comma or a control character"
            )
        end = start + field.itemsize
        fields.append((name, _element(f"field {name!r}", base), rows))
    if end != dtype.itemsize:
        raise InvalidArgumentError(
            f"dtype has {dtype.itemsize} bytes, and its fields end at {end}; drop align=True"
        )
    return fields


def _dimensions(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(_checks.integer(f"shape[{i}]", d, 1, 2**42) for i, d in enumerate(shape))


def _element(what: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name not in _checks.ELEMENTS:
        raise TypeError(f"{what} is {dtype}; it must be of {', '.join(_checks.ELEMENTS)}")
    if not dtype.isnative:
        raise InvalidArgumentError(
            f"{what} is {dtype.str!r}, of another byte order than this machine's; "
            "give stoker.arrays(np.fromfile(…).byteswap()) instead"
        )
    return dtype
