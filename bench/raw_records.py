"""Raw records in random order into batches, on one core, beside a memcpy of the same rows from a mapped file.

    python bench/raw_records.py [--rows 4000] [--shape 224 224 3] [--batch-size 64] [--rounds 5] [--core 0]
        [--folder /tmp]

Each round measures all of them, in turns, over a few epochs of a file in the page cache. What counts is the
CPU time of the process, all its threads together, so that other programs on the core disturb less:

    memcpy    NumPy copies the rows of a mapped file into four batches that are reused, and no more
    pread     one system call for each row, into the same batches
    records   stoker.records: the file is in the source's memory
    arrays    stoker.arrays over numpy.memmap

Prints the median throughput, and the median and the range of its ratio to that of memcpy.
"""

import argparse
import os
import statistics
import tempfile
import time

import numpy as np
import stoker


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--shape", type=int, nargs="+", default=[224, 224, 3])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--folder")
    return parser.parse_args()


def write(path, rows, row_bytes):
    noise = np.random.default_rng(0).integers(0, 256, 1 << 24, np.uint8).tobytes()
    left = rows * row_bytes
    with open(path, "wb") as file:
        while left > 0:
            left -= file.write(noise[:left])


def copier(fill, args, row_bytes):
    """Makes an epoch of batches that `fill(to, row)` fills."""
    slots = np.ones((4, args.batch_size, row_bytes), np.uint8)
    order = np.random.default_rng(1).permutation(args.rows).tolist()

    def epoch():
        for i, row in enumerate(order):
            fill(slots[i // args.batch_size % 4, i % args.batch_size], row)

    return lambda: timed(epoch)


def loaded(source, args):
    """Uses a new loader each time, so that none makes batches ahead while others are measured."""

    def measured():
        with stoker.Loader(source, batch_size=args.batch_size, shuffle=True, seed=1) as loader:

            def epoch():
                assert sum(len(batch) for batch in loader) == args.rows

            return timed(epoch)

    return measured


def timed(epoch, epochs=3):
    """Returns the CPU seconds of an epoch, without the first one, in which memory gets its pages."""
    epoch()
    start = time.process_time()
    for _ in range(epochs):
        epoch()
    return (time.process_time() - start) / epochs


def main():
    args = arguments()
    os.sched_setaffinity(0, {args.core})
    row_bytes = int(np.prod(args.shape))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = os.path.join(folder, "records.bin")
        write(path, args.rows, row_bytes)
        mapped = np.memmap(path, np.uint8, "r", shape=(args.rows, row_bytes))
        plain = np.asarray(mapped)
        descriptor = os.open(path, os.O_RDONLY)
        measured = {
            "memcpy": copier(lambda to, row: np.copyto(to, plain[row]), args, row_bytes),
            "pread": copier(lambda to, row: os.preadv(descriptor, [to], row * row_bytes), args, row_bytes),
            "records": loaded(stoker.records(path, "uint8", args.shape), args),
            "arrays": loaded(stoker.arrays(mapped.reshape(args.rows, *args.shape)), args),
        }
        seconds = {name: [] for name in measured}
        for _ in range(args.rounds):
            for name, measure in measured.items():
                seconds[name].append(measure())
        os.close(descriptor)
    for name, own in seconds.items():
        ratios = [base / mine for base, mine in zip(seconds["memcpy"], own)]
        speed = args.rows * row_bytes / statistics.median(own) / 1e9
        middle = statistics.median(ratios)
        print(f"{name:8} {speed:6.2f} GB/s  {middle:5.2f} of memcpy ({min(ratios):.2f} – {max(ratios):.2f})")


if __name__ == "__main__":
    main()
