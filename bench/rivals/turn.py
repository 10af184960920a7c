"""One turn of one loader: compare.py runs this in the loader's environment, in a process of its own.

    turn.py check|time|prepare ADAPTER VARIANT WORKLOAD PHOTOS PREPARED --cores N [--seconds S] [--cold]

check writes the first batch to PREPARED/first.npy. time prints a line of JSON: images, seconds, CPU seconds,
seconds from the start of the process to the first batch, peak memory.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import signal
import sys
import time
import traceback

import processes
from workload import BATCH, WORKLOADS, Data


def numbers(batch):
    """Returns a batch as a NumPy array."""
    import numpy as np

    if hasattr(batch, "as_array"):  # DALI's
        return batch.as_array()
    return np.asarray(batch.numpy() if hasattr(batch, "numpy") else batch)


def take(batches, least, seconds):
    """Takes at least so many batches, for at least so many seconds; returns how many."""
    begun, count = time.perf_counter(), 0
    while count < least or time.perf_counter() - begun < seconds:
        next(batches)
        count += 1
    return count


def timed(batches, epoch, seconds, cold):
    """Times an epoch, or so many seconds if longer, after an epoch that warms up; if cold, the first one."""
    begun, cpu = time.perf_counter(), processes.cpu_seconds()
    next(batches)
    first = processes.age()
    if cold:
        count = 1 + take(batches, epoch - 1, 0)
    else:
        take(batches, epoch, seconds / 2)
        begun, cpu = time.perf_counter(), processes.cpu_seconds()
        count = take(batches, epoch, seconds)
    return {
        "images": count * BATCH,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": processes.cpu_seconds() - cpu,
        "first_batch_seconds": first,
        "peak_mib": processes.peak_mib(),
    }


def leave(code):
    """Ends now: workers in other processes need no orderly end.

    Python's resource tracker ends by itself, when it has removed what they shared.
    """
    sys.stdout.flush()
    for process in processes.family() - {os.getpid()}:
        with contextlib.suppress(OSError):
            if b"resource_tracker" not in pathlib.Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, signal.SIGKILL)
    os._exit(code)


def print_and_leave(main, options):
    """Prints what main returns, as a line of JSON, and ends."""
    try:
        print(json.dumps(main(options)))
    except Exception:  # threads of a library might keep the process alive
        traceback.print_exc()
        leave(1)
    leave(0)


def arguments():
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
    return parser.parse_args()


def main(options):
    adapter = importlib.import_module(f"adapters.{options.adapter}")
    data = Data(options.photos, options.prepared, options.cores)
    for module in adapter.IMPORTS:
        importlib.import_module(module)
    if options.task == "prepare":
        adapter.prepare(data, options.variant)
        return {}
    batches = adapter.batches(data, WORKLOADS[options.workload], options.variant)
    if options.task == "check":
        import numpy as np

        np.save(options.prepared / "first.npy", numbers(next(batches)))
        return {"version": importlib.metadata.version(adapter.DISTRIBUTION)}
    return timed(batches, len(data.files()) // BATCH, options.seconds, options.cold)


if __name__ == "__main__":
    print_and_leave(main, arguments())
