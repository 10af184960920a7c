"""A custom training loop: tf.function, GradientTape, and a checkpoint in the middle of an epoch.

Replaces the loop over a tf.data pipeline whose shuffle buffer must be refilled, or stored, to continue
after a restart: stoker's iterator is a few numbers in the checkpoint.
"""

import pathlib
import tempfile

import keras
import photographs
import stoker
import tensorflow as tf

SIZE, BATCH, EPOCHS = 64, 16, 2

folder = photographs.folder(__doc__)
loader = stoker.Loader(
    stoker.image_folder(folder),
    [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
    batch_size=BATCH,
    shuffle=True,
    seed=1,
    drop_remainder=True,
)
dataset = loader.as_tf_dataset()
print(dataset.element_spec)

model = keras.Sequential(
    [
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(loader.classes)),
    ]
)
model.build((None, SIZE, SIZE, 3))
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(input_signature=dataset.element_spec, jit_compile=True)
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def epoch():
    """A whole epoch without Python between its steps; each call takes the loader's next one."""
    total = 0.0
    for images, labels in dataset:
        total += step(images, labels)
    return total / len(loader)


for number in range(EPOCHS):
    print(f"epoch {number}: mean loss {epoch():.3f}")

options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False  # whose batches would be in the checkpoint


def bytes_of(iterator: tf.data.Iterator, directory: str) -> int:
    """What the iterator takes in a checkpoint."""
    saved = tf.train.Checkpoint(iterator=iterator).write(f"{directory}/iterator")
    return sum(
        file.stat().st_size for file in pathlib.Path(directory).glob(f"{pathlib.Path(saved).name}.data*")
    )


# The usual pipeline has a buffer of the images that it shuffles.
images_and_labels = keras.utils.image_dataset_from_directory(
    folder, image_size=(SIZE, SIZE), batch_size=None, shuffle=False, verbose=False
)
usual = iter(images_and_labels.shuffle(len(images_and_labels)).batch(BATCH).with_options(options))
next(usual)

# The same loop in Python, stopped in the middle.
iterator = iter(dataset.with_options(options))
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, iterator=iterator)
for _ in range(len(loader) // 2):
    step(*next(iterator))
with tempfile.TemporaryDirectory() as directory:
    saved = checkpoint.save(f"{directory}/step")
    sizes = [bytes_of(iterator, directory), bytes_of(usual, directory)]
    _, expected = next(iterator)
    checkpoint.restore(saved)  # also in another process, with a loader of the same options
    _, labels = next(iterator)
print(f"after the restore the next batch is the same one: {bool(tf.reduce_all(labels == expected))}")
print(f"verdict: a checkpoint takes {sizes[0]:,} bytes with stoker, {sizes[1]:,} with a shuffle buffer")
