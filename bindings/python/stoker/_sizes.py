"""Batches of images whose sizes differ."""

from __future__ import annotations

from typing import Any

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._stoker import Tensor

# The axis of a batch that has the three channels.
_CHANNELS = {"NHWC": 3, "NCHW": 1}


def unpadded(images: Any, sizes: Any, layout: str = "NHWC") -> list[Any]:
    """Returns the images or masks of a padded batch (`PadTo`), each in its own size.

        for images, labels, sizes in loader:
            predictions = model(stoker.unpadded(images, sizes))

    Args:
        images: (rows, height, width, channels) or (rows, channels, height, width), of 1 or 3 channels, or
            masks, (rows, height, width) in both layouts: a column of a batch, or what was computed from it;
            an array or tensor that can be sliced (for a `Tensor`, the result of torch.from_dlpack).
        sizes: (rows, 2) integers, the height and width of each image: the batch's `image_size`.
        layout: "NHWC" or "NCHW", the loader's layout.

    Returns:
        A list of (height, width, channels), (channels, height, width) or (height, width), one for each row.
        They are slices: views of the batch's memory with NumPy and PyTorch, which they keep.

    Raises:
        TypeError: images is a `Tensor`.
        ValueError: an unknown layout, or one that does not match the shape of images; the number of sizes is
            not that of images.
    """
    kind = _checks.choice("layout", layout, ("NHWC", "NCHW"))
    if isinstance(images, Tensor):
        raise TypeError(
            "images is a stoker.Tensor, which cannot be sliced; give what torch.from_dlpack makes of it"
        )
    _check_channels(images, kind)
    if len(images) != len(sizes):
        raise InvalidArgumentError(f"{len(images)} images, but {len(sizes)} sizes; give both of one batch")
    rows = zip(images, sizes.tolist() if hasattr(sizes, "tolist") else sizes)
    return [
        image[:height, :width] if kind == "NHWC" or len(image.shape) == 2 else image[:, :height, :width]
        for image, (height, width) in rows
    ]


def _check_channels(images: Any, layout: str) -> None:
    """Checks that the shape is that of masks, or has one or three channels where the layout has them.

    A list has no shape. Three sides that end with 3 are a single image.
    """
    shape = getattr(images, "shape", None)
    if shape is None or (len(shape) == 3 and shape[2] != 3):
        return
    sides = tuple(shape)
    fits = [kind for kind, axis in _CHANNELS.items() if len(sides) == 4 and sides[axis] in (1, 3)]
    if layout in fits:
        return
    advice = "give (rows, height, width, 3) or (rows, 3, height, width), or masks as (rows, height, width)"
    if fits:
        advice = f'give layout="{fits[0]}"'
    raise InvalidArgumentError(f'images of shape {sides} are not of layout "{layout}"; {advice}')
