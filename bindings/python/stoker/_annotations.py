"""Images with boxes or masks, from data sets of annotated images."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from stoker import _checks
from stoker._sources import Source, _absolute, _add, _names_in, _Opened

__all__ = ["coco", "voc", "yolo"]


_MASKS = ("instances", "semantic")
_BACKGROUND = 255


def _masks(
    masks: str | None, dtype: str, background: int, crowd: int | None = None
) -> dict[str, tuple[Any, Any]]:
    """Returns the options of masks, checked, as `_add` takes them."""
    if masks is not None:
        _checks.choice("masks", masks, _MASKS)
    most = 255 if _checks.choice("mask_dtype", dtype, ("uint8", "uint16")) == "uint8" else 65535
    options: dict[str, tuple[Any, Any]] = {"masks": (masks, None), "mask_dtype": (dtype, "uint8")}
    options["mask_background"] = _checks.integer("mask_background", background, 0, most), _BACKGROUND
    if crowd is not None:
        options["mask_crowd"] = _checks.integer("mask_crowd", crowd, 0, most), None
    return options


def coco(
    json: str | os.PathLike[Any],
    images: str | os.PathLike[Any],
    *,
    keep_empty: bool = True,
    keep_crowd: bool = True,
    contiguous_labels: bool = False,
    keypoints: bool | Literal["auto"] = "auto",
    masks: Literal["instances", "semantic"] | None = None,
    mask_dtype: Literal["uint8", "uint16"] = "uint8",
    mask_background: int = _BACKGROUND,
    mask_crowd: int | None = None,
    check_sizes: bool = True,
) -> Source:
    """Images with boxes, from a JSON file of COCO's format.

        source = stoker.coco("coco/annotations/instances_train2017.json", "coco/train2017")

    **Sizes:** an image whose size differs from the annotated one (`width` and `height` in the file) is an
    error of its sample: it was resized after it was annotated, its EXIF tag turns it, or the numbers are
    wrong. Loaders turn images as their tag says, and take boxes as those of the turned image. The numbers do
    not say which image the boxes refer to, so look at some (`stoker show --source-option check_sizes=off`):
    if the boxes are of the image as it is stored, pass `exif_orientation=False` to the loader; if they are
    right and only the numbers are swapped or wrong, pass `check_sizes=False`. Only quarter turns are noticed,
    of images that are not square. Images of COCO itself have no tag.

    Samples are sorted by image id, as those of torchvision's `CocoDetection` are, and objects are in the
    order of the file. A sample has

    - `image`: its `file_name` below the folder `images`;
    - `boxes` (float32, 4): x, y, width and height in pixels, as in the file;
    - `labels` (int64): the category ids;
    - `area` (float32): that of the box, if the file has none;
    - `iscrowd` (uint8): 1 if the box has a group of objects: `keep_crowd=False` leaves these out, as
      torchvision's training references do;
    - `image_id` (int64), one for each sample, for evaluation;
    - `keypoints` (float32, (points, 3)): x, y and visibility, if all annotations have them and all of their
      categories list the same names of points. `keypoints=True` says why there are none. Coordinates are 0.5
      larger than in the file, where they are pixel indices; points of visibility 0 are 0, 0. Where an image
      is mirrored, points `left_…` and `right_…` are swapped;
    - `instances` or `mask`, with `masks`: see below.

    Loaders draw `masks` from the segmentations (polygons, and RLE as lists or texts), after transforms have
    moved the objects, and with the rule of pycocotools. `masks="instances"` makes a column `instances`,
    (batch, height, width): 1 + the index of the object in the row's `boxes`, and 0 where there is none. A
    pixel of several objects belongs to the smallest one. `masks="semantic"` makes a column `mask` of the
    objects' labels. Nothing is drawn of an object whose segmentation is an empty list.

    `classes` has the categories' names by label. COCO's ids have gaps, whose names are empty; ids that are
    negative, or 65,536 or more, have no names. `contiguous_labels` numbers the categories from 0 instead.

    A file is read once, at about 450 MB/s without masks; a box takes 29 bytes of memory and 12 for each
    keypoint, an image 64 bytes and its name, and with masks each point of a polygon 8 bytes and each run of
    RLE 4.

    Args:
        json: the file, or its URL.
        images: the folder of images, or its URL.
        keep_empty: keep images without annotations.
        keep_crowd: keep objects that are groups (`iscrowd`). Without them, an image may be one without
            annotations.
        contiguous_labels: labels are the indices of the categories in the order of their ids.
        keypoints: "auto" reads keypoints if all annotations have the same ones; True raises an error
            otherwise, with the id of an annotation that does not have them; False skips them.
        masks: "instances", "semantic", or None: segmentations are not read.
        mask_dtype: "uint8", which tells 255 instances apart, or "uint16". A row with more is an error of its
            sample.
        mask_background: the value of a semantic mask where no object is, and of padding. It must not be a
            class that is drawn. The default, 255, is left out of a loss by `ignore_index=255`; 0 suits ids
            that count from 1.
        mask_crowd: the value of groups (`iscrowd`) in a semantic mask: not that of another object's class,
            but it may be that of the background. None means their label.
        check_sizes: whether images must have the `width` and `height` of the file, if it has them.

    Raises:
        NotFoundError: no such file or folder (a FileNotFoundError).
        InvalidArgumentError: the file is not JSON, or is truncated; it is not of COCO's format; annotations
            of unknown images or categories; ids that occur twice; boxes that are not four finite numbers, or
            have negative sizes; keypoints of another number than their category names, or with
            `keypoints=True` not the same ones in all annotations; with `masks`, segmentations that are
            missing or wrong, such as a polygon of two points, or RLE of another size than its image, and
            classes that a semantic mask cannot show; options of masks that are not asked for. It names the
            offset or the id (a ValueError).
        PermissionDeniedError: a file may not be read (a PermissionError).
    """
    given = {"json": _absolute("json", json), "images": _absolute("images", images)}
    text = ", ".join(repr(os.fsdecode(path)) for path in given.values())
    options = {
        "keep_empty": (keep_empty, True),
        "keep_crowd": (keep_crowd, True),
        "contiguous_labels": (contiguous_labels, False),
        "keypoints": (keypoints if keypoints == "auto" else _checks.boolean("keypoints", keypoints), "auto"),
        **_masks(masks, mask_dtype, mask_background, mask_crowd),
        "check_sizes": (check_sizes, True),
    }
    text += _add(given, options)
    return _Opened("coco", given, f"stoker.coco({text})")


def voc(
    root: str | os.PathLike[Any],
    year: str | None = None,
    split: str = "train",
    task: Literal["detection", "segmentation"] = "detection",
    *,
    keep_difficult: bool = True,
    one_based: bool = True,
    class_names: Iterable[str] | str | os.PathLike[Any] | None = None,
    instances: bool = False,
    fill: int = _BACKGROUND,
    threads: int = 0,
    check_sizes: bool = True,
) -> Source:
    """Images with boxes, or with masks, from a data set of Pascal VOC's layout.

        source = stoker.voc("VOCdevkit", "2012", "trainval")
        segmented = stoker.voc("VOCdevkit", "2012", "val", task="segmentation", instances=True)

    Samples are in the order of the split's list: `ImageSets/Main/trainval.txt`, or
    `ImageSets/Segmentation/val.txt`. Each of its lines names an image of `JPEGImages`, without its extension.

    **Detection.** The objects of an image are those of `Annotations/NAME.xml`, in the order of the file:

    - `boxes` (float32, 4): left, top, right, bottom in pixels. The files number pixels from 1, and `xmax`
      and `ymax` are those of the last pixel of the box, so these are xmin - 1, ymin - 1, xmax, ymax;
    - `labels` (int64): 0 to 19. `classes` has the 20 names, in alphabetical order;
    - `difficult`, `truncated`, `occluded` (uint8): 0 or 1; 0 if the file does not say.

    Parts of an object, as the head of a person, are not read. Other classes than VOC's are an error that
    lists them, since splits would number them differently: pass `class_names`. Loaders take boxes as those of
    the image as viewed: for photographs with an EXIF orientation, which VOC does not have, see `coco`. As
    there, an image whose size differs from the annotated one is an error of its sample: some published data
    sets have wrong numbers, and need `check_sizes=False`.

    **Segmentation.** Columns of masks, which `Mask` describes:

    - `mask` (uint8), of `SegmentationClass`: 0 is background, 1 to 20 are the classes, and 255 is void;
    - `instances` (uint8), of `SegmentationObject`, if asked for: 1, 2, … are the objects of the image.

    A box takes 27 bytes of memory, and an image 40 and its path; a mask takes 8 and its path.

    Args:
        root: the folder `VOC2012`, `VOCdevkit`, or the one that `VOCdevkit` is in. A folder of another name
            than `VOC2012` may have any year.
        year: the year in the folder's name: "2007" to "2012". None means that of `root`, or "2012" if its
            name has none.
        split: the name of a list: "train", "val", "trainval", "test".
        task: "detection" or "segmentation".
        keep_difficult: keep objects that are marked as difficult. Without them, an image may be one without
            objects. For detection.
        one_based: False says that coordinates count from 0, as some tools write them; boxes are then those of
            the files. For detection.
        class_names: the names in the files, by label, or a file with a name on each line; None means VOC's
            20. For detection.
        instances: whether to read the masks of instances, too. For segmentation.
        fill: the value of masks outside of the image, 0 to 255. For segmentation.
        threads: for listing folders and reading annotations, 0 to 256; 0 means the cores allotted.
        check_sizes: whether images must have the `size` of their annotation, if it has one. For detection.

    Raises:
        NotFoundError: no such folder or list (a FileNotFoundError).
        InvalidArgumentError: a name of the list without an image, an annotation or a mask; a file that is not
            such an XML file, or has a DOCTYPE; an object without a name or a box; a box that is reversed or
            begins before the first pixel, or is not finite; classes without a name. It names the file and
            the line. Also options of the other task (a ValueError).
        PermissionDeniedError: a file may not be read (a PermissionError).
        UnimplementedError: the data set is on a server.
    """
    given = {"root": _absolute("root", root)}
    if year is not None:
        given["year"] = os.fsencode(_checks.text("year", year))
    given["split"] = os.fsencode(_checks.text("split", split))
    text = f"{os.fsdecode(given['root'])!r}, {year!r}, {split!r}"
    if _checks.choice("task", task, ("detection", "segmentation")) != "detection":
        given["task"] = task.encode()
        text += f", {task!r}"
    flags = {"keep_difficult": (keep_difficult, True), "one_based": (one_based, True)}
    text += _add(given, {**flags, "check_sizes": (check_sizes, True), "instances": (instances, False)})
    if class_names is not None:
        names = _names_in(class_names)
        given["class_names"] = b"\n".join(names)
        text += f", class_names={[os.fsdecode(name) for name in names]}"
    text += _add(given, {"fill": (_checks.integer("fill", fill, 0, 255), _BACKGROUND)})
    return _Opened("voc", given, f"stoker.voc({text})", _checks.integer("threads", threads, 0, 256))


def yolo(
    data: str | os.PathLike[Any],
    split: str = "train",
    *,
    masks: Literal["instances", "semantic"] | None = None,
    mask_dtype: Literal["uint8", "uint16"] = "uint8",
    mask_background: int = _BACKGROUND,
    threads: int = 0,
) -> Source:
    """Images with boxes, from a data set in Ultralytics' format for YOLO.

        source = stoker.yolo("coco8/data.yaml")
        validation = stoker.yolo("coco8/data.yaml", "val")

    The YAML file has the names of the classes, and for each split a folder of images, a `.txt` file that
    lists images, or a list of such. They are relative to its key `path`, and that is relative to the folder
    of the file (not to the data sets of Ultralytics' settings). Lines of a list are relative to the list's
    folder.

    The labels of `images/a/7.jpg` are in `labels/a/7.txt`, those of images that are not in a folder `images`
    next to them: lines of `class x y width height`, or of a polygon, `class x y x y x y …`, whose box is its
    bounds, in fractions of the image's width and height. An image without the file has no objects. Samples
    are in the order of the split's folders, each sorted by path, or of its lists. A sample has

    - `image`;
    - `boxes` (float32, 4): x and y of the centre, width and height; batches have them in pixels;
    - `labels` (int64): the classes. `classes` has their names;
    - `instances` or `mask`, with `masks`: drawn from the polygons as those of `coco` are. Nothing is drawn of
      a box.

    A box takes 24 bytes of memory, an image 32 and its path, and with masks each point of a polygon 8. Poses
    (`kpt_shape`), and data sets on servers, are not read; rotated boxes are polygons of four points.

    Args:
        data: the YAML file.
        split: one of its keys: "train", "val" (or "validation"), "test".
        masks: "instances", "semantic", or None.
        mask_dtype: as of `coco`.
        mask_background: as of `coco`. Classes count from 0, so 0 is a class.
        threads: for listing folders and reading labels, 0 to 256; 0 means the cores allotted.

    Raises:
        NotFoundError: no such file, folder or list (a FileNotFoundError).
        InvalidArgumentError: it is not such a YAML file, or lacks the split; a folder without images; no
            image has a file of labels; a line that is neither five numbers nor a polygon; a class without a
            name; coordinates that are not from 0 to 1; a class that is the background. It names the file and
            the line (a ValueError).
        PermissionDeniedError: a file may not be read (a PermissionError).
        UnimplementedError: the data set is on a server.
    """
    path = _absolute("data", data)
    name = _checks.text("split", split)
    given = {"data": path, "split": os.fsencode(name)}
    text = f"stoker.yolo({os.fsdecode(path)!r}, {name!r}"
    text += _add(given, _masks(masks, mask_dtype, mask_background)) + ")"
    return _Opened("yolo", given, text, _checks.integer("threads", threads, 0, 256))
