"""tools/release.py, on copies of the files that it looks at."""

import json
import shutil
import subprocess

import pytest

GOOD = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2024-05-01\n\n### Added\n\n- A line.\n"
# Stands for ./dev: notes what it was asked for, and makes wheels.
DEV = """#!/bin/sh
echo "$@" >>build/asked
[ "$1" != "WRITES" ] || touch generated.txt
[ "$1" != wheel ] || for python in $@; do
  touch build/dist/stoker-WHEEL-cp3${python#python3.}-cp3${python#python3.}-manylinux_2_28_x86_64.whl
done
[ "$1" != "FAILS" ]
"""


@pytest.fixture(scope="module")
def release(program_of_tools):
    return program_of_tools("release")


@pytest.fixture
def tree(tmp_path, root, release, monkeypatch):
    """A repository that can be released as 0.2.0, and a function that commits its changes."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    monkeypatch.setattr(release.shutil, "which", lambda python: f"/usr/bin/{python}")

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True, timeout=60)

    def commit():
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", "a change")

    shutil.copy(root / ".gitignore", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(stoker VERSION 0.2.0 LANGUAGES CXX)\n")
    (tmp_path / "CHANGELOG.md").write_text(GOOD)
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "kernel.cu").write_text("// One.\n")
    (tmp_path / "build" / "dist").mkdir(parents=True)
    make_dev(tmp_path)
    make_pack(tmp_path, release)
    git("init", "--quiet")
    commit()
    return tmp_path, git, commit


def make_dev(folder, fails="nothing", wheel="0.2.0", writes="nothing"):
    text = DEV.replace("FAILS", fails).replace("WHEEL", wheel).replace("WRITES", writes)
    (folder / "dev").write_text(text)
    (folder / "dev").chmod(0o755)


def make_pack(folder, release):
    """A pack of the tree's code, as far as the check looks at it."""
    pack = folder / "build" / "lease"
    pack.mkdir(exist_ok=True)
    (pack / "programs.tar.xz").touch()
    stamp = {"commit": "v0.1.0-3-gabc", "sources": release.program_of_bench("pack").sources(folder)}
    (pack / "pack.json").write_text(json.dumps(stamp))


def test_what_can_be_released(release, tree, capsys):
    folder, _, _ = tree
    assert release.main(["0.2.0", "--root", str(folder)]) == 0
    assert (folder / "build" / "asked").read_text() == (
        "test --all\nwheel python3.9 python3.10 python3.11 python3.12 python3.13 python3.14\n"
    )
    said = capsys.readouterr().out
    assert "NOT YET" not in said and said.count(" ok\n") == 8
    assert "git tag -a v0.2.0" in said and "twine upload build/dist/stoker-0.2.0-*.whl" in said


def test_quick_runs_nothing(release, tree, capsys):
    folder, _, _ = tree
    assert release.main(["0.2.0", "--root", str(folder), "--quick"]) == 0
    assert not (folder / "build" / "asked").exists()
    assert "git tag" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("CHANGELOG.md", GOOD.replace("0.2.0", "0.1.9"), "is not '[0.2.0] - DATE' but '[0.1.9] - 2024"),
        ("CHANGELOG.md", GOOD.replace(" - 2024-05-01", ""), "but '[0.2.0]'"),
        ("CHANGELOG.md", GOOD.replace("2024-05-01", "2999-01-01"), "in the future"),
        ("CHANGELOG.md", GOOD.replace("2024-05-01", "2024-13-01"), "is no date"),
        ("CHANGELOG.md", GOOD.replace("[Unreleased]\n", "[Unreleased]\n\n- New.\n"), "under [Unreleased]"),
        ("CHANGELOG.md", GOOD.split("### Added")[0], "is empty"),
        ("CMakeLists.txt", "project(stoker VERSION 0.1.0 LANGUAGES CXX)\n", "has version 0.1.0, not 0.2.0"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_runs(release, tree, capsys, name, text, said):
    folder, _, commit = tree
    (folder / name).write_text(text)
    make_pack(folder, release)
    commit()
    assert release.main(["0.2.0", "--root", str(folder)]) == 1
    out = capsys.readouterr().out
    assert said in out and out.count("NOT YET") == 1
    assert not (folder / "build" / "asked").exists()


def test_changes_and_a_tag_are_in_the_way(release, tree, capsys):
    folder, git, _ = tree
    (folder / "new.txt").write_text("not committed")
    (folder / ".gitignore").write_text("build\n# not committed, either\n")
    git("tag", "v0.2.0")
    assert release.main(["0.2.0", "--root", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "has changes: .gitignore, new.txt" in out and "a tag v0.2.0" in out


def test_a_pack_of_other_kernels_is_in_the_way(release, tree, capsys):
    """For the code that is on the machine with the GPU would not be what is released."""
    folder, _, commit = tree
    kernel, pack = folder / "gpu" / "kernel.cu", folder / "build" / "lease"

    def said(code):
        commit()
        assert release.main(["0.2.0", "--root", str(folder), "--quick"]) == code
        return capsys.readouterr().out

    assert "NOT YET" not in said(0)
    kernel.write_text("// Two.\n")
    out = said(1)
    assert out.count("NOT YET") == 1
    assert f"the pack in {pack} is of v0.1.0-3-gabc, and what it was made from has changed; " in out
    assert "run python3 bench/gpu/measure.py pack --photos FOLDER" in out
    make_pack(folder, release)
    assert "NOT YET" not in said(0)
    (pack / "pack.json").unlink()
    assert f"there is no pack in {pack}; run python3 bench/gpu/measure.py pack" in said(1)


def test_the_version_is_one(release, tree, capsys):
    assert release.main(["v0.2.0", "--root", str(tree[0])]) == 1
    assert "v0.2.0 is no version" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fails": "test"}, "./dev test --all fails"),
        ({"fails": "wheel"}, "./dev wheel fails"),
        ({"wheel": "0.1.0"}, "no wheel of 0.2.0 for python3.9\n"),
        ({"writes": "test"}, "has changes: generated.txt"),
    ],
)
def test_what_fails_is_named(release, tree, capsys, options, said):
    folder, _, commit = tree
    make_dev(folder, **options)
    commit()
    assert release.main(["0.2.0", "--root", str(folder)]) == 1
    out = capsys.readouterr().out
    assert said in out and "git tag" not in out


def test_pythons_that_are_not_there_are_named(release, tree, monkeypatch):
    monkeypatch.setattr(
        release.shutil, "which", lambda python: None if python.endswith((".9", ".14")) else python
    )
    (wrong,) = release.check_wheel(tree[0], "0.2.0")
    assert wrong.startswith("python3.9, python3.14 not installed")
    assert not (tree[0] / "build" / "asked").exists()


def test_this_repository_has_the_places(release, root):
    """They are found where the checks look for them: only the versions differ."""
    assert list(release.check_version(root, "99.0.0")) == [
        f"CMakeLists.txt has version {version_of(root)}, not 99.0.0"
    ]
    wrong = list(release.check_changelog(root, "99.0.0"))
    assert any("is not '[99.0.0] - DATE'" in text for text in wrong)
    assert release.sections((root / "CHANGELOG.md").read_text())


def version_of(root):
    text = (root / "CMakeLists.txt").read_text()
    return text.split("project(stoker VERSION ")[1].split()[0]
