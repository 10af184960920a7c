"""tf.data service whose dispatcher or worker is killed (SIGKILL) and started again: what arrives.

    python tests/python/tensorflow/service/kills.py --kills 50 [--sources native,fallback,stock]

One dispatcher in fault-tolerant mode, one worker, DYNAMIC sharding. Each line of the table is so many
jobs of three epochs of 60 batches, each with one kill at a random batch: how many batches never came,
came twice, or were of another epoch. Stock is `Dataset.range(60)`. test_service.py runs a few of them.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.append(str(pathlib.Path(__file__).parents[2] / "support"))

import forks
import numpy as np
import stoker.tensorflow
import tensorflow as tf
from stoker.tensorflow import _proof

service = tf.data.experimental.service
EPOCHS = 3
BATCHES = 60
ROWS = 4
PINNED = 2
SECONDS = 300  # a job that has not ended by then has failed

Outcome = collections.namedtuple("Outcome", "lost twice strange ended")


# --- the processes -----------------------------------------------------------------------------------


def role():
    """A process in waiting: it becomes what its stdin says, and ends with it."""
    stoker.tensorflow.load_ops(json.loads(sys.stdin.readline())["op"])
    print("warm", flush=True)
    line = sys.stdin.readline()
    if not line:
        return
    config = json.loads(line)
    server = (
        service.DispatchServer(service.DispatcherConfig(**config["dispatcher"]))
        if "dispatcher" in config
        else service.WorkerServer(service.WorkerConfig(**config["worker"]))
    )
    print("up", flush=True)
    sys.stdin.read()
    del server


class Waiting:
    """A process that has loaded the op, and can start at once."""

    def __init__(self, op):
        self._process = forks.Piped(__file__, "--role")
        self._tell({"op": op})

    def become(self, **config):
        assert self._process.stdout.readline() == "warm\n"
        self._tell(config)
        assert self._process.stdout.readline() == "up\n"
        return self

    def kill(self):
        self._process.end()

    def _tell(self, message):
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


class Service:
    """A dispatcher and a worker, either of which may be killed; another takes its place and port."""

    def __init__(self, op, folder):
        self._op = op
        dispatcher, worker = f"localhost:{free_port()}", f"localhost:{free_port()}"
        self.target = f"grpc://{dispatcher}"
        self._configs = {
            "dispatcher": {
                "port": int(dispatcher.rpartition(":")[2]),
                "work_dir": str(folder),
                "fault_tolerant_mode": True,
            },
            "worker": {
                "port": int(worker.rpartition(":")[2]),
                "worker_address": worker,
                "dispatcher_address": dispatcher,
                "heartbeat_interval_ms": 100,
            },
        }
        self._processes = {
            name: process.become(**{name: config})
            for (name, config), process in zip(self._configs.items(), [Waiting(op), Waiting(op)])
        }
        self._next = Waiting(op)

    def kill(self, *names):
        for name in names:
            self._processes[name].kill()
        for name in names:
            self._processes[name] = self._next.become(**{name: self._configs[name]})
            self._next = Waiting(self._op)

    def close(self):
        for process in (*self._processes.values(), self._next):
            process.kill()


@contextlib.contextmanager
def running(op):
    with tempfile.TemporaryDirectory() as folder:
        place = Service(op, folder)
        try:
            yield place
        finally:
            place.close()


# --- one job -----------------------------------------------------------------------------------------


def write_photos(folder):
    """240 images, each in a class of its own: a batch's labels say which epoch and batch it is."""
    for label in range(BATCHES * ROWS):
        place = pathlib.Path(folder, f"{label:03}")
        place.mkdir()
        (place / "1.jpg").write_bytes(_proof._JPEG)


def make_loader(folder):
    return stoker.Loader(
        stoker.image_folder(folder), [stoker.Resize((8, 8))], batch_size=ROWS, shuffle=True, seed=3
    )


class Stock:
    """TensorFlow's own source. Its elements have no epochs: that of each is taken to be right."""

    def __init__(self, how):
        self.dataset = tf.data.Dataset.range(BATCHES)
        self.expected = collections.Counter(dict.fromkeys(range(BATCHES), EPOCHS))

    def name(self, element):
        return int(element)


