"""Transforms: torchvision's names and parameters, as plain values.

Images are RGB with 8 bits a channel (gray ones get three equal channels). Sizes are in pixels, an int
or (height, width), from 1 to 65,535. A transform does nothing by itself: a `Loader` or a `Compose`
compiles a list of them into one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from stoker import _checks
from stoker._errors import InvalidArgumentError

Size = Union[int, Sequence[int]]
Margins = Union[int, Sequence[int]]

_INTERPOLATIONS = ("bilinear",)
_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


class Transform:
    """The base of all transforms. Immutable; equal when all parameters are."""

    def _spec(self) -> dict[str, Any]:
        raise NotImplementedError

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _name(transform: Transform, option: str) -> str:
    return f"{type(transform).__name__}.{option}"


def _bilinear(transform: Transform, given: Any) -> str:
    return _checks.interpolation(_name(transform, "interpolation"), given, _INTERPOLATIONS)


def _square(size: tuple[int, ...]) -> tuple[int, int]:
    return (size[0], size[-1])


@dataclass(frozen=True)
class Resize(Transform):
    """Bilinear.

    Args:
        size: an int: the shorter side becomes `size`, the longer one int(size * long / short).
            (height, width): exactly that.
        interpolation: "bilinear", or torchvision's or Pillow's names for it; there is no other.
        antialias: True: the filter widens when shrinking, as in Pillow and torchvision.
            False: two taps, as in tf.image.resize and OpenCV.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size
    interpolation: Any = field(default="bilinear", repr=False)
    antialias: bool = True

    def __post_init__(self) -> None:
        size = _checks.size(_name(self, "size"), self.size)
        self._set(
            size=size[0] if len(size) == 1 else size,
            interpolation=_bilinear(self, self.interpolation),
            antialias=_checks.boolean(_name(self, "antialias"), self.antialias),
        )

    def _spec(self) -> dict[str, Any]:
        if isinstance(self.size, int):
            return {"name": "Resize", "size": self.size, "antialias": self.antialias}
        height, width = self.size
        return {"name": "Resize", "height": height, "width": width, "antialias": self.antialias}


@dataclass(frozen=True)
class CenterCrop(Transform):
    """The middle height × width pixels; an image that is too small is padded with zeros.

    Args:
        size: an int (a square), or (height, width).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size

    def __post_init__(self) -> None:
        self._set(size=_square(_checks.size(_name(self, "size"), self.size)))

    def _spec(self) -> dict[str, Any]:
        height, width = _square(tuple(self.size))  # type: ignore[arg-type]
        return {"name": "CenterCrop", "height": height, "width": width}


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """A box of random area and aspect ratio at a random place, resized.

    After ten attempts that do not fit: the largest central box within `ratio`.

    Args:
        size: of the result: an int (a square), or (height, width).
        scale: (least, most) of the image's area, as a share of it.
        ratio: (least, most) of width / height, drawn log-uniformly.
        interpolation: as for `Resize`.
        antialias: as for `Resize`.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Any = field(default="bilinear", repr=False)
    antialias: bool = True

    def __post_init__(self) -> None:
        self._set(
            size=_square(_checks.size(_name(self, "size"), self.size)),
            scale=_checks.interval(_name(self, "scale"), self.scale, 0, 1e6),
            ratio=_checks.interval(
                _name(self, "ratio"), self.ratio, 1 / _checks.MOST_PIXELS, _checks.MOST_PIXELS
            ),
            interpolation=_bilinear(self, self.interpolation),
            antialias=_checks.boolean(_name(self, "antialias"), self.antialias),
        )

    def _spec(self) -> dict[str, Any]:
        height, width = _square(tuple(self.size))  # type: ignore[arg-type]
        return {
            "name": "RandomResizedCrop",
            "height": height,
            "width": width,
            "scale": list(self.scale),
            "ratio": list(self.ratio),
            "antialias": self.antialias,
        }


class _Chance(Transform):
    """What is done with probability `p` and has no other parameter."""

    p: float

    def __post_init__(self) -> None:
        self._set(p=_checks.real(_name(self, "p"), self.p, 0, 1))

    def _spec(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "p": self.p}


