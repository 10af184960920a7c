"""The ten numbers of a lease, each of the figures of some steps: what it is, how it is computed, what was
promised.

A number has parts, and each part has a value or the reason why there is none. Nothing is filled in: a figure
that is missing, or means nothing, is a reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import steps
from results import Of, Results

Rows = list[dict[str, Any]]
MIB_OF_COPIES = (8, 64, 256)


class Missing(Exception):
    """Says why there is no value."""


class Wrong(Missing):
    """Says why what is there is no value, which matters more than what is not there."""


class Part(NamedTuple):
    name: str
    of: tuple[str, ...]  # steps; `value` gets the rows of each
    value: Callable[..., Any]
    unit: str = ""
    least: Optional[float] = None  # what was promised
    most: Optional[float] = None
    expected: str = ""
    note: Callable[..., str] = lambda *rows: ""  # what stands next to the value


class Number(NamedTuple):
    name: str
    parts: tuple[Part, ...]
    others: tuple[str, ...] = ()  # what has been published about other programs, to compare with


class Told(NamedTuple):
    """What is known of a part."""

    name: str
    value: Any
    unit: str
    reason: str  # why there is no value, or what to think of it
    promise: str


# --- reading rows -------------------------------------------------------------------------------------------


def some(rows: Rows, key: str, **where: Any) -> list[Any]:
    """Returns the values of the rows with these other values; Missing if there are none."""
    found = [row[key] for row in rows if all(row.get(name) == value for name, value in where.items())
             and row.get(key) is not None]  # fmt: skip
    if not found:
        kind = ", ".join(f"{name} {value}" for name, value in where.items())
        raise Missing(f"no {key}" + (f" of {kind}" if kind else ""))
    return found


def median(key: str, **where: Any) -> Callable[[Rows], float]:
    return lambda rows: statistics.median(some(rows, key, **where))


def of_most_pinned(key: str) -> Callable[..., float]:
    """Returns a figure of the loader that pinned most: of the first step that has told."""

    def value(*of_steps: Rows) -> float:
        told = [[row for row in rows if row.get("pinned_bytes") and row.get(key) is not None]
                for rows in of_steps]  # fmt: skip
        if not any(told):
            raise Missing(f"no {key}")
        return max(next(filter(None, told)), key=lambda row: row["pinned_bytes"])[key]

    return value


def of_bare_copy(mib: int) -> Callable[[Rows], float]:
    def value(rows: Rows) -> float:
        batches, bare = (some(rows, key, mib=mib)[0] for key in ("batches", "host_alloc"))
        warnings = [
            row["memory_warning"] for row in rows if row.get("mib") == mib and row.get("memory_warning")
        ]
        if warnings:
            raise Wrong(f"pageable memory, which says nothing of pinned copies: {warnings[0]}")
        return batches / bare

    return value


def cost_of_pieces(rows: Rows) -> float:
    return 1 - some(rows, "batches", mib=256)[0] / some(rows, "batches_whole", mib=256)[0]


def by_batch_size(rows: Rows) -> str:
    rates = zip(some(rows, "batch"), some(rows, "crops_per_second"))
    return ", ".join(f"{rate:,.0f} (batch {batch:,})" for batch, rate in rates)


def slowing(rows: Rows) -> str:
    """Returns the ratio of neighbouring blocks with and without copies: their median, least and most."""
    ratios = some(rows, "with_copies_slower")
    return (
        f"{statistics.median(ratios):.4f}, of {len(ratios)} pairs from {min(ratios):.4f} to {max(ratios):.4f}"
    )


def worst_kernel(rows: Rows) -> float:
    return min(some(rows, "of_copy"))


def median_kernel(rows: Rows) -> float:
    return statistics.median(some(rows, "of_copy"))


def passed(rows: Rows) -> int:
    return sum(some(rows, "passed"))


def passed_of_all(*of_steps: Rows) -> str:
    """Returns how many of the steps passed; the reasons of the others stand next to it."""
    good = [rows for rows in of_steps if any(row.get("passed") for row in rows) and not any(
        row.get("failed") or row.get("error") or row.get("skipped") for row in rows)]  # fmt: skip
    if not any(of_steps):
        raise Missing("none has told")
    return f"{len(good)} of {len(of_steps)}"


def by_size(rows: Rows) -> list[tuple[int, float]]:
    return sorted(zip(some(rows, "mib"), some(rows, "hidden_at_least")))


def largest_hidden(rows: Rows) -> float:
    """Of the largest batches: in a short step, the time of launches counts as one of the copy."""
    return by_size(rows)[-1][1]


def smaller_hidden(rows: Rows) -> str:
    *smaller, (largest, _) = by_size(rows)
    return ", ".join([f"of {largest} MiB", *(f"{share:.4g} of {mib}" for mib, share in reversed(smaller))])


def digests_of(of_steps: Sequence[Rows]) -> dict[str, str]:
    return {name: row["digest"] for name, rows in zip(steps.DIGESTS, of_steps) for row in rows[:1]
            if row.get("digest")}  # fmt: skip


def equal_digests(*of_steps: Rows) -> str:
    digests = digests_of(of_steps)
    if len(digests) < 2:
        raise Missing(f"{len(digests)} of {len(of_steps)} digests are there, and none to compare with")
    if len(set(digests.values())) > 1:
        raise Wrong(f"they differ: {', '.join(' '.join(told) for told in digests.items())}")
    return next(iter(digests.values()))


def how_many_digests(*of_steps: Rows) -> str:
    return f"{len(digests_of(of_steps))} of {len(of_steps)}"


def decoded_there(rows: Rows) -> float:
    return some(rows, "on_device")[0] / some(rows, "images")[0]


def findings(*of_steps: Rows) -> int:
    return sum(sum(some(rows, "findings")) for rows in of_steps)


def in_tests(*of_steps: Rows) -> str:
    return f"in {sum(row.get('passed', 0) for rows in of_steps for row in rows)} tests"


def memory_warnings(*of_steps: Rows) -> str:
    rows = [row for rows in of_steps for row in rows]
    if not any("memory_warnings" in row or "memory_warning" in row for row in rows):
        raise Missing("no step that copies has told")
    texts = {
        text
        for row in rows
        for text in [*(row.get("memory_warnings") or []), row.get("memory_warning")]
        if text
    }
    return f"{len(texts)} WARNINGS: {' | '.join(sorted(texts))}" if texts else "none"


# --- the numbers --------------------------------------------------------------------------------------------

LOADERS = tuple(f"loader-{files}-{by}" for by in steps.DECODED_BY for files in steps.FILES)
# Real loaders; the digests' run when others do, which makes pinning slower.
PINNING = ("epochs", *steps.DIGESTS[1:])


def copies_parts() -> tuple[Part, ...]:
    sizes = tuple(Part(f"{mib} MiB", ("copies",), of_bare_copy(mib), least=0.95) for mib in MIB_OF_COPIES)
    bare = Part("bare copy of 256 MiB", ("copies",), median("host_alloc", mib=256), "GB/s")
    return (*sizes, bare, Part("cost of pieces of 8 MiB", ("copies",), cost_of_pieces))


def crops_parts() -> tuple[Part, ...]:
    return tuple(
        Part(files, (f"crops-{files}",), by_batch_size, "crops/s", expected="200,000 to 400,000")
        for files in steps.FILES
    )


def loader_parts() -> tuple[Part, ...]:
    parts = []
    for files in steps.FILES:
        for decode, expected in (("device", "100,000 to 250,000"), ("workers", "")):
            name, step = f"{files}, decoded by {decode}", (f"loader-{files}-{decode}",)
            rate, cpu = median("images_per_second"), median("cpu_us")
            parts.append(Part(name, step, rate, "crops/s", expected=expected))
            parts.append(Part(f"{name}: CPU", step, cpu, "µs a crop"))
    return tuple(parts)


def decode_jpeg_parts() -> tuple[Part, ...]:
    names = (
        ("decode_jpeg", "alone"),
        ("decode_jpeg, crop, resize, normalise", "with crop, resize, normalise"),
    )
    return tuple(Part(name, ("decode_jpeg",), median("images_per_second", work=work), "images/s")
                 for work, name in names)  # fmt: skip


def test_parts() -> tuple[Part, ...]:
    programs = (Part(name, (name,), passed, "tests passed") for name in steps.GTESTS)
    frameworks = (Part(f"test_gpu.py, {framework}", names, passed_of_all, "tests passed")
                  for framework, names in steps.PYTHON_TESTS.items())  # fmt: skip
    digests = (
        Part("batches are equal", steps.DIGESTS, equal_digests, note=how_many_digests),
        Part("decoded on the device", ("digest-decode-indexed",), decoded_there, "of the photographs"),
    )
    return (*digests, *programs, *frameworks)


def sanitizer_parts() -> tuple[Part, ...]:
    def runs(tool: str) -> tuple[str, ...]:
        return tuple(f"{tool} {program}" for program in steps.KERNEL_TESTS)

    return tuple(Part(tool, runs(tool), findings, "findings", most=0, note=in_tests)
                 for tool in steps.SANITIZERS)  # fmt: skip


def resnet18_parts() -> tuple[Part, ...]:
    names = {
        "stoker": "stoker",
        "stoker-decode": "stoker, decoded on the device",
        "usual": "torch's DataLoader",
    }
    parts = []
    for feeder, name in names.items():
        step = (f"resnet18-{feeder}",)
        parts.append(Part(name, step, median("images_per_second"), "images/s"))
        parts.append(Part(f"{name}: share of waiting", step, median("waited_share")))
        parts.append(Part(f"{name}: CPU", step, median("cpu_us"), "µs an image"))
    return tuple(parts)


NUMBERS = (
    Number("copies of batches ÷ bare copies", copies_parts()),
    Number("copies hidden, and what they slow", (
        Part("share of copies under kernels", ("overlap",), median("copies_under_kernels"), least=0.99),
        Part("share of copies hidden by steps of the device", ("steps",), largest_hidden, least=0.99,
             note=smaller_hidden),
        Part("a matrix product with copies of bytes, slower by", ("gemm",), median("with_copies_slower"),
             most=0.01, note=lambda rows: "(batches that no kernel finishes)"),
        Part("spread of that", ("gemm",), slowing),
    )),
    Number("crops by the kernels alone", crops_parts()),
    Number("crops from loader to device", loader_parts(), (
        "published: DALI on Hopper with 70 threads, pipeline 21,567 and dynamic 17,244 images/s",
    )),
    Number("torchvision's decode_jpeg on the GPU", decode_jpeg_parts(), (
        "published: torchvision on an A100, 7,834 images/s (1,000 at once; pytorch/vision#8496)",
    )),
    Number("finish kernel ÷ copy on the device", (
        Part("worst variant", ("kernels",), worst_kernel, least=0.8),
        Part("median of the variants", ("kernels",), median_kernel),
    )),
    Number("batches equal, tests green", test_parts()),
    Number("findings of CUDA's sanitizers", sanitizer_parts()),
    Number("ResNet-18 on 4 cores", resnet18_parts()),
    Number("memory and recording", (
        Part("pinned at the peak", PINNING, of_most_pinned("pinned_bytes"), "bytes"),
        Part("pinning it", PINNING, of_most_pinned("pinning_s"), "s"),
        Part("warnings of pageable memory", ("copies", *LOADERS, *PINNING), memory_warnings),
        Part("record on a stream, busy", ("record",), median("record_us", device_is="busy"), "µs"),
        Part("record on the context, busy", ("record",), median("record_all_us", device_is="busy"), "µs"),
        Part("record on the context, idle", ("record",), median("record_all_us", device_is="idle"), "µs"),
    )),
)  # fmt: skip


def promise(part: Part, value: Any, judged: bool) -> str:
    """Returns what was promised, and whether it was kept, if that can be judged."""
    for limit, sign in ((part.least, "≥"), (part.most, "≤")):
        if limit is not None:
            kept = value is not None and (value >= limit if sign == "≥" else value <= limit)
            verdict = "" if value is None or not judged else ": kept" if kept else ": NOT KEPT"
            return f"promised {sign} {limit:g}{verdict}"
    return f"expected {part.expected}" if part.expected else ""


def reasons(found: dict[str, Of]) -> str:
    """Returns how the steps ended that did not end well; those that ended alike together."""
    names: dict[str, list[str]] = {}
    for step, of in found.items():
        names.setdefault(f"{of.outcome}: {of.reason}".rstrip(": "), []).append(step)
    return "; ".join(f"{', '.join(steps)}: {ended}" for ended, steps in names.items())


def told(part: Part, results: Results) -> Told:
    bad = {step: of for step in part.of if (of := results.of(step)).outcome != "ok" or of.reason}
    rows = [results.of(step).rows for step in part.of]
    unit = part.unit
    try:
        value = part.value(*rows)
        unit = f"{unit} {part.note(*rows)}".strip()
        reason = reasons({step: of for step, of in bad.items() if of.rows or of.outcome != "not run"})
    except Wrong as wrong:
        value, reason = None, "; ".join(filter(None, [str(wrong), reasons(bad)]))
    except Missing as missing:
        value, reason = None, reasons(bad) or str(missing)
    except Exception as error:  # figures of another form than expected: the others count
        value, fault = None, f"cannot be computed: {type(error).__name__}: {error}"
        reason = "; ".join(filter(None, [reasons(bad), fault]))
    judged = all(lease["device"] != "host" for lease in results.of_kind("lease"))
    return Told(part.name, value, unit, reason, promise(part, value, judged))


def all_told(results: Results) -> list[tuple[Number, list[Told]]]:
    return [(number, [told(part, results) for part in number.parts]) for number in NUMBERS]


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def lines_of(number: Number, parts: Sequence[Told], at: int) -> list[str]:
    lines = [f"{at:2}. {number.name}"]
    for part in parts:
        if part.value is None:
            lines.append(f"      {part.name:44} none: {part.reason}")
            continue
        value = f"{shown(part.value)} {part.unit}".rstrip()
        notes = "; ".join(filter(None, [part.promise, part.reason]))
        lines.append(f"      {part.name:44} {value:28} {notes}".rstrip())
    return [*lines, *(f"      {other}" for other in number.others)]


def text(results: Results) -> str:
    lines = ["The ten numbers"]
    for at, (number, parts) in enumerate(all_told(results), 1):
        lines += lines_of(number, parts, at)
    return "\n".join(lines) + "\n"
