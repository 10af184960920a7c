"""Bad options of transforms are refused where they are given, with the names of transform and option."""

import collections
import copy
import dataclasses
import enum
import inspect
import itertools
import pickle
import re

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
_options = pytest.importorskip("stoker._options")

FLIPS = [stoker.RandomHorizontalFlip(1), stoker.RandomVerticalFlip(1)]

# A transform, a bad option, and the message's beginning where it is another than "Transform.option".
BAD = [
    (stoker.RandomCrop, {"size": 0}, "RandomCrop.size"),
    (stoker.RandomCrop, {"size": (2, 3, 4)}, "RandomCrop.size"),
    (stoker.RandomCrop, {"size": 32, "padding": -1}, "RandomCrop.padding"),
    (stoker.RandomCrop, {"size": 32, "padding": (1, 2, 3)}, "RandomCrop.padding"),
    (stoker.RandomCrop, {"size": 32, "padding_mode": "wrap"}, "RandomCrop.padding_mode"),
    (stoker.RandomCrop, {"size": 32, "pad_if_needed": "yes"}, "RandomCrop.pad_if_needed"),
    (stoker.RandomCrop, {"size": 32, "fill": 256}, "RandomCrop.fill"),
    (stoker.Pad, {"padding": "4"}, "Pad.padding"),
    (stoker.Pad, {"padding": 70_000}, "Pad.padding"),
    (stoker.Pad, {"padding": 1, "fill": (1, 2)}, "Pad.fill"),
    (stoker.Pad, {"padding": 1, "padding_mode": None}, "Pad.padding_mode"),
    (stoker.RandomVerticalFlip, {"p": 1.5}, "RandomVerticalFlip.p"),
    (stoker.RandomVerticalFlip, {"p": float("nan")}, "RandomVerticalFlip.p"),
    (stoker.RandomGrayscale, {"p": -0.1}, "RandomGrayscale.p"),
    (stoker.ColorJitter, {"brightness": -1}, "ColorJitter.brightness"),
    (stoker.ColorJitter, {"contrast": (1.2, 0.8)}, "ColorJitter.contrast"),
    (stoker.ColorJitter, {"saturation": (0.5, 1, 2)}, "ColorJitter.saturation"),
    (stoker.ColorJitter, {"hue": 0.6}, "ColorJitter.hue"),
    (stoker.ColorJitter, {"hue": "0.1"}, "ColorJitter.hue"),
    (stoker.RandomPhotometricDistort, {"contrast": 0.5}, "RandomPhotometricDistort.contrast"),
    (stoker.RandomPhotometricDistort, {"hue": (-0.6, 0)}, "RandomPhotometricDistort.hue"),
    (stoker.AugMix, {"severity": 11}, "AugMix.severity"),
    (stoker.AugMix, {"mixture_width": 0}, "AugMix.mixture_width"),
    (stoker.AugMix, {"alpha": 0}, "AugMix.alpha"),
    (stoker.RandomHSV, {"hue": 0.6}, "RandomHSV.hue"),
    (stoker.RandomHSV, {"value": -1}, "RandomHSV.value"),
    (stoker.GaussianBlur, {"kernel_size": 4}, "GaussianBlur.kernel_size is 4; it must be 1, 3, … or 1023"),
    (
        stoker.GaussianBlur,
        {"kernel_size": (3, 6)},
        "GaussianBlur.kernel_size is 6; it must be 1, 3, … or 1023",
    ),
    (stoker.GaussianBlur, {"kernel_size": (3, 0)}, "GaussianBlur.kernel_size"),
    (stoker.GaussianBlur, {"kernel_size": 3, "sigma": 0}, "GaussianBlur.sigma"),
    (stoker.GaussianBlur, {"kernel_size": 3, "sigma": (2.0, 1.0)}, "GaussianBlur.sigma"),
    (stoker.GaussianBlur, {"kernel_size": 3, "p": 2}, "GaussianBlur.p"),
    (stoker.ColorJitter, {"p": -1}, "ColorJitter.p"),
    (stoker.RandomSolarize, {"threshold": 256}, "RandomSolarize.threshold"),
    (stoker.RandomInvert, {"p": 1.5}, "RandomInvert.p"),
    (stoker.RandomPosterize, {"bits": 9}, "RandomPosterize.bits"),
    (stoker.RandomPosterize, {"bits": 4.5}, "RandomPosterize.bits"),
    (stoker.RandomAdjustSharpness, {"sharpness_factor": -1}, "RandomAdjustSharpness.sharpness_factor"),
    (stoker.RandomApply, {"transforms": stoker.ColorJitter()}, "RandomApply.transforms must be a list"),
    (stoker.RandomApply, {"transforms": [stoker.RandomGrayscale(), 7]}, "RandomApply.transforms[1]"),
    (
        stoker.RandomApply,
        {"transforms": [stoker.PadTo(9)]},
        "RandomApply.transforms[0] is PadTo",
    ),
    (stoker.RandomApply, {"transforms": [], "p": 1.5}, "RandomApply.p"),
    (
        stoker.RandomOrder,
        {"transforms": [stoker.RandomErasing()]},
        "RandomOrder.transforms[0] is RandomErasing",
    ),
    (stoker.RandomOrder, {"transforms": 7}, "RandomOrder.transforms must be a list of transforms, not 7"),
    (
        stoker.RandomChoice,
        {"transforms": []},
        "RandomChoice.transforms has 0 elements; it must have at least 1",
    ),
    (stoker.RandomChoice, {"transforms": stoker.ColorJitter()}, "RandomChoice.transforms must be a list"),
    (stoker.RandomChoice, {"transforms": FLIPS, "p": [1]}, "RandomChoice.p has 1 element; it must have 2"),
    (stoker.RandomChoice, {"transforms": FLIPS, "p": 0.5}, "RandomChoice.p must be a sequence"),
    (stoker.RandomChoice, {"transforms": FLIPS, "p": ["1", 1]}, "RandomChoice.p[0] must be a number"),
    (stoker.RandomChoice, {"transforms": FLIPS, "p": [1, -1]}, "RandomChoice.p[1] is -1"),
    (stoker.RandomChoice, {"transforms": FLIPS, "p": [0, 0]}, "RandomChoice.p is 0 for every transform"),
    (stoker.RandomPerspective, {"distortion_scale": 1.1}, "RandomPerspective.distortion_scale"),
    (stoker.ElasticTransform, {"alpha": -1}, "ElasticTransform.alpha"),
    (stoker.ElasticTransform, {"sigma": (5, 5)}, "ElasticTransform.sigma"),
    (stoker.RandomAffine, {"degrees": -1}, "RandomAffine.degrees"),
    (stoker.RandomAffine, {"degrees": None}, "RandomAffine.degrees"),
    (stoker.RandomAffine, {"degrees": 0, "translate": 0.1}, "RandomAffine.translate"),
    (stoker.RandomAffine, {"degrees": 0, "translate": (0.1, 1.1)}, "RandomAffine.translate[1]"),
    (stoker.RandomAffine, {"degrees": 0, "scale": (0, 1)}, "RandomAffine.scale"),
    (
        stoker.RandomAffine,
        {"degrees": 0, "shear": (1, 2, 3)},
        "RandomAffine.shear has 3 elements; it must have 2",
    ),
    (stoker.RandomAffine, {"degrees": 0, "shear": (1, 2, 4, 3)}, "RandomAffine.shear[2:] is (4, 3)"),
    (stoker.RandomAffine, {"degrees": 0, "shear": dict.fromkeys("abcd")}, "RandomAffine.shear"),
    (stoker.RandomAffine, {"degrees": 0, "shear": 90}, "RandomAffine.shear"),
    (stoker.RandomAffine, {"degrees": 0, "interpolation": "bicubic"}, "RandomAffine.interpolation"),
    (stoker.RandomRotation, {"degrees": 9, "center": 112}, "RandomRotation.center"),
    (stoker.RandomRotation, {"degrees": 9, "fill": 256}, "RandomRotation.fill"),
    (stoker.RandomRotation, {"degrees": 9, "padding_mode": "clamp"}, "RandomRotation.padding_mode"),
    (stoker.RandomZoom, {"height_factor": 0, "padding_mode": "nearest"}, "RandomZoom.padding_mode"),
    (
        stoker.RandomShear,
        {"padding_mode": "nearest"},
        'Keras\' nearest is "edge", its reflect is "symmetric"',
    ),
    (stoker.RandomZoom, {"height_factor": (-1, 0)}, "RandomZoom.height_factor"),
    (stoker.RandomZoom, {"height_factor": 0, "width_factor": (-1, 0)}, "RandomZoom.width_factor"),
    (stoker.RandomZoom, {"height_factor": (0.2, 1.2)}, "RandomZoom.height_factor"),
    (stoker.RandomTranslation, {"height_factor": 0.1, "width_factor": None}, "RandomTranslation.width"),
    (stoker.RandomErasing, {"p": 2}, "RandomErasing.p"),
    (stoker.RandomErasing, {"scale": 0.3}, "RandomErasing.scale"),
    (stoker.RandomErasing, {"scale": (0.5, 0.1)}, "RandomErasing.scale"),
    (stoker.RandomErasing, {"scale": (0.1, 1.5)}, "RandomErasing.scale"),
    (stoker.RandomErasing, {"ratio": (0, 1)}, "RandomErasing.ratio"),
    (stoker.SanitizeBoundingBoxes, {"min_size": 0.5}, "SanitizeBoundingBoxes.min_size"),
    (stoker.ConvertBoundingBoxFormat, {"format": "yxyx"}, "ConvertBoundingBoxFormat.format"),
    (stoker.ConvertBoundingBoxFormat, {"format": 4}, "ConvertBoundingBoxFormat.format"),
    (stoker.RandomIoUCrop, {"sampler_options": []}, "RandomIoUCrop.sampler_options"),
    (stoker.RandomIoUCrop, {"sampler_options": [0.5, -1]}, "RandomIoUCrop.sampler_options[1]"),
    (stoker.RandomIoUCrop, {"sampler_options": 0.5}, "RandomIoUCrop.sampler_options"),
    (stoker.RandomIoUCrop, {"trials": 51}, "RandomIoUCrop.trials"),
    (stoker.RandomIoUCrop, {"max_scale": 1.5}, "RandomIoUCrop.max_scale"),
    (stoker.RandomShortestSize, {"min_size": []}, "RandomShortestSize.min_size"),
    (stoker.RandomShortestSize, {"min_size": [480, 0]}, "RandomShortestSize.min_size[1]"),
    (stoker.RandomShortestSize, {"min_size": "480"}, "RandomShortestSize.min_size"),
    (stoker.RandomShortestSize, {"min_size": 480, "max_size": 0}, "RandomShortestSize.max_size"),
    (stoker.ScaleJitter, {"target_size": (9, 0)}, "ScaleJitter.target_size"),
    (stoker.ScaleJitter, {"target_size": 9, "scale_range": (0, 1)}, "ScaleJitter.scale_range"),
    (stoker.RandomZoomOut, {"side_range": (0.5, 2)}, "RandomZoomOut.side_range"),
    (stoker.RandomResizedCrop, {"size": 9, "scale": (1.0, 0.08)}, "RandomResizedCrop.scale"),
    (stoker.RandomResizedCrop, {"size": 9, "ratio": (0.0, 1.0)}, "RandomResizedCrop.ratio"),
    (stoker.ColorJitter, {"brightness": np.array(-0.4)}, "ColorJitter.brightness"),
    (stoker.RandomErasing, {"ratio": (1, 2, 3)}, "RandomErasing.ratio"),
    (stoker.RandomErasing, {"value": "noise"}, "RandomErasing.value"),
    (stoker.RandomErasing, {"value": (1, 2)}, "RandomErasing.value"),
    (stoker.AutoAugment, {"policy": "cifar"}, "AutoAugment.policy"),
    (stoker.AutoAugment, {"interpolation": "bicubic"}, "AutoAugment.interpolation"),
    (stoker.RandAugment, {"num_ops": -1}, "RandAugment.num_ops"),
    (stoker.RandAugment, {"magnitude": 31}, "RandAugment.magnitude"),
    (stoker.RandAugment, {"num_magnitude_bins": 1}, "RandAugment.num_magnitude_bins"),
    (stoker.RandAugment, {"fill": -1}, "RandAugment.fill"),
    (stoker.TrivialAugmentWide, {"num_magnitude_bins": 1001}, "TrivialAugmentWide.num_magnitude_bins"),
    (stoker.TrivialAugmentWide, {"interpolation": 3}, "TrivialAugmentWide.interpolation"),
    (stoker.Resize, {"size": 9, "interpolation": "hamming"}, "Resize.interpolation"),
    (stoker.Resize, {"size": 9, "interpolation": False}, "Resize.interpolation"),
    (stoker.Resize, {"size": 9, "antialias": "warn"}, "Resize.antialias"),
    (stoker.RandomResizedCrop, {"size": 9, "interpolation": 5}, "RandomResizedCrop.interpolation"),
    (stoker.RandomResizedCrop, {"size": 9, "interpolation": None}, "RandomResizedCrop.interpolation"),
    (stoker.Normalize, {"mean": (0, 0, True), "std": (1, 1, 1)}, "Normalize.mean[2]"),
    (stoker.Normalize, {"mean": np.zeros(3, bool), "std": (1, 1, 1)}, "Normalize.mean[0]"),
    (stoker.Normalize, {"mean": np.zeros((3, 2)), "std": (1, 1, 1)}, "Normalize.mean[0]"),
    (stoker.Normalize, {"mean": np.zeros(3, complex), "std": (1, 1, 1)}, "Normalize.mean[0]"),
    (stoker.Normalize, {"mean": ["0", "0", "0"], "std": (1, 1, 1)}, "Normalize.mean[0]"),
    (stoker.Normalize, {"mean": np.array(["0", "0", "0"]), "std": (1, 1, 1)}, "Normalize.mean[0]"),
]


