"""Decodes whole photographs to RGB arrays: stoker.decode_image next to other decoders for Python.

    python bench/decode.py PHOTOS [--rounds 7] [--images 200] [--threads 1] [--cores 0] [--paths]
        [--only NAME ...]

Each decoder that can be imported is called as by imread-benchmark (github.com/ternaus/imread_benchmark), to
which the folder beside this file adds stoker: with the bytes of JPEGs in memory, or with --paths with their
paths, in the page cache. Decoders take turns: each decodes all photographs once in a round, and the order
changes from round to round. With --threads, as many threads of Python share the photographs. "stoker, batch"
is decode_images with one worker for each core and 16 photographs a call.

Printed: microseconds of CPU time for a photograph, and stoker's speed as a multiple of each, of the same
round: median (least - most); photographs per second of wall time; how many were decoded in all rounds, and
how many failed.
"""

import argparse
import concurrent.futures
import importlib
import io
import os
import pathlib
import statistics
import sys
import time

from in_turns import photographs


def stoker_one(stoker):
    return stoker.decode_image


def stoker_batch(stoker):
    runtime = stoker.Runtime(threads=len(os.sched_getaffinity(0)))
    return lambda images: stoker.decode_images(images, runtime=runtime)


def pillow(_):
    import numpy as np
    from PIL import Image

    def decode(image):
        with Image.open(image if isinstance(image, str) else io.BytesIO(image)) as opened:
            return np.array(opened.convert("RGB"))

    return decode


def opencv(cv2):
    import numpy as np

    cv2.setNumThreads(1)

    def decode(image):
        if isinstance(image, str):
            return cv2.imread(image, cv2.IMREAD_COLOR_RGB)
        return cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR_RGB)

    return decode


def torchvision(_):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    torch.set_num_threads(1)

    def decode(image):
        data = read_file(image) if isinstance(image, str) else torch.frombuffer(image, dtype=torch.uint8)
        return decode_jpeg(data, mode=ImageReadMode.RGB)

    return decode


def tensorflow(tf):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return reading(lambda data: tf.io.decode_jpeg(data, channels=3).numpy())


def turbojpeg(module):
    decoder = module.TurboJPEG()
    return reading(lambda data: decoder.decode(data, pixel_format=module.TJPF_RGB))


def jpeg4py(module):
    import numpy as np

    return lambda image: module.JPEG(
        image if isinstance(image, str) else np.frombuffer(image, np.uint8)
    ).decode()


def pyvips(module):
    def decode(image):
        if isinstance(image, str):
            return module.Image.new_from_file(image, access="sequential").numpy()
        return module.Image.new_from_buffer(image, "", access="sequential").numpy()

    return decode


def reading(decode):
    """`decode` takes bytes only."""
    return lambda image: decode(pathlib.Path(image).read_bytes() if isinstance(image, str) else image)


# (name, module, function that makes a decoder of a path or of bytes)
DECODERS = [
    ("stoker", "stoker", stoker_one),
    ("stoker, batch", "stoker", stoker_batch),
    ("pillow", "PIL.Image", pillow),
    ("opencv", "cv2", opencv),
    ("torchvision", "torchvision", torchvision),
    ("tensorflow", "tensorflow", tensorflow),
    ("simplejpeg", "simplejpeg", lambda m: reading(lambda data: m.decode_jpeg(data, colorspace="RGB"))),
    ("turbojpeg", "turbojpeg", turbojpeg),
    ("jpeg4py", "jpeg4py", jpeg4py),
    ("kornia-rs", "kornia_rs", lambda m: reading(m.io.decode_image_jpeg)),
    ("imagecodecs", "imagecodecs", lambda m: reading(m.jpeg_decode)),
    ("imageio", "imageio.v3", lambda m: m.imread),
    ("scikit-image", "skimage.io", lambda m: m.imread),
    ("pyvips", "pyvips", pyvips),
]


def made(only):
    """Returns the decoders that can be used here, by name."""
    found = {}
    for name, module, make in DECODERS:
        if only and name not in only and name != "stoker":
            continue
        try:
            found[name] = make(importlib.import_module(module))
        except (ImportError, OSError, RuntimeError) as error:
            print(f"{name}: left out: {error}"[:120], file=sys.stderr)
    return found


def failures(decode, images):
    """Decodes the images one after another; returns how many failed."""
    failed = 0
    for image in images:
        try:
            decode(image)
        except Exception:
            failed += 1
    return failed


class Turns:
    """What a decoder's turns took."""

    def __init__(self):
        self.microseconds, self.per_second, self.decoded, self.failed = [], [], 0, 0

    def take(self, name, decode, images, threads):
        """Decodes the images, with `threads` threads of Python."""
        cpu, wall = time.process_time(), time.monotonic()
        if name == "stoker, batch":
            failed = 0
            for at in range(0, len(images), 16):
                decode(images[at : at + 16])
        elif threads == 1:
            failed = failures(decode, images)
        else:
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                shares = [images[at::threads] for at in range(threads)]
                failed = sum(pool.map(lambda share: failures(decode, share), shares))
        self.microseconds.append((time.process_time() - cpu) / len(images) * 1e6)
        self.per_second.append(len(images) / (time.monotonic() - wall))
        self.decoded += len(images) - failed
        self.failed += failed


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cores", default="0")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    args = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})

    images = [str(p) if args.paths else p.read_bytes() for p in photographs(args.photos)[: args.images]]
    decoders = made(args.only)
    for name, decode in list(decoders.items()):
        try:
            decode(images[:1] if name == "stoker, batch" else images[0])
        except Exception as error:
            print(f"{name}: left out: {error}"[:120], file=sys.stderr)
            del decoders[name]
    for name, decode in decoders.items():
        Turns().take(name, decode, images, args.threads)  # a warm-up
    turns = {name: Turns() for name in decoders}
    for turn in range(args.rounds):
        names = list(decoders)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            turns[name].take(name, decoders[name], images, args.threads)
    for name, each in sorted(turns.items(), key=lambda item: statistics.median(item[1].microseconds)):
        ratios = [theirs / ours for theirs, ours in zip(each.microseconds, turns["stoker"].microseconds)]
        speed = f"{statistics.median(each.per_second):.0f}/s"
        print(f"{name:14}{spread(each.microseconds, 0):>22} us{spread(ratios, 2):>24}{speed:>9}"
              f"{each.decoded:>9} decoded, {each.failed} failed")  # fmt: skip


if __name__ == "__main__":
    main()
