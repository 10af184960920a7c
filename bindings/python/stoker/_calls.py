"""Calls: asks a Python object for samples, in the form that the library expects."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from stoker import _checks, _pixels, _user_code
from stoker._errors import Error, InvalidArgumentError

# The encoded image, or in a tuple the path of its file.
_Image = Union[memoryview, "tuple[bytes]"]
# An error's code, cause, file, offset and advice.
_Failure = tuple[str, bytes, Optional[bytes], Optional[int], bytes]


class Calls:
    """The samples of an object with `__len__` and `__getitem__`, which `stoker.from_dataset` describes."""

    def __init__(self, dataset: Any, name: str | None = None) -> None:
        """`name`: of an object whose samples are images only; it is then not asked for a sample now."""
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise TypeError(f"dataset must have __len__ and __getitem__, which {dataset!r:.80} has not")
        if isinstance(dataset, (str, bytes)):
            raise TypeError(
                f"dataset must be an object that has samples, not {dataset!r:.80}; "
                "stoker.image_folder opens a folder"
            )
        self.name = type(dataset).__name__ if name is None else name
        self.dataset = dataset
        self._is_users = name is None  # other objects raise errors that name a file and a row
        self._size = len(dataset)
        if not 0 < self._size < 2**32:
            raise InvalidArgumentError(f"{self.name} has {self._size} samples; it must have 1 to 2**32 - 1")
        rows = self._first_sample() if name is None else {}
        # The fields other than the image, by name, with the row of sample 0; the label is the first.
        first_rows = [(name, _first_row(name, row)) for name, row in rows.items()]
        self.first_rows = sorted(first_rows, key=lambda row: row[0] != "label")

    def _first_sample(self) -> dict[str, Any]:
        """Returns the fields of sample 0 other than its image; TypeError if it is not an image."""
        sample = self.dataset[0]
        try:
            image, rows = _parts(sample)
        except TypeError as error:
            raise TypeError(f"{self.name}[0]: {error}") from None
        try:
            _encoded(image)
        except TypeError as error:
            raise TypeError(f"{self.name}[0]: {error}") from None
        except Exception:
            pass  # a bad sample, which on_bad may handle
        return rows

    def __len__(self) -> int:
        return self._size

    @property
    def has_labels(self) -> bool:
        return any(name == "label" for name, _ in self.first_rows)

    def load(self, sample: int) -> tuple[_Image, bytes] | _Failure:
        """Returns a sample's image and the bytes of its rows, or what went wrong."""
        try:
            return _user_code.called(self._loaded, sample)
        except BaseException as error:  # of the user's code, on one of stoker's threads
            return _failure(error, f"{self.name}[{sample}]" if self._is_users else None)

    def _loaded(self, sample: int) -> tuple[_Image, bytes]:
        image, rows = _parts(self.dataset[sample])
        return _encoded(image), b"".join(row.tobytes() for row in self._cast(rows))

    def image(self, sample: int) -> Any:
        """Returns the bytes of a sample's image."""
        image = _encoded(_parts(self.dataset[sample])[0])
        if isinstance(image, memoryview):
            return bytes(image)
        with open(image[0], "rb") as file:
            return file.read()

    def rows(self, sample: int) -> list[Any]:
        """Returns the rows of a sample, as they are in a batch."""
        return [row[()] for row in self._cast(_parts(self.dataset[sample])[1])]

    def _cast(self, rows: dict[str, Any]) -> list[npt.NDArray[Any]]:
        if len(rows) != len(self.first_rows) or any(name not in rows for name, _ in self.first_rows):
            has, wanted = (", ".join(["image", *names]) for names in (rows, dict(self.first_rows)))
            raise TypeError(f"it has {has}; sample 0 has {wanted}")
        return [_row_like(first, name, rows[name]) for name, first in self.first_rows]


def _failure(error: BaseException, sample: str | None) -> _Failure:
    """Puts `sample` before the cause of an error with a file; other errors get it as their file."""
    if not isinstance(error, Error):
        return "UNAVAILABLE", _encoded_text(_user_code.described(error)), None, None, b""
    file = None if error.file is None else os.fsencode(error.file)
    cause = error.cause if sample is None or file is None else f"{sample}: {error.cause}"
    return error.code, _encoded_text(cause), file, error.offset, _encoded_text(error.advice)