@pytest.mark.parametrize(("transform", "options", "named"), BAD, ids=lambda v: getattr(v, "__name__", str(v)))
def test_refused_by_the_transform(transform, options, named):
    with pytest.raises((ValueError, TypeError), match=re.escape(named)):
        transform(**options)


class Mode(enum.Enum):
    """As torchvision's InterpolationMode."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


class Resampling(enum.IntEnum):
    """As Pillow's."""

    NEAREST = 0
    LANCZOS = 1
    BILINEAR = 2
    BICUBIC = 3
    BOX = 4
    HAMMING = 5


def test_overlaps_are_kept_as_a_tuple():
    listed, of_numpy = ([0.1, 0.5], np.array([0.1, 0.5]))
    crop = stoker.RandomIoUCrop(sampler_options=listed)
    listed.append(0.9)
    assert crop == stoker.RandomIoUCrop(sampler_options=of_numpy)
    assert hash(crop) == hash(stoker.RandomIoUCrop(sampler_options=of_numpy))
    assert crop.sampler_options == (0.1, 0.5) != stoker.RandomIoUCrop().sampler_options


class BoundingBoxFormat(enum.Enum):
    """torchvision's enum, whose values are its names."""

    CXCYWH = "CXCYWH"
    XYXYXYXY = "XYXYXYXY"


