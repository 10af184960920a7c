"""One run of dlio-benchmark over a loader's batches: mlperf_storage.py runs this in the loader's environment.

    mlperf_turn.py ADAPTER VARIANT PHOTOS PREPARED --cores N --step SECONDS [--site FOLDER …]

Prints a line of JSON: the share of the time in which the emulated accelerator computes, and images a second,
both of the second of two epochs. The folders have dlio-benchmark and what it imports; they come after the
loader's own packages.
"""

import argparse
import contextlib
import importlib
import importlib.machinery
import itertools
import json
import os
import pathlib
import sys
import tempfile
import unittest.mock

from turn import print_and_leave
from workload import BATCH, WORKLOADS, Data

STEPS = 100  # of an epoch
EPOCHS = 2


def plug_in(batches):
    """Lets dlio-benchmark take its batches from here. It makes the class itself, by its name, and stops after
    an epoch's steps."""
    from dlio_benchmark.common.enumerations import DataLoaderType
    from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader

    class Batches(BaseDataLoader):
        def __init__(self, format_type, dataset_type, epoch):
            super().__init__(format_type, dataset_type, epoch, DataLoaderType.PYTORCH)

        def read(self):
            pass

        def next(self):
            yield from itertools.islice(batches, STEPS)

        def finalize(self):
            pass

    sys.modules[__name__].Batches = Batches
    return f"{__name__}.Batches"


def configuration(folder, step, plugin):
    """Returns the workload in dlio-benchmark's words. The empty file means all photographs, since
    dlio-benchmark counts samples by its files, and reads none here."""
    for name in ("train", "valid"):
        (folder / name).mkdir()
    (folder / "train" / "all.jpeg").touch()
    return {
        "framework": "pytorch",
        "workflow": {"generate_data": False, "train": True},
        "dataset": {
            "format": "jpeg",
            "data_folder": str(folder),
            "num_files_train": 1,
            "num_samples_per_file": STEPS * BATCH,
        },
        "train": {"epochs": EPOCHS, "computation_time": step},
        "reader": {
            "data_loader": "pytorch",
            "data_loader_classname": plugin,
            "data_loader_sampler": "index",
            "batch_size": BATCH,
            "read_threads": 1,
        },
        "output": {"folder": str(folder / "output")},
    }


def import_without_tensorflow(module):
    """Imports dlio-benchmark, which imports TensorFlow for a profiler that is off: PyTorch's worker processes
    fail where both are loaded."""
    stand_in = unittest.mock.MagicMock(__spec__=importlib.machinery.ModuleSpec("tensorflow", None))
    sys.modules["tensorflow"] = stand_in
    importlib.import_module(module)
    del sys.modules["tensorflow"]


def run(batches, step):
    from dlio_benchmark.main import DLIOBenchmark
    from dlio_benchmark.utils.utility import DLIOMPI

    DLIOMPI.get_instance().initialize()
    with tempfile.TemporaryDirectory() as folder:
        benchmark = DLIOBenchmark(configuration(pathlib.Path(folder), step, plug_in(batches)))
        benchmark.initialize()
        benchmark.run()
        benchmark.finalize()
        metric = json.loads(pathlib.Path(folder, "output", "summary.json").read_text())["metric"]
    return {
        "utilization": metric["train_au_percentage"][-1] / 100,
        "images_per_second": metric["train_throughput_samples_per_second"][-1],
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapter")
    parser.add_argument("variant")
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("prepared", type=pathlib.Path)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--step", type=float, required=True, help="seconds that a batch takes")
    parser.add_argument("--site", action="append", default=[])
    return parser.parse_args()


def main(options):
    sys.path += options.site
    if options.adapter != "tf_data":
        import_without_tensorflow("dlio_benchmark.main")
    adapter = importlib.import_module(f"adapters.{options.adapter}")
    data = Data(options.photos, options.prepared, options.cores)
    with contextlib.redirect_stdout(sys.stderr):
        return run(adapter.batches(data, WORKLOADS["train"], options.variant), options.step)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    print_and_leave(main, arguments())
