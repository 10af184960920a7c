"""Values of a sample's objects: values of `files(columns=…)`, and of sources that read them from files."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._ragged import Ragged

__all__ = ["Boxes", "Keypoints", "PerObject"]

_MOST_POINTS = 2**16 - 1

Array = npt.NDArray[Any]


class Objects:
    """The common part of the classes below."""

    _kind = ""
    _format = "xyxy"
    _normalized = False
    _dtype: str | None = None  # to which values are converted; None means they are not

    def __init__(self, values: Any) -> None:
        unordered = isinstance(values, (bytes, dict, set, frozenset))
        if unordered or not isinstance(values, Iterable):
            self._refuse(values)
        self.values: Any = values  # a str is the key of values in a file

    def _refuse(self, values: Any) -> None:
        raise TypeError(
            f"stoker.{type(self).__name__} takes a list of arrays, one for each sample, or a pair of values "
            f"and offsets, not {values!r:.80}"
        )

    def keyed(self) -> list[str]:
        """Returns the kind, the key and the options of a column that is read from a file
        (io/annotations/keyed_column.h).
        """
        return [self._kind, self.values, *self._keyed_options()]

    def _keyed_options(self) -> list[str]:
        return ["normalized"] if self._normalized else []

    def converted(self, described: str) -> Objects:
        """Returns a copy whose values are a `Ragged` in C order. `described`: the column, for messages."""
        if isinstance(self.values, str):
            self._refuse(self.values)
        made = copy.copy(self)
        made.values = self._rows(described)
        return made

    def native(self, described: str) -> tuple[Any, ...]:
        """Returns the column as the library takes it."""
        rows = self._rows(described)
        flipped = self._flipped(described, rows.values.shape[1] if rows.values.ndim > 1 else 0)
        return self._kind, rows.values, rows.offsets, self._format, self._normalized, flipped

    def _rows(self, described: str) -> Ragged[Array]:
        values, offsets = _concatenated(described, self.values, self._dtype)
        values = self._shaped(values)
        if values.dtype.name not in _checks.ELEMENTS:
            kinds = ", ".join(_checks.ELEMENTS)
            raise TypeError(f"{described} has objects of {values.dtype}; they must be of {kinds}")
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        return Ragged(np.ascontiguousarray(values), offsets)

    def _shaped(self, values: Array) -> Array:
        """Returns the values; if no sample has an object, with the shape of the column's."""
        return values

    def _flipped(self, described: str, points: int) -> list[int]:
        """Returns the point that each one becomes when the image is mirrored; empty if they stay."""
        return []

    def _options(self) -> str:
        return ""

    def __repr__(self) -> str:
        samples = _number_of_samples(self.values)
        counted = "" if samples is None else f"<{samples} samples>"
        if isinstance(self.values, str):
            counted = repr(self.values)
        return f"stoker.{type(self).__name__}({counted}{self._options()})"


class Boxes(Objects):
    """The boxes of each sample's objects: a column of `files`.

        boxes = [[[10, 20, 60, 80]], np.empty((0, 4))]  # of one object, and of none
        source = stoker.files(["photos/a.jpg", "photos/b.jpg"], columns={"boxes": stoker.Boxes(boxes)})

    Transforms move boxes as they move the image's pixels, with the same random draw (docs/boxes.md). The
    column of a batch is a `Ragged` of float32, (objects, 4), in the format of the source, in pixels of the
    batch's image. Boxes are of images as viewed, turned as their EXIF tags say.

    Args:
        values: a list of arrays, one for each sample, (objects, 4), where a sample may have none; or a pair
            (values, offsets) of all boxes and of where those of each sample begin, with their number at the
            end, as a `Ragged` has. For a source that reads them from its file (`manifest`): their key there.
        format: "xyxy" (left, top, right, bottom), "xywh" (left, top, width, height, as in COCO), or "cxcywh"
            (centre, width, height, as in YOLO).
        normalized: they are fractions of the image's width and height, from 0 to 1, instead of pixels.

    Coordinates may be outside of the image. `files` does not check whether they are infinite, NaN or
    reversed, but refuses a finite number that float32 cannot hold; `SanitizeBoundingBoxes` drops boxes that
    are not finite. `manifest`, `tar` and `tfrecord` refuse coordinates that are not finite, boxes that end
    before they begin, and negative widths and heights: leave out padding boxes, such as [-1, -1, -1, -1].
    """

    _kind = "boxes"
    _dtype = "float32"

    def __init__(self, values: Any, format: str = "xyxy", normalized: bool = False) -> None:
        super().__init__(values)
        self.format = self._format = _checks.box_format("format", format)
        self.normalized = self._normalized = _checks.boolean("normalized", normalized)

    def _shaped(self, values: Array) -> Array:
        return values if len(values) else np.empty((0, 4), np.float32)

    def _keyed_options(self) -> list[str]:
        return [self.format, *super()._keyed_options()]

    def _options(self) -> str:
        return f", format={self.format!r}" + (", normalized=True" if self.normalized else "")