@pytest.mark.parametrize("format", ["cxcywh", "CXCYWH", BoundingBoxFormat.CXCYWH])
def test_formats_of_boxes_by_all_their_names(format):
    assert stoker.ConvertBoundingBoxFormat(format) == stoker.ConvertBoundingBoxFormat("cxcywh")
    assert stoker.Boxes([np.zeros((1, 4))], format=format).format == "cxcywh"
    with pytest.raises(ValueError, match="'xyxyxyxy'; it must be one of"):
        stoker.ConvertBoundingBoxFormat(BoundingBoxFormat.XYXYXYXY)


def test_formats_of_torchvision():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    for format in ("XYXY", "XYWH", "CXCYWH"):
        converted = stoker.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat[format])
        assert converted.format == format.lower()


@pytest.mark.parametrize("bilinear", ["bilinear", 2, Mode.BILINEAR, Resampling.BILINEAR])
def test_bilinear_by_all_its_names(bilinear):
    assert stoker.Resize(9, bilinear) == stoker.Resize(9, interpolation=bilinear) == stoker.Resize(9)
    assert stoker.RandomResizedCrop(9, interpolation=bilinear) == stoker.RandomResizedCrop(9)
    assert stoker.Resize(9, bilinear, None, False) == stoker.Resize(9, antialias=False)
    assert stoker.RandAugment(interpolation=bilinear) == stoker.RandAugment(interpolation="bilinear")


