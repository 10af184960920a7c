"""Measures how long Ctrl-C takes to be seen while a program waits for a batch.

    python bench/tensorflow/interrupts.py [--rounds 3]

stoker's dataset (native op) and a stock one (`range().map()` over a slow function), each with one batch
that takes seconds, in an eager loop and inside `tf.function`. A SIGINT comes 0.3 s after the wait began.
Printed: milliseconds from the signal to KeyboardInterrupt, and how long the batch itself takes.
"""

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import stoker
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--size", type=int, default=4000, help="of the photographs that are decoded, a side")
parser.add_argument("--batch-size", type=int, default=60)
args = parser.parse_args()


def slow_folder(folder):
    os.mkdir(f"{folder}/class")
    noise = np.random.default_rng(1).integers(0, 255, (args.size, args.size, 3), np.uint8)
    jpeg = tf.io.encode_jpeg(noise).numpy()
    for index in range(args.batch_size):
        with open(f"{folder}/class/{index:04}.jpg", "wb") as file:
            file.write(jpeg)


def stoker_dataset(folder):
    source = stoker.image_folder(folder)
    return stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=args.batch_size).as_tf_dataset(
        op="native"
    )


def stock_dataset(folder):
    def decode(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [8, 8], antialias=True)

    files = tf.data.Dataset.list_files(f"{folder}/*/*.jpg", shuffle=False)
    return files.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(args.batch_size)


@tf.function
def one_step(iterator):
    return next(iterator)


def eager_step(iterator):
    return next(iterator)


def seconds(step, dataset):
    iterator = iter(dataset)
    begin = time.perf_counter()
    step(iterator)
    return time.perf_counter() - begin


def delay(step, dataset):
    """Returns the milliseconds from SIGINT to KeyboardInterrupt."""
    iterator = iter(dataset)
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    try:
        timer.start()
        step(iterator)
        time.sleep(5)  # the wait has ended before; KeyboardInterrupt comes here at the latest
    except KeyboardInterrupt:
        return 1000 * (time.perf_counter() - sent[0])
    return float("nan")


def main():
    with tempfile.TemporaryDirectory() as folder:
        slow_folder(folder)
        for name, make in (("stoker", stoker_dataset), ("stock tf.data", stock_dataset)):
            for kind, step in (("eager", eager_step), ("tf.function", one_step)):
                dataset = make(folder)
                batch = seconds(step, dataset)
                delays = [delay(step, dataset) for _ in range(args.rounds)]
                print(
                    f"{name:14} {kind:12} {statistics.median(delays):6.0f} ms "
                    f"({min(delays):.0f} to {max(delays):.0f}); the batch takes {batch:.1f} s"
                )


main()
