"""Boxes and other values of objects as JAX's arrays. Skips if JAX is missing."""

import os

import numpy as np
import PIL.Image
import pytest

# This must come before JAX looks at its devices.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
jax = pytest.importorskip("jax", reason="JAX is not installed here")

COUNTS = [3, 0, 2, 1, 5, 0, 4, 1]
RANDOM = np.random.default_rng(5)
BOXES = [np.sort(RANDOM.integers(0, 8, (n, 2, 2)), 1).reshape(n, 4).astype(np.float32) for n in COUNTS]
LABELS = [RANDOM.integers(0, 90, n).astype(np.int32) for n in COUNTS]


@pytest.fixture
def loader(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(len(COUNTS))]
    for path in paths:
        PIL.Image.fromarray(RANDOM.integers(0, 256, (8, 8, 3), np.uint8)).save(path)
    columns = {"boxes": stoker.Boxes(BOXES), "labels": stoker.PerObject(LABELS)}
    source = stoker.files(paths, columns=columns)
    return stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=4, shuffle=True, seed=1)


def check(batch, ids):
    for ragged, rows in ((batch.boxes, BOXES), (batch.labels, LABELS)):
        for row, sample in zip(ragged, ids, strict=True):
            np.testing.assert_array_equal(np.asarray(row), rows[sample], strict=True)


def test_batches_have_its_arrays(loader):
    iterator = iter(loader.to_jax())
    for batch in iterator:
        assert isinstance(batch.boxes.values, jax.Array) and isinstance(batch.boxes.offsets, jax.Array)
        check(batch, iterator.sample_ids)
        assert batch.boxes.offsets.dtype == (np.int64 if jax.config.jax_enable_x64 else np.int32)
        dense = batch.labels.padded(6, fill=-1)
        assert isinstance(dense, jax.Array) and dense.shape == (4, 6) and dense.dtype == np.int32
        assert dense.sharding == batch.labels.values.sharding
        wanted = [[*LABELS[i].tolist(), *[-1] * (6 - COUNTS[i])] for i in iterator.sample_ids]
        assert dense.tolist() == wanted
        with pytest.raises(ValueError, match="more than most"):
            batch.labels.padded(0)


def test_on_the_device_of_a_sharding(loader):
    device = jax.devices()[2]
    for batch in loader.to_jax(sharding=jax.sharding.SingleDeviceSharding(device)):
        assert batch.boxes.values.devices() == batch.labels.offsets.devices() == {device}


def test_several_devices_are_refused(loader):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    with pytest.raises(stoker.UnimplementedError, match="'boxes' have different numbers of objects"):
        loader.to_jax(sharding=sharding)


@pytest.mark.parametrize("make", [lambda loader: loader, lambda loader: loader.to_device("cpu")])
def test_a_batch_is_a_pytree(loader, make):
    @jax.jit
    def total(batch):
        return batch.boxes.values.sum() + batch["labels"].values.sum() + batch.labels.offsets[-1]

    iterator = iter(make(loader))
    for batch in iterator:
        ids = iterator.sample_ids
        wanted = sum(BOXES[i].sum() + LABELS[i].sum() + COUNTS[i] for i in ids)
        assert float(total(batch)) == wanted
        placed = jax.device_put(batch)
        assert type(placed) is type(batch) and isinstance(placed.boxes, stoker.Ragged)
        check(placed, ids)
