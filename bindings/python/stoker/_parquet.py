"""Manifests in Parquet files, read by pyarrow."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker import _stoker, _tables
from stoker._errors import InvalidArgumentError


class Listed(NamedTuple):
    """The arguments for `stoker.files`."""

    paths: list[Any]
    labels: Any
    class_names: list[str] | None
    columns: dict[str, Any]


def read(path: str, path_column: str | None, label_column: str | None, columns: list[str] | None) -> Listed:
    """Reads the columns of a file. Their roles are chosen as for any manifest.

    `label_column`: None for "label", if there is one; "" for none.
    """
    with _tables.opened(path) as file:
        names = file.schema_arrow.names
        roles = _stoker.manifest_roles(path, names, path_column or "", label_column, columns)
        place, has_label, values = roles
        wanted = list(dict.fromkeys([place, *values]))
        table = file.read(columns=[names[i] for i in wanted])
    if table.num_rows == 0:
        raise InvalidArgumentError("the file has no rows", path)
    advice = "Name the wanted columns with columns"
    arrays = {i: _tables.rows_of(path, names[i], table.column(names[i]), advice) for i in wanted}
    paths = arrays[place]
    if not isinstance(paths, list):
        kind = table.column(names[place]).type
        raise InvalidArgumentError(f"column {names[place]!r} is {kind}, and does not hold paths", path)
    labels = arrays[values[0]] if has_label else None
    class_names = None
    if isinstance(labels, list):
        labels, class_names = _tables.classed(_tables.labels_of(path, names[values[0]], labels), [])
    elif labels is not None and labels.dtype == bool and labels.ndim == 1:
        labels = _tables.labels_of(path, names[values[0]], labels)
    further = values[1:] if has_label else values
    return Listed(paths, labels, class_names, {names[i]: arrays[i] for i in further})
