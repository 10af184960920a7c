"""Runs every program here, or those that are named, one after another, and prints the verdicts.

    python verdicts.py [PROGRAM…] [-- OPTIONS]        # as in: python verdicts.py serve casts -- photos/train

Each line has the program, the CPU time that it took with its processes, and its verdict; the first line has
the processor.
"""

import os
import pathlib
import subprocess
import sys

import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent
NOT_PROGRAMS = {"model_server", "photographs", "profiles", "timing", pathlib.Path(__file__).stem}


def processor() -> str:
    """Linux' name for the processor, and what it has for bfloat16 and int8."""
    told = pathlib.Path("/proc/cpuinfo").read_text()
    name = next(line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name"))
    known = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
    features = [flag for flag in known if flag in told.split()]
    return f"{name}, {len(os.sched_getaffinity(0))} cores ({', '.join(features)})"


def run(program: str, options: list[str]) -> str:
    """The CPU time and the last line of what the program prints, or of its error."""
    before = os.times()
    command = [sys.executable, FOLDER / f"{program}.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or ["nothing printed"]
    return f"{spent:.0f} s | {lines[-1]}"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    every = sorted({path.stem for path in FOLDER.glob("*.py")} - NOT_PROGRAMS)
    print(f"{processor()}; TensorFlow {tf.__version__}, Keras {tf.keras.version()}")
    for program in arguments[:end] or every:
        print(f"{program} | {run(program, arguments[end + 1 :])}", flush=True)
