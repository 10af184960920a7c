"""Mosaics, letterboxes and colours, against those of Ultralytics with the same parameters, which draw_plan
prints. Run with -s to see the table of docs/boxes.md.
"""

import json
import math

import numpy as np
import pytest
import stoker
from comparison import HEADER, Comparison, made_scenes, rows_of
from drawing import DRAW_PLAN, Differences, drawn, photographs

augment = pytest.importorskip("ultralytics.data.augment")
instance = pytest.importorskip("ultralytics.utils.instance")
cv2 = pytest.importorskip("cv2")

SIZE = 320


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """None is larger than SIZE, so that no filter is antialiased."""
    print("\n" + HEADER)
    return made_scenes(tmp_path_factory.mktemp("scenes"))


class Labels:
    """The data set that Ultralytics' transforms ask for samples. `rounded`: how sides are rounded;
    `nearest`: how masks are resized.
    """

    cache = "ram"

    def __init__(self, scenes, rounded, nearest):
        self.scenes, self.rounded, self.nearest = scenes, rounded, nearest

    def __len__(self):
        return len(self.scenes)

    def get_image_and_label(self, n):
        return self.label(n, resized=True)

    def label(self, n, resized):
        scene = self.scenes[n]
        image, mask = scene.image, scene.mask
        height, width = image.shape[:2]
        x = y = 1.0
        if resized:
            ratio = SIZE / max(height, width)
            sides = tuple(min(self.rounded(side * ratio), SIZE) for side in (width, height))
            image = cv2.resize(image, sides, interpolation=cv2.INTER_LINEAR)
            mask = cv2.resize(mask, sides, interpolation=self.nearest)
            x, y = sides[0] / width, sides[1] / height
        points = np.concatenate(
            [scene.points * np.float32([x, y]), np.full((*scene.points.shape[:2], 1), 2)], -1
        )
        objects = instance.Instances(
            np.float32(scene.boxes * [x, y, x, y]),
            keypoints=np.float32(points),
            bbox_format="xyxy",
            normalized=False,
        )
        numbers = np.float32(100 * n + np.arange(len(scene.boxes)))
        return {
            "im_file": str(scene.path),
            "ori_shape": scene.image.shape[:2],
            "resized_shape": image.shape[:2],
            "img": image.copy(),
            "semantic_mask": mask.copy(),
            "instances": objects,
            "cls": numbers.reshape(-1, 1),
        }


def of_labels(labels):
    """Returns the image, mask, boxes, keypoints, and numbers."""
    objects = labels["instances"]
    objects.convert_bbox("xyxy")
    points = np.where(objects.keypoints[..., 2:] > 0, objects.keypoints[..., :2], np.nan)
    return labels["img"], labels["semantic_mask"], objects.bboxes, points, labels["cls"].ravel().astype(int)


class Given:
    """Gives Ultralytics the numbers that it would draw, instead of the module `random`."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def uniform(self, least, most):
        number = next(self.numbers)
        assert least - 1e-6 <= number <= most + 1e-6
        return number

    def randint(self, least, most):
        return int(self.uniform(least, most))


class Centred(augment.RandomPerspective):
    """Maps the centres of pixels, as it maps boxes; otherwise it maps their upper left corners."""

    def centred(self, params):
        half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        return {**params, "M": np.linalg.inv(half) @ params["M"] @ half}

    def apply_image(self, labels, params=None):
        return super().apply_image(labels, self.centred(params))

    def apply_semantic(self, labels, params=None):
        return super().apply_semantic(labels, self.centred(params))


def given(monkeypatch, mosaic, n=4):
    """Makes Ultralytics draw what draw_plan printed of a mosaic of n images."""
    parts = {each["part"]: each["sample"] for each in mosaic["images"]}
    middle, factor = mosaic["middle"], mosaic["scale"]
    # The images meet at (x, y) on the canvas, whose middle is at (SIZE, SIZE).
    x = (mosaic["x"] - middle[0]) / factor + SIZE
    y = (mosaic["y"] - middle[1]) / factor + SIZE
    numbers = [0, *(parts.get(part, 0) for part in range(1, n))]
    if n == 4:
        numbers += [round(y), round(x)]
    numbers += [*mosaic["perspective"], mosaic["degrees"], factor, *mosaic["shear"]]
    numbers += [middle[0] / SIZE, middle[1] / SIZE]
    monkeypatch.setattr(augment, "random", Given(numbers))


def mosaic_of(monkeypatch, labels, n, mosaic, warp, images):
    """Returns Ultralytics' row of sample n, given what draw_plan printed."""
    given(monkeypatch, mosaic, images)
    made = augment.Mosaic(labels, imgsz=SIZE, n=images)(labels.get_image_and_label(n))
    return of_labels(Centred(**warp, size=(SIZE, SIZE))(made))


