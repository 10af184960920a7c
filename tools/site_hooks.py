"""Hooks of mkdocs.yml: the reference of the C++ headers, links that leave docs/, and llms.txt.

Pages link to files of the repository by relative paths, which code hosts follow. In the site such a link
leads to the C++ reference if it names a header of it, and is text otherwise: there is no public address yet.
A link whose text is the name of a page gets the page's heading for its text. Next to each page is its
Markdown, which llms.txt lists.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
FRONT = pathlib.Path("bindings/cpp/stoker/stoker.h")
SOUGHT = ("segmentation", "keypoints", "letterbox")  # what batches.md says that there is, and is not
FRONT_PAGE = '<meta http-equiv="refresh" content="0; url=../reference/cpp.html">'
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")

sys.path.insert(0, str(ROOT / "tools"))
import check  # noqa: E402
import llms  # noqa: E402


def run_doxygen(out):
    """Writes the C++ reference to `out`, and returns which page each header has."""
    headers = set()
    check.reached(ROOT, FRONT, headers)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    settings = (DOCS / "Doxyfile").read_text() + "".join(
        f"{name} = {value}\n"
        for name, value in {
            "INPUT": " ".join(sorted(map(str, headers))),
            "INPUT_FILTER": f'"{sys.executable} tools/doxygen_filter.py"',
            "STRIP_FROM_PATH": ROOT,
            "OUTPUT_DIRECTORY": out,
            "GENERATE_TAGFILE": out / "tags.xml",
        }.items()
    )
    try:
        done = subprocess.run(
            ["doxygen", "-"], input=settings, cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise PluginError("doxygen is not installed; ./dev docs installs it") from error
    if done.returncode != 0:
        raise PluginError(f"doxygen: {done.stdout}{done.stderr}")
    pages = {}
    for compound in xml.etree.ElementTree.parse(out / "tags.xml").iterfind("compound[@kind='file']"):
        path = pathlib.Path(compound.findtext("path", ""), compound.findtext("name", ""))
        pages[path.relative_to(ROOT)] = compound.findtext("filename")
    if pages.keys() != headers:
        raise PluginError(f"doxygen made no page of {', '.join(map(str, headers ^ pages.keys()))}")
    return pages


def on_files(files, config):
    """Adds the C++ reference below cpp/."""
    out = ROOT / "build" / "doxygen"
    config.extra["page_of_header"] = run_doxygen(out)
    for path in sorted((out / "html").rglob("*")):
        if path.is_file():
            name = "cpp/" + path.relative_to(out / "html").as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    files.remove(files.get_file_from_path("cpp/index.html"))  # doxygen's front page is empty
    files.append(File.generated(config, "cpp/index.html", content=FRONT_PAGE))
    return files


def title_of(path):
    """Returns the heading of a page."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def mended(link, page, page_of_header):
    """Returns what replaces a link of a page."""
    target, text = link["target"], link["text"]
    if ":" in target or target.startswith("#"):
        return link[0]
    path = pathlib.Path(
        os.path.normpath(DOCS / pathlib.Path(page.file.src_uri).parent / target.partition("#")[0])
    )
    if path.is_relative_to(DOCS):
        return f"[{title_of(path)}]({target})" if text == path.name and path.is_file() else link[0]
    if not path.exists():
        raise PluginError(f"{page.file.src_uri} links to {target}, which is not there")
    name = path.relative_to(ROOT)
    if name in page_of_header:
        up = "../" * page.file.src_uri.count("/")
        return f"[{text}]({up}cpp/{page_of_header[name]})"
    return f"`{name}`" if str(name).endswith(text.strip("`")) else f"{text} (`{name}`)"


def on_page_markdown(markdown, page, config, files):
    """Mends the links of a page, but not what looks like one in a block, and writes the Markdown."""
    page_of_header = config.extra["page_of_header"]
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    parts[::2] = [LINK.sub(lambda link: mended(link, page, page_of_header), part) for part in parts[::2]]
    copy = pathlib.Path(config.site_dir, page.file.src_uri)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("".join(parts), encoding="utf-8")
    return "".join(parts)


@event_priority(-200)  # after the plugin `offline` has written its index
def on_post_build(config):
    """Writes llms.txt. Checks that a page that is opened as a file can be searched, and that nothing of it is
    on a server.
    """
    site = pathlib.Path(config.site_dir)
    (site / "llms.txt").write_text(llms.text(), encoding="utf-8")
    index = site / "search" / "search_index.js"
    if not index.is_file():
        raise PluginError(f"{index} is not there; pages opened as files have no search without it")
    text = index.read_text(encoding="utf-8").lower()
    if missing := [word for word in SOUGHT if word not in text]:
        raise PluginError(f"the search does not find {', '.join(missing)}")
    front = (site / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'<script[^>]* src="([^"]*)"', front)
    wrong = [source for source in sources if not (site / source).is_file()]
    if wrong or "iframe-worker.js" not in sources:
        raise PluginError(f"index.html loads {', '.join(sources)}: iframe-worker.js and files of the site")
