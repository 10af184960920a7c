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


@pytest.mark.long
def test_rf_detr():
    pytest.importorskip("rfdetr")
    pytest.importorskip("pytorch_lightning")
    first, *_, last = losses(run("rf_detr.py"))
    assert 0 < last < first


def test_rf_detr_gets_the_targets_of_its_own_dataset_class(example, tmp_path):
    coco = pytest.importorskip("rfdetr.datasets.coco")
    pytest.importorskip("pytorch_lightning")
    rf_detr, shapes = example("rf_detr"), example("shapes")
    shapes.make(tmp_path, count=12)
    model = rf_detr.RFDETRNanoConfig(pretrain_weights=None, resolution=rf_detr.SIZE)
    data = rf_detr.Data(model, rf_detr.TrainConfig(dataset_dir=str(tmp_path), output_dir=str(tmp_path)))
    data.setup("fit")
    resize = coco.make_coco_transforms_square_div_64("val", rf_detr.SIZE)
    own = coco.CocoDetection(tmp_path / "images", tmp_path / "boxes.json", resize, remap_category_ids=True)
    seen = 0
    for images, targets in data.train_dataloader():
        for image, target in zip(images.tensors, targets):
            expected, of_image = own[int(target["image_id"])]
            assert torch.equal(target["labels"], of_image["labels"])
            boxes = of_image["boxes"].clone()
            if (image - expected).abs().mean() > (image - expected.flip(-1)).abs().mean():
                expected = expected.flip(-1)
                boxes[:, 0] = 1 - boxes[:, 0]
            assert (image - expected).abs().mean() < 0.05
            torch.testing.assert_close(target["boxes"], boxes, atol=1e-5, rtol=0)
            seen += 1
    assert seen == 12


@pytest.mark.long
def test_yolo():
    pytest.importorskip("ultralytics")
    first, *_, last = losses(run("yolo.py"))
    assert 0 < last < first


def test_yolo_gets_boxes_of_objects(example, tmp_path):
    pytest.importorskip("ultralytics")
    yolo, shapes = example("yolo"), example("shapes")
    shapes.make(tmp_path)
    right = []
    for batch in yolo.Batches(str(tmp_path / "data.yaml"), 8):
        assert batch["img"].shape == (8, 3, yolo.SIZE, yolo.SIZE) and batch["img"].dtype == torch.uint8
        x, y = (batch["bboxes"][:, :2] * yolo.SIZE).long().T
        centres = batch["img"][batch["batch_idx"].long(), :, y, x]
        right += (centres.argmax(1) == batch["cls"][:, 0]).tolist()
    # The other centres are covered, or their boxes are cut.
    assert len(right) > 100 and sum(right) > 0.8 * len(right)


@pytest.mark.long
def test_policy():
    pytest.importorskip("lerobot")
    first, *_, last = losses(run("policy.py"))
    assert 0 < last < 0.8 * first


def test_policy_gets_the_actions_that_follow(example, tmp_path):
    pytest.importorskip("lerobot")
    policy = example("policy")
    seen = 0
    for made in policy.make_loader(tmp_path):
        batch = policy.as_lerobot(made)
        assert batch["observation.images.wrist"].shape[:3] == (policy.BATCH, 2, 3)
        states, actions, pads = batch["observation.state"], batch["action"], batch["action_is_pad"]
        assert actions.shape == (policy.BATCH, policy.HORIZON, 2) and not pads[:, 0].any()
        torch.testing.assert_close(states[:, 0] + actions[:, 0], states[:, 1])
        torch.testing.assert_close(states[:, 1] * -0.2, actions[:, 1])
        repeated = pads[:, 1:, None].expand(-1, -1, 2)
        assert torch.equal(actions[:, 1:][repeated], actions[:, :-1][repeated])
        seen += int(pads.any(1).sum())
    assert seen > 0  # clips that begin near the end of their episode
