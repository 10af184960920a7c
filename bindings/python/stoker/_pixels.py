"""Pixels that a program has in memory, in the form in which the library takes images of any size."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "LAB")


def encoded(image: Any) -> bytes | None:
    """Returns the pixels of an image as a PNG that is not compressed, or None if it has none.

    Pixels are an image of Pillow; an array of uint8 (height, width, 3), (height, width, 1) or (height,
    width); a tensor of PyTorch, of uint8, (3, height, width), (1, height, width) or (height, width). Neither
    library is imported. The decoder takes the PNG as it takes files, so sizes may differ and limits hold.
    While it is made, it takes three times the pixels' bytes, which are not in the memory budget.

    Raises:
        TypeError: pixels of another type or shape.
    """
    if hasattr(image, "getbands") and hasattr(image, "convert"):
        return _png(_of_pillow(image))
    if not hasattr(image, "__array__"):
        return None
    array = np.asarray(image)
    if array.ndim < 2:
        return None  # an encoded image
    is_tensor = hasattr(image, "permute") and hasattr(image, "detach")
    return _png(_as_rows(array, is_tensor))


def _of_pillow(image: Any) -> npt.NDArray[np.uint8]:
    if image.mode not in _EIGHT_BITS:
        raise TypeError(
            f'its image has Pillow\'s mode {image.mode!r}; convert it to "RGB" or "L", and scale it before '
            "that, if its values do not fit into 8 bits"
        )
    if 0 in image.size:
        raise TypeError(f"its image of Pillow has {image.size[0]} x {image.size[1]} pixels")
    return np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))


def _as_rows(array: npt.NDArray[Any], is_tensor: bool) -> npt.NDArray[np.uint8]:
    """Returns pixels as (height, width, 3) or (height, width)."""
    what = f"its image is {'a tensor' if is_tensor else 'an array'} of {array.dtype} {array.shape}"
    if array.dtype != np.uint8:
        raise TypeError(
            f"{what}; pixels are uint8, 0 to 255: leave out what makes others of them (ToTensor, ToDtype), "
            "and give the loader Normalize or dtype="
        )
    channels = array.shape[0 if is_tensor else -1] if array.ndim == 3 else 1
    if array.ndim > 3 or channels not in (1, 3) or array.size == 0:
        order = "(channels, height, width)" if is_tensor else "(height, width, channels)"
        raise TypeError(f"{what}; pixels are {order} with 1 or 3 channels, or (height, width)")
    if array.ndim == 3 and is_tensor:
        array = array.transpose(1, 2, 0)
    return array[:, :, 0] if array.ndim == 3 and channels == 1 else array


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # before each row is its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    color = 2 if pixels.ndim == 3 else 0
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return b"".join(
        [
            _SIGNATURE,
            *_chunk(b"IHDR", header),
            *_chunk(b"IDAT", zlib.compress(rows.data, 0)),
            *_chunk(b"IEND", b""),
        ]
    )


def _chunk(name: bytes, data: bytes) -> Iterator[bytes]:
    yield struct.pack(">I", len(data))
    yield name
    yield data
    yield struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
