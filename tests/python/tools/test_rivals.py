"""bench/rivals: what an adapter has, and that a wrong output is found before it is timed."""

import importlib
import pathlib
import subprocess
import sys
import time
import types

import numpy as np
import pytest

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def rivals(root):
    """Returns a function that imports a module of bench/rivals, and forgets them in the end."""
    folder = str(root / "bench" / "rivals")
    before = set(sys.modules)
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def test_adapters_have_what_the_readme_says_without_their_libraries(root):
    program = """
import importlib, sys
import compare, workload
for names in compare.ADAPTERS.values():
    for name in names:
        adapter = importlib.import_module(f"adapters.{name}")
        assert adapter.NAME and adapter.DISTRIBUTION and adapter.VARIANTS and callable(adapter.batches)
        assert set(adapter.WORKLOADS) <= set(workload.WORKLOADS)
        assert set(getattr(adapter, "BORROWS", ())) <= {"torch_loader", "stoker_loader"}
        assert isinstance(adapter.PACKAGES, tuple) and isinstance(adapter.IMPORTS, tuple)
        assert not set(adapter.IMPORTS) - {"PIL.Image"} & set(sys.modules), name
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root / "bench" / "rivals")


def test_some_variants_run_only_if_they_are_named(rivals):
    chosen = rivals("compare").chosen_variants
    adapter = types.SimpleNamespace(VARIANTS={"files": "", "packed": ""}, NAMED={"scaled": ""})
    assert chosen(adapter, None) == ["files", "packed"]
    assert chosen(adapter, ["scaled", "packed", "other"]) == ["packed", "scaled"]
    assert chosen(types.SimpleNamespace(VARIANTS={"files": ""}), ["scaled"]) == []


def test_stoker_without_avx512_makes_the_same_batch(root, photos, tmp_path):
    program = """
