"""The Python package: a loader's state, and resuming from it."""

import gc
import json
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
        ({"batch_size": 4}, "batch_size was 8 and is 4"),
        ({"shuffle": False}, "shuffle was True and is False"),
        ({"dtype": "float32", "seed": 0}, "seed was 7 and is 0; dtype was 'uint8' and is 'float32'"),
        ({"world": 2}, "world was 1 and is 2"),
        ({"transforms": TRAIN[:1]}, r"transforms\[1\] was RandomHorizontalFlip and is none"),
        (
            {"transforms": [stoker.RandomResizedCrop(64, (0.2, 1)), stoker.RandomHorizontalFlip(0.1)]},
            r"transforms\[0\].scale was \(0.08, 1.0\) and is \(0.2, 1.0\); "
            r"transforms\[1\].p was 0.5 and is 0.1",
        ),
        (
            {"transforms": EVALUATION},
            r"transforms\[0\] was RandomResizedCrop and is Resize; "
            r"transforms\[1\] was RandomHorizontalFlip and is CenterCrop",
        ),
        ({"transforms": [*TRAIN, stoker.MixUp(0.5)]}, r"transforms\[2\] was none and is MixUp"),
    ],
)
def test_a_state_of_other_options_says_which(made, options, said):
    """Both values of each, whichever of the two is the default, and nothing of the others."""
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
        stoker.FailedPreconditionError, match="samples was 60 and is 59; digest of the samples"
    ):
        make(folder(names[1:], False)).load_state_dict(state)
    with pytest.raises(stoker.FailedPreconditionError, match="samples: digest of the samples was "):
        make(folder(names, True)).load_state_dict(state)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("shape", [(), (3, 4), (200, 100)])
def test_a_state_of_other_arrays_is_refused(dtype, shape):
    def load(*arrays):
        return stoker.Loader(stoker.arrays(*arrays), batch_size=4)

    # Of more bytes than are looked at, in rows that are short and long.
    a = np.random.default_rng(1).integers(0, 100, (50, *shape)).astype(dtype)
    labels = np.arange(50)
    state = json.loads(json.dumps(load(a, labels).state_dict()))
    for alike in ((a.copy(), labels), (a[::-1][::-1], labels.tolist())):
        load(*alike).load_state_dict(state)
    last = a.copy()
    last[-1] += 1
    for other in ((a + 1, labels), (last, labels), (a, labels[::-1]), (a, labels.astype("int32"))):
        with pytest.raises(stoker.FailedPreconditionError, match="digest of the samples was"):
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
        *("transforms[0]", "transforms[0].size", "transforms[1]", "transforms[1].mean"),
        *("transforms[1].std", "transforms[2]"),
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
    for other in (make(made, seed=8), make(made, batch_size=4), make(made, EVALUATION)):
        with pytest.raises(stoker.FailedPreconditionError, match="other options"):
            other.load_state_dict(state)
    make(made, rank=1, world=2).load_state_dict(make(made, world=2).state_dict())
    older = {"version": 1, "epoch": 0, "batch": 0, "fingerprint": "0123456789abcdef"}
    with pytest.raises(ValueError, match="state is of version 1; this stoker reads 2"):
        make(made).load_state_dict(older)
    for bad in ({}, {**state, "version": 3}, {**state, "epoch": -1}, {**state, "batch": 9}):
        with pytest.raises(ValueError):
            make(made).load_state_dict(bad)
    for bad in ({**state, "epoch": "1"}, {**state, "options": "seed=7"}, None, [1]):
        with pytest.raises(TypeError, match="state"):
            make(made).load_state_dict(bad)
