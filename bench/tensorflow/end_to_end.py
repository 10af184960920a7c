"""Training input end to end: stoker's dataset against tf.data's own pipelines on the same photographs.

    python bench/tensorflow/end_to_end.py PHOTOS [--cores 1] [--rounds 3] [--epochs 3] [--fit]

RandomResizedCrop(224) and a flip to uint8 batches of 64, files in the page cache. Rivals are the fastest
pipelines known: `decode_and_crop_jpeg` + `tf.image.resize`, plain bilinear ("fused") and antialiased
("fused, antialiased"), all calls parallel, prefetched, on a private thread pool of as many threads as
there are cores. Programs take turns, each in a process of its own on the same cores (sched_setaffinity).
Printed: CPU seconds of the whole process for 1,000 photographs, photographs a second, and the longest
wait for a batch between two epochs. With --fit the consumer is `model.fit` on a tiny model.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

PIPELINES = ("stoker, antialiased", "stoker, plain", "tf.data fused", "tf.data fused, antialiased")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photos", help="a folder with class folders of JPEGs")
parser.add_argument("--cores", type=int, default=1)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--epochs", type=int, default=3, help="timed, after one that is not")
parser.add_argument("--fit", action="store_true")
parser.add_argument("--pipeline", choices=PIPELINES, help=argparse.SUPPRESS)  # what one process measures
args = parser.parse_args()

BATCH, SIZE = 64, 224


def stoker_loader(antialias):
    import stoker

    return stoker.Loader(
        stoker.image_folder(args.photos),
        [stoker.RandomResizedCrop(SIZE, antialias=antialias), stoker.RandomHorizontalFlip()],
        batch_size=BATCH,
        shuffle=True,
        drop_remainder=True,
    )


def tf_dataset(antialias):
    import tensorflow as tf

    paths = sorted(str(path) for path in pathlib.Path(args.photos).rglob("*.[jJ]*"))
    names = sorted({pathlib.Path(path).parent.name for path in paths})
    labels = [names.index(pathlib.Path(path).parent.name) for path in paths]

    def decode(path, label):
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data),
            tf.zeros([0, 0, 4]),
            area_range=(0.08, 1),
            aspect_ratio_range=(3 / 4, 4 / 3),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
        image = tf.image.resize(image, [SIZE, SIZE], "bilinear", antialias=antialias)
        image = tf.image.random_flip_left_right(image)
        return tf.saturate_cast(image + 0.5, tf.uint8), label

    options = tf.data.Options()
    options.threading.private_threadpool_size = args.cores
    options.deterministic = False
    dataset = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(1000)
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE).with_options(options)


def loop(dataset, epochs):
    """Takes all batches; returns how long the first batch of each epoch but the first was waited for."""
    stalls = []
    for epoch in range(epochs):
        begin = time.perf_counter()
        for index, _ in enumerate(dataset):
            if index == 0 and epoch > 0:
                stalls.append(time.perf_counter() - begin)
    return stalls


def fit(dataset, epochs):
    import keras

    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.AveragePooling2D(32),
            keras.layers.Flatten(),
            keras.layers.Dense(20),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset, epochs=epochs, verbose=0)
    return []


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(name):
    """Runs in a process of its own."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(args.cores)
    tf.config.threading.set_inter_op_parallelism_threads(args.cores)
    antialias = name.endswith("antialiased")
    loader = stoker_loader(antialias) if name.startswith("stoker") else None
    dataset = tf_dataset(antialias) if loader is None else loader.as_tf_dataset()
    consume = fit if args.fit else loop
    consume(dataset, 1)
    decoded = photos = args.epochs * len(dataset) * BATCH
    # stoker is some batches ahead when the clock starts, and when it stops: the photographs it decoded count.
    before = loader and loader.stats()["samples"]
    wall, cpu = time.perf_counter(), cpu_seconds()
    stalls = consume(dataset, args.epochs)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    if loader is not None:
        decoded = loader.stats()["samples"] - before
    print(
        json.dumps(
            {
                "cpu_per_1000": cpu / decoded * 1000,
                "photos_per_second": photos / wall,
                "stall_ms": 1000 * max(stalls) if stalls else None,
            }
        )
    )


def main():
    if args.pipeline:
        return measure(args.pipeline)
    results = {name: [] for name in PIPELINES}
    for _ in range(args.rounds):
        for name in PIPELINES:
            run = subprocess.run(
                [sys.executable, *sys.argv, "--pipeline", name], capture_output=True, text=True, check=True
            )
            results[name].append(json.loads(run.stdout.splitlines()[-1]))
    consumer = "model.fit" if args.fit else "for _ in dataset"
    print(f"{args.cores} cores, {args.rounds} rounds in turns, {consumer}")
    for name, runs in results.items():
        cpu = [run["cpu_per_1000"] for run in runs]
        rate = statistics.median(run["photos_per_second"] for run in runs)
        stalls = [run["stall_ms"] for run in runs if run["stall_ms"] is not None]
        stall = f"{statistics.median(stalls):.1f}" if stalls else "–"  # not measured within fit
        print(
            f"  {name:28} {statistics.median(cpu):.3f} CPU s per 1,000 ({min(cpu):.3f} to {max(cpu):.3f}),"
            f" {rate:6.0f} photographs/s, {stall:>6} ms between epochs"
        )
    for kind in (", antialiased", ""):
        ours, theirs = results["stoker" + (kind or ", plain")], results["tf.data fused" + kind]
        ratios = [b["cpu_per_1000"] / a["cpu_per_1000"] for a, b in zip(ours, theirs)]
        print(f"  tf.data fused{kind} / stoker: {min(ratios):.2f} to {max(ratios):.2f} times the CPU")
    return None


main()
