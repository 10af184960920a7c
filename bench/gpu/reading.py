"""Reads what the steps print: each function returns the figures in a line, or None."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Optional

Figures = Optional[dict[str, Any]]


def of_json(line: str, keep: Sequence[str] = ()) -> Figures:
    """Reads a JSON object; `keep`: those of its values, by path, under the paths' last names."""
    if not line.startswith("{"):
        return None
    # C's printf and JSON name what is no number differently; the row's other figures count.
    line = re.sub(r'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b', lambda found: found[1] or "null", line)
    try:
        whole = json.loads(line, parse_constant=lambda name: None)
    except ValueError:
        return None
    if not keep:
        return whole
    values = {}
    for path in keep:
        value = whole
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            values[path.rpartition(".")[2]] = value
    return values


def of_gtest(line: str) -> Figures:
    found = re.match(r"\[  (PASSED|SKIPPED|FAILED) +\] (\d+) tests?\b", line)
    return {found[1].lower(): int(found[2])} if found else None


def of_pytest(line: str) -> Figures:
    if not re.search(r"\bin \d+\.\d+s", line):
        return None
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|skipped|failed|error)", line)}
    return counts or {"passed": 0}


def of_sanitizer(line: str) -> Figures:
    found = re.match(r"=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)", line)
    return {"findings": int(found[1])} if found else of_gtest(line)


def of_ncu(line: str) -> Figures:
    """Reads a row of ncu's table, one kernel and one metric; newer versions append columns."""
    if not line.startswith('"'):
        return None
    cells = next(csv.reader([line]))
    if len(cells) < 15 or cells[0] == "ID":
        return None
    try:
        value = float(cells[14].replace(",", ""))
    except ValueError:
        return None
    return {"kernel": cells[4].partition("(")[0], "metric": cells[12], "unit": cells[13], "value": value}


READERS: dict[str, Callable[[str], Figures]] = {
    "gtest": of_gtest,
    "pytest": of_pytest,
    "sanitizer": of_sanitizer,
    "ncu": of_ncu,
}


def figures(line: str, prints: str, keep: Sequence[str]) -> Figures:
    return READERS[prints](line) if prints in READERS else of_json(line, keep)


def left_out(prints: str, rows: Sequence[dict[str, Any]], lines: Sequence[str] = ()) -> str:
    """Returns why a run that ended well is none: tests were skipped, or nothing ran. `lines`: those without
    figures."""
    if prints == "ncu" and not rows:
        return next((line for line in reversed(lines) if "==ERROR==" in line), "no kernel was profiled")
    if prints not in ("gtest", "pytest", "sanitizer"):
        return ""
    skipped = sum(row.get("skipped", 0) for row in rows)
    if skipped:
        return f"{skipped} tests were skipped"
    return "" if sum(row.get("passed", 0) for row in rows) else "no test ran"
