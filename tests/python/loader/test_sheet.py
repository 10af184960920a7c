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
    refused(ValueError, "no axis of three channels", IMAGES[..., :2])
    refused(ValueError, "two axes of length 3", IMAGES[:, :3])
    refused(ValueError, "images are int64; they must be uint8 or floating point", IMAGES.astype(np.int64))
    refused(ValueError, r"masks have shape \(6, 4, 7\)", {"image": IMAGES, "mask": MASKS[:, 1:]})
    refused(ValueError, "masks are float32", {"image": IMAGES, "mask": MASKS.astype(np.float32)})
    refused(ValueError, "values -1 to 1; 0 to 255", {"image": IMAGES, "mask": MASKS.astype(int) - 1})
    refused(ValueError, "the sheet would have", np.zeros((1, 10_001, 10_001, 3), np.uint8))

    class OnGpu:
        def __array__(self, *_, **__):
            raise RuntimeError("it is on a GPU")

    refused(TypeError, "batch is not an array on the host that NumPy can read: it is on a GPU", OnGpu())
