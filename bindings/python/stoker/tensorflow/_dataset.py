"""`as_tf_dataset`: a loader's batches as a `tf.data.Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker import _checks
from stoker._errors import InvalidArgumentError
from stoker.tensorflow import _elements, _fallback, _iterator, _ops, _resumed

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
    sample_weight: Optional[str] = None,
) -> tf.data.Dataset:
    """Returns the loader's batches as a `tf.data.Dataset`, without a copy.

    Elements are what `fit` takes, (images, labels), or images if the source has nothing else: (rows, height,
    width, 3), or (rows, 3, height, width) with `layout="NCHW"`, and (rows,) int64, or (rows, num_classes)
    float32 with `MixUp` or `CutMix`; of `stoker.masks` they are (images, masks). With other columns (of the
    source, of further views, sample ids, paths) they are dictionaries by the columns' names, {"image": …,
    "label": …, "age": …}, because Keras takes a third tensor for the samples' weights. Strings are copied, as
    tf.string. Columns of objects are tf.RaggedTensor. The batch dimension is static unless the last batch of
    an epoch is short; if it is static, a checkpoint of other ranks whose rest ends with a short batch is
    refused. The cardinality is known.

    `fit` takes (inputs, labels), where inputs may be a dictionary by the names of the model's inputs:

        def divided(batch):
            label = batch.pop("label")
            return batch, label

        model.fit(loader.as_tf_dataset(names=True).map(divided))

    Each new iterator takes the loader's next epoch at its first batch (`fit(epochs=3)`, `repeat(3)` and
    three `for` loops see epochs 0, 1 and 2) and checkpoints hold it. `fit` does not say with which epoch it
    begins: where it is resumed, `follow_epochs` does, and without it there is an `EpochWarning`.

    Args:
        loader: kept alive by the dataset, or by the function in which the dataset is made (a
            `tf.function`, a `flat_map`).
        epoch: pins that epoch, 0 to 2**32 - 1; None means each iterator takes the next one.
        op: "native": the dataset op, built at first use for the TensorFlow that is installed (half a
            minute, then cached); "fallback": prebuilt ops, a little slower, with a few limits
            (docs/tensorflow.md#the-plugin); "auto": native if it can be built, else the fallback, with a
            `FallbackWarning` that says why. The environment variable STOKER_TF_OP decides for "auto".
        sample_ids: adds "sample_id", (rows,) int64: the source's sample in each row. None: if the loader
            does.
        paths: adds "path", (rows,) of strings: the file of each row. None: likewise.
        names: makes elements dictionaries also where there are only images and labels.
        sample_weight: the column of the samples' weights, a number each. Elements are (images, labels,
            weights), as `fit` takes them, without other columns, and without the sample ids and paths that
            the loader adds; with `names` (a dictionary of the other columns, labels, weights). None: no
            column is a weight.

    Raises:
        ValueError, TypeError: wrong arguments; paths of a source without files; a column that has the name
            of the requested ids or paths; no such column of weights; weights with `MixUp` or `CutMix`.
        PluginError: op="native", and it cannot be built.
        FailedPreconditionError: `load_state_dict` was given a state in the middle of an epoch, and no
            iteration over the loader has used it. Also raised when the dataset is iterated.
    """
    if epoch is not None:
        epoch = _checks.integer("epoch", epoch, 0, _MOST_EPOCHS - 1)
    if epoch is None:
        loader._refuse_resume()
        loader._note_begun()
    kind, ops = _ops.choose(_checks.choice("op", op, _ops.CHOICES))
    names = _checks.boolean("names", names)
    if sample_weight is not None and not names:  # a tuple has no place for sample ids and paths
        _refuse_extras(sample_ids=sample_ids, paths=paths)
        sample_ids = paths = False
    extras = {
        "sample_ids": _checks.boolean("sample_ids", loader._extras[0] if sample_ids is None else sample_ids),
        "paths": _checks.boolean("paths", loader._extras[1] if paths is None else paths),
    }
    elements = _elements.elements_of(loader, **extras, names=names, sample_weight=sample_weight)
    keep_with_graph(loader)
    if kind == "fallback":
        variant = _fallback.variant(ops, loader, epoch, elements, extras)
    else:
        variant = ops.stoker_dataset(
            key=loader._key,
            spec=loader._spec,
            epoch=-1 if epoch is None else epoch,
            batches=len(loader),
            drops_rows=loader._drops_rows,
            columns=elements.columns,
            output_types=[spec.dtype for spec in elements.specs],
            output_shapes=[spec.shape for spec in elements.specs],
        )
    if kind == "native" and not elements.are_dense:
        made = _ragged(variant, elements, loader, epoch)
    else:
        made = Dataset(variant, elements.spec, loader, loader, epoch)
    return _resumed.Watched(made, loader) if epoch is None else made


def _ragged(
    variant: tf.Tensor, elements: _elements.Elements, loader: Loader, epoch: Optional[int]
) -> tf.data.Dataset:
    """Returns the dataset of an op's tensors with values and offsets as ragged tensors."""
    flat = Dataset(variant, tuple(elements.specs), loader, loader, epoch)
    made = flat.map(lambda *tensors: elements.packed(tensors), synchronous=True)
    # Batches in a prefetch, which TensorFlow adds to a map, could not be taken back from an eager loop.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    iterated = made.with_options(options)
    return Dataset(
        made._variant_tensor, elements.spec, loader, loader, epoch, made_of=made, iterated=iterated
    )


def _refuse_extras(**extras: Optional[bool]) -> None:
    for name, wanted in extras.items():
        if wanted:
            raise InvalidArgumentError(
                f"sample_weight makes elements (images, labels, weights), without what {name} adds",
                advice="With names=True inputs are a dictionary, which has it",
            )


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
    loader that copies its batches. Eager loops iterate over `iterated`, if it is given.
    """

    def __init__(
        self,
        variant: tf.Tensor,
        spec: Any,
        keeps: Any,
        loader: Loader,
        epoch: Optional[int],
        made_of: Optional[tf.data.Dataset] = None,
        iterated: Optional[tf.data.Dataset] = None,
    ) -> None:
        self._spec = spec
        self._keeps = keeps
        self._loader = loader
        self._epoch = epoch
        self._made_of = made_of
        self._iterated = iterated
        super().__init__(variant)

    def __iter__(self) -> Any:
        if self._epoch is None:
            self._loader._refuse_resume()
        if not tf.executing_eagerly():
            return super().__iter__()
        iterator = super().__iter__() if self._iterated is None else iter(self._iterated)
        return _iterator.losing_nothing(iterator)

    def __repr__(self) -> str:
        epoch = "" if self._epoch is None else f", epoch={self._epoch}"
        return f"<stoker dataset of {self._keeps!r}{epoch}, element_spec={self._spec}>"

    def _inputs(self) -> list[tf.data.Dataset]:
        return [] if self._made_of is None else [self._made_of]

    @property
    def element_spec(self) -> Any:
        return self._spec
