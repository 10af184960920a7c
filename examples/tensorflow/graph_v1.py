"""TensorFlow 1's graph mode: an initialisable iterator whose outputs are the model's inputs.

Replaces placeholders and feed_dict, which copy each batch from Python into the graph; and for whole arrays,
from_tensor_slices, which puts them into the graph (at most 2 GB), or takes a copy of them from a feed_dict
whenever an epoch starts. Training on photographs is shown; reading an epoch of whole arrays into Python,
without a model, is timed.
"""

import numpy as np
import photographs
import stoker
import tensorflow.compat.v1 as tf
import timing

SIZE, BATCH, EPOCHS, ROWS = 64, 16, 2, 20_000

tf.disable_v2_behavior()


def train_on_photographs() -> None:
    loader = stoker.Loader(
        stoker.image_folder(photographs.folder(__doc__)),
        [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
        batch_size=BATCH,
        shuffle=True,
        seed=1,
    )
    iterator = tf.data.make_initializable_iterator(loader.as_tf_dataset())
    images, labels = iterator.get_next()  # replaces images = tf.placeholder(...)

    pixels = tf.reshape(tf.image.resize(tf.cast(images, tf.float32) / 127.5 - 1, (8, 8)), (-1, 8 * 8 * 3))
    weights = tf.get_variable("weights", (8 * 8 * 3, len(loader.classes)))
    logits = tf.matmul(pixels, weights)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for epoch in range(EPOCHS):
            session.run(iterator.initializer)  # the loader's next epoch
            losses = []
            while True:
                try:
                    _, value = session.run([train, loss])  # no feed_dict
                except tf.errors.OutOfRangeError:
                    break
                losses.append(value)
            print(f"epoch {epoch}: {len(losses)} batches, mean loss {sum(losses) / len(losses):.3f}")


def slices(arrays) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays).shuffle(ROWS).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def constants(arrays):
    """The arrays are part of the graph."""
    return slices(arrays), None


def placeholders(arrays):
    """The arrays are fed whole, at the start of each epoch."""
    holders = tuple(tf.placeholder(array.dtype, array.shape) for array in arrays)
    return slices(holders), dict(zip(holders, arrays))


def stoker_arrays(arrays):
    """The arrays stay where they are."""
    return stoker.Loader(stoker.arrays(*arrays), batch_size=BATCH, shuffle=True).as_tf_dataset(), None


def epochs(make, arrays):
    """Returns a function that reads an epoch in a graph of its own, and the bytes of that graph."""
    with tf.Graph().as_default() as graph:
        dataset, feed = make(arrays)
        iterator = tf.data.make_initializable_iterator(dataset)
        batch = iterator.get_next()
        session = tf.Session()

    def epoch() -> int:
        session.run(iterator.initializer, feed)
        rows = 0
        while True:
            try:
                rows += len(session.run(batch)[1])
            except tf.errors.OutOfRangeError:
                return rows

    return epoch, graph.as_graph_def().ByteSize()


train_on_photographs()
random = np.random.default_rng(1)
arrays = random.integers(0, 256, (ROWS, 32, 32, 3), np.uint8), random.integers(0, 10, ROWS)
ways = {}
for make in (constants, placeholders, stoker_arrays):
    ways[make.__name__], size = epochs(make, arrays)
    print(f"{make.__name__}: a graph of {size / 1e6:.3f} MB; {ways[make.__name__]():,} rows in an epoch")
seconds = timing.in_turns(ways)
verdicts = [timing.verdict(seconds, "stoker_arrays", other) for other in ("constants", "placeholders")]
print(f"verdict: reading an epoch of whole arrays: {'; '.join(verdicts)}")
