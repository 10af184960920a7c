"""decode_image, decode_images: whole images as NumPy arrays, without a loader."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _options, _stoker
from stoker._errors import InvalidArgumentError
from stoker._explain import spec_of
from stoker._runtime import Runtime
from stoker._transforms import Resize

_MODES = ("rgb", "gray", "rgba", "unchanged")
_LIMITS = {name: _options.DEFAULTS[name] for name in ("max_pixels", "max_scans")}


def decode_image(
    image: Any,
    mode: str = "rgb",
    *,
    dtype: Any = None,
    region: tuple[int, int, int, int] | None = None,
    size: Any = None,
    interpolation: Any = "bilinear",
    antialias: bool = True,
    resampler: str = "pillow",
    exif_orientation: bool = True,
    max_pixels: int = _LIMITS["max_pixels"],
    max_scans: int = _LIMITS["max_scans"],
    accept_truncated: bool = False,
    accept_16_bits: bool = False,
) -> npt.NDArray[Any]:
    """Decodes one image, as `torchvision.io.decode_image`, `PIL.Image.open` and `cv2.imdecode` do.

        image = stoker.decode_image("photo.jpg")  # (height, width, 3) uint8
        image = stoker.decode_image(request.body, region=(0, 0, 64, 64))  # little more than that is decoded

    The pixels are those of libjpeg-turbo, libspng, libwebp, …, to the bit. Thread-safe; the GIL is released
    during the call. Starts no thread; usable after a fork.

    Args:
        image: the bytes of an image file (bytes, bytearray, memoryview, a uint8 array or CPU tensor of one
            dimension), or a path (str, os.PathLike).
        mode: "rgb": colours; a gray image gets three equal channels. "gray": luma, of a JPEG as it is stored
            (as OpenCV, torchvision and TensorFlow take it), of others Pillow's convert("L"). "rgba": colours
            and alpha, opaque where the file has none (transparent colours of PNG and GIF are refused); "rgb"
            and "gray" drop it. "unchanged": all channels and bits of the file; a palette is looked up, and
            its transparency (tRNS) dropped.
        dtype: "uint8" (the default, with which an image of 16 bits is refused); "uint16": images of 16 bits
            as they are, and values of 8 bits times 257; "float32", "float16", "bfloat16": value / 255, or of
            images of 16 bits value / 65535. Not with "unchanged", which has the file's own type.
        region: (top, left, height, width), the part to decode. It must lie inside the image.
        size: the size that the image, or the region, is resized to: an int, its shorter side, or (height,
            width).
        interpolation, antialias: as for `Resize`.
        resampler: as for `Resize`; other than "pillow" it needs images of 8 bits, as "rgb" or "gray".
        exif_orientation: turn the image as its EXIF tag says; regions and sizes are of the turned image.
        max_pixels, max_scans: as for `Loader`: limits on images.
        accept_truncated: decode truncated JPEGs as far as they go, as for `Loader`.
        accept_16_bits: take the upper 8 bits of an image of 16 bits, with all types but uint16.

    Returns:
        A new array: (height, width, channels), or of one channel (height, width). C order, 64-byte aligned.
        It owns its memory. Libraries with DLPack take it without a copy (`torch.from_dlpack`).

    Raises:
        DataLossError: bytes that are not an image, or a damaged one; has the `offset`, and for a path the
            `file`.
        NotFoundError, PermissionDeniedError, …: the file cannot be read.
        UnimplementedError: a format that stoker does not decode, or only with a library that is not
            installed; an image of 16 bits, unless dtype, accept_16_bits or mode "unchanged" takes it; a
            transparent colour, with mode "rgba".
        ResourceExhaustedError: an image beyond max_pixels or max_scans, or larger than memory.
        ValueError, TypeError: naming the argument; a region that is not inside the image.
    """
    given, is_path = _input(image)
    request = _request(mode, dtype, size, interpolation, antialias, resampler, exif_orientation)
    limits = _limits(max_pixels, max_scans, accept_truncated, accept_16_bits)
    return _decoders(*limits).one(given, is_path, request, _region(region))


def decode_images(
    images: Iterable[Any],
    mode: str = "rgb",
    *,
    dtype: Any = None,
    region: tuple[int, int, int, int] | None = None,
    size: Any = None,
    interpolation: Any = "bilinear",
    antialias: bool = True,
    resampler: str = "pillow",
    exif_orientation: bool = True,
    max_pixels: int = _LIMITS["max_pixels"],
    max_scans: int = _LIMITS["max_scans"],
    accept_truncated: bool = False,
    accept_16_bits: bool = False,
    runtime: Runtime | None = None,
) -> list[npt.NDArray[Any]]:
    """Decodes many images at a time, on the workers of a `Runtime`: `[decode_image(i, …) for i in images]`.

    Each worker decodes two images alternately, which is faster than one after the other, also on one core.
    Ctrl-C ends the wait.

    Args:
        images: images as for `decode_image`, in any mix.
        runtime: the Runtime whose workers decode; None means the default one.
        mode, dtype, region, size, interpolation, antialias: as for `decode_image`, for all images.
        resampler, exif_orientation, max_pixels, max_scans, accept_truncated, accept_16_bits: likewise.

    Returns:
        A list of arrays in the order of `images`. Each owns its memory, which is freed with it.

    Raises:
        Error: the error of `decode_image` for the first image that cannot be decoded: the message begins with
            `images[3]:`, or names the file.
        ValueError, TypeError: naming the argument.
    """
    if isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)):
        raise TypeError(f"images must be a list of images, not one: {images!r:.50}")
    if runtime is not None and not isinstance(runtime, Runtime):
        raise TypeError(f"runtime must be a stoker.Runtime, not {runtime!r:.80}")
    given = [_input(image, f"images[{i}]") for i, image in enumerate(images)]
    request = _request(mode, dtype, size, interpolation, antialias, resampler, exif_orientation)
    native = _stoker.Runtime() if runtime is None else runtime._native
    limits = _limits(max_pixels, max_scans, accept_truncated, accept_16_bits)
    return _decoders(*limits).all(given, request, _region(region), native)


def _input(image: Any, name: str = "image") -> tuple[Any, bool]:
    """Returns (bytes, False), or (a path's bytes, True)."""
    if isinstance(image, (bytes, bytearray)):
        return image, False
    if isinstance(image, (str, os.PathLike)):
        path = os.fsencode(image)
        if not path or b"\0" in path:
            raise InvalidArgumentError(f"{name} is {image!r:.50}, which is not a path")
        return path, True
    if isinstance(image, memoryview):
        if not image.c_contiguous:
            raise InvalidArgumentError(f"{name} is a memoryview with gaps; its bytes must be consecutive")
        return image, False
    if hasattr(image, "__array__"):
        array = np.asarray(image)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise InvalidArgumentError(
                f"{name} is an array of {array.dtype} and shape {array.shape}; it must be the bytes of a "
                "file: uint8 and one dimension"
            )
        return np.ascontiguousarray(array), False
    hint = "; try its read()" if hasattr(image, "read") else ""
    raise TypeError(f"{name} must be bytes or a path, not {type(image).__name__}{hint}")


def _region(region: Any) -> tuple[int, int, int, int] | None:
    if region is None:
        return None
    sides = _checks.sequence("region", region)
    if len(sides) != 4:
        raise InvalidArgumentError(f"region is {region!r:.50}; it must be (top, left, height, width)")
    top, left = (_checks.integer(f"region[{i}]", sides[i], 0, _checks.MOST_PIXELS - 1) for i in (0, 1))
    height, width = (_checks.integer(f"region[{i}]", sides[i], 1, _checks.MOST_PIXELS) for i in (2, 3))
    return top, left, height, width


def _request(
    mode: str,
    dtype: Any,
    size: Any,
    interpolation: Any,
    antialias: bool,
    resampler: str,
    exif_orientation: bool,
) -> _stoker.ArrayRequest:
    _checks.choice("mode", mode, _MODES)
    if dtype is not None and mode == "unchanged":
        raise InvalidArgumentError('dtype is given, but mode "unchanged" has the type of the file')
    name = "uint8" if dtype is None else _options.checked_one("dtype", dtype)
    _checks.numpy_has(name)
    resize = None
    standard = interpolation == "bilinear" and antialias is True and resampler == "pillow"
    if size is not None or not standard:
        checked = Resize(1 if size is None else size, interpolation, antialias=antialias, resampler=resampler)
        resize = None if size is None else checked
    return _made(_MODES.index(mode), name, resize, _checks.boolean("exif_orientation", exif_orientation))


# Cached: making one takes about as long as decoding a thumbnail.
@functools.lru_cache(maxsize=64)
def _made(mode: int, dtype: str, resize: Resize | None, exif_orientation: bool) -> _stoker.ArrayRequest:
    resizes = [] if resize is None else [resize]
    options = {"exif_orientation": exif_orientation, "dtype": dtype}
    return _stoker.ArrayRequest(spec_of(resizes, options), mode)


def _limits(
    max_pixels: int, max_scans: int, accept_truncated: bool, accept_16_bits: bool
) -> tuple[int, int, bool, bool]:
    return (
        _options.checked_one("max_pixels", max_pixels),
        _options.checked_one("max_scans", max_scans),
        _options.checked_one("accept_truncated", accept_truncated),
        _options.checked_one("accept_16_bits", accept_16_bits),
    )


@functools.lru_cache(maxsize=4)
def _decoders(
    max_pixels: int, max_scans: int, accept_truncated: bool, accept_16_bits: bool
) -> _stoker.Decoders:
    return _stoker.Decoders(max_pixels, max_scans, accept_truncated, accept_16_bits, _memory())


_shared: dict[str, _stoker.DecodeMemory] = {}


def _memory() -> _stoker.DecodeMemory:
    """Returns the memory budget that all decoders share, however many limits a program uses."""
    # functools.cache would let threads whose first calls are concurrent have a budget each.
    return _shared.get("memory") or _shared.setdefault("memory", _stoker.DecodeMemory())
