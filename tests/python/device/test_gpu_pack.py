"""bench/gpu/pack.py: which Python a pack is for, what it is made from, and how it is unpacked.

The tests of what is in a pack take the one in build/lease, which `bench/gpu/pack.py` makes.
"""

import importlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest


@pytest.fixture
def pack(root, monkeypatch):
    """The module; forgotten in the end, because its name is a common one."""
    monkeypatch.syspath_prepend(str(root / "bench" / "gpu"))
    yield importlib.import_module("pack")
    del sys.modules["pack"]


@pytest.fixture
def lease(pack, tmp_path):
    """A folder to carry, with the files of a pack: one program, one library and two photographs."""
    made, folder, photos = tmp_path / "made", tmp_path / "lease", tmp_path / "originals"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "stoker").write_text("#!/bin/sh\n")
    (made / "bin" / "stoker").chmod(0o755)
    (made / "lib").mkdir()
    (made / "lib" / "libtbb.so.12").write_bytes(os.urandom(5000))
    (made / "site").mkdir()
    (made / "site" / "stoker").symlink_to("../bin/stoker")
    for name in ("class0/a.jpg", "class1/b.jpg"):
        (photos / name).parent.mkdir(parents=True)
        (photos / name).write_bytes(name.encode())
    folder.mkdir()
    pack.write_archive(folder / pack.ARCHIVE, made, "w:xz")
    pack.write_archive(folder / pack.PHOTOS, photos, "w")
    (folder / pack.STAMP).write_text('{"commit": "v1-2-gabc"}')
    return folder


# --- which Python -----------------------------------------------------------------------------------


def stand_in(path, says):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("echo CPython 3.11 True", "is 3.11"),
        ("echo CPython 3.120 True", "is 3.120"),
        ("echo PyPy 3.12 True", "is PyPy"),
        ("echo CPython 3.12 False", r"has no headers \(Python.h\)"),
        ("exit 127", "does not run"),
    ],
)
def test_a_python_of_another_kind_is_refused(pack, tmp_path, says, reason):
    python = stand_in(tmp_path / "python", says)
    with pytest.raises(pack.Refused, match=rf"the machine's Python is 3.12, .*: {python} {reason}\. Name"):
        pack.find_python("3.12", python)


def test_another_python_is_packed_for_when_told_so(pack, tmp_path):
    python = stand_in(tmp_path / "python", "echo CPython 3.13 True")
    assert pack.find_python("3.13", python) == python


