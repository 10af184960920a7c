"""Photographs with a mask, boxes and keypoints, and how far what stoker makes of them is from what another
library does.

STOKER_PHOTOS: a directory of photographs; a few made ones otherwise.
"""

from dataclasses import dataclass, field

import numpy as np
import stoker
from drawing import Differences, made_arrays, photographs
from PIL import Image, ImageOps

OBJECTS, POINTS = 12, 2
MASK_FILL = 255
HEADER = (
    "| | images | levels: largest, share of more than one | mask: share that differs | boxes, px "
    "| keypoints, px |"
)


@dataclass
class Scene:
    """Boxes are (objects, 4), keypoints (objects, points, 2), both in pixels from the top left corner."""

    path: str
    mask_path: str
    image: np.ndarray
    mask: np.ndarray
    boxes: np.ndarray
    points: np.ndarray


def made_scenes(folder, size=None, longest=300):
    """Writes each photograph, cut to `size` (height, width) or with a longer side of at most `longest`, and
    its mask: the brightness in eight steps.
    """
    random = np.random.default_rng(0)
    files = photographs()
    arrays = made_arrays([(240, 320), (300, 200), (280, 280), (150, 300)] * 5)
    photos = (Image.open(file).convert("RGB") for file in files) if files else map(Image.fromarray, arrays)
    scenes = []
    for n, photo in enumerate(photos):
        if size:
            photo = ImageOps.fit(photo, size[::-1])
        else:
            photo.thumbnail((longest - n % 60, longest - n % 60))
        mask = Image.fromarray(np.asarray(photo.convert("L")) // 32)
        path, mask_path = folder / f"{n:03}.png", folder / f"{n:03}_mask.png"
        photo.save(path, compress_level=1)
        mask.save(mask_path, compress_level=1)
        corners = np.sort(random.uniform(0, 1, (OBJECTS, 2, 2)), axis=1) * photo.size
        points = random.uniform(0, 1, (OBJECTS, POINTS, 2)) * photo.size
        boxes = np.float32(corners.reshape(-1, 4))
        arrays = np.asarray(photo), np.asarray(mask), boxes, np.float32(points)
        scenes.append(Scene(path, mask_path, *arrays))
    return scenes


def source_of(scenes):
    """The number of an object is 100 times that of its scene and its own."""
    seen = np.full((OBJECTS, POINTS, 1), 2, np.float32)
    numbers = [np.arange(OBJECTS) + 100 * n for n in range(len(scenes))]
    columns = {
        "mask": stoker.Mask([scene.mask_path for scene in scenes], fill=MASK_FILL),
        "boxes": stoker.Boxes([scene.boxes for scene in scenes]),
        "points": stoker.Keypoints([np.concatenate([scene.points, seen], -1) for scene in scenes]),
        "number": stoker.PerObject(numbers),
    }
    return stoker.files([scene.path for scene in scenes], columns=columns)


def rows_of(scenes, transforms, **options):
    """Yields the image, mask, boxes, keypoints, and numbers of objects of each row, in the order of the
    scenes; with geometry=True its map, too.
    """
    names = ["image", "mask", "boxes", "points", "number", *(["geometry"] if "geometry" in options else [])]
    for batch in stoker.Loader(source_of(scenes), transforms, batch_size=20, seed=1, **options):
        yield from zip(*(batch[name] for name in names))


@dataclass
class Comparison:
    """A line of the table."""

    name: str
    levels: Differences = field(default_factory=Differences)
    mask: Differences = field(default_factory=Differences)
    boxes: float = 0.0
    points: float = 0.0
    objects: int = 0
    seen_by_one: int = 0  # keypoints

    def add(self, ours, image, mask, boxes, points):
        """`ours`: a row; boxes and points: those of its objects. NaN is a point that is not seen. None is
        not compared.
        """
        if image is not None:
            self.levels.add(ours[0], image)
        if mask is not None:
            self.mask.add(ours[1], mask)
        assert ours[2].shape == boxes.shape
        self.objects += len(boxes)
        if len(boxes) == 0:
            return
        self.boxes = max(self.boxes, float(np.abs(ours[2] - boxes).max()))
        by_us, by_them = np.asarray(ours[3])[..., 2] > 0, ~np.isnan(points[..., 0])
        self.seen_by_one += np.count_nonzero(by_us != by_them)
        seen = by_us & by_them
        if seen.any():
            self.points = max(self.points, float(np.abs(ours[3][..., :2] - points)[seen].max()))

    def report(self):
        levels, mask = self.levels, self.mask
        print(
            f"\n| {self.name} | {levels.images} | {levels.largest:.0f}, {levels.share_beyond_one:.2g} "
            f"| {mask.share:.2g} | {self.boxes:.2g} | {self.points:.2g} |"
        )


def seen_within(points, size):
    """Returns the points with NaN for those that are not in an image of that (height, width)."""
    inside = ((points >= 0) & (points <= size[::-1])).all(-1, keepdims=True)
    return np.where(inside, points, np.nan)
