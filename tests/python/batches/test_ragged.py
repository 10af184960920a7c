"""stoker.Ragged: rows of different lengths."""

import pickle

import numpy as np
import pytest
import stoker


def made(counts, shape=(4,), dtype=np.float32, seed=1):
    """Returns a Ragged of random values, and a list of its rows."""
    random = np.random.default_rng(seed)
    rows = [random.integers(0, 100, (count, *shape)).astype(dtype) for count in counts]
    offsets = np.cumsum([0, *counts]).astype(np.int64)
    return stoker.Ragged(np.concatenate(rows), offsets), rows


def padded(rows, most, fill):
    """The plain twin of Ragged.padded."""
    dense = np.full((len(rows), most, *rows[0].shape[1:]), fill, rows[0].dtype)
    for i, row in enumerate(rows):
        dense[i, : len(row)] = row
    return dense


@pytest.mark.parametrize("shape", [(), (4,), (3, 2)])
@pytest.mark.parametrize("counts", [[3, 0, 2], [0, 0], [1], [0, 5, 0, 0, 2, 7]])
def test_its_rows(counts, shape):
    ragged, rows = made(counts, shape)
    assert len(ragged) == len(counts)
    assert ragged.counts.tolist() == counts
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(ragged[i], row, strict=True)
        np.testing.assert_array_equal(ragged[i - len(rows)], row, strict=True)
    for one, other in zip(ragged, rows, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    for most in (None, max(counts), max(counts) + 3):
        expected = padded(rows, max(counts) if most is None else most, -1)
        np.testing.assert_array_equal(ragged.padded(most, fill=-1), expected, strict=True)
    for begin in range(-len(rows), len(rows) + 2):
        for end in (None, *range(-len(rows), len(rows) + 2)):
            part = ragged[begin:end]
            assert [row.tolist() for row in part] == [row.tolist() for row in rows[begin:end]]
            assert part.offsets[0] == 0
            assert part.offsets[-1] == len(part.values)


def test_rows_are_views():
    ragged, _ = made([2, 3])
    ragged[1][0] = 7
    assert (ragged.values[2] == 7).all()
    assert np.shares_memory(ragged[1:].values, ragged.values)


def test_refused():
    ragged, _ = made([2, 3])
    with pytest.raises(ValueError, match="row 1 has 3 objects, more than most, which is 2"):
        ragged.padded(2)
    with pytest.raises(ValueError, match="most is -1"):
        ragged.padded(-1)
    with pytest.raises(IndexError, match="row 2 of 2"):
        ragged[2]
    with pytest.raises(ValueError, match="neighbouring rows only"):
        ragged[::2]
    with pytest.raises(TypeError, match="padded"):
        np.asarray(ragged)


def test_repr_and_pickle():
    ragged, rows = made([2, 3])
    assert repr(ragged) == "<stoker.Ragged of 2 rows, float32 (5, 4)>"
    again = pickle.loads(pickle.dumps(ragged))
    for one, other in zip(again, rows, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
