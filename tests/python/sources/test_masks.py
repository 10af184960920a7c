"""Samples of an image and a mask, from files to batches."""

import pickle
import shutil
import zlib

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
ImageOps = pytest.importorskip("PIL.ImageOps", reason="Pillow is not installed here")
from epochs import same, taken  # noqa: E402
from gray_png import gray_png  # noqa: E402

SAMPLES = 24
FILL = 255
RECIPE = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def folders(made, tmp_path_factory):
    """Photographs, and masks of 7 classes: gray, or indices of a palette, in 4 bits."""
    root = tmp_path_factory.mktemp("masks")
    photographs = stoker.image_folder(made)
    rng = np.random.default_rng(0)
    for sample in range(SAMPLES):
        height, width, _ = stoker.decode_image(photographs.path(sample)).shape
        # Regions, so that moves of some pixels show.
        classes = rng.integers(0, 7, (height // 5 + 1, width // 5 + 1), np.uint8)
        classes = classes.repeat(5, 0).repeat(5, 1)[:height, :width]
        name = f"{'ab'[sample % 2]}/{sample:02d}"
        for folder in ("images", "masks", "gray"):
            (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(photographs.path(sample), root / "images" / f"{name}.jpg")
        (root / "gray" / f"{name}.png").write_bytes(gray_png(width, height, classes.tobytes()))
        mask = Image.fromarray(classes, "P" if sample % 2 else "L")
        if sample % 2:
            mask.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
        mask.save(root / "masks" / f"{name}.png", bits=4)
    return root / "images", root / "masks"


@pytest.fixture(scope="module")
def gray(folders):
    """The masks as images, whose gray of 8 bits are the classes."""
    return sorted((folders[0].parent / "gray").rglob("*.png"))


def make(source, recipe=(), **options):
    options = {"batch_size": 5, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, list(recipe) or RECIPE, **options)


def images_alone(source):
    return stoker.files([source.path(sample) for sample in range(len(source))])


# --- values of 16 bits ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def instances(folders):
    """Masks of 16 bits: the value of the mask of 8 bits, times 9,000."""
    images, masks = folders
    made = masks.parent / "instances"
    for path in sorted((masks.parent / "gray").rglob("*.png")):
        to = made / path.relative_to(masks.parent / "gray")
        to.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(Image.open(path)).astype(np.uint16) * 9000).save(to)
    return images, made


def test_masks_of_16_bits_keep_their_values(folders, instances):
    recipe = [
        stoker.RandomResizedCrop(48),
        stoker.RandomHorizontalFlip(),
        stoker.Pad(3),
        stoker.RandomRotation(30),
    ]
    narrow = taken(make(stoker.masks(*folders, fill=1), recipe))
    wide = taken(make(stoker.masks(*instances, fill=9000, dtype="uint16"), recipe))
    assert {batch[1].dtype for batch in wide} == {np.dtype(np.uint16)}
    assert len(np.unique(np.concatenate([batch[1] for batch in wide]))) == 7
    for one, other in zip(narrow, wide, strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1].astype(np.uint16) * 9000, other[1])


def test_masks_of_8_bits_may_be_read_as_16(folders):
    narrow = taken(make(stoker.masks(*folders)))
    wide = taken(make(stoker.masks(*folders, dtype=np.uint16)))
    assert all(np.array_equal(one[1], other[1]) for one, other in zip(narrow, wide, strict=True))


def test_masks_of_16_bits_are_refused_as_8(instances):
    with pytest.raises(stoker.UnimplementedError, match=r"unless its rows are uint16.*has 16 bits"):
        taken(make(stoker.masks(*instances)))


def test_wide_masks_are_pickled_and_told_apart(folders):
    images, masks = folders
    wide = stoker.masks(images, masks, fill=300, dtype="uint16")
    assert repr(pickle.loads(pickle.dumps(wide))) == repr(wide)
    assert repr(wide) == f"stoker.masks('{images}', '{masks}', fill=300, dtype='uint16')"
    with pytest.raises(ValueError, match=r"masks, filled with 0.*masks of uint16, filled with 300"):
        stoker.combine([stoker.masks(images, masks), wide])
    listed = [
        stoker.files(["a"], columns={"mask": stoker.Mask(["b"], dtype=dtype)})
        for dtype in ("uint8", "uint16")
    ]
    assert len({source._native.fingerprint for source in listed}) == 2
    again = pickle.loads(pickle.dumps(listed[1]))
    assert again._native.fingerprint == listed[1]._native.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int32"}, "masks are 'uint8' or 'uint16'"),
        ({"dtype": "nothing"}, "masks are 'uint8' or 'uint16'"),
        ({"dtype": "uint16", "fill": 65536}, "fill"),
        ({"fill": 256}, "fill"),
    ],
)
def test_other_types_of_masks_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        stoker.Mask(["a"], **options)


