"""Transforms: torchvision's names and parameters, as plain values.

Images are RGB with 8 bits a channel (gray ones get three equal channels). Sizes are in pixels, an int
or (height, width), from 1 to 65,535. A transform does nothing by itself: a `Loader` or a `Compose`
compiles a list of them into one pass.

Those that change what an image looks like work on images that have one size: they come after the transform
that makes the size, and before `Normalize`. `RandomErasing` works on the finished values and is last, but
for `PadTo`, with which images may differ in size.
"""

# Written by tools/generate.py from transforms/spec/transform_table.cc, which is the file to change.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stoker._parameters import Fill, ImageOrBatchChoice, Margins, Range, Size, Transform

__all__ = [
    "AugMix",
    "AutoAugment",
    "CenterCrop",
    "ClampBoundingBoxes",
    "ColorJitter",
    "ConvertBoundingBoxFormat",
    "CopyPaste",
    "ElasticTransform",
    "GaussianBlur",
    "Mosaic",
    "Normalize",
    "Pad",
    "PadTo",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHSV",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShear",
    "RandomShortestSize",
    "RandomSizeCrop",
    "RandomSolarize",
    "RandomTranslation",
    "RandomVerticalFlip",
    "RandomZoom",
    "RandomZoomOut",
    "Resize",
    "SanitizeBoundingBoxes",
    "ScaleJitter",
    "Transform",
    "TrivialAugmentWide",
]


