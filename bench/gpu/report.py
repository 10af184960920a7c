"""Sums up the results of a lease: the ten numbers, what came of each step, its figures, and a plot.

    bench/gpu/report.py FOLDER

Writes FOLDER/report.txt, of FOLDER/results.jsonl. `measure.py report` also makes FOLDER/report.png, where
matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import results
import steps
import ten_numbers

Rows = list[dict[str, Any]]


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


def table(rows: Rows) -> list[str]:
    """Returns the lines of a table; one object is shown as a list of its values."""
    if len(rows) == 1 and len(rows[0]) > 8:
        width = max(map(len, rows[0]))
        return [f"  {name.ljust(width)}  {shown(value)}" for name, value in rows[0].items()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([shown(row[name]) if name in row else "-" for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]


def first(rows: Rows, key: str) -> Any:
    return next((row[key] for row in rows if row.get(key)), None)


def heads(found: results.Results) -> list[str]:
    """Returns the lines that say when, where and of which code it was, for each call; they may differ."""
    lines, called = [], found.of_kind("lease")
    for lease in called:
        lines.append(f"date:    {lease['time']}")
        lines.append(f"code:    {lease['code']}")
        lines.append(f"command: {lease['command']}")
        lines += [f"NOTE:    {lease['note']}"] if lease.get("note") else []
    if len({lease["code"] for lease in called}) > 1:
        lines.insert(0, "MIXED: the calls ran different code.")
    machine, context = found.of("machine").rows, found.of("context").rows
    card = first(context, "card")  # nvidia-smi may complain where programs find a GPU
    gpus = [card] if card else first(machine, "gpus") or [f"none: {first(context, 'why_no_gpu')}"]
    on_host = called and called[-1]["device"] == "host"
    lines.append("card:    " + ("none: the simulated device" if on_host else "; ".join(gpus)))
    driver = first(context, "cuda_of_driver")
    lines.append(f"driver:  CUDA {driver}; {first(context, 'driver_library')}" if driver else "driver:  none")
    cores, processor = first(machine, "cores"), first(machine, "processor")
    return [*lines, f"host:    {cores} cores, {processor}", ""]


def outcomes(found: results.Results) -> list[str]:
    lines = ["Steps: second of the clock, outcome, seconds, CPU seconds"]
    for end in found.of_kind("step"):
        told = f"{end['outcome']}: {end['reason']}" if end["reason"] else end["outcome"]
        lines.append(
            f"{end['clock']:6.1f}  {end['step']:32} {told:50} {end['seconds']:6.1f} {end['cpu_seconds']:8.1f}"
        )
    return lines


def text(found: results.Results) -> str:
    lines = [*heads(found), *ten_numbers.text(found).splitlines(), "", *outcomes(found)]
    for step in dict.fromkeys(figure["step"] for figure in found.of_kind("figure")):
        lines += ["", step, *table(found.of(step).rows)]
    return "\n".join(lines) + "\n"


def plot(found: results.Results, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, ((copies, kernels), (loaders, training)) = pyplot.subplots(2, 2, figsize=(12, 8))
    rows = found.of("copies").rows
    for name in (
        "pageable",
        "registered",
        "registered_huge",
        "host_alloc",
        "batches",
        "batches_32mib",
        "batches_whole",
    ):
        points = [(row["mib"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            copies.plot(*zip(*points), "o-", label=name)
    copies.set(title="copies to the device", xlabel="MiB", ylabel="GB/s", xscale="log")
    rows = [row for row in found.of("kernels").rows if row["layout"] == "NCHW"]
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        mine = [row for row in rows if row["dtype"] == dtype]
        kernels.plot([row["operations"] for row in mine], [row["of_copy"] for row in mine], "o-", label=dtype)
    kernels.set(title="finish kernel, NCHW", ylabel="of a copy on the device")
    bars: dict[str, float] = {}
    for files in steps.FILES:
        for row in found.of(f"crops-{files}").rows:
            bars[f"kernels, {files}, {row['batch']}"] = row["crops_per_second"]
    for step in ten_numbers.LOADERS:
        for row in found.of(step).rows:
            bars[f"{row['files']}, by {row['decode']}"] = row["images_per_second"]
    for row in found.of("decode_jpeg").rows:
        bars[row["work"]] = row["images_per_second"]
    loaders.set(title="crops", xlabel="crops/s")
    loaders.barh([*bars], [*bars.values()], label="crops/s" if bars else None)
    for step in ("resnet18-stoker", "resnet18-stoker-decode", "resnet18-usual"):
        rates = [row["images_per_second"] for row in found.of(step).rows if "images_per_second" in row]
        if rates:
            training.plot(rates, "o-", label=step)
    training.set(title="ResNet-18 on 4 cores", xlabel="turn", ylabel="images/s")
    for axes in (copies, kernels, training):
        axes.set_ylim(bottom=0)
    for axes in (copies, kernels, loaders, training):
        if axes.has_data():
            axes.legend()
        else:
            axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
    called = found.of_kind("lease")
    figure.suptitle("stoker on " + (called[-1]["device"] if called else "an unknown device"))
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def write(folder: pathlib.Path, plotted: bool = False) -> int:
    """Writes report.txt, and report.png; returns an exit code."""
    found = results.read(folder / "results.jsonl")
    (folder / "report.txt").write_text(text(found))
    if not plotted:
        return 0
    try:
        plot(found, folder / "report.png")
    except ImportError as error:
        print(f"no plot: {error}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    return write(parser.parse_args().folder)


if __name__ == "__main__":
    sys.exit(main())
