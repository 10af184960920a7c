"""fit() that is ended and started again."""

import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import resumed_fits
import stoker.tensorflow
import tensorflow as tf
from resumed_fits import WAYS, dense, given, numbers, said, without_hash
from stoker.tensorflow import _resumed
from tensors import SIZE, arrays, same


@pytest.mark.parametrize("of", ["loader", "epoch", "device loader"])
def test_a_loader_is_told_to_be_made_a_dataset(make, of):
    loader = make()
    given = {"loader": loader, "epoch": loader.epoch(0), "device loader": loader.to_device("cpu")}[of]
    model = tf.keras.Sequential([tf.keras.Input((SIZE, SIZE, 3)), tf.keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    dataset = loader.as_tf_dataset(op="fallback").map(lambda images, labels: (images, images))
    for use in (
        lambda: model.fit(given),
        lambda: model.evaluate(given),
        lambda: model.predict(given),
        lambda: model.fit(dataset, validation_data=given),
        lambda: tf.data.Dataset.from_tensor_slices(given),
    ):
        with pytest.raises((TypeError, AttributeError), match=r"take a loader's as_tf_dataset\(\)"):
            use()


class Ended(Exception):
    pass


def fit(loader, op, epochs, folder=None, end_at=None, initial_epoch=0):
    """Returns the batches that were seen. `folder`: of BackupAndRestore."""
    seen = []

    def note(images, labels):
        seen.append((images.copy(), labels.copy()))
        return images, labels

    def noted(images, labels):
        result = tf.numpy_function(note, [images, labels], [tf.uint8, tf.int64])
        return tf.ensure_shape(result[0], images.shape), tf.ensure_shape(result[1], labels.shape)

    class End(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == end_at:
                raise Ended

    model = tf.keras.Sequential(
        [tf.keras.Input((SIZE, SIZE, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callbacks = [stoker.tensorflow.follow_epochs(loader), End()]
    if folder is not None:
        callbacks.insert(0, tf.keras.callbacks.BackupAndRestore(str(folder)))
    try:
        model.fit(
            loader.as_tf_dataset(op=op).map(noted),
            epochs=epochs,
            initial_epoch=initial_epoch,
            verbose=0,
            callbacks=callbacks,
        )
    except Ended:
        assert end_at is not None
    return seen


def test_backup_and_restore_goes_on_with_the_right_epoch(make, op, tmp_path):
    first = fit(make(), op, 4, tmp_path, end_at=2)
    rest = fit(make(), op, 4, tmp_path)
    whole = [batch for epoch in range(4) for batch in arrays(make().epoch(epoch))]
    same(first, whole[:12])
    same(rest, whole[12:])
    assert np.shape(rest[0][0]) == (8, SIZE, SIZE, 3)


def test_initial_epoch_without_a_checkpoint(make, op):
    seen = fit(make(), op, 5, initial_epoch=3)
    same(seen, [batch for epoch in (3, 4) for batch in arrays(make().epoch(epoch))])


def test_an_integer_save_freq_trains_batches_twice_and_then_goes_back_to_epoch_0(tmp_path):
    """As docs/tensorflow.md says of Keras: an epoch has 6 batches, and a state is saved after 4, 8, …"""
    files = tmp_path / "{epoch}.weights.h5"

    def begun(end_at):
        """Returns (epoch, steps that the weights have had) at the beginning of each epoch of fit."""
        loader, epochs, model = numbers(), [], dense()

        class Look(tf.keras.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                epochs.append((epoch, int(self.model.optimizer.iterations.numpy())))

            def on_train_batch_end(self, batch, logs=None):
                if (epochs[-1][0], batch) == end_at:
                    raise Ended

        callbacks = [
            tf.keras.callbacks.BackupAndRestore(str(tmp_path / "backup"), save_freq=4),
            tf.keras.callbacks.ModelCheckpoint(str(files), save_freq=4, save_weights_only=True),
            stoker.tensorflow.follow_epochs(loader),
            Look(),
        ]
        with pytest.raises(Ended):
            model.fit(given(loader), epochs=2, verbose=0, callbacks=callbacks)
        return epochs

    assert begun(end_at=(0, 4)) == [(0, 0)]
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == ["1.weights.h5"]  # of 4 batches of epoch 0
    assert begun(end_at=(1, 2)) == [(0, 4), (1, 10)]  # epoch 0 has been trained with 10 batches, not 6
    assert begun(end_at=(1, 4)) == [(1, 12)]  # again from batch 0, with the weights after batch 1
    assert begun(end_at=(0, 0)) == [(0, 16)]  # the second state of epoch 1 was saved as one of epoch 0


@pytest.mark.parametrize(
    ("steps", "said"),
    [(4, "the loader's next epoch to 1, but .* repeat\\(\\) continues"), (8, "epoch 0 of fit took epoch 1 ")],
)
def test_follow_epochs_refuses_a_repetition_that_disagrees(make, op, steps, said):
    loader = make()
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callbacks = [stoker.tensorflow.follow_epochs(loader)]
    dataset = loader.as_tf_dataset(op=op).repeat()
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # else tf.data may begin epoch 1 early
    dataset = dataset.with_options(options)
    with pytest.raises(stoker.FailedPreconditionError, match=said):
        model.fit(dataset, steps_per_epoch=steps, epochs=3, verbose=0, callbacks=callbacks)


def test_validation_sees_a_pinned_epoch_each_time(make, op):
    """Training also continues with epochs of its own."""
    seen = []

    def noted(images, labels):
        def note(images, labels):
            seen.append((images.copy(), labels.copy()))
            return labels

        return images, tf.ensure_shape(tf.numpy_function(note, [images, labels], tf.int64), labels.shape)

    model = tf.keras.Sequential(
        [tf.keras.Input((SIZE, SIZE, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    training, validation = make(), make(seed=9)
    model.fit(
        training.as_tf_dataset(op=op),
        validation_data=validation.as_tf_dataset(epoch=0, op=op).map(noted),
        epochs=2,
        verbose=0,
    )
    same(seen, 2 * arrays(make(seed=9).epoch(0)))
    same(arrays(training.as_tf_dataset(op=op)), arrays(make().epoch(2)))


def test_steps_per_epoch_over_an_endless_dataset(make, op):
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = make().as_tf_dataset(op=op)
    history = model.fit(
        dataset.repeat(), steps_per_epoch=2, epochs=2, validation_data=dataset.take(1), verbose=0
    )
    assert len(history.history["val_loss"]) == 2


OPTIONS = tf.data.Options()
OPTIONS.experimental_optimization.inject_prefetch = False  # it would take later batches


@pytest.fixture(scope="module")
def model():
    return dense()


def under_a_strategy(dataset, fits=1, **options):
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = dense()
        for _ in range(fits):
            model.fit(dataset, verbose=0, **options)


@pytest.mark.parametrize(
    ("use", "epochs"),
    [
        pytest.param(lambda of, data: fit_of(of, data, epochs=2), [0, 1], id="epochs"),
        pytest.param(lambda of, data: [fit_of(of, data) for _ in range(2)], [0, 1], id="two fits"),
        pytest.param(
            lambda of, data: (fit_of(of, data), of.evaluate(data, verbose=0), fit_of(of, data)),
            [0, 1, 2],
            id="evaluate",
        ),
        pytest.param(
            lambda of, data: (of.predict(data.map(inputs), verbose=0), fit_of(of, data)), [0, 1], id="predict"
        ),
        pytest.param(
            lambda of, data: (tf.keras.layers.Normalization().adapt(data.map(inputs)), fit_of(of, data)),
            [0, 1],
            id="adapt",
        ),
        pytest.param(
            lambda of, data: fit_of(of, data, validation_data=data, epochs=2), [0, 1, 2, 3], id="validation"
        ),
        pytest.param(lambda of, data: under_a_strategy(data, epochs=2), [0, 1, 2], id="strategy"),
        pytest.param(
            lambda of, data: under_a_strategy(data, fits=2), [0, 1, 2, 3], id="two under a strategy"
        ),
        pytest.param(lambda of, data: fit_of(of, data, steps_per_epoch=3, epochs=2), [0], id="steps"),
        pytest.param(
            lambda of, data: [
                fit_of(of, data.repeat().with_options(OPTIONS), steps_per_epoch=3) for _ in range(2)
            ],
            [0, 1],
            id="two fits by steps",
        ),
        pytest.param(lambda of, data: fit_of(of, data.take(2), epochs=2), [0, 1], id="take"),
        pytest.param(lambda of, data: fit_of(of, data.cache(), epochs=2), [0], id="cache"),
    ],
)
def test_the_epochs_that_keras_takes(model, use, epochs):
    """As docs/tensorflow.md lists them."""
    loader, seen = numbers(), []
    use(model, given(loader).map(noted(loader, seen)))
    assert sorted(set(seen)) == epochs
    assert seen == sorted(seen)


def fit_of(model, dataset, **options):
    model.fit(dataset, verbose=0, **options)


def inputs(values, labels):
    return values


def noted(loader, seen):
    """A step for map() that adds the epoch of what passes through to `seen`."""
    epoch_of = {batch[0].tobytes(): epoch for epoch in range(5) for batch in loader.epoch(epoch)}

    def note(values):
        seen.append(epoch_of[values.tobytes()])
        return values

    def step(values, labels):
        return tf.ensure_shape(tf.numpy_function(note, [values], tf.float32), values.shape), labels

    return step


def test_follow_epochs_corrects_the_epochs_under_a_strategy():
    loader, seen = numbers(), []
    dataset = given(loader).map(noted(loader, seen))
    under_a_strategy(dataset, epochs=2, callbacks=[stoker.tensorflow.follow_epochs(loader)])
    assert seen[-12:] == [0] * 6 + [1] * 6


def test_parts_of_a_shuffled_dataset_overlap_and_keras_refuses_a_validation_split(model):
    dataset = given(numbers())
    parts = [
        {float(x) for batch, _ in part for x in batch[:, 0]} for part in (dataset.take(3), dataset.skip(3))
    ]
    assert [len(part) for part in parts] == [300, 300] and parts[0] & parts[1]
    with pytest.raises(ValueError, match="validation_split"):
        model.fit(dataset, validation_split=0.5, verbose=0)


def test_a_fit_that_follows_epochs_which_the_model_has_had_is_warned_of(recwarn):
    def fit(loader, model, **options):
        callbacks = [stoker.tensorflow.follow_epochs(loader)]
        model.fit(given(loader), verbose=0, callbacks=callbacks, **options)
        return [str(each.message) for each in recwarn if each.category is stoker.EpochWarning]

    loader, model, ordered = numbers(), dense(), numbers(shuffle=False)
    assert fit(loader, model, epochs=2) == fit(loader, model, initial_epoch=2, epochs=3) == []
    assert fit(loader, without_hash()) == fit(ordered, model) == fit(ordered, model) == []
    assert fit(loader, model, initial_epoch=1, epochs=3) == []  # a rollback
    assert fit(loader, model) == [
        "fit begins with epoch 0, and an earlier fit has trained this model to epoch 2: if its weights were "
        "not reset, follow_epochs repeats the loader's order and crops. Call fit with `initial_epoch=3` and "
        "`epochs=` above it, or leave out follow_epochs"
    ]
    assert recwarn.pop(stoker.EpochWarning).filename == __file__


def test_follow_epochs_in_a_loop_without_a_model():
    loader = numbers(start_epoch=5)
    callbacks = tf.keras.callbacks.CallbackList([stoker.tensorflow.follow_epochs(loader)])
    callbacks.on_train_begin()
    for epoch in range(2):
        callbacks.on_epoch_begin(epoch)
        same(list(given(loader)), arrays(loader.epoch(epoch)))
        callbacks.on_epoch_end(epoch)


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_fit_whose_loader_begins_again_is_warned_of(tmp_path, way):
    assert said(way, tmp_path) == [text for text in [WAYS[way][1]] if text]


@pytest.mark.long
def test_a_resumed_fit_with_jax(tmp_path):
    ways = ("at epoch 1", "steps after the loader", "follow_epochs", "validation", "after a fit of arrays")
    done = subprocess.run(
        [sys.executable, resumed_fits.__file__, tmp_path, *ways],
        capture_output=True, text=True, timeout=120, env={**os.environ, "KERAS_BACKEND": "jax"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "jax 2\n"  # fit takes an epoch to see shapes


def test_looking_at_the_frame_of_fit_keeps_none_of_its_variables():
    def fit():
        weights = np.zeros(3)
        gone = weakref.ref(weights)
        found = _resumed._variables(sys._getframe(), "epoch")
        del weights
        return found, gone()

    assert fit() == ([None], None)


@pytest.mark.parametrize("when", ["call", "line"])
def test_looking_at_the_frame_of_a_traced_fit_leaves_its_variables(when):
    def fit(x):
        epoch = 2
        return x, epoch

    def trace(frame, event, argument):
        if frame.f_code is fit.__code__ and event == when:
            assert _resumed._variables(frame, "epoch") == [None]
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert fit(1) == (1, 2)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    ("step", "batches"),
    [
        pytest.param(lambda data: data.repeat(2).take(9), 9, id="repeat and take"),
        pytest.param(lambda data: data.with_options(OPTIONS).prefetch(1), 6, id="options"),
        pytest.param(lambda data: data.unbatch().batch(200, drop_remainder=True), 3, id="batch"),
        pytest.param(lambda data: data.apply(tf.data.experimental.assert_cardinality(6)), 6, id="apply"),
    ],
)
def test_a_watched_dataset_is_as_tensorflow_makes_it(step, batches):
    """Compares what TensorFlow makes of the dataset with what it makes of the one that is not watched."""
    watched, plain = step(given(numbers())), step(given(numbers())._made)
    assert isinstance(plain, tf.data.Dataset) and not isinstance(plain, _resumed.Watched)
    assert len(watched) == len(plain) == batches
    assert watched.element_spec == plain.element_spec
    assert repr(watched) == repr(plain)
    assert watched.options() == plain.options()
    same(arrays(watched), arrays(plain))
