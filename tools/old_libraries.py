#!/usr/bin/env python3
"""Makes the libraries that a manylinux_2_28 wheel is linked with, on Debian 12; `./dev wheel` runs it.

  tools/old_libraries.py FOLDER [--cxx COMPILER]

A linker binds each call to the newest version of the function that it finds, and older systems lack it. So
FOLDER has

lib*.so  linker scripts for glibc, libstdc++ and libgcc. Each names a stub, then code for what the stub lacks:
         tools/old_glibc for glibc's newer functions, libstdc++.a for those of libstdc++. (Red Hat's toolsets
         do the latter, too.)
stubs/   libraries with the names that manylinux_2_28 allows, in their newest allowed versions, without code
lib/     Debian's libraries that need newer versions, compiled from Debian's source of the installed version
link     the options that make a linker use all this, as @FOLDER/link

What libstdc++.a adds is private to each library. With it come the terminate handlers: one that a program sets
is not called for an exception that a library rethrows from a std::exception_ptr and that nothing catches.
"""

import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

# The newest versions that manylinux_2_28 allows, as auditwheel lists them.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
# A line of `readelf --dyn-syms --wide` with a symbol that the library defines.
SYMBOL = re.compile(
    r"(?P<size>\w+) (?P<kind>[A-Z]+) +[A-Z]+ +DEFAULT +\d+ "
    r"(?P<name>[\w.]+)@@?(?P<version>(?P<set>[A-Z]+)_(?P<number>[\d.]+))$",
    re.MULTILINE,
)
# Names that libc.so.6 has in newer versions today, and where glibc 2.28 has the older ones: that library must
# be named, or it is not loaded. Other names that moved (libutil's, libresolv's) are in no stub.
MOVED = {
    "libc.so.6": re.compile(r"__libc_start_main"),
    "libpthread.so.0": re.compile(r"_*pthread_|sem_|thrd_|mtx_|cnd_|tss_|call_once"),
    "libdl.so.2": re.compile(r"dl"),
    "librt.so.1": re.compile(r"aio_|lio_|_*mq_|shm_|timer_"),
}
SECTIONS = {"OBJECT": ("object", ".data"), "TLS": ("tls_object", '.tdata,"awT"')}
LINK = (
    "-L{0} -Wl,--no-as-needed,--allow-shlib-undefined,--exclude-libs,libstdc++.a,--wrap=__libc_start_main\n"
)
COMPILED = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
# The package of each library in lib/, and CMake's target in its source.
PACKAGES = {
    "libfmt.so.9": ("libfmt-dev", "fmt"),
    "libtbb.so.12": ("libtbb-dev", "tbb"),
    "libwebp.so.7": ("libwebp-dev", "webp"),
}
HARDENED = "-fstack-protector-strong -D_FORTIFY_SOURCE=2"  # as Debian's libraries are
CMAKE = ("-G", "Ninja", "--no-warn-unused-cli", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
         "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DFMT_TEST=OFF",
         "-DTBB_TEST=OFF", "-DTBB_STRICT=OFF", "-DTBB_ENABLE_IPO=OFF",
         f"-DCMAKE_C_FLAGS={HARDENED}", f"-DCMAKE_CXX_FLAGS={HARDENED}")  # fmt: skip
# Debian's source archives, at the mirror that the system's apt uses.
SOURCES = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) main"


