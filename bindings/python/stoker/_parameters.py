"""The base of all transforms, which checks parameters by the table of transforms/spec/transform_table.cc.

`_transforms.py` has a class for each transform, with its signature and docstring. A parameter's kind says how
it is checked, and how it is written in the library's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, Union

from stoker import _checks, _options
from stoker._errors import InvalidArgumentError, counted

Size = Union[int, Sequence[int]]
Margins = Union[int, Sequence[int]]
Range = Union[float, Sequence[float]]
Fill = Union[int, Sequence[int]]

_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    row["name"]: row["parameters"] for row in _options.TABLES["transforms"]
}
_MOST_LEVELS = 8  # kMaxTransformDepth
_CAN_BE_HELD = [row["name"] for row in _options.TABLES["transforms"] if row["can_be_held"]]


class Transform:
    """The base of all transforms. Immutable; equal when all parameters are."""

    _depth = 1  # levels of the tree that begins here

    def __post_init__(self) -> None:
        # A parameter that must be below another one is checked after it.
        for parameter in sorted(self._parameters(), key=lambda p: "below" in p["options"][0]):
            name, option = parameter["name"], parameter["options"][0]
            if "below" in option:
                option = {**option, "high": getattr(self, option["below"]) - 1}
            value = _READ[parameter["kind"]](f"{type(self).__name__}.{name}", getattr(self, name), option)
            object.__setattr__(self, name, value)
            if parameter["kind"] == "transforms":
                depth = 1 + max((held._depth for held in value), default=0)
                if depth > _MOST_LEVELS:
                    raise InvalidArgumentError(
                        f"{type(self).__name__}.{name} is nested more than {_MOST_LEVELS} levels deep"
                    )
                object.__setattr__(self, "_depth", depth)

    def _name(self) -> str:
        """Returns the transform's name in the table, also for a subclass."""
        return next(base.__name__ for base in type(self).__mro__ if base.__name__ in _PARAMETERS)

    def _parameters(self) -> list[dict[str, Any]]:
        return _PARAMETERS[self._name()]

    def _spec(self) -> dict[str, Any]:
        """Returns the transform as in a loader spec (docs/loader-spec.md)."""
        spec: dict[str, Any] = {"name": self._name()}
        for parameter in self._parameters():
            value, option = getattr(self, parameter["name"]), parameter["options"][0]
            if parameter["kind"] in _WRITE:
                spec.update(_WRITE[parameter["kind"]](value))
            elif value is not None:
                spec[option["name"]] = value
        return spec


class ImageOrBatchChoice(Transform):
    """The base of `RandomChoice`, which also chooses among transforms of batches: of these it makes an object
    of their own kind.
    """

    transforms: Sequence[Transform]
    p: Sequence[float] | None

    def __new__(cls, transforms: Any, p: Any = None) -> Any:
        listed = hasattr(transforms, "__len__") and hasattr(transforms, "__iter__")
        for each in (transforms, *(transforms if listed else ())):
            if hasattr(type(each), "_chosen_by"):
                return type(each)._chosen_by(transforms, p)
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.transforms, self.p

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        if not self.transforms:
            raise InvalidArgumentError(f"{name}.transforms has 0 elements; it must have at least 1")
        if self.p is not None:
            weights = _checks.weights(f"{name}.p", self.p, len(self.transforms))
            object.__setattr__(self, "p", weights)


def checked(transforms: Iterable[Transform], name: str = "transforms") -> tuple[Transform, ...]:
    """Returns the transforms as a tuple; TypeError if one is not a transform. `name`: the argument's."""
    if isinstance(transforms, Transform):
        raise TypeError(f"{name} must be a list of transforms; try [{transforms._name()}(…)]")
    if hasattr(transforms, "_transforms"):  # a Compose
        raise TypeError(f"{name} must be a list of transforms; pass the list that stoker.Compose was given")
    if not hasattr(transforms, "__iter__"):
        raise TypeError(f"{name} must be a list of transforms, not {transforms!r:.80}")
    listed = tuple(transforms)
    for place, transform in enumerate(listed):
        if hasattr(type(transform), "_chosen_by"):  # a BatchTransform
            raise TypeError(
                f"{name}[{place}] is {transform!r:.80}, which mixes whole batches; "
                "put it last in the loader's list"
            )
        if not isinstance(transform, Transform):
            raise TypeError(f"{name}[{place}] is not one of stoker's transforms: {_described(transform)}")
    return listed


def _described(transform: Any) -> str:
    if isinstance(transform, type):
        return f"{transform!r:.80}; did you mean {transform.__name__}(…)?"
    kind = type(transform)
    if kind.__name__ in _PARAMETERS:  # its repr would look like that of stoker's
        return f"it is {kind.__module__}.{kind.__name__}; use stoker.{kind.__name__}"
    return f"{transform!r:.80}"


