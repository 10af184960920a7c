"""Converts pyarrow's tables for stoker: labels, columns and encoded images."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks
from stoker._errors import (
    DataLossError,
    Error,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)


@contextlib.contextmanager
def opened(path: str) -> Generator[Any, None, None]:
    """Opens a Parquet file. Exceptions of pyarrow while it is open become errors with its path."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{path} is read by pyarrow; try: pip install pyarrow") from error
    damaged: type[Error] = InvalidArgumentError  # it may be anything
    try:
        with pyarrow.OSFile(os.fsencode(path)) as raw:
            file = parquet.ParquetFile(raw)
            damaged = DataLossError
            yield file
    except (Error, MemoryError):
        raise
    except FileNotFoundError:
        raise NotFoundError("no such file", path) from None
    except PermissionError:
        raise PermissionDeniedError("the file may not be read", path) from None
    except pyarrow.ArrowNotImplementedError as error:  # for example a codec that pyarrow lacks
        raise UnimplementedError(f"pyarrow cannot read this: {error}", path) from error
    except (pyarrow.ArrowException, OSError) as error:
        _checks.refuse_lfs_pointer(path)
        raise damaged(f"pyarrow cannot read this: {error}", path) from error


def check_names(names: Iterable[str]) -> list[str]:
    """Returns the names of further columns of a batch, which has an image and a label."""
    checked: list[str] = []
    for name in names:
        if name in ("image", "label"):
            raise InvalidArgumentError(f"columns has {name!r}, which is the name of another column")
        if name in checked:
            raise InvalidArgumentError(f"columns has {name!r} twice")
        checked.append(name)
    return checked


def _holds_images(kind: Any) -> bool:
    """Returns whether a column of this type holds encoded images: binary, or a struct with `bytes` in it."""
    from pyarrow import types

    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind.field("bytes").type
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def check_images(path: str | None, name: str, kind: Any) -> None:
    """Raises an InvalidArgumentError if a column of this type does not hold encoded images."""
    if not _holds_images(kind):
        of_images = is_list(kind) and _holds_images(kind.value_type)
        advice = "Lists of images are taken from Arrow files, by stoker.arrow" if of_images else ""
        cause = f"column {name!r} is {kind}, and does not hold encoded images"
        raise InvalidArgumentError(cause, path, advice=advice)


def rows_of(path: str | None, name: str, column: Any, advice: str = "") -> Any:
    """Returns an array of numbers or of vectors, or a list of str or of bytes. `column` has a row or more."""
    import pyarrow
    from pyarrow import types

    def refuse(cause: str, way_out: str = advice) -> InvalidArgumentError:
        return InvalidArgumentError(f"column {name!r} {cause}", path, advice=way_out)

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    elif isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    kind = column.type
    if column.null_count:
        raise refuse(f"has no value in row {column.is_null().index(True).as_py()}")
    if _is_number(kind):
        return column.to_numpy()
    if types.is_binary(kind) or types.is_large_binary(kind):
        return column.to_pylist()
    if types.is_string(kind) or types.is_large_string(kind):
        try:
            return column.to_pylist()
        except UnicodeDecodeError as error:
            raise refuse(f"is not valid UTF-8: {error}") from None
    if is_list(kind):
        return _vectors(column, refuse)
    raise refuse(f"is {kind}, which batches cannot have")


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _vectors(column: Any, refuse: Any) -> npt.NDArray[Any]:
    """Returns the numbers in lists, and in lists of lists, of one length."""
    from pyarrow import compute

    kind, shape = column.type, [len(column)]
    while is_list(column.type):
        lengths = compute.min_max(compute.list_value_length(column)).as_py()
        if lengths["min"] != lengths["max"] or lengths["min"] == 0:
            raise refuse(
                f"is {kind} of {lengths['min']} to {lengths['max']} elements; vectors have one length",
                "Leave the column out, or list the images by stoker.files, and give it as stoker.PerObject",
            )
        shape.append(lengths["min"])
        column = compute.list_flatten(column)
        if column.null_count:
            raise refuse(f"is {kind} with a null in it")
    if not _is_number(column.type):
        raise refuse(f"is {kind}, which batches cannot have")
    numbers: npt.NDArray[Any] = column.to_numpy().reshape(shape)
    return numbers


def labels_of(path: str | None, name: str, rows: Any) -> npt.NDArray[np.int64] | list[str]:
    """Returns rows of a column as labels: integers, or text. The bools are 0 and 1."""
    if isinstance(rows, list):
        if isinstance(rows[0], str):
            return rows
        raise InvalidArgumentError(f"column {name!r} is binary; labels are integers, bool or text", path)
    if rows.dtype.kind not in "biu" or rows.ndim != 1:
        kind = f"has {'vectors' if rows.ndim > 1 else rows.dtype.name} in it"
        raise InvalidArgumentError(f"column {name!r} {kind}; labels are integers, bool or text", path)
    if rows.dtype == np.uint64 and rows.max() >= 2**63:
        at = int(rows.argmax())
        raise InvalidArgumentError(f"column {name!r} has {rows[at]} in row {at}; labels are int64", path)
    numbers: npt.NDArray[np.int64] = rows.astype(np.int64)
    return numbers


def classed(
    labels: npt.NDArray[np.int64] | list[str], class_names: list[str]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Returns labels as numbers, and the names of classes: `class_names`, or the sorted values of labels that
    are text.
    """
    if isinstance(labels, list):
        class_names = sorted(set(labels))
        numbers = {name: number for number, name in enumerate(class_names)}
        return np.array([numbers[name] for name in labels], np.int64), class_names
    unnamed = np.flatnonzero((labels < 0) | (labels >= len(class_names)))
    if class_names and len(unnamed):
        raise InvalidArgumentError(
            f"label {labels[unnamed[0]]} of row {unnamed[0]} has no class name",
            advice="Leave the labels out, if they are unknown: label=None",
        )
    return labels, class_names
