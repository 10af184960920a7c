"""DeviceLoader and SplitLoader: a loader's batches as tensors, in the memory that the program chooses."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from stoker import _checks, _jax, _options, _stoker, _user_code
from stoker._errors import InvalidArgumentError
from stoker._iterator import DeviceIterator, Epoch, SplitIterator, no_array, no_shape
from stoker._watching import Monitor, Trace

if TYPE_CHECKING:
    import tensorflow as tf

    from stoker._loader import Loader

MadeThere = TypeVar("MadeThere", DeviceIterator, SplitIterator)
Self = TypeVar("Self", bound="OnDevices[Any]")


def with_tensorflow() -> Any:
    """Returns `stoker.tensorflow`, whose import needs TensorFlow and takes seconds."""
    try:
        import stoker.tensorflow as stf
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise ImportError(
            "as_tf_dataset() needs TensorFlow, which is not installed here; try: pip install tensorflow",
            name=error.name,
        ) from None
    return stf


def checked_options(given: Mapping[str, Any]) -> dict[str, int]:
    """Returns the options in `given` that the library's table has; errors name the option."""
    decode = _checks.choice("decode", given["decode"], ("workers", "device"))
    if given["crop_bytes"] is not None and decode != "device":
        raise InvalidArgumentError(
            'crop_bytes is given, and decode is not "device"',
            advice='Give decode="device", too, or leave crop_bytes out',
        )
    without = ("crop_bytes",) if given["crop_bytes"] is None else ()  # None: the library's default
    return _options.checked_of_device({name: given[name] for name in given if name not in without})


class OnDevices(Generic[MadeThere]):
    """The common part of `DeviceLoader` and `SplitLoader`."""

    _iterator_type: type[MadeThere]

    def __init__(self, loader: Loader, devices: str | list[str], options: Mapping[str, Any]) -> None:
        split = not isinstance(devices, str)
        names = [devices] if isinstance(devices, str) else devices
        spec = json.dumps(checked_options(options))
        decodes = options["decode"] == "device"
        self._loader: Loader = loader
        self._arguments: tuple[Any, ...] = (devices, options)
        self._batch_type = loader._batch_type
        self._extras = loader._extras
        self._closed = False
        self._key = uuid.uuid4().hex
        self._native = _stoker.DeviceLoader(loader._native, self._key, names, split, decodes, spec)
        _jax.register()
        self._devices: str | list[str] = self._native.devices if split else self._native.devices[0]

    def __iter__(self) -> MadeThere:
        """Takes the loader's next epoch (or continues where `load_state_dict` said), at its first batch."""
        self._loader._note_begun()
        return self._iterate(None, repeat=False)

    def _iterate(self, epoch: int | None, repeat: bool) -> MadeThere:
        _jax.register()  # the program may have imported JAX meanwhile
        return self._iterator_type(self, self._native.iterate(epoch, repeat))

    def epoch(self, epoch: int) -> Epoch[MadeThere]:
        """Returns an iterable of that one epoch, any number of times; the loader's own count does not change.

        Args:
            epoch: 0 to 2**32 - 1.
        """
        return Epoch(self, _checks.epoch(epoch))

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        return len(self._loader)

    __array__ = no_array
    shape = property(no_shape)

    @property
    def loader(self) -> Loader:
        """The loader that makes the batches."""
        return self._loader

    def stats(self) -> dict[str, Any]:
        """Like `Loader.stats`, for iterations over this object (on the CPU also for those over the loader).

        On other devices, waits are for batches on the device, and there are also `device_bytes`: memory on
        the device; `copied_batches` and `copied_bytes`: copied to the device; `invalidated_captures`: how
        often captures of CUDA graphs on other threads became invalid, as nobody named the streams that use
        a batch (`Tensor.record_stream`); and the waits of the copying thread: `ring_wait_seconds`, for the
        program; `host_wait_seconds`, for a batch to copy; `copy_wait_seconds`, for the bus.

        Of a `SplitLoader`, `device` is a tuple; `device_bytes` and `copied_bytes` are sums over the devices;
        `copied_batches` counts whole batches.

        With decode="device": `decoded_on_device`: photographs that the device decodes; `left_to_workers`:
        those that workers decoded instead, by reason: "not_prepared" (neither packed nor a JPEG with a crop
        index that fits: it has none, or the file has changed since); "unsupported" (padded after the resize,
        made gray by RandomGrayscale, decoded scaled, reduced too far, or mixed with a row of another device);
        "damaged" (a checksum is wrong, because the file is damaged, or has changed where only the checksums
        show it); "no_room" (a batch's crops may take `crop_bytes` of bits and four times as many samples a
        row, on average). A sample that is retried counts again.
        """
        return self._native.stats()

    def prometheus(self, name: str = "loader") -> str:
        """Like `Loader.prometheus`, for the iterations over this object."""
        return self._native.prometheus(_checks.text("name", name))

    def monitor(self, interval: float = 0.5) -> Monitor:
        """Like `Loader.monitor`, for the iterations over this object."""
        return Monitor(self, interval)

    def trace(self, path: str | os.PathLike[str], *, memory: int = 64 << 20) -> Trace:
        """Like `Loader.trace`; it is the trace of the same Runtime."""
        return self._loader.trace(path, memory=memory)

    def state_dict(self) -> dict[str, Any]:
        """Like `Loader.state_dict`, the same state. Batches on their way to the program are not passed."""
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Like `Loader.load_state_dict`: the next iteration over the loader, or over this object, continues
        there.
        """
        self._loader.load_state_dict(state)

    def close(self) -> None:
        """Ends the iterations over this object now: they raise CancelledError from now on. Tensors stay
        valid.

        Optional. The loader itself continues.
        """
        ending = self._native.stop()
        self._closed = True
        _user_code.wait("close()", ending.wait, self._loader._native.calls_of)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self._loader!r}.to_device({self._devices!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the loader and the arguments of `to_device`."""
        return type(self), (self._loader, *self._arguments)


