"""Boxes and other values of objects as PyTorch's tensors. Skips if PyTorch is missing."""

import json
import pickle

import numpy as np
import PIL.Image
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811

COUNTS = [3, 0, 2, 1, 5, 0, 4]
SIZES = [(16, 16), (12, 16), (16, 9), (16, 16), (10, 16), (16, 16), (16, 7)]
PADDED = [stoker.Resize(15, max_size=16), stoker.PadTo(16)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("torch_objects")
    random = np.random.default_rng(3)
    for i, (height, width) in enumerate(SIZES):
        PIL.Image.fromarray(random.integers(0, 256, (height, width, 3), np.uint8)).save(made / f"{i}.png")
        mask = PIL.Image.fromarray(random.integers(0, 256, (height, width), np.uint8))
        mask.save(made / f"{i}_mask.png")
    return made


RANDOM = np.random.default_rng(5)
BOXES = [np.sort(RANDOM.integers(0, 7, (n, 2, 2)), 1).reshape(n, 4).astype(np.float32) for n in COUNTS]
LABELS = [RANDOM.integers(0, 90, n) for n in COUNTS]


def source(folder, masks=False):
    columns = {"mask": stoker.Mask([folder / f"{i}_mask.png" for i in range(len(COUNTS))])} if masks else {}
    columns |= {
        "image_id": np.arange(len(COUNTS)) + 100,
        "boxes": stoker.Boxes(BOXES),
        "labels": stoker.PerObject(LABELS),
        "name": [f"image {i}" for i in range(len(COUNTS))],
    }
    return stoker.files([folder / f"{i}.png" for i in range(len(COUNTS))], columns=columns)


def loader_of(folder, transforms=PADDED, masks=False, **options):
    return stoker.torch.DataLoader(source(folder, masks), transforms, batch_size=3, **options)


def test_batches_have_tensors(folder):
    loader = loader_of(folder, shuffle=True, seed=2)
    for _ in range(2):
        iterator = iter(loader)
        for batch in iterator:
            ids = iterator.sample_ids.tolist()
            assert isinstance(batch.boxes.values, torch.Tensor)
            assert batch.boxes.offsets.dtype == batch.labels.values.dtype == torch.int64
            assert batch.labels.counts.tolist() == [COUNTS[i] for i in ids]
            for label, i in zip(batch.labels, ids, strict=True):
                assert label.tolist() == LABELS[i].tolist()
            dense = batch.labels.padded(6, fill=-1)
            assert dense.dtype == torch.int64
            assert dense.tolist() == [[*LABELS[i], *[-1] * (6 - COUNTS[i])] for i in ids]
            assert batch.boxes.padded().shape == (len(ids), max(COUNTS[i] for i in ids), 4)


def test_tensors_keep_the_memory(folder):
    labels = [batch.labels for batch in loader_of(folder)]
    assert [row.tolist() for ragged in labels for row in ragged] == [label.tolist() for label in LABELS]
    again = pickle.loads(pickle.dumps(labels[0]))
    assert [row.tolist() for row in again] == [label.tolist() for label in LABELS[:3]]


def test_to_moves_both_and_converts_values_only():
    ragged = stoker.Ragged(torch.ones(3, 4), torch.tensor([0, 1, 3]))
    moved = ragged.to("meta", non_blocking=True)
    assert moved.values.device.type == moved.offsets.device.type == "meta"
    half = ragged.to(torch.float16)
    assert (half.values.dtype, half.offsets.dtype) == (torch.float16, torch.int64)
    assert torch.equal(ragged[1:][0], torch.ones(2, 4))


def test_nested_tensors_take_them(folder):
    boxes = next(iter(loader_of(folder))).boxes
    nested = torch.nested.nested_tensor_from_jagged(boxes.values, boxes.offsets)
    assert [row.shape[0] for row in nested.unbind()] == COUNTS[:3]


LARGEST = [PADDED[0], stoker.PadTo("batch", multiple=2)]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("transforms", [PADDED, LARGEST])
def test_images_and_targets(folder, layout, transforms):
    options = {"layout": layout, "dtype": torch.uint8, "sample_ids": True}
    for batch in loader_of(folder, transforms, masks=True, **options):
        images, targets = stoker.torch.images_and_targets(batch)
        assert len(images) == len(targets) == len(batch.image)
        for image, target, size in zip(images, targets, batch.image_size.tolist(), strict=True):
            i = int(target["sample_id"])
            assert list(target) == [name for name in batch._fields if name != "image"]
            assert image.shape == (3, *size)
            assert target["mask"].shape == tuple(size)
            assert target["image_id"].item() == 100 + i
            assert target["labels"].tolist() == LABELS[i].tolist()
            assert target["boxes"].shape == (COUNTS[i], 4)
            assert target["name"] == f"image {i}"
            assert image.untyped_storage().data_ptr() == batch.image.untyped_storage().data_ptr()


def test_images_and_targets_without_padding(folder):
    options = {"channels": "gray", "layout": "NHWC"}
    gray = next(iter(loader_of(folder, [stoker.Resize((8, 9))], **options)))
    assert {image.shape for image in stoker.torch.images_and_targets(gray)[0]} == {(1, 8, 9)}
    for batch in loader_of(folder, [stoker.Resize((8, 8))]):
        images, targets = stoker.torch.images_and_targets(batch)
        assert all(torch.equal(image, row) for image, row in zip(images, batch.image, strict=True))
        assert all(target["labels"].dtype == torch.int64 for target in targets)


def test_what_images_and_targets_refuses(folder):
    with pytest.raises(TypeError, match="a batch of several columns, not Tensor"):
        stoker.torch.images_and_targets(torch.zeros(2, 3, 8, 8))
    batch = next(iter(loader_of(folder)))
    with pytest.raises(ValueError, match="box_format"):
        stoker.torch.images_and_targets(batch, "xyhw")
    without = stoker.torch.DataLoader(stoker.arrays(np.zeros((2, 8, 8, 3), np.uint8), [1, 2]), batch_size=2)
    with pytest.raises(ValueError, match="box_format is 'xywh', and the batch has no boxes of objects"):
        stoker.torch.images_and_targets(next(iter(without)), "xywh")
    with pytest.raises(ValueError, match=r"begins with a column of shape \(3, 3, 16\)"):
        stoker.torch.images_and_targets(type(batch)(batch[0][..., 0], *batch[1:]))


CORNERS = [[[10, 20, 40, 30], [0, 0, 6, 8]], [], [[30, 2, 34, 8]]]


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
def test_images_and_targets_convert_boxes(box_format):
    def given(left, top, right, bottom):
        width, height = right - left, bottom - top
        if box_format == "cxcywh":
            return [left + width / 2, top + height / 2, width, height]
        return [left, top, width, height] if box_format == "xywh" else [left, top, right, bottom]

    values = torch.tensor([given(*box) for boxes in CORNERS for box in boxes], dtype=torch.float32)
    offsets = torch.tensor([0, 2, 2, 3])
    batch_of = stoker._batch.batch_type(("image", "boxes"))
    batch = batch_of(torch.zeros(3, 3, 8, 8), stoker.Ragged(values.clone(), offsets))
    _, targets = stoker.torch.images_and_targets(batch, box_format)
    assert [target["boxes"].tolist() for target in targets] == CORNERS
    assert torch.equal(batch.boxes.values, values)  # not changed
    if box_format != "xyxy":
        with pytest.raises(ValueError, match=r"image 2 has a box from .*, if the format is 'xyxy'") as raised:
            stoker.torch.images_and_targets(batch_of(batch[0][2:].expand(3, 3, 8, 8), only_last(values)))
        assert "xywh" in raised.value.advice
    empty = batch_of(torch.zeros(1, 3, 8, 8), stoker.Ragged(values[:0], torch.tensor([0, 0])))
    _, (target,) = stoker.torch.images_and_targets(empty, box_format.upper())
    assert target["boxes"].shape == (0, 4)


def only_last(boxes):
    """Returns boxes that can be corners, except the last one, of row 2."""
    return stoker.Ragged(
        torch.cat([torch.tensor([[1.0, 1, 2, 2]] * 2), boxes[2:]]), torch.tensor([0, 2, 2, 3])
    )


def test_a_model_of_torchvision_takes_them(folder):
    detection = pytest.importorskip("torchvision").models.detection
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=91, min_size=32, max_size=32
    )
    chosen = [0, 2, 4]
    boxes = [np.array([[1, 1, 6, 6]] * COUNTS[i], np.float32) for i in chosen]
    source = stoker.files(
        [folder / f"{i}.png" for i in chosen],
        columns={"boxes": stoker.Boxes(boxes), "labels": stoker.PerObject([LABELS[i] for i in chosen])},
    )
    loader = stoker.torch.DataLoader(source, PADDED, batch_size=3)
    (batch,) = loader
    images, targets = stoker.torch.images_and_targets(batch)
    losses = model(images, targets)
    assert all(torch.isfinite(loss) for loss in losses.values())


