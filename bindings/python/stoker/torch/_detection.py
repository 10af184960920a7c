"""Batches as torchvision's detection models take them."""

from __future__ import annotations

from typing import Any

import torch

from stoker._batch import Batch
from stoker._errors import InvalidArgumentError
from stoker._ragged import Ragged


def images_and_targets(batch: Batch[Any]) -> tuple[list[torch.Tensor], list[dict[str, Any]]]:
    """Returns a batch of a `DataLoader` as torchvision's detection models take it.

        for batch in loader:
            images, targets = stoker.torch.images_and_targets(batch)
            losses = model(images, targets)

    The models want floats from 0 to 1 (a loader without `Normalize`), which they normalize by themselves;
    columns "boxes", in the format "xyxy" (`ConvertBoundingBoxFormat`), and "labels", of int64; Keypoint R-CNN
    also wants "keypoints". They refuse boxes without an area, which `SanitizeBoundingBoxes` drops.

    Args:
        batch: it has columns besides its images.

    Returns:
        A list of images, (3, height, width), and a list of a dictionary for each image, of all other columns
        by their names: of objects the image's own, and of other columns its row. Images and masks of a padded
        batch (`PadTo`) are cut to their own size, `image_size`. All tensors are views of the batch.

    Raises:
        TypeError: not a batch of several columns.
        ValueError: its first column has no images.
    """
    if not isinstance(batch, Batch):
        raise TypeError(f"batch must be a batch of several columns, not {type(batch).__name__}")
    names = batch.keys()
    images = _channels_first(batch[0])
    sides = images.shape[2:]
    sizes = batch["image_size"].tolist() if "image_size" in batch else [sides] * len(images)
    columns = [
        list(column) if isinstance(column, (Ragged, list)) else _rows(column, sides, sizes)
        for column in batch[1:]
    ]
    targets = [dict(zip(names[1:], row)) for row in zip(*columns)]
    return _cut(images, sizes), targets


def _channels_first(images: Any) -> torch.Tensor:
    shape = tuple(getattr(images, "shape", ()))
    if len(shape) == 4 and shape[1] == 3:
        return images
    if len(shape) == 4 and shape[3] == 3:
        return images.permute(0, 3, 1, 2)
    raise InvalidArgumentError(f"the batch begins with a column of shape {shape}, which are not images")


def _rows(column: torch.Tensor, sides: Any, sizes: list[Any]) -> list[torch.Tensor]:
    """Returns the rows of a column, of masks in their own sizes."""
    return _cut(column, sizes) if column.shape[1:] == sides else list(column)


def _cut(images: torch.Tensor, sizes: list[Any]) -> list[torch.Tensor]:
    """Returns each image, or mask, in its own size."""
    return [image[..., :height, :width] for image, (height, width) in zip(images, sizes)]
