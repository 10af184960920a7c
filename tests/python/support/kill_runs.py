"""Kills runs with SIGKILL at random moments, and resumes them from their last saved state.

    python tests/python/support/kill_runs.py [--kills 200] [--ways stoker,other-worlds,native,fallback]
        [--seed 1]

Each way to resume is killed many times, in worlds of 1, 3 and 8 ranks: two shuffled epochs of photographs,
some of which are damaged and substituted. The table says how many runs had other ids or pixels than a run
that was not killed. The ways: a loader's state; the same, with another number of ranks and another batch size
after each kill; tf.train.Checkpoint, with the dataset op and with the prebuilt ones. test_killed.py and
test_killed_checkpoint.py try a few of them.

A program that is killed appends a line to LOG for each step, prints a line too, and replaces the file SAVED
now and then: {"lines": how many of LOG's lines are before the state, …}. Started again, it goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import forks

HERE = pathlib.Path(__file__).parent
WORLDS = {1: 4, 3: 2, 8: 1}  # with their batch sizes
WAYS = ("stoker", "other-worlds", "native", "fallback")
OF_TENSORFLOW = ("native", "fallback")

# --- in a program that is killed ----------------------------------------------------------------------


def resumed_lines(folder: pathlib.Path) -> tuple[dict[str, Any] | None, Any]:
    """Returns the saved state, and LOG, open at its end and without the lines that were written after it."""
    saved = folder / "saved.json"
    found = json.loads(saved.read_text()) if saved.exists() else None
    log = folder / "log"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    log.write_text("".join(lines[: found["lines"] if found else 0]))
    return found, log.open("a")


def save(folder: pathlib.Path, found: dict[str, Any]) -> None:
    """Saves the state; a kill leaves the previous file or this one."""
    new = folder / "saving.json"
    new.write_text(json.dumps(found))
    os.replace(new, folder / "saved.json")


# --- in the program that kills ------------------------------------------------------------------------


def damaged(photos: pathlib.Path, copy: pathlib.Path) -> pathlib.Path:
    """Makes a copy of the folder in which every ninth photograph is cut off."""
    shutil.copytree(photos, copy)
    for path in sorted(copy.rglob("*.jpg"))[4::9]:
        path.write_bytes(path.read_bytes()[:100])
    return copy


def fresh(*words: Any, stderr: Any) -> Any:
    """Starts a program that has not imported TensorFlow, as forks.Piped starts one that has."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
    return subprocess.Popen([sys.executable, *map(str, words)], **pipes, text=True)


def killed_run(
    start: Callable[..., Any],
    script: pathlib.Path,
    folder: pathlib.Path,
    kills: int,
    chance: random.Random,
    arguments: Callable[[], tuple[Any, ...]],
) -> tuple[list[Any], int]:
    """Returns LOG's lines after that many kills, or fewer if the run ends before, and how many kills there
    were.

    Args:
        start: starts the program from its words and the file for its errors.
        arguments: returns the program's, besides the folder, for its next start.
    """
    folder.mkdir()
    done = 0
    while True:
        errors = folder / "errors"
        with errors.open("w") as file:
            process = start(script, folder, *arguments(), stderr=file)
        with process.stdin, process.stdout as output:
            if done < kills:
                for _ in range(chance.randint(1, 12)):
                    output.readline()
                time.sleep(chance.uniform(0, 0.005))  # any moment of a step, or of saving, is as good
                process.kill()
            output.read()
        code = process.wait()
        if code == 0:
            break
        assert code == -9, errors.read_text()[-3000:]
        done += 1
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()], done


def rows_of(log: list[Any]) -> list[list[Any]]:
    """Returns all rows of each epoch, in an order that does not depend on the ranks."""
    return [
        sorted(row for step in log if step["epoch"] == epoch for rows in step["rows"] for row in rows)
        for epoch in range(2)
    ]


def differing(way: str, world: int, kills: int, seed: int, photos: pathlib.Path, folder: pathlib.Path) -> int:
    """Returns how many runs, of as many as have that many kills, differ from the one that was not killed.

    Args:
        photos: as `damaged` makes it.
        folder: parent of the runs' folders.
    """
    chance = random.Random(seed)
    of_tensorflow = way in OF_TENSORFLOW
    program = (forks.Piped, HERE / "killed_checkpoint.py") if of_tensorflow else (fresh, HERE / "killed.py")
    same = (photos, *([way] if of_tensorflow else []), world, WORLDS[world])

    def others() -> tuple[Any, ...]:
        return photos, chance.choice([1, 3, 8, 16]), chance.choice([1, 2, 3])

    whole, _ = killed_run(*program, folder / "whole", 0, chance, lambda: same)
    count = len(list(photos.rglob("*.jpg")))
    ids = [sample for step in whole for rows in step["rows"] for sample, _ in rows]
    assert len(ids) == 2 * count and len(set(ids)) == count - len(range(4, count, 9)), "some are substituted"
    differ = number = 0
    while kills > 0:
        number += 1
        run = folder / str(number)
        log, done = killed_run(
            *program, run, kills, chance, others if way == "other-worlds" else lambda: same
        )
        kills -= done
        differ += rows_of(log) != rows_of(whole) if way == "other-worlds" else log != whole
        shutil.rmtree(run)
    return differ


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="of each way")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if any(way in OF_TENSORFLOW for way in given.ways.split(",")):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    failed = 0
    print(f"{'way':<14} {'world':>7} {'kills':>6} {'runs that differ':>17} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Epochs have an even number of steps: the prebuilt ops are saved after odd ones, as they cannot go on
        # between two epochs in another process (docs/tensorflow.md).
        synth = [
            sys.executable,
            "-m",
            "stoker",
            "synth",
            folder / "photos",
            "--count",
            "48",
            "--classes",
            "3",
        ]
        subprocess.run(synth, check=True, capture_output=True)
        photos = damaged(folder / "photos", folder / "damaged")
        for way in given.ways.split(","):
            worlds = [1] if way == "other-worlds" else list(WORLDS)
            for i, world in enumerate(worlds):
                kills = given.kills * (i + 1) // len(worlds) - given.kills * i // len(worlds)
                (folder / "runs").mkdir()
                begun = time.monotonic()
                differ = differing(way, world, kills, given.seed, photos, folder / "runs")
                shutil.rmtree(folder / "runs")
                failed += differ
                of = "1 to 16" if way == "other-worlds" else str(world)
                seconds = time.monotonic() - begun
                print(f"{way:<14} {of:>7} {kills:>6} {differ:>17} {seconds:>8.0f}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
