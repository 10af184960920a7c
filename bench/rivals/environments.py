"""A Python environment for each library, made by pip when it is first needed."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

MOST_SECONDS = 1800  # of an installation


class Failed(Exception):
    """Why a library cannot be measured."""


def run(*command, most_seconds=MOST_SECONDS):
    """Returns what the command prints; raises Failed if it fails, or takes longer."""
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=False, timeout=most_seconds
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(
            f"{pathlib.Path(command[0]).name} {command[1]}: took more than {most_seconds} s"
        ) from late
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise Failed(f"{pathlib.Path(command[0]).name} {command[1]}: " + " / ".join(lines[-3:]))
    return done.stdout


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
    venv.create(folder, with_pip=True, clear=True)
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
    wanted = repr((adapter.PACKAGES, getattr(adapter, "BORROWS", ())))
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


def megabytes(name, folder):
    """Returns what the library and all that it needs take, without pip. Borrowed packages do not count."""
    if name == "stoker_loader":
        import numpy
        import stoker

        packages = [pathlib.Path(module.__file__).parent for module in (stoker, numpy)]
        packages.append(packages[1].with_name("numpy.libs"))
    else:
        packages = [
            p for p in _site(folder / name).iterdir() if p.name.partition("-")[0] not in ("pip", "stoker")
        ]
    files = (file for package in packages for file in package.rglob("*") if "__pycache__" not in file.parts)
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink()) / 1e6
