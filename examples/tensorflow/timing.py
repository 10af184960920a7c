"""Compares ways of doing the same thing in turns, and says which takes less, if the rounds can tell.

The measure is CPU time, of all threads of this process: unlike wall time, it hardly depends on what else
runs on the machine. Where ways differ in how they wait, `in_turns` takes another clock.

A way must end in its turn all that it has started: what a loader produces ahead would slow down the next
way.

--quick on the command line: 3 rounds, with which one way always seems better. For tests.
"""

import statistics
import sys
import time
from collections.abc import Callable

QUICK = "--quick" in sys.argv
ROUNDS = 3 if QUICK else 9


def in_turns(
    ways: dict[str, Callable[[], object]],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """The seconds that each way takes in each round, after a round that warms up.

    Every other round goes through the ways from the last to the first.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(1 + rounds):
        order = list(ways) if number % 2 == 0 else list(reversed(ways))
        for name in order:
            start = clock()
            ways[name]()
            if number > 0:
                seconds[name].append(clock() - start)
    return seconds


def verdict(measured: dict[str, list[float]], one: str, other: str, what: str = "CPU time") -> str:
    """Says which of the two takes less: it must be so in every round but one. Ranges leave out both extremes.

    Of two ways that are equal, nine rounds say once in 25 times that one takes less.
    """
    ratios = sorted(b / a for a, b in zip(measured[one], measured[other]))
    inner = ratios[1:-1]
    if inner[0] <= 1 <= inner[-1]:
        between = f"{one} takes {1 / inner[-1]:.2f} to {1 / inner[0]:.2f} times that of {other}"
        return f"no difference in {what} that {len(ratios)} rounds can tell: {between}"
    if inner[-1] < 1:
        return verdict(measured, other, one, what)
    spread = f"{inner[0]:.2f} to {inner[-1]:.2f} in {len(ratios)} rounds"
    return f"{other} takes {statistics.median(ratios):.2f} times the {what} of {one} ({spread})"
