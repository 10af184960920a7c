"""Reads cold data in random order, without decoding: stoker beside fio, threads that pread, and other
loaders.

    python bench/cold_reads.py [--only CASE …] [--rounds 5] [--others fio pread tf.data torch webdataset]
        [--stoker build/stoker] [--folder /var/tmp] [--gib 2]

The data of each case is made, and removed again: 110 KB files, and tars with samples of 4 KiB, 110 KB and
1 MiB. Each round measures each program once, in an order of its own. Before each run the kernel is told to
drop the data from the page cache, and `fincore` says what it kept; more than 5 % is an error. All programs
read each sample once:

    stoker      `stoker bench --read-only`, 64 reads in flight (io_uring, through the page cache)
    fio         the same reads in the same order and as many in flight: fio's io_uring engine with a list of
                all of them, also through the page cache, and with the hint that fio's own randread gives
    pread       64 threads of fio (psync engine): each calls pread for every 64th sample of this order
    tf.data     tf.io.read_file of files, 64 at once, in this order; tars have no random access there, so
                FixedLengthRecordDataset reads 16 of them at once, each from front to back
    torch       a DataLoader with 8 processes over a map-style data set that opens the file and calls pread
    webdataset  tars, each from front to back, in up to 8 processes

Needs the stoker package, which gives the order; fio and fincore (apt-get install fio util-linux); and the
other loaders that are asked for. Prints each run: throughput, the share that was cached before, and the
bytes that came from storage, with read-ahead and the program itself. Then for each program the median
throughput, and the median and range over the rounds of stoker's throughput divided by it.
"""

import argparse
import collections
import concurrent.futures
import io
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time

import numpy as np

CASES = {"files": 110_000, "ranges-4k": 4096, "ranges-110k": 110_000, "ranges-1m": 1 << 20}
DEPTH = 64
SEED = 1
SHARD_BYTES = 256 << 20
FILES_PER_FOLDER = 1000

# `samples` are (path, offset, bytes) in the order in which they are read; `source` is what stoker reads,
# `lists` a folder for lists of reads.
Case = collections.namedtuple("Case", "stoker source samples lists")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--others", nargs="*", default=["fio", "pread"], choices=list(PROGRAMS)[1:])
    parser.add_argument("--stoker", default="build/stoker")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--gib", type=float, default=2.0)
    return parser.parse_args()


def make_files(folder, size, count):
    for i in range(count):
        path = folder / f"{i // FILES_PER_FOLDER:04}" / f"{i:08}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(size))
        yield str(path), 0, size


