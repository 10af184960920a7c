"""A Python environment for each library, made by pip when it is first needed."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile

MOST_SECONDS = 1800  # of an installation
NOT_COUNTED = ("pip", "setuptools", "stoker")
OF_EVERY_SYSTEM = ("libc.", "libm.", "libgcc_s.", "libstdc++.", "ld-", "libpthread.", "libdl.", "librt.")


class Failed(Exception):
    """Why a library cannot be measured."""


def run(*command, most_seconds=MOST_SECONDS):
    """Returns what the command prints; raises Failed if it fails, or takes longer. Nothing that it started
    lives on."""
    name = f"{pathlib.Path(command[0]).name} {command[1]}"
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        try:
            printed, _ = process.communicate(timeout=most_seconds)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{name}: took more than {most_seconds:.0f} s") from late
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            errors.seek(0)
            lines = (printed + errors.read()).strip().splitlines()
            raise Failed(f"{name}: " + " / ".join(lines[-3:]))
    return printed


def emptied(folder):
    """Makes a folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _site(folder):
    """Returns the site-packages of an environment."""
    return pathlib.Path(
        sysconfig.get_path("purelib", "posix_prefix", {"base": str(folder), "platbase": str(folder)})
    )


def _install(folder, adapter):
    run(sys.executable, "-m", "venv", "--clear", folder)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if adapter.PACKAGES:
        run(*pip, *adapter.PACKAGES)
    for package in getattr(adapter, "BUILT_WITH_THESE", ()):
        run(*pip, "--no-build-isolation", "--no-deps", package)


def python_of(name, adapters, folder):
    """Returns the Python of an adapter's environment below the folder, which it makes if it is not complete.

    An adapter may borrow the packages of others; stoker's own is borrowed from the Python that runs this.
    """
    if name == "stoker_loader":
        return pathlib.Path(sys.executable)
    own = folder / name
    made = own / "made-from"
    adapter = adapters[name]
    wanted = repr([getattr(adapter, kind, ()) for kind in ("PACKAGES", "BUILT_WITH_THESE", "BORROWS")])
    if not made.is_file() or made.read_text() != wanted:
        print(
            f"{adapter.NAME}: installing {' '.join(adapter.PACKAGES) or 'nothing'}",
            file=sys.stderr,
            flush=True,
        )
        lenders = [python_of(lender, adapters, folder) for lender in getattr(adapter, "BORROWS", ())]
        _install(own, adapter)
        for lender in lenders:
            _borrow(own, lender)
        made.write_text(wanted)
    return own / "bin" / "python"


def _borrow(folder, lender):
    if lender == pathlib.Path(sys.executable):  # of the tests' environment, stoker alone
        import stoker

        package = pathlib.Path(stoker.__file__).parent
        (_site(folder) / "stoker").symlink_to(package)
        for information in package.parent.glob("stoker-*.dist-info"):
            (_site(folder) / information.name).symlink_to(information)
    else:
        (_site(folder) / "borrowed.pth").write_text(f"{_site(lender.parents[1])}\n")


def megabytes(name, adapter, folder):
    """Returns what the library takes with what it needs, without what it borrows: users of it have that."""
    if adapter.DISTRIBUTION == "stoker":
        import numpy
        import stoker

        own, numbers = (pathlib.Path(module.__file__).parent for module in (stoker, numpy))
        packages = [own, numbers, numbers.with_name("numpy.libs"), *_libraries(own)]
    else:
        packages = [p for p in _site(folder / name).iterdir() if p.name.partition("-")[0] not in NOT_COUNTED]
    files = (file for package in packages for file in (package, *package.rglob("*")))
    counted = (file for file in files if "__pycache__" not in file.parts and not file.is_symlink())
    return sum(file.stat().st_size for file in counted if file.is_file()) / 1e6


def _libraries(package):
    """Returns the system's libraries that stoker is linked with, which other libraries' wheels contain."""
    listed = run("ldd", next(package.glob("libstoker.so*")))
    paths = (pathlib.Path(word) for word in listed.split() if word.startswith("/"))
    return [path.resolve() for path in paths if not path.name.startswith(OF_EVERY_SYSTEM)]
