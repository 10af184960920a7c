"""Serves a classifier that takes JPEG bytes: a SavedModel in another process, called over HTTP.

Replaces a second implementation of training's preprocessing in the graph. One model, trained on stoker's
pixels, is called in three ways: stoker.Compose makes the pixels in front of it; TensorFlow's ops in the
graph, chosen so that they make nearly the same pixels; TensorFlow's ops with their defaults, which make
others. (A model trained on pixels of the default ops would expect those.) model_server.py is the other
process.
"""

import base64
import contextlib
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

SIZE, BATCH, REQUESTS, CLOSE = 64, 16, 100, 1e-4

photos = stoker.image_folder(photographs.folder(__doc__))
resize = [stoker.Resize((SIZE, SIZE))]
loader = stoker.Loader(photos, resize, batch_size=BATCH, exif_orientation=False)  # as TensorFlow's ops below
compose = stoker.Compose(resize, exif_orientation=False)

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(len(photos.classes), activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(loader.as_tf_dataset(), epochs=2, verbose=0)


def ready_pixels(row):
    return tf.cast(tf.reshape(tf.io.decode_raw(row, tf.uint8), (SIZE, SIZE, 3)), tf.float32)


def matched_ops(row):
    image = tf.io.decode_jpeg(row, channels=3, dct_method="INTEGER_ACCURATE")
    return tf.image.resize(image, (SIZE, SIZE), antialias=True)


def default_ops(row):
    return tf.image.resize(tf.io.decode_jpeg(row, channels=3), (SIZE, SIZE))


def signature(decode):
    """Returns the function by which the server handles a batch of strings."""
    image = tf.TensorSpec((SIZE, SIZE, 3), tf.float32)
    rows = tf.TensorSpec([None], tf.string, name="rows")
    return tf.function(lambda rows: model(tf.map_fn(decode, rows, fn_output_signature=image)), [rows])


# For each way: the signature, and what the front end sends for the bytes of a JPEG.
ways = {
    "stoker.Compose": ("pixels", lambda jpeg: compose(jpeg).tobytes()),
    "matched ops": ("serving_default", lambda jpeg: jpeg),
    "default ops": ("default", lambda jpeg: jpeg),
}


@contextlib.contextmanager
def served(directory: str):
    """A connection to a process that serves the SavedModel; it does not import stoker."""
    program = pathlib.Path(__file__).with_name("model_server.py")
    command = [sys.executable, program, f"--model_base_path={directory}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield http.client.HTTPConnection("127.0.0.1", int(server.stdout.readline()), timeout=60)
        finally:
            server.terminate()


def ask(connection, way: str, jpeg: bytes) -> list[float]:
    name, front = ways[way]
    instance = {"b64": base64.b64encode(front(jpeg)).decode()}
    body = json.dumps({"signature_name": name, "instances": [instance]})
    connection.request("POST", "/v1/models/photographs:predict", body)
    response = connection.getresponse()
    answer = json.load(response)
    if response.status != http.client.OK:
        raise RuntimeError(f"the server refused a request for {name}: {answer['error']}")
    return answer["predictions"][0]


def asking(connection, way: str):
    """Returns a function that requests the scores of every photograph, and notes each one's milliseconds."""

    def ask_all() -> None:
        for sample, jpeg in enumerate(jpegs):
            start = time.perf_counter()
            scores[way][sample] = ask(connection, way, jpeg)
            ms[way].append(1000 * (time.perf_counter() - start))

    return ask_all


jpegs = [pathlib.Path(photos.path(sample)).read_bytes() for sample in range(min(REQUESTS, len(photos)))]
trained = model.predict(loader.as_tf_dataset(), verbose=0)[: len(jpegs)]
scores = {way: np.zeros_like(trained) for way in ways}
ms = {way: [] for way in ways}
loader.close()
with tempfile.TemporaryDirectory() as directory:
    decoders = {"pixels": ready_pixels, "serving_default": matched_ops, "default": default_ops}
    tf.saved_model.save(model, f"{directory}/1", {name: signature(each) for name, each in decoders.items()})
    with served(directory) as connection:
        seconds = timing.in_turns({way: asking(connection, way) for way in ways})

differs = {way: np.abs(scores[way] - trained).max() for way in ways}
for way in ways:
    p50, p90, p99 = np.percentile(ms[way][len(jpegs) :], [50, 90, 99])  # the first round warms up
    print(f"{way:15} one request: p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms;", end=" ")
    print(f"scores differ from training's by up to {differs[way]:.1e}")
equal = ", ".join(way for way in ways if differs[way] < CLOSE) or "no way"
first, *others = ways
faster = "; ".join(timing.verdict(seconds, first, other) for other in others)
print(f"verdict: after training with stoker, {equal} gives training's scores, within {CLOSE:.0e}; {faster}")
