"""A run that is killed at random moments continues from its last saved state: nothing twice, nothing lost."""

import os

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from kill_runs import damaged, differing  # noqa: E402

KILLS = 12 if os.environ.get("STOKER_EFFORT") == "100" else 3


@pytest.mark.parametrize(("way", "world"), [("stoker", 1), ("stoker", 3), ("stoker", 8), ("other-worlds", 1)])
def test_the_run_equals_the_uninterrupted_one(made, tmp_path, way, world):
    """Returns ids and pixels, of each rank in each step; or of each epoch, if the ranks differ."""
    assert differing(way, world, KILLS, 1, damaged(made, tmp_path / "photos"), tmp_path) == 0
