"""The Python package and the process: its end, signals, forks, and no growth."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

HEAD = """
import faulthandler, os, signal, sys, threading, time
faulthandler.dump_traceback_later(280, exit=True)
import stoker
def make(**options):
    options = {"batch_size": 4, "shuffle": True, **options}
    return stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.RandomResizedCrop(32)], **options)
def forever():
    while True:
        yield from loader
loader = make()
"""


# Python 3.12 and later warn of os.fork() beside threads, which the tests are about.
FORKS = "ignore:This process:DeprecationWarning"


def start(program, folder, **options):
    return subprocess.Popen(
        [sys.executable, "-W", FORKS, "-c", HEAD + textwrap.dedent(program), folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def run(program, folder, code=0):
    with start(program, folder) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == code, (process.returncode, out, err)
    return out, err


# --- the end of the interpreter ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "iterator = iter(loader); next(iterator)",
        "kept = [next(iter(loader)) for _ in range(3)]",
        "kept = list(loader); del loader",
        "iterator = iter(loader); kept = next(iterator)[0][1]; sys.modules['kept'] = kept",
        "iterator = iter(loader); next(iterator); sys.exit(0)",
        "for n, _ in enumerate(forever()):\n    if n == 40: sys.exit()",
        "def work():\n    for _ in forever(): pass\nthreading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.3)",
        "import atexit\nkept = []\nfor n, b in enumerate(loader): kept.append(b)\n"
        "atexit.register(lambda: print(kept[0][0].sum() > 0))",
        "class Cycle: pass\nc = Cycle(); c.me = c; c.iterator = iter(loader); next(c.iterator)",
        "other = make(runtime=stoker.Runtime(threads=2)); both = iter(loader), iter(other)\n"
        "[next(i) for i in both]",
    ],
)
def test_leaving_in_the_middle(made, program):
    _, err = run(program, made)
    assert err == ""


@pytest.mark.parametrize(
    "loader",
    [
        "stoker.Loader(stoker.arrays(np.zeros((1000, 100))), batch_size=10)",
        "stoker.Loader(stoker.files([folder.path(i) for i in range(60)], np.arange(60)), "
        "[stoker.Resize((16, 16))], batch_size=10)",
    ],
)
def test_leaving_while_a_thread_loads(made, loader):
    program = f"""
import numpy as np, stoker, threading
folder = stoker.image_folder({str(made)!r})
loader = {loader}
def work():
    while True:
        for _ in loader: pass
threading.Thread(target=work, daemon=True).start()
iterator = iter(loader); next(iterator)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stderr == b""


def test_an_uncaught_exception_in_the_loop(made):
    _, err = run("for _ in forever(): raise KeyError('mine')", made, code=1)
    assert err.count("Traceback") == 1 and "KeyError: 'mine'" in err


