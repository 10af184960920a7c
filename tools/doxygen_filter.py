#!/usr/bin/env python3
"""Prints a header of ours for doxygen, which reads comments only if they are marked as documentation.

  tools/doxygen_filter.py FILE

Comments before a declaration become `///`, comments behind one `///<`, with their further lines. The comment
at the top describes the file. Indented lines of a comment are code.
"""

import pathlib
import re
import sys

WHOLE = re.compile(r"^(\s*)//(?!/)(.*)$")
BEHIND = re.compile(r"^(?P<code>(?!\s*[}#]).*[\w;,)}])\s+//\s(?!NOLINT)(?P<text>.*)$")
RULE = re.compile(r"^\s*-{3,}")


def text_of(text):
    """Escapes what has a meaning for doxygen. Marks in `…` are left as they are."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([\\@<>#&])", r"\\\1", p) for p in parts)


def filtered(lines):
    """Yields the lines, and one before them."""
    yield "/// @file"
    column = None  # of the comment behind the last declaration, while it goes on
    for line in lines:
        whole = WHOLE.match(line)
        behind = None if whole else BEHIND.match(line)
        if behind:
            column = line.index("// ", len(behind["code"]))
            yield f"{behind['code']}  ///< {text_of(behind['text'])}"
        elif whole and column is not None and line.index("//") == column:
            yield f"{whole[1]}///< {text_of(whole[2].strip())}"
        elif whole:
            column = None
            text = whole[2]
            if RULE.match(text):
                yield ""
            elif text.startswith("   "):
                yield f"{whole[1]}///     {text}"
            else:
                yield f"{whole[1]}///{text_of(text)}"
        else:
            column = None
            yield line


def main():
    print(*filtered(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()), sep="\n")


if __name__ == "__main__":
    main()
