"""Programs, each a fork of one process that has imported TensorFlow (where there is one) and started nothing.

Importing it takes seconds, such a program's life often a fraction of one. A program has its own arguments,
environment, folder, standard streams and session, and ends by the interpreter or a signal. It differs from
`python SCRIPT` and `python -m MODULE` in that

- TensorFlow, and what it and this module import, are imported already; what they read from the environment
  (TF_CPP_MIN_LOG_LEVEL, OMP_NUM_THREADS, ...) is what it was when the tests imported this module;
- Python's own variables, as PYTHONWARNINGS, have no effect, except PYTHONPATH, whose folders come before
  those that the tests have;
- objects that were made before the fork are not collected.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types

# --- in the process that is forked -----------------------------------------------------------------------


def reap(*_):
    """Forgets children that have ended: those that wait for a program."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def requests(channel):
    """Returns each request that arrives in a process of its own; the process that is forked never returns."""
    signal.signal(signal.SIGCHLD, reap)
    while True:
        message, fds, *_ = socket.recv_fds(channel, 1 << 20, 4)
        if not message:
            os._exit(0)
        if os.fork() != 0:
            for fd in fds:
                os.close(fd)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        *streams, status = fds
        program = os.fork()
        if program == 0:
            channel.close()
            os.setsid()  # before its id is known, so that it can be killed with what it has started
            os.write(status, b"%d\n" % os.getpid())
            os.close(status)
            return json.loads(message), streams
        for fd in streams:
            os.close(fd)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
        os._exit(0)


def begin(request, streams):
    """Makes this process the program: Python's command line, without what comes before the script."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    script, *arguments = request["words"]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if script == "-m":
        sys.argv = arguments
        sys.path[0] = os.getcwd()
        return functools.partial(runpy._run_module_as_main, arguments[0])  # what `python -m` calls
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    main.__file__ = script
    with open(script, "rb") as file:
        return functools.partial(exec, compile(file.read(), script, "exec"), vars(main))


# --- in the tests ----------------------------------------------------------------------------------------


# Tests that change these must not decide with what the process that is forked begins.
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
FOLDER = os.getcwd()
STARTING = threading.Lock()


@functools.cache
def start():
    """Starts the process that is forked: it ends with the tests. Returns the channel to it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            env=ENVIRONMENT,
            cwd=FOLDER,
        )
    atexit.register(process.wait)
    atexit.register(ours.close)  # before that
    return ours


def forked():
    """Returns the channel to the process that is forked."""
    with STARTING:  # functools.cache lets several threads make the first call
        return start()


class Program:
    """A program with the streams that it is given as files."""

    def __init__(self, words, streams, env=None, cwd=None):
        reader, status = os.pipe()
        self._status = open(reader)  # noqa: SIM115
        request = {
            "words": [str(word) for word in words],
            "environment": dict(os.environ if env is None else env),
            "folder": os.path.abspath(cwd or os.curdir),
        }
        fds = [*(stream.fileno() for stream in streams), status]
        try:
            with contextlib.suppress(ConnectionError):  # it has ended: no number comes
                socket.send_fds(forked(), [json.dumps(request).encode()], fds)
        finally:
            os.close(status)
        self._pid = self._number()

    def _number(self):
        line = self._status.readline()
        if not line:
            self._status.close()
            raise RuntimeError(
                "the process that is forked has ended, and its stderr says why; try `import tensorflow`"
            )
        return int(line)

    def wait(self, timeout=None):
        """Returns the exit code as Popen's does."""
        if not select.select([self._status], [], [], timeout)[0]:
            raise TimeoutError(f"process {self._pid} has not ended after {timeout} s")
        with self._status:
            return self._number()

    def kill(self):
        """Ends it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self._pid, signal.SIGKILL)


class Piped(Program):
    """A program with pipes to its standard input and output: `stdin`, `stdout`."""

    def __init__(self, *words, stderr=sys.__stderr__):
        stdin, to_it = os.pipe()
        from_it, stdout = os.pipe()
        self.stdin, self.stdout = open(to_it, "w"), open(from_it)  # noqa: SIM115
        with open(stdin, "rb") as its_stdin, open(stdout, "wb") as its_stdout:
            super().__init__(words, [its_stdin, its_stdout, stderr])

    def end(self):
        self.kill()
        self.stdin.close()
        self.wait()
        self.stdout.close()


def run(*words, env=None, cwd=None, timeout=120):
    """Runs a program to its end, as subprocess.run does with captured output.

    Raises:
        TimeoutError: with the end of what the program has printed; it is killed.
    """
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):

        def texts():
            for stream in (out, errors):
                stream.seek(0)
                yield stream.read().decode(errors="replace")

        program = Program(words, [nothing, out, errors], env, cwd)
        try:
            code = program.wait(timeout)
        except BaseException as error:
            program.kill()
            program.wait()
            if not isinstance(error, TimeoutError):
                raise
            stdout, stderr = texts()
            printed = f"stdout: {stdout[-3000:]}\nstderr: {stderr[-3000:]}"
            raise TimeoutError(f"{error}\n{printed}") from None
        return subprocess.CompletedProcess(words, code, *texts())


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401

    gc.freeze()  # nothing of it is looked through, or freed, when a program ends
    given = socket.socket(fileno=int(sys.argv[1]))
    begin(*requests(given))()
