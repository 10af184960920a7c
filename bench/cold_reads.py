"""Reading cold data in random order, without decoding, beside fio, threads that pread, and other loaders.

    python bench/cold_reads.py [--stoker build/stoker] [--folder /var/tmp] [--gib 2] [--rounds 5]
        [--patterns files ranges-110k …] [--others pread tf.data torch webdataset]

Four data sets are made and removed again: 110 KB files, and tars with samples of 4 KiB, 110 KB and 1 MiB.
Each round measures each program once; before each run the kernel is told to drop the files from the page
cache. `stoker bench --read-only --cold` runs fio itself, for the same reads at the same depth (io_uring,
64 in flight), directly after its own. Other programs read each sample once, too:

    pread       64 processes of fio (psync), each with its part of the shuffled list
    tf.data     read_file, or decode_raw of FixedLengthRecordDataset for samples in tars, which it reads from
                front to back, as it has no random access
    torch       a DataLoader with 8 workers over a map-style data set that preads
    webdataset  tars from front to back, which is how it reads

Prints, for each, the median throughput, and stoker's ratio to it: median and range over the rounds.
"""

import argparse
import collections
import concurrent.futures
import io
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time

PATTERNS = {"files": 110_000, "ranges-4k": 4096, "ranges-110k": 110_000, "ranges-1m": 1 << 20}
DEPTH = 64
SHARD_SAMPLES = 2048


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stoker", default="build/stoker")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patterns", nargs="+", default=list(PATTERNS), choices=PATTERNS)
    parser.add_argument("--others", nargs="*", default=["pread"], choices=OTHERS)
    return parser.parse_args()


def make(folder, pattern, total):
    """Writes the samples; returns (path, offset, bytes) of each. They only need the name of an image."""
    size = PATTERNS[pattern]
    if pattern == "files":
        return [make_file(folder, i, size) for i in range(total // size)]
    samples = []
    for first in range(0, total // size, SHARD_SAMPLES):
        path = folder / f"{first // SHARD_SAMPLES:04}.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(first, min(first + SHARD_SAMPLES, total // size)):
                member = tarfile.TarInfo(f"{i:08}.jpg")
                member.size = size
                samples.append((str(path), tar.offset + tarfile.BLOCKSIZE, size))
                tar.addfile(member, io.BytesIO(os.urandom(size)))
    return samples


def make_file(folder, number, size):
    path = folder / f"class{number % 16:02}" / f"{number:08}.jpg"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(os.urandom(size))
    return str(path), 0, size


def drop_from_cache(samples):
    for path in {path for path, _, _ in samples}:
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def stoker(program, folder, pattern):
    """Bytes per second: of stoker, and of fio."""
    source = folder if pattern == "files" else folder / "*.tar"
    command = [program, "bench", source, "--read-only", "--cold", "--json", "--epochs", "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    return report["bytes_read"] / report["seconds"], report["fio"]["bytes_per_second"]


def pread(folder, samples):
    samples = random.sample(samples, len(samples))
    jobs = ["[global]", "ioengine=psync", "invalidate=0", "group_reporting"]
    lists = []
    for thread in range(DEPTH):
        part = samples[thread::DEPTH]
        paths = sorted({path for path, _, _ in part})
        lines = [
            "fio version 2 iolog",
            *(f"{path} add" for path in paths),
            *(f"{path} open" for path in paths),
        ]
        lines += [f"{path} read {offset} {size}" for path, offset, size in part]
        lists.append(folder / f"thread{thread}.list")
        lists[-1].write_text("\n".join([*lines, ""]))
        jobs += [f"[thread{thread}]", f"read_iolog={lists[-1]}"]
    command = ["fio", "--output-format=json", "-"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, input="\n".join(jobs))
    for path in lists:
        path.unlink()
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["bw_bytes"]


def timed(read, samples):
    start = time.perf_counter()
    count = read()
    assert count == len(samples), (count, len(samples))
    return sum(size for _, _, size in samples) / (time.perf_counter() - start)


def tf_data(folder, samples):
    import tensorflow as tf

    if samples[0][1] == 0:
        paths = [path for path, _, _ in samples]
        data = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
        data = data.map(tf.io.read_file, num_parallel_calls=DEPTH).prefetch(DEPTH)
        return timed(lambda: sum(1 for _ in data), samples)
    size = tarfile.BLOCKSIZE + -(-samples[0][2] // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    counts = collections.Counter(path for path, _, _ in samples)
    footers = [os.path.getsize(path) - count * size for path, count in counts.items()]

    def shard(path, footer):
        return tf.data.FixedLengthRecordDataset(path, size, footer_bytes=footer, buffer_size=1 << 20)

    data = tf.data.Dataset.from_tensor_slices((list(counts), tf.constant(footers, tf.int64)))
    data = data.shuffle(len(counts)).interleave(shard, cycle_length=16, num_parallel_calls=16)
    return timed(lambda: sum(1 for _ in data.prefetch(DEPTH)), samples)


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


def torch(folder, samples):
    from torch.utils.data import DataLoader

    loader = DataLoader(Samples(samples), batch_size=64, shuffle=True, num_workers=8)
    return timed(lambda: sum(len(batch) for batch in loader), samples)


def webdataset(folder, samples):
    import webdataset

    if samples[0][1] == 0:
        return None
    urls = sorted({path for path, _, _ in samples})
    workers = min(8, len(urls))
    data = webdataset.WebDataset(urls, shardshuffle=100).map(lambda sample: len(sample["jpg"]))
    loader = webdataset.WebLoader(data, batch_size=64, num_workers=workers)
    return timed(lambda: sum(len(batch) for batch in loader), samples)


OTHERS = {"pread": pread, "tf.data": tf_data, "torch": torch, "webdataset": webdataset}


def apart(name, folder, samples):
    """In a process of its own: TensorFlow and PyTorch do not share one."""
    with concurrent.futures.ProcessPoolExecutor(1) as process:
        return process.submit(OTHERS[name], folder, samples).result()


def measure(args, folder, pattern):
    samples = make(folder, pattern, int(args.gib * 2**30))
    rates = {name: [] for name in ["stoker", "fio", *args.others]}
    stoker(args.stoker, folder, pattern)  # writes the index files of tars
    for _ in range(args.rounds):
        own, fio = stoker(args.stoker, folder, pattern)
        rates["stoker"].append(own)
        rates["fio"].append(fio)
        for name in args.others:
            drop_from_cache(samples)
            rates[name].append(apart(name, folder, samples))
    for name, measured in rates.items():
        if None in measured:
            continue
        ratios = [own / other for own, other in zip(rates["stoker"], measured)]
        middle = statistics.median(measured) / 2**20
        print(
            f"{pattern:12} {name:10} {middle:8.0f} MiB/s   stoker ÷ it: "
            f"{statistics.median(ratios):5.2f} ({min(ratios):.2f} – {max(ratios):.2f})",
            flush=True,
        )


def main():
    args = arguments()
    for pattern in args.patterns:
        folder = pathlib.Path(tempfile.mkdtemp(dir=args.folder, prefix="cold-reads-"))
        try:
            measure(args, folder, pattern)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