@pytest.mark.parametrize("bicubic", ["bicubic", 3, Mode.BICUBIC, Resampling.BICUBIC])
def test_bicubic_is_for_resizing(bicubic):
    assert stoker.Resize(9, bicubic).interpolation == "bicubic"
    assert stoker.RandomResizedCrop(9, interpolation=bicubic).interpolation == "bicubic"
    there = "RandAugment has 'nearest' or 'bilinear' only"
    with pytest.raises(ValueError, match=f"RandAugment.interpolation is 'bicubic'; {there}"):
        stoker.RandAugment(interpolation=bicubic)


@pytest.mark.parametrize(
    "nearest", ["nearest", 0, Mode.NEAREST, Mode.NEAREST_EXACT, Resampling.NEAREST], ids=str
)
def test_nearest_by_all_its_names(nearest):
    assert stoker.AutoAugment(interpolation=nearest) == stoker.AutoAugment()
    assert stoker.Resize(9, nearest).interpolation == "nearest"


@pytest.mark.parametrize("other", ["hamming", 5, Resampling.HAMMING, "cubic", "area"])
def test_unknown_filters_are_refused_with_the_alternatives(other):
    there = "has 'bilinear', 'bicubic', 'lanczos', 'box' or 'nearest' only"
    with pytest.raises(ValueError, match=there) as refused:
        stoker.Resize(9, other)
    assert ("weighs parts" in str(refused.value)) == (other == "area")


