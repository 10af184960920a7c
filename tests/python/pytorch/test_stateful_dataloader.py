"""What torchdata's StatefulDataLoader promises of its states, of stoker.torch.DataLoader.

The scenarios are those of torchdata's test/stateful_dataloader (0.11) that a loader has without worker
processes, samplers and iterable datasets. Each runs with both loaders, torchdata's where it is installed:
what is asserted is the same. Skips where PyTorch is missing.
"""

import json

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811

SAMPLES = 100


def of_stoker(*, seed=4, rank=None, world=None, **options):
    source = stoker.arrays(np.arange(SAMPLES))
    ranks = {} if world is None else {"rank": rank, "world": world}
    return stoker.torch.DataLoader(source, seed=seed, **ranks, **options)


def of_torchdata(*, seed=4, rank=None, world=None, shuffle=False, **options):
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed here")
    samplers = pytest.importorskip("torchdata.stateful_dataloader.sampler")
    numbers = torch.arange(SAMPLES)
    if world is not None:
        sampler = samplers.StatefulDistributedSampler(numbers, world, rank, shuffle=shuffle, seed=seed)
        return stateful.StatefulDataLoader(numbers, sampler=sampler, **options)
    generator = torch.Generator().manual_seed(seed)
    return stateful.StatefulDataLoader(numbers, shuffle=shuffle, generator=generator, **options)


@pytest.fixture(params=[of_stoker, of_torchdata], ids=["stoker", "torchdata"])
def make(request):
    return request.param


KINDS = pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 1},
        {"batch_size": 7},
        {"batch_size": 7, "shuffle": True},
        {"batch_size": 7, "drop_last": True},
        {"batch_size": 7, "shuffle": True, "drop_last": True},
    ],
    ids=lambda options: "-".join(f"{name}={value}" for name, value in options.items()),
)
STEPS = pytest.mark.parametrize("steps", [0, 1, 10, 13])


def rows(loader):
    """All batches, as lists of the samples' numbers."""
    return [batch.tolist() for batch in loader]


def begun(loader, steps):
    iterator = iter(loader)
    for _ in range(steps):
        next(iterator)
    return iterator


def skip_where_a_generator_decides(make, shuffle):
    if make is of_torchdata and shuffle:
        pytest.skip("torchdata's later epochs depend on the program's generator, which is not in its states")


# --- the middle of an epoch ---------------------------------------------------------------------------


@KINDS
@STEPS
def test_a_new_loader_goes_on_after_any_step(make, options, steps):
    loader = make(**options)
    iterator = begun(loader, steps)
    state = loader.state_dict()
    rest = rows(iterator)
    again = make(**options)
    again.load_state_dict(state)
    assert rows(again) == rest
    assert len(rest) == len(loader) - steps


@KINDS
def test_a_loop_that_was_left(make, options):
    loader = make(**options)
    for step, _ in enumerate(loader):
        if step == 3:
            break
    state = loader.state_dict()
    whole = rows(make(**options))
    loader.load_state_dict(state)
    assert rows(loader) == whole[4:]


@pytest.mark.parametrize("steps", [0, 4])
def test_a_loader_goes_back_while_it_iterates(make, steps):
    loader = make(batch_size=7, shuffle=True)
    iterator = begun(loader, steps)
    state = loader.state_dict()
    rest = rows(iterator)
    begun(loader, 2)
    loader.load_state_dict(state)
    assert rows(loader) == rest


def test_the_last_state_that_was_loaded_counts(make):
    loader = make(batch_size=7)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    whole = rows(make(batch_size=7))
    again = make(batch_size=7)
    for step in (2, 9, 5, 5):
        again.load_state_dict(states[step])
    assert rows(again) == whole[5:]


@pytest.mark.parametrize("steps", [2, 11])
def test_a_state_of_a_loader_that_was_resumed(make, steps):
    """Asked for at once, it is the one that was loaded; soon after, the rest is that of the first loader."""
    loader = make(batch_size=4)
    iterator = begun(loader, steps)
    state = loader.state_dict()
    next(iterator), next(iterator)
    rest = rows(iterator)
    again = make(batch_size=4)
    again.load_state_dict(state)
    assert again.state_dict() == state
    begun(again, 2)
    third = make(batch_size=4)
    third.load_state_dict(again.state_dict())
    assert rows(third) == rest


