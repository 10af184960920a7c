#!/usr/bin/env python3
"""Checks a wheel before a release: what it holds, and whether it works where nothing else is installed.

  tools/check_wheel.py WHEEL [--image IMAGE]... [--root DIR]... [--tensorflow]

The wheel must have a manylinux tag and at most 10 MB, hold no debug symbols, need no shared library but
those that manylinux allows and no function of glibc without its version, and have a licence for each library
in it. Its command must make the same batches on processors without AVX2, SSE4 and SSSE3, which qemu-x86_64
emulates if it is here (Debian: qemu-user). Then tools/wheel_trial.py tries the wheel, without a network:

--image  in a container of docker or podman, whose Python must be the wheel's: python:3.11-slim for cp311
--root   in a root file system, as debootstrap makes it, with Python and its venv; needs root
neither  in python:3.N-slim if that image is here, otherwise in a venv on this system

Run it with the Python that the wheel is for. It needs pip, binutils, and a network for NumPy's wheel. A wheel
for aarch64 is tried on x86-64 in a --root or an --image of arm64, where the kernel runs its programs in qemu
(Debian: qemu-user-static and binfmt-support). Exit code 0 if all is well, 1 if something is not, 2 if a check
could not run.
"""

import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

TRIAL = pathlib.Path(__file__).with_name("wheel_trial.py")
MOST_BYTES = 10_000_000
# The libraries that every Linux with the tag's C library has, by PEP 600 and auditwheel.
ALLOWED = re.compile(
    r"(ld-linux-(x86-64|aarch64)|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|libz)\.so\.\d+"
)
# With SSE3 and no more, SSSE3, SSE4, AVX, AVX2.
PROCESSORS = ("qemu64", "core2duo", "Nehalem", "SandyBridge", "Haswell")
# TensorFlow has loaded it when the file that needs it is loaded.
OF_TENSORFLOW = "libtensorflow_framework.so.2"
NAME = re.compile(r"stoker-(?P<version>[^-]+)-(?P<python>cp\d+)-(?P<abi>cp\d+)-(?P<tags>[^-]+)\.whl")
TAG = re.compile(r"manylinux_2_(?P<glibc>\d+)_(?P<machine>x86_64|aarch64)")
OLDEST_GLIBC = 17  # the oldest that wheels for aarch64 name
NEWEST_GLIBC = 28  # 2.28, which the documents promise
OF_LIBSTDCXX = re.compile(r"(_ZN?K?St|_ZTVSt|__cxa_|__gxx_)\w*")  # a name without a version


class Unable(Exception):
    """The reason why a check could not run."""


