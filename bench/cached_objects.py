"""Measures decoded photographs a second from the cache of remote objects, next to those from local files.

    python bench/cached_objects.py PHOTOS [--shards 8] [--batch-size 32] [--epochs 2] [--rounds 9]
        [--workers 0] [--folder /tmp]

PHOTOS is a folder of class folders. Its photographs are put into tar archives, which a server on this machine
serves, and an epoch puts them into the cache. Then each round measures all of the following, in turns, over
some epochs of a loader of its own, with everything in the page cache:

    folder    stoker.image_folder: a file for each photograph
    tar       stoker.tar of the local archives
    cache     stoker.tar of the archives' URLs; the server gets no request

Prints the median throughput, and the median and the range of the ratios of the cache to the others: of images
a second of wall time, and of images a second of the process' CPU time, which other programs disturb less.
"""

import argparse
import io
import os
import pathlib
import statistics
import sys
import tarfile
import tempfile
import time

import stoker

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python" / "support"))
from object_server import ObjectServer

TRANSFORMS = [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()]


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--folder")
    return parser.parse_args()


def write_archives(photos, folder, shards):
    source = stoker.image_folder(photos)
    samples = [(os.fsdecode(source.path(i)), label) for i, label in enumerate(source.labels.tolist())]
    for shard in range(shards):
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for i in range(shard, len(samples), shards):
                path, label = samples[i]
                archive.add(path, f"{i}{pathlib.Path(path).suffix}")
                digits = b"%d" % label
                info = tarfile.TarInfo(f"{i}.cls")
                info.size = len(digits)
                archive.addfile(info, io.BytesIO(digits))
    return source


def measure(source, args, runtime):
    """Returns (wall seconds, CPU seconds) of an image, without the first epoch, which starts memory and
    threads.
    """
    images = 0
    with stoker.Loader(
        source, TRANSFORMS, batch_size=args.batch_size, shuffle=True, seed=1, runtime=runtime
    ) as loader:
        for _ in loader:
            pass
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(args.epochs):
            images += sum(len(pixels) for pixels, _ in loader)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert images == args.epochs * len(source)
    return wall / images, cpu / images


def report(seconds, clock):
    for name, own in seconds.items():
        speed = 1 / statistics.median(each[clock] for each in own)
        print(f"  {name:8} {speed:8.0f} images/s")
    for other in ("folder", "tar"):
        ratios = [mine[clock] / own[clock] for mine, own in zip(seconds[other], seconds["cache"])]
        middle = statistics.median(ratios)
        print(f"  cache ÷ {other:8} {middle:5.3f} ({min(ratios):.3f} – {max(ratios):.3f})")


def main():
    args = arguments()
    runtime = stoker.Runtime(workers=args.workers) if args.workers else stoker.Runtime()
    with tempfile.TemporaryDirectory(dir=args.folder) as made:
        folder = pathlib.Path(made, "archives")
        folder.mkdir()
        os.environ["XDG_CACHE_HOME"] = made
        local = write_archives(args.photos, folder, args.shards)
        with ObjectServer(folder) as server:
            pattern = f"{{0..{args.shards - 1}}}.tar"
            cached = stoker.tar(
                f"{server.url}/{pattern}", cache=pathlib.Path(made, "cache"), cache_bytes=1 << 34
            )
            sources = {"folder": local, "tar": stoker.tar(f"{folder}/{pattern}"), "cache": cached}
            measure(cached, args, runtime)
            server.tried.clear()
            seconds = {name: [] for name in sources}
            for i in range(args.rounds):
                for name in sorted(sources, key=lambda name: (list(sources).index(name) + i) % len(sources)):
                    seconds[name].append(measure(sources[name], args, runtime))
            assert not server.tried, "the cache misses ranges"
    for clock, words in enumerate(("wall time", "CPU time")):
        print(f"{len(local)} photographs, {args.rounds} rounds of {args.epochs} epochs, by {words}:")
        report(seconds, clock)


if __name__ == "__main__":
    main()
