"""Warns of a resumed `fit` whose loader begins again with epoch 0."""

from __future__ import annotations

import functools
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker._errors import EpochWarning

if TYPE_CHECKING:
    from stoker import Loader

# Steps after which each iteration still takes the loader's next epoch, or (repeat) epochs from it on. Not
# cache, which repeats on purpose, nor apply, which may lead to tf.data service, whose processes count.
_STEPS = (
    *("batch", "enumerate", "filter", "ignore_errors", "map", "padded_batch", "prefetch", "ragged_batch"),
    *("rebatch", "repeat", "shard", "shuffle", "skip", "take", "unbatch", "with_options"),
)


class Watched(tf.data.Dataset):  # type: ignore[misc]
    """The dataset `made` of a loader's next epochs, with a look at each iteration of it by Keras' `fit`.

    Keras tells a dataset nothing, so the epoch is read from the frame of `fit`. Where Keras is not as it was
    when this was written, there is no warning.
    """

    def __init__(self, made: tf.data.Dataset, loader: Loader, repeats: bool = False) -> None:
        self._made = made
        self._loader = loader
        self._repeats = repeats
        # When fit was given this dataset: the loader's next epoch, and whether fit had trained the model.
        self._begun: Optional[tuple[int, bool]] = None
        super().__init__(made._variant_tensor)

    def cardinality(self) -> tf.Tensor:
        """Returns the number of elements. This is the first call of `fit`, before it replaces `history`."""
        if not self._loader._placed:
            _note_fit(self._loader)
        return super().cardinality()

    def __iter__(self) -> Any:
        if not self._loader._placed and tf.executing_eagerly():
            _look(self._loader, self._repeats)
        return iter(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._made]

    @property
    def element_spec(self) -> Any:
        return self._made.element_spec


def _step(name: str) -> Any:
    """Returns TensorFlow's method, whose result is watched like the dataset that it is made of."""

    @functools.wraps(getattr(tf.data.Dataset, name))
    def method(self: Watched, *arguments: Any, **options: Any) -> Watched:
        made = getattr(self._made, name)(*arguments, **options)
        return Watched(made, self._loader, self._repeats or name == "repeat")

    return method


for _name in _STEPS:
    setattr(Watched, _name, _step(_name))


def _note_fit(loader: Loader) -> None:
    """Records the position at which a fit begins, before it takes an epoch to see shapes, as with JAX."""
    model, dataset, iterator = _variables_of_fit("self", "x", "epoch_iterator")
    if iterator is None and _is_of(dataset, loader):
        history = getattr(model, "history", None)
        trained = isinstance(history, tf.keras.callbacks.History) and bool(getattr(history, "epoch", None))
        dataset._begun = loader._native.next_epoch, trained


def _look(loader: Loader, repeats: bool) -> None:
    """Warns if this is the first iteration of a resumed fit, and the loader has not been told its epoch.

    Only of the first fit of a model and of a loader: later ones continue what this process began.
    """
    epoch, dataset, steps = _variables_of_fit("epoch", "x", "steps_per_epoch")
    if epoch is None or not _is_of(dataset, loader) or dataset._begun is None:
        return
    began, trained = dataset._begun
    loader._placed = True
    if loader._has_an_order_for_each_epoch and not trained and began < epoch:
        advice = "Add stoker.tensorflow.follow_epochs(loader) to the callbacks of fit"
        if repeats or steps is not None:  # epochs of fit are not the loader's: the callback would refuse them
            advice = "Give Loader(start_epoch=) the epoch that the run had reached"
        _warn(
            f"fit begins with epoch {epoch}, and the loader with epoch {began}: if this run was resumed, it "
            f"gets orders and crops again that it was trained on before. {advice}"
        )


def _is_of(dataset: Any, loader: Loader) -> bool:
    return isinstance(dataset, Watched) and dataset._loader is loader


def warn_of_repetition(last: int) -> None:
    """Warns, in a callback, that fit begins with epoch 0, and has trained the model to epoch `last`."""
    _warn(
        f"fit begins with epoch 0, and an earlier fit has trained this model to epoch {last}: if its weights "
        f"were not reset, follow_epochs repeats the loader's order and crops. Call "
        f"fit with `initial_epoch={last + 1}` and `epochs=` above it, or leave out follow_epochs"
    )


def _variables_of_fit(*names: str) -> list[Any]:
    """Returns these variables of the Keras fit that is preparing or training, or None for those that it does
    not have; in evaluate, predict and callbacks, and outside of Keras, it has none.
    """
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None:
        module = _module(frame)
        if module.startswith("keras.src.callbacks"):
            break
        if module.startswith("keras.src.backend.") and module.endswith(".trainer"):
            if frame.f_code.co_name in ("evaluate", "predict"):
                break
            if frame.f_code.co_name == "fit":
                return _variables(frame, *names)
        frame = frame.f_back
    return [None] * len(names)


def _variables(frame: types.FrameType, *names: str) -> list[Any]:
    if sys.gettrace() is not None:  # Python writes f_locals back after a trace function, also when cleared
        return [None] * len(names)
    variables: Any = frame.f_locals
    found = [variables.get(name) for name in names]
    if isinstance(variables, dict):  # before Python 3.13: a copy, in which fit would keep its first weights
        variables.clear()
    return found


def _warn(text: str) -> None:
    """Warns at the program's line: the innermost one that is neither Keras' nor stoker's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _module(frame).startswith(("keras.", "stoker.")):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    where = frame.f_code.co_filename, frame.f_lineno, _module(frame)
    warnings.warn_explicit(text, EpochWarning, *where, registry)


def _module(frame: types.FrameType) -> str:
    return frame.f_globals.get("__name__") or ""
