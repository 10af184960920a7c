"""Masks, boxes and keypoints of transforms that bend images, against torchvision's given the same parameters,
which draw_plan prints.
"""

import numpy as np
import pytest
import stoker
from drawing import DRAW_PLAN, between_pixels, coefficients_of, drawn
from PIL import Image

torch = pytest.importorskip("torch")
F = pytest.importorskip("torchvision.transforms.v2.functional")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

pytestmark = pytest.mark.skipif(not DRAW_PLAN.exists(), reason=f"{DRAW_PLAN} is not built")

HEIGHT, WIDTH, COUNT, FILL = 83, 121, 40, 7


class Sample:
    """An image with a mask of random values, boxes and keypoints."""

    def __init__(self, folder):
        random = np.random.default_rng(0)
        self.image, self.mask = folder / "image.png", folder / "mask.png"
        Image.fromarray(random.integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)).save(self.image)
        Image.fromarray(random.integers(0, 256, (HEIGHT, WIDTH), np.uint8)).save(self.mask)
        corners = np.sort(random.uniform(0, 1, (12, 2, 2)) * (WIDTH, HEIGHT), axis=1)
        self.boxes = corners.reshape(-1, 4).astype(np.float32)
        self.points = (random.uniform(0, 1, (12, 2, 2)) * (WIDTH, HEIGHT)).astype(np.float32)

    def loaded(self, transform):
        """Yields the rows that a loader makes of COUNT copies."""
        seen = np.full((12, 2, 1), 2, np.float32)
        columns = {
            "mask": stoker.Mask([self.mask] * COUNT, fill=FILL),
            "boxes": stoker.Boxes([self.boxes] * COUNT),
            "points": stoker.Keypoints([np.concatenate([self.points, seen], -1)] * COUNT),
        }
        source = stoker.files([self.image] * COUNT, columns=columns)
        steps = [stoker.Resize((HEIGHT, WIDTH)), transform]
        for batch in stoker.Loader(source, steps, batch_size=COUNT, seed=1):
            yield from zip(*(batch[name] for name in ("image", "mask", "boxes", "points")))

    def compare(self, row, function, parameters, interpolation, fill, between):
        """Expects the row to be that of torchvision's function; `fill`: of the image. `between`: pixels whose
        nearest one rounding decides.
        """
        image, mask, boxes, points = (np.asarray(each) for each in row)
        pixels = torch.from_numpy(np.array(Image.open(self.image))).permute(2, 0, 1)
        moved = function(pixels, **parameters, interpolation=interpolation, fill=fill)
        differences = np.abs(image.astype(int) - moved.permute(1, 2, 0).numpy().astype(int))
        if interpolation == "nearest":
            assert not differences[~between].any()
        else:
            assert np.mean(differences > 1) < 1e-3
        of_mask = tv_tensors.Mask(torch.from_numpy(np.array(Image.open(self.mask))))
        moved = function(of_mask, **parameters, fill=FILL)
        assert not (mask != moved.numpy())[~between].any()
        canvas = {"canvas_size": (HEIGHT, WIDTH)}
        of_boxes = tv_tensors.BoundingBoxes(torch.from_numpy(self.boxes).double(), format="XYXY", **canvas)
        assert boxes == pytest.approx(function(of_boxes, **parameters).numpy(), abs=1e-3)
        of_points = tv_tensors.KeyPoints(torch.from_numpy(self.points).double(), **canvas)
        moved = function(of_points, **parameters).numpy()
        shown = ((moved >= 0) & (moved <= (WIDTH, HEIGHT))).all(-1)
        assert np.array_equal(points[..., 2] == 2, shown)
        assert points[shown][:, :2] == pytest.approx(moved[shown], abs=1e-3)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return Sample(tmp_path_factory.mktemp("warps"))


@pytest.mark.parametrize("fill", [None, (9, 130, 255)], ids=str)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_perspective(sample, scale, interpolation, fill):
    spec = {"name": "RandomPerspective", "distortion_scale": scale, "p": 1}
    before = {"name": "Resize", "height": HEIGHT, "width": WIDTH}
    made = drawn([before, spec], WIDTH, HEIGHT, COUNT)
    transform = stoker.RandomPerspective(scale, 1, interpolation, fill)
    for row, sampled in zip(sample.loaded(transform), made):
        (step,) = sampled["steps"]
        coefficients = coefficients_of(step, HEIGHT, WIDTH)
        parameters = {"startpoints": None, "endpoints": None, "coefficients": coefficients}
        between = between_pixels(step["matrix"], HEIGHT, WIDTH, divisor=step["divisor"])
        assert between.mean() < 0.1
        sample.compare(row, F.perspective, parameters, interpolation, fill and list(fill), between)
