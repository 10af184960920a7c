"""The table and the picture of what compare.py has measured."""

import pathlib
import platform
import statistics


def spread(values, digits=0):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} – {max(values):,.{digits}f})"


def row(name, workload, cores, turns, floor, about):
    """Returns the figures of a program in each turn. `floor` are the turns of the floor, round by round."""
    speeds = [turn["images"] / turn["seconds"] for turn in turns]
    floors = [turn["images"] / turn["seconds"] for turn in floor]
    return {
        "name": name,
        "workload": workload,
        "cores": cores,
        "images_per_second": speeds,
        "cpu_seconds_per_1000": [1000 * turn["cpu_seconds"] / turn["images"] for turn in turns],
        "floors_per_core": [own / cores / theirs for own, theirs in zip(speeds, floors)],
        # The floor has neither.
        "first_batch_seconds": min(turn.get("first_batch_seconds", 0) for turn in turns),
        "peak_mib": max(turn.get("peak_mib", 0) for turn in turns),
        **about,
    }


def processor():
    """Returns the processor's name, and the widest vectors that it has."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    found = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in lines}
    flags = found.get("flags", found.get("Features", "")).split()
    widest = next((flag for flag in ("avx512bw", "avx2", "ssse3", "asimd") if flag in flags), "no vectors")
    return f"{found.get('model name', platform.machine())}, {widest}"


def table(rows, failures, options, photos):
    """Prints Markdown, the fastest program first."""
    cache = "cold, one pass" if options.cold else "in the page cache"
    print(f"{photos} photographs {cache}, {options.rounds} rounds, {options.cores} core(s), {processor()}\n")
    print(
        "| | images/s | CPU s per 1,000 | × the floor, per core | first batch, s | peak, MiB "
        "| installed, MB | differs from Pillow | |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for workload in options.workloads:
        print(f"| **{workload}** | | | | | | | | |")
        of_it = [row for row in rows if row["workload"] == workload]
        for one in sorted(of_it, key=lambda row: -statistics.median(row["images_per_second"])):
            first, peak, installed = one["first_batch_seconds"], one["peak_mib"], one.get("installed_mb")
            print(
                f"| {one['name']} | {spread(one['images_per_second'])} | "
                f"{spread(one['cpu_seconds_per_1000'], 2)} | {spread(one['floors_per_core'], 2)} | "
                f"{f'{first:.1f}' if first else ''} | {f'{peak:,.0f}' if peak else ''} | "
                f"{f'{installed:,.0f}' if installed else ''} | {one.get('differs', '')} | {one['what']} |"
            )
    versions = {row["name"].partition(",")[0]: row["version"] for row in rows if "version" in row}
    print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))
    for name, why in failures.items():
        print(f"\nLeft out: {name}: {why}")


def plot(rows, path):
    """Draws × the floor as bars, one group for each workload."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    figure, axes = pyplot.subplots(
        len(workloads), 1, figsize=(9, 0.32 * len(rows) + 0.8 * len(workloads)), sharex=True, squeeze=False,
        height_ratios=[sum(row["workload"] == w for row in rows) for w in workloads],
    )  # fmt: skip
    for axis, workload in zip(axes[:, 0], workloads):
        of_it = [row for row in rows if row["workload"] == workload]
        of_it.sort(key=lambda row: statistics.median(row["floors_per_core"]))
        middles = [statistics.median(row["floors_per_core"]) for row in of_it]
        errors = [
            [middle - min(row["floors_per_core"]) for row, middle in zip(of_it, middles)],
            [max(row["floors_per_core"]) - middle for row, middle in zip(of_it, middles)],
        ]
        colors = ["tab:orange" if row["name"].startswith("stoker") else "tab:gray" for row in of_it]
        axis.barh(
            [row["name"] for row in of_it], middles, xerr=errors, color=colors, ecolor="black", capsize=2
        )
        axis.margins(y=0.01)
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_title(workload, loc="left", fontsize=10)
        axis.tick_params(labelsize=8)
    axes[-1, 0].set_xlabel("images a second and core, as a multiple of libjpeg-turbo's whole decode")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
