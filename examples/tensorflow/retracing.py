"""Counts how often tf.function traces a training step in one epoch, and measures the CPU time of steps.

A short last batch has another shape. It costs a second trace, or, where an input_signature with an unknown
batch size hides that from the count, a second compilation by XLA. drop_remainder=True avoids both.
"""

import statistics
import time

import keras
import photographs
import stoker
import tensorflow as tf

SIZE, BATCH = 64, 25

folder = photographs.folder(__doc__)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model = keras.Sequential(
    [
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(stoker.image_folder(folder).classes)),
    ]
)
model.build((None, SIZE, SIZE, 3))


def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    for weight, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        weight.assign_sub(0.01 * gradient)


def usual(drop_remainder: bool) -> tf.data.Dataset:
    one_by_one = keras.utils.image_dataset_from_directory(
        folder, image_size=(SIZE, SIZE), batch_size=None, verbose=False
    )
    return one_by_one.batch(BATCH, drop_remainder).prefetch(tf.data.AUTOTUNE)


def stokers(drop_remainder: bool) -> tf.data.Dataset:
    source, resize = stoker.image_folder(folder), [stoker.Resize((SIZE, SIZE))]
    loader = stoker.Loader(source, resize, batch_size=BATCH, shuffle=True, drop_remainder=drop_remainder)
    return loader.as_tf_dataset()


def measure(dataset: tf.data.Dataset, signature: bool) -> tuple[int, int, float, float]:
    """Shapes, traces, and CPU time in ms: of the median step, and of the slowest one but the first."""
    function = tf.function(step, dataset.element_spec if signature else None, jit_compile=True)
    shapes, ms = set(), []
    for images, labels in dataset:
        shapes.add(tuple(images.shape))
        start = time.process_time()
        function(images, labels)
        ms.append(1000 * (time.process_time() - start))
    traces = function.experimental_get_tracing_count()
    return len(shapes), traces, statistics.median(ms), max(ms[1:], default=0.0)


found = {False: [], True: []}
print(
    f"{'pipeline':10}{'drop_remainder':16}{'signature':11}shapes  traces  median step  slowest but the first"
)
for name, pipeline in (("usual", usual), ("stoker", stokers)):
    for drop_remainder in (False, True):
        for signature in (False, True):
            shapes, traces, median, later = measure(pipeline(drop_remainder), signature)
            found[drop_remainder].append((traces, later - median))
            row = f"{name:10}{drop_remainder!s:16}{signature!s:11}{shapes:6}{traces:8}"
            print(f"{row}{median:10.1f} ms{later:12.1f} ms")


def summary(drop_remainder: bool) -> str:
    traces, costs = zip(*found[drop_remainder])
    most = f"{max(traces)} trace{'s' if max(traces) > 1 else ''}"
    later = f"the slowest later step takes {statistics.median(costs):.0f} ms of CPU time more than the median"
    return f"up to {most}, and {later}"


print(f"verdict: with all samples: {summary(False)}; with drop_remainder: {summary(True)}")
