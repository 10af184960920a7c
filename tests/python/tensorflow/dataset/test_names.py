"""docs/from-tf-data.md has an answer for each public name of the installed TensorFlow and Keras, and what it
says is true: what is called the same runs on a loader's dataset, and what draws once for a batch does.
"""

import os
import pathlib
import subprocess
import sys

import keras
import names
import numpy as np
import pytest
import stoker
import tensorflow as tf
import tfrecords
from pages import BLOCKS
from PIL import Image
from tensors import SAMPLES

ROWS = names.rows_of(names.PAGE.read_text())


def test_every_public_name_has_an_answer():
    for kind, count, answered, by in names.table(ROWS):
        print(f"{kind}: {count} names, {answered} with an answer: {by}")
        assert set(by) <= {"stoker", "the same", "not a loader's", "not available"}, kind
    assert names.missing(ROWS) == []
    assert len(names.image_layers()) >= 15 and len(names.public(tf.image)) >= 50


# Parameters with a row for each value, and methods that begin or end what reads files.
ANSWERED_TWICE = {
    "parameters of image_dataset_from_directory": {
        "labels": 3,
        "label_mode": 4,
        "class_names": 2,
        "color_mode": 2,
    },
    "tf.data.Dataset": {"batch": 2, "from_tensor_slices": 2, "map": 4, "shuffle": 3},
}


def test_every_public_name_has_one_answer():
    """Two might contradict each other."""
    wanted = {
        (kind, name): rows for kind, several in ANSWERED_TWICE.items() for name, rows in several.items()
    }
    assert names.answered_twice(ROWS) == wanted
    assert names.answered_twice([*ROWS, ROWS[0]]) != wanted


@pytest.mark.parametrize(
    ("question", "lost"),
    [
        ("`pad_to_aspect_ratio=True`", ["pad_to_aspect_ratio", "pad_to_aspect_ratio=True"]),
        ("`rgb_to_grayscale`", ["rgb_to_grayscale", "grayscale_to_rgb"]),
        ("`RandomInvert(", ["RandomInvert", "Solarization"]),
        ("`filter(f)`", ["filter"]),
        ("`SqlDataset`", ["SqlDataset"]),
        ('`decoders={"image"', ["decoders", "SkipDecoding"]),
    ],
)
def test_a_name_is_missing_without_its_row(question, lost):
    rest = [row for row in ROWS if not row.question.startswith(question)]
    assert len(rest) == len(ROWS) - 1
    assert sorted(names.missing(rest)) == sorted(lost)


# --- what is the same -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copies(made):
    """Makes loaders over eight copies of one photograph, in one batch."""
    first = stoker.image_folder(made).path(0)

    def loader(*transforms, **options):
        crop = stoker.Resize((40, 40))
        return stoker.Loader(stoker.files([first] * 8, [0] * 8), [crop, *transforms], batch_size=8, **options)

    return loader


def of_floats(function):
    return lambda images: function(tf.cast(images, tf.float32) / 255)


