"""Trains on NumPy arrays in memory, shuffled and batched by stoker.

Replaces Dataset.from_generator, which runs Python for each sample, and Dataset.from_tensor_slices with
shuffle() and batch(), which copies the arrays into TensorFlow and each sample on its own. Takes no folder.
"""

import statistics
import time

import numpy as np
import stoker
import tensorflow as tf

SAMPLES, BATCH, ROUNDS = 10_000, 128, 3

random = np.random.default_rng(1)
images = random.integers(0, 256, (SAMPLES, 32, 32, 3), np.uint8)
labels = random.integers(0, 10, SAMPLES)

loader = stoker.Loader(stoker.arrays(images, labels), batch_size=BATCH, shuffle=True, seed=1)


def samples():
    for sample in random.permutation(SAMPLES):
        yield images[sample], labels[sample]


spec = (tf.TensorSpec((32, 32, 3), tf.uint8), tf.TensorSpec((), tf.int64))
pipelines = {
    "stoker.arrays": loader.as_tf_dataset(),
    "from_tensor_slices": tf.data.Dataset.from_tensor_slices((images, labels))
    .shuffle(SAMPLES)  # a buffer of all of them, for a full shuffle like stoker's
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE),
    "from_generator": tf.data.Dataset.from_generator(samples, output_signature=spec)
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE),
}


def seconds(dataset: tf.data.Dataset) -> float:
    start = time.perf_counter()
    count = sum(len(batch_labels) for _, batch_labels in dataset)
    assert count == SAMPLES
    return time.perf_counter() - start


times = {name: [] for name in pipelines}
for _ in range(1 + ROUNDS):  # alternating; the first round warms up
    for name, dataset in pipelines.items():
        times[name].append(seconds(dataset))

fastest = statistics.median(times["stoker.arrays"][1:])
for name, each in times.items():
    median = statistics.median(each[1:])
    print(f"{name:20}{SAMPLES / median:12,.0f} samples/s{median / fastest:8.1f} × stoker's time")
