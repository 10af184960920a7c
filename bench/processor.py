"""Times image processors: stoker.processor next to those of transformers, in turns on one core.

    python bench/processor.py PHOTOS [--rounds 7] [--images 20] [--side 1024] [--cores 0]

The photographs of a folder are cropped to squares, resized to --side and stored as JPEGs. Each processor gets
their bytes in memory, one image a call; transformers' begin with Pillow's decoding, and also run without it.
Printed: milliseconds of CPU time for an image, and the time as a multiple of stoker's float32, of the same
round: median (least - most).
"""

import argparse
import io
import os
import statistics
import time

from in_turns import photographs

CONFIGS = {
    "CLIP": {"image_processor_type": "CLIPImageProcessor"},
    "Qwen2-VL": {"image_processor_type": "Qwen2VLImageProcessor", "max_pixels": 12845056},
}


def squares(folder, count, side):
    """Returns JPEGs of that many photographs."""
    from PIL import Image, ImageOps

    files = []
    for path in photographs(folder)[:count]:
        file = io.BytesIO()
        ImageOps.fit(Image.open(path).convert("RGB"), (side, side)).save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def theirs(config, backend):
    """Returns functions that process bytes, and decoded images."""
    import torch
    import transformers
    from PIL import Image

    torch.set_num_threads(1)
    keys = dict(config)
    name = keys.pop("image_processor_type") + ("Pil" if backend == "pil" else "")
    processor = getattr(transformers, name)(**keys)

    def process(image):
        return processor(image, return_tensors="pt")

    return (lambda data: process(Image.open(io.BytesIO(data))), process)


def made(config, files):
    """Returns (function, its inputs) by name."""
    import stoker
    from PIL import Image

    runs = {"stoker": (stoker.processor(config), files)}
    for dtype in ("float16", "uint8"):
        runs[f"stoker, {dtype}"] = (stoker.processor(config, dtype=dtype), files)
    runs["stoker, pillow"] = (stoker.processor(config, resampler="pillow"), files)
    try:
        decoded = [Image.open(io.BytesIO(data)).convert("RGB") for data in files]
        for backend in ("torchvision", "pil"):
            whole, process = theirs(config, backend)
            runs[f"transformers, {backend}"] = (whole, files)
            runs[f"transformers, {backend}, decoded"] = (process, decoded)
    except ImportError as error:
        print(f"transformers: left out: {error}")
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--cores", default="0")
    args = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})
    files = squares(args.photos, args.images, args.side)
    for family, config in CONFIGS.items():
        runs = made(config, files)
        taken = {name: [] for name in runs}
        for turn in range(args.rounds + 1):  # the first is a warm-up
            names = list(runs)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                process, inputs = runs[name]
                before = time.process_time()
                for each in inputs:
                    process(each)
                taken[name].append((time.process_time() - before) / len(inputs) * 1e3)
        print(f"{family}, {len(files)} JPEGs of {args.side} x {args.side}")
        for name, times in taken.items():
            times, base = times[1:], taken["stoker"][1:]
            ratios = [time / of for time, of in zip(times, base)]
            spread = [
                f"{statistics.median(each):.2f} ({min(each):.2f} - {max(each):.2f})"
                for each in (times, ratios)
            ]
            print(f"  {name:36}{spread[0]:>24} ms{spread[1]:>24}")


if __name__ == "__main__":
    main()