BOX = tf.constant([[0.1, 0.1, 0.9, 0.9]])
BATCHES_OF_IMAGES = {
    "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.1),
    "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 2),
    "adjust_gamma": lambda x: tf.image.adjust_gamma(tf.cast(x, tf.float32), 0.5),
    "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.1),
    "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 2),
    "crop_and_resize": lambda x: tf.image.crop_and_resize(x, BOX, [3], [20, 20]),
    "crop_to_bounding_box": lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 20, 20),
    "draw_bounding_boxes": of_floats(
        lambda x: tf.image.draw_bounding_boxes(x, tf.tile(BOX[None], [8, 1, 1]), [[1.0, 0, 0]])
    ),
    "encode_jpeg": lambda x: tf.image.encode_jpeg(x[0]),
    "encode_png": tf.image.encode_png,
    "extract_glimpse": of_floats(lambda x: tf.image.extract_glimpse(x, [10, 10], tf.zeros([8, 2]))),
    "extract_patches": lambda x: tf.image.extract_patches(
        x, [1, 8, 8, 1], [1, 8, 8, 1], [1, 1, 1, 1], "VALID"
    ),
    "hsv_to_rgb": of_floats(tf.image.hsv_to_rgb),
    "image_gradients": of_floats(tf.image.image_gradients),
    "per_image_standardization": tf.image.per_image_standardization,
    "psnr": lambda x: tf.image.psnr(x, x // 2, 255),
    "rgb_to_hsv": of_floats(tf.image.rgb_to_hsv),
    "rgb_to_yiq": of_floats(tf.image.rgb_to_yiq),
    "rgb_to_yuv": of_floats(tf.image.rgb_to_yuv),
    "rot90": tf.image.rot90,
    "sobel_edges": of_floats(tf.image.sobel_edges),
    "ssim": lambda x: tf.image.ssim(x, x, 255),
    "ssim_multiscale": lambda x: tf.image.ssim_multiscale(x, x, 255, power_factors=(0.5, 0.5), filter_size=3),
    "total_variation": of_floats(tf.image.total_variation),
    "transpose": tf.image.transpose,
    "yiq_to_rgb": of_floats(tf.image.yiq_to_rgb),
    "yuv_to_rgb": of_floats(tf.image.yuv_to_rgb),
}


def said_to_be_the_same(heading):
    rows = [row for row in ROWS if row.heading == heading and "the same" in row.answer]
    return {name for row in rows for name in row.names}


def test_functions_of_tf_image_that_are_the_same_run(copies):
    said = {name for name in said_to_be_the_same("tf.image") if "jpeg_quality" not in name}
    assert said == set(BATCHES_OF_IMAGES)
    calls = BATCHES_OF_IMAGES.items()
    made = next(iter(copies().as_tf_dataset().map(lambda x, _: {name: call(x) for name, call in calls})))
    assert all(len(rows) > 0 for name, rows in made.items() if name != "encode_jpeg")


METHODS = {
    "apply": lambda d: d.apply(lambda e: e.take(1)),
    "as_numpy_iterator": lambda d: d.as_numpy_iterator(),
    "bucket_by_sequence_length": lambda d: d.unbatch().bucket_by_sequence_length(
        lambda x, _: tf.shape(x)[0], [50], [4, 4]
    ),
    "cardinality": lambda d: [d.cardinality()],
    "choose_from_datasets": lambda d: d.choose_from_datasets([d, d], tf.data.Dataset.range(2)),
    "concatenate": lambda d: d.concatenate(d),
    "counter": lambda d: d.zip(d.counter(), d),
    "element_spec": lambda d: [d.element_spec],
    "enumerate": lambda d: d.enumerate(),
    "fingerprint": lambda d: [d.fingerprint()],
    "flat_map": lambda d: d.flat_map(lambda *e: tf.data.Dataset.from_tensor_slices(e)),
    "get_single_element": lambda d: [d.take(1).get_single_element()],
    "group_by_window": lambda d: d.group_by_window(lambda _, y: y[0], lambda _, e: e.batch(2), 2),
    "ignore_errors": lambda d: d.ignore_errors(),
    "interleave": lambda d: d.interleave(lambda *e: tf.data.Dataset.from_tensor_slices(e), 2),
    "options": lambda d: [d.options()],
    "ragged_batch": lambda d: d.unbatch().ragged_batch(4),
    "random": lambda d: d.zip(d.random(), d),
    "range": lambda d: d.zip(d.range(3), d),
    "rebatch": lambda d: d.rebatch(4),
    "reduce": lambda d: [d.reduce(0, lambda count, _: count + 1)],
    "repeat": lambda d: d.repeat(2),
    "scan": lambda d: d.scan(0, lambda count, e: (count + 1, e)),
    "skip": lambda d: d.concatenate(d).skip(1),
    "sparse_batch": lambda d: d.map(lambda _, y: y).sparse_batch(2, [8]),
    "take": lambda d: d.take(1),
    "take_while": lambda d: d.take_while(lambda _, y: y[0] == 0),
    "unbatch": lambda d: d.unbatch(),
    "unique": lambda d: d.map(lambda _, y: y).unbatch().unique(),
    "window": lambda d: d.window(2).flat_map(lambda x, _: x),
    "with_options": lambda d: d.with_options(tf.data.Options()),
    "zip": lambda d: d.zip(d, d),
}


