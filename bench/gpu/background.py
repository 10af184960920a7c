"""What measure.py lease does in the background from its first second: a cold machine is slow at everything.

    bench/gpu/background.py context [--ordinal N] [--links FOLDER] [--tries N]
    bench/gpu/background.py libraries
    bench/gpu/background.py memory [--gib N]

`context` looks for the driver and a GPU, says what it found, and then holds the GPU's primary context until
it is killed, so that the driver need not set the device up for each program. If the driver is where programs
do not look for it, FOLDER gets links to its libraries. `libraries` reads the libraries of PyTorch, JAX, CuPy
and CUDA into the page cache. `memory` touches memory and gives it back: the memory of a virtual machine may
grow only when it is used. Each prints JSON objects.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import importlib.util
import itertools
import json
import mmap
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

DRIVER = "libcuda.so.1"
PLACES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/cuda/compat",
)
EXCLUSIVE_PROCESS, COMPUTE_MODE = 3, 20  # CU_COMPUTEMODE_EXCLUSIVE_PROCESS, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
PACKAGES = ("torch", "nvidia", "torchvision", "jaxlib", "jax_plugins", "jax_cuda13_plugin", "cupy",
            "cupy_backends")  # fmt: skip
CUDA_LIBRARIES = "/usr/local/cuda/lib64"
GIB = 1 << 30
BLOCK = 8 << 20
MAP_NORESERVE = 0x4000
MADV_POPULATE_WRITE = 23  # Linux 5.14


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


# --- the driver ---------------------------------------------------------------------------------------------


def load_driver(places: tuple[str, ...] = PLACES) -> tuple[Any, str]:
    """Returns the driver's library and its path, which is its name alone where every program finds it."""
    for path in (DRIVER, *(os.path.join(place, DRIVER) for place in places)):
        try:
            return ctypes.CDLL(path), path
        except OSError:
            pass
    return None, ""


def link_driver(library: pathlib.Path, folder: pathlib.Path) -> None:
    """Makes links to the driver's libraries alone: in LD_LIBRARY_PATH their own folder would hide others."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("libcuda.so*", "libnvidia-*.so*", "libcudadebugger.so*"):
        for file in library.parent.glob(pattern):
            link = folder / file.name
            link.unlink(missing_ok=True)
            link.symlink_to(file)


def device_files() -> list[str]:
    return sorted(path for path in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia\d+", path))


def listed_by_smi() -> list[str]:
    """Returns the GPUs that nvidia-smi lists; it needs the driver's other library, libnvidia-ml."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    return [re.sub(r" \(UUID.*", "", line) for line in (done.stdout + done.stderr).splitlines()]


def open_device(driver: Any, ordinal: int) -> tuple[str, dict[str, Any]]:
    """Returns the reason why there is no such GPU, or none and what it is."""
    begun = time.perf_counter()
    error = driver.cuInit(0)
    count, version, device = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    error = error or driver.cuDeviceGetCount(ctypes.byref(count))
    if error or count.value <= ordinal:
        return f"the driver finds {count.value} GPUs (error {error})", {}
    driver.cuDriverGetVersion(ctypes.byref(version))
    name = ctypes.create_string_buffer(100)
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDeviceGetName(name, len(name), device)
    mode = ctypes.c_int(0)
    driver.cuDeviceGetAttribute(ctypes.byref(mode), COMPUTE_MODE, device)
    return "", {
        "gpus": count.value,
        "card": name.value.decode(errors="replace"),
        "cuda_of_driver": version.value,
        "exclusive": mode.value == EXCLUSIVE_PROCESS,
        "init_s": round(time.perf_counter() - begun, 3),
    }


def find_gpu(ordinal: int, links: pathlib.Path | None) -> tuple[Any, dict[str, Any]]:
    """Returns the driver and what was found, with the reason if there is no such GPU."""
    driver, path = load_driver()
    told: dict[str, Any] = {"driver_library": path or None, "device_files": device_files()}
    if driver is None:
        return None, {**told, "looked_in": PLACES, "why_no_gpu": f"there is no {DRIVER}"}
    if path != DRIVER and links is not None:
        link_driver(pathlib.Path(path), links)
        told["links"] = str(links)
    why_not, facts = open_device(driver, ordinal)
    return driver, {**told, **facts, **({"why_no_gpu": why_not} if why_not else {})}


