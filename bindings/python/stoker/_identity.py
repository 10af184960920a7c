"""What the batches of a loader depend on, by name: in its state, and in a checkpoint of TensorFlow's.

Values are text, as `repr` writes them. What is left at its default is left out: a state stays short, and one
that was saved before an option existed still fits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

Described = dict[str, tuple[str, str]]  # a value and its default, by name

_NONE = "none"


def described(
    options: Mapping[str, Any], defaults: Mapping[str, Any], transforms: Iterable[Any]
) -> Described:
    """Options, then each transform and its parameters; in this order, each name once."""
    found = {
        name: (repr(value), repr(defaults[name]) if name in defaults else _NONE)
        for name, value in options.items()
    }
    for place, transform in enumerate(transforms):
        name = f"transforms[{place}]"
        found[name] = (type(transform).__name__, _NONE)
        fields = dataclasses.fields(transform)
        defaults_of = {
            field.name: field.default for field in fields if field.default is not dataclasses.MISSING
        }
        # As a transform keeps them, which makes a tuple of a number here and there.
        plain = dataclasses.replace(transform, **defaults_of)
        for field in fields:
            default = repr(getattr(plain, field.name)) if field.name in defaults_of else _NONE
            found[f"{name}.{field.name}"] = (repr(getattr(transform, field.name)), default)
    return found


def given(all_options: Described) -> dict[str, str]:
    """Those that are not left at their defaults: what a state keeps."""
    return {name: value for name, (value, default) in all_options.items() if value != default}


def lines(options: Mapping[str, str]) -> str:
    """The same as text. The dataset op for TensorFlow reads it (bindings/tensorflow/native/origin-inl.h)."""
    return "\n".join(f"{name}={value}" for name, value in options.items())


def differences(saved: Mapping[str, str], here: Described) -> list[str]:
    """For each option of a saved state that is another one here, "batch_size was 8 and is 4"."""
    found: dict[str, str] = {}
    for name in dict.fromkeys([*here, *saved]):
        value, default = here.get(name, (_NONE, _NONE))
        was = saved.get(name, default)
        of_another_transform = name.rpartition(".")[0] in found
        if was != value and not of_another_transform:
            found[name] = f"{name} was {was} and is {value}"
    return list(found.values())