@dataclass(frozen=True)
class RandomHorizontalFlip(_Chance):
    """Left and right change places with probability `p`, 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomVerticalFlip(_Chance):
    """Top and bottom change places with probability `p`, 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


class _Padded(Transform):
    """What paddings share."""

    padding: Margins | None
    fill: int | Sequence[int] | None
    padding_mode: str

    def _set_padding(self) -> None:
        self._set(
            padding=_checks.margins(_name(self, "padding"), 0 if self.padding is None else self.padding),
            fill=_checks.fill(_name(self, "fill"), 0 if self.fill is None else self.fill),
            padding_mode=_checks.choice(_name(self, "padding_mode"), self.padding_mode, _PADDING_MODES),
        )

    def _padding(self) -> dict[str, Any]:
        return {
            "padding": list(self.padding),  # type: ignore[arg-type]
            "fill": list(self.fill),  # type: ignore[arg-type]
            "padding_mode": self.padding_mode,
        }


@dataclass(frozen=True)
class Pad(_Padded):
    """Pixels around the image.

    Args:
        padding: pixels, 0 to 65,535: an int, (left and right, top and bottom), or (left, top, right,
            bottom).
        fill: for "constant": an int 0 to 255, or (red, green, blue).
        padding_mode: "constant"; "edge": the last pixel, again and again; "reflect": mirrored, the last
            pixel once; "symmetric": mirrored, the last pixel twice.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    padding: Margins
    fill: int | Sequence[int] | None = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        self._set_padding()

    def _spec(self) -> dict[str, Any]:
        return {"name": "Pad", **self._padding()}


@dataclass(frozen=True)
class RandomCrop(_Padded):
    """height × width pixels at a random place, after padding.

    An image that is smaller is an error of its sample.

    Args:
        size: of the result: an int (a square), or (height, width).
        padding: as for `Pad`; None: none.
        pad_if_needed: pad smaller images first, on both sides by all that they lack.
        fill: as for `Pad`.
        padding_mode: as for `Pad`.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size
    padding: Margins | None = None
    pad_if_needed: bool = False
    fill: int | Sequence[int] | None = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        self._set(
            size=_square(_checks.size(_name(self, "size"), self.size)),
            pad_if_needed=_checks.boolean(_name(self, "pad_if_needed"), self.pad_if_needed),
        )
        self._set_padding()

    def _spec(self) -> dict[str, Any]:
        height, width = _square(tuple(self.size))  # type: ignore[arg-type]
        return {
            "name": "RandomCrop",
            "height": height,
            "width": width,
            "pad_if_needed": self.pad_if_needed,
            **self._padding(),
        }


@dataclass(frozen=True)
class Normalize(Transform):
    """(value / 255 - mean) / std for each channel; last in the list, and not with dtype="uint8".

    Args:
        mean: three numbers, red, green, blue: a sequence, an array or a tensor.
        std: three positive numbers, likewise.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        self._set(
            mean=_checks.reals(_name(self, "mean"), self.mean, 3),
            std=_checks.reals(_name(self, "std"), self.std, 3),
        )
        for channel, std in enumerate(self.std):
            if std <= 0:
                raise InvalidArgumentError(f"Normalize.std[{channel}] is {std:g}; it must be positive")

    def _spec(self) -> dict[str, Any]:
        return {"name": "Normalize", "mean": list(self.mean), "std": list(self.std)}


def checked(transforms: Iterable[Transform]) -> tuple[Transform, ...]:
    """The transforms as a tuple; TypeError where one is none."""
    if isinstance(transforms, Transform) or not hasattr(transforms, "__iter__"):
        hint = f"; try [{transforms!r:.80}]" if isinstance(transforms, Transform) else ""
        if hasattr(transforms, "_transforms"):  # a Compose
            hint = "; pass the list that stoker.Compose was given"
        raise TypeError(f"transforms must be a sequence of transforms, not {transforms!r:.80}{hint}")
    listed = tuple(transforms)
    for place, transform in enumerate(listed):
        if not isinstance(transform, Transform):
            hint = f"; did you mean {transform.__name__}(…)?" if isinstance(transform, type) else ""
            raise TypeError(f"transforms[{place}] is no transform of stoker's: {transform!r:.80}{hint}")
    return listed
