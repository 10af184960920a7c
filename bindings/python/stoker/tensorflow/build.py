"""Builds the dataset op for the TensorFlow that is installed: `stoker build-tf-plugin`.

TensorFlow's C++ interfaces change with every release, so the op ships as source. It takes about half a
minute once (20 s to compile, 7 s to try); the result is kept in the user's cache folder (XDG_CACHE_HOME)
under a hash of everything that it depends on: the exact TensorFlow and its build flags, the compiler,
stoker's plugin interface, the source. It is accepted after it has read a few batches in a separate
process. The cache holds code that this process will run, so it is loaded only from folders that belong
to the user or to root and that other users cannot write to, and whose parents are not world-writable.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import tensorflow as tf

import stoker

_NATIVE = pathlib.Path(__file__).with_name("native")
_SOURCE = "bindings/tensorflow/native/dataset_op.cc"
_FLAGS = ["-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-pthread"]
_LINK = ["-Wl,-z,defs", "-Wl,--exclude-libs,ALL"]
_COMPILE_SECONDS = 600
_PROOF_SECONDS = 300

# A compiler's messages when the machine failed, not the source: another try may succeed.
_PASSING = [
    *map(os.strerror, [errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EMFILE, errno.ENFILE]),
    *("out of memory", "memory exhausted", "temporary file", "Killed", "due to signal", "no end after"),
]

# Runs the proof with this process' packages, in their order, but after Python's own library.
_PROOF = """
import json, runpy, sys
own = [path for path in sys.path if not path.endswith(("site-packages", "dist-packages"))]
sys.path[:] = own + [path for path in json.loads(sys.argv.pop(1)) if path not in own]
runpy.run_module("stoker.tensorflow._proof", run_name="__main__", alter_sys=True)
"""


class PluginError(RuntimeError):
    """The dataset op cannot be built or used here; the message says why."""


class _RefusedError(PluginError):
    """The compiler rejects the source, and would do so again."""


def plugin(force: bool = False) -> pathlib.Path:
    """Returns the plugin for this TensorFlow: from the cache; otherwise built now, and stderr says so.

    Args:
        force: build it even if the cache has one.

    Raises:
        PluginError: there is no compiler, or no source, the build or the proof failed, or the cache
            cannot be written.
    """
    compiler, path = _find()
    place = path.parent
    if compiler is None or (not force and _is_good(path)):
        return path
    try:
        place.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (place.parent, place):
            folder.mkdir(mode=0o700, exist_ok=True)
        _check_owner(place)
        with _lock(place / "lock"):
            if force or not _is_good(path):  # another rank may have been first
                if not force:
                    _raise_if_refused(path)
                _build_or_note(compiler, path)
    except OSError as error:
        raise PluginError(f"the plugin cannot be kept: {error}; set XDG_CACHE_HOME") from error
    return path


def state() -> tuple[str, str]:
    """Returns what `as_tf_dataset` would use, and where it is or why, without building anything.

    "built": the dataset op. "missing": it is built at first use. "prebuilt": it cannot be built, and the
    ops in TensorFlow's C API replace it.
    """
    try:
        _, path = _find()
        if _is_good(path):
            return "built", str(path)
        _raise_if_refused(path)
    except PluginError as error:
        return "prebuilt", str(error)
    return "missing", "the first as_tf_dataset() builds it, or `stoker build-tf-plugin`"


def _find() -> tuple[Optional[_Compiler], pathlib.Path]:
    """Returns the compiler, and where its plugin is or will be; without a compiler, a plugin that exists."""
    compiler, place = _find_compiler(), _place()
    _check_owner(place)
    if compiler is None:
        return None, _any_cached(place)
    return compiler, place / f"{compiler.digest}.so"


# --- the cache ---------------------------------------------------------------------------------------


def _place() -> pathlib.Path:
    """Returns the cache folder for everything but the compiler, which a cached plugin does not need."""
    flags = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
    digest = hashlib.sha256(
        json.dumps([tf.__version__, _framework().stat().st_size, flags, _FLAGS, _LINK]).encode()
    )
    for source in _sources():
        digest.update(str(source.relative_to(_NATIVE)).encode())
        digest.update(source.read_bytes())
    # Links are resolved once, here, so that the checked file is the loaded one.
    name = f"tensorflow-{tf.__version__}-{digest.hexdigest()[:16]}"
    return pathlib.Path(_cache(), "stoker", name).resolve()


def _cache() -> pathlib.Path:
    """Returns the user's cache folder; a relative XDG_CACHE_HOME is ignored, as its specification says."""
    for folder in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(folder):
            return pathlib.Path(folder)
    raise PluginError("there is no home folder to keep the plugin in; set XDG_CACHE_HOME to an absolute path")


