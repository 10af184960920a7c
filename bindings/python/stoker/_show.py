"""show: draws a batch, to be looked at."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _stoker
from stoker._errors import InvalidArgumentError
from stoker._ragged import Ragged

_MOST = 4096  # kMaxSheetRows


class Sheet:
    """A contact sheet, which `show` returns. In a notebook it shows itself.

    Attributes:
        png: the file, as bytes.
        labels: the text of each image's label, from left to right and from top to bottom. Empty if the
            batch has no labels.
    """

    def __init__(self, png: bytes, labels: list[str]) -> None:
        self.png = png
        self.labels = labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the PNG file; an existing file is replaced."""
        pathlib.Path(path).write_bytes(self.png)

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"stoker.Sheet({len(self.png)} bytes of PNG, labels={self.labels!r})"


def show(
    batch: Any,
    *,
    columns: int = 8,
    most: int = 32,
    classes: Sequence[str] | npt.NDArray[Any] | None = None,
    box_format: str = "xyxy",
) -> Sheet:
    """Draws the first images of a batch as a contact sheet, to see what transforms do before training.

        stoker.show(next(iter(loader)), classes=loader.classes)  # in a notebook
        stoker.show(batch).save("sheet.png")

    Masks are drawn over their images with half opacity, in the colours of PASCAL VOC: 0, the background, has
    none; 1 is dark red, 2 dark green, and 255, which is ignored by convention, nearly white. Of values of 16
    bits the lower 8 choose the colour; where these are 0, it is nearly white.

    Objects are drawn over both: the outlines of boxes, and a dot for each keypoint whose visibility is not 0,
    in the colour of the object's label, or nearly white for label 0, and white without labels.

    Images of floats and uint16 are stretched: the least value of the batch becomes black and the greatest
    white. So normalized images have other colours than their photographs.

    Args:
        batch: what a loader gives: a `Batch`, a tuple or a dict, or images alone. Arrays of NumPy, JAX,
            PyTorch and TensorFlow are taken, if they are on the host. Images are uint8, uint16 or floating
            point, (rows, height, width, channels) or (rows, channels, height, width), of 1 or 3 channels,
            or 4, whose alpha is not shown. In a `Batch` or a dict the columns are "image", "mask" and
            "label"; in a tuple the images come first, masks are integers of shape (rows, height, width),
            and labels integers of shape (rows,) or weights of shape (rows, classes). In both, columns of
            objects are `Ragged` (or tf.RaggedTensor): boxes are floats of shape (objects, 4), keypoints
            (objects, points, 3), and labels "labels", or the first integers of shape (objects,).
        columns: images next to each other, 1 to 4096.
        most: the largest number of images, 1 to 4096.
        classes: the names of the classes, for `Sheet.labels`.
        box_format: "xyxy", "xywh" or "cxcywh", as of the source's `Boxes`.

    Raises:
        TypeError: what is given is not an array on the host.
        ValueError: another shape or type; a side of 3 pixels where the channels may be, so that they cannot
            be told; masks with values outside of 0 to 65,535; a sheet of more than 100 million pixels.
    """
    _checks.integer("columns", columns, 1, _MOST)
    _checks.integer("most", most, 1, _MOST)
    names = None if classes is None else [str(name) for name in _checks.sequence("classes", classes)]
    image, mask, label = _columns_of(batch)
    images = _bytes_of(image, most)
    masks = None if mask is None else _masks_of(mask, images)
    objects = _objects_of(batch, len(images), _checks.box_format("box_format", box_format))
    png = _stoker.draw_sheet(images, masks, columns, objects)
    return Sheet(png, [] if label is None else _texts(label[: len(images)], names))


