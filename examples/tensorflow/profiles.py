"""What TensorFlow's profiler recorded: events by name, and what its allocators gave out.

On CPUs TensorBoard's memory profile is empty, but the trace has an event for each allocation, with the
bytes that the allocator has given out so far: that is what `peak` and `allocations` read. Only oneDNN's
allocator records them, and TensorFlow uses it by itself only on CPUs with AVX-512 VNNI or better.
"""

import collections
import functools
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

_ALLOCATORS = ("MemoryAllocation", "MemoryDeallocation")


@dataclass(frozen=True)
class Event:
    """One event of the trace, and what TensorFlow noted with it."""

    name: str
    ms: float
    stats: dict[str, object]


def read(directory: pathlib.Path) -> list[Event]:
    """All events of the profiles in a directory."""
    planes = (
        plane
        for file in directory.rglob("*.xplane.pb")
        for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes
    )
    return [event for plane in planes for event in _of_plane(plane)]


def profiled(function: Callable[[], object], directory: str | None = None) -> list[Event]:
    """The events of one call. The profile is kept if there is a directory for it."""
    if directory is None:
        with tempfile.TemporaryDirectory() as scratch:
            return profiled(function, scratch)
    with tf.profiler.experimental.Profile(directory):
        function()
    return read(pathlib.Path(directory))


def training(model, dataset: tf.data.Dataset, directory: str | None = None) -> list[Event]:
    """The events of a loop over the dataset, in which steps are "train" and their waiting is "input".

    The profile is kept if there is a directory for it.
    """

    def loop() -> None:
        for step in range(len(dataset)):
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                with tf.profiler.experimental.Trace("input"):
                    batch = next(batches)
                model.train_on_batch(*batch)

    batches = iter(dataset.repeat(2))
    for _ in range(len(dataset)):  # an epoch that traces and starts what is not to be measured
        model.train_on_batch(*next(batches))
    return profiled(loop, directory)


def waited(events: list[Event]) -> float:
    """The part of `training`'s steps that they waited for input."""
    found = totals(events)
    return found["input"][1] / found["train"][1]


def totals(events: list[Event]) -> dict[str, tuple[int, float]]:
    """Count and total milliseconds over all threads for each name."""
    found: dict[str, tuple[int, float]] = collections.defaultdict(lambda: (0, 0.0))
    for event in events:
        times, spent = found[event.name]
        found[event.name] = times + 1, spent + event.ms
    return dict(found)


def ops(events: list[Event]) -> collections.Counter[str]:
    """How often each kind of op ran: their events are called NAME:KIND."""
    names = (event.name.rpartition(":") for event in events)
    return collections.Counter(kind for name, _, kind in names if name and kind.isidentifier())


def allocations(events: list[Event], least: int) -> int:
    """How many tensors and buffers of at least this many bytes TensorFlow's allocators gave out."""
    return sum(
        int(event.stats["requested_bytes"]) >= least
        for event in _of_allocators(events)
        if event.name == "MemoryAllocation"
    )


def peak(events: list[Event]) -> int:
    """The most bytes that TensorFlow's allocators had given out at a time, beyond the least they had."""
    given = collections.defaultdict(list)
    for event in _of_allocators(events):
        given[event.stats["allocator_name"]].append(int(event.stats["bytes_allocated"]))
    return sum(max(each) - min(each) for each in given.values())


def _of_allocators(events: list[Event]) -> list[Event]:
    _check_allocator()
    return [event for event in events if event.name in _ALLOCATORS]


@functools.cache
def _check_allocator() -> None:
    made = profiled(lambda: tf.zeros([1024, 1024]) + 1)  # smaller tensors are never recorded
    if not any(event.name in _ALLOCATORS for event in made):
        raise RuntimeError(
            "TensorFlow's allocator records nothing on this CPU: "
            "run this again with TF_ENABLE_ONEDNN_OPTS=1 in the environment"
        )


def _of_plane(plane) -> Iterator[Event]:
    names = {key: value.name for key, value in plane.stat_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            stats = {names[stat.metadata_id]: _value(stat, names) for stat in event.stats}
            yield Event(plane.event_metadata[event.metadata_id].name, event.duration_ps / 1e9, stats)


def _value(stat, names: dict[int, str]) -> object:
    kind = stat.WhichOneof("value")
    value = getattr(stat, kind)
    return names[value] if kind == "ref_value" else value
