"""Measures each transform: stoker beside torchvision and DALI's CPU operators.

    python bench/torchvision_transforms.py PHOTOS [--rounds 7] [--dali PYTHON] [--only NAME] [--core 0]

Microseconds for an image of 224 × 224, uint8, in memory, on one core and one thread. Each library has a
process of its own; they measure their CPU time in turns, one at a time, and each round gives a ratio:
median (least - most). Random strengths are drawn again for each image, with the same options; what happens
with a probability happens always.

stoker: `Compose` with the transform minus `Compose` without. "first" is the cost of the first such
transform of a list, for which the pixels go to a tile of three planes and back; "more" that of one more.
torchvision: a transforms.v2 object on a CHW tensor.
DALI: a pipeline with the operator minus the pipeline without, on a batch of 32. It needs a Python that has
it: --dali; without, it is left out. Its hue turns RGB linearly, its blur's border is reflected, too, its
policies are of nvidia.dali.auto_aug.
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

IMAGES, SIZE, SECONDS = 32, 224, 0.15
LEAST = 5  # microseconds; ratios are given to costs of at least this


def write_images(folder, path):
    from PIL import Image

    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.name[0] != ".")
    images = [Image.open(p).convert("RGB") for p in files[:: max(1, len(files) // IMAGES)][:IMAGES]]
    sides = [min(image.size) for image in images]
    squares = [i.resize((SIZE, SIZE), box=(0, 0, side, side)) for i, side in zip(images, sides)]
    np.save(path, np.stack([np.asarray(square) for square in squares]))


def per_image(call, images):
    """Microseconds of the process' CPU time, of as many rounds through the images as fit."""
    start, done = time.process_time(), 0
    while done == 0 or time.process_time() - start < SECONDS:
        for image in images:
            call(image)
        done += len(images)
    return (time.process_time() - start) / done * 1e6


# ---- The libraries: for each name of a transform, a function that measures it.


def listed(module):
    """The same transforms of stoker or of torchvision.transforms.v2."""
    return {
        "RandomHorizontalFlip": module.RandomHorizontalFlip(1),
        "RandomVerticalFlip": module.RandomVerticalFlip(1),
        "RandomCrop(padding=28)": module.RandomCrop(SIZE, padding=28),
        "Pad(16, reflect)": module.Pad(16, padding_mode="reflect"),
        "ColorJitter brightness": module.ColorJitter(brightness=0.4),
        "ColorJitter contrast": module.ColorJitter(contrast=0.4),
        "ColorJitter saturation": module.ColorJitter(saturation=0.4),
        "ColorJitter hue": module.ColorJitter(hue=0.1),
        "ColorJitter all": module.ColorJitter(0.4, 0.4, 0.4, 0.1),
        "RandomGrayscale": module.RandomGrayscale(1),
        "RandomInvert": module.RandomInvert(1),
        "RandomPosterize(4)": module.RandomPosterize(4, 1),
        "RandomAdjustSharpness(2)": module.RandomAdjustSharpness(2, 1),
        "RandomAutocontrast": module.RandomAutocontrast(1),
        "RandomEqualize": module.RandomEqualize(1),
        "GaussianBlur(3)": module.GaussianBlur(3),
        "GaussianBlur(23)": module.GaussianBlur(23),
        "RandomErasing": module.RandomErasing(1),
        "RandomPerspective": module.RandomPerspective(p=1),
        "ElasticTransform": module.ElasticTransform(),
        "AutoAugment": module.AutoAugment(),
        "RandAugment(2, 9)": module.RandAugment(),
        "RandAugment(2, 9) bilinear": module.RandAugment(interpolation="bilinear"),
        "TrivialAugmentWide": module.TrivialAugmentWide(),
        "AugMix": module.AugMix(),
    }


def of_stoker(images):
    import stoker

    transforms = listed(stoker)
    before = [stoker.CenterCrop(SIZE)]
    tile = [*before, stoker.ColorJitter(brightness=(0.9, 0.9))]

    def timed(given):
        return per_image(stoker.Compose(given), images)

    def measure(name):
        transform = transforms[name]
        return {
            "first": timed([*before, transform]) - timed(before),
            "more": timed([*tile, transform]) - timed(tile),
        }

    return {name: lambda name=name: measure(name) for name in transforms}, stoker.__version__


def of_torchvision(images):
    import torch
    import torchvision
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(image.transpose(2, 0, 1).copy()) for image in images]
    transforms = listed(v2)

    def measure(transform):
        return {"cost": per_image(transform, tensors)}

    measures = {name: lambda t=transform: measure(t) for name, transform in transforms.items()}
    return measures, torchvision.__version__


