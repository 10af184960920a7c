"""Serves a classifier that takes JPEG bytes: a SavedModel in another process, called over HTTP.

Replaces a second implementation of training's preprocessing in the graph. One model, trained on stoker's
pixels, is called in three ways: stoker.Compose makes the pixels in front of it; TensorFlow's ops in the
graph, chosen so that they make nearly the same pixels; TensorFlow's ops with their defaults, which make
others. (A model trained on pixels of the default ops would expect those.) How much a request costs depends
on the size: Compose sends 12 KB of pixels for an image of 64 × 64, and 150 KB for one of 224 × 224, more
than most JPEGs have. model_server.py is the other process.
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

SIZES, BATCH, REQUESTS, CLOSE = (64, 224), 16, 12 if timing.QUICK else 40, 1e-4

photos = stoker.image_folder(photographs.folder(__doc__))
jpegs = [pathlib.Path(photos.path(sample)).read_bytes() for sample in range(min(REQUESTS, len(photos)))]


def trained(loader: stoker.Loader, size: int) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((size, size, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(len(photos.classes), activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-4), "sparse_categorical_crossentropy")
    model.fit(loader.as_tf_dataset(), verbose=0)
    return model


def signatures(model: keras.Model, size: int) -> dict:
    """The functions by which the server handles a batch of strings."""

    def ready_pixels(row):
        return tf.cast(tf.reshape(tf.io.decode_raw(row, tf.uint8), (size, size, 3)), tf.float32)

    def matched_ops(row):
        image = tf.io.decode_jpeg(row, channels=3, dct_method="INTEGER_ACCURATE")
        return tf.image.resize(image, (size, size), antialias=True)

    def default_ops(row):
        return tf.image.resize(tf.io.decode_jpeg(row, channels=3), (size, size))

    def signature(decode):
        image = tf.TensorSpec((size, size, 3), tf.float32)
        rows = tf.TensorSpec([None], tf.string, name="rows")
        return tf.function(lambda rows: model(tf.map_fn(decode, rows, fn_output_signature=image)), [rows])

    decoders = {"pixels": ready_pixels, "serving_default": matched_ops, "default": default_ops}
    return {name: signature(decode) for name, decode in decoders.items()}


@contextlib.contextmanager
def served(directory: str):
    """A connection to a process that serves the SavedModel without importing stoker, and a clock.

    The clock is the CPU time of this process and the server.
    """
    program = pathlib.Path(__file__).with_name("model_server.py")
    command = [sys.executable, program, f"--model_base_path={directory}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        servers = ~server.pid << 3 | 2  # Linux' number of a process' CPU clock: clock_getcpuclockid(3)
        try:
            connection = http.client.HTTPConnection("127.0.0.1", int(server.stdout.readline()), timeout=60)
            yield connection, lambda: time.process_time() + time.clock_gettime(servers)
        finally:
            server.terminate()


def ask(connection, name: str, row: bytes) -> list[float]:
    instance = {"b64": base64.b64encode(row).decode()}
    body = json.dumps({"signature_name": name, "instances": [instance]})
    connection.request("POST", "/v1/models/photographs:predict", body)
    response = connection.getresponse()
    answer = json.load(response)
    if response.status != http.client.OK:
        raise RuntimeError(f"the server refused a request for {name}: {answer['error']}")
    return answer["predictions"][0]


def measure(size: int) -> str:
    """Trains, serves and asks; prints a line for each way, and returns the verdict."""
    resize = [stoker.Resize((size, size))]
    compose = stoker.Compose(resize, exif_orientation=False)
    ways = {  # for each way: the signature, and what the front end sends for the bytes of a JPEG
        "stoker.Compose": ("pixels", lambda jpeg: compose(jpeg).tobytes()),
        "matched ops": ("serving_default", lambda jpeg: jpeg),
        "default ops": ("default", lambda jpeg: jpeg),
    }
    ms = {way: [] for way in ways}
    scores = {way: {} for way in ways}

    def asking(connection, way: str):
        """Returns a function that requests the scores of every photograph, and notes the milliseconds."""
        name, front = ways[way]

        def ask_all() -> None:
            for sample, jpeg in enumerate(jpegs):
                start = time.perf_counter()
                scores[way][sample] = ask(connection, name, front(jpeg))
                ms[way].append(1000 * (time.perf_counter() - start))

        return ask_all

    # Without EXIF orientation, as TensorFlow's ops.
    with stoker.Loader(photos, resize, batch_size=BATCH, exif_orientation=False) as loader:
        model = trained(loader, size)
        expected = model.predict(loader.as_tf_dataset(epoch=0), verbose=0)[: len(jpegs)]
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(model, f"{directory}/1", signatures(model, size))
        with served(directory) as (connection, clock):
            seconds = timing.in_turns({way: asking(connection, way) for way in ways}, clock=clock)

    differs = {way: np.abs(np.array(list(scores[way].values())) - expected).max() for way in ways}
    for way in ways:
        p50, p90, p99 = np.percentile(ms[way][len(jpegs) :], [50, 90, 99])  # the first round warms up
        print(
            f"{size} × {size}, {way:15} one request: p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms;",
            end=" ",
        )
        print(f"scores differ from training's by up to {differs[way]:.1e}")
    equal = ", ".join(way for way in ways if differs[way] < CLOSE) or "no way"
    first, *others = ways
    less = "; ".join(timing.verdict(seconds, first, other) for other in others)
    return f"at {size} × {size}, {equal} gives training's scores, within {CLOSE:.0e}; {less}"


print(f"verdict: after training with stoker, {'; '.join(measure(size) for size in SIZES)}")
