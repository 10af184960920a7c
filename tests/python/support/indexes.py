"""The index files of shards."""

import hashlib
import os
import pathlib
import time


def index_of(shard):
    """The newest index file of a shard, which is there if the shard was at rest when it was opened."""
    folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "stoker" / "index"
    name = hashlib.sha256(os.fsencode(shard)).hexdigest()[:32]
    return max(folder.glob(f"{name}-*.stoker-index"), key=lambda path: path.stat().st_mtime_ns)


def rest():
    """Waits until a further change to a file gets another time."""
    time.sleep(0.03)
