"""Trains a small U-Net on photographs and their masks, which stoker.masks joins by their names.

Replaces a map() that decodes both files, and draws one crop and one flip for both. A loader of stoker.masks
makes (images, masks), as fit takes them: a mask gets the crop and the flip of its photograph, and classes are
never mixed (docs/data.md says what else transforms do to masks). The profile says whether the U-Net waits for
its input.
"""

import pathlib
import tempfile

import keras
import photographs
import profiles
import stoker
import tensorflow as tf
import timing

LARGER, SIZE, BATCH = 72, 64, 16
BATCHES = 2 if timing.QUICK else 6

folder = pathlib.Path(photographs.folder(__doc__, count=96)).absolute()
source = stoker.image_folder(folder)
kept = tempfile.TemporaryDirectory()  # of the masks
paths = [source.path(sample) for sample in range(len(source))]


def bright(image):
    """A class for each pixel that can be learned: is it brighter than half? Use your own masks."""
    return tf.cast(tf.reduce_mean(tf.cast(image, tf.float32), -1) > 127.5, tf.uint8)


def mask_of(path: str) -> str:
    """Writes the mask of a photograph: a PNG of its size, gray, in which 0 and 1 are classes."""
    mask = pathlib.Path(kept.name, pathlib.Path(path).relative_to(folder)).with_suffix(".png")
    mask.parent.mkdir(parents=True, exist_ok=True)
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
    tf.io.write_file(str(mask), tf.io.encode_png(bright(image)[..., None]))
    return str(mask)


masks = [mask_of(path) for path in paths]


def pairs_of_stoker() -> stoker.Loader:
    return stoker.Loader(
        stoker.masks(folder, kept.name),
        [stoker.Resize((LARGER, LARGER)), stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()],
        batch_size=BATCH,
        shuffle=True,
        seed=1,
        drop_remainder=True,
        exif_orientation=False,  # the masks are of pixels as they are stored
    )


def decoded(path, mask):
    size = (LARGER, LARGER)
    image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), size)
    classes = tf.image.resize(tf.io.decode_png(tf.io.read_file(mask), channels=1), size, method="nearest")
    both = tf.concat([image, tf.cast(classes, tf.float32)], -1)  # one crop and one flip for both
    both = tf.image.random_flip_left_right(tf.image.random_crop(both, (SIZE, SIZE, 4)))
    return both[..., :3], both[..., 3]


usual = (
    tf.data.Dataset.from_tensor_slices((paths, masks))
    .shuffle(len(paths), seed=1)
    .map(decoded, tf.data.AUTOTUNE)
    .batch(BATCH, drop_remainder=True)
    .take(BATCHES)
    .prefetch(tf.data.AUTOTUNE)
)


def u_net() -> keras.Model:
    keras.utils.set_random_seed(1)
    conv = {"padding": "same", "activation": "relu"}
    entry = keras.Input((SIZE, SIZE, 3))
    top = keras.layers.Conv2D(8, 3, **conv)(keras.layers.Rescaling(1 / 127.5, offset=-1)(entry))
    middle = keras.layers.Conv2D(16, 3, **conv)(keras.layers.MaxPooling2D()(top))
    bottom = keras.layers.Conv2D(32, 3, **conv)(keras.layers.MaxPooling2D()(middle))
    up = keras.layers.Concatenate()([keras.layers.UpSampling2D()(bottom), middle])
    up = keras.layers.Conv2D(16, 3, **conv)(up)
    up = keras.layers.Concatenate()([keras.layers.UpSampling2D()(up), top])
    bright_or_not = keras.layers.Conv2D(1, 1, activation="sigmoid")(up)
    model = keras.Model(entry, keras.layers.Reshape((SIZE, SIZE))(bright_or_not))
    model.compile("adam", "binary_crossentropy", metrics=["binary_accuracy"])
    return model


def with_stoker(function):
    """Calls the function with the dataset of a loader that is closed afterwards."""
    with pairs_of_stoker() as loader:
        return function(loader.as_tf_dataset().take(BATCHES))


def agreement(dataset: tf.data.Dataset) -> float:
    """The part of the pixels whose class is that of the photograph's pixel next to it in the batch."""
    same = [
        tf.reduce_mean(tf.cast(bright(image) == tf.cast(mask, tf.uint8), tf.float32))
        for image, mask in dataset
    ]
    return float(tf.reduce_mean(same))


def overlap(dataset: tf.data.Dataset) -> float:
    """The intersection of the predicted and the true pixels of class 1, over their union."""
    metric = keras.metrics.BinaryIoU(target_class_ids=[1])
    for image, mask in dataset:
        metric.update_state(mask, model(image))
    return float(metric.result())


def reading(dataset: tf.data.Dataset) -> int:
    return sum(1 for _ in dataset)


pairs = {"stoker": lambda function: with_stoker(function), "usual": lambda function: function(usual)}
model = u_net()
for name, call in pairs.items():
    print(f"{name}: {call(agreement):.1%} of a mask's pixels are those of its photograph")
before = with_stoker(overlap)
with pairs_of_stoker() as loader:
    history = model.fit(loader.as_tf_dataset().take(BATCHES), epochs=2, verbose=0).history
    causes = loader.stats()["waited"]
print(f"two epochs: losses {', '.join(f'{loss:.3f}' for loss in history['loss'])}")
print(f"waited for stoker: {', '.join(f'{seconds:.2f} s {cause}' for cause, seconds in causes.items())}")
print(f"IoU of the bright pixels: {before:.2f}, after training {with_stoker(overlap):.2f}")

seconds = timing.in_turns({name: lambda call=call: call(reading) for name, call in pairs.items()})
waited = {name: [] for name in pairs}
for _ in range(timing.ROUNDS):
    for name, call in pairs.items():
        waited[name].append(profiles.waited(call(lambda dataset: profiles.training(model, dataset))))
shares = ", ".join(f"{min(each):.0%} to {max(each):.0%} with {name}" for name, each in waited.items())
print(
    f"verdict: reading pairs: {timing.verdict(seconds, 'stoker', 'usual')}; "
    f"the U-Net's steps wait for input for {shares}; "
    f"{timing.verdict(waited, 'stoker', 'usual', 'share of waiting in the steps')}"
)
