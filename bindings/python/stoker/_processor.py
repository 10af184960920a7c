"""processor: images to the arrays that vision models take, as Hugging Face's image processors make them."""

from __future__ import annotations

import importlib
import json
import operator
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker import _checks, _decode, _options, _stoker
from stoker._errors import InvalidArgumentError, NotFoundError
from stoker._ragged import Ragged
from stoker._runtime import Runtime

_DTYPES = ("float32", "bfloat16", "float16", "uint8")
_RESAMPLERS = ("torchvision", "pillow")
_FILES = ("processor_config.json", "preprocessor_config.json")
_LONGEST = 1 << 20  # bytes of a configuration


def processor(
    config: str | os.PathLike[Any] | Mapping[str, Any],
    *,
    dtype: Any = "float32",
    resampler: str = "torchvision",
    exif_orientation: bool = True,
    max_image_pixels: int = _options.DEFAULTS["max_pixels"],
    max_scans: int = _options.DEFAULTS["max_scans"],
    accept_truncated: bool = False,
    accept_16_bits: bool = False,
    memory_budget: int = 0,
    **overrides: Any,
) -> Processor:
    """Reads the configuration of an image processor of Hugging Face, and returns a `Processor` that makes the
    same arrays from the bytes of images, on all cores and without the GIL.

        processor = stoker.processor({"image_processor_type": "Qwen2VLImageProcessor"})  # or a model's folder
        inputs = processor(["photo.jpg", "photo.jpg"])
        inputs["pixel_values"], inputs["image_grid_thw"]

    Classes: CLIP, Siglip, Siglip2 (NaFlex), ViT, Bit (DINOv2), DINOv3ViT, Qwen2VL (also Qwen2.5-VL and
    Qwen3-VL), LlavaNext, LlavaOnevision and GotOcr2 (InternVL), with or without `Fast`. Arrays are those of
    transformers 5.24.0 for `PIL.Image.open(…)`, to the bit; DINOv3ViT's, which resizes floats, to about 1e-4.

    Args:
        config: a folder with `processor_config.json` or `preprocessor_config.json`; the path of such a file;
            or its content as a dict.
        dtype: of `pixel_values`: "float32", "bfloat16" (of ml_dtypes), "float16", or "uint8": pixels that a
            device normalises, by `Processor.mean` and `Processor.std`.
        resampler: "torchvision": resize and round as the processors of torchvision, which transformers uses
            where torchvision is installed. "pillow": as the processors of Pillow (`backend="pil"`).
        exif_orientation: turn images as their EXIF tag says, as transformers turns those it loads from paths.
        max_image_pixels: a limit on images, `max_pixels` of `Loader`; here that is a key of configurations.
        max_scans, accept_truncated: as for `Loader`.
        accept_16_bits: take the upper 8 bits of images of 16 bits, as Pillow does with colours.
        memory_budget: bytes of working memory for all threads together, without the arrays. 0: as for
            `Runtime`.
        overrides: keys of the configuration with other values: `crop_to_patches=True`, `max_pixels=1003520`.

    Raises:
        NotFoundError: the folder has no configuration.
        ValueError: an unknown class or key, a key twice, or a value out of range; the message names the file
            and the key. The configuration neither rescales nor normalizes, and `dtype` is not "uint8".
        ResourceExhaustedError: `pixel_values` of each image would take more than 4 GiB.
        UnimplementedError: a filter or a class that the resampler does not have.
        TypeError: naming the argument.
    """
    path, text = _read(config)
    name = "uint8" if dtype == np.uint8 else _options.checked_one("dtype", dtype)
    _checks.choice("dtype", name, _DTYPES)
    spec = {
        "config": text,
        "overrides": _json(overrides),
        "resampler": _checks.choice("resampler", resampler, _RESAMPLERS),
        "dtype": name,
        "exif_orientation": _checks.boolean("exif_orientation", exif_orientation),
        "max_pixels": _options.checked_one("max_pixels", max_image_pixels),
        "max_scans": _options.checked_one("max_scans", max_scans),
        "accept_truncated": _options.checked_one("accept_truncated", accept_truncated),
        "accept_16_bits": _options.checked_one("accept_16_bits", accept_16_bits),
    }
    return _made(spec, path, _checks.integer("memory_budget", memory_budget, 0, 2**63 - 1))


