"""stoker: turns photographs on disk into augmented batches, fast.

    import stoker

    loader = stoker.Loader(
        stoker.image_folder("photos/train"),
        [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()],
        batch_size=256, shuffle=True, seed=1)
    for images, labels in loader:  # NumPy arrays, no copy
        ...
    dataset = loader.as_tf_dataset()  # a tf.data.Dataset
    tensors = loader.to_device("cpu")  # for PyTorch, JAX, CuPy; stoker.torch has a DataLoader

Everything public is in this module; names with a leading underscore are private.
"""

import atexit as _atexit
import os as _os
import pathlib as _pathlib

try:
    from stoker import _stoker
except ImportError as _error:
    from stoker import _missing_library

    raise _missing_library.in_words(_error, _pathlib.Path(__file__).parent) from _error
from stoker import (
    _annotations,
    _arrow,
    _huggingface,
    _image_columns,
    _object_columns,
    _packed,
    _parquet_rows,
    _records,
    _sources,
    _transforms,
    _user_code,
)
from stoker._annotations import *  # noqa: F403
from stoker._arrow import *  # noqa: F403
from stoker._batch import Batch
from stoker._buckets import Buckets
from stoker._compose import Compose
from stoker._decode import decode_image, decode_images
from stoker._derived import clips, combine, sized
from stoker._device_loader import DeviceLoader, SplitLoader
from stoker._errors import (
    CacheWarning,
    CancelledError,
    CropIndexWarning,
    DataLossError,
    EpochWarning,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    MemoryWarning,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SkippedFilesWarning,
    UnavailableError,
    UnimplementedError,
)
from stoker._huggingface import *  # noqa: F403
from stoker._image_columns import *  # noqa: F403
from stoker._iterator import DeviceIterator, Epoch, Iterator, SplitIterator
from stoker._jax import JaxIterator, JaxLoader
from stoker._loader import Loader
from stoker._map import Map
from stoker._mix import BatchTransform, CutMix, MixUp
from stoker._object_columns import *  # noqa: F403
from stoker._packed import *  # noqa: F403
from stoker._parquet_rows import *  # noqa: F403
from stoker._processor import Processor, cu_seqlens, processor
from stoker._ragged import Ragged
from stoker._records import *  # noqa: F403
from stoker._runtime import Runtime
from stoker._show import Sheet, show
from stoker._sizes import unpadded
from stoker._sources import *  # noqa: F403
from stoker._stoker import Tensor, __version__
from stoker._transforms import *  # noqa: F403
from stoker._watching import Monitor, Trace

__all__ = [
    "Batch",
    "BatchTransform",
    "Buckets",
    "CacheWarning",
    "CancelledError",
    "Compose",
    "CropIndexWarning",
    "CutMix",
    "DataLossError",
    "DeviceIterator",
    "DeviceLoader",
    "Epoch",
    "EpochWarning",
    "Error",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "Iterator",
    "JaxIterator",
    "JaxLoader",
    "Loader",
    "Map",
    "MemoryWarning",
    "MixUp",
    "Monitor",
    "NotFoundError",
    "PermissionDeniedError",
    "Processor",
    "Ragged",
    "ResourceExhaustedError",
    "Runtime",
    "Sheet",
    "SkippedFilesWarning",
    "SplitIterator",
    "SplitLoader",
    "Tensor",
    "Trace",
    "UnavailableError",
    "UnimplementedError",
    "__version__",
    "clips",
    "combine",
    "cu_seqlens",
    "decode_image",
    "decode_images",
    "processor",
    "show",
    "sized",
    "unpadded",
    *_annotations.__all__,
    *_arrow.__all__,
    *_huggingface.__all__,
    *_image_columns.__all__,
    *_object_columns.__all__,
    *_packed.__all__,
    *_parquet_rows.__all__,
    *_records.__all__,
    *_sources.__all__,
    *_transforms.__all__,
]

# Lets threads that wait for batches go, so that nothing is produced while the interpreter shuts down.
_atexit.register(_user_code.leave)
_os.register_at_fork(after_in_child=_stoker.after_fork)
