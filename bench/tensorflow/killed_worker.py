"""Runs tf.data service while one of three workers is killed and started again: stoker and a stock source.

    python bench/tensorflow/killed_worker.py PHOTOS [--seconds 60]

Both sources have the same number of elements; the worker is killed (SIGKILL) when a quarter of them has
arrived, and another one takes its port. Printed: the elements that arrived, those that arrived twice, and
whether the job ended in time.
"""

import argparse
import os
import socket
import subprocess
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import stoker.tensorflow
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photos", help="a folder with class folders of JPEGs")
parser.add_argument("--seconds", type=float, default=60, help="given up after so many")
parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)  # dispatcher, port: a worker's process
args = parser.parse_args()

service = tf.data.experimental.service


def worker():
    """Ends with its stdin."""
    stoker.tensorflow.load_ops()
    dispatcher, port = args.worker
    config = service.WorkerConfig(
        dispatcher, worker_address=f"localhost:{port}", port=int(port), heartbeat_interval_ms=100
    )
    server = service.WorkerServer(config)
    print("up", flush=True)
    sys.stdin.read()
    del server


def start(dispatcher, port):
    process = subprocess.Popen(
        [sys.executable, __file__, args.photos, "--worker", dispatcher, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "up\n"
    return process


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def measure(name, dataset, element):
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0, worker_timeout_ms=2000))
    address = dispatcher.target.split("://")[1]
    ports = [free_port() for _ in range(3)]
    workers = [start(address, port) for port in ports]
    total, got, ended = len(dataset), [], []
    distributed = dataset.apply(
        service.distribute(service.ShardingPolicy.DYNAMIC, dispatcher.target, compression=None)
    )

    def consume():
        for batch in distributed:
            got.append(element(batch))
        ended.append(True)

    consumer = threading.Thread(target=consume, daemon=True)
    begin = time.monotonic()
    consumer.start()
    while len(got) < total // 4 and time.monotonic() - begin < args.seconds:
        time.sleep(0.005)
    workers[0].kill()
    workers[0].wait()
    at = len(got)
    workers[0] = start(address, ports[0])
    consumer.join(max(0, args.seconds - (time.monotonic() - begin)))
    twice = len(got) - len(set(got))
    lost = total - len(set(got))
    print(
        f"{name:8} killed after {at} of {total}; {len(got)} arrived, {lost} lost, {twice} twice; "
        f"{'ended' if ended else 'did not end'} in {time.monotonic() - begin:.1f} s",
        flush=True,
    )
    for process in workers:
        process.kill()
        process.wait()


def main():
    loader = stoker.Loader(stoker.image_folder(args.photos), [stoker.RandomResizedCrop(64)], batch_size=1)
    dataset = loader.as_tf_dataset(epoch=0)
    measure("stoker", dataset, lambda batch: np.asarray(batch[0]).tobytes())
    measure("stock", tf.data.Dataset.range(len(dataset)).map(lambda x: x), int)
    os._exit(0)  # otherwise a consumer that never ends would be waited for


worker() if args.worker else main()