@dataclass(frozen=True)
class Resize(Transform):
    """The whole image, resized.

    Args:
        size: an int: the shorter side becomes `size`, the longer one int(size * long / short). (height,
            width): exactly that. None: the longer side becomes max_size.
        interpolation: Pillow's filter: "bilinear", "bicubic", "lanczos", "box" or "nearest", or
            torchvision's or Pillow's names for it. "box" is not called "area": in OpenCV and TensorFlow
            that also weighs partly covered pixels.
        max_size: the longer side is at most this, which makes the shorter one smaller where it must. None:
            no limit.
        antialias: True: the filter widens when shrinking, as in Pillow and torchvision. False: it keeps its
            width (bilinear: two taps), as in tf.image.resize and, bilinear, in OpenCV. "nearest" takes one
            pixel either way.
        resampler: the library whose pixels the result has. "pillow": Pillow's, bilinear within one level.
            "pillow_exact": Pillow's, bilinear too; slower. "torchvision": torchvision's for uint8 tensors
            on CPUs; bilinear, bicubic and lanczos, antialiased only. Not with dtype uint16; images of 16
            bits are resampled in floats with each.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size | None
    interpolation: Any = "bilinear"
    max_size: int | None = None
    antialias: bool = True
    resampler: str = "pillow"


@dataclass(frozen=True)
class CenterCrop(Transform):
    """The middle height × width pixels; an image that is too small is padded with zeros.

    Args:
        size: an int (a square), or (height, width).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """A box of random area and aspect ratio at a random place, resized.

    After ten attempts that do not fit: the largest central box within `ratio`.

    Args:
        size: of the result: an int (a square), or (height, width).
        scale: (least, most) of the image's area, as a share of it.
        ratio: (least, most) of width / height, drawn log-uniformly.
        interpolation: Pillow's filter: "bilinear", "bicubic", "lanczos", "box" or "nearest", or
            torchvision's or Pillow's names for it. "box" is not called "area": in OpenCV and TensorFlow
            that also weighs partly covered pixels.
        antialias: True: the filter widens when shrinking, as in Pillow and torchvision. False: it keeps its
            width (bilinear: two taps), as in tf.image.resize and, bilinear, in OpenCV. "nearest" takes one
            pixel either way.
        resampler: the library whose pixels the result has. "pillow": Pillow's, bilinear within one level.
            "pillow_exact": Pillow's, bilinear too; slower. "torchvision": torchvision's for uint8 tensors
            on CPUs; bilinear, bicubic and lanczos, antialiased only. Not with dtype uint16; images of 16
            bits are resampled in floats with each.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (0.75, 1.3333333333333333)
    interpolation: Any = "bilinear"
    antialias: bool = True
    resampler: str = "pillow"


@dataclass(frozen=True)
class RandomHorizontalFlip(Transform):
    """Left and right change places with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomVerticalFlip(Transform):
    """Top and bottom change places with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class Pad(Transform):
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
    fill: Fill | None = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomCrop(Transform):
    """height × width pixels at a random place, after padding.

    An image that is smaller is an error of its sample.

    Args:
        size: of the result: an int (a square), or (height, width).
        padding: as for `Pad`; None means none.
        pad_if_needed: pad smaller images first, on both sides by all that they lack.
        fill: as for `Pad`.
        padding_mode: as for `Pad`.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size
    padding: Margins | None = None
    pad_if_needed: bool = False
    fill: Fill | None = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomSizeCrop(Transform):
    """A part of random size at a random place. (Carion et al., ECCV 2020)

    Images then differ in size: a `Resize` or a `PadTo` follows. A side of the image that is shorter than
    `min_size` is kept; with `square`, both then get the length of the shorter one.

    Args:
        min_size: the least width and height in pixels.
        max_size: the largest width and height in pixels.
        square: True: width and height are equal, as in RF-DETR. False: each is drawn by itself, as in DETR.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    min_size: int
    max_size: int
    square: bool = False


@dataclass(frozen=True)
class RandomZoomOut(Transform):
    """The image at a random place of a larger one, with probability `p`. (Liu et al., ECCV 2016)

    The larger one has at most 65,535 pixels on a side.

    Args:
        fill: as for `Pad`.
        side_range: (least, most) of the larger image's sides, as multiples of the image's, 1 to 100.
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    fill: Fill | None = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """A random part of the image that overlaps one of its boxes; objects whose center is outside are
    dropped. (Liu et al., ECCV 2016)

    Samples must have boxes; an image without objects stays whole. torchvision's sets boxes to zeros, which
    `SanitizeBoundingBoxes` then drops.

    Args:
        min_scale: the least share of the image's width, and of its height.
        max_scale: the largest share.
        min_aspect_ratio: the least width / height.
        max_aspect_ratio: the largest width / height.
        sampler_options: overlaps, intersection / union, to draw from: at least one box must overlap the
            part by that much; with 1 the image stays whole. None: 0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1.
        trials: parts to try before another overlap is chosen, 1 to 50. After 20 overlaps the image stays
            whole.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Sequence[float] | None = None
    trials: int = 40


@dataclass(frozen=True)
class RandomShortestSize(Transform):
    """The whole image, resized to a size that is drawn for each image.

    Images then differ in size: a crop or a `PadTo` follows.

    Args:
        min_size: an int, or a list of them to draw from: the shorter side becomes that, unless the longer
            one would be more than max_size.
        max_size: the longer side is at most this, which makes the shorter one smaller where it must. None:
            no limit.
        interpolation: Pillow's filter: "bilinear", "bicubic", "lanczos", "box" or "nearest", or
            torchvision's or Pillow's names for it. "box" is not called "area": in OpenCV and TensorFlow
            that also weighs partly covered pixels.
        antialias: True: the filter widens when shrinking, as in Pillow and torchvision. False: it keeps its
            width (bilinear: two taps), as in tf.image.resize and, bilinear, in OpenCV. "nearest" takes one
            pixel either way.
        resampler: the library whose pixels the result has. "pillow": Pillow's, bilinear within one level.
            "pillow_exact": Pillow's, bilinear too; slower. "torchvision": torchvision's for uint8 tensors
            on CPUs; bilinear, bicubic and lanczos, antialiased only. Not with dtype uint16; images of 16
            bits are resampled in floats with each.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    min_size: Size
    max_size: int | None = None
    interpolation: Any = "bilinear"
    antialias: bool = True
    resampler: str = "pillow"


