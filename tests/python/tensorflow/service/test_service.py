"""tf.data service, with the workers in processes of their own."""

import os
import pathlib
import re
import time

import compiled
import kills
import numpy as np
import pytest
import stoker.tensorflow
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distributed_save_op
from tensors import SIZE, arrays, noting, same
from workers import running

pytestmark = pytest.mark.long  # most tests start processes that import TensorFlow

service = tf.data.experimental.service


def distributed(dataset, target, mode, **options):
    return dataset.apply(service.distribute(mode, target, compression=None, **options))


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
    """One worker claims both batches; the others get the end."""
    with running("native", 3) as target:
        loader = make(batch_size=24)
        assert len(loader) == 2
        got = list(distributed(loader.as_tf_dataset(op="native"), target, service.ShardingPolicy.DYNAMIC))
        assert digests(got) == digests(arrays(loader.epoch(0)))


def test_sharding_off_gives_every_worker_the_whole_epoch(make, op):
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
        shared = distributed(unnamed, target, service.ShardingPolicy.DYNAMIC, max_outstanding_requests=1)
        got = []
        with pytest.raises(tf.errors.FailedPreconditionError, match="epoch=k"):
            for batch in shared:  # slowly: the second worker begins before the first has taken them all
                got.append(batch)
                time.sleep(0.1)
        assert len(got) < len(loader)


@pytest.mark.parametrize("mode", ["zip", "take"])
def test_dynamic_repetitions_that_end_early_begin_the_next_epoch(make, mode):
    with running("native", 1) as target:
        loader = make()
        dataset = loader.as_tf_dataset(op="native")
        if mode == "take":
            dataset = dataset.take(3)
        else:
            dataset = tf.data.Dataset.zip(dataset, tf.data.Dataset.range(3)).map(lambda batch, _: batch)
        got = arrays(distributed(dataset.repeat(2), target, service.ShardingPolicy.DYNAMIC))
        same(got, arrays(make().epoch(0))[:3] + arrays(make().epoch(1))[:3])
        got = arrays(distributed(loader.as_tf_dataset(op="native"), target, service.ShardingPolicy.DYNAMIC))
        same(got, arrays(make().epoch(2)))


@pytest.mark.parametrize("repetitions", [1, 2])
def test_distributed_save(make, op, tmp_path, repetitions):
    """A snapshot takes its splits from the same providers, and ends where they end."""
    dispatcher = service.DispatchServer(
        service.DispatcherConfig(port=0, work_dir=str(tmp_path / "work"), fault_tolerant_mode=True)
    )
    address = dispatcher.target.split("://")[1]
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=100))
    # A snapshot of repeat() has each epoch by itself; the fallback's share one.
    dataset = make().as_tf_dataset(epoch=None if op == "native" else 0, op=op).repeat(repetitions)
    path = tmp_path / "snapshot"
    distributed_save_op.distributed_save(dataset, str(path), address, compression=None)
    for _ in range(600):
        if (path / "DONE").exists() or (path / "ERROR").exists():
            break
        time.sleep(0.1)
    got = tf.data.Dataset.load(str(path), element_spec=dataset.element_spec)
    want = [b for k in range(repetitions) for b in arrays(make().epoch(k if op == "native" else 0))]
    assert digests(got) == digests(want)
    worker._stop()
    dispatcher._stop()


# --- states: workers that write a snapshot save their iterators ---------------------------------------


@pytest.fixture(scope="module")
def split_state():
    """The op of split_state.cc."""
    flags = [*tf.sysconfig.get_compile_flags(), "-fPIC", "-shared", "-w"]
    source = pathlib.Path(__file__).with_name("split_state.cc")
    command = [os.environ.get("CXX", "c++"), *flags, source, *tf.sysconfig.get_link_flags()]
    library = compiled.library("split_state", command, [source], tf.__version__)
    return tf.load_op_library(str(library)).stoker_test_split_state


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "^OK$"),
        ({"depth": 1}, "^OK$"),
        ({"world": 3}, "other options or samples: world was 1 and is 3. Give"),
        ({"world": 2, "batch_size": 4}, "batch_size was 8 and is 4; world was 1 and is 2. Give"),
        ({"seed": 6}, "seed was 5 and is 6. Give"),
    ],
)
@pytest.mark.parametrize("epoch", [None, 1])
def test_a_worker_refuses_what_another_world_has_saved(make, split_state, options, said, epoch):
    """Splits are batches of one world. No other checkpoint is offered: there symbolic ones would do."""
    saved = make().as_tf_dataset(op="native", epoch=epoch)
    restored = make(**options).as_tf_dataset(op="native", epoch=epoch)
    words = split_state(saved._variant_tensor, restored._variant_tensor, 2).numpy().decode()
    assert re.search(said, words), words
    assert "symbolic" not in words


