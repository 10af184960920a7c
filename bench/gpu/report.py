"""Sums up the results of measure.py: tables, and a plot where matplotlib is installed."""

import json

MEASURED = ("test", "bench", "train")  # phases of which all steps should have run the same code


def last_results(file):
    """Returns the last line of each step, by its name. A step that was not run again keeps what it had."""
    results = {}
    for text in file.read_text().splitlines() if file.is_file() else ():
        try:
            line = json.loads(text)
        except ValueError:  # the program was killed when it wrote this
            continue
        if line["outcome"] != "not run" or results.get(line["step"], line)["outcome"] == "not run":
            results[line["step"]] = line
    return results


def shown(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


def table(rows):
    """Returns the lines of a table; one object is shown as a list of its values."""
    if len(rows) == 1 and len(rows[0]) > 8:
        width = max(map(len, rows[0]))
        return [f"  {name.ljust(width)}  {shown(value)}" for name, value in rows[0].items()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([shown(row[name]) if name in row else "-" for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]


def steps_by_code(results):
    """Returns the names of the steps that ran, by the code that they ran."""
    steps = {}
    for result in results:
        if result["phase"] in MEASURED and result["outcome"] != "not run":
            steps.setdefault(result.get("code", "unknown code"), []).append(result["step"])
    return steps


def codes(results):
    """Returns the lines that say which code was run."""
    steps = steps_by_code(results)
    if len(steps) < 2:
        return [*(f"code: {code}\n" for code in steps)]
    told = [f"  {code}: {', '.join(names)}" for code, names in steps.items()]
    return ["MIXED: the steps ran different code. Call the phases again to have all of one.", *told, ""]


def tables(results):
    """Returns the text: what came of each step, and then the figures."""
    lines = codes(results)
    for result in results:
        why = f": {result['reason']}" if result["reason"] else ""
        lines.append(f"{result['step']:24} {result['outcome']}{why}")
    for result in results:
        if result["figures"]:
            facts = [result["device"], result.get("code", "unknown code"), result["time"]]
            lines += ["", f"{result['step']} ({', '.join(facts)})", *table(result["figures"])]
    return "\n".join(lines) + "\n"


def plot(results, path):
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    def figures(step):
        return results[step]["figures"] if step in results else []

    figure, ((copies, kernels), (epochs, training)) = pyplot.subplots(2, 2, figsize=(12, 8))
    rows = figures("copies")
    for name in [name for name in rows[0] if name != "mib"] if rows else []:
        copies.plot([row["mib"] for row in rows], [row[name] for row in rows], "o-", label=name)
    copies.set(title="copies to the device", xlabel="MiB", ylabel="GB/s", xscale="log")
    rows = [row for row in figures("kernels") if row["layout"] == "NCHW"]
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        mine = [row for row in rows if row["dtype"] == dtype]
        kernels.plot([row["operations"] for row in mine], [row["of_copy"] for row in mine], "o-", label=dtype)
    kernels.set(title="the kernel, NCHW", ylabel="of a copy on the device")
    rows = figures("epochs-by-cores")
    if rows:
        epochs.plot([row["threads"] for row in rows], [row["images_per_second"] for row in rows], "o-",
                    label="stoker bench")  # fmt: skip
    for row in figures("decode_jpeg"):
        epochs.axhline(row["images_per_second"], color="gray", label="decode_jpeg on the device")
    epochs.set(title="epochs", xlabel="cores", ylabel="images/s")
    for loader in ("stoker", "usual", "dali"):
        points = [(count, row["images_per_second"]) for count in (2, 4, 8)
                  for row in figures(f"small-{count}-{loader}")]  # fmt: skip
        if points:
            training.plot(*zip(*points), "o-", label=loader)
    training.set(title="training a small network", xlabel="cores", ylabel="images/s")
    for axes in (copies, kernels, epochs, training):
        axes.set_ylim(bottom=0)
        if axes.has_data():
            axes.legend()
        else:
            axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
    devices = dict.fromkeys(result["device"] for result in results.values())
    mark = " (MIXED CODE)" if len(steps_by_code(results.values())) > 1 else ""
    figure.suptitle(f"stoker on {', '.join(devices)}{mark}")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def write(folder, phase=None):
    """Writes report.txt and report.png; prints the tables, or those of a phase. Returns an exit code."""
    results = last_results(folder / "results.jsonl")
    (folder / "report.txt").write_text(tables([*results.values()]))
    print(tables([r for r in results.values() if phase in (None, r["phase"])]), end="")
    try:
        plot(results, folder / "report.png")
    except ImportError as error:
        print(f"no plot: {error}")
    return 0
