"""bench/gpu/measure.py without a GPU: what a lease does when time, steps, disks or the report fail, and its
ten numbers from made-up figures. Programs in packs of these tests stand in for the real ones.
"""

import ast
import importlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time

import pytest

PASSES = 'echo "[  PASSED  ] 1 test."'
FIGURES = """
case $2 in
  copies) echo '{"mib": 8, "host_alloc": 50.0, "batches": 49.0, "memory_warning": null, "pinned_bytes": 7}' ;;
  record) echo '{"device_is": "busy", "record_us": 2.0, "record_all_us": 3.0}' ;;
  *) echo '{"of_copy": 0.9, "dtype": "uint8", "layout": "NCHW", "operations": "none"}' ;;
esac"""
STOKER = """
case $1 in
  synth) mkdir -p "$2" ;;
  pack) mkdir -p "$3"; touch "$3/index.stoker" ;;
  index) touch "$4" ;;
  bench) echo '{"digest": "d1", "images": 8, "images_per_second": 9.5, "decoded": {"on_device": 4}}' ;;
esac"""
TESTS = ("gpu_crops_test", "gpu_deferred_ops_test", "stager_test", "device_loader_test", "device_decode_test",
         "gpu_device_test")  # fmt: skip
PROGRAMS = {"stoker": STOKER, "device_bench": FIGURES, **dict.fromkeys(TESTS, PASSES)}
HANGS = "trap '' TERM HUP INT; sleep 600 & wait; sleep 600"


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


# --- a lease as a command ---------------------------------------------------------------------------


