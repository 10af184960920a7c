"""Prunes a model while it trains, with TensorFlow's Model Optimization Toolkit.

Replaces nothing: the toolkit's models train on stoker's dataset like any other. The toolkit knows Keras 2
only: pip install tensorflow-model-optimization tf-keras
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.keras is tf_keras then; before TensorFlow is imported

import photographs
import stoker
import tensorflow as tf

try:
    import tensorflow_model_optimization as tfmot
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit()

SIZE, BATCH, EPOCHS, SPARSITY = 64, 16, 4, 0.75

loader = stoker.Loader(
    stoker.image_folder(photographs.folder(__doc__)),
    [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
    batch_size=BATCH,
    shuffle=True,
    seed=1,
    dtype="float32",  # 0 to 1: the toolkit has no pruning for a Rescaling layer
)
schedule = tfmot.sparsity.keras.PolynomialDecay(
    initial_sparsity=0.0,
    final_sparsity=SPARSITY,
    begin_step=0,
    end_step=(EPOCHS - 1) * len(loader),
    frequency=2,
)
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Conv2D(16, 3, strides=2, activation="relu", input_shape=(SIZE, SIZE, 3)),
        layers.Conv2D(32, 3, strides=2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(len(loader.classes)),
    ]
)
model = tfmot.sparsity.keras.prune_low_magnitude(model, schedule)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
pruning = tfmot.sparsity.keras.UpdatePruningStep()
model.fit(loader.as_tf_dataset(), epochs=EPOCHS, callbacks=[pruning], verbose=2)

for layer in tfmot.sparsity.keras.strip_pruning(model).layers:
    for weight in layer.weights:
        if "kernel" in weight.name:
            zeros = tf.reduce_mean(tf.cast(weight == 0, tf.float32))
            print(f"{weight.name}: {zeros:.0%} zeros")
