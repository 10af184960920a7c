"""torchvision's own tests of boxes and masks, test_transforms_v2.py, with the import swapped for stoker.

They run if STOKER_TORCHVISION_TESTS is the folder `test` of torchvision's sources; it was tried with 0.21's.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torchvision")
THEIRS = pathlib.Path(os.environ.get("STOKER_TORCHVISION_TESTS", ""))
SWAPS = {
    "import torchvision.transforms.v2 as": "import torchvision_suite as",
    "from torchvision.transforms.v2 import functional as": "from torchvision_suite import functional as",
}


def is_documented(test):
    """A crop of (19, 14) of an image of (17, 11): docs/transforms.md."""
    return test.startswith("TestCenterCrop::") and "output_size5" in test


@pytest.mark.skipif("STOKER_TORCHVISION_TESTS" not in os.environ, reason="torchvision's tests are not here")
def test_boxes_and_masks(tmp_path):
    for name in ("common_utils.py", "conftest.py"):
        shutil.copy(THEIRS / name, tmp_path)
    (tmp_path / "assets").mkdir()
    shutil.copy(THEIRS / "assets/gaussian_blur_opencv_results.pt", tmp_path / "assets")
    text = (THEIRS / "test_transforms_v2.py").read_text()
    for before, after in SWAPS.items():
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "test_transforms_v2.py").write_text(text)
    support = pathlib.Path(__file__).parents[1] / "support"
    report = tmp_path / "report.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(support), *sys.path]),
        "STOKER_SUITE_REPORT": str(report),
    }
    words = ["-m", "pytest", "-p", "torchvision_suite", "-q", "--tb=short", "test_transforms_v2.py"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert report.exists(), done.stdout + done.stderr
    found = json.loads(report.read_text())
    for group, counts in found["outcomes"].items():
        print(f"{group:30} {counts}")
    assert [test for test in found["failed"] if not is_documented(test)] == [], done.stdout[-20000:]
    assert sum(counts.get("passed", 0) for counts in found["outcomes"].values()) > 1000
