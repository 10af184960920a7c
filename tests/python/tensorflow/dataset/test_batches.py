"""The dataset's elements are the loader's batches, in every way that tf.data is used."""

import gc
import os
import threading

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import SIZE, arrays, noting, same


def epochs_of(loader, count):
    return [batch for epoch in range(count) for batch in arrays(loader.epoch(epoch))]


def test_element_spec_and_cardinality(make, op):
    dataset = make().as_tf_dataset(op=op)
    assert isinstance(dataset, tf.data.Dataset)
    images, labels = dataset.element_spec
    assert images == tf.TensorSpec((8, SIZE, SIZE, 3), tf.uint8)
    assert labels == tf.TensorSpec((8,), tf.int64)
    assert dataset.cardinality() == len(dataset) == 6


def test_the_rows_are_unknown_only_where_a_batch_is_short(make, op):
    assert make(batch_size=10).as_tf_dataset(op=op).element_spec[0].shape[0] is None
    assert make(batch_size=10, drop_remainder=True).as_tf_dataset(op=op).element_spec[0].shape[0] == 10
    assert make(batch_size=24, world=2, rank=1).as_tf_dataset(op=op).element_spec[0].shape[0] == 24
    short = make(batch_size=10)
    same(arrays(short.as_tf_dataset(op=op)), epochs_of(short, 1))


def test_the_rows_are_unknown_where_batches_have_a_number_of_tokens(op):
    values, tokens = np.arange(60, dtype=np.float32).reshape(30, 2), np.arange(30) % 9
    options = {"batch_tokens": 20, "tokens": "label", "shuffle": True}
    loader = stoker.Loader(stoker.arrays(values, tokens), **options)
    dataset = loader.as_tf_dataset(op=op)
    assert dataset.element_spec == (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.int64))
    assert len(dataset) == len(loader)
    same(arrays(dataset), epochs_of(stoker.Loader(stoker.arrays(values, tokens), **options), 1))


def test_float_images(make, op):
    dataset = make(dtype="float32").as_tf_dataset(op=op)
    assert dataset.element_spec[0].dtype == tf.float32
    same(arrays(dataset), epochs_of(make(dtype="float32"), 1))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_sixteen_bits_in_planes(make, op, dtype):
    dataset = make(dtype=dtype, layout="NCHW").as_tf_dataset(op=op)
    assert dataset.element_spec[0] == tf.TensorSpec((8, 3, SIZE, SIZE), dtype)
    floats = make(dtype="float32", layout="NCHW").as_tf_dataset(op=op)
    batches = list(dataset)
    for (images, _), (wanted, _) in zip(batches, floats):
        assert bool(tf.reduce_all(images == tf.cast(wanted, dtype)))
    same(arrays(batches), epochs_of(make(dtype=dtype, layout="NCHW"), 1))


def test_images_without_labels(made, op):
    loader = stoker.Loader(stoker.image_folder(made / "class00"), [stoker.Resize((SIZE, SIZE))], batch_size=4)
    dataset = loader.as_tf_dataset(op=op)
    assert dataset.element_spec == tf.TensorSpec((4, SIZE, SIZE, 3), tf.uint8)
    same([(images,) for images in dataset], [(np.array(images),) for images in loader.epoch(0)])
    loader = None  # the dataset keeps it
    gc.collect()
    assert len(list(dataset)) == 4


def test_three_loops(make, op):
    dataset = make().as_tf_dataset(op=op)
    same([batch for _ in range(3) for batch in arrays(dataset)], epochs_of(make(), 3))


def test_repeat(make, op):
    same(arrays(make().as_tf_dataset(op=op).repeat(3)), epochs_of(make(), 3))


def test_fit_takes_epoch_after_epoch(make, op):
    seen = []

    small_model().fit(make().as_tf_dataset(op=op).map(noting(seen)), epochs=3, verbose=0)
    same(seen, epochs_of(make(), 3))


def test_a_pinned_epoch_is_that_epoch_each_time(make, op):
    loader = make()
    dataset = loader.as_tf_dataset(epoch=2, op=op)
    want = arrays(loader.epoch(2))
    same(arrays(dataset), want)
    same(arrays(dataset.repeat(2)), want + want)
    same(arrays(loader), epochs_of(make(), 1))  # the loader's own count was left alone


def test_an_iterator_that_is_not_used_takes_no_epoch(make, op):
    dataset = make().as_tf_dataset(op=op)
    iter(dataset)
    iterator = iter(dataset)
    same(arrays(iterator), epochs_of(make(), 1))


@pytest.mark.parametrize("epoch", [-1, 2**32, 1.5, "1"])
def test_wrong_epochs(make, epoch):
    with pytest.raises((ValueError, TypeError), match="epoch"):
        make().as_tf_dataset(epoch=epoch)


