"""Transforms one photograph as a server does: `stoker.Compose` against Pillow and TensorFlow.

    python bench/tensorflow/compose.py PHOTO.jpg [--rounds 7] [--calls 100]

Resize(256), CenterCrop(224), antialiased, from bytes in memory to a (224, 224, 3) uint8 array, on one
thread, in turns. First the pixels: Compose's must be those of the row that a Loader makes of the same file.
"""

import argparse
import io
import os
import pathlib
import shutil
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import stoker
import tensorflow as tf
from PIL import Image

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photo")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--calls", type=int, default=100, help="timed in each round")
args = parser.parse_args()

tf.config.threading.set_intra_op_parallelism_threads(1)
photo = pathlib.Path(args.photo).read_bytes()
transforms = [stoker.Resize(256), stoker.CenterCrop(224)]
compose = stoker.Compose(transforms)


def pillow():
    image = Image.open(io.BytesIO(photo)).convert("RGB")
    scale = 256 / min(image.size)
    width, height = int(image.width * scale), int(image.height * scale)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - 224) // 2, (height - 224) // 2
    return np.asarray(image.crop((left, top, left + 224, top + 224)))


@tf.function
def tensorflow(data):
    image = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    size = tf.cast(size * 256 / tf.reduce_min(size), tf.int32)
    image = tf.image.resize(image, size, antialias=True)
    top, left = (size[0] - 224) // 2, (size[1] - 224) // 2
    return tf.saturate_cast(tf.image.crop_to_bounding_box(image, top, left, 224, 224) + 0.5, tf.uint8)


data = tf.constant(photo)
CALLS = {
    "stoker.Compose": lambda: compose(photo),
    "Pillow": pillow,
    "tf.io.decode_jpeg + resize": lambda: np.asarray(tensorflow(data)),
}


def check_pixels():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/class")
        shutil.copy(args.photo, f"{folder}/class/photo.jpg")
        ((images, _),) = stoker.Loader(stoker.image_folder(folder), transforms, batch_size=1)
        assert np.array_equal(images[0], compose(photo)), "Compose and Loader differ"
    print("Compose's pixels are those of the batch's row")
    for name, call in CALLS.items():
        difference = np.abs(call().astype(int) - compose(photo).astype(int))
        print(f"  {name}: at most {difference.max()} from Compose, {difference.mean():.3f} on average")


def main():
    check_pixels()
    taken = {name: [] for name in CALLS}
    for _ in range(args.rounds):
        for name, call in CALLS.items():
            begin = time.perf_counter()
            for _ in range(args.calls):
                call()
            taken[name].append((time.perf_counter() - begin) / args.calls * 1000)
    for name, times in taken.items():
        print(f"  {name:28} {statistics.median(times):.3f} ms ({min(times):.3f} to {max(times):.3f})")


main()
