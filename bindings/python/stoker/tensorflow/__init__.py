"""A loader as a real `tf.data.Dataset`.

    dataset = loader.as_tf_dataset()
    model.fit(dataset, epochs=3)

TensorFlow's tensors are the memory that stoker's workers filled; nothing is copied.
Importing this changes no settings of TensorFlow and touches no device. In the workers and the
dispatcher of tf.data service, which receive a dataset as a graph, call `load_ops()` once.
"""

from stoker.tensorflow._dataset import as_tf_dataset
from stoker.tensorflow._keras import follow_epochs
from stoker.tensorflow._ops import FallbackWarning, load_ops
from stoker.tensorflow.build import PluginError

__all__ = ["FallbackWarning", "PluginError", "as_tf_dataset", "follow_epochs", "load_ops"]