@dataclass(frozen=True)
class ScaleJitter(Transform):
    """The whole image, resized to fit a size, times a random factor. (Ghiasi et al., CVPR 2021)

    Images then differ in size: a crop or a `PadTo` follows.

    Args:
        target_size: of an image with the factor 1, which has one of these sides, and the other one is not
            larger: an int (a square), or (width, height), in torchvision's order.
        scale_range: (least, most) of the factor, up to 100.
        interpolation: Pillow's filter: "bilinear", "bicubic", "lanczos", "box" or "nearest", or
            torchvision's or Pillow's names for it. "box" is not called "area": in OpenCV and TensorFlow
            that also weighs partly covered pixels.
        antialias: True: the filter widens when shrinking, as in Pillow and torchvision. False: it keeps its
            width (bilinear: two taps), as in tf.image.resize and, bilinear, in OpenCV. "nearest" takes one
            pixel either way.
        resampler: the library whose pixels the result has. "pillow": Pillow's, bilinear within one level.
            "pillow_exact": Pillow's, bilinear too; slower. "torchvision": torchvision's for uint8 tensors
            on CPUs; bilinear, bicubic and lanczos, antialiased only. Not with dtype uint16; images of 16
            bits are resampled in floats with each.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    target_size: Size
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: Any = "bilinear"
    antialias: bool = True
    resampler: str = "pillow"


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue change by random factors, in random order.

    Args:
        brightness: a number x: the factor is uniform in [max(0, 1 - x), 1 + x]; or (least, most).
        contrast: likewise.
        saturation: likewise.
        hue: a number x, 0 to 0.5: the shift is uniform in [-x, x] turns; or (least, most).
        p: of any change, 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    brightness: Range | None = None
    contrast: Range | None = None
    saturation: Range | None = None
    hue: Range | None = None
    p: float = 1.0


@dataclass(frozen=True)
class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation and hue change by random factors, each with probability `p`, and
    channels may change places. (Liu et al., ECCV 2016)

    Contrast changes before saturation and hue or after them.

    Args:
        brightness: (least, most) of the factor.
        contrast: (least, most) of the factor.
        saturation: (least, most) of the factor.
        hue: (least, most) of the shift in turns, -0.5 to 0.5.
        p: 0 to 1, of each change.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    brightness: Sequence[float] = (0.875, 1.125)
    contrast: Sequence[float] = (0.5, 1.5)
    saturation: Sequence[float] = (0.5, 1.5)
    hue: Sequence[float] = (-0.05, 0.05)
    p: float = 0.5


@dataclass(frozen=True)
class RandomHSV(Transform):
    """Hue, saturation and value of the HSV hexcone change by random amounts, as in YOLO's recipes.

    The defaults are YOLO's `hsv_h`, `hsv_s` and `hsv_v`. Saturation is at most 1 afterwards, value at most
    255, and channels are rounded once, to the nearest integer.

    Args:
        hue: a number x, 0 to 0.5: the shift is uniform in [-x, x] turns; or (least, most).
        saturation: a number x: the factor is uniform in [max(0, 1 - x), 1 + x]; or (least, most).
        value: likewise.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    hue: Range = (-0.015, 0.015)
    saturation: Range = (0.3, 1.7)
    value: Range = (0.6, 1.4)


@dataclass(frozen=True)
class RandomGrayscale(Transform):
    """Three equal channels with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.1


@dataclass(frozen=True)
class RandomSolarize(Transform):
    """Values that are at least `threshold` are inverted, with probability `p`.

    Args:
        threshold: 0 to 255.
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    threshold: float
    p: float = 0.5


@dataclass(frozen=True)
class RandomInvert(Transform):
    """All values are inverted with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomPosterize(Transform):
    """Only the high bits of each value stay, with probability `p`.

    Args:
        bits: how many high bits of each value stay, 0 to 8.
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    bits: int
    p: float = 0.5


