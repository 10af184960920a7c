"""Loader: turns samples into batches."""

from __future__ import annotations

import json
import operator
import os
import uuid
import warnings
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from stoker import _checks, _jax, _options, _stoker, _user_code
from stoker._batch import batch_type
from stoker._buckets import Buckets
from stoker._device_loader import DeviceLoader, SplitLoader, with_tensorflow
from stoker._errors import EpochWarning, FailedPreconditionError, InvalidArgumentError, counted
from stoker._explain import explained, spec_of
from stoker._iterator import Epoch, Iterator, no_array, no_shape
from stoker._jax import JaxLoader
from stoker._map import Map, MapCalls
from stoker._mix import BatchTransform, split
from stoker._parameters import Transform, checked, checked_views
from stoker._processor import Processor
from stoker._runtime import Runtime
from stoker._sources import Source
from stoker._watching import Monitor, Trace

if TYPE_CHECKING:
    import tensorflow as tf

# How many loaders of a spec have begun with epoch 0 and are gone, by the spec's hash.
_gone: dict[int, int] = {}

# The next batch of an iteration: its epoch, its index in it, and the position at which batch 0 begins.
Place = tuple[int, int, int]


# tools/generate.py writes the lines from `batch_size` to `pin_memory`, in the docstring, in the signature and
# in the dictionary, and the counters in the docstring of `stats`.
class Loader:
    """Batches of transformed samples, as NumPy arrays or as a `tf.data.Dataset`.

        loader = stoker.Loader(
            stoker.image_folder("photos/train"),
            [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()],
            batch_size=256, shuffle=True, seed=1)
        for epoch in range(3):
            for images, labels in loader:
                ...

    Each iteration takes the next epoch: three `for` loops see epochs 0, 1 and 2, and the next epoch is
    already being prefetched when one ends. The batches depend on the options alone: they have the same
    bytes for any number of threads, depth and reader.

    A batch is (images, labels), or images alone if the source has nothing else; further columns of `files`
    follow, and then further `views`. It is a named tuple: `batch["label"]` and `batch.label` are the labels,
    too.

    - images: (rows, height, width, 3) or (rows, 3, height, width), RGB; uint8 in 0 to 255, or float16,
      bfloat16, float32: value / 255, or normalised. Without transforms: rows of `stoker.arrays`, in
      their own type and shape.
    - labels: (rows,), int64; or rows of those that `stoker.arrays` or `files` were given. With `MixUp` or
      `CutMix`: (rows, num_classes), float32.

    With a `Processor` the images are `pixel_values`: a `Ragged`, whose rows are the patches or tiles of an
    image, or (rows, …) where all images have one size. After the source's columns come the other arrays that
    a call of it returns, with a row for each sample.

    `rows` is batch_size, except possibly in the last batch of an epoch; with `batch_tokens` it differs from
    batch to batch. The arrays are views of the memory that the workers wrote, without a copy. They are
    writable, in C order and 64-byte aligned, and stay valid for as long as the program keeps them or views of
    them, also after the loader has gone; keeping labels keeps no images. Kept batches are outside the
    Runtime's memory budget: past it there is one `MemoryWarning`, and past `lent_batches` an error.

    A loader is pickled, and copied by `copy` and `deepcopy`, as its source, transforms and options, without
    its place: the copy begins with epoch 0, and `load_state_dict` gives it the place. An object of `Map` or
    `from_dataset` must be one that can be pickled.

    Thread-safe. Iterators run side by side, each with its own epoch (and memory); threads may share an
    iterator: each batch goes to one of them. The GIL is released while waiting, and Ctrl-C ends a wait. In a
    forked child the parent's loaders raise FailedPreconditionError, and loaders made in the child work.

    Args:
        source: a `Source`: the photographs or arrays.
        transforms: a sequence of transforms (`RandomResizedCrop`, `ColorJitter`, …; docs/transforms.md has
            their order) that makes all images the same size. May be empty for arrays. The last one may be a
            `MixUp`, a `CutMix` or a `RandomChoice` of them, which mixes whole batches and makes labels soft;
            or a `Processor`, after flips alone, which makes the rows of vision-language models.
            A `Map`, the program's own function, may follow as the very last one.
        views: lists of transforms for several views of each image, at most 64 views of 256 transforms: each
            list makes an image of its own, with its own random draws, and stoker reads and decodes the file
            once for all of them (SimCLR, DINO, repeated augmentation). `transforms` must then be empty, or
            have only a `Map`. The first view is the column "image"; the others follow the columns of the
            source, as "image_1", "image_2", …, each in its own size. Views cannot have a `PadTo` and are not
            mixed. One view is the same as `transforms`.
        batch_size: rows per batch, 1 to 1,048,576; None means no limit but batch_tokens. With batch_tokens,
            the most rows of one.
        batch_tokens: the most tokens of a batch, as `tokens` counts them, or the patches of a processor, 1
            to 2,147,483,647; None means batches of batch_size rows. Batches then have any number of rows.
            Each sample comes once in an epoch, and all epochs have the same number of batches, which the
            ranks share. A sample with more tokens is a ValueError that names it. `stats()["batch_fill"]`
            says how full they are.
        tokens: the column of the source that counts against batch_tokens: integers, (n,); None means the
            patches that a processor makes.
        padding: how rows of a processor that differ in the number of patches or tiles are returned: "none"
            or "longest". "none": one after another (`Ragged`). "longest": `pixel_values` is (rows, longest,
            …), zeros after each row's own; `pixel_attention_mask`, int32 (rows, longest), is 1 for these.
            With batch_tokens, rows × longest is at most that, counted in `tokens` if these are given, and
            samples of a batch have similar numbers.
        buckets: lengths for the rows of SigLIP2's processor (NaFlex), one for each step of all processes: a
            `Buckets`, or as text "128:0.5,256:2%8": with weights, and a multiple of rows; None means all
            rows have the processor's max_num_patches. A batch has batch_tokens // length rows, and sizes
            need not be known.
        shuffle: a new order each epoch.
        seed: seed of the order and of every random transform, 0 to 2**64 - 1.
        dtype: data type of transformed images: "uint8", "float16", "bfloat16", "float32" or "uint16". Also
            takes the objects of NumPy, TensorFlow and JAX for these types. The conversion costs little, and
            rounds as astype does from float32. NumPy arrays of bfloat16 need the package ml_dtypes; tensors
            (`to_device`) do not.
        layout: memory layout of transformed images: "NHWC" or "NCHW". "NHWC": channels last; "NCHW": a
            plane for each channel, as in PyTorch.
        channels: channels of transformed images: "rgb", "gray", "rgba", or their number. "gray": one, the
            luma: of a JPEG as it is stored, which is decoded without its colours, of others Pillow's
            convert("L"). Transforms of colours compute with three equal channels; fills, means and the like
            must be the same for each. "rgba": colours and alpha, which is the largest value where a file
            has none. A number, 1 to 64: those of the file, as the bands of a TIFF; an image with another
            number is an error of its sample. With "rgba" or a number, images can be resized, cropped,
            flipped and normalised; transforms that change pixels are refused.
        drop_remainder: leave out a last batch that is not full.
        rank: index of this process, below `world`, 0 to 1,048,575.
        world: number of processes that share the dataset, 1 to 1,048,576.
        remainder: what happens to samples that do not divide evenly among the processes: "uneven", "drop"
            or "pad". "uneven": each comes exactly once; "drop": they are left out; "pad": the order starts
            again.
        exif_orientation: turn photographs as their EXIF tag says.
        geometry: add columns that say where the points of each image are in its row. `geometry`, float32
            (rows, 2, 3), maps (x, y, 1) of the image, turned as its EXIF tag says, to (x, y) of the row, in
            pixels from the top left corner; the centre of the first pixel is at (0.5, 0.5).
            `original_size`, int32 (rows, 2), has the image's height and width. Boxes and keypoints follow
            crops, flips and rotations by it.
        decode: decode JPEGs at their full size, or scaled down: "full" or "scaled". "scaled": a JPEG whose
            crop is at least twice as high and as wide as what it is resized to is decoded at 1/2, 1/4 or
            1/8 of its size, as by libjpeg's scale_denom and Pillow's draft, and then resized, which is
            faster for large photographs. Random crops are the same, to less than a pixel of the scaled
            image. This applies only to antialiased resizing by other filters than nearest, with the default
            `resampler`.
        max_pixels: refuse images with more pixels (width × height), 1 to 4,294,836,225. Such an image is a
            ResourceExhaustedError. This also limits what a JPEG of several scans (a progressive one) may
            cost: 4 bytes of memory for each of the pixels, and 16 scans of an image that large.
        max_scans: refuse JPEGs with more scans, 1 to 1,000,000.
        accept_truncated: decode truncated JPEGs as far as they go. What is missing is as libjpeg leaves it:
            gray, or coarse in a progressive JPEG. `stats()` counts such samples as `accepted_truncated`.
            Without it, and for other formats, truncation is a DataLossError.
        accept_16_bits: take the upper 8 bits of images of 16 bits. Suits photographs, of which Pillow (RGB)
            and TensorFlow also keep 8 bits; depths and masks of instances lose half of each number. Without
            it, such an image is an UnimplementedError with uint8, and keeps all bits with float types. It
            has no effect on uint16.
        on_bad: what becomes of photographs and records that cannot be read or decoded: "fail", "substitute"
            or "drop"; or by class of faults, and the others fail: "truncated=drop,vanished=substitute".
            "fail": an error takes the place of the batch; "substitute": a random other sample takes the
            sample's place, the same one in each run; "drop": the batch is a row shorter. Classes: vanished,
            unreadable, truncated, undecodable, over_limits, unsupported; and forbidden (a server answers
            403), which is only handled by name. Also takes a dictionary of them.
        max_bad_fraction: share of the samples that may be substituted or dropped, after the first 1,000;
            beyond it the run ends with a DataLossError, 0 to 1.
        bad_samples_file: a file that a line of JSON is appended to for each bad sample, when its batch is
            delivered; None means no list. Its keys: path, offset (in bytes, or null), id, epoch, batch,
            start (of the epoch's batches: not 0 where other ranks had begun it), class, cause, action.
            Processes may share one on a local file system.
        cache: keeps photographs, packed, for later epochs and other processes: "ram:8GiB" in memory,
            "dir:/scratch:200GB" in a folder on a local disk; None means no cache. Batches are the same with
            and without it. Baseline JPEGs take about twice as long in the first epoch, and less than half
            as long in later ones. All processes with the same cache share it, and its size; what is kept in
            memory is freed with the last loader that uses it.
        depth: batches in production at once, 1 to 4,096; None means tuned, within the memory budget.
        wait_target: target of tuning: the share of its time that the program may wait for batches, beyond
            what no setting could avoid, 0.0001 to 0.5.
        weight: share of workers and memory when there is too little, relative to the other loaders of the
            Runtime, 0.001 to 1,000.
        lent_batches: batches that the program may hold at once, 1 to 4,096; None means no limit. Beyond it
            the next batch is a ResourceExhaustedError.
        pin_memory: pin (page-lock) the memory of batches, so that GPUs copy from it directly; requires
            CUDA. This pins the batches in production and `lent_batches` more (4 without a limit), when the
            loader is made. It is for programs that copy batches themselves; `to_device` pins what it needs.
            A copy with non_blocking=True must be complete before the program drops the array, or the
            workers overwrite its source; TensorFlow keeps the array by itself. Loads CUDA's driver. A
            forked child cannot access batches that it inherits.
        runtime: the Runtime to share; None means the default one.
        sample_ids: adds a column "sample_id", (rows,) int64: the source's sample in each row.
        paths: adds a last column "path", a list of str: the file of each row, of one in an archive the
            archive, of one with several images the first image's. Samples in memory have none, nor have
            those without images ("").
        start_epoch: the epoch of the first iteration, 0 to 2**32 - 1, for programs that make a loader for
            each epoch.

    Raises:
        ValueError, TypeError: naming the option or the transform, at construction.
        ResourceExhaustedError: the memory budget is too small; the message names the smallest sufficient one.
        FailedPreconditionError: pin_memory without a GPU; the message says what is missing.
    """

    def __init__(
        self,
        source: Source,
        transforms: Iterable[Transform | Processor | BatchTransform | Map] = (),
        *,
        views: Iterable[Iterable[Transform]] = (),
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        tokens: str | None = None,
        padding: str = "none",
        buckets: Buckets | str | None = None,
        shuffle: bool = False,
        seed: int = 0,
        dtype: Any = "uint8",
        layout: str = "NHWC",
        channels: str | int = "rgb",
        drop_remainder: bool = False,
        rank: int = 0,
        world: int = 1,
        remainder: str = "uneven",
        exif_orientation: bool = True,
        geometry: bool = False,
        decode: str = "full",
        max_pixels: int = 268435456,
        max_scans: int = 200,
        accept_truncated: bool = False,
        accept_16_bits: bool = False,
        on_bad: str | Mapping[str, str] = "fail",
        max_bad_fraction: float = 0.01,
        bad_samples_file: str | os.PathLike[str] | None = None,
        cache: str | None = None,
        depth: int | None = None,
        wait_target: float = 0.005,
        weight: float = 1.0,
        lent_batches: int | None = None,
        pin_memory: bool = False,
        runtime: Runtime | None = None,
        sample_ids: bool = False,
        paths: bool = False,
        start_epoch: int = 0,
    ) -> None:
        given = {
            "batch_size": batch_size,
            "batch_tokens": batch_tokens,
            "tokens": tokens,
            "padding": padding,
            "buckets": buckets,
            "shuffle": shuffle,
            "seed": seed,
            "dtype": dtype,
            "layout": layout,
            "channels": channels,
            "drop_remainder": drop_remainder,
            "rank": rank,
            "world": world,
            "remainder": remainder,
            "exif_orientation": exif_orientation,
            "geometry": geometry,
            "decode": decode,
            "max_pixels": max_pixels,
            "max_scans": max_scans,
            "accept_truncated": accept_truncated,
            "accept_16_bits": accept_16_bits,
            "on_bad": on_bad,
            "max_bad_fraction": max_bad_fraction,
            "bad_samples_file": bad_samples_file,
            "cache": cache,
            "depth": depth,
            "wait_target": wait_target,
            "weight": weight,
            "lent_batches": lent_batches,
            "pin_memory": pin_memory,
        }
        if batch_size is None and batch_tokens is None:
            raise TypeError("batch_size must be an int, unless batch_tokens is given")
        if not isinstance(source, Source):
            hint = "; try stoker.image_folder(…)" if isinstance(source, str) else ""
            raise TypeError(f"source must be a Source, not {source!r:.80}{hint}")
        if runtime is not None and not isinstance(runtime, Runtime):
            raise TypeError(f"runtime must be a stoker.Runtime, not {runtime!r:.80}")
        self._source = source
        images, self._processor, self._mix, self._map = split(transforms)
        self._transforms = checked(images)
        self._views = checked_views(views)
        if len(self._views) == 1 and not self._transforms and self._processor is None:
            (self._transforms,), self._views = self._views, ()
        self._runtime = runtime
        self._options = _options.checked(given)
        # This is the only strong reference to the function, so that a function whose object has the loader
        # can be collected.
        self._calls = None
        if self._map is not None:
            self._calls = MapCalls(self._map, self._options["seed"])
        self._key = uuid.uuid4().hex
        self._spec = json.dumps(
            {
                "source": source._spec,
                "transforms": [t._spec() for t in self._transforms],
                **(
                    {"views": [{"transforms": [t._spec() for t in v]} for v in self._views]}
                    if self._views
                    else {}
                ),
                **({} if self._processor is None else {"processor": self._processor._spec}),
                **({} if self._mix is None else {"mix": self._mix._spec()}),
                **({} if self._map is None else {"map": self._map.name}),
                **self._options,
            }
        )
        native = _stoker.Runtime() if runtime is None else runtime._native
        function = None if self._calls is None else self._calls.native()
        self._native = _stoker.Loader(self._key, self._spec, source._native, native, function)
        # For each array of a batch: the name of its type, and the shape of a row. A side that each batch has
        # for itself is None.
        self._elements = [
            (name, tuple(None if side < 0 else side for side in shape))
            for name, shape in self._native.elements
        ]
        self._extras = (_checks.boolean("sample_ids", sample_ids), _checks.boolean("paths", paths))
        self._batch_type = batch_type(self._names(*self._extras))
        if self._calls is not None:
            self._calls.set_names(self._native.names)
            for name, _ in self._elements:
                _checks.numpy_has(name)
        self._batches = self._native.batches_per_epoch
        self._native.next_epoch = _checks.epoch(start_epoch, "start_epoch")
        self._closed = self._begun = False
        # Whether the program, or a fit, has decided with which epoch the loader begins.
        self._placed = self._native.next_epoch != 0
        # Models that were trained with follow_epochs, and the last epoch of each. Not a dictionary: a model
        # may have __eq__ without __hash__.
        self._followed: list[tuple[weakref.ref[Any], int]] = []

    @property
    def _has_an_order_for_each_epoch(self) -> bool:
        """Returns whether a repeated epoch is worth a warning: without shuffling at most its crops differ."""
        return bool(self._options["shuffle"])

    @property
    def _drops_rows(self) -> bool:
        """Returns whether a batch may have fewer rows than its place in the epoch has samples."""
        on_bad = self._options["on_bad"]
        return "drop" in on_bad or (self._options["batch_tokens"] != 0 and "substitute" in on_bad)

    def _names(self, sample_ids: bool, paths: bool) -> tuple[str, ...]:
        """Returns the names of a batch's columns, with those that are requested."""
        if paths and not self._source._has_files:
            raise InvalidArgumentError(f"paths=True: {self._source!r} is in memory and has no files")
        names = [*self._native.names]
        for name, requested in (("sample_id", sample_ids), ("path", paths)):
            if requested and name in names:
                raise InvalidArgumentError(
                    f"batches of {self._source!r} have a column with the name {name!r} already: give that "
                    f"column another name, or leave {name}s out"
                )
            names += [name] if requested else []
        return tuple(names)

    # --- iterating ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        """Takes the next epoch, or continues after `load_state_dict`, at its first batch.

        An iterator that was dropped before it had delivered a batch has taken nothing.
        """
        self._note_begun()
        return self._iterate(None, repeat=False)

    def _note_begun(self) -> None:
        """Warns of loaders that are made for each epoch and shuffle each like the first."""
        if self._begun:
            return
        self._begun = True
        if not self._has_an_order_for_each_epoch or self._native.next_place != (0, 0, 0):
            return
        spec = hash(self._spec)
        if _gone.get(spec) == 2:
            warnings.warn(
                "this is the third loader with these options that begins with epoch 0, and the others are "
                "gone: if each of them is for an epoch, all epochs have the same order and the same crops. "
                "Keep one loader, or give start_epoch",
                EpochWarning,
                stacklevel=3,
            )
        weakref.finalize(self, _count_gone, spec).atexit = False

    def _iterate(self, epoch: int | None, repeat: bool) -> Iterator:
        for name, _ in self._elements:
            _checks.numpy_has(name)
        if self._native.ragged:
            _jax.register()
        return Iterator(self, self._native.iterate(epoch, repeat))

    def epoch(self, epoch: int) -> Epoch[Iterator]:
        """Returns an iterable of this one epoch, any number of times; the loader's own count does not change.

        Args:
            epoch: 0 to 2**32 - 1.
        """
        return Epoch(self, _checks.epoch(epoch))

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        return self._batches

    __array__ = no_array
    shape = property(no_shape)

    def as_tf_dataset(
        self,
        epoch: int | None = None,
        op: str = "auto",
        *,
        sample_ids: bool | None = None,
        paths: bool | None = None,
        names: bool = False,
        sample_weight: str | None = None,
    ) -> tf.data.Dataset:
        """Returns the same batches as a `tf.data.Dataset`; see `stoker.tensorflow.as_tf_dataset`.

        Args:
            epoch: pins that epoch; None means each iteration takes the next one.
            op: "native", "fallback", or "auto".
            sample_ids, paths: adds each row's sample id and file to the elements; None follows the loader.
            names: makes elements dictionaries by the columns' names, as they are where there are more than
                images and labels.
            sample_weight: makes elements (images, labels, weights) of images, labels and this column.

        Raises:
            ImportError: TensorFlow is not installed.
        """
        return with_tensorflow().as_tf_dataset(
            self,
            epoch=epoch,
            op=op,
            sample_ids=sample_ids,
            paths=paths,
            names=names,
            sample_weight=sample_weight,
        )

    @overload
    def to_device(
        self, device: str, *, buffers: int = 4, decode: str = "workers", crop_bytes: int | None = None
    ) -> DeviceLoader: ...
    @overload
    def to_device(
        self,
        device: list[str] | tuple[str, ...],
        *,
        buffers: int = 4,
        decode: str = "workers",
        crop_bytes: int | None = None,
    ) -> SplitLoader: ...
    def to_device(
        self,
        device: str | list[str] | tuple[str, ...],
        *,
        buffers: int = 4,
        decode: str = "workers",
        crop_bytes: int | None = None,
    ) -> DeviceLoader | SplitLoader:
        """Returns the same batches as `Tensor`s, which PyTorch, JAX, CuPy and NumPy take without a copy
        (DLPack).

        CuPy takes only tensors on CUDA, NumPy only others. PyTorch and JAX take bfloat16, and so does
        np.asarray with ml_dtypes; np.from_dlpack and CuPy refuse it.

        Args:
            device: "cpu" ("cpu:0"): in the memory that the workers wrote, like the loader's own arrays.
                "cuda:0" ("cuda"), "cuda:1", …: on that GPU; the next batches are copied while earlier ones
                are used. "host": simulates a GPU on the host, to try programs without one. A list of these,
                in which a name may come twice: splits the rows of each batch among them, in equal parts.
            buffers: number of batches to allocate on each device, 2 to 64: those that the program holds, and
                those copied ahead. A program that holds all of them gets a ResourceExhaustedError. Labels
                share their images' buffer: keeping labels keeps the batch, so copy them.
            decode: "workers"; or "device": packed JPEGs (of `packed`, or of the option `cache`) and baseline
                JPEGs of an indexed folder (`stoker index`) are decoded on the device, to the same pixels,
                from the bits of their crops. The workers decode what it cannot: other images, damaged ones,
                crops that are padded after their resize, or whose pixels a transform changes, and more
                (`left_to_workers` in `stats`). Not run on a GPU yet.
            crop_bytes: with decode="device", room for the bits of crops, in bytes for each row of a batch,
                on average (None: 131072); the device has four times as much for samples. Where
                `left_to_workers` counts "no_room", photographs are larger: raise it. It is allocated in each
                batch on the host, and in each of the `buffers`.

        Raises:
            ValueError, TypeError: not a device; a list whose length does not divide batch_size; or
                decode="device" where the loader's options show that a device could decode none of its
                images: samples in memory, views, a Map, or a transform that needs the pixels on the host.
                What the files are is known only when they are read.
            FailedPreconditionError: there is no such device here; the message says what is missing.
            ResourceExhaustedError: the device, or the memory budget, has no room.
        """
        options = {"buffers": buffers, "decode": decode, "crop_bytes": crop_bytes}
        if isinstance(device, str):
            return DeviceLoader(self, device, options)
        names = list(device) if isinstance(device, (list, tuple)) else [device]
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"device must be a string such as 'cuda:0', or a list of them, not {device!r:.80}"
            )
        if not names:
            raise InvalidArgumentError("device is an empty list; name one device or more")
        return SplitLoader(self, names, options)

    def to_jax(
        self,
        sharding: Any = None,
        *,
        buffers: int = 4,
        decode: str = "workers",
        crop_bytes: int | None = None,
    ) -> JaxLoader:
        """Returns the same batches as arrays of JAX.

            for images, labels in loader.to_jax():
                ...

        With several processes each has a loader of its own (`rank=jax.process_index(),
        world=jax.process_count()`), and a batch is the rows of all of them, in the order of the sharding.

        Args:
            sharding: a jax.sharding.Sharding, which divides the rows of each column, such as
                NamedSharding(mesh, PartitionSpec("batch")); None means JAX's default device. Where each GPU
                has rows of its own, stoker copies them ahead, as `to_device` does with a list; otherwise JAX
                copies the batch from the host. What stoker copied shares one of few buffers: copy labels
                that you keep.
            buffers, decode, crop_bytes: as for `to_device`.

        Raises:
            ImportError: JAX is not installed.
            TypeError, ValueError: not a sharding, or one that does not divide the rows of all batches.
            FailedPreconditionError, ResourceExhaustedError: as of `to_device`.
        """
        to_device = {"buffers": buffers, "decode": decode, "crop_bytes": crop_bytes}
        return _jax.JaxLoader(self, sharding, to_device)

    # --- description and statistics ----------------------------------------------------------------

    @property
    def source(self) -> Source:
        """The source of the samples."""
        return self._source

    @property
    def classes(self) -> list[str]:
        """The source's class names by label; empty if there are none."""
        return self._source.classes

    @property
    def batch_size(self) -> int:
        """Rows per batch; with `batch_tokens` the most rows of one."""
        return self._native.most_rows

    @property
    def _rows_vary(self) -> bool:
        """Returns whether batches, but for on_bad, have other numbers of rows than batch_size."""
        return self._options["batch_tokens"] != 0 or self._native.last_rows != self.batch_size

    def stats(self) -> dict[str, Any]:
        """Returns counters and settings. Times are in seconds, memory in bytes.

        `cache` is None without the option `cache`.

        - `samples`: Samples processed, including failed ones.
        - `batches`: Batches delivered.
        - `batch_fill`: Share of batch_tokens that an epoch's batches have on average; 0 without it.
        - `bad`: Samples that could not be used, by class.
        - `substituted`: Rows filled with another sample.
        - `dropped`: Rows dropped from batches.
        - `bytes_read`: Bytes of the files read, cached or not.
        - `wait_seconds`: Time that the program waited for batches.
        - `waited`: Time that the consumer waited for batches, by cause. "storage", "decode", "map" (a
          `Map`'s function), "copy" (to a device) or "other". A wait that has not ended is not in it.
        - `consumer_seconds`: Time between receiving a batch and asking for the next one.
        - `worker_busy_seconds`: Time that a worker spent on samples. A list, with a number for each worker.
        - `worker_core_share`: Share of their busy time in which workers had a core, sampled.
        - `advice`: Advice in a few sentences.
        - `decode_seconds`: Wall time of decoding, over all workers.
        - `resize_seconds`: Wall time of resizing, and of what is fused with it, over all workers.
        - `augment_seconds`: Wall time of all other transforms, over all workers.
        - `mix_seconds`: Wall time of MixUp and CutMix, over all workers.
        - `map_seconds`: Time of the calls of a `Map`'s function.
        - `map_calls`: Calls of the program's function with whole batches.
        - `read_cpu_seconds`: CPU time of the reader threads, for all loaders of the process.
        - `progressive`: Progressive JPEGs among those that stoker decoded.
        - `packed`: Packed JPEGs decoded (packed PNGs are not counted).
        - `several_frames`: Animated images, and files of several pages, whose first frame was decoded.
        - `no_end_marker`: JPEGs with complete data but no end-of-image marker, decoded by workers or a
          device.
        - `accepted_truncated`: JPEGs with missing data, which accept_truncated accepts.
        - `scaled`: JPEGs decoded at a reduced size.
        - `scalable`: JPEGs that the option decode="scaled" would have decoded at a reduced size.
        - `indexed`: Images decoded with the crop index.
        - `index_stale`: Images decoded without the crop index, because the file has changed.
        - `index_contradicted`: Images decoded without the crop index, because it is wrong.
        - `cache["place"]`: The option `cache`.
        - `cache["hits"]`: Samples that came from the cache.
        - `cache["hit_bytes"]`: Bytes of the samples that came from the cache.
        - `cache["misses"]`: Samples that the cache did not have, or damaged.
        - `cache["kept"]`: Samples that this loader has added to its cache.
        - `cache["kept_bytes"]`: Bytes of the samples that this loader has added.
        - `cache["packed"]`: Samples that this loader has packed and added.
        - `cache["refused"]`: Samples not added because the cache is full.
        - `cache["damaged"]`: Samples whose checksum was wrong.
        - `cache["samples"]`: Samples in the cache, as far as this process knows.
        - `cache["bytes"]`: Bytes of the samples in the cache, of all that share it.
        - `cache["most_bytes"]`: Bytes that the cache may take; 0 means that there is none.
        - `stalls`: Long waits during which nothing moved. `Runtime(stall_seconds=…)` says how long.
        - `stall`: The work that had not ended during the last stall, with files.
        - `depth`: Current limit of batches in production. Of one engine, if iterations run side by side.
        - `workers`: Current limit of workers that decode at a time. Of one engine, if iterations run side
          by side.
        - `reads`: Current limit of reads in flight. Of one engine, if iterations run side by side.
        - `decisions`: The last changes of depth, workers and reads, with their reasons. A list, with the
          newest last.
        - `decisions_made`: Changes of depth, workers and reads.
        - `lent_batches`: Batches held by the caller.
        - `lent_bytes`: Memory of batches held by the caller.
        - `batch_bytes`: Memory of one batch.
        - `pinned_bytes`: Memory of batches that is pinned for a device.
        - `memory_used`: Working memory in use, of all loaders.
        - `memory_peak`: Highest working memory in use so far.
        - `memory_budget`: Limit of the working memory.
        - `threads`: Number of workers, for all loaders.
        - `threads_seen`: Distinct threads that have run tasks.
        - `executor`: The executor of workers: "tbb" or "threads".
        - `executor_reason`: Why the executor is not the requested one; empty if it is.
        - `reader`: The reader: "uring", "pread", "objects", "calls", or "none".
        - `reader_reason`: Why it is this reader.
        - `plan`: The compiled transforms.
        """
        return self._native.stats()

    def prometheus(self, name: str = "loader") -> str:
        """Returns this loader's counters and settings in Prometheus' text format 0.0.4.

        Args:
            name: the value of the label `loader`.
        """
        return self._native.prometheus(_checks.text("name", name))

    def monitor(self, interval: float = 0.5) -> Monitor:
        """Shows what the loader is doing, every `interval` seconds, until it is stopped: samples/s, causes of
        waits, the settings, how busy the workers are, memory.

            with loader.monitor():
                train(loader)
        """
        return Monitor(self, interval)

    def trace(self, path: str | os.PathLike[str], *, memory: int = 64 << 20) -> Trace:
        """Records what every thread of stoker does in a file for https://ui.perfetto.dev.

            with loader.trace("trace.json"):
                ...

        Args:
            path: the file, which is replaced.
            memory: bytes for events until the file is written, about 60 for each, outside the budget: 2**20
                to 2**40. Events that do not fit are counted.
        """
        return Trace(self, path, memory)

    def explain(self) -> str:
        """Like `Compose.explain`: returns a line for each transform, including mixing, and for each column of
        masks, further images or objects.
        """
        mix = [f"column {name!r}: {how}" for name, how in self._further_images()]
        mix += [
            f"column {name!r}: of objects, which follow the images" for name in self._source._native.objects
        ]
        if self._mix is not None:
            mix.append(f"{self._mix!r}  batch  once all its rows are complete")
        if self._map is not None:
            mix.append(f"{self._map!r}  batch  on threads of its own, before it is delivered")
        options = _options.checked(self._options, only_of_images=True)
        if self._views:
            views = [f"view {k}:\n{explained(spec_of(view, options))}" for k, view in enumerate(self._views)]
            return "\n".join([*views, *mix])
        if self._processor is not None:
            flips = [f"{flip!r}  image  before it is resized" for flip in self._transforms]
            return "\n".join([*flips, f"{self._processor!r}  makes the rows", *mix])
        if not self._transforms:
            return "\n".join(["rows are copied as they are", *mix])
        told = explained(spec_of(self._transforms, options), self._source._native)
        return "\n".join([told, *mix])

    def _further_images(self) -> list[tuple[str, str]]:
        """Returns the columns of masks, further images and clips, and what happens to them."""
        native = self._source._native
        told = []
        for number, (name, count) in enumerate(zip(native.names, native.counts)):
            how = ["as the images"] if number else []
            if name in native.masks:
                how = ["masks, moved as the images by nearest pixels"]
            if native.varies:
                how.append("any number of images a row")
            elif count:
                how.append(f"{count} a row" if how else counted(count, "image a row", "images a row"))
            if how:
                told.append((name, ", ".join(how)))
        return told

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}"
            for name, value in self._options.items()
            if value != _options.DEFAULTS.get(name)
        )
        runtime = "" if self._runtime is None else f", runtime={self._runtime!r}"
        own = [] if self._map is None else [self._map]
        transforms = ", ".join(repr(t) for t in [*self._listed(), *own])
        views = f", views={[list(view) for view in self._views]!r}" if self._views else ""
        return (
            f"<stoker.Loader({self._source!r}, [{transforms}]{views}{options}{runtime}): "
            f"{counted(len(self._source), 'sample', 'samples')}, "
            f"{counted(self._batches, 'batch', 'batches')} an epoch>"
        )

    # --- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the latest iteration over the loader that has delivered a batch, after the
        last one.

        It is a dictionary of numbers and text, a few hundred bytes: epoch, batch, the options that differ
        from their defaults, and the samples' number and fingerprint. For files the fingerprint covers their
        names and labels, not their bytes; for `stoker.arrays`, and further columns of `files`, it covers
        types, shapes and at most 64 KiB from 1024 rows of each, spread over the whole column. Columns of
        single numbers next to files are covered completely.

        After a `break` or an exception this is after the last batch, although another `for` would take the
        next epoch; before the first iteration, and after a finished one, it is the start of the next epoch.
        Iterations over the result of `to_device` count, those over `epoch(k)` and `as_tf_dataset()` do not:
        tf.train.Checkpoint saves the latter. Never blocks; may be called in a signal handler, also while
        `next` waits.
        """
        return dict(json.loads(self._native.state_at(*self._native.state_place)))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration continue at the state, with the same batches; nothing is replayed.

        The state is used up by the first batch: iterators that were dropped before it do not count.

        The state may come from another `world` or, without batch_tokens, `batch_size`, at any place of an
        epoch: each sample that all ranks together had not delivered comes once, with the same random draws.
        That iteration has as many batches as are left, and perhaps none; later epochs are as usual. All ranks
        must load states of the same step: each its own, or all that of rank 0. With remainder="uneven" and
        another `world` it must be rank 0's, because other ranks may have no batch in the last step, and their
        states then say that the epoch has ended.

        This holds for iterations over the loader itself: one over `as_tf_dataset()` refuses a state in the
        middle of an epoch, and is restored by tf.train.Checkpoint.

        Raises:
            FailedPreconditionError: the state comes from a loader with other options or samples; the message
                names them, with both values.
            ValueError, TypeError: not a loader's state.
        """
        self._native.restore(*self._native.place_of(_state_text(state)))
        self._placed = True

    def _refuse_resume(self) -> None:
        """Raises FailedPreconditionError if a restored state waits for `__iter__`."""
        restored = self._native.restored
        if restored is not None:
            epoch, batch, _ = restored
            raise FailedPreconditionError(
                f"load_state_dict restored batch {batch} of epoch {epoch}, where only an iteration over the "
                "loader itself continues",
                advice="Save and restore iterators of as_tf_dataset() by tf.train.Checkpoint",
            )

    def _listed(self) -> list[Transform | Processor | BatchTransform]:
        return [*self._transforms, *(each for each in (self._processor, self._mix) if each is not None)]

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends production now; all iterators raise CancelledError. Arrays stay valid.

        Optional: a loader that nothing refers to closes itself. Waits for calls of `from_dataset` and `Map`
        that are in progress, and after 10 s warns of those that take long, with their lines. Ctrl-C ends the
        wait; no further call begins.
        """
        ending = self._native.stop()
        self._closed = True
        _user_code.wait("close()", ending.wait, self._native.calls_of)

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        transforms = [*self._listed(), *([] if self._map is None else [self._map])]
        options = {**_options.as_given(self._options), "views": self._views, "runtime": self._runtime}
        options["sample_ids"], options["paths"] = self._extras
        return _made, (self._source, transforms, options)


def _made(source: Source, transforms: list[Any], options: dict[str, Any]) -> Loader:
    """For pickle, which passes no keywords."""
    return Loader(source, transforms, **options)


def _count_gone(spec: int) -> None:
    _gone[spec] = _gone.get(spec, 0) + 1


def _state_text(state: Any) -> str:
    """Returns a state as the library reads it. Checkpoint libraries may have turned its numbers into NumPy's
    or arrays.
    """
    wrong = "state must be what state_dict() returned, not"
    if not isinstance(state, dict):
        raise TypeError(f"{wrong} {state!r:.80}")
    try:
        text = json.dumps(state, default=operator.index, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{wrong} a dictionary with other values: {error!s:.200}") from None
    return text
