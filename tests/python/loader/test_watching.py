"""Watching a loader from Python: the monitor and the trace file."""

import gc
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings

import pytest
from pseudo_terminal import open_pseudo_terminal
from screen import Screen

stoker = pytest.importorskip("stoker", reason="the package is not installed here")


@pytest.fixture
def loader(made):
    return stoker.Loader(
        stoker.image_folder(made), [stoker.RandomResizedCrop(32)], batch_size=4, shuffle=True,
        runtime=stoker.Runtime(threads=2),
    )  # fmt: skip


def until(condition, seconds=20):
    """Waits for the condition, and returns whether it came true."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


def drain(loader):
    """Takes an epoch, and returns how many batches it had."""
    return sum(1 for _ in loader)


def monitors():
    return [thread for thread in threading.enumerate() if thread.name == "stoker-monitor"]


@pytest.fixture(autouse=True)
def none_is_left():
    yield
    gc.collect()
    assert until(lambda: not monitors())


# --- the trace ----------------------------------------------------------------------------------------


def events(path, phase="X"):
    with open(path) as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == phase]


def test_trace_has_what_threads_did(loader, tmp_path):
    path = tmp_path / "trace.json"
    with loader.trace(path) as trace:
        count = drain(loader)
        assert not path.exists()  # until it stops
    assert trace.events > 0
    assert trace.dropped_events == 0
    names = [event["name"] for event in events(path)]
    assert names.count("stoker.wait") == count
    assert {"stoker.read", "stoker.decode"} <= set(names)
    threads = {event["args"]["name"] for event in events(path, "M") if event["name"] == "thread_name"}
    assert any(name.startswith("consumer (") for name in threads)


def test_trace_may_be_started_again(loader, tmp_path):
    trace = loader.trace(str(tmp_path / "trace.json"))
    trace.stop()  # nothing to do
    iterator = iter(loader)
    next(iterator)
    for _ in range(2):
        assert trace.start() is trace
        with pytest.raises(stoker.FailedPreconditionError, match="already"):
            trace.start()
        next(iterator)
        trace.stop()
        trace.stop()
        next(iterator)
        assert [event["name"] for event in events(tmp_path / "trace.json")].count("stoker.wait") == 1


def test_trace_of_what_goes_to_a_device(loader, tmp_path):
    with loader.to_device("host").trace(tmp_path / "trace.json"):
        drain(loader.to_device("host"))
    names = {event["name"] for event in events(tmp_path / "trace.json")}
    assert {"stoker.copy", "stoker.stage.host", "stoker.decode"} <= names


def test_trace_is_written_whatever_happens_in_it(loader, tmp_path):
    with pytest.raises(ZeroDivisionError), loader.trace(tmp_path / "trace.json"):
        next(iter(loader))
        1 / 0  # noqa: B018
    assert events(tmp_path / "trace.json")


def test_trace_says_what_is_wrong(loader, tmp_path):
    with pytest.raises(FileNotFoundError), loader.trace(tmp_path / "no" / "trace.json"):
        pass
    with pytest.raises(ValueError, match="memory"):
        loader.trace(tmp_path / "trace.json", memory=10)
    with pytest.raises(TypeError):
        loader.trace(3.5)
    with pytest.raises(TypeError, match="pickled"):
        loader.trace("x").__reduce__()


def test_trace_warns_of_what_did_not_fit(tmp_path):
    import numpy as np

    # A span for each image: a span a batch, and one for each row.
    loader = stoker.Loader(stoker.arrays(np.zeros((20_000, 1), np.uint8)), batch_size=1)
    trace = loader.trace(tmp_path / "trace.json", memory=2**20)
    with pytest.warns(RuntimeWarning, match="[0-9]+ events did not fit"), trace:
        for _ in loader:
            pass
    assert trace.dropped_events > 0
    assert trace.events > 1000


def test_trace_is_written_at_the_end_of_the_interpreter(made, tmp_path):
    program = textwrap.dedent("""
        import sys, stoker
        loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(8)], batch_size=4)
        trace = loader.trace(sys.argv[2]).start()
        monitor = loader.monitor(0.05).start()
        iterator = iter(loader)
        next(iterator)
    """)
    path = tmp_path / "trace.json"
    done = subprocess.run(
        [sys.executable, "-c", program, made, path], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert events(path)


# --- the monitor: its views ---------------------------------------------------------------------------


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def test_monitor_writes_lines_where_there_is_no_terminal(loader, monkeypatch):
    monkeypatch.setattr("stoker._watching._LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with loader.monitor(0.05):
        assert until(lambda: drain(loader) and sys.stderr.getvalue().count("\n") >= 2)
    lines = sys.stderr.getvalue().splitlines()
    assert all(line.startswith("stoker: ") and " samples/s, " in line for line in lines)


def test_monitor_leaves_what_the_program_prints(loader, monkeypatch):
    screen, printed = Screen(height=6), []
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def look():
        screen.write(terminal.getvalue())
        terminal.seek(0)
        terminal.truncate()

    def say(text):
        printed.append(text)
        screen.write(text + "\r\n")

    monitor = loader.monitor(3600)
    display = __import__("stoker._watching")._watching._display()
    say("before")
    for epoch in range(8):
        display.show(f"{epoch} samples/s\ndepth 4\n", "")
        look()
        assert screen.shown()[-3:] == ["", f"{epoch} samples/s", "depth 4"]
        assert screen.shown()[: len(printed)] == printed
        say(f"epoch {epoch}")
        screen.write("loss 0.5")  # a bar that is drawn again and again
        display.show("1\n", "")
        look()
        assert screen.shown()[-3:] == ["loss 0.5", "", "1"]
        screen.write("\r")
        say("loss 0.4")
        printed[-1] = "loss 0.4"
    display.close()
    look()
    assert screen.shown() == printed
    monitor.stop()  # which was not started


def test_monitor_fits_a_small_terminal(monkeypatch):
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "4")
    screen = Screen(height=4)
    screen.write("epoch 1\r\n")
    display = __import__("stoker._watching")._watching._display()
    for _ in range(3):
        display.show("".join(f"line {i}\n" for i in range(9)), "")
    screen.write(terminal.getvalue())
    assert screen.scrolled == ["epoch 1"]  # what the program printed, and nothing of the panel
    assert screen.shown() == ["epoch 1", "", "", "line 0", "line 1"]


def test_monitor_on_a_dumb_terminal_is_a_log(monkeypatch):
    monkeypatch.setattr("stoker._watching._LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", FakeTerminal())
    monkeypatch.setenv("TERM", "dumb")
    __import__("stoker._watching")._watching._display().show("a panel\n", "a line")
    assert sys.stderr.getvalue() == "stoker: a line\n"


def test_monitor_on_a_real_terminal(made):
    program = textwrap.dedent("""
        import sys, time, stoker
        loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], batch_size=4)
        with loader.monitor(0.05):
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                for _ in loader: pass
        print("done")
    """)
    master, slave = open_pseudo_terminal()
    with subprocess.Popen([sys.executable, "-c", program, made], stdout=slave, stderr=slave) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                shown += os.read(master, 1 << 16)
            except OSError:
                break
        os.close(master)
    assert process.returncode == 0
    assert b"samples/s" in shown
    screen = Screen(height=24)
    screen.write(shown.decode())
    assert screen.shown() == ["done"]


class FakeHandle:
    def __init__(self, first):
        self.shown = [first]

    def update(self, data, *, raw):
        assert raw
        self.shown.append(data["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """Returns a fake IPython, in a notebook; its handles."""
    handles = []

    def display(data, *, raw, display_id):
        assert raw and display_id is True
        handles.append(FakeHandle(data["text/plain"]))
        return handles[-1]

    ipython, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return handles


def test_monitor_in_a_notebook(loader, notebook, capsys):
    monitor = loader.monitor(0.05)
    assert notebook == []
    with monitor:
        assert len(notebook) == 1  # in the cell that starts it
        assert until(lambda: drain(loader) and len(notebook[0].shown) > 3)
    assert "samples/s" in notebook[0].shown[-1]
    assert "depth" in notebook[0].shown[-1]
    assert capsys.readouterr() == ("", "")


def test_monitor_in_ipython_on_a_terminal(loader, notebook, monkeypatch):
    sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setattr(sys, "stderr", FakeTerminal())
    with loader.monitor(0.05):
        assert until(lambda: drain(loader) and "samples/s" in sys.stderr.getvalue())
    assert notebook == []


# --- the monitor: how it begins and ends --------------------------------------------------------------


def test_monitor_starts_and_stops(loader):
    monitor = loader.monitor()
    assert monitors() == []
    assert monitor.start() is monitor
    (thread,) = monitors()
    monitor.start()
    assert monitors() == [thread]
    monitor.stop()
    monitor.stop()
    assert not thread.is_alive()
    monitor.start()
    monitor.stop()


def test_monitor_of_what_goes_to_a_device(loader, notebook):
    for device in ("cpu", "host"):
        with loader.to_device(device) as on_device, on_device.monitor(0.05):
            assert until(lambda: drain(on_device) and len(notebook[-1].shown) > 2)
        assert "samples/s" in notebook[-1].shown[-1]


def test_monitor_ends_with_the_loader(made):
    def one():
        return stoker.Loader(stoker.image_folder(made), [stoker.RandomResizedCrop(32)], batch_size=4)

    loader = one()
    loader.monitor(0.05).start()
    assert len(monitors()) == 1
    del loader
    assert until(lambda: not monitors())
    with one() as loader:
        monitor = loader.monitor(0.05).start()
    assert until(lambda: not monitors())  # though `loader` is there
    assert monitor.start() is monitor
    assert until(lambda: not monitors())


def test_monitor_that_fails_warns_once_and_ends(loader, notebook):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", stoker.EpochWarning)  # the loaders of other tests count
        with loader.monitor(0.05):
            notebook[0].update = lambda *unused, **more: 1 / 0
            assert until(lambda: drain(loader) and not monitors())
    assert len(caught) == 1
    assert "division by zero" in str(caught[0].message)
    assert drain(loader) == len(loader)


def test_monitor_that_may_not_warn_is_silent(loader, notebook, monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", stoker.EpochWarning)
        with loader.monitor(0.05):
            notebook[0].update = lambda *unused, **more: 1 / 0
            assert until(lambda: drain(loader) and not monitors())
    assert raised == []


def test_monitor_says_what_is_wrong(loader):
    with pytest.raises(ValueError, match="interval is 0"):
        loader.monitor(0)
    with pytest.raises(TypeError, match="interval"):
        loader.monitor("often")
    with pytest.raises(TypeError, match="pickled"):
        loader.monitor().__reduce__()


def test_monitor_in_a_forked_child_says_nothing(made):
    program = textwrap.dedent("""
        import os, sys, time, stoker
        loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(8)], batch_size=4)
        monitor = loader.monitor(0.05).start()
        trace = loader.trace(sys.argv[2]).start()
        if os.fork() == 0: sys.exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, made, os.devnull],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n", b"")
