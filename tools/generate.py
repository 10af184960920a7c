#!/usr/bin/env python3
"""Writes what follows from the library's tables: Python's classes for transforms
(transforms/spec/transform_table.cc), the options in the signatures and docstrings of Python's Loader and
stoker.torch.DataLoader (engine/options/option_table.cc), the tables of both in docs/loader-spec.md, and the
counters (engine/metrics/counters.cc) in the docstring of Loader.stats and in docs/counters.md.

  tools/generate.py [--check]

`./dev generate` runs it with the Python that has this stoker installed. --check writes nothing, and exits
with 1 if a file would change.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRANSFORMS = "bindings/python/stoker/_transforms.py"
LOADER = "bindings/python/stoker/_loader.py"
TORCH = "bindings/python/stoker/torch/_dataloader.py"
SPEC_PAGE = "docs/loader-spec.md"
COUNTERS_PAGE = "docs/counters.md"
WIDTH = 108


def described():
    """The library's tables. Loads the extension alone, because the package's Python may be out of date."""
    package = importlib.util.find_spec("stoker")
    if package is None:
        sys.exit("tools/generate.py: stoker is not installed for this Python; try ./dev build")
    for path in pathlib.Path(package.submodule_search_locations[0]).glob("_stoker*.so"):
        loader = importlib.machinery.ExtensionFileLoader("_stoker", str(path))
        spec = importlib.util.spec_from_loader("_stoker", loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return json.loads(module.described())
    sys.exit(f"tools/generate.py: no extension module in {package.submodule_search_locations[0]}")


def replaced(name, text, pattern, lines):
    """The text of the file `name` with `lines` where the pattern matches, which is one place."""
    text, found = re.subn(pattern, lambda _: lines, text, flags=re.M | re.S)
    if found != 1:
        sys.exit(f"tools/generate.py: {name} has {found} places to write, not 1, for the pattern {pattern}")
    return text


# --- Python ---------------------------------------------------------------------------------------------

# The type of each kind of parameter in a signature, and its default if that is not the option's.
ANNOTATIONS = {
    "real": "float",
    "integer": "int",
    "boolean": "bool",
    "choice": "str",
    "box format": "Any",
    "affine padding": "str",
    "interpolation": "Any",
    "range": "Sequence[float]",
    "optional range": "Sequence[float] | None",
    "range or number": "Range",
    "spread": "Range",
    "optional spread": "Range | None",
    "shares": "Sequence[float] | None",
    "shear": "Range | None",
    "center": "Sequence[float] | None",
    "factor": "Range | None",
    "shift": "Range | None",
    "gain": "Range",
    "turn": "Range",
    "channels": "Sequence[float]",
    "positive channels": "Sequence[float]",
    "sides": "Size",
    "sides or batch": 'Size | Literal["batch"]',
    "width and height": "Size",
    "size": "Size | None",
    "side or sides": "Size",
    "optional side": "int | None",
    "taps": "int | Sequence[int]",
    "margins": "Margins | None",
    "fill": "Fill | None",
    "optional fill": "Fill | None",
    "blended fill": "Fill | None",
    "value or noise": "float | Sequence[float] | str",
    "transforms": "Sequence[Transform]",
    "weights": "Sequence[float] | None",
    "overlaps": "Sequence[float] | None",
}
DEFAULTS = {
    "factor": None,
    "shift": None,
    "margins": None,
    "optional side": None,
    "optional range": None,
    "shares": None,
    "shear": None,
    "center": None,
    "blended fill": 0,
    "value or noise": 0,
    "weights": None,
    "overlaps": None,
}
# The base of a class, if it is not Transform.
BASES = {"RandomChoice": "ImageOrBatchChoice"}
REQUIRED = ("sides", "sides or batch", "size", "taps", "channels", "positive channels", "transforms")


def option_types(row):
    """The types of a loader's option in Python and in JSON."""
    if "choices" in row:
        return "Any" if row["name"] == "dtype" else "str", "string"
    if row["name"] == "channels":
        return "str | int", "string or integer"
    if row["name"] == "on_bad":
        return "str | Mapping[str, str]", "string"
    if row["name"] == "buckets":
        return "Buckets | str", "string"
    if row["name"] in ("cache", "tokens"):
        return "str", "string"
    if isinstance(row.get("default"), str):
        return "str | os.PathLike[str]", "string"
    if "low" not in row:
        return "bool", "boolean"
    return ("float", "number") if isinstance(row["low"], float) else ("int", "integer")


def python_text(value):
    if isinstance(value, str):
        return f'"{value}"'
    return f"({', '.join(map(python_text, value))})" if isinstance(value, list) else repr(value)


def field(parameter):
    """The line of a parameter in its class."""
    kind, option = parameter["kind"], parameter["options"][0]
    line = f"    {parameter['name']}: {ANNOTATIONS[kind]}"
    if kind in REQUIRED:
        return line
    if option.get("required"):
        return line.removesuffix(" | None")
    default = option["default"]
    if kind == "fill":
        default = default[0]  # of three equal ones
    return f"{line} = {python_text(DEFAULTS.get(kind, default))}"


