"""Plots the output of tuner_sim.

build/bench/tuner_sim/tuner_sim --csv results.csv
build/bench/tuner_sim/tuner_sim --trace-steps > steps.csv
python3 bench/tuner_sim/plot.py results.csv steps.csv FOLDER
"""

import csv
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

COLOURS = {
    "tuned": "#0a7d4f",
    "hill climber": "#c2410c",
    "depth 1": "#94a3b8",
    "depth 2": "#64748b",
    "depth 8": "#475569",
    "depth 32": "#1e293b",
}


def style():
    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tuner_sim",
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def plot_results(rows, path):
    """Plots throughput and memory of each way, with the workloads sorted."""
    figure, (fast, memory) = plt.subplots(1, 2, figsize=(8, 3.2))
    for way, colour in COLOURS.items():
        of_way = [row for row in rows if row["way"] == way]
        share = [(i + 0.5) / len(of_way) * 100 for i in range(len(of_way))]
        width = 2.2 if way == "tuned" else 1.1
        for axes, key in ((fast, "throughput"), (memory, "memory")):
            values = sorted(float(row[key]) for row in of_way)
            axes.plot(share, values, color=colour, linewidth=width, label=way)
    fast.axhline(0.95, color="#cbd5e1", linewidth=0.8, zorder=0)
    fast.set(xlabel="% of workloads", ylabel="throughput / best grid point", ylim=(0, 1.05))
    memory.axhline(1.5, color="#cbd5e1", linewidth=0.8, zorder=0)
    memory.set(xlabel="% of workloads", ylabel="memory / smallest grid point", yscale="log")
    fast.legend(frameon=False, loc="lower right")
    save(figure, path)


def plot_steps(rows, path):
    """Plots depth, workers and wait over time, while the consumer's step changes."""
    seconds = [float(row["seconds"]) for row in rows]
    figure, (step, settings, wait) = plt.subplots(
        3, 1, figsize=(8, 4.2), sharex=True, height_ratios=[1, 2, 1]
    )
    step.plot(seconds, [float(row["step_ms"]) for row in rows], color="#475569", linewidth=1)
    step.set(ylabel="step, ms")
    for key, colour in (("workers", "#0a7d4f"), ("depth", "#c2410c"), ("reads", "#94a3b8")):
        values = [int(row[key]) for row in rows]
        settings.step(seconds, values, where="post", color=colour, linewidth=1.4, label=key)
    settings.set(ylabel="settings")
    settings.legend(frameon=False, loc="upper right", ncols=3)
    wait.plot(seconds, [float(row["waited_ms"]) for row in rows], color="#475569", linewidth=0.6)
    wait.set(ylabel="waited, ms", xlabel="seconds")
    save(figure, path)


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main():
    results, steps, folder = (pathlib.Path(argument) for argument in sys.argv[1:4])
    style()
    folder.mkdir(parents=True, exist_ok=True)
    plot_results(read(results), folder / "tuner_sim.svg")
    plot_steps(read(steps), folder / "tuner_steps.svg")


if __name__ == "__main__":
    main()
