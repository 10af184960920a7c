"""Measures the program's own Python code: stoker.from_dataset and stoker.Map, beside loaders without any.

    python bench/own_code.py PHOTOS [--batch-size 64] [--rounds 7] [--epochs 3]

Each round measures all of them, in turns. Per sample, in microseconds:

    process   CPU time of all threads of the process
    calls     CPU time of the threads that call Python: they hold the GIL for at most this long. It contains
              from_dataset's copy of the bytes, during which others have the GIL

The functions do nothing, so that only the calls are measured: from_dataset returns bytes that are in memory,
Map's function returns None. `arrays` are images of 32 × 32 in memory, `tiny` PNGs of 8 × 8, `photos` are
decoded and resized.
"""

import argparse
import os
import pathlib
import platform
import statistics
import struct
import tempfile
import time
import zlib

import numpy as np
import stoker

SAMPLES = 20_000  # samples that are not photographs


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


def png():
    """Returns a PNG of 8 × 8."""

    def chunk(kind, content):
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(8 * (1 + 3 * 8)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def callers_seconds(names):
    """Returns the CPU time of the threads with these names."""
    nanoseconds = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() in names:
            nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds * 1e-9


def measured(source, transforms, args):
    samples = len(source) * args.epochs

    def measure():
        with stoker.Loader(source, transforms, batch_size=args.batch_size, shuffle=True, seed=1) as loader:
            for _ in loader:
                pass
            callers = ["stoker/map", *(["stoker/reader"] if loader.stats()["reader"] == "calls" else [])]
            process, calls = time.process_time(), callers_seconds(callers)
            for _ in range(args.epochs):
                for _ in loader:
                    pass
            seconds = time.process_time() - process, callers_seconds(callers) - calls
        return [1e6 * value / samples for value in seconds]

    return measure


def measures(args, folder):
    arrays = stoker.arrays(np.zeros((SAMPLES, 32, 32, 3), np.uint8), np.zeros(SAMPLES, np.int64))
    tiny = os.path.join(folder, "tiny.png")
    pathlib.Path(tiny).write_bytes(png())
    photos = stoker.image_folder(args.photos)
    encoded = [pathlib.Path(photos.path(i)).read_bytes() for i in range(len(photos))]
    small, crop = [stoker.Resize((8, 8))], [stoker.RandomResizedCrop(224)]
    batches = stoker.Map(lambda batch: None)
    rows = stoker.Map(lambda image, label: None, rows=True)
    return {
        "arrays": measured(arrays, [], args),
        "arrays, Map": measured(arrays, [batches], args),
        "arrays, Map(rows=True)": measured(arrays, [rows], args),
        "tiny": measured(stoker.files([tiny] * SAMPLES), small, args),
        "tiny, from_dataset": measured(stoker.from_dataset([png()] * SAMPLES), small, args),
        "photos": measured(photos, crop, args),
        "photos, from_dataset": measured(stoker.from_dataset(encoded), crop, args),
        "photos, Map": measured(photos, [*crop, batches], args),
        "photos, Map(rows=True)": measured(photos, [*crop, rows], args),
    }


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        all_measures = measures(args, folder)
        figures = {name: [] for name in all_measures}
        for _ in range(args.rounds):
            for name, measure in all_measures.items():
                figures[name].append(measure())
    print(f"µs per sample, batches of {args.batch_size}, Python {platform.python_version()}: median (range)")
    print(f"{'':22}{'process':>28}{'calls':>28}")
    for name, rounds in figures.items():
        columns = [f"{statistics.median(c):.2f} ({min(c):.2f} – {max(c):.2f})" for c in zip(*rounds)]
        print(f"{name:22}" + "".join(f"{column:>28}" for column in columns))


if __name__ == "__main__":
    main()
