"""Explains why the compiled part of the package cannot be loaded. Imports nothing that is compiled."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sysconfig

# By a library's file name, or by the part before ".so" in it: its Debian package ({}: the number behind
# ".so."), and the names of Fedora and conda-forge.
_PACKAGES = {
    "libfmt": ("libfmt{}", "fmt", "fmt"),
    "libhwy": ("libhwy{}", "highway", "libhwy"),
    "libjpeg.so.8": ("libjpeg-turbo8", "libjpeg-turbo", "libjpeg-turbo"),  # Ubuntu's
    "libjpeg": ("libjpeg{}-turbo", "libjpeg-turbo", "libjpeg-turbo"),
    "libspng": ("libspng{}", "libspng", "libspng"),
    "libtbb": ("libtbb{}", "tbb", "tbb"),
    "liburing": ("liburing{}", "liburing", "liburing"),
    "libwebp": ("libwebp{}", "libwebp", "libwebp-base"),
    "libz": ("zlib{}g", "zlib", "libzlib"),
}
_SONAME = re.compile(r"(?P<stem>lib[^/]+?)\.so\.(?P<number>\d+)")
_MISSING = re.compile(r"(?P<soname>[^\s/]+\.so[^\s/:]*): cannot open shared object file")
_TOO_OLD = re.compile(r"(?P<library>\S+): version [`'](?P<version>[^']+)' not found")
# auditwheel's name of a library that it has put into a wheel.
_OF_A_WHEEL = re.compile(r"-[0-9a-f]{8}\.so\.\d")
_FROM_SOURCE = "build stoker from its source on this machine (pip install . in a checkout)"


def in_words(error: ImportError, folder: pathlib.Path) -> ImportError:
    """Returns the exception to raise for an error of `from stoker import _stoker`.

    Args:
        error: the exception that was raised.
        folder: the folder of the package.
    """
    text = str(error)
    words = None
    if missing := _MISSING.search(text):
        words = _missing(missing["soname"], folder)
    elif old := _TOO_OLD.search(text):
        words = (
            f"{old['library']} is older than the one that this stoker was built with: it has no "
            f"{old['version']}. Install a newer one, or {_FROM_SOURCE}"
        )
    elif _extension(folder) is None:
        words = _without_extension(folder)
    if words is None:
        return error
    return ImportError(f"{words}. The import failed with: {text}", name="stoker._stoker", path=error.path)


def _missing(soname: str, folder: pathlib.Path) -> str:
    if soname.startswith("libstoker.so"):
        return _damaged(f"{soname}, stoker's own library,", folder)
    if _OF_A_WHEEL.search(soname):
        return _damaged(f"{soname}, which came with stoker,", folder.with_name("stoker.libs"))
    missing = sorted({soname, *_not_found(folder)})
    named = f"{', '.join(missing[:-1])} and {missing[-1]}" if missing[1:] else soname
    words = f"stoker needs {named}, and this machine does not have {'them' if missing[1:] else 'it'}"
    packages = [_packages(one) for one in missing]
    known = [names for names in packages if names is not None]
    if len(known) == len(missing):
        debian, fedora, conda = (" ".join(column) for column in zip(*known))
        words += (
            f". Install what is missing: apt-get install {debian} (Debian, Ubuntu), "
            f"dnf install {fedora} (Fedora) or conda install -c conda-forge {conda}"
        )
    else:
        words += f". Install {'the packages that have them' if missing[1:] else 'the package that has it'}"
    return (
        f"{words}. If it is installed in a folder of its own, add that folder to LD_LIBRARY_PATH. "
        f"If there is no such package, {_FROM_SOURCE}"
    )


def _damaged(what: str, folder: pathlib.Path) -> str:
    return (
        f"{what} is not in {folder}: the installation is damaged. "
        "Install the package again (pip install --force-reinstall)"
    )


def _packages(soname: str) -> tuple[str, str, str] | None:
    """Returns the names of a library's package in Debian, Fedora and conda-forge."""
    name = _SONAME.fullmatch(soname)
    if name is None:
        return None
    packages = _PACKAGES.get(soname) or _PACKAGES.get(name["stem"])
    if packages is None:
        return None
    debian, fedora, conda = packages
    return debian.format(name["number"]), fedora, conda


def _not_found(folder: pathlib.Path) -> list[str]:
    """Returns all libraries that the package's files miss: the loader names only the first."""
    files = [extension, *folder.glob("libstoker.so*")] if (extension := _extension(folder)) else []
    command = folder / "stoker"
    if command.is_file():
        files.append(command)
    try:
        done = subprocess.run(["ldd", *files], capture_output=True, check=False, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"(\S+) => not found", done.stdout)


def _extension(folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the compiled module for this Python."""
    path = folder / f"_stoker{sysconfig.get_config_var('EXT_SUFFIX')}"
    return path if path.is_file() else None


def _without_extension(folder: pathlib.Path) -> str:
    others = ", ".join(sorted(path.name for path in folder.glob("_stoker*.so")))
    if others:
        return (
            f"stoker in {folder} was built for another Python ({others}); this one would load "
            f"_stoker{sysconfig.get_config_var('EXT_SUFFIX')}. Install stoker for this Python"
        )
    return (
        f"{folder} has stoker's Python files without its compiled module: is it the source? "
        "Install stoker (pip install . in a checkout), and import it from another folder"
    )
