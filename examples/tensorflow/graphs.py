"""Loops, branches and eager steps: what tf.function makes of them, in traces, nodes and CPU time.

A loop over tf.range is one While op: it is traced once, for any number of turns. A loop over Python's
range is unrolled, and traced again for each number of turns. Neither is needed where an op does the same
for a whole batch: that is what saves time. A branch on a tensor is one trace with both sides in the graph;
a branch on a Python value is a trace for each value.
"""

import keras
import photographs
import stoker
import tensorflow as tf
import timing

SIZE, BATCH, TURNS = 64, 16, 2 if timing.QUICK else 10
LENGTHS = (50, 100, 200)

source = stoker.image_folder(photographs.folder(__doc__))
with stoker.Loader(source, [stoker.Resize((SIZE, SIZE))], batch_size=BATCH) as loader:
    images, labels = next(iter(loader.as_tf_dataset()))


def counts(function) -> str:
    """Traces so far, and the nodes of each, those in the bodies of loops and branches too."""
    definitions = [each.graph.as_graph_def() for each in function._list_all_concrete_functions()]
    nodes = [
        len(each.node) + sum(len(inner.node_def) for inner in each.library.function) for each in definitions
    ]
    traces = function.experimental_get_tracing_count()
    return f"{traces} trace{'s' if traces > 1 else ''} of {' and '.join(map(str, sorted(nodes)))} nodes"


vector = tf.TensorSpec([None], tf.float32)  # of any length


@tf.function(input_signature=[vector])
def tensor_loop(values):
    """A loop over tf.range: turns are counted in the graph."""
    total = 0.0
    for number in tf.range(tf.size(values)):
        total += values[number]
    return total


@tf.function
def python_loop(values, length):
    """A loop over Python's range: each turn is in the graph."""
    total = 0.0
    for number in range(length):
        total += values[number]
    return total


@tf.function(input_signature=[vector])
def one_op(values):
    """No loop."""
    return tf.reduce_sum(values)


@tf.function
def branch_on_tensor(values, training):
    """Both sides are in the graph."""
    if training:
        return values * tf.random.uniform(tf.shape(values))
    return values


@tf.function
def branch_on_python(values, training):
    """One side is in each graph."""
    if training:
        return values * tf.random.uniform(tf.shape(values))
    return values


vectors = [tf.random.uniform([length]) for length in LENGTHS]
sums = {
    "tf.range": lambda: [tensor_loop(each) for each in vectors],
    "range": lambda: [python_loop(each, len(each)) for each in vectors],
    "reduce_sum": lambda: [one_op(each) for each in vectors],
}
for training in (True, False):
    branch_on_tensor(vectors[0], tf.constant(training))
    branch_on_python(vectors[0], training)

model = keras.Sequential(
    [
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(source.classes)),
    ]
)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    for weight, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        weight.assign_sub(0.01 * gradient)


def train_one_by_one(images, labels):
    with tf.GradientTape() as tape:
        loss = 0.0
        for row in tf.range(BATCH):
            loss += loss_of(labels[row : row + 1], model(images[row : row + 1], training=True)) / BATCH
    for weight, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        weight.assign_sub(0.01 * gradient)


def stepping(function):
    return lambda: [function(images, labels) for _ in range(TURNS)]


graph_step, graph_loop = tf.function(train), tf.function(train_one_by_one)
steps = {
    "tf.function": stepping(graph_step),
    "an eager step": stepping(train),
    "a loop over the batch's images": stepping(graph_loop),
}

ways = {name: lambda way=way: [way() for _ in range(TURNS)] for name, way in sums.items()}
seconds = timing.in_turns({**ways, **steps})
found = {
    "tf.range": counts(tensor_loop),
    "range": counts(python_loop),
    "reduce_sum": counts(one_op),
    "if on a tensor": counts(branch_on_tensor),
    "if on a Python value": counts(branch_on_python),
    "a loop over the batch's images": counts(graph_loop),
    "the whole batch": counts(graph_step),
}
for name, told in found.items():
    print(f"{name:31} {told}")
pairs = [("reduce_sum", "tf.range"), ("range", "tf.range")]
pairs += [("tf.function", "an eager step"), ("tf.function", "a loop over the batch's images")]
traced = "; ".join(f"{name}: {found[name]}" for name in list(found)[:5])
print(f"verdict: {traced}; {'; '.join(timing.verdict(seconds, *pair) for pair in pairs)}")
