"""tf.distribute on two logical CPUs, and automatic sharding."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import arrays

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


def test_fit_under_a_strategy(make, op):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(make().as_tf_dataset(op=op), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_ranks_share_an_epoch(make, op):
    """The way that costs nothing: stoker's own rank and world."""
    parts = [arrays(make(rank=r, world=2, batch_size=4).as_tf_dataset(op=op)) for r in range(2)]
    # Row j of rank r is sample 2 j + r of the step.
    joined = [np.stack([a[0], b[0]], 1).reshape(8, 32, 32, 3) for a, b in zip(*parts)]
    np.testing.assert_array_equal(joined, [images for images, _ in arrays(make().epoch(0))])
