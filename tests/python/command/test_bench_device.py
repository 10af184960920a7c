"""`stoker bench --device`: the same batches by way of a device, and the report about it."""

import json
import subprocess

import pytest

RECIPE = {
    "transforms": [
        {"name": "RandomResizedCrop", "height": 64, "width": 64},
        {"name": "RandomHorizontalFlip"},
        {"name": "Normalize", "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]},
        {"name": "RandomErasing", "noise": True},
    ],
    "dtype": "float16",
    "layout": "NCHW",
    "mix": {"choices": [{"name": "CutMix", "alpha": 1}, {"name": "MixUp", "alpha": 0.4}]},
}


def bench(command, photos, *options, code=0):
    done = subprocess.run(
        [command, "bench", photos, "--json", *options], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(RECIPE))
    return path


@pytest.mark.parametrize("options", [(), ("--buffers", "2"), ("--step-ms", "1"), ("--threads", "1")])
def test_the_batches_are_those_of_the_cpu(command, photos, recipe, options):
    common = ("--recipe", recipe, "--shuffle", "--batch-size", "24", "--epochs", "2", "--digest")
    on_cpu = bench(command, photos, *common)
    on_device = bench(command, photos, *common, "--device", "host", *options)
    assert on_cpu["device"] is None
    assert on_device["digest"] == on_cpu["digest"]
    assert on_device["samples_digest"] == on_cpu["samples_digest"]


def test_the_report_has_the_device_figures(command, photos):
    report = bench(
        command, photos, "--device", "host", "--step-ms", "2", "--buffers", "3", "--batch-size", "32"
    )
    device = report["device"]
    assert device["device"] == "host"
    assert device["buffers"] == 3
    assert device["copied_bytes"] >= report["images"] * 224 * 224 * 3
    assert device["measured_step_s"] >= device["step_s"] == 0.002
    assert 0 <= device["idle_for_input"] <= 1
    assert 0 <= device["copies_hidden_at_least"] <= 1
    assert device["copy_bytes_per_second"] > 0
    assert device["bare_copy_bytes_per_second"] > 0
    assert device["pinned_bytes"] % device["copy_bytes"] == 0
    assert device["device_bytes"] >= 3 * 32 * 224 * 224 * 3


def test_the_device_decodes(command, photos, tmp_path):
    packed = tmp_path / "packed"
    subprocess.run([command, "pack", photos, packed], check=True, capture_output=True, timeout=300)
    common = ("--size", "64", "--batch-size", "24", "--digest")
    workers = bench(command, packed, *common)
    device = bench(command, packed, *common, "--device", "host", "--decode-on-device")
    assert device["digest"] == workers["digest"]
    assert workers["decoded"]["on_device"] == 0
    assert device["decoded"]["on_device"] == device["images"] - device["decoded"]["ours"]
    little = bench(command, packed, *common, "--device", "host", "--decode-on-device", "--crop-bytes", "1000")
    assert little["digest"] == workers["digest"]
    assert little["decoded"]["left_to_workers"]["no_room"] > 0


def test_text(command, photos):
    done = subprocess.run(
        [command, "bench", photos, "--device", "host", "--step-ms", "1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for words in ("to the device", "of a bare copy's", "idle for input", "step", "stager waited", "pinned"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--device", "tpu"), "tpu"),
        (("--device", "cuda:x"), "cuda:x"),
        (("--step-ms", "5"), "--step-ms needs --device"),
        (("--decode-on-device",), "--decode-on-device needs --device"),
        (("--device", "host", "--decode-on-device", "--crop-bytes", "0"), "--crop-bytes"),
        (("--device", "host", "--crop-bytes", "1000"), "--crop-bytes requires --decode-on-device"),
        (("--device", "host", "--buffers", "1"), "--buffers"),
        (("--device", "host", "--step-ms", "-1"), "--step-ms"),
    ],
)
def test_bad_options_are_told(command, photos, options, said):
    error = bench(command, photos, *options, code=2)["error"]
    assert said in json.dumps(error)


def test_a_gpu_that_is_not_there_is_told_with_what_to_do(command, photos):
    error = bench(command, photos, "--device", "cuda:7", code=3)["error"]
    assert "cuda:7" in json.dumps(error)
    assert error["advice"]