def of_dali(images):
    import nvidia.dali as dali
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali import math as dali_math
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

    def uniform(least, most):
        return fn.random.uniform(range=[least, most])

    def erased(image):
        side, root = dali_math.sqrt(uniform(0.02, 0.33)), uniform(0.3**0.5, 3.3**0.5)
        return fn.erase(
            image,
            anchor=fn.random.uniform(range=[0.0, 0.6], shape=(2,)),
            shape=fn.stack(side * root, side / root),
            axis_names="HW",
            normalized=True,
            fill_value=0,
        )

    def padded(image):
        image = fn.crop(image, crop=(SIZE + 56, SIZE + 56), out_of_bounds_policy="pad")
        return fn.crop(image, crop=(SIZE, SIZE), crop_pos_x=uniform(0.0, 1.0), crop_pos_y=uniform(0.0, 1.0))

    nearest, bilinear = types.INTERP_NN, types.INTERP_LINEAR
    shape = [SIZE, SIZE]
    operators = {
        "RandomHorizontalFlip": lambda x: fn.flip(x, horizontal=1, vertical=0),
        "RandomVerticalFlip": lambda x: fn.flip(x, horizontal=0, vertical=1),
        "RandomCrop(padding=28)": padded,
        "ColorJitter brightness": lambda x: fn.brightness_contrast(x, brightness=uniform(0.6, 1.4)),
        "ColorJitter contrast": lambda x: fn.brightness_contrast(x, contrast=uniform(0.6, 1.4)),
        "ColorJitter saturation": lambda x: fn.saturation(x, saturation=uniform(0.6, 1.4)),
        "ColorJitter hue": lambda x: fn.hue(x, hue=uniform(-36.0, 36.0)),
        "ColorJitter all": lambda x: fn.color_twist(
            x,
            brightness=uniform(0.6, 1.4),
            contrast=uniform(0.6, 1.4),
            saturation=uniform(0.6, 1.4),
            hue=uniform(-36.0, 36.0),
        ),
        "RandomGrayscale": lambda x: fn.saturation(x, saturation=0.0),
        "GaussianBlur(3)": lambda x: fn.gaussian_blur(x, window_size=3, sigma=uniform(0.1, 2.0)),
        "GaussianBlur(23)": lambda x: fn.gaussian_blur(x, window_size=23, sigma=uniform(0.1, 2.0)),
        "RandomErasing": erased,
        "AutoAugment": lambda x: auto_augment.auto_augment(x, shape=shape, fill_value=0, interp_type=nearest),
        "RandAugment(2, 9)": lambda x: rand_augment.rand_augment(
            x, n=2, m=9, shape=shape, fill_value=0, interp_type=nearest
        ),
        "RandAugment(2, 9) bilinear": lambda x: rand_augment.rand_augment(
            x, n=2, m=9, shape=shape, fill_value=0, interp_type=bilinear
        ),
        "TrivialAugmentWide": lambda x: trivial_augment.trivial_augment_wide(
            x, shape=shape, fill_value=0, interp_type=nearest
        ),
    }

    def built(operator):
        @pipeline_def(
            batch_size=len(images), num_threads=1, device_id=None, exec_async=False, exec_pipelined=False,
            enable_conditionals=True, seed=1,
        )  # fmt: skip
        def pipeline():
            image = fn.external_source(source=lambda: images, layout="HWC", no_copy=True)
            return operator(image)

        pipe = pipeline()
        pipe.build()
        pipe.run()
        return pipe

    def timed(pipe):
        return per_image(lambda _: pipe.run(), [None]) / len(images)

    empty = built(lambda x: fn.copy(x))
    pipes = {}

    def measure(name):
        if name not in pipes:
            pipes[name] = built(operators[name])
        return {"cost": timed(pipes[name]) - timed(empty)}

    return {name: lambda name=name: measure(name) for name in operators}, dali.__version__


LIBRARIES = {"stoker": of_stoker, "torchvision": of_torchvision, "DALI": of_dali}


def serve(args, libraries):
    """One library: for each name on stdin it prints the cost."""
    os.sched_setaffinity(0, {args.core})
    measures, version = libraries[args.serve](list(np.load(args.photos)))
    print(json.dumps({"version": version, "names": list(measures)}), flush=True)
    for line in sys.stdin:
        print(json.dumps(measures[line.strip()]()), flush=True)


class Library:
    def __init__(self, name, python, images, core, program=__file__):
        command = [python, program, images, "--serve", name, "--core", str(core)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name, hello = name, json.loads(self.process.stdout.readline())
        self.version, self.names = hello["version"], hello["names"]

    def measure(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def spread(values, digits=1):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"


def report(name, rounds, others):
    """Prints the results; `rounds`: for each round, {library: its measurements}."""
    columns = [f"{name:27}"]
    columns += [f"{spread([r['stoker'][kind] for r in rounds], 0):>20}" for kind in ("first", "more")]
    for other in others:
        if other not in rounds[0]:
            columns += [f"{'-':>22}", f"{'-':>19}"]
            continue
        columns.append(f"{spread([r[other]['cost'] for r in rounds], 0):>22}")
        costs = [r["stoker"]["first"] for r in rounds]  # a ratio to next to nothing says nothing
        ratios = [r[other]["cost"] / cost for r, cost in zip(rounds, costs)] if min(costs) >= LEAST else []
        columns.append(f"{spread(ratios) if ratios else '-':>19}")
    print("  ".join(columns), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dali", help="a Python that has nvidia.dali")
    parser.add_argument("--only", default="", help="transforms whose names contain this")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--serve", choices=LIBRARIES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args, LIBRARIES)
    pythons = {"stoker": sys.executable, "torchvision": sys.executable}
    if args.dali:
        pythons["DALI"] = args.dali
    with tempfile.TemporaryDirectory() as folder:
        images = os.path.join(folder, "images.npy")
        write_images(args.photos, images)
        libraries = [Library(name, python, images, args.core) for name, python in pythons.items()]
    others = [library.name for library in libraries[1:]]
    print(", ".join(f"{library.name} {library.version}" for library in libraries))
    print(f"µs an image, median of {args.rounds} rounds (least - most); × how often stoker's first fits in")
    titles = [f"{'transform':27}", f"{'stoker, first':>20}", f"{'more':>20}"]
    titles += [f"{other:>22}  {'×':>19}" for other in others]
    print("  ".join(titles))
    for name in libraries[0].names:
        if args.only.lower() not in name.lower():
            continue
        able = [library for library in libraries if name in library.names]
        rounds = [{library.name: library.measure(name) for library in able} for _ in range(args.rounds)]
        report(name, rounds, others)
    for library in libraries:
        library.close()
    return None


if __name__ == "__main__":
    main()
