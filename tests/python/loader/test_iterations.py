"""Where iterations begin, and interrupts, failures and dropped iterators: each batch comes once."""

import gc
import random
import signal
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from interrupts import Alarm, Alarms, effort, interrupted  # noqa: E402

PATHS = {
    "arrays": lambda loader: loader,
    "to_device": lambda loader: loader.to_device("cpu"),
    "host": lambda loader: loader.to_device("host", buffers=8),
    "split": lambda loader: loader.to_device(["host", "host"], buffers=8),
    "jax": lambda loader: pytest.importorskip("jax") and loader.to_jax(),
}


def ids_of(batch):
    parts = batch if isinstance(batch[0], tuple) else (batch,)
    return tuple(int(i) for part in parts for i in np.asarray(part["sample_id"]))


def make(folder, **options):
    options = {"batch_size": 4, "shuffle": True, "seed": 1, "sample_ids": True, **options}
    return stoker.Loader(stoker.image_folder(folder), [stoker.RandomResizedCrop(64)], **options)


def epochs_of(loader):
    """Returns a function that gives the ids of an epoch's batches."""
    return lambda epoch: [tuple(batch["sample_id"].tolist()) for batch in loader.epoch(epoch)]


@pytest.mark.parametrize("path", PATHS)
def test_an_interrupt_loses_no_batch(made, path):
    loader = make(made, runtime=stoker.Runtime(threads=1), depth=1)
    source = PATHS[path](loader)

    def state():
        now = loader.state_dict()
        return now["epoch"], now["batch"]

    interrupted(lambda: iter(source), ids_of, epochs_of(make(made)), state)


@pytest.mark.parametrize("path", PATHS)
def test_an_iterator_that_is_not_used_takes_nothing(made, path):
    loader = make(made)
    for _, _ in zip(range(10), loader):
        pass
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 10)
    _ = iter(loader)
    assert loader.state_dict() == state
    resumed = make(made)
    source = PATHS[path](resumed)
    resumed.load_state_dict(state)
    unused = iter(source)
    assert resumed.state_dict() == state
    del unused
    assert [ids_of(batch) for batch in source] == epochs_of(loader)(0)[10:]
    assert resumed.state_dict()["epoch"] == 1


def test_a_first_next_that_fails_takes_no_epoch(made):
    loader = make(made, lent_batches=2)
    wanted = epochs_of(make(made))
    first = iter(loader)
    held = [next(first), next(first)]
    kept = iter(loader)  # and is not dropped
    for iterator in (kept, iter(loader)):
        with pytest.raises(stoker.ResourceExhaustedError, match="the caller holds 2 batches"):
            next(iterator)
    assert loader.state_dict()["epoch"] == 0
    held.clear()
    for batch in first:
        del batch
    assert ids_of(next(iter(loader))) == wanted(1)[0]
    assert ids_of(next(kept)) == wanted(2)[0]


def test_a_batch_that_was_kept_is_dropped_with_its_iterator(made):
    """The iterator has the first batch, and a handler raises in `next`: nothing was delivered."""
    loader = make(made, runtime=stoker.Runtime(threads=1))
    start, first = loader.state_dict(), epochs_of(make(made))(0)[0]
    with Alarms(0.002, 3) as alarms:
        while alarms.raised < 20:
            iterator, got = iter(loader), None
            try:
                alarms.in_next = True
                for batch in iterator:
                    alarms.in_next = False
                    got = ids_of(batch)
                    break
            except Alarm:
                assert loader.state_dict() == start
            if got is not None:
                assert got == first
                loader.load_state_dict(start)
            del iterator
    assert ids_of(next(iter(loader))) == first