def paragraph(text, first, rest):
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def python_class(row):
    summary, *more = row["doc"].split("\n\n")
    lines = ["@dataclass(frozen=True)", f"class {row['name']}({BASES.get(row['name'], 'Transform')}):"]
    lines += [paragraph('"""' + summary, "    ", "    "), ""]
    for text in more:
        lines += [paragraph(text, "    ", "    "), ""]
    if not row["parameters"]:
        return "\n".join([*lines[:-1], '    """']) + "\n"
    lines += ["    Args:"]
    lines += [paragraph(f"{p['name']}: {p['doc']}", " " * 8, " " * 12) for p in row["parameters"]]
    lines += ["", "    Raises:", "        ValueError, TypeError: naming the parameter.", '    """', ""]
    return "\n".join([*lines, *map(field, row["parameters"])]) + "\n"


PYTHON_HEADER = '''"""Transforms: torchvision's names and parameters, as plain values.

Images are RGB with 8 bits a channel (gray ones get three equal channels). Sizes are in pixels, an int
or (height, width), from 1 to 65,535. A transform does nothing by itself: a `Loader` or a `Compose`
compiles a list of them into one pass.

Those that change what an image looks like work on images that have one size: they come after the transform
that makes the size, and before `Normalize`. `RandomErasing` works on the finished values and is last, but
for `PadTo`, with which images may differ in size.
"""

# Written by tools/generate.py from transforms/spec/transform_table.cc, which is the file to change.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stoker._parameters import Fill, ImageOrBatchChoice, Margins, Range, Size, Transform

'''


def python_module(rows):
    names = "".join(f'    "{name}",\n' for name in sorted(["Transform", *(row["name"] for row in rows)]))
    return PYTHON_HEADER + f"__all__ = [\n{names}]\n\n\n" + "\n\n".join(map(python_class, rows))


def range_text(row):
    if isinstance(row["low"], float):
        return f"{row['low']:g} to {row['high']:,g}"
    low = 1 if row["zero"] else row["low"]
    return f"{low} to 2**64 - 1" if row["high"] == 2**64 - 1 else f"{low:,} to {row['high']:,}"


def listed(names):
    *most, last = [f'"{name}"' for name in names]
    return f"{', '.join(most)} or {last}"


def option_doc(row):
    """The lines of a loader's option in the docstring."""
    text = row["doc"]
    if "choices" in row:
        text += f": {listed(row['choices'])}"
    if "low" in row:
        text += f", {range_text(row)}"
    if row["zero"]:
        text += f"; None means {row['zero']}"
    return paragraph(f"{row['name']}: {text}. {row['more']}".rstrip(), " " * 8, " " * 12)


def option_parameter(row):
    """The line of a loader's option in the signature."""
    line = f"        {row['name']}: {option_types(row)[0]}"
    return f"{line} | None = None," if row["zero"] else f"{line} = {python_text(row['default'])},"


def key_of_counter(row):
    return f'cache["{row["name"]}"]' if row["of_cache"] else row["name"]


def counter_doc(row):
    """The lines of a counter in the docstring."""
    text = f"- `{key_of_counter(row)}`: {row['doc']}. {row['more']}".rstrip()
    return paragraph(text, " " * 8, " " * 10)


def passed_on(rows):
    """The lines of the loader's options in a dictionary."""
    return "".join(f'            "{row["name"]}": {row["name"]},\n' for row in rows)


def loader_module(text, rows, counters):
    """The module with all options between `transforms` and `runtime`, in docstring and signature, and all
    counters in the docstring of `stats`."""
    lines = "\n".join(counter_doc(row) for row in counters if not row["of_device"]) + "\n"
    first, last = r"^ {8}- `samples`: ", r'^ {8}"""\n {8}return self._native.stats\(\)'
    text = replaced(LOADER, text, rf"{first}.*?(?={last})", lines)
    docs = "\n".join(map(option_doc, rows)) + "\n"
    parameters = "\n".join(map(option_parameter, rows)) + "\n"
    first, last = rf"^ {{8}}{rows[0]['name']}: ", r"^ {8}runtime: "
    text = replaced(LOADER, text, rf"{first}(?!int ).*?(?={last})", docs)
    text = replaced(LOADER, text, rf"{first}int .*?(?={last})", parameters)
    return replaced(LOADER, text, r"(?<=^ {8}given = {\n).*?(?=^ {8}}\n)", passed_on(rows))


# The options whose lines in the DataLoader are written by hand. It has PyTorch's name, default or meaning
# for each but `seed`, which stands among them, and `decode`, which is to_device's, too.
OF_TORCH = (
    *("batch_size", "batch_tokens", "tokens", "shuffle", "seed", "dtype", "layout", "drop_remainder"),
    *("rank", "world", "remainder", "pin_memory", "decode"),
)


