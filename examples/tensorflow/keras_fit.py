"""Trains a classifier from a folder of photographs: model.fit, mixed precision, with XLA and without.

Replaces keras.utils.image_dataset_from_directory(...).map(augment).prefetch(AUTOTUNE). Decoding,
cropping, flipping and prefetching happen in stoker; fit() sees a tf.data.Dataset. Where the photographs fit
into memory, cache() keeps them decoded and resized, stoker's cache packed; stoker.arrays is fed with them
decoded and resized. Each way is timed.
"""

import os
import time

os.environ.setdefault("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit")  # set_jit() is for GPUs alone otherwise

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH, EPOCHS = 72, 64, 16, 3
AUTOTUNE = tf.data.AUTOTUNE
MIXED = "mixed_bfloat16"  # "mixed_float16" on GPUs before Ampere

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
    float32 = {"dtype": "float32"}  # whatever the policy is
    layers = keras.layers.RandomCrop(SIZE, SIZE, **float32), keras.layers.RandomFlip("horizontal", **float32)
    flip_and_crop = keras.Sequential(layers)
    dataset = keras.utils.image_dataset_from_directory(
        photos, image_size=(LARGER, LARGER), batch_size=None, shuffle=not cached, seed=1, verbose=False
    )
    if cached:
        dataset = dataset.cache().shuffle(len(source))
    dataset = dataset.batch(BATCH, drop_remainder=True)
    dataset = dataset.map(lambda images, labels: (flip_and_crop(images, training=True), labels), AUTOTUNE)
    return dataset.prefetch(AUTOTUNE)


def classifier(policy: str = MIXED, jit_compile: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    keras.mixed_precision.set_dtype_policy(policy)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(source.classes), activation="softmax", dtype="float32"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=jit_compile)
    return model


def fitting(model: keras.Model, make_input, set_jit: bool = False):
    """Returns a function that makes the input and trains for some epochs."""

    def fit(**options) -> keras.callbacks.History:
        tf.config.optimizer.set_jit("autoclustering" if set_jit else False)
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
    "stoker": fitting(classifier(), stokers),
    "usual input": fitting(classifier(), lambda: usuals[False]),
    "stoker, cached": fitting(classifier(), lambda: stokers(CACHE)),
    "stoker.arrays": fitting(classifier(), lambda: stokers(source=decoded, transforms=augment)),
    "usual input, cached": fitting(classifier(), lambda: usuals[True]),
    "float32": fitting(classifier("float32"), stokers),
    "jit_compile": fitting(classifier(jit_compile=True), stokers),
    "set_jit": fitting(classifier(), stokers, set_jit=True),
}
for name, fit in ways.items():
    start = time.perf_counter()
    losses = fit(validation_data=validation.as_tf_dataset(epoch=0), verbose=2).history["loss"]
    print(f"{name}: {time.perf_counter() - start:.1f} s for the first {EPOCHS} epochs,", end=" ")
    print(f"losses {', '.join(f'{loss:.3f}' for loss in losses)}")

seconds = timing.in_turns(ways)
seconds["mixed precision"] = seconds["no XLA"] = seconds["stoker"]
pairs = [("stoker", "usual input"), ("stoker, cached", "usual input, cached")]
pairs += [("stoker.arrays", "usual input, cached"), ("mixed precision", "float32")]
pairs += [("no XLA", "jit_compile"), ("no XLA", "set_jit")]
print(f"verdict: {'; '.join(timing.verdict(seconds, *pair) for pair in pairs)}")
