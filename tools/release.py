#!/usr/bin/env python3
"""Says whether a commit can be released, and what remains to be done by hand; `./dev release` runs it.

  tools/release.py VERSION [--root DIR] [--quick]

Checks first what takes no time, and reports all of it: the working tree has no changes, CMakeLists.txt has
the version (Python's package takes it from there), CHANGELOG.md has a dated section for it and nothing that
is unreleased, no tag has it yet, and the pack in build/lease, which is carried to a machine with a GPU, is
made from the code that is released. If all of this is so, `./dev test --all` must pass and leave the
working tree without changes, and `./dev wheel` must make a wheel of that version for each CPython that stoker
supports, which it checks. --quick leaves these two out.

Exit code 0 if the commit can be released, 1 if not.
"""

import argparse
import datetime
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHONS = tuple(f"python3.{minor}" for minor in range(9, 15))
STEPS = """
By hand:
  1. build/wheel/cp311/bin/python tools/check_wheel.py {wheels}-cp311-*_x86_64.whl --tensorflow \\
       --image python:3.11-slim
     and so for each wheel, in its own image, without --tensorflow where TensorFlow has no wheel (3.14), and
     with qemu-user installed, which tries older processors
  2. tools/aarch64.sh --wheel, and tools/check_wheel.py for its wheel in a --root of arm64 (CONTRIBUTING.md)
  3. build/lease, carried to a machine with a GPU, and measured there (bench/gpu/README.md)
  4. git tag -a v{version} -m 'stoker {version}' && git push origin v{version}
  5. create a release for the tag, with the section of CHANGELOG.md and the wheels
  6. twine upload {wheels}-*.whl
  7. begin an empty section [Unreleased] in CHANGELOG.md, and set the next version in CMakeLists.txt
"""


def git(root, *arguments):
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.rstrip("\n")


def sections(changelog):
    """Returns the sections of second level as (heading, text)."""
    parts = re.split(r"^## +(.*)$", changelog, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2]))


# Each check yields what is wrong.


def check_tree(root, version):
    changes = git(root, "status", "--porcelain").splitlines()
    if changes:
        yield f"the working tree has changes: {', '.join(line[3:] for line in changes[:5])}"


def check_version(root, version):
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version} is no version; write MAJOR.MINOR.PATCH"
    found = re.search(r"project\(stoker VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())
    if found is None or found[1] != version:
        yield f"CMakeLists.txt has version {found and found[1]}, not {version}"


def check_changelog(root, version):
    found = sections((root / "CHANGELOG.md").read_text())
    unreleased = [text for heading, text in found if heading == "[Unreleased]"]
    if any(text.strip() for text in unreleased):
        yield f"CHANGELOG.md has changes under [Unreleased]; move them to [{version}]"
    released = [(heading, text) for heading, text in found if heading != "[Unreleased]"]
    heading, text = released[0] if released else ("", "")
    dated = re.fullmatch(rf"\[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)", heading)
    if dated is None:
        yield f"the newest section of CHANGELOG.md is not '[{version}] - DATE' but '{heading}'"
        return
    try:
        if datetime.date.fromisoformat(dated[1]) > datetime.date.today():
            yield f"CHANGELOG.md says that {version} is from {dated[1]}, which is in the future"
    except ValueError:
        yield f"CHANGELOG.md: {dated[1]} is no date"
    if not text.strip():
        yield f"the section of {version} in CHANGELOG.md is empty"


def check_tag(root, version):
    if git(root, "tag", "--list", f"v{version}"):
        yield f"there is a tag v{version} already"


def program_of_bench(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / "gpu" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_pack(root, version):
    why_not = program_of_bench("pack").why_not_current(root / "build" / "lease", root)
    if why_not:
        yield why_not


QUICK = {"tree": check_tree, "version": check_version, "changelog": check_changelog, "tag": check_tag,
         "pack": check_pack}  # fmt: skip


def check_tests(root, version):
    every_case = {**os.environ, "STOKER_EFFORT": "100"}
    if subprocess.run([root / "dev", "test", "--all"], cwd=root, check=False, env=every_case).returncode:
        yield "./dev test --all fails"


def check_wheel(root, version):
    missing = [python for python in PYTHONS if not shutil.which(python)]
    if missing:
        yield f"{', '.join(missing)} not installed: a wheel is made with the Python that it is for"
    elif subprocess.run([root / "dev", "wheel", *PYTHONS], cwd=root, check=False).returncode:
        yield "./dev wheel fails"
    else:
        for python in PYTHONS:
            tag = python.replace("python", "cp").replace(".", "")
            if not list(root.glob(f"build/dist/stoker-{version}-{tag}-*.whl")):
                yield f"build/dist has no wheel of {version} for {python}"


SLOW = {"tests": check_tests, "tree again": check_tree, "wheel": check_wheel}


def passed(checks, root, version):
    """Runs the checks, prints a line for each and what is wrong, and returns whether nothing is."""
    clean = True
    for name, check in checks.items():
        wrong = list(check(root, version))
        print(f"{name:10} {'ok' if not wrong else 'NOT YET'}", flush=True)  # before the next one's output
        for text in wrong:
            print(f"           {text}", flush=True)
        clean = clean and not wrong
    return clean


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--quick", action="store_true", help="without the tests and the wheel")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    if not passed(QUICK, root, given.version):
        return 1
    if given.quick:
        print("Not tested, and no wheel built: --quick")
        return 0
    if not passed(SLOW, root, given.version):
        return 1
    print(STEPS.format(version=given.version, wheels=f"build/dist/stoker-{given.version}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
