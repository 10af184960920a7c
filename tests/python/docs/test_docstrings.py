"""Every example in a docstring of the package runs, as those of the pages do (test_documents.py).

The reference of the site shows them. Names that an example takes for granted are in `assumed`.
"""

import collections
import contextlib
import functools
import importlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest
import tfrecords

pytest.importorskip("stoker", reason="the package is not installed here")

import numpy as np
import stoker
from annotated import write_coco, write_voc, write_yolo
from gray_png import gray_png, write_episodes, write_street
from pages import DOCSTRINGS, ROOT
from snippets import ARROW, lacking, names_in, parsed, words_in, write_saved_dataset


def write_shards(folder, image):
    """128 archives, as WebDataset writes them, of the same two samples."""
    folder.mkdir()
    with tarfile.open(folder / "000.tar", "w") as archive:
        for name in "ab":
            members = {"jpg": image, "cls": b"1", "txt": b"A caption", "json": b"{}"}
            for extension, data in members.items():
                member = tarfile.TarInfo(f"{name}.{extension}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    scenes = folder.parent / "scenes"
    scenes.mkdir()
    with tarfile.open(scenes / "0.tar", "w") as archive:
        document = json.dumps({"objects": {"bbox": [[1, 2, 3, 4]], "categories": [7]}})
        members = {"jpg": image, "seg.png": gray_png(300, 280), "json": document.encode()}
        for extension, data in members.items():
            member = tarfile.TarInfo(f"17.{extension}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    for shard in range(1, 128):
        shutil.copy(folder / "000.tar", folder / f"{shard:03d}.tar")


@pytest.fixture(scope="module")
def files(made, tmp_path_factory):
    """The files that examples name."""
    folder = tmp_path_factory.mktemp("docstrings")
    images = sorted(made.rglob("*.jpg"))
    for name in ("photos/a", "photos/b"):
        shutil.copytree(images[0].parent, folder / name)
    for label, name in enumerate(("cat", "dog")):
        (folder / "photos/train" / name).mkdir(parents=True)
        for image in images[label:8:2]:
            shutil.copy(image, folder / "photos/train" / name)
    for name in ("photo.jpg", "photos/a.jpg", "photos/b.jpg"):
        shutil.copy(images[0], folder / name)
    (folder / "photos/train.csv").write_text("path,label,age\na.jpg,0,31\nb.jpg,1,54\n")
    line = {"file_name": "a.jpg", "mask": "a.png", "objects": {"bbox": [[1, 2, 3, 4]], "categories": [7]}}
    (folder / "photos/metadata.jsonl").write_text(json.dumps(line))
    pack = [sys.executable, "-m", "stoker", "pack", folder / "photos/train", folder / "packed/train"]
    subprocess.run(pack, check=True, capture_output=True, timeout=60)
    write_street(folder / "street")
    write_episodes(folder / "episodes")
    write_coco(folder / "coco/annotations/instances_train2017.json", images[:4], folder / "coco/train2017")
    write_yolo(folder / "coco8", images[:2])
    for split in ("trainval", "val"):
        write_voc(folder / "VOCdevkit/VOC2012", images[:3], split=split)
    write_shards(folder / "shards", images[0].read_bytes())
    sample = {"image/encoded": images[0].read_bytes(), "image/class/label": 1}
    (folder / "train-0.tfrecord").write_bytes(tfrecords.record(tfrecords.example(sample)))
    scene = tfrecords.scene(images[0].read_bytes())
    (folder / "coco-0.tfrecord").write_bytes(tfrecords.record(scene))
    write_saved_dataset(folder / "imagenet/train")
    write_saved_dataset(folder / "beans")
    for shard in range(4):
        shutil.copy(ARROW / "named", folder / f"data-0000{shard}-of-00004.arrow")
    with contextlib.suppress(ImportError):  # examples that need it are then left out
        import pyarrow.parquet

        table = pyarrow.table({"image": [images[0].read_bytes()], "label": [1]})
        (folder / "data").mkdir()
        pyarrow.parquet.write_table(table, folder / "data/train-0.parquet")
    (folder / "cifar-10-batches-bin").mkdir()
    for batch in range(1, 6):
        (folder / f"cifar-10-batches-bin/data_batch_{batch}.bin").write_bytes(bytes(2 * 3073))
    (folder / "train-images-idx3-ubyte").write_bytes(bytes(16 + 2 * 28 * 28))
    (folder / "train.bin").write_bytes(bytes(2 * 2 * 1025))
    return folder


def train(loader):
    assert sum(len(labels) for _, labels in loader) == 8


def keras_model(by_name):
    import keras

    image = keras.Input((224, 224, 3), name="image")
    pooled = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    scores = keras.layers.Dense(2, activation="softmax")(pooled)
    model = keras.Model({"image": image} if by_name else image, scores)
    model.compile(loss="sparse_categorical_crossentropy")
    return model


def make_loader(*last):
    return stoker.Loader(
        stoker.image_folder("photos/train"),
        [stoker.Resize((224, 224)), *last],
        batch_size=4,
        drop_remainder=True,
    )


Request = collections.namedtuple("Request", "body")


def assumed(block, names):
    """Returns those of the names that examples take for granted, made for this one."""

    @functools.cache
    def loader():
        return make_loader(*[stoker.PadTo(256)] * block.page.endswith("_sizes.py"))

    def photos():
        return stoker.image_folder("photos/train")

    makers = {
        "ages": lambda: np.arange(8) * 5,
        "batch": lambda: next(iter(loader())),
        "database": lambda: dict.fromkeys("ab", pathlib.Path("photo.jpg").read_bytes()),
        "dataset": lambda: loader().as_tf_dataset(),
        "datasets": lambda: importlib.import_module("datasets"),
        "folder": lambda: "backup",
        "labels": lambda: [0, 1],
        "large": photos,
        "left": lambda: ["photos/a.jpg", "photos/b.jpg"],
        "loader": loader,
        "masks": lambda: ["street/masks/a/7.png", "street/masks/b/8.png"],
        "model": lambda: len if block.page.endswith("_sizes.py") else keras_model("divided" in names),
        "names": lambda: "ab",
        "np": lambda: np,
        "photographs": lambda: ["street/images/a/7.jpg", "street/images/b/8.jpg"],
        "rare": lambda: np.arange(8) == 3,
        "request": lambda: Request(pathlib.Path("photo.jpg").read_bytes()),
        "right": lambda: ["photos/b.jpg", "photos/a.jpg"],
        "small": lambda: photos().subset([0, 1]),
        "source": photos,
        "stoker": lambda: stoker,
        "tf": lambda: importlib.import_module("tensorflow"),
        "torch": lambda: importlib.import_module("torch"),
        "train": lambda: train,
    }
    return {name: makers[name]() for name in names & makers.keys()}


def test_the_package_has_examples():
    assert len(DOCSTRINGS) > 30


@pytest.mark.parametrize("block", DOCSTRINGS, ids=str)
def test_example(block, files, monkeypatch):
    monkeypatch.chdir(files)
    tree = parsed(block)
    words = words_in(tree)
    if absent := lacking(tree):
        pytest.skip(f"{', '.join(absent)} is not installed")
    if "torch" in words:
        import stoker.torch
    if "follow_epochs" in words:
        import stoker.tensorflow  # noqa: F401
    names = assumed(block, names_in(tree))
    exec(compile(tree, str(ROOT / block.page), "exec"), names)
