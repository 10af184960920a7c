"""What the program's own code does on threads of stoker's: its exceptions, its forks, and calls that hang."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Generator, Iterable
from typing import Any, Callable, NoReturn, TypeVar

from stoker import _stoker

_HANGS = 10.0  # seconds
_HERE = str(pathlib.Path(__file__).parent)

Returned = TypeVar("Returned")


def described(error: BaseException) -> str:
    """The exception, and the line of the user's code that raised it."""
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be shown"
    text = f"{type(error).__name__}: {message}".rstrip(": ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_ours(frame.filename)]
    if not frames:
        return text
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})"


def is_ours(file: str) -> bool:
    """Whether a file of Python is part of the package."""
    return os.path.dirname(file) == _HERE


def name_of(function: object) -> str:
    """A name for messages, the same in each process: "Trainer.augment"."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if isinstance(name, str):
        return name.rpartition("<locals>.")[2]
    wrapped = getattr(function, "func", None)  # a functools.partial
    return type(function).__qualname__ if wrapped is None else name_of(wrapped)


def called(function: Callable[..., Returned], *arguments: Any) -> Returned:
    """What the function returns. If it forks, the child ends with the call: it has nobody to return to."""
    process = os.getpid()
    try:
        returned = function(*arguments)
    except BaseException as error:
        if os.getpid() != process:
            _end_process(error)
        raise
    if os.getpid() != process:
        _end_process(None)
    return returned


def _end_process(error: BaseException | None) -> NoReturn:
    """Ends the process as the interpreter would after this error, without waiting for threads."""
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else error.code is not None
        if code is True:
            print(error.code, file=sys.stderr)
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # there is none, or it was closed
            stream.flush()
    os._exit(code & 0xFF)


class Calls:
    """The calls of one object's code that are in progress. Each thread changes its own entry."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun: dict[int, tuple[float, str]] = {}  # by thread: when, and with what
        _all.add(self)

    def begin(self, what: str) -> None:
        self._begun[threading.get_ident()] = time.monotonic(), what

    def end(self) -> None:
        del self._begun[threading.get_ident()]

    def long_ones(self, seconds: float) -> list[str]:
        """Those that have taken so long: "augment with batch 3 of epoch 0 (train.py, line 7, in augment)"."""
        now, frames = time.monotonic(), sys._current_frames()
        texts = []
        for thread, (begun, what) in list(self._begun.items()):
            frame = frames.get(thread)
            while frame is not None and is_ours(frame.f_code.co_filename):
                frame = frame.f_back
            if now - begun < seconds:
                continue
            text = f"{self._name} with {what}"
            if frame is not None:
                text += f" ({frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name})"
            texts.append(text)
        return texts


_all: weakref.WeakSet[Calls] = weakref.WeakSet()


@contextlib.contextmanager
def watched(waits: str, calls: Iterable[Calls] | None = None) -> Generator[None, None, None]:
    """Warns once if what is done meanwhile takes long, because it waits for these calls, or any."""

    def warn() -> None:
        for text in [
            text for one in list(_all if calls is None else calls) for text in one.long_ones(_HANGS / 2)
        ]:
            warnings.warn(f"{waits} waits for {text}", RuntimeWarning, stacklevel=2)

    timer = threading.Timer(_HANGS, warn)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # no thread is to be had, as at the end of Python 3.12 and later
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def leave() -> None:
    """Begins the end of the program, which waits for calls in progress."""
    with watched("the end of the program") if len(_all) else contextlib.nullcontext():
        _stoker.leave()