def _encoded_text(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


def _parts(sample: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the image of a sample, and its other fields by name."""
    if isinstance(sample, tuple):
        if len(sample) not in (1, 2):
            raise TypeError(
                f"a tuple of {len(sample)}; a sample is (image, label), or a dictionary with an image"
            )
        return sample[0], dict(zip(("label",), sample[1:]))
    if not isinstance(sample, dict):
        return sample, {}
    if "image" in sample:
        return sample["image"], {name: value for name, value in sample.items() if name != "image"}
    if not _is_hugging_face(sample) or not sample.keys() <= {"bytes", "path"}:
        keys = ", ".join(map(repr, sample))
        raise TypeError(f'a dictionary with {keys or "no keys"}, and no "image"; give the image this key')
    return sample, {}


def _is_hugging_face(image: Any) -> bool:
    return isinstance(image, dict) and bool({"bytes", "path"} & image.keys())


def _encoded(image: Any) -> _Image:
    if _is_hugging_face(image):
        content = image.get("bytes")
        image = image.get("path") if content is None else content
    if isinstance(image, (str, os.PathLike)):
        path = os.fsencode(image)
        if not path:
            raise ValueError("the path of its image is empty")
        if b"\0" in path:
            raise ValueError(f"the path of its image has a NUL byte: {path!r:.80}")
        return (path,)
    pixels = _pixels.encoded(image)
    if pixels is not None:
        return memoryview(pixels)
    try:
        buffer: Any = np.asarray(image) if hasattr(image, "__array__") else image
        view = memoryview(buffer)
    except TypeError:
        raise TypeError(
            f"its image is {_kind(image)}; it must be encoded bytes (JPEG, PNG, WebP), the path of a file, "
            "or pixels (an image of Pillow, an array or a tensor of uint8)"
        ) from None
    if view.itemsize != 1 or view.ndim != 1:
        raise TypeError(
            f"its image is {image!r:.50}, of shape {view.shape} and type {view.format!r}; encoded bytes are "
            "one row of bytes, and pixels are uint8 (height, width, 3)"
        )
    return view if view.contiguous else memoryview(bytes(view))


def _first_row(name: str, value: Any) -> npt.NDArray[Any]:
    if not isinstance(name, str) or not name or "\0" in name or not _checks.is_unicode(name):
        raise InvalidArgumentError(f"sample 0 has the name {name!r:.80}; names are str")
    row = np.asarray(value)
    if row.dtype.name not in _checks.ELEMENTS:
        raise TypeError(
            f"{name!r} of sample 0 is {_kind(value)}; it must be a number or an array of numbers (strings "
            "that are known beforehand go to stoker.files(columns=…))"
        )
    if row.size == 0 or row.ndim > 7:
        raise InvalidArgumentError(f"{name!r} of sample 0 has the shape {row.shape}; batches cannot have it")
    return row.astype(row.dtype.newbyteorder("="))


def _row_like(first: npt.NDArray[Any], name: str, value: Any) -> npt.NDArray[Any]:
    row = np.asarray(value)
    integers = row.dtype.kind in "iu" and first.dtype.kind in "iu"
    if row.shape != first.shape or not (integers or np.can_cast(row.dtype, first.dtype, "same_kind")):
        ragged = "; pad it to one shape" if row.ndim == first.ndim and row.shape != first.shape else ""
        raise TypeError(
            f"{name!r} is {row.dtype} of shape {row.shape}; that of sample 0 is {first.dtype} of shape "
            f"{first.shape}{ragged}"
        )
    cast = row.astype(first.dtype)
    if integers and (cast != row).any():
        raise ValueError(f"{name!r} is {value!r:.50}, which {first.dtype}, the type of sample 0, cannot hold")
    return cast


def _kind(value: Any) -> str:
    return f"{value!r:.50} ({type(value).__name__})"
