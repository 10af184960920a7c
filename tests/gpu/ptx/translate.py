"""Translates kernels from PTX, as nvcc writes it, to C++ that runs on the CPU (translated_kernel.h).

    translate.py --root FOLDER --out KERNELS.cc FILE.ptx...

Each kernel becomes a function that runs one of its threads, each register a variable that holds its bits.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import instructions
from kernel_names import title
from ptx_module import (
    SIZES,
    Brace,
    Instruction,
    Kernel,
    Label,
    Module,
    PtxError,
    Register,
    Variable,
    read_module,
)

C_TYPES = {"f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double", "pred": "bool"}
for bits in (8, 16, 32, 64):
    C_TYPES[f"b{bits}"] = C_TYPES[f"u{bits}"] = f"uint{bits}_t"
    C_TYPES[f"s{bits}"] = f"int{bits}_t"

SPECIAL = {
    "%tid.x": "lane.thread.x",
    "%ntid.x": "lane.threads.x",
    "%ctaid.x": "lane.block.x",
    "%ctaid.y": "lane.block.y",
    "%ctaid.z": "lane.block.z",
    "%nctaid.x": "lane.blocks.x",
    "%nctaid.y": "lane.blocks.y",
    "%nctaid.z": "lane.blocks.z",
    "%globaltimer": "lane.Clock()",
}

ENDS_BLOCK = re.compile(r"bra(\.uni)?|ret|exit")


def bits_type(type: str) -> str:
    """The type that holds the bits of another one."""
    return "pred" if type == "pred" else f"b{8 * SIZES[type]}"


def identifier(name: str) -> str:
    return name.lstrip("%").replace("$", "_")


class Translator:
    """Translates one kernel."""

    def __init__(self, kernel: Kernel, globals: dict[str, str], shared: dict[str, int], first_barrier: int):
        self.kernel = kernel
        self.globals = globals
        self.shared = shared
        self.first_barrier = first_barrier
        self.barriers: list[Instruction] = []
        self.registers = {each.name: each.type for each in kernel.statements if isinstance(each, Register)}
        # nvcc declares ranges of registers, and does not use all of them.
        texts = (each.text for each in kernel.statements if isinstance(each, Instruction))
        self.used = set(re.findall(r"%(\w+)", " ".join(texts)))
        self.local = {each.name for each in kernel.variables if each.space == "local"}

    def body(self) -> list[str]:
        lines = [
            f"  alignas({each.align}) uint8_t {identifier(each.name)}[{each.bytes}];"
            for each in self.kernel.variables
            if each.space == "local"
        ]
        counts = self.block_sizes()
        for at, statement in enumerate(self.kernel.statements):
            if isinstance(statement, Label):
                lines.append(f"{identifier(statement.name)}:")
            elif isinstance(statement, Brace):
                lines.append(f"  {statement.text}")
            elif isinstance(statement, Register) and statement.name in self.used:
                type = C_TYPES[bits_type(statement.type)]
                lines.append(f"  [[maybe_unused]] {type} {statement.name} = {self.garbage(statement)};")
            if at in counts:
                lines.append(f"  lane.instructions += {counts[at]};")
            if isinstance(statement, Instruction):
                lines.append(f"  {self.guarded(statement)}")
        return lines

    def garbage(self, register: Register) -> str:
        """What it contains before it is written: for a predicate either value, by number and thread."""
        if register.type == "pred":
            number = int(re.search(r"\d*$", register.name)[0] or 0)
            return f"(lane.thread.x + {number}) % 2 != 0"
        return f"Garbage<{C_TYPES[bits_type(register.type)]}>()"

    def block_sizes(self) -> dict[int, int]:
        """The number of instructions of each basic block, by the statement at its beginning."""
        sizes: dict[int, int] = {}
        begin = None
        for at, statement in enumerate(self.kernel.statements):
            if isinstance(statement, Label):
                begin = at
                sizes[begin] = 0
            elif isinstance(statement, Instruction):
                begin = at if begin is None else begin
                sizes[begin] = sizes.get(begin, 0) + 1
                begin = None if ENDS_BLOCK.fullmatch(statement.opcode) else begin
        return sizes

    def guarded(self, instruction: Instruction) -> str:
        code = self.translated(instruction)
        return f"if ({instruction.guard}) {{ {code} }}" if instruction.guard else code

    def translated(self, instruction: Instruction) -> str:
        opcode, operands = instruction.opcode, instruction.operands
        parts = opcode.split(".")
        try:
            if parts[0] in ("ld", "st"):
                return self.access(instruction, parts)
            if parts[0] == "setp":
                return self.comparison(operands, parts[1:])
            if parts[0] == "selp":
                type = bits_type(parts[1])
                first, second = (self.value(each, type) for each in operands[1:3])
                return self.set(operands[0], f"{self.value(operands[3], 'pred')} ? {first} : {second}")
            if parts[0] == "mov":
                return self.move(operands, bits_type(parts[1]))
            if call := instructions.find(opcode, C_TYPES):
                if len(operands) != 1 + len(call.takes):
                    raise ValueError(f"it takes {len(call.takes)}")
                values = ", ".join(map(self.value, operands[1:], call.takes))
                return self.set(operands[0], f"Bits({call.function}({values}))")
            if code := self.control(instruction):
                return code
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise PtxError(instruction.line, instruction.text, f"unknown operand ({error})") from error
        raise PtxError(instruction.line, instruction.text, "unknown instruction")

    def control(self, instruction: Instruction) -> str | None:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in ("bra", "bra.uni"):
            return f"goto {identifier(operands[0])};"
        if opcode in ("ret", "exit"):
            return "return;"
        if (opcode, operands) == ("bar.sync", ("0",)):
            return f"lane.SyncBlock({self.next_barrier(instruction)});"
        if (opcode, operands) == ("bar.warp.sync", ("-1",)):
            return f"lane.SyncWarp({self.next_barrier(instruction)});"
        if opcode == "activemask.b32":
            return self.set(operands[0], "lane.ActiveMask()")
        if opcode == "nanosleep.u32":
            return f"lane.Sleep({self.value(operands[0], 'u32')});"
        if opcode in ("cvta.to.global.u64", "cvta.local.u64"):
            return self.set(operands[0], self.value(operands[1], "u64"))
        if opcode == "cvta.shared.u64":
            return self.set(operands[0], f"lane.SharedAddress({self.value(operands[1], 'u64')})")
        return None

    def next_barrier(self, instruction: Instruction) -> int:
        self.barriers.append(instruction)
        return self.first_barrier + len(self.barriers) - 1

    def access(self, instruction: Instruction, parts: list[str]) -> str:
        """A load or a store, of one register or of a vector of them."""
        space, type = parts[1], parts[-1]
        if space not in ("global", "shared", "local", "param"):
            raise ValueError(space)
        if unknown := set(parts[2:-1]) - {"nc", "v2", "v4", "volatile"}:
            raise ValueError(*unknown)
        loads = parts[0] == "ld"
        registers, memory = instruction.operands if loads else reversed(instruction.operands)
        names = [name.strip() for name in registers.strip("{}").split(",")]
        c_type = C_TYPES[type if type[0] == "s" else bits_type(type)]
        size = SIZES[type]
        place = f"{{{instruction.line}, {len(names) * size}}}"
        find = "lane.Shared" if space == "shared" else "lane.Memory"
        code = [f"const uint64_t at = {find}({self.address(memory)}, {place});"]
        for i, name in enumerate(names):
            if not loads:
                code.append(f"Store<{c_type}>(at + {i * size}, {self.value(name, bits_type(type))});")
            elif name != "_":
                code.append(self.set(name, f"Load<{c_type}>(at + {i * size})"))
        if not loads and space == "global":
            code.append(f"lane.stored += {len(names) * size};")
        return f"{{ {' '.join(code)} }}"

    def address(self, operand: str) -> str:
        base, _, offset = operand.strip("[]").partition("+")
        return f"{self.value(base, 'u64')} + uint64_t(int64_t{{{int(offset or 0)}}})"

    def comparison(self, operands: tuple[str, ...], parts: list[str]) -> str:
        function, type = instructions.COMPARISONS[parts[0]], parts[-1]
        code = (
            f"{function}<{C_TYPES[type]}>({self.value(operands[1], type)}, {self.value(operands[2], type)})"
        )
        if len(parts) == 3:
            operator = {"and": "&&", "or": "||", "xor": "!="}[parts[1]]
            code = f"({code}) {operator} {self.value(operands[3], 'pred')}"
        return self.set(operands[0], code)

    def move(self, operands: tuple[str, ...], type: str) -> str:
        to, source = operands
        if to.startswith("{"):  # unpacks
            parts = [part.strip() for part in to.strip("{}").split(",")]
            bits = 8 * SIZES[type] // len(parts)
            sets = [
                self.set(part, f"uint{bits}_t(both >> {i * bits})")
                for i, part in enumerate(parts)
                if part != "_"
            ]
            return f"{{ const {C_TYPES[type]} both = {self.value(source, type)}; {' '.join(sets)} }}"
        if source.startswith("{"):  # packs
            parts = [part.strip() for part in source.strip("{}").split(",")]
            bits = 8 * SIZES[type] // len(parts)
            terms = [
                f"{C_TYPES[type]}{{{self.value(part, f'b{bits}')}}} << {i * bits}"
                for i, part in enumerate(parts)
            ]
            return self.set(to, f"{C_TYPES[type]}({' | '.join(terms)})")
        return self.set(to, self.value(source, type))

    def set(self, register: str, code: str) -> str:
        name = register.removeprefix("%")
        if name not in self.registers:
            raise KeyError(register)
        return f"{name} = {code};"

    def value(self, operand: str, type: str) -> str:
        """An operand as a value of the type."""
        c_type = C_TYPES[type]
        if operand in SPECIAL:
            return f"{c_type}({SPECIAL[operand]})"
        if type == "pred":
            if operand in ("-1", "1", "0"):
                return "false" if operand == "0" else "true"
            self.registers[operand.removeprefix("!").removeprefix("%")]
            return operand.replace("%", "")
        if operand.startswith("%"):
            name = operand[1:]
            same = C_TYPES[bits_type(self.registers[name])] == c_type
            return name if same else f"As<{c_type}>({name})"
        if number := re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+U?|0[fFdD]([0-9A-Fa-f]+)", operand):
            whole = int(number[1], 16) if number[1] else int(operand.rstrip("U"), 0)
            return f"As<{c_type}>({C_TYPES[bits_type(type)]}{{{whole % 256 ** SIZES[type]:#x}}})"
        return f"As<{c_type}>({self.symbol(operand)})"

    def symbol(self, name: str) -> str:
        """The address of a variable: in shared memory, where it begins there."""
        if name in self.shared:
            return f"uint64_t{{{self.shared[name]}}}"
        if name in self.kernel.parameters:
            return f"Address(lane.parameters[{self.kernel.parameters.index(name)}])"
        if name in self.local:
            return f"Address({identifier(name)})"
        return f"Address({self.globals[name]})"


def in_shared_memory(variables: list[Variable]) -> tuple[dict[str, int], int]:
    """Where each shared variable begins, and the bytes of all of them."""
    begin, used = {}, 0
    for each in variables:
        if each.space == "shared":
            begin[each.name] = -(-used // each.align) * each.align
            used = begin[each.name] + each.bytes
    return begin, used


class Output:
    """`barriers_only`: leaves out kernels without barriers."""

    def __init__(self, barriers_only: bool) -> None:
        self.barriers_only = barriers_only
        self.lines: list[str] = []
        self.kernels: list[str] = []
        self.barriers: list[str] = []

    def add_module(self, module: Module, path: Path) -> None:
        globals = {}
        for each in module.variables:
            if each.space in ("global", "const"):
                name = globals[each.name] = f"global_{len(self.lines)}"
                self.lines.append(
                    f"alignas({each.align}) {C_TYPES[each.type]} {name}[{each.count}] = {each.values};"
                )
        for kernel in module.kernels:
            used = "\n".join(str(each) for each in kernel.statements)
            variables = [each for each in module.variables if each.name in used] + kernel.variables
            self.add_kernel(kernel, globals, variables, path)

    def add_kernel(
        self, kernel: Kernel, globals: dict[str, str], variables: list[Variable], path: Path
    ) -> None:
        shared, shared_bytes = in_shared_memory(variables)
        translator = Translator(kernel, globals, shared, len(self.barriers))
        body = translator.body()
        if self.barriers_only and not translator.barriers:
            return
        self.lines += [f"// {kernel.name}", f"void Kernel{len(self.kernels)}(Lane& lane) {{"]
        self.lines += body + ["}", ""]
        names = f'"{kernel.name}", "{title(kernel.name)}", "{path.name}"'
        self.kernels.append(f"{{{names}, Kernel{len(self.kernels)}, {shared_bytes}}},")
        for barrier in translator.barriers:
            self.barriers.append(
                f'{{"{title(kernel.name)}", "{barrier.opcode}", {barrier.line}, "{barrier.source}"}},'
            )

    def text(self) -> str:
        barriers = self.barriers or ["{},"]
        return "\n".join([
            "// Generated by translate.py.",
            '#include "tests/gpu/ptx/arithmetic.h"',
            '#include "tests/gpu/ptx/translated_kernel.h"',
            "",
            "namespace stoker::testing::ptx {",
            "namespace {",
            "",
            *self.lines,
            "constexpr TranslatedKernel kKernels[] = {", *self.kernels, "};",
            "constexpr Barrier kBarriers[] = {", *barriers, "};",
            "",
            "}  // namespace",
            "",
            "std::span<const TranslatedKernel> TranslatedKernels() { return kKernels; }",
            "std::span<const Barrier> Barriers() {",
            f"  return std::span(kBarriers).first({len(self.barriers)});",
            "}",
            "",
            "}  // namespace stoker::testing::ptx",
            "",
        ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default="", help="the folder that sources are named from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--barriers-only", action="store_true", help="leave out kernels without barriers")
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    output = Output(options.barriers_only)
    for path in options.files:
        try:
            output.add_module(read_module(path.read_text(), options.root), path)
        except PtxError as error:
            sys.exit(f"{path}: {error}")
    options.out.write_text(output.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
