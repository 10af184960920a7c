"""stoker next to other loaders, and to libjpeg-turbo alone, on your photographs.

    ./dev compare PHOTOS [--rivals tf,torch,…] [--workloads train,eval,…] [--cores N] [--rounds N]
        [--seconds N] [--cold] [--only VARIANT,…] [--json FILE] [--plot FILE.png]

PHOTOS has class folders of JPEGs. Each library gets an environment of its own, below build/rivals; what has
to be written before (packed sets, tar files, FFCV's files) goes there, too. A loader is timed only if its
output is right. Loaders take turns, each in a process of its own on the same cores, and libjpeg-turbo has a
turn in each round: the floor is what it takes to decode every photograph whole, on one core. README.md says
more.
"""

import argparse
import hashlib
import importlib
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import typing

import environments
import outputs
import report
from environments import Failed
from workload import WORKLOADS, Data

HERE = pathlib.Path(__file__).parent
ADAPTERS = {  # of each name in --rivals
    "stoker": ("stoker_loader",),
    "tf": ("tf_data",),
    "torch": ("torch_loader", "stoker_torch"),
    "dali": ("dali",),
    "ffcv": ("ffcv",),
    "spdl": ("spdl",),
    "grain": ("grain",),
    "webdataset": ("webdataset",),
    "opencv": ("opencv",),
}
FLOOR = "libjpeg-turbo alone"
SLOWEST = 20  # images a second; a loader that is slower is left out


class Program(typing.NamedTuple):
    """A variant of a library, as turn.py runs it."""

    adapter: str
    variant: str
    python: pathlib.Path
    prepared: pathlib.Path

    @property
    def module(self):
        return importlib.import_module(f"adapters.{self.adapter}")

    @property
    def name(self):
        return f"{self.module.NAME}, {self.variant}"

    @property
    def differs(self):
        return (self.module.VARIANTS | getattr(self.module, "NAMED", {}))[self.variant]

    def turn(self, task, workload, options, cores, files):
        """Runs turn.py over so many files; returns what it said."""
        words = [task, self.adapter, self.variant, workload, options.photos, self.prepared, "--cores", cores]
        words += ["--seconds", options.seconds] + ["--cold"] * options.cold
        most = 120 + 10 * options.seconds + files / SLOWEST
        said = environments.run(self.python, HERE / "turn.py", *words, most_seconds=most)
        return json.loads(said.splitlines()[-1])


def attempt(failures, name, function, *arguments):
    """Returns what the function returns; where that fails, records why and returns None."""
    try:
        return function(*arguments)
    except Failed as failed:
        print(f"{name}: left out: {failed}", file=sys.stderr, flush=True)
        failures[name] = str(failed)
        return None


def programs(options, failures):
    """Makes the environments, and what has to be written before."""
    modules = {a: importlib.import_module(f"adapters.{a}") for names in ADAPTERS.values() for a in names}
    made = []
    for adapter in (a for rival in options.rivals for a in ADAPTERS[rival]):
        python = attempt(
            failures,
            modules[adapter].NAME,
            environments.python_of,
            adapter,
            modules,
            options.folder / "environments",
        )
        for variant in chosen_variants(modules[adapter], options.only) if python else ():
            prepared = options.folder / "prepared" / f"{adapter}-{variant}"
            program = Program(adapter, variant, python, prepared)
            if attempt(failures, program.name, prepare, program, options):
                made.append(program)
    return made


def chosen_variants(module, only):
    if not only:
        return list(module.VARIANTS)
    return [variant for variant in (*module.VARIANTS, *getattr(module, "NAMED", ())) if variant in only]


def prepare(program, options):
    """Writes what the variant reads, if it is not there, complete."""
    made = program.prepared / "made-from"
    adapter = hashlib.sha256(pathlib.Path(program.module.__file__).read_bytes()).hexdigest()
    files = Data(options.photos, program.prepared, 1).files()
    wanted = f"{options.photos}, {len(files)} files, {adapter}\n"
    if not made.is_file() or made.read_text() != wanted:
        environments.emptied(program.prepared)
        if hasattr(program.module, "prepare"):
            print(f"{program.name}: preparing", file=sys.stderr, flush=True)
            program.turn("prepare", "train", options, len(os.sched_getaffinity(0)), len(files))
        made.write_text(wanted)
    return True


def checked(program, workload, options, expected, files):
    """Returns what the table says of the program's output, and its version; raises Failed if it is wrong."""
    import numpy as np

    said = program.turn("check", workload, options, options.cores, len(files))
    first = program.prepared / "first.npy"
    batch = np.load(first)
    first.unlink()
    return {"differs": outputs.check(batch, WORKLOADS[workload], expected), **said}


