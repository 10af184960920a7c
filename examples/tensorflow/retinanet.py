"""Trains a small RetinaNet on photographs and the boxes of their objects, from stoker.coco.

Replaces a map() that crops and flips an image, computes its boxes again, and pads them to the most of any
image. A loader of stoker.coco has moved the boxes, and dropped those of objects that a crop left out; they
arrive as a tf.RaggedTensor. Here a map() compares them with the anchors of the RetinaNet
(https://arxiv.org/abs/1708.02002). The profile says whether its steps wait for input.
"""

import json
import pathlib
import tempfile

import keras
import numpy as np
import photographs
import profiles
import stoker
import tensorflow as tf
import timing

SIZE, BATCH, CLASSES, EPOCHS = 128, 16, 3, 12
STRIDES, SIDES = (8, 16), (1.5, 2.5, 4)  # of the two levels; of anchors, in strides

photos = stoker.image_folder(photographs.folder(__doc__, count=96))
kept = tempfile.TemporaryDirectory()  # of photographs with objects


def make_coco() -> pathlib.Path:
    """Pastes red, green and blue boxes into the photographs, and annotates them. Use your own objects."""
    random = np.random.default_rng(1)
    images, annotations = [], []
    for number in range(len(photos)):
        pixels = stoker.decode_image(photos.path(number)).copy()
        height, width, _ = pixels.shape
        images.append({"id": number, "file_name": f"{number}.jpg", "width": width, "height": height})
        for category in random.integers(0, CLASSES, random.integers(0, 4)):  # sometimes none
            w, h = (random.uniform(0.15, 0.4, 2) * min(height, width)).astype(int)
            left, top = random.integers(0, (width - w, height - h))
            pixels[top : top + h, left : left + w] = 40 + 200 * np.eye(CLASSES)[category]
            box = [int(side) for side in (left, top, w, h)]
            about = {"id": len(annotations) + 1, "image_id": number, "category_id": int(category)}
            annotations.append({**about, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
        tf.io.write_file(f"{kept.name}/{number}.jpg", tf.io.encode_jpeg(pixels))
    categories = [{"id": number, "name": name} for number, name in enumerate(("red", "green", "blue"))]
    coco = pathlib.Path(kept.name, "boxes.json")
    coco.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return coco


def boxes_of_stoker() -> stoker.Loader:
    recipe = [
        stoker.RandomIoUCrop(),
        stoker.Resize((SIZE, SIZE)),
        stoker.RandomHorizontalFlip(),
        stoker.SanitizeBoundingBoxes(min_size=4),
        stoker.ConvertBoundingBoxFormat("xyxy"),
    ]
    source = stoker.coco(coco, kept.name)
    return stoker.Loader(source, recipe, batch_size=BATCH, shuffle=True, seed=1, drop_remainder=True)


def make_anchors() -> np.ndarray:
    """Returns the anchors of all cells, as left, top, right, bottom."""
    made = []
    for stride in STRIDES:
        y, x = np.mgrid[0:SIZE:stride, 0:SIZE:stride] + stride / 2
        half = np.float32(SIDES) * stride / 2
        made.append(np.stack([x, y, x, y], -1)[:, :, None] + half[:, None] * [-1, -1, 1, 1])
    return np.concatenate([each.reshape(-1, 4) for each in made]).astype(np.float32)


def overlaps(boxes: tf.Tensor, others: np.ndarray) -> tf.Tensor:
    """Returns the intersection over union of boxes (rows, n, 4) and others (m, 4): (rows, n, m)."""
    low = tf.maximum(boxes[:, :, None, :2], others[:, :2])
    high = tf.minimum(boxes[:, :, None, 2:], others[:, 2:])
    inside = tf.reduce_prod(tf.maximum(high - low, 0), -1)
    areas = tf.reduce_prod(boxes[..., 2:] - boxes[..., :2], -1)[:, :, None]
    return inside / (areas + np.prod(others[:, 2:] - others[:, :2], -1) - inside)


def targets(batch: dict) -> tuple:
    """Returns images, what the RetinaNet should answer for each anchor, and what each answer counts."""
    boxes = batch["boxes"].to_tensor()  # (rows, most objects of the batch, 4): others overlap nothing
    labels = batch["labels"].to_tensor()
    boxes, labels = tf.pad(boxes, [[0, 0], [0, 1], [0, 0]]), tf.pad(labels, [[0, 0], [0, 1]])  # at least one
    overlap = overlaps(boxes, anchors)
    nearest, best = tf.argmax(overlap, 1), tf.reduce_max(overlap, 1)
    mine = tf.gather(boxes, nearest, batch_dims=1)
    found = tf.cast(best >= 0.5, tf.float32)
    classes = tf.one_hot(tf.gather(labels, nearest, batch_dims=1), CLASSES) * found[..., None]
    edges = (mine - anchors) / np.tile(anchors[:, 2:] - anchors[:, :2], 2)
    counts = tf.size(found, tf.float32) / tf.maximum(tf.reduce_sum(found), 1)  # the mean is over all anchors
    decided = tf.cast((best < 0.4) | (best >= 0.5), tf.float32)
    weights = {"classes": decided * counts, "edges": found * counts}
    return batch["image"], {"classes": classes, "edges": edges}, weights


def retinanet() -> keras.Model:
    keras.utils.set_random_seed(1)
    conv = {"padding": "same", "activation": "relu"}
    entry = keras.Input((SIZE, SIZE, 3))
    below = keras.layers.Rescaling(1 / 127.5, offset=-1)(entry)
    levels = []
    for channels in (16, 32, 64, 64):
        below = keras.layers.Conv2D(channels, 3, strides=2, **conv)(below)
        levels.append(keras.layers.Conv2D(64, 1)(below))
    fine = keras.layers.Add()([levels[2], keras.layers.UpSampling2D()(levels[3])])
    rare = keras.initializers.Constant(-4.6)  # few anchors have an object: 1 %
    answers = {}
    for name, values, bias in (("classes", CLASSES, rare), ("edges", 4, "zeros")):
        hidden = keras.layers.Conv2D(64, 3, **conv)
        last = keras.layers.Conv2D(len(SIDES) * values, 3, padding="same", bias_initializer=bias)
        flat = [keras.layers.Reshape((-1, values))(last(hidden(level))) for level in (fine, levels[3])]
        answers[name] = keras.layers.Concatenate(axis=1, name=name)(flat)
    model = keras.Model(entry, answers)
    focal = keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True, from_logits=True)
    model.compile("adam", {"classes": focal, "edges": keras.losses.Huber(0.1)})
    return model


def hits(batches: tf.data.Dataset) -> float:
    """Returns the share of images with objects whose likeliest box overlaps an object by half."""
    found = []
    for batch in batches:
        answers = model.predict_on_batch(batch["image"])
        likeliest = answers["classes"].max(-1).argmax(-1)
        edges = np.take_along_axis(answers["edges"], likeliest[:, None, None], 1)[:, 0]
        anchor = anchors[likeliest]
        box = anchor + edges * np.tile(anchor[:, 2:] - anchor[:, :2], 2)
        for one, boxes in zip(box, batch["boxes"]):
            if len(boxes) > 0:
                found.append(np.max(overlaps(boxes[None], one[None])) >= 0.5)
    return float(np.mean(found))


coco, anchors = make_coco(), make_anchors()
model = retinanet()
with boxes_of_stoker() as loader:
    batches = loader.as_tf_dataset()
    print(f"boxes: {batches.element_spec['boxes']}")
    dataset = batches.map(targets)
    before = hits(batches)
    losses = model.fit(dataset, epochs=EPOCHS, verbose=0).history["loss"]
    print(f"{EPOCHS} epochs: losses from {losses[0]:.3f} to {losses[-1]:.3f}")
    after = hits(batches)
    print(f"the likeliest box is an object's in {before:.0%} of the images, after training in {after:.0%}")
    waited = [profiles.waited(profiles.training(model, dataset)) for _ in range(timing.ROUNDS)]
    causes = loader.stats()["waited"]
print(f"waited for stoker: {', '.join(f'{seconds:.2f} s {cause}' for cause, seconds in causes.items())}")
print(f"verdict: the RetinaNet's steps wait for input for {min(waited):.0%} to {max(waited):.0%}")
