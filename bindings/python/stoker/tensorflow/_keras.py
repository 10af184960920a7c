"""Callbacks for Keras."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker._errors import FailedPreconditionError
from stoker.tensorflow import _resumed

if TYPE_CHECKING:
    from stoker import Loader


def follow_epochs(loader: Loader) -> tf.keras.callbacks.Callback:
    """Returns a callback that makes epoch k of `fit` epoch k of the loader, after any other iterations.

    For `BackupAndRestore`, which resumes at an epoch without telling the dataset, and for `initial_epoch`:

        model.fit(dataset, epochs=90, callbacks=[tf.keras.callbacks.BackupAndRestore(folder),
                                                 stoker.tensorflow.follow_epochs(loader)])

    Keras saves the epoch right with `save_freq="epoch"` only (docs/tensorflow.md#resuming-fit).

    Each epoch of `fit` must take one epoch of the loader, whole or not, so `fit` makes an iterator for each.

    A second `fit` of a model needs `initial_epoch`, too: without it epoch 0 comes again, and there is an
    `EpochWarning`.

    Args:
        loader: the loader whose dataset (without a pinned epoch and `repeat`) is given to `fit`.

    Raises:
        FailedPreconditionError: in `fit`, if an epoch of it did not take the loader's next epoch: the
            dataset's epoch is pinned, it is another loader's, an earlier `fit` has filled its cache, tf.data
            service hands the batches out, which counts epochs in its own processes, or `repeat` continues
            the epoch before. Or if it took a second one: with `repeat` and more `steps_per_epoch` than the
            loader has batches, or because the program iterates over the loader meanwhile.
    """

    class FollowEpochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
        first = False  # whether no epoch of this fit has begun
        epoch = 0  # that fit's batches must have taken
        checked = False  # at a batch; at the end of an epoch validation may have taken other epochs

        def on_train_begin(self, logs: Any = None) -> None:
            self.first = True

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if self.first and epoch == 0 and loader._has_an_order_for_each_epoch:
                for model, last in loader._followed:
                    if self.model is not None and model() is self.model:
                        _resumed.warn_of_repetition(last)
            self.first = False
            loader._native.next_epoch = self.epoch = epoch
            loader._placed = True
            self.checked = False

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.check()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if not self.checked:
                self.check()
            if self.model is not None:  # it is None in a CallbackList without a model
                others = [each for each in loader._followed if self.is_another(each[0]())]
                loader._followed = [*others, (weakref.ref(self.model), epoch)]

        def is_another(self, model: Any) -> bool:
            return model is not None and model is not self.model

        def check(self) -> None:
            self.checked = True
            epoch, following = self.epoch, loader._native.next_epoch
            if following <= epoch:
                raise FailedPreconditionError(
                    f"follow_epochs set the loader's next epoch to {epoch}, but the first batch of fit did "
                    "not take it: the dataset's epoch is pinned, it is another loader's, an earlier fit has "
                    "filled its cache, repeat() continues the epoch before, or it goes through tf.data "
                    "service, which counts epochs in its own processes",
                    advice="Leave out repeat() and steps_per_epoch. Through the service name each epoch: "
                    "for k in range(first, last): "
                    "fit(loader.as_tf_dataset(epoch=k).apply(...), initial_epoch=k, epochs=k + 1)",
                )
            if following > epoch + 1:
                raise FailedPreconditionError(
                    f"epoch {epoch} of fit took epoch {following - 1} of the loader, too, which "
                    "follow_epochs would give to fit again: the dataset repeats, and fit or tf.data's "
                    f"prefetch passed the end of an epoch ({len(loader)} batches), or the program iterates "
                    "over the loader during fit",
                    advice="Leave out repeat() and steps_per_epoch, or follow_epochs. To look at batches "
                    "during fit, iterate over loader.epoch(k)",
                )

    return FollowEpochs()
