"""Shows the activity of a loader: a live panel, and trace files."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import shutil
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from stoker import _checks, _stoker
from stoker._errors import FailedPreconditionError, counted

if TYPE_CHECKING:
    from stoker._device_loader import OnDevices
    from stoker._loader import Loader

_LINE_SECONDS = 5.0  # the shortest time between two lines of a log


class _AtExit:
    """Calls `stop` at the interpreter's end, in the process that armed it."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._process = os.getpid()
        atexit.register(self)

    def __call__(self) -> None:
        if self._process == os.getpid():
            self._stop()

    def disarm(self) -> None:
        atexit.unregister(self)


# --- the trace ----------------------------------------------------------------------------------------


class Trace:
    """Records what every thread of stoker does in a file; `Loader.trace` returns it.

        with loader.trace("trace.json") as trace:
            for images, labels in loader:
                ...
        print(trace.events, trace.dropped_events)

    Or call `start()` and `stop()`, any number of times: each start begins a new file. Open the file with
    https://ui.perfetto.dev or chrome://tracing. It covers all loaders of the Runtime, and is written when
    the trace stops, at the latest when the interpreter ends. Thread-safe.
    """

    def __init__(self, loader: Loader, path: str | os.PathLike[str], memory: int) -> None:
        self._loader = loader
        self._path = os.fsencode(path)
        self._memory = _checks.integer("memory", memory, 2**20, 2**40)
        self._lock = threading.Lock()
        self._native: _stoker.Trace | None = None
        self._at_exit: _AtExit | None = None
        self._events = self._dropped = 0

    def __repr__(self) -> str:
        state = "stopped" if self._native is None else "running"
        return f"<stoker.Trace of {self._loader!r} to {os.fsdecode(self._path)!r}, {state}>"

    def start(self) -> Trace:
        """Starts recording; returns itself.

        Raises:
            OSError: the file cannot be written.
            FailedPreconditionError: it is already started.
            ResourceExhaustedError: the Runtime has too many listeners.
        """
        with self._lock:
            if self._native is not None:
                raise FailedPreconditionError("this trace has been started already")
            self._native = self._loader._native.trace(self._path, self._memory)
            self._at_exit = _AtExit(self.stop)
        return self

    def stop(self) -> None:
        """Stops recording and writes the file. Does nothing if it is not started.

        Warns (RuntimeWarning) if events did not fit into `memory`.
        """
        with self._lock:
            native, self._native = self._native, None
            if native is None:
                return
            if self._at_exit is not None:
                self._at_exit.disarm()
            self._events, self._dropped, _ = native.stop()
        if self._dropped:
            warnings.warn(
                f"{os.fsdecode(self._path)}: {counted(self._dropped, 'event', 'events')} did not fit into "
                f"{self._memory >> 20} MiB; the file says from when on. Trace for a shorter time, or raise "
                "memory.",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def events(self) -> int:
        """The number of events in the file, after it was stopped."""
        return self._events

    @property
    def dropped_events(self) -> int:
        """The number of events that did not fit into `memory`."""
        return self._dropped

    def __enter__(self) -> Trace:
        return self.start()

    def __exit__(self, *unused: object) -> None:
        self.stop()

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.Trace cannot be pickled; make one in each process")


# --- the monitor --------------------------------------------------------------------------------------


class Monitor:
    """Shows what the loader is doing, from its own thread; `Loader.monitor` returns it.

        with loader.monitor():
            train(loader)

    Or call `start()` and `stop()`. In a notebook the panel appears below the cell that started it; on a
    terminal below the program's output, until it stops; elsewhere, and with TERM=dumb, there is a line
    every five seconds on stderr. It ends with the loader, with the interpreter, and, after one
    RuntimeWarning, if showing fails. Thread-safe.
    """

    def __init__(self, loader: Loader | OnDevices[Any], interval: float) -> None:
        self._loader = weakref.ref(loader)
        self._interval = _checks.real("interval", interval, 0.05, 3600)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._end = threading.Event()

    def __repr__(self) -> str:
        loader, thread = self._loader(), self._thread
        shown = "a loader that has gone" if loader is None else repr(loader)
        state = "running" if thread is not None and thread.is_alive() else "stopped"
        return f"<stoker.Monitor of {shown}, every {self._interval:g} s, {state}>"

    def start(self) -> Monitor:
        """Starts showing; returns itself. Does nothing if it is already started."""
        with self._lock:
            loader = self._loader()
            if loader is None or (self._thread is not None and self._thread.is_alive()):
                return self
            self._end = threading.Event()
            work = (self._loader, loader._native.looks(), _display(), self._interval, self._end)
            self._thread = threading.Thread(
                target=_watch, args=(*work, _AtExit(self.stop)), name="stoker-monitor", daemon=True
            )
            self._thread.start()
        return self

    def stop(self) -> None:
        """Stops showing. Does nothing if it is not started."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            self._end.set()
        if thread is not threading.current_thread():
            thread.join(timeout=5)  # a terminal that takes no more output is abandoned

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(self, *unused: object) -> None:
        self.stop()

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.Monitor cannot be pickled; make one in each process")


class _Display(Protocol):
    def show(self, panel: str, line: str) -> None: ...
    def close(self) -> None: ...


def _watch(
    loader: weakref.ref[Any],
    looks: _stoker.Looks,
    display: _Display,
    interval: float,
    end: threading.Event,
    at_exit: _AtExit,
) -> None:
    """The monitor's thread. Keeps neither the loader nor the monitor alive."""
    try:
        while not end.wait(interval):
            watched = loader()
            if watched is None or watched._closed:
                break
            del watched
            look = looks.look()
            if look is None:
                break
            if look[0]:
                display.show(*look)
        display.close()
    except Exception as error:  # noqa: BLE001: training goes on after any error
        with contextlib.suppress(Exception):  # warnings may be errors, and there is no caller to raise to
            warnings.warn(f"stoker's monitor has ended: {error!r}", RuntimeWarning, stacklevel=1)
    finally:
        at_exit.disarm()


def _display() -> _Display:
    """Returns the view for the environment in which the program runs."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):  # not in a terminal
        return _Notebook()
    stream = sys.stderr
    if stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb":
        return _Terminal(stream)
    return _Log(stream)


class _Notebook:
    def __init__(self) -> None:
        shown = importlib.import_module("IPython.display")
        self._handle = shown.display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, panel: str, line: str) -> None:
        self._handle.update({"text/plain": panel.rstrip("\n")}, raw=True)

    def close(self) -> None:
        """Leaves the last panel on the screen."""


class _Terminal:
    """Draws below the cursor and leaves it in place, so that the program's output appears above."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, panel: str, line: str) -> None:
        columns, rows = shutil.get_terminal_size()
        lines = [""]  # an empty line, for the program's output in the meantime
        lines += (part for long in panel.splitlines() for part in textwrap.wrap(long, max(columns - 1, 10)))
        del lines[max(rows - 1, 1) :]  # lines above the screen could not be redrawn
        down = "\x1bD"  # scrolls where there is no line below; keeps the column
        room = f"\x1b[K{down * len(lines)}\x1b[{len(lines)}A"
        text = "".join(f"{down}\r{text}\x1b[K" for text in lines)
        self._write(f"{room}\x1b7{text}\x1b[J\x1b8")

    def close(self) -> None:
        self._write("\x1b[J")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Log:
    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._next = time.monotonic() + _LINE_SECONDS

    def show(self, panel: str, line: str) -> None:
        if self._stream is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_SECONDS
        self._stream.write(f"stoker: {line}\n")
        self._stream.flush()

    def close(self) -> None:
        pass
