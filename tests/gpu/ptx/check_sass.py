"""Checks what ptxas makes of the kernels, for one architecture.

    check_sass.py registers --ptxas PTXAS --nvcc VERSION [--compare sass.txt] FILE.ptx...
    check_sass.py instructions --ptxas PTXAS FILE.ptx...

`registers`: no kernel may spill registers, or use a stack. Prints the registers and the shared memory of each
kernel; with --compare they may not be more than the file says.

`instructions`, which needs nvdisasm: each access must name its kind of memory, because others are slower, and
the deferred operations may not fuse a multiplication and an addition, because the CPU does not.

Both must find each kernel of the PTX, so another format of ptxas's log or nvdisasm's listing is an error.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kernel_names import title

SKIPPED = 77  # CMake's SKIP_RETURN_CODE
KERNEL = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+(\w+)", re.MULTILINE)
COMPILED = re.compile(r"Compiling entry function '(\w+)'")
STACK = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
USED = re.compile(
    r"Used (?P<registers>\d+) registers(?:, used \d+ barriers)?(?:, \d+ bytes cumulative stack size)?"
    r"(?:, (?P<shared>\d+) bytes smem)?"
)
FUNCTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*([A-Z][^;]*);")
GENERIC = re.compile(r"(?:LD|ST)(?:\.\S+)? ")
# Division by an expansion of the compiler multiplies by zero, to look at a number's sign.
FUSED = re.compile(r"FFMA\S* (?!\w+, RZ,)")

Table = dict[str, tuple[int, int]]  # registers and shared memory of each kernel


def find_nvdisasm(ptxas: Path) -> str | None:
    """In PATH, next to ptxas, or in PyPI's package nvidia-cuda-nvdisasm."""
    if found := shutil.which("nvdisasm") or shutil.which("nvdisasm", path=str(ptxas.parent)):
        return found
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    found_there = (path for folder in folders or () for path in Path(folder).glob("*/bin/nvdisasm"))
    return next((str(path) for path in found_there), None)


def kernels_of(ptx: str) -> list[str]:
    kernels = sorted(KERNEL.findall(ptx))
    if len(kernels) != ptx.count(".entry") or not kernels:
        raise SystemExit(f"{len(kernels)} kernels are known of {ptx.count('.entry')}")
    return kernels


def parts_of(text: str, begin: re.Pattern[str], kernels: list[str], what: str) -> dict[str, str]:
    """The part of each kernel of a text, by its name. Each must have one."""
    names_and_parts = begin.split(text)[1:]
    names, parts = names_and_parts[::2], names_and_parts[1::2]
    if sorted(names) != kernels:
        raise SystemExit(f"{what} has the kernels {sorted(names)}, and the PTX {kernels}")
    return dict(zip(names, parts))


def check_registers(log: str, kernels: list[str], table: Table) -> list[str]:
    errors = []
    for kernel, part in parts_of(log, COMPILED, kernels, "ptxas's log").items():
        name = title(kernel)
        stack, used = STACK.search(part), USED.search(part)
        if stack is None or used is None:
            raise SystemExit(f"ptxas's log does not say what {name} has: {part}")
        table[name] = (int(used["registers"]), int(used["shared"] or 0))
        if any(int(bytes) for bytes in stack.groups()):
            errors.append(
                f"{name} has {stack['stack']} bytes of stack, stores {stack['stores']} bytes of registers, "
                f"and loads {stack['loads']}"
            )
    return errors


def check_instructions(sass: str, kernels: list[str]) -> list[str]:
    errors = []
    for kernel, code in parts_of(sass, FUNCTION, kernels, "nvdisasm's listing").items():
        name, lines = title(kernel), INSTRUCTION.findall(code)
        if not any(line.startswith("EXIT") for line in lines):
            raise SystemExit(f"nvdisasm's listing of {name} has no EXIT")
        for line in lines:
            if GENERIC.match(line):
                errors.append(f"{name}: {line}: an access to memory of any kind")
            if name.startswith("DeferredOps") and FUSED.match(line):
                errors.append(f"{name}: {line}: a fused multiplication and addition")
    return errors


def compare(table: Table, path: Path, nvcc: str) -> list[str]:
    errors = []
    lines = [line.split() for line in path.read_text().splitlines() if line and line[0] != "#"]
    if lines[0] != ["nvcc", nvcc]:
        return [f"{path.name} is of {' '.join(lines[0])}, and this is {nvcc}: record it"]
    recorded = {name: (int(registers), int(shared)) for name, registers, shared in lines[1:]}
    for name, (registers, shared) in table.items():
        if name not in recorded:
            errors.append(f"{name} is not in {path.name}")
        elif registers > recorded[name][0] or shared > recorded[name][1]:
            errors.append(f"{name} has {registers} registers and {shared} bytes, more than {recorded[name]}")
        elif (registers, shared) != recorded[name]:
            print(f"{name} has less than {recorded[name]}: record it")
    return errors


def compile_ptx(options: argparse.Namespace, path: Path, cubin: Path) -> str:
    """Returns ptxas's log."""
    command = [options.ptxas, "-v", f"-arch={options.arch}", path, "-o", cubin]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def registers(options: argparse.Namespace, cubin: Path) -> list[str]:
    table: Table = {}
    errors = []
    for path in options.files:
        log = compile_ptx(options, path, cubin)
        errors += check_registers(log, kernels_of(path.read_text()), table)
    print(f"# Registers and bytes of shared memory, for {options.arch}.")
    print("# To record: check_sass.py registers … > sass.txt")
    print("nvcc", options.nvcc)
    for name, (count, shared) in sorted(table.items()):
        print(name, count, shared)
    if options.compare:
        errors += compare(table, options.compare, options.nvcc)
    return errors


def instructions(options: argparse.Namespace, cubin: Path) -> list[str]:
    nvdisasm = find_nvdisasm(options.ptxas)
    if nvdisasm is None:
        print("skipped: there is no nvdisasm (PyPI: nvidia-cuda-nvdisasm)", file=sys.stderr)
        sys.exit(SKIPPED)
    errors = []
    for path in options.files:
        compile_ptx(options, path, cubin)
        sass = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
        errors += check_instructions(sass, kernels_of(path.read_text()))
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("registers", "instructions"))
    parser.add_argument("--ptxas", type=Path, required=True)
    parser.add_argument("--nvcc", default="", help="its version")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--compare", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    check = registers if options.what == "registers" else instructions
    with tempfile.TemporaryDirectory() as folder:
        errors = check(options, Path(folder) / "kernels.cubin")
    if errors:
        print(*errors, sep="\n", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
