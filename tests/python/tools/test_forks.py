"""support/forks.py: programs that are forked are started, killed and told apart as others are."""

import socket
from concurrent.futures import ThreadPoolExecutor

import forks
import pytest


@pytest.fixture
def script(tmp_path):
    """Returns a function that writes a script."""

    def write(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


def test_a_program_can_be_killed_as_soon_as_its_id_is_known(script):
    path = script("import sys; sys.stdin.read()")
    for _ in range(50):
        process = forks.Piped(path)
        process.kill()
        assert process.wait(60) == -9
        process.stdin.close()
        process.stdout.close()


def test_its_end_is_not_waited_for_with_an_open_stdin(script):
    process = forks.Piped(script("import sys; print('up', flush=True); sys.stdin.read()"))
    assert process.stdout.readline() == "up\n"
    process.end()
    assert process.stdin.closed and process.stdout.closed


def test_a_program_has_its_own_folder_environment_and_arguments(script, tmp_path):
    text = "import os, sys; print(os.getcwd(), sys.path[0], sys.argv, os.environ.get('A'), __name__)"
    path = script(text)
    (tmp_path / "inner").mkdir()
    inner = tmp_path / "inner"
    (inner / "named.py").write_text(text)
    done = forks.run(path, 1, env={"A": "b"}, cwd=inner)
    assert done.stdout == f"{inner} {tmp_path} {[str(path), '1']} b __main__\n"
    done = forks.run("-m", "named", "x", env={}, cwd=inner)
    assert done.stdout == f"{inner} {inner} {[str(inner / 'named.py'), 'x']} None __main__\n"
    assert forks.run(script("import sys; sys.exit(3)")).returncode == 3


def test_what_a_script_has_made_lives_until_exit(script):
    text = (
        "import atexit\n"
        "class Made:\n"
        "    def __del__(self): print('made')\n"
        "made = Made()\n"
        "atexit.register(print, 'exit')\n"
    )
    done = forks.run(script(text))
    assert (done.returncode, done.stdout, done.stderr) == (0, "exit\nmade\n", "")


def test_a_timeout_says_what_was_printed(script):
    text = (
        "import sys, time\n"
        "print('here', flush=True)\n"
        "print('there', file=sys.stderr, flush=True)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(TimeoutError, match=r"(?s)has not ended after 1 s\nstdout: here\n.*stderr: there\n"):
        forks.run(script(text), timeout=1)


def test_threads_start_one_process_to_fork():
    with ThreadPoolExecutor(8) as threads:
        assert len({id(channel) for channel in threads.map(lambda _: forks.forked(), range(8))}) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_end_of_the_process_that_is_forked_is_said(monkeypatch, when):
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(forks, "forked", lambda: ours)
    if when == "before":
        its.close()
    with ours, ThreadPoolExecutor(1) as threads:
        program = threads.submit(forks.run, "script.py")
        if when == "after":
            its.recv(1, socket.MSG_PEEK)
            its.close()
        with pytest.raises(RuntimeError, match="the process that is forked has ended"):
            program.result(60)
