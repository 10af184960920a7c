"""`stoker completion` and the manual page, which are generated from the command's options."""

import os
import pathlib
import re
import select
import shutil
import subprocess

import pytest
from pseudo_terminal import open_pseudo_terminal

COMMANDS = [
    *("synth", "inspect", "verify", "index", "pack", "unpack"),
    *("explain", "show", "bench", "doctor", "completion"),
]
SHELLS = ("bash", "zsh", "fish")


def output(command, *arguments):
    return subprocess.run(
        [command, *arguments], capture_output=True, text=True, timeout=60, check=True
    ).stdout


def options_of(command, name):
    """Returns the long options that --help lists."""
    help_lines = output(command, name, "--help").split("\nOptions:")[1].splitlines()
    names = {word for line in help_lines for word in re.findall(r"^  (?:-\w,)?(--[\w-]+)", line)}
    assert "--help" in names, help_lines
    return names


@pytest.fixture(scope="session")
def bash(command, tmp_path_factory):
    """A function that returns what bash offers for a line, whose last word is the one to complete."""
    script = tmp_path_factory.mktemp("completion") / "stoker"
    script.write_text(output(command, "completion", "bash"))

    def offered(*words, cwd=None):
        line = f"source {script}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _stoker; printf '%s\\n' "
        return output_of_bash(f'{line} "${{COMPREPLY[@]}}"', command, *words, cwd=cwd).split()

    return offered


def output_of_bash(script, *arguments, cwd=None):
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout


def with_command(command):
    """Returns the environment in which shells find the command."""
    return {**os.environ, "PATH": f"{pathlib.Path(command).resolve().parent}:{os.environ['PATH']}"}


def test_the_commands_are_those_of_help(command):
    listed = output(command, "--help").split("\nSubcommands:\n")[1].split("\n\n")[0]
    assert re.findall(r"^  (\w+)", listed, re.MULTILINE) == COMMANDS


def test_bash_completes_commands(bash):
    assert set(bash("")) == {*COMMANDS, "help", "-h", "--help", "--version"}
    assert bash("be") == ["bench"]
    assert bash("help", "ver") == ["verify"]
    assert bash("nothing") == []


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_completes_every_option(command, bash, name):
    offered = bash(name, "--")
    assert set(offered) == options_of(command, name) and len(offered) == len(set(offered))


def test_bash_completes_values(bash):
    assert bash("bench", "photos", "--transform", "") == ["train", "eval"]
    assert bash("bench", "photos", "--reader", "u") == ["uring"]
    assert bash("bench", "--dtype", "=", "f") == ["float16", "float32"]  # as bash divides --dtype=f
    assert bash("bench", "--dtype=f") == ["--dtype=float16", "--dtype=float32"]  # in other shells
    assert bash("bench", "--dtype", "=") == ["uint8", "float16", "bfloat16", "float32", "uint16"]
    assert bash("bench", "--crop-index", "o") == ["off"]
    assert bash("bench", "--on-bad", "") == ["fail", "substitute", "drop"]
    assert bash("completion", "z") == ["zsh"]
    assert bash("bench", "--epochs", "") == []  # a number
    assert bash("bench", "pho") == []  # a folder: left to bash


def test_bash_itself_completes_files(command, tmp_path):
    """A bash on a pseudo terminal, because files are not completed by the function."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "script").write_text(output(command, "completion", "bash"))
    terminal, its_own = open_pseudo_terminal()
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        cwd=tmp_path, stdin=its_own, stdout=its_own, stderr=its_own, start_new_session=True,
        env=with_command(command),
    ) as shell:  # fmt: skip
        os.close(its_own)
        type_until(terminal, 'PS1=; source ./script; echo rea""dy\n', b"ready")
        type_until(terminal, "stoker bench pho\t", b"bench photos/")
        type_until(terminal, "\x15stoker bench --tran\t", b"bench --transform ")
        os.write(terminal, b"\x15exit\n")
        assert shell.wait(timeout=60) == 0
    os.close(terminal)


def type_until(terminal, keys, expected):
    """Types on a terminal, and waits until it shows what is expected."""
    os.write(terminal, keys.encode())
    shown = b""
    while expected not in shown:
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096)


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_valid(command, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = output(command, "completion", shell)
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(command, tmp_path):
    """A zsh on a pseudo terminal shows what it offers for a line and a tab."""
    for name in ("photos", "packed"):
        (tmp_path / name).mkdir()
    (tmp_path / "stoker.zsh").write_text(output(command, "completion", "zsh"))
    lines = {
        "bench --tran\\t ev\\t": "--transform*eval",
        "bench --source-option a=b --source-opt\\t": "a=b --source-option",  # more than once
        "pack pho\\t pac\\t": "photos*packed",  # two places
        "unpack pac\\t pho\\t": "packed*photos",
        **{f"{name} --hel\\t": f"stoker {name} --help" for name in COMMANDS},
    }
    typed = "".join(
        f"zpty -w -n shell $'\\x15stoker {keys}'\nzpty -r -m shell shown '*{shown}*' && print -r -- found\n"
        for keys, shown in lines.items()
    )
    program = f"""
cd {tmp_path}
zmodload zsh/zpty
zpty -b shell zsh -f
zpty -w shell 'PS1=; fpath+=({tmp_path}); autoload compinit; compinit -D; source {tmp_path}/stoker.zsh'
zpty -w shell 'print rea""dy'
zpty -r -m shell read_it '*ready*'
{typed}
zpty -d shell
"""
    done = subprocess.run(
        ["zsh", "-f", "-c", program],
        capture_output=True, text=True, timeout=60, check=True, env=with_command(command),
    )  # fmt: skip
    assert done.stdout.split() == ["found"] * len(lines), done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(command, tmp_path):
    (tmp_path / "stoker.fish").write_text(output(command, "completion", "fish"))

    def offered(line):
        program = f"source {tmp_path}/stoker.fish; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", program],
            capture_output=True, text=True, timeout=60, check=True, env=with_command(command),
        )  # fmt: skip
        return [text.split("\t")[0] for text in done.stdout.splitlines()]

    assert offered("stoker be") == ["bench"]
    assert offered("stoker help be") == ["bench"]
    assert offered("stoker bench --transf") == ["--transform"]
    assert sorted(offered("stoker bench photos --transform ")) == ["eval", "train"]


def test_another_shell_is_refused(command):
    done = subprocess.run([command, "completion", "tcsh"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "tcsh is not one of bash, zsh, fish" in done.stderr


# --- the manual page ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(command, tmp_path_factory):
    path = tmp_path_factory.mktemp("man") / "stoker.1"
    path.write_text(output(command, "--manual-page"))
    return path


def test_the_page_has_every_command_and_option(command, page):
    text = page.read_text().replace("\\-", "-")
    for name in COMMANDS:
        section = text.split(f"\n.SS stoker {name}\n")[1].split("\n.SS ")[0]
        assert set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", section, re.MULTILINE)) == options_of(command, name)


def test_man_has_no_complaint(page):
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", page],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0 and done.stderr == ""
    shown = re.sub(r".\x08", "", done.stdout)  # overstrikes, for bold
    for words in ("NAME", "SYNOPSIS", "stoker bench", "--batch-size N", "COMMANDS", "Exit codes"):
        assert words in shown


def test_the_option_for_the_page_is_hidden(command):
    assert "manual-page" not in output(command, "--help")
