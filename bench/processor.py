"""Times image processors: stoker.processor next to those of transformers, in turns.

    python bench/processor.py PHOTOS [--rounds 7] [--images 20] [--side 1024 | --page] [--cores 0]
    python bench/processor.py PHOTOS --threads 1,2,4,8 --cores 0,1 [--seconds 4]

The photographs of a folder are cropped to squares, resized to --side and stored as JPEGs; with --page they
are PNGs of 1,275 x 1,650 pixels instead, black text on white. Each processor gets their bytes in memory, one
image a call; stoker's also as `stoker pack` packs them. transformers' begin with Pillow's decoding, and also
run without it. SGLang's, compiled from Rust, makes Qwen2-VL's rows from bytes, if SGLang is installed
(`pip install --no-deps sglang` is enough). kornia-rs, if it is installed, decodes and resizes to the same
size, and makes no rows.
Printed: milliseconds of CPU time for an image, and the time as a multiple of stoker's float32, of the same
round: median (least - most).

--threads: that many threads of Python call one processor at the same time. Printed for each number: images
per second; the share of the time in which calls hold the interpreter's lock; and the largest memory of the
process so far. The share is the CPU time with the lock of a call alone, times calls per second, so it does
not depend on how many threads share a core. Another thread measures that time: it takes the lock whenever
the call releases it, sleeps with it, and sees by the CPU clock of the call's thread what passed without it.
The time is too large by what the call does until the other thread runs: the controls, printed first, are
zlib.crc32, which holds no lock, and a loop in Python, which holds it all the time. Linux, Python 3.11 or
later; as root that other thread has a real-time priority, without which the time is less exact.
"""

import argparse
import contextlib
import ctypes
import functools
import importlib.util
import io
import json
import operator
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

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


def pages(count):
    """Returns PNGs of that many pages of text, 150 pixels an inch on letter paper."""
    import random

    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=18)
    files = []
    for number in range(count):
        words = random.Random(number)
        page = Image.new("RGB", (1275, 1650), "white")
        draw = ImageDraw.Draw(page)
        for y in range(110, 1540, 26):
            line = " ".join("".join(words.choices("etaoinshrdlu", k=words.randint(2, 9))) for _ in range(17))
            draw.text((120, y), line, "black", font)
        file = io.BytesIO()
        page.save(file, "PNG")
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


def packed(files):
    """Returns the images as `stoker pack` packs them."""
    import stoker

    with tempfile.TemporaryDirectory() as name:
        folder, to = pathlib.Path(name, "images"), pathlib.Path(name, "packed")
        (folder / "all").mkdir(parents=True)
        for number, data in enumerate(files):
            kind = "png" if data.startswith(b"\x89PNG") else "jpg"
            (folder / "all" / f"{number:04}.{kind}").write_bytes(data)
        command = [sys.executable, "-m", "stoker", "pack", folder, to]
        subprocess.run(command, check=True, capture_output=True)
        source = stoker.packed(to)
        return [source._image(number) for number in range(len(files))]


