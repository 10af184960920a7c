"""stoker.torch under the threads of a program, as loaders with thread workers have them."""

import concurrent.futures

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811

THREADS = 8


def loader_of(samples=200, **options):
    return stoker.torch.DataLoader(
        stoker.arrays(np.arange(samples)), batch_size=3, shuffle=True, seed=4, **options
    )


def test_threads_share_an_iterator():
    wanted = [batch.tolist() for batch in loader_of()]
    for _ in range(20):
        iterator = iter(loader_of())
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            seen = pool.map(lambda _, it=iterator: [batch.tolist() for batch in it], range(THREADS))
        assert sorted(batch for mine in seen for batch in mine) == sorted(wanted)
