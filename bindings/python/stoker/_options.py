"""Checks the options of a loader against the library's table (engine/options/option_table.cc)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from stoker import _checks, _stoker
from stoker._buckets import Buckets

# The library's tables: "transforms", which _parameters.py reads, "loader", and "device".
TABLES: dict[str, list[dict[str, Any]]] = json.loads(_stoker.described())
_ROWS = {row["name"]: row for row in TABLES["loader"]}

# The default values, which `checked` returns for options that are not given.
DEFAULTS = {name: row["default"] for name, row in _ROWS.items() if not row.get("required")}


def checked(given: Mapping[str, Any], *, only_of_images: bool = False) -> dict[str, Any]:
    """Returns the options in `given` that the library takes; errors name the option."""
    return {
        name: _checked(row, given[name])
        for name, row in _ROWS.items()
        if row["of_images"] or not only_of_images
    }


def as_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Converts options that `checked` returned back to its input: options that are not given are None."""
    nothing = {name: row.get("zero") or row.get("default") == "" for name, row in _ROWS.items()}
    return {name: None if nothing[name] and not value else value for name, value in options.items()}


def of_images(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options in `given` that affect a single image."""
    return {name: given[name] for name, row in _ROWS.items() if row["of_images"]}


def checked_one(name: str, value: Any) -> Any:
    """Returns the value of one option; errors name it."""
    return _checked(_ROWS[name], value)


def checked_of_device(given: Mapping[str, Any]) -> dict[str, int]:
    """Returns the options of batches on devices that are in `given`; errors name the option."""
    return {
        row["name"]: _checks.integer(row["name"], given[row["name"]], row["low"], row["high"])
        for row in TABLES["device"]
        if row["name"] in given
    }


def _policy(name: str, value: Any) -> str:
    """Returns the one form that each policy has, so that states can be compared."""
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={one}" for key, one in value.items()) or "fail"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str or a dictionary, not {value!r:.80}")
    return str(_stoker.bad_policy(value))


def _channels(name: str, value: Any) -> str:
    """Returns the name, which the library checks, or the number as a text."""
    if isinstance(value, str):
        return value
    return str(_checks.integer(name, value, 1, 64))


def _file(name: str, value: Any) -> str:
    if value is None:
        return ""
    path = value if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a path, not {value!r:.80}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a path in UTF-8, not {value!r:.80}") from None
    return path


def _text(name: str, value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, {what}, not {value!r:.80}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a text in UTF-8, not {value!r:.80}") from None
    return value


def _cache(name: str, value: Any) -> str:
    text = _text(name, value, '"ram:8GiB" or "dir:FOLDER:200GB"')
    kind, _, place = text.partition(":")
    folder, colon, size = place.rpartition(":")
    if kind != "dir" or not folder:
        return text
    return f"dir:{os.path.abspath(os.path.expanduser(folder))}{colon}{size}"


def _checked(row: dict[str, Any], value: Any) -> Any:
    name = row["name"]
    if name == "dtype":
        return _checks.dtype(name, value, row["choices"])
    if "choices" in row:
        return _checks.choice(name, value, row["choices"])
    if name == "channels":
        return _channels(name, value)
    if name == "on_bad":
        return _policy(name, value)
    if name == "cache":
        return _cache(name, value)
    if name == "buckets":
        text = value._text() if isinstance(value, Buckets) else value
        return _text(name, text, 'such as "128,256", or a stoker.Buckets')
    if name == "tokens":
        return _text(name, value, "the name of a column")
    # Free-threaded CPython 3.13 takes the lock of the row in row.get, and all threads share the row.
    if "default" in row and isinstance(row["default"], str):
        return _file(name, value)
    if "low" not in row:
        return _checks.boolean(name, value)
    if row["zero"] and value is None:
        return 0
    check = _checks.real if isinstance(row["low"], float) else _checks.integer
    return check(name, value, 1 if row["zero"] else row["low"], row["high"])
