"""Callbacks for Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import tensorflow as tf

from stoker._errors import FailedPreconditionError

if TYPE_CHECKING:
    from stoker import Loader


def follow_epochs(loader: Loader) -> tf.keras.callbacks.Callback:
    """Returns a callback that makes epoch k of `fit` epoch k of the loader, whatever was iterated before.

    For `BackupAndRestore`, which resumes at an epoch without telling the dataset, and for `initial_epoch`:

        model.fit(dataset, epochs=90, callbacks=[tf.keras.callbacks.BackupAndRestore(folder),
                                                 stoker.tensorflow.follow_epochs(loader)])

    Args:
        loader: the loader whose dataset (without a pinned epoch and `repeat`) is given to `fit`.

    Raises:
        FailedPreconditionError: in `fit`, if its first batch did not take the loader's next
            epoch: the dataset's epoch is pinned, it is another loader's, an earlier `fit` has filled its
            cache, or tf.data service hands the batches out, which counts epochs in its own processes.
    """

    class FollowEpochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
        following: Optional[int] = None  # the epoch that fit's first batch must take

        def on_train_begin(self, logs: Any = None) -> None:
            self.first = True

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            loader._native.next_epoch = epoch
            self.following = epoch if self.first else None
            self.first = False

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch > 0:  # the one before has been taken
                self.check()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.check()

        def check(self) -> None:
            epoch, self.following = self.following, None
            if epoch is None or loader._native.next_epoch > epoch:
                return
            raise FailedPreconditionError(
                f"follow_epochs set the loader's next epoch to {epoch}, but the first batch of fit did not "
                "take it: the dataset's epoch is pinned, it is another loader's, an earlier fit has filled "
                "its cache, or it goes through tf.data service, which counts epochs in its own processes",
                advice="Through the service name each epoch: for k in range(first, last): "
                "fit(loader.as_tf_dataset(epoch=k).apply(...), initial_epoch=k, epochs=k + 1)",
            )

    return FollowEpochs()
