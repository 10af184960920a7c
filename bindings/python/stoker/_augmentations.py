"""Transforms that change what an image looks like: torchvision's names, parameters and meanings.

They work on images that have one size, 8 bits a channel: they come after the transform that makes the
size, and before `Normalize`. `RandomErasing` works on the finished values and is last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._transforms import Transform, _Chance, _name

Range = Union[float, Sequence[float]]
Fill = Union[int, Sequence[int], None]

_INTERPOLATIONS = ("nearest", "bilinear")


def _factors(name: str, value: Range | None, middle: float) -> tuple[float, float]:
    """torchvision's: a number is a distance from the middle."""
    if value is None:
        return (middle, middle)
    if _checks.several(value):
        low, high = _checks.reals(name, value, 2)
    else:
        distance = _checks.real(name, value, 0)
        low, high = middle - distance, middle + distance
        low = max(low, 0.0) if middle == 1 else low
    least, most = (0.0, 1e6) if middle == 1 else (-0.5, 0.5)
    if not least <= low <= high <= most:
        raise InvalidArgumentError(
            f"{name} is ({low:g}, {high:g}); it must be (least, most), both between {least:g} and {most:g}"
        )
    return (low, high)


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue change by random factors, in random order.

    Args:
        brightness: a number x: the factor is uniform in [max(0, 1 - x), 1 + x]; or (least, most).
        contrast: likewise.
        saturation: likewise.
        hue: a number x, 0 to 0.5: the shift is uniform in [-x, x] turns; or (least, most).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    brightness: Range | None = None
    contrast: Range | None = None
    saturation: Range | None = None
    hue: Range | None = None

    def __post_init__(self) -> None:
        self._set(
            brightness=_factors(_name(self, "brightness"), self.brightness, 1),
            contrast=_factors(_name(self, "contrast"), self.contrast, 1),
            saturation=_factors(_name(self, "saturation"), self.saturation, 1),
            hue=_factors(_name(self, "hue"), self.hue, 0),
        )

    def _spec(self) -> dict[str, Any]:
        factors = ("brightness", "contrast", "saturation", "hue")
        return {"name": "ColorJitter", **{key: list(getattr(self, key)) for key in factors}}


@dataclass(frozen=True)
class RandomGrayscale(_Chance):
    """Three equal channels with probability `p`, 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.1


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """A Gaussian whose deviation is uniform in `sigma`, the same along both axes; borders are mirrored.

    Args:
        kernel_size: taps, an odd int, or (along x, along y), as torchvision has them.
        sigma: (least, most) in pixels, or a number.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    kernel_size: int | Sequence[int]
    sigma: Range = (0.1, 2.0)

    def __post_init__(self) -> None:
        name = _name(self, "kernel_size")
        taps = _checks.size(name, self.kernel_size)
        for number in taps:
            if number % 2 == 0:
                raise InvalidArgumentError(f"{name} is {number}; it must be odd")
        sigma = self.sigma if _checks.several(self.sigma) else (self.sigma, self.sigma)
        low, high = _checks.reals(_name(self, "sigma"), sigma, 2)
        if not 0 < low <= high:
            raise InvalidArgumentError(
                f"{_name(self, 'sigma')} is ({low:g}, {high:g}); it must be (least, most), both positive"
            )
        self._set(kernel_size=(taps[0], taps[-1]), sigma=(low, high))

    def _spec(self) -> dict[str, Any]:
        width, height = self.kernel_size  # type: ignore[misc]
        low, high = self.sigma  # type: ignore[misc]
        taps = {"kernel_height": height, "kernel_width": width}
        return {"name": "GaussianBlur", **taps, "sigma": [low, high]}


