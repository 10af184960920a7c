"""The programs of examples/vlm run, each in a process of its own."""

import re

import forks
import pytest
from repository import ROOT

pytest.importorskip("stoker")
EXAMPLES = ROOT / "examples" / "vlm"


def test_server():
    done = forks.run(EXAMPLES / "server.py", "--quick", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for threads in (1, 4):
        rates = re.findall(rf"^stoker, {threads} threads: ([0-9.]+) requests/s", done.stdout, re.M)
        assert len(rates) == 1, done.stdout
        assert float(rates[0]) > 0


def test_train():
    pytest.importorskip("torch")
    done = forks.run(EXAMPLES / "train.py", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)$", done.stdout, re.M)]
    assert losses[-1] < losses[0] / 2, done.stdout
    assert re.search(r"^batches were 9[0-9]\.[0-9]% full$", done.stdout, re.M), done.stdout
