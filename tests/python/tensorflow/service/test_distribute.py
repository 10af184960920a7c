"""tf.distribute on two logical CPUs, and automatic sharding."""

import hashlib

import numpy as np
import pytest
import stoker.tensorflow
import tensorflow as tf
from tensors import SIZE, arrays

POLICY = tf.data.experimental.AutoShardPolicy


@pytest.mark.parametrize("policy", [POLICY.AUTO, POLICY.DATA, POLICY.OFF])
def test_mirrored_strategy_splits_each_batch(make, op, policy):
    loader = make()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    dataset = strategy.experimental_distribute_dataset(loader.as_tf_dataset(op=op).with_options(options))
    for epoch in range(2):
        got = [
            np.concatenate([np.array(part) for part in strategy.experimental_local_results(images)])
            for images, _ in dataset
        ]
        want = [images for images, _ in arrays(loader.epoch(epoch))]
        np.testing.assert_array_equal(np.concatenate(got), np.concatenate(want))


def rows_of(images):
    return [hashlib.sha256(np.asarray(row, np.uint8).tobytes()).hexdigest() for row in images]


def test_fit_under_a_strategy_trains_the_epochs_that_follow_epochs_says(make, op):
    """Returns what the model's own layer saw; Keras takes a batch of a separate iterator to build it."""
    seen = []

    class Note(tf.keras.layers.Layer):
        def call(self, images):
            with tf.control_dependencies([tf.numpy_function(self.note, [images], tf.int64)]):
                return tf.identity(images)

        def note(self, images):
            seen[-1].extend(rows_of(images))
            return np.int64(0)

    class NewEpoch(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            seen.append([])

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((SIZE, SIZE, 3)),
                Note(),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(3),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, jit_compile=False)
    loader = make()
    callbacks = [stoker.tensorflow.follow_epochs(loader), NewEpoch()]
    model.fit(loader.as_tf_dataset(op=op), epochs=2, verbose=0, callbacks=callbacks)
    want = [[row for images, _ in arrays(make().epoch(k)) for row in rows_of(images)] for k in range(2)]
    assert [sorted(rows) for rows in seen] == [sorted(rows) for rows in want]


def test_ranks_share_an_epoch(make, op):
    """Uses the way that costs nothing: stoker's own rank and world."""
    parts = [arrays(make(rank=r, world=2, batch_size=4).as_tf_dataset(op=op)) for r in range(2)]
    # Row j of rank r is sample 2 j + r of the step.
    joined = [np.stack([a[0], b[0]], 1).reshape(8, 32, 32, 3) for a, b in zip(*parts)]
    np.testing.assert_array_equal(joined, [images for images, _ in arrays(make().epoch(0))])