def _columns_of(
    batch: Any,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
    """Returns the images, and the masks and labels if there are any."""
    if hasattr(batch, "keys"):  # a dict, or a Batch, whose first column may have another name
        names = list(batch.keys())
        first = names[0] if isinstance(batch, tuple) else "image"
        if first not in names:
            raise InvalidArgumentError(f'the batch has no "image"; it has {", ".join(map(repr, names))}')
        dense = [name for name in names if not _is_ragged(batch[name])]
        found = {name: _host(name, batch[name]) for name in ("mask", "label") if name in dense}
        return _host(first, batch[first]), found.get("mask"), _labels_or_none(found.get("label"))
    if not isinstance(batch, (tuple, list)):
        return _host("batch", batch), None, None
    if not batch:
        raise InvalidArgumentError("the batch is empty")
    image = _host("batch[0]", batch[0])
    others = [
        _host(f"batch[{i}]", column)
        for i, column in enumerate(batch[1:], 1)
        if not _is_list(column) and not _is_ragged(column)
    ]
    masks = [other for other in others if other.ndim == 3 and other.dtype.kind in "uib"]
    labels = [other for other in others if _labels_or_none(other) is not None]
    return image, next(iter(masks), None), next(iter(labels), None)


def _is_list(column: Any) -> bool:
    return isinstance(column, (list, tuple))  # of strings


def _is_ragged(column: Any) -> bool:
    return isinstance(column, Ragged) or hasattr(column, "row_splits")


def _objects_of(batch: Any, rows: int, box_format: str) -> tuple[Any, ...] | None:
    """Returns what the library draws of the first rows: offsets, boxes, points and labels; or None."""
    if hasattr(batch, "keys"):
        names = list(batch.keys())
        named = [(str(name), batch[name]) for name in names]
    else:
        named = [(f"batch[{i}]", column) for i, column in enumerate(batch)] if _is_list(batch) else []
    named.sort(key=lambda pair: pair[0] not in ("boxes", "labels", "keypoints"))
    columns = [_ragged_on_host(name, column) for name, column in named if _is_ragged(column)]

    def first(fits: Any) -> Any:
        return next((column for column in columns if fits(column.values)), None)

    boxes = first(lambda values: values.ndim == 2 and values.shape[1] == 4 and values.dtype.kind == "f")
    points = first(lambda values: values.ndim == 3 and values.shape[2] == 3 and values.dtype.kind == "f")
    labels = first(lambda values: values.ndim == 1 and values.dtype.kind in "iu")
    drawn = boxes or points
    if drawn is None:
        return None
    for column in (boxes, points, labels):
        if column is not None and not np.array_equal(column.offsets, drawn.offsets):
            raise InvalidArgumentError("the columns of objects have different numbers of them")
    if len(drawn) < rows:
        raise InvalidArgumentError(f"the batch has {rows} images, and objects of {len(drawn)}")
    return (
        np.ascontiguousarray(drawn.offsets[: rows + 1]),
        None if boxes is None else np.ascontiguousarray(boxes.values, np.float32),
        box_format,
        None if points is None else np.ascontiguousarray(points.values, np.float32),
        None if labels is None else np.ascontiguousarray(labels.values).astype(np.int64),
    )


def _ragged_on_host(name: str, column: Any) -> Any:
    """Returns a column as a `Ragged` of NumPy's arrays; raises ValueError if its offsets are wrong."""
    offsets = column.offsets if isinstance(column, Ragged) else column.row_splits
    values, bounds = _host(name, column.values), _host(name, offsets).astype(np.int64)
    falls = bounds.ndim != 1 or not len(bounds) or bounds[0] < 0 or (np.diff(bounds) < 0).any()
    if falls or bounds[-1] > len(values):
        raise InvalidArgumentError(f"{name} has wrong offsets")
    return Ragged(values, bounds)


def _labels_or_none(column: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    if column is None:
        return None
    numbers = column.ndim == 1 and column.dtype.kind in "uib"
    weights = column.ndim == 2 and column.dtype.kind == "f"
    return column if numbers or weights else None


def _host(name: str, column: Any) -> npt.NDArray[Any]:
    if not (hasattr(column, "__array__") or hasattr(column, "__dlpack__")):
        raise TypeError(f"{name} must be an array, not {type(column).__name__}")
    try:
        return np.asarray(column) if hasattr(column, "__array__") else np.from_dlpack(column)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name} is not an array on the host that NumPy can read: {error}") from error


def _bytes_of(image: npt.NDArray[Any], most: int) -> npt.NDArray[np.uint8]:
    """Returns the first `most` images as uint8 (rows, height, width, 3)."""
    if image.ndim != 4 or image.shape[0] == 0:
        raise InvalidArgumentError(
            f"images have shape {image.shape}; it must be (rows, height, width, 3) or "
            "(rows, 3, height, width)"
        )
    axes = [axis for axis in (1, 3) if image.shape[axis] == 3]
    axes = axes or [axis for count in (1, 4) for axis in (3, 1) if image.shape[axis] == count][:1]
    if len(axes) != 1:
        cause = (
            "no axis of one, three or four channels"
            if not axes
            else "two axes of length 3, either of which may have channels"
        )
        raise InvalidArgumentError(f"images have shape {image.shape}, with {cause}")
    shown = image[:most] if axes == [3] else np.moveaxis(image[:most], 1, 3)
    if image.dtype != np.uint8:
        shown = _stretched(shown, image)
    return np.ascontiguousarray(np.broadcast_to(shown[..., :3], (*shown.shape[:3], 3)))  # without alpha


def _stretched(shown: npt.NDArray[Any], image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Returns fractions, or uint16, as bytes: 0 is the least value of `image` and 255 the greatest."""
    if image.dtype.kind != "f" and image.dtype.name not in ("bfloat16", "uint16"):
        raise InvalidArgumentError(f"images are {image.dtype}; they must be uint8, uint16 or floating point")
    every = image.astype(np.float32, copy=False)
    finite = every[np.isfinite(every)]
    least, greatest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    values = np.nan_to_num(shown.astype(np.float64), nan=least, posinf=greatest, neginf=least)
    return np.rint((values - least) * (255 / ((greatest - least) or 1))).astype(np.uint8)


def _masks_of(mask: npt.NDArray[Any], images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    if mask.ndim != 3 or mask.shape[1:] != images.shape[1:3] or len(mask) < len(images):
        raise InvalidArgumentError(
            f"masks have shape {mask.shape}; these images need {images.shape[:3]}, one value for each pixel"
        )
    shown = mask[: len(images)]
    if shown.dtype.kind not in "uib":
        raise InvalidArgumentError(f"masks are {shown.dtype}; they must be integers")
    least, greatest = shown.min(), shown.max()
    if least < 0 or greatest > 65_535:
        raise InvalidArgumentError(f"masks have values {least} to {greatest}; 0 to 65535 can be drawn")
    return np.ascontiguousarray(shown, np.uint16)


def _texts(labels: npt.NDArray[Any], classes: list[str] | None) -> list[str]:
    """Returns what the command prints (bindings/cli/show/labels.h)."""

    def name(number: int) -> str:
        return classes[number] if classes is not None and 0 <= number < len(classes) else str(number)

    if labels.ndim == 1:
        return [name(int(number)) for number in labels]
    return [
        " + ".join(
            name(i) + ("" if weight == 1 else f" {weight:.2f}") for i, weight in enumerate(row) if weight
        )
        for row in labels.tolist()
    ]
