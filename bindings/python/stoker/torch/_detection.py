"""Batches as torchvision's detection models take them."""

from __future__ import annotations

from typing import Any

import torch

from stoker import _checks
from stoker._batch import Batch
from stoker._errors import InvalidArgumentError
from stoker._ragged import Ragged


def images_and_targets(
    batch: Batch[Any], box_format: str = "xyxy"
) -> tuple[list[torch.Tensor], list[dict[str, Any]]]:
    """Returns a batch of a `DataLoader` as torchvision's detection models take it.

        for batch in loader:
            images, targets = stoker.torch.images_and_targets(batch, box_format="xywh")  # of stoker.coco
            losses = model(images, targets)

    The models want floats from 0 to 1 (a loader without `Normalize`), which they normalize by themselves;
    columns "boxes" and "labels", of int64; Keypoint R-CNN also wants "keypoints". They want boxes as "xyxy",
    in pixels, to which this function converts them, and refuse boxes without an area, which
    `SanitizeBoundingBoxes` drops.

    Args:
        batch: it has columns besides its images.
        box_format: the format of the batch's column "boxes": "xyxy", also after
            `ConvertBoundingBoxFormat("xyxy")`, "xywh" (`stoker.coco`) or "cxcywh" (`stoker.yolo`).

    Returns:
        A list of images, (3, height, width), and a list of a dictionary for each image, of all other columns
        by their names: of objects the image's own, and of other columns its row. A column "instances" of
        uint8 or uint16 with a value for each pixel of the images, as `masks="instances"` makes it, becomes
        "masks", uint8 (objects, height, width); another one is kept. Images and masks of a padded batch
        (`PadTo`) are cut to their own size, `image_size`. All tensors are views of the batch, except boxes
        that were converted, and "masks".

    Raises:
        TypeError: not a batch of several columns.
        ValueError: its first column has no images; a box whose right or bottom edge is less than its left or
            top one, as boxes of another format than `box_format` usually have; another format than "xyxy",
            and no column "boxes" of objects.
    """
    if not isinstance(batch, Batch):
        raise TypeError(f"batch must be a batch of several columns, not {type(batch).__name__}")
    box_format = _checks.box_format("box_format", box_format)
    names = batch.keys()
    images = _channels_first(batch[0])
    sides = images.shape[2:]
    sizes = batch["image_size"].tolist() if "image_size" in batch else [sides] * len(images)
    given = dict(zip(names[1:], batch[1:]))
    if _are_boxes(given.get("boxes")):
        given["boxes"] = _corners(given["boxes"], box_format)
    elif box_format != "xyxy":
        raise InvalidArgumentError(f"box_format is {box_format!r}, and the batch has no boxes of objects")
    columns = [
        list(column) if isinstance(column, (Ragged, list)) else _rows(column, sides, sizes)
        for column in given.values()
    ]
    targets = [dict(zip(names[1:], row)) for row in zip(*columns)]
    drawn = _are_boxes(given.get("boxes")) and _are_instances(given.get("instances"), sides)
    if drawn and "masks" not in given:
        for target in targets:
            target["masks"] = _masks(target.pop("instances"), len(target["boxes"]))
    return _cut(images, sizes), targets


def _masks(instances: torch.Tensor, objects: int) -> torch.Tensor:
    """Returns a mask for each object, uint8 (objects, height, width)."""
    numbers = torch.arange(1, objects + 1, dtype=torch.int32, device=instances.device)
    return (instances.to(torch.int32) == numbers[:, None, None]).to(torch.uint8)


def _are_instances(column: Any, sides: Any) -> bool:
    is_mask = isinstance(column, torch.Tensor) and column.dtype in (torch.uint8, torch.uint16)
    return is_mask and column.shape[1:] == sides


def _are_boxes(column: Any) -> bool:
    return isinstance(column, Ragged) and column.values.ndim == 2 and column.values.shape[1] == 4


def _corners(boxes: Ragged[torch.Tensor], box_format: str) -> Ragged[torch.Tensor]:
    """Returns boxes as left, top, right, bottom; raises ValueError if they are not in this format."""
    first, second = boxes.values[:, :2], boxes.values[:, 2:]
    if box_format == "cxcywh":
        first = first - second / 2
    if box_format != "xyxy":
        second = first + second
        boxes = Ragged(torch.cat([first, second], 1), boxes.offsets)
    inverted = (second < first).any(1)
    if inverted.any():
        at = int(inverted.int().argmax())
        image = int((boxes.offsets <= at).sum()) - 1
        raise InvalidArgumentError(
            f"image {image} has a box from {first[at].tolist()} to {second[at].tolist()}, whose right or "
            f"bottom edge is less than its left or top one, if the format is {box_format!r}",
            advice='Name the format of the batch: that of stoker.coco is "xywh", of stoker.yolo "cxcywh"',
        )
    return boxes


def _channels_first(images: Any) -> torch.Tensor:
    shape = tuple(getattr(images, "shape", ()))
    for channels in (3, 1, 4) if len(shape) == 4 else ():
        if shape[1] == channels:
            return images
        if shape[3] == channels:
            return images.permute(0, 3, 1, 2)
    raise InvalidArgumentError(f"the batch begins with a column of shape {shape}, which are not images")


def _rows(column: torch.Tensor, sides: Any, sizes: list[Any]) -> list[torch.Tensor]:
    """Returns the rows of a column, of masks in their own sizes."""
    return _cut(column, sizes) if column.shape[1:] == sides else list(column)


def _cut(images: torch.Tensor, sizes: list[Any]) -> list[torch.Tensor]:
    """Returns each image, or mask, in its own size."""
    return [image[..., :height, :width] for image, (height, width) in zip(images, sizes)]
