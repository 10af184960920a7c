"""Datasets whose batches are on a GPU: what they hold, when memory is reused, what is refused.

They need a TensorFlow that sees a GPU, and are skipped elsewhere. test_gpu_stand_in.py runs them on a
stand-in for one, which has no XLA.
"""

import ctypes
import gc
import os

import keras
import numpy as np
import pytest
import stoker
import tensorflow as tf
from stoker.tensorflow import _device_dataset

SIDE = 32
STAND_IN = os.environ.get("STOKER_STAND_IN")


@pytest.fixture(scope="module")
def gpus():
    """How many GPUs there are; on the stand-in, a dataset of "host" is placed where the test says."""
    if STAND_IN:
        from tensorflow.python.framework import load_library

        load_library.load_pluggable_device_library(STAND_IN)
    count = len(tf.config.list_logical_devices("GPU"))
    if count == 0:
        pytest.skip("TensorFlow sees no GPU")
    return count


@pytest.fixture
def on_gpu(gpus, monkeypatch):
    """Returns a loader's device loader for a GPU."""

    def to_device(loader, gpu=0, **options):
        if not STAND_IN:
            return loader.to_device(f"cuda:{gpu}", **options)
        monkeypatch.setattr(_device_dataset, "_place", lambda device: f"/device:GPU:{gpu}")
        return loader.to_device("host", **options)

    return to_device


def make(batches=8, batch_size=8, **options):
    """Image i is i % 251 everywhere, and its label is i."""
    samples = batches * batch_size * options.get("world", 1)
    values = (np.arange(samples) % 251).astype(np.uint8)
    images = np.ascontiguousarray(np.broadcast_to(values[:, None, None, None], (samples, SIDE, SIDE, 3)))
    source = stoker.arrays(images, np.arange(samples, dtype=np.int64))
    return stoker.Loader(source, [], batch_size=batch_size, shuffle=True, seed=1, **options)


def expected(epoch, **options):
    return [(np.array(images), np.array(labels)) for images, labels in make(**options).epoch(epoch)]


def inverted(images):
    """Gives the GPU work that reads the images, and returns before it is done."""
    with tf.device("/device:GPU:0"):
        return tf.bitwise.invert(images)


