"""Compares loaders of annotated photographs: each takes turns in a process of its own, on one core or more.

What counts is CPU time, user and system, of the process and its worker processes, for 1,000 samples, after a
pass that warms up. Loaders take turns; which is first changes from round to round. Prints the median and the
range, and the median ratio of pairs of turns.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SPEED = {"images/s": lambda cpu, speed, cores: f"{speed:.0f}"}  # a column of `compare`


def photographs(folder):
    """Returns the paths of the JPEGs in a folder and those below it, sorted."""
    return sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))


def endless(loader):
    """Yields the batches of one epoch after another."""
    for epoch in range(1 << 30):
        yield from loader.epoch(epoch)


def torch_batches(dataset, batch_size, collate):
    """Yields the number of samples of each batch of torch's DataLoader: in this process on one core, and with
    a worker process for each of several.
    """
    import torch

    torch.set_num_threads(1)
    cores = len(os.sched_getaffinity(0))
    workers = {"num_workers": cores, "persistent_workers": True} if cores > 1 else {}
    loader = torch.utils.data.DataLoader(
        dataset, batch_size, shuffle=True, collate_fn=collate, drop_last=True, **workers
    )
    while True:
        for _ in loader:
            yield batch_size


def _cpu_seconds():
    ticks = 0
    for worker in multiprocessing.active_children():
        fields = pathlib.Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _turn(batches, count, seconds):
    """Returns the CPU seconds for 1,000 samples, and the samples per second. `batches` yields the number of
    samples of each batch.
    """
    warmed = 0
    while warmed < count:
        warmed += next(batches)
    before, start, done = _cpu_seconds(), time.monotonic(), 0
    while time.monotonic() < start + seconds:
        done += next(batches)
    taken = _cpu_seconds() - before
    return 1000 * taken / done, done / (time.monotonic() - start)


def _is_installed(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def compare(program, doc, loaders, needs, make_samples, size, columns=None, against=None):
    """Parses the command line of `program`, prints the table, and returns the options; None in a turn.

    loaders: by name, functions of the samples and the size that yield the number of samples of each batch.
    needs: the module that a loader needs, by its name; it is left out if that is not installed.
    make_samples: called with the folder of photographs and a temporary one, and returns a list for JSON.
    size: the default of --size.
    columns: further columns of the table, by their titles: functions that return the text for the CPU
        seconds for 1,000 samples, the samples per second, and the number of cores.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    first = str(min(os.sched_getaffinity(0)))
    parser.add_argument("--cores", "--core", default=first, help="their numbers, separated by commas")
    parser.add_argument("--size", type=int, default=size)
    parser.add_argument("--only", default=",".join(loaders), help="names, separated by commas")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--samples", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cores = {int(core) for core in options.cores.split(",")}
    os.sched_setaffinity(0, cores)
    if options.turn:
        samples = json.loads(pathlib.Path(options.samples).read_text(encoding="utf-8"))
        print(*_turn(loaders[options.turn](samples, options.size), len(samples), options.seconds))
        return None

    names = [name for name in options.only.split(",") if name in loaders]
    names = [name for name in names if name not in needs or _is_installed(needs[name])]
    with tempfile.TemporaryDirectory() as folder:
        samples = pathlib.Path(folder) / "samples.json"
        made = make_samples(options.photos, pathlib.Path(folder))
        samples.write_text(json.dumps(made), encoding="utf-8")
        taken = {name: [] for name in names}
        for number in range(options.rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                words = [options.photos, "--turn", name, "--samples", samples, "--size", options.size]
                words += ["--seconds", options.seconds, "--cores", options.cores]
                said = subprocess.run(
                    [sys.executable, program, *map(str, words)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                said = said.stdout.splitlines()[-1]  # libraries print, too
                taken[name].append([float(word) for word in said.split()])
    columns = columns or {}
    titles = ["loader", "CPU s for 1,000 samples", "range", "ratio" if against else "× the first", *columns]
    print("|", " | ".join(titles), "|")
    print("|---|" + "--:|" * (len(titles) - 1))
    for name, turns in taken.items():
        seconds, speeds = zip(*turns)
        first = taken.get((against or {}).get(name), taken[names[0]])
        ratio = statistics.median(turn[0] / base[0] for turn, base in zip(turns, first))
        cells = [name, f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f} to {max(seconds):.3f}"]
        cells += [f"{ratio:.2f}"]
        cells += [
            text(statistics.median(seconds), statistics.median(speeds), len(cores))
            for text in columns.values()
        ]
        print("|", " | ".join(cells), "|")
    return options