WARPS = [
    {},
    {"scale": 0.5, "translate": 0.1},
    {"degrees": 10.0},
    {"degrees": 180.0, "shear": 20.0},
    {"perspective": 0.001},
    {"degrees": 10.0, "perspective": 0.0005},
]
STILL = {"degrees": 0.0, "translate": 0.0, "scale": 0.0, "shear": 0.0, "perspective": 0.0}


@pytest.mark.skipif(not DRAW_PLAN.exists(), reason=f"{DRAW_PLAN} is not built")
@pytest.mark.parametrize("own_sizes", [False, True], ids=["same sizes", "sizes rounded up"])
@pytest.mark.parametrize(
    "warp, images", [*((warp, 4) for warp in WARPS), *((warp, 9) for warp in WARPS[:2])], ids=str
)
def test_mosaic(scenes, monkeypatch, warp, images, own_sizes):
    """With `own_sizes`, the images are resized as Ultralytics' data sets do."""
    warp = {**STILL, **warp}
    scaled, turned = warp["scale"] > 0, warp["degrees"] > 0 or warp["perspective"] > 0
    options = {"size": SIZE, **warp, "n": images}
    draws = drawn([{"name": "Mosaic", **options}], SIZE, SIZE, len(scenes))
    rounding = (math.ceil, cv2.INTER_NEAREST) if own_sizes else (round, cv2.INTER_NEAREST_EXACT)
    labels = Labels(scenes, *rounding)
    how = "sides rounded up" if own_sizes else "the same sides"
    named = ", ".join(f"{name} {most}" for name, most in warp.items() if most > 0)
    comparison = Comparison(f"Mosaic of {images}, {named or 'scale 1'}, {how}")
    differing = 0
    for n, row in enumerate(rows_of(scenes, [stoker.Mosaic(**options)])):
        samples = [each["sample"] for each in draws[n]["mosaic"]["images"]]
        if len(set(samples)) < len(samples):
            continue  # objects that have the same number
        theirs = mosaic_of(monkeypatch, labels, n, draws[n]["mosaic"], warp, images)
        both = np.intersect1d(row[4], theirs[4])
        differing += len(row[4]) + len(theirs[4]) - 2 * len(both)
        ours_kept, kept = np.isin(row[4], both), np.isin(theirs[4], both)
        assert np.array_equal(np.asarray(row[4])[ours_kept], theirs[4][kept])
        ours = (row[0], row[1], np.asarray(row[2])[ours_kept], np.asarray(row[3])[ours_kept])
        same = not scaled and not own_sizes
        image, mask = (theirs[0] if same else None), (None if scaled else theirs[1])
        comparison.add(ours, image, mask, theirs[2][kept], theirs[3][kept])
    comparison.report()
    print(f"{comparison.objects} objects of both, {differing} of one; {comparison.seen_by_one} points of one")
    if turned and not own_sizes:  # the images do not blend where they meet
        assert comparison.objects > len(scenes) and differing <= 1e-3 * comparison.objects
        assert comparison.levels.share_beyond_one <= 0.02 and comparison.mask.share <= 1e-3
        assert comparison.boxes <= 1e-3 and comparison.points <= 1e-3
    elif not scaled and not own_sizes:
        assert comparison.objects > len(scenes) and differing == 0 and comparison.seen_by_one == 0
        assert comparison.levels.largest <= 1 and comparison.mask.share <= 1e-3
        assert comparison.boxes <= 1e-3 and comparison.points <= 1e-3
    else:
        assert comparison.objects > len(scenes) and differing <= 0.01 * comparison.objects
        assert comparison.boxes <= 3 and comparison.points <= 3


CORNERS = 12  # of each polygon, so that Ultralytics does not resample them


