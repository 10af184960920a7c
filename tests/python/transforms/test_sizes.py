"""Images whose sizes differ: PadTo, and the column of sizes."""

import io

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL", minversion="13")

import PIL.Image
from pillow_sizes import resized, viewed

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RANDOM_SIZES = [tuple(map(int, size)) for size in np.random.default_rng(3).integers(1, 200, (24, 2))]


def encoded(pixels):
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


class Images:
    """Noise of the given (height, width) as PNG files, each with its number as label."""

    def __init__(self, sizes=RANDOM_SIZES):
        random = np.random.default_rng(1)
        self.pixels = [random.integers(0, 256, (*size, 3), np.uint8) for size in sizes]

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        return encoded(self.pixels[i]), i


def padded(pixels, size, fill=0):
    """Returns the image in the corner of (height, width, 3)."""
    row = np.full((*size, 3), fill, pixels.dtype)
    row[: pixels.shape[0], : pixels.shape[1]] = pixels
    return row


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "box"])
@pytest.mark.parametrize(("size", "max_size"), [(40, 60), (None, 60), (30, 31)])
def test_batches_are_pillows_resize_and_numpys_padding(interpolation, size, max_size):
    images = Images()
    resize = stoker.Resize(size, interpolation, max_size)
    loader = stoker.Loader(
        stoker.from_dataset(images),
        [resize, stoker.PadTo((64, 70), fill=(9, 8, 7))],
        batch_size=7,
        shuffle=True,
    )
    seen = []
    for batch in loader:
        assert batch.keys() == ("image", "label", "image_size")
        assert batch.image.shape[1:] == (64, 70, 3) and batch.image_size.dtype == np.int32
        for image, label, (height, width) in zip(*batch):
            before = PIL.Image.fromarray(images.pixels[label])
            wanted = resized(before, size, max_size, interpolation)
            assert (height, width) == wanted.shape[:2]
            difference = np.abs(image.astype(int) - padded(wanted, (64, 70), (9, 8, 7)))
            assert difference.max() <= (interpolation == "bilinear")
            assert difference[height:].max(initial=0) == difference[:, width:].max(initial=0) == 0
            seen.append(label)
    assert sorted(seen) == list(range(len(images)))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("normalized_last", [False, True])
def test_the_padding_of_fractions(layout, dtype, normalized_last):
    images = Images()
    normalize, pad_to = stoker.Normalize(MEAN, STD), stoker.PadTo(200)
    if normalized_last:
        steps, fill = [stoker.PadTo(200, fill=114), normalize], (114 / 255 - np.array(MEAN)) / STD
    else:
        steps, fill = [normalize, pad_to], np.zeros(3)
    loader = stoker.Loader(stoker.from_dataset(images), steps, batch_size=5, dtype=dtype, layout=layout)
    for rows, labels, sizes in loader:
        rows = rows if layout == "NHWC" else rows.transpose(0, 2, 3, 1)
        for row, label, (height, width) in zip(rows, labels, sizes):
            pixels = images.pixels[label]
            assert (height, width) == pixels.shape[:2]
            wanted = padded(((pixels / 255 - MEAN) / STD), (200, 200), fill)
            assert np.allclose(row, wanted, atol=2e-3 if dtype == "float16" else 1e-5)
            if not normalized_last:
                assert not row[height:].any() and not row[:, width:].any()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_photographs_are_pillows(photos, dtype, layout):
    paths = sorted(photos.rglob("*.[jJ]*"))[:16]
    normalized = dtype == "float32"
    steps = [
        stoker.Resize(90, "bicubic", 120),
        stoker.RandomHorizontalFlip(1),
        *([stoker.Normalize(MEAN, STD)] if normalized else []),
        stoker.PadTo((125, 130)),
    ]
    source = stoker.files(paths, labels=range(16))
    loader = stoker.Loader(source, steps, batch_size=6, shuffle=True, dtype=dtype, layout=layout)
    for batch in loader:
        listed = stoker.unpadded(batch.image, batch.image_size, layout)
        for row, image, label in zip(batch.image, listed, batch.label):
            pixels = resized(viewed(paths[label]), 90, 120, "bicubic")[:, ::-1]
            wanted = (pixels / 255 - MEAN) / STD if normalized else pixels
            if layout == "NCHW":
                row, image = row.transpose(1, 2, 0), image.transpose(1, 2, 0)
            np.testing.assert_allclose(image, wanted, atol=1e-5 if normalized else 0)
            np.testing.assert_allclose(row, padded(wanted, (125, 130)), atol=1e-5 if normalized else 0)


