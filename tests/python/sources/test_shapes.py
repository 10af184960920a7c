"""Masks that are drawn from the polygons and RLE of COCO's and YOLO's files."""

import json
import pickle
import random

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
image_module = pytest.importorskip("PIL.Image")

HEIGHT, WIDTH = 20, 30


@pytest.fixture
def coco(tmp_path):
    """Writes an image for each list of annotations, and a file of these; returns it, and the folder."""

    def write(*images, **members):
        made = {
            "images": [
                {"id": i, "file_name": f"{i}.png", "width": WIDTH, "height": HEIGHT}
                for i in range(len(images))
            ],
            "categories": [{"id": 3, "name": "cat"}, {"id": 8, "name": "dog"}],
            "annotations": [],
        }
        for image, segmentations in enumerate(images):
            image_module.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / f"{image}.png")
            for segmentation in segmentations:
                number = len(made["annotations"])
                made["annotations"].append(
                    {
                        "id": number,
                        "image_id": image,
                        "category_id": (3, 8)[number % 2],
                        "bbox": [0, 0, WIDTH, HEIGHT],
                        "segmentation": segmentation,
                        **members,
                    }
                )
        (tmp_path / "a.json").write_text(json.dumps(made))
        return tmp_path / "a.json", tmp_path

    return write


WHOLE = [stoker.CenterCrop((HEIGHT, WIDTH))]


def box(left, top, right, bottom):
    return [left, top, right, top, right, bottom, left, bottom]


def only_batch(source, transforms, **options):
    (batch,) = stoker.Loader(source, transforms, batch_size=len(source), **options)
    return batch


def test_instances_are_numbered_by_the_objects_of_their_row(coco):
    source = stoker.coco(*coco([[box(0, 0, 20, 20)], [box(5, 5, 10, 10)]], [[]]), masks="instances")
    batch = only_batch(source, WHOLE)
    assert batch.instances.shape == (2, HEIGHT, WIDTH) and batch.instances.dtype == np.uint8
    wanted = np.zeros((HEIGHT, WIDTH), np.uint8)
    wanted[:, :20] = 1
    wanted[5:10, 5:10] = 2
    assert (batch.instances[0] == wanted).all() and not batch.instances[1].any()
    assert batch.keys() == ("image", "boxes", "labels", "area", "iscrowd", "image_id", "instances")
    flipped = only_batch(source, [*WHOLE, stoker.RandomHorizontalFlip(1)])
    assert (flipped.instances[0] == wanted[:, ::-1]).all()
    smaller = only_batch(source, [stoker.Resize((10, 15)), stoker.PadTo((12, 15))])
    assert (smaller.instances[0, :10] == wanted[::2, ::2]).mean() > 0.9
    assert not smaller.instances[0, 10:].any()


def test_semantic_masks_have_labels(coco):
    runs = {"size": [HEIGHT, WIDTH], "counts": [10 * HEIGHT, 5 * HEIGHT]}
    files = coco([[box(0, 0, 5, 20)], runs])
    batch = only_batch(stoker.coco(*files, masks="semantic"), WHOLE)
    assert [set(batch.mask[0, :, a:b].flat) for a, b in ((0, 5), (5, 10), (10, 15), (15, 30))] == [
        {3},
        {255},
        {8},
        {255},
    ]
    crowds = coco([[box(0, 0, 5, 20)]], iscrowd=1)
    source = stoker.coco(*crowds, masks="semantic", mask_crowd=200)
    assert set(only_batch(source, WHOLE).mask.flat) == {255, 200}


def test_options_are_kept(coco):
    source = stoker.coco(*coco([[]]), masks="semantic", mask_dtype="uint16", mask_background=300)
    assert repr(source).endswith(", masks='semantic', mask_dtype='uint16', mask_background=300)")
    assert pickle.loads(pickle.dumps(source))._spec == source._spec
    assert only_batch(source, WHOLE).mask.dtype == np.uint16
    both = stoker.combine([source, source.subset([0])])
    assert set(only_batch(both, WHOLE).mask.flat) == {300}
    with pytest.raises(ValueError, match="masks"):
        stoker.coco(*coco([[]]), masks="panoptic")
    for option in ({"mask_dtype": "uint16"}, {"mask_background": 0}, {"mask_crowd": 255}):
        with pytest.raises(stoker.InvalidArgumentError, match="there are none"):
            stoker.coco(*coco([[]]), **option)
    with pytest.raises(stoker.InvalidArgumentError, match="the background of instances is 0"):
        stoker.coco(*coco([[]]), masks="instances", mask_background=1)
    with pytest.raises(stoker.InvalidArgumentError, match="the value 3, which is a class") as caught:
        stoker.coco(*coco([[box(0, 0, 1, 1)]]), masks="semantic", mask_background=3)
    assert "a.json" in str(caught.value)


