"""Accumulates gradients: four small batches for one step, where one large batch does not fit into memory.

It should train the same weights as the large batch. It does if both read the same pixels in the same order:
stoker's order and draws depend on the seed, the epoch and the sample's position, not on the batch size. Those
of image_dataset_from_directory and of augmentation layers do depend on it.
"""

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

SIZE, LARGE, STEPS, EPOCHS = 64, 48, 4, 2  # a large batch is four small ones

folder = photographs.folder(__doc__)
source = stoker.image_folder(folder)
updates = len(source) // LARGE  # in an epoch; the rest of the samples are left out


def stokers(batch: int) -> tf.data.Dataset:
    augment = [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()]
    loader = stoker.Loader(source, augment, batch_size=batch, shuffle=True, seed=1, drop_remainder=True)
    return loader.as_tf_dataset().take(updates * LARGE // batch)


def usual(batch: int) -> tf.data.Dataset:
    keras.utils.set_random_seed(1)
    augment = keras.Sequential([keras.layers.RandomCrop(SIZE, SIZE), keras.layers.RandomFlip("horizontal")])
    dataset = keras.utils.image_dataset_from_directory(
        folder, image_size=(SIZE * 8 // 7,) * 2, batch_size=batch, shuffle=True, seed=1, verbose=False
    )
    dataset = dataset.map(lambda images, labels: (augment(images, training=True), labels), tf.data.AUTOTUNE)
    return dataset.take(updates * LARGE // batch).prefetch(tf.data.AUTOTUNE)


def compiled(accumulate: int | None) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(source.classes)),
        ]
    )
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=accumulate)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def weights(model: keras.Model) -> np.ndarray:
    return np.concatenate([np.ravel(each) for each in model.get_weights()])


differs = {}
for name, pipeline in (("usual", usual), ("stoker", stokers)):
    large, small = compiled(None), compiled(STEPS)
    start = weights(large)
    large.fit(pipeline(LARGE), epochs=EPOCHS, verbose=0)
    small.fit(pipeline(LARGE // STEPS), epochs=EPOCHS, verbose=0)
    moved = np.abs(weights(large) - start).max()
    differs[name] = np.abs(weights(small) - weights(large)).max() / moved
    print(f"{name:7} {updates * EPOCHS} steps of {LARGE} and of {STEPS} × {LARGE // STEPS}:", end=" ")
    print(f"the weights differ by {differs[name]:.1e} of what training moved them")

ways = {"one large batch": (large, stokers(LARGE)), "accumulating": (small, stokers(LARGE // STEPS))}
fits = {name: lambda way=way: way[0].fit(way[1], verbose=0) for name, way in ways.items()}
faster = timing.verdict(timing.in_turns(fits), *fits)
same = [name for name, difference in differs.items() if difference < 1e-3]
print(
    f"verdict: accumulating trains the large batch's weights with: {', '.join(same) or 'neither'}; {faster}"
)