def test_photographs_keep_their_sizes(photos):
    paths = sorted(photos.rglob("*.[jJ]*"))[:16]
    whole = [stoker.decode_image(path) for path in paths]
    largest = np.max([image.shape[:2] for image in whole], axis=0)
    loader = stoker.Loader(stoker.files(paths), [stoker.PadTo(tuple(largest.tolist()))], batch_size=5)
    images = [image for batch in loader for image in stoker.unpadded(batch.image, batch.image_size)]
    assert len(images) == 16
    for image, wanted in zip(images, whole):
        assert np.array_equal(image, wanted)


def test_sizes_are_those_of_the_image_as_it_is_viewed(tmp_path):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    image = PIL.Image.fromarray(Images([(20, 50)]).pixels[0])
    image.save(tmp_path / "turned.jpg", exif=exif)
    source = stoker.files([tmp_path / "turned.jpg"])
    for exif_orientation, wanted in [(True, [[50, 20]]), (False, [[20, 50]])]:
        (batch,) = stoker.Loader(source, [stoker.PadTo(60)], batch_size=1, exif_orientation=exif_orientation)
        assert batch.image_size.tolist() == wanted


def test_arrays_have_their_one_size():
    rows = np.random.default_rng(2).integers(0, 256, (5, 8, 9, 3), np.uint8)
    (batch,) = stoker.Loader(stoker.arrays(rows), [stoker.PadTo((10, 12), fill=3)], batch_size=5)
    assert batch.image_size.tolist() == [[8, 9]] * 5
    for row, image in zip(rows, batch.image):
        assert np.array_equal(image, padded(row, (10, 12), 3))


