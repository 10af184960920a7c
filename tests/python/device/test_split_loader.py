"""Loader.to_device with a list of devices: the parts are the batch, and JAX makes one array of them."""

import gc
import json
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TWO = ["host", "host"]


def make(folder, size=32, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(size)], **options)


def joined(batches):
    """Returns the columns of all parts, one after the other, as arrays that are kept."""
    return [
        tuple(np.concatenate([np.array(c) for c in columns]) for columns in zip(*parts)) for parts in batches
    ]


# --- the same batches -------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [["host"], TWO, ("host",) * 4])
@pytest.mark.parametrize("options", [{}, {"dtype": "float32", "layout": "NCHW"}, {"drop_remainder": True}])
def test_the_parts_are_the_batch(made, devices, options):
    loader = make(made, **options)
    there = loader.to_device(devices)
    assert len(there) == len(loader) and there.devices == tuple(devices) and there.loader is loader
    assert repr(there) == f"{loader!r}.to_device({list(devices)!r})"
    same(joined(there.epoch(2)), taken(loader.epoch(2)))
    for parts in there.epoch(0):
        assert type(parts) is tuple and len(parts) == len(devices)
        assert {part.image.device for part in parts} == {"host"}
    assert len(there.stats()["device"]) == len(devices)


@pytest.mark.parametrize("mix", [stoker.MixUp(), stoker.CutMix()])
def test_mixed_rows(made, mix):
    """Rows of different parts are mixed with each other."""
    transforms = [stoker.RandomResizedCrop(16), stoker.RandomErasing(0.5), mix]
    loader = stoker.Loader(stoker.image_folder(made), transforms, batch_size=8, dtype="float32")
    same(joined(loader.to_device(TWO).epoch(0)), taken(loader.epoch(0)))


def test_rows_of_a_short_batch():
    rows = np.arange(19, dtype="int16")
    loader = stoker.Loader(stoker.arrays(rows), batch_size=8)
    shapes = [[part.shape for part in parts] for parts in loader.to_device(["host"] * 4)]
    assert shapes == [[(2,)] * 4, [(2,)] * 4, [(1,), (1,), (1,), (0,)]]
    values = [np.array(part) for parts in loader.to_device(["host"] * 4) for part in parts]
    np.testing.assert_array_equal(np.concatenate(values), rows)


def test_ids_and_paths_are_those_of_the_rows(made):
    loader = make(made, sample_ids=True, paths=True)
    whole, split = iter(loader.epoch(0)), iter(loader.to_device(TWO).epoch(0))
    for _ in range(len(loader)):
        batch, parts = next(whole), next(split)
        for name in ("sample_id", "path"):
            assert [*batch[name]] == [one for part in parts for one in part[name]]
        np.testing.assert_array_equal(whole.sample_ids, split.sample_ids)
        np.testing.assert_array_equal(split.sample_ids, batch["sample_id"])


def test_what_cannot_be_split_is_refused(made):
    loader = make(made)
    for wrong in ([], ["host"] * 3, ["host", "cpu"], ["cpu", "cpu"], ["host", "gpu"]):
        with pytest.raises(ValueError):
            loader.to_device(wrong)
    with pytest.raises(ValueError, match="a batch of 8 rows cannot be split among 3 devices"):
        loader.to_device(["host"] * 3)
    with pytest.raises(ValueError, match=r'not split on the CPU.*use "host"'):
        loader.to_device(["cpu", "cpu"])
    for wrong in ([0], [None], {"host"}, ["host", b"host"]):
        with pytest.raises(TypeError, match="or a list of them"):
            loader.to_device(wrong)
    split = loader.to_device(TWO)
    with pytest.raises(TypeError, match="MirroredStrategy"):
        split.as_tf_dataset()
    with pytest.raises(ValueError, match="no CUDA streams"):
        next(iter(split))[1].record_stream(1)


def test_no_cuda_says_which(made):
    try:
        split = make(made).to_device(["cuda:0", "cuda:1"])
    except stoker.FailedPreconditionError as error:
        assert "cuda:" in str(error)
    else:
        assert split.devices == ("cuda:0", "cuda:1")


# --- epochs, state and the end ----------------------------------------------------------------------


def test_epochs_and_states_are_the_loaders(made):
    loader, wanted = make(made), make(made)
    split = loader.to_device(TWO)
    same(joined(split), taken(wanted))
    same(taken(loader), taken(wanted))
    for n, _ in enumerate(split):
        if n == 2:
            break
    state = json.loads(json.dumps(split.state_dict()))
    assert (state["epoch"], state["batch"]) == (2, 3)
    again = make(made).to_device(["host"] * 4)
    again.load_state_dict(state)
    same(joined(again), taken(wanted.epoch(2))[3:])
    whole = make(made)
    whole.load_state_dict(state)
    same(taken(whole), taken(wanted.epoch(2))[3:])