def with_polygons(folder, size=(240, 320), objects=12, empty=()):
    """Returns scenes of one size, the polygons of their objects, each within its box, and the path of a COCO
    file with them, in which labels are 100 times the number of the scene and the object's own. `empty` scenes
    have no objects.
    """
    random = np.random.default_rng(1)
    scenes, polygons = made_scenes(folder, size=size), []
    coco = {"images": [], "categories": [], "annotations": []}
    angles = np.arange(CORNERS) * 2 * np.pi / CORNERS
    for n, scene in enumerate(scenes):
        sides = random.uniform(8, 60, (objects, 2))
        middle = random.uniform(sides / 2, size[::-1] - sides / 2)
        radius = sides[:, None] / 2 * random.uniform(0.7, 1, (objects, CORNERS, 1))
        of_scene = np.float32(middle[:, None] + radius * np.stack([np.cos(angles), np.sin(angles)], -1))
        of_scene = of_scene[: 0 if n in empty else objects]
        polygons.append(of_scene)
        scene.boxes = np.concatenate([of_scene.min(1), of_scene.max(1)], -1)
        coco["images"].append({"id": n, "file_name": scene.path.name})
        for polygon, (left, top, right, bottom) in zip(of_scene.tolist(), scene.boxes.tolist()):
            number = 100 * n + len(coco["annotations"]) % objects
            coco["categories"].append({"id": number, "name": str(number)})
            annotation = {"id": len(coco["annotations"]), "image_id": n, "category_id": number}
            annotation["bbox"] = [left, top, right - left, bottom - top]
            annotation["segmentation"] = [np.ravel(polygon).tolist()]
            coco["annotations"].append(annotation)
    path = folder / "polygons.json"
    path.write_text(json.dumps(coco))
    return scenes, polygons, path


class Outlines(Labels):
    """The same with polygons, of images that are not resized."""

    def __init__(self, scenes, polygons):
        self.scenes, self.polygons = scenes, polygons

    def get_image_and_label(self, n):
        scene, polygons = self.scenes[n], self.polygons[n]
        return {
            "im_file": str(scene.path),
            "ori_shape": scene.image.shape[:2],
            "resized_shape": scene.image.shape[:2],
            "img": scene.image.copy(),
            "instances": instance.Instances(
                scene.boxes.copy(), polygons.copy(), bbox_format="xyxy", normalized=False
            ),
            "cls": np.float32(100 * n + np.arange(len(polygons))).reshape(-1, 1),
        }


def boxes_by_number(boxes, numbers):
    found = {}
    for box, number in sorted(zip(np.asarray(boxes).tolist(), np.asarray(numbers).ravel().tolist())):
        found.setdefault(int(number), []).append(box)
    return found


class Kept(augment.CopyPaste):
    """Keeps its parameters, if it has any."""

    params = None

    def get_params(self, labels):
        self.params = super().get_params(labels)
        return self.params


def pasted_by_them(labels, n, partner, p, mode, monkeypatch):
    """Returns Ultralytics' image of scene n with pasted objects, where these are, and the numbers of those
    that it pastes. `partner`: the scene that they are taken from in mode "mixup".
    """
    monkeypatch.setattr(augment, "random", Given([0, partner]))  # 0: it is applied
    transform = Kept(labels, p=p, mode=mode)
    made = labels.get_image_and_label(n)
    own = len(made["cls"])
    made = transform(made)
    nowhere = np.zeros(made["img"].shape[:2], np.uint8)
    inside = transform.params["im_new"] if transform.params else nowhere
    return made, inside > 0, made["cls"].ravel()[own:].astype(int)