# --- batches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"dtype": np.float32}, {"layout": "NCHW", "dtype": np.float16}])
def test_batches_have_images_and_masks(folders, options):
    source = stoker.masks(*folders)
    batches = list(
        make(source, [*RECIPE, stoker.Normalize([0.5] * 3, [0.25] * 3)] if options else RECIPE, **options)
    )
    assert sum(len(batch.mask) for batch in batches) == SAMPLES
    for batch in batches:
        assert batch.keys() == ("image", "mask")
        assert batch.mask.dtype == np.uint8 and batch.mask.shape == (len(batch.image), 48, 48)
        assert batch.mask.max() < 7 and len(np.unique(batch.mask)) > 2
        assert batch.mask.flags.writeable and batch.mask.ctypes.data % 64 == 0


@pytest.mark.parametrize("world", [1, 3])
def test_images_are_those_of_a_source_without_masks(folders, world):
    source = stoker.masks(*folders)
    for rank in range(world):
        options = {"rank": rank, "world": world}
        with_masks, alone = make(source, **options), make(images_alone(source), **options)
        for _ in range(2):
            batches = taken(with_masks)
            same([(images,) for images, _ in batches], [(images,) for images in alone])


@pytest.mark.parametrize(
    "recipe",
    [
        lambda nearest: [stoker.RandomResizedCrop(48, **nearest), stoker.RandomHorizontalFlip()],
        lambda nearest: [stoker.Resize((31, 57), **nearest), stoker.RandomVerticalFlip()],
        lambda nearest: [stoker.Resize(40, **nearest), stoker.CenterCrop(40)],
        lambda nearest: [stoker.Resize((40, 40), **nearest), stoker.RandomCrop(32)],
        lambda nearest: [stoker.Resize((40, 40), **nearest), stoker.RandomRotation(30, **nearest)],
    ],
)
def test_masks_move_as_images_of_them_do_with_nearest(folders, gray, recipe):
    source = stoker.masks(*folders)
    masks = make(source, recipe({}))
    twin = make(stoker.files(gray), recipe({"interpolation": "nearest"}))
    for (_, mask), image in zip(taken(masks), list(twin)):
        np.testing.assert_array_equal(mask, image[..., 0])


def test_colours_leave_masks_alone(folders):
    source = stoker.masks(*folders)
    colours = [stoker.ColorJitter(0.4, 0.4, 0.4, 0.2), stoker.GaussianBlur(5), stoker.RandomErasing(1.0)]
    plain, coloured = taken(make(source)), taken(make(source, [*RECIPE, *colours]))
    for (images, masks), (others, same_masks) in zip(plain, coloured):
        np.testing.assert_array_equal(masks, same_masks)
        assert (images != others).any()


def test_pixels_outside_have_the_masks_fill(folders):
    recipe = [
        stoker.Resize((40, 40)),
        stoker.Pad(4, fill=(9, 9, 9)),
        stoker.RandomRotation(45, fill=(9, 9, 9)),
    ]
    inside = make(stoker.masks(*folders, fill=FILL), recipe)
    zeros = make(stoker.masks(*folders), recipe)
    for (images, masks), (same_images, others) in zip(taken(inside), taken(zeros)):
        np.testing.assert_array_equal(images, same_images)
        outside = masks == FILL
        assert outside[:, 0, 0].all() and not outside[:, 24, 24].any()
        np.testing.assert_array_equal(np.where(outside, 0, masks), others)


def test_masks_labels_and_columns(folders):
    source = stoker.masks(*folders)
    listed = stoker.files(
        [source.path(sample) for sample in range(SAMPLES)],
        np.arange(SAMPLES) % 3,
        columns={
            "caption": [f"photo {sample}" for sample in range(SAMPLES)],
            "mask": stoker.Mask([source.path(sample, "mask") for sample in range(SAMPLES)]),
            "again": stoker.Image([source.path(sample) for sample in range(SAMPLES)]),
        },
    )
    iterator = iter(make(listed))
    for batch, (images, masks) in zip(iterator, taken(make(source))):
        ids = iterator.sample_ids
        assert batch.keys() == ("image", "mask", "again", "label", "caption")
        np.testing.assert_array_equal(batch.image, images)
        np.testing.assert_array_equal(batch.again, images)
        np.testing.assert_array_equal(batch.mask, masks)
        np.testing.assert_array_equal(batch.label, ids.astype(np.int64) % 3)
        assert batch.caption == [f"photo {sample}" for sample in ids]


