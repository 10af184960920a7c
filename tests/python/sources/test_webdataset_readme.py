"""Runs the examples of WebDataset's README with its own library and with stoker: the same batches."""

import io
import itertools
import json

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
pytest.importorskip("torch", reason="PyTorch is not installed here")
transforms = pytest.importorskip("torchvision.transforms")
wds = pytest.importorskip("webdataset")
Image = pytest.importorskip("PIL.Image")

SAMPLES, BATCH = 40, 16


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Images with annotations as COCO's, of which some images have none."""
    folder = tmp_path_factory.mktemp("coco")
    random = np.random.default_rng(3)
    with wds.ShardWriter(str(folder / "coco-%03d.tar"), maxcount=15, verbose=0) as writer:
        for i in range(SAMPLES):
            height, width = random.integers(50, 400, 2)
            small = random.integers(0, 256, (height // 10 + 1, width // 10 + 1, 3), np.uint8)
            png = io.BytesIO()
            Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(png, "png")
            annotations = [{"category_id": int(c), "image_id": i} for c in random.integers(1, 90, i % 3)]
            writer.write({"__key__": f"{i:012}", "png": png.getvalue(), "json": {"annotations": annotations}})
    return str(folder / "coco-{000..002}.tar")


def category(annotated):
    annotations = annotated["annotations"]
    return annotations[0]["category_id"] if annotations else 0


def with_webdataset(shards):
    prepare = transforms.Compose(
        [transforms.Resize((224, 224)), transforms.ToTensor(), transforms.Lambda(lambda x: 1 - x)]
    )
    return wds.DataPipeline(
        wds.SimpleShardList(shards),
        wds.tarfile_to_samples(),
        wds.decode("pil"),
        wds.to_tuple("png", "json"),
        wds.map(lambda sample: (prepare(sample[0]), category(sample[1]))),
        wds.batched(BATCH),
    )


def with_stoker(shards, **options):
    source = stoker.tar(shards, image="png", columns={"json": ".json"})
    loader = stoker.Loader(
        source,
        [stoker.Resize((224, 224))],
        batch_size=BATCH,
        dtype="float32",
        layout="NCHW",
        **options,
    )
    for batch in loader:
        yield 1 - np.asarray(batch["image"]), [category(json.loads(text)) for text in batch["json"]]


def test_the_same_batches(shards):
    wanted = list(with_webdataset(shards))
    found = list(with_stoker(shards))
    assert [images.shape for images, _ in found] == [(16, 3, 224, 224)] * 2 + [(8, 3, 224, 224)]
    for (images, labels), (expected, numbers) in itertools.zip_longest(found, wanted):
        assert labels == list(numbers)
        assert np.abs(images - expected.numpy()).max() <= 1.01 / 255


def test_shuffled_epochs_have_the_same_samples(shards):
    """WebDataset shuffles shards, and samples in a buffer; stoker all of them."""
    in_order = sorted(label for _, labels in with_stoker(shards) for label in labels)
    first, second = (
        [n for _, labels in with_stoker(shards, shuffle=True, seed=s) for n in labels] for s in (1, 2)
    )
    assert first != second and sorted(first) == sorted(second) == in_order
