"""The results of a lease: in memory, and in a file as they come.

Each line of the file is a JSON object with a `kind`:

    lease   how and when the command was called, on which card, of which code; the lines below it are its own
    figure  an object that a step has printed: there at once, so it stays when the step is killed later
    step    the end of a step: ok, failed, killed, or not run, and the reason
    number  one of the ten, in the end

A thread writes, so that a full or hanging disk holds nothing up: the lease goes on with what is in memory,
and says in the end what could not be written.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import queue
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple


class File:
    """Appends lines; each is in the file soon after `add`, or on the disk with `sync`, if there is room."""

    def __init__(self, path: pathlib.Path, sync: bool = True, most_bytes: float = math.inf) -> None:
        self.path, self.sync, self.room, self.fault = path, sync, most_bytes, ""
        self.waiting: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def add(self, line: str) -> None:
        self.room -= len(line) + 1
        if self.room >= 0:
            self.waiting.put(line)

    def work(self) -> None:
        while True:
            line = self.waiting.get()
            try:
                self.append(line)
            except OSError as error:  # the next line may fit: others may have freed some space
                self.fault = f"{self.path.name} is not whole: {error.strerror}"
            self.waiting.task_done()

    def append(self, line: str) -> None:
        with self.path.open("ab") as file:
            broken = file.tell() > 0 and not ends_a_line(self.path)
            file.write(b"\n" * broken + line.encode(errors="replace") + b"\n")
            file.flush()
            if self.sync:
                os.fsync(file.fileno())

    def finish(self, seconds: float) -> str:
        """Waits until all is written, or the time is over; returns what went wrong, or nothing."""
        with self.waiting.all_tasks_done:
            self.waiting.all_tasks_done.wait_for(lambda: not self.waiting.unfinished_tasks, seconds)
            missing = self.waiting.unfinished_tasks
        return self.fault or (f"{self.path.name} lacks {missing} lines: the disk hangs" if missing else "")


def ends_a_line(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class Of(NamedTuple):
    """What is known of a step."""

    outcome: str
    reason: str
    rows: list[dict[str, Any]]

    @property
    def why(self) -> str:
        return self.reason or self.outcome


class Results:
    def __init__(self, file: File | None = None, records: Iterable[dict[str, Any]] = ()) -> None:
        self.file, self.records = file, list(records)
        self.changed = threading.Condition()

    def add(self, kind: str, **values: Any) -> None:
        record = {"kind": kind, **values}
        with self.changed:
            self.records.append(record)
            self.changed.notify_all()
        if self.file is not None:
            self.file.add(json.dumps(record))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        with self.changed:
            return [record for record in self.records if record["kind"] == kind]

    def of(self, step: str) -> Of:
        """Returns how a step's best attempt ended, and its figures: one that ended well is better than one
        with more figures, and a later one is better than an earlier one.
        """
        attempts: dict[str, list[dict[str, Any]]] = {}
        ends: list[dict[str, Any]] = []
        with self.changed:
            for record in self.records:
                if record.get("step") == step and record["kind"] == "figure":
                    attempts.setdefault(record["attempt"], []).append(record["figures"])
                elif record.get("step") == step and record["kind"] == "step":
                    ends.append(record)

        def rows(end: dict[str, Any]) -> list[dict[str, Any]]:
            return attempts.get(end["attempt"], [])

        if not ends:
            return Of("not run", "", [*attempts.values()][-1] if attempts else [])
        best = max(
            reversed(ends), key=lambda end: (end["outcome"] == "ok", len(rows(end)), end["attempt"] != "")
        )
        return Of(best["outcome"], best["reason"], rows(best))

    def wait_for_figure(self, step: str, seconds: float) -> dict[str, Any] | None:
        """Returns the first figures of a step; None if there are none when it ends, or the time is over."""
        with self.changed:
            self.changed.wait_for(lambda: self.of(step).rows or self.has_ended(step), max(0, seconds))
            rows = self.of(step).rows
        return rows[0] if rows else None

    def has_ended(self, step: str) -> bool:
        return any(end["step"] == step for end in self.of_kind("step"))


def read(path: pathlib.Path) -> Results:
    records = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        try:
            record = json.loads(line)
        except ValueError:  # the program was killed, or the disk became full, when it wrote this
            continue
        if isinstance(record, dict) and "kind" in record:
            records.append(record)
    return Results(None, records)