def test_filters_change_the_spec_and_the_explanation():
    compose = stoker.Compose([stoker.Resize((9, 9), "lanczos")])
    assert "interpolation lanczos" in str(compose.explain())
    assert stoker.Resize(9, "lanczos") != stoker.Resize(9)


class Scalar:
    """As an element of torch's tensors: no number to Python, and it has an item()."""

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value


def test_numbers_of_arrays_and_tensors():
    mean, std = (0.5, 0.25, 0.125), (1.0, 2.0, 3.0)
    wanted = stoker.Normalize(mean, std)
    for kind in (list, np.array, np.float32, lambda v: np.array(v).reshape(3, 1, 1)):
        assert stoker.Normalize(kind(mean), kind(std)) == wanted
    assert stoker.Normalize([Scalar(v) for v in mean], [np.array(v) for v in std]) == wanted
    assert stoker.RandomHorizontalFlip(np.array(0.5)) == stoker.RandomHorizontalFlip()
    with pytest.raises(TypeError, match=r"Normalize.mean\[0\]"):
        stoker.Normalize([Scalar("0"), 0, 0], std)


def test_numbers_of_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    mean, std = (0.5, 0.25, 0.125), (1.0, 2.0, 3.0)
    for shape in ((3,), (3, 1, 1)):
        tensors = [torch.tensor(values).reshape(shape) for values in (mean, std)]
        assert stoker.Normalize(*tensors) == stoker.Normalize(mean, std)
    assert stoker.ColorJitter(torch.tensor(0.5)) == stoker.ColorJitter(0.5)
    assert stoker.Resize(torch.tensor(9)) == stoker.Resize(9)
    with pytest.raises(TypeError, match=r"Normalize.mean\[0\]"):
        stoker.Normalize(torch.tensor([True, False, False]), std)


