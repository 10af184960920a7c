"""How many accelerators of MLPerf Storage's RetinaNet a loader feeds, with real decoding: stoker, tf.data and
DALI.

    python bench/retinanet.py PHOTOS [--rounds 7] [--seconds 4] [--cores 0,1] [--size 800] [--only NAME,…]

MLPerf Storage 3.0 emulates a B200 that takes 47.55 ms for a batch of 24 images, and must compute in 85 % of
the time; its loaders read JPEG files of 323 kB on average and decode nothing. Here each is decoded, resized
to size × size, and has its boxes, 7 on average, scaled with it: uint8 images and ragged boxes in batches of
24. PHOTOS is a folder of photographs, which are first written as JPEGs of 1024 pixels on the longer side in
quality 98, of about that many bytes. tf.data decodes by tf.io.decode_jpeg, resizes bilinearly without
antialiasing, which is its default, and has a thread for each core; stoker resizes with antialiasing, and so
does DALI, whose operators all run on the CPU. Each orders samples at random. tf.data and DALI are measured
where they are installed.

In addition to what bench/in_turns.py prints, there are the images per second, and how many accelerators
they feed in 85 % of the time; how many the CPU seconds say, which other programs on the cores hardly change;
and the latter for 16 cores, which is an extrapolation, not a measurement.
"""

import json
import os
import pathlib

import numpy as np
from in_turns import SPEED, compare, endless

BATCH, STEP_SECONDS, LEAST_UTILIZATION = 24, 0.04755, 0.85
LONGER_SIDE, QUALITY = 1024, 98
EXTRAPOLATED_CORES = 16


def make_images(photos, folder):
    """Writes the JPEGs; returns the path, the boxes (xyxy) and the labels of each."""
    from PIL import Image

    random = np.random.default_rng(1)
    samples, total = [], 0
    for path in sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")):
        with Image.open(path) as photo:
            scale = LONGER_SIDE / max(photo.size)
            image = photo.convert("RGB").resize([round(side * scale) for side in photo.size], Image.LANCZOS)
        made = folder / f"{len(samples)}.jpg"
        image.save(made, quality=QUALITY)
        total += made.stat().st_size
        count = int(random.geometric(1 / 8)) - 1  # 7 on average, and sometimes none
        first, last = random.random((count, 2)), random.random((count, 2))
        boxes = np.concatenate([np.minimum(first, last), np.maximum(first, last)], 1) * [
            *image.size,
            *image.size,
        ]
        samples.append((str(made), boxes.tolist(), random.integers(0, 264, count).tolist()))
    print(f"{len(samples)} JPEG files of {total / len(samples) / 1000:.0f} kB on average\n", flush=True)
    return samples


def threads():
    return len(os.sched_getaffinity(0))


def by_stoker(samples, size):
    import stoker

    paths, boxes, labels = zip(*samples)
    columns = {
        "boxes": stoker.Boxes([np.array(each, np.float32).reshape(-1, 4) for each in boxes]),
        "labels": stoker.PerObject([np.array(each, np.int64) for each in labels]),
    }
    loader = stoker.Loader(
        stoker.files(paths, columns=columns),
        [stoker.Resize((size, size))],
        batch_size=BATCH,
        shuffle=True,
        runtime=stoker.Runtime(threads=threads()),
    )
    yield from (len(batch.image) for batch in endless(loader))


def by_tf_data(samples, size):
    import tensorflow as tf

    paths, boxes, labels = zip(*samples)

    def load(path, its_boxes, its_labels):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        height, width = tf.unstack(tf.cast(tf.shape(image)[:2], tf.float32))
        resized = tf.cast(tf.round(tf.image.resize(image, (size, size))), tf.uint8)
        return resized, its_boxes * (size / tf.stack([width, height, width, height])), its_labels

    boxes = tf.ragged.constant(boxes, ragged_rank=1, inner_shape=(4,), dtype=tf.float32)
    labels = tf.ragged.constant(labels, dtype=tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices((list(paths), boxes, labels))
    dataset = dataset.shuffle(len(samples)).repeat().map(load, num_parallel_calls=threads())
    dataset = dataset.ragged_batch(BATCH).prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads()
    yield from (int(images.shape[0]) for images, _, _ in dataset.with_options(options))


def by_dali(samples, size):
    from nvidia.dali import fn, pipeline_def, types

    images, annotations = [], []
    for path, its_boxes, its_labels in samples:
        images.append({"id": len(images), "file_name": path, "width": 1, "height": 1})
        for (left, top, right, bottom), label in zip(its_boxes, its_labels):
            box = [left, top, right - left, bottom - top]
            about = {"id": len(annotations), "image_id": len(images) - 1, "category_id": label, "iscrowd": 0}
            annotations.append({**about, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": label, "name": str(label)} for label in range(264)]
    folder = pathlib.Path(samples[0][0]).parent
    file = folder / "dali.json"
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))

    @pipeline_def(batch_size=BATCH, num_threads=threads(), device_id=None, prefetch_queue_depth=2)
    def pipeline():
        jpegs, boxes, labels = fn.readers.coco(
            file_root=str(folder),
            annotations_file=str(file),
            ltrb=True,
            random_shuffle=True,
            initial_fill=len(samples),
            avoid_class_remapping=True,
            skip_empty=False,
        )
        shape = fn.cast(fn.peek_image_shape(jpegs), dtype=types.FLOAT)  # height, width, channels
        scale = size / fn.stack(shape[1], shape[0], shape[1], shape[0])
        image = fn.decoders.image(jpegs, device="cpu")
        image = fn.resize(image, resize_x=size, resize_y=size, antialias=True)
        return image, boxes * scale, labels

    made = pipeline()
    made.build()
    while True:
        images, _, _ = made.run()
        yield len(images)


LOADERS = {"stoker": by_stoker, "tf.data": by_tf_data, "DALI": by_dali}
NEEDS = {"tf.data": "tensorflow", "DALI": "nvidia.dali"}


def accelerators(per_second):
    """Those that share the loader: each computes in 85 % of the time."""
    return per_second * STEP_SECONDS / BATCH / LEAST_UTILIZATION


COLUMNS = {
    **SPEED,
    "B200s": lambda cpu, speed, cores: f"{accelerators(speed):.2f}",
    "B200s by CPU": lambda cpu, speed, cores: f"{accelerators(1000 * cores / cpu):.2f}",
    f"extrapolated to {EXTRAPOLATED_CORES} cores": lambda cpu, speed, cores: (
        f"{accelerators(1000 * EXTRAPOLATED_CORES / cpu):.1f}"
    ),
}

if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_images, size=800, columns=COLUMNS)
