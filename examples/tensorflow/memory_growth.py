"""GPUs stay under the program's control: stoker leaves TensorFlow's device settings alone.

tf.config's calls must come before TensorFlow first uses a device. They still work when a loader has been made
and read from, but not after the first batch of a tf.data pipeline. Where there is a GPU, the program prints
how much of its memory the loader's batches take.
"""

import photographs
import stoker
import tensorflow as tf


def settings_work(after: str, parts: int) -> str:
    """Makes the settings; returns whether TensorFlow still allows that."""
    gpus = tf.config.list_physical_devices("GPU")
    cpu = tf.config.list_physical_devices("CPU")[0]
    divided = [tf.config.LogicalDeviceConfiguration()] * parts
    try:
        tf.config.set_visible_devices(gpus[:1], "GPU")  # leaves the others to other programs
        for gpu in gpus[:1]:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.set_logical_device_configuration(cpu, divided)  # for machines without a GPU to set
    except RuntimeError as error:
        print(f"after {after}: {error}")
        return "no"
    print(f"after {after}: {len(tf.config.get_visible_devices('GPU'))} of {len(gpus)} GPUs are visible")
    return "yes"


loader = stoker.Loader(
    stoker.image_folder(photographs.folder(__doc__)),
    [stoker.Resize((64, 64))],
    batch_size=16,
)
images, labels = next(iter(loader))  # stoker is working, but has not touched a device
after_stoker = settings_work("a batch of stoker's loader", parts=2)
next(
    iter(tf.data.Dataset.from_tensor_slices((images, labels)).batch(16))
)  # TensorFlow uses devices from here on
after_tf_data = settings_work("a batch of a tf.data pipeline", parts=3)
print(f"{len(tf.config.list_logical_devices('CPU'))} logical CPUs")  # the settings that were made in time


gpus = tf.config.list_logical_devices("GPU")


def gpu_memory() -> int:
    return sum(tf.config.experimental.get_memory_info(gpu.name)["current"] for gpu in gpus)


before = gpu_memory()
batches = list(loader.as_tf_dataset())
taken = f"{gpu_memory() - before} bytes" if gpus else "no GPU: not measured"
print(f"{len(batches)} batches, {batches[0][0].device}; GPU memory that they take: {taken}")
print(
    f"verdict: devices can be set after a batch of stoker's loader: {after_stoker}, "
    f"after one of a tf.data pipeline: {after_tf_data}; GPU memory that batches take: {taken}"
)
