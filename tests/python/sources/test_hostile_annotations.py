"""Wrong annotations in each kind of file: the whole message, with the file, the place and what to do. The
tests of the parsers (tests/io/annotations) have more cases.
"""

import json

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from annotated import write_voc, write_yolo  # noqa: E402
from gray_png import gray_png  # noqa: E402

WIDTH, HEIGHT = 8, 6
POLYGON = [[1, 1, 5, 1, 5, 4]]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1.png").write_bytes(gray_png(WIDTH, HEIGHT))
    (tmp_path / "mask.png").write_bytes(gray_png(WIDTH, HEIGHT))
    (tmp_path / "turned.png").write_bytes(gray_png(HEIGHT, WIDTH))
    return tmp_path


def coco(folder, annotation, **image):
    made = {
        "images": [{"id": 1, "file_name": "1.png", **image}],
        "annotations": [
            {
                "id": 4,
                "image_id": 1,
                "category_id": 7,
                "bbox": [1, 2, 3, 4],
                "segmentation": POLYGON,
                **annotation,
            }
        ],
        "categories": [{"id": 7, "name": "x"}],
    }
    (folder / "a.json").write_text(json.dumps(made))
    return stoker.coco(folder / "a.json", folder, masks="instances")


def yolo(folder, line):
    write_yolo(folder, [folder / "1.png"])
    (folder / "labels/train/1.txt").write_text(f"0 0.5 0.5 1 1\n{line}\n")
    return stoker.yolo(folder / "data.yaml", masks="instances")


