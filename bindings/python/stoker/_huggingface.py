"""Samples of a dataset of Hugging Face's `datasets`."""

from __future__ import annotations

import os
import uuid
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stoker import _stoker, _tables
from stoker._errors import InvalidArgumentError
from stoker._sources import Source, _column_name, _column_names, files, from_dataset

__all__ = ["from_hf"]


def from_hf(
    dataset: Any,
    *,
    image: str | None = None,
    label: str | None = "auto",
    columns: Iterable[str] | None = None,
    threads: int = 4,
) -> Source:
    """The samples of a `datasets.Dataset` (Hugging Face).

        dataset = datasets.load_dataset("beans", split="train").shuffle(seed=1).select(range(500))
        loader = stoker.Loader(stoker.from_hf(dataset), [stoker.Resize((224, 224))], batch_size=64)

    Sample i is `dataset[i]`, after `select`, `shuffle`, `filter`, `train_test_split`, `concatenate_datasets`,
    `rename_column`. What `set_transform` and `set_format` do to rows is not done. Where the images are
    decides how they are read:
      - in the dataset's Arrow files, as after `load_dataset`, `map` and `load_from_disk`: as byte ranges of
        these, as by `stoker.arrow`, 4 bytes of memory a sample. The files must stay where they are.
      - in files of their own (`Image` with a path): as by `stoker.files`.
      - in memory (`from_dict`, `keep_in_memory=True`), or some as bytes and some as paths: as by
        `stoker.from_dataset`, under Python's interpreter lock, with a copy of each image. `save_to_disk`
        and `load_from_disk` make Arrow files of it.
    Labels and columns are copied into memory by this call. Other processes make their own source.

    Args:
        dataset: a `Dataset`; not a `DatasetDict`, of which one split is one, nor a streamed one.
        image: the column of encoded images; None: the only one of the type `Image`.
        label: the column of labels: integers or text, whose values are classes, sorted. "auto": the only
            `ClassLabel`, or "label", if there is one; None: batches have none. `source.classes` has the
            names of a `ClassLabel`.
        columns: further columns: numbers, bool, vectors of numbers, text, or binary.
        threads: that call a dataset in memory, as of `from_dataset`.

    Raises:
        TypeError: not a `Dataset`.
        InvalidArgumentError: a column that is not there, or of another type; a null, with its row (a
            ValueError).
    """
    _check(dataset)
    names = [] if columns is None else _column_names("columns", columns)
    for name in names:
        if name in ("image", "label") or names.count(name) > 1:
            raise InvalidArgumentError(f"columns has {name!r}, which is the name of another column")
    image = _image_column(dataset, image)
    label = _label_column(dataset, label)
    images = _images(dataset, image)
    beside, classes = _beside(dataset, label, names)
    described = f"{dataset.num_rows} rows"
    source = _source(images, beside, classes, described, threads)
    if dataset._indices is None:
        return source
    return source.subset(dataset._indices.column(0).to_numpy())


def _check(dataset: Any) -> None:
    if isinstance(dataset, dict):
        raise TypeError(f"dataset has several splits ({', '.join(map(str, dataset))}); give one: dataset[…]")
    if not all(hasattr(dataset, name) for name in ("data", "features", "_indices")):
        hint = "; load it without streaming=True" if type(dataset).__name__.startswith("Iterable") else ""
        raise TypeError(f"dataset must be a datasets.Dataset, not {type(dataset).__name__}{hint}")
    if dataset.num_rows == 0:
        raise InvalidArgumentError("dataset has no rows")


def _of_type(dataset: Any, kind: str) -> list[str]:
    return [name for name, feature in dataset.features.items() if type(feature).__name__ == kind]


def _known(dataset: Any, name: str) -> str:
    if name not in dataset.features:
        raise InvalidArgumentError(f"there is no column {name!r}; there is {', '.join(dataset.features)}")
    return name


def _image_column(dataset: Any, image: str | None) -> str:
    if image is not None:
        return _known(dataset, _column_name("image", image))
    found = _of_type(dataset, "Image")
    if len(found) == 1:
        return found[0]
    has = f"{len(found)} columns of the type Image" if found else "no column of the type Image"
    raise InvalidArgumentError(
        f"dataset has {has}; name one by image: {', '.join(found or dataset.features)}"
    )


def _label_column(dataset: Any, label: str | None) -> str | None:
    if label != "auto":
        return None if label is None else _known(dataset, _column_name("label", label))
    found = _of_type(dataset, "ClassLabel")
    if len(found) == 1:
        return found[0]
    return "label" if "label" in dataset.features else None


class _Images(NamedTuple):
    """A column of images: the bytes of each, in parts, and beside them the paths."""

    contents: list[Any]  # binary arrays of pyarrow
    paths: list[Any] | None  # string arrays, of the same rows


def _images(dataset: Any, name: str) -> _Images:
    from pyarrow import types

    chunks = [chunk for chunk in dataset.data.column(name).chunks if len(chunk)]
    paths = None
    kind = chunks[0].type
    if types.is_struct(kind) and {"bytes", "path"} <= {field.name for field in kind}:
        parts = [dict(zip([field.name for field in kind], chunk.flatten())) for chunk in chunks]
        chunks, paths = [part["bytes"] for part in parts], [part["path"] for part in parts]
        kind = chunks[0].type
    if not (types.is_binary(kind) or types.is_large_binary(kind)):
        raise InvalidArgumentError(f"column {name!r} is {kind}, no encoded images")
    first = 0
    for i, chunk in enumerate(chunks):
        nulls = np.asarray(chunk.is_null()) if chunk.null_count else np.zeros(len(chunk), bool)
        if paths is not None and paths[i].null_count:
            nulls = nulls & np.asarray(paths[i].is_null())
        elif paths is not None:
            nulls = np.zeros(len(chunk), bool)
        if nulls.any():
            raise InvalidArgumentError(f"row {first + nulls.argmax()} of column {name!r} has no image")
        first += len(chunk)
    return _Images(chunks, paths)