class DeviceLoader(OnDevices[DeviceIterator]):
    """What `Loader.to_device` returns: the loader's batches as `Tensor`s.

        for images, labels in loader.to_device("cpu"):
            images = torch.from_dlpack(images)  # or jax.dlpack, cupy, numpy: no copy
            ...

    Samples, order, values, epochs and state are the loader's own: an iteration over either takes the next
    epoch of both, and `state_dict` describes the latest iteration over either.

    Batches have the loader's columns: (images, labels), images alone, or further ones; strings, sample ids
    and paths are on the host. Tensors, and objects made from them, stay valid for as long as the program
    keeps them, also after the loader has gone. On the CPU keeping labels keeps no images. On a device (and
    "host") labels lie with their images: keeping labels keeps the batch, one of `buffers`; copy labels that
    are to be kept.

    Threads, signals and forks: as `Loader`.
    """

    _iterator_type = DeviceIterator

    @property
    def device(self) -> str:
        """The device of the batches."""
        return self._native.devices[0]

    def as_tf_dataset(
        self, epoch: int | None = None, *, names: bool = False, sample_weight: str | None = None
    ) -> tf.data.Dataset:
        """Returns the batches as a `tf.data.Dataset` whose tensors are on the GPU; docs/gpu.md is the guide.

        They are stoker's memory, not a copy. Elements and epochs are those of `Loader.as_tf_dataset`, without
        sample ids, paths and strings, which are in the host's memory. TensorFlow's stream waits for each
        batch, and the program does not. At most `buffers` batches can be held.

        The dataset must be the last step: TensorFlow has no `map`, `take` or `repeat` for a GPU, and
        iterating over their result is an error. Inside a `tf.function` loop over `iter(dataset)`. It can be
        neither checkpointed nor used in tf.data service.

        On "cpu" this is the loader's own `as_tf_dataset()`; on "host" the tensors are on TensorFlow's CPU.

        Args:
            epoch: pins that epoch; None means each iteration takes the next one.
            names, sample_weight: as for `Loader.as_tf_dataset`.

        Raises:
            ImportError: TensorFlow is not installed.
            ValueError: TensorFlow does not see the GPU; elements with sample ids, paths or strings.
            stoker.tensorflow.PluginError: the dataset op cannot be built; there is no prebuilt one.
        """
        with_tensorflow()
        from stoker.tensorflow import _device_dataset

        return _device_dataset.as_tf_dataset(self, epoch, names, sample_weight)


class SplitLoader(OnDevices[SplitIterator]):
    """What `Loader.to_device` returns for a list of devices: each batch in as many parts, one on each device.

        for one, other in loader.to_device(["host", "host"]):  # or ["cuda:0", "cuda:1"]
            images, labels = one

    Each part is like a batch of a `DeviceLoader`, with the rows that follow those of the part before it:
    together they are the loader's batch. `batch_size` must be a multiple of the number of devices. If the
    rows of a last batch are not, the first devices get one more than the others, which may get none, as
    `numpy.array_split` does it; `drop_remainder=True` leaves such a batch out.

    Everything is produced once, for all devices: one loader, with one order, one state and one memory for
    batches on the host. Each batch stays in host memory until all devices have copied their parts. Each
    device has `buffers` parts. docs/gpu.md shows how JAX makes one array of the parts.

    Samples, order, values, epochs and state are the loader's own, also of batches whose rows are mixed
    (`MixUp`, `CutMix`).
    """

    _iterator_type = SplitIterator

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the parts, in order."""
        return tuple(self._native.devices)

    def as_tf_dataset(self, epoch: int | None = None) -> NoReturn:
        """Raises TypeError: a dataset is on one device. docs/gpu.md has what `MirroredStrategy` takes."""
        raise TypeError(
            "a tf.data.Dataset has the batches of one device; for tf.distribute.MirroredStrategy make a "
            "loader for each replica, with rank= and world="
        )