@dataclass(frozen=True)
class RandomAdjustSharpness(Transform):
    """The image becomes sharper or smoother, with probability `p`.

    Args:
        sharpness_factor: 0 is a smoothed image, 1 the image as it is, and 2 is twice as sharp.
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    sharpness_factor: float
    p: float = 0.5


@dataclass(frozen=True)
class RandomAutocontrast(Transform):
    """Each channel is stretched to 0 to 255, with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomEqualize(Transform):
    """The histogram of each channel is equalized, with probability `p`.

    Args:
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """A Gaussian whose deviation is uniform in `sigma`, the same along both axes; borders are mirrored.

    Args:
        kernel_size: taps, an odd int, or (along x, along y), as torchvision has them.
        sigma: (least, most) in pixels, or a number.
        p: of any change, 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    kernel_size: int | Sequence[int]
    sigma: Range = (0.1, 2.0)
    p: float = 1.0


@dataclass(frozen=True)
class RandomAffine(Transform):
    """The image is rotated, moved, scaled and sheared about its center by random amounts, and sampled once.
    It keeps its size.

    Args:
        degrees: clockwise; a number x: uniform in [-x, x]; or (least, most).
        translate: (x, y): by up to these shares of the width and the height, in whole pixels. None: not at
            all.
        scale: (least, most): above 1 the image becomes larger. None: not at all.
        shear: degrees. A number x: along x, uniform in [-x, x]; (least, most): along x; four numbers:
            (least, most) along x and then along y. None: not at all.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue), with which
            bilinear blends the border twice, as torchvision does. None: black, once.
        center: (x, y) in pixels from the upper left corner. None: the middle.
        padding_mode: of pixels that come from outside the image: as for `Pad`, or "wrap": from the opposite
            side. Keras' fill_mode "reflect" is "symmetric" here, its "nearest" is "edge", and its
            "constant" and "wrap" have the same names.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    degrees: Range
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: Range | None = None
    interpolation: Any = "nearest"
    fill: Fill | None = 0
    center: Sequence[float] | None = None
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomRotation(Transform):
    """The image is rotated by a random angle. It keeps its size.

    Angles are in degrees. Keras' layer has shares of a turn: its RandomRotation(factor) is
    `RandomRotation(360 * factor, "bilinear", fill=None, padding_mode="symmetric")`.

    Args:
        degrees: counterclockwise; a number x: uniform in [-x, x]; or (least, most).
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        expand: False; True is refused, since the images of a batch would differ in size.
        center: (x, y) in pixels from the upper left corner. None: the middle.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue), with which
            bilinear blends the border twice, as torchvision does. None: black, once.
        padding_mode: of pixels that come from outside the image: as for `Pad`, or "wrap": from the opposite
            side. Keras' fill_mode "reflect" is "symmetric" here, its "nearest" is "edge", and its
            "constant" and "wrap" have the same names.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    degrees: Range
    interpolation: Any = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: Fill | None = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomPerspective(Transform):
    """The image is seen from a random direction, with probability `p`: its corners move inwards, and it is
    sampled once. It keeps its size.

    The map is a projective one, so that it does not go with `geometry=True`; and samples with masks of
    shapes have a distortion_scale of at most 0.5, above which an image may be seen twice.

    Args:
        distortion_scale: 0 to 1: each corner moves by up to this share of half the width and half the
            height, in whole pixels.
        p: 0 to 1.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue), with which
            bilinear blends the border twice, as torchvision does. None: black, once.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Any = "bilinear"
    fill: Fill | None = 0


@dataclass(frozen=True)
class RandomZoom(Transform):
    """Height and width are scaled about the center by random factors, as Keras' layer does. The image keeps
    its size.

    Args:
        height_factor: a share, -0.999 to 1. A positive one zooms out: pixels come from 1 + height_factor
            times their distance to the center. A number x: uniform in [-x, x]; or (least, most).
        width_factor: likewise. None: the factor that is drawn for the height.
        padding_mode: of pixels that come from outside the image: as for `Pad`, or "wrap": from the opposite
            side. Keras' fill_mode "reflect" is "symmetric" here, its "nearest" is "edge", and its
            "constant" and "wrap" have the same names.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: for "constant": an int 0 to 255, or (red, green, blue).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    height_factor: Range
    width_factor: Range | None = None
    padding_mode: str = "symmetric"
    interpolation: Any = "bilinear"
    fill: Fill | None = 0


