"""`to_device(…).as_tf_dataset()` where there is no GPU. test_gpu_dataset.py has what needs one."""

import gc

import numpy as np
import pytest
import stoker
import tensorflow as tf
from stoker.tensorflow import PluginError
from tensors import arrays, same


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_batches_are_the_loaders(make, device):
    dataset = make().to_device(device).as_tf_dataset()
    assert dataset.element_spec == make().as_tf_dataset().element_spec
    assert int(dataset.cardinality()) == 6
    for epoch in range(2):
        same(arrays(dataset), arrays(make().epoch(epoch)))
    same(arrays(make().to_device(device).as_tf_dataset(epoch=4)), arrays(make().epoch(4)))


def test_the_epochs_are_shared_with_the_loader(make):
    loader = make()
    dataset = loader.to_device("host").as_tf_dataset()
    same(arrays(dataset), arrays(make().epoch(0)))
    same(arrays(loader), arrays(make().epoch(1)))
    same(arrays(dataset), arrays(make().epoch(2)))


def test_the_dataset_keeps_its_loader(make):
    dataset = make().to_device("host").as_tf_dataset()
    gc.collect()
    same(arrays(dataset), arrays(make().epoch(0)))

    @tf.function
    def first():
        return next(iter(make().to_device("host").as_tf_dataset()))[1]

    np.testing.assert_array_equal(first().numpy(), arrays(make().epoch(0))[0][1])


def test_it_ends_when_the_device_loader_is_closed(make):
    device = make().to_device("host")
    iterator = iter(device.as_tf_dataset())
    next(iterator)
    device.close()
    with pytest.raises(tf.errors.CancelledError):
        for _ in iterator:
            pass


@pytest.mark.parametrize("asked", ["sample_ids", "paths"])
def test_columns_of_the_host_are_refused(make, asked):
    device = make(**{asked: True}).to_device("host")
    with pytest.raises(ValueError, match=f"a dataset on host cannot have {asked}"):
        device.as_tf_dataset()


def test_strings_are_refused(made):
    files = sorted(made.rglob("*.jpg"))
    names = np.array([file.name for file in files])
    loader = stoker.Loader(
        stoker.files(files, columns={"name": names}), [stoker.RandomResizedCrop(8)], batch_size=8
    )
    with pytest.raises(ValueError, match="cannot have columns of strings"):
        loader.to_device("host").as_tf_dataset()


def test_the_prebuilt_ops_do_not_take_its_place(make, monkeypatch):
    from stoker.tensorflow import _ops, build

    def refuse():
        raise PluginError("no compiler")

    monkeypatch.setattr(_ops, "_loaded", {})
    monkeypatch.setattr(_ops, "_refused", None)
    monkeypatch.setattr(build, "plugin", refuse)
    with pytest.raises(PluginError, match="no compiler"):
        make().to_device("host").as_tf_dataset()


def test_a_gpu_that_tensorflow_does_not_see_is_an_error():
    from stoker.tensorflow import _device_dataset

    with pytest.raises(ValueError, match="TensorFlow does not see cuda:1: it has no GPU"):
        _device_dataset._place("cuda:1")


def test_it_can_be_neither_saved_nor_shared(make):
    dataset = make().to_device("host").as_tf_dataset()
    with pytest.raises(tf.errors.FailedPreconditionError, match="batches on host stay there"):
        tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor)
