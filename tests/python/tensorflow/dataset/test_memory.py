"""The tensors are the memory that stoker's workers wrote."""

import gc

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import arrays, same


def address(array):
    return array.__array_interface__["data"][0]


def note_address(seen):
    """A map function that records where the images are, and passes them on untouched."""

    def note(images):
        seen.append(address(images))
        return np.int64(address(images))

    return lambda images, labels: (images, tf.numpy_function(note, [images], tf.int64))


BEHIND = {
    "nothing": lambda dataset: dataset,
    "prefetch": lambda dataset: dataset.prefetch(2),
    "shuffle": lambda dataset: dataset.shuffle(3),
    "cache": lambda dataset: dataset.cache(),
    "take, repeat": lambda dataset: dataset.take(4).repeat(2),
    "interleave": lambda dataset: tf.data.Dataset.range(2).interleave(
        lambda _: dataset, num_parallel_calls=2, deterministic=True
    ),
}


@pytest.mark.parametrize("behind", BEHIND)
def test_no_copy_from_the_slot_to_the_user(make, op, behind):
    loader = make(lent_batches=None)
    seen = []
    mapped = BEHIND[behind](loader.as_tf_dataset(op=op)).map(note_address(seen))
    count = 0
    for images, where in mapped:
        array = np.asarray(images)
        assert address(array) == int(where)
        assert address(array) % 64 == 0
        if behind != "take, repeat":  # an engine that ended early counts no more
            assert loader.stats()["lent_batches"] > 0  # it is a slot, and it is lent
        count += 1
    assert count == len(seen) > 0
    del images, array, mapped
    gc.collect()
    if behind != "cache":  # TensorFlow's cache is freed at an unknown time
        assert loader.stats()["lent_batches"] == 0


def test_a_warning_that_is_seen_at_the_usual_log_level(made, op, capfd):
    """TF_CPP_MIN_LOG_LEVEL is 2 here, as in most programs: TensorFlow shows errors only."""
    runtime = stoker.Runtime(memory_budget=4 << 20, threads=1)
    source = stoker.image_folder(made)
    loader = stoker.Loader(source, [stoker.RandomResizedCrop(128)], batch_size=16, depth=1, runtime=runtime)
    kept = [list(loader.as_tf_dataset(op=op)) for _ in range(4)]
    assert sum(map(len, kept)) == 12  # 9 MiB
    told = [line for line in capfd.readouterr().err.splitlines() if "memory budget" in line]
    assert len(told) == 1 and told[0].startswith("stoker: ")


def test_steady_state_uses_few_slots(make, op):
    slots = {address(np.asarray(images)) for images, _ in make(depth=2).as_tf_dataset(op=op).repeat(10)}
    assert len(slots) < 20


def test_kept_batches_stay_as_they_are(make, op):
    loader = make(depth=2)
    kept = list(loader.as_tf_dataset(op=op).repeat(2))
    assert loader.stats()["lent_batches"] == 12
    assert len({address(np.asarray(images)) for images, _ in kept}) == 12
    want = [batch for epoch in range(2) for batch in arrays(loader.epoch(epoch))]
    same(kept, want)
    del kept
    gc.collect()
    assert loader.stats()["lent_batches"] == 0


def test_labels_hold_no_images(make, op):
    loader = make(depth=2, lent_batches=4)  # a fifth would be an error
    labels = [labels for _, labels in loader.as_tf_dataset(op=op)]
    gc.collect()
    assert len(labels) == 6
    assert loader.stats()["lent_batches"] == 0


def test_a_limit_on_lent_batches(make, op):
    loader = make(lent_batches=2, depth=2)
    iterator = iter(loader.as_tf_dataset(epoch=0, op=op))
    kept = []
    with pytest.raises(tf.errors.ResourceExhaustedError):
        while True:
            kept.append(next(iterator))
    assert len(kept) == 2


def test_no_operation_takes_the_memory_for_its_result(make, op):
    loader = make()
    dataset = loader.as_tf_dataset(op=op)
    want = arrays(loader.epoch(0))
    for (images, _), (expected, _) in zip(dataset, want):
        tf.bitwise.invert(images)
        np.testing.assert_array_equal(np.asarray(images), expected)
