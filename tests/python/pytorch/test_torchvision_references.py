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

torchvision = pytest.importorskip("torchvision")
torch = pytest.importorskip("torch")
pytest.importorskip("stoker.torch")
import torchvision_references as shim  # noqa: E402

needs_references = pytest.mark.skipif(
    "TORCHVISION_REFERENCES" not in os.environ, reason="TORCHVISION_REFERENCES is not set"
)
LEVEL = 1 / 255 / 0.224  # of eight bits, after Normalize


def references():
    return pathlib.Path(os.environ["TORCHVISION_REFERENCES"]) / "classification"


@needs_references
@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--auto-augment", "ra", "--random-erase", "0.2")])
def test_train_and_evaluate(tmp_path, options):
    synth = [sys.executable, "-m", "stoker", "synth", tmp_path / "train", "--count", "60", "--classes", "6"]
    subprocess.run(synth, check=True, capture_output=True)  # more than the five best classes
    (tmp_path / "val").symlink_to(tmp_path / "train")
    small = ["--model", "shufflenet_v2_x0_5", "--device", "cpu", "--batch-size", "8", "--epochs", "2"]
    small += ["--output-dir", tmp_path / "out"]
    sizes = ["--train-crop-size", "64", "--val-crop-size", "64", "--val-resize-size", "72"]
    command = [sys.executable, shim.__file__, references(), "--data-path", tmp_path, *small, *sizes, *options]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # so small a model's threads would wait for each other
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=alone)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("stoker loads 60 images") == 2
    assert len(re.findall(r"Test:  Acc@1 \d+", done.stdout)) == 2


@needs_references
def test_evaluation_batches_are_torchvisions(made, monkeypatch):
    monkeypatch.syspath_prepend(references())
    import presets

    preset = presets.ClassificationPresetEval(crop_size=64, resize_size=72)
    dataset = torchvision.datasets.ImageFolder(made, preset)
    sampler = torch.utils.data.SequentialSampler(dataset)
    options = {"batch_size": 8, "sampler": sampler, "num_workers": 0, "pin_memory": False}
    wanted, classes = next(iter(torch.utils.data.DataLoader(dataset, **options)))
    images, labels = next(iter(shim.data_loader(dataset, **options)))
    assert images.dtype == wanted.dtype and images.shape == wanted.shape and torch.equal(labels, classes)
    differences = (images - wanted).abs()
    assert differences.max() < 1.01 * LEVEL and differences.mean() < 0.25 * LEVEL


def test_what_would_differ_is_refused(made):
    transforms = torchvision.transforms
    with pytest.raises(NotImplementedError, match="AutoAugment"):
        shim.translated(transforms.AutoAugment())
    with pytest.raises(NotImplementedError, match="max_size"):
        shim.translated(transforms.Resize(8, max_size=9))
    dataset = torchvision.datasets.ImageFolder(made)
    data = torch.utils.data
    for sampler in (
        data.RandomSampler(dataset, replacement=True),
        data.RandomSampler(dataset, num_samples=5),
        data.SubsetRandomSampler(range(len(dataset))),
    ):
        with pytest.raises(NotImplementedError, match=type(sampler).__name__):
            shim.shuffles(sampler, dataset)
    assert shim.shuffles(data.RandomSampler(dataset), dataset)
    assert not shim.shuffles(data.SequentialSampler(dataset), dataset)
