"""Boxes moved by a batch's `geometry` are where torchvision moves them."""

import numpy as np
import pytest
import stoker
from moves import MOVES
from PIL import Image

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

SIZE = (83, 121)
BOXES = np.float32([[10, 12, 60, 50], [30, 5, 100, 70], [0, 0, 20, 20], [80, 40, 121, 83]])


def by_torchvision(path, steps):
    image = tv_tensors.Image(torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1))
    boxes = tv_tensors.BoundingBoxes(torch.from_numpy(BOXES), format="XYXY", canvas_size=SIZE)
    _, moved = v2.Compose([getattr(v2, name)(*args, **options) for name, args, options in steps])(
        image, boxes
    )
    return moved.numpy()


def by_geometry(path, steps):
    transforms = [getattr(stoker, name)(*args, **options) for name, args, options in steps]
    (batch,) = stoker.Loader(stoker.files([path]), transforms, batch_size=1, geometry=True)
    geometry = batch["geometry"][0].astype(np.float64)
    corners = BOXES[:, [[0, 1], [2, 1], [0, 3], [2, 3]]] @ geometry[:, :2].T + geometry[:, 2]
    height, width = batch.image.shape[1:3]
    return np.concatenate([corners.min(1), corners.max(1)], axis=1).clip(0, [width, height] * 2)


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("boxes") / "noise.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (*SIZE, 3), np.uint8)).save(path)
    return path


@pytest.mark.parametrize("step", MOVES, ids=str)
@pytest.mark.parametrize("flip", [False, True])
def test_boxes_of_one_transform(photo, step, flip):
    resize, mirror = ("Resize", ((70, 90),), {}), ("RandomHorizontalFlip", (1,), {})
    steps = [resize, *([mirror] if flip else []), step]
    # torchvision clips boxes after each transform, which makes no difference to these.
    assert by_geometry(photo, steps) == pytest.approx(by_torchvision(photo, steps), abs=1e-4)
