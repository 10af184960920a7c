"""Finds the code blocks of the pages and the docstrings, and checks commands without running them."""

import ast
import dataclasses
import json
import pathlib
import re
import shlex
import textwrap

from repository import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("skills/*/SKILL.md"),
        *ROOT.glob("tests/**/*.md"),
    ]
)


@dataclasses.dataclass
class Block:
    """The text between two fences, or of an indented paragraph, which has no language."""

    page: str
    line: int  # of the first line of `text`
    language: str
    not_run: str  # the reason; empty if it is run
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks_of(path):
    """Returns the blocks in the page's order. A marker stands on the line before its block."""
    lines = path.read_text().split("\n")
    name = str(path.relative_to(ROOT))
    blocks, at = [], 0
    while at < len(lines):
        begin = at
        marker = re.fullmatch(r"<!-- not run: (.+) -->", lines[at - 1]) if at else None
        not_run = marker[1] if marker else ""
        fence = re.match(r"( *)```(\S*)", lines[at])
        if fence:
            at += 1
            while lines[at].strip() != "```":
                at += 1
            text = "\n".join(line[len(fence[1]) :] for line in lines[begin + 1 : at])
            blocks.append(Block(name, begin + 2, fence[2], not_run, text))
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at + 1 < len(lines) and (lines[at + 1].startswith("    ") or not lines[at + 1].strip()):
                at += 1
            blocks.append(Block(name, begin + 1, "", not_run, "\n".join(lines[begin : at + 1])))
        at += 1
    return blocks


def blocks_of_docstrings(path):
    """Returns the indented paragraphs of the docstrings of a module, in its order, as blocks of Python."""
    name = str(path.relative_to(ROOT))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    blocks = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, kinds) or ast.get_docstring(node) is None:
            continue
        first = node.body[0].lineno
        lines = ast.get_docstring(node).split("\n")
        at = 1
        while at < len(lines):
            begin = at
            if lines[at].startswith("    ") and not lines[at - 1].strip():
                while at + 1 < len(lines) and (lines[at + 1].startswith("    ") or not lines[at + 1].strip()):
                    at += 1
                text = textwrap.dedent("\n".join(lines[begin : at + 1]))
                blocks.append(Block(name, first + begin, "python", "", text.rstrip()))
            at += 1
    return sorted(blocks, key=lambda block: block.line)


BLOCKS = {str(path.relative_to(ROOT)): blocks_of(path) for path in PAGES}
DOCSTRINGS = [
    block
    for path in sorted((ROOT / "bindings" / "python" / "stoker").rglob("*.py"))
    for block in blocks_of_docstrings(path)
]


def commands_of(block):
    """Returns commands as lists of words. Comments are left out; `&&` separates commands."""
    lines = block.text.replace("\\\n", " ").split("\n")
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]
            words = words[end + 1 :]


# --- looking a command up ---------------------------------------------------------------------------


def look_up(words):
    """Asserts that the things a command names exist: the script, its options, presets, packages."""
    program, rest = words[0], words[1:]
    name = pathlib.Path(program).name
    if program == "sudo":
        look_up(rest)
    elif program == "taskset":
        look_up(rest[2:])
    elif program == "./dev":
        help_text = (ROOT / "dev").read_text().partition("Environment:")[0]
        assert re.search(rf"^  (\w+ \| )?{rest[0]}\b", help_text, re.M), f"./dev has no {rest[0]}"
    elif name == "pip":
        wheels = "build/dist/stoker-*.whl"
        assert rest[:2] in (["install", "."], ["install", wheels]), (
            "a checkout or its wheel is what is installed"
        )
    elif name == "pytest":
        _look_paths_up(rest)
    elif name in ("python", "python3"):
        _look_python_up(rest)
    elif name == "apt":
        _look_packages_up(rest)
    elif program in ("cmake", "ctest", "ninja"):
        _look_cmake_up(rest)
    elif program.endswith(".py"):
        _look_options_up(ROOT / program, rest)
    elif program.endswith(".sh"):
        script = (ROOT / program).read_text()
        assert re.search(rf"^\s*{rest[0]}\b", script, re.M), f"{program} has no {rest[0]}"
    else:
        _look_program_up(program, rest)


def _look_options_up(script, words):
    assert script.is_file(), f"{script} is not there"
    source = "".join(path.read_text() for path in script.parent.glob("*" + script.suffix))
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--"):
            assert f'"{option}"' in source, f"{script} has no {option}"


def _look_program_up(program, words):
    """build/bench/x is made from bench/x.cc, or from a folder bench/x with a main.cc."""
    assert program.startswith("build/"), f"nothing is known of {program}"
    name = pathlib.Path(program).name
    sources = [ROOT.joinpath(program.removeprefix("build/")).with_suffix(".cc")]
    sources += [*ROOT.glob(f"bench/**/{name}.cc"), *ROOT.glob(f"bench/**/{name}/main.cc")]
    sources = [source for source in sources if source.is_file()]
    assert sources, f"nothing makes {program}"
    _look_options_up(sources[0], words)


def _look_python_up(words):
    if words[0] == "-m":
        assert words[1] in ("pytest", "venv"), f"nothing is known of {words[1]}"
        _look_paths_up(words[2:])
    else:
        _look_options_up(ROOT / words[0], words[1:])


def _look_paths_up(words):
    for word in words:
        if "/" in word and not word.startswith("-"):
            assert (ROOT / word).exists(), f"there is no {word}"


def _look_packages_up(words):
    assert words[0] == "install"
    setup = (ROOT / "dev").read_text()
    for package in words[1:]:
        assert re.search(rf"(?<![\w.-]){re.escape(package)}(?![\w.-])", setup), f"./dev knows no {package}"


def _look_cmake_up(words):
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    for flag, value in zip(words, words[1:]):
        if flag == "--preset":
            assert value in {preset["name"] for preset in presets}, f"there is no preset {value}"
    for word in words:
        if word.startswith("-DSTOKER"):
            option = word[2:].partition("=")[0]
            assert option in (ROOT / "CMakeLists.txt").read_text(), f"there is no option {option}"
