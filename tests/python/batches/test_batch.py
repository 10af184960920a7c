"""A batch is a named tuple of columns. test_jax.py and test_torch.py test what other libraries make of it."""

import copy
import pickle

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same  # noqa: E402


def make(folder):
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(48)], batch_size=8)


def test_a_batch_of_a_folder_has_names(made):
    batch = next(iter(make(made)))
    images, labels = batch
    assert batch["image"] is images is batch.image is batch[0]
    assert batch["label"] is labels is batch.label is batch[1] is batch[-1]
    assert batch[:1] == (images,) and list(batch.keys()) == ["image", "label"]
    assert {name: column is batch[name] for name, column in dict(batch).items()} == {
        "image": True,
        "label": True,
    }
    assert "label" in batch and "mask" not in batch
    assert repr(batch).startswith("Batch(image=array(") and ", label=array([" in repr(batch)
    with pytest.raises(KeyError, match="a batch has image, label; not mask"):
        batch["mask"]
    with pytest.raises(IndexError):
        batch[2]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))]
)
def test_a_copied_batch_keeps_its_names(made, copied):
    batch = next(iter(make(made)))
    again = copied(batch)
    assert type(again) is type(batch) and again.keys() == ("image", "label")
    same([again], [batch])


def test_a_batch_is_rebuilt_of_its_columns(made):
    """As by transformers' Trainer, Lightning, accelerate, JAX and torch."""
    batch = next(iter(make(made)))
    columns = list(batch)
    for again in (
        type(batch)(column for column in batch),
        type(batch)(columns),
        type(batch)(*columns),
        type(batch)(**batch),
        batch._make(columns),
        batch._replace(label=batch.label),
    ):
        assert type(again) is type(batch) and all(map(lambda one, two: one is two, again, batch))
    for wrong in (lambda: type(batch)(columns[:1]), lambda: type(batch)(*columns, 3), lambda: type(batch)(3)):
        with pytest.raises(TypeError):
            wrong()


def test_batches_of_two_loaders_are_of_one_type(made):
    one, other = (next(iter(make(made))) for _ in range(2))
    assert type(one) is type(other) and isinstance(one, stoker.Batch)
    assert tuple(one)[1] is one.label and type(tuple(one)) is tuple


def test_tensors_have_names_too(made):
    batch = next(iter(make(made).to_device("cpu")))
    images, labels = batch
    assert batch["image"] is images and batch.label is labels and "mask" not in batch


def test_streams_are_those_of_tensors_on_a_gpu(made):
    loader = make(made)
    with pytest.raises(TypeError, match=r"batches of stoker\.Tensor, not of ndarray"):
        next(iter(loader)).record_stream(1)
    for device in ("cpu", "host"):
        batch = next(iter(loader.to_device(device)))
        for used in (batch, *batch):
            with pytest.raises(ValueError, match=f"on {device}, where there are no CUDA streams"):
                used.record_stream(1)


def test_images_alone_have_none(made):
    assert next(iter(make(made / "class00"))).shape == (8, 48, 48, 3)