OF_BOXES = [
    stoker.RandomIoUCrop(),
    stoker.Resize((64, 64)),
    stoker.SanitizeBoundingBoxes(),
    stoker.ConvertBoundingBoxFormat("xyxy"),
]


def write_coco(folder):
    """Writes a file of COCO's format of two images with two boxes, and returns its source."""
    random = np.random.default_rng(7)
    images = [{"id": i, "file_name": f"photo{i}.png"} for i in range(2)]
    for image in images:
        pixels = random.integers(0, 256, (48, 60, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / image["file_name"])
    boxes = [(i, box) for i in range(2) for box in ([40, 30, 15, 10], [5, 8, 20, 12])]
    annotations = [
        {"id": n, "image_id": i, "category_id": 3 + n % 2, "bbox": box} for n, (i, box) in enumerate(boxes)
    ]
    categories = [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return stoker.coco(path, folder)


def photos_of(folder):
    """Returns a source of `files` with boxes as large as those of `write_coco`, in its format."""
    boxes = [[[40, 30, 15, 10], [5, 8, 20, 12]]] * 2
    columns = {"boxes": stoker.Boxes(boxes, "xywh"), "labels": stoker.PerObject([[1, 2]] * 2)}
    return stoker.files([folder / f"photo{i}.png" for i in range(2)], columns=columns)


@pytest.mark.parametrize("kind", ["coco", "files"])
def test_transforms_of_boxes(tmp_path, kind):
    source = write_coco(tmp_path)
    source = source if kind == "coco" else photos_of(tmp_path)
    loader = stoker.torch.DataLoader(source, OF_BOXES, batch_size=2, shuffle=True)
    native = stoker.Loader(source, OF_BOXES, batch_size=2, shuffle=True)
    seen = 0
    for _ in range(5):
        (batch,), (wanted,) = loader, native  # an epoch
        images, targets = stoker.torch.images_and_targets(batch)
        assert [tuple(image.shape) for image in images] == [(3, 64, 64)] * 2
        for target, boxes, labels in zip(targets, wanted.boxes, wanted.labels, strict=True):
            assert target["boxes"].tolist() == boxes.tolist()
            assert target["labels"].tolist() == labels.tolist()
            assert (target["boxes"][:, 2:] > target["boxes"][:, :2]).all()
            assert ((target["boxes"] >= 0) & (target["boxes"] <= 64)).all()
            seen += len(boxes)
    assert seen > 0
    with pytest.raises(stoker.UnimplementedError, match="objects"):
        loader.dataset[0]


def test_a_model_takes_transformed_boxes(tmp_path):
    detection = pytest.importorskip("torchvision").models.detection
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=91, min_size=32, max_size=32
    )
    for batch in stoker.torch.DataLoader(write_coco(tmp_path), OF_BOXES, batch_size=2):
        losses = model(*stoker.torch.images_and_targets(batch))
        assert all(torch.isfinite(loss) for loss in losses.values())


def test_single_samples_are_refused(folder):
    with pytest.raises(stoker.UnimplementedError, match="objects"):
        loader_of(folder).dataset[0]


def test_pinned_memory(folder):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for batch in loader_of(folder, pin_memory=True):
        assert batch.boxes.values.is_pinned() and batch.boxes.offsets.is_pinned()