@dataclass(frozen=True)
class RandomTranslation(Transform):
    """The image is moved by random shares of its height and width, as Keras' layer does.

    The distance is not rounded to whole pixels, as that of `RandomAffine` is.

    Args:
        height_factor: a share of the height, -1 to 1, positive downwards. A number x: uniform in [-x, x];
            or (least, most).
        width_factor: likewise a share of the width, positive to the right.
        padding_mode: of pixels that come from outside the image: as for `Pad`, or "wrap": from the opposite
            side. Keras' fill_mode "reflect" is "symmetric" here, its "nearest" is "edge", and its
            "constant" and "wrap" have the same names.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: for "constant": an int 0 to 255, or (red, green, blue).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    height_factor: Range
    width_factor: Range
    padding_mode: str = "symmetric"
    interpolation: Any = "bilinear"
    fill: Fill | None = 0


@dataclass(frozen=True)
class RandomShear(Transform):
    """The image is sheared by random factors, as Keras' layer does.

    Pixel (x, y), counted from the upper left pixel, comes from (x + x_factor * y, y + y_factor * x).

    Args:
        x_factor: columns for each row, -1 to 1. A number x: uniform in [-x, x]; or (least, most). Half of
            the images are sheared by the opposite of both factors.
        y_factor: rows for each column, likewise.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        padding_mode: of pixels that come from outside the image: as for `Pad`, or "wrap": from the opposite
            side. Keras' fill_mode "reflect" is "symmetric" here, its "nearest" is "edge", and its
            "constant" and "wrap" have the same names.
        fill: for "constant": an int 0 to 255, or (red, green, blue).

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    x_factor: Range = (0.0, 0.0)
    y_factor: Range = (0.0, 0.0)
    interpolation: Any = "bilinear"
    padding_mode: str = "symmetric"
    fill: Fill | None = 0


@dataclass(frozen=True)
class AutoAugment(Transform):
    """One of 25 pairs of operations that were found by search. (Cubuk et al., CVPR 2019)

    Args:
        policy: "imagenet", "cifar10" or "svhn", or torchvision's names for them.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    policy: str = "imagenet"
    interpolation: Any = "nearest"
    fill: Fill | None = None


@dataclass(frozen=True)
class RandAugment(Transform):
    """Some operations, each uniform among 14, all of one strength. (Cubuk et al., CVPR Workshops 2020)

    Args:
        num_ops: how many, 0 to 100.
        magnitude: the strength, 0 to num_magnitude_bins - 1.
        num_magnitude_bins: 2 to 1,000.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill | None = None


@dataclass(frozen=True)
class TrivialAugmentWide(Transform):
    """One operation of 14, of random strength. (Müller, Hutter, ICCV 2021)

    Args:
        num_magnitude_bins: strengths to choose from, 2 to 1,000.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill | None = None


@dataclass(frozen=True)
class AugMix(Transform):
    """The image, mixed with copies that chains of random operations have changed. (Hendrycks et al., ICLR
    2020)

    Masks, boxes and keypoints stay where they are in the image.

    Args:
        severity: the strongest of 10 strengths, 1 to 10.
        mixture_width: how many copies, 1 to 32.
        chain_depth: operations of each copy, up to 32; 0 or -1: 1 to 3, drawn for each.
        alpha: of the Dirichlet and Beta distributions of the weights.
        all_ops: False leaves brightness, contrast, colour and sharpness out.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue). None is
            black; given, even as 0, bilinear blends the border with it, as torchvision does.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Any = "bilinear"
    fill: Fill | None = None


@dataclass(frozen=True)
class RandomApply(Transform):
    """All of `transforms` with probability `p`, otherwise none of them.

    Args:
        transforms: a list of transforms that change pixels (colour, blur, affine transforms and policies),
            or of those that resize, crop and pad (not in `RandomOrder`); flips; and other `RandomApply`,
            `RandomChoice` and `RandomOrder`, up to 8 levels deep.
        p: 0 to 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    transforms: Sequence[Transform]
    p: float = 0.5


@dataclass(frozen=True)
class RandomChoice(ImageOrBatchChoice):
    """One of `transforms`, drawn for each image.

    At the end of a loader's list it draws one of 1 to 16 `MixUp` and `CutMix` for each batch; those that
    give `num_classes` give the same.

    Args:
        transforms: a list of transforms that change pixels (colour, blur, affine transforms and policies),
            or of those that resize, crop and pad (not in `RandomOrder`); flips; and other `RandomApply`,
            `RandomChoice` and `RandomOrder`, up to 8 levels deep.
        p: their weights, of any positive sum; None means all the same.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None


