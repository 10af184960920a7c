"""Programs, each a fork of one process that has imported TensorFlow (where there is one) and started nothing.

Importing it takes seconds, such a program's life often a fraction of one. In all else they are programs of
their own: arguments, environment, standard streams, and an end by the interpreter, or by a signal.
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
            os.close(status)
            return json.loads(message), streams
        for fd in streams:
            os.close(fd)
        os.write(status, b"%d\n" % program)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
        os._exit(0)


def begin(request, streams):
    """Makes this process the program: Python's command line, without what comes before the script."""
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    script, *arguments = request["words"]
    if script == "-m":
        sys.argv = arguments
        return functools.partial(runpy.run_module, arguments[0], run_name="__main__", alter_sys=True)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    return functools.partial(runpy.run_path, script, run_name="__main__")


# --- in the tests ----------------------------------------------------------------------------------------


@functools.cache
def forked():
    """The process that is forked: it ends with the tests. Returns the channel to it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
    atexit.register(process.wait)
    atexit.register(ours.close)  # before that
    return ours


class Program:
    """A program with the streams that it is given as files."""

    def __init__(self, words, streams, env=None):
        reader, status = os.pipe()
        request = {
            "words": [str(word) for word in words],
            "environment": dict(os.environ if env is None else env),
            "folder": os.getcwd(),
        }
        fds = [*(stream.fileno() for stream in streams), status]
        socket.send_fds(forked(), [json.dumps(request).encode()], fds)
        os.close(status)
        self._status = open(reader)  # noqa: SIM115
        self._pid = int(self._status.readline())

    def wait(self, timeout=None):
        """Returns the exit code as Popen's does."""
        if not select.select([self._status], [], [], timeout)[0]:
            raise TimeoutError(f"process {self._pid} has not ended after {timeout} s")
        with self._status:
            return int(self._status.readline())

    def kill(self):
        """Ends it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
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
        self.wait()
        self.stdin.close()
        self.stdout.close()


def run(*words, env=None, timeout=120):
    """Runs a program to its end, as subprocess.run does with captured output."""
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        program = Program(words, [nothing, out, errors], env)
        try:
            code = program.wait(timeout)
        except BaseException:
            program.kill()
            raise
        texts = []
        for stream in (out, errors):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(words, code, *texts)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401

    gc.freeze()  # nothing of it is looked through, or freed, when a program ends
    given = socket.socket(fileno=int(sys.argv[1]))
    begin(*requests(given))()