def test_what_is_made_of_masks(folders):
    source = stoker.masks(*folders)
    whole = {zlib.crc32(images.tobytes()): masks for batch in make(source, [stoker.Resize((32, 32))]) for
             images, masks in zip(*batch)}  # fmt: skip
    for made_of in (source.subset([5, 2, 2]), stoker.combine([source, source]), source.repeated(2)):
        for images, masks in make(made_of, [stoker.Resize((32, 32))]):
            for image, mask in zip(images, masks):
                np.testing.assert_array_equal(mask, whole[zlib.crc32(image.tobytes())])


# --- states, processes, devices ---------------------------------------------------------------------


def test_a_state_continues(folders):
    source = stoker.masks(*folders)
    wanted = taken(make(source))
    loader = make(source)
    iterator = iter(loader)
    next(iterator)
    again = make(source)
    again.load_state_dict(loader.state_dict())
    same(taken(again), wanted[1:])
    with pytest.raises(stoker.FailedPreconditionError, match="other options or samples"):
        make(stoker.masks(*folders, fill=1)).load_state_dict(loader.state_dict())


def test_a_loader_is_pickled(folders):
    loader = make(stoker.masks(*folders))
    same(taken(pickle.loads(pickle.dumps(loader))), taken(loader))


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_tensors_have_the_same_columns(folders, device):
    source = stoker.masks(*folders)
    batches = [
        tuple(np.from_dlpack(tensor).copy() for tensor in batch) for batch in make(source).to_device(device)
    ]
    same(batches, taken(make(source)))


@pytest.mark.parametrize("op", ["native", "fallback"])
def test_keras_takes_images_and_masks(folders, op):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed here")
    source = stoker.masks(*folders)
    loader = make(source, batch_size=6)
    dataset = loader.as_tf_dataset(op=op)
    image, mask = dataset.element_spec
    assert image == tf.TensorSpec((6, 48, 48, 3), tf.uint8) and mask == tf.TensorSpec((6, 48, 48), tf.uint8)
    same([(images.numpy(), masks.numpy()) for images, masks in dataset], taken(make(source, batch_size=6)))
    named = loader.as_tf_dataset(op=op, names=True)
    assert set(named.element_spec) == {"image", "mask"}
    weighted = stoker.files(
        [source.path(sample) for sample in range(SAMPLES)],
        columns={
            "mask": stoker.Mask([source.path(sample, "mask") for sample in range(SAMPLES)]),
            "weight": np.arange(SAMPLES, dtype=np.float32),
        },
    )
    loader = make(weighted, batch_size=6)
    assert set(loader.as_tf_dataset(op=op).element_spec) == {"image", "mask", "weight"}
    assert len(loader.as_tf_dataset(op=op, sample_weight="weight").element_spec) == 3


# --- EXIF -------------------------------------------------------------------------------------------


@pytest.fixture
def tagged(tmp_path):
    """Returns a source of an image and a mask with these EXIF orientations, and the mask's values."""

    def source(of_image, of_mask):
        values = np.random.default_rng(1).integers(0, 256, (20, 30), np.uint8)
        for name, orientation in (("image", of_image), ("mask", of_mask)):
            exif = Image.Exif()
            if orientation:
                exif[0x0112] = orientation
            Image.fromarray(values).save(tmp_path / f"{name}.png", exif=exif)
        made = stoker.files([tmp_path / "image.png"], columns={"mask": stoker.Mask([tmp_path / "mask.png"])})
        return made, values

    return source


