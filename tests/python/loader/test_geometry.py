"""The columns of `geometry=True`: where the points of each image are in its row."""

import numpy as np
import pytest
import stoker
from PIL import Image

SIZE = (72, 96)  # height and width of the images
SPOT = 9  # pixels on a side of the bright square in each


@pytest.fixture(scope="module")
def spots(tmp_path_factory):
    """Files with a bright square on black, and the square's center as (x, y)."""
    folder = tmp_path_factory.mktemp("spots")
    random = np.random.default_rng(3)
    paths, centers = [], []
    for i in range(12):
        image = np.zeros((*SIZE, 3), np.uint8)
        y, x = random.integers(20, SIZE[0] - 20 - SPOT), random.integers(20, SIZE[1] - 20 - SPOT)
        image[y : y + SPOT, x : x + SPOT] = 255
        paths.append(folder / f"{i}.png")
        Image.fromarray(image).save(paths[-1])
        centers.append((x + SPOT / 2, y + SPOT / 2))
    return paths, np.array(centers, np.float32)


def center_of(row):
    """The center of mass of a row's first channel, as (x, y)."""
    mass = row[..., 0].astype(np.float64)
    y, x = np.indices(mass.shape) + 0.5
    return np.array([(mass * x).sum(), (mass * y).sum()]) / mass.sum()


RECIPES = {
    "fused": [stoker.RandomResizedCrop((64, 80), scale=(0.6, 1)), stoker.RandomHorizontalFlip()],
    "steps": [
        stoker.Resize((64, 80)),
        stoker.RandomVerticalFlip(),
        stoker.ColorJitter(0.2),
        stoker.RandomRotation(25, interpolation="bilinear"),
        stoker.RandomHorizontalFlip(),
    ],
    "padded": [stoker.Resize(50), stoker.RandomHorizontalFlip(), stoker.PadTo(100)],
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_points_are_where_the_geometry_says(spots, recipe):
    paths, centers = spots
    source = stoker.files(paths, columns={"center": centers})
    loader = stoker.Loader(source, RECIPES[recipe], batch_size=5, shuffle=True, seed=4, geometry=True)
    compared = 0
    for batch in loader.epoch(0):
        geometry, original = batch["geometry"], batch["original_size"]
        assert geometry.dtype == np.float32 and geometry.shape == (len(batch.image), 2, 3)
        assert original.dtype == np.int32 and np.all(original == SIZE)
        points = np.einsum("rij,rj->ri", geometry[:, :, :2], batch["center"]) + geometry[:, :, 2]
        for row, point in zip(batch.image, points):
            if np.all(point > 12) and np.all(point < np.array(row.shape[1::-1]) - 12):
                assert center_of(row) == pytest.approx(point, abs=0.5)
                compared += 1
    assert compared >= 4


def test_the_rest_of_a_batch_stays_as_it_is(spots):
    paths, _ = spots
    for transforms in RECIPES.values():
        loader, plain = (
            stoker.Loader(stoker.files(paths, range(12)), transforms, batch_size=5, seed=1, **options)
            for options in ({"geometry": True}, {})
        )
        for batch, wanted in zip(loader.epoch(0), plain.epoch(0)):
            assert batch._fields == (*wanted._fields, "geometry", "original_size")
            assert all(np.array_equal(batch[name], wanted[name]) for name in wanted._fields)


def test_an_exif_orientation_comes_first(tmp_path):
    image = np.zeros((40, 60, 3), np.uint8)
    image[10:14, 50:54] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # is displayed turned by 90 degrees clockwise: 60 rows and 40 columns
    Image.fromarray(image).save(tmp_path / "turned.png", exif=exif)
    source = stoker.files([tmp_path / "turned.png"])
    loader = stoker.Loader(source, [stoker.Resize((60, 40))], batch_size=1, geometry=True)
    (batch,) = loader.epoch(0)
    assert batch["original_size"].tolist() == [[60, 40]]
    assert batch["geometry"].tolist() == [[[1, 0, 0], [0, 1, 0]]]
    assert center_of(batch.image[0]) == pytest.approx((40 - 12, 52))


def test_functions_and_states_have_it(spots):
    paths, _ = spots
    seen = []

    def record(batch):
        seen.append(batch["geometry"].copy())

    def loader_of(*last, geometry):
        options = {"batch_size": 4, "seed": 2, "geometry": geometry}
        return stoker.Loader(stoker.files(paths), [*RECIPES["fused"], *last], **options)

    loader = loader_of(stoker.Map(record), geometry=True)
    batches = [batch["geometry"].copy() for batch in loader.epoch(0)]
    assert set(map(bytes, batches)) <= set(map(bytes, seen))  # those of the next epoch, too
    with pytest.raises(stoker.FailedPreconditionError, match="geometry was true and is false"):
        loader_of(geometry=False).load_state_dict(loader_of(geometry=True).state_dict())


def test_refusals(spots):
    paths, centers = spots
    source = stoker.files(paths)
    options = {"batch_size": 4, "geometry": True}
    views = [RECIPES["fused"], RECIPES["fused"]]
    with pytest.raises(stoker.UnimplementedError, match="several views"):
        stoker.Loader(source, views=views, **options)
    with pytest.raises(stoker.UnimplementedError, match="MixUp makes rows of two images"):
        stoker.Loader(stoker.files(paths, range(12)), [*RECIPES["fused"], stoker.MixUp(2)], **options)
    with pytest.raises(ValueError, match="copied as they are, so they have no geometry"):
        stoker.Loader(stoker.arrays(centers), **options)
    named = stoker.files(paths, columns={"original_size": centers})
    with pytest.raises(ValueError, match="has a field 'original_size'"):
        stoker.Loader(named, RECIPES["fused"], **options)
