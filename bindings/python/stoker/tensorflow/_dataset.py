"""`as_tf_dataset`: a loader's batches as a `tf.data.Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker import _checks
from stoker.tensorflow import _elements, _fallback, _ops

if TYPE_CHECKING:
    from stoker import Loader

_MOST_EPOCHS = 2**32


def as_tf_dataset(
    loader: Loader,
    epoch: Optional[int] = None,
    op: str = "auto",
    *,
    sample_ids: Optional[bool] = None,
    paths: Optional[bool] = None,
    names: bool = False,
) -> tf.data.Dataset:
    """Returns the loader's batches as a `tf.data.Dataset`, without a copy.

    Elements are (images, labels), or images if the source has nothing else: (rows, height, width, 3), or
    (rows, 3, height, width) with `layout="NCHW"`, and (rows,) int64, or (rows, num_classes) float32 with
    `MixUp` or `CutMix`. Further columns of `stoker.files` follow, strings (which are copied) as tf.string;
    `fit` takes a third element for the samples' weights. The batch dimension is static unless the last batch
    of an epoch is short; if it is static, a checkpoint of other ranks whose rest ends with a short batch is
    refused. The cardinality is known.

    Each new iterator takes the loader's next epoch at its first batch (`fit(epochs=3)`, `repeat(3)` and
    three `for` loops see epochs 0, 1 and 2) and checkpoints hold it.

    Args:
        loader: kept alive by the dataset, or by the function in which the dataset is made (a
            `tf.function`, a `flat_map`).
        epoch: pins that epoch, 0 to 2**32 - 1; None: each iterator takes the next one.
        op: "native": the dataset op, built at first use for the TensorFlow that is installed (half a
            minute, then cached); "fallback": prebuilt ops, a little slower, with a few limits
            (docs/tensorflow.md#the-plugin); "auto": native if it can be built, else the fallback, with a
            `FallbackWarning` that says why. The environment variable STOKER_TF_OP decides for "auto".
        sample_ids: adds a tensor, (rows,) int64: the source's sample in each row. None: if the loader does.
        paths: adds a last tensor, (rows,) of strings: the file of each row. None: likewise. Keras takes a
            third tensor for weights, so `map` such elements to what `fit` and `predict` expect.
        names: makes elements dictionaries by the columns' names, {"image": …, "label": …}, also where there
            is one column. Sample ids are "sample_id", and paths "path". `fit` takes (inputs, labels), where
            inputs may be a dictionary by the names of the model's inputs:

                def divided(batch):
                    label = batch.pop("label")
                    return batch, label

                model.fit(loader.as_tf_dataset(names=True).map(divided))

    Raises:
        ValueError, TypeError: wrong arguments; paths of a source without files; a column that has the name
            of the requested ids or paths.
        PluginError: op="native", and it cannot be built.
        FailedPreconditionError: `load_state_dict` was given a state in the middle of an epoch, and no
            iteration over the loader has used it. Also raised when the dataset is iterated.
    """
    if epoch is not None:
        epoch = _checks.integer("epoch", epoch, 0, _MOST_EPOCHS - 1)
    if epoch is None:
        loader._refuse_resume()
    kind, ops = _ops.choose(_checks.choice("op", op, _ops.CHOICES))
    extras = {
        "sample_ids": _checks.boolean("sample_ids", loader._extras[0] if sample_ids is None else sample_ids),
        "paths": _checks.boolean("paths", loader._extras[1] if paths is None else paths),
    }
    keys = loader._names(**extras)
    keep_with_graph(loader)
    dataset = _of_tuples(loader, epoch, kind, ops, extras)
    if not _checks.boolean("names", names):
        return dataset
    named = dataset.map(_named(keys))
    return Dataset(named._variant_tensor, named.element_spec, loader, loader, epoch, made_of=named)


def _of_tuples(loader: Loader, epoch: Optional[int], kind: str, ops: Any, extras: dict[str, bool]) -> Dataset:
    spec = _elements.element_spec(loader, **extras)
    if kind == "fallback":
        return Dataset(_fallback.variant(ops, loader, epoch, spec, extras), spec, loader, loader, epoch)
    columns = tf.nest.flatten(spec)
    variant = ops.stoker_dataset(
        key=loader._key,
        spec=loader._spec,
        epoch=-1 if epoch is None else epoch,
        batches=len(loader),
        drops_rows=loader._drops_rows,
        **extras,
        output_types=[column.dtype for column in columns],
        output_shapes=[column.shape for column in columns],
    )
    return Dataset(variant, spec, loader, loader, epoch)


def _named(names: tuple[str, ...]) -> Any:
    """Returns a function that makes a dictionary of a batch's columns.

    An op cannot return dictionaries: TensorFlow sorts their keys, so that tensors would change places. The
    function has no operations; tf.data passes the tensors on and does not run it.
    """

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def named(*columns: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(zip(names, columns))

    return named


def keep_with_graph(loader: Any) -> None:
    """Keeps the loader for a function that is being traced, whose graph runs after this call.

    The enclosing graphs keep it too: TensorFlow keeps the outer one, and may copy and drop the inner one.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
        graph._stoker_loaders = [*getattr(graph, "_stoker_loaders", []), loader]
        outer = getattr(graph, "outer_graph", None)
        # The outermost graph, that of the process, is left out: it would keep the loader for good.
        graph = outer if hasattr(outer, "outer_graph") else None


class Dataset(tf.data.Dataset):  # type: ignore[misc]
    """The dataset over an op's handle, or over the handle of the dataset `made_of`, which it keeps.

    Keeps the loader, because arrays cannot be opened by their spec. `keeps` is the loader, or the device
    loader that copies its batches.
    """

    def __init__(
        self,
        variant: tf.Tensor,
        spec: Any,
        keeps: Any,
        loader: Loader,
        epoch: Optional[int],
        made_of: Optional[tf.data.Dataset] = None,
    ) -> None:
        self._spec = spec
        self._keeps = keeps
        self._loader = loader
        self._epoch = epoch
        self._made_of = made_of
        super().__init__(variant)

    def __iter__(self) -> Any:
        if self._epoch is None:
            self._loader._refuse_resume()
        return super().__iter__()

    def __repr__(self) -> str:
        epoch = "" if self._epoch is None else f", epoch={self._epoch}"
        return f"<stoker dataset of {self._keeps!r}{epoch}, element_spec={self._spec}>"

    def _inputs(self) -> list[tf.data.Dataset]:
        return [] if self._made_of is None else [self._made_of]

    @property
    def element_spec(self) -> Any:
        return self._spec
