"""bench/gpu/measure.py without a GPU: its phases, what is kept of them, and what the exit code tells."""

import importlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import time

import pytest

PASSES = 'echo "[  PASSED  ] 1 test."'
PROGRAMS = {  # stand-ins
    "device_bench": """echo '{"mib": 8, "pageable": 1.5, "batches": 2}'""",
    "gpu_device_test": PASSES,
    "stager_test": PASSES,
    "gpu_deferred_ops_test": PASSES,
    "gpu_crops_test": PASSES,
    "device_loader_test": PASSES,
    "device_decode_test": PASSES,
}
ON_GPU = ["python", "tensorflow", "memcheck", "racecheck", "initcheck", "synccheck"]


@pytest.fixture
def module(root, monkeypatch):
    """Returns a function that imports a module of bench/gpu, and forgets them in the end."""
    folder = str(root / "bench" / "gpu")
    before = set(sys.modules)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


class Machine:
    """A folder to work in, and a pack of programs."""

    def __init__(self, root, folder, command):
        self.root, self.folder, self.results = root, folder, folder / "results.jsonl"
        self.bin = folder / "packed" / "bin"
        self.bin.mkdir(parents=True)
        for name, script in PROGRAMS.items():
            self.write(self.bin / name, script)
        (self.bin / "stoker").symlink_to(command)
        self.pack()

    def pack(self):
        with tarfile.open(self.folder / "pack.tar", "w") as archive:
            archive.add(self.folder / "packed", ".")

    def add_empty_package(self):
        site = self.folder / "packed" / "site" / "stoker"
        site.mkdir(parents=True)
        (site / "__init__.py").touch()

    def write(self, path, script):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def call(self, phase):
        return [
            *(sys.executable, self.root / "bench" / "gpu" / "measure.py", phase, "--device", "host"),
            *("--quick", "--work", self.folder / "work", "--results", self.folder),
            *("--pack", self.folder / "pack.tar"),
        ]

    def measure(self, phase, *options, **settings):
        """Returns the exit code, what is printed, and the lines that the results have got."""
        before = len(self.lines())
        done = subprocess.run(
            [*self.call(phase), *options],
            capture_output=True, text=True, timeout=300, check=False, **settings,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, self.lines()[before:]

    def lines(self):
        lines = self.results.read_text().splitlines() if self.results.is_file() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def machine(root, tmp_path, command):
    return Machine(root, tmp_path, command)


def outcomes(lines):
    return {line["step"]: line["outcome"] for line in lines}


def test_a_probe_says_what_is_there(machine):
    code, printed, lines = machine.measure("probe")
    assert code == 0, printed
    assert outcomes(lines) == {"unpack": "ok", "first-copy": "ok", "machine": "ok"}
    for line in lines:
        assert set(line) == {
            "step", "phase", "device", "code", "outcome", "reason", "time", "seconds", "figures", "output"
        }  # fmt: skip
        assert (line["phase"], line["device"], line["reason"]) == ("probe", "host", "")
    (facts,) = lines[-1]["figures"]
    assert facts["cores"] >= 1 and facts["packed_programs"] == "run"
    assert "site/stoker is not there" in facts["packed_package"]
    assert lines[1]["figures"] == [{"mib": 8, "pageable": 1.5, "batches": 2}]
    assert "packed_package" in printed
    assert (machine.folder / "report.txt").read_text().startswith("unpack                   ok\n")


def test_what_is_done_is_not_done_again(machine):
    machine.measure("probe")
    code, printed, lines = machine.measure("probe")
    assert (code, lines) == (0, [])
    assert printed.count("done before") == 3
    assert outcomes(machine.measure("probe", "--again", "machine")[2]) == {"machine": "ok"}
    (machine.folder / "work").rename(machine.folder / "lost")  # a new machine
    assert outcomes(machine.measure("probe")[2]) == {"unpack": "ok"}


def test_steps_are_done_again_with_other_code(machine):
    def pack(commit, script):
        (machine.folder / "packed" / "pack.json").write_text(json.dumps({"commit": commit}))
        machine.write(machine.bin / "gpu_crops_test", script)
        machine.pack()

    def measure():
        """Returns the codes of the steps that were done, and the first line of the report."""
        lines = machine.measure("test")[2]
        codes = {line["step"]: line["code"] for line in lines if line["outcome"] == "ok"}
        return codes, (machine.folder / "report.txt").read_text().splitlines()[0]

    machine.add_empty_package()
    pack("v1-3-gabc", PASSES)
    first, told = measure()
    assert re.fullmatch("pack [0-9a-f]{12}", first["unpack"])
    assert re.fullmatch("v1-3-gabc [0-9a-f]{12}", first["stager_test"])
    assert first["stager_test"] == first["gpu_crops_test"]
    assert told == f"code: {first['stager_test']}"
    assert measure() == ({}, told)

    pack("v1-4-gdef", f"{PASSES} # changed")
    second, told = measure()
    assert second["unpack"] != first["unpack"]
    assert re.fullmatch("v1-4-gdef [0-9a-f]{12}", second["stager_test"])
    assert second["stager_test"].split()[1] != first["stager_test"].split()[1]
    assert told == f"code: {second['stager_test']}"


def test_a_report_on_different_code_says_so(module):
    def result(step, code, phase="bench", outcome="ok"):
        return {"step": step, "phase": phase, "code": code, "outcome": outcome, "reason": "", "figures": []}

    tables = module("report").tables
    one = [result("unpack", "pack 1", "probe"), result("copies", "v1 a"), result("steps", "v1 a")]
    assert tables(one).splitlines()[0] == "code: v1 a"
    mixed = [*one, result("kernels", "v2 b"), result("gemm", "v3 c", outcome="not run")]
    assert tables(mixed).splitlines()[:4] == [
        "MIXED: the steps ran different code. Call the phases again to have all of one.",
        "  v1 a: copies, steps",
        "  v2 b: kernels",
        "",
    ]


def test_a_failure_does_not_stop_the_others(machine):
    machine.add_empty_package()
    mended = machine.folder / "mended"
    broken = {"stager_test": "echo it broke; exit 7", "device_loader_test": 'echo "[  SKIPPED ] Everything"'}
    for name, script in broken.items():
        machine.write(
            machine.bin / name, f'[ "$1" = --help ] || [ -e {mended} ] || {{ {script}; exit; }}\n{PASSES}'
        )
    machine.pack()
    code, printed, lines = machine.measure("test")
    assert code == 1
    assert outcomes(lines) == {
        **dict.fromkeys(["unpack", "programs", "package", "photographs", "packed", "index"], "ok"),
        "gpu_device_test": "ok",
        **dict.fromkeys(["stager_test", "device_loader_test"], "failed"),
        **dict.fromkeys(["gpu_deferred_ops_test", "gpu_crops_test", "device_decode_test"], "ok"),
        **dict.fromkeys(ON_GPU, "not run"),
    }
    by_name = {line["step"]: line for line in lines}
    assert by_name["stager_test"]["reason"] == "exit code 7"
    assert by_name["stager_test"]["output"] == ["it broke"]
    assert "skipped" in by_name["device_loader_test"]["reason"]
    assert all(by_name[name]["reason"] == "needs a GPU" for name in ON_GPU)
    assert "it broke" in printed and f"2 failed, {len(ON_GPU)} not run" in printed

    mended.touch()
    code, printed, lines = machine.measure("test")
    assert code == 3, "none failed, and some were not run"
    assert outcomes(lines) == {
        **dict.fromkeys(["stager_test", "device_loader_test"], "ok"),
        **dict.fromkeys(ON_GPU, "not run"),
    }


def test_what_is_missing_costs_its_own_steps_only(machine):
    """Neither a packed command nor CMake."""
    (machine.bin / "stoker").unlink()
    machine.pack()
    tools = machine.folder / "tools"
    tools.mkdir()
    for name in ("env", "mkdir", "rm", "tar"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    code, printed, lines = machine.measure("all", env={"PATH": str(tools)})
    assert code == 1, printed
    found = outcomes(lines)
    assert {name for name, outcome in found.items() if outcome == "ok"} == {"unpack", "first-copy", "machine"}
    assert {name for name, outcome in found.items() if outcome == "failed"} == {"programs", "package"}
    assert any("bin/stoker is not there" in line for line in lines[3]["output"])
    reasons = {line["step"]: line["reason"] for line in lines if line["outcome"] == "not run"}
    assert reasons["photographs"].endswith("/work/bin/stoker")
    assert reasons["copies"].endswith("/work/bin/device_bench")
    assert reasons["epochs"] == "needs taskset"


def test_steps_without_time_are_left_for_the_next_call(machine):
    code, _, lines = machine.measure("probe", "--seconds", "25")
    assert code == 3
    assert outcomes(lines) == {"unpack": "not run", "first-copy": "not run", "machine": "not run"}
    assert lines[0]["reason"] == "no time left: it takes 30 s"
    assert outcomes(machine.measure("probe")[2]) == {"unpack": "ok", "first-copy": "ok", "machine": "ok"}


def test_a_command_that_hangs_is_ended_with_its_children(module, tmp_path):
    run_command = module("measure").run_command
    with (tmp_path / "output").open("w+") as output:
        assert run_command(["sh", "-c", "exit 3"], {}, output, 60) == 3
        script = "sleep 600 & echo $!; wait"
        assert run_command(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, output, 5) is None
        output.seek(0)
        child = int(output.read())
    assert is_gone(child)


def is_gone(pid):
    """Waits for a process that has been killed; nobody may wait for it but the system."""
    stat = pathlib.Path(f"/proc/{pid}/stat")
    for _ in range(6000):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_call_that_is_ended_ends_its_step(machine):
    """And the next call runs this step again."""
    pid = machine.folder / "pid"
    machine.write(machine.bin / "device_bench", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600")
    machine.pack()
    with subprocess.Popen(machine.call("probe"), stdout=subprocess.DEVNULL) as call:
        while not pid.exists():
            assert call.poll() is None
            time.sleep(0.01)
        step = pathlib.Path("/proc", pid.read_text().strip())
        assert step.exists()
        call.terminate()
        assert call.wait(60) == 143
    assert not step.exists()
    assert outcomes(machine.lines()) == {"unpack": "ok"}


def test_figures_are_the_values_that_are_kept(module):
    text = (
        'a table\n{"threads": 2, "device": {"rate": 3, "name": "host"}, "more": 1}\n{"device": null}\n{broken'
    )
    assert module("measure").figures(text, ("threads", "device.rate")) == [{"threads": 2, "rate": 3}, {}]
    assert module("measure").figures('{"a": 1}', ()) == [{"a": 1}]


def test_a_plot_shows_what_there_is(module, tmp_path):
    pytest.importorskip("matplotlib")
    plot = module("report").plot
    copies = [{"mib": 8, "pageable": 5.0}, {"mib": 16, "pageable": 6.0}]
    kernels = [{"dtype": "float32", "layout": "NCHW", "operations": "none", "of_copy": 0.9}]
    decoded = [{"images_per_second": 900.0}]
    by_step = {"copies": copies, "kernels": kernels, "decode_jpeg": decoded, "small-2-stoker": decoded}
    for count in range(len(by_step) + 1):
        results = {
            step: {"step": step, "phase": "bench", "device": "host", "outcome": "ok", "figures": rows}
            for step, rows in list(by_step.items())[:count]
        }
        plot(results, tmp_path / "report.png")
        assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_the_share_of_copies_under_kernels(module):
    copies_under_kernels = module("training").copies_under_kernels

    def event(kind, name, begin, duration):
        return {"ph": "X", "cat": kind, "name": name, "ts": begin, "dur": duration}

    copies = [
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 1000),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 5000, 1000),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 5000, 9000),
    ]
    kernels = [
        event("kernel", "sm90_xmma_gemm", 500, 300),
        event("kernel", "sm90_xmma_gemm", 600, 300),  # overlaps the first
        event("kernel", "void stoker::(anonymous namespace)::DeferredOpsKernel<…>", 0, 9000),
        event("kernel", "elementwise", 5900, 4000),
        {"ph": "M", "name": "process_name"},
    ]
    assert copies_under_kernels(copies + kernels) == {"copy_ms": 2.0, "copies_under_kernels": 0.25}
    assert copies_under_kernels(copies)["copies_under_kernels"] == 0
    with pytest.raises(SystemExit, match="no copy"):
        copies_under_kernels(kernels)


