"""Checks arguments where they are given: the message names the option."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import numbers
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._errors import DataLossError, InvalidArgumentError, counted

MOST_PIXELS = 65535  # of a side: no JPEG is larger


def refuse_lfs_pointer(path: str | os.PathLike[Any]) -> None:
    """Raises DataLossError for a Git LFS pointer, as core/system/file_kind.h does."""
    begin = b"version https://git-lfs.github.com/spec/"
    with open(path, "rb") as file:
        is_one = file.read(len(begin)) == begin
    if is_one:
        cause = "a Git LFS pointer, not the file that it points to"
        raise DataLossError(cause, os.fsdecode(path), 0, "Run `git lfs pull` in its repository")


def integer(name: str, value: Any, low: int, high: int, step: int = 1) -> int:
    """Returns a whole number of low, low + step, …, high: int or NumPy's integers; not bool, not 3.0."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {_kind(value)}") from None
    if not low <= number <= high or (number - low) % step:
        values = f"{low} or {high}" if low + step == high else f"{low}, {low + step}, … or {high}"
        values = f"between {low} and {high}" if step == 1 else values
        raise InvalidArgumentError(f"{name} is {number}; it must be {values}")
    return number


def boolean(name: str, value: Any) -> bool:
    """Returns True or False, also from NumPy's bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {_kind(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Returns a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {_kind(value)}")
    return value


def is_unicode(value: str) -> bool:
    """Returns whether the text can be encoded: it has no lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def real(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Returns a finite number in [low, high], given as in `number`."""
    read = number(name, value)
    if not (math.isfinite(read) and low <= read <= high):
        between = "" if math.isinf(low) else f"; it must be between {low:g} and {high:g}"
        raise InvalidArgumentError(f"{name} is {read}{between or '; it must be finite'}")
    return read


def number(name: str, value: Any) -> float:
    """Returns a number, also from an array or a tensor (NumPy's, torch's, …) of one number."""
    try:
        read = value.item() if hasattr(value, "item") else value
        read = np.asarray(read).item() if hasattr(read, "__array__") else read
    except (RuntimeError, TypeError, ValueError):  # an array of several numbers
        read = None
    if not isinstance(read, numbers.Real) or isinstance(read, bool):
        raise TypeError(f"{name} must be a number, not {_kind(value)}")
    return float(read)


def reals(name: str, values: Any, count: int | None = None) -> tuple[float, ...]:
    """Returns `count` finite numbers, or any number of them from 1 on, of a list, a tuple or a 1-D array."""
    listed = sequence(name, values)
    if len(listed) != (count or max(1, len(listed))):
        raise InvalidArgumentError(
            f"{name} has {counted(len(listed), 'element', 'elements')}; it must have {count or 'at least 1'}"
        )
    return tuple(real(f"{name}[{i}]", value) for i, value in enumerate(listed))


def weights(name: str, values: Any, count: int, of: str = "transform") -> tuple[float, ...]:
    """Returns `count` numbers from 0 on, at least one of them positive, as transforms/spec/weights.cc
    checks them.
    """
    listed = sequence(name, values)
    if len(listed) != count:
        raise InvalidArgumentError(
            f"{name} has {counted(len(listed), 'element', 'elements')}; it must have {count}, one for each "
            f"{of}"
        )
    read = tuple(number(f"{name}[{index}]", value) for index, value in enumerate(listed))
    for index, weight in enumerate(read):
        if not 0 <= weight <= 1e300:  # limited, so that their sum is finite
            raise InvalidArgumentError(f"{name}[{index}] is {weight:g}; it must be a finite number from 0 on")
    if sum(read) == 0:
        raise InvalidArgumentError(f"{name} is 0 for every {of}; one must be positive")
    return read


def interval(name: str, values: Any, low: float, high: float) -> tuple[float, float]:
    """Returns (least, most), both in [low, high], in this order."""
    least, most = reals(name, values, 2)
    if not low <= least <= most <= high:
        raise InvalidArgumentError(
            f"{name} is ({least:g}, {most:g}); it must be (least, most), both between {low:g} and {high:g}"
        )
    return (least, most)


def several(value: Any) -> bool:
    """Returns whether the value is a list, a tuple or an array, and not a number."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) != 0


def choice(name: str, value: Any, names: Sequence[str]) -> str:
    """Returns the value, which must be one of `names`."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {_kind(value)}")
    if value not in names:
        listed = ", ".join(repr(n) for n in names)
        raise InvalidArgumentError(f"{name} is {value!r}; it must be one of {listed}")
    return value


def box_format(name: str, value: Any) -> str:
    """Returns the format of boxes: also from upper case, as torchvision has it, and from torchvision's
    enum.
    """
    value = getattr(value, "value", value)
    return choice(name, value.lower() if isinstance(value, str) else value, ("xyxy", "xywh", "cxcywh"))


# torchvision's names by Pillow's numbers, and torchvision's other name for Pillow's filter.
_INTERPOLATIONS: dict[Any, str] = {
    0: "nearest",
    1: "lanczos",
    2: "bilinear",
    3: "bicubic",
    4: "box",
    5: "hamming",
    "nearest-exact": "nearest",
}


def interpolation(name: str, value: Any, names: Sequence[str]) -> str:
    """Returns one of `names`, given as such, as torchvision's InterpolationMode or as Pillow's Resampling."""
    given = getattr(value, "value", value)
    if isinstance(given, (int, str)) and not isinstance(given, bool):
        given = _INTERPOLATIONS.get(given, given)
    if given in names:
        return str(given)
    if not isinstance(given, str):
        sides = "; a height and a width are one argument: (height, width)" if isinstance(given, int) else ""
        raise TypeError(f"{name} must be one of torchvision's InterpolationMode, not {_kind(value)}{sides}")
    *most, last = [repr(n) for n in names]
    hint = ""
    if given == "area" and "box" in names:
        hint = "; 'box' averages whole pixels, while OpenCV's and TensorFlow's area also weighs parts"
    raise InvalidArgumentError(
        f"{name} is {given!r:.50}; {name.partition('.')[0]} has {', '.join(most)} or {last} only{hint}"
    )


def dtype(name: str, value: Any, names: Sequence[str]) -> str:
    """Returns the type of images: given as a name, or as the object of NumPy, TensorFlow or JAX for that
    type.
    """
    if isinstance(value, (type, np.dtype)) or hasattr(value, "as_numpy_dtype"):
        with contextlib.suppress(TypeError):  # some other class
            value = np.dtype(getattr(value, "as_numpy_dtype", value)).name
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a dtype, not {_kind(value)}")
    return choice(name, value, names)


# The types of arrays that batches can have, by NumPy's names.
ELEMENTS = (
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
)


def numpy_has(dtype: str) -> None:
    """Raises ImportError if NumPy has no such type here."""
    if dtype == "bfloat16" and importlib.util.find_spec("ml_dtypes") is None:
        raise ImportError("dtype is 'bfloat16', which NumPy has from ml_dtypes; try: pip install ml_dtypes")


def epoch(value: Any, name: str = "epoch") -> int:
    """Returns the number of an epoch."""
    return integer(name, value, 0, 2**32 - 1)


def sequence(name: str, values: Any) -> list[Any]:
    """Returns the elements of a list, a tuple or a 1-D array."""
    if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") and hasattr(values, "__iter__")):
        raise TypeError(f"{name} must be a sequence, not {_kind(values)}")
    return list(values)


def size(name: str, value: Any, most: int) -> tuple[int, ...]:
    """Returns `(n,)` for an int or a sequence of one, `(height, width)` for a sequence of two; each 1 to
    `most`.
    """
    if not several(value) or isinstance(value, (str, bytes)):
        return (integer(name, value, 1, most),)
    sides = sequence(name, value)
    if len(sides) not in (1, 2):
        raise InvalidArgumentError(f"{name} is {value!r}; it must be an int or (height, width)")
    return tuple(integer(f"{name}[{i}]", side, 1, most) for i, side in enumerate(sides))


def fill(name: str, value: Any) -> tuple[int, int, int]:
    """Returns (red, green, blue), each 0 to 255, from an int, or a sequence of one or three."""
    channels = sequence(name, value) if several(value) else [value]
    if len(channels) not in (1, 3):
        raise InvalidArgumentError(f"{name} is {value!r:.50}; it must be an int or (red, green, blue)")
    # torchvision's users write 127.0, too.
    whole = [int(c) if isinstance(c, float) and c.is_integer() else c for c in channels]
    read = [integer(name, channel, 0, 255) for channel in whole]
    return (read[0], read[len(read) // 2], read[-1])


def margins(name: str, value: Any, most: int) -> tuple[int, int, int, int]:
    """Returns (left, top, right, bottom) from an int, (left and right, top and bottom), or all four."""
    sides = sequence(name, value) if several(value) else [value]
    if len(sides) not in (1, 2, 4):
        raise InvalidArgumentError(f"{name} is {value!r:.50}; it must be an int, or a sequence of 2 or 4")
    read = [integer(name, side, 0, most) for side in sides]
    left, top = read[0], read[min(1, len(read) - 1)]
    return (left, top, read[2], read[3]) if len(read) == 4 else (left, top, left, top)


def _kind(value: Any) -> str:
    return f"{value!r:.50} ({type(value).__name__})"
