"""Tests stoker on a machine with a GPU, and measures it there, in phases.

    python bench/gpu/measure.py PHASE [--device cuda:0] [--results FOLDER]

    pack     where there is a package registry: builds what the other phases need, into one file, which is
             carried to the machine along with the checkout
    probe    what the machine has, and whether the pack's programs run there (2 minutes)
    build    photographs, and the pack's programs and package; what does not run there is compiled there
    test     the tests on the driver, and CUDA's sanitizers over the kernels
    bench    copies, kernels, epochs, decoding
    train    networks, with stoker and with other loaders
    all      probe, build, test, bench and train, with a larger --seconds, or in several calls
    report   the tables and the plot once more

Run it with the Python that has the frameworks, and `pack` with one of the same minor version.

A phase is a list of steps (steps.py). A step that fails, or lacks something, does not stop the others. A line
for each goes to RESULTS/results.jsonl at once; report.txt and report.png sum them up. A step that this file
calls ok, on the same kind of GPU and with the same code, is not run again: call a phase that had too little
time once more. Put the file back before the call if the machine keeps nothing. What `build` makes is made
again where it is missing, and with another pack.

The code of a result is the commit that the programs and the package were built from, and twelve digits of the
SHA-256 of both. A report on results of different code begins with MIXED.

Exit code: 0 all steps of the phase are done, 1 some failed, 3 none failed but some were not run.
"""

import argparse
import ctypes
import datetime
import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import prepare
import report
from steps import PHASES, Settings, steps

# A test run that left something out ends with 0 too.
LEFT_OUT = re.compile(
    r"^\[  SKIPPED \]|^\[  PASSED  \] 0 tests|[0-9]+ skipped.* in [0-9.]+s|no tests ran", re.MULTILINE
)
CUDA_PROGRAMS = "/usr/local/cuda/bin"
# While a command runs: its end, and being asked to end.
AWAITED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM}


@functools.cache
def why_no_gpu(device):
    """Returns the reason why a step that needs a GPU cannot run; empty: it can."""
    if not device.startswith("cuda"):
        return "needs a GPU"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "needs a GPU: there is no libcuda.so.1"
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value else f"needs a GPU: the driver finds none (error {error})"


def has_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of its parent
        return False


def missing(need, settings):
    """Returns what of a need is not there; empty: it is."""
    kind, _, name = need.partition(":")
    if kind == "gpu":
        return why_no_gpu(settings.device)
    if kind == "cores":
        return "" if len(settings.cores) >= int(name) else f"needs {name} cores"
    found = {"module": has_module, "program": shutil.which, "file": os.path.exists}[kind](name)
    return "" if found else f"needs {name}"


def run_command(command, environment, output, seconds):
    """Returns the exit code; None if the time is over, and then the command and what it started are ended."""

    def in_own_group():
        os.setpgrp()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)

    deadline = time.monotonic() + seconds
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    try:
        process = subprocess.Popen(
            command, cwd=prepare.ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, preexec_fn=in_own_group,
        )  # fmt: skip
        while process.poll() is None:
            told = signal.sigtimedwait(AWAITED, max(0, deadline - time.monotonic()))
            if told is not None and told.si_signo == signal.SIGCHLD:
                continue
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None if told is None else sys.exit(128 + told.si_signo)
        return process.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)


def run_step(step, settings, seconds):
    """Returns the step's (outcome, reason, output)."""
    environment = prepare.environment(settings.work)
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        reason = ""
        for command in step.commands:
            try:
                code = run_command(command, environment, output, deadline - time.monotonic())
            except OSError as error:
                reason = str(error)
                break
            if code != 0:
                reason = f"exit code {code}" if code is not None else f"ended after {seconds:.0f} s"
                break
        output.seek(0)
        text = output.read()
    if not reason and step.tests and LEFT_OUT.search(text):
        reason = "a test was skipped, or none ran"
    return ("failed" if reason else "ok"), reason, text


def figures(text, keep):
    """Returns the JSON objects among the lines; `keep`: those of their values, by path."""
    found = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            whole = json.loads(line)
        except ValueError:
            continue
        values = {}
        for path in keep or whole:
            value = whole
            for part in path.split("."):
                value = (value or {}).get(part)
            if value is not None:
                values[path.rpartition(".")[2]] = value
        found.append(values)
    return found


