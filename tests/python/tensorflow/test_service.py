"""tf.data service, with the workers in processes of their own."""

import contextlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from conftest import arrays, same

service = tf.data.experimental.service
WORKER = pathlib.Path(__file__).with_name("worker.py")


@contextlib.contextmanager
def running(op, workers):
    """The dispatcher's target."""
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    address = dispatcher.target.split("://")[1]
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKER), address, op],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(workers)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "up\n"
        yield dispatcher.target
    finally:
        for process in processes:
            process.kill()
            process.wait()
        dispatcher._stop()


def distributed(dataset, target, mode):
    return dataset.apply(service.distribute(mode, target, compression=None))


def digests(batches):
    return sorted((np.asarray(x).tobytes(), np.asarray(y).tobytes()) for x, y in batches)


@pytest.mark.parametrize("workers", [1, 3])
def test_dynamic_every_batch_exactly_once(make, workers):
    with running("native", workers) as target:
        dataset = make(batch_size=2).as_tf_dataset(op="native")
        for epoch in range(2):
            got = list(distributed(dataset, target, service.ShardingPolicy.DYNAMIC))
            assert digests(got) == digests(arrays(make(batch_size=2).epoch(epoch)))
        got = list(distributed(dataset.repeat(2), target, service.ShardingPolicy.DYNAMIC))
        want = arrays(make(batch_size=2).epoch(2)) + arrays(make(batch_size=2).epoch(3))
        assert digests(got) == digests(want)


def test_dynamic_workers_that_get_nothing_give_nothing(make):
    """One worker claims both batches; what comes to the others is the end."""
    with running("native", 3) as target:
        loader = make(batch_size=24)
        assert len(loader) == 2
        got = list(distributed(loader.as_tf_dataset(op="native"), target, service.ShardingPolicy.DYNAMIC))
        assert digests(got) == digests(arrays(loader.epoch(0)))


def test_off_every_worker_has_its_own_epoch(make, op):
    with running(op, 1) as target:
        dataset = distributed(make().as_tf_dataset(op=op), target, service.ShardingPolicy.OFF)
        for epoch in range(2):
            same(arrays(dataset), arrays(make().epoch(epoch)))


def test_dynamic_with_the_fallback(make):
    loader = make(batch_size=2)
    with running("fallback", 2) as target:
        pinned = loader.as_tf_dataset(epoch=1, op="fallback")
        got = list(distributed(pinned, target, service.ShardingPolicy.DYNAMIC))
        assert digests(got) == digests(arrays(loader.epoch(1)))
        unnamed = loader.as_tf_dataset(op="fallback")
        with pytest.raises(tf.errors.FailedPreconditionError, match="epoch=k"):
            list(distributed(unnamed, target, service.ShardingPolicy.DYNAMIC))