def test_a_python_is_found_in_path_or_under_pyenv(pack, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(pack.Refused, match=r"none is installed\. Name one by --python"):
        pack.find_python("3.99")
    shim = stand_in(tmp_path / "bin" / "python3.99", "exit 127")  # for a version that is not chosen
    installed = tmp_path / ".pyenv" / "versions" / "3.99.1" / "bin" / "python3.99"
    stand_in(installed, "echo CPython 3.99 True")
    assert pack.find_python("3.99") == installed
    stand_in(shim, "echo CPython 3.99 True")
    assert pack.find_python("3.99") == shim


def test_about_this_python(pack):
    version, why_not = pack.about_python(sys.executable)
    assert version == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert why_not in ("", "has no headers (Python.h)")


def test_a_pack_that_fails_replaces_none(pack, lease, tmp_path, capsys):
    before = {file.name: file.read_bytes() for file in lease.iterdir()}
    python = stand_in(tmp_path / "python", "echo CPython 3.11 True")
    assert pack.main(["--folder", str(lease), "--python", str(python)]) == 1
    assert "no pack is made: the machine's Python is 3.12, and" in capsys.readouterr().out
    assert {file.name: file.read_bytes() for file in lease.iterdir()} == before


def test_a_new_pack_leaves_no_photographs_of_the_old_one(pack, lease, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    (new / pack.ARCHIVE).write_bytes(b"new")
    (new / pack.STAMP).write_text("{}")
    (lease / "notes.txt").touch()
    pack.replace(lease, new)
    assert sorted(file.name for file in lease.iterdir()) == ["notes.txt", pack.STAMP, pack.ARCHIVE]
    assert (lease / pack.ARCHIVE).read_bytes() == b"new"


# --- which code -------------------------------------------------------------------------------------

COUNTED = ("CMakeLists.txt", "gpu/staging/device_copier.cc", "gpu/crops/decode_crops_cuda.cu",
           "core/batch/device_crop.h", "bench/device_bench.cc", "bench/gpu/pack.py",
           "bench/gpu/CMakeLists.txt", "bindings/python/stoker/_loader.py", "cmake/stoker.map.in",
           "tests/gpu/staging/staging.h")  # fmt: skip
NOT_COUNTED = (
    "docs/gpu.md",
    "bench/gpu/measure.py",
    "tests/python/device/test_gpu.py",
    "tests/io/objects_test.cc",
)


def test_the_sources_of_a_pack(pack, tmp_path):
    for name in (*COUNTED, *NOT_COUNTED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    first = pack.sources(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", first)
    for name in COUNTED:
        (tmp_path / name).write_text("two")
        assert pack.sources(tmp_path) != first, name
        (tmp_path / name).unlink()
        assert pack.sources(tmp_path) != first, name
        (tmp_path / name).write_text("one")
    for name in NOT_COUNTED:
        (tmp_path / name).write_text("two")
    assert pack.sources(tmp_path) == first
    (tmp_path / "gpu" / "staging" / "device_copier.cc").rename(tmp_path / "gpu" / "staging" / "renamed.cc")
    assert pack.sources(tmp_path) != first


def test_all_that_is_compiled_counts(pack, root, build):
    """What the compiler read, as Ninja knows it."""
    if not (build / ".ninja_deps").is_file() or not shutil.which("ninja"):
        pytest.skip(f"nothing is built in {build}")

    def ninja(*arguments):
        command = ["ninja", "-C", build, "-t", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    targets = {line.partition(":")[0] for line in ninja("targets", "all").splitlines()}
    programs = targets.intersection(pack.OF_PROGRAMS)  # device_bench is built where benchmarks are
    objects = set(re.findall(r" -o (\S+\.o) ", ninja("commands", *programs)))
    read = set()
    for entry in ninja("deps").split("\n\n"):
        target, *paths = entry.split("\n    ")
        if target.partition(":")[0] in objects:
            read.update(os.path.abspath(build / path.strip()) for path in paths)
    of_checkout = {path for path in read if path.startswith(f"{root}/") and not path.startswith(f"{build}/")}
    if not of_checkout:
        pytest.skip(f"the programs are not built in {build}")
    assert of_checkout <= {str(path) for path in pack.compiled_files(root)}


# --- there ------------------------------------------------------------------------------------------


def unpack(root, lease, work):
    """Runs the command without any program in PATH, and returns (exit code, what it prints as an error)."""
    done = subprocess.run(
        [sys.executable, root / "bench" / "gpu" / "pack.py", "--unpack", work, "--folder", lease],
        capture_output=True, text=True, check=False, env={"PATH": ""},
    )  # fmt: skip
    return done.returncode, done.stderr


def test_unpacking_needs_no_program(root, lease, tmp_path):
    work = tmp_path / "work"
    assert unpack(root, lease, work) == (0, "")
    assert os.access(work / "pack" / "bin" / "stoker", os.X_OK)
    assert (work / "pack" / "site" / "stoker").resolve() == (work / "pack" / "bin" / "stoker").resolve()
    assert (work / "pack" / "pack.json").read_bytes() == (lease / "pack.json").read_bytes()
    assert (work / "photos" / "class1" / "b.jpg").read_bytes() == b"class1/b.jpg"


def test_unpacking_again_leaves_no_old_program(root, lease, tmp_path):
    work = tmp_path / "work"
    unpack(root, lease, work)
    (work / "pack" / "bin" / "old").touch()
    (work / "photos" / "class1" / "b.jpg").write_bytes(b"mine")
    assert unpack(root, lease, work) == (0, "")
    assert [file.name for file in (work / "pack" / "bin").iterdir()] == ["stoker"]
    assert (work / "photos" / "class1" / "b.jpg").read_bytes() == b"mine"


@pytest.mark.parametrize("size", [None, 0, 100, 3000])
def test_a_damaged_pack_is_one_line(root, lease, tmp_path, size):
    archive = lease / "programs.tar.xz"
    if size is None:
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:size])
    code, said = unpack(root, lease, tmp_path / "work")
    assert code == 1 and re.fullmatch(rf"{lease} cannot be unpacked: .+\n", said), said


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="needs Python 3.11.4's tarfile")
def test_a_pack_writes_nothing_outside_its_folder(root, pack, lease, tmp_path):
    with tarfile.open(lease / pack.ARCHIVE, "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("../../escaped"), io.BytesIO())
    code, said = unpack(root, lease, tmp_path / "work")
    assert code == 1 and "cannot be unpacked" in said
    assert not (tmp_path / "escaped").exists()


def test_the_environment_has_no_library_path(pack, tmp_path):
    """Packed libraries would come before PyTorch's own."""
    assert pack.environment(tmp_path, {"HOME": "/root"}) == {
        "HOME": "/root", "PYTHONPATH": f"{tmp_path}/pack/site",
    }  # fmt: skip
    assert pack.environment(tmp_path, {"PYTHONPATH": "/mine"}) == {
        "PYTHONPATH": f"{tmp_path}/pack/site{os.pathsep}/mine",
    }  # fmt: skip


def test_a_program_that_does_not_run_is_named(pack, tmp_path):
    for name in pack.PROGRAMS:
        stand_in(tmp_path / "bin" / name, "exit 0")
    assert pack.why_not_programs(tmp_path) == ""
    stand_in(tmp_path / "bin" / "stager_test", "echo 'libx.so.1: cannot open' >&2; exit 127")
    assert pack.why_not_programs(tmp_path) == "stager_test: libx.so.1: cannot open"
    (tmp_path / "bin" / "device_bench").unlink()
    assert pack.why_not_programs(tmp_path).startswith("device_bench: [Errno 2] No such file or directory")
    assert "No module named 'stoker'" in pack.why_not_package(tmp_path, "/usr/bin/python3")


# --- the libraries ----------------------------------------------------------------------------------


def test_a_library_that_is_not_carried_is_named(pack, tmp_path, command):
    (tmp_path / "bin").mkdir()
    shutil.copy(command, tmp_path / "bin")
    with pytest.raises(pack.Refused, match=r"bin/stoker needs lib[\w.]+, and finds /"):
        pack.check_libraries(tmp_path)


def test_a_program_for_a_newer_c_library_is_refused(pack, tmp_path, command, monkeypatch):
    shutil.copy(command, tmp_path)
    found = pack.newest_needed(tmp_path)
    assert set(found) == {"glibc", "glibcxx", "cxxabi"} and found["glibc"].startswith("2.")
    monkeypatch.setitem(pack.NEWEST, "GLIBC", "2.4")
    with pytest.raises(pack.Refused, match=rf"needs GLIBC_{found['glibc']}, and the machine has 2\.4"):
        pack.newest_needed(tmp_path)


@pytest.fixture
def unpacked(pack, tmp_path):
    """The pack of build/lease, in a folder."""
    if not pack.stamp(pack.FOLDER):
        pytest.skip(f"there is no pack in {pack.FOLDER}")
    pack.unpack(pack.FOLDER, tmp_path)
    return tmp_path / "pack"


def test_the_pack_runs_in_another_folder(pack, unpacked):
    pack.check_libraries(unpacked)
    assert pack.why_not_programs(unpacked) == ""


def test_the_packed_package_is_imported_by_the_python_that_it_is_for(pack, unpacked):
    python = pack.BUILD / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there")
    assert pack.about_python(python)[0] == pack.stamp(unpacked)["python"]
    assert pack.why_not_package(unpacked, python) == ""


def test_the_pack_has_one_library_and_none_of_every_system(pack, unpacked):
    names = {file.name for file in (unpacked / "lib").iterdir()}
    assert "libstoker.so.0.1" in names and names == set(pack.stamp(unpacked)["libraries"])
    assert not [name for name in names if pack.OF_EVERY_SYSTEM.match(name)]
    assert not list((unpacked / "site").rglob("libstoker*"))
    most = (unpacked / "lib" / "libstoker.so.0.1").stat().st_size
    assert all(file.stat().st_size < most for file in (unpacked / "bin").iterdir())


def test_a_preloaded_library_replaces_a_kernel(pack, unpacked, tmp_path):
    """As those in variants/ do."""
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    source, library = tmp_path / "variant.cc", tmp_path / "variant.so"
    source.write_text(
        "#include <cstdlib>\n"
        "namespace stoker { namespace decode { struct CropBatch; }\n"
        "void DecodeCropsOnHost(const decode::CropBatch&) { std::_Exit(77); } }\n"
    )
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library], check=True)
    command = [unpacked / "bin" / "gpu_crops_test", "--gtest_filter=Crops.*"]
    done = subprocess.run(
        command,
        env={**os.environ, "LD_PRELOAD": str(library), "STOKER_EFFORT": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 77
