"""Datasets whose elements are dictionaries by the columns' names."""

import io
import os
import tarfile

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import SIZE, arrays, same

TEXT, BYTES = "Käse {}", b"\xff\x00{}"


@pytest.fixture(scope="module")
def archive(made, tmp_path_factory):
    """The photographs in a tar archive, with captions and bytes."""
    folder = stoker.image_folder(made)
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(len(folder)):
            texts = {"txt": TEXT.format(i).encode(), "bin": BYTES + bytes([i]), "cls": str(i % 3).encode()}
            for name, data in {"jpg": folder._image(i), **texts}.items():
                member = tarfile.TarInfo(f"{i:04d}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def listed(archive):
    """A loader over the archive: image, label and two columns, whose names are not sorted."""

    def loader(**options):
        source = stoker.tar(archive, columns={"text": ".txt", "data": ".bin"})
        options = {"batch_size": 8, "shuffle": True, "seed": 5, **options}
        return stoker.Loader(source, [stoker.RandomResizedCrop(SIZE)], **options)

    return loader


def test_strings_are_columns(listed, op):
    loader = listed()
    dataset = loader.as_tf_dataset(op=op)
    names = ("image", "label", "text", "data")
    types = [dataset.element_spec[name].dtype for name in names]
    assert types == [tf.uint8, tf.int64, tf.string, tf.string]
    for images, labels, texts, data in ([batch[name] for name in names] for batch in dataset):
        assert images.shape[0] == labels.shape[0] == texts.shape[0] == 8
        for text, raw, label in zip(texts.numpy(), data.numpy(), labels.numpy()):
            assert text.decode() == TEXT.format(raw[-1]) and raw == BYTES + bytes([raw[-1]])
            assert label == raw[-1] % 3


def test_elements_are_dictionaries(listed, op):
    dataset = listed().as_tf_dataset(op=op)
    assert dataset.element_spec == {
        "image": tf.TensorSpec((8, SIZE, SIZE, 3), tf.uint8),
        "label": tf.TensorSpec((8,), tf.int64),
        "text": tf.TensorSpec((8,), tf.string),
        "data": tf.TensorSpec((8,), tf.string),
    }
    assert dataset.cardinality() == 6
    names = ("image", "label", "text", "data")
    for epoch in range(2):
        wanted = [
            (image, label, *(np.array(rows, object) for rows in ([t.encode() for t in texts], data)))
            for image, label, texts, data in listed().epoch(epoch)
        ]
        same(arrays(dataset, *names), wanted)


def test_ids_and_paths_have_names(listed, op):
    loader = listed(batch_size=10)
    dataset = loader.as_tf_dataset(op=op, names=True, sample_ids=True, paths=True, epoch=3)
    names = ("image", "label", "text", "data", "sample_id", "path")
    assert dataset.element_spec["sample_id"] == tf.TensorSpec((None,), tf.int64)
    for batch in arrays(dataset, *names):
        assert [TEXT.format(i).encode() for i in batch[4]] == batch[2].tolist()
        assert {os.fsencode(loader.source.path(0))} == set(batch[5].tolist())


def test_one_column_is_a_dictionary_too(made, op):
    loader = stoker.Loader(stoker.image_folder(made / "class00"), [stoker.Resize((8, 8))], batch_size=5)
    batches = list(loader.as_tf_dataset(op=op, names=True))
    assert [set(batch) for batch in batches] == [{"image"}] * len(loader)


def test_iterators_are_saved_and_graphs_keep_the_loader(listed, op, tmp_path):
    iterator = iter(listed().as_tf_dataset(op=op, names=True))
    next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "state"))
    wanted = [batch["text"].numpy().tolist() for batch in iterator]
    again = iter(listed().as_tf_dataset(op=op, names=True))
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert [batch["text"].numpy().tolist() for batch in again] == wanted

    @tf.function
    def rows():
        total = tf.constant(0)
        for batch in listed().as_tf_dataset(op=op, names=True):
            total += tf.shape(batch["text"])[0]
        return total

    assert rows() == rows() == 48


def test_keras_fits_by_the_names_of_inputs(listed, op):
    image = tf.keras.Input((SIZE, SIZE, 3), name="image")
    size = tf.keras.Input((), name="length", dtype="int64")
    pooled = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.Rescaling(1 / 255)(image))
    number = tf.keras.layers.Reshape((1,))(size)
    logits = tf.keras.layers.Dense(3)(tf.keras.layers.Concatenate()([pooled, number]))
    model = tf.keras.Model({"image": image, "length": size}, logits)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def divided(batch):
        label = batch.pop("label")
        return {"image": batch["image"], "length": tf.strings.length(batch["text"])}, label

    loader = listed(drop_remainder=True)
    history = model.fit(loader.as_tf_dataset(op=op, names=True).map(divided), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    inputs = loader.as_tf_dataset(op=op, names=True, epoch=0).map(lambda batch: divided(batch)[0])
    assert model.predict(inputs, verbose=0).shape == (48, 3)


def test_names_that_are_wrong(made, listed):
    with pytest.raises(TypeError, match="names"):
        listed().as_tf_dataset(op="fallback", names=1)
    folder = stoker.image_folder(made)
    paths = [folder.path(i) for i in range(len(folder))]
    source = stoker.files(paths, columns={"path": paths})
    loader = stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=8)
    assert set(next(iter(loader.as_tf_dataset(op="fallback", names=True)))) == {"image", "path"}
    with pytest.raises(ValueError, match="a column with the name 'path'"):
        loader.as_tf_dataset(op="fallback", names=True, paths=True)


def test_a_state_in_the_middle_of_an_epoch_is_not_lost(listed):
    loader = listed()
    next(iter(loader))
    dataset = loader.as_tf_dataset(op="fallback", names=True)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(stoker.FailedPreconditionError):
        iter(dataset)
