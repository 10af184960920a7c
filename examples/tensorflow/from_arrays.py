"""Reads NumPy arrays in memory, shuffled and batched by stoker, and times an epoch without a model.

Replaces Dataset.from_generator, which runs Python for each sample; Dataset.from_tensor_slices with shuffle()
and batch(), which copies the arrays into TensorFlow and each sample on its own; and a pipeline that shuffles
numbers and gathers a batch's rows by them. Takes no folder.
"""

import statistics

import numpy as np
import stoker
import tensorflow as tf
import timing

SAMPLES, BATCH = 10_000, 128

random = np.random.default_rng(1)
images = random.integers(0, 256, (SAMPLES, 32, 32, 3), np.uint8)
labels = random.integers(0, 10, SAMPLES)

loader = stoker.Loader(stoker.arrays(images, labels), batch_size=BATCH, shuffle=True, seed=1)


def samples():
    for sample in random.permutation(SAMPLES):
        yield images[sample], labels[sample]


def gather() -> tf.data.Dataset:
    whole = tf.constant(images), tf.constant(labels)
    numbers = tf.data.Dataset.range(SAMPLES).shuffle(SAMPLES).batch(BATCH)
    rows = numbers.map(lambda some: tuple(tf.gather(array, some) for array in whole), tf.data.AUTOTUNE)
    return rows.prefetch(tf.data.AUTOTUNE)


spec = (tf.TensorSpec((32, 32, 3), tf.uint8), tf.TensorSpec((), tf.int64))
pipelines = {
    "stoker.arrays": loader.as_tf_dataset(),
    "from_tensor_slices": tf.data.Dataset.from_tensor_slices((images, labels))
    .shuffle(SAMPLES)  # a buffer of all of them, for a full shuffle like stoker's
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE),
    "gather": gather(),
    "from_generator": tf.data.Dataset.from_generator(samples, output_signature=spec)
    .batch(BATCH)
    .prefetch(tf.data.AUTOTUNE),
}


def reading(dataset: tf.data.Dataset):
    """Returns a function that reads an epoch."""

    def read() -> None:
        count = sum(len(batch_labels) for _, batch_labels in dataset)
        assert count == SAMPLES

    return read


seconds = timing.in_turns({name: reading(dataset) for name, dataset in pipelines.items()})
for name, each in seconds.items():
    print(f"{name:20}{SAMPLES / statistics.median(each):12,.0f} samples/s")
first, *others = pipelines
print(f"verdict: {'; '.join(timing.verdict(seconds, first, other) for other in others)}")