def only(source, size, **options):
    (batch,) = stoker.Loader(source, [stoker.Resize(size)], batch_size=1, **options)
    return batch.image[0, ..., 0], batch.mask[0]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_masks_own_exif_tag_turns_it(tagged, orientation):
    source, values = tagged(orientation, orientation)
    turned = np.array(ImageOps.exif_transpose(Image.open(source.path(0, "mask"))))
    assert turned.shape == (values.shape if orientation < 5 else values.shape[::-1])
    for made in only(source, turned.shape):
        np.testing.assert_array_equal(made, turned)
    for made in only(source, values.shape, exif_orientation=False):
        np.testing.assert_array_equal(made, values)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_images_exif_tag_does_not_turn_its_mask(tagged, orientation):
    source, values = tagged(orientation, None)
    for made in only(source, values.shape, exif_orientation=False):
        np.testing.assert_array_equal(made, values)
    if orientation > 4:  # a quarter turn, which shows in the sizes
        with pytest.raises(stoker.DataLossError, match=r"it has 30 × 20 pixels, and .* has 20 × 30"):
            only(source, values.shape)
        return
    image, mask = only(source, values.shape)
    np.testing.assert_array_equal(mask, values)
    np.testing.assert_array_equal(image, np.array(ImageOps.exif_transpose(Image.open(source.path(0)))))


# --- what takes masks -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_padded_masks_are_unpadded(folders, layout):
    source = stoker.masks(*folders)
    loader = make(source, [stoker.Resize(30, max_size=44), stoker.PadTo(44)], layout=layout)
    for batch in loader:
        masks = stoker.unpadded(batch.mask, batch.image_size, layout)
        assert [mask.shape for mask in masks] == [tuple(size) for size in batch.image_size.tolist()]
        for mask, row in zip(masks, batch.mask):
            assert np.shares_memory(mask, row) and mask.max() < 7


def test_explain_names_the_masks(folders):
    source = stoker.masks(*folders)
    *steps, last = make(source).explain().splitlines()
    assert steps == make(images_alone(source)).explain().splitlines()
    assert last == "column 'mask': masks, moved as the images by nearest pixels"
    twice = stoker.files([source.path(0)], columns={"other": stoker.Image([source.path(0)])})
    assert make(twice).explain().splitlines()[-1] == "column 'other': as the images"
    loader = make(source)
    next(iter(loader))
    how = "a mask, moved as piece 0 by nearest pixels, to uint8 48 × 48"
    assert loader.stats()["plan"].endswith(f"; piece 1: {how}")


# --- bad samples and refusals -----------------------------------------------------------------------


@pytest.fixture
def one_bad(folders, tmp_path):
    """Returns a source of four samples, the third of which has this mask, and the mask's path."""

    def source(mask):
        whole = stoker.masks(*folders)
        paths = [whole.path(sample) for sample in range(4)]
        masks = [whole.path(sample, "mask") for sample in range(4)]
        masks[2] = str(tmp_path / "bad.png")
        height, width, _ = stoker.decode_image(paths[2]).shape
        mask(masks[2], (width, height))
        return stoker.files(paths, columns={"mask": stoker.Mask(masks)}), masks[2]

    return source


def cut(path, size):
    Image.new("L", size, 3).save(path)
    with open(path, "rb+") as file:
        file.truncate(60)


@pytest.mark.parametrize(
    ("mask", "kind", "words"),
    [
        (lambda path, size: None, stoker.NotFoundError, r"bad\.png"),
        (lambda path, size: Image.new("RGB", size).save(path), stoker.UnimplementedError, "channels"),
        (lambda path, size: Image.new("I;16", size).save(path), stoker.UnimplementedError, "16"),
        (lambda path, size: Image.new("L", size).save(path, "JPEG"), stoker.UnimplementedError, "PNG"),
        (lambda path, size: Image.new("L", (size[0] + 1, size[1])).save(path), stoker.DataLossError, "×"),
        (cut, stoker.DataLossError, "truncated PNG"),
    ],
)
def test_a_bad_mask_is_its_samples_error(one_bad, mask, kind, words):
    source, path = one_bad(mask)
    with pytest.raises(kind, match=words) as error:
        list(make(source, shuffle=False, batch_size=4))
    assert path in str(error.value)
    batches = list(make(source, shuffle=False, batch_size=4, on_bad="drop", max_bad_fraction=1))
    assert [len(batch.mask) for batch in batches] == [3]


@pytest.mark.parametrize(
    "options",
    [
        {"views": [RECIPE, RECIPE], "transforms": ()},
        {"cache": "ram:1GiB"},
    ],
)
def test_what_is_not_possible_yet(folders, options):
    options = {"transforms": RECIPE, **options}
    with pytest.raises(stoker.UnimplementedError, match=r"mask|images"):
        stoker.Loader(stoker.masks(*folders), options.pop("transforms"), batch_size=2, **options)