def _beside(
    dataset: Any, label: str | None, names: list[str]
) -> tuple[dict[str, npt.NDArray[Any] | list[Any]], list[str]]:
    """The labels and columns in memory, by their names in a batch, and the class names."""
    described = type(dataset).__name__
    beside: dict[str, Any] = {}
    classes: list[str] = []
    if label is not None:
        labels = _tables.rows_of(described, label, dataset.data.column(label))
        if isinstance(labels, list):
            classes = sorted(set(labels))
            numbers = {name: number for number, name in enumerate(classes)}
            labels = [numbers[name] for name in labels]
        elif labels.dtype.kind not in "iu" or labels.ndim != 1:
            raise InvalidArgumentError(f"column {label!r} has no labels, which are integers or text")
        else:
            classes = list(getattr(dataset.features[label], "names", None) or [])
        beside["label"] = np.asarray(labels, np.int64)
        unnamed = np.flatnonzero((beside["label"] < 0) | (beside["label"] >= len(classes)))
        if classes and len(unnamed):
            raise InvalidArgumentError(
                f"label {beside['label'][unnamed[0]]} of row {unnamed[0]} has no class name; leave the "
                "labels out, if they are unknown: label=None"
            )
    for name in names:
        beside[name] = _tables.rows_of(described, _known(dataset, name), dataset.data.column(name))
    return beside, classes


def _source(
    images: _Images, beside: dict[str, Any], classes: list[str], described: str, threads: int
) -> Source:
    """Of all rows, without the dataset's indices."""
    if all(chunk.null_count == 0 for chunk in images.contents):
        found = _runs(images.contents)
        if found is not None:
            encoded = [os.fsencode(name) for name in classes]
            native = _stoker.ranges(*found, beside, encoded, f"from_hf({described})")
            spec = {"kind": "dataset", "key": uuid.uuid4().hex}
            return Source(native, spec, f"stoker.from_hf({described})")
    elif images.paths is not None and all(chunk.null_count == len(chunk) for chunk in images.contents):
        paths = [path for chunk in images.paths for path in chunk.to_pylist()]
        further = {name: rows for name, rows in beside.items() if name != "label"}
        return files(paths, beside.get("label"), columns=further, class_names=classes or None)
    for name, rows in beside.items():
        if isinstance(rows, list):
            raise InvalidArgumentError(
                f"column {name!r} is text, which comes with images in files only; save the dataset by "
                "save_to_disk(), and open it by load_from_disk()"
            )
    return from_dataset(_Rows(images, beside), threads=threads, class_names=classes or None)


class _Rows:
    """The rows of a dataset in memory, as `from_dataset` takes them."""

    def __init__(self, images: _Images, beside: dict[str, npt.NDArray[Any]]) -> None:
        self._images = images
        self._beside = beside
        self._firsts = np.cumsum([0, *[len(chunk) for chunk in images.contents]]).tolist()

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def __getitem__(self, i: int) -> dict[str, Any]:
        part = bisect_right(self._firsts, i) - 1
        row = i - self._firsts[part]
        content = self._images.contents[part][row]
        if content.is_valid:
            image: Any = memoryview(content.as_buffer())
        else:
            assert self._images.paths is not None
            image = self._images.paths[part][row].as_py()
        return {"image": image, **{name: rows[i] for name, rows in self._beside.items()}}


def _runs(contents: list[Any]) -> tuple[list[bytes], list[tuple[int, int, npt.NDArray[np.int64]]]] | None:
    """The files that pyarrow has mapped, and where in them each array's rows are; None: some are in memory.

    pyarrow does not say which file a buffer is of, and a table may be a slice of one, or several together;
    the system knows what is mapped at the buffer's address.
    """
    mapped = _mapped_files()
    begins = [begin for begin, *_ in mapped]
    numbers: dict[bytes, int] = {}
    runs = []
    for array in contents:
        _, offsets, data = array.buffers()
        wide = np.int64 if str(array.type) == "large_binary" else np.int32
        ends = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        if data is None:
            return None
        at = bisect_right(begins, data.address) - 1
        if at < 0 or data.address + ends[-1] > mapped[at][1]:
            return None
        begin, _, offset, path = mapped[at]
        place = offset + data.address - begin
        if path not in numbers and not _has(path, place + int(ends[0]), data, int(ends[0]), int(ends[-1])):
            return None
        runs.append((numbers.setdefault(path, len(numbers)), place, ends))
    return list(numbers), runs


def _mapped_files() -> list[tuple[int, int, int, bytes]]:
    """What this process has mapped: (begin, end, offset in the file, path), by address."""
    found = []
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            fields = line.rstrip(b"\n").split(None, 5)
            if len(fields) == 6 and fields[5].startswith(b"/"):
                begin, end = (int(address, 16) for address in fields[0].split(b"-"))
                found.append((begin, end, int(fields[2], 16), fields[5].replace(b"\\012", b"\n")))
    return found


def _has(path: bytes, offset: int, data: Any, begin: int, end: int) -> bool:
    """Whether the file with this path has the mapped bytes still: it may have been replaced since."""
    expected = data.slice(begin, min(end - begin, 4096)).to_pybytes()
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return bool(file.read(len(expected)) == expected)
    except OSError:
        return False
