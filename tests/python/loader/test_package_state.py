"""The Python package: a loader's state, and resuming from it."""

import gc
import json
import os
import re

import numpy as np
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 8}, "seed was 7 and is 8"),
        ({"remainder": "pad"}, "remainder was uneven and is pad"),
        ({"shuffle": False}, "shuffle was true and is false"),
        ({"dtype": "float32", "seed": 0}, "dtype was uint8 and is float32; seed was 7 and is 0"),
        ({"batch_size": 4, "world": 3, "seed": 8}, "seed was 7 and is 8"),
        ({"transforms": TRAIN[:1]}, r"transforms\[1\] was RandomHorizontalFlip and is none"),
        (
            {"transforms": [stoker.RandomResizedCrop(64, (0.2, 1)), stoker.RandomHorizontalFlip(0.1)]},
            r"transforms\[0\].scale was 0.08 to 1 and is 0.2 to 1; "
            r"transforms\[1\].p was 0.5 and is 0.1",
        ),
        (
            {"transforms": EVALUATION},
            r"transforms\[0\] was RandomResizedCrop and is Resize; "
            r"transforms\[1\] was RandomHorizontalFlip and is CenterCrop",
        ),
        ({"transforms": [*TRAIN, stoker.MixUp(0.5)]}, r"mix was none and is MixUp\(alpha 0.5\)"),
    ],
)
def test_a_state_of_other_options_says_which(made, options, said):
    """The message has both values of each option, whichever is the default, and nothing about the others."""
    loader = make(made)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    words = r"other options or samples: (.+)\. Give this loader"
    with pytest.raises(stoker.FailedPreconditionError, match=words) as caught:
        make(made, **options).load_state_dict(state)
    assert re.fullmatch(said, re.search(words, str(caught.value))[1])
    other = make(made, **options)
    with pytest.raises(stoker.FailedPreconditionError, match=r" was .* and is "):
        make(made).load_state_dict(other.state_dict())
    make(made, **options).load_state_dict(other.state_dict())


@pytest.mark.parametrize("remainder", ["uneven", "drop", "pad"])
@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize(("world", "batch_size"), [(3, 8), (16, 2), (1, 5)])
def test_another_world_goes_on_with_what_is_left(made, remainder, drop_remainder, world, batch_size):
    """Eight ranks have delivered 16 samples of 60; 44 are left, of which the last may be left out."""
    options = {"remainder": remainder, "drop_remainder": drop_remainder, "batch_size": batch_size}

    def rows(loader):
        iterator = iter(loader)
        return [(i, image.tobytes()) for image, _ in iterator for i, image in zip(iterator.sample_ids, image)]

    eight = make(made, **{**options, "batch_size": 2}, world=8)
    list(eight)
    next(iter(eight))
    state = json.loads(json.dumps(eight.state_dict()))
    order = rows(make(made).epoch(1))
    left = order[16:]
    whole = 44 // world * world
    dealt = {"uneven": left, "drop": left[:whole], "pad": left + order[: -44 % world]}[remainder]
    full = len(dealt) // world // batch_size * batch_size if drop_remainder else len(dealt)
    for rank in range(world):
        loader = make(made, world=world, rank=rank, **options)
        loader.load_state_dict(state)
        assert loader.state_dict()["epoch"] == 1
        mine, wanted = rows(loader), dealt[rank::world][:full]
        assert [i for i, _ in mine] == [i for i, _ in wanted]
        in_order = len(left[rank::world])  # the others are repeated, with other draws
        assert mine[:in_order] == wanted[:in_order]
        assert (loader.state_dict()["epoch"], loader.state_dict()["start"]) == (2, 0)
        same(taken(loader), taken(make(made, world=world, rank=rank, **options).epoch(2)))


def test_steps_that_stay_as_large_keep_their_numbers(made):
    state = {**make(made, batch_size=2, world=6, rank=0).state_dict(), "batch": 2, "start": 7}
    loader = make(made, batch_size=4, world=3, rank=1)
    loader.load_state_dict(state)
    assert [loader.state_dict()[name] for name in ("epoch", "batch", "start")] == [0, 2, 7]
    other = make(made, batch_size=3, world=3, rank=1)
    other.load_state_dict(state)
    assert [other.state_dict()[name] for name in ("epoch", "batch", "start")] == [0, 0, 31]


def test_a_state_that_a_checkpoint_library_has_converted(made):
    loader = make(made)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    converted = {**state, "epoch": np.int32(0), "batch": np.int64(2), "start": np.array(0)}
    loader.load_state_dict(converted)
    assert loader.state_dict() == state
    deep = []
    for _ in range(100000):
        deep = [deep]
    for bad in (deep, float("nan"), "\udc80", np.array([1, 2]), b"2"):
        with pytest.raises(TypeError, match=r"must be what state_dict\(\) returned"):
            loader.load_state_dict({**state, "batch": bad})
    assert loader.state_dict() == state


