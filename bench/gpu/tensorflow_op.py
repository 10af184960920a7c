"""Trains in TensorFlow from batches that are on the GPU already, and from those that TensorFlow copies there.

    python bench/gpu/tensorflow_op.py PHOTOS

The step is first timed on one batch that is on the GPU already. Then each way is timed for a while, in turns;
the time beyond that of its steps is its wait. Prints one JSON object for each round: milliseconds of a step,
and what each way takes for one. `--device host` tries the program on the CPU, where its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any, Callable

import keras
import stoker
import tensorflow as tf


def loader_of(args: argparse.Namespace, **options: Any) -> stoker.Loader:
    return stoker.Loader(
        stoker.image_folder(args.photos),
        [stoker.RandomResizedCrop(args.size), stoker.RandomHorizontalFlip()],
        batch_size=args.batch_size,
        shuffle=True,
        drop_remainder=True,
        dtype="float32",
        **options,
    )


def forever(dataset: tf.data.Dataset) -> Iterator[Any]:
    while True:
        empty = True
        for batch in dataset:
            empty = False
            yield batch
        if empty:
            raise SystemExit("an epoch has no batch: are there fewer photographs than --batch-size?")


def training_step(classes: int, size: int) -> Callable[[Any], None]:
    model = keras.applications.ResNet50(weights=None, input_shape=(size, size, 3), classes=classes)
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy()

    @tf.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)

    return lambda batch: step(*batch)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    device = loader_of(args).to_device(args.device)  # before TensorFlow takes the GPU's memory
    ways = {
        "on_device": device.as_tf_dataset(),
        "copied": loader_of(args, pin_memory=args.device != "host").as_tf_dataset(),
    }
    step = training_step(1000, args.size)
    batches = {name: forever(dataset) for name, dataset in ways.items()}
    # Memory of TensorFlow's own: stoker's would count among its buffers.
    resident = [tensor + tf.zeros_like(tensor) for tensor in next(batches["on_device"])]

    def milliseconds(take: Callable[[], Any]) -> float:
        start = time.perf_counter()
        for _ in range(args.steps):
            step(take())
        tf.test.experimental.sync_devices()
        return (time.perf_counter() - start) / args.steps * 1e3

    milliseconds(lambda: resident)  # compiles, and tries algorithms out
    for round_number in range(args.rounds):
        figures = {"step": milliseconds(lambda: resident)}
        for name, taken in batches.items():
            milliseconds(taken.__next__)  # until no batch is left that was made meanwhile
            figures[name] = milliseconds(taken.__next__)
        print(json.dumps({"round": round_number, **{k: round(v, 2) for k, v in figures.items()}}), flush=True)


if __name__ == "__main__":
    main()
