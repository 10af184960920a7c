"""TensorFlow 1's graph mode: an initialisable iterator whose outputs are the model's inputs.

Replaces placeholders and feed_dict, which copy each batch from Python into the graph.
"""

import photographs
import stoker
import tensorflow.compat.v1 as tf

SIZE, BATCH, EPOCHS = 64, 16, 2

tf.disable_v2_behavior()

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
