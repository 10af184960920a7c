"""Iterators of a program that is killed at random moments continue from their last checkpoint."""

import os

import pytest
from kill_runs import Runs

KILLS = 3 if os.environ.get("STOKER_EFFORT") == "100" else 1
WORLDS = (1, 3, 8) if os.environ.get("STOKER_EFFORT") == "100" else (3,)


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_the_run_equals_the_uninterrupted_one(op, made, tmp_path, world):
    assert Runs(op, made, tmp_path / "runs").differing(world, KILLS, 1) == 0
