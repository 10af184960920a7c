"""A loader's statistics: the causes of waits, its settings, and Prometheus' text."""

import time

import numpy as np
import pytest
import stoker
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture
def loader():
    images = np.zeros((64, 400, 400, 3), np.uint8)
    return stoker.Loader(
        stoker.arrays(images, np.arange(64)), [stoker.RandomResizedCrop(224)], batch_size=8, shuffle=True
    )


def used(loader, pause=0.0):
    for _ in loader:
        time.sleep(pause)
    return loader.stats()


def test_waits_add_up(loader):
    assert loader.stats()["advice"] == "" and loader.stats()["wait_seconds"] == 0
    stats = used(loader, pause=0.01)
    assert set(stats["waited"]) == {"storage", "decode", "map", "copy", "other"}
    assert stats["wait_seconds"] > 0
    assert sum(stats["waited"].values()) == pytest.approx(stats["wait_seconds"])
    assert stats["waited"]["storage"] == stats["waited"]["copy"] == 0
    assert stats["consumer_seconds"] >= 7 * 0.01
    assert stats["advice"].startswith("The consumer ") and stats["advice"].endswith(".")


def test_workers_and_settings(loader):
    stats = used(loader)
    assert len(stats["worker_busy_seconds"]) == stats["threads"]
    assert sum(stats["worker_busy_seconds"]) > 0
    assert stats["depth"] >= 1 and 1 <= stats["workers"] <= stats["threads"]
    assert stats["reads"] == 0  # the samples are in memory
    assert all(isinstance(decision, str) for decision in stats["decisions"])
    assert stats["decisions_made"] >= len(stats["decisions"])


def test_a_device_has_waits_of_its_own(loader):
    device = loader.to_device("host")
    stats = used(device, pause=0.01)
    assert sum(stats["waited"].values()) == pytest.approx(stats["wait_seconds"])
    assert stats["wait_seconds"] > 0 and stats["consumer_seconds"] >= 7 * 0.01
    assert loader.stats()["batches"] == 0


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize("device", [None, "cpu", "host"])
def test_prometheus_reads_it(loader, device):
    if device is not None:
        loader = loader.to_device(device)
    stats = used(loader)
    name = 'a "b"\\c\nd é'
    found = families(loader.prometheus(name))
    assert all(family.documentation for family in found.values())
    samples = [sample for family in found.values() for sample in family.samples]
    assert all(sample.labels["loader"] == name for sample in samples)
    assert len({(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples}) == len(samples)
    assert all(
        sample.name.endswith("_total") == (family.type == "counter")
        for family in found.values()
        for sample in family.samples
    )
    assert found["stoker_batches"].samples[0].value == stats["batches"]
    assert found["stoker_memory_budget_bytes"].samples[0].value == stats["memory_budget"]
    waits = {sample.labels["cause"]: sample.value for sample in found["stoker_wait_seconds"].samples}
    assert waits == pytest.approx(stats["waited"])
    busy = [sample.value for sample in found["stoker_worker_busy_seconds"].samples]
    # The next epoch is being made meanwhile.
    after = loader.stats()["worker_busy_seconds"]
    assert len(busy) == len(after)
    for before, between, behind in zip(stats["worker_busy_seconds"], busy, after):
        assert before - 1e-9 <= between <= behind + 1e-9


def test_a_name_is_a_string(loader):
    assert 'loader="loader"' in loader.prometheus()
    with pytest.raises(TypeError, match="name must be a string"):
        loader.prometheus(3)


def test_stalls_are_counted(loader):
    stats = used(loader)
    assert stats["stalls"] == 0 and stats["stall"] == ""


@pytest.mark.parametrize("option", ["stall_seconds", "read_timeout"])
def test_time_limits_are_checked(option):
    for wrong in (-1, 1e7, float("nan")):
        with pytest.raises(ValueError, match=option):
            stoker.Runtime(**{option: wrong})
    with pytest.raises(TypeError, match=option):
        stoker.Runtime(**{option: "30"})


def test_time_limits_are_described():
    runtime = repr(stoker.Runtime(stall_seconds=12.5))
    assert "stall_seconds=12.5" in runtime and "read_timeout=0.0" in runtime


def test_a_time_limit_of_reads_needs_io_uring():
    with pytest.raises(ValueError, match="read_timeout needs io_uring"):
        stoker.Runtime(reader="pread", read_timeout=10)
