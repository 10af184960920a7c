"""Trains with and without prefetch(), on a model that leaves the CPU alone, as one on an accelerator does.

A prefetch makes the next batch during a step. TensorFlow's default optimizations do the same: they make map()
parallel, which then works ahead, and add a prefetch to the end. stoker's loader has its own. The step only
waits here, so that no accelerator is needed: all CPU time is the input's, and what it takes outside steps is
what they wait for.
"""

import statistics
import time

import photographs
import stoker
import tensorflow as tf
import timing

SIZE, BATCH, STEP = 64, 16, 0.1

source = stoker.image_folder(photographs.folder(__doc__))
files = [source.path(sample) for sample in range(len(source))]


def decoded(path):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (SIZE, SIZE))


def usual(optimized: bool) -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = optimized
    options.experimental_optimization.inject_prefetch = optimized
    images = tf.data.Dataset.from_tensor_slices(files).map(decoded)
    return images.batch(BATCH).with_options(options)


in_steps = 0.0  # CPU time


def outside_steps() -> float:
    """A clock: CPU time, but for that during steps."""
    return time.process_time() - in_steps


def step() -> None:
    global in_steps
    start = time.process_time()
    time.sleep(STEP)
    in_steps += time.process_time() - start


def training(dataset: tf.data.Dataset):
    """Returns a function that goes through an epoch, with a step for each batch."""
    return lambda: [step() for _ in dataset]


loader = stoker.Loader(source, [stoker.Resize((SIZE, SIZE))], batch_size=BATCH)
stokers = loader.as_tf_dataset()
datasets = {
    "no prefetch": usual(optimized=False),
    "TensorFlow's own": usual(optimized=True),
    "prefetch(AUTOTUNE)": usual(optimized=False).prefetch(tf.data.AUTOTUNE),
    "stoker": stokers,
    "stoker with prefetch(AUTOTUNE)": stokers.prefetch(tf.data.AUTOTUNE),
}
ways = {name: training(dataset) for name, dataset in datasets.items()}
seconds = timing.in_turns(ways, clock=outside_steps)
for name, each in seconds.items():
    print(f"{name:32}{1000 * statistics.median(each) / len(loader):6.1f} ms of CPU time outside a step")
none, own, written, stokers_own, both = datasets
pairs = [(written, none), (own, none), (written, own), (stokers_own, both)]
verdicts = [timing.verdict(seconds, *pair, "CPU time outside steps") for pair in pairs]
print(f"verdict: {'; '.join(verdicts)}")
loader.close()
