"""Trains one model on one batch that stays in memory, in mixed precision and with XLA, and counts no input.

Whether mixed_bfloat16 is faster depends on the processor: one without bfloat16 (AVX-512 BF16, AMX)
computes it in float32 and converts. Whether NCHW is faster than NHWC does too: GPUs may want it, and
TensorFlow's own kernels for CPUs take NHWC only, so that both are compared with XLA here. casts.py
compares where a batch is transposed.
"""

import os
import pathlib
import statistics

os.environ.setdefault("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit")  # set_jit() is for GPUs alone otherwise

import keras
import numpy as np
import tensorflow as tf
import timing

SIZE, BATCH, STEPS, CLASSES = 64, 16, 1 if timing.QUICK else 3, 4
MIXED = "mixed_bfloat16"  # "mixed_float16" on GPUs before Ampere

random = np.random.default_rng(1)
images = tf.constant(random.integers(0, 256, (BATCH, SIZE, SIZE, 3), np.uint8))
labels = tf.constant(random.integers(0, CLASSES, BATCH))


def classifier(
    policy: str = "float32", layout: str = "channels_last", jit_compile: bool = False
) -> keras.Model:
    keras.utils.set_random_seed(1)
    keras.mixed_precision.set_dtype_policy(policy)
    keras.config.set_image_data_format(layout)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            *([keras.layers.Permute((3, 1, 2))] if layout == "channels_first" else []),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(CLASSES, activation="softmax", dtype="float32"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=jit_compile)
    return model


def training(model: keras.Model, set_jit: bool = False):
    """Returns a function that trains for some steps."""

    def train() -> float:
        tf.config.optimizer.set_jit("autoclustering" if set_jit else False)
        return [model.train_on_batch(images, labels) for _ in range(STEPS)][-1]

    return train


def features() -> str:
    """What this processor has for bfloat16, by Linux' names."""
    told = pathlib.Path("/proc/cpuinfo").read_text().split()
    return ", ".join(name for name in ("avx512_bf16", "amx_bf16") if name in told) or "none"


ways = {
    "float32": training(classifier()),
    MIXED: training(classifier(MIXED)),
    "jit_compile": training(classifier(jit_compile=True)),
    "set_jit": training(classifier(), set_jit=True),
    "NCHW with XLA": training(classifier(layout="channels_first", jit_compile=True)),
}
seconds = timing.in_turns(ways)
for name, each in seconds.items():
    print(f"{name:15}{BATCH * STEPS / statistics.median(each):8,.0f} images for a second of CPU time")
seconds["NHWC with XLA"] = seconds["jit_compile"]
pairs = [("float32", MIXED), ("float32", "jit_compile"), ("float32", "set_jit")]
pairs += [("NHWC with XLA", "NCHW with XLA")]
verdicts = "; ".join(timing.verdict(seconds, *pair) for pair in pairs)
print(f"verdict: with bfloat16 instructions: {features()}: {verdicts}")
