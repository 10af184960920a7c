"""Reads PTX as nvcc writes it: the variables of a module, and the statements of its kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Union

# Bytes of each type.
SIZES = {f"{kind}{8 * size}": size for size in (1, 2, 4, 8) for kind in "bus"} | {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8
}  # fmt: skip


class PtxError(Exception):
    """A line that this reader or the translator does not know."""

    def __init__(self, line: int, text: str, why: str):
        super().__init__(f"line {line}: {why}: {text}")


@dataclass(frozen=True)
class Variable:
    space: str  # shared, global, const or local
    align: int
    type: str
    name: str
    count: int
    values: str = ""

    @property
    def bytes(self) -> int:
        return self.count * SIZES[self.type]


@dataclass(frozen=True)
class Register:
    name: str
    type: str


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Brace:
    text: str


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple[str, ...]
    line: int  # of the PTX
    text: str
    source: str = ""  # the lines that it was compiled from, innermost first
    guard: str = ""  # the predicate under which it is executed: p1 or !p1


Statement = Union[Label, Brace, Register, Instruction]


@dataclass
class Kernel:
    name: str
    parameters: list[str]
    variables: list[Variable] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)


@dataclass
class Module:
    variables: list[Variable] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)


VARIABLE = re.compile(
    r"\.(?P<space>shared|global|const|local)\s+\.align\s+(?P<align>\d+)\s+\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?(?:\s*=\s*(?P<values>\{.*\}))?$"
)
REGISTERS = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+%(?P<name>\w+)(?:<(?P<count>\d+)>)?$")
ENTRY = re.compile(r"(?:\.visible\s+)?\.entry\s+(?P<name>[\w$]+)\((?P<parameters>.*)\)(?P<directives>.*)$")
LOCATION = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:,\s*function_name\s+\S+,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?$"
)
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', re.MULTILINE)
INSTRUCTION = re.compile(r"(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[\w.]+)(?:\s+(?P<operands>.*))?$")
IGNORED = re.compile(r"\.(version|target|address_size|pragma|file|maxntid|minnctapersm)\b")


def split_operands(text: str) -> tuple[str, ...]:
    """Splits at the commas outside of braces and brackets."""
    parts = re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)
    return tuple(part.strip() for part in parts)


class Reader:
    """Goes through a module line by line: a semicolon ends a statement, the end of its line a directive."""

    def __init__(self, text: str, root: str):
        self.module = Module()
        self.kernel: Kernel | None = None
        self.depth = 0
        self.source: tuple[str, ...] = ()
        self.parent: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.files = {number: name.removeprefix(root + "/") for number, name in FILE.findall(text)}

    def read(self, text: str) -> Module:
        pending, begun = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith(".section"):
                break  # names for debuggers
            line = line.split("//")[0].strip()
            if self.take_line(line, number):
                continue
            begun = begun if pending else number
            pending = f"{pending} {line}".strip()
            pending = self.take_complete(pending, begun)
        if pending:
            raise PtxError(begun, pending, "a statement without an end")
        return self.module

    def take_line(self, line: str, number: int) -> bool:
        """Takes directives that a line end, and not a semicolon, ends."""
        if location := LOCATION.match(line):
            at, inlined_at = location.groups()[:3], location.groups()[3:]
            self.source = at
            self.parent[at] = inlined_at if inlined_at[0] else ()
            return True
        return not line or IGNORED.match(line) is not None

    def take_complete(self, text: str, line: int) -> str:
        """Takes statements from the beginning of the text, and returns the rest."""
        while text:
            if text[0] in "{}":
                self.take_brace(text[0], line)
                text = text[1:].lstrip()
            elif label := re.match(r"(\$?\w+):\s*", text):
                self.kernel_at(line, text).statements.append(Label(label[1]))
                text = text[label.end() :]
            elif ".entry" in text:
                if not text.endswith(")"):
                    return text
                self.take_entry(text, line)
                text = ""
            elif ";" in text:
                statement, text = (part.strip() for part in text.split(";", 1))
                self.take_statement(statement, line)
            else:
                return text
        return ""

    def kernel_at(self, line: int, text: str) -> Kernel:
        if self.kernel is None:
            raise PtxError(line, text, "outside of a kernel")
        return self.kernel

    def take_entry(self, text: str, line: int) -> None:
        entry = ENTRY.match(text)
        if entry is None:
            raise PtxError(line, text, "unknown declaration")
        parameters = re.findall(r"([\w$]+)(?:\[\d+\])?\s*(?:,|$)", entry["parameters"])
        self.kernel = Kernel(entry["name"], parameters)
        self.module.kernels.append(self.kernel)

    def take_brace(self, brace: str, line: int) -> None:
        kernel = self.kernel_at(line, brace)
        if brace == "{":
            self.depth += 1
        if self.depth > 1:  # not the kernel's own
            kernel.statements.append(Brace(brace))
        if brace == "}":
            self.depth -= 1
        if self.depth == 0:
            self.kernel = None

    def take_statement(self, text: str, line: int) -> None:
        if IGNORED.match(text):
            return
        if variable := VARIABLE.match(text):
            taken = Variable(
                variable["space"], int(variable["align"]), variable["type"], variable["name"],
                int(variable["count"] or 1), variable["values"] or "",
            )  # fmt: skip
            (self.kernel or self.module).variables.append(taken)
            return
        kernel = self.kernel_at(line, text)
        if registers := REGISTERS.match(text):
            names = [registers["name"]]
            if registers["count"]:
                names = [f"{registers['name']}{i}" for i in range(int(registers["count"]))]
            kernel.statements += [Register(name, registers["type"]) for name in names]
            return
        instruction = INSTRUCTION.match(text)
        if instruction is None or text.startswith("."):
            raise PtxError(line, text, "unknown statement")
        guard = (instruction["guard"] or "").replace("%", "")
        operands = split_operands(instruction["operands"] or "")
        kernel.statements.append(
            Instruction(instruction["opcode"], operands, line, text, self.source_lines(), guard)
        )

    def source_lines(self) -> str:
        lines: list[str] = []
        at = self.source
        while at and len(lines) < 16:
            lines.append(f"{self.files.get(at[0], '?')}:{at[1]}")
            at = self.parent.get(at, ())
        return " < ".join(lines)


def read_module(text: str, root: str) -> Module:
    """`root`: the folder that source files are named from."""
    return Reader(text, root).read(text)
