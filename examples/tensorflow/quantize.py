"""Quantizes a model for devices with TFLite (float16, int8), calibrated and served with stoker.

Replaces a representative dataset that resizes photographs in Python, and a second implementation of the
preprocessing at serving time: Compose makes the pixels that the loader makes, to the bit. Each
model's size is measured, how many photographs it classifies correctly, and the CPU time of an answer.
"""

import pathlib
import statistics

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

try:
    from ai_edge_litert.interpreter import Interpreter  # where tf.lite's is going
except ImportError:
    Interpreter = tf.lite.Interpreter

SIZE, BATCH = 64, 16

photos = stoker.image_folder(photographs.folder(__doc__))
preprocess = [stoker.Resize(SIZE * 8 // 7), stoker.CenterCrop(SIZE)]
loader = stoker.Loader(photos, preprocess, batch_size=BATCH)

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(1024, activation="relu"),  # most of the weights, so that sizes are of weights
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(2, activation="softmax"),
    ]
)


def brightness(images):
    return tf.reduce_mean(tf.cast(images, tf.float32), axis=(1, 2, 3))


middle = np.median(np.concatenate([brightness(images) for images, _ in loader.as_tf_dataset(epoch=0)]))


def bright(images, labels):
    """Labels that can be learned: is the photograph brighter than most? Use your own."""
    return images, brightness(images) > middle


model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
learnable = loader.as_tf_dataset().map(bright, tf.data.AUTOTUNE)
accuracy = model.fit(learnable, epochs=15, verbose=0).history["accuracy"][-1]
print(f"{accuracy:.0%} of the photographs are classified correctly; half of them by chance")


def representative():
    """The converter's calibration data: one float image at a time, as the model will see them."""
    for images, _ in loader.as_tf_dataset(epoch=0).unbatch().batch(1).take(50):
        yield [tf.cast(images, tf.float32)]


def convert(name: str) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if name == "float32":
        return converter.convert()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if name == "float16":
        converter.target_spec.supported_types = [tf.float16]
    else:
        converter.representative_dataset = representative
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.uint8  # the photograph's bytes, as stoker makes them
    return converter.convert()


def serving(tflite: bytes, images: np.ndarray):
    """Returns a function that returns the answers, one image at a time, as on a device."""
    interpreter = Interpreter(model_content=tflite)
    interpreter.allocate_tensors()
    entry, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero = entry["quantization"] if entry["dtype"] == np.uint8 else (1, 0)
    values = np.round(images / scale + zero).clip(0, 255).astype(entry["dtype"])

    def serve() -> np.ndarray:
        rows = []
        for value in values:
            interpreter.set_tensor(entry["index"], value[np.newaxis])
            interpreter.invoke()
            rows.append(interpreter.get_tensor(out["index"])[0])
        return np.stack(rows).argmax(axis=1)

    return serve


# At serving, a request has the bytes of a file. Compose makes the loader's pixels from them.
compose = stoker.Compose(preprocess)
images = np.concatenate([images for images, _ in loader.epoch(0)])
requests = [pathlib.Path(photos.path(sample)).read_bytes() for sample in range(len(images))]
served = np.stack([compose(request) for request in requests])
print(f"at serving the pixels are the loader's: {np.array_equal(served, images)}")

answers = model.predict_on_batch(images).argmax(axis=1)
labels = np.concatenate([labels for _, labels in loader.as_tf_dataset(epoch=0).map(bright)])
sizes, kept, correct, ways = {}, {}, {}, {}
for name in ("float32", "float16", "int8"):
    tflite = convert(name)
    ways[name] = serving(tflite, served)
    sizes[name], kept[name] = len(tflite), (ways[name]() == answers).sum()
    correct[name] = np.mean(ways[name]() == labels)
    print(f"{name}: {len(tflite):,} bytes, {kept[name]} of {len(answers)} answers as before")
seconds = timing.in_turns({name: lambda way=way: [way() for _ in range(10)] for name, way in ways.items()})
for name, each in seconds.items():
    print(f"{name}: {1e5 * statistics.median(each) / len(answers):.0f} µs of CPU time for an answer")
parts = [
    f"{name} {size / sizes['float32']:.0%} ({kept[name]} of {len(answers)} answers as before, "
    f"{correct[name]:.0%} correct)"
    for name, size in sizes.items()
]
equal = "the loader's" if np.array_equal(served, images) else "other than the loader's"
faster = "; ".join(timing.verdict(seconds, name, "float32") for name in ("float16", "int8"))
print(f"verdict: bytes of the models: {', '.join(parts)}; {faster}; pixels at serving are {equal}")
