"""The style checks find the faults that they exist for: each is shown one planted fault, and a sound
counterpart.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

HEADER = "// What it promises.\n#pragma once\n\n#include <vector>\n"


@pytest.fixture
def tree(tmp_path, root):
    """A small tree that passes every check; write(path, text) adds to it or changes it."""
    for name in (".clang-format", ".clang-tidy"):
        shutil.copy(root / name, tmp_path)

    class Tree:
        folder = tmp_path

        def write(self, path, text):
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

        def check(self, name, *options):
            done = subprocess.run(
                [sys.executable, root / "tools/check.py", "--root", tmp_path, *options, name],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            )
            return done.returncode, done.stdout + done.stderr

    tree = Tree()
    tree.write("core/value.h", HEADER)
    tree.write("io/reader.h", HEADER + '#include "core/value.h"\n')
    tree.write("io/reader.cc", '#include "io/reader.h"\n\n#include <liburing.h>\n')
    tree.write("transforms/lanes-inl.h", "#if defined(LANES)\n#endif\n#include <hwy/highway.h>\n")
    return tree


def test_tree_passes(tree):
    assert tree.check("tree") == (0, "tree: ok\n")


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("core/a.cc", '#include "io/reader.h"\n', "core may include only"),
        ("transforms/a.cc", '#include "io/reader.h"\n', "transforms may include only"),
        ("io/a.cc", '#include "tests/a.h"\n', "io may include only"),
        ("io/a.cc", '#include "reader.h"\n', "not a path from the root"),
        ("io/a.h", HEADER + "#include <liburing.h>\n", "belong in a .cc file"),
        ("io/a.h", HEADER + "#include <tbb/task_arena.h>\n", "belong in a .cc file"),
        ("io/a.h", "#include <vector>\n", "no #pragma once"),
        ("io/a.h", HEADER + "#ifdef __linux__\n#endif\n", "conditional compilation"),
        ("io/file_utils.cc", "\n", "says nothing"),
        ("io/utils/a.cc", "\n", "says nothing"),
    ],
)
def test_tree_finds(tree, path, text, message):
    tree.write("tests/a.h", HEADER)
    tree.write(path, text)
    code, output = tree.check("tree")
    assert (code, message in output, path in output) == (1, True, True), output


PATCH = """A sentence.

--- a/core/list.h
+++ b/core/list.h
@@ -1,3 +1,3 @@
 #pragma once
-int one();
+int two();
 int three();
@@ -9 +9,2 @@
 int nine();
