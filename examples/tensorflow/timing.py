"""Times two ways of doing the same thing in turns, and says which is faster, if the rounds can tell.

A way must end in its turn all that it has started: what a loader produces ahead would slow down the next way.

Environment: ROUNDS  the number of rounds (default: 9; 3 at least, and then one way always seems faster)
"""

import os
import statistics
import time
from collections.abc import Callable

ROUNDS = int(os.environ.get("ROUNDS", "9"))


def in_turns(ways: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """The seconds that each way takes in each round, after a round that warms up.

    Every other round goes through the ways from the last to the first.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(1 + rounds):
        order = list(ways) if number % 2 == 0 else list(reversed(ways))
        for name in order:
            start = time.perf_counter()
            ways[name]()
            if number > 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def verdict(seconds: dict[str, list[float]], one: str, other: str) -> str:
    """Says which of the two is faster: it must be so in every round but one. Ranges leave out both extremes.

    Of two ways that are equally fast, nine rounds say once in 25 times that one is faster.
    """
    ratios = sorted(b / a for a, b in zip(seconds[one], seconds[other]))
    inner = ratios[1:-1]
    if inner[0] <= 1 <= inner[-1]:
        between = f"{one} takes {1 / inner[-1]:.2f} to {1 / inner[0]:.2f} times the time of {other}"
        return f"no difference that {len(ratios)} rounds can tell: {between}"
    if inner[-1] < 1:
        return verdict(seconds, other, one)
    spread = f"{inner[0]:.2f} to {inner[-1]:.2f} in {len(ratios)} rounds"
    return f"{one} is {statistics.median(ratios):.2f} times as fast as {other} ({spread})"
