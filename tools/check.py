#!/usr/bin/env python3
"""Style checks beyond the compiler's. Needs only Python's standard library.

  tools/check.py [--root DIR] [--build DIR] [--fix] [--again | --near] [--product] [CHECK...]

format  clang-format with .clang-format; --fix rewrites the files
tree    include arrows between folders, third-party includes only in sources, #pragma once,
        no conditional compilation in headers, file names; each *_test.cc is in a CMakeLists.txt; patches
        apply
words   comments, documents and messages without the words of tools/words.py
python  ruff check and ruff format with pyproject.toml; --fix rewrites the files; skipped if ruff is not
        installed; and mypy over the package, if it is installed
tidy    clang-tidy with .clang-tidy, over the compile commands of --build, which compiles several sources
        together; a group is checked again only if one of its sources, a header of ours that it includes, the
        settings or Debian's packages have changed, in any checkout of this user (~/.cache/stoker/tidy); with
        --again, always. With --near, a changed header is checked in one group that includes it, not in all:
        minutes, where all include it. With --product, without tests/. Sources that two targets compile are
        checked with the first one
shell   shellcheck

Without a name: all checks. Exit code 0 if nothing was found, 1 if something was, 2 if a check could
not run.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import words

FOLDERS = ("core", "engine", "io", "transforms", "gpu", "bindings", "bench", "tests", "examples")

# The folders that each folder may include, besides itself. Folders not named here (tests, examples) may
# include anything.
BELOW_ENGINE = ["core", "io", "transforms", "gpu"]
ARROWS = {
    "core": [],
    "io": ["core"],
    "transforms": ["core"],
    "gpu": ["core"],
    "engine": BELOW_ENGINE,
    "bindings": [*BELOW_ENGINE, "engine"],
    "bench": [*BELOW_ENGINE, "engine", "bindings"],
}
UNITY = re.compile(r"unity_\d+_cxx\.cxx")
# These checks take a source for a header if another file includes it. (misc-unused-using-decls and
# -alias-decls look only at the file that is compiled, so they check sources that are compiled by
# themselves.)
NOT_OF_UNITY = "-bugprone-suspicious-include,-google-global-names-in-headers"
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
# The exception tells C++ that a header is C's.
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef)\b(?! __cplusplus$)")
PATCHED = re.compile(r"\+\+\+ b/(\S+)")
HUNK = re.compile(r"@@ -\d+(?:,(\d+))? ")
UTILS = re.compile(r"(?:^|[/_])utils?(?:[/_.])")
# C++'s own headers (<vector>: neither dot nor slash) and the system's.
STANDARD_HEADER = re.compile(r"[a-z_0-9]+|sys/\w+\.h|(fcntl|pthread|sched|signal|stdint|time|unistd)\.h")


# The Python extension's own headers name Python objects; nothing else includes them.
EXTENSION = pathlib.Path("bindings/python")
# Compiled where TensorFlow is installed, with its headers and the two of ours that are shipped with it.
PLUGIN = pathlib.Path("bindings/tensorflow/native")
# Flags that clang-tidy does not support.
GCC_ONLY = re.compile(r" (-fno-(move-loop-stores|thread-jumps)|--param \S+|-Wno-tsan)(?= )")
MARK_DAYS = 30  # marks of what has passed clang-tidy are kept this long


class Unable(Exception):
    """The reason why a check could not run."""


class Skipped(Exception):
    """The reason why a check was skipped."""


def sources(root, suffixes=(".h", ".cc")):
    """All files with one of the suffixes in our folders, relative to root, sorted."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.suffix in suffixes and path.is_file():
                found.append(path.relative_to(root))
    return sorted(found)


def layer_of(path):
    """The key of ARROWS for a path; None below tests and examples."""
    for layer in ARROWS:
        if path.as_posix().startswith(layer + "/"):
            return layer
    return None


def is_header(path):
    """Highway's "-inl.h" files are compiled once for each target, like sources."""
    return path.suffix == ".h" and not path.name.endswith("-inl.h")