@dataclass(frozen=True)
class RandomOrder(Transform):
    """All of `transforms`, in random order.

    Args:
        transforms: a list of transforms that change pixels (colour, blur, affine transforms and policies),
            or of those that resize, crop and pad (not in `RandomOrder`); flips; and other `RandomApply`,
            `RandomChoice` and `RandomOrder`, up to 8 levels deep.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    transforms: Sequence[Transform]


@dataclass(frozen=True)
class Normalize(Transform):
    """(value / 255 - mean) / std for each channel; last in the list, and not with dtype="uint8".

    Args:
        mean: numbers, one for each channel (red, green, blue, …) or one for all: a sequence, an array or a
            tensor.
        std: positive numbers, likewise.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    mean: Sequence[float]
    std: Sequence[float]


@dataclass(frozen=True)
class RandomErasing(Transform):
    """A random box gets `value`, with probability `p`. (Zhong et al., AAAI 2020)

    Args:
        p: 0 to 1.
        scale: (least, most) of the image's area, as a share of it.
        ratio: (least, most) of height / width, drawn log-uniformly.
        value: a number, or one for each channel, or "random": normal numbers of mean 0 and deviation 1.
            Values are those of the output: 0 to 255 with dtype="uint8" (which "random" does not fit),
            fractions with the others; a `Normalize` after it normalises them.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0


@dataclass(frozen=True)
class PadTo(Transform):
    """Images keep their sizes, up to height × width: a batch has rows of that size, with the image in the
    top left corner, and a column `image_size`.

    After `Normalize` the rest of a row is zero, as torchvision's detection models pad; before it, `fill` is
    normalised as pixels are. An image that is larger is an error of its sample; `Resize` with `max_size`
    makes none.

    With `"batch"`, rows are as large as their batch's images need: each batch has a shape of its own. The
    transforms before it must limit the size, as `Resize` with `max_size` does; the memory of a batch is
    that of rows of the largest possible size.

    Args:
        size: of rows: an int (a square), or (height, width), or "batch": the largest height and the largest
            width of a batch's images.
        fill: as for `Pad`; with dtypes of fractions it becomes one, as pixels do.
        multiple: with "batch": both sides are rounded up to a multiple of it; None means 32, as
            torchvision's models pad.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: Size | Literal["batch"]
    fill: Fill | None = 0
    multiple: int | None = None


@dataclass(frozen=True)
class SanitizeBoundingBoxes(Transform):
    """Objects whose box is too small, is not a number or lies outside the image are dropped, with their
    keypoints and values.

    A box may be up to 0.001 pixels outside, because of roundings, and is then clamped.

    Args:
        min_size: the least width and height in pixels, at least 1.
        min_area: the least area in pixels, at least 1.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    min_size: float = 1.0
    min_area: float = 1.0


@dataclass(frozen=True)
class ClampBoundingBoxes(Transform):
    """Boxes are clamped to the image, and keypoints outside of it are hidden.

    Crops, padding and affine transforms do so, too.
    """


@dataclass(frozen=True)
class ConvertBoundingBoxFormat(Transform):
    """Batches have boxes in this format, not in that of the source; after all transforms that move pixels.

    Args:
        format: "xyxy", "xywh" or "cxcywh", or torchvision's BoundingBoxFormat.
        normalized: as shares of the image's width and height, not in pixels; after `PadTo`, of the row's.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    format: Any
    normalized: bool = False


