"""Words that comments, documents and messages do not use, and what to write instead.

Markdown is read, and comments and strings of Python and C++, without code in them. A phrase may go on in the
next line. The list is short, as that of TigerBeetle's src/tidy.zig: what reviews keep finding.
"""

import io
import re
import tokenize

WORDS = {
    r"one behind the other": "one after the other",
    r"behind": "after, past, following",
    r"beside": "next to, with, besides",
    r"whatever": "any, for any, regardless of",
    r"in place of": "instead of",
    r"(?:stands?|stood) for": "mean, be, represent",
    r"anew": "again",
    r"so many": "many, that many",
    r"in vain": "for nothing",
    r"(?:is|are) there twice": "occurs twice",
    r"(?-i:Returns none)": "Returns nullopt, null, nothing",
    r"(?-i:; none (?:if|means))": "; nullopt if, null if",
    r"code: of (?:the|a|each|any)": "`x` is the …'s, is that of …",
    r"pointers? of git-lfs": "Git LFS pointer",
    r"an own": "its own, their own",
    r"goes on with": "continues with",
    r"(?<!there )(?:is|are) no (?!longer\b|more\b|less\b|other\b|one\b)\w+": "is not a, are not",
    r"(?:(?<=; )|(?<=\())(?:none|null|nullopt|empty|-?\d+|\"\"): [a-z]\w*": "0 means …, None means …",
}
PATTERN = re.compile(
    "|".join(rf"(?P<w{i}>(?<!\w){words}(?!\w))" for i, words in enumerate(WORDS)), re.IGNORECASE
)
# Literals and comments of C++, in one pass, because each may have what begins the other.
CPP = re.compile(
    r'(?P<prose>R"\((?s:.*?)\)"|"(?:\\.|[^"\\\n])*"|//[^\n]*)'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|/\*(?s:.*?)\*/"
)
FENCED = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]+`")
# Where C++ is checked.
FOLDERS = ("core", "gpu", "transforms", "io", "engine", "bindings")
CPP_SUFFIXES = (".h", ".cc", ".cu")
LEFT_OUT = ("CHANGELOG.md",)  # history


def markdown(text):
    """Yields (line, prose) of a page; blank lines separate what belongs together."""
    prose = FENCED.sub(lambda code: "\n" * code[0].count("\n"), text)
    return [(number, line) for number, line in enumerate(prose.split("\n"), 1) if line.strip()]


def python(text):
    """Yields (line, prose) of a module's comments and strings."""
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield from enumerate(token.string.split("\n"), token.start[0])


def cpp(text):
    """Yields (line, prose) of a source's comments and strings."""
    for found in CPP.finditer(text):
        if prose := found["prose"]:
            yield from enumerate(prose.split("\n"), text.count("\n", 0, found.start()) + 1)


PROSE = {".md": markdown, ".py": python, **dict.fromkeys(CPP_SUFFIXES, cpp)}


def passages(path):
    """Yields (line of each character, text) for each run of adjacent lines of prose."""
    lines, run, last = [], "", None
    for number, prose in PROSE[path.suffix](path.read_text(encoding="utf-8")):
        if last is not None and number > last + 1:
            yield lines, run
            lines, run = [], ""
        words = CODE.sub("code", prose.strip().lstrip("/#").strip()) + " "
        lines += [number] * len(words)
        run, last = run + words, number
    yield lines, run


def findings(path):
    """Yields (line, message)."""
    replacements = list(WORDS.values())
    for lines, text in passages(path):
        for found in PATTERN.finditer(text):
            write = replacements[int(found.lastgroup[1:])]
            yield lines[found.start()], f'"{found[0]}": write {write}'


def checked(root):
    """The files that are checked: pages except the changelog, the package except what is generated, and
    FOLDERS.
    """
    folders = ["docs", "tests", "examples", "bench", "skills"]
    pages = [*root.glob("*.md"), *(path for top in folders for path in (root / top).rglob("*.md"))]
    package = (root / "bindings/python/stoker").rglob("*.py")
    sources = (path for top in FOLDERS for path in (root / top).rglob("*") if path.suffix in CPP_SUFFIXES)
    return sorted(path for path in [*pages, *package, *sources] if path.name not in LEFT_OUT)
