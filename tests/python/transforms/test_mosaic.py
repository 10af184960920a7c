"""Rows of several images. tests/transforms/plan/mosaic_test.cc compares them with a canvas by pixel."""

import io
import json
import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image")

SIZES = [(60, 40), (30, 70), (50, 50), (90, 20), (33, 44), (64, 48)]


@pytest.fixture
def photos(tmp_path):
    """Plain images, each of one gray value that no other has, and 114 nowhere."""
    paths = []
    for i, size in enumerate(SIZES):
        paths.append(tmp_path / f"{i}.png")
        Image.new("RGB", size, (10 + 40 * i,) * 3).save(paths[-1])
    return paths


def value_of(i):
    return 10 + 40 * i


@pytest.fixture
def source(photos):
    """Image i has i objects, whose boxes are the whole image."""
    boxes = [[[0, 0, *size]] * i for i, size in enumerate(SIZES)]
    labels = [[i] * i for i in range(len(SIZES))]
    columns = {
        "number": np.arange(len(SIZES)),
        "boxes": stoker.Boxes(boxes),
        "labels": stoker.PerObject(labels),
    }
    return stoker.files(photos, columns=columns)


def loader_of(source, recipe, **options):
    return stoker.Loader(source, recipe, **{"batch_size": 3, "shuffle": True, "seed": 1, **options})


@pytest.mark.parametrize("n", [4, 9])
def test_boxes_are_around_their_image_in_the_row(source, n):
    loader = loader_of(source, [stoker.Mosaic(64, scale=0.3, n=n), stoker.RandomHorizontalFlip()])
    found = 0
    for epoch in range(20):
        for batch in loader.epoch(epoch):
            assert batch.image.shape == (3, 64, 64, 3)
            for image, boxes, labels in zip(batch.image, batch.boxes, batch.labels):
                for box, label in zip(boxes, labels):
                    left, top, right, bottom = box
                    assert 0 <= left <= right <= 64 and 0 <= top <= bottom <= 64
                    inside = image[round(top) : round(bottom), round(left) : round(right)]
                    assert (inside == value_of(label)).all()
                    found += 1
    assert found > 300


def test_a_row_alone_is_letterboxed(photos):
    random = np.random.default_rng(0)
    image = Image.fromarray(random.integers(0, 256, (80, 120, 3), dtype=np.uint8))
    file = io.BytesIO()
    image.save(file, "png")
    photos[0].write_bytes(file.getvalue())
    (batch,) = loader_of(
        stoker.files(photos[:1]), [stoker.Mosaic(60, scale=0, translate=0, fill=(1, 2, 3), p=0)], batch_size=1
    )
    (row,) = batch
    assert (row[:10] == (1, 2, 3)).all() and (row[50:] == (1, 2, 3)).all()
    wanted = np.asarray(image.resize((60, 40), Image.Resampling.BILINEAR)).astype(int)
    assert abs(row[10:50] - wanted).max() <= 1


@pytest.mark.parametrize("mosaic", [{}, {"n": 9}, {"n": 9, "degrees": 20.0}], ids=str)
def test_batches_do_not_depend_on_threads_and_resume(source, mosaic):
    recipe = [
        stoker.Mosaic(32, p=0.7, **mosaic),
        stoker.ColorJitter(brightness=0.4, saturation=0.7, hue=0.015),
    ]

    def digests(threads, state=None):
        loader = loader_of(source, recipe, batch_size=2, runtime=stoker.Runtime(threads=threads))
        if state is not None:
            loader.load_state_dict(state)
        batches = []
        for batch in loader:
            batches.append((batch.image.tobytes(), batch.boxes.values.tobytes(), loader.state_dict()))
        return batches

    one, three = digests(1), digests(3)
    assert [b[:2] for b in one] == [b[:2] for b in three] and len(one) == 3
    assert [b[:2] for b in digests(2, one[0][2])] == [b[:2] for b in one[1:]]


@pytest.mark.parametrize("n", [4, 9])
def test_masks_follow_their_images(tmp_path, photos, n):
    masks = []
    for i, size in enumerate(SIZES):
        masks.append(tmp_path / f"m{i}.png")
        Image.new("L", size, i).save(masks[-1])
    source = stoker.files(photos, columns={"mask": stoker.Mask(masks, fill=255)})
    recipe = [stoker.Mosaic(48, n=n), stoker.RandomVerticalFlip()]
    seen = set()
    for batch in loader_of(source, recipe):
        for image, mask in zip(batch.image, batch.mask):
            for i in np.unique(mask):
                value = 114 if i == 255 else value_of(int(i))
                assert (image[mask == i] == value).all()
                seen.add(int(i))
    assert len(seen) > 4 and 255 in seen


