"""Exceptions: one class for each kind of error, all derived from `Error`."""

from __future__ import annotations

import errno
from typing import Any, ClassVar


class Error(Exception):
    """An error caused by data, options or the system.

    Attributes:
        code: the kind, by gRPC's and TensorFlow's names: "DATA_LOSS", "NOT_FOUND", …
        cause: what is wrong, in one sentence.
        file: the file with the error, or None.
        offset: the position in that file, in bytes from its start, or None.
        advice: what to do about it; may be empty.
    """

    code: str = "UNKNOWN"
    _errno: ClassVar[int | None] = None

    def __init__(
        self,
        cause: str,
        file: str | None = None,
        offset: int | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.file = file
        self.offset = offset
        self.advice = advice
        if isinstance(self, OSError):
            for name, value in (("errno", self._errno), ("strerror", cause), ("filename", file)):
                setattr(self, name, value)

    def __str__(self) -> str:
        where = ""
        if self.file is not None:
            at = "" if self.offset is None else f" at byte {self.offset}"
            where = f"{self.file}{at}: "
        text = where + self.cause + (f". {self.advice}" if self.advice else "")
        return text if text.endswith(".") else text + "."

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cause, self.file, self.offset, self.advice)


class InvalidArgumentError(Error, ValueError):
    """An invalid option, or options that contradict each other."""

    code = "INVALID_ARGUMENT"


class NotFoundError(Error, FileNotFoundError):
    """A file or folder does not exist."""

    code = "NOT_FOUND"
    _errno = errno.ENOENT


class PermissionDeniedError(Error, PermissionError):
    """A file or folder exists, but access is denied."""

    code = "PERMISSION_DENIED"
    _errno = errno.EACCES


class DataLossError(Error):
    """Bytes that cannot be decoded; `file` and `offset` say which."""

    code = "DATA_LOSS"


class ResourceExhaustedError(Error, MemoryError):
    """A memory budget, a limit set by an option (`lent_batches`) or by the system was reached."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error, RuntimeError):
    """The object's state does not allow this call: after a fork, or when the folder has changed."""

    code = "FAILED_PRECONDITION"


class UnimplementedError(Error, NotImplementedError):
    """A format or an option that stoker does not support."""

    code = "UNIMPLEMENTED"


class CancelledError(Error):
    """The loader was closed, or the wait was cancelled."""

    code = "CANCELLED"


class UnavailableError(Error, OSError):
    """Reading failed in a way that may be temporary."""

    code = "UNAVAILABLE"
    _errno = errno.EIO


class MemoryWarning(UserWarning):
    """The program holds batches larger in total than the Runtime's memory budget; or the images of
    Parquet files do not fit into their cache; or memory that should be pinned for a GPU could not be.
    """


class SkippedFilesWarning(UserWarning):
    """The folder has image files that are skipped because of their extension: JPEG XL, ICO, …; or archives
    have samples without an image.
    """


class CropIndexWarning(UserWarning):
    """The folder's index cannot be used, or is older than the folder, which was therefore listed.
    Photographs that the index does not have are decoded without it.
    """


class EpochWarning(UserWarning):
    """The program may train on the same epoch again:

    - A third loader of the same options begins with epoch 0, after two that are gone. Keep one loader, or
      give `start_epoch`.
    - Keras' `fit` begins with a later epoch than the loader of its dataset. Use
      `stoker.tensorflow.follow_epochs`; with `repeat()` or `steps_per_epoch`, give `start_epoch`.
    - A second `fit` with `follow_epochs` begins with epoch 0 again. Give `initial_epoch`, or leave out the
      callback.
    """


class CacheWarning(UserWarning):
    """The cache of remote objects cannot be written to, or its disk fails or is full: samples that it does
    not have are read from their store in each epoch.
    """


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        NotFoundError,
        PermissionDeniedError,
        DataLossError,
        ResourceExhaustedError,
        FailedPreconditionError,
        UnimplementedError,
        CancelledError,
        UnavailableError,
    )
}


def counted(number: int, one: str, many: str) -> str:
    """ "1 row", "2 rows": for messages."""
    return f"{number} {one if number == 1 else many}"


def from_native(code: str, cause: str, file: str | None, offset: int | None, advice: str) -> Error:
    """Returns the exception of an error of the library. For stoker._stoker."""
    error: Error = _BY_CODE.get(code, Error)(cause, file, offset, advice)
    if type(error) is Error:
        error.code = code
    return error