# --- tree ---------------------------------------------------------------------------------------


def check_include(root, path, quoted, angled):
    """Yields the violations of one include of the file `path`."""
    layer = layer_of(path)
    if path.is_relative_to(PLUGIN):
        return
    if quoted is not None:
        if not (root / quoted).is_file():
            yield f'"{quoted}" is not a path from the root of the repository'
            return
        target = layer_of(pathlib.Path(quoted))
        if layer and target != layer and target not in ARROWS[layer]:
            allowed = ", ".join([layer, *ARROWS[layer]])
            yield f'"{quoted}": {layer} may include only {allowed}'
    elif path.is_relative_to(EXTENSION) and angled == "pybind11/pybind11.h":
        return
    elif layer and is_header(path) and not STANDARD_HEADER.fullmatch(angled):
        yield f"<{angled}>: other libraries' headers belong in a .cc file"


def is_built(root, path):
    """Whether the CMakeLists.txt of the file's folder, or of one above it, names the file."""
    lists = ((folder, root / folder / "CMakeLists.txt") for folder in path.parents)
    return any(
        path.relative_to(folder).as_posix() in file.read_text(encoding="utf-8")
        for folder, file in lists
        if file.is_file()
    )


def check_file(root, path):
    """Yields (line, message) for one file; line 0 means the whole file."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if path.suffix == ".h" and "-inl" not in path.name and "#pragma once" not in lines:
        yield 0, "has no #pragma once"
    if UTILS.search(path.as_posix()):
        yield 0, "'utils' says nothing; name it after what it does"
    if path.name.endswith("_test.cc") and not is_built(root, path):
        yield 0, "is in no CMakeLists.txt of its folder or one above, so it is never built"
    for number, line in enumerate(lines, 1):
        if include := INCLUDE.match(line):
            for message in check_include(root, path, *include.groups()):
                yield number, message
        elif is_header(path) and layer_of(path) and CONDITIONAL.match(line):
            yield number, "conditional compilation in a header; variants are files that CMake picks"


def check_patch(root, path):
    """Yields (line, message) for each hunk of a patch that finds its lines nowhere in the file it changes."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    content = ""  # of the file that is changed, with an end of line at both ends
    hunks = 0
    for number, line in enumerate(lines):
        if changed := PATCHED.match(line):
            file = root / changed[1]
            content = "\n" + file.read_text(encoding="utf-8") if file.is_file() else ""
        elif hunk := HUNK.match(line):
            kept = [rest[1:] for rest in lines[number + 1 :] if not rest.startswith("+")]
            hunks += 1
            if "".join(f"\n{old}" for old in kept[: int(hunk[1] or 1)]) + "\n" not in content:
                yield number + 1, "does not apply: the file has no such lines"
    if hunks == 0:
        yield 0, "is not a unified diff"


def run_tree(options):
    problems = 0
    checks = [(check_file, path) for path in sources(options.root)]
    checks += [(check_patch, path) for path in sources(options.root, (".patch",))]
    for check, path in checks:
        for line, message in check(options.root, path):
            print(f"{path}:{line}: {message}" if line else f"{path}: {message}")
            problems += 1
    return problems


# --- words --------------------------------------------------------------------------------------


def run_words(options):
    problems = 0
    for path in words.checked(options.root):
        for line, message in words.findings(path):
            print(f"{path.relative_to(options.root)}:{line}: {message}")
            problems += 1
    return problems


# --- format, shell ------------------------------------------------------------------------------


def run_tool(command, root):
    """Runs a tool that prints its findings; 1 if there are any."""
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unable(f"{command[0]} is not installed") from error
    print(done.stdout + done.stderr, end="")
    return int(done.returncode != 0)


def run_format(options):
    files = [str(path) for path in sources(options.root)]
    how = ["-i"] if options.fix else ["--dry-run", "-Werror"]
    return run_tool(["clang-format", *how, *files], options.root) if files else 0


def run_shell(options):
    scripts = [name for name in ("dev", ".ci/run") if (options.root / name).is_file()]
    scripts += [str(path) for path in sources(options.root, (".sh",))]
    return run_tool(["shellcheck", *scripts], options.root) if scripts else 0


