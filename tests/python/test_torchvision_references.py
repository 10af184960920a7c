"""torchvision's own training script with stoker's loaders (torchvision_references.py).

The script is in torchvision's repository and not in its package: TORCHVISION_REFERENCES names the folder
`references` of a checkout.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torchvision")
SHIM = pathlib.Path(__file__).with_name("torchvision_references.py")


@pytest.mark.skipif("TORCHVISION_REFERENCES" not in os.environ, reason="TORCHVISION_REFERENCES is not set")
@pytest.mark.parametrize("options", [(), ("--auto-augment", "ra", "--random-erase", "0.2")])
def test_train_and_evaluate(tmp_path, options):
    synth = [sys.executable, "-m", "stoker", "synth", tmp_path / "train", "--count", "60", "--classes", "6"]
    subprocess.run(synth, check=True, capture_output=True)  # more than the five best classes
    (tmp_path / "val").symlink_to(tmp_path / "train")
    folder = pathlib.Path(os.environ["TORCHVISION_REFERENCES"]) / "classification"
    small = ["--model", "shufflenet_v2_x0_5", "--device", "cpu", "--batch-size", "8", "--epochs", "2"]
    small += ["--output-dir", tmp_path / "out"]
    sizes = ["--train-crop-size", "64", "--val-crop-size", "64", "--val-resize-size", "72"]
    command = [sys.executable, SHIM, folder, "--data-path", tmp_path, *small, *sizes, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("stoker loads 60 images") == 2
    assert len(re.findall(r"Test:  Acc@1 \d+", done.stdout)) == 2
