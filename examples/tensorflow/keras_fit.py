"""Trains a classifier from a folder of photographs: model.fit, mixed precision, with XLA and without.

Replaces keras.utils.image_dataset_from_directory(...).map(augment).prefetch(AUTOTUNE). Decoding,
cropping, flipping and prefetching happen in stoker; fit() sees a tf.data.Dataset.
"""

import os
import time

os.environ.setdefault("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit")  # set_jit() is for GPUs alone otherwise

import keras
import photographs
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH, EPOCHS = 72, 64, 16, 2

photos = photographs.folder(__doc__)
source = stoker.image_folder(photos)
validation = stoker.Loader(
    source,  # a folder of its own, when you have one
    [stoker.Resize((LARGER, LARGER)), stoker.CenterCrop(SIZE)],
    batch_size=BATCH,
)


def stokers() -> tf.data.Dataset:
    train = stoker.Loader(
        source,
        [stoker.Resize((LARGER, LARGER)), stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()],
        batch_size=BATCH,
        shuffle=True,
        seed=1,
        drop_remainder=True,  # all batches have one shape, so that XLA compiles one program
    )
    return train.as_tf_dataset()


def usual() -> tf.data.Dataset:
    augment = keras.Sequential([keras.layers.RandomCrop(SIZE, SIZE), keras.layers.RandomFlip("horizontal")])
    dataset = keras.utils.image_dataset_from_directory(
        photos, image_size=(LARGER, LARGER), batch_size=None, seed=1, verbose=False
    ).batch(BATCH, drop_remainder=True)
    dataset = dataset.map(lambda images, labels: (augment(images, training=True), labels), tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


def classifier(policy: str, jit_compile: bool) -> keras.Model:
    keras.utils.set_random_seed(1)
    keras.mixed_precision.set_dtype_policy(policy)  # "mixed_float16" on GPUs before Ampere
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


def fitting(model: keras.Model, dataset: tf.data.Dataset, set_jit: bool):
    """Returns a function that trains for some epochs; each is the loader's next one."""

    def fit(**options) -> keras.callbacks.History:
        tf.config.optimizer.set_jit("autoclustering" if set_jit else False)
        return model.fit(dataset, **{"epochs": EPOCHS, "verbose": 0, **options})

    return fit


mixed = "mixed_bfloat16"
ways = {
    "stoker": fitting(classifier(mixed, jit_compile=False), stokers(), set_jit=False),
    "usual input": fitting(classifier(mixed, jit_compile=False), usual(), set_jit=False),
    "float32": fitting(classifier("float32", jit_compile=False), stokers(), set_jit=False),
    "jit_compile": fitting(classifier(mixed, jit_compile=True), stokers(), set_jit=False),
    "set_jit": fitting(classifier(mixed, jit_compile=False), stokers(), set_jit=True),
}
for name, fit in ways.items():
    start = time.perf_counter()
    losses = fit(validation_data=validation.as_tf_dataset(), verbose=2).history["loss"]
    print(f"{name}: {time.perf_counter() - start:.1f} s for the first {EPOCHS} epochs,", end=" ")
    print(f"losses {', '.join(f'{loss:.3f}' for loss in losses)}")

seconds = timing.in_turns(ways)
first, *others = ways
print(f"verdict: {'; '.join(timing.verdict(seconds, first, other) for other in others)}")