def test_a_closed_loader_and_a_forked_child_tell_the_state(made):
    loader = make(made)
    next(iter(loader))
    state = loader.state_dict()
    loader.close()
    assert loader.state_dict() == state
    child = os.fork()
    if child == 0:
        os._exit(0 if loader.state_dict() == state else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_rank_without_a_share_of_what_is_left_gets_an_empty_epoch(made):
    state = {**make(made, batch_size=2).state_dict(), "batch": 29}  # two samples are left
    for rank in range(3):
        loader = make(made, batch_size=2, world=3, rank=rank)
        loader.load_state_dict(state)
        assert loader.state_dict()["epoch"] == 0
        assert len(taken(loader)) == (rank < 2)
        assert loader.state_dict()["epoch"] == 1 and len(taken(loader)) == len(loader) == 10


def test_a_state_of_other_samples_says_so(made, tmp_path):
    names = sorted(path.relative_to(made) for path in made.rglob("*.jpg"))

    def folder(kept, renamed):
        place = tmp_path / f"{len(kept)}{renamed}"
        for name in kept:
            to = place / name.parent / (f"x{name.name}" if renamed else name.name)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes((made / name).read_bytes())
        return place

    state = make(made).state_dict()
    make(folder(names, False)).load_state_dict(state)  # where they lie does not matter
    with pytest.raises(
        stoker.FailedPreconditionError,
        match=r"samples: the data set has 59 samples, the state was saved on 60\. Give",
    ):
        make(folder(names[1:], False)).load_state_dict(state)
    with pytest.raises(stoker.FailedPreconditionError, match="the data set's fingerprint was "):
        make(folder(names, True)).load_state_dict(state)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("shape", [(), (3, 4), (200, 100)])
def test_a_state_of_other_arrays_is_refused(dtype, shape):
    def load(*arrays):
        return stoker.Loader(stoker.arrays(*arrays), batch_size=4)

    # Columns of more bytes than are looked at, with short and long rows.
    a = np.random.default_rng(1).integers(0, 100, (50, *shape)).astype(dtype)
    labels = np.arange(50)
    state = json.loads(json.dumps(load(a, labels).state_dict()))
    for alike in ((a.copy(), labels), (a[::-1][::-1], labels.tolist())):
        load(*alike).load_state_dict(state)
    last = a.copy()
    last[-1] += 1
    for other in ((a + 1, labels), (last, labels), (a, labels[::-1]), (a, labels.astype("int32"))):
        with pytest.raises(stoker.FailedPreconditionError, match="the data set's fingerprint was"):
            load(*other).load_state_dict(state)


def test_arrays_may_change_until_a_loader_uses_them():
    images = np.zeros((8, 4), np.uint8)
    source = stoker.arrays(images)
    images[:] = 7
    state = stoker.Loader(source, batch_size=4).state_dict()
    stoker.Loader(stoker.arrays(np.full((8, 4), 7, np.uint8)), batch_size=4).load_state_dict(state)


def test_a_state_is_small(made):
    assert len(json.dumps(make(made).state_dict())) < 400
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    recipe = [*TRAIN, stoker.RandAugment(), stoker.Normalize(mean, std), stoker.RandomErasing(0.25)]
    assert len(json.dumps(make(made, recipe, dtype="float32").state_dict())) < 800


def test_a_state_holds_the_given_parameters(made):
    """A parameter that a transform keeps as a tuple is at its default where the number was."""
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    recipe = [stoker.RandomCrop(32), stoker.Normalize(mean, std), stoker.RandomErasing()]
    options = make(made, recipe, dtype="float32").state_dict()["options"]
    assert {name for name in options if name.startswith("transforms")} == {
        *("transforms[0]", "transforms[0].height", "transforms[0].width"),
        *("transforms[1]", "transforms[1].mean", "transforms[1].std", "transforms[2]"),
    }


def test_a_state_of_parameters_that_depend_on_each_other(made):
    """With all others as they are, magnitude's default would be too large."""
    recipe = [*TRAIN, stoker.RandAugment(magnitude=3, num_magnitude_bins=5)]
    options = make(made, recipe).state_dict()["options"]
    assert {name: value for name, value in options.items() if name.startswith("transforms[2].")} == {
        "transforms[2].magnitude": "3", "transforms[2].num_magnitude_bins": "5",
    }  # fmt: skip


def test_states_of_others_are_refused(made):
    state = make(made).state_dict()
    for other in (make(made, seed=8), make(made, EVALUATION)):
        with pytest.raises(stoker.FailedPreconditionError, match="other options"):
            other.load_state_dict(state)
    make(made, rank=1, world=2).load_state_dict(make(made, world=2).state_dict())
    older = {"version": 1, "epoch": 0, "batch": 0, "fingerprint": "0123456789abcdef"}
    with pytest.raises(ValueError, match="state is of version 1; this stoker reads 3"):
        make(made).load_state_dict(older)
    for bad in ({}, {**state, "version": 4}, {**state, "epoch": -1}, {**state, "batch": 9}):
        with pytest.raises(ValueError):
            make(made).load_state_dict(bad)
    for bad in ({**state, "epoch": "1"}, {**state, "options": "seed=7"}):
        with pytest.raises(ValueError, match="the state's "):
            make(made).load_state_dict(bad)
    for bad in (None, [1], {**state, "epoch": made}):
        with pytest.raises(TypeError, match="state"):
            make(made).load_state_dict(bad)
