"""Small samples with masks and objects, in the form of several containers, and batches compared."""

import shutil

import numpy as np
import stoker
from gray_png import gray_png

SAMPLES = 12
RECIPE = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def write_scenes(made, folder, samples=SAMPLES):
    """Writes photographs and masks, and returns a dictionary for each: image i has i % 4 objects."""
    photographs = stoker.image_folder(made)
    rng = np.random.default_rng(0)
    rows = []
    for i in range(samples):
        height, width, _ = stoker.decode_image(photographs.path(i)).shape
        shutil.copy(photographs.path(i), folder / f"{i}.jpg")
        classes = rng.integers(0, 7, (height, width), np.uint8)
        (folder / f"{i}.png").write_bytes(gray_png(width, height, classes.tobytes()))
        n = i % 4
        objects = {
            "bbox": rng.uniform(0, 40, (n, 4)).round(2).tolist(),
            "categories": rng.integers(0, 9, n).tolist(),
            "area": rng.integers(0, 900, n).tolist(),
        }
        pose = np.concatenate([rng.uniform(0, 40, (n, 2, 2)), rng.integers(0, 3, (n, 2, 1))], 2).tolist()
        rows.append(
            {"file_name": f"{i}.jpg", "mask": f"{i}.png", "w": width, "objects": objects, "pose": pose}
        )
    return rows


def list_of_objects(objects):
    """Returns {"bbox": [a, b], …} as [{"bbox": a, …}, {"bbox": b, …}]."""
    return [dict(zip(objects, values)) for values in zip(*objects.values())]


def as_files(rows, root, *without):
    """Returns the same samples by `files`, without some columns."""
    objects = [row["objects"] for row in rows]
    columns = {
        "mask": stoker.Mask([row["mask"] for row in rows], fill=255),
        "width": [row["w"] for row in rows],
        "boxes": stoker.Boxes([each["bbox"] for each in objects], format="xywh"),
        "labels": stoker.PerObject([each["categories"] for each in objects], dtype="int64"),
        "area": stoker.PerObject([each["area"] for each in objects], dtype="float32"),
        "pose": stoker.Keypoints([row["pose"] for row in rows], flip_pairs=[(0, 1)]),
    }
    kept = {name: column for name, column in columns.items() if name not in without}
    return stoker.files([row["file_name"] for row in rows], columns=kept, root=root)


def batches(source, **options):
    """Returns an epoch's batches: arrays by name, those of objects as values and offsets."""
    loader = stoker.Loader(source, RECIPE, **{"batch_size": 5, "shuffle": True, "seed": 7, **options})
    made = []
    for batch in loader:
        columns = {}
        names = batch.keys()
        for name in names:
            column = batch[name]
            parts = (column.values, column.offsets) if isinstance(column, stoker.Ragged) else (column,)
            columns[name] = [np.array(part) for part in parts]
        made.append(columns)
    return made


def check_same(source, other):
    """Checks that the batches of both are equal."""
    ours, theirs = batches(source), batches(other)
    assert len(ours) == len(theirs) and [list(batch) for batch in ours] == [list(batch) for batch in theirs]
    for batch, expected in zip(ours, theirs):
        for name in batch:
            for part, wanted in zip(batch[name], expected[name], strict=True):
                np.testing.assert_array_equal(part, wanted, err_msg=name)
                assert part.dtype == wanted.dtype, name


def check_mask(source, sample, mask):
    """Checks that a mask is the one that Pillow reads from the file `mask`."""
    import PIL.Image

    batch = next(iter(stoker.Loader(source.subset([sample]), [stoker.PadTo(2000)], batch_size=1)))
    wanted = np.asarray(PIL.Image.open(mask))
    height, width = wanted.shape
    assert (batch.mask[0, :height, :width] == wanted).all() and (batch.mask[0, height:] == 255).all()
