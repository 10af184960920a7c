"""Images, masks, boxes and keypoints of transforms that bend images, against torchvision's given the same
parameters, which draw_plan prints.
"""

import numpy as np
import pytest
import stoker
from drawing import DRAW_PLAN, between_pixels, coefficients_of, drawn
from PIL import Image

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
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
            assert differences.max() <= 1
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


def displacement_of(step, height=HEIGHT, width=WIDTH):
    """Returns torchvision's displacement, in halves of the sides, and where a pixel comes from, in pixels."""
    pixels = np.float32(step["displacement"]).reshape(2, height, width)
    places = pixels + np.mgrid[0:height, 0:width][::-1]
    shares = torch.from_numpy(pixels.transpose(1, 2, 0) * (2 / np.float32([width, height])))
    return shares[None], places


@pytest.mark.parametrize("fill", [None, (9, 130, 255)], ids=str)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize(("alpha", "sigma"), [(50, 5), (300, 5), (20, 0), (0, 3)])
def test_elastic(sample, alpha, sigma, interpolation, fill):
    before = {"name": "Resize", "height": HEIGHT, "width": WIDTH}
    made = drawn([before, {"name": "ElasticTransform", "alpha": alpha, "sigma": sigma}], WIDTH, HEIGHT, COUNT)
    transform = stoker.ElasticTransform(alpha, sigma, interpolation, fill)
    for row, sampled in zip(sample.loaded(transform), made):
        displacement, places = displacement_of(sampled["steps"][0])
        between = np.any(np.abs(places - np.floor(places) - 0.5) < 1e-3, axis=0)
        assert between.mean() < 0.1
        parameters = {"displacement": displacement}
        sample.compare(row, F.elastic, parameters, interpolation, fill and list(fill), between)


@pytest.mark.parametrize(("alpha", "sigma"), [(50, 5), (120, 2)])
def test_displacements_of_elastic(alpha, sigma):
    """Their deviation along each axis, at the borders and in the middle, and how alike neighbours are."""
    torch.manual_seed(0)
    height, width, count = 48, 70, 300
    before = {"name": "Resize", "height": height, "width": width}
    spec = {"name": "ElasticTransform", "alpha": alpha, "sigma": sigma}
    steps = [each["steps"][0] for each in drawn([before, spec], width, height, count)]
    ours = np.concatenate([displacement_of(step, height, width)[0].numpy() for step in steps])
    transform, image = v2.ElasticTransform(float(alpha), float(sigma)), torch.zeros(3, height, width)
    theirs = np.concatenate([transform.make_params([image])["displacement"].numpy() for _ in range(count)])

    def about(fields):
        numbers = []
        for axis, side in enumerate((width, height)):
            field = fields[..., axis] * np.float32(side)
            lines = field[:, [0, -1]], field[:, 20:28], field[:, :, [0, -1]], field[:, :, 30:40], field
            numbers += [line.std() for line in lines]
            for n in (1, 4, 10):
                numbers.append(np.mean(field[:, :, n:] * field[:, :, :-n]) / field.var())
                numbers.append(np.mean(field[:, n:] * field[:, :-n]) / field.var())
        return np.array(numbers)

    assert about(ours) == pytest.approx(about(theirs), rel=0.05, abs=0.01)
