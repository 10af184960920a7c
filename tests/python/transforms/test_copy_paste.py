"""Objects that are pasted onto their own image, or onto another one."""

import json

import numpy as np
import pytest
import stoker
from PIL import Image

SIZE = 64


@pytest.fixture
def source(tmp_path):
    """Each image has a gray value of its own for each column, and rectangles on its left half."""
    random = np.random.default_rng(0)
    coco = {"images": [], "categories": [{"id": 4, "name": "thing"}], "annotations": []}
    for n in range(12):
        columns = np.tile(np.arange(SIZE, dtype=np.uint8) * 3 + n, (SIZE, 1))
        Image.fromarray(columns).save(tmp_path / f"{n}.png")
        coco["images"].append({"id": n, "file_name": f"{n}.png"})
        for i in range(n % 4):
            left, top = (int(number) for number in random.integers(0, 20, 2))
            right, bottom = left + 8, top + 16 * i + 8
            polygon = [left, top, right, top, right, bottom, left, bottom]
            coco["annotations"].append(
                {
                    "id": 10 * n + i,
                    "image_id": n,
                    "category_id": 4,
                    "bbox": [left, top, 8, bottom - top],
                    "segmentation": [polygon],
                }
            )
    path = tmp_path / "rectangles.json"
    path.write_text(json.dumps(coco))
    return stoker.coco(path, tmp_path, masks="instances")


def rows_of(source, recipe, threads=2):
    runtime = stoker.Runtime(threads=threads)
    loader = stoker.Loader(source, recipe, batch_size=5, seed=3, shuffle=True, runtime=runtime)
    return [
        [np.asarray(each) for each in row]
        for batch in loader
        for row in zip(batch.image, batch.instances, batch.boxes, batch.labels)
    ]


def test_pixels_are_those_of_the_mirrored_image(source):
    recipe = [stoker.Resize((SIZE, SIZE)), stoker.ConvertBoundingBoxFormat("xyxy")]
    plain = rows_of(source, recipe)
    pasting = rows_of(source, [recipe[0], stoker.CopyPaste(p=1), recipe[1]])
    pasted = 0
    for (image, _, boxes, labels), (made, numbers, all_boxes, all_labels) in zip(plain, pasting, strict=True):
        own = len(boxes)
        assert np.array_equal(all_boxes[:own], boxes) and np.array_equal(all_labels[:own], labels)
        assert len(all_labels) == len(all_boxes) and set(all_labels) <= {4}
        mirrored = boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [SIZE, 0, SIZE, 0]
        assert all(box in mirrored.tolist() for box in all_boxes[own:].tolist())
        inside = np.zeros((SIZE, SIZE), bool)
        for left, top, right, bottom in all_boxes[own:].astype(int):
            inside[top:bottom, left:right] = True
        assert np.array_equal(numbers > own, inside)
        assert np.array_equal(made, np.where(inside[..., None], image[:, ::-1], image))
        pasted += len(all_boxes) - own
    assert pasted > 5


def test_pixels_of_another_image_are_those_that_it_has_alone(source):
    """Objects of other images have other gray values, which say whose they are."""
    recipe = [stoker.Resize((SIZE, SIZE)), stoker.ConvertBoundingBoxFormat("xyxy")]
    plain = rows_of(source, recipe)
    pasting = rows_of(source, [recipe[0], stoker.CopyPaste(p=1, mode="mixup"), recipe[1]])
    by_value = {int(image[0, 0, 0]): (image, boxes) for image, _, boxes, _ in plain}
    pasted, partners = 0, set()
    for (image, _, boxes, labels), (made, numbers, all_boxes, all_labels) in zip(plain, pasting, strict=True):
        own = len(boxes)
        assert np.array_equal(all_boxes[:own], boxes) and np.array_equal(all_labels[:own], labels)
        inside = np.zeros((SIZE, SIZE), bool)
        for left, top, right, bottom in all_boxes[own:].astype(int):
            inside[top:bottom, left:right] = True
        assert np.array_equal(numbers > own, inside)
        assert own > 0 or not inside.any()
        if not inside.any():
            assert np.array_equal(made, image)
            continue
        row, column = np.argwhere(inside)[0]
        partner = int(made[row, column, 0]) - 3 * int(column)
        other, its_boxes = by_value[partner]
        assert all(box in its_boxes.tolist() for box in all_boxes[own:].tolist())
        assert np.array_equal(made, np.where(inside[..., None], other, image))
        pasted += len(all_boxes) - own
        partners.add(partner)
    assert pasted > 3 and len(partners) > 1


