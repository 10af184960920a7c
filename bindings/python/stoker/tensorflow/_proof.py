"""Tests a plugin that was just built, in a separate process: `python -m stoker.tensorflow._proof FILE`."""

from __future__ import annotations

import base64
import os
import pathlib
import sys
import tempfile

import numpy as np
import tensorflow as tf

import stoker
from stoker.tensorflow import _dataset, _ops

_JPEG = base64.b64decode(  # 16 × 16 pixels
    "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdB"
    "RkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P"
    "T09PT09PT09PT09PT09PT0//wAARCAAQABADASIAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAMFBv/EABQQAQAAAAAA"
    "AAAAAAAAAAAAAAD/xAAVAQEBAAAAAAAAAAAAAAAAAAABBf/EACERAAEDAQkAAAAAAAAAAAAAAAEABRICBhQiMUFDYaHh/9oA"
    "DAMBAAIRAxEAPwDKgtLDe3XyWIAaHM8qrRaGW334v//Z"
)


def prove(path: pathlib.Path) -> None:
    """Raises an error if batches, epochs, errors or checkpoints differ from the loader's own."""
    _ops._loaded["native"] = _ops.load(path)
    with tempfile.TemporaryDirectory() as folder:
        for name in "abcdef":
            os.makedirs(os.path.join(folder, name[0]))
            pathlib.Path(folder, name, "1.jpg").write_bytes(_JPEG)
        loader = stoker.Loader(
            stoker.image_folder(folder), [stoker.RandomResizedCrop(8)], batch_size=2, shuffle=True
        )
        dataset = _dataset.as_tf_dataset(loader, op="native").map(lambda *batch: batch)
        for epoch in range(2):
            _same(list(dataset), list(loader.epoch(epoch)))
        iterator = iter(dataset)
        checkpoint = tf.train.Checkpoint(iterator=iterator)
        next(iterator)
        saved = checkpoint.save(os.path.join(folder, "saved"))
        rest = list(iterator)
        checkpoint.restore(saved)
        _same(list(iterator), rest)
        pathlib.Path(folder, "a", "1.jpg").write_bytes(_JPEG[:40])
        try:
            list(_dataset.as_tf_dataset(loader, epoch=0, op="native"))
        except tf.errors.DataLossError:
            return
        raise AssertionError("a corrupt file was not an error")


def _same(got: list, want: list) -> None:  # type: ignore[type-arg]
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} batches instead of {len(want)}")
    for batch, expected in zip(got, want):
        for tensor, array in zip(batch, expected):
            np.testing.assert_array_equal(np.asarray(tensor), np.asarray(array))


if __name__ == "__main__":
    prove(pathlib.Path(sys.argv[1]))