def test_interpolations_of_torchvision_and_pillow():
    v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed here")
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
    for modes in (v2.InterpolationMode, image.Resampling):
        for name in ("bilinear", "bicubic", "lanczos", "box", "nearest"):
            assert stoker.Resize(9, modes[name.upper()]) == stoker.Resize(9, name)
        with pytest.raises(ValueError, match="Resize has 'bilinear', 'bicubic'"):
            stoker.Resize(9, modes.HAMMING)
    assert stoker.Resize(9, v2.InterpolationMode.NEAREST_EXACT) == stoker.Resize(9, "nearest")


CROP = stoker.RandomResizedCrop(32)
NORMALIZE = stoker.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

# Faults that only the whole list shows: the place, the transform, and the message.
BAD_LISTS = [
    ([stoker.ColorJitter(0.4), CROP], "uint8", ["transforms[0], ColorJitter", "differ in size"]),
    ([CROP, stoker.RandomErasing(value="random")], "uint8", ["transforms[1], RandomErasing", "value"]),
    ([CROP, stoker.RandomErasing(value=256)], "uint8", ["transforms[1], RandomErasing", "value = 256"]),
    ([CROP, stoker.RandomErasing(), stoker.RandAugment()], "uint8", ["transforms[1], RandomErasing"]),
    ([CROP, NORMALIZE, stoker.GaussianBlur(3)], "float32", ["transforms[1], Normalize", "GaussianBlur"]),
    (
        [CROP, stoker.RandomErasing(value="random"), NORMALIZE],
        "float32",
        ["transforms[1], RandomErasing", "Normalize"],
    ),
    ([CROP, stoker.GaussianBlur(65)], "uint8", ["transforms[1], GaussianBlur", "kernel"]),
    ([CROP, stoker.RandomCrop(40)], "uint8", ["transforms[1], RandomCrop", "pad_if_needed"]),
    ([CROP, stoker.Pad(65_535)], "uint8", ["transforms[1], Pad", "131102"]),
    ([stoker.Pad(4, padding_mode="edge"), CROP], "uint8", ["transforms[0], Pad", "RandomResizedCrop"]),
    ([stoker.RandomVerticalFlip()], "uint8", ["same size"]),
    ([stoker.RandomRotation(9), CROP], "uint8", ["transforms[0], RandomRotation", "differ in size"]),
    ([CROP, stoker.RandomRotation(9, expand=True)], "uint8", ["transforms[1], RandomRotation", "expand"]),
]


@pytest.mark.parametrize(("transforms", "dtype", "said"), BAD_LISTS, ids=lambda v: str(v)[:60])
def test_refused_by_compose_and_loader(transforms, dtype, said):
    samples = stoker.arrays(np.zeros((4, 48, 48, 3), np.uint8))
    for make in (
        lambda: stoker.Compose(transforms, dtype=dtype),
        lambda: stoker.Loader(samples, transforms, batch_size=2, dtype=dtype),
    ):
        with pytest.raises(ValueError, match="transform") as raised:
            make()
        for part in said:
            assert part in str(raised.value)


def test_the_most_transforms_are_the_same_number_everywhere():
    samples = stoker.arrays(np.zeros((4, 48, 48, 3), np.uint8))
    most = [CROP, *[stoker.RandomVerticalFlip()] * 255]
    loader = stoker.Loader(samples, most, batch_size=2)
    loader.load_state_dict(loader.state_dict())
    assert stoker.Compose(most)(np.zeros((48, 48, 3), np.uint8)).shape == (32, 32, 3)
    for make in (
        lambda: stoker.Compose([*most, stoker.RandomVerticalFlip()]),
        lambda: stoker.Loader(samples, [*most, stoker.RandomVerticalFlip()], batch_size=2),
        lambda: stoker.Loader(samples, views=[most, [CROP]], batch_size=2),
    ):
        with pytest.raises(ValueError, match="257"):
            make()