class Stoker:
    """`how`: "repeat", "loops", or either of them with an epoch that is named."""

    def __init__(self, how, folder, op):
        self._loader = make_loader(folder)
        pinned = "pinned" in how
        self.dataset = self._loader.as_tf_dataset(epoch=PINNED if pinned else None, op=op)
        reference = make_loader(folder)
        self._names = {
            np.asarray(labels).tobytes(): (epoch, index)
            for epoch in range(3 * EPOCHS)
            for index, (_, labels) in enumerate(reference.epoch(epoch))
        }
        self.expected = collections.Counter(
            (PINNED if pinned else epoch, index) for epoch in range(EPOCHS) for index in range(BATCHES)
        )

    def name(self, element):
        return self._names[np.asarray(element[1]).tobytes()]


def consume(source, how, target, at, kill, arrived):
    def distributed(dataset):
        return dataset.apply(
            service.distribute(
                service.ShardingPolicy.DYNAMIC, target, max_outstanding_requests=1, compression=None
            )
        )

    if "repeat" in how:
        parts = [distributed(source.dataset.repeat(EPOCHS))]
    else:
        parts = EPOCHS * [distributed(source.dataset)]
    for part in parts:
        for element in part:
            arrived.append(source.name(element))
            if len(arrived) == at:
                kill()
            time.sleep(0.002)


def job(place, source, how, victim, at):
    """One job, whose `victim` ("dispatcher", "worker", or both) is killed when `at` batches have arrived."""
    arrived, ended = [], []

    def run():
        consume(source, how, place.target, at, lambda: place.kill(*victim.split()), arrived)
        ended.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    got = collections.Counter(arrived)
    return Outcome(
        lost=sum((source.expected - got).values()),
        twice=sum(max(0, got[name] - count) for name, count in source.expected.items()),
        strange=sum(count for name, count in got.items() if name not in source.expected),
        ended=bool(ended),
    )


def source_of(name, how, folder):
    return Stock(how) if name == "stock" else Stoker(how, folder, name)


def measure(name, how, victim, kills, folder):
    """The outcomes of that many jobs, with kills at moments that are the same for every source."""
    moments = random.Random(f"{how} {victim}")
    outcomes = []
    with running("fallback" if name == "stock" else name) as place:
        for _ in range(kills):
            at = moments.randrange(1, EPOCHS * BATCHES)
            outcomes.append((at, job(place, source_of(name, how, folder), how, victim, at)))
            if not outcomes[-1][1].ended:
                break  # what it left would be in the way of the next
    return outcomes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50, help="for each line of the table")
    parser.add_argument("--sources", default="native,fallback,stock")
    parser.add_argument("--how", default="repeat,loops,pinned repeat,pinned loops")
    parser.add_argument("--victims", default="dispatcher,worker")
    parser.add_argument("--role", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        return role()
    with tempfile.TemporaryDirectory() as folder:
        write_photos(folder)
        print("killed      source    epochs         jobs  whole   lost  twice  other epoch  batches in all")
        for victim in arguments.victims.split(","):
            for how in arguments.how.split(","):
                for name in arguments.sources.split(","):
                    if name == "stock" and "pinned" in how:
                        continue
                    outcomes = measure(name, how, victim, arguments.kills, folder)
                    sums = [sum(o[i] for _, o in outcomes) for i in range(3)]
                    whole = sum(o == Outcome(0, 0, 0, True) for _, o in outcomes)
                    print(
                        f"{victim:10}  {name:8}  {how:13} {len(outcomes):5} {whole:6} {sums[0]:6} {sums[1]:6}"
                        f"  {sums[2]:11}  {len(outcomes) * EPOCHS * BATCHES:14}",
                        flush=True,
                    )
                    for at, outcome in outcomes:
                        if outcome != Outcome(0, 0, 0, True):
                            print(f"    killed at batch {at}: {outcome}", flush=True)
    os._exit(0)  # a job that never ends would be waited for


if __name__ == "__main__":
    main()
