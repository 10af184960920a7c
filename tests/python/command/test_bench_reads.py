"""`stoker bench --read-only`: reading without decoding."""

import json
import subprocess

import pytest


def bench(command, folder, *options, code=0):
    done = subprocess.run(
        [command, "bench", folder, "--read-only", *options], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("options", [(), ("--cold",), ("--reader", "pread"), ("--shuffle", "--reads", "5")])
def test_every_file_is_read(command, photos, options):
    report = json.loads(bench(command, photos, "--json", "--epochs", "2", *options))
    files = [path for path in photos.rglob("*.*") if path.suffix.lower() in (".jpg", ".jpeg")]
    assert report["samples_read"] == 2 * report["samples"] == 2 * len(files)
    assert report["bytes_read"] == 2 * sum(path.stat().st_size for path in files)
    assert report["epochs"] == 2
    assert report["files_opened"] >= 2 * len(files)
    assert report["system_calls"] > 0
    latency = report["read_latency_s"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p99.9"]
    assert report["options"]["reads"] == (5 if "--reads" in options else 64)
    assert report["options"]["cold"] == ("--cold" in options)
    assert report["cached_before"] is None or 0 <= report["cached_before"] <= 1
    assert report["fio"] is None or report["fio"]["bytes_per_second"] > 0
    assert not report["interrupted"]


@pytest.mark.parametrize("transform", ["train", "eval"])
def test_of_a_packed_set_it_reads_what_a_loader_reads(command, photos, tmp_path, transform):
    packed = tmp_path / "packed"
    subprocess.run([command, "pack", photos, packed], check=True, capture_output=True)
    options = ("--json", "--epochs", "2", "--seed", "3", "--transform", transform)
    loaded = subprocess.run([command, "bench", packed, *options], check=True, capture_output=True, text=True)
    report = json.loads(bench(command, packed, *options))
    assert report["bytes_read"] == json.loads(loaded.stdout)["bytes_read"]
    assert report["bytes_read"] < 2 * (packed / "00000.stoker").stat().st_size


def test_text(command, photos):
    text = bench(command, photos)
    for words in ("only read", "samples/s", "from storage", "median", "system calls", "files opened"):
        assert words in text


@pytest.mark.parametrize(
    "options", [("--digest",), ("--live",), ("--device", "host"), ("--trace", "t"), ("--prometheus", "p")]
)
def test_what_needs_batches_is_refused(command, photos, options):
    error = json.loads(bench(command, photos, "--json", *options, code=2))["error"]
    assert "--read-only" in error["cause"]


def test_a_missing_folder(command, tmp_path):
    error = json.loads(bench(command, tmp_path / "no", "--json", code=1))["error"]
    assert error["file"] == str(tmp_path / "no")