def _check_owner(place: pathlib.Path) -> None:
    """Raises PluginError if other users could have put files into this folder. It need not exist."""
    for folder in (place.parent, place):
        with contextlib.suppress(OSError):
            _refuse_others(folder, os.lstat(folder))
    for folder in place.parent.parents:
        with contextlib.suppress(OSError):
            mode = os.stat(folder).st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise PluginError(
                    f"any user can replace files in {folder}, so no plugin is loaded from there; "
                    f"run `chmod o-w {shlex.quote(str(folder))}`, or set XDG_CACHE_HOME to another folder"
                )


def _refuse_others(path: pathlib.Path, status: os.stat_result) -> None:
    # Root may write anywhere: users can load a plugin that root has built into an image.
    if status.st_uid not in (os.geteuid(), 0):
        raise PluginError(
            f"{path} belongs to user {status.st_uid}, not to {os.geteuid()}, so the plugin there is not "
            "loaded; remove it, or set XDG_CACHE_HOME to a folder of your own"
        )
    if status.st_mode & 0o022:
        raise PluginError(
            f"{path} can be written by other users, so the plugin there is not loaded; "
            f"run `chmod go-w {shlex.quote(str(path))}` if everything in it is yours"
        )


def _sources() -> list[pathlib.Path]:
    # STOKER_ABI_VERSION is in one of them.
    sources = sorted(path for path in _NATIVE.rglob("*") if path.suffix in (".cc", ".h"))
    if not sources:
        raise PluginError(f"the source of the plugin is not in {_NATIVE}; install the package again")
    return sources


def _framework() -> pathlib.Path:
    for name in ("libtensorflow_framework.so.2", "libtensorflow_framework.2.dylib"):
        path = pathlib.Path(tf.sysconfig.get_lib(), name)
        if path.exists():
            return path
    raise PluginError(f"TensorFlow's library is not in {tf.sysconfig.get_lib()}")


def _any_cached(place: pathlib.Path) -> pathlib.Path:
    """Returns a plugin that another compiler built, for images without a compiler."""
    for path in sorted(place.glob("*.so")):
        if _is_good(path):
            return path
    asked = os.environ.get("CXX")
    missing = f"CXX={asked} does not run" if asked else "there is no C++ compiler (install g++, or set CXX)"
    raise PluginError(f"{missing}, and there is no plugin that was built before")


def _is_good(path: pathlib.Path) -> bool:
    """Returns whether the file is byte for byte the one that this user accepted for this TensorFlow."""
    try:
        for part in (path, path.with_suffix(".json")):
            _refuse_others(part, os.stat(part))
        said = json.loads(path.with_suffix(".json").read_text())
        content = path.read_bytes()
    except (OSError, ValueError, PluginError):
        return False
    return bool(
        isinstance(said, dict)
        and said.get("tensorflow") == tf.__version__
        and said.get("sha256") == hashlib.sha256(content).hexdigest()
    )


def _raise_if_refused(path: pathlib.Path) -> None:
    """Remembers that the compiler failed, to save each process the time of trying again, until --force."""
    note = path.with_suffix(".json")
    try:
        _refuse_others(note, os.stat(note))
        said = json.loads(note.read_text())
    except (OSError, ValueError, PluginError):
        return
    if isinstance(said, dict) and isinstance(said.get("refused"), str):
        raise PluginError(f"{said['refused']} (recorded in {note}; `--force` tries again)")


@contextlib.contextmanager
def _lock(path: pathlib.Path) -> Iterator[None]:
    """Makes one process build while the others wait; if files cannot be locked, each builds its own."""
    with open(path, "a", encoding="utf-8") as file:
        with contextlib.suppress(OSError):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say(f"waiting for another process that builds the dataset op in {path.parent}")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(f"stoker: {line}", file=sys.stderr, flush=True)


# --- building ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Compiler:
    command: list[str]
    version: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.command, self.version]).encode()).hexdigest()[:16]


def _find_compiler() -> Optional[_Compiler]:
    """Returns $CXX, or the first of the usual names that runs."""
    asked = os.environ.get("CXX")
    candidates = [shlex.split(asked)] if asked else [["g++"], ["c++"], ["clang++"]]
    for command in candidates:
        if not command or shutil.which(command[0]) is None:
            continue
        answer = _run([*command, "--version"], 60)
        if answer.returncode == 0:
            return _Compiler(command, answer.stdout.partition("\n")[0].strip())
    return None


