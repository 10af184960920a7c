"""tools/old_libraries.py: programs that are linked with its libraries need no newer ones, and do the same."""

import pathlib
import re
import shutil

import pytest

SOURCE = pathlib.Path(__file__).with_name("old_functions.cc")
# Parts of libstdc++ that a process may have only once: caught exceptions, locales, streams, error categories.
ONLY_ONCE = re.compile(
    r"__cxa_get_globals|_ZNSt6locale|_ZSt4cout|_ZNSs4_Rep20_S_empty_rep_storageE|_ZNSt3_V2\w*category"
)
SYMBOLS = """
   1: 0000000000000010   4 TLS     GLOBAL DEFAULT   24 errno@@GLIBC_PRIVATE
   2: 00000000000892f0 250 FUNC    GLOBAL DEFAULT   16 pthread_moved@GLIBC_2.2.5
   3: 00000000000892f0 250 FUNC    GLOBAL DEFAULT   16 pthread_moved@@GLIBC_2.34
   4: 00000000000892f0   8 OBJECT  WEAK   DEFAULT   16 grown@@GLIBC_2.14
   5: 00000000000892f0   4 OBJECT  WEAK   DEFAULT   16 grown@GLIBC_2.3.4
   6: 00000000000892f0 250 FUNC    GLOBAL DEFAULT   16 gone@GLIBC_2.2.5
   7: 00000000000892f0 250 FUNC    GLOBAL DEFAULT   16 new@@GLIBC_2.29
   8: 0000000000000000   0 FUNC    GLOBAL DEFAULT  UND needed@GLIBC_2.2.5
   9: 0000000000000000   0 OBJECT  GLOBAL DEFAULT  ABS GLIBC_2.2.5
"""


@pytest.fixture(scope="module")
def tool(program_of_tools):
    return program_of_tools("old_libraries")


@pytest.fixture(scope="module")
def libraries(tool, tmp_path_factory):
    for program in ("c++", "readelf"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if tool.run("c++", "-print-file-name=libc.so") == "libc.so":
        pytest.skip("the compiler does not link glibc")
    folder = tmp_path_factory.mktemp("old")
    tool.make_stubs("c++", folder)
    return folder


def test_the_newest_version_that_is_allowed_is_chosen(tool):
    chosen = {name: (found["version"], found["size"]) for name, found in tool.allowed(SYMBOLS).items()}
    assert chosen == {"pthread_moved": ("GLIBC_2.2.5", "250"), "grown": ("GLIBC_2.14", "8")}
    homes = {name: tool.home(name, found, "libc.so.6") for name, found in tool.allowed(SYMBOLS).items()}
    assert homes == {"pthread_moved": "libpthread.so.0", "grown": "libc.so.6"}


def test_a_program_does_what_it_does_with_newer_libraries(tool, libraries, program_of_tools, tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("nowhere")
    paths = [tmp_path / name for name in ("file", "link", "missing", "file/below", "./file/..")]
    printed = []
    for name, options in {"new": [], "old": [f"@{libraries}/link"]}.items():
        tool.run("c++", "-std=c++20", "-O2", SOURCE, *options, "-o", tmp_path / name)
        printed.append(tool.run(tmp_path / name, *paths))
    assert printed[0] == printed[1]
    assert printed[0].startswith("a global of this program has been constructed 1\n")
    assert "\n010010\n" in printed[0], "a wait ends when its time has come, or when it is notified"
    newest = {}
    for name in ("new", "old"):
        needed = tool.run("readelf", "--version-info", "--wide", tmp_path / name)
        versions = re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)", needed)
        newest[name] = [v for v in versions if tuple(map(int, v[1].split("."))) > tool.NEWEST[v[0]]]
    assert newest["new"] and newest["old"] == []
    assert [*program_of_tools("check_wheel").findings_of_versions(tmp_path)] == []


def test_a_shared_library_shares_libstdcxx_with_its_program(tool, libraries, program_of_tools, tmp_path):
    library, plain, program = tmp_path / "libold.so", tmp_path / "libplain.so", tmp_path / "caller"
    source, caller = (SOURCE.with_name(f"old_{name}.cc") for name in ("library", "caller"))
    compiled = ["c++", "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", source]
    tool.run(*compiled, "-o", plain)
    tool.run(*compiled, f"@{libraries}/link", "-o", library)
    tool.run("c++", "-std=c++20", caller, library, "-Wl,--export-dynamic", "-o", program)
    printed = tool.run(program).splitlines()
    assert printed == ['"/nowhere/below" 1', "far", "waits by clock 1", "0"]
    exports = [program_of_tools("check_wheel").symbols_of(path)[0] for path in (plain, library)]
    assert "Wait" in exports[1] and exports[1] <= exports[0]
    symbols = tool.run("readelf", "--syms", "--wide", library)
    defined = re.findall(r"(?:GLOBAL|LOCAL|UNIQUE|WEAK) +[A-Z]+ +\d+ (\w+)$", symbols, re.MULTILINE)
    assert "stat" in defined and any("filesystem" in name for name in defined)
    assert [name for name in defined if ONLY_ONCE.match(name)] == []