def test_random_apply_is_its_list_or_nothing():
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    changes = [stoker.ColorJitter(0.4), stoker.GaussianBlur(3), stoker.RandomSolarize(128, p=1)]
    crop = stoker.CenterCrop(40)
    always, never = (stoker.Compose([crop, stoker.RandomApply(changes, p=p)]) for p in (1, 0))
    plain = stoker.Compose([crop, *changes])
    half = stoker.Compose([crop, stoker.RandomApply(changes)])
    of_half = []
    for position in range(50):
        wanted = plain(image, position=position)
        assert np.array_equal(always(image, position=position), wanted)
        assert np.array_equal(never(image, position=position), image)
        made = half(image, position=position)
        of_half.append(np.array_equal(made, wanted))
        assert of_half[-1] or np.array_equal(made, image)
    assert 10 < sum(of_half) < 40
    assert pickle.loads(pickle.dumps(stoker.RandomApply(changes))) == stoker.RandomApply(tuple(changes))
    assert "RandomApply(ColorJitter(brightness 0.6 to 1.4)" in str(half.explain())


def test_trees_in_a_spec_an_explanation_and_a_pickle():
    choice = stoker.RandomChoice(FLIPS, p=[1, 3])
    tree = stoker.RandomOrder((choice, stoker.RandomApply([stoker.RandomOrder([])], 0.25)))
    assert tree._spec() == {
        "name": "RandomOrder",
        "transforms": [
            {
                "name": "RandomChoice",
                "transforms": [
                    {"name": "RandomHorizontalFlip", "p": 1},
                    {"name": "RandomVerticalFlip", "p": 1},
                ],
                "p": (1, 3),
            },
            {"name": "RandomApply", "transforms": [{"name": "RandomOrder", "transforms": []}], "p": 0.25},
        ],
    }
    for copied in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), dataclasses.replace(tree)):
        assert copied == tree and hash(copied) == hash(tree)
    assert tree != stoker.RandomOrder([stoker.RandomChoice(FLIPS), tree.transforms[1]])
    compose = stoker.Compose([stoker.CenterCrop(8), tree])
    wanted = "RandomOrder(RandomChoice(RandomHorizontalFlip(p 1), RandomVerticalFlip(p 1), p (1, 3)), "
    assert wanted + "RandomApply(RandomOrder, p 0.25))" in compose.explain()
    assert "what it holds decides which pixels are decoded" in compose.explain()
    assert "RandomChoice(transforms=(RandomHorizontalFlip(p=1.0)" in repr(compose)
    assert isinstance(stoker.RandomChoice([stoker.MixUp()]), stoker.BatchTransform)


def test_a_tree_is_limited_in_depth_and_number():
    tree = stoker.RandomGrayscale()
    for _ in range(7):
        tree = stoker.RandomOrder([tree])
    assert stoker.Compose([CROP, tree])
    for kind in (stoker.RandomApply, stoker.RandomChoice, stoker.RandomOrder):
        for held in (tree, pickle.loads(pickle.dumps(tree)), dataclasses.replace(tree)):
            with pytest.raises(ValueError) as said:
                kind([stoker.RandomGrayscale(), held])
            assert str(said.value) == f"{kind.__name__}.transforms is nested more than 8 levels deep."
    many = stoker.RandomOrder([stoker.RandomOrder(FLIPS)] * 84)
    assert stoker.Compose([many, CROP, *FLIPS])  # 1 + 84 * 3 + 1 + 2
    with pytest.raises(ValueError, match="257 transforms; at most 256"):
        stoker.Compose([many, CROP, *FLIPS, *FLIPS[:1]])


def test_a_choice_is_one_of_its_transforms():
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    changes = [
        stoker.RandomHorizontalFlip(1),
        stoker.ColorJitter((0.5, 0.5)),
        stoker.RandomSolarize(128, p=1),
    ]
    crop = stoker.CenterCrop(40)
    alone = [stoker.Compose([crop, change])(image) for change in changes]
    choice = stoker.Compose([crop, stoker.RandomChoice(changes, p=(6, 0, 2))])
    counts = [0, 0, 0]
    for position in range(400):
        made = choice(image, position=position)
        counts[[np.array_equal(made, one) for one in alone].index(True)] += 1
    assert counts[1] == 0 and 260 < counts[0] < 340  # 300, and a deviation of 8.7
    orders = [
        stoker.Compose([crop, *(changes[i] for i in order)])(image).tobytes()
        for order in itertools.permutations(range(3))
    ]
    order = stoker.Compose([crop, stoker.RandomOrder(changes)])
    assert {order(image, position=position).tobytes() for position in range(100)} == set(orders)


