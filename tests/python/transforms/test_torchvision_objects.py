"""Boxes of samples are moved, clamped and dropped as by torchvision's transforms.v2."""

import numpy as np
import pytest
import stoker
from moves import MOVES
from PIL import Image

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

SIZE = (83, 121)
RESIZE = ("Resize", ((70, 90),), {})
SANITIZE = ("SanitizeBoundingBoxes", (), {"min_size": 1.7, "min_area": 9.3})

# Name, arguments and options. Nothing of them is drawn at random.
TRANSFORMS = [
    *MOVES,
    ("RandomIoUCrop", (1, 1), {"sampler_options": [0.0], "min_aspect_ratio": 0.1, "max_aspect_ratio": 9}),
    ("ClampBoundingBoxes", (), {}),
    SANITIZE,
]

# These draw a size, from a range that holds one.
DRAWN_SIZES = [
    ("RandomShortestSize", (65,), {"max_size": 90}),
    ("ScaleJitter", ((99, 78),), {"scale_range": (0.9, 0.9)}),
    ("ScaleJitter", ((117, 93),), {"scale_range": (0.9, 0.9)}),
]


def boxes_of(random, count):
    """Ordinary boxes, empty ones, some that are outside, and some that are turned."""
    corners = random.uniform(-0.2, 1.2, (count, 2, 2)) * SIZE[::-1]
    ordered = np.sort(corners, axis=1) if random.random() < 0.8 else corners
    boxes = ordered.reshape(count, 4)
    empty = random.random(count) < 0.1
    boxes[empty, 2] = boxes[empty, 0]
    return boxes.astype(np.float32)


def in_format(boxes, format):
    tensor = torch.from_numpy(boxes)
    return v2.functional.convert_bounding_box_format(tensor, "XYXY", format.upper()).numpy()


def snapped(boxes):
    """Moves sides that are up to 0.001 pixels outside onto the edge, which SanitizeBoundingBoxes of stoker
    does: torchvision drops a box of the format cxcywh for a rounding of its side.
    """
    height, width = boxes.canvas_size
    sides = v2.functional.convert_bounding_box_format(boxes, new_format="XYXY")
    edges = torch.tensor([width, height, width, height])
    inside = torch.minimum(sides.as_subclass(torch.Tensor).clamp(min=0), edges)
    near = (sides.as_subclass(torch.Tensor) - inside).abs() <= 1e-3
    return tv_tensors.wrap(torch.where(near, inside, sides.as_subclass(torch.Tensor)), like=sides)


def sanitized(image, boxes, **options):
    sides = snapped(boxes)
    image, kept = v2.SanitizeBoundingBoxes(**options, labels_getter=None)(image, sides)
    return image, v2.functional.convert_bounding_box_format(kept, new_format=boxes.format)


def by_torchvision(path, steps, boxes, format):
    image = tv_tensors.Image(torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1))
    moved = tv_tensors.BoundingBoxes(
        torch.from_numpy(boxes).double(), format=format.upper(), canvas_size=SIZE
    )
    for name, args, options in steps:
        if name == "SanitizeBoundingBoxes":
            image, moved = sanitized(image, moved, **options)
            continue
        image, moved = getattr(v2, name)(*args, **options)(image, moved)
        if name == "RandomIoUCrop":  # stoker drops at once what this sets to zeros
            image, moved = sanitized(image, moved)
    return moved.numpy()


def by_stoker(path, steps, boxes, format):
    transforms = []
    for name, args, options in steps:
        transforms.append(getattr(stoker, name)(*args, **options))
        if name == "RandomIoUCrop":
            transforms.append(stoker.SanitizeBoundingBoxes())
    order = np.arange(len(boxes))
    columns = {"boxes": stoker.Boxes([boxes], format=format), "order": stoker.PerObject([order])}
    (batch,) = stoker.Loader(stoker.files([path], columns=columns), transforms, batch_size=1)
    assert list(batch["order"][0]) == sorted(batch["order"][0])
    assert len(batch["order"][0]) == len(batch["boxes"][0])
    return np.asarray(batch["boxes"][0])


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("objects") / "noise.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (*SIZE, 3), np.uint8)).save(path)
    return path


