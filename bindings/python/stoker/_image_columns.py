"""Further images of a sample: values of `files(columns=…)`, and of sources that read them from files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from stoker import _checks
from stoker._errors import InvalidArgumentError

__all__ = ["Image", "Mask"]


class Image:
    """Further image files, one per sample of `files`: the other image of a stereo pair, a target picture.

        source = stoker.files(left, columns={"right": stoker.Image(right)})

    The column is like that of the images, uint8 (rows, height, width, 3) without further options: all images
    of a sample get the same random draw, so that crops and flips are the same. They must have the same size.

    Args:
        paths: of a file for each sample, as those of `files`.
        root: the folder of relative paths, or a URL; None means that of `files`.
    """

    def __init__(self, paths: Iterable[Any], *, root: str | os.PathLike[Any] | None = None) -> None:
        self.paths = _listed("Image", paths)
        self.root = root

    def native(self) -> tuple[str, int, list[Any]]:
        """Returns the type of a mask, its fill, and the paths, as the library takes them."""
        return "", 0, self.paths

    def __repr__(self) -> str:
        return f"stoker.Image({_shown(self.paths)})"


class Mask:
    """Mask files, one for each sample of `files`: the class, or the instance, of each pixel.

        source = stoker.files(photographs, columns={"mask": stoker.Mask(masks, fill=255)})

    A mask is a PNG file of one channel with 8 bits or fewer, or up to 16 with `dtype="uint16"`. Indices of a
    palette and gray values are kept as they are stored. It must have the size of the photograph, each turned
    as its own EXIF tag says; most masks have no tag. Half turns and mirroring, and any turn of a square
    photograph, are not noticed by the size.

    The column is (rows, height, width) of `dtype`, regardless of the loader's `dtype` and `layout`. Crops,
    flips and other moves are those of the image, of the same random draw, and take the nearest pixel, so
    values are never mixed. Resizing samples pixel centres, as for images (torchvision's NEAREST_EXACT; its v2
    takes NEAREST for masks). Colours, blur, erasing and normalization leave masks alone.

    Args:
        paths: of a file for each sample, as those of `files`. For a source that finds them itself
            (`manifest`): the name of their column.
        fill: the value of pixels outside the image, where transforms pad or move it, 0 to 255, or to 65,535
            with 16 bits: often the class that the loss ignores.
        root: the folder of relative paths, or a URL; None means that of `files`.
        dtype: "uint8", or "uint16" for instances and depths of up to 16 bits; files may have fewer bits.
    """

    def __init__(
        self,
        paths: Iterable[Any] | str,
        fill: int = 0,
        *,
        root: str | os.PathLike[Any] | None = None,
        dtype: Any = "uint8",
    ) -> None:
        self.paths: Any = paths if isinstance(paths, str) else _listed("Mask", paths)
        self.dtype = mask_dtype(dtype)
        self.fill = _checks.integer("fill", fill, 0, int(np.iinfo(self.dtype).max))
        self.root = root

    def keyed(self) -> list[str]:
        """Returns the kind, the key and the options of a column that is read from a file
        (io/annotations/keyed_column.h).
        """
        return ["mask", self.paths, self.dtype.name, str(self.fill)]

    def __repr__(self) -> str:
        fill = f", fill={self.fill}" if self.fill else ""
        dtype = "" if self.dtype == np.uint8 else f", dtype={self.dtype.name!r}"
        shown = repr(self.paths) if isinstance(self.paths, str) else _shown(self.paths)
        return f"stoker.Mask({shown}{fill}{dtype})"

    def native(self) -> tuple[str, int, list[Any]]:
        """Returns what `Image.native` does; raises TypeError if it has a key instead of paths."""
        return self.dtype.name, self.fill, _listed("Mask", self.paths)


def mask_dtype(dtype: Any) -> np.dtype[Any]:
    """Returns the type of a mask's values.

    Raises:
        ValueError: it is neither uint8 nor uint16.
    """
    of: np.dtype[Any] = np.dtype(object)
    with contextlib.suppress(TypeError):
        of = np.dtype(dtype)
    if of not in (np.uint8, np.uint16):
        raise InvalidArgumentError(f"dtype is {dtype!r}; masks are 'uint8' or 'uint16'")
    return of


def _listed(kind: str, paths: Any) -> list[Any]:
    unordered = isinstance(paths, (str, bytes, os.PathLike, dict, set, frozenset))
    if unordered or not isinstance(paths, Iterable) or getattr(paths, "ndim", 1) != 1:
        raise TypeError(f"stoker.{kind} takes a list of paths, not {paths!r:.80}")
    return list(paths)


def _shown(paths: list[Any]) -> str:
    return f"{paths[0]!r:.80} and {len(paths) - 1} more" if len(paths) > 1 else repr(paths)