@dataclass(frozen=True)
class Mosaic(Transform):
    """A square of four images, or of nine: the sample's own, and others drawn from all samples of the
    source. (Bochkovskiy et al., 2020)

    First in a loader's list, it gives rows their size; no transform after it crops or resamples. The images
    are scaled so that their longer sides are `size`, and meet at a random point in the middle half of a
    canvas of twice the size. A row is a random window of the canvas. Each image is decoded where it is
    visible, resampled once, and written to its place in the row. With `degrees`, `shear` or `perspective`
    it is then turned, which resamples it again. With n = 9, images do not meet at that point: the upper
    left corner of the sample's own is a quarter of the canvas from its edges, and eight lie around it.

    Batches have the objects of all of them, in the order of the images, with boxes clamped. Objects are
    dropped if their boxes have a side of at most 2 pixels, sides in a ratio of at least 100, or at most a
    tenth of the area that they had on the canvas. If masks are drawn, objects with polygons have the
    polygons' boxes, and are dropped at a hundredth. Samples with objects must have boxes. Other columns are
    those of the sample itself.

    Args:
        size: height and width of rows, an int.
        scale: 0 to 0.9: the window is scaled by a factor uniform between 1 - scale and 1 + scale.
        translate: 0 to 1: the window is moved by up to this share of `size`, along each axis.
        fill: where there is no image: an int 0 to 255, or (red, green, blue).
        p: of several images, 0 to 1; otherwise the sample's own alone is in the middle, and all else
            likewise.
        degrees: 0 to 180: the images are turned by up to as many, either way.
        shear: 0 to 30 degrees: the images are sheared by up to as many, along each axis and either way.
        perspective: 0 to 0.01: distances from the canvas's middle are divided by 1 plus up to this much for
            each pixel from it, along each axis and either way.
        n: images of a row: 4, or 9, of which eight lie around the sample's own, as by Ultralytics' mosaic
            of nine.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    size: int
    scale: float = 0.5
    translate: float = 0.1
    fill: Fill | None = 114
    p: float = 1.0
    degrees: float = 0.0
    shear: float = 0.0
    perspective: float = 0.0
    n: int = 4


@dataclass(frozen=True)
class ElasticTransform(Transform):
    """Each pixel comes from a place that smooth noise moves, and the image keeps its size.

    Boxes and keypoints move by whole pixels and the noise there, as torchvision moves them. It goes neither
    with `geometry=True` nor with masks of shapes.

    Args:
        alpha: twice the pixels by which noise moves at most, before the blur.
        sigma: of the noise's blur, in pixels, 0 to 100.
        interpolation: where pixels move: "nearest" or "bilinear", or torchvision's or Pillow's names for
            it.
        fill: of pixels that come from outside the image: an int 0 to 255, or (red, green, blue), with which
            bilinear blends the border twice, as torchvision does. None: black, once.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    alpha: float = 50.0
    sigma: float = 5.0
    interpolation: Any = "bilinear"
    fill: Fill | None = 0


@dataclass(frozen=True)
class CopyPaste(Transform):
    """Objects are pasted onto the image, with their boxes, keypoints, masks and values, which follow those
    of the others, as by Ultralytics' `CopyPaste`: the image's own, mirrored left and right, or those of
    another image.

    An object can be pasted if its box covers less than 30 % of each box of the image; an image without
    objects stays as it is. Samples must have boxes, and masks that are drawn from polygons or RLE, in which
    pasted objects are on top. Hidden objects keep their boxes. A batch has room for twice the most objects
    of a sample; of more than 127 in one image, ask for masks of uint16. More than 8,192 objects, of both
    images together, are an error of the sample.

    Directly after a `Mosaic` it pastes onto the canvas of the images, before a row is cut out of it. These
    numbers are then those of the images together, and a batch has room for twice as many times the most
    objects of a sample as after the `Mosaic` alone.

    Args:
        p: 0 to 1: the share that is pasted of the objects that can be; those that cover least come first.
        mode: "flip": the image's own objects, mirrored; "mixup": those of another image, which is drawn
            from all samples of the source and changed by the transforms before this one, with draws of its
            own. Not after a `Mosaic`.

    Raises:
        ValueError, TypeError: naming the parameter.
    """

    p: float = 0.5
    mode: str = "flip"