@pytest.mark.parametrize("format", ["xyxy", "xywh", "cxcywh"])
def test_random_lists(photo, format):
    random = np.random.default_rng(7)
    compared = 0
    for _ in range(200):
        moves = [TRANSFORMS[n] for n in random.integers(len(TRANSFORMS), size=random.integers(1, 5))]
        steps = [RESIZE, *moves]
        boxes = in_format(boxes_of(random, random.integers(0, 9)), format)
        try:
            moved = by_stoker(photo, steps, boxes, format)
        except stoker.InvalidArgumentError:
            continue  # a crop that only adds a border, or images that differ in size
        wanted = by_torchvision(photo, steps, boxes, format)
        assert moved.shape == wanted.shape, steps
        assert moved == pytest.approx(wanted, abs=2e-4), steps
        compared += len(boxes)
    assert compared > 200


@pytest.mark.parametrize("step", [*TRANSFORMS, RESIZE], ids=str)
def test_one_transform(photo, step):
    boxes = boxes_of(np.random.default_rng(3), 40)
    steps = [RESIZE, step] if step is not RESIZE else [step]
    if step[0] == "RandomIoUCrop":
        steps = [step, RESIZE]
    moved, wanted = by_stoker(photo, steps, boxes, "xyxy"), by_torchvision(photo, steps, boxes, "xyxy")
    assert moved.shape == wanted.shape
    assert moved == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize("larger", range(12))
def test_larger_center_crops_move_boxes_as_pixels(photo, larger):
    boxes = np.array([[2, 3, 50, 60]], np.float32)
    size = (SIZE[0] + larger, SIZE[1] + larger)
    (batch,) = stoker.Loader(
        stoker.files([photo], columns={"boxes": stoker.Boxes([boxes])}),
        [stoker.CenterCrop(size)],
        batch_size=1,
    )
    image = torch.from_numpy(np.array(Image.open(photo))).permute(2, 0, 1)
    cropped = v2.functional.center_crop(image, list(size)).permute(1, 2, 0).numpy()
    assert np.array_equal(batch["image"][0], cropped)
    moved = larger // 2  # torchvision's boxes are one pixel further if `larger` is 3, 7 or 11
    assert np.array_equal(batch["boxes"][0], boxes + moved)
    theirs = v2.functional.center_crop(tv_boxes(boxes), list(size)).numpy()
    assert np.array_equal(theirs, boxes + moved + (larger % 4 == 3))


@pytest.mark.parametrize("step", DRAWN_SIZES, ids=str)
def test_drawn_sizes(photo, step):
    boxes = boxes_of(np.random.default_rng(3), 40)
    steps = [step, ("CenterCrop", ((60, 70),), {})]
    moved, wanted = by_stoker(photo, steps, boxes, "xyxy"), by_torchvision(photo, steps, boxes, "xyxy")
    assert moved.shape == wanted.shape
    assert moved == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize("format", ["xyxy", "xywh", "cxcywh"])
def test_formats(photo, format):
    boxes = boxes_of(np.random.default_rng(4), 9)
    steps = [RESIZE, ("ConvertBoundingBoxFormat", (format,), {})]
    wanted = in_format(by_torchvision(photo, [RESIZE], boxes, "xyxy").astype(np.float32), format)
    assert by_stoker(photo, steps, boxes, "xyxy") == pytest.approx(wanted, abs=2e-4)


def drawn(photo, transform, boxes, seed):
    """Returns the batch of one photograph, and the place and size of its row in it, (left, top, width,
    height).
    """
    columns = {"boxes": stoker.Boxes([boxes])}
    source = stoker.files([photo], columns=columns)
    options = {"batch_size": 1, "seed": seed, "geometry": True}
    (batch,) = stoker.Loader(source, [transform, stoker.PadTo(600)], **options)
    map_of = batch["geometry"][0]
    assert np.array_equal(map_of[:, :2], np.eye(2))
    height, width = batch["image_size"][0]
    return batch, (-int(map_of[0, 2]), -int(map_of[1, 2]), int(width), int(height))


def tv_boxes(boxes):
    return tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=SIZE)


