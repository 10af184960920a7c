"""Runs the program's own code on stoker's threads: handles its exceptions, its forks, and calls that hang."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import sys
import sysconfig
import traceback
import types
import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Callable, NoReturn, TypeVar

from stoker import _stoker

_HANGS = 10.0  # seconds
_HERE = str(pathlib.Path(__file__).parent)
_STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")

Returned = TypeVar("Returned")


def described(error: BaseException) -> str:
    """Returns the exception, and the line of the user's code that raised it."""
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be shown"
    text = f"{type(error).__name__}: {message}".rstrip(": ")
    return text + _place(reversed(list(traceback.walk_tb(error.__traceback__))))


def _place(frames: Iterable[tuple[types.FrameType, int]]) -> str:
    """Returns the user's line among these frames, the innermost first: " (train.py, line 7, in augment)"."""
    others = [(frame.f_code, line) for frame, line in frames if not is_ours(frame.f_code.co_filename)]
    if not others:
        return ""
    code, line = next((one for one in others if not _in_library(one[0].co_filename)), others[0])
    return f" ({code.co_filename}, line {line}, in {code.co_name})"


def _in_library(file: str) -> bool:
    """Returns whether a Python file belongs to a library, or to Python itself."""
    if file.startswith((_STANDARD, "<frozen ", "<__array_function__")):
        return True
    return not {"site-packages", "dist-packages"}.isdisjoint(pathlib.PurePath(file).parts)


def is_ours(file: str) -> bool:
    """Returns whether a Python file is part of the package."""
    return os.path.dirname(file) == _HERE


def name_of(function: object) -> str:
    """Returns a name for messages, the same in each process: "Trainer.augment"."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if isinstance(name, str):
        return name.rpartition("<locals>.")[2]
    wrapped = getattr(function, "func", None)  # a functools.partial
    return type(function).__qualname__ if wrapped is None else name_of(wrapped)


def called(function: Callable[..., Returned], *arguments: Any) -> Returned:
    """Returns the result of the function. If it forks, the child ends with the call: it has nobody to return
    to.
    """
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
    code = 0 if error is None else 130 if isinstance(error, KeyboardInterrupt) else 1  # as shells report it
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


def wait(waits: str, ended: Callable[[float], bool], of: Collection[int] | None = None) -> None:
    """Waits until `ended(seconds)`, and if it takes long names the calls that it waits for.

    Args:
        waits: the name of the waiting object, for messages.
        of: the objects whose calls these are (`_stoker.calls_in_progress`); None means any.
    """
    named: set[str] = set()
    seconds = _HANGS
    while not ended(seconds):
        seconds = _HANGS / 10  # for calls that begin meanwhile
        try:
            warn_of_calls(waits, of, named)
        except Warning as error:  # if warnings are errors; the wait continues
            print(f"{type(error).__name__}: {error}", file=sys.stderr)


def warn_of_calls(waits: str, of: Collection[int] | None = None, named: set[str] | None = None) -> None:
    """Warns of each call that takes long and was not named before."""
    frames = sys._current_frames()
    for whose, thread, seconds, what in _stoker.calls_in_progress():
        if seconds < _HANGS / 2 or (of is not None and whose not in of) or (named and what in named):
            continue
        if named is not None:
            named.add(what)
        place = _place((frame, frame.f_lineno) for frame in _outwards(frames.get(thread)))
        _warn(f"{waits} waits for the call of {what}{place}")


def _outwards(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _warn(text: str) -> None:
    """Warns, naming the line that called the package."""
    ours = itertools.takewhile(lambda frame: is_ours(frame.f_code.co_filename), _outwards(sys._getframe()))
    warnings.warn(text, RuntimeWarning, stacklevel=1 + sum(1 for _ in ours))


def leave() -> None:
    """Begins the end of the program, which waits for calls in progress; Ctrl-C ends it without waiting."""
    try:
        wait("the end of the program", _stoker.leave)
    except BaseException as error:  # the threads of the calls would not survive the interpreter's end
        _end_process(error)
