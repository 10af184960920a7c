"""OpenCV in a pool of threads, which write to the rows of a batch: what many write by hand."""

import collections
import concurrent.futures
import random

from workload import BATCH, SIZE, center, normalize, random_crop

NAME = "OpenCV threads"
DISTRIBUTION = "opencv-python-headless"
PACKAGES = ("opencv-python-headless", "numpy")
IMPORTS = ("cv2",)
VARIANTS = {"threads": "not antialiased"}
WORKLOADS = ("train", "train-f32", "eval")


def load(path, row, workload):
    import cv2
    import numpy as np

    flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
    image = cv2.imdecode(np.fromfile(path, np.uint8), flags)
    height, width = image.shape[:2]
    if workload.train:
        left, top, w, h = random_crop(width, height, random)
        image = cv2.resize(
            image[top : top + h, left : left + w], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR
        )
        image = image[:, ::-1] if random.random() < 0.5 else image
    else:
        w, h, left, top = center(width, height)
        image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
        image = image[top : top + SIZE, left : left + SIZE]
    row[:] = normalize(image) if workload.normalized else image


def batches(data, workload, variant):
    import cv2
    import numpy as np

    cv2.setNumThreads(0)

    source, ahead = data.endless(shuffled=workload.train), collections.deque()
    with concurrent.futures.ThreadPoolExecutor(data.cores) as pool:
        while True:
            while len(ahead) < 3:
                batch = np.empty((BATCH, SIZE, SIZE, 3), workload.dtype)
                jobs = [pool.submit(load, next(source), row, workload) for row in batch]
                ahead.append((batch, jobs))
            batch, jobs = ahead.popleft()
            for job in jobs:
                job.result()
            yield batch
