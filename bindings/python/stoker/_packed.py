"""Packed sets: the photographs of a folder, in a few large files."""

from __future__ import annotations

import os
import warnings
from typing import Any

from stoker import _checks
from stoker._sources import _absolute, _cache, _Opened

__all__ = ["Packed", "packed"]


class Packed(_Opened):
    """The source that `packed` returns. It knows the names of photographs."""

    def name(self, sample: int) -> str:
        """The path of a photograph below the folder that was packed; `path` is its shard.

        Raises:
            IndexError: there is no such sample.
        """
        return os.fsdecode(self._native.name(self._number(sample)))


def packed(
    folder: str | os.PathLike[Any],
    *,
    threads: int = 0,
    cache: str | os.PathLike[Any] | None = None,
    cache_bytes: int | None = None,
) -> Packed:
    """The photographs of a folder that `stoker pack` has put into a few large files.

        source = stoker.packed("packed/train")  # instead of stoker.image_folder("photos/train")

    Order, labels, classes and pixels are those of the folder, and so are batches, digests and states: a
    loader's state that was saved on one continues on the other. A random crop needs one read, and less CPU.

    With masks (`stoker pack IMAGES OUT --source-option masks=MASKS`) samples are those of `stoker.masks`.

    Each photograph's checksum is checked when its turn comes. One that is damaged is a DataLossError of its
    batch, with the shard, the offset and the photograph's name. Classes that are all named like splits
    (train, val, …) are a UserWarning.

    Args:
        folder: what `stoker pack` made, or the URL of a copy of it (https://, http://, s3://, gs://).
        threads: for looking at the files, 0 to 256; 0 means the cores allotted.
        cache, cache_bytes: for URLs, as of `tar`.

    Raises:
        NotFoundError: no such folder; a shard is missing; packing has not finished (a FileNotFoundError).
        InvalidArgumentError: a folder that is not a packed set (a ValueError).
        DataLossError: the index or a shard is damaged, or is not of this set.
        UnimplementedError: it was written by a newer version.
        PermissionDeniedError: it may not be read (a PermissionError).
    """
    given = {"folder": _absolute("folder", folder), **_cache(cache, cache_bytes)}
    text = f"stoker.packed({os.fsdecode(given['folder'])!r})"
    source = Packed("packed", given, text, _checks.integer("threads", threads, 0, 256))
    if splits := source._native.packed_split_warning(given["folder"]):
        warnings.warn(splits, stacklevel=2)
    return source
