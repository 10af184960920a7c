"""llms.txt (llmstxt.org): a list of the documentation's pages for coding assistants.

The sections are those of mkdocs.yml's nav. The line of a page has its first sentence, if it begins with one,
and its headings; in the reference it has the names that the page documents.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAV = re.compile(r"^( *)- (?:([^:\n]+): ?)?(\S+\.md)?$", re.M)  # indent, title, page
FENCED = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
NOTE = """\
Links lead to Markdown (`start.html` is the page of `start.md`), and those of the reference to the docstrings
of the Python package. Transforms have torchvision's names and parameters. A loader has the options that
`help(stoker.Loader)` lists, and no others. Errors say what to change."""


def summary(page):
    """Returns what is on a page, in a line."""
    text = FENCED.sub("|", (DOCS / page).read_text(encoding="utf-8"))
    if names := re.findall(r"^::: (\S+)$", text, re.M):
        return ", ".join(f"`{name}`" for name in names)
    lead = LINK.sub(r"\1", text).lstrip().partition("\n")[2].lstrip()
    sentence = re.match(r"[^|*#-][^|]{,300}?\.(?=\s)", lead)
    headings = "; ".join(re.findall(r"^## (.*)$", text, re.M))
    return f"{' '.join(sentence[0].split())} {headings}".strip() if sentence else headings


def text():
    """Returns the file. Links are relative to it."""
    about = (DOCS / "index.md").read_text(encoding="utf-8").split("\n\n")[1]
    lines, section = ["# stoker\n", f"> {' '.join(about.split())}\n", NOTE], ""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for indent, title, page in NAV.findall(nav):
        if not page or indent == "  ":
            section = f"\n## {title}\n"
        if page:
            lines += [section] if section else []
            section = ""
            target = page.replace(".md", ".html") if page.startswith("reference/") else page
            lines.append(f"- [{title or 'Overview'}]({target}): {summary(page)}")
    return "\n".join(lines) + "\n"