def output(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Unable(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


# --- what the wheel holds -----------------------------------------------------------------------------------


def elf_files(tree):
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def findings_of_name(wheel):
    name = NAME.fullmatch(wheel.name)
    if name is None:
        yield f"{wheel.name} is not the name of a wheel of stoker for CPython"
    elif not all(TAG.fullmatch(tag) for tag in name["tags"].split(".")):
        yield f"the tag {name['tags']} is not manylinux's: pip cannot tell where it runs"
    elif min(int(tag["glibc"]) for tag in TAG.finditer(name["tags"])) > NEWEST_GLIBC:
        yield f"the tag {name['tags']} needs a newer glibc than 2.{NEWEST_GLIBC}"
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        yield f"it has {size:,} bytes, more than {MOST_BYTES:,}"


def findings_of_libraries(tree):
    """Every library that a file needs is in the wheel, or is allowed."""
    names = {path.name for path in elf_files(tree)}
    for path in elf_files(tree):
        dynamic = output("readelf", "--dynamic", "--wide", path)
        for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
            if needed not in names and not ALLOWED.fullmatch(needed) and needed != OF_TENSORFLOW:
                yield f"{path.relative_to(tree)} needs {needed}, which is not in the wheel"
        for folder in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            if not all(part.startswith("$ORIGIN") for part in folder.split(":")):
                yield f"{path.relative_to(tree)} looks for libraries in {folder}"
        if ".debug_info" in output("readelf", "--sections", "--wide", path):
            yield f"{path.relative_to(tree)} has debug symbols"


def symbols_of(path):
    """Returns the names that a library defines, and those that it needs; most have a version after @."""
    lines = output("readelf", "--dyn-syms", "--wide", path)
    symbols = re.findall(r"\b(?:GLOBAL|UNIQUE|WEAK) +DEFAULT +(\w+) (\S+)", lines)
    needed = re.findall(r"\bGLOBAL +DEFAULT +UND (\S+)", lines)
    return {name for section, name in symbols if section != "UND"}, set(needed)


def findings_of_versions(tree):
    """A name of glibc or libstdc++ without a version is one that the linker has not found: it is newer.

    Names of glibc are those of this system's, which has to be as new as that of the build.
    """
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    of_glibc = set()
    for library in {line.split()[-1] for line in maps.splitlines() if re.search(r"/lib(c|m)\.so\.6$", line)}:
        of_glibc |= {name.partition("@")[0] for name in symbols_of(library)[0]}
    if not of_glibc:
        raise Unable("this process has no libc.so.6: its names are not known")
    symbols = {path: symbols_of(path) for path in elf_files(tree)}
    defined = {name.partition("@")[0] for names, _ in symbols.values() for name in names}
    for path, (_, needed) in symbols.items():
        for name in sorted(needed):
            if name in of_glibc or (OF_LIBSTDCXX.fullmatch(name) and name not in defined):
                yield f"{path.relative_to(tree)} needs {name} of glibc or libstdc++, in any version"


def findings_of_licenses(tree):
    (info,) = tree.glob("*.dist-info")
    folder = info / "licenses"
    named = re.findall(r"^License-File: (.+)$", (info / "METADATA").read_text(encoding="utf-8"), re.M)
    for name in named:
        if not (folder / name).is_file() or not (folder / name).stat().st_size:
            yield f"the metadata names the licence {name}, which is not there"
    if "LICENSE" not in named:
        yield "stoker's own licence is missing"
    texts = {pathlib.Path(name).stem for name in named}
    for library in sorted(tree.glob("*.libs/*")):
        stem = re.match(r"lib[a-z]+", library.name)[0]
        if not any(text.startswith(stem) for text in texts):
            yield f"there is no licence of {library.name}"


def machine_of(wheel):
    """Returns the kind of processor that the wheel is for, if its name says so."""
    tag = TAG.search(wheel.name)
    return tag and tag["machine"]


def is_emulated(wheel):
    return machine_of(wheel) not in (None, platform.machine())


def findings_of_processors(tree):
    """The wheel's command makes the same batches on each processor. (NumPy runs on newer ones only.)"""
    if not shutil.which("qemu-x86_64"):
        print("older processors: not tried, because qemu-x86_64 is not here (Debian: qemu-user)")
        return
    command = tree / "stoker" / "stoker"
    command.chmod(0o755)
    with tempfile.TemporaryDirectory() as photos:
        output(command, "synth", photos, "--count", 12)
        epoch = [
            command,
            "bench",
            photos,
            "--epochs",
            1,
            "--size",
            64,
            "--batch-size",
            4,
            "--digest",
            "--json",
        ]
        wanted = json.loads(output(*epoch))["digest"]
        for processor in PROCESSORS:
            done = subprocess.run(
                [*map(str, ["qemu-x86_64", "-cpu", processor, *epoch])],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                yield f"on the processor {processor} the command ended with {done.returncode}: {done.stderr}"
            elif json.loads(done.stdout)["digest"] != wanted:
                yield f"on the processor {processor} the command makes other batches"
    print(f"older processors: {', '.join(PROCESSORS)}")


def show(wheel, tree):
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    with zipfile.ZipFile(wheel) as archive:
        files = sorted(archive.infolist(), key=lambda file: -file.compress_size)
    for file in files[:14]:
        print(f"  {file.compress_size / 1e3:8.0f} KB of {file.file_size / 1e3:8.0f}  {file.filename}")
    versions = set()
    for path in elf_files(tree):
        versions |= set(
            re.findall(r"\b(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", output("readelf", "-V", "-W", path))
        )
    for library in ("GLIBC", "GLIBCXX", "CXXABI"):
        newest = max((tuple(map(int, v.split("."))) for name, v in versions if name == library), default=())
        print(f"  needs {library} {'.'.join(map(str, newest))}")


def extract(wheel, tree):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)


# --- trying it ----------------------------------------------------------------------------------------------


def prepare(wheel, folder, tensorflow):
    """Fills a folder with all that a trial needs, so that it needs no network."""
    python = NAME.fullmatch(wheel.name)["python"]
    if python != f"cp{sys.version_info.major}{sys.version_info.minor}":
        raise Unable(f"run this with the Python that the wheel is for, {python}")
    shutil.copy(wheel, folder)
    shutil.copy(TRIAL, folder)
    packages = ["numpy", *(["tensorflow-cpu"] if tensorflow else [])]
    download(wheel, folder, packages)
    words = "--tensorflow" if tensorflow else ""
    install = " ".join(["stoker", *packages])
    (folder / "trial.sh").write_text(
        "set -eu\nunset LD_LIBRARY_PATH PYTHONPATH\n"
        "folder=$(mktemp -d)\n"
        "trap 'rm -rf \"$folder\"' EXIT\n"
        'cd "$folder"\n'
        "${PYTHON:-python3} -m venv venv\n"
        f'venv/bin/python -m pip install -q --no-index --find-links "$1" {install}\n'
        f'venv/bin/python "$1/{TRIAL.name}" {words}\n'
    )


def download(wheel, folder, packages):
    """Downloads the wheels of packages for the processor of the wheel."""
    options = []
    if is_emulated(wheel):
        options.append("--only-binary=:all:")
        for glibc in range(OLDEST_GLIBC, NEWEST_GLIBC + 1):
            options += ["--platform", f"manylinux_2_{glibc}_{machine_of(wheel)}"]
    output(sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, *options, *packages)


def containers():
    """Returns the program that runs containers here, or None."""
    for program in ("docker", "podman"):
        if shutil.which(program) and subprocess.run([program, "info"], capture_output=True).returncode == 0:
            return program
    return None


def in_image(program, image, folder):
    return [program, "run", "--rm", "--network", "none", "--volume", f"{folder}:/wheel:ro", image,
            "sh", "/wheel/trial.sh", "/wheel"]  # fmt: skip


def in_root(root, folder):
    """Its mounts are those of a namespace of its own, which ends with the command."""
    script = (
        'set -eu; mkdir -p "$1/proc" "$1/dev" "$1/mnt/wheel"; mount -t proc proc "$1/proc"; '
        'mount --rbind /dev "$1/dev"; mount --bind "$2" "$1/mnt/wheel"; '
        'exec chroot "$1" env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin '
        "sh /mnt/wheel/trial.sh /mnt/wheel"
    )
    return ["unshare", "--mount", "--net", "sh", "-c", f"ip link set lo up; {script}", "sh", root, folder]


def here(folder):
    return ["env", f"PYTHON={sys.executable}", "sh", folder / "trial.sh", folder]


def places(arguments, wheel, folder):
    """Yields the name and the command of each trial."""
    program = containers()
    if arguments.image and program is None:
        raise Unable("neither docker nor podman runs here")
    for image in arguments.image:
        yield image, in_image(program, image, folder)
    for root in arguments.root:
        yield f"the root {root}", in_root(root.resolve(), folder)
    if not arguments.image and not arguments.root:
        image = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
        if (
            program
            and subprocess.run([program, "image", "inspect", image], capture_output=True).returncode == 0
        ):
            yield image, in_image(program, image, folder)
        elif is_emulated(wheel):
            raise Unable(f"name a --root or an --image of {machine_of(wheel)}, or say --only-look")
        else:
            yield "a venv on this system", here(folder)


def try_all(arguments, wheel):
    """Yields what is wrong."""
    digests = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        prepare(wheel, folder, arguments.tensorflow)
        for name, command in places(arguments, wheel, folder):
            print(f"\nin {name}:", flush=True)
            done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False)
            lines = done.stdout.splitlines()
            print("\n".join("  " + line for line in lines[:-1]))
            if done.returncode and not (lines and lines[-1].startswith("{")):
                yield f"the trial in {name} ended with {done.returncode}: {lines[-1:]}"
                continue
            result = json.loads(lines[-1])
            digests[name] = result["digest"]
            yield from (f"in {name}: {failed}" for failed in result["failed"])
    if len(set(digests.values())) > 1:
        yield f"the batches differ: {digests}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--image", action="append", default=[], help="of docker or podman")
    parser.add_argument("--root", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--tensorflow", action="store_true", help="install it, and try its ops, too")
    parser.add_argument("--only-look", action="store_true", help="do not try it")
    arguments = parser.parse_args()
    wheel = arguments.wheel.resolve()
    try:
        found = [*findings_of_name(wheel)]
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch)
            extract(wheel, tree)
            show(wheel, tree)
            for findings in (findings_of_libraries, findings_of_versions, findings_of_licenses):
                found += findings(tree)
            if machine_of(wheel) == "x86_64":
                found += findings_of_processors(tree)
        if not arguments.only_look:
            found += try_all(arguments, wheel)
    except (Unable, OSError) as error:
        print(f"check_wheel: {error}", file=sys.stderr)
        return 2
    print("\n".join(f"FOUND: {one}" for one in found) or "nothing is wrong with it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
