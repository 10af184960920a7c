"""Ways to start `fit`, and what stoker warns of in each: python resumed_fits.py BACKUP WAY …"""

import functools
import sys
import warnings

import keras
import numpy as np
import stoker
import stoker.tensorflow
import tensorflow as tf


def numbers(**options):
    """Returns a loader of 600 numbers in 6 batches."""
    samples = stoker.arrays(np.arange(600, dtype=np.float32)[:, np.newaxis], np.zeros(600, np.int64))
    return stoker.Loader(samples, **{"batch_size": 100, "shuffle": True, "seed": 3, **options})


def given(loader, **options):
    return loader.as_tf_dataset(op="fallback", **options)


def dense():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


class WithoutHash(keras.Sequential):
    def __eq__(self, other):
        return self is other

    __hash__ = None


def without_hash():
    model = dense()
    model.__class__ = WithoutHash  # compile() of Keras 3.15 hashes, and fit() does not
    return model


new = functools.cache(dense)  # in each way; compiled only once


def fit(dataset, of=None, first=2, epochs=1, **options):
    (of or new()).fit(dataset, initial_epoch=first, epochs=first + epochs, verbose=0, **options)


class End(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def restored(folder):
    def backed_up(*more):
        callbacks = [keras.callbacks.BackupAndRestore(folder), *more]
        fit(given(numbers()), dense(), first=0, epochs=2, callbacks=callbacks)

    try:
        backed_up(End())
    except KeyboardInterrupt:
        backed_up()


def after_a_look(folder):
    dataset = given(numbers()).take(2)
    next(iter(dataset))
    fit(dataset)


def followed(first=1, **options):
    loader = numbers()
    fit(given(loader), first=first, callbacks=[stoker.tensorflow.follow_epochs(loader)], **options)


def with_a_callback_that_looks(folder):
    loader = numbers()
    dataset = given(loader)

    class Look(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            next(iter(dataset))

    fit(dataset, callbacks=[Look(), stoker.tensorflow.follow_epochs(loader)])


def of_a_restored_loader(folder):
    loader = numbers()
    loader.load_state_dict(numbers(start_epoch=1).state_dict())
    fit(given(loader))


def later(folder):
    dataset = given(numbers())
    fit(dataset, first=0)
    fit(given(numbers()))  # another loader for the rest of the epochs
    fit(dataset, dense(), first=9)


def evaluated(folder):
    new().evaluate(given(numbers()), verbose=0)
    new().predict(given(numbers()), verbose=0)


def after(earlier):
    """Returns a way in which a fit that is not looked at has trained the model."""
    return lambda folder: (earlier(), fit(given(numbers())))


def text(epoch, begun, advice):
    return (
        f"fit begins with epoch {epoch}, and the loader with epoch {begun}: if this run was resumed, it gets "
        f"orders and crops again that it was trained on before. {advice}"
    )


def under_a_strategy(folder):
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        fit(given(numbers()), dense())


UNSEEN = {
    "cache": lambda data: data.cache(),
    "zip": lambda data: tf.data.Dataset.zip(data.map(lambda x, y: x), data.map(lambda x, y: y)),
    "concatenate": lambda data: data.concatenate(given(numbers())),
    "interleave": lambda data: data.interleave(lambda *batch: tf.data.Dataset.from_tensors(batch)),
    "take_while": lambda data: data.take_while(lambda *batch: True),
    "scan": lambda data: data.scan(tf.constant(0), lambda state, batch: (state, batch)),
    "apply": lambda data: data.apply(tf.data.experimental.assert_cardinality(6)),
}
FOLLOW = "Add stoker.tensorflow.follow_epochs(loader) to the callbacks of fit"
START = "Give Loader(start_epoch=) the epoch that the run had reached"
WAYS = {
    "plain": (lambda _: fit(given(numbers())), text(2, 0, FOLLOW)),
    "at epoch 1": (lambda _: fit(given(numbers()), first=1), text(1, 0, FOLLOW)),
    "steps after the loader": (
        lambda _: fit(given(numbers()).map(lambda *batch: batch).prefetch(1)),
        text(2, 0, FOLLOW),
    ),
    "class weights": (lambda _: fit(given(numbers()), class_weight={0: 1.0}), text(2, 0, FOLLOW)),
    "on a device": (lambda _: fit(numbers().to_device("cpu").as_tf_dataset()), text(2, 0, FOLLOW)),
    "a model without a hash": (lambda _: fit(given(numbers()), without_hash()), text(2, 0, FOLLOW)),
    "restored": (restored, text(1, 0, FOLLOW)),
    "after a look": (after_a_look, text(2, 1, FOLLOW)),
    "repeated": (lambda _: fit(given(numbers()).repeat(2)), text(2, 0, START)),
    "steps": (lambda _: fit(given(numbers()).repeat(), steps_per_epoch=2), text(2, 0, START)),
    "epoch 0": (lambda _: fit(given(numbers()), first=0), None),
    "without shuffling": (lambda _: fit(given(numbers(shuffle=False))), None),
    "follow_epochs": (lambda _: followed(), None),
    "follow_epochs, and a callback that looks": (with_a_callback_that_looks, None),
    "follow_epochs, and a model without a hash": (lambda _: followed(of=without_hash()), None),
    "start_epoch": (lambda _: fit(given(numbers(start_epoch=2))), None),
    "restored loader": (of_a_restored_loader, None),
    "pinned": (lambda _: fit(given(numbers(), epoch=0)), None),
    **{name: (lambda _, step=step: fit(step(given(numbers()))), None) for name, step in UNSEEN.items()},
    "strategy": (under_a_strategy, None),
    "validation": (lambda _: fit(given(numbers(start_epoch=2)), validation_data=given(numbers())), None),
    "later": (later, None),
    "evaluation": (evaluated, None),
    "after a fit of arrays": (after(lambda: new().fit(np.ones((9, 1)), np.ones(9), verbose=0)), None),
    "after a fit of a cache": (after(lambda: fit(given(numbers()).cache(), first=0)), None),
    "after a fit that follows epochs": (after(lambda: followed(first=0)), None),
    "after a fit with start_epoch": (after(lambda: fit(given(numbers(start_epoch=1)), first=0)), None),
}


def said(way, folder):
    """Returns the warnings about epochs, which must be at a line of this file."""
    new().history = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WAYS[way][0](folder)
    about = [each for each in caught if each.category is stoker.EpochWarning]
    assert all(each.filename == __file__ for each in about)
    return [str(each.message) for each in about]


if __name__ == "__main__":
    for name in sys.argv[2:]:
        assert said(name, sys.argv[1]) == [text for text in [WAYS[name][1]] if text], name
    loader = numbers()
    fit(given(loader), dense(), first=0)
    print(keras.backend.backend(), loader._native.next_epoch)
