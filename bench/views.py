"""Several views of each image by one loader, next to one crop, and next to a loader for each view.

    python bench/views.py PHOTOS [--rounds 9] [--epochs 2] [--core 0]

PHOTOS is a folder with class folders, or a packed set. The views are those of DINO (Caron et al., 2021):
2 crops of 224 pixels from 40 to 100 % of the image's area, 8 of 96 pixels from 5 to 40 %. SimCLR's (Chen et
al., 2020) are two RandomResizedCrop(224) from 8 % on.

Each round measures all of them, in turns, on one worker. What counts is the CPU time of the process, all its
threads together. Prints the median for 1,000 photographs, and the median and the range within a round of its
ratio to that of one crop.
"""

import argparse
import os
import statistics
import time

import stoker


def crop(size, low, high):
    return [stoker.RandomResizedCrop(size, scale=(low, high)), stoker.RandomHorizontalFlip()]


ONE = crop(224, 0.08, 1)
LARGE, SMALL = crop(224, 0.4, 1), crop(96, 0.05, 0.4)
DINO = [LARGE, LARGE, *[SMALL] * 8]
WORKLOADS = {  # lists of views, one for each loader
    "one crop": [[ONE]],
    "one crop of 40 to 100 %": [[LARGE]],
    "SimCLR, views": [[ONE, ONE]],
    "SimCLR, two loaders": [[ONE], [ONE]],
    "DINO, views": [DINO],
    "DINO, ten loaders": [[view] for view in DINO],
}


def cpu_of(source, runtime, loaders, epochs):
    """The CPU seconds of these epochs, after one that warms up."""
    made = [
        stoker.Loader(source, views=views, batch_size=64, shuffle=True, runtime=runtime) for views in loaders
    ]
    spent = 0.0
    for loader in made:
        for epoch in range(epochs + 1):
            before = time.process_time()
            for _ in loader.epoch(epoch):
                pass
            spent += time.process_time() - before if epoch else 0
        loader.close()
    return spent


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--core", type=int, default=0)
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.core})
    packed = os.path.exists(os.path.join(args.photos, "index.stoker"))
    source = stoker.packed(args.photos) if packed else stoker.image_folder(args.photos)
    runtime = stoker.Runtime(threads=1)
    rounds = [
        {name: cpu_of(source, runtime, loaders, args.epochs) for name, loaders in WORKLOADS.items()}
        for _ in range(args.rounds)
    ]
    for name in WORKLOADS:
        seconds = statistics.median(r[name] for r in rounds) / args.epochs / len(source) * 1000
        ratios = sorted(r[name] / r["one crop"] for r in rounds)
        print(
            f"{name:24} {seconds:6.2f} CPU s per 1,000   {statistics.median(ratios):5.2f} x one crop "
            f"({ratios[0]:.2f} - {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
