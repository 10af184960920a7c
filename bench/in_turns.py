"""Compares loaders of annotated photographs: each takes turns in a process of its own, on one core.

What counts is CPU time, user and system, for 1,000 samples, after a pass that warms up. Loaders take turns;
which is first changes from round to round. Prints the median and the range, and the median ratio of pairs of
turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def endless(loader):
    """Yields the batches of one epoch after another."""
    for epoch in range(1 << 30):
        yield from loader.epoch(epoch)


def _turn(batches, count, seconds):
    """Returns the CPU seconds for 1,000 samples. `batches` yields the number of samples of each batch."""
    warmed = 0
    while warmed < count:
        warmed += next(batches)
    before, end, done = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        done += next(batches)
    return 1000 * (time.process_time() - before) / done


def _is_installed(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def compare(program, doc, loaders, needs, make_samples, size):
    """Parses the command line of `program`, and prints the table.

    loaders: by name, functions of the samples and the size that yield the number of samples of each batch.
    needs: the module that a loader needs, by its name; it is left out if that is not installed.
    make_samples: called with the folder of photographs and a temporary one, and returns a list for JSON.
    size: the default of --size.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--size", type=int, default=size)
    parser.add_argument("--only", default=",".join(loaders), help="names, separated by commas")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--samples", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    if options.turn:
        samples = json.loads(pathlib.Path(options.samples).read_text(encoding="utf-8"))
        print(_turn(loaders[options.turn](samples, options.size), len(samples), options.seconds))
        return

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
                words += ["--seconds", options.seconds, "--core", options.core]
                said = subprocess.run(
                    [sys.executable, program, *map(str, words)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                taken[name].append(float(said.stdout.split()[-1]))  # libraries print, too
    print(f"| {'loader':20} | CPU s for 1,000 samples | range | × the first |")
    print("|---|--:|--:|--:|")
    for name, seconds in taken.items():
        ratio = statistics.median(s / first for s, first in zip(seconds, taken[names[0]]))
        middle = statistics.median(seconds)
        print(f"| {name:20} | {middle:.3f} | {min(seconds):.3f} to {max(seconds):.3f} | {ratio:.2f} |")
