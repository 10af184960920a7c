"""Photographs as baseline and progressive JPEG, PNG and WebP on one core: stoker, libjpeg-turbo, Pillow,
OpenCV, torchvision and TensorFlow.

    python bench/formats.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 224] [--only NAME,…]

PHOTOS is a folder of JPEGs. Their pixels are written in each format to a temporary folder: JPEGs of quality
90 and 4:2:0 (progressive ones with libjpeg's default scan script), PNGs by Pillow's default (zlib's level 6),
WebPs of quality 85. "crop" is the image of a training step: the file is read, decoded, cropped as by
RandomResizedCrop and resized to size × size; 16 of them are a batch of uint8. "whole" is a call that decodes
the bytes of one file to an RGB array, as stoker.decode_image does. "packed" is a set that `stoker pack` made
of the files.

Pillow resizes the box of an image with antialiasing, torchvision a crop likewise, OpenCV bilinearly without
it. TensorFlow decodes the box of a JPEG alone (decode_and_crop_jpeg) and resizes like OpenCV. libjpeg-turbo
is that of simplejpeg. Ratios are to stoker's time for files of the same format. A library that is not
installed is left out.

How they are compared: bench/in_turns.py.
"""

import functools
import itertools
import math
import pathlib
import subprocess
import sys

import numpy as np
from in_turns import SPEED, compare, endless, photographs

BATCH = 16
SAVED = {
    "baseline": (".jpg", {"quality": 90}),
    "progressive": (".jpg", {"quality": 90, "progressive": True}),
    "PNG": (".png", {}),
    "WebP": (".webp", {"quality": 85}),
}


def make_files(photos, folder):
    """Writes and packs the photographs in each format; returns the temporary folder once for each of them."""
    from PIL import Image

    sources = photographs(photos)
    for form, (suffix, options) in SAVED.items():
        (folder / form / "files").mkdir(parents=True)
        for i, source in enumerate(sources):
            with Image.open(source) as photo:
                photo.convert("RGB").save(
                    folder / form / f"files/{i:05}{suffix}", icc_profile=None, **options
                )
        words = [sys.executable, "-m", "stoker", "pack", folder / form / "files", folder / form / "packed"]
        subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return [str(folder)] * len(sources)


def files(samples, form):
    return sorted((pathlib.Path(samples[0]) / form / "files").iterdir())


def crop_by_stoker(form, make, samples, size):
    import stoker

    loader = stoker.Loader(
        make(pathlib.Path(samples[0]) / form),
        [stoker.RandomResizedCrop(size)],
        batch_size=BATCH,
        shuffle=True,
        runtime=stoker.Runtime(threads=1),
    )
    yield from map(len, endless(loader))


def of_files(folder):
    import stoker

    return stoker.files(sorted(map(str, (folder / "files").iterdir())))


def of_packed(folder):
    import stoker

    return stoker.packed(folder / "packed")


def whole_by_stoker():
    import stoker

    return stoker.decode_image


def whole_by_libjpeg_turbo():
    import simplejpeg

    return functools.partial(simplejpeg.decode_jpeg, colorspace="RGB")


def whole_by_pillow():
    import io

    from PIL import Image

    return lambda data: np.array(Image.open(io.BytesIO(data)).convert("RGB"))


def whole_by_opencv():
    import cv2

    cv2.setNumThreads(1)
    return lambda data: cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


def whole_by_torchvision():
    import torch
    from torchvision.io import ImageReadMode, decode_image

    torch.set_num_threads(1)
    return lambda data: decode_image(torch.frombuffer(data, dtype=torch.uint8), mode=ImageReadMode.RGB)


def whole_by_tensorflow():
    tf = one_thread()
    return lambda data: tf.io.decode_image(data, channels=3, expand_animations=False).numpy()


def one_thread():
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf


def whole(form, make, samples, _):
    """Yields 1 for each image that is decoded; the bytes are in memory."""
    decode = make()
    for path in itertools.cycle([bytearray(path.read_bytes()) for path in files(samples, form)]):
        decode(path if make is whole_by_torchvision else bytes(path))
        yield 1