def test_imported_on_another_thread_first(made):
    program = """
import sys, threading
def work():
    import stoker
    loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.Resize((8, 8))], batch_size=4)
    sys.kept = iter(loader), next(iter(loader))
thread = threading.Thread(target=work); thread.start(); thread.join()
print("done")
"""
    command = [sys.executable, "-c", program, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_iterating_at_the_very_end(made):
    """Uses an atexit handler that was registered before stoker's, and so runs after it."""
    program = """
import atexit, sys
@atexit.register
def last():
    try:
        next(iterator)
    except stoker.CancelledError as error:
        print(error)
import stoker
loader = stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.Resize((8, 8))], batch_size=4)
iterator = iter(loader)
next(iterator)
"""
    command = [sys.executable, "-c", program, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stdout.startswith("the interpreter is shutting down")


# --- signals ----------------------------------------------------------------------------------------


def interrupted(process):
    """Sends Ctrl-C when the process says that it is about to wait; returns what it printed about that."""
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)  # so that it does
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    answered, words = out.split(maxsplit=1)
    print(f"\nKeyboardInterrupt after {1000 * (float(answered) - sent):.0f} ms")
    return words


def test_ctrl_c_while_iterating(made):
    program = """
        try:
            print("waiting", flush=True)
            for _ in forever(): pass
        except KeyboardInterrupt:
            print(time.monotonic())
        print(sum(1 for _ in loader) == len(loader))
    """
    with start(program, made) as process:
        assert interrupted(process) == "True\n"


def many(made, folder):
    """Fills a folder with 4000 photographs, which take a second or more."""
    (folder / "class").mkdir()
    photo = next(made.rglob("*.jpg"))
    for n in range(4000):
        (folder / "class" / f"{n}.jpg").symlink_to(photo)


def test_ctrl_c_while_waiting_for_one_batch(made, tmp_path):
    many(made, tmp_path)
    program = """
        loader = make(batch_size=4000, depth=1, runtime=stoker.Runtime(threads=1))
        iterator = iter(loader)
        try:
            print("waiting", flush=True)
            next(iterator)
        except KeyboardInterrupt:
            print(time.monotonic(), loader.stats()["samples"] < 4000)
        print(len(next(iterator)[0]))  # nothing was lost
    """
    with start(program, tmp_path) as process:
        assert interrupted(process) == "True\n4000\n"


def test_a_handler_that_raises_something_else(made):
    out, _ = run(
        """
        class Enough(Exception): pass
        def handler(*_): raise Enough
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            for _ in forever(): pass
        except Enough:
            print("enough")
        """,
        made,
    )
    assert out == "enough\n"


def test_a_handler_may_save_the_state_while_next_waits(made, tmp_path):
    many(made, tmp_path)
    out, err = run(
        """
        loader = make(batch_size=4000, depth=1, runtime=stoker.Runtime(threads=1))
        saved = []
        def handler(*_):
            saved.append(loader.state_dict())
            for wrong in (lambda: next(iterator), lambda: iterator._native.seek(0, 0, 0)):
                try:
                    wrong()
                except stoker.FailedPreconditionError as error:
                    saved.append(str(error))
            loader.stats(), repr(iterator)
        signal.signal(signal.SIGALRM, handler)
        iterator = iter(loader)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        print(len(next(iterator)[0]), loader.stats()["batches"])
        print(saved[0]["epoch"], saved[0]["batch"], len(saved), "already" in saved[1])
        print(loader.state_dict()["batch"])
        """,
        tmp_path,
    )
    assert (out, err) == ("4000 1\n0 0 3 True\n0\n", "")


def test_a_handler_saves_while_another_thread_waits(made, tmp_path):
    many(made, tmp_path)
    out, _ = run(
        """
        loader = make(batch_size=4000, depth=1, runtime=stoker.Runtime(threads=1))
        iterator = iter(loader)
        thread = threading.Thread(target=lambda: next(iterator))
        thread.start()
        time.sleep(0.2)
        state = loader.state_dict()
        print(thread.is_alive(), state["epoch"], state["batch"])
        thread.join()
        """,
        tmp_path,
    )
    assert out == "True 0 0\n"


def test_the_plugins_interrupt_check_answers_without_raising(made):
    """The check that a plugin makes while it waits answers yes or no; Python raises afterwards."""
    out, _ = run(
        """
        import ctypes
        from stoker import _stoker
        ran = []
        signal.signal(signal.SIGALRM, lambda *_: ran.append("handler"))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        # With the GIL and without: plugins may ask either way.
        for kind in (ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE):
            asked = kind(ctypes.c_int, ctypes.c_void_p)(_stoker.interrupt_address())
            assert asked(None) == 0
            seen = []
            other = threading.Thread(target=lambda: seen.append(asked(None)))
            other.start(); other.join()
            assert seen == [0]
        # A C function that asks often and runs no Python: sorting, with the question as comparison.
        # While the answer is 0 all elements are equal, and keep their order.
        qsort = ctypes.CDLL(None).qsort
        qsort.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
        n = 1 << 14
        array = (ctypes.c_int * n)(*range(n))
        while not ran:  # a handler of another signal runs between two sorts, and interrupts none
            qsort(array, n, 4, _stoker.interrupt_address())
        assert list(array) == list(range(n))
        def interrupted():  # whether Ctrl-C came while the array was sorted; else before or after
            array = (ctypes.c_int * n)(*range(n))
            try:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                while True:
                    qsort(array, n, 4, _stoker.interrupt_address())
            except KeyboardInterrupt:
                return list(array) != list(range(n))
        print("raised", any(interrupted() for _ in range(20)))
        assert ran == ["handler"]
        assert asked(None) == 0
        # A handler of the program's own is none of the question's business.
        signal.signal(signal.SIGINT, lambda *_: ran.append("mine"))
        array = (ctypes.c_int * n)(*range(n))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        while "mine" not in ran:
            qsort(array, n, 4, _stoker.interrupt_address())
        print(list(array) == list(range(n)))
        """,
        made,
    )
    assert out == "raised True\nTrue\n"


# --- forks ------------------------------------------------------------------------------------------


def test_a_forked_child_gets_an_error_and_ends(made):
    out, err = run(
        """
        iterator = iter(loader)
        kept = next(iterator)
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the child
        child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except stoker.FailedPreconditionError as error:
                print("child:", error, flush=True)
            try:
                next(iter(loader))
            except stoker.FailedPreconditionError:
                print("child again", flush=True)
            assert kept[0].sum() > 0
            compose = stoker.Compose([stoker.Resize((8, 8))])
            print(compose(open(loader.source.path(0), "rb").read()).shape, flush=True)
            loader.stats(), repr(loader), loader.state_dict(), loader.close()
            del iterator, kept, loader
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        print(sum(1 for _ in loader) == len(loader))
        """,
        made,
    )
    assert err == "" and "fork" in out
    assert out.splitlines()[1:] == ["child again", "(8, 8, 3)", "True"]


def test_a_forked_childs_own_loaders_work(made):
    """TBB's workers did not come along, and it would start no others: they run on plain threads."""
    out, err = run(
        """
        there = [images.copy() for images, _ in loader.epoch(0)]
        runtime = stoker.Runtime(threads=2)
        assert sum(1 for _ in make(runtime=runtime)) == len(there)
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the child
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a hang becomes a signal
            for own in (make(), make(runtime=stoker.Runtime(threads=2))):
                here = [images for images, _ in own.epoch(0)]
                assert len(here) == len(there)
                assert all((a == b).all() for a, b in zip(here, there))
                assert own.stats()["executor"] == "threads"
            try:
                next(iter(make(runtime=runtime)))
            except stoker.FailedPreconditionError as error:
                print(error, flush=True)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        print(sum(1 for _ in loader) == len(loader))
        """,
        made,
    )
    assert err == ""
    assert "forked child" in out.splitlines()[0] and "Create a loader" in out.splitlines()[0]
    assert out.splitlines()[1:] == ["True"]


def test_multiprocessing_fork_works(made):
    """As it is Python's default on Linux before 3.14."""
    program = """
        import multiprocessing
        def rows(_):
            signal.alarm(60)  # a hang becomes a signal
            return sum(len(images) for images, _ in make())
        faulthandler.cancel_dump_traceback_later()
        assert sum(1 for _ in loader) == len(loader)
        print(multiprocessing.get_context("fork").Pool(2).map(rows, range(4)))
    """
    rows = len(stoker.image_folder(made))
    assert run(program, made)[0] == f"{[rows] * 4}\n"


def test_multiprocessing_spawn_works(made):
    program = """
        import multiprocessing
        print(multiprocessing.get_context("spawn").Pool(1).apply(len, ["four"]))
    """
    assert run(program, made)[0] == "4\n"


# --- out of threads ---------------------------------------------------------------------------------

LIMITED = """
import os, resource, signal
import numpy, stoker
signal.alarm(100)  # a hang becomes a signal
rows = numpy.arange(4096, dtype=numpy.int64)
def again(**options):
    return stoker.Loader(stoker.arrays(rows, rows), batch_size=64, **options)
def threads_of_user():
    count = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + process).st_uid == os.geteuid():
                count += len(os.listdir(f"/proc/{process}/task"))
        except OSError:
            pass  # it has gone
    return count
def limit_threads(more):
    # Root has no limit, and other users have other threads. Containers may have 65536 users.
    os.setuid(50_000 + os.getpid() % 10_000)
    most = threads_of_user() + more
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
def limit_memory(more):
    with open("/proc/self/statm") as statm:
        most = int(statm.read().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
def attempt(**runtime):
    try:
        loader = again(runtime=stoker.Runtime(threads=8, **runtime))
        assert sum(int(a.sum()) for a, _ in loader) == int(rows.sum())
    except stoker.ResourceExhaustedError as error:
        print("error", error)
    else:
        stats = loader.stats()
        print(stats["threads"], stats["executor_reason"])
"""


def limited(program):
    """Returns what a program prints that sets limits for itself."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + program], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="RLIMIT_NPROC counts the threads of all of a user's programs")
@pytest.mark.parametrize("executor", ["tbb", "threads"])
@pytest.mark.parametrize("more", [0, 1, 3, 6, 9, 40])
def test_few_threads_are_fewer_workers(more, executor):
    out = limited(f"limit_threads({more})\nattempt(executor={executor!r})")
    if more < 2:  # a worker and a reader
        assert out.startswith("error cannot start a") and "RLIMIT_NPROC" in out
    elif more == 40:
        assert out == "8 \n"
    else:
        assert 1 <= int(out.split()[0]) < 8
        assert "of 8 workers: RLIMIT_NPROC" in out


@pytest.mark.parametrize("executor", ["tbb", "threads"])
@pytest.mark.parametrize("megabytes", [1, 30, 60, 90, 150, 400])
def test_little_address_space_is_fewer_workers_or_an_error(megabytes, executor):
    out = limited(f"limit_memory({megabytes} << 20)\nattempt(executor={executor!r}, memory_budget=8 << 20)")
    assert out.startswith("error") or 1 <= int(out.split()[0]) <= 8
    if megabytes == 1:
        assert out.startswith("error cannot start a") and "RLIMIT_AS" in out


# --- no growth --------------------------------------------------------------------------------------


def usage():
    """Returns kilobytes resident, threads, open files."""
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]), int(fields["Threads"]), len(os.listdir("/proc/self/fd"))


@pytest.fixture
def few(made, tmp_path):
    """A folder of twelve photographs."""
    (tmp_path / "class").mkdir()
    for n, path in enumerate(sorted(made.rglob("*.jpg"))[:12]):
        (tmp_path / "class" / f"{n}.jpg").symlink_to(path)
    return tmp_path


def test_200_epochs_without_growth(few):
    transforms = [stoker.RandomResizedCrop(16)]
    loader = stoker.Loader(stoker.image_folder(few), transforms, batch_size=4, shuffle=True)

    def some(epochs):
        for n in range(epochs):
            for _ in loader:
                if n % 3 == 0:
                    break

    some(20)
    before = usage()
    some(200)
    after = usage()
    assert after[0] < before[0] + 4096
    assert after[1] < before[1] + 10 and after[2] < before[2] + 10  # TBB's workers come and go


def test_loaders_come_and_go_without_growth(made):
    def one():
        source = stoker.image_folder(made)
        loader = stoker.Loader(source, [stoker.RandomResizedCrop(16)], batch_size=16)
        next(iter(loader))
        stoker.Compose([stoker.Resize((8, 8))])(pathlib.Path(source.path(0)).read_bytes())

    for _ in range(10):
        one()
    before = usage()
    for _ in range(50):
        one()
    after = usage()
    assert after[0] < before[0] + 8192
    # Each has a default Runtime of its own, whose workers may still be leaving; fifty leaks are more.
    assert after[1] < before[1] + 10 and after[2] < before[2] + 10


def test_few_open_files_are_enough(made):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limit[0] > 100
    loader = stoker.Loader(stoker.image_folder(made), [stoker.RandomResizedCrop(16)], batch_size=16)
    for _ in loader:
        assert usage()[2] < 100
