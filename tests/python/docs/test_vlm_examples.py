"""The programs of examples/vlm run, each in a process of its own."""

import argparse
import re
import runpy
import tarfile

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


def needs(loader):
    for module in ("torch", "PIL", *(("webdataset", "torchvision") if loader == "webdataset" else ())):
        pytest.importorskip(module)


@pytest.mark.parametrize("loader", ["stoker", "webdataset"])
def test_clip(made, loader):
    needs(loader)
    words = ("--photos", made, "--loader", loader, "--epochs", 8, "--batch-size", 12, "--size", 96)
    done = forks.run(EXAMPLES / "clip.py", *words, "--cores", 1, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    epochs = re.findall(
        rf"^{loader}, epoch \d: 60 of 60 images, [0-9.]+ images/s, loss ([0-9.]+)$", done.stdout, re.M
    )
    assert len(epochs) == 8, done.stdout
    assert float(epochs[-1]) < float(epochs[0]) * 0.7, done.stdout


def test_clip_reads_each_shard_in_one_worker(made, tmp_path):
    needs("webdataset")
    clip = runpy.run_path(str(EXAMPLES / "clip.py"))
    shards = clip["write_shards"](sorted(made.rglob("*.jpg")), tmp_path, 4)
    captions = []
    for shard in shards:
        with tarfile.open(shard) as archive:
            captions += [
                archive.extractfile(name).read() for name in archive.getnames() if name.endswith("txt")
            ]
    expected = sorted(clip["tokens_of"](caption.decode()).tolist() for caption in captions)
    for batch_size, count in ((1, 60), (12, 48)):  # each worker has 30 images
        args = argparse.Namespace(size=8, batch_size=batch_size, cores=2)
        loader = clip["of_webdataset"](shards, args)
        for _ in range(3):
            epoch = [row.tolist() for _, tokens in loader for row in tokens]
            assert len(epoch) == count
            assert count != 60 or sorted(epoch) == expected


def test_train():
    pytest.importorskip("torch")
    done = forks.run(EXAMPLES / "train.py", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)$", done.stdout, re.M)]
    assert losses[-1] < losses[0] / 2, done.stdout
    assert re.search(r"^batches were 9[0-9]\.[0-9]% full$", done.stdout, re.M), done.stdout
