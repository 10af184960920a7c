"""The Python package: a loader's state, and resuming from it."""

import gc
import json

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip()]
EVALUATION = [stoker.Resize(73), stoker.CenterCrop(64)]


def make(folder, transforms=TRAIN, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(stoker.image_folder(folder), transforms, **options)


def test_resuming_in_the_middle_of_the_second_epoch(made):
    loader = make(made)
    list(loader)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["batch"]) == (1, 3)
    wanted = [*taken(iterator), *taken(loader)]

    other = make(made, depth=1)
    other.load_state_dict(state)
    assert other.state_dict() == state
    same([*taken(other), *taken(other)], wanted)
    assert other.state_dict()["epoch"] == 3
    loader.load_state_dict(state)  # also backwards
    same([*taken(loader), *taken(loader)], wanted)


def test_states_between_epochs(made):
    loader = make(made)
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 0)
    list(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (1, 0)
    other = make(made)
    other.load_state_dict(state)
    same(taken(other), taken(loader))
    iterator = iter(loader)
    for _ in range(8):
        next(iterator)  # all of them, and the end not seen yet
    assert loader.state_dict()["epoch"] == 3


def test_a_state_after_leaving_the_loop(made):
    for leave in (lambda: True, lambda: 1 / 0):
        loader = make(made)
        wanted = taken(loader.epoch(0))
        try:
            for n, _ in enumerate(loader):
                if n == 2 and leave():
                    break
        except ZeroDivisionError:
            pass
        gc.collect()
        state = loader.state_dict()
        assert (state["epoch"], state["batch"]) == (0, 3)
        loader.load_state_dict(state)
        assert loader.state_dict() == state
        same(taken(loader), wanted[3:])
        assert loader.state_dict()["epoch"] == 1


def test_states_of_others_are_refused(made):
    state = make(made).state_dict()
    for other in (make(made, seed=8), make(made, batch_size=4), make(made, EVALUATION)):
        with pytest.raises(stoker.FailedPreconditionError, match="other options"):
            other.load_state_dict(state)
    make(made, rank=1, world=2).load_state_dict(make(made, world=2).state_dict())
    for bad in ({}, {**state, "version": 2}, {**state, "epoch": -1}, {**state, "batch": 9}):
        with pytest.raises(ValueError):
            make(made).load_state_dict(bad)
    for bad in ({**state, "epoch": "1"}, None, [1]):
        with pytest.raises(TypeError, match="state"):
            make(made).load_state_dict(bad)
