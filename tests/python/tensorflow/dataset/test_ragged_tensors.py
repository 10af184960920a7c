"""Columns of objects as ragged tensors."""

import numpy as np
import PIL.Image
import pytest
import stoker
import tensorflow as tf
from interrupts import interrupted

SIDE = 16
COUNTS = [3, 0, 2, 1, 5, 0, 0, 4, 1, 2, 0, 6]
RANDOM = np.random.default_rng(5)
BOXES = [np.sort(RANDOM.integers(0, SIDE, (n, 2, 2)), 1).reshape(n, 4).astype(np.float32) for n in COUNTS]
LABELS = [RANDOM.integers(0, 90, n) for n in COUNTS]
AREAS = [RANDOM.random(n) for n in COUNTS]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ragged")
    made = [folder / f"{i}.png" for i in range(len(COUNTS))]
    for path in made:
        PIL.Image.fromarray(RANDOM.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(path)
    return made


@pytest.fixture
def make(paths):
    def loader(given=paths, columns=None, **options):
        columns = columns or {
            "boxes": stoker.Boxes(BOXES),
            "age": np.arange(len(paths)),
            "labels": stoker.PerObject(LABELS),
            "area": stoker.PerObject(AREAS),
        }
        options = {"batch_size": 5, "shuffle": True, "seed": 5, **options}
        return stoker.Loader(stoker.files(given, columns=columns), [stoker.Resize((SIDE, SIDE))], **options)

    return loader


def check(batches):
    """Checks the objects of all rows, by the sample's number, which is its age, and returns these."""
    ages = []
    for batch in batches:
        for name, rows in (("boxes", BOXES), ("labels", LABELS), ("area", AREAS)):
            assert isinstance(batch[name], tf.RaggedTensor)
            assert batch[name].ragged_rank == 1 and batch[name].row_splits.dtype == tf.int64
            for row, age in zip(batch[name], batch["age"].numpy(), strict=True):
                np.testing.assert_array_equal(row, rows[age], strict=True)
        ages.append(batch["age"].numpy().tolist())
    return ages


def ages_of(loader, epoch):
    return [batch["age"].tolist() for batch in loader.epoch(epoch)]


def spec(rows):
    return {
        "image": tf.TensorSpec((rows, SIDE, SIDE, 3), tf.uint8),
        "age": tf.TensorSpec((rows,), tf.int64),
        "boxes": tf.RaggedTensorSpec((rows, None, 4), tf.float32, 1, tf.int64),
        "labels": tf.RaggedTensorSpec((rows, None), tf.int64, 1, tf.int64),
        "area": tf.RaggedTensorSpec((rows, None), tf.float64, 1, tf.int64),
    }


def test_each_row_has_the_objects_of_its_sample(make, op):
    loader = make()
    dataset = loader.as_tf_dataset(op=op)
    assert dataset.element_spec == spec(None)
    assert dataset.cardinality() == len(loader)
    for epoch in range(2):
        assert check(dataset) == ages_of(loader, epoch)


def test_the_batch_dimension_is_static_if_it_can_be(make, op):
    dataset = make(batch_size=4).as_tf_dataset(op=op)
    assert dataset.element_spec == spec(4)
    for batch in dataset:
        assert dataset.element_spec == {
            name: tf.type_spec_from_value(column) for name, column in batch.items()
        }


def test_in_a_graph(make, op):
    dataset = make().as_tf_dataset(op=op, epoch=0)

    @tf.function
    def total():
        objects, boxes = tf.constant(0, tf.int64), tf.constant(0.0)
        for batch in dataset:
            assert isinstance(batch["boxes"], tf.RaggedTensor)
            objects += tf.reduce_sum(batch["labels"].row_lengths())
            boxes += tf.reduce_sum(batch["boxes"])
        return objects, boxes

    objects, boxes = total()
    assert objects == sum(COUNTS)
    assert boxes == sum(box.sum() for box in BOXES)


def test_later_steps(make, op):
    dataset = make(shuffle=False).as_tf_dataset(op=op, epoch=0)
    dense = dataset.map(lambda batch: batch["labels"].to_tensor(-1, shape=(None, 6)))
    got = np.concatenate([labels.numpy() for labels in dense])
    assert got.tolist() == [[*label, *[-1] * (6 - len(label))] for label in LABELS]
    again = dataset.unbatch().ragged_batch(3)
    assert sum(check(again), []) == list(range(len(COUNTS)))  # noqa: RUF017
    assert check(dataset.prefetch(2).skip(1)) == [[*range(5, 10)], [10, 11]]
    assert check(dataset.shard(2, 1)) == [[*range(5, 10)]]


def test_with_ids_and_paths(make, op, paths):
    for batch in make().as_tf_dataset(op=op, sample_ids=True, paths=True):
        check([batch])
        assert batch["sample_id"].numpy().tolist() == batch["age"].numpy().tolist()
        assert [path.decode() for path in batch["path"].numpy()] == [
            str(paths[i]) for i in batch["sample_id"].numpy()
        ]


def test_names_of_elements(make, paths, op):
    columns = {"boxes": stoker.Boxes(BOXES)}
    assert set(make(columns=columns).as_tf_dataset(op=op).element_spec) == {"image", "boxes"}
    columns["weight"] = np.arange(len(paths), dtype=np.float32)
    with pytest.raises(ValueError, match="no labels"):
        make(columns=columns).as_tf_dataset(op=op, sample_weight="weight")
    source = stoker.files(paths, np.arange(len(paths)), columns={"labels": stoker.PerObject(LABELS)})
    loader = stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=4)
    with pytest.raises(ValueError, match="'labels', which is of objects"):
        loader.as_tf_dataset(op=op, sample_weight="labels")


