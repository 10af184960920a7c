"""Runtime: the memory and threads that a process' loaders share."""

from __future__ import annotations

from typing import Any

from stoker import _checks, _stoker

_READERS = ("auto", "uring", "pread")
_EXECUTORS = ("tbb", "threads")


class Runtime:
    """Memory, decode workers and reader threads, shared by the loaders that use it.

    Loaders without a `runtime` share a default one, made when first needed. Loaders keep it alive.
    It belongs to the process that made it: in a forked child its loaders raise `FailedPreconditionError`,
    and the child makes its own, or uses its own default one. Thread-safe.

    Args:
        threads: decode workers, 1 to 1024; 0 means at most the cores allotted to this process (its cgroup's
            quota and its affinity count), divided by the environment's LOCAL_WORLD_SIZE; tuned: as many
            as keep up.
        memory_budget: bytes of working memory for all its loaders together: batches in production,
            reads, decoding. 0: a quarter of what the cgroup has, at most 4 GiB, divided by the
            environment's LOCAL_WORLD_SIZE.
        reads_in_flight: number of concurrent reads, 1 to 1024; 0 means tuned, at most 64.
        reader: "uring" (Linux io_uring), "pread", or "auto": whichever is allowed and faster here.
        executor: "tbb", or "threads": plain threads, if TBB is a problem. In a forked child, and if the
            system has too few threads (then with fewer workers), "tbb" means "threads", too;
            `stats()["executor_reason"]` says so.
        read_timeout: time limit in seconds, to 1e6. A read of a file that takes longer is an
            `UnavailableError` of its batch, which names the file; a disk that hangs keeps the read's memory
            until it answers. Needs io_uring: a `ValueError` if it is not used. 0: no limit, so that no job
            ends because storage comes back after minutes. Remote objects have time limits of their own.
        stall_seconds: when a program has waited this long for a batch, and nothing has moved meanwhile, a
            line on standard error says which work has not ended (reads, decoding, a `Map`'s function, samples
            that wait for memory) and names files; so does `stats()["stall"]`. 0 to 1e6; 0 means never.

    Raises:
        ValueError, TypeError: naming the option.
        UnavailableError, …: io_uring was requested and is not available; the message says why.
        ResourceExhaustedError: no thread can be started; the message names the limits that are set.
    """

    def __init__(
        self,
        threads: int = 0,
        memory_budget: int = 0,
        reader: str = "auto",
        executor: str = "tbb",
        reads_in_flight: int = 0,
        stall_seconds: float = 30,
        read_timeout: float = 0,
    ) -> None:
        self._given = (
            threads, memory_budget, reader, executor, reads_in_flight, stall_seconds, read_timeout
        )  # fmt: skip
        self._native = _stoker.Runtime(
            threads=_checks.integer("threads", threads, 0, 1024),
            memory_budget=_checks.integer("memory_budget", memory_budget, 0, 2**63 - 1),
            reader=_READERS.index(_checks.choice("reader", reader, _READERS)),
            reads_in_flight=_checks.integer("reads_in_flight", reads_in_flight, 0, 1024),
            executor=_EXECUTORS.index(_checks.choice("executor", executor, _EXECUTORS)),
            stall_seconds=_checks.real("stall_seconds", stall_seconds, 0, 1e6),
            read_timeout=_checks.real("read_timeout", read_timeout, 0, 1e6),
        )

    def __copy__(self) -> Runtime:
        return self

    def __deepcopy__(self, memo: Any) -> Runtime:
        return self  # a copy would have as many threads and as much memory again

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles its arguments: unpickling makes another Runtime."""
        return Runtime, self._given

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._native.describe().items())
        return f"stoker.Runtime({options})"
