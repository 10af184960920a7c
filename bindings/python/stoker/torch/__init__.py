"""stoker's batches as PyTorch's tensors, without a copy.

    loader = stoker.torch.DataLoader(
        stoker.image_folder("photos/train"),
        [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()],
        batch_size=256, shuffle=True)
    for images, labels in loader:
        ...

`import stoker.torch` imports torch; `import stoker` does not. No setting of PyTorch is changed.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("stoker.torch needs PyTorch, which is not installed; try: pip install torch") from error

from stoker.torch._dataloader import DataLoader
from stoker.torch._detection import images_and_targets
from stoker.torch._iterator import Iterator

__all__ = ["DataLoader", "Iterator", "images_and_targets"]