def test_a_part_that_is_kept_keeps_its_device_full(made):
    split = make(made).to_device(TWO, buffers=2)
    iterator = iter(split)
    kept = [next(iterator)[1] for _ in range(2)]
    with pytest.raises(stoker.ResourceExhaustedError, match=r"2 batches on host.*raise buffers"):
        next(iterator)
    assert split.state_dict()["batch"] == 2
    wanted = [np.array(part.image) for part in kept]
    del split
    images = [part.image for part in kept]
    del kept
    gc.collect()
    for image, values in zip(images, wanted):
        np.testing.assert_array_equal(np.asarray(image), values)
    del images, image
    next(iterator)


def test_stats_are_those_of_all_devices(made):
    loader = make(made)
    split = loader.to_device(TWO, buffers=3)
    assert sum(1 for _ in split) == len(loader)
    stats = split.stats()
    assert stats["device"] == ("host", "host") and stats["batches"] >= len(loader)
    assert stats["copied_batches"] >= len(loader)
    assert stats["device_bytes"] >= 2 * 3 * 4 * 32 * 32 * 3
    assert stats["copied_bytes"] >= 60 * 32 * 32 * 3
    assert "stoker" in split.prometheus()
    assert split.stats()["batch_bytes"] == loader.to_device("host").stats()["batch_bytes"], "one memory"


def test_close_ends_it_and_leaves_the_loader(made):
    loader = make(made)
    with loader.to_device(TWO) as split:
        iterator = iter(split)
        parts = next(iterator)
    for iterable in (iterator, split, split.epoch(1)):
        with pytest.raises(stoker.CancelledError, match="closed"):
            next(iter(iterable))
    assert all(np.asarray(part.image).sum() > 0 for part in parts)
    assert len(list(loader)) == len(loader)


def test_threads_share_an_iterator(made):
    loader = make(made)
    iterator = iter(loader.to_device(TWO, buffers=8))
    seen = []

    def work():
        for parts in iterator:
            seen.append(b"".join(np.from_dlpack(part.image).tobytes() for part in parts))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(images.tobytes() for images, _ in loader.epoch(0))


HEAD = """
import faulthandler, sys
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np
import stoker
loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], batch_size=4)
split = loader.to_device(["host", "host"], buffers=64)
"""


def run(program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.parametrize(
    "program",
    [
        "iterator = iter(split); one, two = next(iterator)",
        "kept = [parts[1] for parts in split]; del loader, split",
        "kept = [np.from_dlpack(parts[1].image) for parts in split]; sys.modules['kept'] = kept",
        "class Cycle: pass\nc = Cycle(); c.me = c; c.iterator = iter(split); c.parts = next(c.iterator)",
    ],
)
def test_leaving_with_live_parts(made, program):
    assert run(HEAD + textwrap.dedent(program), str(made)) == ""


# --- JAX --------------------------------------------------------------------------------------------


def test_jax_makes_one_array_of_the_parts(made):
    """On two of JAX's CPU devices. They are made when JAX is imported, so in a process of its own."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    program = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, numpy as np, stoker
from jax.sharding import Mesh, NamedSharding, PartitionSpec
devices = jax.devices()
assert len(devices) == 2
by_rows = NamedSharding(Mesh(devices, ("batch",)), PartitionSpec("batch"))

def whole(*parts):
    arrays = [jax.device_put(jax.dlpack.from_dlpack(p), d) for p, d in zip(parts, devices)]
    shape = (sum(len(array) for array in arrays), *arrays[0].shape[1:])
    return jax.make_array_from_single_device_arrays(shape, by_rows, arrays)

loader = stoker.Loader(
    stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], batch_size=8, shuffle=True,
    dtype="float32", drop_remainder=True)

@jax.jit
def step(batch):
    return batch.image.mean(), batch["label"].sum()

steps = 0
for parts, wanted in zip(loader.to_device(["host", "host"]).epoch(0), loader.epoch(0)):
    batch = jax.tree.map(whole, *parts)
    assert type(batch) is type(wanted) and batch.image.sharding == by_rows
    for shard, part in zip(batch.image.addressable_shards, parts):
        assert np.array_equal(shard.data, np.asarray(part.image))
    assert np.array_equal(batch.image, wanted.image) and np.array_equal(batch.label, wanted.label)
    mean, labels = step(batch)
    assert abs(float(mean) - wanted.image.mean()) < 1e-4 and int(labels) == wanted.label.sum()
    steps += 1
print(steps == len(loader))
"""
    assert run(program, str(made)) == "True\n"
