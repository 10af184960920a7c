"""Trains the models of three of TensorFlow's tutorials on the usual input, and on stoker's.

    python tutorials.py PHOTOGRAPHS [EPOCHS]

The tutorials are "Image classification", "Transfer learning and fine-tuning" and "Image segmentation", with
smaller models. Each of them is one function of the datasets, which cannot tell one input from the other.
The pretrained weights of MobileNetV2 would be downloaded, so it begins with random ones.
"""

import pathlib
import sys
import tempfile

import keras
import numpy as np
import stoker
import tensorflow as tf

SIZE, BATCH, SEED = 64, 16, 123
MASKS = {"exif_orientation": False}  # masks are not turned


def usual_classes(folder: str):
    common = {"validation_split": 0.2, "seed": SEED, "image_size": (SIZE, SIZE), "batch_size": BATCH}
    train = keras.utils.image_dataset_from_directory(folder, subset="training", verbose=False, **common)
    validation = keras.utils.image_dataset_from_directory(
        folder, subset="validation", verbose=False, **common
    )
    names = train.class_names
    return train.cache().shuffle(1000).prefetch(tf.data.AUTOTUNE), validation.cache(), names


def stoker_classes(folder: str):
    train, validation = stoker.image_folder(folder).split(0.2, seed=SEED)
    resize = [stoker.Resize((SIZE, SIZE), antialias=False)]
    loader = stoker.Loader(train, resize, batch_size=BATCH, shuffle=True, seed=SEED, dtype="float32")
    held = stoker.Loader(validation, resize, batch_size=BATCH, dtype="float32")
    levels = lambda images, labels: (images * 255, tf.cast(labels, tf.int32))  # noqa: E731
    datasets = loader.as_tf_dataset().map(levels), held.as_tf_dataset(epoch=0).map(levels)
    return *datasets, train.classes


def usual_masks(pairs: list[tuple[str, str]]):
    def decoded(path, mask):
        image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (SIZE, SIZE))
        mask = tf.image.resize(tf.io.decode_png(tf.io.read_file(mask), channels=1), (SIZE, SIZE), "nearest")
        return image / 255, mask

    def flipped(images, masks):
        if tf.random.uniform(()) < 0.5:
            return tf.image.flip_left_right(images), tf.image.flip_left_right(masks)
        return images, masks

    images, masks = (list(column) for column in zip(*pairs))
    dataset = tf.data.Dataset.from_tensor_slices((images, masks)).map(decoded, tf.data.AUTOTUNE).cache()
    return dataset.shuffle(1000).map(flipped).batch(BATCH, drop_remainder=True), dataset.batch(BATCH)


def stoker_masks(pairs: list[tuple[str, str]]):
    def loader(files, interpolation, flips, **options):
        transforms = [stoker.Resize((SIZE, SIZE), interpolation=interpolation, antialias=False), *flips]
        return stoker.Loader(stoker.files(files), transforms, batch_size=BATCH, seed=SEED, **MASKS, **options)

    def both(flips, epoch=None, **options):
        images, masks = (list(column) for column in zip(*pairs))
        halves = (
            loader(images, "bilinear", flips, dtype="float32", **options),
            loader(masks, "nearest", flips, **options),
        )
        zipped = tf.data.Dataset.zip(tuple(half.as_tf_dataset(epoch=epoch) for half in halves))
        return zipped.map(lambda image, mask: (image, mask[..., :1]))

    train = both([stoker.RandomHorizontalFlip()], shuffle=True, drop_remainder=True)
    return train, both([], epoch=0)


def image_classification(train, validation, names, epochs: int) -> dict:
    """Layers that augment and rescale, three convolutions, dropout, and one dense layer."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.RandomFlip("horizontal"), keras.layers.RandomRotation(0.1), keras.layers.RandomZoom(0.1),
        keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(64, 3, padding="same", activation="relu"), keras.layers.MaxPooling2D(),
        keras.layers.Dropout(0.2), keras.layers.Flatten(),
        keras.layers.Dense(128, activation="relu"), keras.layers.Dense(len(names)),
    ])  # fmt: skip
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model.fit(train, validation_data=validation, epochs=epochs, verbose=0).history


def transfer_learning(train, validation, names, epochs: int) -> dict:
    """A base that is frozen at first, and from layer 100 on trained in the second half."""
    keras.utils.set_random_seed(1)
    base = keras.applications.MobileNetV2(input_shape=(SIZE, SIZE, 3), include_top=False, weights=None)
    base.trainable = False
    entry = keras.Input((SIZE, SIZE, 3))
    images = keras.applications.mobilenet_v2.preprocess_input(keras.layers.RandomFlip("horizontal")(entry))
    features = keras.layers.GlobalAveragePooling2D()(base(images, training=False))
    model = keras.Model(entry, keras.layers.Dense(len(names))(keras.layers.Dropout(0.2)(features)))

    def compiled(rate):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
        return model

    first = compiled(1e-3).fit(train, validation_data=validation, epochs=epochs, verbose=0)
    base.trainable = True
    for layer in base.layers[:100]:
        layer.trainable = False
    second = compiled(1e-4).fit(
        train, validation_data=validation, initial_epoch=len(first.epoch), epochs=2 * epochs, verbose=0
    )
    return {name: first.history[name] + second.history[name] for name in first.history}


def segmentation(train, validation, epochs: int) -> dict:
    """An encoder of three blocks, a decoder that takes their outputs again, and a class for each pixel."""
    keras.utils.set_random_seed(1)
    entry = keras.Input((SIZE, SIZE, 3))
    kept, x = [], entry
    for filters in (8, 16, 32):
        x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = keras.layers.MaxPooling2D()(x)
    for filters in (32, 16, 8):
        x = keras.layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = keras.layers.Concatenate()([x, kept.pop()])
    model = keras.Model(entry, keras.layers.Conv2D(2, 3, padding="same")(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model.fit(train, validation_data=validation, epochs=epochs, verbose=0).history


def with_masks(folder: str, kept: str) -> list[tuple[str, str]]:
    """Pairs of a photograph and a PNG of its size, in which pixels brighter than half are class 1."""
    pairs = []
    photographs = (
        path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")
    )
    for number, path in enumerate(sorted(photographs)):
        image = tf.io.decode_jpeg(tf.io.read_file(str(path)), channels=3).numpy()
        mask = (image.mean(-1, keepdims=True) > 127.5).astype(np.uint8)
        pairs.append((str(path), f"{kept}/{number}.png"))
        tf.io.write_file(pairs[-1][1], tf.io.encode_png(mask))
    return pairs


CLASSIFIERS = (image_classification, transfer_learning)


def histories(folder: str, epochs: int, classifiers=CLASSIFIERS):
    """(tutorial, input, history) of each tutorial on each input."""
    for tutorial in classifiers:
        for name, inputs in {"usual": usual_classes, "stoker": stoker_classes}.items():
            yield tutorial.__name__, name, tutorial(*inputs(folder), epochs)
    with tempfile.TemporaryDirectory() as kept:
        pairs = with_masks(folder, kept)
        for name, inputs in {"usual": usual_masks, "stoker": stoker_masks}.items():
            yield segmentation.__name__, name, segmentation(*inputs(pairs), epochs)


if __name__ == "__main__":
    for tutorial, name, history in histories(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        told = ", ".join(f"{key} {values[0]:.3f} to {values[-1]:.3f}" for key, values in history.items())
        print(f"{tutorial}, {name}: {len(history['loss'])} epochs, {told}", flush=True)
