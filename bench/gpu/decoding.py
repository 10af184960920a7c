"""Measures batches that are decoded on the device next to batches that the workers decode.

    python bench/gpu/decoding.py [PACKED] [--photos FOLDER --index FILE] --device cuda:0

PACKED is what `stoker pack` makes of a folder of photographs; with --photos and --index (`stoker index FOLDER
--out FILE`), the folder's own JPEGs are measured. A few hundred photographs are enough. All kinds of batches
are taken in turns, as fast as they come, in pieces of --seconds. A batch counts when it has arrived on the
device.

Prints a JSON object for each piece: what the photographs are, how they were decoded, their rate, what was
copied for each, the CPU time that each took in the process (cpu_us), and on the workers, the reader threads
and the thread that copies, the memory that is pinned, and warnings about it; a figure is null if nothing was
prepared or copied meanwhile. ("host" has threads of its own for what a GPU does, and the rate is theirs.)
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import resource
import time
from typing import Any

from training import memory_warnings

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = 224
EPOCH = 1 << 18  # samples or more: the ends of epochs, which drain the loader, are rare


def cpu_seconds(name: str) -> float:
    """Returns the CPU time of this process' threads of that name."""
    nanoseconds = 0
    for thread in pathlib.Path("/proc/self/task").iterdir():
        try:
            if (thread / "comm").read_text().strip() == name:
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return nanoseconds / 1e9


def process_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ratio(value: float, of: float) -> float | None:
    return value / of if of > 0 else None


class Batches:
    """Endless batches of a loader, on the device."""

    def __init__(self, args: argparse.Namespace, files: str, decode: str, warnings: list[str]) -> None:
        import stoker

        self.warnings = warnings
        self.files, self.decode, self.batch_size = files, decode, args.batch_size
        packed = files == "packed"
        source = (
            stoker.packed(args.packed) if packed else stoker.image_folder(args.photos, crop_index=args.index)
        )
        loader = stoker.Loader(
            stoker.combine([source] * math.ceil(EPOCH / len(source))),
            [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip(), stoker.Normalize(MEAN, STD)],
            batch_size=args.batch_size, shuffle=True, drop_remainder=True, dtype="float16", layout="NCHW",
            runtime=stoker.Runtime(),
        )  # fmt: skip
        self.loader = loader.to_device(args.device, decode=decode)
        self.iterator = iter(self.loader)

    def next(self) -> Any:
        """Returns a batch's images when they have arrived."""
        try:
            images, _ = next(self.iterator)
        except StopIteration:
            self.iterator = iter(self.loader)
            images, _ = next(self.iterator)
        images.__dlpack__(stream=None)  # waits
        return images

    def measure(self, seconds: float) -> dict[str, Any]:
        names = {"workers": "stoker/worker", "readers": "stoker/reader", "copying": "stoker/stager"}
        stats, cpu = self.loader.stats(), {part: cpu_seconds(name) for part, name in names.items()}
        whole = process_cpu()
        images, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            self.next()
            images += self.batch_size
        passed, now = time.perf_counter() - begun, self.loader.stats()
        prepared = now["samples"] - stats["samples"]  # some of them are not delivered yet
        copied = self.batch_size * (now["copied_batches"] - stats["copied_batches"])
        return {
            "files": self.files,
            "decode": self.decode,
            "images_per_second": images / passed,
            "on_device": ratio(now["decoded_on_device"] - stats["decoded_on_device"], prepared),
            "cpu_us": ratio((process_cpu() - whole) * 1e6, prepared),
            "pinned_bytes": now["pinned_bytes"],
            "memory_warnings": self.warnings,
            "copied_kb": ratio((now["copied_bytes"] - stats["copied_bytes"]) / 1e3, copied),
            **{
                f"{part}_us": ratio((cpu_seconds(name) - cpu[part]) * 1e6, prepared)
                for part, name in names.items()
            },
        }


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("packed", nargs="?")
    made.add_argument("--photos", help="a folder, such as the one that PACKED was made of")
    made.add_argument("--index", help="its crop index")
    made.add_argument("--device", default="cuda:0", help="cuda:N; host to try the program without a GPU")
    made.add_argument("--batch-size", type=int, default=256)
    made.add_argument("--decode", choices=["workers", "device"], help="these only [both, in turns]")
    made.add_argument("--seconds", type=float, default=3, help="of a piece [%(default)s]")
    made.add_argument("--turns", type=int, default=3)
    return made


def main() -> None:
    args = parser().parse_args()
    if (args.photos is None) != (args.index is None):
        parser().error("--photos and --index go together")
    warnings = memory_warnings()
    given = {"packed": args.packed, "indexed": args.photos}
    kinds = [files for files, path in given.items() if path is not None]
    if not kinds:
        parser().error("PACKED is needed, or --photos and --index")
    ways = [args.decode] if args.decode else ["workers", "device"]
    for turn in range(args.turns + 1):
        for files, decode in itertools.product(kinds, ways):
            batches = Batches(args, files, decode, warnings)
            for _ in range(2):
                batches.next()
            figures = batches.measure(args.seconds if turn > 0 else args.seconds / 8)
            batches.loader.close()
            del batches  # and its memory on the device, before the next one's is allocated
            if turn > 0:  # the first fills the page cache
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
