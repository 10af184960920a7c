"""skills/stoker/SKILL.md has the form of agentskills.io, and names only what stoker has.

test_documents.py runs its blocks. Here are the pieces of code in its text and its tables, apart from their
first columns: what the reader wants, or should not write.
"""

import ast
import inspect
import pkgutil
import re

import pytest
from pages import ROOT

pytest.importorskip("stoker", reason="the package is not installed here")

from snippets import lacking

SKILL = ROOT / "skills" / "stoker" / "SKILL.md"
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
OBJECTS = {"stoker": "stoker", "loader": "stoker.Loader", "source": "stoker.Source"}


def test_the_form():
    _, front, body = SKILL.read_text().split("---\n", 2)
    keys = dict(line.split(": ", 1) for line in front.splitlines())
    assert keys.keys() == {"name", "description"}
    assert keys["name"] == SKILL.parent.name
    assert 0 < len(keys["description"]) <= 1024
    assert body.count("\n") <= 250


def spans():
    """Returns the pieces of code outside of blocks that are to be checked."""
    lines = FENCED.sub("", SKILL.read_text()).split("\n")
    checked = [re.sub(r"^\|[^|]*\|", "", line) for line in lines]
    return [span for line in checked for span in re.findall(r"`([^`]+)`", line)]


def tree_of(span):
    """Returns the syntax tree of a piece of Python, or None. Keywords alone are options of a loader."""
    try:
        return ast.parse(f"stoker.Loader({span})" if re.match(r"\w+=", span) else span)
    except SyntaxError:
        return None


def named(node):
    """Returns the object of stoker that an expression names, or None. A name that stoker lacks raises."""
    root, *words = ast.unparse(node).split(".")
    if root not in OBJECTS or not all(map(str.isidentifier, words)):
        return None
    return pkgutil.resolve_name(".".join([OBJECTS[root], *words]))


def bind(call, function):
    """Raises a TypeError if the function does not take the arguments, apart from some that are left out."""
    this = [] if ast.unparse(call.func).startswith("stoker.") else ["self"]
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    inspect.signature(function).bind_partial(*this, *call.args, **options)


def test_the_code_in_its_text_names_what_stoker_has():
    found, calls = set(), 0
    for span in spans():
        if (tree := tree_of(span)) is None or lacking(tree):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and named(node) is not None:
                found.add(ast.unparse(node))
            if isinstance(node, ast.Call) and (function := named(node.func)):
                bind(node, function)
                calls += 1
    assert len(found) > 30 and calls > 40


def test_its_commands_are_those_of_stoker():
    commands = [span.split()[1] for span in spans() if re.match(r"stoker [a-z]+", span)]
    headings = re.findall(r"^## `stoker (\w+)`$", (ROOT / "docs" / "cli.md").read_text(), re.M)
    assert len(commands) > 3 and {*commands} <= {*headings}