def checked_views(views: Iterable[Iterable[Transform]]) -> tuple[tuple[Transform, ...], ...]:
    """Returns the views of a loader as tuples; TypeError if one is not a sequence of transforms."""
    if not hasattr(views, "__iter__"):
        raise TypeError(f"views must be a sequence of lists of transforms, not {views!r:.80}")
    return tuple(checked(view, f"views[{place}]") for place, view in enumerate(views))


# --- kinds: each reads (name, value, option) and returns the value that the transform keeps ----------------


def _integer(name: str, value: Any, option: dict[str, Any]) -> int:
    return _checks.integer(name, value, option["low"], option["high"], option.get("step", 1))


def _sides(name: str, value: Any, option: dict[str, Any]) -> tuple[int, int]:
    size = _checks.size(name, value, option["high"])
    return (size[0], size[-1])


def _sides_or_batch(name: str, value: Any, option: dict[str, Any]) -> str | tuple[int, int]:
    return _checks.choice(name, value, ("batch",)) if isinstance(value, str) else _sides(name, value, option)


def _size(name: str, value: Any, option: dict[str, Any]) -> int | tuple[int, ...] | None:
    if value is None:
        return None
    size = _checks.size(name, value, option["high"])
    return size[0] if len(size) == 1 else size


def _side_or_sides(name: str, value: Any, option: dict[str, Any]) -> tuple[int, ...]:
    if not _checks.several(value) or isinstance(value, (str, bytes)):
        return (_integer(name, value, option),)
    sides = _checks.sequence(name, value)
    if not sides:
        raise InvalidArgumentError(f"{name} has 0 elements; it must have at least 1")
    return tuple(_integer(f"{name}[{place}]", side, option) for place, side in enumerate(sides))


def _taps(name: str, value: Any, option: dict[str, Any]) -> tuple[int, int]:
    width, height = (_integer(name, side, option) for side in _sides(name, value, option))
    return (width, height)


def _range(name: str, value: Any, option: dict[str, Any]) -> tuple[float, float]:
    return _checks.interval(name, value, option["low"], option["high"])


def _range_or_number(name: str, value: Any, option: dict[str, Any]) -> tuple[float, float]:
    return _range(name, value if _checks.several(value) else (value, value), option)


def _around(middle: float) -> Callable[[str, Any, dict[str, Any]], tuple[float, float]]:
    """A single number is a distance from the middle, as in torchvision."""

    def read(name: str, value: Any, option: dict[str, Any]) -> tuple[float, float]:
        if value is None:
            return (middle, middle)
        if not _checks.several(value):
            distance = _checks.real(name, value, 0)
            value = (max(middle - distance, option["low"] if middle else -distance), middle + distance)
        return _range(name, value, option)

    return read


def _spread(name: str, value: Any, option: dict[str, Any]) -> tuple[float, float]:
    if not _checks.several(value):
        distance = _checks.real(name, value, 0, option["high"])
        value = (-distance, distance)
    return _range(name, value, option)


def _pair(name: str, value: Any, option: dict[str, Any]) -> tuple[float, ...] | None:
    if value is None:
        return None if option["default"] is None else (option["default"],) * 2
    pair = _checks.reals(name, value, 2)
    return tuple(_checks.real(f"{name}[{n}]", v, option["low"], option["high"]) for n, v in enumerate(pair))


def _shear(name: str, value: Any, option: dict[str, Any]) -> tuple[float, ...]:
    if value is None:
        value = 0
    if not _checks.several(value):
        return (*_spread(name, value, option), 0.0, 0.0)
    ends = _checks.sequence(name, value)
    if len(ends) not in (2, 4):
        raise InvalidArgumentError(
            f"{name} has {counted(len(ends), 'element', 'elements')}; it must have 2 or 4"
        )
    along_y = _range(f"{name}[2:]", ends[2:], option) if len(ends) == 4 else (0.0, 0.0)
    return (*_range(name, ends[:2], option), *along_y)


def _affine_padding(name: str, value: Any, option: dict[str, Any]) -> str:
    if isinstance(value, str) and value == "nearest":
        raise InvalidArgumentError(
            f'{name} is "nearest"; Keras\' nearest is "edge", its reflect is "symmetric"'
        )
    return _checks.choice(name, value, option["choices"])


def _margins(name: str, value: Any, option: dict[str, Any]) -> tuple[int, int, int, int]:
    return _checks.margins(name, 0 if value is None else value, option["high"])


