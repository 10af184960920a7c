"""A pytest plugin that puts stoker into `keras.utils.image_dataset_from_directory`.

Keras still checks the arguments, lists the directory, and divides it for validation. The files that it
found are then read, decoded, resized, shuffled and batched by a stoker.Loader. Padding to another shape and
images with alpha are not a loader's: there stoker only decodes, by stoker.decode_image, and TensorFlow does
the rest.
"""

import stoker
import tensorflow as tf
from keras.src.utils import image_dataset_utils
from stoker.tensorflow import as_tf_dataset

_LABELS = {"int": tf.int32, "binary": tf.float32, "categorical": tf.float32}
_made = []


class Directory:
    """The object on which Keras calls `batch` and `prefetch`."""

    def __init__(self, image_paths, labels, label_mode, num_classes, shuffle=False, seed=None, **images):
        self.paths = [str(path) for path in image_paths]
        self.labels = labels if label_mode else None
        self.label_mode, self.num_classes = label_mode, num_classes
        self.shuffle, self.seed = bool(shuffle), seed or 0
        self.size, self.channels = tuple(images["image_size"]), images["num_channels"]
        self.layout = "NHWC" if images["data_format"] == "channels_last" else "NCHW"
        self.interpolation = images["interpolation"]
        self.crop, self.pad = images["crop_to_aspect_ratio"], images["pad_to_aspect_ratio"]
        _made.append(self)

    def batch(self, batch_size):
        by_itself = self.pad or self.channels == 4
        batches = self.decoded(batch_size) if by_itself else self.loaded(batch_size)
        if not self.label_mode:
            return batches.map(lambda image: any_rows(self.pixels(image)))
        return batches.map(lambda image, label: (any_rows(self.pixels(image)), any_rows(self.numbers(label))))

    def prefetch(self, _):
        return self.batch(1).unbatch()

    def loaded(self, batch_size):
        options = {"interpolation": self.interpolation, "antialias": False}
        if self.crop:
            # No part of this shape has the whole area, so it takes the largest one in the middle. Its
            # longer side is rounded, where Keras leaves out the fraction.
            ratio = self.size[1] / self.size[0]
            resize = stoker.RandomResizedCrop(self.size, scale=(1, 1), ratio=(ratio, ratio), **options)
        else:
            resize = stoker.Resize(self.size, **options)
        loader = stoker.Loader(
            stoker.files(self.paths, self.labels),
            [resize],
            batch_size=batch_size,
            shuffle=self.shuffle,
            seed=self.seed,
            exif_orientation=False,  # TensorFlow ignores it
        )
        return as_tf_dataset(loader)

    def decoded(self, batch_size):
        """Decodes by stoker.decode_image, then resizes or pads by TensorFlow."""
        mode = "unchanged" if self.channels == 4 else "rgb"
        resize = tf.image.resize_with_pad if self.pad else tf.image.resize

        def decode(path):
            return stoker.decode_image(path.decode(), mode, exif_orientation=False)

        def load(path, *labels):
            image = tf.numpy_function(decode, [path], tf.uint8)
            image.set_shape([None, None, self.channels])
            image = resize(image, *(self.size if self.pad else (self.size,)), method=self.interpolation)
            return (image, *labels) if labels else image

        columns = (self.paths, self.labels) if self.label_mode else self.paths
        samples = tf.data.Dataset.from_tensor_slices(columns)
        if self.shuffle:
            samples = samples.shuffle(len(self.paths), self.seed)
        return samples.map(load).batch(batch_size)

    def pixels(self, images):
        if self.channels == 1:
            images = tf.image.rgb_to_grayscale(images)
        if self.layout == "NCHW":
            images = tf.transpose(images, [0, 3, 1, 2])
        return tf.cast(images, tf.float32)

    def numbers(self, labels):
        if self.label_mode == "categorical":
            return tf.one_hot(labels, self.num_classes)
        labels = tf.cast(labels, _LABELS[self.label_mode])
        return labels if self.label_mode == "int" else labels[:, tf.newaxis]


def any_rows(column):
    """Without the static number of rows, which Keras never gives, stoker where all batches have as many."""
    return tf.compat.v1.placeholder_with_default(column, [None, *column.shape[1:]])


def dataset(shuffle_buffer_size=None, **rest):
    """In the place of Keras' function, whose buffer is not needed: the shuffle is of all files."""
    return Directory(**rest)


def pytest_configure():
    image_dataset_utils._paths_and_labels_to_dataset_tf = dataset


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"stoker made {len(_made)} data sets")