@pytest.mark.long
def test_the_built_programs_run_on_the_simulated_device(machine, build, module):
    """Without the package, which needs a build of its own; those of PyTorch need that."""
    built = {name: build / path for name, path in module("prepare").PROGRAMS.items()}
    lacking = [str(path) for path in built.values() if not path.is_file()]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} are not built")
    machine.add_empty_package()
    for name, path in built.items():
        (machine.bin / name).unlink()
        (machine.bin / name).symlink_to(path)
    machine.pack()
    code, printed, _ = machine.measure("test")
    assert code == 3 and f"{len(ON_GPU)} not run" in printed, printed
    machine.measure("bench")
    figures = {line["step"]: line["figures"] for line in machine.lines()}
    (copies,) = figures["copies"]
    assert set(copies) == {"mib", "pageable", "registered", "registered_huge", "host_alloc", "batches"}
    assert all(value > 0 for value in copies.values())
    without, whole, *in_pieces = figures["small"]
    assert without["large_mib"] == 0 and whole["piece_mib"] == whole["large_mib"] == 64
    assert [(row["piece_mib"], row["turns"]) for row in in_pieces] == [
        (mib, turns) for mib in (4, 8, 32) for turns in (False, True)
    ]
    for row in (whole, *in_pieces):
        assert min(row["large_gb_s"], row["to_device_us"], row["to_host_us"]) > 0
    (behind,) = figures["steps"]
    assert 0 <= behind["hidden_at_least"] <= 1
    assert {row["operations"] for row in figures["kernels"]} == {
        "none", "flip", "erase", "noise", "mixup", "cutmix"
    }  # fmt: skip
    assert len(figures["kernels"]) == 4 * 2 * 6 - 2
    assert len(figures["epochs"]) == 6 and figures["epochs"][1]["device"] == "host"
    assert figures["epochs-by-cores"][0]["threads"] == 1


def test_a_step_that_was_not_run_again_keeps_what_it_had(module, tmp_path):
    file = tmp_path / "results.jsonl"
    outcomes = ["failed", "ok", "not run"]
    lines = [json.dumps({"step": "copies", "outcome": outcome}) + "\n" for outcome in outcomes]
    file.write_text("".join(lines) + '{"step": "copies", "outc')  # the program was killed here
    assert module("report").last_results(file) == {"copies": {"step": "copies", "outcome": "ok"}}
    file.write_text(lines[2])
    assert module("report").last_results(file)["copies"]["outcome"] == "not run"
