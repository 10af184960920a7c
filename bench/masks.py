"""Photographs and their masks on one core: stoker.masks, two stoker loaders zipped, torchvision's v2
transforms, and Albumentations.

    python bench/masks.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 256] [--only NAME,…]

PHOTOS is a folder of photographs. Masks are made of them in a temporary folder: palette PNGs with 21
classes, in patches that follow the photographs' edges, as annotators draw them. Each loader decodes both,
takes the same random crop of both (RandomResizedCrop, nearest for the mask), and flips them; batches have 16
pairs of uint8. torchvision and Albumentations are measured if they are installed; their samples are loaded
one after the other in this process, as a worker of a DataLoader does, and stacked into batches.

Loaders take turns, each in a process of its own on the given core; which is first changes from round to
round. What counts is CPU time, user and system, for 1,000 pairs, after a pass that warms up. Prints the
median and the range, and the median ratio of pairs of turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

CLASSES = 21
BATCH = 16


def make_masks(photos, folder):
    """Writes a palette PNG of each photograph's bright and dark patches; returns the pairs of paths."""
    from PIL import Image, ImageFilter

    colours = np.random.default_rng(1).integers(0, 256, 768, np.uint8).tobytes()
    pairs = []
    for i, path in enumerate(sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))):
        with Image.open(path) as photo:
            small = photo.convert("L").filter(ImageFilter.GaussianBlur(4))
        values = (np.asarray(small, np.uint16) * CLASSES // 256).astype(np.uint8)
        mask = Image.fromarray(values, mode="P")
        mask.putpalette(colours)
        mask.save(folder / f"{i}.png")
        pairs.append((str(path), str(folder / f"{i}.png")))
    return pairs


def by_stoker(pairs, size):
    import stoker

    images, masks = zip(*pairs)
    source = stoker.files(images, columns={"mask": stoker.Mask(masks)})
    recipe = [stoker.RandomResizedCrop(size), stoker.RandomHorizontalFlip()]
    options = {"batch_size": BATCH, "shuffle": True, "exif_orientation": False}
    runtime = stoker.Runtime(threads=1)
    yield from (
        len(batch.image) for batch in endless(stoker.Loader(source, recipe, runtime=runtime, **options))
    )


def by_two_loaders(pairs, size):
    import stoker

    flip = stoker.RandomHorizontalFlip()
    options = {"batch_size": BATCH, "shuffle": True, "exif_orientation": False}
    runtime = stoker.Runtime(threads=1)
    both = [
        endless(stoker.Loader(stoker.files(paths), recipe, runtime=runtime, **options))
        for paths, recipe in zip(
            zip(*pairs),
            (
                [stoker.RandomResizedCrop(size), flip],
                [stoker.RandomResizedCrop(size, interpolation="nearest"), flip],
            ),
        )
    ]
    yield from (len(images) for images, _ in zip(*both))


def by_torchvision(pairs, size):
    import torch
    from PIL import Image
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    recipe = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])

    def load(i):
        image, mask = (Image.open(path) for path in pairs[i])
        image = tv_tensors.Image(torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1))
        return recipe(image, tv_tensors.Mask(torch.from_numpy(np.array(mask))))

    yield from stacked(load, len(pairs), torch.stack)


def by_albumentations(pairs, size):
    import albumentations
    import cv2
    from PIL import Image

    cv2.setNumThreads(1)
    recipe = albumentations.Compose(
        [albumentations.RandomResizedCrop(size=(size, size)), albumentations.HorizontalFlip()]
    )

    def load(i):
        image = cv2.cvtColor(cv2.imread(pairs[i][0]), cv2.COLOR_BGR2RGB)
        made = recipe(image=image, mask=np.array(Image.open(pairs[i][1])))
        return made["image"], made["mask"]

    yield from stacked(load, len(pairs), np.stack)


LOADERS = {
    "stoker.masks": by_stoker,
    "two stoker loaders": by_two_loaders,
    "torchvision v2": by_torchvision,
    "Albumentations": by_albumentations,
}
NEEDS = {"torchvision v2": "torchvision", "Albumentations": "albumentations"}


def endless(loader):
    for epoch in range(1 << 30):
        yield from loader.epoch(epoch)


def stacked(load, count, stack):
    random = np.random.default_rng(0)
    while True:
        order = random.permutation(count)
        for begin in range(0, count, BATCH):
            images, masks = zip(*map(load, order[begin : begin + BATCH]))
            yield len(stack(images)) + 0 * len(stack(masks))


def turn(name, pairs, size, seconds):
    """Prints the CPU seconds for 1,000 pairs."""
    batches = LOADERS[name](pairs, size)
    warmed = 0
    while warmed < len(pairs):
        warmed += next(batches)
    before, end, done = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        done += next(batches)
    print(1000 * (time.process_time() - before) / done)


def is_installed(name):
    return (
        subprocess.run([sys.executable, "-c", f"import {NEEDS[name]}"], capture_output=True).returncode == 0
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--only", default=",".join(LOADERS), help="names, separated by commas")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--pairs", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    if options.turn:
        pairs = json.loads(pathlib.Path(options.pairs).read_text(encoding="utf-8"))
        return turn(options.turn, pairs, options.size, options.seconds)

    names = [name for name in options.only.split(",") if name in LOADERS]
    names = [name for name in names if name not in NEEDS or is_installed(name)]
    with tempfile.TemporaryDirectory() as folder:
        pairs = pathlib.Path(folder) / "pairs.json"
        pairs.write_text(json.dumps(make_masks(options.photos, pathlib.Path(folder))), encoding="utf-8")
        taken = {name: [] for name in names}
        for number in range(options.rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                words = [options.photos, "--turn", name, "--pairs", pairs, "--size", options.size]
                words += ["--seconds", options.seconds, "--core", options.core]
                said = subprocess.run(
                    [sys.executable, __file__, *map(str, words)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                taken[name].append(float(said.stdout))
    print(f"| {'loader':20} | CPU s for 1,000 pairs | range | × the first |")
    print("|---|--:|--:|--:|")
    for name, seconds in taken.items():
        ratio = statistics.median(s / first for s, first in zip(seconds, taken[names[0]]))
        middle = statistics.median(seconds)
        print(f"| {name:20} | {middle:.3f} | {min(seconds):.3f} to {max(seconds):.3f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
