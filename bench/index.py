"""Measures opening data sets of many samples: time and memory of the index, and the start of an epoch.

    python bench/index.py [tar tfrecord arrow records packed] [--samples 10000000] [--keys 1000000]
        [--shards 1000] [--folder /tmp]

Writes tiny images, --samples of them for TFRecord, Arrow (with pyarrow) and raw records, and --keys for tar
archives, which have a label in a member of its own, and for packed sets, which `stoker pack` makes of as many
files; they are in the page cache. Prints for each kind

    first     seconds to open it without an index file
    again     seconds to open it a second time: with the index file that was written then (Arrow and records
              have none), or of a packed set
    bytes     memory a sample that the source takes, by the resident set of the process
    epoch     milliseconds to the first batch of a shuffled epoch in the middle of a run, and the same for a
              thousandth of the samples: an epoch's order is computed, not made
"""

import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
import stoker

# A PNG of a gray pixel.
IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)


def write_tars(folder, samples, shards):
    def member(name, content):
        info = tarfile.TarInfo(name)
        info.size = len(content)
        return info.tobuf(tarfile.USTAR_FORMAT) + content.ljust(512, b"\0")

    for shard in range(shards):
        with open(f"{folder}/{shard:05d}.tar", "wb") as file:
            for key in range(shard, samples, shards):
                file.write(member(f"{key:09d}.png", IMAGE) + member(f"{key:09d}.cls", b"%d" % (key % 1000)))
            file.write(bytes(1024))
    return lambda: stoker.tar(f"{folder}/{{00000..{shards - 1:05d}}}.tar")


def write_tfrecords(folder, samples, shards):
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def feature(name, kind, values):
        return field(1, field(1, name) + field(2, field(kind, values)))

    example = field(
        1,
        feature(b"image/encoded", 1, field(1, IMAGE)) + feature(b"image/class/label", 3, b"\x08\x07"),
    )
    length = struct.pack("<Q", len(example))
    record = length + masked_crc(length) + example + masked_crc(example)
    for shard in range(shards):
        with open(f"{folder}/{shard:05d}.tfrecord", "wb") as file:
            file.write(record * (samples // shards))
    return lambda: stoker.tfrecord(f"{folder}/{{00000..{shards - 1:05d}}}.tfrecord")


def masked_crc(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_arrow(folder, samples, shards):
    import pyarrow

    rows = samples // shards
    table = pyarrow.table({"image": [IMAGE] * rows, "label": np.zeros(rows, np.int64)})
    for shard in range(shards):
        with pyarrow.ipc.new_stream(f"{folder}/{shard:05d}.arrow", table.schema) as writer:
            writer.write_table(table)
    return lambda: stoker.arrow(f"{folder}/{{00000..{shards - 1:05d}}}.arrow")


def write_records(folder, samples, shards):
    del shards
    np.arange(samples, dtype=np.int64).tofile(f"{folder}/records.bin")
    return lambda: stoker.records(f"{folder}/records.bin", np.int64)


def write_packed(folder, samples, shards):
    photos = pathlib.Path(folder, "photos")
    for first in range(0, samples, 1300):
        images = photos / f"n{first // 1300:08d}"
        images.mkdir(parents=True)
        for i in range(first, min(first + 1300, samples)):
            (images / f"{images.name}_{i:07d}.jpg").write_bytes(IMAGE)
    packed = f"{folder}/set"
    size = str(max(samples // shards, 1) * len(IMAGE))
    subprocess.run(
        [sys.executable, "-m", "stoker", "pack", photos, packed, "--shard-size", size],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(photos)
    return lambda: stoker.packed(packed)


KINDS = {
    "tar": write_tars,
    "tfrecord": write_tfrecords,
    "arrow": write_arrow,
    "records": write_records,
    "packed": write_packed,
}


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def opened(make):
    before, start = resident(), time.perf_counter()
    source = make()
    return source, time.perf_counter() - start, resident() - before


def first_batch(source, kind):
    """Returns milliseconds, the median of seven epochs."""
    transforms = [] if kind == "records" else [stoker.Resize((8, 8))]
    loader = stoker.Loader(source, transforms, batch_size=64, shuffle=True)
    next(iter(loader.epoch(0)))  # starts the threads
    times = []
    for epoch in range(1, 8):
        start = time.perf_counter()
        next(iter(loader.epoch(epoch)))
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[3]


def measure(kind, args):
    samples = args.keys if kind in ("tar", "packed") else args.samples
    with tempfile.TemporaryDirectory(dir=args.folder) as folder, tempfile.TemporaryDirectory() as small:
        make = KINDS[kind](folder, samples, args.shards)
        few = KINDS[kind](small, samples // 1000, 1)()
        source, first, taken = opened(make)
        epochs = first_batch(source, kind), first_batch(few, kind)
        count = len(source)
        del source
        again = f"{opened(make)[1]:9.2f}" if kind in ("tar", "tfrecord", "packed") else " " * 9
        print(
            f"{kind:9} {count:10,} {first:9.2f} {again} {taken / count:7.1f}"
            f" {epochs[0]:9.2f} ({epochs[1]:.2f})"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=" ".join(KINDS))
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--folder", default=None)
    args = parser.parse_args()
    if len(args.kinds) == 1:
        return measure(args.kinds[0], args)
    print(f"{'':9} {'samples':>10} {'first, s':>9} {'again, s':>9} {'bytes':>7} {'epoch, ms':>9}", flush=True)
    options = [word for word in sys.argv[1:] if word not in KINDS]
    for kind in args.kinds:  # each in a process of its own, whose memory nothing else has used
        subprocess.run([sys.executable, __file__, kind, *options], check=True)


if __name__ == "__main__":
    main()
