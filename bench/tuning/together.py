"""Runs loaders that share: training and validation in one process, and several ranks on one machine.

    python bench/tuning/together.py PHOTOS [--ranks 8] [--seconds 10]

First a training loader alone; then with a validation loader that is used at the same time, with weights
1 and 1, and 3 and 1. Then as many processes as ranks, each with RANK, WORLD_SIZE and LOCAL_WORLD_SIZE as
torchrun sets them. Printed for each: photographs a second, the share of its time that it waited, its
settings, its memory and budget.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time

import stoker

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photos", help="a folder with class folders of photographs")
parser.add_argument("--ranks", type=int, default=8)
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)  # what one process is
args = parser.parse_args()

TRAIN = [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()]
VALIDATION = [stoker.Resize(256), stoker.CenterCrop(224)]


def consume(loader, step, seconds, result):
    images, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        for batch, _ in loader:
            images += len(batch)
            time.sleep(step)
            if time.perf_counter() > begin + seconds:
                break
    stats = loader.stats()
    result.update(
        images_per_second=round(images / (time.perf_counter() - begin), 1),
        waited=round(stats["wait_seconds"] / (stats["wait_seconds"] + stats["consumer_seconds"]), 4),
        depth=stats["depth"],
        workers=stats["workers"],
        reads=stats["reads"],
        threads=stats["threads"],
        memory_peak_mib=round(stats["memory_peak"] / 2**20, 1),
        budget_mib=round(stats["memory_budget"] / 2**20, 1),
    )


def together(**jobs):
    """Runs jobs: name=(loader, seconds of a step), each on a thread of its own."""
    results = {name: {} for name in jobs}
    threads = [
        threading.Thread(target=consume, args=(loader, step, args.seconds, results[name]))
        for name, (loader, step) in jobs.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def show(title, results):
    print(title)
    for name, result in results.items():
        print(f"  {name:12}", "  ".join(f"{key} {value}" for key, value in result.items()))


def pair(weight):
    runtime = stoker.Runtime()
    source = stoker.image_folder(args.photos)
    train = stoker.Loader(
        source, TRAIN, batch_size=64, shuffle=True, weight=weight, drop_remainder=True, runtime=runtime
    )
    return train, stoker.Loader(source, VALIDATION, batch_size=64, drop_remainder=True, runtime=runtime)


def one_rank():
    loader = stoker.Loader(
        stoker.image_folder(args.photos),
        TRAIN,
        batch_size=8,
        shuffle=True,
        rank=args.rank,
        world=args.ranks,
        remainder="drop",
    )
    result = {}
    consume(loader, 0.001, args.seconds, result)
    print(json.dumps(result))


def all_ranks():
    def environment(rank):
        return os.environ | {
            "RANK": str(rank),
            "WORLD_SIZE": str(args.ranks),
            "LOCAL_WORLD_SIZE": str(args.ranks),
        }

    processes = [
        subprocess.Popen(
            [sys.executable, *sys.argv, "--rank", str(rank)], env=environment(rank), stdout=subprocess.PIPE
        )
        for rank in range(args.ranks)
    ]
    return {f"rank {rank}": json.loads(process.communicate()[0]) for rank, process in enumerate(processes)}


if args.rank is not None:
    one_rank()
    sys.exit()
show("training alone", together(train=(pair(1)[0], 0)))
train, validation = pair(1)
show("training and validation, weights 1 and 1", together(train=(train, 0), validation=(validation, 0)))
train, validation = pair(3)
show("training and validation, weights 3 and 1", together(train=(train, 0), validation=(validation, 0)))
show(f"{args.ranks} ranks", all_ranks())
