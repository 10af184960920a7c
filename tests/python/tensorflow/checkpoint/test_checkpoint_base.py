"""TensorFlow's own tests of checkpoints, on a loader's dataset."""

import numpy as np
import pytest
import stoker
import tensorflow as tf

base = pytest.importorskip("tensorflow.python.data.kernel_tests.checkpoint_test_base")

PIPELINES = {
    "plain": lambda dataset: dataset,
    "map and prefetch": lambda dataset: dataset.map(lambda x, y: (x, y + 1)).prefetch(2),
    "map": lambda dataset: dataset.map(lambda x, y: (x, y + 1), num_parallel_calls=2),
    "prefetch": lambda dataset: dataset.prefetch(3),
    "repeat": lambda dataset: dataset.repeat(2),
    "skip and take": lambda dataset: dataset.skip(1).take(4),
}
SHORT = ("plain", "map and prefetch")
VERIFIED = [
    "verify_unused_iterator",
    "verify_fully_used_iterator",
    "verify_exhausted_iterator",
    "verify_multiple_breaks",
]


@pytest.fixture
def verifier(tmp_path, monkeypatch):
    class Verifier(base.CheckpointTestBase):
        def verify(self):
            """Not called: a TestCase names a test."""

    made = Verifier("verify")
    monkeypatch.setattr(made, "get_temp_dir", lambda: str(tmp_path))
    yield made
    made.tearDown()


@pytest.mark.parametrize("symbolic", [False, True], ids=["buffers", "symbolic"])
@pytest.mark.parametrize("verify", VERIFIED)
@pytest.mark.parametrize(
    "pipeline",
    [*SHORT, *(pytest.param(name, marks=pytest.mark.long) for name in PIPELINES if name not in SHORT)],
)
def test_verified_by_tensorflow(op, verifier, pipeline, verify, symbolic):
    """The epoch is named: an iterator of its own takes the next one, which TensorFlow cannot expect."""
    images = np.arange(24 * 5, dtype=np.uint8).reshape(24, 5)
    source = stoker.arrays(images, np.arange(24))

    def dataset():
        loader = stoker.Loader(source, batch_size=4, shuffle=True, seed=3)
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = symbolic
        made = PIPELINES[pipeline](loader.as_tf_dataset(epoch=2, op=op))
        return made.with_options(options)

    outputs = {"repeat": 12, "skip and take": 4}.get(pipeline, 6)
    getattr(verifier, verify)(dataset, outputs)


@pytest.mark.parametrize("verify", VERIFIED)
def test_verified_with_epochs_that_are_taken(op, verifier, verify, monkeypatch):
    """Each loader is new, so that its first iterator has epoch 0, as a program that is started again.

    The prebuilt ops learn of an epoch with its first batch: there is no break between two epochs, also not of
    buffers, which symbolic checkpoints leave out.
    """
    if op == "fallback":
        points = verifier.gen_break_points
        monkeypatch.setattr(
            verifier, "gen_break_points", lambda *all_of: [i for i in points(*all_of) if i != 6]
        )
    images = np.arange(24 * 5, dtype=np.uint8).reshape(24, 5)

    def dataset():
        loader = stoker.Loader(stoker.arrays(images, np.arange(24)), batch_size=4, shuffle=True, seed=3)
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = op == "fallback"
        return loader.as_tf_dataset(op=op).repeat(2).with_options(options)

    getattr(verifier, verify)(dataset, 12)


@pytest.mark.parametrize("verify", [*VERIFIED, "verify_reset_restored_iterator"])
def test_verified_in_a_graph(op, made, verifier, verify):
    """TensorFlow 1's iterators, which can be started again. A later graph opens the folder by its path."""

    def dataset():
        loader = stoker.Loader(stoker.image_folder(made), [stoker.Resize((8, 8))], batch_size=8)
        return loader.as_tf_dataset(epoch=2, op=op)

    with tf.Graph().as_default():
        getattr(verifier, verify)(dataset, 6)
