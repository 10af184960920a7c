"""Prunes a model while it trains, from 50 % to 90 % of its weights, with the Model Optimization Toolkit.

The toolkit's models train on stoker's dataset like any other; a loader's len() gives the schedule its steps.
The same model is also trained without pruning. Zeros make a model smaller once it is compressed. They make it
faster only where kernels are made for sparse weights: the CPU time of an answer is measured. The toolkit
knows Keras 2 only:
pip install tensorflow-model-optimization tf-keras
"""

import gzip
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.keras is tf_keras then; before TensorFlow is imported

import numpy as np
import photographs
import stoker
import tensorflow as tf
import timing

try:
    import tensorflow_model_optimization as tfmot
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit()

SIZE, BATCH, EPOCHS, SPARSITIES, CHANCE = 64, 16, 20, (0.50, 0.90), np.log(2)

source = stoker.image_folder(photographs.folder(__doc__))
options = {
    "batch_size": BATCH,
    "dtype": "float32",
}  # 0 to 1: the toolkit has no pruning for a Rescaling layer
validation = stoker.Loader(source, [stoker.Resize((SIZE, SIZE))], **options)
schedule = tfmot.sparsity.keras.PolynomialDecay(
    initial_sparsity=SPARSITIES[0],
    final_sparsity=SPARSITIES[1],
    begin_step=0,
    end_step=(EPOCHS - 1) * len(validation),  # a step for each batch, and one epoch with the final sparsity
    frequency=2,
)


def brightness(images):
    return tf.reduce_mean(images, axis=(1, 2, 3))


middle = np.median(np.concatenate([brightness(images) for images, _ in validation.as_tf_dataset(epoch=0)]))


def bright(images, labels):
    """Labels that can be learned: is it brighter than most photographs? Use your own."""
    return images, tf.cast(brightness(images) > middle, tf.int64)


def kernels(model: tf.keras.Model) -> dict[str, np.ndarray]:
    found = {weight.name: weight.numpy() for layer in model.layers for weight in layer.weights}
    return {name: value for name, value in found.items() if "kernel" in name}


def zeros(model: tf.keras.Model) -> float:
    values = [np.ravel(value) for value in kernels(model).values()]
    return float(np.mean(np.concatenate(values) == 0))


class ShowZeros(tf.keras.callbacks.Callback):
    """Prints how far the schedule is."""

    def on_epoch_end(self, epoch, logs=None):
        """Prints a line after each epoch."""
        print(f"after epoch {epoch}: {zeros(self.model):.0%} zeros")


def train(prune: bool) -> tuple[tf.keras.Model, list[float]]:
    """The model, its loss and accuracy on photographs that are not augmented."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(16, 3, strides=2, activation="relu", input_shape=(SIZE, SIZE, 3)),
            layers.Conv2D(32, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(2),
        ]
    )
    augment = [stoker.Resize((SIZE, SIZE)), stoker.RandomHorizontalFlip()]
    loader = stoker.Loader(source, augment, shuffle=True, seed=1, **options)
    callbacks = []
    if prune:
        model = tfmot.sparsity.keras.prune_low_magnitude(model, schedule)
        callbacks = [tfmot.sparsity.keras.UpdatePruningStep(), ShowZeros()]
    model.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        loader.as_tf_dataset().map(bright, tf.data.AUTOTUNE), epochs=EPOCHS, callbacks=callbacks, verbose=0
    )
    loss = model.evaluate(validation.as_tf_dataset(epoch=0).map(bright, tf.data.AUTOTUNE), verbose=0)
    return (tfmot.sparsity.keras.strip_pruning(model) if prune else model), loss


def compressed(model: tf.keras.Model) -> int:
    return len(gzip.compress(b"".join(value.tobytes() for value in kernels(model).values())))


def answering(model: tf.keras.Model):
    """Returns a function that answers for a photograph many times, as TFLite does on a device."""
    interpreter = tf.lite.Interpreter(model_content=tf.lite.TFLiteConverter.from_keras_model(model).convert())
    interpreter.allocate_tensors()
    return lambda: [interpreter.invoke() for _ in range(1000)]


dense, (dense_loss, dense_correct) = train(prune=False)
pruned, (pruned_loss, pruned_correct) = train(prune=True)
seconds = timing.in_turns({"pruned": answering(pruned), "dense": answering(dense)})
for name, kernel in kernels(pruned).items():
    print(f"{name}: {np.mean(kernel == 0):.0%} zeros")
smaller = compressed(dense) / compressed(pruned)
learned = "" if dense_loss < 0.9 * CHANCE else "; it did not learn"
print(
    f"verdict: with {zeros(pruned):.0%} zeros (without pruning: {zeros(dense):.0%}), kernels compress to "
    f"{smaller:.2f} times fewer bytes; {pruned_correct:.0%} correct, without pruning {dense_correct:.0%}; "
    f"{timing.verdict(seconds, 'pruned', 'dense')}; the loss is {pruned_loss:.2f}, "
    f"without pruning {dense_loss:.2f}, by chance {CHANCE:.2f}{learned}"
)