def _build_or_note(compiler: _Compiler, path: pathlib.Path) -> None:
    try:
        _build(compiler, path)
    except _RefusedError as error:
        if _is_good(path):  # forced, and the earlier plugin still serves
            raise
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            note = pathlib.Path(folder, "plugin.json")
            note.write_text(json.dumps({"tensorflow": tf.__version__, "refused": str(error)}) + "\n")
            note.chmod(0o644)
            os.replace(note, path.with_suffix(".json"))
        raise


def _build(compiler: _Compiler, path: pathlib.Path) -> None:
    _say(
        f"building the dataset op for TensorFlow {tf.__version__} with {compiler.version} "
        "(once; about half a minute)"
    )
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = pathlib.Path(folder, "plugin.so")
        _compile(compiler, made)
        built = time.monotonic()
        _prove(made, pathlib.Path(folder))
        proven = time.monotonic()
        made.chmod(0o755)
        said = {
            "tensorflow": tf.__version__,
            "stoker": stoker.__version__,
            "compiler": compiler.version,
            "build_seconds": round(built - start, 1),
            "proof_seconds": round(proven - built, 1),
            "sha256": hashlib.sha256(made.read_bytes()).hexdigest(),
        }
        note = pathlib.Path(folder, "plugin.json")
        note.write_text(json.dumps(said, indent=1) + "\n")
        note.chmod(0o644)
        # Each file appears as a whole; a pair that does not match is ignored and built again.
        os.replace(made, path)
        os.replace(note, path.with_suffix(".json"))
    _say(f"the dataset op is in {path}: compiled in {built - start:.0f} s, tried in {proven - built:.0f} s")


def _compile(compiler: _Compiler, out: pathlib.Path) -> None:
    command = [
        *compiler.command,
        *tf.sysconfig.get_compile_flags(),
        *_FLAGS,
        f"-I{_NATIVE}",
        f'-DSTOKER_TF_VERSION="{tf.__version__}"',
        str(_NATIVE / _SOURCE),
        "-o",
        str(out),
        *tf.sysconfig.get_link_flags(),
        *_LINK,
    ]
    answer = _run(command, _COMPILE_SECONDS, {**os.environ, "LC_ALL": "C"})
    if answer.returncode == 0:
        return
    first = next((line for line in answer.stderr.splitlines() if "error" in line), answer.stderr[-500:])
    passing = answer.returncode < 0 or any(sign in answer.stderr for sign in _PASSING)
    kind = PluginError if passing else _RefusedError
    raise kind(f"{shlex.join(compiler.command)} could not compile it: {first.strip()}")


def _prove(made: pathlib.Path, folder: pathlib.Path) -> None:
    """Tests the plugin in a separate process, which may crash and ignores the current folder."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    paths = json.dumps([os.path.abspath(entry) for entry in sys.path if entry])
    command = [sys.executable, "-I", "-c", _PROOF, paths, str(made)]
    answer = _run(command, _PROOF_SECONDS, environment, folder)
    if answer.returncode < 0:
        raise PluginError(f"it was built, but crashed when tried (signal {-answer.returncode})")
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PluginError(f"it was built, but failed when tried: {last}")


def _run(
    command: list[str],
    seconds: float,
    environment: Optional[dict[str, str]] = None,
    folder: Optional[pathlib.Path] = None,
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"error: no end after {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", f"error: {error}")


# --- the command -------------------------------------------------------------------------------------


def main(arguments: Optional[list[str]] = None) -> int:
    """Runs `stoker build-tf-plugin`; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="stoker build-tf-plugin",
        description="Build stoker's dataset op for the TensorFlow that is installed, or check that it "
        "exists. For images that have no compiler at run time.",
    )
    parser.add_argument("--force", action="store_true", help="build it even if it exists")
    parsed = parser.parse_args(arguments)
    try:
        path = plugin(force=parsed.force)
    except PluginError as error:
        print(f"stoker: no dataset op for TensorFlow {tf.__version__}: {error}", file=sys.stderr)
        return 1
    said: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    print(
        f"{path}\nTensorFlow {said['tensorflow']}, {said['compiler']}; built in {said['build_seconds']} s, "
        f"proven in {said['proof_seconds']} s"
    )
    return 0
