"""Batches as JAX's arrays. JAX is imported only by programs that use it."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stoker import _stoker
from stoker._batch import Batch
from stoker._errors import InvalidArgumentError, UnimplementedError
from stoker._iterator import Epoch, no_array, no_shape
from stoker._ragged import Ragged
from stoker._stoker import Tensor

if TYPE_CHECKING:
    from stoker._device_loader import DeviceLoader, SplitLoader
    from stoker._iterator import DeviceIterator, SplitIterator
    from stoker._loader import Loader


def _jax() -> Any:
    import jax

    return jax


def _in_jax(tensor: Tensor) -> Any:
    """Returns a tensor as JAX takes it: its NumPy array, or on a GPU a jax.Array."""
    return _jax().dlpack.from_dlpack(tensor) if tensor.device.startswith("cuda") else np.asarray(tensor)


def array_of(tensor: Tensor) -> Any:
    """Returns a jax.Array. On the CPU it has the tensor's memory, and follows other arrays to their device,
    which one of from_dlpack would not.
    """
    return _jax().device_put(_in_jax(tensor))


_registering = threading.RLock()  # JAX refuses a second registration, and functools.cache may call twice


def register() -> None:
    """Makes jit, device_put and the like take a `Tensor`, if the program has imported JAX.

    JAX has no protocol for that: they take arrays of a few types, and trees of them. So a tensor is a tree
    of one array, and is this array when it is put together again.
    """
    # Once registered, it takes no lock, which a fork could leave taken.
    if hasattr(sys.modules.get("jax"), "tree_util") and not _registered.cache_info().currsize:
        with _registering:
            _registered()


@functools.cache
def _registered() -> None:
    register_node = _jax().tree_util.register_pytree_node
    register_node(Tensor, lambda tensor: ((_in_jax(tensor),), None), lambda _, parts: parts[0])
    register_node(
        Ragged, lambda ragged: ((ragged.values, ragged.offsets), None), lambda _, parts: Ragged(*parts)
    )


class JaxLoader:
    """What `Loader.to_jax` returns: the loader's batches as arrays of JAX.

        for images, labels in loader.to_jax():
            ...

    Samples, order, values, epochs and state are the loader's own: an iteration over either takes the next
    epoch of both, and `state_dict` describes the latest iteration over either. Columns of strings and paths
    are lists.
    """

    def __init__(self, loader: Loader, sharding: Any, to_device: Mapping[str, Any]) -> None:
        jax = _jax()
        register()
        if sharding is None:
            (device,) = jax.numpy.zeros(()).devices()  # JAX's default one
            sharding = jax.sharding.SingleDeviceSharding(device)
        if not isinstance(sharding, jax.sharding.Sharding):
            raise TypeError(f"sharding must be a jax.sharding.Sharding, not {sharding!r:.80}")
        self._loader = loader
        self._sharding: Any = sharding
        self._processes = len({device.process_index for device in sharding.device_set})
        self._check_sides()
        devices = self._by_rows() or []
        names = [_name_of(device) for device in devices]
        # JAX itself copies objects to its device.
        self._devices = devices if "cpu" not in names and not loader._native.ragged else []
        self._check_rows()
        self._check_ragged()
        where = "cpu" if not self._devices else names[0] if len(names) == 1 else names
        self._batches: DeviceLoader | SplitLoader = loader.to_device(where, **to_device)

    def _shape(self, rows: int) -> tuple[int, ...]:
        """Returns the shape of the first column, over all processes; with sides of 1 where batches differ."""
        sides = self._loader._elements[0][1]
        return (rows * self._processes, *(1 if side is None else side for side in sides))

    def _check_sides(self) -> None:
        """Raises UnimplementedError for images of their batch's size, if devices do not have whole ones of a
        batch of this process.
        """
        sides = self._loader._elements[0][1]
        if None not in sides:
            return
        sides_of, advice = "height or width of images", 'Give PadTo a height and width instead of "batch"'
        if self._loader._options["padding"] != "none" or self._loader._options["buckets"]:
            sides_of, advice = "length of rows", "Iterate over the loader, and give jax.device_put its arrays"
        if self._processes > 1:
            differ = f"is that of a batch, and those of {self._processes} processes differ"
            if self._loader._options["buckets"]:
                differ = f"differs from batch to batch: not possible with {self._processes} processes yet"
            raise UnimplementedError(f"the {sides_of} {differ}", advice=advice)
        count = len(self._sharding.device_set)  # which the sharding divides
        parts = self._sharding.shard_shape((count,) * (1 + len(sides)))
        if any(side is None and part != count for side, part in zip(sides, parts[1:])):
            raise UnimplementedError(
                f"the sharding divides the {sides_of}, which differ from batch to batch",
                advice=advice,
            )

    def _check_rows(self) -> None:
        """Raises ValueError if the sharding cannot divide the rows of all batches."""
        loader = self._loader
        of_tokens = loader._options["batch_tokens"] != 0
        short = 1 if loader._drops_rows or of_tokens else loader._native.last_rows
        if (loader._drops_rows or loader._rows_vary) and not self._divides(short):
            what = "on_bad may drop rows" if loader._drops_rows else f"the last batch has {short} rows"
            what = "batch_tokens makes batches of any number of rows" if of_tokens else what
            raise InvalidArgumentError(
                f"{what}, and {len(self._sharding.device_set)} devices need equal parts of each batch",
                advice="Give the loader batch_size instead"
                if of_tokens
                else 'Give the loader drop_remainder=True, and on_bad="substitute" rather than "drop"',
            )

    def _check_ragged(self) -> None:
        """Raises UnimplementedError for objects of images on several devices, which no sharding divides."""
        ragged = self._loader._native.ragged
        if ragged and len(self._sharding.device_set) > 1:
            raise UnimplementedError(
                f"rows of {ragged[0]!r} have different numbers of objects, and cannot be divided among "
                f"{len(self._sharding.device_set)} devices",
                advice="Iterate over the loader itself, and give jax.device_put what `padded` makes of it",
            )

    def _divides(self, rows: int) -> bool:
        """Returns whether the sharding divides a shorter batch."""
        # Rows that bad samples leave are not divided again, and processes may have different numbers of rows.
        if (self._devices and self._loader._drops_rows) or self._processes > 1:
            return len(self._sharding.device_set) == 1
        try:
            self._sharding.shard_shape(self._shape(rows))
        except ValueError:
            return False
        return True

    def _by_rows(self) -> list[Any] | None:
        """Returns this process' devices by the rows that each has; None if they have other parts."""
        shape = self._shape(self._loader.batch_size)
        parts = self._sharding.addressable_devices_indices_map(shape)
        begins = {(part[0].start or 0): device for device, part in parts.items()}
        part = self._sharding.shard_shape(shape)
        if len(begins) < len(parts) or part[1:] != shape[1:]:
            return None
        return [begins[begin] for begin in sorted(begins)]

    def __iter__(self) -> JaxIterator:
        """Takes the loader's next epoch, or continues where `load_state_dict` said."""
        return JaxIterator(self, self._batches.__iter__())

    def _iterate(self, epoch: int | None, repeat: bool) -> JaxIterator:
        return JaxIterator(self, self._batches._iterate(epoch, repeat))

    def epoch(self, epoch: int) -> Epoch[Any]:
        """Returns an iterable of this one epoch; see `Loader.epoch`."""
        return Epoch(self, self._batches.epoch(epoch)._epoch)

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        return len(self._loader)

    __array__ = no_array
    shape = property(no_shape)

    def _whole(self, *parts: Any) -> Any:
        """Returns a column as one array of all devices. `parts`: one for each device, or for the host."""
        jax = _jax()
        if isinstance(parts[0], list):
            return [text for part in parts for text in part]
        if isinstance(parts[0], Ragged):  # on one device
            return Ragged(self._whole(parts[0].values), self._whole(parts[0].offsets))
        if not self._devices or not isinstance(parts[0], Tensor):
            (rows,) = parts if len(parts) == 1 else (np.concatenate(parts),)
            host = np.asarray(rows)
            if self._processes == 1:
                return jax.device_put(host, self._sharding)
            return jax.make_array_from_process_local_data(self._sharding, host)
        arrays = [jax.device_put(_in_jax(part), at) for part, at in zip(parts, self._devices)]
        if len(self._sharding.device_set) == 1:
            return arrays[0]
        shape = (sum(len(array) for array in arrays) * self._processes, *arrays[0].shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self._sharding, arrays)

    def _made(self, batch: Any, _: tuple[int, int, int]) -> Any:
        """Returns a batch of a `DeviceLoader` or `SplitLoader` as arrays of JAX."""
        parts = batch if isinstance(batch, tuple) and not isinstance(batch, Batch) else (batch,)
        if not isinstance(parts[0], Batch):
            return self._whole(*parts)
        return parts[0]._make(self._whole(*column) for column in zip(*parts))

    @property
    def loader(self) -> Loader:
        """The loader that makes the batches."""
        return self._loader

    def stats(self) -> dict[str, Any]:
        """Like `DeviceLoader.stats`."""
        return self._batches.stats()

    def state_dict(self) -> dict[str, Any]:
        """Like `Loader.state_dict`, the same state."""
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Like `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stoker.JaxLoader cannot be pickled: its sharding is of this process' devices; "
            "pickle its `loader`, and call to_jax in each process"
        )

    def close(self) -> None:
        """Ends the iterations over this object now; arrays stay valid, and the loader continues."""
        self._batches.close()

    def __enter__(self) -> JaxLoader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self._loader!r}.to_jax({self._sharding!r})"


class JaxIterator(_stoker.LaterBatches):
    """One iteration of a `JaxLoader`; like `Iterator`, but its batches are of jax.Array."""

    def __init__(self, loader: JaxLoader, batches: DeviceIterator | SplitIterator) -> None:
        super().__init__(lambda: batches, loader._made)
        self._batches = batches
        self._native = batches._native

    @property
    def sample_ids(self) -> Any:
        """The source's samples in the rows of the last batch, of this process, (rows,)."""
        return self._batches.sample_ids


def _name_of(device: Any) -> str:
    """Returns stoker's name of a device of JAX."""
    return f"cuda:{device.local_hardware_id}" if device.platform in ("gpu", "cuda") else "cpu"