def test_methods_that_are_the_same_run(copies):
    elsewhere = {"experimental_distribute_dataset", "tf", "train", "Checkpoint"}  # have tests of their own
    assert said_to_be_the_same("tf.data.Dataset") - elsewhere == set(METHODS)
    dataset = copies().as_tf_dataset()
    for name, call in METHODS.items():
        assert next(iter(call(dataset))) is not None, name


# --- random draws ---------------------------------------------------------------------------------------

ARGUMENTS = {
    "brightness": [0.3],
    "contrast": [0.5, 1.5],
    "crop": [[20, 20, 3]],
    "flip_left_right": [],
    "flip_up_down": [],
    "hue": [0.3],
    "jpeg_quality": [10, 90],
    "saturation": [0.5, 1.5],
}


def called(name, images):
    """A random function of tf.image, whose stateless twin gets a seed."""
    stateless, _, what = name.rpartition("random_")
    seed = {"seed": (1, 2)} if stateless else {}
    arguments = ARGUMENTS[what]
    if what == "crop" and len(images.shape) == 4:
        arguments = [[8, 20, 20, 3]]
    return getattr(tf.image, name)(images, *arguments, **seed)


def different(rows):
    return len({row.tobytes() for row in np.asarray(rows)})


def draws(batches):
    """ "once" for a batch, or for each "row": of batches whose images are all equal."""
    return "once" if all(different(batch) == 1 for batch in batches) else "row"


def said_to_draw():
    """The page's table: by row of it, the names in its columns for tf.image and for keras.layers."""
    rows = [row for row in ROWS if row.heading == "Random functions on batches"]
    cells = [row.line.split("|")[2:4] for row in rows[1:]]
    columns = [[{n for span in names.spans(c) for n in names.outermost(span)} for c in row] for row in cells]
    return dict(zip(["once", "row", "refused"], columns))


def test_random_functions_of_tf_image_draw_as_the_page_says(copies):
    said = said_to_draw()
    functions = names.public(tf.image, "random_")
    assert set(functions) == {name for of_tf_image, _ in said.values() for name in of_tf_image}
    dataset = copies().as_tf_dataset()
    for name in said["refused"][0]:
        with pytest.raises(ValueError, match="must be rank 3"):
            dataset.map(lambda x, _, name=name: called(name, x))
    taken = [name for name in functions if name not in said["refused"][0]]
    batches = list(dataset.repeat(6).map(lambda x, _: {name: called(name, x) for name in taken}))
    found = {name: draws([batch[name] for batch in batches]) for name in taken}
    assert found == {name: how for how in ("once", "row") for name in said[how][0]}
    single = dataset.unbatch().map(lambda x, _: {name: called(name, x) for name in functions})
    batches = list(single.batch(8).repeat(6))
    for name in functions:  # a stateless one has one seed
        by_row = draws([batch[name] for batch in batches])
        assert by_row == ("once" if name.startswith("stateless") else "row"), name


LAYERS = {
    "CenterCrop": (32, 32),
    "MaxNumBoundingBoxes": (4,),
    "Normalization": (-1, [1.0, 2, 3], [4.0, 5, 6]),
    "Pipeline": ([keras.layers.RandomFlip(), keras.layers.Rescaling(2)],),
    "RandomBrightness": (0.3,),
    "RandomColorDegeneration": (0.5,),
    "RandomColorJitter": ((0, 255), 0.2, 0.3, (0.4, 0.6), 0.2),
    "RandomContrast": (0.5,),
    "RandomCrop": (32, 32),
    "RandomGaussianBlur": ((1, 1), 5),
    "RandomGrayscale": (0.5,),
    "RandomHue": (0.3,),
    "RandomPosterization": (4,),
    "RandomRotation": (0.2,),
    "RandomSaturation": (0.5,),
    "RandomSharpness": (0.5,),
    "RandomShear": (0.3, 0.3),
    "RandomTranslation": (0.2, 0.2),
    "RandomZoom": (0.3,),
    "Rescaling": (1 / 255,),
    "Resizing": (32, 32),
    "Solarization": (0.5, 0.5),
}


