"""stoker.show: a contact sheet of a batch."""

import io
import pathlib

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL")

import PIL.Image

GAP = 2
SIDES = (5, 7)
RNG = np.random.default_rng(1)
IMAGES = RNG.integers(0, 256, (6, *SIDES, 3), np.uint8)
MASKS = RNG.integers(0, 3, (6, *SIDES), np.uint8)
LABELS = np.array([2, 0, 1, 1, 0, 5])


def drawn(sheet, count=6, columns=8):
    """Returns the images of a sheet."""
    pixels = np.array(PIL.Image.open(io.BytesIO(sheet.png)))
    across = min(columns, count)
    height, width = (side + GAP for side in SIDES)
    assert pixels.shape == (-(-count // across) * height - GAP, across * width - GAP, 3)
    places = (divmod(i, across) for i in range(count))
    return np.stack([
        pixels[row * height : row * height + SIDES[0], column * width : column * width + SIDES[1]]
        for row, column in places
    ])  # fmt: skip


def with_masks(images=IMAGES, masks=MASKS):
    colours = np.array([(0, 0, 0), (128, 0, 0), (0, 128, 0)])[masks]
    return np.where(masks[..., None] == 0, images, (images.astype(int) + colours + 1) // 2)


def stretched(images):
    low, high = images.min(), images.max()
    return np.rint((images.astype(float) - low) / (high - low) * 255)


def test_images_alone():
    sheet = stoker.show(IMAGES)
    assert (drawn(sheet) == IMAGES).all() and sheet.labels == []
    assert (drawn(stoker.show(IMAGES, columns=4), columns=4) == IMAGES).all()
    assert (drawn(stoker.show(IMAGES, most=4), 4) == IMAGES[:4]).all()
    assert (drawn(stoker.show(IMAGES.transpose(0, 3, 1, 2))) == IMAGES).all()
    assert (drawn(stoker.show(IMAGES[:, :, ::-1])) == IMAGES[:, :, ::-1]).all()  # not contiguous


def test_gray_and_rgba_of_four_pixels():
    """An axis of 4 may be a side: one of 1 has the channels."""
    gray = RNG.integers(0, 256, (6, 1, 5, 4), np.uint8)
    for images in (gray, gray.transpose(0, 2, 3, 1)):
        pixels = np.array(PIL.Image.open(io.BytesIO(stoker.show(images, columns=6).png)))
        assert pixels.shape[:2] == (5, 6 * (4 + GAP) - GAP)
        assert (pixels[:, :4] == gray[0, 0, :, :, None]).all()
    rgba = np.concatenate([IMAGES, IMAGES[..., :1]], 3)
    for images in (rgba, rgba.transpose(0, 3, 1, 2)):
        assert (drawn(stoker.show(images)) == IMAGES).all()


def test_every_kind_of_batch():
    for batch in (
        {"label": LABELS, "mask": MASKS, "image": IMAGES},
        (IMAGES, MASKS, LABELS),
        [IMAGES, LABELS, ["a"] * 6, MASKS.astype(np.int64)],
    ):
        sheet = stoker.show(batch, classes=["cat", "dog", "cow"])
        assert (drawn(sheet) == with_masks()).all()
        assert sheet.labels == ["cow", "cat", "dog", "dog", "cat", "5"]
    assert (drawn(stoker.show((IMAGES, MASKS == 1))) == with_masks(masks=(MASKS == 1).astype(int))).all()
    weights = np.array([[1, 0], [0.25, 0.75]], np.float32)
    assert stoker.show((IMAGES[:2], weights)).labels == ["0", "0 0.25 + 1 0.75"]
    assert stoker.show((IMAGES, LABELS), most=2).labels == ["2", "0"]


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_masks_of_16_bits(dtype):
    masks = RNG.choice(np.array([0, 1, 255, 256, 257, 1003, 65_535], dtype), MASKS.shape)
    low = np.where((masks != 0) & (masks % 256 == 0), 255, masks % 256).astype(np.uint8)
    objects = {"boxes": stoker.Ragged(CORNERS, OFFSETS)}
    wanted = stoker.show({"image": IMAGES, "mask": low, **objects})
    assert stoker.show({"image": IMAGES, "mask": masks, **objects}).png == wanted.png
    with pytest.raises(ValueError, match="values 0 to 65536; 0 to 65535"):
        stoker.show({"image": IMAGES, "mask": masks.astype(np.int32) // 65_535 * 65_536})


def test_batches_of_a_loader(tmp_path):
    for number in range(4):
        PIL.Image.fromarray(IMAGES[number]).save(tmp_path / f"{number}.png")
        PIL.Image.fromarray(MASKS[number]).save(tmp_path / f"{number}_mask.png")
    source = stoker.masks(tmp_path, tmp_path, suffix="_mask")
    batch = next(iter(stoker.Loader(source, [stoker.CenterCrop(SIDES)], batch_size=4)))
    assert batch.keys() == ("image", "mask")
    assert (drawn(stoker.show(batch), 4) == with_masks()[:4]).all()
    labelled = next(iter(stoker.Loader(stoker.arrays(IMAGES, LABELS), batch_size=6)))
    assert stoker.show(labelled).labels == ["2", "0", "1", "1", "0", "5"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_fractions_are_stretched(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    images = np.asarray(RNG.normal(size=IMAGES.shape), dtype)
    assert (drawn(stoker.show(images)) == stretched(images.astype(np.float32))).all()
    assert (drawn(stoker.show(images, most=2), 2) == stretched(images.astype(np.float32))[:2]).all()


def test_fractions_that_are_not_finite():
    images = np.zeros((6, *SIDES, 3), np.float32)
    images[0, 0, 0] = (np.nan, np.inf, -np.inf)
    images[0, 0, 1] = (-3e38, 3e38, 0)
    assert (drawn(stoker.show(images))[0, 0, :2] == [(0, 255, 0), (0, 255, 128)]).all()
    assert (drawn(stoker.show(np.ones_like(images))) == 0).all()
    assert (drawn(stoker.show(np.full_like(images, np.nan))) == 0).all()


def test_arrays_of_other_libraries():
    jax = pytest.importorskip("jax.numpy")
    assert (drawn(stoker.show((jax.asarray(IMAGES), jax.asarray(MASKS)))) == with_masks()).all()

    class OfDlpack:
        def __dlpack__(self, **options):
            return IMAGES.__dlpack__(**options)

        def __dlpack_device__(self):
            return IMAGES.__dlpack_device__()

    assert (drawn(stoker.show(OfDlpack())) == IMAGES).all()
    loader = stoker.Loader(stoker.arrays(IMAGES, LABELS), batch_size=6)
    assert (drawn(stoker.show(next(iter(loader.to_device("cpu"))))) == IMAGES).all()


def test_a_sheet(tmp_path):
    sheet = stoker.show((IMAGES, LABELS))
    for path in (tmp_path / "a.png", str(tmp_path / "b.png"), tmp_path / "a.png"):
        sheet.save(path)
        assert pathlib.Path(path).read_bytes() == sheet.png == sheet._repr_png_()
    assert repr(sheet).startswith("stoker.Sheet(") and "labels=['2', " in repr(sheet)


def test_errors():
    def refused(kind, words, *arguments, **options):
        with pytest.raises(kind, match=words):
            stoker.show(*arguments, **options)

    refused(ValueError, "columns is 0; it must be between 1 and 4096", IMAGES, columns=0)
    refused(ValueError, "most is 4097", IMAGES, most=4097)
    refused(TypeError, "classes", IMAGES, classes=3)
    refused(TypeError, "batch must be an array, not NoneType", None)
    refused(TypeError, r"batch\[0\] must be an array, not str", ("a", LABELS))
    refused(ValueError, "the batch is empty", ())
    refused(ValueError, "no \"image\"; it has 'a', 'b'", {"a": IMAGES, "b": MASKS})
    refused(ValueError, r"shape \(5, 7, 3\); it must be", IMAGES[0])
    refused(ValueError, "must be", IMAGES[:0])
    refused(ValueError, "no axis of one, three or four channels", IMAGES[..., :2])
    refused(ValueError, "two axes of length 3", IMAGES[:, :3])
    refused(
        ValueError, "images are int64; they must be uint8, uint16 or floating point", IMAGES.astype(np.int64)
    )
    refused(ValueError, r"masks have shape \(6, 4, 7\)", {"image": IMAGES, "mask": MASKS[:, 1:]})
    refused(ValueError, "masks are float32", {"image": IMAGES, "mask": MASKS.astype(np.float32)})
    refused(ValueError, "values -1 to 1; 0 to 65535", {"image": IMAGES, "mask": MASKS.astype(int) - 1})
    refused(ValueError, "the sheet would have", np.zeros((1, 10_001, 10_001, 3), np.uint8))

    class OnGpu:
        def __array__(self, *_, **__):
            raise RuntimeError("it is on a GPU")

    refused(TypeError, "batch is not an array on the host that NumPy can read: it is on a GPU", OnGpu())


# --- objects ------------------------------------------------------------------------------------------

COUNTS = [2, 0, 3, 1, 0, 1]
OFFSETS = np.cumsum([0, *COUNTS])
CORNERS = np.sort(RNG.integers(0, 5, (7, 2, 2)), 1).reshape(7, 4).astype(np.float32)
OF_OBJECTS = np.array([1, 0, 2, 257, 1, -1, 2])
POINTS = RNG.integers(0, 5, (7, 2, 3)).astype(np.float32)
COLOURS = {1: (128, 0, 0), 0: (224, 224, 192), 2: (0, 128, 0), 257: (128, 0, 0), -1: (224, 224, 192)}


def with_objects(images, boxes=None, points=None, labels=None):
    """The plain twin of what draws objects in bindings/sheet: pixel by pixel."""
    images = images.copy()
    for image, begin, end in zip(images, OFFSETS, OFFSETS[1:]):
        for i in range(begin, end):
            colour = (255, 255, 255) if labels is None else COLOURS[labels[i]]
            left, top, right, bottom = (0, 0, 0, 0) if boxes is None else boxes[i]
            for y in range(SIDES[0]):
                for x in range(SIDES[1]):
                    inside = left <= x < max(right, left + 1) and top <= y < max(bottom, top + 1)
                    on_side = x in (left, max(right, left + 1) - 1) or y in (top, max(bottom, top + 1) - 1)
                    on_point = points is not None and any(
                        abs(x - px) <= 1 and abs(y - py) <= 1 and seen for px, py, seen in points[i]
                    )
                    if (boxes is not None and inside and on_side) or on_point:
                        image[y, x] = colour
    return images


def test_objects_in_fortran_order():
    def png(order):
        boxes = stoker.Ragged(np.asarray(CORNERS, order=order), OFFSETS)
        points = stoker.Ragged(np.asarray(POINTS, order=order), OFFSETS)
        return stoker.show({"image": IMAGES, "boxes": boxes, "keypoints": points}).png

    assert png("F") == png("C")


def test_draw_sheet_keeps_arrays_that_it_converts():
    boxes = np.tile(CORNERS, (1000, 1))  # large enough that freed memory is used again
    offsets = np.array([0, *OFFSETS[1:-1], len(boxes)])
    held = (offsets, boxes, "xyxy", None, np.ones(len(boxes), np.int64))
    converted = (offsets.astype(np.int32), np.asfortranarray(boxes), "xyxy", None, held[4])
    assert stoker._stoker.draw_sheet(IMAGES, None, 8, converted) == stoker._stoker.draw_sheet(
        IMAGES, None, 8, held
    )


def test_objects():
    boxes, labels = stoker.Ragged(CORNERS, OFFSETS), stoker.Ragged(OF_OBJECTS, OFFSETS)
    points = stoker.Ragged(POINTS, OFFSETS)
    for batch, wanted in (
        ({"image": IMAGES, "boxes": boxes}, with_objects(IMAGES, CORNERS)),
        ({"image": IMAGES, "labels": labels}, IMAGES),
        (
            {"image": IMAGES, "boxes": boxes, "labels": labels},
            with_objects(IMAGES, CORNERS, None, OF_OBJECTS),
        ),
        ({"image": IMAGES, "pose": points}, with_objects(IMAGES, None, POINTS)),
        ((IMAGES, boxes, points, labels), with_objects(IMAGES, CORNERS, POINTS, OF_OBJECTS)),
        ((IMAGES, MASKS, boxes), with_objects(with_masks(), CORNERS)),
    ):
        assert (drawn(stoker.show(batch)) == wanted).all()
        assert (drawn(stoker.show(batch, most=3), 3) == wanted[:3]).all()


def test_formats_of_boxes():
    sides = CORNERS[:, 2:] - CORNERS[:, :2]
    for box_format, first in (("xywh", CORNERS[:, :2]), ("cxcywh", CORNERS[:, :2] + sides / 2)):
        boxes = stoker.Ragged(np.hstack([first, sides]), OFFSETS)
        sheet = stoker.show((IMAGES, boxes), box_format=box_format)
        assert stoker.show((IMAGES, boxes), box_format=box_format.upper()).png == sheet.png
        assert (drawn(sheet) == with_objects(IMAGES, CORNERS)).all()


def test_boxes_that_are_not_in_the_image():
    odd = np.array([
        [-9, -9, -1, -1], [np.nan, 0, 3, 3], [3, 3, 1, 1], [7, 0, 9, 3], [-np.inf, 0, np.inf, 3],
        [1e30, 1e30, 2e30, 2e30], [-1e30, -1e30, 1e30, 1e30],
    ], np.float32)  # fmt: skip
    assert (drawn(stoker.show((IMAGES, stoker.Ragged(odd, OFFSETS)))) == IMAGES).all()
    with pytest.raises(ValueError, match="wrong offsets"):
        stoker.show((IMAGES, stoker.Ragged(odd, OFFSETS + 1)))
    with pytest.raises(ValueError, match="objects of 2"):
        stoker.show((IMAGES, stoker.Ragged(odd, OFFSETS[:3])))
