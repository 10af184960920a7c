"""Measures batches that are decoded on the device beside batches that the workers decode.

    python bench/gpu/decoding.py PACKED --photos FOLDER --index FILE --device cuda:0

PACKED is what `stoker pack` makes of a folder of photographs; with --photos and --index (`stoker index FOLDER
--out FILE`), the folder's own JPEGs are measured, too. All kinds of batches are taken in turns, as fast as
they come, in pieces of --seconds. A batch counts when it has arrived on the device.

Prints a JSON object for each piece: what the photographs are, how they were decoded, their rate, what was
copied for each, and the CPU time that each took on the workers, the reader threads and the thread that
copies; a figure is null if nothing was prepared or copied meanwhile. ("host" has threads of its own for what
a GPU does, and the rate is theirs.)
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import time
from typing import Any

import stoker

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = 224


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


def ratio(value: float, of: float) -> float | None:
    return value / of if of > 0 else None


class Batches:
    """Endless batches of a loader, on the device."""

    def __init__(self, args: argparse.Namespace, files: str, decode: str) -> None:
        self.files, self.decode, self.batch_size = files, decode, args.batch_size
        packed = files == "packed"
        loader = stoker.Loader(
            stoker.packed(args.packed) if packed else stoker.image_folder(args.photos, crop_index=args.index),
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
            "copied_kb": ratio((now["copied_bytes"] - stats["copied_bytes"]) / 1e3, copied),
            **{
                f"{part}_us": ratio((cpu_seconds(name) - cpu[part]) * 1e6, prepared)
                for part, name in names.items()
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packed")
    parser.add_argument("--photos", help="the folder that PACKED was made of")
    parser.add_argument("--index", help="its crop index")
    parser.add_argument("--device", default="cuda:0", help="cuda:N; host to try the program without a GPU")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=4, help="of a piece [%(default)s]")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    if (args.photos is None) != (args.index is None):
        parser.error("--photos and --index go together")
    kinds = ["packed", "indexed"] if args.photos is not None else ["packed"]
    for turn in range(args.turns + 1):
        for files, decode in itertools.product(kinds, ("workers", "device")):
            batches = Batches(args, files, decode)
            for _ in range(2):
                batches.next()
            figures = batches.measure(args.seconds)
            batches.loader.close()
            del batches  # and its memory on the device, before the next one's is allocated
            if turn > 0:  # the first fills the page cache
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
