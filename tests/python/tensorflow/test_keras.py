"""fit() that is ended and started again."""

import numpy as np
import pytest
import stoker.tensorflow
import tensorflow as tf
from conftest import SIZE, arrays, same


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
