"""tf.data service, with the workers in processes of their own."""

import contextlib
import pathlib
import subprocess
import sys

import tensorflow as tf

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
