"""One turn of one loader: compare.py runs this in the loader's environment, in a process of its own.

    turn.py check|time|prepare ADAPTER VARIANT WORKLOAD PHOTOS PREPARED --cores N [--seconds S] [--cold]

check writes the first batch to PREPARED/first.npy. time prints a line of JSON: images, seconds, CPU seconds,
seconds from the start of the process to the first batch, peak memory.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import signal
import sys
import time

import processes
from workload import BATCH, WORKLOADS, Data


def numbers(batch):
    """Returns a batch as a NumPy array."""
    import numpy as np

    return np.asarray(batch.numpy() if hasattr(batch, "numpy") else batch)


def take(batches, least, seconds):
    """Takes at least so many batches, for at least so many seconds; returns how many."""
    begun, count = time.perf_counter(), 0
    while count < least or time.perf_counter() - begun < seconds:
        next(batches)
        count += 1
    return count


def timed(batches, epoch, seconds, cold):
    """Times batches for so many seconds, behind an epoch, and half of the seconds, that warm up; or if cold,
    the first epoch."""
    begun, cpu = time.perf_counter(), processes.cpu_seconds()
    next(batches)
    first = processes.age()
    if cold:
        count = 1 + take(batches, epoch - 1, 0)
    else:
        take(batches, epoch, seconds / 2)
        begun, cpu = time.perf_counter(), processes.cpu_seconds()
        count = take(batches, 1, seconds)
    return {
        "images": count * BATCH,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": processes.cpu_seconds() - cpu,
        "first_batch_seconds": first,
        "peak_mib": processes.peak_mib(),
    }


def leave():
    """Ends now: workers of other processes need no orderly end."""
    sys.stdout.flush()
    for process in processes.family() - {os.getpid()}:
        os.kill(process, signal.SIGKILL)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("check", "time", "prepare"))
    parser.add_argument("adapter")
    parser.add_argument("variant")
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("prepared", type=pathlib.Path)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()

    adapter = importlib.import_module(f"adapters.{arguments.adapter}")
    data = Data(arguments.photos, arguments.prepared, arguments.cores)
    if arguments.task == "prepare":
        adapter.prepare(data, arguments.variant)
        return
    batches = adapter.batches(data, WORKLOADS[arguments.workload], arguments.variant)
    if arguments.task == "check":
        import numpy as np

        np.save(arguments.prepared / "first.npy", numbers(next(batches)))
        said = {"version": importlib.metadata.version(adapter.DISTRIBUTION)}
    else:
        epoch = len(data.files()) // BATCH
        said = timed(batches, epoch, arguments.seconds, arguments.cold)
    print(json.dumps(said))
    leave()


if __name__ == "__main__":
    main()
