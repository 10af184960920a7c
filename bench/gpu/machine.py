"""Prints what a machine has: a JSON object for each group of facts, so that one that hangs loses no other.

bench/gpu/machine.py [--work FOLDER]
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import background

TOOLS = ("nvcc", "cmake", "ninja", "g++", "ncu", "compute-sanitizer", "taskset")
DISTRIBUTIONS = ("torch", "torchvision", "jax", "cupy-cuda13x", "numpy", "pillow", "timm", "lightning",
                 "tensorflow", "nvidia-dali-cuda130", "matplotlib", "pytest", "pytest-timeout")  # fmt: skip
GPU = (
    "name,driver_version,memory.total,pcie.link.gen.max,pcie.link.width.max,pcie.link.gen.current,power.limit,"
    "clocks.max.sm,clocks.max.memory,compute_mode,mig.mode.current,persistence_mode"
)
IO_URING_SETUP = 425


def said(*command: str) -> str:
    """Returns what a command prints, or the last line of its complaint."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return done.stdout.strip()
    return "\n".join((done.stderr or done.stdout).splitlines()[-1:]) or f"exit code {done.returncode}"


def version_of_program(name: str) -> str:
    found = re.search(r"\d+(\.\d+)+", said(name, "--version")) if shutil.which(name) else None
    return found[0] if found else "none"


def version_of_distribution(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def free_gib(path: str | pathlib.Path) -> float | None:
    try:
        return round(shutil.disk_usage(path).free / background.GIB, 2)
    except OSError:
        return None


def io_uring() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(256)
    ring = libc.syscall(IO_URING_SETUP, 4, parameters)
    if ring < 0:
        return errno.errorcode.get(ctypes.get_errno(), "fails")
    os.close(ring)
    return "works"


def limit(name: int) -> int | str:
    soft = resource.getrlimit(name)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else soft


def line_of(path: str) -> str:
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError as error:
        return str(error.strerror)


def processor() -> str:
    found = re.search(r"model name\s*: (.*)", line_of("/proc/cpuinfo"))
    return found[1] if found else platform.processor()


def facts(work: pathlib.Path) -> Iterator[dict[str, Any]]:
    kib = dict(re.findall(r"(\w+):\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text()))
    yield {
        "cores": len(os.sched_getaffinity(0)),
        "processor": processor(),
        "memory_gib": round((int(kib["MemTotal"]) << 10) / background.GIB, 1),
        "available_gib": round(background.available_bytes() / background.GIB, 1),
        "shm_free_gib": free_gib("/dev/shm"),
        "work_free_gib": free_gib(work),
        "numa_nodes": line_of("/sys/devices/system/node/online"),
    }
    yield {
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_version()}, {sys.executable}",
        "huge_pages": line_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "io_uring": io_uring(),
        "memlock_bytes": limit(resource.RLIMIT_MEMLOCK),
        "open_files": limit(resource.RLIMIT_NOFILE),
        "file_bytes": limit(resource.RLIMIT_FSIZE),
        "user": os.geteuid(),
    }
    yield {name: version_of_distribution(name) for name in DISTRIBUTIONS}
    if shutil.which("nvidia-smi"):
        values = said("nvidia-smi", f"--query-gpu={GPU}", "--format=csv,noheader").splitlines()
        yield {"gpus": values, "columns": GPU}
    for name in TOOLS:
        yield {name: version_of_program(name)}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--work", type=pathlib.Path, default=pathlib.Path())
    return made


def main() -> None:
    for some in facts(parser().parse_args().work):
        print(json.dumps(some), flush=True)


if __name__ == "__main__":
    main()
