"""The PTX instructions that compute, and the functions of arithmetic.h that do the same.

An instruction that is not here is an error of the build: add its row and its function, as NVIDIA's "PTX ISA"
describes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGER = r"(?P<T>[us](?:16|32|64))"
NARROW = r"(?P<T>[us](?:16|32))"
BITS = r"(?P<T>b(?:16|32|64))"
FLOAT = r"(?P<T>f(?:32|64))"
SHIFTED = r"(?P<T>[bus](?:16|32|64))"

WIDE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


@dataclass(frozen=True)
class Row:
    """What an instruction does.

    `opcode` is a regular expression, whose groups T and S are types. `function` is one of arithmetic.h. It
    is called with the operands as values of the types `takes`: T and S are those of the opcode, and W is
    twice as wide as T.
    """

    opcode: str
    function: str
    takes: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    function: str
    takes: tuple[str, ...]  # types of PTX


ROWS = (
    Row(rf"add\.{INTEGER}", "Add<T>", ("T", "T")),
    Row(rf"sub\.{INTEGER}", "Subtract<T>", ("T", "T")),
    Row(rf"mul\.lo\.{INTEGER}", "Multiply<T>", ("T", "T")),
    Row(rf"mul\.wide\.{NARROW}", "Multiply<W>", ("T", "T")),
    Row(rf"mul\.hi\.{NARROW}", "MultiplyHigh<T>", ("T", "T")),
    Row(rf"mad\.lo\.{INTEGER}", "MultiplyAdd<T>", ("T", "T", "T")),
    Row(rf"mad\.wide\.{NARROW}", "MultiplyAdd<W>", ("T", "T", "W")),
    Row(rf"div\.{INTEGER}", "Divide<T>", ("T", "T")),
    Row(rf"rem\.{INTEGER}", "Remainder<T>", ("T", "T")),
    Row(rf"min\.{INTEGER}", "Least<T>", ("T", "T")),
    Row(rf"max\.{INTEGER}", "Most<T>", ("T", "T")),
    Row(r"neg\.(?P<T>s(?:16|32|64))", "Negate<T>", ("T",)),
    Row(r"abs\.(?P<T>s(?:16|32|64))", "Absolute<T>", ("T",)),
    Row(r"dp2a\.lo\.s32\.u32", "DotOfTwo", ("u32", "u32", "u32")),
    # Floating point. With .rn ptxas may not fuse a multiplication and an addition. Without it, it may.
    Row(rf"add\.rn\.{FLOAT}", "AddFloats<T>", ("T", "T")),
    Row(rf"sub\.rn\.{FLOAT}", "SubtractFloats<T>", ("T", "T")),
    Row(rf"mul\.rn\.{FLOAT}", "MultiplyFloats<T>", ("T", "T")),
    Row(rf"div\.rn\.{FLOAT}", "DivideFloats<T>", ("T", "T")),
    Row(rf"fma\.rn\.{FLOAT}", "FusedMultiplyAdd<T>", ("T", "T", "T")),
    Row(rf"sqrt\.rn\.{FLOAT}", "SquareRoot<T>", ("T",)),
    Row(rf"neg\.{FLOAT}", "NegateFloat<T>", ("T",)),
    Row(rf"abs\.{FLOAT}", "AbsoluteFloat<T>", ("T",)),
    # Bits.
    Row(rf"and\.{BITS}", "And<T>", ("T", "T")),
    Row(rf"or\.{BITS}", "Or<T>", ("T", "T")),
    Row(rf"xor\.{BITS}", "Xor<T>", ("T", "T")),
    Row(rf"not\.{BITS}", "Not<T>", ("T",)),
    Row(rf"shl\.{SHIFTED}", "ShiftLeft<T>", ("T", "u32")),
    Row(rf"shr\.{SHIFTED}", "ShiftRight<T>", ("T", "u32")),
    Row(r"shf\.l\.wrap\.b32", "FunnelLeft", ("u32", "u32", "u32")),
    Row(r"shf\.r\.wrap\.b32", "FunnelRight", ("u32", "u32", "u32")),
    Row(r"bfi\.(?P<T>b(?:32|64))", "Insert<T>", ("T", "T", "u32", "u32")),
    Row(r"bfe\.(?P<T>u(?:32|64))", "Extract<T>", ("T", "u32", "u32")),
    Row(r"prmt\.b32", "Permute", ("u32", "u32", "u32")),
    Row(r"clz\.b32", "LeadingZeros", ("u32",)),
    Row(r"popc\.b32", "Ones", ("u32",)),
    Row(r"not\.pred", "NotTrue", ("pred",)),
    Row(r"and\.pred", "BothTrue", ("pred", "pred")),
    Row(r"or\.pred", "EitherTrue", ("pred", "pred")),
    Row(r"xor\.pred", "OneTrue", ("pred", "pred")),
    # Conversions.
    Row(r"cvt\.(?P<T>[us](?:8|16|32|64))\.(?P<S>[us](?:8|16|32|64))", "Convert<T>", ("S",)),
    Row(r"cvt\.rn\.(?P<T>f(?:32|64))\.(?P<S>[us](?:8|16|32|64))", "Convert<T>", ("S",)),
    Row(r"cvt\.rn\.(?P<T>f32)\.(?P<S>f64)", "Convert<T>", ("S",)),
    Row(r"cvt\.(?P<T>f64)\.(?P<S>f32)", "Convert<T>", ("S",)),
    Row(rf"cvt\.rni\.{FLOAT}\.(?P=T)", "Nearest<T>", ("T",)),
    Row(r"cvt\.rzi\.(?P<T>[us]32)\.(?P<S>f(?:32|64))", "TowardsZero<T>", ("S",)),
    Row(r"cvt\.rn\.f16\.f32", "Float16", ("f32",)),
    Row(r"cvt\.rn\.bf16\.f32", "BFloat16", ("f32",)),
    Row(r"cvt\.rn\.f16x2\.f32", "Float16s", ("f32", "f32")),
    Row(r"cvt\.rn\.bf16x2\.f32", "BFloat16s", ("f32", "f32")),
    Row(r"cvt\.f32\.f16", "Float16Value", ("u16",)),
)  # fmt: skip

# Those that end with u are also true if either number is NaN. lo, ls, hi and hs are for unsigned types.
COMPARISONS = {
    "eq": "Equal", "ne": "Different", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
    "ge": "GreaterOrEqual", "lo": "Less", "ls": "LessOrEqual", "hi": "Greater", "hs": "GreaterOrEqual",
    "num": "Ordered", "equ": "!Different", "neu": "!Equal", "ltu": "!GreaterOrEqual", "leu": "!Greater",
    "gtu": "!LessOrEqual", "geu": "!Less", "nan": "!Ordered",
}  # fmt: skip

PATTERNS = tuple((re.compile(row.opcode), row) for row in ROWS)


def find(opcode: str, c_types: dict[str, str]) -> Call | None:
    """Returns the function of an instruction; `c_types` has the C++ type of each type of PTX."""
    for pattern, row in PATTERNS:
        match = pattern.fullmatch(opcode)
        if match is None:
            continue
        types = {name: match[name] for name in pattern.groupindex}
        if types.get("T") in WIDE:
            types["W"] = WIDE[types["T"]]
        function = row.function
        for name, type in types.items():
            function = function.replace(f"<{name}>", f"<{c_types[type]}>")
        return Call(function, tuple(types.get(name, name) for name in row.takes))
    return None