+int ten();
"""


def test_patches_that_apply(tree):
    tree.write("core/list.h", "#pragma once\nint one();\nint three();\nint nine();\n")
    tree.write("tests/one.patch", PATCH)
    assert tree.check("tree") == (0, "tree: ok\n")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([5], "#pragma once\nint 1();\nint three();\nint nine();\n"),
        ([5], "#pragma once\nint one();\nint three();  // more\nint nine();\n"),
        ([10], "#pragma once\nint one();\nint three();\n"),
        ([5, 10], None),
    ],
)
def test_patches_that_do_not_apply(tree, lines, text):
    if text is not None:
        tree.write("core/list.h", text)
    tree.write("tests/one.patch", PATCH)
    found = [f"tests/one.patch:{line}: does not apply: the file has no such lines\n" for line in lines]
    assert tree.check("tree") == (1, "".join(found) + "tree: FOUND SOMETHING\n")


def test_a_patch_without_hunks(tree):
    tree.write("tests/one.patch", "A sentence.\n")
    assert tree.check("tree") == (1, "tests/one.patch: is not a unified diff\ntree: FOUND SOMETHING\n")


def test_tests_may_include_anything(tree):
    tree.write("tests/a.h", HEADER + '#include <gtest/gtest.h>\n#include "io/reader.h"\n')
    assert tree.check("tree")[0] == 0


# Pairs of a text, in a comment or a page, and the word that the check proposes; None if it has no finding.
PROSE = [
    ("the byte behind the header", "after"),
    ("rows, one behind\n// the other", "one after the other"),
    ("a number of so many\n// bits", "many"),
    ("the number of threads; 0: as many as cores", "0 means"),
    ("it is no JPEG", "not a"),
    ("there is no JPEG, and no longer any after the header; 0 means none", None),
]


@pytest.mark.parametrize(("text", "write"), PROSE)
@pytest.mark.parametrize("path", ["core/a.cc", "bindings/python/stoker/a.py", "SECURITY.md"])
def test_words(tree, path, text, write):
    start = {".cc": "// ", ".py": "# ", ".md": ""}[path[path.rindex(".") :]]
    tree.write(path, "\n" + start + text.replace("// ", start) + "\n")
    code, output = tree.check("words")
    if write:
        assert (code, output.startswith(f"{path}:2: "), write in output) == (1, True, True), output
    else:
        assert (code, output) == (0, "words: ok\n")


def test_words_of_messages(tree):
    tree.write("core/a.cc", 'const char* const kText = "see // beside";\nconst char k = \'"\';  // anew\n')
    tree.write("bindings/python/stoker/a.py", 'raise ValueError("a file beside it")\n')
    code, output = tree.check("words")
    assert (code, [line.split(" ")[0] for line in output.splitlines()]) == (
        1,
        ["bindings/python/stoker/a.py:1:", "core/a.cc:1:", "core/a.cc:2:", "words:"],
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("core/a.cc", "int behind = 1'000;  // isn't\nint beside = 1'000;\n"),
        ("bindings/python/stoker/a.py", "behind = 1\n"),
        ("SECURITY.md", "`behind`\n\n```sh\nbehind\n```\n"),
        ("CHANGELOG.md", "behind\n"),
    ],
)
def test_words_are_those_of_prose(tree, path, text):
    tree.write(path, text)
    assert tree.check("words") == (0, "words: ok\n")


@pytest.mark.skipif(not shutil.which("clang-format"), reason="clang-format is not installed")
def test_format(tree):
    assert tree.check("format")[0] == 0
    tree.write("io/a.cc", "int  x ;\n")
    assert tree.check("format")[0] == 1
    assert tree.check("format", "--fix")[0] == 0
    assert (tree.folder / "io/a.cc").read_text() == "int x;\n"


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shell(tree):
    tree.write("dev", "#!/bin/bash\necho ok\n")
    assert tree.check("shell")[0] == 0
    tree.write("dev", "#!/bin/bash\nrm -r $1\n")
    assert tree.check("shell")[0] == 1


@pytest.mark.skipif(not shutil.which("clang-tidy"), reason="clang-tidy is not installed")
def test_tidy(tree):
    def add(path, text):
        tree.write(path, text)
        entry = {
            "directory": str(tree.folder),
            "file": path,
            "command": f"c++ -std=c++20 -I{tree.folder} -c {path}",
        }
        tree.write("build/compile_commands.json", json.dumps([entry]))

    assert tree.check("tidy")[0] == 2  # no build: an error instead of passing
    tree.write("io/value.h", "#pragma once\ninline int* Value() { return nullptr; }\n")
    add("io/a.cc", '#include "io/value.h"\nint* value = Value();\n')
    assert "1 files looked at, 0 with" in tree.check("tidy")[1]
    assert "0 files looked at, 0 with" in tree.check("tidy")[1]  # nothing has changed
    assert "1 files looked at, 0 with" in tree.check("tidy", "--again")[1]
    for mark in (tree.folder / "cache/stoker/tidy").iterdir():
        os.utime(mark, (0, 0))
    assert "1 files looked at, 0 with" in tree.check("tidy")[1]  # what passed long ago is not remembered
    tree.write("io/value.h", "#pragma once\ninline int* Value() { return 0; }\n")
    for _ in range(2):  # a header's fault is found, and again: what did not pass is not remembered
        code, output = tree.check("tidy")
        assert (code, "modernize-use-nullptr" in output) == (1, True), output
    add("io/a.cc", "class lower {};\n")
    assert "readability-identifier-naming" in tree.check("tidy")[1]


@pytest.mark.skipif(not shutil.which("clang-tidy"), reason="clang-tidy is not installed")
def test_tidy_of_sources_that_are_compiled_together(tree):
    """A fault in any of them is found, and none is taken for a header."""
    names = ["io/a.cc", "io/b.cc"]
    unity = "build/Unity/unity_0_cxx.cxx"
    tree.write(unity, "".join(f'#include "{tree.folder / name}"\n' for name in names))
    entry = {
        "directory": str(tree.folder),
        "file": unity,
        "command": f"c++ -std=c++20 -I{tree.folder} -c {unity}",
    }
    tree.write("build/compile_commands.json", json.dumps([entry]))
    for name in names:
        tree.write(name, f"#include <vector>\nusing std::vector;\nvector<int> Of{name[3].upper()}();\n")
    assert "2 files looked at, 0 with" in tree.check("tidy")[1]
    tree.write("io/b.cc", "int* Value() { return 0; }\n")
    code, output = tree.check("tidy")
    assert (code, "modernize-use-nullptr" in output, "io/b.cc:1" in output) == (1, True, True), output


@pytest.mark.skipif(not shutil.which("clang-tidy"), reason="clang-tidy is not installed")
def test_tidy_near_a_change(tree):
    """A changed header is checked in one of the sources that include it, a changed source always."""
    command = f"c++ -std=c++20 -I{tree.folder} -c "
    names = ["io/a.cc", "io/b.cc", "io/c.cc"]
    entries = [{"directory": str(tree.folder), "file": name, "command": command + name} for name in names]
    tree.write("build/compile_commands.json", json.dumps(entries))
    tree.write("io/value.h", "#pragma once\ninline int* Value() { return nullptr; }\n")
    for name in names:
        tree.write(name, f'#include "io/value.h"\nint* {name[3]} = Value();\n')
    assert "3 files looked at, 0 with" in tree.check("tidy", "--near")[1]
    assert "0 files looked at, 0 with" in tree.check("tidy", "--near")[1]
    tree.write("io/value.h", "#pragma once\ninline int* Value() { return 0; }\n")
    for _ in range(2):
        code, output = tree.check("tidy", "--near")
        assert (code, "modernize-use-nullptr" in output) == (1, True), output
        assert "1 files looked at, 1 with" in output
    tree.write("io/value.h", "#pragma once\ninline int* Value() { return {}; }\n")
    assert "1 files looked at, 0 with" in tree.check("tidy", "--near")[1]
    tree.write("io/c.cc", '#include "io/value.h"\nint* c = 0;\n')
    code, output = tree.check("tidy", "--near")
    assert (code, "io/c.cc:2" in output, "1 files looked at, 1 with" in output) == (1, True, True), output
    tree.write("io/c.cc", '#include "io/value.h"\nint* c = nullptr;\n')
    assert "2 files looked at, 0 with" in tree.check("tidy")[1]  # the others that include the header, too


def test_a_header_that_needs_another_first(tree, root):
    tree.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.22)\nproject(alone LANGUAGES CXX)\n"
        "add_library(stoker_flags INTERFACE)\n"
        "target_include_directories(stoker_flags INTERFACE ${PROJECT_SOURCE_DIR})\n"
        f"include({root}/cmake/headers_alone.cmake)\n"
        "stoker_headers_alone(alone core io transforms)\n",
    )

    def build():
        for command in (["-G", "Ninja", "-S", ".", "-B", "build"], ["--build", "build", "--target", "alone"]):
            done = subprocess.run(
                ["cmake", *command], cwd=tree.folder, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                return done.stdout + done.stderr
        return ""

    assert build() == ""
    tree.write("io/a.h", HEADER + "inline std::string Name() { return {}; }\n")
    assert "io/a.h" in build()


def test_unknown_check(tree):
    assert tree.check("frmat")[0] == 2
