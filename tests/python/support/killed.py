"""Two epochs of all ranks, with states saved every few steps: FOLDER SAMPLES POLICY WORLD BATCH."""

import pathlib
import sys
import zlib

import numpy as np
import stoker
from kill_runs import resumed_lines, save

COLUMNS = {
    "mask": stoker.Mask("mask"),
    "boxes": stoker.Boxes("objects.bbox", format="xywh"),
    "labels": stoker.PerObject("objects.categories"),
}


def rows_of(batch):
    """Returns the sample of each row, and a checksum of its values in all columns."""
    checksums = []
    for row in range(len(batch.sample_id)):
        checksum = 0
        for column in dict(batch).values():
            checksum = zlib.crc32(np.ascontiguousarray(column[row]), checksum)
        checksums.append(checksum)
    return [list(row) for row in zip(batch.sample_id.tolist(), checksums)]


def next_rows(iterator):
    """Returns the rows of the next batch, none if it has an error; None at the end."""
    try:
        batch = next(iterator, None)
    except stoker.DataLossError:
        return []
    return None if batch is None else rows_of(batch)


folder, samples, policy = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
world, batch_size = map(int, sys.argv[4:])
lists, listed = samples / "samples.jsonl", samples / "tokens.csv"
rows, transforms = {"batch_size": batch_size}, [stoker.RandomResizedCrop(16)]
if listed.exists():
    source, rows = stoker.manifest(listed), {"batch_tokens": 45, "tokens": "tokens"}
else:
    if (samples / ".stoker-index").exists():  # of patches
        processor = stoker.processor({"image_processor_type": "Qwen2VLImageProcessor"}, max_pixels=112 * 112)
        rows, transforms = {"batch_tokens": 130}, [stoker.RandomHorizontalFlip(), processor]
    source = stoker.manifest(lists, columns=COLUMNS) if lists.exists() else stoker.image_folder(samples)
loaders = [
    stoker.Loader(
        source, transforms, **rows, shuffle=True, seed=3, rank=rank, world=world,
        sample_ids=True, on_bad=policy, max_bad_fraction=1,
    )
    for rank in range(world)
]  # fmt: skip
saved, log = resumed_lines(folder)
lines = saved["lines"] if saved else 0
if saved:
    # Dropped rows can take a whole batch of one rank, which is then ahead of the others.
    states = saved["states"] if len(saved["states"]) == world else saved["states"][:1] * world
    for loader, state in zip(loaders, states):
        loader.load_state_dict(state)
epoch = min(state["epoch"] for state in saved["states"]) if saved else 0
for number in range(epoch, 2):
    iterators = [iter(loader if loader.state_dict()["epoch"] == number else ()) for loader in loaders]
    while True:
        step = [next_rows(iterator) for iterator in iterators]
        if all(rows is None for rows in step):
            break
        log.write(f'{{"epoch": {number}, "rows": {[rows for rows in step if rows is not None]}}}\n')
        log.flush()
        lines += 1
        print(lines, flush=True)
        if lines % 2 == 0:
            save(folder, {"lines": lines, "states": [loader.state_dict() for loader in loaders]})