def test_annotated_sets_give_mosaics(tmp_path, photos):
    coco = {
        "images": [{"id": i, "file_name": path.name} for i, path in enumerate(photos)],
        "annotations": [
            {"id": i, "image_id": i, "category_id": i, "bbox": [0, 0, *size]} for i, size in enumerate(SIZES)
        ],
        "categories": [{"id": i, "name": str(i)} for i in range(len(SIZES))],
    }
    (tmp_path / "a.json").write_text(json.dumps(coco))
    source = stoker.coco(tmp_path / "a.json", tmp_path)
    recipe = [stoker.Mosaic(64), stoker.ConvertBoundingBoxFormat("xyxy")]
    for batch in loader_of(source, recipe):
        for image, boxes, labels in zip(batch.image, batch.boxes, batch.labels):
            for (left, top, right, bottom), label in zip(boxes, labels):
                inside = image[round(top) : round(bottom), round(left) : round(right)]
                assert (inside == value_of(label)).all()


def test_a_bad_partner_is_named_and_replaced(source, photos):
    photos[2].write_bytes(b"no image")
    recipe = [stoker.Mosaic(32, scale=0, translate=0)]
    with pytest.raises(stoker.Error, match=r"2\.png"):
        list(loader_of(source, recipe, batch_size=6))
    loader = loader_of(source, recipe, batch_size=6, on_bad="substitute", max_bad_fraction=1)
    (batch,) = loader
    others = [i for i in batch.number.tolist() if i != 2]
    assert set(others) >= {0, 1, 3, 4, 5}
    assert not (batch.image == value_of(2)).all(axis=-1).any()


def test_what_is_refused(source):
    mosaic = stoker.Mosaic(32)
    for recipe, match in [
        ([mosaic, stoker.ColorJitter(contrast=0.4)], "contrast"),
        ([mosaic, stoker.GaussianBlur(3)], "GaussianBlur"),
        ([stoker.RandomHorizontalFlip(), mosaic], "first"),
        ([mosaic, stoker.PadTo(64)], "PadTo"),
    ]:
        with pytest.raises(ValueError, match=match):
            loader_of(source, recipe)
    with pytest.raises(ValueError, match="geometry"):
        loader_of(source, [mosaic], geometry=True)
    for n in (3, 5):
        with pytest.raises(ValueError, match=rf"Mosaic\.n is {n}; it must be 4 or 9"):
            stoker.Mosaic(32, n=n)
    with pytest.raises(ValueError, match="loader"):
        stoker.Compose([mosaic])
    with pytest.raises(ValueError, match=r"Mosaic\.scale"):
        stoker.Mosaic(32, scale=1)


def test_clips_are_refused(photos):
    with pytest.raises(stoker.UnimplementedError, match="'image' has several images of each"):
        loader_of(stoker.clips(stoker.files(photos), frames=1), [stoker.Mosaic(32)])


@pytest.mark.parametrize("masks", ["instances", "semantic"])
def test_masks_of_shapes_are_where_their_images_are(photos, tmp_path, masks):
    """Object i is the whole of image i."""
    images, annotations = [], []
    for i, (width, height) in enumerate(SIZES):
        images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        corners = [0, 0, width, 0, width, height, 0, height]
        about = {"id": i + 1, "image_id": i, "category_id": i + 1, "bbox": [0, 0, width, height]}
        annotations.append({**about, "segmentation": [corners]})
    categories = [{"id": i + 1, "name": str(i)} for i in range(len(SIZES))]
    made = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "made.json").write_text(json.dumps(made))
    source = stoker.coco(tmp_path / "made.json", tmp_path, masks=masks)
    recipe = [stoker.Mosaic(64), stoker.RandomHorizontalFlip(), stoker.ConvertBoundingBoxFormat("xyxy")]
    found = 0
    for epoch in range(20):
        for batch in loader_of(source, recipe).epoch(epoch):
            drawn = batch[masks if masks == "instances" else "mask"]
            assert drawn.shape == (3, 64, 64)
            for image, mask, boxes, labels in zip(batch.image, drawn, batch.boxes, batch.labels):
                wanted = np.full((64, 64), 0 if masks == "instances" else 255, np.uint8)
                for number, (box, label) in enumerate(zip(boxes, labels)):
                    left, top, right, bottom = (round(float(side)) for side in box)
                    wanted[top:bottom, left:right] = number + 1 if masks == "instances" else label
                    assert (image[top:bottom, left:right] == value_of(label - 1)).all()
                    found += 1
                assert (mask == wanted).all()
    assert found > 100


def test_it_is_a_value():
    mosaic = stoker.Mosaic(640)
    assert mosaic == stoker.Mosaic(640, 0.5, 0.1, 114, 1.0) == pickle.loads(pickle.dumps(mosaic))
    assert mosaic.fill == (114, 114, 114)