def in_training(name):
    """A layer as a function of images. What mixes images gets different ones, and its labels are returned."""
    made = getattr(keras.layers, name)(*LAYERS.get(name, ()))
    if name not in ("MixUp", "CutMix"):
        return lambda images: made(images, training=True)

    def mix(images):
        noise = tf.random.uniform(images.shape, 0, 255)
        return tf.sort(made({"images": noise, "labels": tf.eye(8)}, training=True)["labels"], axis=1)

    return mix


def test_layers_draw_as_the_page_says(copies):
    """RandomPosterization draws nothing."""
    images = tf.cast(next(iter(copies()))[0], tf.float32)
    (_, once), (_, each) = (said_to_draw()[how] for how in ("once", "row"))
    assert once == {"RandomCrop", "RandomGaussianBlur"}
    random = {name for name in names.image_layers() if name.startswith("Random")} | each - {"Random"}
    for name in random - {"RandomPosterization"}:
        layer = in_training(name)
        batches = (layer(images) for _ in range(4 if name in once else 12))
        assert draws(batches) == ("once" if name in once else "row"), name
    crop = in_training("RandomCrop")
    assert different(tf.concat([crop(images) for _ in range(6)], axis=0)) > 1


@pytest.mark.long
def test_layers_take_uint8_batches_in_a_map(copies):
    dataset = copies().as_tf_dataset()
    for name in [*names.image_layers(), "Pipeline", "Rescaling", "Normalization"]:
        layer = in_training(name)
        made = next(iter(dataset.map(lambda x, _, layer=layer: layer(x))))
        assert made.dtype == tf.float32 and len(made) == 8, name


def test_every_right_way_draws_for_each_row(made, monkeypatch):
    """Runs what the page prints."""
    (block,) = [b for b in BLOCKS["docs/from-tf-data.md"] if "alike = " in b.text]
    page = {"stoker": stoker, "tf": tf}
    monkeypatch.chdir(made)
    exec(block.text.replace("photos/train", "."), page)
    assert different(next(iter(page["alike"]))[0]) == 1
    assert [different(next(iter(dataset))[0]) for dataset in page["right"]] == [8] * 5


# --- pixels ---------------------------------------------------------------------------------------------


def pixels(loader):
    return np.concatenate([batch[0] for batch in loader]).astype(np.float32)


def directory(made, **options):
    options = {"image_size": (30, 30), "shuffle": False, "verbose": False, **options}
    return keras.utils.image_dataset_from_directory(made, **options)


def of_keras(dataset):
    return np.concatenate([np.asarray(images) for images, *_ in dataset])


@pytest.fixture(scope="module")
def folder(made):
    """Makes loaders over the photographs as TensorFlow sees them."""
    source = stoker.image_folder(made)
    return lambda *transforms, source=source, **options: stoker.Loader(
        source, transforms, batch_size=16, exif_orientation=False, **options
    )


def test_shapes_of_image_dataset_from_directory(made, folder):
    """Each difference is the fast DCT's, which is 1 to 2 levels on average."""
    plain = {"antialias": False}
    square, wide = stoker.Resize((30, 30), **plain), {"image_size": (20, 40), "crop_to_aspect_ratio": True}
    crop = stoker.RandomResizedCrop((20, 40), scale=(1, 1), ratio=(2, 2), **plain)
    gray = [square, stoker.RandomGrayscale(1)]
    assert np.abs(pixels(folder(square)) - of_keras(directory(made))).mean() < 2
    assert np.abs(pixels(folder(crop)) - of_keras(directory(made, **wide))).mean() < 2.5
    of_gray = of_keras(directory(made, color_mode="grayscale"))
    assert np.abs(pixels(folder(*gray))[..., :1] - of_gray).mean() < 2
    planes = of_keras(directory(made, data_format="channels_first"))
    assert np.abs(pixels(folder(square, layout="NCHW")) - planes).mean() < 2


