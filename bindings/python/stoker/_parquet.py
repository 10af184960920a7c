"""Manifests in Parquet files, read by pyarrow."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker import _stoker
from stoker._errors import InvalidArgumentError, NotFoundError, PermissionDeniedError


class Listed(NamedTuple):
    """What `stoker.files` takes."""

    paths: list[Any]
    labels: Any
    class_names: list[str] | None
    columns: dict[str, Any]


def read(path: str, path_column: str | None, label_column: str | None, columns: list[str] | None) -> Listed:
    """The columns of a file, whose roles are those that any manifest's have.

    `label_column`: None for "label", if there is one; "" for none.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{path} is read by pyarrow; try: pip install pyarrow") from error
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            roles = _stoker.manifest_roles(path, names, path_column or "", label_column, columns)
            place, has_label, values = roles
            table = file.read(columns=[names[i] for i in dict.fromkeys([place, *values])])
    except FileNotFoundError:
        raise NotFoundError("no such file", path) from None
    except PermissionError:
        raise PermissionDeniedError("the file may not be read", path) from None
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidArgumentError(f"pyarrow cannot read this: {error}", path) from error
    if table.num_rows == 0:
        raise InvalidArgumentError("the file has no rows", path)
    arrays = {i: rows_of(path, names[i], table.column(names[i])) for i in dict.fromkeys([place, *values])}
    paths = arrays[place]
    if not isinstance(paths, list):
        raise InvalidArgumentError(
            f"column {names[place]!r} is {table.column(names[place]).type}, no paths", path
        )
    labels = arrays[values[0]] if has_label else None
    class_names = None
    if isinstance(labels, list):
        class_names = sorted(set(labels))
        numbers = {name: number for number, name in enumerate(class_names)}
        labels = [numbers[label] for label in labels]
    further = values[1:] if has_label else values
    return Listed(paths, labels, class_names, {names[i]: arrays[i] for i in further})


def rows_of(path: str, name: str, column: Any) -> Any:
    """An array of numbers or of vectors, or a list of str or of bytes."""
    from pyarrow import compute, types

    def refuse(cause: str) -> InvalidArgumentError:
        advice = "Name the columns that are wanted by columns"
        return InvalidArgumentError(f"column {name!r} {cause}", path, advice=advice)

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if column.null_count:
        raise refuse(f"has no value in row {column.is_null().index(True).as_py()}")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return column.to_numpy()
    if types.is_string(kind) or types.is_large_string(kind):
        return column.to_pylist()
    if types.is_binary(kind) or types.is_large_binary(kind):
        return column.to_pylist()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lengths = compute.min_max(compute.list_value_length(column)).as_py()
        elements = compute.list_flatten(column)
        numbers = types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
        if numbers and lengths["min"] == lengths["max"] > 0 and elements.null_count == 0:
            return elements.to_numpy().reshape(len(column), -1)
        raise refuse(f"is {kind} of {lengths['min']} to {lengths['max']} elements, no vectors of one length")
    raise refuse(f"is {kind}, which batches cannot have")
