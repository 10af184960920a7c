"""A device loader's batches as a `tf.data.Dataset` whose tensors are on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker import _checks
from stoker.tensorflow import _dataset, _elements, _ops, _resumed

if TYPE_CHECKING:
    from stoker._device_loader import DeviceLoader


def as_tf_dataset(
    loader: DeviceLoader, epoch: Optional[int], names: bool, sample_weight: Optional[str]
) -> tf.data.Dataset:
    """Returns the batches of `Loader.to_device(…)` as a dataset; see `DeviceLoader.as_tf_dataset`."""
    names = _checks.boolean("names", names)
    if loader.device == "cpu":
        return _dataset.as_tf_dataset(loader.loader, epoch=epoch, names=names, sample_weight=sample_weight)
    if epoch is not None:
        epoch = _checks.epoch(epoch)
    else:
        loader.loader._refuse_resume()
    if sample_weight is None or names:
        _refuse_extras(loader)
    elements = _elements.elements_of(loader.loader, names=names, sample_weight=sample_weight)
    _refuse_strings(loader, elements)
    _, ops = _ops.choose("native")
    _dataset.keep_with_graph(loader)
    with tf.device(_place(loader.device)):
        variant = ops.stoker_device_dataset(
            key=loader._key,
            epochs=loader.loader._key,
            device=loader.device,
            epoch=-1 if epoch is None else epoch,
            batches=len(loader),
            drops_rows=loader.loader._drops_rows,
            columns=elements.columns,
            output_types=[spec.dtype for spec in elements.specs],
            output_shapes=[spec.shape for spec in elements.specs],
        )
        made = _dataset.Dataset(variant, elements.spec, loader, loader.loader, epoch)
        kept = made.with_options(_options())
    made = _dataset.Dataset(kept._variant_tensor, elements.spec, loader, loader.loader, epoch, made_of=kept)
    return _resumed.Watched(made, loader.loader) if epoch is None else made


def _options() -> tf.data.Options:
    """Returns options without TensorFlow's rewriting, which knows no GPU, and without its prefetch.

    A prefetch would make the GPU's stream wait for later batches before it is given the work on the one at
    hand.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options


def _refuse_extras(loader: DeviceLoader) -> None:
    for name, wanted in zip(("sample_ids", "paths"), loader._extras):
        if wanted:
            raise _of_the_host(loader, name)


def _refuse_strings(loader: DeviceLoader, elements: _elements.Elements) -> None:
    if tf.string in [spec.dtype for spec in elements.specs]:
        raise _of_the_host(loader, "columns of strings")


def _of_the_host(loader: DeviceLoader, what: str) -> ValueError:
    return ValueError(
        f"a dataset on {loader.device} cannot have {what}, which are in the host's memory; iterate over the "
        "device loader itself, or use the loader's own as_tf_dataset()"
    )


def _place(device: str) -> str:
    """Returns TensorFlow's name of stoker's device; the op checks that they are the same.

    CUDA counts the devices that CUDA_VISIBLE_DEVICES leaves, TensorFlow those that set_visible_devices leaves
    of these.
    """
    if device == "host":
        return "/device:CPU:0"
    ordinal = device.partition(":")[2]
    visible: list[Any] = tf.config.get_visible_devices("GPU")
    for index, physical in enumerate(visible):
        if physical.name.rpartition(":")[2] == ordinal:
            return f"/device:GPU:{index}"
    raise ValueError(
        f"TensorFlow does not see {device}: it has {', '.join(p.name for p in visible) or 'no GPU'}. Is it a "
        "TensorFlow with CUDA, and has set_visible_devices left this GPU out?"
    )
