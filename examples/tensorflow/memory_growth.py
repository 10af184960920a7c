"""GPU memory stays under the program's control: stoker leaves TensorFlow's device settings alone.

Replaces nothing. tf.config's calls must come before TensorFlow first uses a device: they still work when
a loader has been made and read from, and reading it as a dataset takes no GPU memory.
"""

import photographs
import stoker
import tensorflow as tf

loader = stoker.Loader(
    stoker.image_folder(photographs.folder(__doc__)),
    [stoker.Resize((64, 64))],
    batch_size=16,
)
images, labels = next(iter(loader))  # stoker is working, but has not touched a device

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)  # RuntimeError if the GPU were in use already
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])  # likewise
print(f"{len(gpus)} GPUs, set to grow their memory as needed")


def gpu_memory() -> int:
    return sum(tf.config.experimental.get_memory_info(gpu.name)["current"] for gpu in logical_gpus)


logical_gpus = tf.config.list_logical_devices("GPU")
before = gpu_memory()
batches = list(loader.as_tf_dataset())
print(f"{len(batches)} batches, {batches[0][0].device}: {gpu_memory() - before} bytes of GPU memory")
