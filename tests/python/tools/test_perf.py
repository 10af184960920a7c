"""tools/perf.py: a slowdown of 5 % is found in noise, and noise alone is not."""

import random

import pytest


@pytest.fixture(scope="module")
def judged(program_of_tools):
    return program_of_tools("perf").judged


def ratios(seed, change, noise, count=15):
    """Returns B / A of pairs whose times have this standard deviation, and sometimes a disturbance."""
    draws = random.Random(seed)

    def time():
        return draws.gauss(1, noise) * draws.choice([1] * 9 + [1.3])

    return [change * time() / time() for _ in range(count)]


@pytest.mark.parametrize(("change", "verdict"), [(1.05, "slower"), (0.95, "faster")])
def test_a_difference_is_found(judged, change, verdict):
    found = [judged(ratios(seed, change, 0.01))[2] for seed in range(200)]
    assert sum(f"% {verdict}" in said for said in found) > 190
    assert all("no difference" in said or verdict in said for said in found)


def test_noise_is_not(judged):
    found = [judged(ratios(seed, 1, noise))[2] for noise in (0.001, 0.01, 0.05) for seed in range(200)]
    assert sum("no difference above" in said for said in found) > 590


def test_the_least_difference_that_is_named(judged):
    assert judged([1.009] * 15) == (1.009, 0, "no difference above 1.0%")
    assert judged([1.02] * 15) == (1.02, 0, "B is 2.0% slower")