def test_wrong_segmentations_are_named(coco):
    json_file, folder = coco([[box(0, 0, 1, 1)], [[1, 2]]])
    with pytest.raises(stoker.InvalidArgumentError, match="annotation 1 has a polygon of 2 coordinates"):
        stoker.coco(json_file, folder, masks="instances")
    assert len(stoker.coco(json_file, folder)) == 1


def test_more_objects_than_a_mask_tells_apart_are_an_error_of_the_sample(coco):
    files = coco([[box(0, 0, 1, 1)]] * 256)
    with pytest.raises(stoker.InvalidArgumentError, match="256 objects") as caught:
        only_batch(stoker.coco(*files, masks="instances"), WHOLE)
    assert "0.png" in str(caught.value) and "uint16" in str(caught.value)
    batch = only_batch(stoker.coco(*files, masks="instances", mask_dtype="uint16"), WHOLE)
    assert batch.instances[0, 0, 0] == 256


def test_classes_of_objects_that_are_not_drawn_do_not_matter(coco):
    json_file, folder = coco([[box(0, 0, 5, 20)], []])
    made = json.loads(json_file.read_text())
    made["categories"].append({"id": 300, "name": "cow"})
    made["annotations"][1]["category_id"] = 300
    json_file.write_text(json.dumps(made))
    batch = only_batch(stoker.coco(json_file, folder, masks="semantic"), WHOLE)
    assert set(batch.mask.flat) == {3, 255} and batch.labels[0].tolist() == [3, 300]


def test_more_pixels_than_the_row_is_worth_are_an_error_of_the_sample(coco):
    files = coco([[box(0, 0, WIDTH, HEIGHT)]] * 60_000)
    with pytest.raises(stoker.InvalidArgumentError, match="pixels in the row") as caught:
        only_batch(stoker.coco(*files, masks="semantic"), [stoker.Resize((100, 100))])
    assert "0.png" in str(caught.value)


def test_runs_of_a_turned_image_are_an_error_of_the_sample(coco):
    json_file, folder = coco([{"size": [HEIGHT, WIDTH], "counts": [1, 5]}])
    exif = image_module.Exif()
    exif[0x112] = 6  # turned by 90 degrees
    image_module.new("RGB", (WIDTH, HEIGHT)).save(folder / "0.png", exif=exif)
    source = stoker.coco(json_file, folder, masks="instances")
    with pytest.raises(stoker.InvalidArgumentError, match="20 × 30 pixels, and its image has 30 × 20"):
        only_batch(source, WHOLE)
    batch = only_batch(source, WHOLE, exif_orientation=False)
    assert batch.instances[0, :, 0].tolist() == [0] + [1] * 5 + [0] * 14


def random_polygon(rng):
    sides = (WIDTH, HEIGHT) * rng.randrange(3, 12)
    return [round(rng.uniform(-0.2, 1.2) * side, 2) for side in sides]


def test_masks_are_those_of_pycocotools(coco):
    pycocotools = pytest.importorskip("pycocotools.mask")
    rng = random.Random(1)
    objects = []
    for _ in range(200):
        polygons = [random_polygon(rng) for _ in range(rng.randrange(1, 3))]
        runs = pycocotools.merge(pycocotools.frPyObjects(polygons, HEIGHT, WIDTH))
        objects.append((polygons, runs))
    packed = [{"size": runs["size"], "counts": runs["counts"].decode()} for _, runs in objects]
    source = stoker.coco(*coco(*([polygons] for polygons, _ in objects)), masks="instances")
    drawn = only_batch(source, WHOLE).instances.copy()
    source = stoker.coco(*coco(*([runs] for runs in packed)), masks="instances")
    from_runs = only_batch(source, WHOLE).instances
    for i, (polygons, runs) in enumerate(objects):
        wanted = pycocotools.decode(runs)
        assert (drawn[i] == wanted).all(), polygons
        assert (from_runs[i] == wanted).all(), runs


