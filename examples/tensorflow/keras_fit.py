"""Trains a classifier from a folder of photographs with model.fit, in float32.

Replaces keras.utils.image_dataset_from_directory(...).map(augment).prefetch(AUTOTUNE). Decoding,
cropping, flipping and prefetching happen in stoker; fit() sees a tf.data.Dataset. Where the photographs fit
into memory, cache() keeps them decoded and resized, stoker's cache packed; stoker.arrays is fed with them
decoded and resized. Each way's CPU time is measured, the model's share of it too: precision.py compares
mixed precision and XLA, on a model without input.
"""

import statistics

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH, EPOCHS = 72, 64, 16, 2
AUTOTUNE = tf.data.AUTOTUNE

photos = photographs.folder(__doc__)
source = stoker.image_folder(photos)
resize = stoker.Resize((LARGER, LARGER))
augment = [stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()]
validation = stoker.Loader(
    source,  # a folder of its own, when you have one
    [resize, stoker.CenterCrop(SIZE)],
    batch_size=BATCH,
)


def stokers(cache: str | None = None, source=source, transforms=(resize, *augment)) -> stoker.Loader:
    return stoker.Loader(
        source,
        transforms,
        batch_size=BATCH,
        shuffle=True,
        seed=1,
        drop_remainder=True,  # all batches have one shape, so that XLA compiles one program
        cache=cache,
    )


with stoker.Loader(source, [resize], batch_size=BATCH) as loader:
    # decoded and resized, as cache() keeps them
    decoded = stoker.arrays(*(np.concatenate(column) for column in zip(*loader)))


def usual(cached: bool) -> tf.data.Dataset:
    flip_and_crop = keras.Sequential(
        [keras.layers.RandomCrop(SIZE, SIZE), keras.layers.RandomFlip("horizontal")]
    )
    dataset = keras.utils.image_dataset_from_directory(
        photos, image_size=(LARGER, LARGER), batch_size=None, shuffle=not cached, seed=1, verbose=False
    )
    if cached:
        dataset = dataset.cache().shuffle(len(source))
    dataset = dataset.batch(BATCH, drop_remainder=True)
    dataset = dataset.map(lambda images, labels: (flip_and_crop(images, training=True), labels), AUTOTUNE)
    return dataset.prefetch(AUTOTUNE)


def model_alone() -> tf.data.Dataset:
    """One batch, as often as an epoch has batches."""
    images, labels = tf.zeros((BATCH, SIZE, SIZE, 3), tf.uint8), tf.zeros((BATCH,), tf.int64)
    return tf.data.Dataset.from_tensors((images, labels)).repeat(len(source) // BATCH)


def classifier() -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(source.classes), activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def fitting(make_input):
    """Returns a function that makes the input and trains for some epochs."""
    model = classifier()

    def fit(**options) -> keras.callbacks.History:
        options = {"epochs": EPOCHS, "verbose": 0, **options}
        made = make_input()
        if isinstance(made, tf.data.Dataset):
            return model.fit(made, **options)
        with made as loader:  # closed in its turn: it produces nothing while others are timed
            return model.fit(loader.as_tf_dataset(), **options)

    return fit


usuals = {cached: usual(cached) for cached in (False, True)}
CACHE = "ram:1GiB"
keeping = stokers(CACHE)  # a cache in memory lives as long as a loader that uses it
ways = {
    "stoker": fitting(stokers),
    "usual input": fitting(lambda: usuals[False]),
    "stoker, cached": fitting(lambda: stokers(CACHE)),
    "stoker.arrays": fitting(lambda: stokers(source=decoded, transforms=augment)),
    "usual input, cached": fitting(lambda: usuals[True]),
    "model alone": fitting(model_alone),
}
for name, fit in ways.items():
    losses = fit(validation_data=validation.as_tf_dataset(epoch=0), verbose=2).history["loss"]
    print(f"{name}: losses {', '.join(f'{loss:.3f}' for loss in losses)}")

seconds = timing.in_turns(ways)
for name, each in seconds.items():
    print(f"{name}: {statistics.median(each):.2f} s of CPU time for {EPOCHS} epochs")
pairs = [("stoker", "usual input"), ("stoker, cached", "usual input, cached")]
pairs += [("stoker.arrays", "usual input, cached")]
print(f"verdict: in float32, {'; '.join(timing.verdict(seconds, *pair) for pair in pairs)}")
