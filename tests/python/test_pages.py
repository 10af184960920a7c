"""Links of the pages, and pages that the code names, lead somewhere."""

import os
import pathlib
import re

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
