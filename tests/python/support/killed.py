"""Two epochs of all ranks, with a state saved every few steps: FOLDER PHOTOS WORLD BATCH."""

import pathlib
import sys
import zlib

import stoker
from kill_runs import resumed_lines, save

folder = pathlib.Path(sys.argv[1])
world, batch = map(int, sys.argv[3:])
loaders = [
    stoker.Loader(
        stoker.image_folder(sys.argv[2]), [stoker.RandomResizedCrop(16)],
        batch_size=batch, shuffle=True, seed=3, rank=rank, world=world, sample_ids=True,
        on_bad="substitute", max_bad_fraction=1,
    )
    for rank in range(world)
]  # fmt: skip
saved, log = resumed_lines(folder)
lines = saved["lines"] if saved else 0
if saved:
    for loader in loaders:
        loader.load_state_dict(saved["state"])
epoch = saved["state"]["epoch"] if saved else 0
for number in range(epoch, 2):
    iterators = [iter(loader) for loader in loaders]
    while True:
        step = [next(iterator, None) for iterator in iterators]
        if all(columns is None for columns in step):
            break
        rows = [
            [[int(i), zlib.crc32(image)] for image, i in zip(columns.image, columns.sample_id)]
            for columns in step
            if columns is not None
        ]
        log.write(f'{{"epoch": {number}, "rows": {rows}}}\n')
        log.flush()
        lines += 1
        print(lines, flush=True)
        if lines % 2 == 0:
            save(folder, {"lines": lines, "state": loaders[0].state_dict()})
