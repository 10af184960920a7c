"""Masks are moved as torchvision v2 moves tv_tensors.Mask, and resized as its NEAREST_EXACT resizes."""

import numpy as np
import pytest
import stoker
from PIL import Image

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

SIZE = (83, 121)
FILL = 7
EXACT = v2.InterpolationMode.NEAREST_EXACT

# Name, arguments and options. Nothing of them is drawn at random.
MOVES = [
    ("CenterCrop", ((60, 70),), {}),
    ("RandomHorizontalFlip", (1,), {}),
    ("RandomVerticalFlip", (1,), {}),
    ("Pad", ([3, 7, 11, 2],), {}),
    ("Pad", ([5, 9],), {"padding_mode": "edge"}),
    ("Pad", (6,), {"padding_mode": "reflect"}),
    ("Pad", (6,), {"padding_mode": "symmetric"}),
]
# None of them moves many pixels to a place exactly between two others.
AFFINE = [
    ("RandomRotation", ((17, 17),), {}),
    ("RandomRotation", ((-50, -50),), {"center": (20, 11)}),
    ("RandomAffine", ((30, 30),), {"scale": (0.8, 0.8), "shear": (10, 10, 5, 5)}),
    ("RandomAffine", ((0, 0),), {"scale": (1.37, 1.37), "center": (60, 3)}),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An image and its mask, all of whose pixels have random values."""
    folder = tmp_path_factory.mktemp("masks")
    random = np.random.default_rng(0)
    Image.fromarray(random.integers(0, 255, (*SIZE, 3), np.uint8)).save(folder / "image.png")
    Image.fromarray(random.integers(0, 256, SIZE, np.uint8)).save(folder / "mask.png")
    return folder / "image.png", folder / "mask.png"


def by_stoker(files, steps):
    image, mask = files
    source = stoker.files([image], columns={"mask": stoker.Mask([mask], fill=FILL)})
    transforms = [getattr(stoker, name)(*args, **options) for name, args, options in steps]
    (batch,) = stoker.Loader(source, transforms, batch_size=1)
    return batch.mask[0]


def by_torchvision(files, resized, steps):
    pixels = torch.from_numpy(np.array(Image.open(files[1])))[None]
    mask = tv_tensors.Mask(v2.functional.resize_image(pixels, list(resized), interpolation=EXACT))
    for name, args, options in steps:
        if (name.startswith("Random") and not name.endswith("Flip")) or (options == {} and name == "Pad"):
            options = {**options, "fill": {tv_tensors.Mask: FILL, "others": 0}}
        mask = getattr(v2, name)(*args, **options)(mask)
    return mask[0].numpy()


@pytest.mark.parametrize("size", [SIZE, (70, 90), (41, 60), (166, 242), (200, 31)])
def test_resized_masks_are_nearest_exact(files, size):
    resize = ("Resize", (size,), {})
    np.testing.assert_array_equal(by_stoker(files, [resize]), by_torchvision(files, size, []))


@pytest.mark.parametrize("step", MOVES, ids=str)
@pytest.mark.parametrize("flip", [False, True])
def test_masks_of_one_move(files, step, flip):
    steps = [*([("RandomHorizontalFlip", (1,), {})] if flip else []), step]
    ours = by_stoker(files, [("Resize", ((70, 90),), {}), *steps])
    np.testing.assert_array_equal(ours, by_torchvision(files, (70, 90), steps))


@pytest.mark.parametrize("step", AFFINE, ids=str)
@pytest.mark.parametrize("flip", [False, True])
def test_masks_of_affine_transforms(files, step, flip):
    steps = [*([("RandomVerticalFlip", (1,), {})] if flip else []), step]
    ours = by_stoker(files, [("Resize", ((70, 90),), {}), *steps])
    # torchvision computes places in float32: in other versions a few may be nearer to another pixel.
    assert np.count_nonzero(ours != by_torchvision(files, (70, 90), steps)) <= 3


def between(side, made):
    """Where, of `made` pixels in place of `side`, the center is exactly between two of those. torchvision, in
    float32, takes one or the other."""
    return (2 * np.arange(made) + 1) * side % (2 * made) == 0


@pytest.mark.parametrize(
    "crop", [stoker.RandomCrop((40, 50)), stoker.RandomResizedCrop((64, 48), scale=(0.2, 1))], ids=repr
)
def test_masks_of_random_crops(files, crop):
    image, mask = files
    source = stoker.files([image] * 50, columns={"mask": stoker.Mask([mask] * 50)})
    steps = [stoker.Resize(SIZE), crop] if isinstance(crop, stoker.RandomCrop) else [crop]
    pixels = torch.from_numpy(np.array(Image.open(mask)))[None]
    boxes = set()
    for batch in stoker.Loader(source, steps, batch_size=10, geometry=True):
        height, width = batch.mask.shape[1:]
        for ours, geometry in zip(batch.mask, batch["geometry"].astype(np.float64)):
            scale = geometry[[1, 0], [1, 0]]
            box = np.rint([*(-geometry[[1, 0], 2] / scale), *((height, width) / scale)]).astype(int).tolist()
            theirs = v2.functional.crop_image(pixels, *box)
            theirs = v2.functional.resize_image(theirs, [height, width], interpolation=EXACT)
            compared = ~np.logical_or.outer(between(box[2], height), between(box[3], width))
            np.testing.assert_array_equal(ours[compared], theirs[0].numpy()[compared])
            boxes.add(tuple(box))
    assert len(boxes) > 20
