"""Packs or builds what the steps of measure.py run: programs and the Python package.

    bench/gpu/prepare.py machine|programs|package --work FOLDER [--cuda]

WORK/pack is an unpacked pack: bin/ (programs), lib/ (shared libraries that not all systems have),
site/ (the package, for the packing Python), and packages/ (Debian's, for compiling). `programs` and
`package` make WORK/bin and WORK/site: links to the pack's where these run here; otherwise they compile the
checkout, for this machine's GPU. That needs nvcc, CMake and Ninja, and for the package pybind11 and
scikit-build-core.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 64 << 20
# Programs, and where the build puts them.
PROGRAMS = {
    "stoker": "stoker",
    "device_bench": "bench/device_bench",
    "gpu_device_test": "tests/gpu/gpu_device_test",
    "stager_test": "tests/gpu/stager_test",
    "gpu_deferred_ops_test": "tests/gpu/gpu_deferred_ops_test",
    "gpu_crops_test": "tests/gpu/decode/gpu_crops_test",
    "device_loader_test": "tests/engine/device_loader_test",
    "device_decode_test": "tests/engine/device_decode_test",
}
TARGETS = ["stoker_cli" if name == "stoker" else name for name in PROGRAMS]
OF_EVERY_SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+)\.so\b")
DEBIAN = """
libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libhwloc15 liburing-dev liburing2 libjpeg62-turbo-dev
libjpeg62-turbo libturbojpeg0-dev libturbojpeg0 libspng-dev libspng0 libarchive-dev libcurl4-openssl-dev
libprotozero-dev libwebp-dev libwebp7 libwebpdemux2 libwebpmux3 libhwy-dev libhwy1 libcli11-dev
nlohmann-json3-dev libfmt-dev libfmt9 zlib1g-dev libgtest-dev libgmock-dev googletest libbenchmark-dev
libbenchmark1debian pkg-config pkgconf pkgconf-bin libpkgconf3
""".split()  # noqa: SIM905
TOOLS = ("nvcc", "cmake", "ninja", "g++", "compute-sanitizer", "taskset")
DISTRIBUTIONS = ("torch", "torchvision", "jax", "cupy-cuda13x", "numpy", "tensorflow", "nvidia-dali-cuda130",
           "matplotlib", "pytest", "pybind11", "scikit-build-core")  # fmt: skip


def environment(work):
    """Returns the variables with which programs, the package and Debian's unpacked packages are found."""
    pack, root, made = work / "pack", work / "packages" / "usr", dict(os.environ)
    library = root / "lib/x86_64-linux-gnu"

    def prepend(name, *paths):
        made[name] = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get(name)])])

    prepend("PYTHONPATH", work / "site")
    libraries = []
    used = [path.resolve() for path in (work / "bin", work / "site") if path.exists()]
    if not used or any(path.is_relative_to(pack) for path in used):
        libraries.append(pack / "lib")
    if root.is_dir():
        libraries.append(library)
        prepend("PATH", root / "bin")
        prepend("CMAKE_PREFIX_PATH", root)
        prepend("LIBRARY_PATH", library)
        prepend("PKG_CONFIG_PATH", library / "pkgconfig")
        prepend("CPATH", root / "include", root / "include/x86_64-linux-gnu")
    if libraries:
        prepend("LD_LIBRARY_PATH", *libraries)
    return made


def run(*command, cwd=ROOT, env=None):
    print("+", *command, flush=True)
    subprocess.run([*map(str, command)], check=True, cwd=cwd, env=env)


def attempt(*command, **options):
    """Returns whether the command succeeds, and what it prints; the last line of that if it fails."""
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=30, check=False, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    if done.returncode == 0:
        return True, done.stdout.strip()
    return False, "\n".join((done.stderr or done.stdout).splitlines()[-1:]) or f"exit code {done.returncode}"


def said(*command, **options):
    return attempt(*command, **options)[1]


def version_of_program(name):
    found = re.search(r"\d+(\.\d+)+", said(name, "--version")) if shutil.which(name) else None
    return found[0] if found else "none"


def version_of_distribution(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


# --- which code it is -------------------------------------------------------------------------------


def digest(*files):
    """Returns twelve digits of the SHA-256 of the files' contents; empty if there are none."""
    sums = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()[:12] if sums else ""


def commit_of_checkout():
    found, text = attempt("git", "describe", "--always", "--dirty", cwd=ROOT)
    return text if found else "unknown commit"


def commit_of_pack(pack):
    told = pack / "pack.json"
    return json.loads(told.read_text())["commit"] if told.is_file() else "unknown commit"


def code(work):
    """Returns which code the programs and the package in WORK are of: commits, and a digest of the files."""
    places = [path for path in (work / "bin", work / "site") if path.exists()]
    packed = [path.resolve().is_relative_to(work / "pack") for path in places]
    commits = {commit_of_pack(work / "pack") if is_packed else commit_of_checkout() for is_packed in packed}
    programs = [work / "bin" / name for name in PROGRAMS]
    files = [*filter(pathlib.Path.is_file, programs), *sorted((work / "site").rglob("*.so*"))]
    return " ".join(filter(None, [" + ".join(sorted(commits)), digest(*files)]))


# --- whether packed things run ----------------------------------------------------------------------


def packed_environment(pack):
    return {**os.environ, "LD_LIBRARY_PATH": str(pack / "lib"), "PYTHONPATH": str(pack / "site")}


def why_not_programs(pack):
    """Returns the first packed program that does not run here, and the reason; empty: all do."""
    for name in PROGRAMS:
        if not (pack / "bin" / name).is_file():
            return f"{pack / 'bin' / name} is not there"
        runs, why_not = attempt(pack / "bin" / name, "--help", env=packed_environment(pack))
        if not runs:
            return f"{name}: {why_not}"
    return ""


def why_not_package(pack):
    if not (pack / "site" / "stoker").is_dir():
        return f"{pack / 'site' / 'stoker'} is not there"
    runs, why_not = attempt(sys.executable, "-c", "import stoker", env=packed_environment(pack))
    return "" if runs else why_not


# --- building ---------------------------------------------------------------------------------------


def compile_programs(folder, *options):
    # OFF, ON: pip uses the same folder, so that nothing is compiled twice.
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DSTOKER_BENCH=ON",
        "-DSTOKER_TESTS=ON", "-DSTOKER_PYTHON=OFF", *options)  # fmt: skip
    run("cmake", "--build", folder, "--target", *TARGETS)


