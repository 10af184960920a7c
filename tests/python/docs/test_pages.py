"""The pages hang together: links lead somewhere, messages are those of the code, the reference is complete.

MkDocs checks the links between the pages of docs/ again, as those of the site (./dev docs).
"""

import ast
import os
import pathlib
import re

import pytest
from pages import PAGES, ROOT

LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
SOURCES = ("core", "io", "transforms", "gpu", "engine", "bindings")
NAMED = re.compile(r"\bdocs/[\w-]+\.md(?:#[\w-]+)?")  # a page, in a message or a comment


def text_of(path):
    """Returns the page without its blocks."""
    return FENCED.sub("", path.read_text())


def anchors_of(path):
    """Returns the anchors that code hosts give to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text_of(path), re.M)
    plain = (re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def missing(page, target):
    """Returns what a link of a page leads to that is not there; empty if all is well."""
    name, _, anchor = target.partition("#")
    path = pathlib.Path(os.path.normpath(page.parent / name)) if name else page
    if not path.exists():
        return str(path)
    if anchor and anchor not in anchors_of(path):
        return f"{path}#{anchor}"
    return ""


def test_links_lead_to_files_and_headings():
    links = [(page, link["target"]) for page in PAGES for link in LINK.finditer(text_of(page))]
    within = [(page, target) for page, target in links if ":" not in target]
    assert len(within) > 100
    assert [f"{page}: {target}" for page, target in within if missing(page, target)] == []


def test_the_first_examples_are_not_cut_off():
    """At 1280 px a block of the site has 733 px, and a column of its code takes 7.7."""
    pages = [path for path in PAGES if path.parent.name == "docs" and path.name in ("index.md", "start.md")]
    lines = [
        line
        for path in pages
        for block in FENCED.finditer(path.read_text())
        for line in block[0].splitlines()
    ]
    assert len(pages) == 2 and len(lines) > 20
    assert [line for line in lines if len(line) > 90] == []


def test_llms_txt_lists_every_page(program_of_tools):
    """In the form of llmstxt.org: a heading, a quote, text, and sections that are lists of links."""
    about, *sections = program_of_tools("llms").text().split("\n## ")
    assert re.match(r"# stoker\n\n> \S.*\.\n\n(.+\n)+$", about)
    assert len(sections) > 5
    listed = []
    for section in sections:
        _, blank, *lines = section.strip().split("\n")
        links = [re.fullmatch(r"- \[[^\]]+\]\((\S+)\.(?:md|html)\): \S.*", line) for line in lines]
        assert blank == "" and lines and all(links), section
        listed += [ROOT / "docs" / f"{link[1]}.md" for link in links]
    assert sorted(listed) == [path for path in PAGES if (ROOT / "docs") in path.parents]


def files_with_text(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".py", ".pyi", ".cu"):
                yield path


def test_pages_that_the_code_names_are_there():
    named = {
        (path, name)
        for path in files_with_text(*SOURCES, "bench", "examples", "tests", "tools")
        for name in NAMED.findall(path.read_text())
    }
    assert len(named) > 20
    assert [f"{path}: {name}" for path, name in sorted(named) if missing(ROOT / "README.md", name)] == []


# --- messages ------------------------------------------------------------------------------------------

LITERAL = re.compile(r'R"\((?P<raw>.*?)\)"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.S)
ADJACENT = re.compile(r'"\s*\n\s*"')


def literals_of(path):
    """Returns the texts in a source, joined where the language joins them. Those of Python have gaps where
    values are."""
    source = path.read_text()
    if path.suffix == ".py":
        constants = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
        return [node.value for node in constants if isinstance(node.value, str)]
    found = LITERAL.finditer(ADJACENT.sub("", source))
    return [one["raw"] or (one["text"] or "").replace('\\"', '"') for one in found]


@pytest.fixture(scope="module")
def literals():
    return {path: literals_of(path) for path in files_with_text(*SOURCES)}


def messages():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    return re.findall(r"^### `(.+)`$", page, re.M)


def test_troubleshooting_is_by_message():
    headings = re.findall(r"^### .*$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)
    assert len(messages()) == len(headings) > 40


@pytest.mark.parametrize("message", messages())
def test_messages_are_those_of_the_code(message, literals):
    parts = [part.strip() for part in message.split("…") if part.strip(" …")]
    assert max(map(len, parts)) >= 10, "too short to say which message it is"
    assert any(all(any(part in one for one in texts) for part in parts) for texts in literals.values())


# --- the reference -------------------------------------------------------------------------------------


def test_the_reference_has_every_public_name():
    """A line `::: stoker.NAME` on a page of docs/reference. Read from the sources: nothing is imported."""
    documented = [
        name
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    ]
    assert [name for name in documented if documented.count(name) > 1] == []
    package = ROOT / "bindings" / "python" / "stoker"
    public = [f"stoker.{name}" for path in package.glob("*.py") for name in exported(path)]
    for part in ("tensorflow", "torch"):
        public += [f"stoker.{part}.{name}" for name in exported(package / part / "__init__.py")]
    missing, unknown = {*public} - {*documented, "stoker.__version__"}, {*documented} - {*public}
    assert (missing, unknown) == (set(), set()), "missing in docs/reference, and unknown there"


def test_the_page_of_specs_has_every_source():
    """Each kind in io/open_source.cc, with its keys. A row of the page's table may be for several kinds."""
    table = (ROOT / "io" / "open_source.cc").read_text()
    kinds = re.split(r"\.kind = ", table[table.index("MakeTable()") :])[1:]
    named = [re.findall(r'^"(\w+)"|\.name = "(\w+)"', kind) for kind in kinds]
    wanted = {(kind, key) for (kind, _), *keys in named for _, key in keys}
    page = (ROOT / "docs" / "loader-spec.md").read_text()
    rows = re.findall(r"^\| (`[^|]*`) \| `(\w+)` \| string \|", page, re.M)
    found = [(kind, key) for of, key in rows for kind in re.findall(r"`(\w+)`", of)]
    assert len(wanted) > 30 and len(found) == len(set(found))
    missing, unknown = wanted - {*found}, {*found} - wanted
    assert (missing, unknown) == (set(), set()), "missing in docs/loader-spec.md, and unknown there"


def exported(path):
    """Returns the names of a module's __all__."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
    return []
