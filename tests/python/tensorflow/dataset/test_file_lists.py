"""Lists of files, with further columns, as datasets."""

import os

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import SIZE, arrays, same


@pytest.fixture
def listed(made):
    """A loader over the photographs as a list, with a column of two numbers."""
    folder = stoker.image_folder(made)
    paths = [folder.path(i) for i in range(len(folder))]
    places = np.arange(2 * len(folder), dtype=np.float32).reshape(-1, 2)

    def loader(**options):
        source = stoker.files(paths, folder.labels.tolist(), columns={"place": places})
        options = {"batch_size": 8, "shuffle": True, "seed": 5, **options}
        return stoker.Loader(source, [stoker.RandomResizedCrop(SIZE)], **options)

    return loader


def test_all_columns_are_components(listed, op):
    dataset = listed().as_tf_dataset(op=op)
    assert dataset.element_spec == {
        "image": tf.TensorSpec((8, SIZE, SIZE, 3), tf.uint8),
        "label": tf.TensorSpec((8,), tf.int64),
        "place": tf.TensorSpec((8, 2), tf.float32),
    }
    same(arrays(dataset, "image", "label", "place"), arrays(listed().epoch(0)))
    same(arrays(dataset, "image", "label", "place"), arrays(listed().epoch(1)))


def test_the_same_images_as_the_folder(listed, make, op):
    ours = arrays(listed().as_tf_dataset(op=op), "image", "label", "place")
    same([(images, labels) for images, labels, _ in ours], arrays(make().as_tf_dataset(op=op)))


def test_ids_and_paths_are_columns(listed, op):
    loader = listed()
    dataset = loader.as_tf_dataset(op=op, sample_ids=True, paths=True)
    batches = arrays(dataset, "image", "label", "place", "sample_id", "path")
    assert len(batches) == len(loader)
    for _, _, places, ids, paths in batches:
        np.testing.assert_array_equal(places[:, 0], 2 * ids.astype(np.float32))
        assert [os.fsencode(loader.source.path(i)) for i in ids] == list(paths)


def test_nests_keep_the_type_of_batches(listed):
    batch = next(iter(listed()))
    tensors = tf.nest.map_structure(tf.constant, batch)
    assert type(tensors) is type(batch) and len(tf.nest.flatten(batch)) == 3
    total = tf.function(lambda columns: tf.reduce_sum(columns["label"]))
    assert total(tensors).numpy() == batch["label"].sum()


def test_strings(made, op):
    folder = stoker.image_folder(made)
    paths = [folder.path(i) for i in range(len(folder))]
    captions = [f"{'ä' * (i % 40)} {i}" if i % 5 else "" for i in range(len(paths))]  # short and long ones
    raw = [bytes(range(i)) for i in range(len(paths))]
    source = stoker.files(paths, columns={"caption": captions, "raw": raw, "age": np.arange(len(paths))})
    loader = stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=5, shuffle=True, seed=3)
    dataset = loader.as_tf_dataset(op=op, sample_ids=True, paths=True)
    names = ("image", "caption", "raw", "age", "sample_id", "path")
    assert [dataset.element_spec[name].dtype for name in names] == [
        tf.uint8, tf.string, tf.string, tf.int64, tf.int64, tf.string,
    ]  # fmt: skip
    rows = 0
    for _, texts, bytes_, ages, ids, files in arrays(dataset.repeat(2), *names):
        rows += len(ids)
        np.testing.assert_array_equal(ages, ids)
        assert list(texts) == [captions[i].encode() for i in ids]
        assert list(bytes_) == [raw[i] for i in ids]
        assert list(files) == [os.fsencode(paths[i]) for i in ids]
    assert rows == 2 * len(paths)


def test_a_missing_file_is_named(listed, op, tmp_path):
    loader = stoker.Loader(stoker.files([tmp_path / "gone.jpg"]), [stoker.Resize((8, 8))], batch_size=1)
    with pytest.raises(tf.errors.NotFoundError, match=r"gone\.jpg"):
        list(loader.as_tf_dataset(op=op))