def test_targets_of_torch_have_masks(coco):
    torch = pytest.importorskip("torch")
    import stoker.torch

    files = coco([[box(0, 0, 20, 20)], [box(5, 5, 10, 10)], []], [])
    for dtype in ("uint8", "uint16"):
        source = stoker.coco(*files, masks="instances", mask_dtype=dtype)
        transforms = [stoker.Resize((HEIGHT, WIDTH)), stoker.PadTo((32, 32))]
        (batch,) = stoker.torch.DataLoader(source, transforms, batch_size=2)
        _, targets = stoker.torch.images_and_targets(batch, box_format="xywh")
        masks = targets[0]["masks"]
        assert masks.dtype == torch.uint8 and masks.shape == (3, HEIGHT, WIDTH)
        assert masks.sum((1, 2)).tolist() == [20 * 20 - 25, 25, 0]
        assert targets[1]["masks"].shape == (0, HEIGHT, WIDTH) and "instances" not in targets[0]


def test_other_columns_with_the_name_of_instances_are_kept():
    torch = pytest.importorskip("torch")
    import stoker.torch

    batch_of = stoker._batch.batch_type
    images = torch.zeros(2, 3, HEIGHT, WIDTH)
    boxes = stoker.Ragged(torch.tensor([[0.0, 0, 1, 1]]), torch.tensor([0, 1, 1]))
    masks = torch.zeros(2, HEIGHT, WIDTH, dtype=torch.uint8)
    for other in (
        torch.tensor([5, 6]),
        torch.tensor([5, 6], dtype=torch.uint8),
        masks.to(torch.int64),
        masks[:, :-1],
        stoker.Ragged(torch.tensor([7]), torch.tensor([0, 1, 1])),
        ["a", "b"],
    ):
        batch = batch_of(("image", "boxes", "instances"))(images, boxes, other)
        _, targets = stoker.torch.images_and_targets(batch)
        assert [set(target) for target in targets] == [{"boxes", "instances"}] * 2
    batch = batch_of(("image", "boxes", "instances", "masks"))(images, boxes, masks, torch.tensor([5, 6]))
    _, targets = stoker.torch.images_and_targets(batch)
    assert targets[1]["masks"] == 6 and targets[1]["instances"].shape == (HEIGHT, WIDTH)


def test_yolo_draws_polygons(tmp_path):
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        image_module.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "images" / f"{name}.png")
    (tmp_path / "labels" / "a.txt").write_text("1 0 0 0.5 0 0.5 1 0 1\n0 0.9 0.5 0.2 0.2\n")
    (tmp_path / "data.yaml").write_text("names: [x, y]\ntrain: images\n")
    source = stoker.yolo(tmp_path / "data.yaml", masks="instances")
    batch = only_batch(source, WHOLE)
    wanted = np.zeros((HEIGHT, WIDTH), np.uint8)
    wanted[:, : WIDTH // 2] = 1
    assert (batch.instances[0] == wanted).all() and not batch.instances[1].any()
    assert batch.boxes[0][0].tolist() == [7.5, 10, 15, 20]
    assert repr(source).endswith(", masks='instances')")
    with pytest.raises(stoker.InvalidArgumentError, match="the value 1, which is a class"):
        stoker.yolo(tmp_path / "data.yaml", masks="semantic", mask_background=1)
    source = stoker.yolo(tmp_path / "data.yaml", masks="semantic")
    assert set(only_batch(source, WHOLE).mask[0].flat) == {1, 255}


def test_what_objects_refuse_is_refused(coco):
    source = stoker.coco(*coco([[box(0, 0, 1, 1)]]), masks="instances")
    with pytest.raises(stoker.UnimplementedError, match="views"):
        stoker.Loader(source, views=[WHOLE, WHOLE], batch_size=1)
    with pytest.raises(stoker.InvalidArgumentError, match="padding would show objects again"):
        stoker.Loader(source, [stoker.Pad(2, padding_mode="reflect"), *WHOLE], batch_size=1)