def test_the_programs_own_iterator_cannot_be_saved(make, op, tmp_path):
    """TensorFlow's iterators over a service have no checkpoints: nothing of another world comes back."""
    with running(op, 1) as target:
        iterator = iter(distributed(make().as_tf_dataset(op=op), target, service.ShardingPolicy.OFF))
        next(iterator)
        with pytest.raises(tf.errors.UnimplementedError):
            tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))


# --- kills: kills.py measures many of them ------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    kills.write_photos(folder)
    return folder


@pytest.fixture(scope="module")
def place(request):
    with kills.running(request.param) as place:
        yield request.param, place


@pytest.mark.parametrize(
    ("place", "how"),
    [("native", "repeat"), ("native", "pinned loops"), ("fallback", "loops"), ("fallback", "pinned repeat")],
    indirect=["place"],
)
def test_a_killed_dispatcher_goes_on_where_it_was(place, photos, how):
    """In epochs 0, 1 and 2, one job after another through the same service.

    The dispatcher notes a split in its journal, then sends it: one killed in between loses that split, of
    any source. It is asked for one at a time here, so one is the most.
    """
    op, service_ = place
    lost = []
    for at in (23, 75, 149):
        outcome = kills.job(service_, kills.source_of(op, how, photos), how, "dispatcher", at)
        lost.append(outcome.lost)
        assert outcome._replace(lost=0) == kills.Outcome(lost=0, twice=0, strange=0, ended=True), at
    assert max(lost) <= 1 and min(lost) == 0, lost


@pytest.mark.parametrize("how", ["repeat", "loops"])
def test_a_killed_worker_loses_what_it_had_and_repeats_nothing(photos, how):
    with kills.running("native") as service_:
        for at in (23, 75, 149):
            outcome = kills.job(service_, kills.source_of("native", how, photos), how, "worker", at)
            assert (outcome.twice, outcome.strange, outcome.ended) == (0, 0, True)


def test_both_killed_at_once(photos):
    with kills.running("native") as service_:
        source = kills.source_of("native", "repeat", photos)
        outcome = kills.job(service_, source, "repeat", "dispatcher worker", 75)
        assert (outcome.twice, outcome.strange, outcome.ended) == (0, 0, True)


# --- Keras -------------------------------------------------------------------------------------------


def fit(loader, dataset, **options):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 3)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(kills.BATCHES * kills.ROWS),
        ]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callbacks = [stoker.tensorflow.follow_epochs(loader)]
    model.fit(dataset, verbose=0, callbacks=callbacks, **options)


def test_follow_epochs_says_that_the_service_does_not_follow(make, op):
    """OFF: the workers count in their own processes."""
    with running(op, 1) as target:
        loader = make()
        dataset = distributed(loader.as_tf_dataset(op=op), target, service.ShardingPolicy.OFF)
        with pytest.raises(stoker.FailedPreconditionError, match=r"(?s)next epoch to 3.*epoch=k"):
            fit(loader, dataset, initial_epoch=3, epochs=5)


def test_follow_epochs_says_that_a_dispatcher_elsewhere_does_not_follow(photos):
    with kills.running("native") as service_:
        loader = stoker.Loader(stoker.image_folder(photos), [stoker.Resize((SIZE, SIZE))], batch_size=8)
        dataset = distributed(
            loader.as_tf_dataset(op="native"), service_.target, service.ShardingPolicy.DYNAMIC
        )
        with pytest.raises(stoker.FailedPreconditionError, match="next epoch to 3"):
            fit(loader, dataset, initial_epoch=3, epochs=5)


def test_follow_epochs_follows_where_the_dispatcher_is_in_this_process(make):
    seen = []
    with running("native", 1) as target:
        loader = make()
        dataset = distributed(loader.as_tf_dataset(op="native"), target, service.ShardingPolicy.DYNAMIC)
        fit(loader, dataset.map(noting(seen)), initial_epoch=3, epochs=5)
    assert digests(seen) == digests(arrays(make().epoch(3)) + arrays(make().epoch(4)))
