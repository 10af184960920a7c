"""JAX takes the arrays, without a copy if it can. Skips if JAX is missing."""

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
jax = pytest.importorskip("jax", reason="JAX is not installed here")


@pytest.fixture
def loader(made):
    return stoker.Loader(
        stoker.image_folder(made), [stoker.RandomResizedCrop(64)], batch_size=8, shuffle=True, seed=1
    )


def test_dlpack_is_the_batchs_own_memory(loader):
    on_cpu = jax.devices("cpu")[0]
    kept = []
    for images, labels in loader:
        with jax.default_device(on_cpu):
            tensor = jax.dlpack.from_dlpack(images)
        assert tensor.unsafe_buffer_pointer() == images.ctypes.data
        kept.append((tensor, images.copy(), labels))
        del images
    assert loader.stats()["lent_batches"] == len(loader)  # JAX holds them
    for tensor, wanted, _ in kept:
        np.testing.assert_array_equal(np.asarray(tensor), wanted)
    del tensor, kept
    assert loader.stats()["lent_batches"] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_in_planes(made, dtype):
    loader = stoker.Loader(
        stoker.image_folder(made),
        [stoker.RandomResizedCrop(64)],
        batch_size=8,
        dtype=getattr(jax.numpy, dtype),
        layout="NCHW",
    )
    images, _ = next(iter(loader))
    tensor = jax.numpy.asarray(images)
    assert tensor.shape == (8, 3, 64, 64) and tensor.dtype == getattr(jax.numpy, dtype)
    np.testing.assert_array_equal(np.asarray(tensor), images)


def test_a_step_under_jit(loader):
    @jax.jit
    def step(images, labels):
        return images.astype("float32").mean() + labels.sum()

    for images, labels in loader:
        wanted = images.astype(np.float64).mean() + labels.sum()
        assert abs(float(step(jax.numpy.asarray(images), jax.numpy.asarray(labels))) - wanted) < 0.01


def test_a_batch_is_a_pytree(loader):
    @jax.jit
    def step(batch):
        return batch["image"].astype("float32").mean() + batch.label.sum()

    batch = next(iter(loader))
    doubled = jax.tree_util.tree_map(lambda column: column * 2, batch)
    assert type(doubled) is type(batch)
    np.testing.assert_array_equal(doubled["label"], batch["label"] * 2)
    placed = jax.device_put(batch)
    assert type(placed) is type(batch) and placed.label.shape == batch.label.shape
    wanted = batch.image.astype(np.float64).mean() + batch.label.sum()
    assert abs(float(step(batch)) - wanted) < 0.01
