"""Trains in two processes at once, with MultiWorkerMirroredStrategy: each reads its own photographs.

The other way that is counted is a stoker dataset under TensorFlow's auto-sharding, that is, given to
experimental_distribute_dataset: each process makes every batch and keeps its part. A tf.data pipeline that
shards the names of its files has no such cost, and is not measured here. The loop is written out because
fit() of Keras 3 fails with this strategy (Keras' issue 20585). Both processes are on this machine; they find
each other by TF_CONFIG, as they would on two.
"""

import collections
import hashlib
import json
import multiprocessing
import os
import queue
import socket
import time

import keras
import photographs
import stoker
import tensorflow as tf

SIZE, BATCH, WORKERS, EPOCHS = 64, 8, 2, 2  # 8 rows in each process
SECONDS = 300  # for all of it


def make_loader(photos: str, batch: int, **part: int) -> stoker.Loader:
    source, crop = stoker.image_folder(photos), [stoker.RandomResizedCrop(SIZE)]
    return stoker.Loader(source, crop, batch_size=batch, shuffle=True, seed=1, drop_remainder=True, **part)


def train(strategy: tf.distribute.Strategy, dataset: tf.distribute.DistributedDataset, classes: int) -> dict:
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [
                keras.Input((SIZE, SIZE, 3)),
                keras.layers.Rescaling(1 / 127.5, offset=-1),
                keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(classes),
            ]
        )
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)

    def replica_step(images, labels):
        with tf.GradientTape() as tape:
            losses = keras.losses.sparse_categorical_crossentropy(labels, model(images), from_logits=True)
            loss = tf.reduce_sum(losses) / (BATCH * WORKERS)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        )
        return tf.shape(labels)[0]

    @tf.function
    def step(batch):
        return strategy.run(replica_step, args=batch)

    rows = sum(int(step(batch)) for _ in range(EPOCHS) for batch in dataset)
    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    return {"rows": rows, "weights": hashlib.sha256(weights).hexdigest()[:8]}


def work(photos: str, addresses: list[str], rank: int, results) -> None:
    """One of the processes."""
    task = {"type": "worker", "index": rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before anything else of TensorFlow
    whole = make_loader(photos, BATCH * WORKERS)
    part = make_loader(photos, BATCH, rank=rank, world=WORKERS)
    distributed = {
        "auto-sharding": (whole, strategy.experimental_distribute_dataset(whole.as_tf_dataset())),
        "rank and world": (part, strategy.distribute_datasets_from_function(lambda _: part.as_tf_dataset())),
    }
    for way, (loader, dataset) in distributed.items():
        result = train(strategy, dataset, len(loader.classes))
        results.put((way, rank, {**result, "decoded": loader.stats()["samples"]}))


def next_result(results, processes: list, deadline: float) -> tuple:
    """Waits no longer than the deadline, nor for a process that has failed."""
    while True:
        try:
            return results.get(timeout=0.5)
        except queue.Empty:
            codes = [process.exitcode for process in processes]
            if any(codes) or time.monotonic() > deadline:
                raise RuntimeError(f"results are missing; exit codes of the processes: {codes}") from None


def end(processes: list, deadline: float) -> None:
    """Waits for the processes; an exit code other than 0 is an error."""
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
    codes = [process.exitcode for process in processes]
    if codes != [0] * len(processes):
        raise RuntimeError(f"exit codes of the processes (None means still running): {codes}")


if __name__ == "__main__":
    photos = photographs.folder(__doc__)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    deadline = time.monotonic() + SECONDS
    workers = [
        spawn.Process(target=work, args=(photos, addresses, rank, results), daemon=True)
        for rank in range(WORKERS)
    ]
    for worker in workers:
        worker.start()

    found, shares = collections.defaultdict(list), []
    for _ in range(2 * WORKERS):
        way, rank, result = next_result(results, workers, deadline)
        found[way].append(result)
        print(
            f"{way}, process {rank}: trained {result['rows']} rows, decoded {result['decoded']} photographs;",
            end=" ",
        )
        print(f"weights {result['weights']}")
    end(workers, deadline)
    same = all(len({result["weights"] for result in each}) == 1 for each in found.values())
    for way, each in found.items():
        decoded = sum(result["decoded"] for result in each) / sum(result["rows"] for result in each)
        shares.append(f"{decoded:.1f} ({way})")
    print(f"verdict: for each row, photographs decoded: {', '.join(shares)}; equal weights: {same}")
