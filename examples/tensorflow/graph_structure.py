"""Finds from a profile which parts of a model run, and what each step allocates.

A layer whose output nobody uses need not be removed by hand: TensorFlow leaves it out of a tf.function's
graph, though its weights keep their memory. The same product written twice is computed once if both take
the same tensor, and twice if a layer is called twice, as each call reads the layer's variable. The profile
counts what ran. It also counts what a step allocates: a new tensor, or nothing where a variable is updated
in place.
"""

import keras
import numpy as np
import profiles
import tensorflow as tf
import timing

ROWS, WIDTH, STEPS = 256, 256, 10 if timing.QUICK else 100

random = np.random.default_rng(1)
batch = tf.constant(random.normal(size=(ROWS, WIDTH)), tf.float32)


def dense() -> keras.layers.Dense:
    return keras.layers.Dense(WIDTH, use_bias=False)


class Layers(keras.Model):
    """Multiplies by the weights, once or more often than anyone needs."""

    def __init__(self, unused: bool = False):
        super().__init__()
        self.first, self.unused = dense(), dense() if unused else None

    def call(self, rows):
        """Returns the product."""
        if self.unused is not None:
            self.unused(rows)
        return self.first(rows)


class CalledTwice(Layers):
    """Calls the layer twice."""

    def call(self, rows):
        """Returns the sum of two equal products."""
        return self.first(rows) + self.first(rows)


class WrittenTwice(Layers):
    """Multiplies twice by one tensor."""

    def call(self, rows):
        """Returns the sum of two equal products."""
        kernel = tf.convert_to_tensor(self.first.kernel)
        return rows @ kernel + rows @ kernel


def products(model: keras.Model) -> tuple[int, int]:
    """Matrix products in the graph, and those that the profile of a call has."""
    function = tf.function(lambda: model(batch))
    function()
    graph = function.get_concrete_function().graph.get_operations()
    ran = profiles.ops(profiles.profiled(function))
    return sum(op.type == "MatMul" for op in graph), sum(ran[name] for name in ran if "MatMul" in name)


def calling(model: keras.Model, compiled: bool = True):
    function = tf.function(lambda: model(batch)) if compiled else lambda: model(batch)
    return lambda: [function() for _ in range(STEPS)]


models = {
    "plain": Layers(),
    "unused layer": Layers(unused=True),
    "layer called twice": CalledTwice(),
    "product written twice": WrittenTwice(),
}
told = []
for name, model in models.items():
    Layers.call(model, batch)  # makes the weights
    traced, ran = products(model)
    told.append(
        f"{name}: {traced} matrix product{'s' if traced > 1 else ''} in the graph, {ran} in the profile"
    )
    print(f"{told[-1]}; {model.count_params():,} weights")

variable = tf.Variable(batch)
tensors = [batch]


def in_place():
    """Writes into the variable's memory."""
    variable.assign_add(batch)


def new_tensor():
    """Makes a tensor in each step."""
    tensors[0] = tensors[0] + batch


updates = {"in place": in_place, "new tensors": new_tensor}
for name, update in updates.items():
    update()
    events = profiles.profiled(lambda update=update: [update() for _ in range(STEPS)])
    told.append(
        f"{name}: {profiles.allocations(events, batch.dtype.size * ROWS * WIDTH) / STEPS:.1f} "
        "allocations of the tensor's size in a step"
    )
    print(f"{told[-1]}, {profiles.peak(events) / 1e6:.1f} MB at the peak")

ways = {name: calling(model) for name, model in models.items()}
ways["unused layer, eager"] = calling(models["unused layer"], compiled=False)
ways |= {name: lambda update=update: [update() for _ in range(STEPS)] for name, update in updates.items()}
seconds = timing.in_turns(ways)
pairs = [("plain", "unused layer"), ("plain", "layer called twice"), ("unused layer", "unused layer, eager")]
pairs += [("in place", "new tensors")]
print(f"verdict: {'; '.join([*told, *(timing.verdict(seconds, *pair) for pair in pairs)])}")