def test_flips_and_colour_act_on_the_image_and_not_on_its_padding():
    images = Images()
    flips = [stoker.RandomHorizontalFlip(1), stoker.RandomVerticalFlip(1)]
    steps = [*flips, stoker.ColorJitter(brightness=(0.5, 0.5)), stoker.PadTo(200, fill=255)]
    for rows, labels, sizes in stoker.Loader(stoker.from_dataset(images), steps, batch_size=4):
        for row, label, size in zip(rows, labels, sizes):
            pixels = images.pixels[label]
            assert tuple(size) == pixels.shape[:2]
            assert np.array_equal(row, padded(pixels[::-1, ::-1] // 2, (200, 200), 255))


def test_unpadded_gives_views():
    images = Images()
    source = stoker.from_dataset(images)
    for layout in ("NHWC", "NCHW"):
        for batch in stoker.Loader(source, [stoker.PadTo(200)], batch_size=9, layout=layout):
            listed = stoker.unpadded(batch.image, batch.image_size, layout)
            for image, label in zip(listed, batch.label):
                assert np.shares_memory(image, batch.image)
                whole = image if layout == "NHWC" else image.transpose(1, 2, 0)
                assert np.array_equal(whole, images.pixels[label])
            masks = batch.image[..., 0] if layout == "NHWC" else batch.image[:, 0]
            for given in (masks, list(masks)):
                for mask, label in zip(stoker.unpadded(given, batch.image_size, layout), batch.label):
                    assert np.array_equal(mask, images.pixels[label][..., 0])
    with pytest.raises(ValueError, match="9 images, but 3 sizes; give both of one batch"):
        stoker.unpadded(np.zeros((9, 4, 4, 3)), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("shape", "layout", "message"),
    [
        ((2, 3, 8, 9), "NHWC", r'shape \(2, 3, 8, 9\) are not of layout "NHWC"; give layout="NCHW"'),
        ((2, 8, 9, 3), "NCHW", r'shape \(2, 8, 9, 3\) are not of layout "NCHW"; give layout="NHWC"'),
        ((2, 8, 9, 2), "NHWC", r"give \(rows, height, width, 3\) or \(rows, 3, height, width\)"),
        ((8, 9, 3), "NHWC", r"give \(rows, height, width, 3\) or \(rows, 3, height, width\)"),
    ],
)
def test_unpadded_refuses_another_layout(shape, layout, message):
    with pytest.raises(ValueError, match=message):
        stoker.unpadded(np.zeros(shape), np.ones((shape[0], 2), np.int32), layout)


def test_unpadded_refuses_a_tensor_of_a_device():
    loader = stoker.Loader(stoker.from_dataset(Images()), [stoker.PadTo(200)], batch_size=9)
    for images, labels, sizes in loader.to_device("cpu"):
        with pytest.raises(TypeError, match=r"give what torch\.from_dlpack makes of it"):
            stoker.unpadded(images, np.asarray(sizes))
        assert len(stoker.unpadded(np.asarray(images), np.asarray(sizes))) == len(np.asarray(labels))


def test_samples_without_labels_have_sizes(tmp_path):
    images = Images()
    paths = []
    for number in range(len(images)):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(images[number][0])
    loader = stoker.Loader(stoker.files(paths), [stoker.PadTo(200)], batch_size=len(images))
    (batch,) = loader
    assert batch.keys() == ("image", "image_size")
    assert batch.image_size.tolist() == [list(pixels.shape[:2]) for pixels in images.pixels]


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_devices_have_the_same_rows(device):
    images = Images()
    steps = [
        stoker.RandomHorizontalFlip(),
        stoker.Normalize(MEAN, STD),
        stoker.RandomErasing(p=0.8, value="random"),
        stoker.PadTo((210, 202)),
    ]
    for order in (steps, [steps[0], stoker.PadTo((210, 202), fill=114), steps[1]]):
        loader = stoker.Loader(
            stoker.from_dataset(images), order, batch_size=6, shuffle=True, dtype="float32", layout="NCHW"
        )
        for wanted, got in zip(loader.epoch(0), loader.to_device(device).epoch(0)):
            for column, tensor in zip(wanted, got):
                assert np.array_equal(column, np.asarray(tensor))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_map_sees_the_sizes(threads):
    def shade(batch):
        assert batch.keys() == ("image", "label", "image_size")
        for image, (height, width) in zip(batch.image, batch.image_size):
            image[height:] = 1
            image[:, width:] = 2

    def grow(image, label, size):
        return {"image_size": size + np.int32(label)}

    images = Images()
    source = stoker.from_dataset(images)
    loader = stoker.Loader(source, [stoker.PadTo(200), stoker.Map(shade, threads=threads)], batch_size=5)
    for batch in loader:
        for row, label, (height, width) in zip(*batch):
            wanted = padded(images.pixels[label], (200, 200), 2)
            wanted[height:, :width] = 1
            assert np.array_equal(row, wanted)
    loader = stoker.Loader(
        source, [stoker.PadTo(200), stoker.Map(grow, rows=True, threads=threads)], batch_size=5
    )
    for batch in loader:
        for label, size in zip(batch.label, batch.image_size):
            assert size.tolist() == [side + label for side in images.pixels[label].shape[:2]]


def test_sizes_come_before_ids_and_paths(tmp_path):
    paths = []
    for number, (data, _) in enumerate(map(Images().__getitem__, range(4))):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(data)
    source = stoker.files(paths, columns={"weight": np.arange(4.0)})
    loader = stoker.Loader(source, [stoker.PadTo(200)], batch_size=4, sample_ids=True, paths=True)
    (batch,) = loader
    assert batch.keys() == ("image", "weight", "image_size", "sample_id", "path")
    assert batch.path == list(map(str, paths)) and batch.image_size.shape == (4, 2)


def test_a_resumed_loader_has_the_same_batches():
    def made():
        steps = [stoker.Resize(40, max_size=60), stoker.RandomHorizontalFlip(), stoker.PadTo(60)]
        return stoker.Loader(stoker.from_dataset(Images()), steps, batch_size=5, shuffle=True)

    loader = made()
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    resumed = made()
    resumed.load_state_dict(loader.state_dict())
    rest = list(zip(batches, resumed))
    assert len(rest) == 3
    for wanted, got in rest:
        assert all(np.array_equal(column, other) for column, other in zip(wanted, got))
    other = stoker.Loader(stoker.from_dataset(Images()), [stoker.PadTo(200)], batch_size=5, shuffle=True)
    with pytest.raises(stoker.FailedPreconditionError, match="transforms"):
        other.load_state_dict(loader.state_dict())


def test_ranks_divide_the_same_rows():
    images = Images()
    rows = {}
    for rank in range(3):
        loader = stoker.Loader(
            stoker.from_dataset(images),
            [stoker.Resize(40, max_size=60), stoker.PadTo(60)],
            batch_size=4,
            shuffle=True,
            rank=rank,
            world=3,
        )
        for batch in loader:
            for image, label, size in zip(*batch):
                assert label not in rows
                rows[int(label)] = (image.copy(), tuple(size))
    assert len(rows) == len(images)
    for image, size in rows.values():
        assert np.array_equal(image, padded(image[: size[0], : size[1]], (60, 60)))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([stoker.Resize(40)], r"transforms\[0\], Resize: size = 40 sets only the shorter side.*PadTo"),
        ([stoker.CenterCrop(40), stoker.PadTo(30)], r"PadTo: 30 × 30 is smaller than the images here"),
        ([stoker.PadTo(30), stoker.RandomHorizontalFlip()], r"transforms\[0\], PadTo: .* comes after it"),
        ([stoker.PadTo(30), stoker.PadTo(30)], "comes after it"),
        ([stoker.ColorJitter(1), stoker.CenterCrop(9), stoker.PadTo(30)], "images differ in size here"),
        ([stoker.Normalize(MEAN, STD), stoker.PadTo(30, fill=1)], "PadTo: fill is not normalized"),
        ([stoker.PadTo(30), stoker.MixUp(num_classes=9)], r"MixUp mixes images of one size.*\[0\], PadTo"),
        ([stoker.PadTo(30), stoker.CutMix(num_classes=9)], r"CutMix mixes images of one size.*\[0\], PadTo"),
    ],
)
def test_what_is_refused(steps, message):
    normalizes = any(isinstance(step, stoker.Normalize) for step in steps)
    with pytest.raises(ValueError, match=message):
        stoker.Loader(
            stoker.from_dataset(Images()), steps, batch_size=2, dtype="float32" if normalizes else "uint8"
        )