def run(*command, **options):
    """Returns what the command prints on stdout."""
    command = [*map(str, command)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout.strip()


def allowed(symbols):
    """Returns {name: match} with the newest version of each name that linkers find: it has a default, @@."""
    newest = {}
    defaults = set(re.findall(r"([\w.]+)@@", symbols))
    for found in SYMBOL.finditer(symbols):
        version = tuple(map(int, found["number"].split(".")))
        if found["name"] in defaults and version <= NEWEST.get(found["set"], ()):
            newest.setdefault(found["name"], []).append((version, found))
    return {name: max(versions, key=lambda of: of[0])[1] for name, versions in newest.items()}


def home(name, symbol, library):
    """Returns the library that has the symbol in glibc 2.28 if `library` has it today; None if unknown."""
    if library != "libc.so.6" or "@@" in symbol[0]:
        return library
    return next((moved for moved, names in MOVED.items() if names.match(name)), None)


def make_stub(cxx, symbols, stub):
    code, versions = ['.section .note.GNU-stack,"",%progbits'], {}
    for name, symbol in symbols.items():
        kind, section = SECTIONS.get(symbol["kind"], ("function", ".text"))
        size = int(symbol["size"], 0) if kind != "function" else 1
        code += [f".section {section}", ".balign 32", f".globl {name}", f".type {name},%{kind}",
                 f".size {name},{size}", f"{name}: .zero {size}"]  # fmt: skip
        versions.setdefault(symbol["version"], []).append(name)
    nodes = [f"{version} {{ {'; '.join(names)}; }};\n" for version, names in versions.items()]
    source, script = stub.with_name(f"{stub.name}.s"), stub.with_name(f"{stub.name}.map")
    source.write_text("\n".join([*code, ""]))
    script.write_text("".join(nodes))
    options = f"-Wl,-soname,{stub.name},--version-script,{script}"
    run(cxx, "-shared", "-nostdlib", options, source, "-o", stub)


def make_stubs(cxx, folder):
    def found(name):
        return pathlib.Path(run(cxx, f"-print-file-name={name}"))

    (folder / "stubs").mkdir()
    for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
        homes = {}
        for symbol in allowed(run("readelf", "--dyn-syms", "--wide", found(name))).items():
            homes.setdefault(home(*symbol, name), []).append(symbol)
        for library, symbols in homes.items():
            if library:
                make_stub(cxx, dict(symbols), folder / "stubs" / library)
    for source in pathlib.Path(__file__).with_name("old_glibc").glob("*.cc"):
        run(cxx, *COMPILED, "-c", source, "-o", folder / f"{source.stem}.o")
    run("ar", "rcs", folder / "libold_glibc.a", *folder.glob("*.o"))
    libc = found("libc.so").read_text()
    parts = " ".join(f"{folder}/stubs/{name}" for name in MOVED)
    libc = re.sub(r"\S+/libc\.so\.6", f"{parts} {folder}/libold_glibc.a", libc)
    (folder / "libc.so").write_text(libc)
    (folder / "libm.so").write_text(f"INPUT({folder}/stubs/libm.so.6)\n")
    (folder / "libstdc++.so").write_text(f"INPUT({folder}/stubs/libstdc++.so.6 {found('libstdc++.a')})\n")
    (folder / "libgcc_s.so").write_text(f"GROUP({folder}/stubs/libgcc_s.so.1 {found('libgcc.a')})\n")
    (folder / "link").write_text(LINK.format(folder))


def compile_libraries(cxx, folder):
    (folder / "apt" / "lists" / "partial").mkdir(parents=True)
    targets = run("apt-get", "indextargets", "--format", SOURCES, "Origin: Debian", "Component: main")
    if not targets:
        sys.exit("old_libraries: apt has no list of Debian's packages: run apt-get update, on Debian 12")
    (folder / "apt" / "sources").write_text("\n".join([*dict.fromkeys(targets.splitlines()), ""]))
    places = {"Etc::sourcelist": "sources", "State::lists": "lists", "Cache": "cache"}
    options = [word for key, name in places.items() for word in ("-o", f"Dir::{key}={folder}/apt/{name}")]
    apt_get = ["apt-get", "-o", "Dir::Etc::sourceparts=-", *options]
    run(*apt_get, "update")
    for library, (package, target) in PACKAGES.items():
        source = run(
            "dpkg-query", "--show", "--showformat=${source:Package}=${source:Version} ", package
        ).split()[0]
        run(*apt_get, "source", source, cwd=folder / "apt")
        (unpacked,) = folder.glob(f"apt/{source.partition('=')[0]}-*/")
        build = folder / target
        run("cmake", "-S", unpacked, "-B", build, *CMAKE, f"-DCMAKE_CXX_COMPILER={cxx}",
            f"-DCMAKE_SHARED_LINKER_FLAGS=@{folder}/link -Wl,-z,relro,-z,now")  # fmt: skip
        run("cmake", "--build", build, "--target", target)
        (made,) = (path for path in build.rglob(library) if "CMakeFiles" not in path.parts)
        shutil.copy(made, folder / "lib")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, help="is emptied first")
    parser.add_argument("--cxx", default="c++", help="its processor is that of the wheel")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    try:
        make_stubs(arguments.cxx, folder)
        compile_libraries(arguments.cxx, folder)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"old_libraries: {shlex.join(error.cmd)} ended with {error.returncode}: {error.stdout[-2000:]}\n"
            "Debian's sources are those of its newest packages: run apt-get upgrade if apt-get source failed"
        )


if __name__ == "__main__":
    main()