def test_affine_transforms_in_a_spec_and_in_an_explanation():
    affine = stoker.RandomAffine(10, (0.1, 0), None, (1, 2, 3, 4), "bilinear", None, (3, 4.5), "wrap")
    assert affine._spec() == {
        **{"name": "RandomAffine", "degrees": (-10, 10), "translate_x": 0.1, "translate_y": 0},
        **{"scale": (1, 1), "shear_x": (1, 2), "shear_y": (3, 4), "interpolation": "bilinear", "fill": None},
        **{"center_x": 3, "center_y": 4.5, "padding_mode": "wrap"},
    }
    shear = stoker.RandomAffine(0, shear=9)
    assert shear == stoker.RandomAffine((0, 0), shear=(-9, 9), fill=(0, 0, 0))
    assert stoker.RandomAffine(0) == stoker.RandomAffine(0, translate=(0, 0), scale=(1, 1), shear=0)
    assert stoker.RandomAffine(0, shear=collections.deque([1, 2, 3, 4])).shear == (1, 2, 3, 4)
    text = str(stoker.Compose([CROP, affine, stoker.RandomZoom(0.1)]).explain())
    assert (
        "degrees -10 to 10, translate_x 0.1, shear_x 1 to 2, shear_y 3 to 4, interpolation bilinear" in text
    )
    assert "fill none, center_x 3, center_y 4.5, padding_mode wrap" in text
    assert "RandomZoom(height_factor -0.1 to 0.1)" in text


def test_an_image_that_is_too_small_is_an_error_of_its_sample():
    compose = stoker.Compose([stoker.RandomCrop(40, padding=2)])
    assert compose(np.zeros((36, 50, 3), np.uint8)).shape == (40, 40, 3)
    with pytest.raises(ValueError, match="RandomCrop"):
        compose(np.zeros((35, 50, 3), np.uint8))


@pytest.mark.parametrize("name", [row["name"] for row in _options.TABLES["transforms"]])
def test_parameters_are_torchvisions(name):
    """Names, order and defaults. Some have one more after them."""
    v2 = pytest.importorskip("torchvision.transforms.v2")
    if not hasattr(v2, name):
        pytest.skip(f"torchvision has no {name}")
    theirs = inspect.signature(getattr(v2, name)).parameters
    ours = inspect.signature(getattr(stoker, name)).parameters
    left_out = {
        "Normalize": ["inplace"],
        "RandomErasing": ["inplace"],
        "SanitizeBoundingBoxes": ["labels_getter"],
        "ClampBoundingBoxes": ["clamping_mode"],
    }.get(name, [])
    added = {
        "ColorJitter": ["p"],
        "GaussianBlur": ["p"],
        "ConvertBoundingBoxFormat": ["normalized"],
    }.get(name, [])
    if name in ("RandomAffine", "RandomRotation"):
        added = ["padding_mode"]
    if name in ("Resize", "RandomResizedCrop", "RandomShortestSize", "ScaleJitter"):
        added = ["resampler"]
    defaults = {"p": 1, "padding_mode": "constant", "normalized": False, "resampler": "pillow"}
    assert [p for p in theirs if p not in left_out] + added == list(ours)
    for option, parameter in ours.items():
        if option in added:
            assert parameter.default == defaults[option]
            continue
        default = theirs[option].default
        assert getattr(default, "value", default) == parameter.default, option


def test_a_subclass_of_a_transform_is_that_transform():
    class Thumbnail(stoker.Resize):
        pass

    assert Thumbnail(32)._spec() == stoker.Resize(32)._spec()
    with pytest.raises(stoker.InvalidArgumentError, match=r"Thumbnail\.size"):
        Thumbnail(0)