@dataclass(frozen=True)
class RandomErasing(Transform):
    """A random box gets `value`, with probability `p`. (Zhong et al., AAAI 2020)

    Args:
        p: 0 to 1.
        scale: (least, most) of the image's area, as a share of it.
        ratio: (least, most) of height / width, drawn log-uniformly.
        value: a number, or one for each channel, or "random": normal numbers of mean 0 and deviation 1.
            Values are those of the output: 0 to 255 with dtype="uint8" (which "random" does not fit),
            fractions with the others; a `Normalize` behind it normalises them.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0

    def __post_init__(self) -> None:
        self._set(
            p=_checks.real(_name(self, "p"), self.p, 0, 1),
            scale=_checks.interval(_name(self, "scale"), self.scale, 0, 1),
            ratio=_checks.interval(
                _name(self, "ratio"), self.ratio, 1 / _checks.MOST_PIXELS, _checks.MOST_PIXELS
            ),
            value=self._values(),
        )

    def _values(self) -> str | tuple[float, ...]:
        name = _name(self, "value")
        if isinstance(self.value, str):
            return _checks.choice(name, self.value, ("random",))
        if _checks.several(self.value):
            values = _checks.sequence(name, self.value)
            return _checks.reals(name, values * 3 if len(values) == 1 else values, 3)
        return (_checks.real(name, self.value),) * 3

    def _spec(self) -> dict[str, Any]:
        spec = {"name": "RandomErasing", "p": self.p, "scale": list(self.scale), "ratio": list(self.ratio)}
        if self.value == "random":
            return {**spec, "noise": True}
        return {**spec, "value": list(self.value)}  # type: ignore[arg-type]


class _Policy(Transform):
    """What the three policies share."""

    interpolation: str
    fill: Fill

    def _set_common(self) -> None:
        name = _name(self, "interpolation")
        self._set(
            interpolation=_checks.interpolation(name, self.interpolation, _INTERPOLATIONS),
            fill=None if self.fill is None else _checks.fill(_name(self, "fill"), self.fill),
        )

    def _common(self) -> dict[str, Any]:
        common: dict[str, Any] = {"name": type(self).__name__, "interpolation": self.interpolation}
        return common if self.fill is None else {**common, "fill": list(self.fill)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class AutoAugment(_Policy):
    """One of 25 pairs of operations that were found by search. (Cubuk et al., CVPR 2019)

    Args:
        policy: "imagenet", "cifar10" or "svhn".
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    policy: str = "imagenet"
    interpolation: str = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        name = _name(self, "policy")
        given = getattr(self.policy, "value", self.policy)  # torchvision's AutoAugmentPolicy
        self._set(policy=_checks.choice(name, given, ("imagenet", "cifar10", "svhn")))
        self._set_common()

    def _spec(self) -> dict[str, Any]:
        return {**self._common(), "policy": self.policy}


@dataclass(frozen=True)
class RandAugment(_Policy):
    """Some operations, each uniform among 14, all of one strength. (Cubuk et al., CVPR Workshops 2020)

    Args:
        num_ops: how many, 0 to 100.
        magnitude: the strength, 0 to num_magnitude_bins - 1.
        num_magnitude_bins: 2 to 1,000.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        bins = _checks.integer(_name(self, "num_magnitude_bins"), self.num_magnitude_bins, 2, 1000)
        self._set(
            num_ops=_checks.integer(_name(self, "num_ops"), self.num_ops, 0, 100),
            magnitude=_checks.integer(_name(self, "magnitude"), self.magnitude, 0, bins - 1),
            num_magnitude_bins=bins,
        )
        self._set_common()

    def _spec(self) -> dict[str, Any]:
        numbers = ("num_ops", "magnitude", "num_magnitude_bins")
        return {**self._common(), **{key: getattr(self, key) for key in numbers}}


@dataclass(frozen=True)
class TrivialAugmentWide(_Policy):
    """One operation of 14, of random strength. (Müller, Hutter, ICCV 2021)

    Args:
        num_magnitude_bins: strengths to choose from, 2 to 1,000.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        name = _name(self, "num_magnitude_bins")
        self._set(num_magnitude_bins=_checks.integer(name, self.num_magnitude_bins, 2, 1000))
        self._set_common()

    def _spec(self) -> dict[str, Any]:
        return {**self._common(), "num_magnitude_bins": self.num_magnitude_bins}
