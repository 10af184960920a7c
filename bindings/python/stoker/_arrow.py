"""Samples in Arrow IPC files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker._sources import _cache, _column_name, _column_names, _Opened, _shards, _shown_shards

__all__ = ["Arrow", "arrow"]


class Arrow(_Opened):
    """The source that `arrow` returns."""


def arrow(
    files: str | os.PathLike[Any] | Iterable[Any],
    *,
    image: str = "image",
    label: str | None = "auto",
    columns: Iterable[str] | None = None,
    threads: int = 0,
    cache: str | os.PathLike[Any] | None = None,
    cache_bytes: int | None = None,
) -> Arrow:
    """Samples in Arrow IPC files, as Hugging Face's `datasets` stores them. pyarrow is not needed.

        source = stoker.arrow("imagenet/train")  # a folder of Dataset.save_to_disk()
        source = stoker.arrow("data-{00000..00003}-of-00004.arrow", image="img", label="fine_label")

    Each row is a sample, in the order of the files. The bytes of an image lie unchanged in its file, and are
    read from there: any row of any file may be the next one of a shuffled epoch, and epochs, ranks and states
    are exact, as for a folder of the same samples. This call reads where the images lie, 4 bytes an
    image, and the other columns, which stay in memory.

    A column of lists of images makes samples of any number of images, at most 1,024, for a loader whose last
    transform is a `stoker.processor`. A list that is null has none; an image that is null makes a bad sample.

    Files have either form, the stream, which `datasets` writes, or the file (Feather, version 2), but must
    not be compressed. They must not change while they are used. polars must write them with `write_ipc(…,
    compat_level=polars.CompatLevel.oldest())`.

    Args:
        files: a pattern, or a list of paths or URLs, as of `tar`. A local folder means the dataset that
            `save_to_disk` put into it; of several splits, name one: "imagenet/train".
        image: the column of encoded images (JPEG, PNG, WebP): binary, or Hugging Face's `Image`, with the
            bytes in it; or lists of these (list, large_list, fixed_size_list).
        label: the column of labels: integers, bool (0 and 1), or text, whose values are classes, sorted.
            "auto": "label", if there is one; None means batches have no labels. `source.classes` has the
            names of a `ClassLabel`; a label without a name is refused, such as -1, which `datasets` writes
            for an unknown label.
        columns: further columns: numbers, bool, fixed-size lists of numbers (vectors), text, or binary. Each
            is a column of the batch, after the labels, under its name.
        threads: number of threads that read files, 0 to 256; 0 means the cores allotted.
        cache, cache_bytes: for URLs, as of `tar`.

    Raises:
        NotFoundError: no such file (a FileNotFoundError).
        InvalidArgumentError: no rows; a column that does not exist, with those that do, or that has another
            type; a null, a label above 2^63 - 1, or too many images, with the row; files with other columns
            than the first one; a wrong pattern (a ValueError).
        DataLossError: a file is cut off, damaged or not an Arrow file, or a label has no class name; `file`
            and `offset` say where.
        UnimplementedError: a file is compressed, or has the form of Arrow before 0.15, with what to do.
        UnavailableError: for a URL, libcurl is not installed, or the server does not answer.
    """
    given = {**_shards(files), **_cache(cache, cache_bytes)}
    image = _column_name("image", image)
    if label is None:
        label = ""
    elif label != "auto":
        label = _column_name("label", label)
    names = [] if columns is None else _column_names("columns", columns)
    for name in (image, label, *names):
        if "\n" in name or "\0" in name:
            raise InvalidArgumentError(f"{name!r:.80} is a name with a line break or a NUL")
    text = f"{_shown_shards(given)}, image={image!r}"
    if label != "auto":
        text += f", label={label or None!r}"
    if names:
        text += f", columns={names!r}"
    chosen = {"image": image, "label": label, "columns": "\n".join(names)}
    given |= {name: value.encode() for name, value in chosen.items()}
    return Arrow("arrow", given, f"stoker.arrow({text})", _checks.integer("threads", threads, 0, 256))
