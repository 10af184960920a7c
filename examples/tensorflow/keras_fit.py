"""Trains a classifier from a folder of photographs: model.fit, mixed precision, with XLA and without.

Replaces keras.utils.image_dataset_from_directory(...).map(augment).prefetch(AUTOTUNE). Decoding,
cropping, flipping and prefetching happen in stoker; fit() sees a tf.data.Dataset.
"""

import time

import keras
import photographs
import stoker

SIZE, BATCH, EPOCHS = 64, 16, 2

photos = photographs.folder(__doc__)
train = stoker.Loader(
    stoker.image_folder(photos),
    [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
    batch_size=BATCH,
    shuffle=True,
    seed=1,
    drop_remainder=True,  # all batches have one shape, so that XLA compiles one program
)
validation = stoker.Loader(
    stoker.image_folder(photos),  # a folder of its own, when you have one
    [stoker.Resize(SIZE * 8 // 7), stoker.CenterCrop(SIZE)],
    batch_size=BATCH,
)
print(train)

keras.mixed_precision.set_dtype_policy("mixed_bfloat16")  # "mixed_float16" on GPUs before Ampere


def classifier() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3), dtype="uint8"),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(train.classes), activation="softmax", dtype="float32"),
        ]
    )


for xla in (False, True):
    keras.utils.set_random_seed(1)
    model = classifier()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=xla)
    start = time.perf_counter()
    history = model.fit(
        train.as_tf_dataset(),  # each epoch of fit() is the loader's next one
        validation_data=validation.as_tf_dataset(),
        epochs=EPOCHS,
        verbose=2,
    )
    seconds = time.perf_counter() - start
    losses = ", ".join(f"{loss:.3f}" for loss in history.history["loss"])
    print(f"XLA {'on' if xla else 'off'}: {seconds:.1f} s for {EPOCHS} epochs, losses {losses}")