def _channels(name: str, value: Any, option: dict[str, Any]) -> tuple[float, ...]:
    return _checks.reals(name, value)


def _positive_channels(name: str, value: Any, option: dict[str, Any]) -> tuple[float, ...]:
    read = _checks.reals(name, value)
    for place, number in enumerate(read):
        if number <= 0:
            raise InvalidArgumentError(f"{name}[{place}] is {number:g}; it must be positive")
    return read


def _value_or_noise(name: str, value: Any, option: dict[str, Any]) -> str | tuple[float, ...]:
    if isinstance(value, str):
        return _checks.choice(name, value, ("random",))
    if _checks.several(value):
        values = _checks.sequence(name, value)
        return _checks.reals(name, values * 3 if len(values) == 1 else values, 3)
    return (_checks.real(name, value),) * 3


def _overlaps(name: str, value: Any, option: dict[str, Any]) -> tuple[float, ...] | None:
    if value is None:
        return None
    overlaps = _checks.sequence(name, value)
    if not overlaps:
        raise InvalidArgumentError(f"{name} has 0 elements; it must have at least 1")
    return tuple(_checks.real(f"{name}[{n}]", overlap, 0, 1e300) for n, overlap in enumerate(overlaps))


def _transforms(name: str, value: Any, option: dict[str, Any]) -> tuple[Transform, ...]:
    listed = checked(value, name)
    for place, transform in enumerate(listed):
        if transform._name() not in _CAN_BE_HELD:
            raise InvalidArgumentError(
                f"{name}[{place}] is {transform._name()}, and {name.partition('.')[0]} takes transforms that "
                f"resize, crop, pad, flip or change pixels: {', '.join(_CAN_BE_HELD)}"
            )
    return listed


_READ: dict[str, Callable[[str, Any, dict[str, Any]], Any]] = {
    "real": lambda name, value, option: _checks.real(name, value, option["low"], option["high"]),
    "integer": _integer,
    "boolean": lambda name, value, option: _checks.boolean(name, value),
    # also torchvision's enums
    "choice": lambda name, value, option: _checks.choice(
        name, getattr(value, "value", value), option["choices"]
    ),
    "box format": lambda name, value, option: _checks.box_format(name, value),
    "affine padding": _affine_padding,
    "interpolation": lambda name, value, option: _checks.interpolation(name, value, option["choices"]),
    "range": _range,
    "optional range": lambda name, value, option: _range(
        name, option["default"] if value is None else value, option
    ),
    "range or number": _range_or_number,
    "spread": _spread,
    "optional spread": lambda name, value, option: None if value is None else _spread(name, value, option),
    "shares": _pair,
    "shear": _shear,
    "center": _pair,
    "factor": _around(1),
    "shift": _around(0),
    "gain": _around(1),
    "turn": _around(0),
    "channels": _channels,
    "positive channels": _positive_channels,
    "sides": _sides,
    "sides or batch": _sides_or_batch,
    "width and height": _sides,
    "size": _size,
    "side or sides": _side_or_sides,
    "optional side": lambda name, value, option: (
        None if value is None else _checks.integer(name, value, 1, option["high"])
    ),
    "taps": _taps,
    "margins": _margins,
    "fill": lambda name, value, option: _checks.fill(name, option["default"] if value is None else value),
    "optional fill": lambda name, value, option: None if value is None else _checks.fill(name, value),
    "blended fill": lambda name, value, option: None if value is None else _checks.fill(name, value),
    "value or noise": _value_or_noise,
    "weights": lambda name, value, option: value,  # checked with the transforms
    "overlaps": _overlaps,
    "transforms": _transforms,
}

# Kinds that are not written as one key of the same name.
_WRITE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "sides": lambda size: {"height": size[0], "width": size[1]},
    "sides or batch": lambda size: (
        {"multiple": 32} if size == "batch" else {"height": size[0], "width": size[1]}
    ),
    "width and height": lambda size: {"width": size[0], "height": size[1]},
    "size": lambda size: (
        {"height": size[0], "width": size[1]} if isinstance(size, tuple) else {"size": size or 0}
    ),
    "taps": lambda taps: {"kernel_height": taps[1], "kernel_width": taps[0]},
    "shares": lambda shares: {"translate_x": shares[0], "translate_y": shares[1]},
    "shear": lambda shear: {"shear_x": shear[:2], "shear_y": shear[2:]},
    "center": lambda center: {"center_x": center[0], "center_y": center[1]} if center else {},
    "blended fill": lambda fill: {"fill": fill},
    "value or noise": lambda value: {"noise": True} if value == "random" else {"value": value},
    "transforms": lambda transforms: {"transforms": [transform._spec() for transform in transforms]},
}