def unpack_packages(work):
    for package in sorted((work / "pack" / "packages").glob("*.deb")):
        run("dpkg", "-x", package, work / "packages")
    os.environ.update(environment(work))


def for_this_machine(cuda):
    return ["STOKER_CUDA=ON", "CMAKE_CUDA_ARCHITECTURES=native"] if cuda else []


def make_programs(work, cuda):
    why_not = why_not_programs(work / "pack")
    if not why_not:
        return link(work / "bin", work / "pack" / "bin")
    print(f"compiling: {why_not}")
    unpack_packages(work)
    compile_programs(work / "cmake", *(f"-D{option}" for option in for_this_machine(cuda)))
    made = work / "made"
    made.mkdir(exist_ok=True)
    for name, path in PROGRAMS.items():
        link(made / name, work / "cmake" / path)
    link(work / "bin", made)


def make_package(work, cuda):
    why_not = why_not_package(work / "pack")
    if not why_not:
        return link(work / "site", work / "pack" / "site")
    print(f"building the package: {why_not}")
    unpack_packages(work)
    made = work / "made-site"
    install_package(made, work, *for_this_machine(cuda), pip=["--no-index", "--no-build-isolation"])
    link(work / "site", made)


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def install_package(folder, work, *definitions, pip=()):
    settings = [f"-Ccmake.define.{definition}" for definition in definitions]
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *pip,
        "--upgrade", "--target", folder, ".", f"-Cbuild-dir={work / 'cmake'}", *settings)  # fmt: skip


# --- packing ----------------------------------------------------------------------------------------


def pack(archive, work):
    folder = work / "pack"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "lib", "packages"):
        (folder / name).mkdir(parents=True)
    compile_programs(work / "cmake", "-DSTOKER_CUDA=ON")
    for name, path in PROGRAMS.items():
        run("strip", "-o", folder / "bin" / name, work / "cmake" / path)
    install_package(folder / "site", work, "STOKER_CUDA=ON")
    for file in [*(folder / "bin").iterdir(), *(folder / "site").rglob("*.so*")]:
        for name, path in re.findall(r"(\S+) => (/\S+)", said("ldd", file)):
            if not OF_EVERY_SYSTEM.match(name) and not (folder / "site" / "stoker" / name).exists():
                shutil.copy(path, folder / "lib" / name)
    if shutil.which("apt-get"):
        run("apt-get", "download", "-q", *DEBIAN, cwd=folder / "packages")
    told = {"commit": commit_of_checkout(),
            "python": platform.python_version(), "nvcc": version_of_program("nvcc")}  # fmt: skip
    (folder / "pack.json").write_text(json.dumps(told) + "\n")
    archive.parent.mkdir(parents=True, exist_ok=True)
    run("tar", "-C", folder, "-cJf", archive, ".", env={**os.environ, "XZ_OPT": "-1"})
    size = archive.stat().st_size
    why_not = why_not_programs(folder)
    if size > MOST_BYTES:
        why_not = why_not or f"it is larger than {MOST_BYTES >> 20} MiB"
    print(f"{archive}: {size / (1 << 20):.1f} MiB")
    print(
        why_not
        or f"for Python {told['python']}; in this one the package: {why_not_package(folder) or 'runs'}"
    )
    return 1 if why_not else 0


# --- the machine ------------------------------------------------------------------------------------


def machine(work, cuda):
    """Prints what is there."""
    gpus = "name,driver_version,memory.total,pcie.link.gen.max,pcie.link.width.max"
    pages = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    kib = dict(re.findall(r"(\w+):\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text()))
    pack, packed = work / "pack", work / "pack" / "pack.json"
    facts = {
        "gpus": said("nvidia-smi", f"--query-gpu={gpus}", "--format=csv,noheader").splitlines(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": int(kib["MemTotal"]) >> 20,
        "system": f"{platform.platform()}, {' '.join(platform.libc_ver())}",
        "python": f"{platform.python_version()}, {sys.executable}",
        "huge_pages": pages.read_text().strip() if pages.exists() else "none",
        "memlock_bytes": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
        "pack": json.loads(packed.read_text()) if packed.is_file() else f"{packed} is not there",
        "packed_programs": why_not_programs(pack) or "run",
        "packed_package": why_not_package(pack) or "runs",
    }
    facts.update({name: version_of_program(name) for name in TOOLS})
    facts.update({name: version_of_distribution(name) for name in DISTRIBUTIONS})
    print(json.dumps(facts))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["machine", "programs", "package"])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--cuda", action="store_true", help="compile for this machine's GPU")
    args = parser.parse_args()
    made = {"machine": machine, "programs": make_programs, "package": make_package}[args.what]
    try:
        made(args.work, args.cuda)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
