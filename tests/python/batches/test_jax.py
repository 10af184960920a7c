"""JAX takes the arrays, without a copy if it can. Skips if JAX is missing."""

import gc
import itertools
import os
import pickle
import weakref

import numpy as np
import pytest

# This must come before JAX looks at its devices.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

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


# --- tensors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "host"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_jax_takes_tensors(made, device, dtype):
    loader = stoker.Loader(stoker.image_folder(made), [stoker.Resize((8, 8))], batch_size=4, dtype=dtype)
    batch = next(iter(loader.to_device(device)))
    wanted = np.asarray(batch.image)
    assert isinstance(batch.image.dtype, np.dtype) and batch.image.dtype == wanted.dtype == dtype
    functions = {
        "asarray": jax.numpy.asarray,
        "device_put": jax.device_put,
        "jit": jax.jit(lambda image: image),
        "vmap": jax.vmap(lambda image: image * 1),
        "put elsewhere": lambda image: jax.device_put(image, jax.devices()[1]),
        "tree": lambda image: jax.tree.map(jax.numpy.asarray, {"image": image})["image"],
    }
    for name, function in functions.items():
        array = function(batch.image)
        assert isinstance(array, jax.Array) and array.dtype == dtype, name
        assert np.array_equal(np.asarray(array), wanted), name
    shared = jax.numpy.asarray(batch.image)
    assert shared.unsafe_buffer_pointer() == wanted.ctypes.data and not shared.committed
    images, labels = jax.jit(lambda batch: (batch["image"], batch.label))(batch)
    assert np.array_equal(np.asarray(images), wanted) and labels.tolist() == np.asarray(batch.label).tolist()


def test_to_jax_has_the_loaders_batches(made):
    """Memory is shared, epochs and states are the loader's, and text stays text."""
    folder = stoker.image_folder(made)
    paths = [folder.path(i) for i in range(10)]
    source = stoker.files(paths, range(10), columns={"text": list("abcdefghij")})
    loader = stoker.Loader(
        source, [stoker.RandomResizedCrop(8)], batch_size=4, shuffle=True, sample_ids=True, paths=True
    )
    ours = loader.to_jax()
    with pytest.raises(TypeError, match="pickle its `loader`"):
        pickle.dumps(ours)
    assert len(ours) == 3 and repr(ours).startswith(repr(loader)[:20]) and ours.loader is loader
    for epoch in range(2):
        for batch, wanted in itertools.zip_longest(ours, loader.epoch(epoch)):
            assert batch.keys() == wanted.keys()
            assert all(isinstance(batch[name], jax.Array) for name in ("image", "label", "sample_id"))
            for column, other in zip(batch, wanted):
                assert column == other if isinstance(column, list) else np.array_equal(column, other)
    iterator = iter(ours)
    next(iterator)
    assert (ours.state_dict()["epoch"], ours.state_dict()["batch"]) == (2, 1)
    again = stoker.Loader(source, [stoker.RandomResizedCrop(8)], batch_size=4, shuffle=True).to_jax()
    again.load_state_dict(loader.state_dict())
    assert [b.label.tolist() for b in again] == [b.label.tolist() for b in iterator]
    (only,) = stoker.Loader(stoker.arrays(np.arange(5.0, dtype="float32")), batch_size=5).to_jax()
    assert isinstance(only, jax.Array) and only.tolist() == [0, 1, 2, 3, 4]


def sharding(shape, names, *spec):
    devices = np.array(jax.devices("cpu")[: np.prod(shape)]).reshape(shape)
    return jax.sharding.NamedSharding(jax.sharding.Mesh(devices, names), jax.sharding.PartitionSpec(*spec))


@pytest.mark.parametrize("copied_by", ["JAX", "stoker"])
def test_to_jax_divides_rows(made, monkeypatch, copied_by):
    if copied_by == "stoker":  # the device "host" instead of GPUs
        monkeypatch.setattr(stoker._jax, "_name_of", lambda device: "host")
    loader = stoker.Loader(
        stoker.image_folder(made), [stoker.RandomResizedCrop(8)], batch_size=8, shuffle=True, sample_ids=True
    )  # fmt: skip
    reversed_rows = jax.sharding.NamedSharding(
        jax.sharding.Mesh(jax.devices("cpu")[:4][::-1], ("b",)), jax.sharding.PartitionSpec("b")
    )
    shardings = [
        sharding(4, ("b",), "b"),
        reversed_rows,
        sharding((2, 2), ("b", "m"), "b"),  # the same rows on two devices
        sharding(2, ("b",)),  # all rows on each
        sharding((2, 2), ("b", "m"), ("b", "m")),
        jax.sharding.SingleDeviceSharding(jax.devices("cpu")[2]),
    ]
    for each in shardings:
        for batch, wanted in itertools.zip_longest(loader.to_jax(each).epoch(1), loader.epoch(1)):
            for column, other in zip(batch, wanted):
                assert column.sharding.is_equivalent_to(each, column.ndim), each
                assert np.array_equal(np.asarray(column), other), each
                for shard in column.addressable_shards:
                    assert np.array_equal(np.asarray(shard.data), other[shard.index]), each


