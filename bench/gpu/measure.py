"""Tests stoker on a machine with a GPU and measures it there, in one command that gives ten numbers.

    python bench/gpu/measure.py pack [--photos FOLDER]
    python bench/gpu/measure.py lease [--results FOLDER] [--seconds 505] [--device cuda:0]
    python bench/gpu/measure.py lease --only STEP [STEP ...]
    python bench/gpu/measure.py report --results FOLDER

`pack`, where a compiler and a package registry are, makes build/lease: programs, the Python package and
photographs. It is carried to the machine with the GPU, along with the checkout. `lease`, there, needs neither
a network nor a compiler, ends after --seconds at the latest, and writes results.jsonl (each figure as it
comes), outputs.txt and report.txt to the folder --results. `lease --only` runs some steps again, or the
packed variants of the kernels, after the library's own (variants). `report` makes the report once more, of
results.jsonl, and a plot, report.png.

Run it with the Python that has the frameworks; `pack` is for its minor version.

Exit code of `lease`: 0 all steps ended well, 1 some failed or were killed, 3 none of these but some were not
run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import signal
import sys
import threading

import lease
import pack
import processes
import report
import results
import steps
import ten_numbers


def begin(found: results.Results, settings: steps.Settings, called: lease.Lease) -> None:
    stamp = pack.stamp(settings.pack)
    code = f"{stamp.get('commit', 'unknown commit')} {stamp.get('sources', '')}".rstrip()
    note = why_not_current(settings.pack)
    found.add("lease", time=called.id, command=shlex.join(sys.argv), code=code, device=settings.device,
              seconds=settings.seconds, note=note)  # fmt: skip
    lease.say(
        f"stoker {code}, pack of {stamp.get('built', 'unknown date')}, at most {settings.seconds:.0f} s"
    )
    if note:
        lease.say(f"NOTE: {note}")


def why_not_current(folder: pathlib.Path) -> str:
    """Returns why the pack is not of the checkout's code; the lease goes on, because the pack's is what
    runs."""
    try:
        return pack.why_not_current(folder)
    except (OSError, ValueError, KeyError) as error:
        return f"{folder}: {error}"


def print_numbers(found: results.Results, notes: list[str]) -> None:
    """Prints the ten numbers, the last of all: who sees the end of the output sees them."""
    try:
        lease.say("")
        lease.say("\n".join(report.heads(found)))
        lease.say(ten_numbers.text(found))
    except Exception as error:  # each number has its own net; this is for the head
        lease.say(f"no report: {type(error).__name__}: {error}")
        lease.say(ten_numbers.text(found))
    for note in filter(None, notes):
        lease.say(note)


def report_in_child(settings: steps.Settings, seconds: float) -> str:
    """Writes report.txt; returns what went wrong, or nothing."""
    said: list[str] = []
    limit = lease.Clock(seconds, passed=0)
    command = settings.script("report.py", settings.results)
    ended = processes.run(command, lambda: limit.left(seconds), said.append, os.environ, str(lease.ROOT))
    if ended.code == 0:
        return "\n".join(said)
    return f"report.txt: {ended.reason or f'exit code {ended.code}'} {' '.join(said[-1:])}"


def end_at_last(clock: lease.Clock, found: results.Results, done: threading.Event) -> None:
    """Ends the process in time even if the rest of it hangs."""
    if not done.wait(max(0, clock.seconds - lease.LAST_SECONDS - clock.now())):
        printing = threading.Thread(target=print_numbers, args=(found, ["ended by the clock"]), daemon=True)
        printing.start()
        printing.join(lease.LAST_SECONDS - 1)  # a pipe that nobody empties holds it up
        os._exit(1)


def run(settings: steps.Settings, only: list[str]) -> int:
    clock = lease.Clock(settings.seconds)
    fault = ""
    for folder in (settings.work, settings.results):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fault = f"{folder}: {error.strerror}"
    file = results.File(settings.results / "results.jsonl")
    found = results.Results(file)
    outputs = results.File(settings.results / "outputs.txt", sync=False, most_bytes=lease.MOST_OUTPUT)
    called = lease.Lease(settings, clock, found, outputs)
    done = threading.Event()
    threading.Thread(target=end_at_last, args=(clock, found, done), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: clock.cut(f"the lease was ended by signal {got}"))
    begin(found, settings, called)
    try:
        called.take_only(only) if only else called.take_schedule(steps.schedule(settings))
    except Exception as error:  # of ours: what there is gets reported
        fault = f"the lease stopped: {type(error).__name__}: {error}"
    clock.cut("the lease is over")
    for number, parts in ten_numbers.all_told(found):
        found.add("number", name=number.name, parts=[part._asdict() for part in parts])
    unwritten = file.finish(2) or outputs.finish(0.5)
    left = settings.seconds - lease.LAST_SECONDS - clock.now()
    reported = report_in_child(settings, min(20, left - processes.PATIENCE - 1))
    print_numbers(found, [fault, unwritten, reported, f"{clock.now():.1f} s"])
    done.set()
    sys.stdout.flush()
    os._exit(exit_code(found, settings))  # not waiting for threads that hang


def exit_code(found: results.Results, settings: steps.Settings) -> int:
    background = {step.name for step in steps.background(settings)}
    names = {end["step"] for end in found.of_kind("step")} - background
    outcomes = {found.of(name).outcome for name in names}
    return 1 if outcomes & {"failed", "killed"} or not outcomes else 3 if "not run" in outcomes else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack.add_arguments(commands.add_parser("pack", help="make what the lease runs"))
    add_lease_arguments(commands.add_parser("lease", help="test and measure, on the machine with the GPU"))
    again = commands.add_parser("report", help="make the tables once more, and a plot")
    again.add_argument("--results", type=pathlib.Path, required=True, help="folder of results.jsonl")
    args = parser.parse_args()
    if args.command == "pack":
        return pack.main(sys.argv[2:])
    if args.command == "report":
        return report.write(args.results, plotted=True)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), lease.CUDA_PROGRAMS])
    work = args.work.resolve()
    settings = steps.Settings(
        device=args.device,
        pack=args.pack.resolve(),
        work=work,
        results=(args.results or work / "results").resolve(),
        seconds=args.seconds,
        effort=args.effort,
        quick=args.quick,
        cores=tuple(sorted(os.sched_getaffinity(0))),
    )
    return run(settings, args.only or [])


def add_lease_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="cuda:0", help="host: what needs no GPU, on a simulated one [%(default)s]"
    )
    parser.add_argument(
        "--pack", type=pathlib.Path, default=pack.FOLDER, help="folder of `pack` [build/lease]"
    )
    parser.add_argument("--work", type=pathlib.Path, default=lease.ROOT / "build" / "on-gpu",
                        help="folder for what it unpacks and makes [build/on-gpu]")  # fmt: skip
    parser.add_argument("--results", type=pathlib.Path, help="folder [WORK/results]")
    parser.add_argument("--seconds", type=float, default=steps.SECONDS, help="for all [%(default)s]")
    parser.add_argument(
        "--only", nargs="+", metavar="STEP", help="these steps alone; variants: the packed ones"
    )
    parser.add_argument("--effort", type=int, default=10, metavar="PERCENT",
                        help="of the tests' cases, under CUDA's sanitizers [%(default)s]")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="little of everything, to try the steps")


if __name__ == "__main__":
    sys.exit(main())
