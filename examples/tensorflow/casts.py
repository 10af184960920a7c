"""Measures what it costs to turn pixels into the model's floats, and where casts happen that nobody wrote.

images / 255 makes float64 in NumPy, and map(tf.cast) float32; a model of mixed precision casts both again.
stoker hands over the type that the model computes in, or uint8, an eighth of the bytes, for it to cast.
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


def slices(array: np.ndarray) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(array).batch(BATCH, drop_remainder=True)


def loader(dtype: str) -> tf.data.Dataset:
    return stoker.Loader(
        stoker.arrays(images), [stoker.CenterCrop(SIZE)], batch_size=BATCH, dtype=dtype, drop_remainder=True
    ).as_tf_dataset()


def passing(dataset: tf.data.Dataset, function):
    """Calls the function with every batch."""
    return lambda: [function(batch) for batch in dataset]


ways = {
    "float64 from NumPy": (slices(images / 255), 1),
    "map(tf.cast)": (
        slices(images).map(lambda batch: tf.cast(batch, tf.float32) / 255, tf.data.AUTOTUNE).prefetch(2),
        1,
    ),
    "stoker, float32": (loader("float32"), 1),
    "stoker, bfloat16": (loader("bfloat16"), 1),
    "stoker, uint8": (loader("uint8"), 1 / 255),
}
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
    passes[name] = passing(dataset.repeat(EPOCHS), function)
seconds = timing.in_turns(passes)
for name in ways:
    print(f"{name:20}{EPOCHS * SAMPLES / statistics.median(seconds[name]):10,.0f} images/s through the model")
verdicts = [timing.verdict(seconds, name, "map(tf.cast)") for name in ways if name.startswith("stoker")]
print(f"verdict: {'; '.join(verdicts)}")
