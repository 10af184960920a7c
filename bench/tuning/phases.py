"""Shows how a loader follows a step whose length changes: 5 ms, then 50 ms, then 5 ms.

    python bench/tuning/phases.py PHOTOS [--csv FILE] [--plot FILE] [--batch-size 24] [--batches 800]

Writes for each batch: when it was taken, the step, the settings, and how long it was waited for. The step is
a sleep, like that of a program whose accelerator works. The plot needs matplotlib.
"""

import argparse
import csv
import time

import stoker

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photos", help="a folder with class folders of photographs")
parser.add_argument("--csv", default="phases.csv")
parser.add_argument("--plot", help="an SVG or PNG file")
parser.add_argument("--batch-size", type=int, default=24)
parser.add_argument(
    "--batches", type=int, default=800, help="of each phase of short steps; a quarter of the long"
)
args = parser.parse_args()

SHORT, LONG = 0.005, 0.050


def measure():
    loader = stoker.Loader(
        stoker.image_folder(args.photos),
        [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()],
        batch_size=args.batch_size,
        shuffle=True,
        drop_remainder=True,
    )
    steps = [SHORT] * args.batches + [LONG] * (args.batches // 4) + [SHORT] * args.batches
    begin, rows, batches = time.perf_counter(), [], iter(())
    for step in steps:
        asked = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        taken = time.perf_counter()
        time.sleep(step)
        stats = loader.stats()
        rows.append(
            {
                "seconds": round(taken - begin, 6),
                "step_ms": 1e3 * step,
                "wait_ms": round(1e3 * (taken - asked), 3),
                "depth": stats["depth"],
                "workers": stats["workers"],
                "reads": stats["reads"],
            }
        )
    return rows, loader.stats()


def plot(rows, path):
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "stoker"
    figure, axes = pyplot.subplots(3, 1, sharex=True, figsize=(8, 5))
    seconds = [row["seconds"] for row in rows]
    axes[0].plot(seconds, [row["step_ms"] for row in rows], label="step", drawstyle="steps-post")
    axes[0].plot(seconds, [row["wait_ms"] for row in rows], label="wait", linewidth=0.7)
    axes[0].set_ylabel("ms")
    for name in ("depth", "workers"):
        axes[1].plot(seconds, [row[name] for row in rows], label=name, drawstyle="steps-post")
    axes[1].set_ylim(bottom=0)
    axes[2].plot(seconds, [row["reads"] for row in rows], label="reads", drawstyle="steps-post")
    axes[2].set_ylim(bottom=0)
    axes[2].set_xlabel("seconds")
    for axis in axes:
        axis.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


rows, stats = measure()
with open(args.csv, "w", newline="") as file:
    writer = csv.DictWriter(file, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
for name, chosen in (
    ("first short steps", rows[: args.batches]),
    ("long steps", rows[args.batches : -args.batches]),
    ("last short steps", rows[-args.batches :]),
):
    waited = sum(row["wait_ms"] for row in chosen)
    share = waited / (waited + sum(row["step_ms"] for row in chosen))
    settings = ", ".join(f"{key} {chosen[-1][key]}" for key in ("depth", "workers", "reads"))
    print(f"{name:18} waited {share:6.2%}   at its end: {settings}")
print(*stats["decisions"], sep="\n")
if args.plot:
    plot(rows, args.plot)
