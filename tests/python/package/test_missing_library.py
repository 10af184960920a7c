"""The message of `import stoker` if the compiled part of the package cannot be loaded."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

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
    (module,) = copy.glob("_stoker*.so")
    assert line.startswith(f"ImportError: stoker's compiled module cannot be loaded. `ldd {module}` lists")
    assert line.endswith("libtbb.so.98: cannot open shared object file: No such file or directory")


def test_stokers_own_library_is_not_there(copy):
    (library,) = copy.glob("libstoker.so*")
    library.unlink()
    line = imported(copy)
    assert "install the package again (pip install --force-reinstall)" in line
    assert f"libstoker.so{library.name.partition('.so')[2]}: cannot open shared object file" in line


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


def test_the_library_exports_all_that_the_package_calls():
    """A name that libstoker keeps to itself would be missed only at its first call."""
    modules = [*PACKAGE.glob("_stoker*.so")]
    for module in modules:
        done = subprocess.run(["ldd", "-r", module], capture_output=True, check=True, text=True)
        missed = re.findall(r"undefined symbol: (\S+)", done.stdout + done.stderr)
        assert any(name.startswith("Py") for name in missed)  # of the interpreter, which is not linked
        assert [name for name in missed if "stoker" in name] == []
    assert len(modules) == 1
