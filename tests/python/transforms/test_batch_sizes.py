"""Rows of the size of their batch's largest image: PadTo("batch")."""

import io
import json

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL", minversion="13")

import PIL.Image

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES = [tuple(map(int, size)) for size in np.random.default_rng(3).integers(1, 200, (23, 2))]
RESIZE = stoker.Resize(40, max_size=90)


def encoded(pixels):
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images of noise with a mask, boxes and labels each."""
    folder, random = tmp_path_factory.mktemp("sizes"), np.random.default_rng(1)
    paths, masks, boxes = [], [], []
    for number, size in enumerate(SIZES):
        paths.append(folder / f"{number}.png")
        masks.append(folder / f"mask-{number}.png")
        paths[-1].write_bytes(encoded(random.integers(0, 256, (*size, 3), np.uint8)))
        masks[-1].write_bytes(encoded(random.integers(0, 256, size, np.uint8)))
        boxes.append([[0, 0, size[1], size[0]]] * (number % 3))
    columns = {"mask": stoker.Mask(masks, fill=255), "boxes": stoker.Boxes(boxes)}
    return stoker.files(paths, columns={**columns, "number": np.arange(len(SIZES))})


def rounded_up(sizes, multiple):
    return tuple(int(-(-side // multiple) * multiple) for side in sizes.max(axis=0))


@pytest.mark.parametrize("multiple", [1, 32, None])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_batches_are_those_of_a_pad_to_of_their_size(source, dtype, layout, multiple):
    def steps(pad_to):
        flip = stoker.RandomHorizontalFlip()
        if dtype == "uint8":
            return [RESIZE, flip, pad_to(fill=(9, 8, 7))]
        if layout == "NHWC":
            return [RESIZE, flip, pad_to(fill=114), stoker.Normalize(MEAN, STD)]
        return [RESIZE, flip, stoker.Normalize(MEAN, STD), stoker.RandomErasing(value="random"), pad_to()]

    options = {"batch_size": 5, "shuffle": True, "dtype": dtype, "layout": layout}
    fixed = steps(lambda **fill: stoker.PadTo(90 if multiple == 1 else 96, **fill))
    largest = steps(lambda **fill: stoker.PadTo("batch", multiple=multiple, **fill))
    shapes = set()
    for wanted, got in zip(
        stoker.Loader(source, fixed, **options), stoker.Loader(source, largest, **options)
    ):
        height, width = rounded_up(got.image_size, multiple or 32)
        images = got.image if layout == "NHWC" else got.image.transpose(0, 2, 3, 1)
        assert images.shape == (len(got.number), height, width, 3) and got.mask.shape == images.shape[:3]
        assert got.image.flags["C_CONTIGUOUS"] and got.image.flags["WRITEABLE"]
        cut = (..., slice(height), slice(width))
        of_images = cut if layout == "NCHW" else (*cut, slice(None))
        assert np.array_equal(got.image, wanted.image[of_images], equal_nan=dtype != "uint8")
        assert np.array_equal(got.mask, wanted.mask[cut])
        assert np.array_equal(got.image_size, wanted.image_size)
        assert np.array_equal(got.boxes.values, wanted.boxes.values)
        shapes.add(images.shape)
    assert len(shapes) > 1


@pytest.mark.parametrize("rows", [False, True])
def test_a_map_sees_the_rows_of_the_batch(source, rows):
    def of_batch(batch):
        height, width = rounded_up(batch.image_size, 8)
        assert batch.image.shape == (len(batch.image), height, width, 3)
        batch.image[:] = height

    def of_row(image, *others):
        image[:] = image.shape[0]

    mapped = stoker.Map(of_row if rows else of_batch, rows=rows)
    steps = [RESIZE, stoker.PadTo("batch", multiple=8), mapped]
    for batch in stoker.Loader(source, steps, batch_size=5):
        assert batch.image.shape[1:3] == rounded_up(batch.image_size, 8)
        assert (batch.image == batch.image.shape[1]).all()


def test_a_resumed_loader_has_the_same_batches(source):
    def made(multiple=8):
        steps = [RESIZE, stoker.RandomHorizontalFlip(), stoker.PadTo("batch", multiple=multiple)]
        return stoker.Loader(source, steps, batch_size=5, shuffle=True)

    loader = made()
    batches = iter(loader)
    held = [next(batches) for _ in range(2)]
    resumed = made()
    resumed.load_state_dict(loader.state_dict())
    for wanted, got in zip(batches, resumed, strict=True):
        assert np.array_equal(wanted.image, got.image)
    again = made()
    for wanted, got in zip(held, again):  # batches that are held keep their shapes
        assert np.array_equal(wanted.image, got.image)
    with pytest.raises(stoker.FailedPreconditionError, match="multiple"):
        made(16).load_state_dict(loader.state_dict())


def test_arrays_and_compose_are_padded_to_the_multiple():
    rows = np.arange(5 * 9 * 14 * 3, dtype=np.uint8).reshape(5, 9, 14, 3)
    steps = [stoker.CenterCrop((9, 14)), stoker.PadTo("batch", fill=3, multiple=16)]
    (batch,) = stoker.Loader(stoker.arrays(rows), steps, batch_size=5)
    assert batch.image.shape == (5, 16, 16, 3)
    assert np.array_equal(batch.image[:, :9, :14], rows)
    assert (batch.image[:, 9:] == 3).all() and (batch.image[:, :, 14:] == 3).all()
    one = stoker.Compose([stoker.Resize(None, max_size=14), steps[1]])(rows[0])
    assert np.array_equal(one, batch.image[0])


def test_tensors_have_the_rows_of_the_batch(source):
    loader = stoker.Loader(source, [RESIZE, stoker.PadTo("batch")], batch_size=5)
    for wanted, got in zip(loader.epoch(0), loader.to_device("cpu").epoch(0), strict=True):
        assert np.array_equal(wanted.image, np.from_dlpack(got.image))


def test_devices_take_rows_of_one_size_only():
    rows = stoker.from_dataset([(encoded(np.zeros((9, 9, 3), np.uint8)), 0)])
    loader = stoker.Loader(rows, [RESIZE, stoker.PadTo("batch")], batch_size=1)
    with pytest.raises(stoker.UnimplementedError, match=r"transforms\[1\], PadTo: a device has rows of one"):
        next(iter(loader.to_device("host")))


@pytest.mark.parametrize("scale", [0.001, 0.15])
def test_tiny_images_have_a_pixel(source, scale):
    steps = [stoker.ScaleJitter((9, 6), scale_range=(scale, scale)), stoker.PadTo("batch", multiple=1)]
    for batch in stoker.Loader(source, steps, batch_size=5):
        assert batch.image.shape[1:] == (1, 1, 3) and (batch.image_size == 1).all()


def test_jax_has_the_rows_of_the_batch(source):
    pytest.importorskip("jax")
    loader = stoker.Loader(source, [RESIZE, stoker.PadTo("batch")], batch_size=5)
    for wanted, got in zip(loader.epoch(0), loader.to_jax().epoch(0), strict=True):
        assert np.array_equal(wanted.image, np.asarray(got.image))


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        ([stoker.PadTo("batch")], r"transforms\[0\], PadTo: no transform before it limits the size"),
        ([stoker.Resize(40), stoker.PadTo("batch")], "Resize them with max_size before it"),
        ([RESIZE, stoker.PadTo(90, multiple=8)], "multiple = 8 together with height = 90"),
        (
            [RESIZE, stoker.PadTo("batch"), stoker.ConvertBoundingBoxFormat("xyxy", normalized=True)],
            "Move it before PadTo",
        ),
    ],
)
def test_what_is_refused(source, steps, cause):
    with pytest.raises((ValueError, stoker.UnimplementedError), match=cause):
        stoker.Loader(source, steps, batch_size=1)


def test_clips_are_refused(source):
    frames = stoker.clips(stoker.files([source.path(i) for i in range(4)]), frames=2)
    with pytest.raises(stoker.UnimplementedError, match="'image' has several images in a row"):
        stoker.Loader(frames, [RESIZE, stoker.PadTo("batch")], batch_size=1)


@pytest.mark.parametrize("masks", ["instances", "semantic"])
def test_masks_of_shapes_have_the_size_of_the_batch(source, tmp_path, masks):
    random = np.random.default_rng(5)
    images, annotations = [], []
    for number, (height, width) in enumerate(SIZES):
        name = source.path(number).rsplit("/", 1)[-1]
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for _ in range(number % 3):
            polygon = (random.random((5, 2)) * (width, height)).ravel().tolist()
            about = {"id": len(annotations) + 1, "image_id": number, "category_id": 1 + number % 7}
            annotations.append({**about, "bbox": [0, 0, width, height], "segmentation": [polygon]})
    categories = [{"id": number, "name": str(number)} for number in range(1, 8)]
    made = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "made.json").write_text(json.dumps(made))
    folder = source.path(0).rsplit("/", 1)[0]
    for dtype in ("uint8", "uint16"):
        drawn = stoker.coco(tmp_path / "made.json", folder, masks=masks, mask_dtype=dtype)
        name, background = ("instances", 0) if masks == "instances" else ("mask", 255)
        loaders = [
            stoker.Loader(drawn, [RESIZE, stoker.RandomHorizontalFlip(), pad_to], batch_size=5, shuffle=True)
            for pad_to in (stoker.PadTo(90), stoker.PadTo("batch", multiple=8))
        ]
        shapes = set()
        for wanted, got in zip(*loaders):
            height, width = rounded_up(got.image_size, 8)
            assert got[name].shape == (len(got.image), height, width) == got.image.shape[:3]
            assert got[name].dtype == dtype
            shown = got[name][:, :90, :90]
            assert (shown == wanted[name][:, :height, :width]).all()
            assert (got[name][:, 90:] == background).all() and (got[name][:, :, 90:] == background).all()
            shapes.add(got[name].shape)
        assert len(shapes) > 1


def test_names_and_multiples_are_checked():
    with pytest.raises(ValueError, match=r"PadTo.size is 'batches'; it must be one of 'batch'"):
        stoker.PadTo("batches")
    with pytest.raises(ValueError, match=r"PadTo.multiple is 0"):
        stoker.PadTo("batch", multiple=0)
