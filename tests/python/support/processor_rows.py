"""Folders of pictures of several sizes, for loaders whose last transform is a processor."""

import shutil
import subprocess
import sys

import processor_golden
import stoker
from stoker import _pixels

SIZES = [*processor_golden.SIZES, (400, 90), (31, 260), (224, 224)]
COUNT = 21


def write(path, width, height):
    """Writes a picture of this size."""
    path.write_bytes(_pixels.encoded(processor_golden.picture(width, height)))


def index(folder):
    subprocess.run([sys.executable, "-m", "stoker", "index", folder], check=True, capture_output=True)


def make_folders(parent):
    """Makes folders of pictures of several sizes in two classes: "plain" has no index, "indexed" has one."""
    plain = parent / "plain"
    for i in range(COUNT):
        path = plain / "ab"[i % 2] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, *SIZES[i % len(SIZES)])
    indexed = parent / "indexed"
    shutil.copytree(plain, indexed)
    index(indexed)
    return {"plain": plain, "indexed": indexed}


def copied(folders, parent):
    """Copies the indexed folder, for a test that changes it."""
    shutil.copytree(folders["plain"], parent / "own")
    index(parent / "own")
    return parent / "own"


def bytes_of(batch):
    """Returns the bytes of all columns."""
    parts = []
    for name in batch._fields:
        column = batch[name]
        arrays = [column.values, column.offsets] if isinstance(column, stoker.Ragged) else [column]
        parts += [array.tobytes() for array in arrays]
    return b"".join(parts)
