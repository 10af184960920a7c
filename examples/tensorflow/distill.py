"""Distils a teacher into a smaller student: both are fed one batch, decoded and cropped once.

Replaces two pipelines that are zipped, one for each model: photographs are decoded twice, and the teacher
judges another crop than the one that the student sees. One usual pipeline can feed both models as well. All
decode in every epoch, as sets that do not fit into memory have to. Then the two models are compared: weights,
answers, and the CPU time of an answer.
"""

import statistics

import keras
import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH, EPOCHS, TEMPERATURE = 72, 64, 16, 2, 4.0

folder = photographs.folder(__doc__)
source = stoker.image_folder(folder)


def stokers() -> stoker.Loader:
    augment = [stoker.Resize((LARGER, LARGER)), stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()]
    return stoker.Loader(source, augment, batch_size=BATCH, shuffle=True, seed=1, drop_remainder=True)


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
            keras.layers.Conv2D(2 * filters, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(2),
        ]
    )


with stoker.Loader(source, [stoker.Resize((SIZE, SIZE))], batch_size=len(source)) as loader:
    images, _ = next(iter(loader))  # to train the teacher and to examine both
brightness = images.mean(axis=(1, 2, 3))
labels = (brightness > np.median(brightness)).astype(np.int64)  # can be learned from the pixels; use your own
keras.utils.set_random_seed(1)
teacher, student = classifier(32), classifier(4)
teacher.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
teacher.fit(images, labels, batch_size=BATCH, epochs=10, verbose=0)
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
    return dataset.map(lambda images, labels: (images, images), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def zipped(one: tf.data.Dataset, other: tf.data.Dataset) -> tf.data.Dataset:
    """A batch for each model."""
    pairs = tf.data.Dataset.zip((one, other))
    return pairs.map(lambda first, second: (first[0], second[0]), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def train(dataset: tf.data.Dataset) -> list[tf.Tensor]:
    return [step(*pair) for _ in range(EPOCHS) for pair in dataset]


def with_stoker() -> list[tf.Tensor]:
    with stokers() as loader:  # closed in its turn: it produces nothing while the others are timed
        floats = loader.as_tf_dataset().map(
            lambda images, labels: (tf.cast(images, tf.float32), labels), tf.data.AUTOTUNE
        )
        return train(both(floats))


one_pipeline, two_pipelines = both(usual()), zipped(usual(), usual())
ways = {
    "stoker, one batch": with_stoker,
    "usual, one batch": lambda: train(one_pipeline),
    "usual, zipped": lambda: train(two_pipelines),
}
seconds = timing.in_turns(ways)
for name, way in ways.items():
    same = way()
    print(f"{name}: {statistics.median(seconds[name]) / EPOCHS:.2f} s of CPU time for an epoch;", end=" ")
    print(f"both models saw the same pixels in {sum(map(bool, same))} of {len(same)} batches")


def answering(model: keras.Model):
    """Returns a function that answers for all photographs at once."""
    answer = tf.function(lambda: tf.argmax(model(images), axis=1))
    return lambda: answer().numpy()


models = {"teacher": teacher, "student": student}
answers = {name: answering(model) for name, model in models.items()}
spent = timing.in_turns(answers)
told = []
for name, model in models.items():
    told.append(f"{name}: {model.count_params():,} weights, {np.mean(answers[name]() == labels):.0%} correct")
    print(
        f"{told[-1]}; {1e6 * statistics.median(spent[name]) / len(images):.0f} µs of CPU time for an answer"
    )
first, *others = ways
verdicts = [timing.verdict(seconds, first, other) for other in others]
verdicts += [*told, timing.verdict(spent, "student", "teacher")]
print(f"verdict: decoding in every epoch, {'; '.join(verdicts)}")
