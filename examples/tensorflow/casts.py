"""Measures what it costs to turn pixels into the model's floats, and where casts happen that nobody wrote.

images / 255 makes float64 in NumPy, and map(tf.cast) float32; a model of mixed precision casts both again.
stoker hands over the type that the model computes in, or uint8, an eighth of float64's bytes, for a
Rescaling layer to cast. Likewise the layout: for a model that takes NCHW, stoker's layout="NCHW" replaces
a transpose in the graph.
"""

import statistics

import keras
import numpy as np
import stoker
import tensorflow as tf
import timing

SAMPLES, SIZE, BATCH, EPOCHS = 1024, 96, 64, 5

keras.mixed_precision.set_dtype_policy("mixed_bfloat16")  # layers compute in bfloat16
images = np.random.default_rng(1).integers(0, 256, (SAMPLES, SIZE, SIZE, 3), np.uint8)


def network(scale: float) -> keras.Model:
    keras.utils.set_random_seed(1)
    layers = [
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(4, dtype="float32"),
    ]
    return keras.Sequential([keras.layers.Rescaling(scale), *layers] if scale != 1 else layers)


def batches(array: np.ndarray, transforms=(), **options) -> tf.data.Dataset:
    """stoker makes the batches of every way: only the types and the place of the cast differ."""
    source = stoker.arrays(array)
    return stoker.Loader(source, transforms, batch_size=BATCH, drop_remainder=True, **options).as_tf_dataset()


def scaled(batch):
    return tf.cast(batch, tf.float32) / 255


crop = [stoker.CenterCrop(SIZE)]  # the whole image
ways = {
    "float64 from NumPy": (batches(images / 255), 1),
    "map(tf.cast)": (batches(images, crop).map(scaled, tf.data.AUTOTUNE), 1),
    'dtype="float32"': (batches(images, crop, dtype="float32"), 1),
    'dtype="bfloat16"': (batches(images, crop, dtype="bfloat16"), 1),
    "uint8, Rescaling": (batches(images, crop, dtype="uint8"), 1 / 255),
}


class Mean(keras.Layer):
    """Imitates a model that takes NCHW: it reads each value once."""

    def call(self, images):
        """Returns a mean for each image and colour."""
        return tf.reduce_mean(images, axis=(2, 3))


def transposed(batch):
    return tf.transpose(batch, (0, 3, 1, 2))


floats = {"dtype": "float32"}
layouts = {
    'layout="NCHW"': batches(images, crop, layout="NCHW", **floats),
    "map(tf.transpose)": batches(images, crop, **floats).map(transposed, tf.data.AUTOTUNE),
}


def passing(dataset: tf.data.Dataset, function):
    """Calls the function with every batch."""
    return lambda: [function(batch) for batch in dataset]


passes = {}
for name, (dataset, scale) in ways.items():
    function = tf.function(network(scale), input_signature=[dataset.element_spec])
    casts = [
        f"{op.inputs[0].dtype.name} to {op.outputs[0].dtype.name}"
        for op in function.get_concrete_function().graph.get_operations()
        if op.type == "Cast" and op.inputs[0].shape[1:] == (SIZE, SIZE, 3)
    ]
    megabytes = dataset.element_spec.shape.num_elements() * dataset.element_spec.dtype.size / 1e6
    print(f"{name:20}{megabytes:5.1f} MB in a batch; the model casts {', '.join(casts) or 'nothing'}")
    passes[name] = passing(dataset.repeat(EPOCHS).prefetch(tf.data.AUTOTUNE), function)
reader = tf.function(Mean())
for name, dataset in layouts.items():
    passes[name] = passing(dataset.repeat(EPOCHS).prefetch(tf.data.AUTOTUNE), reader)
seconds = timing.in_turns(passes)
for name, each in seconds.items():
    print(f"{name:20}{EPOCHS * SAMPLES / statistics.median(each):10,.0f} images for a second of CPU time")
verdicts = [timing.verdict(seconds, name, "map(tf.cast)") for name in ways if name != "map(tf.cast)"]
verdicts.append(timing.verdict(seconds, *layouts))
print(f"verdict: {'; '.join(verdicts)}")