def _made(spec: dict[str, Any], path: bytes, memory_budget: int) -> Processor:
    made = object.__new__(Processor)
    made._spec = spec
    made._of = path, memory_budget
    made._native = _stoker.Processor(json.dumps(spec), path, memory_budget)
    return made


class Processor:
    """Makes the arrays that a vision model takes from encoded images; `stoker.processor` makes one.

    The last transform of a `Loader` may be one: docs/processors.md. Thread-safe; threads do not wait for each
    other. Usable after a fork. Pickled as its configuration and options. Working memory, besides the arrays:
    for each worker the bytes of a file, the resized image, and the image itself if it is tiled or has alpha.
    """

    _native: _stoker.Processor
    _spec: dict[str, Any]
    _of: tuple[bytes, int]

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._spec, *self._of)

    def __repr__(self) -> str:
        config = json.loads(self._spec["config"])
        config = config.get("image_processor", config)
        name = config.get("image_processor_type", config.get("feature_extractor_type"))
        return f"<stoker.Processor {name} {self._spec['dtype']}>"

    def __init__(self) -> None:
        raise TypeError("use stoker.processor(config)")

    def __call__(
        self,
        images: Any,
        *,
        out: npt.NDArray[Any] | None = None,
        runtime: Runtime | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Processes an image on the calling thread, or a list of images on the workers of a `Runtime`.

        Args:
            images: an image as for `decode_image` (bytes or a path), or an iterable of them.
            out: memory for `pixel_values`: a writable, contiguous array, buffer or CPU tensor of a type that
                NumPy has, at least as long; of a bfloat16 tensor give `tensor.view(torch.uint8)`. Concurrent
                calls must not have the same.
            runtime: the Runtime whose workers process lists; None means the default one.

        Returns:
            A dict of arrays, named as Hugging Face names them, in C order. `pixel_values` owns its memory,
            64-byte aligned, or is a view of `out`.
            CLIP, Siglip, ViT, Bit, DINOv3ViT: (images, 3, height, width).
            Qwen2VL: (patches of all images, channels x times x height x width), and `image_grid_thw`: 1, and
            the rows and columns of patches, (images, 3) int64.
            Siglip2: (images, max_num_patches, height x width x channels), with zeros after an image's
            patches; `spatial_shapes`, (images, 2) int64; and `pixel_attention_mask`, which is 0 for those
            zeros, (images, max_num_patches) int32.
            LlavaNext, LlavaOnevision: (images, most tiles, 3, height, width), with zeros after an image's
            tiles, or with `do_pad=False` (tiles, 3, height, width); and `image_sizes`: height and width,
            (images, 2) int64. The latter also has `batch_num_images`, 1 for each, (images,) int64.
            GotOcr2: (tiles of all images, 3, height, width), and `num_patches`: the tiles of each image,
            (images,) int64.

        Raises:
            Error: of the first image that cannot be processed; begins with `images[3]:`, or names the file.
                Besides the errors of `decode_image`, where transparent pixels become white: the transparent
                colour of a GIF, and of a PNG that has 16 bits or is in an ICO.
            ValueError: an aspect ratio that the processor does not take; images of several sizes, where it
                does not resize them to one; `out` is too short.
            ResourceExhaustedError: the arrays of an image take more than 4 GiB, or those of all more than the
                machine's available memory.
            TypeError: naming the argument.
        """
        _checks.numpy_has(self._spec["dtype"])
        memory = None if out is None else _memory(out)
        if isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(
            images, "__array__"
        ):
            return _named(*self._native.one(*_decode._input(images), memory))
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be a stoker.Runtime, not {runtime!r:.80}")
        if not isinstance(images, Iterable):
            raise TypeError(f"images must be an image or a list of images, not {type(images).__name__}")
        given = [_decode._input(image, f"images[{i}]") for i, image in enumerate(images)]
        native = _stoker.Runtime() if runtime is None else runtime._native
        return _named(*self._native.all(given, memory, native))

    def plan(self, height: int, width: int) -> dict[str, Any]:
        """Computes what an image of this size, turned by its EXIF tag, becomes. Reads no pixels.

        Returns:
            The shape of its `pixel_values`, and the other arrays that a call with that image returns.

        Raises:
            ValueError: an aspect ratio that the processor does not take; a side that is not 1 to 65535.
        """
        sides = [_checks.integer(name, side, 1, _checks.MOST_PIXELS)
                 for name, side in (("height", height), ("width", width))]  # fmt: skip
        shape, figures = self._native.plan(*sides)
        return {"pixel_values": tuple(shape), **figures}

    @property
    def mean(self) -> npt.NDArray[np.float32]:
        """What a device subtracts from the channels of "uint8" pixels, 0 to 255: (3,) float32."""
        return self._native.normalised[0]

    @property
    def std(self) -> npt.NDArray[np.float32]:
        """What it then divides them by, which gives the float32 values: (3,) float32.

        To the bit if the configuration normalizes and the resampler is "torchvision".
        """
        return self._native.normalised[1]


def _named(pixels: npt.NDArray[Any], figures: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {"pixel_values": pixels, **figures}


def cu_seqlens(grid: Any) -> Any:
    """Returns where the patches of each image begin in `pixel_values`, as attention over packed images needs.

        grid = np.array([[1, 2, 4], [1, 4, 6]])  # image_grid_thw of a batch
        stoker.cu_seqlens(grid)  # 0, 8, 32

    Args:
        grid: `image_grid_thw`: (images, 3) integers of NumPy, PyTorch or JAX; frames, and rows and columns of
            patches in each. Or a `Ragged` of them, whose rows are samples. Not of a function that JAX traces.

    Returns:
        (frames of all images + 1,) int32, from 0 to the number of patches; an array of the kind of `grid`.

    Raises:
        ValueError: another shape.
        TypeError: not an array.
    """
    if isinstance(grid, Ragged):
        grid = grid.values
    if not hasattr(grid, "__array__"):
        raise TypeError(f"grid must be an array, not {grid!r:.80}")
    if grid.ndim != 2 or grid.shape[1] != 3:
        raise InvalidArgumentError(f"grid must have the shape (images, 3), not {tuple(grid.shape)}")
    library = type(grid).__module__.partition(".")[0]
    if library == "torch":
        torch = sys.modules[library]
        ends = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0]).cumsum(0)
        return torch.nn.functional.pad(ends, (1, 0)).to(torch.int32)
    numbers: Any = importlib.import_module("jax.numpy") if library.startswith("jax") else np
    ends = numbers.cumsum(numbers.repeat(grid[:, 1] * grid[:, 2], grid[:, 0]))
    return numbers.pad(ends, (1, 0)).astype(numbers.int32)


def _read(config: Any) -> tuple[bytes, str]:
    """Returns the path and the text of a configuration; in a folder, of the file that transformers reads."""
    if isinstance(config, Mapping):
        return b"", _json(config)
    if not isinstance(config, (str, os.PathLike)):
        raise TypeError(f"config must be a path or a dict, not {type(config).__name__}")
    path = pathlib.Path(os.fsdecode(config))
    paths = [path / name for name in _FILES] if path.is_dir() else [path]
    found = [each for each in paths if each.is_file()]
    if not found:
        raise NotFoundError(f"{path} has neither {_FILES[0]} nor {_FILES[1]}" if path.is_dir() else
                            "there is no such file", os.fspath(path))  # fmt: skip
    for each in found:
        with each.open("rb") as file:
            text = file.read(_LONGEST + 1)
        if path.is_file() or each.name != _FILES[0] or _has_image_processor(text):
            try:
                return os.fsencode(each), text.decode()
            except UnicodeDecodeError as error:
                raise InvalidArgumentError(
                    f"the configuration is not JSON: {error}", os.fspath(each)
                ) from None
    raise InvalidArgumentError(f"there is no image_processor, and no {_FILES[1]}", os.fspath(found[0]))


def _has_image_processor(text: bytes) -> bool:
    """Returns true also of text that is not an object, for the error that names its file."""
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(keys, dict) or "image_processor" in keys


def _json(keys: Mapping[str, Any]) -> str:
    """Returns the text of an object."""
    for key, value in keys.items():
        try:
            json.dumps(value, allow_nan=False, default=operator.index)
        except TypeError as error:
            raise TypeError(f"{key} is not a value of JSON: {error}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"{key} is not a value of JSON: {error}") from None
    return json.dumps(dict(keys), default=operator.index)


def _memory(out: Any) -> npt.NDArray[np.uint8]:
    """Returns the bytes of an array, without a copy."""
    array = np.asarray(out if hasattr(out, "__array__") else memoryview(out))
    if array.dtype.hasobject or (array is not out and array.base is None):
        raise TypeError(f"out must be an array that shares its memory, not {type(out).__name__}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise InvalidArgumentError("out must be a writable array without gaps, in C order")
    return array.reshape(-1).view(np.uint8)
