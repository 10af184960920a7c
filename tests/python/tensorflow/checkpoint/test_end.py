"""Ends: Ctrl-C, and the interpreter's end while everything is busy."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import arrays, same

pytestmark = pytest.mark.long  # most tests start processes that import TensorFlow

OTHER_ENDS = [
    *(("native", how) for how in ("held", "daemon", "exit in the loop", "fork")),
    ("fallback", "prefetch"),
    ("fallback", "Ctrl-C"),
]


@pytest.mark.parametrize(
    ("op", "how"),
    [
        ("native", "prefetch"),
        ("native", "Ctrl-C"),
        *OTHER_ENDS,
    ],
)
def test_the_process_ends(op, how, made, python):
    out = python("ending.py", op, how, made, timeout=60)
    assert how == "exit in the loop" or "done" in out
    assert ("interrupted" in out) == (how == "Ctrl-C")


@pytest.fixture
def slow(made, tmp_path):
    """A loader whose one batch takes a second, on one core."""
    for copy in range(60):
        (tmp_path / f"class{copy:02}").symlink_to(made / "class00")
    runtime = stoker.Runtime(threads=1)
    return stoker.Loader(
        stoker.image_folder(tmp_path), [stoker.Resize((256, 256))], batch_size=960, depth=1, runtime=runtime
    )


def interrupted(wait):
    """Returns whether SIGINT during `wait` ends it before the awaited batch is ready."""
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        wait()
        timer.join()
        time.sleep(0.1)  # the signal came too late for the wait
        raise AssertionError("nothing was interrupted")
    timer.join()


def test_ctrl_c_in_an_eager_loop_loses_nothing(slow):
    iterator = iter(slow.as_tf_dataset(op="native"))
    interrupted(lambda: next(iterator))
    assert slow.stats()["batches"] == 0  # it did not wait for the batch
    got = [tuple(np.array(column) for column in next(iterator))]
    assert list(iterator) == []
    same(got, arrays(slow.epoch(0)))


@pytest.fixture
def alarm():
    """Calls its argument as a signal handler, 0.1 s later."""
    before = signal.getsignal(signal.SIGALRM)

    def after(call):
        signal.signal(signal.SIGALRM, lambda *_: call())
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    yield after
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Alarm(Exception):
    pass


def test_an_exception_of_the_programs_handler(slow, alarm):
    def handler():
        raise Alarm

    iterator = iter(slow.as_tf_dataset(op="native"))
    alarm(handler)
    with pytest.raises(Alarm):
        next(iterator)
    assert slow.stats()["batches"] == 1  # it was raised when the batch was there


@pytest.mark.parametrize("op", ["native", "fallback"])
def test_a_handler_may_save_the_iterator(op, slow, alarm, tmp_path):
    iterator = iter(slow.as_tf_dataset(op=op).repeat(2))
    saved = []
    alarm(lambda: saved.append(tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))))
    images, _ = next(iterator)  # its wait was not ended by the signal
    assert len(images) == 960 and len(saved) == 1
    wanted = [tuple(np.array(column) for column in next(iterator))]
    tf.train.Checkpoint(iterator=iterator).read(saved[0])
    same([tuple(np.array(column) for column in next(iterator))], wanted)


def test_a_prefetch_that_is_let_go_cancels_the_wait(slow):
    iterator = iter(slow.as_tf_dataset(epoch=0, op="native").repeat().prefetch(1))
    next(iterator)  # now the prefetch waits for the next one
    del iterator
    gc.collect()
    assert slow.stats()["batches"] == 1