def draw_box(random, width, height):
    """Returns (left, top, right, bottom) as RandomResizedCrop draws it."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.integers(width - w + 1), random.integers(height - h + 1)
            return int(left), int(top), int(left) + w, int(top) + h
    return 0, 0, width, height


def crop_by_pillow(path, size, random):
    from PIL import Image

    with Image.open(path) as image:
        box = draw_box(random, *image.size)
        return np.array(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=box))


def crop_by_opencv(path, size, random):
    import cv2

    cv2.setNumThreads(1)
    image = cv2.imread(str(path), cv2.IMREAD_COLOR_RGB)
    left, top, right, bottom = draw_box(random, image.shape[1], image.shape[0])
    return cv2.resize(image[top:bottom, left:right], (size, size), interpolation=cv2.INTER_LINEAR)


def crop_by_torchvision(path, size, random):
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)
    image = decode_image(str(path), mode=ImageReadMode.RGB)
    left, top, right, bottom = draw_box(random, image.shape[2], image.shape[1])
    return functional.resized_crop(image, top, left, bottom - top, right - left, [size, size]).numpy()


def crops(form, crop, samples, size):
    """Yields the size of each batch of crops that `crop` makes of a path."""
    random, paths = np.random.default_rng(0), files(samples, form)
    while True:
        order = random.permutation(len(paths))
        for begin in range(0, len(paths), BATCH):
            yield len(np.stack([crop(paths[i], size, random) for i in order[begin : begin + BATCH]]))


def crop_by_tensorflow(form, samples, size):
    tf = one_thread()

    def load(path):
        data = tf.io.read_file(path)
        is_jpeg = SAVED[form][0] == ".jpg"
        image = None if is_jpeg else tf.io.decode_png(data, channels=3)
        shape = tf.io.extract_jpeg_shape(data) if is_jpeg else tf.shape(image)
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            shape,
            tf.zeros([1, 0, 4]),
            min_object_covered=0,
            area_range=(0.08, 1),
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], extent[:2]], 0)
        image = tf.io.decode_and_crop_jpeg(data, window, 3) if is_jpeg else tf.slice(image, begin, extent)
        return tf.cast(tf.image.resize(image, (size, size)), tf.uint8)

    paths = [str(path) for path in files(samples, form)]
    for batch in (
        tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat().map(load).batch(BATCH)
    ):
        yield len(batch)


WHOLE = {
    "stoker": (whole_by_stoker, "stoker"),
    "libjpeg-turbo": (whole_by_libjpeg_turbo, "simplejpeg"),
    "Pillow": (whole_by_pillow, "PIL"),
    "OpenCV": (whole_by_opencv, "cv2"),
    "torchvision": (whole_by_torchvision, "torchvision"),
    "TensorFlow": (whole_by_tensorflow, "tensorflow"),
}
CROP = {
    "stoker": (of_files, "stoker"),
    "packed": (of_packed, "stoker"),
    "Pillow": (crop_by_pillow, "PIL"),
    "OpenCV": (crop_by_opencv, "cv2"),
    "torchvision": (crop_by_torchvision, "torchvision"),
    "TensorFlow": (crop_by_tensorflow, "tensorflow"),
}
READS = {  # by libraries that do not read all of them
    "libjpeg-turbo": ("baseline", "progressive"),
    "TensorFlow": ("baseline", "progressive", "PNG"),
}


def make_loaders():
    """Returns the loaders, the modules that they need, and what their ratios are to, by names like
    "PNG whole: Pillow".
    """
    loaders, needs, against = {}, {}, {}
    for form, (kind, makers) in itertools.product(SAVED, (("crop", CROP), ("whole", WHOLE))):
        for library, (make, module) in makers.items():
            if form not in READS.get(library, SAVED):
                continue
            name = f"{form} {kind}: {library}"
            if kind == "whole":
                loaders[name] = functools.partial(whole, form, make)
            elif module == "stoker":
                loaders[name] = functools.partial(crop_by_stoker, form, make)
            elif module == "tensorflow":
                loaders[name] = functools.partial(make, form)
            else:
                loaders[name] = functools.partial(crops, form, make)
            needs[name], against[name] = module, f"{form} {kind}: stoker"
    return loaders, needs, against


if __name__ == "__main__":
    made, modules, bases = make_loaders()
    compare(__file__, __doc__, made, modules, make_files, size=224, columns=SPEED, against=bases)
