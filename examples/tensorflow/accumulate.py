"""Accumulates gradients: four small batches for one step, where one large batch does not fit into memory.

It takes less memory, and should train the same weights as the large batch. It does if both read the same
pixels in the same order. stoker's order and draws do not depend on the batch size. Those of a tf.data
pipeline do not either, if it shuffles single samples and augments them with stateless ops and a seed for
each, as here: not with augmentation layers, which draw for a whole batch.
"""

import keras
import numpy as np
import photographs
import profiles
import stoker
import tensorflow as tf
import timing

SIZE, LARGE, STEPS, EPOCHS = 64, 48, 4, 2  # a large batch is four small ones

folder = photographs.folder(__doc__)
source = stoker.image_folder(folder)
updates = len(source) // LARGE  # in an epoch; the rest of the samples are left out


def loader(batch: int) -> stoker.Loader:
    augment = [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()]
    return stoker.Loader(source, augment, batch_size=batch, shuffle=True, seed=1, drop_remainder=True)


def stokers(batch: int) -> tf.data.Dataset:
    return loader(batch).as_tf_dataset().take(updates * LARGE // batch).repeat(EPOCHS)


def augmented(number, sample):
    """The draws depend on the sample's number, which counts on from epoch to epoch."""
    image, label = sample
    seed = tf.stack([1, number])
    image = tf.image.stateless_random_crop(image, (SIZE, SIZE, 3), seed)
    return tf.image.stateless_random_flip_left_right(image, seed), label


def usual(batch: int) -> tf.data.Dataset:
    keras.utils.set_random_seed(1)
    samples = keras.utils.image_dataset_from_directory(
        folder, image_size=(SIZE * 8 // 7,) * 2, batch_size=None, shuffle=True, seed=1, verbose=False
    )
    numbered = samples.take(updates * LARGE).repeat(EPOCHS).enumerate()
    numbered = numbered.map(augmented, tf.data.AUTOTUNE)
    return numbered.batch(batch).prefetch(tf.data.AUTOTUNE)


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
    large.fit(pipeline(LARGE), verbose=0)  # the datasets repeat for all epochs
    small.fit(pipeline(LARGE // STEPS), verbose=0)
    moved = np.abs(weights(large) - start).max()
    differs[name] = np.abs(weights(small) - weights(large)).max() / moved
    print(f"{name:7} {updates * EPOCHS} steps of {LARGE} and of {STEPS} × {LARGE // STEPS}:", end=" ")
    print(f"the weights differ by {differs[name]:.1e} of what training moved them")


def fitting(accumulate: int | None, batch: int):
    """Returns a function that trains with stoker, and closes the loader in its turn."""
    model = compiled(accumulate)

    def fit() -> None:
        with loader(batch) as each:
            model.fit(each.as_tf_dataset().take(updates * LARGE // batch), epochs=EPOCHS, verbose=0)

    return fit


def peak(accumulate: int | None, batch: int) -> float:
    """MB that TensorFlow's allocators give out at the peak of training."""
    model = compiled(accumulate)
    with loader(batch) as each:
        events = profiles.training(model, each.as_tf_dataset().take(STEPS))
    return profiles.peak(events) / 1e6


large, small = peak(None, LARGE), peak(STEPS, LARGE // STEPS)
memory = f"TensorFlow's memory at the peak: {large:.1f} MB with one large batch, {small:.1f} MB accumulating"
fits = {"one large batch": fitting(None, LARGE), "accumulating": fitting(STEPS, LARGE // STEPS)}
faster = timing.verdict(timing.in_turns(fits), *fits)
same = [name for name, difference in differs.items() if difference < 1e-3]
print(
    f"verdict: accumulating trains the large batch's weights with: {', '.join(same) or 'neither'}; "
    f"{memory}; {faster}"
)
