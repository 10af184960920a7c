"""Makes the folders of photographs that measure.py measures with.

    bench/gpu/photographs.py OUT FEW --from FOLDER --copies 40 --stoker PROGRAM --made 16000

OUT gets --copies names of each photograph in FOLDER, which are links to the same file, or to copies where the
file system has no links. Where FOLDER is not there, PROGRAM makes photographs. FEW gets at most 400 of them,
each once, for tests that go through all. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess

FEW = 400


def link(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def photographs(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.glob("*/*") if path.is_file())


def make(args: argparse.Namespace) -> bool:
    """Returns whether they are those of FOLDER."""
    given = photographs(args.folder)
    for photo in given:
        for i in range(args.copies):
            link(photo, args.out / photo.parent.name / f"{photo.stem}-{i:02}{photo.suffix}")
    if not given:
        made = ["--count", str(args.made), "--seed", "1"]
        subprocess.run([args.stoker, "synth", str(args.out), *made], check=True)
    return bool(given)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=pathlib.Path)
    made.add_argument("few", type=pathlib.Path)
    made.add_argument("--from", dest="folder", type=pathlib.Path, required=True)
    made.add_argument("--copies", type=int, default=40)
    made.add_argument("--stoker", required=True)
    made.add_argument("--made", type=int, default=16000)
    return made


def main() -> None:
    args = parser().parse_args()
    for folder in (args.out, args.few):
        shutil.rmtree(folder, ignore_errors=True)
    real = make(args)
    args.few.mkdir(parents=True)
    for photo in photographs(args.folder if real else args.out)[:FEW]:
        link(photo, args.few / photo.parent.name / photo.name)
    print(json.dumps({"photographs": len(photographs(args.out)), "real": real}))


if __name__ == "__main__":
    main()