def address(tensor):
    """Returns where a tensor's memory is: the first member of the struct in a DLPack capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = tf.experimental.dlpack.to_dlpack(tensor)
    found = ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value
    tf.experimental.dlpack.from_dlpack(capsule)  # a capsule that nobody takes keeps the tensor
    return found


def test_tensors_are_on_the_gpu_and_have_the_loaders_bytes(on_gpu):
    dataset = on_gpu(make()).as_tf_dataset()
    seen = 0
    for (images, labels), (pixels, numbers) in zip(dataset, expected(0), strict=True):
        assert images.device.endswith("GPU:0") and labels.device.endswith("GPU:0")
        np.testing.assert_array_equal(images.numpy(), pixels)
        np.testing.assert_array_equal(labels.numpy(), numbers)
        seen += 1
    assert seen == 8 and int(dataset.cardinality()) == 8
    assert dataset.element_spec == make().as_tf_dataset().element_spec


@pytest.mark.parametrize("buffers", [2, 3])
def test_memory_is_reused_after_the_work_that_reads_it(on_gpu, buffers):
    """The images are dropped while the GPU has not yet read them."""
    results, addresses = [], set()
    for images, _ in on_gpu(make(batches=64), buffers=buffers).as_tf_dataset():
        addresses.add(address(images))
        results.append(inverted(images))
        del images
    for result, (pixels, _) in zip(results, expected(0, batches=64), strict=True):
        np.testing.assert_array_equal(result.numpy(), ~pixels)
    assert len(addresses) == buffers, "the tensors are the loader's memory"


def test_a_copy_to_the_host_is_waited_for(on_gpu):
    """TensorFlow copies on another stream, and keeps the tensor until the copy is done."""
    copies = []
    for images, _ in on_gpu(make(batches=64), buffers=2).as_tf_dataset():
        with tf.device("/device:CPU:0"):
            copies.append(tf.identity(images))
        del images
    for copy, (pixels, _) in zip(copies, expected(0, batches=64), strict=True):
        np.testing.assert_array_equal(copy.numpy(), pixels)


def test_tensors_outlive_everything(on_gpu):
    iterator = iter(on_gpu(make(), buffers=3).as_tf_dataset())
    kept = [next(iterator)[0] for _ in range(2)]
    del iterator
    gc.collect()
    for images, (pixels, _) in zip(kept, expected(0)):
        np.testing.assert_array_equal(inverted(images).numpy(), ~pixels)


def test_memory_is_freed_after_the_work_that_reads_it(on_gpu):
    """The loader goes with its last tensors, while the GPU has not yet read them."""
    pixels, _ = expected(0, batches=1)[0]
    for _ in range(20):
        [(images, labels)] = on_gpu(make(batches=1), buffers=2).as_tf_dataset()
        result = inverted(images)
        del images, labels
        gc.collect()
        np.testing.assert_array_equal(result.numpy(), ~pixels)


def test_who_holds_all_buffers_gets_an_error_and_goes_on_after_it(on_gpu):
    iterator = iter(on_gpu(make(), buffers=2).as_tf_dataset())
    kept = [next(iterator), next(iterator)]
    with pytest.raises(tf.errors.ResourceExhaustedError):
        next(iterator)
    del kept[0]
    np.testing.assert_array_equal(next(iterator)[1].numpy(), expected(0)[2][1])


def test_a_function_loops_over_an_iterator(on_gpu):
    @tf.function
    def total(iterator):
        found = tf.constant(0, tf.int64)
        for images, labels in iterator:
            found += tf.reduce_sum(tf.cast(inverted(images), tf.int64)) + tf.reduce_sum(labels)
        return found

    dataset = on_gpu(make(), buffers=2).as_tf_dataset()
    for epoch in range(3):
        wanted = sum(int((~pixels).sum()) + int(labels.sum()) for pixels, labels in expected(epoch))
        assert int(total(iter(dataset))) == wanted


def test_epochs_are_the_loaders(on_gpu):
    loader = make()
    device = on_gpu(loader)
    dataset = device.as_tf_dataset()

    def labels(batches):
        return [np.array(labels).tolist() for _, labels in batches]

    wanted = [labels(expected(epoch)) for epoch in range(4)]
    assert [labels(dataset), labels(loader), labels(dataset)] == wanted[:3]
    assert labels(device.as_tf_dataset(epoch=3)) == wanted[3]
    assert labels(device.as_tf_dataset(epoch=1)) == wanted[1]


def test_fit_learns_the_same(on_gpu):
    def losses(dataset):
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(251)]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, jit_compile=False)
        return model.fit(dataset, epochs=3, verbose=0).history["loss"]

    with tf.device("/device:CPU:0" if STAND_IN else None):  # where the stand-in has no kernels
        learned = losses(on_gpu(make(), buffers=2).as_tf_dataset())
        np.testing.assert_allclose(learned, losses(make().as_tf_dataset()), rtol=1e-5)
    assert learned[2] < learned[0]


def test_each_replica_has_its_own_loader(gpus, on_gpu):
    """As docs/gpu.md has it: batches on each GPU, and in a step that runs on it."""
    strategy = tf.distribute.MirroredStrategy([f"GPU:{gpu}" for gpu in range(gpus)])

    def of_replica(context):
        rank = context.input_pipeline_id
        loader = make(rank=rank, world=gpus)
        return on_gpu(loader, rank, buffers=2).as_tf_dataset()

    options = tf.distribute.InputOptions(
        experimental_place_dataset_on_device=True,
        experimental_fetch_to_device=False,
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
    )
    dataset = strategy.distribute_datasets_from_function(of_replica, options)

    @tf.function
    def step(iterator):
        return strategy.run(lambda batch: (tf.bitwise.invert(batch[0]), batch[1]), args=(next(iterator),))

    for images, _ in dataset:
        for rank, part in enumerate(strategy.experimental_local_results(images)):
            assert part.device.endswith(f"GPU:{rank}")
    del images, part
    iterator = iter(dataset)
    wanted = [expected(1, rank=rank, world=gpus) for rank in range(gpus)]
    for batch in range(8):
        made = [strategy.experimental_local_results(part) for part in step(iterator)]
        for rank, (images, labels) in enumerate(zip(*made, strict=True)):
            pixels, numbers = wanted[rank][batch]
            np.testing.assert_array_equal(images.numpy(), ~pixels)
            np.testing.assert_array_equal(labels.numpy(), numbers)
        del made, images, labels
    with pytest.raises(tf.errors.OutOfRangeError):
        step(iterator)


@pytest.mark.parametrize(
    "step",
    [
        lambda dataset: dataset.map(lambda images, labels: (images, labels)),
        lambda dataset: dataset.take(1),
        lambda dataset: dataset.repeat(2),
    ],
)
def test_steps_that_tensorflow_has_for_the_cpu_are_refused(on_gpu, step):
    with pytest.raises(tf.errors.FailedPreconditionError, match="must be the last step"):
        next(iter(step(on_gpu(make()).as_tf_dataset())))


def test_a_loop_over_the_dataset_in_a_function_is_refused(on_gpu):
    dataset = on_gpu(make()).as_tf_dataset()

    @tf.function
    def count():
        found = tf.constant(0)
        for _ in dataset:
            found += 1
        return found

    with pytest.raises(tf.errors.FailedPreconditionError, match=r"loop over iter\(dataset\)"):
        count()


def test_an_iterator_cannot_be_saved(on_gpu, tmp_path):
    iterator = iter(on_gpu(make()).as_tf_dataset())
    next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match="SerializeIterator"):
        tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "at"))


def test_the_loaders_device_must_be_tensorflows(on_gpu, monkeypatch):
    device = on_gpu(make())
    monkeypatch.setattr(type(device), "device", property(lambda self: "cuda:9"))
    monkeypatch.setattr(_device_dataset, "_place", lambda name: "/device:GPU:0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="batches are on cuda:9, and TensorFlow"):
        device.as_tf_dataset()


def test_xla_compiles_a_step(on_gpu):
    @tf.function(jit_compile=True)
    def step(images):
        return tf.bitwise.invert(images)

    results = []
    for images, _ in on_gpu(make(batches=64), buffers=2).as_tf_dataset():
        results.append(step(images))
        del images
    for result, (pixels, _) in zip(results, expected(0, batches=64), strict=True):
        np.testing.assert_array_equal(result.numpy(), ~pixels)
