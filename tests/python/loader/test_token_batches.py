"""Batches that are filled up to a number of tokens: options, errors, order and states."""

import copy
import itertools
import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

COUNT, BUDGET = 300, 1000
TOKENS = np.random.default_rng(5).integers(0, 400, COUNT)


def make(column=TOKENS, **options):
    values = np.arange(2 * len(column), dtype=np.float32).reshape(-1, 2)
    options = {"batch_tokens": BUDGET, "tokens": "label", "shuffle": True, "sample_ids": True, **options}
    return stoker.Loader(stoker.arrays(values, column), **options)


def epoch_of(loader):
    """Returns the ids of each batch of the next epoch, whose values are checked."""
    batches = []
    for values, tokens, ids in loader:
        assert tokens.sum() <= BUDGET
        np.testing.assert_array_equal(values[:, 0], 2 * ids)
        np.testing.assert_array_equal(tokens, TOKENS[ids])
        batches.append(ids.tolist())
    return batches


def test_each_sample_comes_once_in_batches_that_are_full():
    loader = make()
    epochs = [epoch_of(loader) for _ in range(3)]
    for batches in epochs:
        assert len(batches) == len(loader)
        assert sorted(itertools.chain(*batches)) == list(range(COUNT))
    assert epochs[0] != epochs[1]
    assert loader.batch_size == max(map(len, epochs[0])) == max(map(len, epochs[1]))
    assert loader.stats()["batch_fill"] == pytest.approx(TOKENS.sum() / BUDGET / len(loader))
    assert loader.stats()["batch_fill"] > 0.97
    assert max(map(len, epoch_of(make(batch_size=3)))) == 3 == make(batch_size=3).batch_size
    with stoker.Loader(stoker.arrays(np.zeros((4, 2))), batch_size=2) as by_rows:
        assert by_rows.stats()["batch_fill"] == 0


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16", "uint64"])
def test_columns_of_integers(dtype):
    assert epoch_of(make(TOKENS.astype(dtype))) == epoch_of(make())


def of_files(made):
    paths = sorted(made.rglob("*.jpg"))
    columns = {"tokens": np.arange(len(paths), dtype=np.int32) % 50}
    transforms = [stoker.RandomResizedCrop(16)]
    options = {"batch_tokens": 100, "tokens": "tokens", "shuffle": True}
    return stoker.Loader(stoker.files(paths, columns=columns), transforms, **options)


def test_a_column_of_files_and_copies_of_their_loader(made):
    loader = of_files(made)
    batches = [(batch.image.copy(), batch.tokens.copy()) for batch in loader]
    for images, tokens in batches:
        assert images.shape == (len(tokens), 16, 16, 3)
        assert tokens.sum() <= 100
    assert sum(len(tokens) for _, tokens in batches) == len(loader.source)
    for copied in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert len(copied) == len(batches)
        for batch, (images, tokens) in zip(copied, batches):
            np.testing.assert_array_equal(batch.image, images)
            np.testing.assert_array_equal(batch.tokens, tokens)


def test_parts_of_sources_and_combined_ones():
    source = stoker.arrays(np.arange(2 * COUNT, dtype=np.float32).reshape(-1, 2), TOKENS)
    options = {"batch_tokens": BUDGET, "tokens": "label", "shuffle": True}
    chosen = list(range(0, COUNT, 3))
    parts = [source.subset(chosen), source.subset([i for i in range(COUNT) if i % 3])]
    for made, wanted in ((parts[0], chosen), (stoker.combine(parts), list(range(COUNT)))):
        rows = []
        for values, tokens in stoker.Loader(made, **options):
            assert tokens.sum() <= BUDGET
            ids = (values[:, 0] / 2).astype(int)
            np.testing.assert_array_equal(tokens, TOKENS[ids])
            rows += ids.tolist()
        assert sorted(rows) == wanted


def test_without_shuffling_the_order_is_that_of_the_source_as_far_as_samples_fit():
    tokens = np.array([400, 300, 900, 200, 100, 500, 500])
    loader = make(tokens, shuffle=False)
    assert [ids.tolist() for _, _, ids in loader] == [[0, 1, 3, 4], [2], [5, 6]]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"batch_tokens": 0}, ValueError, "batch_tokens"),
        ({"batch_tokens": -1}, ValueError, "batch_tokens"),
        ({"batch_tokens": 1 << 31}, ValueError, "batch_tokens"),
        ({"batch_tokens": "1000"}, TypeError, "batch_tokens"),
        ({"batch_tokens": 1e3}, TypeError, "batch_tokens"),
        ({"batch_tokens": True}, TypeError, "batch_tokens"),
        ({"batch_tokens": None}, TypeError, "batch_size must be an int, unless batch_tokens is given"),
        ({"batch_tokens": None, "batch_size": 4}, ValueError, "tokens is 'label', and there is no batch_tok"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"batch_size": 1}, ValueError, "batch_size is 1, .*Leave batch_size out, for no limit"),
        ({"tokens": 3}, TypeError, "tokens must be a str, the name of a column, not 3"),
        ({"tokens": "\ud800"}, ValueError, "tokens must be a text in UTF-8"),
        ({"tokens": None}, NotImplementedError, "no column has the tokens of samples. Give tokens"),
        ({"tokens": "length"}, ValueError, "no such column. Give one of 'label'"),
        ({"tokens": "image"}, ValueError, "tokens is 'image', which has no single integer for each"),
        ({"batch_tokens": 300}, ValueError, r"sample \d+ has 3\d\d tokens in column 'label', and batch_tokens"
         r" is 300 \(and \d+ more samples are outside 0 to batch_tokens\)\. Leave such samples out, "
         r"or set batch_tokens to 39\d or more"),
        ({"world": 200, "rank": 199}, ValueError, r"rank 199 has no batch: batch_tokens makes \d+ batches"),
        ({"batch_tokens": 1 << 30, "drop_remainder": True}, ValueError, "the only batch is not full"),
    ],
)  # fmt: skip
def test_errors(options, kind, words):
    with pytest.raises(kind, match=words):
        make(**options)


