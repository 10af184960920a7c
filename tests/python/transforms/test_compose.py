"""Compose: one image, the same bytes as a row of a batch."""

import io
import pathlib
import pickle
import threading

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
EVALUATION = [stoker.Resize(73), stoker.CenterCrop(64)]


@pytest.fixture
def photo(made):
    return sorted(made.rglob("*.jpg"))[0].read_bytes()


@pytest.mark.parametrize("normalize", [False, True])
def test_an_evaluation_row(made, normalize):
    transforms = [*EVALUATION, stoker.Normalize(MEAN, STD)] if normalize else EVALUATION
    dtype = "float32" if normalize else "uint8"
    source = stoker.image_folder(made)
    compose = stoker.Compose(transforms, dtype=dtype)
    iterator = iter(stoker.Loader(source, transforms, batch_size=16, dtype=dtype))
    for images, _ in iterator:
        for sample, row in zip(iterator.sample_ids, images):
            with open(source.path(sample), "rb") as file:
                image = compose(file.read())
            assert image.dtype == row.dtype and image.flags.c_contiguous and image.flags.writeable
            assert image.flags.owndata
            np.testing.assert_array_equal(image, row)


def test_random_rows_by_their_key(made):
    transforms = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]
    source = stoker.image_folder(made)
    compose = stoker.Compose(transforms)
    loader = stoker.Loader(source, transforms, batch_size=16, seed=9, shuffle=True)
    for epoch in range(2):
        iterator = iter(loader)
        position = 0
        for images, _ in iterator:
            for sample, row in zip(iterator.sample_ids, images):
                with open(source.path(sample), "rb") as file:
                    image = compose(file.read(), seed=9, epoch=epoch, position=position)
                np.testing.assert_array_equal(image, row)
                position += 1


def test_a_pickled_compose_is_the_same(photo):
    compose = stoker.Compose([*EVALUATION, stoker.Normalize(MEAN, STD)], dtype="float32")
    again = pickle.loads(pickle.dumps(compose))
    assert repr(again) == repr(compose)
    np.testing.assert_array_equal(again(photo), compose(photo))


def test_images_of_pillow(photo):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
    compose = stoker.Compose(EVALUATION)
    opened = image.open(io.BytesIO(photo))
    np.testing.assert_array_equal(compose(opened), compose(np.asarray(opened)))
    gray = opened.convert("L")
    np.testing.assert_array_equal(compose(gray), compose(np.asarray(gray)))
    for mode in ("YCbCr", "HSV", "RGBA", "P"):
        with pytest.raises(ValueError, match="convert"):
            compose(opened.convert(mode))


def test_threads_share_one(photo):
    compose = stoker.Compose(EVALUATION)
    wanted = compose(photo)
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(compose(photo), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_kinds_of_bytes(photo):
    compose = stoker.Compose(EVALUATION)
    wanted = compose(photo)
    for same in (bytearray(photo), memoryview(photo)):
        np.testing.assert_array_equal(compose(same), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_pixels_are_treated_as_a_files(dtype):
    """Returns what a loader makes of arrays, and of views of them that are not dense."""
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (5, 90, 100, 3), np.uint8)
    transforms = [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()]
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="no bfloat16 without ml_dtypes")
    compose = stoker.Compose(transforms, dtype=dtype)
    loader = stoker.Loader(stoker.arrays(images), transforms, batch_size=5, seed=3, dtype=dtype)
    for epoch, rows in enumerate([next(iter(loader)), next(iter(loader))]):
        for n, row in enumerate(rows):
            np.testing.assert_array_equal(compose(images[n], seed=3, epoch=epoch, position=n), row)
    strided = np.zeros((90, 200, 4), np.uint8)
    strided[:, ::2, :3] = images[0]
    gray = images[0, :, :, 0]
    for one, other in (
        (strided[:, ::2, :3], images[0]),
        (gray, np.stack([gray] * 3, axis=2)),
        (gray[:, :, np.newaxis], gray),
    ):
        np.testing.assert_array_equal(compose(one, position=0), compose(other, position=0))


@pytest.mark.parametrize(
    ("shape", "dtype", "kind"),
    [
        ((4, 4, 3), np.float32, TypeError),
        ((4, 4, 3), bool, TypeError),
        ((4, 4, 4), np.uint8, ValueError),
        ((2, 4, 4, 3), np.uint8, ValueError),
        ((4,), np.uint8, ValueError),
        ((0, 4, 3), np.uint8, ValueError),
        ((65536, 1, 3), np.uint8, ValueError),
    ],
)
def test_pixels_of_another_kind(shape, dtype, kind):
    with pytest.raises(kind, match="image"):
        stoker.Compose(EVALUATION)(np.zeros(shape, dtype))


@pytest.mark.parametrize("path", ["photo.jpg", pathlib.Path("photo.jpg")])
def test_a_path_is_told_how_to_be_read(path):
    with pytest.raises(TypeError, match=r"Path\('photo.jpg'\).read_bytes\(\)"):
        stoker.Compose(EVALUATION)(path)


def test_repr():
    assert "Resize(size=73" in repr(stoker.Compose(EVALUATION))


@pytest.mark.parametrize("size", [0, 1, 100])
def test_broken_bytes(photo, size):
    with pytest.raises(stoker.DataLossError) as caught:
        stoker.Compose(EVALUATION)(photo[:size])
    assert caught.value.file is None and caught.value.offset is not None


def test_other_formats():
    from hostile_jpegs import QOI

    with pytest.raises(stoker.UnimplementedError, match="QOI"):
        stoker.Compose(EVALUATION)(QOI)


@pytest.mark.parametrize("image", [None, 3, "photo.jpg", [1, 2, 3]])
def test_what_is_no_image(image):
    with pytest.raises(TypeError, match="image"):
        stoker.Compose(EVALUATION)(image)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ({"seed": -1}, ValueError),
        ({"seed": 1 << 64}, ValueError),
        ({"epoch": 1 << 32}, ValueError),
        ({"position": 1.5}, TypeError),
    ],
)
def test_bad_keys(photo, key, kind):
    with pytest.raises(kind, match=next(iter(key))):
        stoker.Compose(EVALUATION)(photo, **key)


def test_compose_without_transforms_is_the_whole_image(photo):
    whole = stoker.decode_image(photo)
    compose = stoker.Compose([])
    np.testing.assert_array_equal(compose(photo), whole)
    np.testing.assert_array_equal(compose(whole), whole)
    floats = stoker.Compose([], dtype="float32", layout="NCHW")(photo)
    np.testing.assert_array_equal(floats, (whole * np.float32(1 / 255)).transpose(2, 0, 1))
    assert compose.explain() == "" and repr(compose) == "stoker.Compose([], dtype='uint8')"
    with pytest.raises(stoker.ResourceExhaustedError, match="max_pixels"):
        stoker.Compose([], max_pixels=10)(photo)