def test_an_image_that_is_too_large_is_an_error_of_its_batch(tmp_path):
    images = Images([(9, 9), (9, 31), (4, 5)])
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(images[number][0])
    source = stoker.files(sorted(tmp_path.iterdir()))
    batches = iter(stoker.Loader(source, [stoker.PadTo(30)], batch_size=1))
    assert next(batches).image_size.tolist() == [[9, 9]]
    message = (
        r"1\.png: an image of 9 × 31 pixels is larger than the 30 × 30 of transforms\[0\], PadTo"
        r".*Give a larger size, or Resize before it, with max_size"
    )
    with pytest.raises(stoker.InvalidArgumentError, match=message):
        next(batches)
    assert next(batches).image_size.tolist() == [[4, 5]]


def test_a_column_of_the_same_name_is_refused():
    source = stoker.files(["a.png"], columns={"image_size": [1]})
    with pytest.raises(
        ValueError, match=r"has a field 'image_size', and transforms\[0\], PadTo adds a column"
    ):
        stoker.Loader(source, [stoker.PadTo(9)], batch_size=1)


def test_one_image_has_the_same_row():
    pixels = Images().pixels[0]
    compose = stoker.Compose([stoker.PadTo(200, fill=7)])
    assert np.array_equal(compose(pixels), padded(pixels, (200, 200), 7))
    assert "PadTo(size=(200, 200)" in repr(compose)
