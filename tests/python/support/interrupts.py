"""Signals whose handler raises at random moments in `next`, for the tests of several kinds of iterators."""

import os
import random
import re
import signal


class Alarm(Exception):
    pass


def effort(full):
    """A share of `full`: STOKER_EFFORT percent, or 20, as in the C++ tests (tests/testing/effort.h)."""
    return max(1, full * int(os.environ.get("STOKER_EFFORT", "20")) // 100)


class Alarms:
    """Raises Alarm in the main thread, while it is in `next`, every `most` seconds or sooner."""

    def __init__(self, most, seed, before=lambda: None):
        self.most, self.random, self.before = most, random.Random(seed), before
        self.raised = 0
        self.in_next = self.over = False

    def __enter__(self):
        self.handler = signal.signal(signal.SIGALRM, self._handle)
        self._arm()
        return self

    def __exit__(self, *_):
        self.in_next, self.over = False, True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.handler)

    def _arm(self):
        signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-5, self.most))

    def _handle(self, *_):
        if not self.over:
            self._arm()
        if self.in_next:
            self.in_next = False
            self.raised += 1
            self.before()
            raise Alarm

    def drained(self, iterator, got, of, remade=None):
        """Appends `of` each batch to `got`, and calls `next` again after each Alarm; also after a
        RuntimeError that a framework makes of some, whose text matches `remade`.

        A `for` stores the batch before Python looks for signals; `batch = next(iterator)` would not.
        """
        while True:
            try:
                self.in_next = True
                for batch in iterator:
                    self.in_next = False
                    got.append(of(batch))
                    self.in_next = True
                self.in_next = False
                return got
            except Alarm:
                self.in_next = False
            except RuntimeError as error:
                self.in_next = False
                if remade is None or not re.search(remade, str(error)):
                    raise


def interrupted(iterate, of, wanted, state=None, remade=None, most=0.004, times=200):
    """Interrupts epochs at random, and checks that each batch is delivered once, in order.

    Args:
        iterate: returns the iterator of the next epoch.
        of: what is compared of a batch.
        wanted: returns what an epoch has, by its number.
        state: returns the epoch and batch of a saved state, as the handler would save it, if it is checked.
        remade: see Alarms.drained.
        times: how often it interrupts, at full effort.
    """
    epoch, got, batches = 0, [], len(wanted(0))

    def check():
        if state is not None:
            assert state() == (epoch + len(got) // batches, len(got) % batches)

    with Alarms(most, 1, check) as alarms:
        while alarms.raised < effort(times):
            got = []
            assert alarms.drained(iterate(), got, of, remade) == wanted(epoch)
            epoch += 1
