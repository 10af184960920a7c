"""DeviceLoader: a loader's batches as tensors, where the program wants them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stoker import _checks, _stoker, _user_code
from stoker._iterator import DeviceIterator, Epoch, no_array, no_shape
from stoker._watching import Monitor, Trace

if TYPE_CHECKING:
    from stoker._loader import Loader


class DeviceLoader:
    """What `Loader.to_device` returns: the loader's batches as `Tensor`s.

        for images, labels in loader.to_device("cpu"):
            images = torch.from_dlpack(images)  # or jax.dlpack, cupy, numpy: no copy
            ...

    Same samples, order, values, epochs and state as the loader's own: an iteration over either takes the
    next epoch of both, and `state_dict` is where the latest iteration over any of them is.

    Batches have the loader's columns: (images, labels), images alone, or further ones; strings, sample ids
    and paths are on the host. Tensors are the
    program's for as long as it keeps them, or what was made of them, also after the loader has gone.
    On the CPU keeping labels keeps no images. On a device (and "host") labels lie with their images: who
    keeps labels keeps the batch, one of `buffers`; copy labels that are to be kept.

    Threads, signals and forks: as `Loader`.
    """

    def __init__(self, loader: Loader, device: str, buffers: int) -> None:
        if not isinstance(device, str):
            raise TypeError(f"device must be a string such as 'cuda:0', not {device!r:.80}")
        _checks.integer("buffers", buffers, 2, 64)
        self._loader = loader
        self._batch_type = loader._batch_type
        self._extras = loader._extras
        self._closed = False
        self._native = _stoker.DeviceLoader(loader._native, device, buffers)

    def __iter__(self) -> DeviceIterator:
        """Takes the loader's next epoch (or goes on where `load_state_dict` said)."""
        return self._loader._begin(self)

    def _iterate(self, epoch: int | None, repeat: bool) -> DeviceIterator:
        return DeviceIterator(self, self._native.iterate(epoch, repeat))

    def epoch(self, epoch: int) -> Epoch[DeviceIterator]:
        """An iterable of that one epoch, again and again; the loader's own count is left alone.

        Args:
            epoch: 0 to 2**32 - 1.
        """
        return Epoch(self, _checks.epoch(epoch))

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._loader)

    __array__ = no_array
    shape = property(no_shape)

    @property
    def device(self) -> str:
        """Where batches are."""
        return self._native.device

    @property
    def loader(self) -> Loader:
        """The loader whose batches they are."""
        return self._loader

    def stats(self) -> dict[str, Any]:
        """As `Loader.stats`, of what was iterated here (on the CPU: and over the loader itself).

        On other devices what is waited for is a batch there, and there are also `device_bytes`: memory there;
        `copied_batches` and `copied_bytes`, to it; and whom the copying thread waited for:
        `ring_wait_seconds`, the program; `host_wait_seconds`, a batch to copy; `copy_wait_seconds`, the bus.
        """
        return self._native.stats()

    def prometheus(self, name: str = "loader") -> str:
        """As `Loader.prometheus`, of what was iterated here."""
        return self._native.prometheus(_checks.text("name", name))

    def monitor(self, interval: float = 0.5) -> Monitor:
        """As `Loader.monitor`, of what is iterated here."""
        return Monitor(self, interval)

    def trace(self, path: str | os.PathLike[str], *, memory: int = 64 << 20) -> Trace:
        """As `Loader.trace`: the same Runtime's."""
        return self._loader.trace(path, memory=memory)

    def state_dict(self) -> dict[str, Any]:
        """As `Loader.state_dict`; the same state. What is on its way to the program is not passed."""
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As `Loader.load_state_dict`: the next iteration over the loader, or over this, goes on there."""
        self._loader.load_state_dict(state)

    def close(self) -> None:
        """Ends the iterations over this now: CancelledError from there on. Tensors stay valid.

        Not needed. The loader itself goes on.
        """
        ending = self._native.stop()
        self._closed = True
        _user_code.wait("close()", ending.wait, self._loader._native.calls_of)

    def __enter__(self) -> DeviceLoader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self._loader!r}.to_device({self.device!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.DeviceLoader cannot be pickled; make one in each process")
