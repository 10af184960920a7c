"""Batches of images whose sizes differ."""

from __future__ import annotations

from typing import Any

from stoker import _checks
from stoker._errors import InvalidArgumentError


def unpadded(images: Any, sizes: Any, layout: str = "NHWC") -> list[Any]:
    """The images of a padded batch (`PadTo`), each in its own size.

        for images, labels, sizes in loader:
            predictions = model(stoker.unpadded(images, sizes))

    Args:
        images: (rows, height, width, 3) or (rows, 3, height, width): the first column of a batch, or what
            became of it; an array or tensor that can be sliced.
        sizes: (rows, 2) integers, the height and width of each image: the batch's `image_size`.
        layout: "NHWC" or "NCHW", as of the loader.

    Returns:
        A list of (height, width, 3) or (3, height, width), one for each row. They are slices: views of the
        batch's memory with NumPy and PyTorch, which they keep.

    Raises:
        ValueError: another layout, or not as many sizes as images.
    """
    kind = _checks.choice("layout", layout, ("NHWC", "NCHW"))
    if len(images) != len(sizes):
        raise InvalidArgumentError(f"{len(images)} images, but {len(sizes)} sizes; give both of one batch")
    rows = zip(images, sizes.tolist() if hasattr(sizes, "tolist") else sizes)
    if kind == "NHWC":
        return [image[:height, :width] for image, (height, width) in rows]
    return [image[:, :height, :width] for image, (height, width) in rows]
