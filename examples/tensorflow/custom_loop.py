"""A custom training loop: tf.function, GradientTape, and a checkpoint in the middle of an epoch.

Replaces the loop over image_dataset_from_directory: its iterator's checkpoint holds the buffers of its
shuffle() and prefetch(); a symbolic checkpoint holds counts, and a restore reads the buffers again. stoker's
iterator is a few numbers in either.
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


def bytes_of(dataset: tf.data.Dataset, symbolic: bool) -> int:
    """Returns the size of its iterator in a checkpoint after a batch."""
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = symbolic
    options.experimental_optimization.inject_prefetch = False  # whose batches would be in the checkpoint
    iterator = iter(dataset.with_options(options))
    next(iterator)
    with tempfile.TemporaryDirectory() as directory:
        tf.train.Checkpoint(iterator=iterator).write(f"{directory}/iterator")
        return sum(file.stat().st_size for file in pathlib.Path(directory).glob("iterator.data*"))


# The same loop in Python, stopped in the middle.
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
iterator = iter(dataset.with_options(options))
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, iterator=iterator)
for _ in range(len(loader) // 2):
    step(*next(iterator))
with tempfile.TemporaryDirectory() as directory:
    saved = checkpoint.save(f"{directory}/step")
    _, expected = next(iterator)
    checkpoint.restore(saved)  # also in another process, with a loader of the same options
    _, labels = next(iterator)
print(f"after the restore the next batch is the same one: {bool(tf.reduce_all(labels == expected))}")

usual = keras.utils.image_dataset_from_directory(
    folder, image_size=(SIZE, SIZE), batch_size=BATCH, shuffle=True, verbose=False
)
pipelines = {"stoker": dataset, "image_dataset_from_directory": usual}
sizes = [
    f"{bytes_of(each, symbolic=False):,} bytes ({bytes_of(each, symbolic=True):,} if symbolic) with {name}"
    for name, each in pipelines.items()
]
print(f"verdict: an iterator's checkpoint takes {', '.join(sizes)}")