def test_padding_of_image_dataset_from_directory(made, folder):
    """At the same place, or a pixel further to the right or below. 32, because TensorFlow's resize_with_pad
    makes the longer side n - 1 for some n and sizes of images, by rounding, but not for powers of two."""
    found = pixels(folder(stoker.Resize(None, max_size=32, antialias=False), stoker.CenterCrop(32)))
    wanted = of_keras(directory(made, pad_to_aspect_ratio=True, image_size=(32, 32)))
    moved = [np.roll(found, (-y, -x), (1, 2)) for y in (0, 1) for x in (0, 1)]
    least = np.min([np.abs(images - wanted).mean((1, 2, 3)) for images in moved], axis=0)
    assert len(least) == SAMPLES and least.max() < 3


def labels_of(dataset):
    return np.concatenate([np.asarray(batch[1]) for batch in dataset])


def test_labels_of_image_dataset_from_directory(made, folder):
    source = stoker.image_folder(made)
    paths, size = [source.path(i) for i in range(len(source))], stoker.Resize((30, 30))
    two = [i % 2 for i in range(len(paths))]
    keras_binary = directory(made, labels=two, label_mode="binary")
    assert keras_binary.file_paths == paths
    listed = folder(size, source=stoker.files(paths, two)).as_tf_dataset(epoch=0)
    binary = listed.map(lambda x, y: (x, tf.cast(y, tf.float32)[:, tf.newaxis]))
    np.testing.assert_array_equal(labels_of(binary), labels_of(keras_binary))
    assert binary.element_spec[1].shape[1:] == keras_binary.element_spec[1].shape[1:]
    scores = tf.linspace(0.1, 0.9, 16)[:, tf.newaxis]
    model = keras.Sequential([keras.layers.Lambda(lambda x: scores)])
    model.compile(loss="binary_crossentropy")
    assert model.evaluate(listed, verbose=0) == model.evaluate(binary, verbose=0)
    # class_names numbers the classes, and Keras then lists files in their order.
    reverse = source.classes[::-1]
    of_keras_ = directory(made, class_names=reverse)
    numbered = stoker.image_folder(made, class_names=reverse)
    by_path = dict(zip(of_keras_.file_paths, labels_of(of_keras_)))
    assert [by_path[path] for path in paths] == list(labels_of(folder(size, source=numbered)))
    assert set(labels_of(directory(made, class_names=reverse[:2]))) == {0, 1}
    with pytest.raises(stoker.InvalidArgumentError, match="is not one of the 2 class names"):
        stoker.image_folder(made, class_names=reverse[:2])
    single = folder(size).as_tf_dataset().unbatch().element_spec
    wanted = directory(made, batch_size=None).element_spec
    assert [spec.shape for spec in single] == [spec.shape for spec in wanted]


