"""Two epochs of all ranks by as_tf_dataset(), checkpointed every few steps: FOLDER PHOTOS OP WORLD BATCH."""

import os
import pathlib
import shutil
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import stoker
import tensorflow as tf
from kill_runs import resumed_lines, save

folder = pathlib.Path(sys.argv[1])
op = sys.argv[3]
world, batch = map(int, sys.argv[4:])
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
options.experimental_symbolic_checkpoint = True
loaders = [
    stoker.Loader(
        stoker.image_folder(sys.argv[2]), [stoker.RandomResizedCrop(16)],
        batch_size=batch, shuffle=True, seed=3, rank=rank, world=world, sample_ids=True,
        on_bad="substitute", max_bad_fraction=1,
    )
    for rank in range(world)
]  # fmt: skip
iterators = [
    iter(loader.as_tf_dataset(op=op).repeat(2).prefetch(2).with_options(options)) for loader in loaders
]
checkpoint = tf.train.Checkpoint(**{f"rank{rank}": iterator for rank, iterator in enumerate(iterators)})
saved, log = resumed_lines(folder)
lines = saved["lines"] if saved else 0
if saved:
    checkpoint.read(str(folder / saved["name"] / "saved")).assert_consumed()
while True:
    step = [next(iterator, None) for iterator in iterators]
    if all(batch is None for batch in step):
        break
    rows = [
        [[int(i), zlib.crc32(image)] for image, i in zip(batch["image"].numpy(), batch["sample_id"].numpy())]
        for batch in step
        if batch is not None
    ]
    log.write(f'{{"rows": {rows}}}\n')
    log.flush()
    lines += 1
    print(lines, flush=True)
    # Epochs have an even number of steps. The prebuilt ops learn of an epoch with its first batch: a new
    # process that goes on between two epochs takes the earlier one again.
    if lines % 2 == (op == "fallback"):
        name = f"at{lines}"
        shutil.rmtree(folder / name, ignore_errors=True)  # of a run that was killed before it was named
        checkpoint.write(str(folder / name / "saved"))
        save(folder, {"lines": lines, "name": name})
