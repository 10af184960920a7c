"""Measures the cost of handing a finished batch to TensorFlow.

    python bench/tensorflow/delivery.py [--rounds 5] [--rows 64] [--height 224]

Sources that have their next batch ready: stoker's dataset op and its fallback (over arrays, with so many
batches in production that none is waited for), `from_generator`, `range().map(numpy_function)`, and
TensorFlow's own `from_tensors().repeat()`, which hands out one tensor again and again: the floor. Each
round takes them in turn. Printed: microseconds a batch as the loop sees it, and the CPU time of the
loop's own thread (stoker's workers fill the next batches on the same cores meanwhile).
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import stoker
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--batches", type=int, default=150, help="timed in each round")
parser.add_argument("--rows", type=int, default=64)
parser.add_argument("--height", type=int, default=224, help="and width, of 3-channel images")
args = parser.parse_args()

shape = (args.height, args.height, 3)
images = np.zeros((args.rows, *shape), np.uint8)
labels = np.zeros(args.rows, np.int64)
signature = (tf.TensorSpec(images.shape, tf.uint8), tf.TensorSpec(labels.shape, tf.int64))
ready = args.batches + 10
# One epoch is longer than the timed period; every row is the same memory.
endless = stoker.arrays(
    np.broadcast_to(images[:1], (args.rows * 1000, *shape)), np.zeros(args.rows * 1000, np.int64)
)


def stoker_dataset(op):
    runtime = stoker.Runtime(memory_budget=(ready + 10) * (images.nbytes + (1 << 20)))
    loader = stoker.Loader(endless, batch_size=args.rows, depth=ready, runtime=runtime)
    return loader.as_tf_dataset(op=op)


def generate():
    while True:
        yield images, labels


def with_shapes(x, y):
    x.set_shape(images.shape)
    y.set_shape(labels.shape)
    return x, y


def numpy_function(_):
    return with_shapes(*tf.numpy_function(lambda: (images, labels), [], [tf.uint8, tf.int64]))


SOURCES = {
    "stoker, native op": lambda: stoker_dataset("native"),
    "stoker, fallback": lambda: stoker_dataset("fallback"),
    "from_tensors().repeat()": lambda: tf.data.Dataset.from_tensors(
        (tf.constant(images), tf.constant(labels))
    ).repeat(),
    "range().map(numpy_function)": lambda: tf.data.Dataset.range(1 << 40).map(numpy_function),
    "from_generator": lambda: tf.data.Dataset.from_generator(generate, output_signature=signature),
}


@tf.function
def drain(iterator, batches):
    for _ in tf.range(batches):
        next(iterator)


def measure(dataset, graph):
    """Returns seconds a batch: of wall time, and of this thread's CPU time."""
    iterator = iter(dataset)
    (drain(iterator, tf.constant(2)) if graph else (next(iterator), next(iterator)))
    time.sleep(0.3 + ready * images.nbytes / 2e9)  # until all batches that may be in production are ready
    wall, cpu = time.perf_counter(), time.thread_time()
    if graph:
        drain(iterator, tf.constant(args.batches))
    else:
        for _ in range(args.batches):
            next(iterator)
    return (time.perf_counter() - wall) / args.batches, (time.thread_time() - cpu) / args.batches


def main():
    print(
        f"TensorFlow {tf.__version__}, batches of {images.nbytes / 1e6:.2f} MB, {args.rounds} rounds in turns"
    )
    datasets = {name: make() for name, make in SOURCES.items()}
    taken = {}
    for _ in range(args.rounds):
        for name, dataset in datasets.items():
            for graph in (False, True):
                taken.setdefault((name, graph), []).append(measure(dataset, graph))
    for graph in (False, True):
        print("tf.function loop" if graph else "eager loop")
        for name in datasets:
            wall = [1e6 * w for w, _ in taken[name, graph]]
            cpu = [1e6 * c for _, c in taken[name, graph]]
            print(
                f"  {name:30} {statistics.median(wall):7.1f} us a batch ({min(wall):.1f} to {max(wall):.1f})"
                f"   its thread's CPU {statistics.median(cpu):7.1f} us"
            )


main()
