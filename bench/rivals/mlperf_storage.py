"""Measures how many accelerators of MLPerf Storage's ResNet-50 a loader feeds, with real decoding.

    .venv/bin/python bench/rivals/mlperf_storage.py PHOTOS [--rivals tf,torch,…] [--only VARIANT,…]
        [--accelerators 1,2,…] [--cores N] [--json FILE]

MLPerf Storage emulates accelerators by sleeping: one of its "H100" takes 0.224 s for a batch of 400, and must
compute in 90 % of the time. Its loaders read TFRecords and decode nothing. Here dlio-benchmark, which MLPerf
runs, takes its batches from the loaders of ./dev compare: random crops of your photographs, 64 in 35.8 ms. N
accelerators share a loader, and a batch then takes 35.8 ms / N. A loader's rows end with the first number of
accelerators that it does not feed.
"""

import argparse
import importlib
import json
import os
import pathlib
import sys
import types

import compare
import environments
import report
from environments import Failed
from workload import BATCH, Data

HERE = pathlib.Path(__file__).parent
# MLPerf Storage 1.0, resnet50_h100.yaml of dlio-benchmark 2.0.
STEP_SECONDS, STEP_BATCH, LEAST_UTILIZATION = 0.224, 400, 0.9
DLIO = types.SimpleNamespace(
    NAME="dlio-benchmark",
    PACKAGES=(
        "h5py",
        "hydra-core",
        "mpi4py",
        "mpich",
        "omegaconf",
        "pandas",
        "pillow",
        "psutil",
        "pydftracer==1.0.2",
    ),
    # Without what it depends on: TensorFlow, PyTorch and an old DALI.
    BUILT_WITH_THESE=("dlio-benchmark==2.0.0",),
)
IMPORTED = ("torch_loader", "tf_data")  # by dlio-benchmark, whatever it measures


def run(program, accelerators, options, python):
    """Returns what mlperf_turn.py printed."""
    folder = python.parents[1]
    sites = [*folder.glob("lib/python*/site-packages")]
    for name in IMPORTED:
        sites += (folder.parent / name).glob("lib/python*/site-packages")
    step = STEP_SECONDS * BATCH / STEP_BATCH / accelerators
    words = [program.adapter, program.variant, options.photos, program.prepared]
    words += ["--cores", options.cores, "--step", step]
    words += [word for site in sites for word in ("--site", site)]
    library = f"MPI4PY_LIBMPI={folder / 'lib' / 'libmpi.so.12'}"
    said = environments.run("/usr/bin/env", library, program.python, HERE / "mlperf_turn.py", *words)
    return json.loads(said.splitlines()[-1])


def rows(program, options, python, failures):
    """Yields a row for each number of accelerators, up to the first that is not fed."""
    for accelerators in options.accelerators:
        allotted = compare.pinned(options.cores)
        try:
            said = compare.attempt(failures, program.name, run, program, accelerators, options, python)
        finally:
            os.sched_setaffinity(0, allotted)
        if said is None:
            return
        yield {"name": program.name, "accelerators": accelerators, "what": program.differs, **said}
        if said["utilization"] < LEAST_UTILIZATION:
            return


def table(found, failures, options, photos):
    print(f"{photos} photographs in the page cache, {options.cores} core(s), {report.processor()}\n")
    print("| | emulated accelerators | utilization | images/s | |")
    print("|---|--:|--:|--:|---|")
    for row in found:
        fed = "**" if row["utilization"] >= LEAST_UTILIZATION else ""
        print(
            f"| {row['name']} | {row['accelerators']} | {fed}{row['utilization']:.0%}{fed} | "
            f"{row['images_per_second']:,.0f} | {row['what']} |"
        )
    for name, why in failures.items():
        print(f"\nLeft out: {name}: {why}")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--rivals", type=compare.words, default=["stoker", "tf", "torch", "dali"])
    parser.add_argument("--only", type=compare.words, help="these variants")
    parser.add_argument(
        "--accelerators", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4]
    )
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--folder", type=lambda text: pathlib.Path(text).resolve(), default="build/rivals")
    parser.add_argument("--json", type=pathlib.Path)
    parser.set_defaults(seconds=2, cold=False)  # of the turns that prepare
    return parser.parse_args()


def main():
    options, failures = arguments(), {}
    adapters = {name: importlib.import_module(f"adapters.{name}") for name in IMPORTED}
    folder = options.folder / "environments"
    for name in IMPORTED:
        environments.python_of(name, adapters, folder)
    python = environments.python_of("dlio", {"dlio": DLIO}, folder)
    found = []
    for program in compare.programs(options, failures):
        if "train" in program.module.WORKLOADS:
            found += rows(program, options, python, failures)
    table(found, failures, options, len(Data(options.photos, options.folder, 1).files()))
    if options.json:
        options.json.write_text(json.dumps({"rows": found, "failures": failures}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
