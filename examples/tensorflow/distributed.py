"""Trains on two devices at once; then reads through tf.data service: other processes make the batches.

Replaces strategy.experimental_distribute_dataset and distribute() around a tf.data pipeline; stoker's
dataset goes in the same places. The devices are two logical CPUs, so that this runs anywhere.
"""

import multiprocessing
from multiprocessing.connection import Connection

import keras
import photographs
import stoker
import stoker.tensorflow
import tensorflow as tf
from tensorflow.data.experimental import service

SIZE, BATCH, WORKERS = 64, 16, 2
SECONDS = 60  # for a process to start


def make_loader(photos: str) -> stoker.Loader:
    augment = [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()]
    source = stoker.image_folder(photos)
    return stoker.Loader(source, augment, batch_size=BATCH, shuffle=True, seed=1, drop_remainder=True)


def train_on_two_devices(loader: stoker.Loader) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Rescaling(1 / 127.5, offset=-1),
                keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(len(loader.classes), activation="softmax"),
            ]
        )
        model.compile("adam", "sparse_categorical_crossentropy")
    # fit() takes a batch, and with it an epoch, to build the model; the callback says which one to train.
    follow = stoker.tensorflow.follow_epochs(loader)
    model.fit(loader.as_tf_dataset(), epochs=2, callbacks=[follow], verbose=2)  # each device: half a batch
    print(f"trained on {strategy.num_replicas_in_sync} devices; epoch {loader.state_dict()['epoch']} is next")


def dispatch(started: Connection) -> None:
    """The process that distributes the work. It reads no photographs."""
    stoker.tensorflow.load_ops()  # a dataset arrives as a graph: its ops must be known
    server = service.DispatchServer()
    started.send(server.target)
    server.join()


def work(dispatcher: str) -> None:
    """A process that reads and decodes. On another machine it needs the same folder at the same path."""
    stoker.tensorflow.load_ops()
    address = dispatcher.partition("://")[2]
    service.WorkerServer(service.WorkerConfig(dispatcher_address=address)).join()


def read_through_service(loader: stoker.Loader) -> None:
    spawn = multiprocessing.get_context("spawn")  # never fork a process that has used TensorFlow
    receive, send = spawn.Pipe(duplex=False)
    processes = [spawn.Process(target=dispatch, args=[send], daemon=True)]
    processes[0].start()
    send.close()  # so that recv() ends if the dispatcher does not start
    if not receive.poll(SECONDS):
        raise RuntimeError(f"the dispatcher has not started in {SECONDS} s")
    dispatcher = receive.recv()
    for _ in range(WORKERS):
        processes.append(spawn.Process(target=work, args=[dispatcher], daemon=True))
        processes[-1].start()

    each_batch_once = service.distribute(service.ShardingPolicy.DYNAMIC, dispatcher)
    dataset = loader.as_tf_dataset().apply(each_batch_once)
    rows = sum(len(labels) for _, labels in dataset)
    here = loader.stats()["samples"]
    print(f"verdict: {rows} photographs from {WORKERS} worker processes, {here} of them decoded in this one")
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(SECONDS)


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    photos = photographs.folder(__doc__)
    train_on_two_devices(make_loader(photos))
    read_through_service(make_loader(photos))
