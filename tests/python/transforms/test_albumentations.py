"""Images, masks, boxes and keypoints of transforms, against those of Albumentations with the same parameters.

Photographs are cut to one size first, without stoker. Run with -s to see the table of
docs/from-albumentations.md.
"""

import numpy as np
import pytest
import stoker
from comparison import HEADER, MASK_FILL, Comparison, made_scenes, rows_of, seen_within

A = pytest.importorskip("albumentations")
cv2 = pytest.importorskip("cv2")

HEIGHT, WIDTH = 240, 320
SAME = stoker.Resize((HEIGHT, WIDTH))
FILL = (9, 130, 255)
MIN_SIDE, MIN_AREA = 2, 9
SANITIZE = stoker.SanitizeBoundingBoxes(min_size=MIN_SIDE, min_area=MIN_AREA)
# Albumentations' keypoints are counted from the center of the first pixel.
CENTER = np.float32(0.5)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    print("\n" + HEADER)
    return made_scenes(tmp_path_factory.mktemp("scenes"), (HEIGHT, WIDTH))


def by_albumentations(scene, transform, points_from=CENTER):
    """Returns the image, mask, boxes and keypoints, and the numbers of the objects that are kept."""
    kept = {"min_width": MIN_SIDE, "min_height": MIN_SIDE, "min_area": MIN_AREA}
    compose = A.Compose(
        [transform],
        bbox_params=A.BboxParams("pascal_voc", label_fields=["numbers"], **kept),
        keypoint_params=A.KeypointParams("xy", remove_invisible=False),
    )
    made = compose(
        image=scene.image,
        mask=scene.mask,
        bboxes=scene.boxes,
        numbers=np.arange(len(scene.boxes)),
        keypoints=(scene.points - points_from).reshape(-1, 2),
    )
    numbers = np.asarray(made["numbers"], int)
    points = (np.asarray(made["keypoints"]) + points_from).reshape(scene.points.shape)[numbers]
    return (
        made["image"],
        made["mask"],
        np.asarray(made["bboxes"]).reshape(-1, 4),
        seen_within(points, made["image"].shape[:2]),
        numbers,
    )


def compared(name, scenes, transforms, transform_of, points_from=CENTER, **options):
    """`transform_of`: returns Albumentations' transform for a row of stoker."""
    comparison = Comparison(name)
    for scene, row in zip(scenes, rows_of(scenes, [*transforms, SANITIZE], **options)):
        image, mask, boxes, points, numbers = by_albumentations(scene, transform_of(row), points_from)
        assert np.array_equal(np.asarray(row[4]) % 100, numbers)
        comparison.add(row, image, mask, boxes, points)
    comparison.report()
    assert comparison.objects > 5 * len(scenes) and comparison.seen_by_one == 0
    return comparison


EXACT = [
    ("HorizontalFlip", [SAME, stoker.RandomHorizontalFlip(1)], A.HorizontalFlip(p=1)),
    ("VerticalFlip", [SAME, stoker.RandomVerticalFlip(1)], A.VerticalFlip(p=1)),
    ("CenterCrop", [stoker.CenterCrop((180, 200))], A.CenterCrop(180, 200, p=1)),
    (
        "PadIfNeeded",
        [SAME, stoker.Pad([40, 30], fill=FILL)],
        A.PadIfNeeded(HEIGHT + 60, WIDTH + 80, fill=FILL, fill_mask=MASK_FILL, p=1),
    ),
]


@pytest.mark.parametrize("name, ours, theirs", EXACT, ids=[case[0] for case in EXACT])
def test_moves(scenes, name, ours, theirs):
    comparison = compared(name, scenes, ours, lambda row: theirs)
    assert comparison.levels.largest == 0 and comparison.mask.largest == 0
    assert comparison.boxes <= 1e-4 and comparison.points <= 1e-4


def test_random_crops(scenes):
    def at_place(row):
        left, top = (-row[5][:, 2]).astype(int)
        return A.Crop(left, top, left + 150, top + 130, p=1)

    comparison = compared("RandomCrop", scenes, [stoker.RandomCrop((130, 150))], at_place, geometry=True)
    assert comparison.levels.largest == 0 and comparison.mask.largest == 0
    assert comparison.boxes <= 1e-4 and comparison.points <= 1e-4


@pytest.mark.parametrize("size", [(360, 500), (200, 170)], ids=["larger", "smaller"])
@pytest.mark.parametrize("mask", ["INTER_NEAREST_EXACT", "INTER_NEAREST"])
def test_resize(scenes, size, mask):
    theirs = A.Resize(*size, mask_interpolation=getattr(cv2, mask), p=1)
    ours = [stoker.Resize(size, antialias=False)]
    comparison = compared(f"Resize to {size}, {mask}", scenes, ours, lambda row: theirs, points_from=0)
    assert comparison.levels.largest <= 1
    if mask == "INTER_NEAREST_EXACT":
        assert comparison.mask.share <= 1e-3
    assert comparison.boxes <= 1e-4 and comparison.points <= 1e-4


class Warp(A.Affine):
    """The map of a row, in pixels from the top left corner, and from the center of the first pixel."""

    def __init__(self, geometry, **options):
        super().__init__(fill_mask=MASK_FILL, p=1, **options)
        self.of_corners = np.vstack([geometry.astype(np.float64), [0, 0, 1]])

    def get_params_dependent_on_data(self, params, data):
        to_center = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]])
        return {
            "rotate": 0.0,
            "scale": {"x": 1.0, "y": 1.0},
            "matrix": to_center @ self.of_corners @ np.linalg.inv(to_center),
            "bbox_matrix": self.of_corners,
            "output_shape": params["shape"][:2],
        }


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_affine(scenes, interpolation):
    """Bilinear without a fill, with which stoker blends the border twice, as torchvision does."""
    mode, fill = {"nearest": (cv2.INTER_NEAREST, FILL), "bilinear": (cv2.INTER_LINEAR, None)}[interpolation]
    ranges = {"translate": (0.06, 0.06), "scale": (0.6, 1.5), "shear": (-9, 9, -5, 5)}
    affine = stoker.RandomAffine(45, **ranges, interpolation=interpolation, fill=fill)

    def warp(row):
        return Warp(row[5], interpolation=mode, fill=fill or 0)

    comparison = compared(f"Affine, {interpolation}", scenes, [SAME, affine], warp, geometry=True)
    if interpolation == "bilinear":
        assert comparison.levels.largest <= 1
    else:
        assert comparison.levels.share <= 1e-5
    assert comparison.mask.share <= 1e-5
    assert comparison.boxes <= 1e-4 and comparison.points <= 1e-4


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ({"degrees": (17, 17)}, {"rotate": -17}),
        ({"degrees": (0, 0), "scale": (0.8, 0.8)}, {"scale": 0.8}),
        ({"degrees": (0, 0), "shear": (10, 10)}, {"shear": {"x": 10, "y": 0}}),
        ({"degrees": (30, 30), "scale": (1.3, 1.3)}, {"rotate": -30, "scale": 1.3}),
    ],
    ids=str,
)
def test_parameters_of_affine(scenes, ours, theirs):
    """The signs of angles."""
    steps = [SAME, stoker.RandomAffine(**ours, interpolation="bilinear", fill=None)]
    transform = A.Affine(**theirs, fill_mask=MASK_FILL, p=1)
    comparison = compared(f"Affine({theirs})", scenes[:20], steps, lambda row: transform)
    assert comparison.levels.largest <= 1
    assert comparison.boxes <= 1e-4 and comparison.points <= 1e-4