def test_a_cycle_through_an_iterator_is_collected(loader):
    ours = loader.to_jax()
    ours.iterator = iter(ours)
    gone = weakref.ref(ours)
    del ours
    gc.collect()
    assert gone() is None
    ours = loader.to_jax()
    ours.iterator = iter(ours)
    next(ours.iterator)
    gone = weakref.ref(ours)
    del ours
    gc.collect()
    assert gone() is None


def test_shardings_that_are_wrong(made):
    def make(source=None, **options):
        source = source or stoker.image_folder(made)
        return stoker.Loader(source, [stoker.Resize((8, 8))], **{"batch_size": 8, **options})

    by_rows = sharding(4, ("b",), "b")
    with pytest.raises(TypeError, match=r"must be a jax\.sharding\.Sharding"):
        make().to_jax("cpu")
    counted = stoker.arrays(np.zeros((9, 4), np.float32), np.full(9, 5))
    with pytest.raises(ValueError, match="batch_tokens makes batches of any number of rows, and 4 devices"):
        stoker.Loader(counted, batch_tokens=20, tokens="label").to_jax(by_rows)
    rest = make(source=stoker.image_folder(made).subset(range(58)))
    with pytest.raises(ValueError, match="the last batch has 2 rows, and 4 devices"):
        rest.to_jax(by_rows)
    replicated = sharding(4, ("b",))
    for loader in (rest, make(batch_size=4, on_bad="drop")):
        for batch, wanted in itertools.zip_longest(loader.to_jax(replicated), loader.epoch(0)):
            assert np.array_equal(np.asarray(batch.image), wanted.image)
    with pytest.raises(ValueError, match="on_bad may drop rows"):
        make(batch_size=4, on_bad="drop").to_jax(by_rows)
    with pytest.raises(ValueError, match="evenly divide"):
        make(batch_size=6).to_jax(by_rows)


def test_batches_that_differ_in_size_are_divided_by_rows(made):
    steps = [stoker.Resize(40, max_size=64), stoker.PadTo("batch", multiple=8)]
    loader = stoker.Loader(stoker.image_folder(made), steps, batch_size=8, drop_remainder=True)
    mesh = jax.sharding.Mesh(np.asarray(jax.devices("cpu")).reshape(2, 2), ("a", "b"))

    def sharding(*axes):
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))

    rows = loader.to_jax(sharding(("a", "b")))
    for wanted, got in zip(loader.epoch(0), rows.epoch(0), strict=True):
        assert np.array_equal(wanted[0], np.asarray(got[0]))
    for axes in [("a", "b"), (None, None, ("a", "b")), (None, "a", "b")]:
        with pytest.raises(stoker.UnimplementedError, match="divides the height or width"):
            loader.to_jax(sharding(*axes))
    qwen = stoker.processor({"image_processor_type": "Qwen2VLImageProcessor"}, max_pixels=56 * 56 * 4)
    options = {"batch_size": 8, "drop_remainder": True, "padding": "longest"}
    padded = stoker.Loader(loader.source, [qwen], **options)
    for wanted, got in zip(padded.epoch(0), padded.to_jax(sharding(("a", "b"))).epoch(0), strict=True):
        assert np.array_equal(wanted.pixel_values, np.asarray(got.pixel_values))
        assert np.array_equal(wanted.pixel_attention_mask, np.asarray(got.pixel_attention_mask))
    with pytest.raises(
        stoker.UnimplementedError, match=r"divides the length of rows.*Iterate over the loader"
    ):
        padded.to_jax(sharding("a", "b"))


def test_processes_have_rows_of_one_size(made, monkeypatch):
    class Device:
        def __init__(self, process_index):
            self.process_index = process_index

    sharding = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    monkeypatch.setattr(type(sharding), "device_set", {Device(0), Device(1)})
    steps = [stoker.Resize(40, max_size=64), stoker.PadTo("batch")]
    loader = stoker.Loader(stoker.image_folder(made), steps, batch_size=8)
    with pytest.raises(stoker.UnimplementedError, match="those of 2 processes differ"):
        loader.to_jax(sharding)
    siglip = stoker.processor({"image_processor_type": "Siglip2ImageProcessor"})
    options = {"batch_tokens": 256, "buckets": stoker.Buckets((16, 64))}
    loader = stoker.Loader(stoker.image_folder(made), [siglip], **options)
    with pytest.raises(stoker.UnimplementedError, match=r"from batch to batch.* with 2 processes yet"):
        loader.to_jax(sharding)
