"""Distils a teacher into a smaller student: both are fed one batch, decoded and cropped once.

Replaces two pipelines that are zipped, one for each model: photographs are decoded twice, and the teacher
judges another crop than the one that the student sees.
"""

import statistics

import keras
import photographs
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH, TEMPERATURE = 72, 64, 16, 4.0

folder = photographs.folder(__doc__)
source = stoker.image_folder(folder)


def stokers() -> tf.data.Dataset:
    augment = [stoker.Resize((LARGER, LARGER)), stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()]
    loader = stoker.Loader(source, augment, batch_size=BATCH, shuffle=True, seed=1, drop_remainder=True)
    return loader.as_tf_dataset().map(lambda images, labels: (tf.cast(images, tf.float32), labels))


def usual() -> tf.data.Dataset:
    augment = keras.Sequential([keras.layers.RandomCrop(SIZE, SIZE), keras.layers.RandomFlip("horizontal")])
    dataset = keras.utils.image_dataset_from_directory(
        folder, image_size=(LARGER, LARGER), batch_size=None, seed=1, verbose=False
    ).batch(BATCH, drop_remainder=True)
    dataset = dataset.map(lambda images, labels: (augment(images, training=True), labels), tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


def classifier(filters: int) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(filters, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(source.classes)),
        ]
    )


teacher, student = classifier(32), classifier(4)
teacher.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
teacher.fit(stokers(), epochs=2, verbose=0)
optimizer = keras.optimizers.Adam()
optimizer.build(student.trainable_variables)


@tf.function
def step(for_teacher, for_student):
    target = tf.nn.softmax(teacher(for_teacher, training=False) / TEMPERATURE)
    with tf.GradientTape() as tape:
        logits = student(for_student, training=True) / TEMPERATURE
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, student.trainable_variables), student.trainable_variables)
    )
    return tf.reduce_all(for_teacher == for_student)


def both(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """One batch for both models."""
    return dataset.map(lambda images, labels: (images, images))


def zipped(one: tf.data.Dataset, other: tf.data.Dataset) -> tf.data.Dataset:
    """A batch for each model."""
    return tf.data.Dataset.zip((one, other)).map(lambda first, second: (first[0], second[0]))


ways = {
    "stoker, one batch": both(stokers()),
    "usual, one batch": both(usual()),
    "usual, zipped": zipped(usual(), usual()),
}
seconds = timing.in_turns(
    {name: lambda each=each: [step(*pair) for pair in each] for name, each in ways.items()}
)
for name, dataset in ways.items():
    same = sum(bool(step(*pair)) for pair in dataset)
    print(f"{name}: {statistics.median(seconds[name]):.2f} s for an epoch;", end=" ")
    print(f"both models saw the same pixels in {same} of {len(dataset)} batches")
first, *others = ways
print(f"verdict: {'; '.join(timing.verdict(seconds, first, other) for other in others)}")