def voc(folder, box, size=(HEIGHT, WIDTH)):
    write_voc(folder, [folder / "1.png"], [size])
    sides = "".join(
        f"<{name}>{side}</{name}>" for name, side in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    file = folder / "Annotations/1.xml"
    made = f"\n<object><name>cat</name><bndbox>{sides}</bndbox></object>\n</annotation>"
    file.write_text(file.read_text().replace("</annotation>", made))
    return stoker.voc(folder)


COLUMNS = {"mask": stoker.Mask("mask"), "boxes": stoker.Boxes("boxes", format="xywh")}


def lines(folder, columns=COLUMNS, **line):
    made = {"path": "1.png", "mask": "mask.png", "boxes": [[1, 2, 3, 4]]}
    text = json.dumps(made) + "\n" + json.dumps({**made, **line}) + "\n"
    (folder / "a.jsonl").write_text(text)
    return stoker.manifest(folder / "a.jsonl", columns=columns)


def without(folder, name, source):
    """Returns the source after a file is removed."""
    (folder / name).unlink()
    return source


NO_FILE = (
    "cannot open: No such file or directory. The target of a symbolic link may be missing. Otherwise restore "
    "the file, or open the dataset again without it."
)
NO_NAN = "NaN is not JSON, though Python's json writes it. "
CORRECT = "Correct or remove the annotation, or read the boxes without masks."
DIVIDE = "Divide x and width by the image's width, and y and height by its height."
TURNED = (
    "If the image has an EXIF orientation, set exif_orientation to False for objects of the image as it is "
    "stored, to True for those of the image as viewed; if only the width and height are wrong, correct them, "
    "or turn off check_sizes."
)
SCALE = (
    "Use the image that was annotated, or scale its objects to this size; if only the width and height are "
    "wrong, correct them, or turn off check_sizes."
)
CASES = [
    (
        lambda f: coco(f, {"bbox": [1, 2, -3, 4]}),
        "a.json at byte 62: annotation 4 has a box of negative width or height. A box is [x, y, width, "
        "height]: correct or remove the annotation.",
    ),
    (
        lambda f: coco(f, {"bbox": [1, float("nan"), 3, 4]}),
        f"a.json at byte 117: {NO_NAN}Replace it with a number, or remove the value that has it.",
    ),
    (
        lambda f: coco(f, {"segmentation": [[1, 2]]}),
        "a.json at byte 62: annotation 4 has a polygon of 2 coordinates, which are fewer than three points. "
        + CORRECT,
    ),
    (
        lambda f: coco(f, {"segmentation": {"size": [6, 8], "counts": [40, 9]}}),
        f"a.json at byte 62: annotation 4 has runs (RLE) of 49 pixels for an image of 6 × 8. {CORRECT}",
    ),
    (
        lambda f: coco(f, {"segmentation": {"size": [6, 8], "counts": [40]}}, width=6, height=8),
        "a.json: annotation 4 has runs (RLE) for an image of 6 × 8 pixels, and its image has 8 × 6. The "
        "'size' of runs is [height, width].",
    ),
    (
        lambda f: coco(f, {"segmentation": {"size": [8, 6], "counts": [40]}}),
        "1.png: an object has runs (RLE) for an image of 8 × 6 pixels, and its image has 6 × 8. If the image "
        "was annotated without its EXIF orientation, set exif_orientation to False.",
    ),
    (
        lambda f: coco(f, {}, width=16, height=12),
        f"1.png: the image has 8 × 6 pixels, but DIR/a.json says that it has 16 × 12. {SCALE}",
    ),
    (
        lambda f: coco(f, {}, width=6, height=8),
        f"1.png: the image has 8 × 6 pixels, but DIR/a.json says that it has 6 × 8. {TURNED}",
    ),
    (lambda f: without(f, "1.png", coco(f, {})), f"1.png: {NO_FILE}"),
    (
        lambda f: yolo(f, "0 0.5 0.5 -0.1 0.2"),
        f"labels/train/1.txt at byte 14: line 2: '-0.1' is not a normalized coordinate (0 to 1). {DIVIDE}",
    ),
    (
        lambda f: yolo(f, "0 1.5 0.5 0.1 0.2"),
        f"labels/train/1.txt at byte 14: line 2: '1.5' is not a normalized coordinate (0 to 1). {DIVIDE}",
    ),
    (
        lambda f: yolo(f, "0 nan 0.5 0.1 0.2"),
        f"labels/train/1.txt at byte 14: line 2: 'nan' is not a normalized coordinate (0 to 1). {DIVIDE}",
    ),
    (
        lambda f: yolo(f, "0 0.1 0.1"),
        "labels/train/1.txt at byte 14: line 2: 3 numbers on this line; a box has 5: class, x, y, width, "
        "height; a polygon has class, and x, y of 3 points or more.",
    ),
    (lambda f: without(f, "images/train/1.png", yolo(f, "0 0.5 0.5 1 1")), f"images/train/1.png: {NO_FILE}"),
    (
        lambda f: voc(f, (5, 2, 3, 4)),
        "Annotations/1.xml at byte 85: line 2: the box of 'cat' has xmax less than xmin. Correct the box, or "
        "remove the object.",
    ),
    (
        lambda f: voc(f, (-5, 2, 3, 4)),
        "Annotations/1.xml at byte 61: line 2: the box of 'cat' begins before pixel 1, the first one of "
        "VOC's. Correct the box; or if coordinates count from 0, say that they are not one-based "
        "(one_based).",
    ),
    (
        lambda f: voc(f, (1, "nan", 3, 4)),
        "Annotations/1.xml at byte 107: line 2: <ymin> is 'nan', not a coordinate. Correct the box, or "
        "remove the object.",
    ),
    (
        lambda f: voc(f, (1, 2, 3, 4), (12, 16)),
        "JPEGImages/1.png: the image has 8 × 6 pixels, but DIR/Annotations/1.xml says that it has 16 × 12. "
        + SCALE,
    ),
    (
        lambda f: stoker.voc(without(f, "Annotations/1.xml", (voc(f, (1, 2, 3, 4)), f)[1])),
        "Annotations/1.xml: cannot open: No such file or directory. Restore the file, or remove its name "
        "from the list of the split.",
    ),
    (lambda f: without(f, "JPEGImages/1.png", voc(f, (1, 2, 3, 4))), f"JPEGImages/1.png: {NO_FILE}"),
    (
        lambda f: lines(f, boxes=[[1, 2, -3, 4]]),
        "a.jsonl at byte 111: line 2: 'boxes' has a box of negative width or height. Boxes are xywh here: "
        "give their format if they are not; leave out padding boxes, such as [-1, -1, -1, -1]; otherwise "
        "correct the box.",
    ),
    (
        lambda f: lines(f, {"boxes": stoker.Boxes("boxes")}, boxes=[[5, 2, 3, 4]]),
        "a.jsonl at byte 111: line 2: 'boxes' has a box that ends before it begins. Boxes are xyxy here: "
        "give their format if they are not; leave out padding boxes; otherwise correct the box.",
    ),
    (
        lambda f: lines(f, boxes=[[1, float("nan"), 3, 4]]),
        f"a.jsonl at byte 115: line 2: {NO_NAN}Write a number, or leave the line out.",
    ),
    (
        lambda f: lines(f, boxes=[[1, 2, 3]]),
        "a.jsonl at byte 111: line 2: 'boxes' has a box of 3 numbers. A box has four numbers.",
    ),
    (
        lambda f: lines(f, mask="turned.png"),
        "turned.png: it has 6 × 8 pixels, and DIR/1.png, the image of this sample, has 8 × 6. EXIF tags turn "
        "the two differently. Ignore the tags if this file fits the image as it is stored; otherwise "
        "re-create it.",
    ),
    (lambda f: lines(f, mask="none.png"), f"none.png: {NO_FILE}"),
    (lambda f: lines(f, path="none.png"), f"none.png: {NO_FILE}"),
]


@pytest.mark.parametrize(("made", "message"), CASES)
def test_the_message_says_all(folder, made, message):
    with pytest.raises(stoker.Error) as caught:
        list(stoker.Loader(made(folder), [stoker.Resize((4, 4))], batch_size=1))
    assert str(caught.value).replace(str(folder), "DIR") == f"DIR/{message}"


def test_a_million_objects_of_an_image(folder):
    """They are read and delivered, or there are too many; the memory is bounded either way."""
    box = "[1, 2, 3, 4]"
    line = '{"path": "1.png", "boxes": [%s]}\n'
    file = folder / "many.jsonl"
    columns = {"boxes": COLUMNS["boxes"]}
    file.write_text(line % ", ".join([box] * 1_000_000) + line % box)
    source = stoker.manifest(file, columns=columns)
    (batch,) = stoker.Loader(source, [stoker.Resize((4, 4))], batch_size=2)
    assert [len(boxes) for boxes in batch.boxes] == [1_000_000, 1]
    small = stoker.Runtime(memory_budget=64 << 20)
    with pytest.raises(stoker.ResourceExhaustedError, match="memory"):
        list(stoker.Loader(source, [stoker.Resize((4, 4))], batch_size=8, runtime=small))
    file.write_text(line % ", ".join([box] * 1_100_000))
    with pytest.raises(stoker.InvalidArgumentError, match="at most 1048576"):
        stoker.manifest(file, columns=columns)
