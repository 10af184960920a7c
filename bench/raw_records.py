"""Raw records in random order into batches, on one core, next to NumPy's copies of the same rows.

    python bench/raw_records.py [--rows 4000] [--shape 224 224 3] [--batch-size 64] [--rounds 5] [--core 0]
        [--folder /tmp]

Each round measures all of them, in turns, over a few epochs of a file in the page cache. What counts is the
CPU time of the process, all its threads together, so that other programs on the core disturb less:

    memcpy    NumPy copies the rows of a mapped file into as many batches as a loader reuses, and no more
    pread     one system call for each row, into the same batches
    records   stoker.records: the file is in the source's memory
    mapped    stoker.arrays over numpy.memmap
    copies    as memcpy, of an array in memory
    take      one call of numpy.take for each batch, of that array
    arrays    stoker.arrays over that array

Prints the median throughput, and the median and the range of its ratio to that of memcpy or, of an array in
memory, to that of copies.
"""

import argparse
import itertools
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


def by_row(copy):
    """Makes a function that fills a batch by `copy(to, row)`."""

    def fill(slot, rows):
        for to, row in zip(slot, rows.tolist()):
            copy(to, row)

    return fill


def copier(fill, slots, args):
    """Makes an epoch of batches that `fill(slot, rows)` fills."""
    order = np.random.default_rng(1).permutation(args.rows)

    def epoch():
        for i in range(0, args.rows, args.batch_size):
            rows = order[i : i + args.batch_size]
            fill(slots[i // args.batch_size % len(slots)][: len(rows)], rows)

    return lambda: timed(epoch)


def loaded(source, args):
    """Uses a new loader each time, so that none makes batches ahead while others are measured."""
    first_epochs = itertools.count()

    def measured():
        with open_loader(source, args, start_epoch=next(first_epochs)) as loader:

            def epoch():
                assert sum(len(batch) for batch in loader) == args.rows

            return timed(epoch)

    return measured


def open_loader(source, args, **options):
    return stoker.Loader(source, batch_size=args.batch_size, shuffle=True, seed=1, **options)


def reused_batches(source, args):
    """Returns how many places in memory the batches of a loader have."""
    with open_loader(source, args) as loader:
        return len({batch.ctypes.data for _ in range(3) for batch in loader})


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
        in_memory = np.array(mapped)
        arrays = stoker.arrays(in_memory.reshape(args.rows, *args.shape))
        count = reused_batches(arrays, args)
        slots = [np.ones((args.batch_size, row_bytes), np.uint8) for _ in range(count)]
        descriptor = os.open(path, os.O_RDONLY)
        fills = {
            "memcpy": by_row(lambda to, row: np.copyto(to, plain[row])),
            "pread": by_row(lambda to, row: os.preadv(descriptor, [to], row * row_bytes)),
            "copies": by_row(lambda to, row: np.copyto(to, in_memory[row])),
            "take": lambda slot, rows: np.take(in_memory, rows, axis=0, out=slot, mode="clip"),
        }
        measured = {name: copier(fill, slots, args) for name, fill in fills.items()}
        measured["records"] = loaded(stoker.records(path, "uint8", args.shape), args)
        measured["mapped"] = loaded(stoker.arrays(mapped.reshape(args.rows, *args.shape)), args)
        measured["arrays"] = loaded(arrays, args)
        seconds = {name: [] for name in measured}
        for _ in range(args.rounds):
            for name, measure in measured.items():
                seconds[name].append(measure())
        os.close(descriptor)
    for name, own in seconds.items():
        base = "copies" if name in ("copies", "take", "arrays") else "memcpy"
        ratios = [twin / mine for twin, mine in zip(seconds[base], own)]
        speed = args.rows * row_bytes / statistics.median(own) / 1e9
        middle = statistics.median(ratios)
        print(f"{name:8} {speed:6.2f} GB/s  {middle:5.2f} of {base} ({min(ratios):.2f} – {max(ratios):.2f})")


if __name__ == "__main__":
    main()