def make_tars(folder, size, count):
    """The samples need no more than the name of an image."""
    per_shard = max(1, SHARD_BYTES // size)
    for first in range(0, count, per_shard):
        path = folder / f"{first // per_shard:04}.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(first, min(first + per_shard, count)):
                member = tarfile.TarInfo(f"{i:08}.jpg")
                member.size = size
                yield str(path), tar.offset + tarfile.BLOCKSIZE, size
                tar.addfile(member, io.BytesIO(os.urandom(size)))


def shuffled(samples):
    """Returns the samples in stoker's order, which depends only on their number and the seed."""
    import stoker

    numbers = stoker.arrays(np.zeros((len(samples), 1), np.uint8))
    with stoker.Loader(numbers, batch_size=1024, shuffle=True, seed=SEED) as loader:
        batches = iter(loader)
        return [samples[i] for _ in batches for i in batches.sample_ids.tolist()]


def files_of(samples):
    return list(dict.fromkeys(path for path, _, _ in samples))


def drop_from_cache(paths):
    """Returns the share that the kernel kept nevertheless."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    cached = 0
    for first in range(0, len(paths), 1000):  # command lines are limited
        command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *paths[first : first + 1000]]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cached += sum(map(int, done.stdout.split()))
    share = cached / sum(map(os.path.getsize, paths))
    if share > 0.05:
        raise SystemExit(f"{share:.0%} of the data stay in memory: give another --folder, on a disk")
    return share


def stoker(case):
    command = [case.stoker, "bench", case.source, "--read-only", "--json", "--epochs", "1", "--shuffle"]
    command += ["--seed", str(SEED), "--reads", str(DEPTH)]
    hidden = {**os.environ, "PATH": "/nonexistent"}  # else it would run fio for the first reads
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=hidden)
    report = json.loads(done.stdout)
    assert report["samples_read"] == len(case.samples) and report["fio"] is None
    return report["bytes_read"] / report["seconds"]


def write_list(path, samples):
    """Opens files as stoker does: a tar once, and a file for its one sample."""
    lines = ["fio version 2 iolog", *(f"{file} add" for file in files_of(samples))]
    opened = set()
    for file, offset, size in samples:
        whole = not file.endswith(".tar")
        if file not in opened:
            lines.append(f"{file} open")
            opened.add(file)
        lines.append(f"{file} read {offset} {size}")
        if whole:
            lines.append(f"{file} close")
    path.write_text("\n".join([*lines, ""]))


def run_fio(case, threads, *options):
    job = ["[global]", "direct=0", "invalidate=0", "thread", "group_reporting", *options]
    if case.samples[0][0].endswith(".tar"):
        job.append("fadvise_hint=random")
    for i in range(threads):
        path = case.lists / f"{i}-of-{threads}"
        if not path.exists():
            write_list(path, case.samples[i::threads])
        job += [f"[{i}]", f"read_iolog={path}"]
    command = ["fio", "--output-format=json", "-"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, input="\n".join(job))
    (figures,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    assert figures["error"] == 0 and figures["read"]["total_ios"] == len(case.samples)
    return figures["read"]["bw_bytes"]


def fio(case):
    return run_fio(case, 1, "ioengine=io_uring", f"iodepth={DEPTH}")


def pread(case):
    return run_fio(case, DEPTH, "ioengine=psync")


def timed(read, samples):
    start = time.perf_counter()
    count = read()
    assert count == len(samples), (count, len(samples))
    return sum(size for _, _, size in samples) / (time.perf_counter() - start)


def tf_data(case):
    import tensorflow as tf

    paths = files_of(case.samples)
    if not paths[0].endswith(".tar"):
        data = tf.data.Dataset.from_tensor_slices(paths)
        data = data.map(tf.io.read_file, num_parallel_calls=DEPTH).prefetch(DEPTH)
        return timed(lambda: sum(1 for _ in data), case.samples)
    size = tarfile.BLOCKSIZE + -(-case.samples[0][2] // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    counts = collections.Counter(path for path, _, _ in case.samples)
    footers = [os.path.getsize(path) - counts[path] * size for path in paths]

    def shard(path, footer):
        return tf.data.FixedLengthRecordDataset(path, size, footer_bytes=footer, buffer_size=1 << 20)

    data = tf.data.Dataset.from_tensor_slices((paths, tf.constant(footers, tf.int64)))
    data = data.interleave(shard, cycle_length=16, num_parallel_calls=16).prefetch(DEPTH)
    return timed(lambda: sum(1 for _ in data), case.samples)


class Samples:
    """A map-style data set for torch."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, offset, size = self.samples[i]
        with open(path, "rb", buffering=0) as file:
            return len(os.pread(file.fileno(), size, offset))


def torch(case):
    from torch.utils.data import DataLoader

    loader = DataLoader(Samples(case.samples), batch_size=64, num_workers=8)
    return timed(lambda: sum(len(batch) for batch in loader), case.samples)


def webdataset(case):
    import webdataset

    paths = files_of(case.samples)
    if not paths[0].endswith(".tar"):
        return None
    data = webdataset.WebDataset(paths, shardshuffle=100).map(lambda sample: len(sample["jpg"]))
    loader = webdataset.WebLoader(data, batch_size=64, num_workers=min(8, len(paths)))
    return timed(lambda: sum(len(batch) for batch in loader), case.samples)


PROGRAMS = {
    "stoker": stoker,
    "fio": fio,
    "pread": pread,
    "tf.data": tf_data,
    "torch": torch,
    "webdataset": webdataset,
}


def apart(name, case):
    """Returns rate and bytes from storage, in a process of its own: TensorFlow and PyTorch do not share
    one.
    """

    def blocks():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock

    before = blocks()
    with concurrent.futures.ProcessPoolExecutor(1) as process:
        rate = process.submit(PROGRAMS[name], case).result()
    return rate, 512 * (blocks() - before)


def measure(args, name, case):
    paths = files_of(case.samples)
    stoker(case)  # writes the index files of tars
    rates = {program: [] for program in ["stoker", *args.others]}
    for number in range(args.rounds):
        for program in random.sample(list(rates), len(rates)):
            cached = drop_from_cache(paths)
            rate, storage = apart(program, case)
            if rate is None:
                continue
            rates[program].append(rate)
            print(
                f"{name:12} round {number + 1:2}  {program:10} {rate / 2**20:8.1f} MiB/s"
                f"  cached before: {cached:.2%}  from storage: {storage / 2**20:.0f} MiB",
                flush=True,
            )
    return {program: measured for program, measured in rates.items() if measured}


def report(name, rates):
    for program, measured in rates.items():
        ratios = [own / other for own, other in zip(rates["stoker"], measured)]
        print(
            f"{name:12} {program:10} {statistics.median(measured) / 2**20:8.1f} MiB/s   stoker ÷ it: "
            f"{statistics.median(ratios):5.3f} ({min(ratios):.3f} – {max(ratios):.3f})",
            flush=True,
        )


def main():
    args = arguments()
    for tool in ("fincore", *(["fio"] if {"fio", "pread"} & set(args.others) else [])):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is not installed: apt-get install fio util-linux")
    for name in args.only:
        size = CASES[name]
        make = make_files if name == "files" else make_tars
        with tempfile.TemporaryDirectory(dir=args.folder, prefix="cold-reads-") as folder:
            data, lists = pathlib.Path(folder, "data"), pathlib.Path(folder, "lists")
            data.mkdir()
            lists.mkdir()
            samples = shuffled(list(make(data, size, int(args.gib * 2**30) // size)))
            source = str(data if name == "files" else data / "*.tar")
            report(name, measure(args, name, Case(args.stoker, source, samples, lists)))


if __name__ == "__main__":
    main()