def run_python(options):
    if shutil.which("ruff") is None:
        raise Skipped("ruff is not installed (./dev build puts it into .venv)")
    if not (options.root / "pyproject.toml").is_file():
        raise Skipped("there is no pyproject.toml")
    lint = ["ruff", "check", "--quiet", *(["--fix"] if options.fix else [])]
    form = ["ruff", "format", "--quiet", *([] if options.fix else ["--diff"])]
    types = [["mypy", "--no-error-summary"]] if shutil.which("mypy") else []
    if not types:
        print("mypy is not installed (./dev test puts it into .venv): types are not checked")
    return sum(run_tool(command, options.root) for command in (lint, form, *types))


# --- tidy ---------------------------------------------------------------------------------------


def reached(root, path, seen):
    """Adds the file and all of our headers that it includes, directly or not, to `seen`."""
    if path in seen or not (root / path).is_file():
        return
    seen.add(path)
    for line in (root / path).read_text(encoding="utf-8").splitlines():
        include = INCLUDE.match(line)
        if include and include[1]:
            reached(root, pathlib.Path(include[1]), seen)


def folder_of_passed():
    """The folder of marks of what has passed clang-tidy, shared by all checkouts. Old marks are removed."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "stoker" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for mark in folder.iterdir():
        if mark.stat().st_mtime < time.time() - MARK_DAYS * 86400:
            mark.unlink(missing_ok=True)
    return folder


def remember(marks, passed):
    for mark in marks:
        (passed / mark).touch()


def system_version():
    """What identifies clang-tidy and the headers of other projects."""
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=False).stdout
    packages = pathlib.Path("/var/lib/dpkg/status")
    return version + (hashlib.sha256(packages.read_bytes()).digest() if packages.is_file() else b"")


class Group(NamedTuple):
    """Sources that are compiled together, and the names of their marks."""

    paths: list
    whole: str  # a digest of everything that clang-tidy's result depends on
    parts: dict  # of each source and of each header that they include, a digest of it alone


def group_of(root, paths, command, version):
    seen = set()
    for path in paths:
        reached(root, path, seen)
    settings = hashlib.sha256(version + NOT_OF_UNITY.encode())
    for part in sorted({folder / ".clang-tidy" for path in paths for folder in path.parents}):
        if (root / part).is_file():
            settings.update(part.as_posix().encode() + (root / part).read_bytes())
    whole = settings.copy()
    whole.update(command.encode())
    parts = {}
    for part in sorted(seen):
        text = part.as_posix().encode() + (root / part).read_bytes()
        whole.update(text)
        alone = settings.copy()
        alone.update(text)
        parts[part] = alone.hexdigest()
    return Group(paths, whole.hexdigest(), parts)


def near(groups, passed):
    """The groups of which a source has changed, and for each other changed header one that includes it."""
    changed = {}
    for file, group in groups.items():
        changed[file] = {part for part, mark in group.parts.items() if not (passed / mark).exists()}
    chosen = {file for file, group in groups.items() if changed[file].intersection(group.paths)}
    seen = set().union(*(changed[file] for file in chosen))
    while left := set().union(*changed.values()) - seen:
        best = max(groups, key=lambda file: (len(changed[file] & left), -len(groups[file].parts)))
        chosen.add(best)
        seen |= changed[best]
    return {file: group for file, group in groups.items() if file in chosen}


def sources_of(root, file):
    """The sources that are compiled with `file`: those that it includes, if CMake made it."""
    if file.is_relative_to(root) and not UNITY.fullmatch(file.name):
        return [file.relative_to(root)]
    included = [INCLUDE.match(line) for line in file.read_text(encoding="utf-8").splitlines()]
    paths = [pathlib.Path(include[1]).resolve() for include in included if include]
    return [path.relative_to(root) for path in paths if path.is_relative_to(root)]


def tidy(root, build, file, paths):
    config = next(folder for folder in paths[0].parents if (root / folder / ".clang-tidy").is_file())
    folders = "|".join({path.parts[0] for path in map(pathlib.Path, ARROWS)})
    ours = rf"^{re.escape(str(root))}/(({folders})/.*\.h|({'|'.join(FOLDERS)})/.*\.cc)$"
    done = subprocess.run(
        [
            *("clang-tidy", "--quiet", "-p", str(build)),
            *(f"--config-file={root / config / '.clang-tidy'}", f"--header-filter={ours}"),
            *([f"--checks={NOT_OF_UNITY}"] if UNITY.fullmatch(file.name) else []),
            str(file),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    # stderr has the number of suppressed warnings in other projects' headers.
    return done.returncode, done.stdout if done.returncode == 0 or done.stdout else done.stderr


def run_tidy(options):
    database = options.build / "compile_commands.json"
    if not database.is_file():
        raise Unable(f"{database} is not there: configure a build first")
    if shutil.which("clang-tidy") is None:
        raise Unable("clang-tidy is not installed")
    version = system_version()
    entries = json.loads(database.read_text())
    for entry in entries:
        entry["command"] = GCC_ONLY.sub("", entry["command"])
    commands = options.build / "tidy"
    commands.mkdir(exist_ok=True)
    (commands / "compile_commands.json").write_text(json.dumps(entries))
    passed = folder_of_passed()
    wanted = set(sources(options.root, (".cc",)))
    if options.product:
        wanted = {path for path in wanted if path.parts[0] != "tests"}
    todo = {}
    seen = set()
    for entry in entries:
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        paths = sources_of(options.root, file)
        if wanted.issuperset(paths) and not seen.issuperset(paths):
            seen.update(paths)
            # Only what affects the meaning of the code, so that a build elsewhere has the same key.
            flags = [w for w in shlex.split(entry["command"]) if w.startswith(("-D", "-std", "-W"))]
            group = group_of(options.root, paths, " ".join(flags), version)
            if options.again or not (passed / group.whole).exists():
                todo[file] = group
            else:
                remember(group.parts.values(), passed)
    if not seen:
        raise Unable(f"{database} has none of our sources")
    if options.near:
        todo = near(todo, passed)
    problems = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {
            pool.submit(tidy, options.root, commands, name, todo[name].paths): todo[name] for name in todo
        }
        for job in concurrent.futures.as_completed(jobs):
            code, output = job.result()
            group = jobs[job]
            if code == 0:
                remember([group.whole, *group.parts.values()], passed)
            else:
                print(output, end="")
                problems += len(group.paths)
    looked_at = sum(len(group.paths) for group in todo.values())
    print(f"clang-tidy: {looked_at} files looked at, {problems} with findings or compiled with one that has")
    return problems


CHECKS = {
    "format": run_format,
    "tree": run_tree,
    "words": run_words,
    "python": run_python,
    "tidy": run_tidy,
    "shell": run_shell,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    parser.add_argument("--build", type=pathlib.Path, help="build folder (default: ROOT/build)")
    parser.add_argument("--fix", action="store_true", help="let clang-format rewrite files")
    tidied = parser.add_mutually_exclusive_group()
    tidied.add_argument("--again", action="store_true", help="let clang-tidy check what it has passed, too")
    tidied.add_argument("--near", action="store_true", help="check a changed header in one source only")
    parser.add_argument("--product", action="store_true", help="let clang-tidy leave out the tests")
    options = parser.parse_args()
    if unknown := set(options.checks) - set(CHECKS):
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    options.root = options.root.resolve()
    options.build = (options.build or options.root / "build").resolve()
    exit_code = 0
    for name in options.checks or CHECKS:
        try:
            problems = CHECKS[name](options)
            print(f"{name}: {'ok' if problems == 0 else 'FOUND SOMETHING'}", flush=True)
            exit_code = max(exit_code, int(problems != 0))
        except Skipped as why:
            print(f"{name}: skipped: {why}", flush=True)
        except Unable as error:
            print(f"{name}: could not run: {error}", flush=True)
            exit_code = 2
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
