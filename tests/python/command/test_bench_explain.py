"""`stoker bench --explain`: what each part could do alone, and what the loader reaches."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from pseudo_terminal import open_pseudo_terminal
from repository import ROOT

PARTS = ("storage", "decode", "memory", "copy")


def explain(command, folder, *options, code=0):
    done = subprocess.run(
        [command, "bench", folder, "--explain", "--size", "64", "--batch-size", "8", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report(command, photos):
    return json.loads(explain(command, photos, "--json", "--device", "host", "--threads", "2"))


def test_every_part_is_measured(report):
    assert tuple(report["alone"]) == PARTS
    for name, part in report["alone"].items():
        assert part["images_per_second"] > 0 and part["bytes_per_second"] > 0, name
        assert part["reached"] == pytest.approx(report["images_per_second"] / part["images_per_second"])
    assert report["workers"] == 2 and report["alone"]["copy"]["device"] == "host"
    assert report["image_bytes"] == 64 * 64 * 3 and report["batch_bytes"] == 8 * report["image_bytes"]


def test_rates_agree(report):
    alone = report["alone"]
    for name in ("decode", "memory"):
        made = alone[name]["images_per_second"] * report["image_bytes"]
        assert alone[name]["bytes_per_second"] == pytest.approx(made)
    assert alone["decode"]["cpu_seconds_per_image"] > 0
    assert report["images_per_second"] > 0


def test_the_run_is_that_of_bench(report, command, photos):
    run = report["run"]
    done = subprocess.run([command, "bench", photos, "--json"], capture_output=True, timeout=120, check=True)
    assert set(run) == set(json.loads(done.stdout))
    assert run["epochs"] <= run["options"]["epochs"] <= run["epochs"] + 1
    assert (
        not report["interrupted"]
        and not run["interrupted"]
        and run["images"] > 0
        and run["device"]["device"] == "host"
    )


def test_the_first_change_is_one_of_the_advice(report):
    first, advice = report["first_change"], report["run"]["advice"]
    assert first and first[1:-1] in advice, (first, advice)


def test_the_report_has_the_documented_members(report):
    page = ROOT / "docs" / "cli.md"
    section = page.read_text().split("### Each part alone")[1].split("\n### ")[0]
    rows = [line for line in section.split("| member |")[1].splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])]
    top = {name for name in told if "." not in name}
    assert top | {"alone"} == set(report)
    inner = {key for part in report["alone"].values() for key in part}
    assert all(f"`{name}`" in section or f".{name}`" in section for name in inner), inner


@pytest.mark.long
def test_cold_storage_is_measured_cold(command, photos, tmp_path):
    photos = shutil.copytree(photos, tmp_path / "photos")  # which no other test reads meanwhile
    os.sync()  # what has not been written stays in the page cache
    report = json.loads(explain(command, photos, "--json", "--cold"))
    assert report["run"]["options"]["cold"]
    only_read = [command, "bench", photos, "--read-only", "--cold", "--json"]
    done = subprocess.run(only_read, capture_output=True, timeout=120, check=True)
    read = json.loads(done.stdout)
    cached = max(0, 1 - read["bytes_from_storage"] / read["bytes_read"])
    assert report["alone"]["storage"]["cached"] in (None, pytest.approx(cached, abs=0.2))


@pytest.mark.parametrize(
    "options",
    [("--epochs", "2"), ("--read-only",), ("--cache", "ram:1MiB"), ("--digest",), ("--live",),
     ("--trace", "t"), ("--prometheus", "p")],
)  # fmt: skip
def test_what_needs_a_run_of_its_own_is_refused(command, photos, options):
    error = json.loads(explain(command, photos, "--json", *options, code=2))["error"]
    assert "--explain" in error["cause"] and options[0] in error["cause"]


def test_several_views_are_refused(command, photos, tmp_path):
    recipe = tmp_path / "views.json"
    crop = {"transforms": [{"name": "RandomResizedCrop", "height": 32, "width": 32}]}
    recipe.write_text(json.dumps({"views": [crop, crop]}))
    done = subprocess.run(
        [command, "bench", photos, "--explain", "--recipe", recipe],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "several views" in done.stderr, done.stderr


def test_files_that_cannot_be_decoded_end_it(command, tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "bad.jpg").write_bytes(b"no photograph")
    assert json.loads(explain(command, tmp_path, "--json", code=1))["error"]["code"] == "DATA_LOSS"


def test_a_sample_that_is_missing_ends_it_unless_it_is_dropped(command, photos, tmp_path):
    good = list(photos.rglob("*.jpg"))[:16]
    (tmp_path / "m.csv").write_text("path\nmissing.jpg\n" + "".join(f"{path}\n" for path in good))
    options = ("--json", "--source-option", "label_column=")
    error = json.loads(explain(command, tmp_path / "m.csv", *options, code=1))["error"]
    assert error["file"] == str(tmp_path / "missing.jpg")
    dropped = ("--on-bad", "drop", "--max-bad-fraction", "1")
    report = json.loads(explain(command, tmp_path / "m.csv", *options, *dropped))
    assert "missing.jpg" in report["alone"]["storage"]["why_not"]
    assert report["alone"]["decode"]["images_per_second"] > 0 and report["run"]["bad"]["dropped"] > 0


def on_a_terminal(process, terminal, at=None, times=1):
    """Returns what a command shows on a terminal; interrupts it once it has shown `at` that many times."""
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return shown.decode()
        if at is not None and shown.count(at) >= times:
            process.send_signal(signal.SIGINT)
            at = None


@pytest.mark.parametrize(
    ("at", "times", "missing"),
    [
        (b"the run", 10, PARTS),  # a second after its beginning
        (b"storage alone", 1, PARTS),
        (b"decoding alone", 1, ("decode", "memory", "copy")),
    ],
)
def test_ctrl_c_leaves_what_was_measured(command, photos, at, times, missing):
    terminal, its_own = open_pseudo_terminal()
    options = ("--size", "64", "--batch-size", "1", "--explain", "--json")
    with subprocess.Popen(
        [command, "bench", photos, *options], stdout=subprocess.PIPE, stderr=its_own
    ) as process:
        os.close(its_own)
        shown = on_a_terminal(process, terminal, at, times)
        stdout = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 130, shown
    report = json.loads(stdout)
    assert report["interrupted"] and report["run"]["interrupted"] == (at == b"the run")
    for name in missing:
        assert report["alone"][name] == {"why_not": "interrupted"}


def reported_on_a_terminal(command, photos, *options):
    """Returns the report, which begins on a line of its own."""
    terminal, its_own = open_pseudo_terminal()
    with subprocess.Popen([command, "bench", photos, *options], stdout=its_own, stderr=its_own) as process:
        os.close(its_own)
        shown = on_a_terminal(process, terminal)
    os.close(terminal)
    assert process.returncode == 0
    wiped, report = shown.rsplit("\r\x1b[K", 1)
    assert wiped and report.startswith("image_folder("), shown
    return report


def test_the_report_of_reading_begins_on_a_line_of_its_own(command, photos):
    reported_on_a_terminal(command, photos, "--read-only", "--epochs", "3")


@pytest.mark.parametrize("terminal", [True, False])
def test_text(command, photos, terminal):
    if terminal:
        text = reported_on_a_terminal(command, photos, "--explain", "--size", "64", "--batch-size", "8")
    else:
        text = explain(command, photos)
        assert text.startswith("image_folder(")
    rates = dict(
        re.findall(r"^  (\w+) {2,}([\d,]+|-) ", text, re.MULTILINE)
    )  # advice has words of the table, too
    assert tuple(rates) == PARTS
    for name in PARTS[:3]:
        assert re.fullmatch(r"[\d,]+", rates[name]), rates
    assert rates["copy"] != "-" or " no device: " in text
    assert "To change first: " in text
