"""What Keras needs to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from stoker import Loader


def follow_epochs(loader: Loader) -> tf.keras.callbacks.Callback:
    """A callback with which epoch k of `fit` is epoch k of the loader, whatever came before.

    For `BackupAndRestore`, which goes on at an epoch without telling the dataset, and for `initial_epoch`:

        model.fit(dataset, epochs=90, callbacks=[tf.keras.callbacks.BackupAndRestore(folder),
                                                 stoker.tensorflow.follow_epochs(loader)])

    Args:
        loader: whose dataset (without a pinned epoch, and without `repeat`) is given to `fit`.
    """

    class FollowEpochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            loader._native.next_epoch = epoch

    return FollowEpochs()
