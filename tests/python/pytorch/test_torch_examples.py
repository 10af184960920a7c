"""The programs of examples/torch run, each in a process of its own, and learn."""

import importlib
import os
import re
import subprocess
import sys

import pytest
from repository import ROOT

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("PIL")
stoker_torch = pytest.importorskip("stoker.torch")

EXAMPLES = ROOT / "examples" / "torch"


@pytest.fixture
def example(monkeypatch):
    """Returns a function that imports a program by its name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def run(program, *arguments):
    """Returns what the program prints."""
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # so small a model's threads would wait for each other
    command = [sys.executable, EXAMPLES / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=alone)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def losses(out):
    """Returns the mean loss of each epoch."""
    found = re.findall(r"^epoch (\d+): .*mean loss ([0-9.]+)", out, re.M)
    assert [int(epoch) for epoch, _ in found] == list(range(len(found))), out
    return [float(loss) for _, loss in found]


@pytest.mark.long
def test_detection():
    first, *_, last = losses(run("detection.py"))
    assert 0 < last < 0.8 * first


def test_detection_with_each_preset(example, tmp_path):
    detection, shapes = example("detection"), example("shapes")
    shapes.make(tmp_path, count=8)
    for preset in detection.PRESETS:
        for batch in detection.make_loader(tmp_path, preset):
            images, targets = stoker_torch.images_and_targets(batch)
            for image, target in zip(images, targets):
                boxes = target["boxes"]
                assert (boxes[:, :2] >= 0).all() and (boxes[:, 2:] <= torch.tensor(image.shape[:0:-1])).all()
                if preset in ("hflip", "multiscale"):  # of one colour where the diagonals meet
                    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2).long().T
                    # later objects cover earlier ones
                    assert image[:, y[-1], x[-1]].argmax() == target["labels"][-1] - 1


@pytest.mark.long
def test_segmentation():
    out = run("segmentation.py")
    first, *_, last = losses(out)
    assert 0 < last < 0.6 * first
    right = [float(share) for share in re.findall(r"([0-9.]+)% of the pixels are right$", out, re.M)]
    assert right[-1] > 85
