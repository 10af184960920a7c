"""bench/rivals: what an adapter has, and that a wrong output is found before it is timed."""

import importlib
import sys

import numpy as np
import pytest

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def rivals(root):
    """Returns a function that imports a module of bench/rivals, and forgets them in the end."""
    folder = str(root / "bench" / "rivals")
    before = set(sys.modules)
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def test_adapters_can_be_imported_without_their_libraries(rivals):
    libraries = set(sys.modules)
    compare, workloads = rivals("compare"), rivals("workload").WORKLOADS
    for adapter in (name for names in compare.ADAPTERS.values() for name in names):
        module = rivals(f"adapters.{adapter}")
        assert module.NAME and module.DISTRIBUTION and isinstance(module.PACKAGES, tuple), adapter
        assert module.VARIANTS and callable(module.batches) and set(module.WORKLOADS) <= set(workloads)
        assert all(
            lender in compare.ADAPTERS["torch"] + ("stoker_loader",)
            for lender in getattr(module, "BORROWS", ())
        )
    assert not {"nvidia.dali", "ffcv", "spdl", "grain", "webdataset", "cv2"} & (set(sys.modules) - libraries)


@pytest.fixture
def expected(rivals):
    """Photographs as outputs.reference() returns them: smooth, and reddish."""
    places = np.mgrid[0:56, 0:56].sum(0)[None, :, :, None]
    shades = np.arange(100)[:, None, None, None]
    return ((places + shades + np.array([120, 60, 0])) % 200).astype(np.int16)


@pytest.fixture
def right(rivals, expected):
    """A batch of eval that is right."""
    return np.repeat(np.repeat(expected[10:74], 4, 1), 4, 2).astype(np.uint8)


def test_a_right_batch_passes(rivals, expected, right):
    outputs, workloads = rivals("outputs"), rivals("workload").WORKLOADS
    assert outputs.check(right, workloads["eval"], expected) == "0.0"
    assert outputs.check(right[::-1].transpose(0, 3, 1, 2), workloads["eval"], expected) == "0.0"
    normalized = rivals("workload").normalize(right)
    assert outputs.check(normalized, workloads["train-f32"], expected) == ""


@pytest.mark.parametrize(
    ("workload", "spoil", "message"),
    [
        ("eval", lambda batch: batch[..., ::-1], "differ from Pillow's by"),
        ("eval", lambda batch: np.repeat(batch[:1], 64, 0), "of one photograph"),
        ("eval", lambda batch: batch[:63], r"uint8 \(63, 224, 224, 3\)"),
        ("eval", lambda batch: batch.astype(np.float32), "float32"),
        ("train", lambda batch: np.concatenate([batch[:63], batch[:1]]), "an image twice"),
        ("train", lambda batch: batch // 4, "mean of its batch is off"),
        ("train-f32", lambda batch: batch / np.float32(255), "mean of its batch is off"),
    ],
)
def test_a_wrong_batch_is_found(rivals, expected, right, workload, spoil, message):
    with pytest.raises(rivals("environments").Failed, match=message):
        rivals("outputs").check(spoil(right), rivals("workload").WORKLOADS[workload], expected)
