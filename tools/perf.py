#!/usr/bin/env python3
"""Tells whether one commit is slower than another: builds both, and measures them in turns.

    ./dev perf A B [--photos DIR] [--pairs 15] [--workloads train,packed,...] [--core 0]

A and B are commits; "." is the working tree as it is. Commits are built in build/perf, the working tree in
build. A pair runs `stoker bench` of both, one after the other, on one worker of one core; which is first
changes. What counts is the CPU time of the process, user and system, for an image. Printed for each workload:
the medians, the median of the ratios of the pairs, their median absolute deviation (MAD), and whether the
difference is more than the noise. Figures of one run are compared; none is kept, and none fails anything.
"""

import argparse
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PHOTOS = 400
LEAST = 0.01  # smaller differences are not named
LEAST_IMAGES = {"photos": 1600, "packed": 4000}  # of a turn, which takes about half a second
WORKLOADS = {  # what to open, and options of `stoker bench`
    "train": ("photos", ()),
    "eval": ("photos", ("--transform", "eval")),
    "f32": ("photos", ("--normalize", "--layout", "nchw")),
    "packed": ("packed", ()),
    "packed-f32": ("packed", ("--normalize", "--layout", "nchw")),
}


def run(*command, **options):
    """Runs a command, and ends the program with what it printed if it fails."""
    done = subprocess.run(
        [*map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}")
    return done.stdout.strip()


def built(commit):
    """Returns the command `stoker` of a commit."""
    if commit == ".":
        source, build = ROOT, ROOT / "build"
    else:
        name = run("git", "-C", ROOT, "rev-parse", "--short=12", f"{commit}^{{commit}}")
        source = ROOT / "build" / "perf" / name
        build = source / "build"
        if not source.is_dir():
            run("git", "-C", ROOT, "worktree", "prune")
            run("git", "-C", ROOT, "worktree", "add", "--detach", source, name)
    print(f"building {commit} in {build.relative_to(ROOT)}", file=sys.stderr, flush=True)
    # ccache then finds what another folder has compiled from the same sources.
    cached = {**os.environ, "CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1"}
    if commit != ".":
        options = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSTOKER_TESTS=OFF")
        run("cmake", "-S", source, "-B", build, *options, env=cached)
    run("cmake", "--build", build, "--target", "stoker_cli", env=cached)
    return build / "stoker"


def cpu_seconds(command, core):
    """Runs a command on a core; returns the CPU time that it used."""
    process = subprocess.Popen(
        [*map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{said}")
    return usage.ru_utime + usage.ru_stime


def pairs(commands, count, core):
    """Returns the CPU times of A and of B, in each pair."""
    times = []
    for number in range(-1, count):  # the first pair warms up
        both = [0.0, 0.0]
        for i in (0, 1) if number % 2 else (1, 0):
            both[i] = cpu_seconds(commands[i], core)
        if number >= 0:
            times.append(both)
    return times


def judged(ratios):
    """Returns the median of the ratios B / A, their MAD, and a verdict.

    The median of n values with the standard deviation s has the standard error 1.25 s / √n (for a normal
    distribution, whose s is 1.48 MAD). A difference of three of them is more than noise.
    """
    middle = statistics.median(ratios)
    deviation = statistics.median(abs(ratio - middle) for ratio in ratios)
    noise = max(LEAST, 3 * 1.2533 * 1.4826 * deviation / math.sqrt(len(ratios)))
    if abs(middle - 1) <= noise:
        return middle, deviation, f"no difference above {noise:.1%}"
    return middle, deviation, f"B is {abs(middle - 1):.1%} {'slower' if middle > 1 else 'faster'}"


def photographs(command, chosen, packed):
    """Returns the folder of photographs, and that of a packed set of them if there shall be one."""
    folder = ROOT / "build" / "perf"
    folder.mkdir(parents=True, exist_ok=True)
    photos = chosen or folder / "photos"
    if not chosen:
        run(command, "synth", photos, "--count", PHOTOS, "--seed", 1)
    if packed:
        shutil.rmtree(folder / "packed", ignore_errors=True)
        run(command, "pack", photos, folder / "packed")
    return {"photos": photos, "packed": folder / "packed"}


def main():
    parser = argparse.ArgumentParser(
        prog="./dev perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument(
        "--photos", type=pathlib.Path, help=f"class folders (default: {PHOTOS} that are made)"
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"of {','.join(WORKLOADS)}")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    options = parser.parse_args()
    chosen = options.workloads.split(",")
    unknown = set(chosen) - set(WORKLOADS)
    if unknown:
        parser.error(f"{unknown.pop()} is not one of {', '.join(WORKLOADS)}")
    if options.pairs < 3:
        parser.error("--pairs: at least 3")

    commands = [built(options.a), built(options.b)]
    packed = any(WORKLOADS[name][0] == "packed" for name in chosen)
    data = photographs(commands[0], options.photos, packed)
    images = sum(path.suffix.lower() in (".jpg", ".jpeg") for path in data["photos"].rglob("*"))
    print(f"| | A: CPU s per 1,000 | B | B / A (MAD) of {options.pairs} pairs | |\n|---|--:|--:|--:|---|")
    for name in chosen:
        source, words = WORKLOADS[name]
        epochs = max(2, -(-LEAST_IMAGES[source] // images))
        common = ("bench", data[source], "--threads", 1, "--epochs", epochs, *words)
        times = pairs([(command, *common) for command in commands], options.pairs, options.core)
        a, b = (1000 * statistics.median(side) / (epochs * images) for side in zip(*times))
        middle, deviation, verdict = judged([b / a for a, b in times])
        print(f"| {name} | {a:.3f} | {b:.3f} | {middle:.3f} ({deviation:.3f}) | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
