"""The message of `import stoker` if the compiled part of the package cannot be loaded."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from stoker import _missing_library  # noqa: E402

PACKAGE = pathlib.Path(stoker.__file__).parent
BROUGHT_ALONG = PACKAGE.with_name("stoker.libs")
OF_THE_SYSTEM = pytest.mark.skipif(BROUGHT_ALONG.is_dir(), reason="the package brings its libraries along")


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that a test may damage."""
    if BROUGHT_ALONG.is_dir():
        shutil.copytree(BROUGHT_ALONG, tmp_path / BROUGHT_ALONG.name)
    return pathlib.Path(shutil.copytree(PACKAGE, tmp_path / "stoker"))


def imported(folder):
    """Returns the last line that `import stoker` prints from there."""
    environment = {**os.environ, "PYTHONPATH": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import stoker"],
        capture_output=True, text=True, timeout=60, cwd=folder.parent, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def rename_needed(folder, **names):
    """Renames the libraries that libstoker needs, to names of the same length that no machine has."""
    (library,) = folder.glob("libstoker.so*")
    content = library.read_bytes()
    for old, new in names.items():
        old, new = (f"{name.replace('_so_', '.so.')}".encode() + b"\0" for name in (old, new))
        assert len(old) == len(new) and content.count(old) == 1
        content = content.replace(old, new)
    library.write_bytes(content)


@OF_THE_SYSTEM
def test_a_library_that_is_not_there(copy):
    rename_needed(copy, libtbb_so_12="libtbb_so_98")
    line = imported(copy)
    assert line.startswith("ImportError: stoker needs libtbb.so.98, and this machine does not have it. ")
    assert "apt-get install libtbb98 (Debian, Ubuntu), dnf install tbb (Fedora)" in line
    assert line.endswith("libtbb.so.98: cannot open shared object file: No such file or directory")


@OF_THE_SYSTEM
def test_all_that_are_missing_are_named_at_once(copy):
    rename_needed(copy, libtbb_so_12="libtbb_so_98", libwebp_so_7="libwebp_so_8")
    line = imported(copy)
    assert "stoker needs libtbb.so.98 and libwebp.so.8, and this machine does not have them" in line
    assert "apt-get install libtbb98 libwebp8 (" in line


@OF_THE_SYSTEM
def test_a_library_of_no_known_package(copy):
    rename_needed(copy, libtbb_so_12="libtbx_so_12")
    line = imported(copy)
    assert "stoker needs libtbx.so.12" in line and "Install the package that has it" in line
    assert "apt-get" not in line


def test_stokers_own_library_is_not_there(copy):
    (library,) = copy.glob("libstoker.so*")
    library.unlink()
    line = imported(copy)
    assert f"stoker's own library, is not in {copy}" in line and "--force-reinstall" in line


def test_a_library_of_the_wheel_is_not_there():
    """No package of the system has it: auditwheel gave it a name of its own."""
    text = "libtbb-4d79fbbd.so.12.8: cannot open shared object file: No such file or directory"
    said = str(_missing_library.in_words(ImportError(text), PACKAGE))
    assert said.startswith("libtbb-4d79fbbd.so.12.8, which came with stoker, is not in ")
    assert f"{PACKAGE.parent / 'stoker.libs'}: the installation is damaged. " in said
    assert "--force-reinstall" in said and "apt-get" not in said


def test_the_compiled_module_is_not_there(copy):
    (module,) = copy.glob("_stoker*.so")
    module.unlink()
    line = imported(copy)
    assert line.startswith(f"ImportError: {copy} has stoker's Python files without its compiled module")


def test_the_compiled_module_is_for_another_python(copy):
    (module,) = copy.glob("_stoker*.so")
    module.rename(copy / "_stoker.cpython-27-x86_64-linux-gnu.so")
    line = imported(copy)
    assert "was built for another Python (_stoker.cpython-27-x86_64-linux-gnu.so)" in line


@pytest.mark.parametrize(
    ("soname", "debian"),
    [
        ("libfmt.so.9", "libfmt9"),
        ("libhwy.so.1", "libhwy1"),
        ("libjpeg.so.62", "libjpeg62-turbo"),
        ("libjpeg.so.8", "libjpeg-turbo8"),
        ("libspng.so.0", "libspng0"),
        ("libtbb.so.12", "libtbb12"),
        ("liburing.so.2", "liburing2"),
        ("libwebp.so.7", "libwebp7"),
        ("libz.so.1", "zlib1g"),
    ],
)
def test_the_packages_of_debian(soname, debian):
    text = f"{soname}: cannot open shared object file: No such file or directory"
    said = str(_missing_library.in_words(ImportError(text), pathlib.Path("/nowhere")))
    assert f"stoker needs {soname}, " in said and f"apt-get install {debian} (" in said


@OF_THE_SYSTEM
def test_every_library_that_the_package_needs_has_its_package_named():
    """A new dependency must not be forgotten. Those of the compiler and the C library are always there."""
    always = ("ld-", "libc.", "libgcc_s.", "libm.", "libstdc++.", "libstoker.")
    needed = set()
    for file in [*PACKAGE.glob("*.so*"), PACKAGE / "stoker"]:
        listed = subprocess.run(["readelf", "-d", file], capture_output=True, check=True, text=True).stdout
        needed |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", listed))
    others = {soname for soname in needed if not soname.startswith(always)}
    assert "libtbb.so.12" in others
    assert [soname for soname in others if _missing_library._packages(soname) is None] == []


def test_the_library_exports_all_that_the_package_calls():
    """A name that libstoker keeps to itself would be missed only at its first call."""
    modules = [*PACKAGE.glob("_stoker*.so")]
    for module in modules:
        done = subprocess.run(["ldd", "-r", module], capture_output=True, check=True, text=True)
        missed = re.findall(r"undefined symbol: (\S+)", done.stdout + done.stderr)
        assert any(name.startswith("Py") for name in missed)  # of the interpreter, which is not linked
        assert [name for name in missed if "stoker" in name] == []
    assert len(modules) == 1


def test_a_library_that_is_too_old():
    text = (
        "/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found "
        "(required by /x/stoker/libstoker.so.0.1)"
    )
    said = str(_missing_library.in_words(ImportError(text), PACKAGE))
    assert said.startswith("/lib/x86_64-linux-gnu/libstdc++.so.6 is older than the one")
    assert "GLIBCXX_3.4.32" in said and "pip install ." in said


def test_other_errors_stay_what_they_are():
    error = ImportError("dynamic module does not define module export function (PyInit__stoker)")
    assert _missing_library.in_words(error, PACKAGE) is error
