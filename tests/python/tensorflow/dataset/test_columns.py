"""Sample ids and paths as columns of the dataset, if they are requested."""

import os
import re

import numpy as np
import pytest
import stoker
import tensorflow as tf
from stoker.tensorflow import _ops
from tensorflow.data.experimental import service
from tensors import SIZE, arrays, same
from workers import running

NAMES = ("image", "label", "sample_id", "path")


def by_iterator(loader, epoch):
    """Returns (images, labels, ids, paths) of each batch, from the Python loader."""
    batches, iterator = [], iter(loader.epoch(epoch))
    for images, labels in iterator:
        ids = iterator.sample_ids.astype(np.int64)
        paths = np.array([os.fsencode(loader.source.path(i)) for i in ids], object)
        batches.append((images.copy(), labels.copy(), ids, paths))
    return batches


def test_ids_and_paths_are_those_of_the_rows(make, op):
    loader = make(batch_size=10)
    dataset = loader.as_tf_dataset(op=op, sample_ids=True, paths=True)
    assert dataset.element_spec == {
        "image": tf.TensorSpec((None, SIZE, SIZE, 3), tf.uint8),
        "label": tf.TensorSpec((None,), tf.int64),
        "sample_id": tf.TensorSpec((None,), tf.int64),
        "path": tf.TensorSpec((None,), tf.string),
    }
    for epoch in range(2):
        want = by_iterator(make(batch_size=10), epoch)
        assert [len(batch[2]) for batch in want] == [10, 10, 10, 10, 8]
        same(arrays(dataset, *NAMES), want)


@pytest.mark.parametrize(("name", "place"), [("sample_ids", 2), ("paths", 3)])
def test_ids_or_paths_alone(make, op, name, place):
    dataset = make().as_tf_dataset(op=op, **{name: True})
    same(
        arrays(dataset, "image", "label", NAMES[place]),
        [(*batch[:2], batch[place]) for batch in by_iterator(make(), 0)],
    )


def test_without_labels(made, op):
    loader = stoker.Loader(stoker.image_folder(made / "class00"), [stoker.Resize((8, 8))], batch_size=5)
    got = [path for batch in loader.as_tf_dataset(op=op, paths=True) for path in batch["path"].numpy()]
    assert got == sorted(os.fsencode(path) for path in (made / "class00").iterdir())


@pytest.mark.parametrize(
    "types",
    [
        [tf.uint8, tf.int64, tf.int32, tf.string],  # half as many bytes as the ids have
        [tf.uint8, tf.int64, tf.string, tf.int64],
        [tf.uint8, tf.int64, tf.int64, tf.int64],
        [tf.uint8, tf.int64, tf.int64],
        [tf.uint8],
        [tf.uint8, tf.int64, tf.int64, tf.int64, tf.string],
    ],
)
def test_a_graph_that_asks_for_other_types_is_refused(make, types):
    loader = make()
    batch_at = _ops._fallback().stoker_batch_at
    names = {"key": loader._key, "spec": loader._spec}
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_types are not those"):
        batch_at(epoch=0, index=0, output_types=types, sample_ids=True, paths=True, **names)


def test_of_arrays_there_are_ids_and_no_paths(op):
    values = np.arange(10)
    loader = stoker.Loader(stoker.arrays(values[:, None], values * 7), batch_size=4, shuffle=True)
    for batch in loader.as_tf_dataset(op=op, sample_ids=True):
        np.testing.assert_array_equal(batch["label"], batch["sample_id"] * 7)
    with pytest.raises(ValueError, match="has no files"):
        loader.as_tf_dataset(op=op, paths=True)


def test_another_kind_of_source_has_paths(made, op):
    folder = stoker.image_folder(made)
    listed = stoker.Source(folder._native, folder._spec, "a list")
    of_list, of_folder = (
        stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=10).as_tf_dataset(op=op, paths=True)
        for source in (listed, folder)
    )
    names = ("image", "label", "path")
    same(arrays(of_list, *names), arrays(of_folder, *names))


def test_any_name_that_a_file_may_have(made, tmp_path, op):
    photograph = next((made / "class00").iterdir()).read_bytes()
    names = [b"\xff\xfe.jpg", "größe.jpg".encode(), b"a" * 200 + b".jpg", b"line\nend.jpg"]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(photograph)
    loader = stoker.Loader(stoker.image_folder(tmp_path), [stoker.Resize((8, 8))], batch_size=3)
    dataset = loader.as_tf_dataset(op=op, paths=True).repeat(3)
    paths = [path for batch in dataset for path in batch["path"].numpy()]
    assert [os.path.basename(path) for path in paths] == 3 * sorted(names)


def test_later_steps_accept_ids_and_paths(make, op):
    """Strings are copied by unbatch and batch, and read in a graph."""
    dataset = make().as_tf_dataset(op=op, sample_ids=True, paths=True).unbatch().batch(7)
    classes = dataset.map(
        lambda row: (row["label"], tf.strings.regex_replace(row["path"], ".*class(..)/.*", r"\1"))
    )
    for labels, names in classes:
        assert [int(name) for name in names.numpy()] == labels.numpy().tolist()


def test_a_checkpoint_restores_ids_and_paths(make, op, tmp_path):
    iterator = iter(make().as_tf_dataset(op=op, sample_ids=True, paths=True))
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    next(iterator)
    saved = checkpoint.save(tmp_path / "saved")
    rest = arrays(iterator, *NAMES)
    checkpoint.restore(saved)
    same(arrays(iterator, *NAMES), rest)
    same(rest, by_iterator(make(), 0)[1:])


@pytest.mark.long
def test_a_service_worker_in_another_place_says_where_it_found_them(make, op):
    with running(op, 1) as target:
        dataset = make().as_tf_dataset(op=op, sample_ids=True, paths=True)
        remote = dataset.apply(service.distribute(service.ShardingPolicy.OFF, target, compression=None))
        same(arrays(remote, *NAMES), by_iterator(make(), 0))


def test_only_true_and_false(make):
    for name in ("sample_ids", "paths"):
        with pytest.raises(TypeError, match=re.escape(f"{name} must be True or False")):
            make().as_tf_dataset(**{name: 1})