@pytest.mark.parametrize("overlap", [0.1, 0.5, 0.7])
def test_crops_by_overlap(photo, overlap):
    random = np.random.default_rng(5)
    crops = 0
    for seed in range(24):
        first, last = random.random((4, 2)) * SIZE[::-1], random.random((4, 2)) * SIZE[::-1]
        boxes = np.concatenate([np.minimum(first, last), np.maximum(first, last)], 1).astype(np.float32)
        crop = stoker.RandomIoUCrop(sampler_options=(overlap,))
        batch, (left, top, width, height) = drawn(photo, crop, boxes, seed)
        if (width, height) == SIZE[::-1]:  # no crop has been found
            assert np.allclose(batch["boxes"][0], boxes)
            continue
        crops += 1
        assert 0 <= left <= SIZE[1] - width and 0 <= top <= SIZE[0] - height
        assert 0.5 <= width / height <= 2
        assert 0.3 * SIZE[1] - 1 <= width <= SIZE[1] and 0.3 * SIZE[0] - 1 <= height <= SIZE[0]
        x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
        within = (left < x) & (x < left + width) & (top < y) & (y < top + height)
        area = torch.tensor([[left, top, left + width, top + height]], dtype=torch.float32)
        assert torchvision.ops.box_iou(torch.from_numpy(boxes[within]), area).max() >= overlap
        wanted = v2.functional.crop(tv_boxes(boxes), top, left, height, width).numpy()[within]
        assert np.abs(batch["boxes"][0] - wanted).max() <= 1e-4
    assert crops >= 6


def test_zooming_out(photo):
    random = np.random.default_rng(6)
    for seed in range(8):
        boxes = boxes_of(random, 5)
        zoom = stoker.RandomZoomOut(side_range=(1.5, 4), p=1)
        batch, (left, top, width, height) = drawn(photo, zoom, boxes, seed)
        assert left <= 0 and top <= 0 and width >= 1.5 * SIZE[1] - 1 and height <= 4 * SIZE[0]
        padding = [-left, -top, width + left - SIZE[1], height + top - SIZE[0]]
        wanted = v2.functional.pad(tv_boxes(boxes), padding).numpy()
        assert np.abs(batch["boxes"][0] - wanted).max() <= 1e-4


@pytest.mark.parametrize(
    "steps",
    [
        [("Resize", ((120, 160),), {}), ("CenterCrop", ((70, 90),), {}), ("Resize", ((110, 100),), {})],
        [("Resize", (60,), {"max_size": 99}), ("CenterCrop", (40,), {}), ("Resize", ((96, 128),), {})],
        [("Pad", ([40, 9, 0, 21],), {"fill": (124, 116, 104)}), ("Resize", ((100, 120),), {})],
        [("Pad", (30,), {"fill": 9}), ("CenterCrop", ((100, 140),), {}), ("Resize", ((64, 96),), {})],
    ],
)
def test_a_resize_after_a_crop_or_coloured_padding(tmp_path, steps):
    """stoker resamples once, and rounds the place of the crop to whole pixels of the row."""
    down, right = np.mgrid[0 : SIZE[0], 0 : SIZE[1]]
    smooth = np.stack([2 * down, 2 * right, 128 + 60 * np.sin(down / 9) * np.cos(right / 7)], axis=-1)
    Image.fromarray(smooth.astype(np.uint8)).save(tmp_path / "smooth.png")
    boxes = boxes_of(np.random.default_rng(3), 9)
    moved = by_stoker(tmp_path / "smooth.png", steps, boxes, "xyxy")
    assert moved == pytest.approx(by_torchvision(tmp_path / "smooth.png", steps, boxes, "xyxy"), abs=1)
    row = stoker.Compose([getattr(stoker, name)(*args, **options) for name, args, options in steps])(
        (tmp_path / "smooth.png").read_bytes()
    )
    image = tv_tensors.Image(torch.from_numpy(smooth.astype(np.uint8)).permute(2, 0, 1))
    for name, args, options in steps:
        image = getattr(v2, name)(*args, **options)(image)
    differences = np.abs(row.astype(int) - image.permute(1, 2, 0).numpy())
    edges = 0.05 if steps[0][0] == "Pad" else 0.002  # of the padding: at whole pixels of the row
    assert (differences > 6).mean() < edges and np.median(differences) <= 2