class Machine:
    """A folder to work in, and a pack of programs."""

    def __init__(self, root, folder):
        self.root, self.folder, self.results = root, folder, folder / "results"
        self.programs = dict(PROGRAMS)

    def pack(self):
        (self.folder / "lease").mkdir(exist_ok=True)
        with tarfile.open(self.folder / "lease" / "programs.tar.xz", "w:xz", preset=0) as archive:
            for name, script in self.programs.items():
                if isinstance(script, pathlib.Path):
                    archive.add(script.resolve(), name)
                    continue
                text = f"#!/bin/sh\n{script}\n".encode()
                member = tarfile.TarInfo(name if "/" in name else f"bin/{name}")
                member.size, member.mode = len(text), 0o755
                archive.addfile(member, io.BytesIO(text))
        told = {"commit": "v1-2-gabc", "sources": "0123", "built": "today"}
        (self.folder / "lease" / "pack.json").write_text(json.dumps(told))

    def call(self, *options, device="host"):
        self.pack()
        return [
            *(sys.executable, self.root / "bench" / "gpu" / "measure.py", "lease", "--device", device),
            *("--quick", "--pack", self.folder / "lease", "--work", self.folder / "work"),
            *("--results", self.results, *options),
        ]

    def measure(self, *options, device="host", **settings):
        """Returns the exit code, and what is printed."""
        done = subprocess.run(
            self.call(*options, device=device),
            capture_output=True, text=True, timeout=300, check=False, **settings,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout

    def of_kind(self, kind):
        lines = map(json.loads, (self.results / "results.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == kind]

    def outcomes(self):
        return {end["step"]: end["outcome"] for end in self.of_kind("step")}


@pytest.fixture
def machine(root, tmp_path):
    return Machine(root, tmp_path)


def numbers_in(printed):
    """Returns the lines of each of the ten numbers that were printed."""
    found, at = {}, 0
    for line in printed.partition("The ten numbers\n")[2].splitlines():
        if begin := re.match(r" ?(\d+)\. ", line):
            at = int(begin[1])
            found[at] = []
        elif at and line.startswith("      "):
            found[at].append(line.strip())
    return found


def assert_each_has_a_value_or_a_reason(printed):
    numbers = numbers_in(printed)
    assert list(numbers) == list(range(1, 11)), printed
    for parts in numbers.values():
        assert parts
        for part in parts:
            assert not part.endswith("none:"), part
    return numbers


def test_a_lease_on_the_simulated_device(machine):
    names = ("copies", "kernels", "record", "digest-workers", "gpu_crops_test")
    code, printed = machine.measure("--only", *names)
    assert code == 0, printed
    assert {"unpack", "photographs", "packed", "index", *names} <= set(machine.outcomes())
    numbers = assert_each_has_a_value_or_a_reason(printed)
    assert numbers[1][0].split()[:3] == ["8", "MiB", "0.98"]
    assert numbers[1][0].endswith("promised ≥ 0.95"), "which no simulated device keeps or breaks"
    assert "none: no batches of mib 64" in numbers[1][1]
    assert numbers[6][0].split()[:3] == ["worst", "variant", "0.9"]
    assert any(line.startswith("record on the context, busy") and "3 µs" in line for line in numbers[10])
    assert "not run" in numbers[8][0]
    assert {"lease", "figure", "step", "number"} == {
        json.loads(line)["kind"] for line in (machine.results / "results.jsonl").read_text().splitlines()
    }
    assert len(machine.of_kind("number")) == 10
    report = (machine.results / "report.txt").read_text()
    assert report.splitlines()[1] == "code:    v1-2-gabc 0123"
    assert report.index("The ten numbers") < report.index("Steps: ")
    assert "copies: {" in (machine.results / "outputs.txt").read_text()


def test_faults_cost_their_own_figures_only(machine):
    """A hang that ignores signals, a crash, and a failed test, whose kernels' figures mean nothing."""
    machine.programs["stager_test"] = HANGS
    machine.programs["device_loader_test"] = "kill -SEGV $$"
    machine.programs["gpu_deferred_ops_test"] = 'echo "[  FAILED  ] 1 test."; exit 1'
    names = ("device_loader_test", "gpu_deferred_ops_test", "kernels", "record", "stager_test", "copies")
    code, printed = machine.measure("--seconds", "16", "--only", *names)
    assert code == 1
    outcomes = machine.outcomes()
    assert [outcomes[name] for name in names] == ["failed", "failed", "not run", "ok", "killed", "not run"]
    numbers = assert_each_has_a_value_or_a_reason(printed)
    assert any("3 µs" in part for part in numbers[10])
    assert "none: copies: not run: no time: " in numbers[1][0]
    assert (
        "none: kernels: not run: its figures would mean nothing: gpu_deferred_ops_test: failed"
        in numbers[6][0]
    )
    assert any("stager_test: killed: ended after" in part for part in numbers[7])


def test_a_full_disk_costs_the_files_only(machine):
    machine.results.mkdir()
    for name in ("results.jsonl", "outputs.txt", "report.txt"):
        (machine.results / name).symlink_to("/dev/full")
    code, printed = machine.measure("--only", "copies")
    assert code == 0, printed
    numbers = assert_each_has_a_value_or_a_reason(printed)
    assert "0.98" in numbers[1][0], "what could not be written is in memory"
    assert "results.jsonl is not whole: No space left on device" in printed
    assert "report.txt: " in printed


def test_a_disk_without_room_for_the_pack(machine):
    """Nothing can be unpacked: all numbers have reasons, and no time is lost."""
    (machine.folder / "work").mkdir()
    (machine.folder / "work" / "pack").symlink_to("/dev/full")
    code, printed = machine.measure()
    assert code == 1
    assert_each_has_a_value_or_a_reason(printed)
    assert machine.outcomes()["unpack"] == "failed"


def test_a_crash_of_the_report_costs_the_report_only(machine):
    (machine.results / "report.txt").mkdir(parents=True)
    code, printed = machine.measure("--only", "copies")
    assert code == 0, printed
    assert "report.txt: exit code 1" in printed
    assert "0.98" in assert_each_has_a_value_or_a_reason(printed)[1][0]


def test_without_a_gpu_a_lease_ends_at_once(machine):
    if pathlib.Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    code, printed = machine.measure(device="cuda:0")
    assert code == 3
    numbers = assert_each_has_a_value_or_a_reason(printed)
    assert "there is no libcuda.so.1" in numbers[1][0] or "the driver finds 0 GPUs" in numbers[1][0]
    assert "copies" not in {figure["step"] for figure in machine.of_kind("figure")}


DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int room, int device) { strcpy(name, "A card"); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 0; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = context; return 0; }
"""
TOOLS = {
    "compute-sanitizer": "shift 6; \"$@\"; echo '========= ERROR SUMMARY: 0 errors'",
    "ncu": """echo '"0","1","p","h","K","1","7","(1)","(1)","0","9.0","s","m","inst","12"'""",
    "nvidia-smi": "echo 'A card, 580.1'",
}


def test_a_lease_with_a_driver(machine):
    """A stand-in for the driver, which the process that holds a context takes for one."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (machine.folder / "driver.c").write_text(DRIVER)
    compiled = ["cc", "-shared", "-fPIC", "-o", machine.folder / "libcuda.so.1", machine.folder / "driver.c"]
    subprocess.run(compiled, check=True, timeout=60)
    tools = machine.folder / "tools"
    tools.mkdir()
    for name, script in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LD_LIBRARY_PATH": str(machine.folder)}
    names = ("copies", "ncu-packed", "memcheck gpu_crops_test", "memcheck gpu_deferred_ops_test")
    code, printed = machine.measure("--only", *names, device="cuda:0", env=environment)
    assert code == 0, printed
    numbers = assert_each_has_a_value_or_a_reason(printed)
    assert numbers[1][0].endswith("promised ≥ 0.95: kept")
    assert numbers[8][0].split()[:6] == ["memcheck", "0", "findings", "in", "2", "tests"]
    figures = {figure["step"]: figure["figures"] for figure in machine.of_kind("figure")}
    assert figures["ncu-packed"] == {"kernel": "K", "metric": "m", "unit": "inst", "value": 12.0}
    (context,) = (end for end in machine.of_kind("step") if end["step"] == "context")
    assert (context["outcome"], context["reason"]) == ("ok", "held to the end")


def test_a_lease_that_is_ended_reports_what_it_has(machine):
    pid = machine.folder / "pid"
    machine.programs["stager_test"] = f"echo $$ > {pid}.new; mv {pid}.new {pid}; {HANGS}"
    call = machine.call("--only", "copies", "stager_test", "kernels")
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as called:
        while not pid.exists():
            assert called.poll() is None
            time.sleep(0.01)
        step = pathlib.Path("/proc", pid.read_text().strip())
        assert step.exists()
        called.terminate()
        printed = called.stdout.read()
        assert called.wait(60) == 1
    assert not step.exists()
    assert "0.98" in assert_each_has_a_value_or_a_reason(printed)[1][0]
    outcomes = machine.outcomes()
    assert (outcomes["stager_test"], outcomes["kernels"]) == ("killed", "not run")
    (kernels,) = (end for end in machine.of_kind("step") if end["step"] == "kernels")
    assert kernels["reason"] == "the lease was ended by signal 15"


def test_a_lease_that_hangs_itself_ends_in_time(machine):
    machine.pack()
    script = """
        import sys, time
        sys.path.insert(0, sys.argv[1])
        import lease, measure
        lease.Lease.take_schedule = lambda self, slots: time.sleep(600)
        sys.argv[1:] = sys.argv[2:]
        measure.main()
    """
    _, _, *options = machine.call("--seconds", "6")
    command = [sys.executable, "-c", "\n".join(map(str.strip, script.splitlines()))]
    command += [machine.root / "bench" / "gpu", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "ended by the clock" in done.stdout
    assert_each_has_a_value_or_a_reason(done.stdout)


def test_a_variant_is_checked_before_it_is_timed(machine):
    log = machine.folder / "log"
    machine.programs["gpu_crops_test"] = (
        f'echo "check $LD_PRELOAD" >> {log}; case $LD_PRELOAD in *bad*) exit 1;; esac'
    )
    machine.programs["device_bench"] = f'echo "time $LD_PRELOAD $2 ${{3%%/*}}" >> {log}'
    library = pathlib.Path("/lib/x86_64-linux-gnu/libm.so.6")
    machine.programs.update({"variants/bad.so": library, "variants/good.so": library})
    machine.programs["variants/none.so"] = "no library"
    machine.measure("--only", "variants")
    variants = machine.folder / "work" / "pack" / "variants"
    assert log.read_text().splitlines() == [
        "time  crops ",
        "time  crops --photos",
        f"check {variants}/bad.so",
        f"check {variants}/good.so",
        f"time {variants}/good.so crops ",
        f"time {variants}/good.so crops --photos",
        f"check {variants}/none.so",
    ]
    outcomes = machine.outcomes()
    assert (outcomes["crops-packed"], outcomes["crops-indexed"]) == ("ok", "ok"), "to compare with"
    assert [outcomes[f"variant-{name}"] for name in ("bad", "good", "none")] == ["failed", "ok", "failed"]
    (none,) = (end for end in machine.of_kind("step") if end["step"] == "variant-none")
    assert "cannot be preloaded" in none["reason"], "the library's own kernels would be timed"


def test_a_step_that_does_not_exist_is_named(machine):
    _, printed = machine.measure("--only", "copys")
    assert "there is no step copys; there are unpack, " in printed and ", epochs-by-cores" in printed


# --- time -------------------------------------------------------------------------------------------


class Time:
    """A clock that a test sets."""

    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at


@pytest.fixture
def at():
    return Time()


@pytest.fixture
def leased(module, tmp_path):
    """Returns a function that makes a Lease on the simulated device, with that clock."""

    def make(clock):
        results, steps = module("results"), module("steps")
        settings = steps.Settings(
            "host", tmp_path / "no-pack", tmp_path, tmp_path, clock.seconds, 1, True, (0, 1, 2, 3)
        )
        (tmp_path / "pack" / "site").mkdir(parents=True, exist_ok=True)
        found = results.Results(results.File(tmp_path / "results.jsonl"))
        return module("lease").Lease(
            settings, clock, found, results.File(tmp_path / "outputs.txt", sync=False)
        )

    return make


def ended(module, lease, name, outcome, reason):
    """Adds the end of a step to a lease's results."""
    attempt = module("lease").Attempt(module("steps").Step(name, 0, 1, []), "", 0)
    attempt.outcome, attempt.reason = outcome, reason
    lease.end(attempt)


def test_the_clock(module, at):
    steps = module("steps")
    clock = module("lease").Clock(505, at, passed=2)
    assert (clock.now(), clock.left(12), clock.end_of_steps) == (2, 10, 490)
    at.at += 100
    assert (clock.now(), clock.left(95), clock.left(140)) == (102, -7, 38)
    short = module("lease").Clock(101, at, passed=0)
    assert short.until(steps.Slot(95, "a fifth of it", [])) == pytest.approx(19)
    assert short.until(steps.Slot(490, "the last one", [])) == 86
    clock.cut("asked to end")
    at.at += 1
    assert clock.left(400) == -1, "all time is gone since then"


def test_the_age_of_this_process(module):
    assert 0 < module("lease").age() < 24 * 3600


def test_a_step_gets_what_is_left(module, at, leased):
    clock = module("lease").Clock(505, at, passed=0)
    lease = leased(clock)
    step = module("steps").Step("a", 8, 35, [])
    assert lease.seconds_for(step, 140) == 35, "its stop-loss"
    at.at += 130
    assert lease.seconds_for(step, 140) == 10, "its slot's end"
    assert lease.why_not(step, 140) == "", "less than its stop-loss is enough"
    at.at += 3
    assert lease.why_not(step, 140) == "no time: 7 s are left, and it needs 8"
    clock.cut("asked to end")
    assert lease.why_not(step, 500) == "asked to end"


def test_what_is_left_over_goes_to_steps_that_had_too_little(module, at, leased):
    steps = module("steps")
    lease = leased(module("lease").Clock(505, at, passed=0))
    slots = [
        steps.Slot(95, "a", [steps.Step(name, 8, 35, []) for name in ("fine", "hung", "late", "broken")])
    ]
    for name, outcome, reason in [
        ("fine", "ok", ""),
        ("hung", "killed", "ended after 35 s"),
        ("late", "not run", "no time: 7 s are left, and it needs 8"),
        ("broken", "failed", "exit code 1"),
    ]:
        ended(module, lease, name, outcome, reason)
    assert [step.name for step in lease.unfinished(slots)] == ["late", "hung"]


def test_steps_are_run_again_in_the_order_of_their_worth(module, at, leased):
    """What makes files comes first, then what lacked one, and sanitizers last."""
    steps = module("steps")
    lease = leased(module("lease").Clock(505, at, passed=0))
    made = steps.Step("makes", 1, 9, [])
    checks = steps.Step("checks", 1, 9, [], prints="sanitizer")
    reads = steps.Step("reads", 1, 9, [], needs=("gpu", "file:/made"))
    others = [steps.Step(name, 1, 9, [], needs=("gpu", "program:ncu")) for name in ("no-gpu", "no-program")]
    slots = [steps.Slot(9, "preparing", [made]), steps.Slot(9, "", []), steps.Slot(9, "", []),
             steps.Slot(95, "all", [checks, reads, *others])]  # fmt: skip
    for name, outcome, reason in [
        ("makes", "killed", "ended after 9 s"),
        ("checks", "not run", "no time: 0 s are left, and it needs 1"),
        ("reads", "not run", "needs /made"),
        ("no-gpu", "not run", "needs a GPU"),
        ("no-program", "not run", "needs ncu"),
    ]:
        ended(module, lease, name, outcome, reason)
    assert [step.name for step in lease.unfinished(slots)] == ["makes", "reads", "checks"]


def test_a_set_that_is_half_made_is_made_again(module, machine):
    """The first attempt hangs; what reads the set has its figures after the second one."""
    again = machine.folder / "again"
    machine.programs["stoker"] = STOKER.replace(
        'pack) mkdir -p "$3";', f'pack) mkdir -p "$3"; [ -e {again} ] || {{ touch {again}; sleep 600; }};'
    )
    script = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import lease, measure, steps
        schedule = steps.schedule
        def short(settings):
            slots = schedule(settings)[: steps.PREPARING]
            return [*slots, steps.Slot(140, "kernels", steps.all_crops(settings))]
        steps.schedule = short
        packing = steps.packing
        steps.packing = lambda settings: packing(settings)._replace(stop=2)
        sys.argv[1:] = sys.argv[2:]
        measure.main()
    """
    _, _, *options = machine.call("--seconds", "200")
    machine.pack()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), machine.root / "bench" / "gpu", *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    ends = [(end["step"], end["outcome"]) for end in machine.of_kind("step")]
    read = [end for end in ends if end[0] in ("packed", "crops-packed", "crops-indexed")]
    assert read == [("packed", "killed"), ("crops-packed", "not run"), ("crops-indexed", "ok"),
                    ("packed", "ok"), ("crops-packed", "ok")], done.stderr  # fmt: skip


# --- steps ------------------------------------------------------------------------------------------


def shell(script):
    return [["/bin/sh", "-c", script]]


def clock_of(module, seconds=600):
    return module("lease").Clock(seconds, passed=0)


def test_what_a_killed_step_has_printed_is_kept(module, leased):
    lease = leased(clock_of(module))
    hangs = shell(f"echo '{{\"rate\": 3}}'; echo '{{\"rate\": 4}}'; {HANGS}")
    step = module("steps").Step("hangs", 0, 1, hangs)
    assert lease.take(step, 500) == "killed"
    assert lease.results.file.finish(60) == ""
    read = module("results").read(lease.results.file.path)
    assert read.of("hangs").rows == [{"rate": 3}, {"rate": 4}]
    assert read.of("hangs").outcome == "killed" and read.of("hangs").reason == "ended after 1 s"


def test_steps_run_at_the_same_time(module, leased, tmp_path):
    """Each waits for the other; and one that crashes and one that hangs hold up neither."""
    steps = module("steps")

    def meets(mine, other):
        return shell(f"touch {tmp_path}/{mine}; until [ -e {tmp_path}/{other} ]; do sleep 0.01; done")

    some = [
        steps.Step("hangs", 0, 1, shell(HANGS)),
        steps.Step("one", 0, 60, meets("one", "other")),
        steps.Step("crashes", 0, 60, shell("kill -SEGV $$")),
        steps.Step("other", 0, 60, meets("other", "one")),
    ]
    lease = leased(clock_of(module))
    lease.take_slot(steps.Slot(500, "at once", some, together=True))
    outcomes = {step.name: lease.results.of(step.name).outcome for step in some}
    assert outcomes == {"hangs": "killed", "one": "ok", "crashes": "failed", "other": "ok"}
    assert lease.results.of("crashes").reason == f"exit code {-signal.SIGSEGV}"


def test_a_step_whose_thread_hangs_is_left_behind(module, leased, monkeypatch):
    """As one whose program is on a disk that hangs. The next one does not wait for its slot's end."""
    steps = module("steps")
    monkeypatch.setattr(module("processes"), "PATIENCE", 0.1)
    lease, released, taken = leased(clock_of(module)), threading.Event(), []

    def take(step, until):
        taken.append(step.name)
        if step.name == "hangs":
            released.wait(600)

    monkeypatch.setattr(lease, "take", take)
    some = [steps.Step("hangs", 0, 0.2, []), steps.Step("next", 0, 60, [])]
    lease.take_slot(steps.Slot(500, "one after another", some))
    assert taken == ["hangs", "next"]
    released.set()


@pytest.mark.parametrize("red", ["failed", "killed", "not run", "ok"])
def test_only_a_failed_test_makes_figures_worthless(module, leased, red):
    """A test that had no time says nothing about the kernels."""
    steps = module("steps")
    lease = leased(clock_of(module))
    ended(module, lease, "gpu_crops_test", red, "why")
    step = steps.Step("crops", 0, 9, shell("true"), proven_by=("gpu_crops_test",))
    assert lease.take(step, 500) == ("not run" if red == "failed" else "ok")
    assert lease.results.of("crops").reason == {
        "failed": "its figures would mean nothing: gpu_crops_test: failed",
        "ok": "",
    }.get(red, f"not proven: gpu_crops_test: {red}")


@pytest.mark.parametrize("red", ["failed", "killed", "not run", "ok"])
def test_a_test_of_other_things_makes_figures_doubtful(module, leased, red):
    steps = module("steps")
    lease = leased(clock_of(module))
    ended(module, lease, "device_decode_test", red, "why")
    step = steps.Step("loader", 0, 9, shell("true"), doubted_by=("device_decode_test",))
    assert lease.take(step, 500) == "ok"
    assert lease.results.of("loader").reason == (
        "" if red == "ok" else f"not proven: device_decode_test: {red}"
    )


def test_a_test_that_is_skipped_is_red(module, leased):
    steps = module("steps")
    lease = leased(clock_of(module))
    for script, reason in [
        (PASSES, ""),
        ('echo "[  PASSED  ] 3 tests."; echo "[  SKIPPED ] 2 tests, listed below:"', "2 tests were skipped"),
        ('echo "[  PASSED  ] 0 tests."', "no test ran"),
        ("true", "no test ran"),
    ]:
        step = steps.Step(f"test {script}", 0, 60, shell(script), prints="gtest")
        assert lease.take(step, 500) == ("failed" if reason else "ok")
        assert lease.results.of(step.name).reason == reason


def test_children_find_what_is_packed_and_nothing_else(module, leased, tmp_path, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    lease = leased(clock_of(module))
    made = lease.environment(module("steps").Step("a", 0, 1, [], env=(("LD_PRELOAD", "v.so"),)))
    assert made["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path / "pack" / "site")
    assert made["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false" and made["LD_PRELOAD"] == "v.so"
    assert "LD_LIBRARY_PATH" not in made
    lease.library_path = "/links"
    assert lease.environment(module("steps").Step("a", 0, 1, []))["LD_LIBRARY_PATH"] == "/links"
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    assert lease.environment(module("steps").Step("a", 0, 1, []))["LD_LIBRARY_PATH"] == "/links:/theirs"


def test_a_profile_without_a_kernel_is_none(module, leased):
    lease = leased(clock_of(module))
    row = '"0","1","p","h","K","1","7","(1)","(1)","0","9.0","s","m","inst","12"'
    for name, script, reason in [
        ("fine", f"echo '{row}'", ""),
        ("none", "echo '==WARNING== No kernels were profiled.'", "no kernel was profiled"),
        ("refused", "echo '==ERROR== first'; echo '==ERROR== no right'", "==ERROR== no right"),
        ("code", "echo '==ERROR== no driver'; exit 9", "exit code 9; ==ERROR== no driver"),
    ]:  # fmt: skip
        step = module("steps").Step(name, 0, 60, shell(script), prints="ncu")
        assert lease.take(step, 500) == ("failed" if reason else "ok")
        assert lease.results.of(name).reason == reason


def test_a_row_that_cannot_be_read_is_told(module, leased):
    lease = leased(clock_of(module))
    script = """echo '{"rate": nan, "mib": 8}'; echo '{"rate": 3'"""
    assert lease.take(module("steps").Step("a", 0, 60, shell(script)), 500) == "ok"
    of = lease.results.of("a")
    assert (of.rows, of.reason) == ([{"rate": None, "mib": 8}], 'not read: {"rate": 3')


# --- processes --------------------------------------------------------------------------------------


def run_command(module, script, seconds, lines):
    end = time.monotonic() + seconds
    return module("processes").run(
        *shell(script), lambda: end - time.monotonic(), lines.append, dict(os.environ)
    )


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


def test_a_command_that_ignores_signals_is_ended_with_its_children(module):
    lines = []
    ended = run_command(module, f"sleep 600 & echo $!; {HANGS}", 1, lines)
    assert (ended.code, ended.reason) == (None, "ended after 1 s")
    assert is_gone(int(lines[0]))


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(module):
    lines = []
    ended = run_command(module, "sleep 600 & echo $!; exit 3", 300, lines)
    assert ended.code == 3
    assert is_gone(int(lines[0]))


def test_a_command_that_cannot_be_killed_is_left_behind(module, monkeypatch):
    """As one in the kernel's uninterruptible sleep; here nobody kills it."""
    processes = module("processes")
    kill, pids = os.killpg, []
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    monkeypatch.setattr(processes.os, "killpg", lambda pid, number: pids.append(pid))
    ended = run_command(module, HANGS, 0.2, [])
    assert ended.code is None and ended.reason.endswith(f"process {pids[0]} cannot be killed")
    kill(pids[0], signal.SIGKILL)


def test_lines_are_whole(module):
    lines = []
    run_command(module, "printf 'a\\nb'; sleep 0.1; printf 'c\\n\\nd\\377'", 60, lines)
    assert lines == ["a", "bc", "", "d\ufffd"]
    ended = module("processes").run(["/no/such/program"], lambda: 1, lines.append, {})
    assert ended.code is None and "No such file" in ended.reason


def test_cpu_seconds_are_those_of_the_command(module):
    ended = run_command(module, "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done", 60, [])
    assert ended.code == 0 and 0 < ended.cpu_seconds <= ended.seconds + 1


# --- results ----------------------------------------------------------------------------------------


def test_lines_are_appended_after_a_broken_one(module, tmp_path):
    """A program that was killed, or a disk that was full, has left half a line."""
    path = tmp_path / "results.jsonl"
    path.write_text(
        '{"kind": "step", "step": "a", "outcome": "ok", "reason": "", "attempt": "1"}\n{"kind": "st'
    )
    results = module("results")
    found = results.Results(results.File(path))
    found.add("figure", step="a", attempt="1", figures={"x": 1})
    assert found.file.finish(60) == ""
    assert results.read(path).of("a") == results.Of("ok", "", [{"x": 1}])


def test_a_file_has_a_limit(module, tmp_path):
    file = module("results").File(tmp_path / "outputs.txt", sync=False, most_bytes=10)
    for line in ("1234", "5678", "9"):
        file.add(line)
    file.finish(60)
    assert (tmp_path / "outputs.txt").read_text() == "1234\n5678\n"


def test_the_best_attempt_counts(module):
    results = module("results").Results()

    def attempt(name, outcome, *values):
        for value in values:
            results.add("figure", step="a", attempt=name, figures={"x": value})
        results.add(
            "step", step="a", attempt=name if outcome != "not run" else "", outcome=outcome, reason=name
        )

    assert results.of("a") == module("results").Of("not run", "", [])
    attempt("1", "not run")
    assert results.of("a").reason == "1"
    attempt("2", "killed", 1, 2)
    attempt("3", "killed", 3)
    assert [row["x"] for row in results.of("a").rows] == [1, 2]
    attempt("4", "ok", 4)
    attempt("5", "killed", 5, 6, 7)
    assert results.of("a").outcome == "ok" and [row["x"] for row in results.of("a").rows] == [4]
    attempt("6", "ok", 8)
    assert [row["x"] for row in results.of("a").rows] == [8], "a later one, of equal ones"


# --- reading ----------------------------------------------------------------------------------------


def test_what_steps_print(module):
    reading = module("reading")
    line = '{"threads": 2, "device": {"rate": 3, "name": "host"}, "more": 1}'
    assert reading.figures(line, "json", ("threads", "device.rate", "no.such")) == {"threads": 2, "rate": 3}
    assert reading.figures('{"a": 1}', "json", ()) == {"a": 1}
    for none in ("nan", "-nan", "inf", "-inf", "NaN", "-Infinity"):
        read = reading.of_json(f'{{"a": {none}, "b": [1, {none}], "nan, inf": "of: nan"}}')
        assert read["a"] is None and read["b"] == [1, None] and read["nan, inf"] == "of: nan"
    assert reading.figures("{broken", "json", ()) is None and reading.figures("text", "json", ()) is None
    assert reading.of_gtest("[  PASSED  ] 12 tests.") == {"passed": 12}
    assert reading.of_gtest("[  FAILED  ] 1 test, listed below:") == {"failed": 1}
    assert reading.of_gtest("[  FAILED  ] Some.Test") is None
    assert reading.of_pytest("1 failed, 2 passed, 3 skipped in 4.56s") == {
        "failed": 1,
        "passed": 2,
        "skipped": 3,
    }
    assert reading.of_pytest("no tests ran in 0.01s") == {"passed": 0}
    assert reading.of_pytest("tests/python/device/test_gpu.py ..") is None
    assert reading.of_sanitizer("========= ERROR SUMMARY: 3 errors") == {"findings": 3}
    assert reading.of_sanitizer(
        "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
    ) == {"findings": 0}
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    head += '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
    assert reading.of_ncu(head) is None
    row = '"0","1","p","h","stoker::UnpackKernel(int, float)","1","7","(256, 1, 1)","(10, 1, 1)","0","9.0",'
    row += '"Command line profiler metrics","smsp__inst_executed.sum","inst","1,234"'
    assert reading.of_ncu(row) == {
        "kernel": "stoker::UnpackKernel", "metric": "smsp__inst_executed.sum", "unit": "inst", "value": 1234.0
    }  # fmt: skip


# --- the ten numbers --------------------------------------------------------------------------------


def made_up(module, **rows):
    """Returns results with these figures, of steps that ended well."""
    results = module("results").Results()
    for step, figures in rows.items():
        name = step.replace("_AND_", " ").replace("__", "-")
        for figure in figures:
            results.add("figure", step=name, attempt="1", figures=figure)
        results.add("step", step=name, attempt="1", outcome="ok", reason="")
    return results


def parts_of(module, number, results):
    return {part.name: part for part in module("ten_numbers").all_told(results)[number - 1][1]}


def values_of(module, number, **rows):
    parts = parts_of(module, number, made_up(module, **rows))
    return {name: part.value for name, part in parts.items() if part.value is not None}


def test_numbers_from_made_up_figures(module):
    copies = [
        {"mib": mib, "host_alloc": 50.0, "batches": 48.0, "batches_whole": 50.0} for mib in (8, 64, 256)
    ]
    found = values_of(module, 1, copies=copies)
    assert found == {"8 MiB": 0.96, "64 MiB": 0.96, "256 MiB": 0.96, "bare copy of 256 MiB": 50.0,
                     "cost of pieces of 8 MiB": pytest.approx(0.04)}  # fmt: skip

    pairs = [{"with_copies_slower": value} for value in (0.002, 0.02, -0.001)]
    hidden = [{"mib": mib, "hidden_at_least": share} for mib, share in ((8, 0.97), (128, 0.995), (32, 0.98))]
    rows = {"overlap": [{"copies_under_kernels": 0.995}], "gemm": pairs, "steps": hidden}
    found = values_of(module, 2, **rows)
    assert found["share of copies under kernels"] == 0.995
    assert found["a matrix product with copies of bytes, slower by"] == 0.002
    of_steps = parts_of(module, 2, made_up(module, **rows))["share of copies hidden by steps of the device"]
    assert (of_steps.value, of_steps.unit) == (0.995, "of 128 MiB, 0.98 of 32, 0.97 of 8")
    assert of_steps.promise == "promised ≥ 0.99: kept", "the largest batch is judged"
    assert found["spread of that"] == "0.0020, of 3 pairs from -0.0010 to 0.0200"

    crops = [{"batch": batch, "crops_per_second": 3e5} for batch in (256, 1024)]
    assert values_of(module, 3, crops__packed=crops) == {
        "packed": "300,000 (batch 256), 300,000 (batch 1,024)"
    }

    loader = [{"images_per_second": rate, "cpu_us": 16.0} for rate in (1, 3, 2)]
    assert values_of(module, 4, loader__packed__device=loader) == {
        "packed, decoded by device": 2, "packed, decoded by device: CPU": 16.0
    }  # fmt: skip

    decoded = [{"work": "decode_jpeg", "images_per_second": 7800.0}]
    assert values_of(module, 5, decode_jpeg=decoded) == {"alone": 7800.0}
    found = values_of(module, 6, kernels=[{"of_copy": value} for value in (0.7, 0.9, 0.95)])
    assert found == {"worst variant": 0.7, "median of the variants": 0.9}

    row = {"digest": "d", "images": 8, "on_device": 6}
    digests = {name.replace("-", "__"): [row] for name in module("steps").DIGESTS}
    found = values_of(module, 7, **digests, stager_test=[{"passed": 12}])
    assert found == {"batches are equal": "d", "decoded on the device": 0.75, "stager_test": 12}

    both = {f"memcheck_AND_{name}": [{"passed": 4}, {"findings": count}]
            for name, count in (("gpu_crops_test", 0), ("gpu_deferred_ops_test", 2))}  # fmt: skip
    assert values_of(module, 8, **both) == {"memcheck": 2}
    assert parts_of(module, 8, made_up(module, **both))["memcheck"].unit == "findings in 8 tests"

    trained = [{"step_ms": 3.0}, {"images_per_second": 5000.0, "waited_share": 0.01, "cpu_us": 300.0}]
    found = values_of(module, 9, resnet18__usual=trained)
    assert found == {"torch's DataLoader": 5000.0, "torch's DataLoader: share of waiting": 0.01,
                     "torch's DataLoader: CPU": 300.0}  # fmt: skip

    record = [{"device_is": "busy", "record_us": 2.0, "record_all_us": 3.0}]
    pinned = [
        {"pinned_bytes": size, "pinning_s": seconds} for size, seconds in ((5, 0.9), (9, 0.25), (7, 0.5))
    ]
    found = values_of(
        module, 10, record=record, epochs=[{"images": 8}, *pinned],
        copies=[{"pinned_bytes": 50, "pinning_s": 5.0, "memory_warning": None}],
        digest__device=[{"pinned_bytes": 70, "pinning_s": 7.0}],
    )  # fmt: skip
    assert found == {
        "pinned at the peak": 9, "pinning it": 0.25, "warnings of pageable memory": "none",
        "record on a stream, busy": 2.0, "record on the context, busy": 3.0,
    }  # fmt: skip


def test_a_number_without_a_value_has_a_reason(module):
    results = made_up(module, copies=[{"mib": 8, "host_alloc": 0, "batches": 1.0}], kernels=[])
    results.add("step", step="crops-packed", attempt="", outcome="not run", reason="needs a GPU")
    results.add("figure", step="gemm", attempt="1", figures={"with_copies_slower": 0.5})
    results.add("step", step="gemm", attempt="1", outcome="killed", reason="ended after 25 s")
    copies = parts_of(module, 1, results)
    assert copies["8 MiB"].reason.startswith("cannot be computed: ZeroDivisionError")
    assert copies["64 MiB"].reason == "no batches of mib 64"
    assert parts_of(module, 6, results)["worst variant"].reason == "no of_copy"
    assert parts_of(module, 3, results)["packed"].reason == "crops-packed: not run: needs a GPU"
    slower = parts_of(module, 2, results)["a matrix product with copies of bytes, slower by"]
    assert (slower.value, slower.reason) == (0.5, "gemm: killed: ended after 25 s"), (
        "a value, and what to think of it"
    )
    assert slower.promise == "promised ≤ 0.01: NOT KEPT"
    results.add("lease", device="host")
    slower = parts_of(module, 2, results)["a matrix product with copies of bytes, slower by"]
    assert slower.promise == "promised ≤ 0.01"
    everything = module("ten_numbers").all_told(module("results").Results())
    assert len(everything) == 10
    for _, parts in everything:
        assert parts and all(part.value is None and part.reason for part in parts)


def test_pageable_memory_is_no_measurement_of_copies(module):
    row = {"mib": 8, "host_alloc": 50.0, "batches": 12.0, "memory_warning": "could not be pinned"}
    results = made_up(module, copies=[row])
    assert parts_of(module, 1, results)["8 MiB"].value is None
    assert "could not be pinned" in parts_of(module, 1, results)["8 MiB"].reason
    assert (
        parts_of(module, 10, results)["warnings of pageable memory"].value
        == "1 WARNINGS: could not be pinned"
    )


def test_digests_that_differ_are_no_value(module):
    digests = {name.replace("-", "__"): [{"digest": name}] for name in module("steps").DIGESTS}
    equal = parts_of(module, 7, made_up(module, **digests))["batches are equal"]
    assert equal.value is None and equal.reason.startswith("they differ: digest-workers digest-workers, ")


def test_digests_are_compared_as_far_as_they_are_there(module):
    names = [name.replace("-", "__") for name in module("steps").DIGESTS]
    results = made_up(module, **{name: [{"digest": "d"}] for name in names[:3]})
    results.add("step", step="digest-decode-packed", attempt="", outcome="not run", reason="needs /packed")
    equal = parts_of(module, 7, results)["batches are equal"]
    assert (equal.value, equal.unit) == ("d", "3 of 4")
    one = parts_of(module, 7, made_up(module, **{names[0]: [{"digest": "d"}]}))["batches are equal"]
    assert one.value is None
    two = {names[1]: [{"digest": "d"}], names[3]: [{"digest": "e"}]}
    differ = parts_of(module, 7, made_up(module, **two))["batches are equal"]
    assert differ.value is None and "digest-device d, digest-decode-packed e" in differ.reason


# --- the schedule -----------------------------------------------------------------------------------


def settings_of(module, folder, device="cuda:0", cores=16):
    return module("steps").Settings(device, folder, folder, folder, 505, 1, False, tuple(range(cores)))


def test_the_schedule_is_sound(module, tmp_path):
    steps = module("steps")
    settings = settings_of(module, tmp_path)
    slots = steps.schedule(settings)
    ends = [slot.until for slot in slots]
    assert ends == sorted(ends) and ends[-1] == steps.SECONDS - steps.REPORT_SECONDS
    some = [step for slot in slots for step in slot.steps]
    names = [step.name for step in [*some, *steps.background(settings)]]
    assert len(names) == len(set(names))
    for begin, slot in zip([0, *ends], slots):
        for step in slot.steps:
            assert 0 < step.least <= step.stop and step.commands
            assert step.least <= slot.until - begin, f"{step.name} would never start after a full slot"
        if not slot.together:
            assert sum(step.least for step in slot.steps) <= slot.until - begin
    assert {test for step in some for test in (*step.proven_by, *step.doubted_by)} <= set(names)


def test_each_number_is_of_steps_that_there_are(module, tmp_path):
    steps = module("steps")
    names = {step.name for slot in steps.schedule(settings_of(module, tmp_path)) for step in slot.steps}
    numbers = module("ten_numbers").NUMBERS
    assert len(numbers) == 10
    for number in numbers:
        for part in number.parts:
            assert set(part.of) <= names, part


def commands_of(module, folder):
    steps = module("steps")
    settings = settings_of(module, folder)
    (folder / "pack" / "variants").mkdir(parents=True)
    (folder / "pack" / "variants" / "wide.so").touch()
    some = [step for slot in steps.schedule(settings) for step in slot.steps]
    some += [*steps.background(settings), *steps.variants(settings)]
    return [command for step in some for command in step.commands]


def test_the_scripts_take_what_the_steps_give_them(module, tmp_path):
    folder, used = str(module("steps").FOLDER), set()
    for command in commands_of(module, tmp_path):
        for at, word in enumerate(command):
            if word.startswith(folder):
                script = pathlib.Path(word)
                module(script.stem).parser().parse_args(command[at + 1 :])
                used.add(script.name)
    assert used == {"pack.py", "photographs.py", "decoding.py", "training.py", "background.py", "machine.py"}


def test_the_programs_take_what_the_steps_give_them(module, root, tmp_path):
    """As their sources say."""
    used = set()
    for command in commands_of(module, tmp_path):
        programs = [at for at, word in enumerate(command) if word.startswith(f"{tmp_path}/pack/bin/")]
        if not programs or sys.executable in command:
            continue
        name, words = pathlib.Path(command[programs[0]]).name, command[programs[0] + 1 :]
        options = {word for word in words if word.startswith("--") and not word.startswith("--gtest_")}
        if name == "device_bench":
            sources = [root / "bench" / "device_bench.cc"]
        elif name == "stoker":
            sources = [*(root / "bindings" / "cli").glob("*.cc"),
                       *(root / "bindings" / "cli" / "command").glob("*.cc"),
                       *(root / "bindings" / "cli" / words[0]).glob("*.cc"),
                       root / "engine" / "options" / "option_table.cc"]  # fmt: skip
            assert (root / "bindings" / "cli" / words[0]).is_dir(), command
        else:
            assert not options, command
            continue
        text = "".join(source.read_text() for source in sources)
        # A flag of the table of options has the name of its option.
        names = {option: (option, option[2:].replace("-", "_")) for option in options}
        assert [o for o in options if not any(f'"{name}"' in text for name in names[o])] == [], command
        used |= {(name, option) for option in options}
    assert {("stoker", "--digest"), ("stoker", "--dtype"), ("device_bench", "--rounds")} <= used


def test_tests_come_before_sanitizers(module, tmp_path):
    """All at once are more than there are cores; those that wait may have no time."""
    (slot,) = (slot for slot in module("steps").schedule(settings_of(module, tmp_path))
               if slot.what == "correctness")  # fmt: skip
    kinds = ["sanitizer" if step.prints == "sanitizer" else "" for step in slot.steps]
    assert kinds == sorted(kinds) and kinds.count("sanitizer") == 8
    assert sum(step.prints == "pytest" for step in slot.steps[:12]) == 12


def test_both_ways_to_feed_a_training_read_the_same_files(module, tmp_path):
    """Without a crop index workers decode more, so a training without one would compare two things."""
    resnet18, settings = module("steps").resnet18, settings_of(module, tmp_path)
    plain, decode = (resnet18(settings, feeder).commands[0] for feeder in ("stoker", "stoker-decode"))
    assert decode == [*plain, "--decode", "device"]


def test_the_clocks_are_left_alone(module, tmp_path):
    """They are those of the machine's owner; ncu would lock them by default."""
    commands = commands_of(module, tmp_path)
    profiled = [command for command in commands if command[0] == "ncu"]
    assert len(profiled) == 2
    for command in profiled:
        assert command[command.index("--clock-control") + 1] == "none"
    assert not [command for command in commands if "nvidia-smi" in command]


def test_each_test_of_test_gpu_runs_by_itself(module, root):
    """In the process of the framework whose fixture, or module, it needs."""
    tree = ast.parse((root / "tests" / "python" / "device" / "test_gpu.py").read_text())
    tests = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    listed = [name for names in module("steps").PYTHON_TESTS.values() for name in names]
    assert sorted(listed) == sorted(tests)


# --- the machine ------------------------------------------------------------------------------------


def test_workers_of_the_rival_fit_shared_memory(module):
    fit = module("training").workers_that_fit
    batch = 256 * 3 * 224 * 224 * 4  # 154 MB
    assert fit(34 * batch, 16, batch) == (16, 2)
    assert fit(34 * batch - 1, 16, batch) == (16, 1)
    assert fit(18 * batch - 1, 16, batch) == (15, 1)
    assert fit(64 << 20, 16, batch) == (0, 0), "the usual /dev/shm of a container"


def test_memory_is_that_of_the_control_group(module, tmp_path):
    available = module("background").available_bytes
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 2000 kB\nMemAvailable:    1000 kB\n")
    assert available(meminfo, tmp_path) == 1000 << 10
    (tmp_path / "memory.max").write_text("500000\n")
    (tmp_path / "memory.current").write_text("200000\n")
    assert available(meminfo, tmp_path) == 300000
    (tmp_path / "memory.max").write_text("max\n")
    assert available(meminfo, tmp_path) == 1000 << 10


def test_memory_is_touched_as_far_as_it_is_there(module, capsys, monkeypatch):
    background = module("background")
    background.touch_memory(0.05)
    assert json.loads(capsys.readouterr().out)["touched_gib"] == pytest.approx(0.05, abs=0.01)
    monkeypatch.setattr(background, "available_bytes", lambda: 1 << 30)
    background.touch_memory(1, patience=0.25)
    assert json.loads(capsys.readouterr().out)["touched_gib"] == 0, "what is there is left to others"


def test_a_gpu_may_take_some_time(root, tmp_path):
    """A driver that is not ready yet is asked again, by another process; in vain here."""
    script = f"""
        import sys
        sys.path.insert(0, {str(root / "bench" / "gpu")!r})
        import background, os
        background.load_driver = lambda: (None, "")
        background.device_files = lambda: ["/dev/nvidia0"]
        os.execv = lambda program, command: print(*command[2:]) or sys.exit(7)
        sys.exit(background.hold_context(1, None, int(sys.argv[1])))
    """
    command = [sys.executable, "-c", "\n".join(map(str.strip, script.splitlines()))]
    again = subprocess.run([*command, "2"], capture_output=True, text=True, timeout=60, check=False)
    assert (again.returncode, again.stdout) == (7, "context --ordinal 1 --tries 1\n"), again.stderr
    last = subprocess.run([*command, "1"], capture_output=True, text=True, timeout=60, check=False)
    assert last.returncode == 1
    told = json.loads(last.stdout)
    assert "there is no libcuda.so.1" in told["why_no_gpu"] and told["device_files"] == ["/dev/nvidia0"]


def test_a_driver_in_another_place_is_found(module, tmp_path, monkeypatch):
    background = module("background")
    monkeypatch.setattr(background, "DRIVER", "libcuda-of-a-test.so.1")
    assert background.load_driver((str(tmp_path),)) == (None, "")
    (tmp_path / "libcuda-of-a-test.so.1").symlink_to("/lib/x86_64-linux-gnu/libm.so.6")
    library, path = background.load_driver(("/no/such/place", str(tmp_path)))
    assert library is not None and path == str(tmp_path / "libcuda-of-a-test.so.1")

    for name in ("libcuda.so.1", "libnvidia-ptxjitcompiler.so.1", "libz.so.1"):
        (tmp_path / name).touch()
    background.link_driver(tmp_path / "libcuda.so.1", tmp_path / "links")
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == [
        "libcuda.so.1", "libnvidia-ptxjitcompiler.so.1"
    ]  # fmt: skip


def test_files_are_read_through(module, tmp_path):
    (tmp_path / "lib.so").write_bytes(b"x" * 10000)
    assert module("background").read_through(tmp_path / "lib.so") == 10000
    assert module("background").read_through(tmp_path / "none.so") == 0


def test_facts_of_the_machine(module, tmp_path):
    facts = {}
    for some in module("machine").facts(tmp_path):
        facts.update(some)
    assert facts["cores"] >= 1 and facts["memory_gib"] > 0 and facts["shm_free_gib"] is not None
    assert facts["libc"].startswith("glibc") and facts["io_uring"] and facts["nvcc"]


def test_photographs_get_many_names(root, tmp_path):
    (tmp_path / "photos" / "class00").mkdir(parents=True)
    (tmp_path / "photos" / "class00" / "a.jpg").write_bytes(b"jpeg")
    made = tmp_path / "made"
    script = root / "bench" / "gpu" / "photographs.py"
    command = [
        sys.executable,
        script,
        made,
        tmp_path / "few",
        "--from",
        tmp_path / "photos",
        "--copies",
        "3",
        "--stoker",
        "/bin/false",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {"photographs": 3, "real": True}
    names = sorted(path.name for path in (made / "class00").iterdir())
    assert names == ["a-00.jpg", "a-01.jpg", "a-02.jpg"]
    assert os.stat(made / "class00" / "a-00.jpg").st_nlink == 5
    assert [path.name for path in (tmp_path / "few").glob("*/*")] == ["a.jpg"]


# --- the report -------------------------------------------------------------------------------------


def test_a_report_on_different_code_says_so(module):
    results = module("results").Results()
    for code in ("v1 a", "v1 a", "v2 b"):
        results.add("lease", time="today", code=code, command="lease", device="cuda:0", seconds=505)
    heads = module("report").heads(results)
    assert heads[0] == "MIXED: the calls ran different code."
    assert "card:    none: None" in heads


def test_the_card_is_the_one_that_programs_use(module):
    """nvidia-smi may complain where the driver finds a GPU."""
    complaint = [{"gpus": ["Failed to initialize NVML"]}]
    found = made_up(module, machine=complaint, context=[{"card": "A card"}])
    assert "card:    A card" in module("report").heads(found)
    assert "card:    Failed to initialize NVML" in module("report").heads(made_up(module, machine=complaint))


def test_a_plot_shows_what_there_is(module, tmp_path):
    pytest.importorskip("matplotlib")
    rows = {
        "copies": [{"mib": 8, "pageable": 5.0, "batches": None}, {"mib": 16, "pageable": 6.0}],
        "kernels": [{"dtype": "float32", "layout": "NCHW", "operations": "none", "of_copy": 0.9}],
        "decode_jpeg": [{"work": "decode_jpeg", "images_per_second": 900.0}],
        "crops__packed": [{"batch": 256, "crops_per_second": 3e5}],
        "resnet18__stoker": [{"step_ms": 3.0}, {"images_per_second": 900.0}],
    }
    for count in range(len(rows) + 1):
        module("report").plot(made_up(module, **dict(list(rows.items())[:count])), tmp_path / "report.png")
        assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_the_share_of_copies_under_kernels(module):
    copies_under_kernels = module("training").copies_under_kernels

    def event(kind, name, begin, duration):
        return {"ph": "X", "cat": kind, "name": name, "ts": begin, "dur": duration}

    copies = [
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 1000),  # half of it before all kernels
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
    found = copies_under_kernels(copies + kernels)
    assert found == {"copy_ms": 1.5, "copies_under_kernels": pytest.approx(500 / 1500)}
    with pytest.raises(SystemExit, match="no copy"):
        copies_under_kernels(kernels)
    with pytest.raises(SystemExit, match="no kernel"):
        copies_under_kernels(copies)

    # A step's kernels, with a gap after each 9 µs, and a copy that is longer than all of them.
    for gap, share in ((1, 1), (6, pytest.approx(9 / 15, abs=0.01))):
        step = [event("kernel", "elementwise", i * (9 + gap), 9) for i in range(1000)]
        copy = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", -5000, 10 * 9000)
        assert copies_under_kernels([copy, *step])["copies_under_kernels"] == share, gap


@pytest.mark.long
def test_the_built_programs_run_on_the_simulated_device(machine, build, module):
    """Without the package, which needs a build of its own."""
    built = {name: build / path for name, path in module("pack").PROGRAMS.items()}
    lacking = [str(path) for path in built.values() if not path.is_file()]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} are not built")
    machine.programs = {name: f'exec "{path}" "$@"' for name, path in built.items()}
    digests = module("steps").DIGESTS
    tables = ("copies", "kernels", "crops-packed", "crops-indexed", "small", "record", "steps")
    names = (*TESTS, *digests, *tables, "epochs")
    code, printed = machine.measure("--only", *names)
    assert code == 0, printed
    numbers = assert_each_has_a_value_or_a_reason(printed)
    for number in (1, 3, 6):
        assert any("none:" not in line for line in numbers[number]), numbers[number]
    assert "none:" not in numbers[7][0]
