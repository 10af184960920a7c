"""Kills runs with SIGKILL at random moments, and resumes them from their last saved state.

    python tests/python/support/kill_runs.py [--kills 200] [--ways stoker,other-worlds,native,fallback]
        [--samples photographs,pieces,tokens,patches] [--policies substitute,drop,fail] [--seed 1]

Each way to resume is killed many times, in worlds of 1, 3 and 8 ranks: two shuffled epochs of samples;
some are damaged. Samples are photographs, or pieces: photographs with masks and 0 to 3 boxes, or tokens:
photographs in batches of a number of tokens, or patches: those that a processor makes of photographs, in
batches of a number of patches. (The last two may lose all rows of a batch, so they are not dropped in worlds
that change.) The table says how many runs had other ids or values than a run that was not killed. The ways:
a loader's state; the same, with another number of ranks and another batch size after each kill;
tf.train.Checkpoint, with the dataset op and with the prebuilt ones, of photographs that are substituted.
test_killed.py and test_killed_checkpoint.py try a few of them.

A program that is killed appends a line to LOG for each step, prints a line too, and replaces the file SAVED
now and then: {"lines": how many of LOG's lines are before the state, …}. Started again, it goes on there.
"""

from __future__ import annotations

import argparse
import itertools
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
SAMPLES = ("photographs", "pieces", "tokens", "patches")
POLICIES = ("substitute", "drop", "fail")

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


def damage(files: list[pathlib.Path]) -> set[int]:
    """Cuts off every ninth file, and returns which."""
    cut = range(4, len(files), 9)
    for i in cut:
        files[i].write_bytes(files[i].read_bytes()[:100])
    return set(cut)


def pieces_of(photos: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes photographs, their masks and a list of them with boxes; returns a file of each sample, of which
    every other one is a mask."""
    from scenes import write_scenes  # imports stoker, and it takes long

    folder.mkdir()
    rows = write_scenes(photos, folder, len(list(photos.rglob("*.jpg"))))
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [folder / row["mask" if i % 2 else "file_name"] for i, row in enumerate(rows)]


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


class Runs:
    """Runs of one way over samples in a folder, some of which are damaged.

    Args:
        folder: parent of their folders, which does not exist.
    """

    def __init__(
        self, way: str, photos: pathlib.Path, folder: pathlib.Path, samples: str = "photographs",
        policy: str = "substitute",
    ):  # fmt: skip
        folder.mkdir()
        self.way, self.policy, self.folder = way, policy, folder
        self.samples = folder / "samples"
        if samples == "pieces":
            files = pieces_of(photos, self.samples)
        else:
            shutil.copytree(photos, self.samples)
            files = sorted(self.samples.rglob("*.jpg"))
            if samples == "patches":  # sizes of sound files
                index = [sys.executable, "-m", "stoker", "index", self.samples]
                subprocess.run(index, check=True, capture_output=True)
            if samples == "tokens":
                rows = [f"{file.relative_to(self.samples)},{i * 7 % 40}" for i, file in enumerate(files)]
                (self.samples / "tokens.csv").write_text("\n".join(["path,tokens", *rows]) + "\n")
        self.good = set(range(len(files)))
        # Other worlds have other batches: which samples an error replaces is not the same.
        if not (policy == "fail" and way == "other-worlds"):
            self.good -= damage(files)
        self.count = len(files)

    def differing(self, world: int, kills: int, seed: int) -> int:
        """Returns how many runs, of as many as have that many kills, differ from one that is not killed."""
        chance = random.Random(seed)
        of_tensorflow = self.way in OF_TENSORFLOW
        program = (
            (forks.Piped, HERE / "killed_checkpoint.py") if of_tensorflow else (fresh, HERE / "killed.py")
        )
        begin = (self.samples, self.way if of_tensorflow else self.policy)
        same = (*begin, world, WORLDS[world])

        def arguments() -> tuple[Any, ...]:
            if self.way != "other-worlds":
                return same
            if self.policy == "drop":  # fewer samples are bad than a batch has, so that no rank is ahead
                return *begin, chance.choice([1, 2, 3]), chance.choice([self.count // 9 + 2, self.count // 6])
            return *begin, chance.choice([1, 3, 8, 16]), chance.choice([1, 2, 3])

        whole, _ = killed_run(*program, self.folder / "whole", 0, chance, lambda: same)
        self.check(whole)
        shutil.rmtree(self.folder / "whole")
        differ = number = 0
        while kills > 0:
            number += 1
            run = self.folder / str(number)
            log, done = killed_run(*program, run, kills, chance, arguments)
            kills -= done
            differ += rows_of(log) != rows_of(whole) if self.way == "other-worlds" else log != whole
            shutil.rmtree(run)
        return differ

    def check(self, log: list[Any]) -> None:
        """Checks that a run has the samples that it must have."""
        ids = [sample for step in log for rows in step["rows"] for sample, _ in rows]
        if self.policy == "fail" and len(self.good) < self.count:
            assert 0 < len(ids) <= 2 * len(self.good) and set(ids) <= self.good, "batches are lost"
            assert max(ids.count(sample) for sample in ids) <= 2
        elif self.policy == "substitute":
            assert len(ids) == 2 * self.count and set(ids) == self.good, "others come in their places"
        else:
            assert sorted(ids) == sorted([*self.good] * 2), "each good sample comes once in an epoch"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="of each way")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--samples", default=",".join(SAMPLES))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if any(way in OF_TENSORFLOW for way in given.ways.split(",")):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    failed = 0
    head = f"{'way':<14} {'samples':<12} {'policy':<11} {'world':>7} {'kills':>6}"
    print(f"{head} {'runs that differ':>17} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Epochs have an even number of steps: the prebuilt ops are saved after odd ones, as they cannot go on
        # between two epochs in another process (docs/tensorflow.md).
        photos = folder / "photos"
        synth = [sys.executable, "-m", "stoker", "synth", photos, "--count", "48", "--classes", "3"]
        subprocess.run(synth, check=True, capture_output=True)
        for way, samples, policy in itertools.product(
            given.ways.split(","), given.samples.split(","), given.policies.split(",")
        ):
            if way in OF_TENSORFLOW and (samples, policy) != ("photographs", "substitute"):
                continue
            if way == "other-worlds" and samples in ("tokens", "patches") and policy == "drop":
                continue
            worlds = [1] if way == "other-worlds" else list(WORLDS)
            runs = Runs(way, photos, folder / "runs", samples, policy)
            for i, world in enumerate(worlds):
                kills = given.kills * (i + 1) // len(worlds) - given.kills * i // len(worlds)
                begun = time.monotonic()
                differ = runs.differing(world, kills, given.seed)
                failed += differ
                of = "changes" if way == "other-worlds" else str(world)
                seconds = time.monotonic() - begun
                print(
                    f"{way:<14} {samples:<12} {policy:<11} {of:>7} {kills:>6} {differ:>17} {seconds:>8.0f}",
                    flush=True,
                )
            shutil.rmtree(folder / "runs")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
