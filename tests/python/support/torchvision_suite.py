"""torchvision.transforms.v2 with boxes and masks that stoker moves, for torchvision's own tests of it.

Everything that is not here is torchvision's. Parameters are those that torchvision draws, or for
RandomZoomOut, RandomIoUCrop, ScaleJitter and RandomShortestSize those that stoker draws. As a pytest plugin
it chooses the tests of boxes and masks, and writes what became of them to $STOKER_SUITE_REPORT.
test_torchvision_suite.py runs it.
"""

import collections
import functools
import json
import math
import os
import pathlib
import tempfile
import types

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as v2_functional

FOLDER = pathlib.Path(tempfile.mkdtemp())
ROW = 400  # larger than all images of the tests
calls = 0  # of stoker's loader


class RefusedError(Exception):
    """stoker does not have it, or it is not about boxes and masks."""


# --- stoker -----------------------------------------------------------------------------------------


def rows_of(size, columns, steps, **options):
    """Returns the batch of one photograph of this size."""
    global calls
    calls += 1
    path = FOLDER / f"{size[0]}x{size[1]}.png"
    if not path.exists():
        pixels = np.random.default_rng(0).integers(0, 255, (*size, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    try:
        steps = [getattr(stoker, name)(*args, **named) for name, args, named in steps]
        source = stoker.files([path], columns=columns)
        (batch,) = stoker.Loader(source, [*steps, stoker.PadTo(ROW)], batch_size=1, **options)
    except (stoker.Error, TypeError) as error:
        raise RefusedError(str(error)) from error
    return batch


def step(name, *args, **named):
    return name, args, named


def moved(given, *steps, fill=0, format=None):
    """Returns a tensor of boxes or masks after stoker's transforms."""
    if isinstance(given, tv_tensors.Mask):
        planes = given.as_subclass(torch.Tensor).reshape(-1, *given.shape[-2:])
        made = torch.stack([moved_mask(plane, steps, fill) for plane in planes])
        return tv_tensors.Mask(made.reshape(*given.shape[:-2], *made.shape[-2:]))
    flat = given.as_subclass(torch.Tensor).reshape(-1, 4)
    columns = {"boxes": stoker.Boxes([flat.float().numpy()], format=given.format.name.lower())}
    batch = rows_of(given.canvas_size, columns, steps)
    boxes = torch.from_numpy(np.array(batch["boxes"][0])).reshape(given.shape).to(given.dtype)
    return tv_tensors.BoundingBoxes(
        boxes, format=format or given.format, canvas_size=tuple(batch["image_size"][0].tolist())
    )


def moved_mask(plane, steps, fill):
    path = FOLDER / "mask.png"
    Image.fromarray(plane.numpy().astype(np.uint8)).save(path)
    batch = rows_of(tuple(plane.shape), {"mask": stoker.Mask([path], fill=int(fill or 0))}, steps)
    height, width = batch["image_size"][0]
    return torch.from_numpy(np.array(batch["mask"][0][:height, :width])).to(plane.dtype)


def size_of(given):
    return tuple(v2_functional.get_size(given))


def as_size(size):
    if size is None or isinstance(size, int):
        return size
    return size[0] if len(size) == 1 else tuple(size)


def window(size, top, left, height, width):
    """The steps that make a crop: padding that moves it to the centre, and the crop of the centre."""
    x, y = size[1] - width - 2 * left, size[0] - height - 2 * top
    margins = [max(0, x), max(0, y), max(0, -x), max(0, -y)]
    return [step("Pad", margins), step("CenterCrop", (height, width))]


# --- torchvision's functions of boxes and masks, by stoker ------------------------------------------


def horizontal_flip(given):
    return moved(given, step("RandomHorizontalFlip", 1))


def vertical_flip(given):
    return moved(given, step("RandomVerticalFlip", 1))


def resize(given, size=None, interpolation=None, max_size=None, antialias=True):
    return moved(given, step("Resize", as_size(size), max_size=max_size))


def center_crop(given, output_size):
    return moved(given, step("CenterCrop", as_size(output_size)))


def crop(given, top, left, height, width):
    return moved(given, *window(size_of(given), top, left, height, width))


def resized_crop(given, top, left, height, width, size, interpolation=None, antialias=True):
    return moved(given, *window(size_of(given), top, left, height, width), step("Resize", tuple(size)))


def pad(given, padding, fill=0, padding_mode="constant"):
    margins = padding if isinstance(padding, int) else list(padding)
    return moved(given, step("Pad", margins, padding_mode=padding_mode), fill=fill)


def matrix_of(angle, scale, shear):
    """The linear part of torchvision's affine map."""
    turn, x, y = (math.radians(each) for each in (angle, *shear))
    first, second = math.cos(turn - y) / math.cos(y), math.sin(turn - y) / math.cos(y)
    rows = [
        [first, -first * math.tan(x) - math.sin(turn)],
        [second, -second * math.tan(x) + math.cos(turn)],
    ]
    return scale * np.array(rows)


def affine(given, angle, translate, scale, shear, center=None, interpolation=None, fill=None):
    x, y = [shear, 0] if isinstance(shear, (int, float)) else [*shear, *shear][:2]
    height, width = size_of(given)
    center = np.array([width / 2, height / 2] if center is None else center, float)
    if any(translate):  # a map that shifts, too, is one about another centre, which does not
        rest = np.eye(2) - matrix_of(angle, scale, (x, y))
        if abs(np.linalg.det(rest)) < 1e-6:
            raise RefusedError("a shift alone cannot be given")
        center = center + np.linalg.solve(rest, np.array(translate, float))
    named = {"scale": (scale, scale), "shear": (x, x, y, y), "center": tuple(center)}
    return moved(given, step("RandomAffine", (angle, angle), **named))


def rotate(given, angle, interpolation=None, expand=False, center=None, fill=None):
    center = None if center is None else tuple(center)
    return moved(given, step("RandomRotation", (angle, angle), expand=expand, center=center))


def convert_bounding_box_format(given, new_format):
    if isinstance(new_format, str):
        new_format = tv_tensors.BoundingBoxFormat[new_format.upper()]
    return moved(given, step("ConvertBoundingBoxFormat", new_format.name.lower()), format=new_format)


def clamp_bounding_boxes(given):
    return moved(given, step("ClampBoundingBoxes"))


def sanitize_bounding_boxes(given, format=None, canvas_size=None, **options):
    """Returns the boxes that are kept, and which ones those are."""
    tensor = given.as_subclass(torch.Tensor)
    columns = {
        "boxes": stoker.Boxes([tensor.float().numpy()], format=(format or given.format.name).lower()),
        "order": stoker.PerObject([np.arange(len(tensor))]),
    }
    size = canvas_size or given.canvas_size
    batch = rows_of(size, columns, [step("SanitizeBoundingBoxes", **options)])
    kept = torch.zeros(len(tensor), dtype=torch.bool)
    kept[torch.from_numpy(np.array(batch["order"][0]))] = True
    boxes = torch.from_numpy(np.array(batch["boxes"][0])).to(tensor.dtype)
    return (tv_tensors.wrap(boxes, like=given) if is_moved(given) else boxes), kept


FUNCTIONS = {
    each.__name__: each
    for each in (
        *(horizontal_flip, vertical_flip, resize, center_crop, crop, resized_crop, pad, affine, rotate),
        *(convert_bounding_box_format, clamp_bounding_boxes, sanitize_bounding_boxes),
    )
}


def is_moved(given):
    return isinstance(given, (tv_tensors.BoundingBoxes, tv_tensors.Mask))


class Functional(types.ModuleType):
    """torchvision.transforms.v2.functional with the functions above."""

    def __getattr__(self, name):
        theirs = getattr(v2_functional, name)
        if name not in FUNCTIONS:
            return theirs

        @functools.wraps(theirs)
        def chosen(given, *args, **named):
            if is_moved(given) or name == "sanitize_bounding_boxes":
                return FUNCTIONS[name](given, *args, **named)
            if name == "clamp_bounding_boxes":
                named.setdefault("clamping_mode", "soft")  # newer than some tests
            return theirs(given, *args, **named)

        return chosen


functional = Functional("functional")


# --- torchvision's classes --------------------------------------------------------------------------


def random_crop(transform, given):
    params = transform.make_params([given])
    if params["needs_pad"]:
        fill = transform.fill if isinstance(transform.fill, (int, float)) else 0
        given = pad(given, params["padding"], fill)
    sides = {side: params[side] for side in ("top", "left", "height", "width")}
    return crop(given, **sides) if params["needs_crop"] else given


CLASSES = {
    "CenterCrop": lambda t, given: center_crop(given, t.size),
    "ClampBoundingBoxes": lambda t, given: clamp_bounding_boxes(given),
    "ConvertBoundingBoxFormat": lambda t, given: convert_bounding_box_format(given, t.format),
    "Pad": lambda t, given: pad(given, t.padding, padding_mode=t.padding_mode),
    "RandomAffine": lambda t, given: affine(given, **t.make_params([given]), center=t.center),
    "RandomCrop": random_crop,
    "RandomHorizontalFlip": lambda t, given: horizontal_flip(given),
    "RandomRotation": lambda t, given: rotate(
        given, **t.make_params([given]), expand=t.expand, center=t.center
    ),
    "RandomVerticalFlip": lambda t, given: vertical_flip(given),
    "Resize": lambda t, given: resize(given, t.size, max_size=t.max_size),
}


def class_of(name, run):
    class Chosen(getattr(v2, name)):
        def __call__(self, *inputs):
            return (
                run(self, inputs[0])
                if len(inputs) == 1 and is_moved(inputs[0])
                else super().__call__(*inputs)
            )

    Chosen.__name__ = name
    return Chosen


globals().update({name: class_of(name, run) for name, run in CLASSES.items()})


class SanitizeBoundingBoxes(v2.SanitizeBoundingBoxes):
    """Keeps the boxes that stoker keeps."""

    def forward(self, *inputs):
        misc = v2_functional._misc
        theirs = misc._get_sanitize_bounding_boxes_mask

        def kept(boxes, format, canvas_size, min_size=1.0, min_area=1.0):
            size = {"min_size": min_size, "min_area": min_area}
            return sanitize_bounding_boxes(boxes, format.name, canvas_size, **size)[1]

        misc._get_sanitize_bounding_boxes_mask = kept
        try:
            return super().forward(*inputs)
        finally:
            misc._get_sanitize_bounding_boxes_mask = theirs


def drawn(given, made, boxes=None):
    """Returns what stoker draws for an image: the offset of the image in its row, and the row's size."""
    values = [[0, 0, 1, 1]] if boxes is None else boxes.as_subclass(torch.Tensor).numpy()
    batch = rows_of(size_of(given), {"boxes": stoker.Boxes([values])}, [made], seed=calls, geometry=True)
    left, top = (int(offset) for offset in batch["geometry"][0][:, 2])
    return left, top, tuple(batch["image_size"][0].tolist())


class RandomZoomOut(v2.RandomZoomOut):
    def make_params(self, flat_inputs):
        height, width = size_of(flat_inputs[0])
        left, top, size = drawn(flat_inputs[0], step("RandomZoomOut", side_range=self.side_range, p=1))
        return {"padding": [left, top, size[1] - left - width, size[0] - top - height]}


class ScaleJitter(v2.ScaleJitter):
    def make_params(self, flat_inputs):
        return {"size": drawn(flat_inputs[0], step("ScaleJitter", self.target_size, self.scale_range))[2]}


class RandomShortestSize(v2.RandomShortestSize):
    def make_params(self, flat_inputs):
        made = step("RandomShortestSize", list(self.min_size), self.max_size)
        return {"size": drawn(flat_inputs[0], made)[2]}


class RandomIoUCrop(v2.RandomIoUCrop):
    def make_params(self, flat_inputs):
        image, boxes = flat_inputs
        left, top, size = drawn(image, step("RandomIoUCrop", sampler_options=self.options), boxes)
        if size == size_of(image):  # no crop was found
            return {} if min(self.options) > 1 else self.make_params(flat_inputs)
        left, top = -left, -top
        x, y = ((boxes[:, k] + boxes[:, k + 2]) / 2 for k in (0, 1))
        within = (left < x) & (x < left + size[1]) & (top < y) & (y < top + size[0])
        within = within.as_subclass(torch.Tensor)
        return {"top": top, "left": left, "height": size[0], "width": size[1], "is_within_crop_area": within}


def __getattr__(name):
    return getattr(v2, name)


# --- the tests' own checks of a kernel, a function or a transform, as comparisons with torchvision ------


def expected_of(name, given, args, named):
    """The result of torchvision; of resized masks that of its NEAREST_EXACT, which stoker's masks have."""
    theirs = getattr(v2_functional, name)
    if not isinstance(given, tv_tensors.Mask) or name not in ("resize", "resized_crop"):
        return theirs(given, *args, **named)
    pixels = given.as_subclass(torch.Tensor).to(torch.uint8).reshape(-1, *given.shape[-2:])
    exact = {"interpolation": v2.InterpolationMode.NEAREST_EXACT, "antialias": False}
    made = theirs(pixels, *args, **{**named, **exact})
    return made.reshape(*given.shape[:-2], *made.shape[-2:]).to(given.dtype)


def compare(name, given, args, named):
    if not is_moved(given) or name not in FUNCTIONS:
        raise RefusedError(f"{name} is not of stoker's boxes and masks")
    named = {key: value for key, value in named.items() if not key.startswith("check_")}
    actual, expected = FUNCTIONS[name](given, *args, **named), expected_of(name, given, args, named)
    if name == "sanitize_bounding_boxes":
        actual, expected = actual[1], expected[1]
    exact = isinstance(given, tv_tensors.Mask) or name == "sanitize_bounding_boxes"
    torch.testing.assert_close(
        actual.as_subclass(torch.Tensor),
        expected.as_subclass(torch.Tensor),
        atol=0 if exact else 1e-4,
        rtol=0,
    )
    if isinstance(given, tv_tensors.BoundingBoxes) and not exact:
        assert actual.canvas_size == tuple(expected.canvas_size)


def check_kernel(kernel, input, *args, format=None, canvas_size=None, old_format=None, **named):
    name = kernel.__name__
    if name not in FUNCTIONS:
        name = name.removesuffix("_bounding_boxes").removesuffix("_mask")
    if type(input) is torch.Tensor and format is not None:
        input = tv_tensors.BoundingBoxes(input, format=format, canvas_size=canvas_size)
    compare(name, input, args, named)


def check_functional(function, input, *args, **named):
    compare(function.__name__, input, args, named)


def check_transform(transform, input, **_):
    name = type(transform).__name__
    if not is_moved(input) or name not in CLASSES:
        raise RefusedError(f"{name} is not of stoker's boxes and masks, or stoker draws it")
    torch.manual_seed(1)
    actual = transform(input)
    torch.manual_seed(1)
    if isinstance(input, tv_tensors.Mask) and name == "Resize":
        expected = expected_of("resize", input, (), {"size": transform.size, "max_size": transform.max_size})
    else:
        expected = type(transform).__mro__[1].__call__(transform, input)
    torch.testing.assert_close(
        actual.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor), atol=1e-4, rtol=0
    )


# --- the plugin -------------------------------------------------------------------------------------

CHOSEN = (
    "bounding_box",
    "mask",
    "Format",
    "ClampBoundingBoxes",
    "SanitizeBoundingBoxes",
    "ZoomOut",
    "IoUCrop",
)
CHOSEN += ("ScaleJitter", "ShortestSize")
# Images, what is checked before anything moves, and rotated boxes.
LEFT_OUT = ("image", "video", "pil", "signature", "inplace", "noop", "error", "cuda", "ywhr", "xyxyxyxy")
outcomes = collections.defaultdict(collections.Counter)
failed = []


def pytest_collection_modifyitems(items):
    items[:] = [
        item
        for item in items
        if any(word in item.nodeid for word in CHOSEN)
        and not any(word in item.nodeid.partition("::")[2].lower() for word in LEFT_OUT)
    ]
    for module in {item.module for item in items}:
        for check in (check_kernel, check_functional, check_transform):
            setattr(module, check.__name__, check)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    before = getattr(item, "stoker_calls", calls)
    if call.when == "setup":
        item.stoker_calls = calls
    outcome = yield
    report = outcome.get_result()
    if call.when != "call":
        return
    group = outcomes[item.nodeid.split("::")[1]]
    if call.excinfo is not None and call.excinfo.errisinstance(RefusedError):
        report.outcome, report.longrepr = "skipped", ("", 0, str(call.excinfo.value))
        group["refused" if calls > before else "not applicable"] += 1
    elif calls == before:
        group["not applicable"] += 1
    else:
        group[report.outcome] += 1
        if report.outcome == "failed":
            failed.append(item.nodeid.partition("::")[2])


def pytest_sessionfinish():
    report = {"outcomes": outcomes, "failed": failed}
    pathlib.Path(os.environ["STOKER_SUITE_REPORT"]).write_text(json.dumps(report), encoding="utf-8")