@pytest.mark.parametrize("tokens", [TOKENS - 1, TOKENS * 0.5, TOKENS > 9, TOKENS[:, None] + [0, 1]])
def test_columns_that_have_no_numbers_of_tokens(tokens):
    with pytest.raises(ValueError, match="tokens"):
        make(tokens)


def test_what_is_not_there_yet():
    with pytest.raises(NotImplementedError, match="a device has room for rows of a fixed number"):
        make().to_device("host")
    source = stoker.arrays(np.zeros((COUNT, 2)), TOKENS)
    for ordered in (source.repeated(3), stoker.combine([source, source], [1, 2])):
        with pytest.raises(NotImplementedError, match="has an order of its own"):
            stoker.Loader(ordered, batch_tokens=BUDGET, tokens="label")


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("remainder", ["uneven", "drop", "pad"])
def test_ranks_share_batches(world, remainder):
    loaders = [make(world=world, rank=rank, remainder=remainder) for rank in range(world)]
    everything = epoch_of(make())
    shared = [epoch_of(loader) for loader in loaders]
    steps = {len(batches) for batches in shared}
    assert len(steps) == 1 or remainder == "uneven"
    dealt = [shared[i % world][i // world] for i in range(sum(map(len, shared)))]
    if remainder == "pad":
        everything += everything[: -len(everything) % world]
    assert dealt == everything[: len(dealt)]
    assert len(everything) - len(dealt) < (world if remainder == "drop" else 1)


def test_states_resume_at_every_batch_with_any_number_of_ranks():
    loader = make()
    whole = epoch_of(loader)
    second = epoch_of(loader)
    for number in range(0, len(whole), 7):
        saved = make()
        for _ in zip(range(number), saved):
            pass
        state = saved.state_dict()
        resumed = make()
        resumed.load_state_dict(state)
        assert epoch_of(resumed) == whole[number:]
        assert epoch_of(resumed) == second
        rest = []
        for rank in range(3):
            other = make(world=3, rank=rank)
            other.load_state_dict(state)
            rest += epoch_of(other)
        assert sorted(rest) == sorted(whole[number:])


def test_states_of_other_batches_are_refused():
    loader = make()
    next(iter(loader))
    state = loader.state_dict()
    for options, words in (
        ({"batch_tokens": 900}, "batch_tokens was 1000 and is 900"),
        ({"batch_size": 9}, "batch_size was 0 and is 9"),
        ({"batch_tokens": None, "tokens": None, "batch_size": 9}, "batch_tokens was 1000 and is 0"),
    ):
        with pytest.raises(stoker.FailedPreconditionError, match=words):
            make(**options).load_state_dict(state)


def test_jax_takes_them_on_one_device():
    pytest.importorskip("jax", reason="JAX is not installed here")
    loader = make()
    wanted = epoch_of(loader)
    arrays = make().to_jax()
    assert [np.asarray(ids).tolist() for _, _, ids in arrays] == wanted


def test_torch_takes_them():
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    values = np.arange(2 * COUNT, dtype=np.float32).reshape(-1, 2)
    source = stoker.arrays(values, TOKENS)
    loader = stoker.torch.DataLoader(source, batch_tokens=BUDGET, tokens="label", shuffle=True)
    assert len(loader.sampler) == COUNT
    assert loader.batch_size is None and loader.batch_sampler.batch_size is None
    wanted = epoch_of(make())
    options = {"batch_tokens": BUDGET, "tokens": "label", "shuffle": True}
    unlimited = stoker.torch.DataLoader(source, batch_size=None, **options)
    assert unlimited.batch_size is None
    assert list(unlimited.batch_sampler) == wanted
    assert stoker.torch.DataLoader(source, batch_size=3, **options).batch_size == 3
    with pytest.raises(NotImplementedError, match="device='cuda' has room for rows of a fixed number"):
        stoker.torch.DataLoader(source, device="cuda", **options)
    next(iter(unlimited))
    resumed = stoker.torch.DataLoader(source, **options)
    resumed.load_state_dict(unlimited.state_dict())
    assert len(resumed.sampler) == COUNT
    assert [(values[:, 0] / 2).int().tolist() for values, _ in loader] == wanted
    assert len(loader) == len(wanted)
    ranks = [
        stoker.torch.DataLoader(source, batch_tokens=BUDGET, tokens="label", shuffle=True, rank=rank, world=2)
        for rank in range(2)
    ]
    assert [len(loader.sampler) for loader in ranks] == [
        sum(len(values) for values, _ in loader) for loader in ranks
    ]