def test_layers_and_functions_that_have_the_same_pixels(folder):
    size = stoker.Resize((33, 45))
    images = pixels(folder(size))
    decoded = [stoker.decode_image(p, exif_orientation=False) for p in map(source_of(folder).path, range(9))]
    resized = np.stack([keras.layers.Resizing(33, 45)(image) for image in decoded])
    fractions = {"dtype": "float32"}
    layers, image, mean, std = keras.layers, tf.image, [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
    for most, theirs, loader in [
        (1, resized, folder(stoker.Resize((33, 45), antialias=False))),
        (0, layers.CenterCrop(20, 20)(images), folder(size, stoker.CenterCrop(20))),
        (0, image.central_crop(images, 0.5), folder(size, stoker.CenterCrop((17, 23)))),
        (0, layers.Rescaling(1 / 255)(images), folder(size, **fractions)),
        (0, image.convert_image_dtype(images.astype(np.uint8), tf.float32), folder(size, **fractions)),
        (
            1e-5,
            layers.Normalization(mean=mean, variance=np.square(std))(images / 255),
            folder(size, stoker.Normalize(mean, std), **fractions),
        ),
        (0, image.flip_left_right(images), folder(size, stoker.RandomHorizontalFlip(1))),
        (0, image.flip_up_down(images), folder(size, stoker.RandomVerticalFlip(1))),
        (0, layers.RandomInvert((1, 1))(images, training=True), folder(size, stoker.RandomInvert(1))),
        (1.01, layers.AutoContrast()(images), folder(size, stoker.RandomAutocontrast(1))),
        (
            1.01,
            layers.RandomColorDegeneration((0.5, 0.5))(images, training=True),
            folder(size, stoker.ColorJitter(saturation=(0.5, 0.5))),
        ),
        (1, image.adjust_hue(images.astype(np.uint8), 0.1), folder(size, stoker.ColorJitter(hue=(0.1, 0.1)))),
        (
            1,
            np.repeat(image.rgb_to_grayscale(images.astype(np.uint8)), 3, axis=3),
            folder(size, stoker.RandomGrayscale(1)),
        ),
    ]:
        found = pixels(loader)[: len(theirs)]
        np.testing.assert_allclose(found, np.asarray(theirs, np.float32), rtol=0, atol=most)


def source_of(folder):
    return folder(stoker.Resize((8, 8))).source


# --- records, columns, other backends -------------------------------------------------------------------


def test_records_and_data_sources_of_the_form_of_tensorflow_datasets(made, tmp_path):
    paths = sorted(map(str, made.rglob("*.jpg")))[:8]
    data = [pathlib.Path(path).read_bytes() for path in paths]
    features = [{"image": image, "label": i, "file_name": b"x"} for i, image in enumerate(data)]
    shard = tmp_path / "folder-train.tfrecord-00000-of-00001"
    shard.write_bytes(b"".join(tfrecords.record(tfrecords.example(sample)) for sample in features))
    size = [stoker.Resize((20, 20))]
    records = stoker.tfrecord(str(tmp_path / "folder-train.tfrecord-*"), image="image", label="label")
    images, labels = next(iter(stoker.Loader(records, size, batch_size=8)))
    assert list(labels) == list(range(8))
    for encoded in (True, False):

        class DataSource:
            def __len__(self):
                return 8

            def __getitem__(self, i, encoded=encoded):
                image = data[i] if encoded else stoker.decode_image(data[i])
                return {"image": image, "label": np.int64(i)}

        source = stoker.from_dataset(DataSource())
        found, numbers = next(iter(stoker.Loader(source, size, batch_size=8)))
        np.testing.assert_allclose(found.astype(int), images, rtol=0, atol=1)
        np.testing.assert_array_equal(numbers, labels)


def test_columns_that_functions_and_layers_take(made):
    source = stoker.image_folder(made)
    columns = {
        "breed": ["cat", "dog"],
        "age": [3, 5],
        "csv": ["1,2", "3,4"],
        "base64": [tf.io.encode_base64(word).numpy().decode() for word in ("one", "two")],
        "json": ['{"features": {}}'] * 2,
        "proto": [tfrecords.example({"number": 5}).decode()] * 2,
    }
    files = stoker.files([source.path(0), source.path(1)], columns=columns)
    loader = stoker.Loader(files, [stoker.Resize((8, 8))], batch_size=2)
    layers, io = keras.layers, tf.io
    lookup = layers.StringLookup(vocabulary=["dog", "cat"])
    numbers = layers.IntegerLookup(vocabulary=[5, 3])
    encoding = layers.CategoryEncoding(6, output_mode="one_hot")
    bins = layers.Discretization([4.0])
    hashing, crossing = layers.Hashing(7), layers.HashedCrossing(7)
    words = layers.TextVectorization(vocabulary=["dog", "cat"], output_sequence_length=1)

    def made_of(batch):
        breed, age = batch["breed"], batch["age"]
        tensors = tf.map_fn(io.serialize_tensor, breed)
        return {
            "StringLookup": lookup(breed),
            "IntegerLookup": numbers(age),
            "CategoryEncoding": tf.argmax(encoding(age), axis=1),
            "Discretization": bins(age),
            "Hashing": hashing(breed) - hashing(breed),
            "HashedCrossing": crossing((breed, age)) - crossing((breed, age)),
            "TextVectorization": words(breed)[:, 0],
            "decode_csv": io.decode_csv(batch["csv"], [0, 0])[1],
            "decode_base64": io.decode_base64(batch["base64"]),
            "decode_json_example": io.decode_json_example(batch["json"]) == b"",
            "decode_proto": io.decode_proto(
                batch["proto"], "tensorflow.Example", ["features"], [tf.string]
            ).sizes[:, 0],
            "decode_compressed": io.decode_compressed(breed),
            "parse_tensor": tf.map_fn(lambda tensor: io.parse_tensor(tensor, tf.string), tensors),
        }

    batch = next(iter(loader.as_tf_dataset().map(made_of)))
    assert {name: np.asarray(column).tolist() for name, column in batch.items()} == {
        "StringLookup": [2, 1],
        "IntegerLookup": [2, 1],
        "CategoryEncoding": [3, 5],
        "Discretization": [0, 1],
        "Hashing": [0, 0],
        "HashedCrossing": [0, 0],
        "TextVectorization": [3, 2],
        "decode_csv": [2, 4],
        "decode_base64": [b"one", b"two"],
        "decode_json_example": [False, False],
        "decode_proto": [1, 1],
        "decode_compressed": [b"cat", b"dog"],
        "parse_tensor": [b"cat", b"dog"],
    }
    said = {name for row in ROWS if row.by() == "the same" and row.names & set(batch) for name in row.names}
    assert said == set(batch)


ON_JAX = """
import sys
import jax
import keras
import stoker

assert keras.backend.backend() == "jax"
page = sys.stdin.read()
names = {"stoker": stoker, "keras": keras}
exec(page, names)
model, loader, batches = names["small"], names["loader"], names["batches"]
pinned = loader.epoch(0)
by_dataset = model.evaluate(loader.as_tf_dataset(epoch=0), verbose=0)
assert by_dataset == model.evaluate((batch for batch in pinned), verbose=0)
assert model.predict(loader.as_tf_dataset(epoch=0), verbose=0).shape == (len(loader.source), 3)
model.fit(loader.as_tf_dataset(), verbose=0)
for refused in (loader, loader.to_jax()):
    try:
        model.fit(refused, verbose=0)
    except (AttributeError, TypeError) as error:
        assert "as_tf_dataset()" in str(error)
    else:
        raise AssertionError(refused)
model.fit((batch for batch in loader.to_jax()), verbose=0)

# As validation data a generator is not what it seems.
numbers = []
def counted():
    for number, batch in enumerate(batches(pinned)):
        numbers.append(number)
        yield batch

model.fit(loader.as_tf_dataset(epoch=0), epochs=3, verbose=0,
          validation_data=counted(), validation_steps=len(loader))
assert len(numbers) == 3 * len(loader) - 2 * 2, numbers
print("done")
"""


@pytest.mark.long
def test_keras_on_jax(made):
    """Runs what the page prints."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    (block,) = [b for b in BLOCKS["docs/from-tf-data.md"] if "def batches(" in b.text]
    done = subprocess.run(
        [sys.executable, "-c", ON_JAX],
        input=block.text.replace("photos/train", "."),
        cwd=made,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr[-3000:]


@pytest.mark.parametrize("turned", [True, False])
def test_exif_turns_a_photograph_and_not_its_mask(tmp_path, turned):
    drawn = np.zeros((60, 100, 3), np.uint8)
    drawn[:30, :50] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(drawn).save(tmp_path / "photograph.jpg", exif=exif, quality=95)
    Image.fromarray(drawn[..., 0]).save(tmp_path / "mask.png")
    crop = stoker.RandomResizedCrop(40, interpolation="nearest")
    photograph, mask = (
        next(iter(stoker.Loader(stoker.files([tmp_path / name] * 4), [crop], batch_size=4, **options)))
        for options in [{} if turned else {"exif_orientation": False}]
        for name in ("photograph.jpg", "mask.png")
    )
    assert (np.mean((photograph > 127) != (mask > 127)) > 0.1) == turned