def test_a_state_is_a_snapshot(make):
    """Later steps do not change it."""
    loader = make(batch_size=7)
    iterator = begun(loader, 3)
    state = loader.state_dict()
    text = json.dumps(state)
    next(iterator)
    assert json.dumps(state) == text != json.dumps(loader.state_dict())
    again = make(batch_size=7)
    again.load_state_dict(json.loads(text))
    assert rows(again) == rows(make(batch_size=7))[3:]


# --- before, between and after epochs -----------------------------------------------------------------


@KINDS
def test_a_state_before_the_first_batch(make, options):
    loader = make(**options)
    state = loader.state_dict()
    first = rows(loader)
    begun(loader, 3)
    loader.load_state_dict(state)
    assert rows(loader) == first
    again = make(**options)
    again.load_state_dict(state)
    assert rows(again) == first


@KINDS
def test_a_state_after_an_epoch_begins_the_next(make, options):
    skip_where_a_generator_decides(make, options.get("shuffle"))
    loader = make(**options)
    first = rows(loader)
    state = loader.state_dict()
    second = rows(loader)
    again = make(**options)
    begun(again, 2)
    again.load_state_dict(state)
    assert rows(again) == second
    assert (second == first) is not options.get("shuffle", False)


@KINDS
def test_two_epochs_and_two_more(make, options):
    skip_where_a_generator_decides(make, options.get("shuffle"))
    four = make(**options)
    wanted = [rows(four) for _ in range(4)]
    loader = make(**options)
    got = [rows(loader) for _ in range(2)]
    again = make(**options)
    again.load_state_dict(loader.state_dict())
    got += [rows(again) for _ in range(2)]
    assert got == wanted


@KINDS
def test_a_resumed_epoch_is_followed_by_a_whole_one(make, options):
    skip_where_a_generator_decides(make, options.get("shuffle"))
    loader = make(**options)
    iterator = begun(loader, 5)
    state = loader.state_dict()
    wanted = [rows(iterator), rows(loader)]
    again = make(**options)
    again.load_state_dict(state)
    assert [rows(again), rows(again)] == wanted


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_state_with_the_last_batch(make, shuffle):
    """Inside the loop: torchdata's next loop has nothing, as the epoch has; stoker's is the next epoch."""
    skip_where_a_generator_decides(make, shuffle)
    loader = make(batch_size=7, shuffle=shuffle)
    for _ in loader:
        state = loader.state_dict()
    following = rows(loader)
    again = make(batch_size=7, shuffle=shuffle)
    again.load_state_dict(state)
    if make is of_torchdata:
        assert rows(again) == []
    assert rows(again) == following


# --- ranks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_rank_has_its_rest(make, shuffle):
    options = {"batch_size": 5, "shuffle": shuffle, "world": 4}
    seen, states = [], []
    for rank in range(4):
        loader = make(rank=rank, **options)
        iterator = iter(loader)
        seen += [n for _ in range(2) for n in next(iterator).tolist()]
        states.append(loader.state_dict())
    for rank in range(4):
        loader = make(rank=rank, **options)
        loader.load_state_dict(states[rank])
        seen += [n for batch in rows(loader) for n in batch]
    assert sorted(seen) == list(range(SAMPLES))


# --- what differs -------------------------------------------------------------------------------------


def test_worker_processes_are_not_part_of_a_state():
    """torchdata's state is of a number of workers. Here threads and prefetched batches are others."""
    loader = of_stoker(batch_size=7, shuffle=True, num_workers=3, prefetch_factor=4, persistent_workers=True)
    iterator = begun(loader, 5)
    state = loader.state_dict()
    rest = rows(iterator)
    for options in ({}, {"num_workers": 2}, {"depth": 1}, {"runtime": stoker.Runtime(threads=3)}):
        again = of_stoker(batch_size=7, shuffle=True, **options)
        again.load_state_dict(state)
        assert rows(again) == rest


def test_there_are_no_single_samples():
    with pytest.raises((TypeError, ValueError), match="batch_size"):
        of_stoker(batch_size=None)