def test_wrong_op(make):
    with pytest.raises((ValueError, TypeError), match="op"):
        make().as_tf_dataset(op="fast")


def small_model():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 3)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(3),
        ]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def test_predict(make, op):
    assert small_model().predict(make().as_tf_dataset(op=op), verbose=0).shape == (48, 3)


def test_in_a_tf_function(make, op):
    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for _, labels in dataset:
            result += tf.reduce_sum(labels)
        return result

    loader = make()
    want = sum(int(labels.sum()) for _, labels in loader.epoch(0))
    assert total(loader.as_tf_dataset(op=op)) == want


def test_break_in_a_tf_function(make, op):
    @tf.function
    def count(dataset):
        batches = tf.constant(0)
        for _, _ in dataset:
            batches += 1
            if batches == 2:
                break
        return batches

    assert count(make().as_tf_dataset(op=op)) == 2


def test_xla_sees_static_shapes(make, op):
    @tf.function(jit_compile=True)
    def mean(images):
        return tf.reduce_mean(tf.cast(images, tf.float32))

    loader = make()
    dataset = loader.as_tf_dataset(op=op)
    for images, (want, _) in zip(dataset.map(lambda images, _: images), loader.epoch(0)):
        assert images.shape == (8, SIZE, SIZE, 3)
        assert abs(float(mean(images)) - want.mean()) < 1e-2


def test_two_iterators_at_once(make, op):
    dataset = make().as_tf_dataset(op=op)
    first, second = iter(dataset), iter(dataset)
    taken = [(np.array(next(first)[0]), np.array(next(second)[0])) for _ in range(6)]
    want = [images for images, _ in epochs_of(make(), 2)]
    same([t[:1] for t in taken], [(w,) for w in want[:6]])
    same([t[1:] for t in taken], [(w,) for w in want[6:]])


def test_methods_of_tf_data(make, op):
    loader = make()
    want = epochs_of(loader, 1)
    pinned = loader.as_tf_dataset(epoch=0, op=op)
    same(arrays(pinned.take(2)), want[:2])
    same(arrays(pinned.skip(4)), want[4:])
    same(arrays(pinned.shard(3, 1)), want[1::3])
    same(arrays(pinned.prefetch(tf.data.AUTOTUNE)), want)
    same(arrays(pinned.map(lambda x, y: (x, y), num_parallel_calls=tf.data.AUTOTUNE)), want)
    cached = pinned.cache()
    same(arrays(cached), want)
    same(arrays(cached), want)
    assert len(list(pinned.unbatch())) == 48
    assert sorted(int(y[0]) for _, y in pinned.shuffle(6)) == sorted(int(y[0]) for _, y in want)
    same(arrays(tf.data.Dataset.zip(pinned, tf.data.Dataset.range(9)).map(lambda b, _: b)), want)
    interleaved = tf.data.Dataset.range(2).interleave(lambda _: pinned, num_parallel_calls=2)
    assert len(list(interleaved)) == 12


def test_graph_mode_with_an_initialisable_iterator(make, op):
    loader = make()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        iterator = tf.compat.v1.data.make_initializable_iterator(loader.as_tf_dataset(op=op))
        following = iterator.get_next()
        got = []
        for _ in range(2):
            session.run(iterator.initializer)
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    got.append(session.run(following))
    same(got, epochs_of(make(), 2))


def test_early_break_and_an_exception_in_the_step(make, op):
    dataset = make().as_tf_dataset(op=op)
    for _ in dataset:
        break
    with pytest.raises(ZeroDivisionError):
        for _ in dataset:
            1 / 0  # noqa: B018
    same(arrays(dataset), arrays(make().epoch(2)))


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.long
def test_many_epochs_do_not_grow(make, op):
    loader = make()
    dataset = loader.as_tf_dataset(op=op)

    def run(epochs):
        for _ in range(epochs):
            for _ in dataset:
                pass
        gc.collect()
        return threading.active_count(), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    before = run(50)
    memory = resident()
    after = run(150)
    assert after[0] <= before[0] and after[2] <= before[2]
    assert after[1] <= before[1] + 4  # TensorFlow's own pools come and go
    assert resident() < memory + 18 * 2**20
    assert loader.stats()["lent_batches"] == 0


def test_the_dataset_says_what_it_is(make, op):
    text = repr(make().as_tf_dataset(epoch=3, op=op))
    assert text.startswith("<stoker dataset of") and "epoch=3" in text and "TensorSpec" in text


def test_transforms_take_tensors_as_numbers():
    assert stoker.Normalize(tf.constant([0.5] * 3), tf.ones(3)) == stoker.Normalize([0.5] * 3, [1] * 3)
    with pytest.raises(TypeError, match=r"Normalize.mean\[0\]"):
        stoker.Normalize(tf.constant([True] * 3), tf.ones(3))