def of_kornia(processor):
    """Returns a function that decodes and resizes, without rows."""
    from kornia_rs import imgproc, io

    def process(data):
        if data.startswith(b"\x89PNG"):
            image = io.decode_image_png_u8(data, struct.unpack(">II", data[16:24])[::-1], "rgb")
        else:
            image = io.decode_image_jpegturbo(data, "rgb")
        height, width = image.shape[:2]
        if "image_grid_thw" in (plan := processor.plan(height, width)):
            size = tuple(int(side) * 14 for side in plan["image_grid_thw"][0, 1:])
        else:
            size = tuple(side * 224 // min(height, width) for side in (height, width))
        return imgproc.resize(image, size, "bicubic", antialias=True)

    return process


def of_sglang(config):
    """Returns the processor of SGLang's server, from bytes to rows; a LookupError says why there is none."""
    package = importlib.util.find_spec("sglang")
    if config["image_processor_type"] != "Qwen2VLImageProcessor" or package is None:
        raise LookupError("not for this model" if package else "not installed")
    # `import sglang` would need all that it depends on.
    folder = pathlib.Path(package.submodule_search_locations[0], "srt/rust_extensions")
    compiled = next(folder.glob("_multimodal*.so"), None)
    if compiled is None:
        raise LookupError(f"{folder} has no _multimodal*.so")
    found = importlib.util.spec_from_file_location("_multimodal", compiled)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    spec = {
        "family": "qwen_vl",
        "feature_shm": False,
        "image_token_id": 0,
        "patch_size": 14,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "min_pixels": 3136,
        "max_pixels": config["max_pixels"],
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "resample": "aten_u8",
    }
    return functools.partial(module.qwen_vl.preprocess, spec_json=json.dumps(spec))


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
    try:
        runs["SGLang"] = (of_sglang(config), files)
    except LookupError as error:
        print(f"SGLang: left out: {error}")
    return runs


def in_turns(config, files, rounds):
    """Prints the CPU time of each processor."""
    runs = made(config, files)
    runs["stoker, packed"] = (runs["stoker"][0], packed(files))
    try:
        runs["kornia-rs, decode and resize"] = (of_kornia(runs["stoker"][0]), files)
    except ImportError as error:
        print(f"kornia-rs: left out: {error}")
    taken = {name: [] for name in runs}
    for turn in range(rounds + 1):  # the first is a warm-up
        names = list(runs)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            process, inputs = runs[name]
            before = time.process_time()
            for each in inputs:
                process(each)
            taken[name].append((time.process_time() - before) / len(inputs) * 1e3)
    for name, times in taken.items():
        times, base = times[1:], taken["stoker"][1:]
        ratios = [time / of for time, of in zip(times, base)]
        spread = [
            f"{statistics.median(each):.2f} ({min(each):.2f} - {max(each):.2f})" for each in (times, ratios)
        ]
        print(f"  {name:36}{spread[0]:>24} ms{spread[1]:>24}")


def locked_time(process, data):
    """Returns the CPU seconds of a call with the interpreter's lock, and all of its CPU seconds."""
    marks, leave = [], threading.Lock()
    leave.acquire()

    def call():
        marks.append(time.thread_time())
        try:
            process(data)
        finally:
            marks.append(time.thread_time())
            leave.acquire()  # a thread that has ended has no clock

    thread = threading.Thread(target=call)
    thread.start()
    read = functools.partial(time.clock_gettime, time.pthread_getcpuclockid(thread.ident))
    sleep = functools.partial(ctypes.PyDLL(None).usleep, 3000)
    held = before = 0.0
    while len(marks) < 2:
        if marks:  # between the three calls the interpreter switches to no other thread
            begin, _, end = map(operator.call, (read, sleep, read))
            held += begin - (before or marks[0])
            before = end
        time.sleep(0)
    held += max(marks[1] - (before or marks[0]), 0)
    leave.release()
    thread.join()
    return held, marks[1] - marks[0]


def median_locked(process, inputs):
    """Returns the medians of the two times of locked_time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    if len(os.sched_getaffinity(0)) > 1:  # on one core it would keep the call from running
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        times = [locked_time(process, data) for data in inputs]
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        sys.setswitchinterval(interval)
    return [statistics.median(each) for each in zip(*times)]


def print_controls():
    def loop(_):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass

    for name, process, data in (("zlib.crc32", zlib.crc32, bytes(1 << 24)), ("a loop in Python", loop, None)):
        held, whole = median_locked(process, [data] * 20)
        print(f"control: {name}: lock held {held * 1e6:,.0f} of {whole * 1e6:,.0f} µs of CPU time a call")


def from_threads(process, files, threads, seconds):
    """Returns the images per second of that many threads."""
    done = [0] * threads
    begin = threading.Barrier(threads + 1)
    end = [0.0]

    def run(number):
        begin.wait()
        while time.perf_counter() < end[0]:
            process(files[(number + done[number] * threads) % len(files)])
            done[number] += 1

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    started = time.perf_counter()
    end[0] = started + seconds
    begin.wait()
    for thread in running:
        thread.join()
    return sum(done) / (time.perf_counter() - started)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--threads")
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})
    files = pages(args.images) if args.page else squares(args.photos, args.images, args.side)
    kind = "PNG pages" if args.page else f"JPEGs of {args.side} x {args.side}"
    if args.threads is not None:
        print_controls()
    for family, config in CONFIGS.items():
        print(f"{family}, {len(files)} {kind}")
        if args.threads is None:
            in_turns(config, files, args.rounds)
            continue
        runs = made(config, files)
        for name in ("stoker", "SGLang", "transformers, torchvision"):
            if name not in runs:
                continue
            held, whole = median_locked(runs[name][0], files)
            print(f"  {name}: lock held {held * 1e6:,.0f} of {whole * 1e6:,.0f} µs of CPU time a call")
            for threads in (int(number) for number in args.threads.split(",")):
                speeds = [
                    from_threads(runs[name][0], files, threads, args.seconds) for _ in range(args.rounds)
                ]
                speed = f"{statistics.median(speeds):.1f} ({min(speeds):.1f} - {max(speeds):.1f})"
                lock = f", lock held {held * statistics.median(speeds):.2%}"
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                print(f"  {name:28}{threads:3} threads: {speed} images/s{lock}, {memory} MiB")


if __name__ == "__main__":
    main()
