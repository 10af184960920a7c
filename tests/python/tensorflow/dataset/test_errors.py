"""Errors are TensorFlow's classes with stoker's messages, and the iteration continues after them."""

import gc
import shutil
import weakref

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import arrays, same


@pytest.fixture
def corrupt(made, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(made, folder)
    broken = sorted(folder.rglob("*.jpg"))[20]
    broken.write_bytes(broken.read_bytes()[:64])
    return folder, broken


def test_a_corrupt_file_is_named_and_passed(make, op, corrupt):
    folder, broken = corrupt
    loader = make(folder, shuffle=False)
    iterator = iter(loader.as_tf_dataset(op=op))
    got = []
    for index in range(6):
        if index == 2:
            with pytest.raises(tf.errors.DataLossError, match=broken.name):
                next(iterator)
        else:
            got.append(tuple(np.array(column) for column in next(iterator)))
    with pytest.raises(StopIteration):
        next(iterator)
    want = [batch for index, batch in enumerate(arrays(make(shuffle=False).epoch(0))) if index != 2]
    same(got, want)


def test_in_fit_and_behind_other_steps(make, op, corrupt):
    folder, broken = corrupt
    dataset = make(folder).as_tf_dataset(op=op)
    with pytest.raises(tf.errors.DataLossError, match=broken.name):
        list(dataset.map(lambda x, y: x).prefetch(2))
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(tf.errors.DataLossError, match=broken.name):
        model.fit(dataset, verbose=0)


@pytest.mark.parametrize("on_bad", ["substitute", "drop"])
def test_fit_goes_on_without_the_bad_sample(make, op, corrupt, on_bad):
    folder, _ = corrupt
    options = {"on_bad": on_bad, "max_bad_fraction": 1}
    dataset = make(folder, **options).as_tf_dataset(op=op)
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.fit(dataset, epochs=2, verbose=0).history["loss"]) == 2
    loader = make(folder, **options)
    same(arrays(loader.as_tf_dataset(epoch=1, op=op)), arrays(make(folder, **options).epoch(1)))


def test_a_batch_that_loses_all_rows_is_left_out(make, op, corrupt):
    folder, _ = corrupt
    loader = make(folder, shuffle=False, batch_size=1, on_bad="drop")
    dataset = loader.as_tf_dataset(op=op, sample_ids=True)
    assert dataset.element_spec["image"].shape[0] is None
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    samples = len(make(folder, batch_size=1))
    assert [int(batch["sample_id"][0]) for batch in dataset] == [i for i in range(samples) if i != 20]


def test_ignore_errors(make, op, corrupt):
    folder, _ = corrupt
    assert len(list(make(folder).as_tf_dataset(op=op).ignore_errors())) == 5


def test_a_bad_first_file_costs_its_batch_only(make, op, made, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(made, folder)
    sorted(folder.rglob("*.jpg"))[0].write_bytes(b"no photograph")
    dataset = make(folder, shuffle=False).as_tf_dataset(op=op)
    same(arrays(dataset.ignore_errors()), arrays(make(shuffle=False).epoch(0))[1:])
    iterator = iter(dataset)
    with pytest.raises(tf.errors.DataLossError):
        next(iterator)
    same(arrays(iterator), arrays(make(shuffle=False).epoch(1))[1:])


def test_ignore_errors_ends_where_the_same_error_comes_for_ever(make):
    loader = make(lent_batches=1, depth=1)
    kept = []
    with pytest.raises(tf.errors.CancelledError, match="the same 1000 times"):
        for batch in loader.as_tf_dataset(op="native").ignore_errors():
            kept.append(batch)


def test_a_limit_keeps_its_class_while_a_program_makes_room(make):
    """A user's loop that needs several attempts, and then has every batch."""
    loader = make(lent_batches=3, depth=1)
    iterator = iter(loader.as_tf_dataset(op="native"))
    kept, got, refusals = [], [], 0
    while True:
        try:
            kept.append(next(iterator))
            got.append(tuple(np.array(column) for column in kept[-1]))
        except StopIteration:
            break
        except tf.errors.ResourceExhaustedError:
            refusals += 1
            if refusals % 5 == 0:
                kept.clear()
    assert refusals == 5
    same(got, arrays(make().epoch(0)))


def test_a_loader_that_was_closed(make, op):
    loader = make()
    iterator = iter(loader.as_tf_dataset(op=op))
    next(iterator)
    loader.close()
    with pytest.raises(tf.errors.CancelledError):
        for _ in range(7):
            next(iterator)


@pytest.mark.long
def test_another_process_that_cannot_see_the_folder(make, op, tmp_path, made, python):
    folder = tmp_path / "gone"
    shutil.copytree(made, folder)
    saved = tmp_path / "graph"
    script = python("elsewhere.py", op, "write", folder, saved)
    assert "written" in script
    shutil.rmtree(folder)
    assert "NotFoundError" in python("elsewhere.py", op, "read", folder, saved)


def some_arrays():
    return stoker.Loader(stoker.arrays(np.arange(24, dtype=np.int64).reshape(12, 2)), batch_size=4)


def test_arrays_made_inside_a_traced_function(op):
    """The graph runs after the call that made the loader has returned; it keeps the loader."""

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for rows in some_arrays().as_tf_dataset(op=op):
            result += tf.reduce_sum(rows)
        return result

    for _ in range(2):
        assert int(total()) == sum(range(24))
        gc.collect()


def test_arrays_made_inside_flat_map(op):
    dataset = tf.data.Dataset.range(3).flat_map(lambda _: some_arrays().as_tf_dataset(op=op))
    gc.collect()
    assert sum(int(tf.reduce_sum(rows)) for rows in dataset) == 3 * sum(range(24))
    iterator = iter(dataset.map(lambda rows: 2 * rows).prefetch(1))
    del dataset
    gc.collect()
    assert sum(int(tf.reduce_sum(rows)) for rows in iterator) == 6 * sum(range(24))


def test_the_loader_goes_with_the_function_that_kept_it(op):
    alive = []

    @tf.function
    def first():
        loader = some_arrays()
        alive.append(weakref.ref(loader))
        return next(iter(loader.as_tf_dataset(op=op)))

    first()
    assert alive[0]() is not None
    del first
    gc.collect()
    assert alive[0]() is None
