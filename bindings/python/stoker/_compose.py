"""Compose: transforms one image, without a loader."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import multiprocessing.util
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _options, _stoker
from stoker._errors import InvalidArgumentError
from stoker._explain import explained, places, spec_of
from stoker._mix import split
from stoker._parameters import Transform, checked


class Compose:
    """Applies transforms to one image at a time: for serving, and to try transforms out.

    The result has the same bytes as the row that a `Loader` with the same options makes from the image.
    Thread-safe; threads do not wait for each other, and the GIL is released during calls. Starts no thread;
    usable after a fork.

        preprocess = stoker.Compose([stoker.Resize(256), stoker.CenterCrop(224)])
        image = preprocess(request.body)  # (224, 224, 3) uint8

    Without transforms, `Compose([])`, the result is the whole image, as from `decode_image`, in the dtype and
    layout that are given.

    Random transforms draw again in each call, so it may be the `transform=` of a torchvision dataset:
    call n draws what a loader with the same seed draws at position n of epoch 0. Processes forked or
    spawned from this one (a torch DataLoader's workers) draw differently from each other, and identically
    in each run if `multiprocessing` started them. Which of several threads makes call n differs from run to
    run: there, pass the position. So do copies made by pickle or `copy`: `Pool.map` and
    `ProcessPoolExecutor.map` pickle one for each task, whose draws also depend on the worker that runs the
    task. A call with `position` makes the draws of that position.

    Args:
        transforms: as for `Loader`.
        dtype: "uint8": 0 to 255; "float16", "bfloat16" (of ml_dtypes), "float32": value / 255, or what
            `Normalize` makes of it.
        layout: "NHWC": images are (height, width, 3); "NCHW": (3, height, width), as torch has them.
        exif_orientation: turn images as their EXIF tag says.
        decode: "full", or "scaled": decode large JPEGs at a reduced size, as for `Loader`.
        seed: of random transforms, 0 to 2**64 - 1. Give each rank a different one.
        max_pixels, max_scans: as for `Loader`: limits on images.
        accept_truncated: decode truncated JPEGs as far as they go, as for `Loader`.
        accept_16_bits: take the upper 8 bits of PNGs of 16 bits, as for `Loader`.
        memory_budget: bytes of working memory for all threads together, without the results. 0: as for
            `Runtime`. Between calls at most 32 MiB are kept for each thread that was in a call at the same
            time; a call that finds no room frees them. `Compose([])` also keeps up to 64 MiB of results that
            were freed, for the next ones, outside of the budget.

    Raises:
        ValueError, TypeError: naming the option or the transform.
    """

    def __init__(
        self,
        transforms: Iterable[Transform],
        *,
        dtype: Any = "uint8",
        layout: str = "NHWC",
        channels: str = "rgb",
        exif_orientation: bool = True,
        decode: str = "full",
        seed: int = 0,
        max_pixels: int = _options.DEFAULTS["max_pixels"],
        max_scans: int = _options.DEFAULTS["max_scans"],
        accept_truncated: bool = False,
        accept_16_bits: bool = False,
        memory_budget: int = 0,
    ) -> None:
        given = {
            "dtype": dtype,
            "layout": layout,
            "channels": channels,
            "exif_orientation": exif_orientation,
            "decode": decode,
            "max_pixels": max_pixels,
            "max_scans": max_scans,
            "accept_truncated": accept_truncated,
            "accept_16_bits": accept_16_bits,
        }
        images, processor, mix, own = split(transforms)
        if processor is not None:
            raise TypeError(f"{processor!r} cannot be a transform of Compose; call it on the image")
        if mix is not None:
            raise TypeError(
                f"{mix!r:.80} mixes the rows of a batch, and Compose has one image; give it to a Loader"
            )
        if own is not None:
            raise TypeError(
                f"{own!r:.80} is called with batches of a Loader; call it yourself on Compose's image"
            )
        self._transforms = checked(images)
        self._options = _options.checked(given, only_of_images=True)
        _checks.numpy_has(self._options["dtype"])
        self._memory_budget = _checks.integer("memory_budget", memory_budget, 0, 2**63 - 1)
        self._spec = spec_of(self._transforms, self._options)
        self._native = _stoker.Compose(self._spec, self._memory_budget)
        self._draws = _Draws(_checks.integer("seed", seed, 0, 2**64 - 1))

    def __call__(
        self,
        image: bytes | bytearray | memoryview | npt.NDArray[np.uint8] | Any,
        *,
        seed: int | None = None,
        epoch: int = 0,
        position: int | None = None,
    ) -> npt.NDArray[Any]:
        """Transforms one image.

        Args:
            image: the bytes of an image file, a Pillow image of mode RGB or L, or a uint8 array
                (height, width, 3), RGB, or (height, width) or (height, width, 1), gray. Each side 1 to
                65,535.
            seed: with `epoch` and `position`, determines the random transforms: a loader's seed, its epoch,
                and the sample's position in the order of that epoch. None: the Compose's own.
            epoch: 0 to 2**32 - 1.
            position: 0 to 2**64 - 1. None: the number of calls without one so far, so that each call draws
                differently; in a child process, and in a copy, with a seed of its own as well.

        Returns:
            A new array (height, width, channels), or (channels, height, width), C order.

        Raises:
            DataLossError: bytes that are not an image, or a damaged one; has the `offset`.
            UnimplementedError: an image of a format that stoker does not decode, or of 16 bits
                without `accept_16_bits`.
            ResourceExhaustedError: an image beyond max_pixels or max_scans, or too large for memory_budget.
            MemoryError: the system has no memory for the result.
            ValueError: an image too small for a `RandomCrop`, or too large for a `PadTo`; or sides, channels
                or a mode that are refused.
            TypeError: another kind of array or object.
        """
        return self._made(image, seed, epoch, position)[0]

    def _made(
        self, image: Any, seed: int | None, epoch: int, position: int | None
    ) -> tuple[npt.NDArray[Any], tuple[int, int] | None]:
        """Returns the image, and its height and width if it is padded."""
        given = self._draws.seed if seed is None else _checks.integer("seed", seed, 0, 2**64 - 1)
        key = {"seed": given, "epoch": _checks.integer("epoch", epoch, 0, 2**32 - 1)}
        if position is None:
            key["seed"], key["position"] = self._draws.next(given)
        else:
            key["position"] = _checks.integer("position", position, 0, 2**64 - 1)
        if isinstance(image, (bytearray, memoryview)):
            image = bytes(image)
        if isinstance(image, bytes):
            return self._native.of_bytes(image, **key)
        return self._native.of_pixels(_pixels(_array(image)), **key)

    def explain(self) -> str:
        """A line for each transform: its name, where it runs, and how.

        "fused": with decoding and resizing, so that it has no pass over the image of its own; "tile": on
        the resized image, in the worker's cache; "row": on the finished values. The command `stoker
        explain` measures the cost of each.
        """
        return explained(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy with its own count of calls, which draws differently from this one and other copies."""
        options = {
            **self._options,
            "seed": self._draws.seed,
            "memory_budget": self._memory_budget,
        }
        return _made, (self._transforms, options, self._draws.next_copy())

    def __repr__(self) -> str:
        lines = "".join(
            f"    {transform!r},  # {where}\n"
            for transform, where in zip(self._transforms, places(self._spec))
        )
        lines = f"\n{lines}" if lines else ""
        options = "".join(
            f", {name}={value!r}"
            for name, value in {**self._options, "seed": self._draws.seed}.items()
            if name == "dtype" or value != _options.DEFAULTS[name]
        )
        budget = f", memory_budget={self._memory_budget}" if self._memory_budget else ""
        return f"stoker.Compose([{lines}]{options}{budget})"


def _made(transforms: tuple[Transform, ...], options: dict[str, Any], copy: int) -> Compose:
    """For pickle, which passes no keywords."""
    made = Compose(transforms, **options)
    made._draws = _Draws(options["seed"], copy)
    return made


class _Draws:
    """Makes the seeds and positions of calls without a position. Thread-safe; lock-free, because a fork could
    leave a lock taken.

    Child processes and copies begin with the same count, so what distinguishes them is mixed into the seed:
    `multiprocessing` numbers its processes in the order of their start, and a Compose numbers its copies,
    alike in every run. A process that was only forked is distinguished by nothing but its id.
    """

    def __init__(self, seed: int, copy: int = 0) -> None:
        self.seed = seed
        self._copy = copy  # 0: not a copy
        self._count = itertools.count()  # next() of it is atomic
        self._copies = itertools.count(1)
        self._pid = os.getpid()
        self._forks: tuple[int, ...] = ()  # only forked, between the first process and this one
        multiprocessing.util.register_after_fork(self, _Draws._started)

    def _started(self) -> None:
        """Runs first in a process that `multiprocessing` forked."""
        parent = multiprocessing.parent_process()
        if parent is not None and parent.pid is not None and parent.pid != self._pid:
            self._forks = (*self._forks, parent.pid)
        self._pid = os.getpid()

    def _origin(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Identifies the copy and the process."""
        pid = os.getpid()
        forks = self._forks if pid == self._pid else (*self._forks, pid)
        return self._copy, _lineage(), forks

    def next(self, seed: int) -> tuple[int, int]:
        """Returns (seed, position), different ones each time."""
        origin = self._origin()
        return _hashed(seed, *origin) if any(origin) else seed, next(self._count)

    def next_copy(self) -> int:
        """Returns the number of a new copy."""
        return _hashed(*self._origin(), next(self._copies))


def _hashed(*values: int | tuple[int, ...]) -> int:
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8], "little")


def _lineage() -> tuple[int, ...]:
    """Identifies this process by the numbers of child processes, as `multiprocessing` counts them; () in the
    first one.
    """
    return tuple(multiprocessing.current_process()._identity)


def _array(image: Any) -> npt.NDArray[Any]:
    """Returns whether the value is an array or a Pillow image, which may say so by __array_interface__
    only.
    """
    if isinstance(image, (str, os.PathLike)):
        raise TypeError(
            "image must be bytes or an array, not a path; "
            f"try pathlib.Path({os.fspath(image)!r:.80}).read_bytes()"
        )
    if not (hasattr(image, "__array__") or hasattr(image, "__array_interface__")):
        raise TypeError(f"image must be bytes or an array, not {type(image).__name__}")
    mode = getattr(image, "mode", None)  # Pillow's: the shape does not say what channels mean
    if isinstance(mode, str) and mode not in ("RGB", "L"):
        raise InvalidArgumentError(
            f'image is of mode {mode!r}; it must be "RGB" or "L"; try image.convert("RGB")'
        )
    return np.asarray(image)


def _pixels(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if image.dtype != np.uint8:
        raise TypeError(f"image is an array of {image.dtype}; it must be uint8")
    if image.ndim == 2:
        image = image[:, :, np.newaxis]
    if image.ndim == 3 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3:
        raise InvalidArgumentError(
            f"image has the shape {image.shape}; it must be (height, width, 3), (height, width) "
            "or (height, width, 1)"
        )
    if not all(1 <= side <= _checks.MOST_PIXELS for side in image.shape[:2]):
        raise InvalidArgumentError(f"image has the shape {image.shape}; each side must be 1 to 65535")
    return np.ascontiguousarray(image)
