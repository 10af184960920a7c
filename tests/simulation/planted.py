#!/usr/bin/env python3
"""Whether the simulation finds errors: plants each of tests/simulation/planted/*.patch in a copy of
core/ and engine/, and searches for a seed that fails.

  tests/simulation/planted.py [--build DIR] [--most N] [NAME...]

Prints for each the first seed that fails and its schedule, how long the search took, and what was
reported. Exit code 1 if an error was not found within --most seeds. Without NAMEs: all of them.

--build is a release build by Ninja in which the target `simulation` is up to date. Only the sources that
a patch concerns are compiled; their objects are linked in front of the simulation's, whose definitions
they replace.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = ("core", "engine")
FAILED = re.compile(r"^seed (\d+), (\w+): (.*)$", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
PATCHED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


def includers():
    """For each header, the sources and headers that include it."""
    by_header = {}
    for folder in FOLDERS:
        for path in [*(ROOT / folder).rglob("*.cc"), *(ROOT / folder).rglob("*.h")]:
            for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                by_header.setdefault(header, set()).add(path.relative_to(ROOT).as_posix())
    return by_header


def sources_of(patch):
    """The sources that must be compiled: those that it changes, and all that see a header it changes."""
    by_header = includers()
    seen = set()
    todo = PATCHED.findall(patch.read_text(encoding="utf-8"))
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo.extend(by_header.get(path, ()))
    return sorted(path for path in seen if path.endswith(".cc"))


class Program:
    """The simulation with an error in it, in a folder of its own."""

    def __init__(self, build):
        self.build = build
        self.folder = build / "tests/simulation/planted"
        self.path = self.folder / "simulation"

    def copy_sources(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, self.folder / folder)

    def compile_command(self):
        """Returns the command that compiles an instrumented source, without the names of files."""
        commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        command = next(c["command"] for c in commands if "/stoker_simulated.dir/" in c["command"])
        words = shlex.split(re.sub(r" -(o|c|MT|MF) \S+| -MD\b", "", command))
        at = next(i for i, word in enumerate(words) if word.startswith("-I"))
        return [*words[:at], f"-I{self.folder}", *words[at:], "-w"]  # the error may leave a function unused

    def compile(self, source):
        target = self.folder / source.replace("/", "_").replace(".cc", ".o")
        command = [*self.compile_command(), "-o", str(target), "-c", str(self.folder / source)]
        subprocess.run(command, cwd=self.build, check=True)
        return str(target)

    def link(self, objects):
        listed = subprocess.run(
            ["ninja", "-t", "commands", "simulation"],
            cwd=self.build,
            check=True,
            capture_output=True,
            text=True,
        )
        words = shlex.split(re.search(r"&& (.*) &&", listed.stdout.splitlines()[-1]).group(1))
        words[words.index("-o") + 1] = str(self.path)
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        replaced = [*words[:first], "-Wl,-z,muldefs", *objects, *words[first:]]
        subprocess.run(replaced, cwd=self.build, check=True)

    def plant(self, patch):
        self.copy_sources()
        command = ["patch", "--silent", "--strip=1", f"--input={patch}"]
        subprocess.run(command, cwd=self.folder, check=True, stdout=sys.stderr)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.link(list(pool.map(self.compile, sources_of(patch))))

    def search(self, most):
        """The first failing seed of 1..most, its schedule and the report; None if there is none."""
        done = subprocess.run(
            [self.path, "--seeds", f"1..{most}"], capture_output=True, text=True, check=False
        )
        found = FAILED.search(done.stdout)
        if done.returncode == 0:
            return None
        return found.groups() if found else ("?", "?", f"exit code {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--most", type=int, default=10000, help="seeds to try for each")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    program = Program(options.build.resolve())
    patches = sorted((HERE / "planted").glob("*.patch"))
    if options.names:
        patches = [patch for patch in patches if patch.stem in options.names]
    missed = 0
    for patch in patches:
        program.plant(patch)
        begun = time.monotonic()
        found = program.search(options.most)
        seconds = time.monotonic() - begun
        print(f"{patch.stem}: {patch.read_text(encoding='utf-8').splitlines()[0]}")
        if found:
            seed, schedule, report = found
            print(f"    seed {seed}, {schedule}, after {seconds:.1f} s: {report}", flush=True)
        else:
            print(f"    NOT FOUND in seeds 1..{options.most}, {seconds:.1f} s", flush=True)
            missed += 1
    print(f"{len(patches) - missed} of {len(patches)} planted errors were found")
    return 1 if missed or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
