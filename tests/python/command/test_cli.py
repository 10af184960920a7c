"""The `stoker` command from outside, as scripts use it. repository.py says which."""

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import termios
import time

import pytest
from annotated import write_coco, write_voc, write_yolo
from gray_png import gray_png
from pseudo_terminal import open_pseudo_terminal
from repository import COMMAND
from screen import Screen

pytestmark = pytest.mark.skipif(not COMMAND.is_file(), reason=f"{COMMAND} is not built")

SMALL = ("--size", 64, "--batch-size", 8)


def run(*arguments, **options):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, timeout=120, check=False, **options
    )


def bench(*arguments):
    """Returns the report of a bench that must succeed."""
    done = run("bench", *arguments, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    return json.loads(done.stdout)


def failure(done, code):
    """Returns the one line that a command which failed with `code` wrote."""
    assert done.returncode == code, (done.returncode, done.stderr)
    line = done.stderr.decode()
    assert line.startswith("stoker: error: ") and line.count("\n") == 1 and line.endswith(".\n"), line
    return line


def as_somebody():
    """Returns the prefix of a command to which permissions apply."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:  # root reads everything, unless it gives up its capabilities
        pytest.skip("root without setpriv")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder of 60 synthetic photographs in 3 classes."""
    folder = tmp_path_factory.mktemp("synth") / "made"
    done = run("synth", folder, "--count", 60, "--classes", 3, "--seed", 5)
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.fixture(scope="session")
def photograph(made):
    return sorted(made.rglob("*.jpg"))[0].read_bytes()


@pytest.fixture
def dataset(tmp_path, photograph):
    """A folder of one class with a good photograph in it, and a function that adds a file."""
    folder = tmp_path / "data"
    (folder / "class").mkdir(parents=True)
    (folder / "class" / "good.jpg").write_bytes(photograph)

    def add(name, data):
        path = folder / "class" / name
        path.write_bytes(data)
        return path

    return folder, add


# --- help and version ---------------------------------------------------------------------------


def test_help_teaches():
    for arguments, words in (
        (["--help"], ["synth", "inspect", "index", "bench", "Exit codes"]),
        (["bench", "--help"], ["--transform", "--reader", "Examples", "batch latency", "Exit codes"]),
        (["synth", "--help"], ["--count", "--seed", "Examples"]),
        (["inspect", "--help"], ["--json", "--list-broken", "Examples"]),
        (["verify", "--help"], ["--json", "--good", "Examples"]),
        (["show", "--help"], ["--out", "--masks", "--seed", "Examples", "Exit codes"]),
        (["index", "--help"], ["--json", "--out", "Examples", "Exit codes"]),
    ):
        done = run(*arguments)
        text = done.stdout.decode()
        assert done.returncode == 0 and done.stderr == b""
        assert [word for word in words if word not in text] == []
        assert max(map(len, text.splitlines())) <= 80


def test_help_of_a_command():
    assert run("help").stdout == run("--help").stdout != b""
    for command in ("synth", "inspect", "index", "explain", "show", "bench", "doctor", "completion"):
        done = run("help", command)
        assert done.returncode == 0 and done.stderr == b""
        assert done.stdout == run(command, "--help").stdout
    assert "no command `bnech`. Did you mean `bench`?" in failure(run("help", "bnech"), 2)


def test_version():
    done = run("--version")
    assert done.returncode == 0
    version, pixels = done.stdout.decode().splitlines()
    assert re.fullmatch(r"stoker \d+\.\d+\.\d+", version)
    assert re.fullmatch(r"libjpeg-turbo \d+\.\d+\.\d+", pixels)  # what "to the bit" means


# --- what the commands do -------------------------------------------------------------------------


def test_synth_is_repeatable(made, tmp_path):
    again = tmp_path / "again"
    assert run("synth", again, "--count", 60, "--classes", 3, "--seed", 5, "--threads", 1).returncode == 0
    other = tmp_path / "other"
    assert run("synth", other, "--count", 60, "--classes", 3, "--seed", 6).returncode == 0

    def content(folder):
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.jpg")}

    assert len(content(made)) == 60 and len(list(made.glob("class*"))) == 3
    assert content(again) == content(made)
    assert content(other) != content(made)


def test_inspect_counts(made):
    done = run("inspect", made, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    report = json.loads(done.stdout)
    assert report["samples"] == 60 and report["formats"] == {"JPEG": 60}
    assert [(c["name"], c["samples"]) for c in report["classes"]] == [
        ("class00", 20), ("class01", 20), ("class02", 20),
    ]  # fmt: skip
    assert report["total_bytes"] == sum(p.stat().st_size for p in made.rglob("*.jpg"))
    assert report["broken"] == 0
    assert report["packing"]["measured"] == 60 and report["packing"]["failed"] == 0
    text = run("inspect", made)
    assert text.returncode == 0 and b"60" in text.stdout
    assert b"less CPU time per crop" in text.stdout
    few = json.loads(run("inspect", made, "--json", "--pack", 7).stdout)
    assert few["packing"]["measured"] == 7
    assert json.loads(run("inspect", made, "--json", "--pack", 0).stdout)["packing"] is None
    assert run("inspect", made, "--pack", 10_001).returncode == 2


def test_an_index_changes_no_pixel(made, tmp_path):
    out = tmp_path / "made.index"
    done = run("index", made, "--out", out, "--json")
    assert done.returncode == 0 and done.stderr == b""
    report = json.loads(done.stdout)
    progressive = report["not_indexed"].get("progressive or arithmetic", 0)
    assert report["samples"] == 60 and report["indexed"] == 60 - progressive > 40
    assert report["index_bytes"] == out.stat().st_size
    without = bench(made, *SMALL, "--digest", "--epochs", 2)
    indexed = bench(made, *SMALL, "--digest", "--epochs", 2, "--crop-index", out)
    assert indexed["digest"] == without["digest"] is not None
    assert without["decoded"]["indexed"] == 0
    assert indexed["decoded"]["indexed"] == 2 * report["indexed"]
    assert indexed["decoded"]["index_stale"] == indexed["decoded"]["index_contradicted"] == 0
    assert b"decoded with it" in run("bench", made, *SMALL, "--crop-index", out).stdout


def test_the_folders_own_index(dataset, photograph):
    folder, add = dataset
    text = add("text.jpg", b"no photograph")
    done = run("index", folder)
    assert done.returncode == 0 and done.stderr == b""
    assert b"1 of 2 samples indexed" in done.stdout and f"{text}: not a JPEG".encode() in done.stdout
    text.unlink()
    assert bench(folder, *SMALL)["decoded"]["indexed"] == 1
    assert bench(folder, *SMALL, "--crop-index", "off")["decoded"]["indexed"] == 0
    add("good.jpg", photograph + b"!")  # another file by its size
    assert bench(folder, *SMALL)["decoded"]["index_stale"] == 1
    (folder / ".stoker-index").write_bytes(b"damaged" * 20)
    report = bench(folder, *SMALL)
    assert "this is not an index file" in report["warning"] and report["decoded"]["ours"] == 1
    assert b"this is not an index file" in run("bench", folder, *SMALL).stdout
    assert ".stoker-index" in failure(run("bench", folder, "--crop-index", folder / ".stoker-index"), 1)
    assert "nothing" in failure(run("bench", folder, "--crop-index", folder / "nothing"), 1)
    for wrong in (folder, text.parent / "good.jpg", "/dev/null"):
        said = failure(run("bench", folder, "--crop-index", wrong), 1)
        assert f"{wrong}: this is not an index file. Give the file" in said
    assert "--crop-index" in failure(run("bench", folder, "--crop-index", ""), 2)
    assert "--out" in failure(run("index", folder, "--out", ""), 2)
    assert "its folder does not exist" in failure(run("index", folder, "--out", "/nowhere/index"), 3)
    good = text.parent / "good.jpg"
    for wrong, why in ((good, "a file that is not an index is in the way"),
                       (folder, "a directory is in the way"),
                       (text.parent / "x.idx", "there it would change a class folder")):  # fmt: skip
        assert f"{wrong}: cannot write the index: {why}" in failure(run("index", folder, "--out", wrong), 3)
    (folder / ".stoker-index").unlink()
    (folder / ".stoker-index").mkdir()
    assert "cannot write: a directory is in the way" in failure(run("index", folder), 3)


# --- pack and unpack ------------------------------------------------------------------------------------


def test_pack_takes_the_place_of_the_folder(made, tmp_path):
    packed, out = tmp_path / "packed", tmp_path / "out"
    done = run("pack", made, packed, "--shard-size", "200KB", "--json")
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    report = json.loads(done.stdout)
    assert report["samples"] == report["added"] == 60 and report["shards"] > 1
    assert report["packed"] + sum(report["as_they_are"].values()) == 60
    assert report["file_bytes"] == sum(path.stat().st_size for path in made.rglob("*.jpg"))
    assert report["set_bytes"] == sum(path.stat().st_size for path in packed.iterdir())
    reports = [bench(folder, *SMALL, "--digest") for folder in (made, packed)]
    digests = {figures["digest"] for figures in reports}
    decoded = [figures["decoded"]["packed"] for figures in reports]
    assert decoded == [0, report["packed"]]
    text = run("bench", packed, *SMALL).stdout.decode()
    assert f"{report['packed']} packed, {60 - report['packed']} libjpeg-turbo" in text
    assert len(digests) == 1
    inspected = [json.loads(run("inspect", folder, "--json").stdout) for folder in (made, packed)]
    assert inspected[0]["packing"]["packed"] > 0
    assert inspected[1]["packing"] is None
    for members in inspected:
        for name in ("source", "list_bytes", "seconds", "packing"):
            del members[name]
    assert inspected[0] == inspected[1]
    assert json.loads(run("verify", packed, "--json").stdout)["bad"] == []
    assert run("explain", packed).returncode == 0
    checked = json.loads(run("pack", "--verify", packed, "--json").stdout)
    assert checked["samples"] == 60 and checked["damaged"] == 0
    assert checked["bytes"] == report["file_bytes"]
    listed = json.loads(run("pack", "--list", packed, "--json").stdout)["photographs"]
    assert [photo["path"] for photo in listed] == sorted(
        str(p.relative_to(made)) for p in made.rglob("*.jpg")
    )
    assert run("pack", "--list", packed).stdout.count(b"\n") == 61
    assert json.loads(run("unpack", packed, out, "--json").stdout)["bytes"] == report["file_bytes"]
    for photo in listed:
        assert (out / photo["path"]).read_bytes() == (made / photo["path"]).read_bytes()


def test_pack_refuses(made, tmp_path, dataset):
    packed = tmp_path / "packed"
    assert "OUT is missing" in failure(run("pack", made), 2)
    assert "only one folder" in failure(run("pack", "--verify", made, packed), 2)
    assert "exclude each other" in failure(run("pack", "--verify", "--list", made), 2)
    assert "this folder is not a packed set" in failure(run("pack", "--verify", made), 1)
    assert "cannot open" in failure(run("unpack", tmp_path / "nowhere", tmp_path / "out"), 1)
    folder, _ = dataset
    assert run("pack", folder, packed).returncode == 0
    assert "that are not in" in failure(run("pack", made, packed), 3)
    assert "is not empty. Name a new folder, or remove what" in failure(run("unpack", packed, made), 3)
    assert "something else in it" in failure(run("pack", made, folder / "class"), 3)
    (packed / "index.stoker").unlink()
    assert "packing has not finished" in failure(run("bench", packed), 1)


def test_pack_goes_on_after_a_kill(made, tmp_path):
    """Killed at any moment, the same command completes it."""
    packed = tmp_path / "packed"
    for delay in (0, 0.01, 0.02, 0.05, 0.1):
        with subprocess.Popen(
            [COMMAND, "pack", made, packed, "--shard-size", "100KB"], stdout=subprocess.PIPE
        ) as process:
            time.sleep(delay)
            process.kill()
    assert run("pack", made, packed, "--shard-size", "100KB").returncode == 0
    assert run("pack", "--verify", packed).returncode == 0
    assert not [path for path in packed.iterdir() if path.name.startswith(".")]
    digests = {bench(folder, *SMALL, "--digest")["digest"] for folder in (made, packed)}
    assert len(digests) == 1


def test_inspect_names_broken_files(dataset, photograph):
    folder, add = dataset
    text = add("text.jpg", b"no photograph")
    add("cut.jpg", photograph[: len(photograph) * 3 // 4])
    headers = run("inspect", folder, "--json")
    assert headers.returncode == 1 and headers.stderr == b""
    assert [b["file"] for b in json.loads(headers.stdout)["broken_files"]] == [str(text)]
    none = json.loads(run("inspect", folder, "--json", "--list-broken", 0).stdout)
    assert none["broken"] == 1 and none["broken_files"] == []
    assert str(text) in run("inspect", folder).stdout.decode()


def test_verify_names_bad_samples(dataset, photograph, tmp_path):
    folder, add = dataset
    assert run("verify", folder).returncode == 0
    text = add("text.jpg", b"no photograph")
    cut = add("cut.jpg", photograph[: len(photograph) * 3 // 4])
    listed = tmp_path / "good.jsonl"
    done = run("verify", folder, "--json", "--good", listed)
    assert done.returncode == 1 and done.stderr == b""
    report = json.loads(done.stdout)
    assert [(b["path"], b["class"]) for b in report["bad"]] == [
        (str(cut), "truncated"),
        (str(text), "undecodable"),
    ]
    assert report["bad"][0]["offset"] == len(photograph) * 3 // 4 and "truncated" in report["bad"][0]["cause"]
    assert len(listed.read_text().splitlines()) == report["checked"] - 2
    assert run("verify", listed).returncode == 0
    assert str(text) in run("verify", folder).stdout.decode()
    assert str(text) not in run("verify", folder, "--list-bad", 1).stdout.decode()
    assert f"{cut} at byte " in run("verify", folder).stdout.decode()


def test_masks_are_an_option_of_a_folder(dataset, tmp_path):
    """`verify` checks them; what would measure the images alone refuses them."""
    folder, add = dataset
    image = add("two.png", gray_png(16, 16))
    masks = tmp_path / "masks" / "class"
    masks.mkdir(parents=True)
    image.with_name("good.jpg").unlink()
    mask = masks / "two_m.png"
    mask.write_bytes(gray_png(16, 16))
    given = (folder, "--source-option", f"masks={masks.parent}", "--source-option", "suffix=_m")
    done = run("verify", *given)
    assert done.returncode == 0, done.stderr
    assert f"masks({folder}, {masks.parent}): 1 sample checked" in done.stdout.decode()
    assert "lose the column 'mask'" in failure(run("verify", *given, "--good", tmp_path / "good.jsonl"), 2)
    mask.write_bytes(gray_png(16, 16)[:50])
    assert str(mask) in run("verify", *given).stdout.decode()
    explained, plan = run("explain", *given), run("explain")
    assert (explained.returncode, explained.stdout) == (0, plan.stdout)
    assert b"warning: the cost is not measured" in explained.stderr and b"one image each" in explained.stderr
    assert "decode" in json.loads(run("explain", *given, "--json").stdout)
    assert "several images" in failure(run("bench", *given, "--read-only"), 2)
    assert "without masks" in failure(run("bench", *given, "--crop-index", tmp_path / "index"), 2)
    image.unlink()
    add("one.jpg", b"")
    assert "1 image ('class/one.jpg')" in failure(run("verify", *given), 1)


def test_files_of_boxes_are_recognised(dataset, tmp_path):
    _, add = dataset
    images = [add("one.png", gray_png(16, 16)), add("two.png", gray_png(16, 16))]
    write_coco(tmp_path / "a.json", images, tmp_path / "images")
    write_yolo(tmp_path / "yolo", images)
    done = run("verify", tmp_path / "a.json", "--source-option", f"images={tmp_path / 'images'}")
    assert done.returncode == 0 and "2 samples checked" in done.stdout.decode(), done.stderr
    assert "--source-option images=DIR" in failure(run("verify", tmp_path / "a.json"), 2)
    done = run("verify", tmp_path / "yolo/data.yaml", "--source-option", "split=val")
    assert done.returncode == 0 and "val): 2 samples checked" in done.stdout.decode(), done.stderr
    assert "not a YAML file" in failure(run("pack", tmp_path / "yolo/data.yaml", tmp_path / "packed"), 1)
    write_voc(tmp_path / "VOCdevkit/VOC2007", images, split="val")
    given = [tmp_path, "--source-option", "year=2007", "--source-option", "split=val"]
    done = run("verify", *given)
    assert done.returncode == 0 and "val): 2 samples checked" in done.stdout.decode(), done.stderr
    done = run("verify", tmp_path / "VOCdevkit/VOC2007", "--source-option", "split=val")
    assert done.returncode == 0 and "val): 2 samples checked" in done.stdout.decode(), done.stderr
    assert "no folder VOC2012" in failure(run("verify", tmp_path / "VOCdevkit"), 1)
    assert "data set of Pascal VOC" in failure(run("pack", tmp_path, tmp_path / "packed"), 1)


def test_verify_checks_its_list_beforehand(dataset, tmp_path):
    folder, _ = dataset
    listed = tmp_path / "good.jsonl"
    assert "x.jsonl" in failure(run("verify", folder, "--good", tmp_path / "no" / "x.jsonl"), 3)
    assert ".jsonl or .ndjson" in failure(run("verify", folder, "--good", tmp_path / "good.csv"), 2)
    assert run("verify", folder, "--good", listed).returncode == 0
    before = listed.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(listed)
    for same in (listed, tmp_path / "link.jsonl"):
        assert "the manifest that is read" in failure(run("verify", listed, "--good", same), 2)
    assert listed.read_bytes() == before
    done = run("verify", folder, "--json", "--good", tmp_path / "good.csv")
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["exit_code"] == 2


def test_verify_keeps_numbers_as_labels(dataset, tmp_path):
    _, add = dataset
    add("bad.jpg", b"no photograph")
    (tmp_path / "m.csv").write_text(
        "path,score,age\ndata/class/good.jpg,0.25,7\ndata/class/bad.jpg,0.5,8\ndata/class/good.jpg,3,9\n"
    )
    for column, labels in (("score", [0.25, 3.0]), ("age", [7, 9])):
        options = ("--source-option", f"label_column={column}", "--source-option", "columns=")
        listed = tmp_path / f"{column}.jsonl"
        done = run("verify", tmp_path / "m.csv", *options, "--good", listed)
        assert done.returncode == 1 and done.stderr == b"", done.stderr
        lines = [json.loads(line) for line in listed.read_text().splitlines()]
        assert [line["label"] for line in lines] == labels
        assert run("verify", listed).returncode == 0
    refused = failure(run("verify", tmp_path / "m.csv", "--good", tmp_path / "x.jsonl"), 2)
    assert "lose the column 'score'" in refused and "subset()" in refused
    assert not (tmp_path / "x.jsonl").exists()


def test_verify_of_relative_paths(dataset, tmp_path):
    _, add = dataset
    add("bad.jpg", b"no photograph")
    done = run("verify", "data", "--good", "good.jsonl", cwd=tmp_path)
    assert done.returncode == 1 and b"  data/class/bad.jpg at byte 0: undecodable: " in done.stdout
    line = json.loads((tmp_path / "good.jsonl").read_text())
    assert line == {"path": str(tmp_path / "data" / "class" / "good.jpg"), "label": "class"}
    assert run("verify", tmp_path / "good.jsonl", cwd="/").returncode == 0


def test_verify_warns_of_what_the_list_lacks(dataset, tmp_path):
    folder, _ = dataset
    (folder / "broken").mkdir()
    (folder / "broken" / "bad.jpg").write_bytes(b"no photograph")
    listed = tmp_path / "good.jsonl"
    done = run("verify", folder, "--good", listed)
    assert done.returncode == 1 and done.stderr.startswith(
        b"stoker: warning: class 'broken' has no good sample"
    )
    listed.unlink()
    shutil.rmtree(folder / "class")
    done = run("verify", folder, "--good", listed)
    assert done.returncode == 1 and b"good.jsonl is not written, because no sample is good" in done.stderr
    assert not listed.exists() and b"bad: 1 (1 undecodable)" in done.stdout


def test_verify_of_a_file_that_may_not_be_read(dataset, photograph):
    folder, add = dataset
    path = add("secret.jpg", photograph)
    path.chmod(0)
    command = [*as_somebody(), COMMAND, "verify", folder, "--json"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr == b""
    (bad,) = json.loads(done.stdout)["bad"]
    assert (bad["path"], bad["class"], bad["offset"]) == (str(path), "unreadable", None)


def test_verify_of_an_empty_source(tmp_path):
    (tmp_path / "m.csv").write_text("path,label\n")
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "m.csv", tmp_path / "empty"):
        failure(run("verify", nothing, "--good", tmp_path / "good.jsonl"), 1)
        assert not (tmp_path / "good.jsonl").exists()


def test_interrupted_verify_prints_what_was_found(made, tmp_path):
    folder = tmp_path / "many"
    (folder / "class").mkdir(parents=True)
    (folder / "class" / "!.jpg").write_bytes(b"no photograph")  # it comes first
    for i, photograph in enumerate(sorted(made.rglob("*.jpg")) * 200):
        os.link(photograph, folder / "class" / f"{i}.jpg")
    listed = tmp_path / "good.jsonl"
    stdout, shown = interrupted(
        "verify", folder, "--threads", "1", "--json", "--good", listed, at=rb"of 12001 samples"
    )
    assert b"good.jsonl is not written, because not all samples were checked" in shown
    report = json.loads(stdout)
    assert report["interrupted"] is True and 0 < report["checked"] < report["samples"] == 12001
    assert [bad["id"] for bad in report["bad"]] == [0] and not listed.exists()


def test_lost_end_markers_are_counted(dataset, photograph):
    folder, add = dataset
    add("lost.jpg", photograph[:-2] + bytes(100))
    done = run("verify", folder, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["no_end_marker"] == 1 and report["bad"] == []
    assert bench(folder, *SMALL)["decoded"]["no_end_marker"] == 1
    assert b"; 1 without an end-of-image marker" in run("bench", folder, *SMALL).stdout


def test_other_formats_are_bad_samples(dataset):
    """A loader refuses them."""
    folder, add = dataset
    add("jxl.jpg", b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(100))
    headers = run("inspect", folder, "--json")
    assert headers.returncode == 0 and json.loads(headers.stdout)["undecodable"] == 1
    assert json.loads(headers.stdout)["formats"]["JPEG XL"] == 1
    pixels = run("verify", folder, "--json")
    assert pixels.returncode == 1 and pixels.stderr == b""
    assert [bad["class"] for bad in json.loads(pixels.stdout)["bad"]] == ["unsupported"]


def test_json_has_every_member(made):
    report = bench(
        made, *SMALL, "--epochs", 2, "--threads", 2, "--depth", 3, "--reader", "pread", "--seed", 9
    )
    assert report["images"] == 120 and report["batches"] == 16 and report["epochs"] == 2
    assert report["samples"] == 60 and report["classes"] == 3
    assert report["images_per_second"] == pytest.approx(120 / report["seconds"])
    assert report["cpu_seconds_per_1000_images"] == pytest.approx(report["cpu_seconds"] / 0.120)
    assert report["time_to_first_batch_s"] > 0
    assert report["peak_memory_bytes"] > 1 << 20
    assert report["bytes_read"] == 2 * sum(p.stat().st_size for p in made.rglob("*.jpg"))
    assert 0 <= report["batch_latency_s"]["p50"] <= report["batch_latency_s"]["p99"]
    assert 1 <= report["threads_seen"] <= 2
    assert report["digest"] is None and report["samples_digest"] is None
    assert report["interrupted"] is False
    stages = report["stages"]
    names = ["read", "decode", "resize", "augment", "mix", "rest"]
    assert sorted(stages) == sorted([*names, "microseconds_per_image"])
    assert sum(stages[name] for name in names) == pytest.approx(1)
    assert all(stages[name] >= 0 for name in names) and stages["decode"] > 0 and stages["resize"] > 0
    cost = stages["microseconds_per_image"]
    assert sorted(cost) == sorted(names)
    assert sum(cost.values()) == pytest.approx(report["cpu_seconds"] / 120 * 1e6)
    options = report["options"]
    assert options["reads"] == report["settings"]["reads"] >= 1
    assert options["reader_reason"] and options["plan"]
    wanted = {
        "transform": "train", "filter": "antialiased bilinear", "antialias": True, "dtype": "uint8",
        "layout": "NHWC", "batch_size": 8, "epochs": 2, "shuffle": True, "seed": 9, "rank": 0, "world": 1,
        "drop_remainder": False, "threads": 2, "depth": 3, "executor": "tbb", "executor_reason": "",
        "reader": "pread", "cold": False,
    }  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted


def test_json_says_what_was_waited_for(made, tmp_path):
    page = tmp_path / "stoker.prom"
    report = bench(
        made, *SMALL, "--epochs", 4, "--threads", 2, "--depth", 3, "--reader", "pread", "--prometheus", page
    )
    waited = report["waited"]
    assert sorted(waited["by_cause_s"]) == ["copy", "decode", "map", "other", "storage"]
    assert sum(waited["by_cause_s"].values()) == pytest.approx(waited["seconds"])
    assert waited["share"] == pytest.approx(waited["seconds"] / (waited["seconds"] + waited["consumer_s"]))
    assert waited["by_cause_s"]["copy"] == 0 < waited["seconds"] <= report["seconds"]
    assert 0 < report["worker_core_share"] <= 1
    assert len(report["workers_busy"]) == 2 and all(0 <= share <= 1 for share in report["workers_busy"])
    settings = report["settings"]
    assert settings["depth"] == 3 and settings["workers"] == 2 and settings["reads"] >= 1
    assert len(settings["decisions"]) <= settings["decisions_made"]
    assert re.fullmatch(r"[A-Z].* .*\.", report["advice"])
    assert 'stoker_batches_total{loader="bench"} 32\n' in page.read_text()
    assert os.listdir(tmp_path) == ["stoker.prom"]


@pytest.mark.parametrize("option", ["--prometheus", "--trace"])
def test_an_output_that_cannot_be_written_is_told_before_the_run(made, tmp_path, option):
    (tmp_path / "file").write_text("")
    missing = "its folder does not exist"
    for place, why in (("nowhere/page", missing), ("file/page", missing), ("", "directory")):
        done = run("bench", made, *SMALL, option, tmp_path / place)
        line = failure(done, 3)
        assert done.stdout == b"" and str(tmp_path / place) in line and why in line
    assert os.listdir(tmp_path) == ["file"]


def read_within(pipe, seconds):
    """Returns what a FIFO's writers write until the last one has gone."""
    return subprocess.run(["cat", pipe], capture_output=True, timeout=seconds, check=True).stdout


@pytest.mark.parametrize("option", ["--prometheus", "--trace"])
def test_outputs_replace_files_and_nothing_else(made, tmp_path, option):
    """Regression test: run by root, --prometheus /dev/full once made a file of that device."""
    quick = ("bench", made, *SMALL)
    (tmp_path / "page.part").write_text("mine")
    (tmp_path / "far").mkdir()
    (tmp_path / "page").symlink_to("far/page")
    for _ in range(2):
        assert run(*quick, option, tmp_path / "page").returncode == 0
    assert (tmp_path / "page").is_symlink() and b"stoker" in (tmp_path / "far" / "page").read_bytes()
    assert (tmp_path / "page.part").read_text() == "mine"

    (tmp_path / "precious").write_text("precious")
    (tmp_path / "other.part").symlink_to("precious")
    assert run(*quick, option, tmp_path / "other").returncode == 0
    assert (tmp_path / "precious").read_text() == "precious" and (tmp_path / "other.part").is_symlink()

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([COMMAND, *map(str, quick), option, pipe], stdout=subprocess.PIPE) as process:
        assert b"stoker" in read_within(pipe, 60)
        process.communicate(timeout=60)
    assert process.returncode == 0 and pipe.is_fifo()

    left = {"far", "other", "other.part", "page", "page.part", "pipe", "precious"}
    assert set(os.listdir(tmp_path)) == left and os.listdir(tmp_path / "far") == ["page"]


@pytest.mark.parametrize("option", ["--prometheus", "--trace"])
def test_devices_are_written_to_and_stay(made, tmp_path, option):
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        os.close(os.open(full, os.O_WRONLY))
    except PermissionError:  # also where devices cannot be opened: a folder that is mounted nodev
        pytest.skip("may not make devices")
    line = failure(run("bench", made, *SMALL, option, full), 3)
    assert str(full) in line and "No space left" in line
    assert full.is_char_device() and os.listdir(tmp_path) == ["full"]
    done = run("bench", made, *SMALL, option, "/dev/stdout")
    assert done.returncode == 0 and b"throughput" in done.stdout
    assert (b"stoker_batches_total" if option == "--prometheus" else b"traceEvents") in done.stdout


def test_text_says_what_ran(made):
    done = run(
        "bench", made, *SMALL, "--transform", "eval", "--no-antialias", "--dtype", "f32", "--reader", "pread"
    )
    text = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    for word in ("60 samples", "eval", "plain bilinear", "float32", "pread: ", "samples/s", "1,000 samples",
                 "MB/s", "p50", "p99", "peak memory", "decode", "resize", "rest", "waited", "workers busy",
                 "depth "):  # fmt: skip
        assert word in text, word


def test_f32_and_normalize(made):
    plain = bench(made, *SMALL, "--digest", "--dtype", "f32")
    normalized = bench(made, *SMALL, "--digest", "--normalize")
    assert plain["options"]["dtype"] == normalized["options"]["dtype"] == "float32"
    assert plain["digest"] != normalized["digest"]
    assert plain["samples_digest"] == normalized["samples_digest"]


def test_every_type_and_layout(made):
    seen = set()
    for dtype, name in {"u8": "uint8", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}.items():
        for layout in ("nhwc", "nchw"):
            report = bench(made, *SMALL, "--digest", "--dtype", dtype, "--layout", layout)
            assert report["options"]["dtype"] == name and report["options"]["layout"] == layout.upper()
            seen.add(report["digest"])
            as_in_python = bench(made, *SMALL, "--digest", "--dtype", name, "--layout", layout.upper())
            assert as_in_python["digest"] == report["digest"]
    assert len(seen) == 8
    half = bench(made, *SMALL, "--digest", "--dtype", "f16", "--normalize")
    assert half["options"]["dtype"] == "float16" and half["digest"] not in seen


def test_dtype_and_layout_override_a_recipe(made, tmp_path):
    """As options of Loader do, with any transforms."""
    recipe = tmp_path / "recipe.json"
    crop = {"name": "RandomResizedCrop", "height": 64, "width": 64}
    recipe.write_text(json.dumps({"transforms": [crop], "dtype": "float16", "layout": "NCHW"}))
    asked = ("--dtype", "float32", "--layout", "NHWC")
    for options, dtype, layout in (((), "float16", "NCHW"), (asked, "float32", "NHWC")):
        report = bench(made, "--recipe", recipe, "--batch-size", 8, *options)
        assert (report["options"]["dtype"], report["options"]["layout"]) == (dtype, layout)
    done = run("explain", "--recipe", recipe, *asked)
    assert done.returncode == 0 and b"float32 64 \xc3\x97 64, NHWC" in done.stdout


def test_cold_delivers_the_same(made):
    arguments = (made, *SMALL, "--epochs", 3, "--digest")
    warm, cold = bench(*arguments), bench(*arguments, "--cold")
    assert cold["digest"] == warm["digest"]
    assert cold["images"] == warm["images"] and cold["epochs"] == 3
    assert cold["bytes_read"] == warm["bytes_read"]
    assert cold["options"]["cold"] is True


def test_batch_larger_than_the_dataset(made):
    report = bench(made, "--size", 32, "--batch-size", 500, "--epochs", 2)
    assert report["images"] == 120 and report["batches"] == 2
    line = failure(run("bench", made, "--size", 32, "--batch-size", 500, "--drop-remainder"), 2)
    assert "500" in line and "60" in line


def test_drop_remainder(made):
    report = bench(made, *SMALL, "--drop-remainder", "--epochs", 2)
    assert report["images"] == 2 * 56 and report["batches"] == 14


# --- one digest -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(made):
    return bench(made, *SMALL, "--epochs", 20, "--seed", 7, "--digest", "--threads", 1, "--reader", "pread")


@pytest.mark.parametrize(
    "how",
    [
        "--threads 1 --depth 1",
        "--threads 2 --depth 4",
        "--threads 8 --depth 16",
        "--threads 8 --depth 1",
        "--threads 2 --reader pread",
        "--threads 2 --reader uring",
        "--threads 8 --depth 16 --reader uring",
        "--threads 1 --executor threads",
        "--threads 2 --executor threads",
        "--threads 8 --depth 16 --executor threads",
        "--memory-budget 16MiB",
    ],
)
def test_the_digest_does_not_depend_on_how(made, reference, how):
    done = run("bench", made, *SMALL, "--epochs", 20, "--seed", 7, "--digest", "--json", *how.split())
    if done.returncode in (2, 3) and "uring" in how and b"uring" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["digest"] == reference["digest"]
    assert report["samples_digest"] == reference["samples_digest"]
    options = report["options"]
    if options["depth"] > 1:  # there was work for all
        assert report["threads_seen"] == options["threads"]


def test_the_digest_depends_on_what(made, reference):
    same = (made, *SMALL, "--epochs", 20, "--digest")
    others = [
        bench(*same, "--seed", 8),
        bench(*same, "--seed", 7, "--no-shuffle"),
        bench(*same, "--seed", 7, "--no-antialias"),
        bench(*same, "--seed", 7, "--transform", "eval", "--shuffle"),
        bench(*same, "--seed", 7, "--drop-remainder"),
    ]
    digests = {reference["digest"], *(report["digest"] for report in others)}
    assert len(digests) == 1 + len(others)
    assert bench(*same, "--seed", 7)["digest"] == reference["digest"]


@pytest.mark.parametrize("world", [3, 8])
def test_ranks_together_have_every_sample_once(made, reference, world):
    ranks = [
        bench(made, *SMALL, "--epochs", 20, "--seed", 7, "--digest", "--rank", r, "--world", world)
        for r in range(world)
    ]
    total = sum(int(report["samples_digest"], 16) for report in ranks) % 2**64
    assert f"{total:016x}" == reference["samples_digest"]
    assert sum(report["images"] for report in ranks) == reference["images"]
    assert len({report["digest"] for report in ranks}) == world


# --- bad options: exit code 2, and the option's name -------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--batch-size 0", "--batch-size"),
        ("--batch-size -4", "--batch-size"),
        ("--batch-size 1e3", "--batch-size"),
        ("--batch-size 99999999999999999999", "--batch-size"),
        ("--size 0", "--size"),
        ("--size -1", "--size"),
        ("--size 1000000000", "--size"),
        ("--epochs 0", "--epochs"),
        ("--threads 1000000000", "--threads"),
        ("--threads -1", "--threads"),
        ("--depth 100000", "--depth"),
        ("--depth two", "--depth"),
        ("--reader fast", "--reader"),
        ("--transform test", "--transform"),
        ("--dtype f64", "--dtype"),
        ("--dtype uint8 --normalize", "--normalize"),
        ("--dtype u8 --normalize", "--normalize"),
        ("--layout Nhwc", "--layout"),
        ("--executor fibers", "--executor"),
        ("--seed -1", "--seed"),
        ("--rank 2 --world 2", "--rank"),
        ("--rank -1", "--rank"),
        ("--world 0", "--world"),
        ("--memory-budget lots", "--memory-budget"),
        ("--memory-budget -5", "--memory-budget"),
        ("--memory-budget 99999999999EiB", "--memory-budget"),
        ("--frobnicate", "--frobnicate"),
        ("--device host --step-ms nan", "--step-ms"),
        ("--device host --step-ms inf", "--step-ms"),
        ("--device host --step-ms -inf", "--step-ms"),
        ("--device host --step-ms 1e999", "--step-ms"),
        ("--threads nan", "--threads"),
        ("--seed inf", "--seed"),
        ("--memory-budget nan", "--memory-budget"),
        ("--memory-budget inf", "--memory-budget"),
    ],
)
def test_absurd_options_are_named(made, arguments, name):
    done = run("bench", made, *arguments.split())
    assert name in failure(done, 2)
    assert done.stdout == b""


def test_usage():
    assert "DIR" in failure(run("bench"), 2)
    failure(run(), 2)
    failure(run("frobnicate"), 2)
    failure(run("synth", "x", "--count", "-1"), 2)
    failure(run("synth", "x", "--count", "many"), 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("bnech DIR", "no command `bnech`. Did you mean `bench`?"),
        ("Bench DIR", "no command `Bench`. Did you mean `bench`?"),
        ("insp DIR", "no command `insp`. Did you mean `inspect`?"),
        ("explode DIR --json", "no command `explode`. `stoker help` lists"),
        ("bench DIR --epoch 3", "`stoker bench` has no such arguments: --epoch 3. Did you mean --epochs?"),
        ("bench --epoch 3", "`stoker bench` has no such argument: --epoch. Did you mean --epochs?"),
        ("bench DIR --batch_size=3", "no such argument: --batch_size=3. Did you mean --batch-size?"),
        ("bench DIR -trhead 3", "no such arguments: -trhead 3. Did you mean --threads?"),
        ("bench DIR batch_size 64", "such arguments: batch_size 64. Did you mean --batch-size? `stoker"),
        ("bench DIR --bogus batch_size", "such arguments: --bogus batch_size. `stoker bench --help`"),
        ("bench DIR one --two three --json", "no such arguments: one --two three. `stoker bench --help`"),
        ("index --xyzzy", "`stoker index` has no such argument: --xyzzy. `stoker index --help`"),
        ("bench DIR --batch-size 0", "from 1 to 1048576. `stoker bench --help` lists the options"),
        ("--jsno bench DIR", "`stoker` has no such argument: --jsno."),
    ],
)
def test_usage_errors_suggest_what_was_meant(made, arguments, words):
    done = run(*arguments.replace("DIR", str(made)).split())
    assert words in failure(done, 2)


def test_archives_are_for_other_commands(tmp_path):
    for name in ("0.tar", "1.tar", "2.tar"):
        (tmp_path / name).write_bytes(bytes(1024))
    pattern = tmp_path / "*.tar"
    for arguments in (["inspect", pattern], ["index", pattern], ["pack", pattern, tmp_path / "out"]):
        line = failure(run(*arguments), 1)
        assert f"`stoker {arguments[0]}` takes a folder of images, and not tar archives" in line
    shards = sorted(tmp_path.glob("*.tar"))  # as a shell expands a pattern
    line = failure(run("bench", *shards), 2)
    assert f"`stoker bench` takes no further path: {shards[1]} {shards[2]}" in line and "into quotes" in line
    assert "into quotes" in failure(run("pack", *shards), 2)
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    line = failure(run("pack", *folders), 2)
    assert f"`stoker pack` takes no further path: {folders[2]}" in line and "into quotes" not in line


def test_a_budget_below_one_batch_names_the_minimum(made):
    line = failure(run("bench", made, "--memory-budget", "1MiB"), 3)
    assert "--memory-budget" in line
    minimum = int(line.split("--memory-budget to ")[1].split()[0])
    assert bench(made, "--memory-budget", minimum)["images"] == 60
    failure(run("bench", made, "--memory-budget", minimum - 1), 3)


# --- bad data: exit code 1, file and cause --------------------------------------------------------------


def test_empty_classes_are_read_with_a_warning(made, tmp_path):
    """As image_folder refuses them in a program, and a packed set cannot have them."""
    folder = tmp_path / "photos"
    shutil.copytree(made, folder, ignore=shutil.ignore_patterns(".stoker-index"))
    warned = f"{folder}: 2 classes have no image: 'zebra', 'zebu'. image_folder refuses"
    for name in ("zebra", "zebu"):
        (folder / name).mkdir()
    for command in ("verify", "inspect", "explain", "bench"):
        done = run(command, folder, *(SMALL if command == "bench" else ()))
        assert done.returncode == 0, done.stderr
        assert warned in done.stderr.decode()
    line = failure(run("pack", folder, tmp_path / "set"), 1)
    assert "A packed set has the classes of its photographs" in line and "class_names" not in line


def expect_bad(folder, path, *words):
    """bench names the file and the cause, on stderr and as JSON."""
    done = run("bench", folder, *SMALL, "--json")
    line = failure(done, 1)
    assert str(path) in line
    assert [word for word in words if word not in line] == []
    error = json.loads(done.stdout)["error"]
    assert error["file"] == str(path) and error["cause"] and error["exit_code"] == 1
    return error


def test_missing_folder(tmp_path):
    for command in ("bench", "inspect"):
        assert str(tmp_path / "none") in failure(run(command, tmp_path / "none"), 1)


@pytest.mark.parametrize("command", ["bench", "inspect", "explain"])
def test_parts_of_a_dataset_are_no_classes(made, tmp_path, command):
    for part in ("val", "train"):
        shutil.copytree(made, tmp_path / part)
    done = run(command, tmp_path, *(SMALL if command == "bench" else ()))
    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"stoker: warning: {tmp_path} holds train, val, which look like splits of a dataset, not classes. "
        f"To use one of them, pass {tmp_path}/train\n"
    )
    assert run(command, tmp_path / "train", *(SMALL if command == "bench" else ())).stderr == b""


def test_parts_of_a_packed_dataset_are_no_classes(made, tmp_path):
    photos, packed = tmp_path / "photos", tmp_path / "packed"
    for part in ("val", "train"):
        shutil.copytree(made, photos / part)
    done = run("pack", photos, packed)
    assert done.stderr.decode() == (
        f"stoker: warning: {photos} holds train, val, which look like splits of a dataset, not classes. "
        f"To use one of them, pass {photos}/train\n"
    )
    for command in (["bench", *SMALL], ["inspect"]):
        assert run(command[0], packed, *command[1:]).stderr.decode() == (
            f"stoker: warning: {packed} holds train, val, which look like splits of a dataset, not classes. "
            "To use one of them, pack its folder into a set of its own\n"
        )


def test_folder_without_images(tmp_path):
    for command in ("bench", "inspect"):
        assert str(tmp_path) in failure(run(command, tmp_path), 1)
    (tmp_path / "notes.txt").write_text("no image")
    for command in ("bench", "inspect"):
        assert str(tmp_path) in failure(run(command, tmp_path), 1)


def test_a_file_in_place_of_a_folder(dataset):
    folder, _ = dataset
    path = folder / "class" / "good.jpg"
    assert str(path) in failure(run("bench", path), 1)


def test_empty_file(dataset):
    folder, add = dataset
    expect_bad(folder, add("empty.jpg", b""))


def test_text_named_jpg(dataset):
    folder, add = dataset
    expect_bad(folder, add("notes.jpg", b"these are notes and no photograph\n" * 20))


def test_another_format_named_jpg(dataset):
    from hostile_jpegs import QOI

    folder, add = dataset
    expect_bad(folder, add("qoi.jpg", QOI), "QOI")


@pytest.mark.parametrize("part", range(20))
def test_truncated_at_20_places(dataset, photograph, part):
    folder, add = dataset
    expect_bad(folder, add("cut.jpg", photograph[: len(photograph) * part // 20 + 1]))


def test_huge_header_on_a_small_file(dataset):
    from hostile_jpegs import baseline

    folder, add = dataset
    expect_bad(folder, add("huge.jpg", baseline(65500, 65500, size=300)), "65500")


def test_a_thousand_scans(dataset):
    from hostile_jpegs import many_scans

    folder, add = dataset
    expect_bad(folder, add("scans.jpg", many_scans(1000)), "scans")


def test_zero_size(dataset):
    from hostile_jpegs import baseline

    folder, add = dataset
    bad = add("zero.jpg", baseline(0, 0))
    expect_bad(folder, bad)
    bad.write_bytes(baseline(8, 0))
    expect_bad(folder, bad)
    bad.write_bytes(baseline(8, 8))
    assert bench(folder, *SMALL)["images"] == 2


def test_a_name_that_is_no_text(dataset):
    folder, _ = dataset
    name = os.fsencode(folder / "class") + b"/bad\xff\n.jpg"
    with open(name, "wb") as file:
        file.write(b"bad")
    done = run("bench", folder, *SMALL, "--json")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1 and b"bad\xff\\x0a.jpg" in done.stderr
    assert json.loads(done.stdout)["error"]["file"].endswith("bad\ufffd\n.jpg")


def test_unreadable_file(dataset, photograph):
    folder, add = dataset
    path = add("secret.jpg", photograph)
    path.chmod(0)
    command = [*as_somebody(), COMMAND, "bench", folder, *map(str, SMALL)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    line = failure(done, 3)
    assert str(path) in line and "ermission denied" in line


def test_files_that_vanish_while_running(made, tmp_path):
    folder = tmp_path / "going"
    shutil.copytree(made, folder)
    with subprocess.Popen(
        [COMMAND, "bench", folder, *map(str, SMALL), "--epochs", "1000000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        for path in sorted(folder.rglob("*.jpg")):  # at least the later ones have been listed by then
            time.sleep(0.1)
            path.unlink()
            if process.poll() is not None:
                break
        _, stderr = process.communicate(timeout=60)
    done = subprocess.CompletedProcess([], process.returncode, b"", stderr)
    line = failure(done, 1)
    assert str(folder) in line and ".jpg" in line and "No such file" in line


# --- the system ------------------------------------------------------------------------------------


def test_disk_full_in_synth(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", disk]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk")
    try:
        line = failure(run("synth", disk / "photos", "--count", 50), 3)
        assert str(disk) in line and "No space left" in line
    finally:
        subprocess.run(["umount", disk], check=True)


def test_file_size_limit_in_synth(tmp_path):
    import resource

    done = run(
        "synth", tmp_path / "photos", "--count", 20,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    assert str(tmp_path) in failure(done, 3)


def test_synth_where_a_file_is(tmp_path):
    (tmp_path / "photos").write_text("not a folder")
    line = failure(run("synth", tmp_path / "photos", "--count", 2), 3)
    assert str(tmp_path / "photos") in line


def test_synth_goes_on_and_guards_what_is_not_its_own(tmp_path):
    folder = tmp_path / "photos"
    assert run("synth", folder, "--count", 4, "--classes", 2).returncode == 0
    done = run("synth", folder, "--count", 6, "--classes", 2, "--json")
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert (summary["written"], summary["kept"], summary["images"]) == (2, 4, 6)
    line = failure(run("synth", folder, "--count", 6, "--classes", 2, "--seed", 1), 2)
    assert "--overwrite" in line
    assert run("synth", folder, "--count", 6, "--seed", 1, "--overwrite").returncode == 0
    other = tmp_path / "mine"
    other.mkdir()
    (other / "novel.txt").write_text("mine")
    assert str(other) in failure(run("synth", other, "--count", 6), 2)
    assert os.listdir(other) == ["novel.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_report_that_cannot_be_written(made):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, "bench", made, *map(str, SMALL), "--json"],
            stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert "standard output" in failure(done, 3)


def test_a_closed_pipe_ends_the_command_silently(made):
    """As in `stoker bench … | head -c 0`: the signal that every tool dies of, and no message."""
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        process.stdout.close()
        stderr = process.stderr.read()
        assert process.wait(timeout=60) == -signal.SIGPIPE
    assert stderr == b""


def test_too_many_threads_for_the_system(made):
    done = run("bench", made, *SMALL, "--threads", 1024)
    assert done.returncode in (0, 3)
    if done.returncode == 3:
        failure(done, 3)


def written_to(terminal):
    """Returns what is written to a pseudo-terminal, piece by piece, until its last writer has gone."""
    while True:
        try:
            yield os.read(terminal, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return


def interrupted(*arguments, at):
    """Returns what a command writes to stdout and shows on a terminal, if it is interrupted once it shows
    `at`.
    """
    master, slave = open_pseudo_terminal()
    with subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        shown, sent = b"", False
        for piece in written_to(master):
            shown += piece
            if not sent and re.search(at, shown):
                process.send_signal(signal.SIGINT)
                sent = True
        os.close(master)
        stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 130, shown
    return stdout, shown


def test_interrupt_prints_what_was_measured(made):
    stdout, shown = interrupted(
        "bench", made, *map(str, SMALL), "--epochs", "1000000", "--json", at=rb", [1-9]\d* samples\b"
    )
    assert shown.endswith(b"\r\x1b[K")  # and no message
    report = json.loads(stdout)
    assert report["interrupted"] is True and report["images"] > 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_index_that_is_stopped_leaves_nothing(made, tmp_path, sent):
    folder = tmp_path / "many"
    (folder / "class").mkdir(parents=True)
    for i, photograph in enumerate(sorted(made.rglob("*.jpg")) * 50):
        os.link(photograph, folder / "class" / f"{i}.jpg")
    master, slave = open_pseudo_terminal()
    (folder / ".stoker-index").write_bytes(b"the old one")
    with subprocess.Popen(
        [COMMAND, "index", folder, "--threads", "1"], stdout=subprocess.PIPE, stderr=slave,
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),  # under nohup it is ignored
    ) as process:  # fmt: skip
        os.close(slave)
        shown, told = b"", False
        for piece in written_to(master):
            shown += piece
            if not told and b"of 3000 samples" in shown:
                process.send_signal(sent)
                told = True
        os.close(master)
        stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + sent and stdout == b""
    assert b"stopped before all samples were indexed" in shown
    assert sorted(os.listdir(folder)) == [".stoker-index", "class"]
    assert (folder / ".stoker-index").read_bytes() == b"the old one"


def test_a_signal_that_is_ignored_stays_so(made):
    """Ignores SIGHUP, as under nohup."""
    master, slave = open_pseudo_terminal()
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL), "--epochs", "1000000"],
        stdout=subprocess.PIPE, stderr=slave,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:  # fmt: skip
        os.close(slave)
        shown, sent = b"", []
        for piece in written_to(master):
            shown += piece
            if sent == [] and b" samples" in shown:
                sent.append(signal.SIGHUP)
                process.send_signal(sent[-1])
                shown = b""
            elif sent == [signal.SIGHUP] and shown.count(b" samples") >= 3:  # it goes on
                sent.append(signal.SIGINT)
                process.send_signal(sent[-1])
        os.close(master)
        process.communicate(timeout=60)
    assert sent == [signal.SIGHUP, signal.SIGINT]
    assert process.returncode == 130


def shown_by(*arguments, columns=80, until=None):
    """Returns what a command writes to stdout, and shows on a terminal. Interrupts it at `until`."""
    master, slave = open_pseudo_terminal()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        shown = b""
        for piece in written_to(master):
            shown += piece
            if until is not None and re.search(until, shown.decode(errors="ignore")):
                process.send_signal(signal.SIGINT)
                until = None
        os.close(master)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 130), shown
    return stdout.decode(), shown.decode()


@pytest.fixture(scope="module")
def many(made, tmp_path_factory):
    """A folder of 6,000 files, for commands that are to take seconds."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "class").mkdir()
    for i, photograph in enumerate(sorted(made.rglob("*.jpg")) * 100):
        os.link(photograph, folder / "class" / f"{i}.jpg")
    return folder


def on_screen(*arguments, columns):
    """Returns the lines that a command writes to a terminal of that width."""
    master, slave = open_pseudo_terminal()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdout=slave, stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1"},
    ) as process:  # fmt: skip
        os.close(slave)
        text = b"".join(written_to(master)).decode()
        os.close(master)
    assert process.returncode in (0, 1), text
    return text.replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [60, 80])
def test_help_fits_the_terminal(columns):
    commands = re.findall(r"^  ([a-z]+)   ", run("help").stdout.decode(), re.MULTILINE)
    assert {"bench", "doctor", "verify"} <= set(commands)
    for arguments in (["help"], *(["help", command] for command in commands)):
        lines = on_screen(*arguments, columns=columns)
        # Tables after the options stay lines, too.
        options = [line for line in lines if re.match(r"  -| {12}\S|\S", line)]
        assert [line for line in options if len(line) > columns] == []
        examples = [
            line for line in run(*arguments).stdout.decode().split("\n") if line.startswith("  stoker ")
        ]
        assert set(examples) <= set(lines)  # to be copied
        assert " ".join(lines).split() == run(*arguments).stdout.decode().split()


def test_reports_fit_the_terminal(made, dataset, tmp_path):
    """A word that is longer than a line, such as a path, stays whole; a pipe gets whole rows."""
    folder, add = dataset
    add("bad.jpg", b"text")
    packed = tmp_path / "packed"
    reports = [
        ["bench", made, *SMALL], ["bench", made, *SMALL, "--device", "host", "--step-ms", 1],
        ["bench", made, *SMALL, "--read-only"], ["bench", made, *SMALL, "--explain"],
        ["explain", made, *SMALL[:2], "--normalize"], ["inspect", folder], ["verify", folder],
        ["index", folder, "--out", tmp_path / "index"], ["pack", made, packed], ["pack", "--verify", packed],
        ["unpack", packed, tmp_path / "unpacked"], ["doctor"], ["synth", tmp_path / "new", "--count", 3],
        ["show", made, "--out", tmp_path / "sheet.png", "--columns", 16],
    ]  # fmt: skip
    for arguments in reports:
        wide = [line for line in on_screen(*arguments, columns=80) if len(line) > 80]
        assert [
            line for line in wide if not any("/" in word[1:] and len(word) > 40 for word in line.split())
        ] == []
    text = run("bench", made, *SMALL).stdout.decode()
    assert "how long Next() takes; small: batches are ready when asked for\n" in text


@pytest.mark.parametrize(
    "command", ["verify", "inspect", "index", "pack", "synth", "explain", "bench --read-only"]
)
def test_progress_has_rate_and_time_left(made, many, tmp_path, command):
    """Of each command: one line, with one word for what is counted."""
    out = {
        "index": ["--out", tmp_path / "index", "--threads", 1],
        "pack": [tmp_path / "packed", "--threads", 1],
        "synth": ["--count", 100_000, "--threads", 1],
        "explain": ["--images", 6000],
        "bench --read-only": ["--epochs", 100_000],
        "verify": ["--threads", 1],
    }
    folder = tmp_path / "new" if command == "synth" else many
    told = r"\d+% [━─]+  \d+ of \d+ samples, \d[\d.]* samples/s, [^\r]* left"
    _, shown = shown_by(*command.split(), folder, *out.get(command, []), columns=100, until=told)
    if command != "inspect":  # which may end within its first second
        assert re.search(told, shown), shown
    assert not re.search(r"photographs|images|files", shown), shown


def test_progress_fits_a_narrow_terminal(many, tmp_path):
    options = ("--out", tmp_path / "index", "--threads", 1)
    _, shown = shown_by("index", many, *options, columns=30, until="%")
    lines = re.split(r"\r\x1b\[K", shown.split("stoker: error")[0])
    assert any("%" in line for line in lines) and max(len(line) for line in lines) == 29


def test_progress_tells_the_epoch(made):
    options = (*SMALL, "--epochs", 1000)
    for live in ([], ["--live"]):
        _, shown = shown_by(
            "bench", made, *options, *live, columns=100, until=r"epoch [2-9]\d* of 1000.* left"
        )
        epochs = [int(one) for one in re.findall(r"%.*?epoch (\d+) of 1000, \d+ samples", shown)]
        assert epochs == sorted(epochs) and epochs[0] >= 1 and epochs[-1] > 1, shown


def test_progress_only_on_a_terminal(made):
    master, slave = open_pseudo_terminal()
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL), "--epochs", "20"],
        stdout=subprocess.PIPE, stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        shown = b"".join(written_to(master)).decode()
        os.close(master)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "%" in shown and " samples" in shown
    assert shown.endswith("\r\x1b[K")  # nothing of it stays
    assert b"\r" not in stdout


def trace_of(path):
    with open(path) as file:
        return json.load(file)["traceEvents"]


def test_trace(made, tmp_path):
    path = tmp_path / "trace.json"
    report = bench(made, *SMALL, "--epochs", 2, "--trace", path)
    events = trace_of(path)
    assert report["trace"] == {
        "file": str(path), "bytes": path.stat().st_size,
        "events": int(json.loads(path.read_text())["otherData"]["events"]), "dropped_events": 0,
    }  # fmt: skip
    batches = [event for event in events if event["name"].startswith("batch ")]
    assert [event["name"] for event in batches[:2]] == ["batch 0:0", "batch 0:1"]
    assert len(batches) == report["batches"]
    assert batches[0]["args"]["rows"] == 8
    assert batches[0]["args"]["last_file"].startswith(str(made))
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert {"depth", "workers", "reads"} <= counters
    waits = [event for event in events if event["name"] == "stoker.wait"]
    assert [(w["args"]["epoch"], w["args"]["batch"]) for w in waits[:2]] == [(0, 0), (0, 1)]

    done = run("bench", made, *SMALL, "--trace", path)
    assert done.returncode == 0
    assert f"trace          {path}: " in done.stdout.decode()
    assert bench(made, *SMALL)["trace"] is None


def test_live_on_a_terminal(made):
    master, slave = open_pseudo_terminal()
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL), "--epochs", "1000000", "--threads", "1", "--live"],
        stdout=subprocess.PIPE, stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        shown, sent = b"", False
        for piece in written_to(master):
            shown += piece
            if not sent and shown.count(b"samples/s") >= 3:
                process.send_signal(signal.SIGINT)
                sent = True
        os.close(master)
        stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    text = shown.decode()
    assert re.search(r"%.* epoch \d+ of 1000000, \d+ samples", text)  # how far it is
    for word in ("waited ", "depth ", "workers ", "reads ", "memory ", "busy "):
        assert word in text
    screen = Screen(height=24)
    screen.write(text)
    assert screen.shown() == []  # nothing of it remains
    assert "throughput" in stdout.decode()


def live(made, rows, columns, term):
    """Returns what --live sends to a terminal of that size and kind, until it has shown something three
    times.
    """
    master, slave = open_pseudo_terminal()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL), "--epochs", "1000000", "--threads", "1", "--live"],
        stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": term},
    ) as process:  # fmt: skip
        os.close(slave)
        shown, sent = b"", False
        for piece in written_to(master):
            shown += piece
            if not sent and (shown.count(b"%") >= 3 or b"samples/s" in shown):
                process.send_signal(signal.SIGINT)
                sent = True
        os.close(master)
        process.communicate(timeout=30)
    assert process.returncode == 130
    return shown.decode()


@pytest.mark.parametrize("rows", [2, 4])
def test_live_fits_a_small_terminal(made, rows):
    screen = Screen(height=rows)
    for piece in re.split(r"(?<=\x1b\[J)", live(made, rows, 40, "xterm")):
        screen.write(piece)
        assert screen.scrolled == [] and len(screen.shown()) < rows
    assert screen.shown() == []


def test_a_dumb_terminal_is_a_log(made):
    text = live(made, 24, 80, "dumb")
    assert "\x1b" not in text and "stoker: " in text
    master, slave = open_pseudo_terminal()
    done = subprocess.run(
        [COMMAND, "bench", made, *map(str, SMALL)],
        stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "dumb"}, timeout=60, check=False,
    )  # fmt: skip
    os.close(slave)
    assert done.returncode == 0 and b"".join(written_to(master)) == b""
    os.close(master)


def test_live_in_a_log(made):
    with subprocess.Popen(
        [COMMAND, "bench", made, *map(str, SMALL), "--epochs", "1000000", "--threads", "1", "--live"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        line = process.stderr.readline().decode()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.fullmatch(
        r"stoker: .* epoch \d+ of 1000000, \d+ samples.*: \d+ samples/s, waited .*, depth \d+, .*\n", line
    )
    assert "\x1b" not in line and "\r" not in line


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
