"""Mosaics of four photographs and their boxes on one core: stoker, a plain OpenCV pipeline, and Ultralytics.

    python bench/mosaic.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 640] [--only NAME,…]

PHOTOS is a folder of photographs, with invented boxes as in bench/boxes.py. A sample is a mosaic: a
window, drawn by scale (0.5) and translation (0.1), of a canvas of twice the size with four photographs.
It is flipped at random; boxes follow. Batches have 16 images of uint8.

"OpenCV" decodes, resizes with INTER_LINEAR, fills the canvas, and warps it, one photograph after the other.
"stoker turned" also turns rows by up to 10 degrees. "stoker with colours" and "Ultralytics" also change hue,
saturation and brightness. "Ultralytics" is its own YOLODataset with its default augmentations; it takes the
other three from the photographs that it has decoded last. "Ultralytics from memory" is the same with
cache="ram", which decodes each photograph once. They are measured if they are installed. Samples are loaded
one after the other in this process, as a worker of a DataLoader does.

How they are compared: bench/in_turns.py.
"""

import pathlib

import numpy as np
from boxes import loader_of, make_boxes, stacked
from in_turns import compare, endless

BATCH = 16
SCALE, TRANSLATE, FILL = 0.5, 0.1, 114


def by_stoker(samples, size, colours=(), degrees=0):
    import stoker

    mosaic = stoker.Mosaic(size, SCALE, TRANSLATE, FILL, degrees=degrees)
    recipe = [mosaic, *colours, stoker.RandomHorizontalFlip()]
    yield from (len(batch.image) for batch in endless(loader_of(samples, recipe)))


def by_stoker_with_colours(samples, size):
    import stoker

    return by_stoker(samples, size, [stoker.ColorJitter(brightness=0.4, saturation=0.7, hue=0.015)])


def by_stoker_turned(samples, size):
    return by_stoker(samples, size, degrees=10)


def by_opencv(samples, size):
    import cv2

    cv2.setNumThreads(1)
    random = np.random.default_rng(0)

    def resized(index):
        path, boxes, _ = samples[index]
        image = cv2.imread(path)
        factor = size / max(image.shape[:2])
        height, width = (max(1, round(side * factor)) for side in image.shape[:2])
        return cv2.resize(image, (width, height)), np.array(boxes).reshape(-1, 4) * factor

    def load(index):
        canvas = np.full((2 * size, 2 * size, 3), FILL, np.uint8)
        x, y = random.integers(size // 2, 3 * size // 2, 2)
        all_boxes = []
        for part, sample in enumerate([index, *random.integers(0, len(samples), 3)]):
            image, boxes = resized(sample)
            height, width = image.shape[:2]
            left = x if part % 2 else x - width
            top = y if part // 2 else y - height
            right, bottom = min(left + width, 2 * size), min(top + height, 2 * size)
            kept = image[max(0, -top) : bottom - top, max(0, -left) : right - left]
            canvas[max(0, top) : bottom, max(0, left) : right] = kept
            all_boxes.append((boxes + [left, top, left, top]).clip(0, 2 * size))
        factor = random.uniform(1 - SCALE, 1 + SCALE)
        shift = size * random.uniform(0.5 - TRANSLATE, 0.5 + TRANSLATE, 2) - size * factor
        matrix = np.array([[factor, 0, shift[0]], [0, factor, shift[1]]])
        row = cv2.warpAffine(canvas, matrix, (size, size), borderValue=(FILL, FILL, FILL))
        before = np.concatenate(all_boxes) * factor
        after = (before + [*shift, *shift]).clip(0, size)
        sides, old = after[:, 2:] - after[:, :2], before[:, 2:] - before[:, :2]
        after = after[(sides > 2).all(1) & (sides.prod(1) > 0.1 * old.prod(1))]
        if random.random() < 0.5:
            row = row[:, ::-1]
        return cv2.cvtColor(row, cv2.COLOR_BGR2RGB)

    yield from stacked(load, len(samples), np.stack)


def by_ultralytics(samples, size, cache=None):
    import cv2
    import torch
    from ultralytics.cfg import get_cfg
    from ultralytics.data.dataset import YOLODataset
    from ultralytics.utils import DEFAULT_CFG

    cv2.setNumThreads(1)
    torch.set_num_threads(1)

    class Annotated(YOLODataset):
        def get_img_files(self, img_path):
            return [path for path, _, _ in samples]

        def get_labels(self):
            return [self.label(*sample) for sample in samples]

        @staticmethod
        def label(path, boxes, labels):
            with_size = size_of(path)
            xyxy = np.array(boxes, np.float32).reshape(-1, 4) / np.tile(with_size[::-1], 2)
            xywh = np.concatenate([(xyxy[:, :2] + xyxy[:, 2:]) / 2, xyxy[:, 2:] - xyxy[:, :2]], 1)
            return {
                "im_file": path,
                "shape": with_size,
                "cls": np.array(labels, np.float32).reshape(-1, 1),
                "bboxes": xywh.astype(np.float32),
                "segments": [],
                "keypoints": None,
                "normalized": True,
                "bbox_format": "xywh",
            }

    dataset = Annotated(
        img_path=str(pathlib.Path(samples[0][0]).parent),
        imgsz=size,
        cache=cache,
        augment=True,
        hyp=get_cfg(DEFAULT_CFG),
        batch_size=BATCH,
        data={"names": {i: str(i) for i in range(80)}, "channels": 3},
        task="detect",
    )

    yield from stacked(
        lambda index: dataset[int(index)], len(samples), lambda rows: dataset.collate_fn(rows)["img"]
    )


def size_of(path):
    from PIL import Image

    with Image.open(path) as photo:
        return photo.size[1], photo.size[0]


def by_ultralytics_cached(samples, size):
    return by_ultralytics(samples, size, cache="ram")


LOADERS = {
    "stoker": by_stoker,
    "stoker with colours": by_stoker_with_colours,
    "stoker turned": by_stoker_turned,
    "OpenCV": by_opencv,
    "Ultralytics": by_ultralytics,
    "Ultralytics from memory": by_ultralytics_cached,
}
NEEDS = {"OpenCV": "cv2", "Ultralytics": "ultralytics", "Ultralytics from memory": "ultralytics"}

if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_boxes, size=640)