class Keypoints(Objects):
    """The keypoints of each sample's objects: a column of `files`.

        points = [[[[30, 40, 2], [25, 35, 2], [35, 35, 1]]], []]  # nose and eyes of one object, and none
        pose = stoker.Keypoints(points, flip_pairs=[(1, 2)])  # the left and the right eye
        source = stoker.files(["photos/a.jpg", "photos/b.jpg"], columns={"pose": pose})

    Each point is x, y and its visibility, which is 0 where the point is not known, as in COCO. Transforms
    move points as pixels, and make those 0 that they move out of the image (docs/boxes.md). Points are
    continuous, as boxes are: the centre of the first pixel is (0.5, 0.5).

    Args:
        values: as of `Boxes`, of (objects, points, 3).
        flip_pairs: the points that are each other's mirror images, as (left, right), by their numbers from 0:
            they are swapped when an image is mirrored. None: no points are.
        normalized: x and y are fractions of the image's width and height.
    """

    _kind = "keypoints"
    _dtype = "float32"

    def __init__(self, values: Any, flip_pairs: Any = None, normalized: bool = False) -> None:
        super().__init__(values)
        self.flip_pairs = None if flip_pairs is None else _pairs(flip_pairs)
        self.normalized = self._normalized = _checks.boolean("normalized", normalized)

    def _shaped(self, values: Array) -> Array:
        if len(values) or (values.ndim == 3 and values.shape[2] == 3):
            return values
        points = 1 + max((point for pair in self.flip_pairs or () for point in pair), default=0)
        return np.empty((0, points, 3), np.float32)

    def _flipped(self, described: str, points: int) -> list[int]:
        if not self.flip_pairs:
            return []
        if points > _MOST_POINTS:
            raise InvalidArgumentError(
                f"{described} has {points} points for an object; flip_pairs takes at most {_MOST_POINTS}"
            )
        flipped = list(range(points))
        for left, right in self.flip_pairs:
            if max(left, right) >= points:
                raise InvalidArgumentError(
                    f"{described} has {points} points, and a pair ({left}, {right}) in flip_pairs; points "
                    "are numbered from 0"
                )
            flipped[left], flipped[right] = right, left
        return flipped

    def _keyed_options(self) -> list[str]:
        return [*(f"{left}:{right}" for left, right in self.flip_pairs or ()), *super()._keyed_options()]

    def _options(self) -> str:
        pairs = f", flip_pairs={self.flip_pairs!r:.80}" if self.flip_pairs else ""
        return pairs + (", normalized=True" if self.normalized else "")


class PerObject(Objects):
    """Further values of each sample's objects, such as their classes: a column of `files`.

        boxes, labels = [[[10, 20, 60, 80]], []], [[3], []]
        columns = {"boxes": stoker.Boxes(boxes), "labels": stoker.PerObject(labels)}
        source = stoker.files(["photos/a.jpg", "photos/b.jpg"], columns=columns)

    Each object has a number or an array, of the same type and shape for all objects. It is kept or dropped
    with its object, and never changed. A sample has the same number of objects in all columns of objects.

    Args:
        values: as of `Boxes`, of (objects, …): bool, an integer of 8 to 64 bits, float16, bfloat16, float32
            or float64. Samples of different types are refused: no type holds all integers and fractions.
        dtype: one of these types, to which values are converted: those that it cannot
            hold are refused, and floats are rounded. None: the type of the values, and int64 for a list
            in which no sample has an object, so that a part of a data set without objects has the columns
            of the others.
    """

    _kind = "object"

    def __init__(self, values: Any, dtype: Any = None) -> None:
        super().__init__(values)
        self.dtype = self._dtype = None if dtype is None else _checks.dtype("dtype", dtype, _checks.ELEMENTS)
        if self._dtype is not None:
            _checks.numpy_has(self._dtype)

    def _keyed_options(self) -> list[str]:
        return [] if self._dtype is None else [self._dtype]

    def _options(self) -> str:
        return "" if self._dtype is None else f", dtype={self._dtype!r}"