class Phase:
    """Runs steps, and keeps their results."""

    def __init__(self, settings, again):
        self.settings, self.again = settings, again
        self.file = settings.results / "results.jsonl"
        self.begun = time.monotonic()
        self.device = settings.device
        if settings.on_gpu:
            number = settings.device.partition(":")[2] or "0"
            name = prepare.said("nvidia-smi", f"--id={number}", "--query-gpu=name", "--format=csv,noheader")
            self.device += f" ({''.join(name.splitlines()[:1])})"
        self.outcomes = []

    def code(self, step):
        """Returns which code a step runs, or which pack it unpacks."""
        if step.phase != "probe":
            return prepare.code(self.settings.work)
        packed = self.settings.pack
        return "pack " + (prepare.digest(packed) if packed.is_file() else "that is not there")

    def is_done(self, step):
        if step.name in self.again or (step.makes and not pathlib.Path(step.makes).exists()):
            return False
        last = report.last_results(self.file).get(step.name)
        if not last or last["outcome"] != "ok" or last["device"] != self.device:
            return False
        return step.phase == "build" or last.get("code") == self.code(step)

    def take(self, step):
        if self.is_done(step):
            print(f"{step.name:24} done before", flush=True)
            return
        begun = time.monotonic()
        left = self.settings.seconds - (begun - self.begun)
        lacks = next(filter(None, (missing(need, self.settings) for need in step.needs)), "")
        if not lacks and left < step.seconds:
            lacks = f"no time left: it takes {step.seconds} s"
        if lacks:
            outcome, reason, text = "not run", lacks, ""
        else:
            outcome, reason, text = run_step(step, self.settings, min(left, 2 * step.seconds))
        seconds = round(time.monotonic() - begun, 1)
        result = {
            "step": step.name,
            "phase": step.phase,
            "device": self.device,
            "code": self.code(step),
            "outcome": outcome,
            "reason": reason,
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "seconds": seconds,
            "figures": figures(text, step.keep),
            "output": text.splitlines()[-60:] if outcome == "failed" else [],
        }
        broken = self.file.is_file() and not self.file.read_bytes().endswith(b"\n")
        with self.file.open("a") as file:
            file.write("\n" * broken + json.dumps(result) + "\n")
        self.outcomes.append(outcome)
        told = f"{outcome}: {reason}" if reason else outcome
        print(f"{step.name:24} {told:40} {seconds:6.1f} s", flush=True)
        for line in result["output"][-15:]:
            print("    " + line)


def run(name, settings, again):
    settings.work.mkdir(parents=True, exist_ok=True)
    settings.results.mkdir(parents=True, exist_ok=True)
    phase = Phase(settings, again)
    for step in steps(settings):
        prepares = step.makes is not None and name != "probe"
        if step.phase == name or name == "all" or prepares:
            phase.take(step)
    print()
    report.write(settings.results, None if name == "all" else name)
    count = phase.outcomes.count
    print(f"{count('ok')} steps done, {count('failed')} failed, {count('not run')} not run")
    return 1 if count("failed") else 3 if count("not run") else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("phase", choices=["pack", *PHASES, "all", "report"])
    parser.add_argument("--device", default="cuda:0", help="host: all that needs no GPU [%(default)s]")
    parser.add_argument(
        "--pack", type=pathlib.Path, default="build/gpu-pack.tar.xz", help="file [%(default)s]"
    )
    parser.add_argument("--work", type=pathlib.Path, default="build/on-gpu", help="folder [%(default)s]")
    parser.add_argument("--results", type=pathlib.Path, help="folder [WORK/results]")
    parser.add_argument("--photos", type=pathlib.Path, help="folder of photographs in class folders [made]")
    parser.add_argument("--seconds", type=int, default=570, help="for the whole call [%(default)s]")
    parser.add_argument("--effort", type=int, default=1, metavar="PERCENT",
                        help="of the tests' cases, under the sanitizers [%(default)s]")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="little of everything, to try the steps")
    parser.add_argument("--again", nargs="*", default=[], metavar="STEP", help="run it although it is done")
    args = parser.parse_args()
    work = args.work.resolve()
    os.environ["PATH"] += os.pathsep + CUDA_PROGRAMS
    settings = Settings(
        device=args.device,
        pack=args.pack.resolve(),
        work=work,
        results=(args.results or work / "results").resolve(),
        photos=(args.photos or work / "photos").resolve(),
        makes_photos=args.photos is None,
        seconds=args.seconds,
        effort=args.effort,
        quick=args.quick,
        cores=sorted(os.sched_getaffinity(0)),
    )
    if args.phase == "pack":
        return prepare.pack(settings.pack, work)
    if args.phase == "report":
        return report.write(settings.results)
    return run(args.phase, settings, args.again)


if __name__ == "__main__":
    sys.exit(main())
