"""`stoker bench --processor FILE --batch-tokens N`."""

import json
import subprocess

import processor_golden
import pytest
import stoker
from processor_rows import COUNT, make_folders


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_folders(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("config") / "preprocessor_config.json"
    file.write_text(json.dumps(processor_golden.CONFIGS["qwen2-vl"]))
    return file


def bench(command, *options, code=0):
    done = subprocess.run([command, "bench", *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def patches(folder):
    source, processor = stoker.image_folder(folder), stoker.processor(processor_golden.CONFIGS["qwen2-vl"])
    return [processor(source.path(i))["image_grid_thw"].prod() for i in range(COUNT)]


@pytest.mark.parametrize("options", [(), ("--padding", "longest")])
def test_patches_and_fill(command, folders, config, options):
    counts = patches(folders["indexed"])
    given = (folders["indexed"], "--processor", config.parent, "--batch-tokens", "5000", *options)
    report = json.loads(bench(command, *given, "--epochs", "2", "--json", "--dtype", "bf16"))
    assert report["images"] == 2 * COUNT and report["patches"] == 2 * sum(counts)
    assert report["patches_per_second"] == pytest.approx(report["patches"] / report["seconds"])
    fill = sum(counts) / (report["batches"] / 2) / 5000
    assert report["batch_fill"] == pytest.approx(fill)
    assert report["options"]["batch_tokens"] == 5000 and report["options"]["batch_size"] == 0
    assert report["options"]["padding"] == (options[1] if options else "none")
    assert report["options"]["dtype"] == "bfloat16"
    text = bench(command, *given)
    for words in ("patches/s", f"{sum(counts):,} patches", f"{100 * fill:.1f} %", "of at most 5,000 patches",
                  "processor", "float32"):  # fmt: skip
        assert words in text
    assert ("padded to the longest" in text) == bool(options) and "in buckets" not in text
    assert report["options"]["buckets"] == ""


def test_the_digest_is_the_same_for_any_threads(command, folders, config):
    given = (folders["indexed"], "--processor", config, "--batch-tokens", "5000", "--digest", "--json")
    digests = {json.loads(bench(command, *given, "--threads", n))["digest"] for n in ("1", "3")}
    assert len(digests) == 1


def test_batches_of_rows(command, folders, config):
    report = json.loads(bench(command, folders["plain"], "--processor", config, "--batch-size", "2",
                              "--max-pixels", "1000000", "--json"))  # fmt: skip
    assert report["patches"] == sum(patches(folders["plain"])) and report["batch_fill"] == 0
    assert report["options"]["batch_size"] == 2


def test_images_of_one_size_are_no_patches(command, folders, tmp_path):
    config = tmp_path / "preprocessor_config.json"
    config.write_text(json.dumps(processor_golden.CONFIGS["clip"]))
    report = json.loads(bench(command, folders["plain"], "--processor", config, "--json"))
    assert report["patches"] == 0 and report["images"] == COUNT


def test_the_order_of_padded_batches(command, folders, config):
    given = (folders["indexed"], "--processor", config, "--batch-tokens", "5000", "--padding", "longest")
    assert "from the largest to the smallest" in bench(command, *given, "--no-shuffle")


def test_buckets(command, folders, tmp_path):
    config = tmp_path / "preprocessor_config.json"
    config.write_text(json.dumps(processor_golden.CONFIGS["siglip2"]))
    given = (folders["plain"], "--processor", config, "--batch-tokens", "600", "--buckets", "16,64:2%2")
    report = json.loads(bench(command, *given, "--json"))
    assert report["images"] == COUNT and 0 < report["batch_fill"] <= 1
    assert report["options"]["buckets"] == "16,64:2%2" and report["options"]["padding"] == "none"
    assert "of at most 600 patches, in buckets" in bench(command, *given)


def test_tokens_of_a_column(command, folders):
    report = json.loads(
        bench(command, folders["plain"], "--batch-tokens", "4", "--batch-size", "3", "--tokens", "label",
              "--size", "32", "--json")
    )  # fmt: skip
    assert report["patches"] == 0 and report["options"]["tokens"] == "label"
    assert report["batches"] == COUNT // 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--batch-tokens", "100"), "no column has the tokens"),
        (("--processor", "CONFIG", "--batch-tokens", "100"), "patches, and batch_tokens is 100"),
        (("--processor", "CONFIG", "--size", "64"), "--size excludes --processor"),
        (("--processor", "CONFIG", "--batch-tokens", "100", "--read-only"), "--read-only makes no batches"),
        (("--processor", "CONFIG", "--padding", "widest"), "widest is not one of none, longest"),
        (("--padding", "longest"), "there is no processor"),
        (("--processor", "CONFIG", "--batch-tokens", "5000", "--buckets", "16;64"), 'buckets is "16;64"'),
        (("--processor", "CONFIG", "--batch-tokens", "5000", "--buckets", "16"), "there are buckets, and"),
        (("--processor", "missing.json"), "missing.json"),
        (("--processor", "WRONG"), "wrong.json: image_processor_type"),
        (("--processor", ""), "FILE is empty"),
        (("--processor", "a" * 300), "File name too long"),
    ],
)
def test_errors(command, folders, config, tmp_path, options, words):
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"image_processor_type": "Unknown"}')
    names = {"CONFIG": config, "WRONG": wrong}
    done = subprocess.run(
        [command, "bench", folders["indexed"], *(names.get(one, one) for one in options)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0 and words in " ".join(done.stderr.split())