def evict(folder):
    """Drops a folder's files from the page cache. It cannot if they are in memory alone, as in a tmpfs."""
    os.sync()  # what has not been written stays
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def floor_turn(options, files):
    command = [options.folder / "floor", str(options.seconds), str(int(options.cold))]
    done = subprocess.run(command, input="\n".join(files), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{FLOOR}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def pinned(cores):
    """Lets this process, and those that it starts, run on the first of its cores alone."""
    allotted = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allotted[:cores])
    return allotted


def rounds(names, workload, options, files, failures):
    """Returns the turns of each program that fails in none: lists of what turn.py printed.

    `names` are the programs, by name.
    """
    turns = {name: [] for name in (FLOOR, *names)}
    draws = random.Random(1)
    for _ in range(options.rounds):
        for name in draws.sample(list(turns), len(turns)):
            if options.cold:
                evict(options.photos)
                evict(options.folder / "prepared")
            allotted = pinned(1 if name == FLOOR else options.cores)
            if name == FLOOR:
                turns[name].append(floor_turn(options, files))
            else:
                taken = (names[name].turn, "time", workload, options, options.cores, len(files))
                turn = attempt(failures, f"{workload}: {name}", *taken)
                turns[name].append(turn) if turn else turns.pop(name)
            os.sched_setaffinity(0, allotted)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return turns


def compared(workload, chosen, options, files, failures):
    """Returns a row for each program, and one for the floor."""
    expected = outputs.expected(files, WORKLOADS[workload])
    about, names = {}, {}
    for program in (p for p in chosen if workload in p.module.WORKLOADS):
        ask = (checked, program, workload, options, expected, files)
        said = attempt(failures, f"{workload}: {program.name}", *ask)
        if said:
            about[program.name], names[program.name] = said, program
    turns = rounds(names, workload, options, files, failures)
    made = [report.row(FLOOR, workload, 1, turns[FLOOR], turns[FLOOR], {"what": "whole photographs, to RGB"})]
    for name in list(turns)[1:]:
        program = names[name]
        size = environments.megabytes(program.adapter, program.module, options.folder / "environments")
        said = {**about[name], "what": program.differs, "installed_mb": size}
        made.append(report.row(name, workload, options.cores, turns[name], turns[FLOOR], said))
    return made


def words(text):
    return [word for word in text.split(",") if word]


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--rivals", type=words, default=list(ADAPTERS), help=f"of {','.join(ADAPTERS)}")
    parser.add_argument("--workloads", type=words, default=["train"], help=f"of {','.join(WORKLOADS)}")
    parser.add_argument("--only", type=words, help="these variants; some run only if named here")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of each turn, after a pass that warms up")
    parser.add_argument("--cold", action="store_true", help="one pass, with nothing in the page cache")
    parser.add_argument("--folder", type=lambda text: pathlib.Path(text).resolve(), default="build/rivals")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures of every round here")
    parser.add_argument("--plot", type=pathlib.Path, help="write a picture here; needs matplotlib")
    options = parser.parse_args()
    for given, known in ((options.rivals, ADAPTERS), (options.workloads, WORKLOADS)):
        unknown = set(given) - set(known)
        if unknown:
            parser.error(f"{unknown.pop()} is not one of {', '.join(known)}")
    if not 1 <= options.cores <= len(os.sched_getaffinity(0)):
        parser.error(f"--cores: 1 to {len(os.sched_getaffinity(0))} are allotted")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def main():
    options, failures = arguments(), {}
    files = Data(options.photos, options.folder, 1).files()
    if len(files) < 128:
        sys.exit(f"{options.photos} has {len(files)} JPEGs; 128 are needed, in class folders")
    options.folder.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CXX", "c++")
    environments.run(compiler, "-O2", HERE / "floor.cc", "-o", options.folder / "floor", "-ljpeg")
    chosen = programs(options, failures)
    rows = []
    for workload in options.workloads:
        rows += compared(workload, chosen, options, files, failures)
    report.table(rows, failures, options, len(files))
    if options.json:
        machine = {"processor": report.processor(), "python": platform.python_version()}
        how = {name: getattr(options, name) for name in ("cores", "rounds", "seconds", "cold")}
        said = {"machine": machine, "photos": len(files), **how, "rows": rows, "failures": failures}
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    if options.plot:
        report.plot(rows, options.plot)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