import ctypes, pathlib, sys
import numpy
import workload
from adapters import stoker_loader
photos, made = map(pathlib.Path, sys.argv[1:])
data = workload.Data(photos, made, 1)
eval = workload.WORKLOADS["eval"]
highway = ctypes.CDLL("libhwy.so.1")
highway._ZN3hwy16SupportedTargetsEv.restype = ctypes.c_int64
highway._ZN3hwy15GetChosenTargetEv.restype = ctypes.POINTER(ctypes.c_int64)
chosen = lambda: highway._ZN3hwy15GetChosenTargetEv()[0]
whole, had = next(stoker_loader.batches(data, eval, "files")), chosen()
assert had != 1, "no kernel has run"
has_avx512 = bool(highway._ZN3hwy16SupportedTargetsEv() & stoker_loader.AVX512)
capped = next(stoker_loader.batches(data, eval, "files-avx2"))
assert numpy.array_equal(whole, capped)
assert not highway._ZN3hwy16SupportedTargetsEv() & stoker_loader.AVX512
assert (chosen() != had) == has_avx512, (chosen(), had)
"""
    command = [sys.executable, "-c", program, photos, tmp_path]
    subprocess.run(command, check=True, cwd=root / "bench" / "rivals")


def test_ended_children_count(rivals):
    cpu_seconds = rivals("processes").cpu_seconds
    before = cpu_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert cpu_seconds() - before > 0.29


def test_a_late_command_leaves_no_process(rivals, tmp_path):
    environments, noted = rivals("environments"), tmp_path / "pid"
    with pytest.raises(environments.Failed, match="took more than 1 s"):
        environments.run("bash", "-c", f"sleep 60 & echo $! > {noted}; wait", most_seconds=1)
    command = pathlib.Path("/proc", noted.read_text().strip(), "cmdline")
    until = time.monotonic() + 20
    while command.is_file() and command.read_bytes():  # empty: ended, and not yet waited for
        assert time.monotonic() < until, f"{command.parent.name} runs"
        time.sleep(0.01)


def test_a_row_has_the_figures_of_each_round(rivals):
    turn = {"images": 200, "seconds": 2, "cpu_seconds": 1, "peak_mib": 50, "first_batch_seconds": 0.5}
    faster = {**turn, "seconds": 1, "peak_mib": 60, "first_batch_seconds": 0.4}
    floor = {"images": 100, "seconds": 2}
    row = rivals("report").row("it", "train", 2, [turn, faster], [floor, floor], {"what": "all"})
    assert row["images_per_second"] == [100, 200] and row["floors_per_core"] == [1, 2]
    assert row["cpu_seconds_per_1000"] == [5, 5] and row["what"] == "all"
    assert (row["first_batch_seconds"], row["peak_mib"]) == (0.4, 60)


@pytest.fixture
def expected(rivals):
    """Photographs as outputs.reference() returns them: smooth, and reddish."""
    places = np.mgrid[0:56, 0:56].sum(0)[None, :, :, None]
    shades = np.arange(64)[:, None, None, None]
    return ((places + shades + np.array([120, 60, 0])) % 200).astype(np.int16)


@pytest.fixture
def right(rivals, expected):
    """A batch of eval that is right."""
    return np.repeat(np.repeat(expected, 4, 1), 4, 2).astype(np.uint8)


def test_a_right_batch_passes(rivals, expected, right):
    outputs, workloads = rivals("outputs"), rivals("workload").WORKLOADS
    assert outputs.check(right, workloads["eval"], expected) == "0.0"
    assert outputs.check(right.transpose(0, 3, 1, 2), workloads["eval"], expected) == "0.0"
    normalized = rivals("workload").normalize(right)
    assert outputs.check(normalized, workloads["train-f32"], expected) == ""


@pytest.mark.parametrize(
    ("workload", "spoil", "message"),
    [
        ("eval", lambda batch: batch[..., ::-1], "differs from Pillow's by"),
        ("eval", lambda batch: batch + np.uint8(10), "differ from Pillow's by .* in the mean"),
        ("eval", lambda batch: np.roll(batch, 32, 0), r"image \d+ differs from Pillow's by"),
        ("eval", lambda batch: batch[:63], r"uint8 \(63, 224, 224, 3\)"),
        ("eval", lambda batch: batch.astype(np.float32), "float32"),
        ("train", lambda batch: np.concatenate([batch[:63], batch[:1]]), "an image twice"),
        ("train", lambda batch: batch // 4, "mean of a channel is off"),
        ("train-f32", lambda batch: batch / np.float32(255), "mean of a channel is off"),
    ],
)
def test_a_wrong_batch_is_found(rivals, expected, right, workload, spoil, message):
    with pytest.raises(rivals("environments").Failed, match=message):
        rivals("outputs").check(spoil(right), rivals("workload").WORKLOADS[workload], expected)


def test_more_accelerators_run_until_one_is_not_fed(rivals, monkeypatch, capsys):
    storage = rivals("mlperf_storage")
    program = types.SimpleNamespace(name="it, fast", differs="nothing")
    options = types.SimpleNamespace(accelerators=[1, 2, 4, 8], cores=1)

    def run(program, accelerators, options, python):
        return {"utilization": min(1, 3 / accelerators), "images_per_second": 100.0}

    monkeypatch.setattr(storage, "run", run)
    found, failures = [*storage.rows(program, options, None, {})], {}
    assert [row["accelerators"] for row in found] == [1, 2, 4]
    storage.table(found, failures, options, 400)
    printed = capsys.readouterr().out
    assert "| it, fast | 2 | **100%** | 100 | nothing |" in printed
    assert "| it, fast | 4 | 75% | 100 | nothing |" in printed


def test_a_loader_that_fails_has_no_accelerators(rivals, monkeypatch, capsys):
    storage = rivals("mlperf_storage")

    def run(*_):
        raise rivals("environments").Failed("no MPI here")

    monkeypatch.setattr(storage, "run", run)
    options, failures = types.SimpleNamespace(accelerators=[1], cores=1), {}
    assert not [*storage.rows(types.SimpleNamespace(name="it, slow"), options, None, failures)]
    assert failures == {"it, slow": "no MPI here"}
