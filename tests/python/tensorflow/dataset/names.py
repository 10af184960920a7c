"""Public names of the installed TensorFlow and Keras, and the answers of docs/from-tf-data.md.

python tests/python/tensorflow/dataset/names.py  # prints the number of names of each kind, and who answers
"""

import collections
import fnmatch
import inspect
import os
import pathlib
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import stoker
import tensorflow as tf
from keras.src.layers.preprocessing.image_preprocessing import base_image_preprocessing_layer

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "from-tf-data.md"

# Arguments of image_dataset_from_directory whose values need an answer each.
VALUES = [
    'labels="inferred"',
    "labels=[…]",
    "labels=None",
    'label_mode="int"',
    'label_mode="categorical"',
    'label_mode="binary"',
    "label_mode=None",
    "class_names=[…]",
    'color_mode="grayscale"',
    'color_mode="rgba"',
    "batch_size=None",
    "shuffle=True",
    'interpolation="bicubic"',
    "crop_to_aspect_ratio=True",
    "pad_to_aspect_ratio=True",
    'data_format="channels_first"',
    'format="grain"',
    'format="tf"',
]

# TensorFlow Datasets need not be installed.
TFDS = [
    "load",
    "download_and_prepare",
    "as_dataset",
    "as_supervised",
    "split",
    "shuffle_files",
    "ReadConfig",
    "decoders",
    "SkipDecoding",
    "PartialDecoding",
    "make_decoder",
    "data_source",
    "as_data_source",
    "as_numpy",
    "batch_size",
    "with_info",
    "features",
    "ImageFolder",
]


def public(module, pattern="."):
    return [name for name in dir(module) if not name.startswith("_") and re.search(pattern, name)]


def preprocessing_layers():
    """Layers for images, and what else Keras has in the same place."""
    layers = {name: getattr(keras.layers, name) for name in public(keras.layers)}
    return [name for name, layer in layers.items() if ".preprocessing." in getattr(layer, "__module__", "")]


def image_layers():
    base = base_image_preprocessing_layer.BaseImagePreprocessingLayer
    layers = {name: getattr(keras.layers, name) for name in preprocessing_layers()}
    return [name for name, layer in layers.items() if issubclass(layer, base)]


DIRECTORY, FILES = "keras.utils.image_dataset_from_directory", "Files, records and decoding"


def asked():
    """By kind: the names, and the headings below which the page answers them."""
    of_directory = inspect.signature(keras.utils.image_dataset_from_directory).parameters
    images = {*public(keras.preprocessing.image), *public(tf.keras.preprocessing.image)}
    readers = {*public(tf.data), *public(tf.data.experimental)}
    return {
        "parameters of image_dataset_from_directory": (list(of_directory), [DIRECTORY]),
        "values of its parameters": (VALUES, [DIRECTORY]),
        "keras.utils, keras.preprocessing.image": (
            sorted(
                {*public(keras.utils, "_img|img_|_dataset|PyDataset|Sequence"), *images}
                - {"image_dataset_from_directory"}
            ),
            [DIRECTORY],
        ),
        "keras.layers": (preprocessing_layers(), ["keras.layers"]),
        "tf.image": (public(tf.image), ["tf.image", FILES]),
        "tf.data.Dataset": (public(tf.data.Dataset), ["tf.data.Dataset", FILES]),
        "readers of tf.data": (
            sorted(name for name in readers if re.search("[a-z_][Dd]ataset$|from_list", name)),
            [FILES],
        ),
        "tf.io": (public(tf.io, "^(decode|parse|is|extract)_"), [FILES]),
        "TensorFlow Datasets": (TFDS, ["TensorFlow Datasets"]),
    }


def spans(cell):
    return re.findall(r"`([^`]+)`", cell)


def outermost(span):
    """The names of a code span, without those in parentheses and quotes."""
    span = re.sub(r'"[^"]*"', "", span)
    while "(" in span:
        span = re.sub(r"\([^()]*\)", "", span)
    return re.findall(r"[A-Za-z_]\w*\*?", span)


class Row:
    """A row of a table: what is asked, and the answer."""

    def __init__(self, heading, line):
        self.heading, self.line = heading, line
        self.question, self.answer = [cell.strip() for cell in line.split("|")[1:3]]
        self.names = {name for span in spans(self.question) for name in outermost(span)}

    def answers(self, name):
        if "=" in name:
            return name in spans(self.question)
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)

    def by(self):
        """Who does it: "stoker", "the same", "not a loader's", "not available"; None if it does not say."""
        refused = re.match("not a loader's|not available", self.answer)
        if refused:
            return refused[0]
        if self.answer.startswith("nothing") or any(map(is_stokers, spans(self.answer))):
            return "stoker"
        return "the same" if "the same" in self.answer or "`.map(" in self.answer else None


def is_stokers(code):
    """Whether it uses the package, by a name that the package has."""
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r'"[^"]*"', "", code)))
    options = {f"{name}=" for name in inspect.signature(stoker.Loader).parameters}
    return bool(
        words & {"stoker", "loader", "source", "as_tf_dataset"}
        or words & {name for name in dir(stoker) if name[0].isupper()}
        or options & set(re.findall(r"\w+=", code))
    )


def rows_of(text):
    """The rows of the page's tables, without their heads."""
    heading, rows = "", []
    for line in text.split("\n"):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| ") and line.count("|") == 4 and not line.endswith("| difference |"):
            rows.append(Row(heading, line))
    return rows


def answers_to(name, headings, rows):
    return [row for row in rows if row.heading in headings and row.answers(name)]


def answered_twice(rows):
    """By kind and name: how many rows answer it, where there are several."""
    found = {}
    for kind, (names, headings) in asked().items():
        for name in names:
            if (count := len(answers_to(name, headings, rows))) > 1:
                found[kind, name] = count
    return found


def missing(rows):
    """The names that no row answers."""
    kinds = asked().values()
    return [name for names, headings in kinds for name in names if not answers_to(name, headings, rows)]


def table(rows):
    """By kind: the number of names, and who answers."""
    lines = []
    for kind, (names, headings) in asked().items():
        found = [answers_to(name, headings, rows) for name in names]
        by = collections.Counter(found_rows[0].by() for found_rows in found if found_rows)
        lines.append((kind, len(names), sum(by.values()), dict(by)))
    return lines


def main():
    lines = table(rows_of(PAGE.read_text()))
    for kind, names, answered, by in lines:
        print(f"{kind}: {names} names, {answered} with an answer: {by}")
    total = collections.Counter()
    for _, names, answered, by in lines:
        total.update(names=names, answered=answered, **{f"by {who}": count for who, count in by.items()})
    print(dict(total))


if __name__ == "__main__":
    main()
