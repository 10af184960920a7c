"""Measures each operation on a finished image: stoker's steps beside torchvision and DALI's CPU operators.

    python bench/torchvision_steps.py PHOTOS --augment-bench build/bench/augment_bench
        [--rounds 5] [--dali PYTHON] [--only NAME] [--core 0]

Like torchvision_transforms.py, but for one operation with fixed parameters, and without the way to the tile
and back: stoker's are the steps of augment_bench (built with STOKER_BENCH=ON) on the best instruction set,
minus the copy that each begins with; its --benchmark_min_time is 0.1 s.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torchvision_transforms as beside

ANGLE = 17.0  # as in augment_bench: a sine of 0.2924


def of_torchvision(images):
    import torch
    import torchvision
    from torchvision.transforms.v2 import InterpolationMode, functional

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(image.transpose(2, 0, 1).copy()) for image in images]
    functions = {
        "brightness": lambda x: functional.adjust_brightness(x, 1.3),
        "contrast": lambda x: functional.adjust_contrast(x, 1.3),
        "saturation": lambda x: functional.adjust_saturation(x, 1.3),
        "hue": lambda x: functional.adjust_hue(x, 0.1),
        "sharpness": lambda x: functional.adjust_sharpness(x, 1.3),
        "grayscale": lambda x: functional.rgb_to_grayscale(x, 3),
        "posterize": lambda x: functional.posterize(x, 4),
        "solarize": lambda x: functional.solarize(x, 128),
        "invert": functional.invert,
        "autocontrast": functional.autocontrast,
        "equalize": functional.equalize,
        "blur_3": lambda x: functional.gaussian_blur(x, [3, 3], [1.0, 1.0]),
        "blur_9": lambda x: functional.gaussian_blur(x, [9, 9], [2.0, 2.0]),
        "blur_23": lambda x: functional.gaussian_blur(x, [23, 23], [2.0, 2.0]),
        "affine_nearest": lambda x: functional.rotate(x, ANGLE),
        "affine_bilinear": lambda x: functional.rotate(x, ANGLE, interpolation=InterpolationMode.BILINEAR),
        "mirror": functional.horizontal_flip,
        "mirror_rows": functional.vertical_flip,
    }

    def measure(function):
        return {"cost": beside.per_image(function, tensors)}

    return {
        name: lambda f=function: measure(f) for name, function in functions.items()
    }, torchvision.__version__


def of_dali(images):
    import nvidia.dali as dali
    from nvidia.dali import fn, pipeline_def, types

    def rotated(interpolation):
        return lambda x: fn.rotate(x, angle=ANGLE, keep_size=True, interp_type=interpolation, fill_value=0)

    operators = {
        "brightness": lambda x: fn.brightness_contrast(x, brightness=1.3),
        "contrast": lambda x: fn.brightness_contrast(x, contrast=1.3),
        "saturation": lambda x: fn.saturation(x, saturation=1.3),
        "hue": lambda x: fn.hue(x, hue=36.0),
        "equalize": fn.equalize,
        "blur_3": lambda x: fn.gaussian_blur(x, window_size=3, sigma=1.0),
        "blur_9": lambda x: fn.gaussian_blur(x, window_size=9, sigma=2.0),
        "blur_23": lambda x: fn.gaussian_blur(x, window_size=23, sigma=2.0),
        "affine_nearest": rotated(types.INTERP_NN),
        "affine_bilinear": rotated(types.INTERP_LINEAR),
        "mirror": lambda x: fn.flip(x, horizontal=1, vertical=0),
        "mirror_rows": lambda x: fn.flip(x, horizontal=0, vertical=1),
    }

    def built(operator):
        @pipeline_def(
            batch_size=len(images), num_threads=1, device_id=None, exec_async=False, exec_pipelined=False
        )
        def pipeline():
            return operator(fn.external_source(source=lambda: images, layout="HWC", no_copy=True))

        pipe = pipeline()
        pipe.build()
        pipe.run()
        return pipe

    def timed(pipe):
        return beside.per_image(lambda _: pipe.run(), [None]) / len(images)

    empty = built(fn.copy)
    pipes = {}

    def measure(name):
        if name not in pipes:
            pipes[name] = built(operators[name])
        return {"cost": timed(pipes[name]) - timed(empty)}

    return {name: lambda name=name: measure(name) for name in operators}, dali.__version__


LIBRARIES = {"torchvision": of_torchvision, "DALI": of_dali}


class Steps:
    """augment_bench, as a library."""

    name, version = "stoker", "augment_bench"

    def __init__(self, program, images, folder, core):
        self.program, self.core = program, core
        planes = os.path.join(folder, "planes")
        np.load(images).transpose(0, 3, 1, 2).tofile(planes)
        self.environment = {**os.environ, "STOKER_PIXELS": planes}
        first = self._run("--benchmark_list_tests").split()[0]
        self.target = first.split("/")[1]

    def _run(self, *options):
        command = ["taskset", "-c", str(self.core), self.program, *options]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def measure(self, name):
        chosen = f"^(copy|{name})/{self.target}$"
        out = self._run(f"--benchmark_filter={chosen}", "--benchmark_format=json", "--benchmark_min_time=0.1")
        copy, step = (b["cpu_time"] for b in json.loads(out)["benchmarks"])
        return {"cost": step - copy}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--augment-bench", default="build/bench/augment_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dali", help="a Python that has nvidia.dali")
    parser.add_argument("--only", default="", help="operations whose names contain this")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--serve", choices=LIBRARIES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return beside.serve(args, LIBRARIES)
    pythons = {"torchvision": sys.executable, **({"DALI": args.dali} if args.dali else {})}
    with tempfile.TemporaryDirectory() as folder:
        images = os.path.join(folder, "images.npy")
        beside.write_images(args.photos, images)
        others = [
            beside.Library(name, python, images, args.core, __file__) for name, python in pythons.items()
        ]
        ours = Steps(args.augment_bench, images, folder, args.core)
        print(f"µs an image of 224 × 224, median of {args.rounds} rounds (least - most); {ours.target}")
        titles = [f"{'operation':16}", f"{'stoker':>22}"]
        print("  ".join(titles + [f"{o.name + ' ' + o.version:>24}  {'×':>20}" for o in others]))
        for name in others[0].names:
            if args.only.lower() in name:
                report(name, ours, others, args.rounds)
        for library in others:
            library.close()
    return None


def report(name, ours, others, count):
    able = [ours, *(o for o in others if name in o.names)]
    rounds = [{library.name: library.measure(name)["cost"] for library in able} for _ in range(count)]
    columns = [f"{name:16}", f"{beside.spread([r['stoker'] for r in rounds]):>22}"]
    for other in others:
        if other not in able:
            columns += [f"{'-':>24}", f"{'-':>20}"]
            continue
        columns.append(f"{beside.spread([r[other.name] for r in rounds], 0):>24}")
        columns.append(f"{beside.spread([r[other.name] / r['stoker'] for r in rounds]):>20}")
    print("  ".join(columns), flush=True)


if __name__ == "__main__":
    main()