def hold_context(ordinal: int, links: pathlib.Path | None, tries: int) -> int:
    driver, told = find_gpu(ordinal, links)
    if "why_no_gpu" in told and told["device_files"] and tries > 1:  # it may not be ready yet
        time.sleep(1)
        again = ["context", "--ordinal", str(ordinal), "--tries", str(tries - 1)]
        again += ["--links", str(links)] if links is not None else []
        os.execv(sys.executable, [sys.executable, __file__, *again])  # the driver may keep its error
    if "why_no_gpu" in told:
        say(**told, nvidia_smi=listed_by_smi())
        return 1
    say(**told)
    if told["exclusive"]:  # one process at a time: holding the context would lock all others out
        return 0
    begun, context, device = time.perf_counter(), ctypes.c_void_p(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    error = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    say(context_error=error, context_s=round(time.perf_counter() - begun, 3))
    while error == 0 and os.getppid() != 1:  # until it is killed, or nobody is left to do so
        time.sleep(1)
    return int(error != 0)


# --- libraries ----------------------------------------------------------------------------------------------


def library_files() -> Iterator[pathlib.Path]:
    """Yields each library once, in the order of PACKAGES."""
    folders = []
    for name in PACKAGES:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        folders += [*(spec.submodule_search_locations or ())] if spec else []
    seen = set()
    for folder in [*folders, CUDA_LIBRARIES]:
        for path in sorted(pathlib.Path(folder).rglob("*.so*")):
            real = path.resolve()
            if real not in seen and real.is_file():
                seen.add(real)
                yield real


def read_through(path: pathlib.Path) -> int:
    """Reads a file for the page cache's sake; returns its bytes. (posix_fadvise alone may do nothing.)"""
    done = 0
    try:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            block = bytearray(BLOCK)
            while count := file.readinto(block):
                done += count
    except OSError:
        pass
    return done


def read_libraries() -> int:
    begun, read = time.perf_counter(), 0
    with ThreadPoolExecutor(4) as threads:
        for count in threads.map(read_through, library_files()):
            read += count
    say(libraries_gb=round(read / 1e9, 2), libraries_s=round(time.perf_counter() - begun, 2))
    return 0


# --- memory -------------------------------------------------------------------------------------------------


def available_bytes(
    meminfo: pathlib.Path = pathlib.Path("/proc/meminfo"),
    group: pathlib.Path = pathlib.Path("/sys/fs/cgroup"),
) -> int:
    """Returns what the machine says it has, or the control group if that is less."""
    kib = dict(re.findall(r"(\w+):\s+(\d+) kB", meminfo.read_text()))
    available = int(kib["MemAvailable"]) << 10
    for limit, used in (("memory.max", "memory.current"),
                        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):  # fmt: skip
        try:
            left = int((group / limit).read_text()) - int((group / used).read_text())
        except (OSError, ValueError):  # "max"
            continue
        available = min(available, max(0, left))
    return available


def to_keep(available: int) -> int:
    """Returns how many bytes are left to others."""
    return max(1 << 30, available // 4)


def populate(address: int, size: int) -> None:
    libc = ctypes.CDLL(None)  # its functions run without the interpreter's lock
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    if libc.madvise(address, size, MADV_POPULATE_WRITE) != 0:
        libc.memset(address, 1, size)


def touch_memory(gib: float, patience: float = 5) -> int:
    """Touches up to `gib`, as far as memory is available, and waits a little for a machine that grows."""
    begun, first = time.perf_counter(), available_bytes()
    size, keep = int(gib * GIB) // BLOCK * BLOCK, to_keep(first)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    count = min(8, len(os.sched_getaffinity(0)))
    touched, waited = 0, 0.0
    with ThreadPoolExecutor(count) as threads:
        while touched < size and waited < patience:
            if available_bytes() < keep + count * BLOCK:
                time.sleep(0.25)
                waited += 0.25
                continue
            starts = range(touched, min(size, touched + count * BLOCK), BLOCK)
            list(threads.map(populate, (address + start for start in starts), itertools.repeat(BLOCK)))
            touched += BLOCK * len(starts)
    say(
        touched_gib=round(touched / GIB, 2),
        touched_s=round(time.perf_counter() - begun, 2),
        available_gib=round(first / GIB, 1),
        available_after_gib=round((available_bytes() + touched) / GIB, 1),
    )
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["context", "libraries", "memory"])
    made.add_argument("--ordinal", type=int, default=0)
    made.add_argument("--links", type=pathlib.Path)
    made.add_argument("--tries", type=int, default=15, help="to find a GPU, one a second [%(default)s]")
    made.add_argument("--gib", type=float, default=32)
    return made


def main() -> int:
    args = parser().parse_args()
    if args.what == "context":
        return hold_context(args.ordinal, args.links, args.tries)
    return read_libraries() if args.what == "libraries" else touch_memory(args.gib)


if __name__ == "__main__":
    sys.exit(main())