def _concatenated(described: str, values: Any, dtype: str | None) -> tuple[Array, Array]:
    """Returns all objects, of the type `dtype` if it is not None, and the offsets of those of each sample."""
    if isinstance(values, Ragged):
        return _split_by(described, values.values, values.offsets, dtype)
    if isinstance(values, tuple):
        if len(values) != 2:
            raise InvalidArgumentError(
                f"{described} has a tuple of {len(values)}; give a list of arrays, or a pair of values and "
                "offsets"
            )
        return _split_by(described, *values, dtype)
    return _joined(described, list(values), dtype)


def _split_by(described: str, values: Any, offsets: Any, dtype: str | None) -> tuple[Array, Array]:
    objects = _array(f"{described}, its values,", values)
    if not len(objects) and not hasattr(values, "dtype"):
        objects = objects.astype(np.int64)  # NumPy's type of an empty list is float64
    if dtype is not None:
        objects = _converted(described, objects, dtype)
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or not len(bounds):
        raise TypeError(f"{described} must have offsets that are a list of integers, not {offsets!r:.80}")
    if int(bounds[0]) != 0 or int(bounds[-1]) != len(objects):
        raise InvalidArgumentError(
            f"{described} has offsets from {bounds[0]} to {bounds[-1]}; they must begin with 0 and end with "
            f"the number of its objects, {len(objects)}"
        )
    return objects, bounds.astype(np.int64)  # a copy


def _joined(described: str, samples: list[Any], dtype: str | None) -> tuple[Array, Array]:
    rows = [_array(f"{described}[{i}]", sample) for i, sample in enumerate(samples)]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    full = [i for i, row in enumerate(rows) if len(row)]
    if not full:  # a sample without objects often has an array without their type and shape
        empty = max(rows, key=lambda row: row.ndim, default=np.empty(0))
        return empty.astype(dtype or np.int64), offsets
    first = rows[full[0]]
    for i in full:
        if rows[i].shape[1:] != first.shape[1:]:
            raise InvalidArgumentError(
                f"{described} has objects of the shape {rows[i].shape[1:]} in sample {i}, and of "
                f"{first.shape[1:]} in sample {full[0]}"
            )
        if dtype is not None:
            rows[i] = _converted(f"{described}[{i}]", rows[i], dtype)
        elif rows[i].dtype.newbyteorder("=") != first.dtype.newbyteorder("="):
            raise InvalidArgumentError(
                f"{described} has objects of {rows[i].dtype} in sample {i}, and of {first.dtype} in sample "
                f"{full[0]}",
                advice="Say which type to convert them to: PerObject(values, dtype=…)",
            )
    return np.concatenate([rows[i] for i in full]), offsets


def _converted(described: str, values: Array, dtype: str) -> Array:
    """Returns values of another type. ValueError: the type cannot hold one of them; floats are rounded."""
    with np.errstate(all="ignore"):
        made = values.astype(dtype, copy=False)
        if made.dtype == values.dtype:
            return made
        if made.dtype.kind in "biu":
            wrong = (made.astype(values.dtype) != values) | ((made < 0) != (values < 0))
            if values.dtype.kind not in "biu" and made.dtype.kind != "b":  # 2**63 may become 2**63 - 1
                wrong |= values >= float(int(np.iinfo(made.dtype).max) + 1)
        elif values.dtype.kind == "b":
            raise TypeError(f"{described} is an array of bool; it must be of numbers")
        else:
            wrong = ~np.isfinite(made) & np.isfinite(values)
    if wrong.any():
        raise InvalidArgumentError(f"{described} has {values[wrong].flat[0]}, which {dtype} cannot hold")
    return made


def _array(described: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of several shapes
        raise InvalidArgumentError(f"{described} is not an array of objects: {error}") from None
    if array.ndim == 0:
        raise TypeError(f"{described} must be an array of objects, not {values!r:.80}")
    if array.dtype.name not in _checks.ELEMENTS:
        raise TypeError(f"{described} is an array of {array.dtype}; it must be of numbers")
    return array


def _pairs(given: Any) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    seen: set[int] = set()
    for i, pair in enumerate(_checks.sequence("flip_pairs", given)):
        name = f"flip_pairs[{i}]"
        numbers = _checks.sequence(name, pair)
        if len(numbers) != 2:
            raise InvalidArgumentError(f"{name} has {len(numbers)} points; it must have 2")
        left, right = (_checks.integer(name, number, 0, _MOST_POINTS - 1) for number in numbers)
        if left == right or seen & {left, right}:
            raise InvalidArgumentError(f"{name} is ({left}, {right}); a point is in one pair at most")
        seen |= {left, right}
        pairs.append((left, right))
    return pairs


def _number_of_samples(values: Any) -> int | None:
    if isinstance(values, tuple) and len(values) == 2:
        values = values[1]
        return len(values) - 1 if hasattr(values, "__len__") else None
    return len(values) if hasattr(values, "__len__") else None
