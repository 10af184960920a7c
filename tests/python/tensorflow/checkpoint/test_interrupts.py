"""Signals whose handler raises while an eager loop waits: each batch comes once."""

import pytest
import stoker
import tensorflow as tf
from interrupts import interrupted


def test_an_interrupt_of_an_eager_loop_loses_no_batch(make):
    loader = make(sample_ids=True, runtime=stoker.Runtime(threads=1), depth=1, batch_size=4)
    dataset = loader.as_tf_dataset(op="native")
    wanted = [[tuple(ids.tolist()) for _, _, ids in loader.epoch(epoch)] for epoch in range(60)]
    # TensorFlow makes a RuntimeError of an exception in the constructor of its own, as at an epoch's end.
    interrupted(
        lambda: iter(dataset),
        lambda batch: tuple(batch["sample_id"].numpy().tolist()),
        wanted.__getitem__,
        remade="_NotOkStatusException REPLACED BY Alarm",
        times=20,  # each takes TensorFlow half a second
    )


def test_a_dataset_leaves_a_restored_place_alone(make, op):
    """Nothing that TensorFlow makes of the dataset takes what is left of the epoch, or skips it."""
    loader = make()
    dataset = loader.as_tf_dataset(op=op)
    other = make()
    for _, _ in zip(range(2), other):
        pass
    loader.load_state_dict(other.state_dict())
    for made in (dataset, dataset.map(lambda *batch: batch), dataset.skip(1), dataset.prefetch(1)):
        with pytest.raises((stoker.FailedPreconditionError, tf.errors.FailedPreconditionError)):
            next(iter(made))
    assert loader.state_dict() == other.state_dict()
    assert sum(1 for _ in loader) == len(loader) - 2
    assert sum(1 for _ in dataset.map(lambda *batch: batch)) == len(loader)
    assert loader.state_dict()["epoch"] == 2
