"""TensorFlow 1's sessions: one for all steps, or one for each; constants in a loop; feed_dict or an iterator.

A new Session has nothing of the last one's: it prunes and places the graph again. An op that is made in a
loop stays in the graph, which then grows, and is prepared again by the next run. A feed_dict hands over a
batch from Python in each step. Steps of one small model are timed.
"""

import numpy as np
import stoker
import tensorflow.compat.v1 as tf
import timing

ROWS, WIDTH, BATCH, STEPS = 4096, 32 * 32 * 3, 128, 10 if timing.QUICK else 30

tf.disable_v2_behavior()
random = np.random.default_rng(1)
rows, labels = random.integers(0, 256, (ROWS, WIDTH), np.uint8), random.integers(0, 4, ROWS)
loader = stoker.Loader(stoker.arrays(rows, labels), batch_size=BATCH, shuffle=True, seed=1)


def model(inputs, targets):
    """Returns the op that trains a step."""
    weights = tf.get_variable("weights", (WIDTH, 4))
    logits = tf.matmul(tf.cast(inputs, tf.float32) / 255, weights)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def started() -> tf.Session:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def fed(feeds, grows: bool = False):
    """Returns a function that trains with one Session and a feed_dict, and its graph."""
    with tf.Graph().as_default() as graph:
        inputs, targets = tf.placeholder(tf.uint8, (None, WIDTH)), tf.placeholder(tf.int64, (None,))
        train, session = model(inputs, targets), started()

    def steps() -> None:
        with graph.as_default():
            for some_rows, some_labels in feeds():
                if grows:
                    session.run(tf.constant(1.0) * 2)  # ops that the graph keeps
                session.run(train, {inputs: some_rows, targets: some_labels})

    return steps, graph


def sessions():
    """Returns a function that trains with a Session for each step, and its graph."""
    with tf.Graph().as_default() as graph:
        train, first = (
            model(tf.constant(rows[:BATCH]), tf.constant(labels[:BATCH])),
            tf.global_variables_initializer(),
        )

    def steps() -> None:
        for _ in range(STEPS):
            with tf.Session(graph=graph) as session:
                session.run(first)  # the last session's variables are gone
                session.run(train)

    return steps, graph


def one_session():
    """As `sessions`, with one Session."""
    with tf.Graph().as_default() as graph:
        train, first = (
            model(tf.constant(rows[:BATCH]), tf.constant(labels[:BATCH])),
            tf.global_variables_initializer(),
        )
        session = tf.Session()

    def steps() -> None:
        for _ in range(STEPS):
            session.run(first)
            session.run(train)

    return steps, graph


def iterated():
    """Returns a function that trains from stoker's iterator, and its graph."""
    with tf.Graph().as_default() as graph:
        iterator = tf.data.make_initializable_iterator(loader.as_tf_dataset().repeat())
        train, session = model(*iterator.get_next()), started()

    def steps() -> None:
        session.run(iterator.initializer)
        for _ in range(STEPS):
            session.run(train)

    return steps, graph


def gathered():
    """Batches that NumPy gathers."""
    for _ in range(STEPS):
        some = random.integers(0, ROWS, BATCH)
        yield rows[some], labels[some]


def one_batch():
    """The same rows in each step."""
    for _ in range(STEPS):
        yield rows[:BATCH], labels[:BATCH]


made = {
    "a Session for each step": sessions(),
    "one Session": one_session(),
    "constants in the loop": fed(one_batch, grows=True),
    "no constants in the loop": fed(one_batch),
    "feed_dict": fed(gathered),
    "stoker's iterator": iterated(),
}
before = {name: len(graph.as_graph_def().node) for name, (_, graph) in made.items()}
seconds = timing.in_turns({name: steps for name, (steps, _) in made.items()})
after = {name: len(graph.as_graph_def().node) for name, (_, graph) in made.items()}
growth = {
    name: f"{before[name]} nodes, {after[name]} after {(1 + timing.ROUNDS) * STEPS} steps" for name in made
}
for name, told in growth.items():
    print(f"{name}: {told}")
names = list(made)
pairs = [(names[1], names[0]), (names[3], names[2]), (names[5], names[4])]
print(
    f"verdict: constants in the loop: {growth['constants in the loop']}; "
    f"{'; '.join(timing.verdict(seconds, *pair) for pair in pairs)}"
)
loader.close()
