"""A run that is killed at random moments continues from its last saved state: nothing twice, nothing lost."""

import os

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from kill_runs import Runs  # noqa: E402

KILLS = 12 if os.environ.get("STOKER_EFFORT") == "100" else 3


@pytest.mark.parametrize(
    ("way", "world", "samples", "policy"),
    [
        ("stoker", 1, "photographs", "substitute"),
        ("stoker", 3, "pieces", "substitute"),
        ("stoker", 3, "pieces", "fail"),
        ("stoker", 8, "pieces", "drop"),
        ("other-worlds", 1, "pieces", "substitute"),
        ("stoker", 3, "tokens", "drop"),
        ("other-worlds", 1, "tokens", "substitute"),
        ("stoker", 3, "patches", "drop"),
        ("other-worlds", 1, "patches", "substitute"),
    ],
)
def test_the_run_equals_the_uninterrupted_one(made, tmp_path, way, world, samples, policy):
    """Returns ids and values, of each rank in each step; or of each epoch, if the ranks differ."""
    assert Runs(way, made, tmp_path / "runs", samples, policy).differing(world, KILLS, 1) == 0