ONTO_IMAGE = [
    stoker.Resize((SIZE, SIZE)),
    stoker.RandomApply([stoker.CopyPaste(p=0.5)], p=0.7),
    stoker.RandomAffine(degrees=20),
    stoker.RandomHorizontalFlip(),
]
OF_ANOTHER = [
    stoker.RandomResizedCrop(SIZE, scale=(0.5, 1)),
    stoker.RandomHorizontalFlip(),
    stoker.ColorJitter(brightness=0.4),
    stoker.RandomApply([stoker.CopyPaste(p=1, mode="mixup")], p=0.7),
    stoker.RandomAffine(degrees=20),
    stoker.RandomHorizontalFlip(),
]
ONTO_MOSAIC = [
    stoker.Mosaic(SIZE, degrees=10, perspective=0.001),
    stoker.RandomApply([stoker.CopyPaste(p=1)], p=0.7),
    stoker.RandomHSV(),
    stoker.RandomHorizontalFlip(),
]


@pytest.mark.parametrize("recipe", [ONTO_IMAGE, OF_ANOTHER, ONTO_MOSAIC], ids=["image", "another", "mosaic"])
def test_rows_do_not_depend_on_threads(source, recipe):
    one, two = rows_of(source, recipe, threads=1), rows_of(source, recipe, threads=2)
    for some, others in zip(one, two, strict=True):
        for a, b in zip(some, others, strict=True):
            assert np.array_equal(a, b)


def test_rows_with_objects_of_another_image_continue_from_a_state(source):
    def batches(state=None):
        loader = stoker.Loader(
            source, OF_ANOTHER, batch_size=4, seed=3, shuffle=True, depth=1 if state else 3
        )
        if state:
            loader.load_state_dict(state)
        for batch in loader:
            yield (
                [np.array(each) for each in (batch.image, batch.instances, batch.boxes.values)],
                loader.state_dict(),
            )

    every = list(batches())
    resumed = list(batches(every[0][1]))
    assert len(every) == 3 and len(resumed) == 2
    for (some, _), (others, _) in zip(every[1:], resumed, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize("mosaic", [{}, {"degrees": 90.0, "translate": 1.0}, {"p": 0}], ids=str)
def test_masks_and_boxes_follow_what_is_pasted_onto_mosaics(source, mosaic):
    """Objects that are pasted in the row are as those of the image where their boxes are."""
    recipe = [stoker.Mosaic(SIZE, scale=0, **mosaic), stoker.CopyPaste(p=1)]
    recipe.append(stoker.ConvertBoundingBoxFormat("xyxy"))
    plain = rows_of(source, [recipe[0], recipe[2]])
    pasted = changed = 0
    for (image, _, boxes, _), (made, numbers, all_boxes, labels) in zip(plain, rows_of(source, recipe)):
        own = len(boxes)
        assert np.array_equal(all_boxes[:own], boxes) and len(labels) == len(all_boxes)
        for number, (left, top, right, bottom) in enumerate(all_boxes.tolist(), 1):
            rows, columns = np.nonzero(numbers == number)
            if len(rows) == 0:
                continue
            assert left - 1 <= columns.min() and columns.max() <= right
            assert top - 1 <= rows.min() and rows.max() <= bottom
        assert numbers.max(initial=0) <= len(all_boxes)
        pasted += len(all_boxes) - own
        changed += np.count_nonzero((image != made).any(-1))
    assert pasted > 5 and changed > 100


@pytest.mark.parametrize("recipe", [OF_ANOTHER, ONTO_MOSAIC], ids=["another", "mosaic"])
def test_an_unusable_image_is_replaced(source, tmp_path, recipe):
    (tmp_path / "3.png").write_bytes(b"no image")
    with pytest.raises(stoker.Error, match=r"3\.png"):
        list(stoker.Loader(source, recipe, batch_size=5))
    loader = stoker.Loader(source, recipe, batch_size=5, on_bad="substitute", max_bad_fraction=1)
    assert sum(len(batch.image) for batch in loader) == 12


def test_needs_shapes(source, tmp_path):
    without = stoker.coco(tmp_path / "rectangles.json", tmp_path)
    with pytest.raises(ValueError, match="no shapes"):
        stoker.Loader(without, [stoker.Resize((SIZE, SIZE)), stoker.CopyPaste()], batch_size=2)