class Model:
    """The rule of engine/order/epoch_counter.h, without threads: places are (epoch, batch)."""

    def __init__(self, batches):
        self.batches = batches
        self.load((0, 0))

    def load(self, place):
        self.unused = [place]  # earlier than `later`
        self.later = place[0] + 1
        self.latest = None

    def take(self):
        """The next place; it stays unused until `use`."""
        if not self.unused:
            self.unused, self.later = [(self.later, 0)], self.later + 1
        return min(self.unused)

    def use(self, place):
        self.unused.remove(place)

    def state(self):
        restored = [place for place in self.unused if place[1]]
        if not restored and self.latest is not None and self.latest.place[1] < self.batches:
            return self.latest.place
        return min(restored or self.unused or [(self.later, 0)])


class Iteration:
    """An iteration over the loader, and where it should be."""

    def __init__(self, model, source, wanted):
        self.model, self.wanted = model, wanted
        self.iterator, self.place = iter(source), None

    def next(self, alarms):
        """Requests a batch, which an alarm may interrupt."""
        place = self.place or self.model.take()
        try:
            alarms.in_next = True
            for batch in self.iterator:
                alarms.in_next = False
                assert ids_of(batch) == self.wanted(place[0])[place[1]]
                break
            else:
                alarms.in_next = False
                assert place[1] == self.model.batches
                batch = None
        except Alarm:
            return
        if self.place is None:
            self.model.use(place)
            self.model.latest = self
        self.place = place if batch is None else (place[0], place[1] + 1)


def test_random_sequences_agree_with_a_model():
    """Iterating, dropping, saving, loading and interrupting, in one loader and those that resume it."""
    batches = 5
    source = stoker.arrays(np.arange(18))
    epochs = {}

    def make():
        return stoker.Loader(source, batch_size=4, shuffle=True, seed=2, sample_ids=True)

    def wanted(epoch):
        if epoch not in epochs:
            epochs[epoch] = epochs_of(make())(epoch)
        return epochs[epoch]

    for seed in range(effort(40)):
        chance = random.Random(seed)
        loader, model, live, saved = make(), Model(batches), [], []
        path = PATHS[chance.choice(list(PATHS))](loader)
        with Alarms(0.0005, seed) as alarms:
            for _ in range(60):
                does = chance.choice(
                    ["begin", "next", "next", "next", "drain", "drop", "save", "load", "resume"]
                )
                if does == "begin" and len(live) < 4:
                    live.append(Iteration(model, chance.choice([loader, path]), wanted))
                elif does in ("next", "drain") and live:
                    iteration = chance.choice(live)
                    for _ in range(batches + 1 if does == "drain" else 1):
                        iteration.next(alarms)
                elif does == "drop" and live:
                    live.pop(chance.randrange(len(live)))
                elif does == "save":
                    saved.append((loader.state_dict(), model.state()))
                elif does == "load" and saved:
                    state, place = chance.choice(saved)
                    loader.load_state_dict(state)
                    model.load(place)
                elif does == "resume" and saved:
                    state, place = chance.choice(saved)
                    loader, model, live = make(), Model(batches), []
                    path = PATHS[chance.choice(list(PATHS))](loader)
                    loader.load_state_dict(state)
                    model.load(place)
                state = loader.state_dict()
                assert (state["epoch"], state["batch"]) == model.state(), (seed, does)
        gc.collect()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_loader_that_is_made_for_each_epoch(made):
    wanted = epochs_of(make(made, seed=8))
    got = [[ids_of(batch) for batch in make(made, seed=8, start_epoch=epoch)] for epoch in range(3)]
    assert got == [wanted(epoch) for epoch in range(3)]
    with pytest.raises(ValueError, match="start_epoch"):
        make(made, start_epoch=-1)

    def first_batches(**options):
        for _ in range(4):
            next(iter(make(made, seed=9, **options)))
            gc.collect()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_batches(shuffle=False)
        kept = [make(made, seed=10) for _ in range(4)]
        for loader in kept:
            next(iter(loader))
    with pytest.warns(stoker.EpochWarning, match="start_epoch") as caught:
        first_batches()
    assert len(caught) == 1 and caught[0].filename == __file__