@pytest.mark.parametrize("mode", ["flip", "mixup"])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_copy_paste(tmp_path, monkeypatch, p, mode):
    """Images are equal where both paste, and where neither does. Of objects that cover the same share, the
    first ones are pasted. The labels of pasted objects say which image they are from. Onto images without
    objects none is pasted.
    """
    argsort = np.argsort
    monkeypatch.setattr(augment.np, "argsort", lambda numbers: argsort(numbers, kind="stable"))
    empty = (1, 6)
    scenes, polygons, path = with_polygons(tmp_path, empty=empty)
    labels = Outlines(scenes, polygons)
    source = stoker.coco(path, tmp_path, masks="instances")
    paste = stoker.CopyPaste(p, mode)
    recipe = [stoker.Resize((240, 320)), paste, stoker.ConvertBoundingBoxFormat("xyxy")]
    rows = [
        row
        for batch in stoker.Loader(source, recipe, batch_size=1)
        for row in zip(batch.image, batch.instances, batch.boxes, batch.labels)
    ]
    pasted, boxes, differing, of, partners = 0, 0.0, 0, 0, set()
    for n, (image, numbers, ours, of_ours) in enumerate(rows):
        own = len(polygons[n])
        chosen = np.asarray(of_ours)[own:]
        assert len(chosen) == 0 or n not in empty
        others = [n] if mode == "flip" else np.unique(chosen // 100).tolist() or range(len(scenes))
        for partner in others:
            made, by_theirs, theirs = pasted_by_them(labels, n, partner, p, mode, monkeypatch)
            if len(theirs) == len(chosen):
                break
        assert sorted(chosen) == sorted(theirs) and (len(others) == 1 or len(chosen) == 0)
        partners.add(partner)
        pasted += len(chosen)
        by_us = boxes_by_number(ours, of_ours)
        by_them = boxes_by_number(made["instances"].bboxes, made["cls"])
        assert by_us.keys() == by_them.keys()
        for number, some in by_us.items():
            boxes = max(boxes, float(np.abs(np.subtract(some, by_them[number])).max()))
        inside = np.asarray(numbers) > own
        same = inside == by_theirs
        assert np.array_equal(np.asarray(image)[same], made["img"][same])
        differing += np.count_nonzero(~same)
        of += np.count_nonzero(inside)
    print(
        f"\nCopyPaste({p}, {mode}): {pasted} pasted; boxes {boxes:.2g} px; {differing / of:.2g} of "
        "their pixels"
    )
    assert len(rows) == len(scenes) < pasted and boxes <= 1e-3 and differing <= 0.1 * of
    assert len(partners) > len(scenes) / 3


OUTLINED = [
    ({}, 0.0, 4),
    ({"degrees": 45.0}, 0.0, 4),
    ({"scale": 0.5, "translate": 0.1, "degrees": 10.0, "shear": 5.0, "perspective": 0.0005}, 0.0, 4),
    ({}, 0.6, 4),
    ({"degrees": 45.0}, 1.0, 4),  # the row then shows no edge of the canvas, where points would matter
    ({"scale": 0.5, "translate": 0.1}, 0.6, 4),
    ({"degrees": 45.0}, 0.0, 9),
    ({}, 0.6, 9),
]


@pytest.mark.skipif(not DRAW_PLAN.exists(), reason=f"{DRAW_PLAN} is not built")
@pytest.mark.parametrize("warp, p, images", OUTLINED, ids=str)
def test_mosaic_of_outlines(tmp_path, monkeypatch, warp, p, images):
    """Boxes are those of polygons, also of pasted ones. `p`: that of CopyPaste; 0 leaves it out. Images are
    compared where both paste, and where neither does.
    """
    argsort = np.argsort
    monkeypatch.setattr(augment.np, "argsort", lambda numbers: argsort(numbers, kind="stable"))
    scenes, polygons, path = with_polygons(tmp_path)
    warp = {**STILL, **warp}
    options = {"size": SIZE, **warp, "n": images}
    draws = drawn([{"name": "Mosaic", **options}], SIZE, SIZE, len(scenes))
    source = stoker.coco(path, tmp_path, masks="instances")
    xyxy = stoker.ConvertBoundingBoxFormat("xyxy")
    plain = [stoker.Mosaic(**options), xyxy]
    pasting = [plain[0], *([stoker.CopyPaste(p)] if p else []), xyxy]
    rows, plain_rows = (
        (
            row
            for batch in stoker.Loader(source, recipe, batch_size=1, seed=1)
            for row in zip(batch.image, batch.instances, batch.boxes, batch.labels)
        )
        for recipe in (pasting, plain)
    )
    labels = Outlines(scenes, polygons)
    levels, boxes, both, differing, pasted = Differences(), 0.0, 0, 0, 0
    for n, ((image, numbers, ours, of_ours), (*_, own)) in enumerate(zip(rows, plain_rows, strict=True)):
        samples = [each["sample"] for each in draws[n]["mosaic"]["images"]]
        if len(set(samples)) < images:
            continue
        given(monkeypatch, draws[n]["mosaic"], images)
        made = augment.Mosaic(labels, imgsz=SIZE, n=images)(labels.get_image_and_label(n))
        inside = np.zeros((2 * SIZE, 2 * SIZE), np.uint8)
        if p:
            copy = augment.CopyPaste(p=p, mode="flip")
            params = copy.get_params(made)
            made = copy.apply_instances(copy.apply_image(made, params), params)
            inside = params["im_new"]
            pasted += len(params["selected"])
        made = Centred(**warp, size=(SIZE, SIZE))(made)
        by_us = boxes_by_number(ours, of_ours)
        by_them = boxes_by_number(made["instances"].bboxes, made["cls"])
        for number in {*by_us, *by_them}:
            some, others = by_us.get(number, []), by_them.get(number, [])
            differing += abs(len(some) - len(others))
            if len(some) == len(others):
                both += len(some)
                boxes = max(boxes, float(np.abs(np.subtract(some, others)).max()))
        if warp == STILL:
            window = slice(SIZE // 2, SIZE // 2 + SIZE)
            same = (np.asarray(numbers) > len(own)) == (inside[window, window] > 0)
            assert same.mean() > 0.98
            levels.add(np.asarray(image)[same], made["img"][same])
    named = ", ".join(f"{name} {most}" for name, most in warp.items() if most > 0)
    print(
        f"\nMosaic of {images}, outlines, {named}, CopyPaste({p}): {both} objects, {differing} of one alone, "
        f"{pasted} pasted; boxes {boxes:.2g} px; levels {levels.largest:.0f}, {levels.share_beyond_one:.2g}"
    )
    scaled = warp["scale"] > 0  # sides and places are then rounded at another scale
    assert both > len(scenes) and boxes <= (3 if scaled else 1e-3)
    assert differing <= (0.03 if scaled else 1e-3) * both
    assert levels.share_beyond_one <= 1e-3 and (pasted > len(scenes) if p else pasted == 0)


def kept_in_letterbox(scene):
    """Returns the indices of the objects that docs/boxes.md says are kept. All lie within the row."""
    sides = np.array(scene.image.shape[1::-1])
    scale = np.round(sides * (SIZE / sides.max())) / sides
    width, height = ((scene.boxes[:, 2:] - scene.boxes[:, :2]) * scale).T
    return np.flatnonzero((np.minimum(width, height) > 2) & (width < 100 * height) & (height < 100 * width))


def test_letterbox(scenes):
    labels = Labels(scenes, round, cv2.INTER_NEAREST_EXACT)
    comparison = Comparison("LetterBox")
    for n, row in enumerate(rows_of(scenes, [stoker.Mosaic(SIZE, scale=0, translate=0, p=0)])):
        image, mask, boxes, points, numbers = of_labels(
            augment.LetterBox((SIZE, SIZE))(labels.label(n, resized=False))
        )
        kept = kept_in_letterbox(scenes[n])
        assert np.array_equal(row[4], numbers[kept])
        comparison.add(row, image, mask, boxes[kept], points[kept])
    comparison.report()
    assert comparison.objects > 10 * len(scenes) and comparison.seen_by_one == 0
    assert comparison.levels.largest <= 1 and comparison.mask.share <= (0.13 if photographs() else 0.17)
    assert comparison.boxes <= 0.5 and comparison.points <= 0.5


@pytest.mark.parametrize(
    "gains, of_photographs, of_made",
    [
        ((0.015, 0, 0), (11, 0.08), (11, 0.27)),
        ((0, -0.7, 0), (2, 0.001), (3, 0.01)),
        ((0, 0.7, 0), (6, 0.034), (6, 0.16)),
        ((0, 0, -0.4), (4, 0.035), (4, 0.08)),
        ((0, 0, 0.4), (6, 0.06), (7, 0.16)),
        ((-0.01, 0.5, 0.3), (7, 0.08), (8, 0.2)),
    ],
)
def test_hsv(scenes, monkeypatch, gains, of_photographs, of_made):
    """`of_photographs`, `of_made`: the largest difference, and the share of those of more than 1."""
    hue, saturation, value = gains
    colours = stoker.RandomHSV((hue, hue), (1 + saturation,) * 2, (1 + value,) * 2)
    comparison = Comparison(f"RandomHSV {gains}")
    recipe = [stoker.Resize((SIZE, SIZE)), colours]
    plain = rows_of(scenes, recipe[:1])
    for row, before in zip(rows_of(scenes, recipe), plain):
        monkeypatch.setattr(augment.np.random, "uniform", lambda *_: np.ones(3))
        labels = {"img": np.ascontiguousarray(np.asarray(before[0])[..., ::-1])}
        theirs = augment.RandomHSV(*gains)(labels)["img"][..., ::-1]
        monkeypatch.undo()
        comparison.add(row, theirs, None, row[2], np.where(row[3][..., 2:] > 0, row[3][..., :2], np.nan))
    comparison.report()
    largest, beyond_one = of_photographs if photographs() else of_made
    assert comparison.levels.largest <= largest and comparison.levels.share_beyond_one <= beyond_one