def torch_module(text, rows):
    """The module with all other options after `remainder`, in docstring, signature and dictionary."""
    rows = [row for row in rows if row["name"] not in OF_TORCH]
    # The names of an item of a docstring are on one line.
    names = textwrap.wrap(", ".join([*(row["name"] for row in rows), "runtime"]), 75)
    docs = "".join(f"        {line.rstrip(',')}: as for `stoker.Loader`.\n" for line in names)
    parameters = "\n".join(map(option_parameter, rows)) + "\n"
    first, last = rf"^ {{8}}{rows[0]['name']},", r"^ {8}buffers: "
    text = replaced(TORCH, text, rf"{first}.*?(?={last})", docs)
    first = r"(?<=^ {8}remainder: str = \"pad\",\n)"
    text = replaced(TORCH, text, rf"{first}.*?(?={last})", parameters)
    first, last = r"(?<=^ {12}\"remainder\": remainder,\n)", r"^ {12}\"runtime\": "
    return replaced(TORCH, text, rf"{first}.*?(?={last})", passed_on(rows))


# --- tables ------------------------------------------------------------------------------------------------


def number_text(value):
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    )


def json_text(value):
    """A default as the JSON has it, short."""
    if isinstance(value, list):
        return f"[{', '.join(map(json_text, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)


def key_text(option):
    """A key of a transform: its default, and what it may be."""
    parts = ["required" if option.get("required") else f"`{json_text(option['default'])}`"]
    if option.get("default", 0) is None:
        parts = ["none"]
    others = [f'`"{name}"`' for name in option.get("choices", ()) if name != option.get("default")]
    if others:
        parts.append(("or " if "default" in option else "one of ") + ", ".join(others))
    of_sides = option.get("low") in (0, 1) and option["high"] == 65535  # the page says it once
    if "low" in option and not of_sides:
        low, high = number_text(option["low"]), number_text(option["high"])
        if "step" in option:
            second = option["low"] + option["step"]
            parts.append(f"{low} or {high}" if second == option["high"] else f"{low}, {second}, … or {high}")
        else:
            parts.append(f"at most {high}" if 0 < option["low"] < 0.001 else f"{low} to {high}")
    if "below" in option:
        parts.append(f"below `{option['below']}`")
    if "note" in option:
        parts.append(option["note"])
    return f"`{option['name']}`: {', '.join(parts)}"


def table_of_transforms(rows):
    lines = ["| `name` | keys, defaults |", "|---|---|"]
    for row in rows:
        options = [o for p in row["parameters"] for o in p["options"]]
        lines.append(f"| `{row['name']}` | {'; '.join(map(key_text, options))} |")
    return "\n".join(lines)


def table_of_options(rows):
    lines = ["| key | type | default | range | what it says |", "|---|---|---|---|---|"]
    for row in rows:
        default = row.get("default", "required")
        if default != "required":
            default = f"{default:,}" if "low" in row else f"`{json.dumps(default)}`"
        ranged = ", ".join(f'`"{name}"`' for name in row.get("choices", ()))
        if "low" in row:
            ranged = range_text({**row, "zero": None}).replace("2**64 - 1", "2⁶⁴ − 1")
        none = "0" if "low" in row else json.dumps(row.get("default"))
        doc = row["doc"] + (f"; {none} means {row['zero']}" if row["zero"] else "")
        cells = (f"`{row['name']}`", option_types(row)[1], default, ranged, doc)
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def table_of_counters(rows):
    lines = ["| `stats()` | unit | Prometheus | what it says |", "|---|---|---|---|"]
    for row in rows:
        metric = f"`{row['metric']}`" if row["metric"] else ""
        doc = f"{row['doc']}. {row['more']}".rstrip() + (" Of device loaders." if row["of_device"] else "")
        cells = (f"`{key_of_counter(row)}`", row["unit"] or "count", metric or "–", doc)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def with_tables(name_of_page, text, tables):
    """The page with each table between its two marks."""
    for name, table in tables.items():
        begin = re.escape(f"<!-- written by tools/generate.py: {name} -->\n\n")
        text = replaced(name_of_page, text, rf"(?<={begin}).*?(?=\n\n<!-- end -->)", table)
    return text


# ------------------------------------------------------------------------------------------------------------


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="write nothing")
    given = arguments.parse_args()
    tables = described()
    options, counters = tables["loader"], tables["counters"]
    texts = {name: (ROOT / name).read_text() for name in (LOADER, TORCH, SPEC_PAGE, COUNTERS_PAGE)}
    of_spec = {"transforms": table_of_transforms(tables["transforms"]), "loader": table_of_options(options)}
    of_counters = {"counters": table_of_counters(counters)}
    written = {
        TRANSFORMS: python_module(tables["transforms"]),
        LOADER: loader_module(texts[LOADER], options, counters),
        TORCH: torch_module(texts[TORCH], options),
        SPEC_PAGE: with_tables(SPEC_PAGE, texts[SPEC_PAGE], of_spec),
        COUNTERS_PAGE: with_tables(COUNTERS_PAGE, texts[COUNTERS_PAGE], of_counters),
    }
    written = {ROOT / name: text for name, text in written.items()}
    stale = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        said = "is out of date; run ./dev generate" if given.check else "written"
        print(f"{path.relative_to(ROOT)}: {said}")
        if not given.check:
            path.write_text(written[path])
    return 1 if stale and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