def test_rows_that_are_dropped(make, paths, op):
    bad = paths[0].parent / "bad.png"
    bad.write_bytes(b"no image")
    given = [bad if i in (1, 4, 10, 11) else path for i, path in enumerate(paths)]
    loader = make(given, shuffle=False, on_bad="drop", max_bad_fraction=1)
    assert check(loader.as_tf_dataset(op=op)) == [[0, 2, 3], [5, 6, 7, 8, 9]]


def test_no_objects_at_all(make, paths, op):
    columns = {"boxes": stoker.Boxes([[]] * len(paths)), "labels": stoker.PerObject([[]] * len(paths))}
    for batch in make(columns=columns).as_tf_dataset(op=op):
        assert batch["boxes"].values.shape == (0, 4)
        assert batch["labels"].to_list() == [[]] * len(batch["image"])


def test_a_checkpoint(make, op, tmp_path):
    iterator = iter(make().as_tf_dataset(op=op))
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    check([next(iterator)])
    saved = checkpoint.save(tmp_path / "saved")
    assert check(iterator) == ages_of(make(), 0)[1:]
    checkpoint.restore(saved)
    assert check(iterator) == ages_of(make(), 0)[1:]
    restored = iter(make().as_tf_dataset(op=op))
    tf.train.Checkpoint(iterator=restored).restore(saved)
    assert check(restored) == ages_of(make(), 0)[1:]


def test_another_batch_size_whose_rest_does_not_divide_is_refused(make, tmp_path):
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    iterator = iter(make(batch_size=3).as_tf_dataset(op="native").with_options(options))
    next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "saved")
    other = iter(make(batch_size=4).as_tf_dataset(op="native").with_options(options))
    with pytest.raises(tf.errors.FailedPreconditionError, match="a batch of 1 rows"):
        tf.train.Checkpoint(iterator=other).restore(saved)


def test_a_saved_dataset(make, op, tmp_path):
    dataset = make().as_tf_dataset(op=op, epoch=0)
    dataset.save(str(tmp_path / "saved"))
    assert check(tf.data.Dataset.load(str(tmp_path / "saved"))) == ages_of(make(), 0)


def test_keras_fits_it(make, op):
    keras = pytest.importorskip("keras")
    image = keras.Input((SIDE, SIDE, 3))
    scores = keras.layers.Dense(6)(keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(image)))
    model = keras.Model(image, scores)
    model.compile(loss="mse")
    loader = make(batch_size=4)

    def divided(batch):
        return batch["image"], tf.cast(batch["labels"].to_tensor(0, shape=(None, 6)), tf.float32)

    history = model.fit(loader.as_tf_dataset(op=op).map(divided), epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert loader.state_dict()["epoch"] == 2


def test_an_interrupt_loses_no_batch(make):
    loader = make(runtime=stoker.Runtime(threads=1), depth=1, batch_size=2)
    dataset = loader.as_tf_dataset(op="native")
    wanted = [[tuple(ages) for ages in ages_of(loader, epoch)] for epoch in range(60)]
    interrupted(
        lambda: iter(dataset),
        lambda batch: tuple(batch["age"].numpy().tolist()),
        wanted.__getitem__,
        remade="_NotOkStatusException REPLACED BY Alarm",
        times=10,
    )


def test_an_op_without_offsets_is_refused(make):
    from stoker.tensorflow import _ops

    loader = make()
    batch_at = _ops._fallback().stoker_batch_at
    names = {"key": loader._key, "spec": loader._spec}
    types = [tf.uint8, tf.float32, tf.int64, tf.int64, tf.float64]
    for wrong in (types, [*types, tf.int64], [*types, tf.int64, tf.int64, tf.int32]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="output_types are not those"):
            batch_at(epoch=0, index=0, output_types=wrong, offsets=True, **names)
