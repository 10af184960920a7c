"""tf.data service, with the workers in processes of their own."""

import contextlib
import pathlib

import forks
import tensorflow as tf

service = tf.data.experimental.service
WORKER = pathlib.Path(__file__).with_name("worker.py")


@contextlib.contextmanager
def running(op, workers):
    """The dispatcher's target."""
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    address = dispatcher.target.split("://")[1]
    processes = [forks.Piped(WORKER, address, op) for _ in range(workers)]
    try:
        for process in processes:
            assert process.stdout.readline() == "up\n"
        yield dispatcher.target
    finally:
        for process in processes:
            process.end()
        dispatcher._stop()
