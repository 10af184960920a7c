"""`stoker doctor` from outside. repository.py says which."""

import contextlib
import json
import os
import re
import shutil
import subprocess

import pytest
from pseudo_terminal import open_pseudo_terminal
from repository import COMMAND, ROOT

pytestmark = pytest.mark.skipif(not COMMAND.is_file(), reason=f"{COMMAND} is not built")


def run(*arguments, **options):
    return subprocess.run(
        [COMMAND, "doctor", *arguments], capture_output=True, timeout=120, check=False, **options
    )


@pytest.fixture(scope="module")
def report():
    done = run("--json")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    return json.loads(done.stdout)


def test_the_report_has_the_documented_members(report):
    page = ROOT / "docs" / "cli.md"
    section = page.read_text().split("## `stoker doctor`")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert told == {*report, "tensorflow"}  # which the Python package's command adds
    for member in {*report["cuda"], *(name for d in report["cuda"]["devices"] for name in d)}:
        assert f"`{member}`" in section, member


def test_the_report_has_the_default_settings(report):
    assert 1 <= report["cores"] <= os.cpu_count()
    assert 0 < report["memory_budget_bytes"] <= 4 << 30
    assert report["reader"] in ("uring", "pread") and report["reader_reason"]
    assert report["memlock_bytes"] is None or report["memlock_bytes"] >= 0
    assert set(report["libraries"]) >= {"libjpeg-turbo", "zlib", "libwebp"}


def test_a_job_of_several_ranks_shares_the_memory(report):
    environment = dict(os.environ, LOCAL_WORLD_SIZE="4")
    shared = json.loads(run("--json", env=environment).stdout)
    assert shared["memory_budget_bytes"] < report["memory_budget_bytes"]


def test_there_is_a_device_or_a_reason_why_not(report):
    cuda = report["cuda"]
    assert (cuda["why_not"] is None) == bool(cuda["devices"])
    assert cuda["registered_bytes"] == 0
    if not cuda["built"]:
        assert cuda["runtime"] is cuda["least_driver"] is cuda["driver"] is None
        assert "built without CUDA" in cuda["why_not"]
    elif cuda["driver"] is None:
        assert "no NVIDIA driver" in cuda["why_not"] and cuda["least_driver"] in cuda["why_not"]


def test_devices_that_are_not_visible(report):
    hidden = json.loads(run("--json", env=dict(os.environ, CUDA_VISIBLE_DEVICES="-1")).stdout)
    assert hidden["cuda"]["visible_devices"] == "-1"
    assert hidden["cuda"]["devices"] == [] and hidden["cuda"]["why_not"]
    if report["cuda"]["devices"]:
        assert "CUDA_VISIBLE_DEVICES" in hidden["cuda"]["why_not"]


def test_the_text_says_the_same(report):
    done = run()
    assert done.returncode == 0 and done.stderr == b""
    text = done.stdout.decode()
    assert text.startswith(f"stoker {report['version']}\n")
    assert report["compiler"] in text and report["system"] in text
    assert (report["cuda"]["why_not"] or report["cuda"]["devices"][0]["name"]) in text


def shown_on_a_terminal(**environment):
    """Returns what doctor writes to a terminal."""
    master, slave = open_pseudo_terminal()
    done = subprocess.run(
        [COMMAND, "doctor"], stdout=slave, timeout=120, check=True, env=dict(os.environ, **environment)
    )
    os.close(slave)
    assert done.returncode == 0
    shown = b""
    with contextlib.suppress(OSError):  # EIO: all was read
        while piece := os.read(master, 1 << 16):
            shown += piece
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_colour_is_for_terminals_that_want_it():
    plain = shown_on_a_terminal(TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in plain and "\x1b" not in shown_on_a_terminal(TERM="dumb", NO_COLOR="")
    coloured = shown_on_a_terminal(TERM="xterm", NO_COLOR="")
    assert coloured.startswith("\x1b[1mstoker ")

    def names(text):  # of the lines; the others have measurements in them
        return [line[:17] for line in re.sub(r"\x1b\[\d+m", "", text).splitlines()]

    assert names(coloured) == names(plain)


def test_a_bad_option_is_the_users_mistake():
    done = run("--jsn")
    assert done.returncode == 2
    assert done.stderr.startswith(b"stoker: error: ")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not there")
def test_only_doctor_looks_for_a_driver(report, tmp_path):
    """No other command tries to load CUDA's driver."""

    def tried(*arguments):
        trace = tmp_path / "trace"
        traced = subprocess.run(
            ["strace", "-f", "-o", trace, "-e", "trace=open,openat", COMMAND, *arguments],
            capture_output=True,
            timeout=120,
            check=False,
        )
        if traced.returncode != 0:
            pytest.skip(f"strace cannot trace here: {traced.stderr.decode()}")
        return "libcuda" in trace.read_text() or "/dev/nvidia" in trace.read_text()

    folder = tmp_path / "made"
    assert not tried("synth", folder, "--count", "8")
    assert not tried("bench", folder, "--batch-size", "4", "--size", "32", "--transform", "eval")
    assert tried("doctor") == report["cuda"]["built"]
