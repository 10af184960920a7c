"""stoker.tfrecord reads what TensorFlow writes."""

import os
import pathlib
import pickle
import shlex
import subprocess
import sys
from functools import partial

import forks
import numpy as np
import pytest
import stoker
import tensorflow as tf
from epochs import same, same_for_ranks, same_for_settings, taken
from indexes import index_of, rest

TRAIN = [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()]


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


def feature_of(value):
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example_of(features):
    all_of_them = {name: feature_of(value) for name, value in features.items()}
    message = tf.train.Example(features=tf.train.Features(feature=all_of_them))
    return message.SerializeToString()


def write(path, records, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.fixture(scope="module")
def samples(made):
    """The photographs of `made` in its order, with features as ImageNet's scripts write them."""
    source = stoker.image_folder(made)
    return [
        {
            "image/encoded": pathlib.Path(source.path(i)).read_bytes(),
            "image/class/label": int(source.labels[i]),
            "image/height": 100 + i,
            "image/object/bbox": [i / 64, -1.5, float(2**i), 0.25],
            "image/filename": os.fsencode(os.path.basename(source.path(i))),
            "image/channels": [3, -(2**63), 2**63 - 1],
        }
        for i in range(len(source))
    ]


@pytest.fixture(scope="module")
def shards(samples, tmp_path_factory):
    """The samples in five files and an empty one."""
    folder = tmp_path_factory.mktemp("shards")
    ends = [0, 13, 14, 14, 30, 47, len(samples)]
    for i in range(6):
        part = [example_of(sample) for sample in samples[ends[i] : ends[i + 1]]]
        write(folder / f"train-{i:05d}-of-00006", part)
    return folder


def test_samples_are_those_that_were_written(samples, shards):
    """The golden set: TensorFlow's writer, and TensorFlow's parser next to stoker's."""
    columns = ["image/height", "image/object/bbox", "image/channels"]
    source = stoker.tfrecord(f"{shards}/train-*", columns=columns)
    files = sorted(str(path) for path in shards.glob("train-*"))
    wanted = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/object/bbox": tf.io.FixedLenFeature([4], tf.float32),
        "image/channels": tf.io.FixedLenFeature([3], tf.int64),
    }
    assert len(source) == len(samples) == 48
    for i, record in enumerate(tf.data.TFRecordDataset(files)):
        parsed = tf.io.parse_single_example(record, wanted)
        assert source._image(i) == parsed["image/encoded"].numpy() == samples[i]["image/encoded"]
        for ours, name in zip(source._beside(i), ["image/class/label", *columns]):
            np.testing.assert_array_equal(ours, parsed[name].numpy())
            assert ours.dtype == parsed[name].dtype.as_numpy_dtype
    for batch in make(source, shuffle=False):
        first = int(batch["image/height"][0]) - 100
        rows = samples[first : first + 8]
        np.testing.assert_array_equal(batch["label"], [row["image/class/label"] for row in rows])
        np.testing.assert_array_equal(
            batch["image/object/bbox"], np.float32([row["image/object/bbox"] for row in rows])
        )
        np.testing.assert_array_equal(batch["image/channels"], [row["image/channels"] for row in rows])


@pytest.mark.parametrize("kind", ["native", "fallback"])
def test_byte_strings_are_columns(samples, shards, kind):
    source = stoker.tfrecord(f"{shards}/train-*", columns=["image/filename", "image/height"])
    assert source._beside(5)[1:] == [samples[5]["image/filename"], 105]
    loader = make(source)
    held = []
    for batches in (loader.epoch(0), loader.to_device("cpu").epoch(0)):
        for batch in batches:
            rows = np.asarray(batch["image/height"]) - 100
            assert batch["image/filename"] == [samples[i]["image/filename"] for i in rows]
            held.append(batch["image/filename"])
    for batch in loader.as_tf_dataset(op=kind, epoch=0):
        names = [samples[i]["image/filename"] for i in batch["image/height"].numpy() - 100]
        assert (
            batch["image/filename"].dtype == tf.string and batch["image/filename"].numpy().tolist() == names
        )
        assert names == held.pop(0)
    seen = []
    names_of = stoker.Map(lambda batch: seen.append(batch["image/filename"]))
    mapped = stoker.Loader(source, [*TRAIN, names_of], batch_size=8)
    names = [batch["image/filename"] for batch in mapped.epoch(0)]
    assert names == seen[: len(names)]  # further batches are made ahead
    chosen = source.subset([40, 2])
    batch = next(iter(make(chosen, batch_size=2, shuffle=False)))
    assert batch["image/filename"] == [samples[40]["image/filename"], samples[2]["image/filename"]]
    with pytest.raises(NotImplementedError, match=r"'image/filename'.* on a device"):
        make(source).to_device("host")


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, shards, world):
    records = stoker.tfrecord(f"{shards}/train-{{00000..00005}}-of-00006")
    same_for_ranks(partial(make, records), partial(make, stoker.image_folder(made)), world)


def test_the_same_bytes_with_any_threads_and_depth(made, shards):
    wanted = taken(make(stoker.image_folder(made)))
    same_for_settings(make, lambda: stoker.tfrecord(f"{shards}/train-*"), wanted)


def test_sources_made_from_it(samples, shards, made):
    source = stoker.tfrecord(str(shards / "train-*"))
    training, validation = source.split(0.25, seed=3)
    folder = stoker.image_folder(made).split(0.25, seed=3)
    same(taken(make(validation)), taken(make(folder[1])))
    both = stoker.combine([validation, training])
    same(taken(make(both)), taken(make(stoker.combine([folder[1], folder[0]]))))
    alone = stoker.tfrecord(str(shards / "train-*"), label=None)
    flat = stoker.image_folder(made / "class00")
    assert len(taken(make(stoker.combine([alone, flat]), batch_size=1))) == len(alone) + len(flat)


def test_without_labels_and_with_class_names(shards):
    alone = stoker.tfrecord(f"{shards}/train-*", label=None)
    assert not alone.has_labels and alone._beside(3) == []
    assert [batch.shape for batch in make(alone)] == [(8, 32, 32, 3)] * 6
    named = stoker.tfrecord(f"{shards}/train-*", class_names=["a", "b; c", "ä"])
    assert named.classes == ["a", "b; c", "ä"]
    same(taken(make(named)), taken(make(stoker.tfrecord(f"{shards}/train-*"))))
    few = stoker.tfrecord(f"{shards}/train-*", class_names=["a"])
    with pytest.raises(stoker.DataLossError, match="label 1 has no class name"):
        taken(make(few, shuffle=False, batch_size=48))


def test_labels_are_mixed(shards, made):
    mixed = [stoker.RandomResizedCrop(32), stoker.MixUp(num_classes=3)]
    options = {"batch_size": 8, "shuffle": True, "seed": 3}
    ours = stoker.Loader(stoker.tfrecord(f"{shards}/train-*"), mixed, **options)
    same(taken(ours), taken(stoker.Loader(stoker.image_folder(made), mixed, **options)))


def test_a_state_goes_on_with_the_records_in_other_files(samples, shards, tmp_path):
    loader = make(stoker.tfrecord(f"{shards}/train-*"))
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = taken(iterator)
    all_of_them = [example_of(sample) for sample in samples]
    again = make(stoker.tfrecord(write(tmp_path / "all.tfrecord", all_of_them)))
    again.load_state_dict(state)
    same(taken(again), rest)
    other = make(stoker.tfrecord(write(tmp_path / "other.tfrecord", all_of_them[::-1])))
    with pytest.raises(stoker.FailedPreconditionError, match="samples"):
        other.load_state_dict(state)


def test_a_source_can_be_pickled_and_specified(shards, monkeypatch):
    monkeypatch.chdir(shards)
    source = stoker.tfrecord("train-*", columns=["image/height"], class_names=["a", "b", "c"])
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and again.classes == source.classes
    assert (source._spec["shards"], source._spec["root"]) == ("train-*", str(shards))
    assert repr(source) == (
        "stoker.tfrecord('train-*', image='image/encoded', label='image/class/label', "
        "columns=['image/height'])"
    )
    assert source.path(0) == f"{shards}/train-00000-of-00006"


def test_as_a_tf_dataset(samples, shards, op):
    source = stoker.tfrecord(f"{shards}/train-*", columns=["image/object/bbox"])
    dataset = make(source, shuffle=False, batch_size=48).as_tf_dataset(op=op)
    batch = next(iter(dataset))
    assert batch["image"].shape == (48, 32, 32, 3)
    np.testing.assert_array_equal(batch["label"], [sample["image/class/label"] for sample in samples])
    np.testing.assert_array_equal(
        batch["image/object/bbox"], np.float32([s["image/object/bbox"] for s in samples])
    )


ELSEWHERE = """
import sys
import stoker.tensorflow
import tensorflow as tf
stoker.tensorflow.load_ops(sys.argv[1])
graph = tf.constant(open(sys.argv[2], "rb").read())
variant = tf.raw_ops.DatasetFromGraph(graph_def=graph)
kinds = {"image": tf.uint8, "label": tf.int64, "image/object/bbox": tf.float32, "image/height": tf.int64}
spec = {name: tf.TensorSpec(None, kind) for name, kind in kinds.items()}
dataset = tf.data.experimental.from_variant(variant, spec)
rows = [(int(tf.reduce_sum(batch["label"])), batch["image/height"].numpy().tolist()) for batch in dataset]
print(rows)
"""


@pytest.mark.long
def test_another_process_opens_them_by_the_spec(samples, shards, tmp_path, op):
    source = stoker.tfrecord(
        f"{shards}/train-*",
        columns=["image/object/bbox", "image/height"],
        class_names=["a", "b", "c"],
    )
    dataset = make(source, shuffle=False, batch_size=48).as_tf_dataset(op=op)
    (tmp_path / "graph").write_bytes(dataset._as_serialized_graph().numpy())
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    done = forks.run(tmp_path / "elsewhere.py", op, tmp_path / "graph")
    assert done.returncode == 0, done.stderr
    labels = sum(sample["image/class/label"] for sample in samples)
    assert done.stdout.strip() == str([(labels, [sample["image/height"] for sample in samples])])


def test_the_command_reads_them(shards, tmp_path):
    for path in shards.glob("train-*-of-*"):
        os.symlink(path, tmp_path / f"{path.name}.tfrecord")
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "bench", "train-*.tfrecord", "--epochs", "1", "--digest"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "48 samples" in done.stdout
    explained = [sys.executable, "-m", "stoker", "explain", "train-*.tfrecord"]
    done = subprocess.run(explained, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "(mean of 144)" in done.stdout, "three rounds of 48"


# --- faults --------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(samples, tmp_path):
    """A function that opens three records after a change to the file's bytes, and returns their offsets."""
    records = [example_of(sample) for sample in samples[:3]]
    path = write(tmp_path / "a.tfrecord", records)
    ends = np.cumsum([len(record) + 16 for record in records])

    def change(do):
        data = bytearray(path.read_bytes())
        do(data, int(ends[0]))
        path.write_bytes(data)
        return stoker.tfrecord(path)

    change.path, change.second = str(path), int(ends[0])
    return change


def test_a_file_that_is_cut_off(damaged):
    def cut(data, at):
        del data[at + 500 :]

    with pytest.raises(stoker.DataLossError, match="cut off") as error:
        damaged(cut)
    assert (error.value.file, error.value.offset) == (damaged.path, damaged.second)


def flipped(where):
    def do(data, at):
        data[at + where] ^= 1

    return do


def test_a_wrong_length_is_found_at_once(damaged):
    with pytest.raises(stoker.DataLossError, match="checksum of a record's length") as error:
        damaged(flipped(9))
    assert (error.value.file, error.value.offset) == (damaged.path, damaged.second)


@pytest.mark.parametrize("where", [12, 400])
def test_wrong_data_is_the_error_of_its_batch(damaged, where):
    source = damaged(flipped(where))
    iterator = iter(stoker.Loader(source, TRAIN, batch_size=1))
    next(iterator)
    with pytest.raises(stoker.DataLossError, match="checksum of the record's data") as error:
        next(iterator)
    assert (error.value.file, error.value.offset) == (damaged.path, damaged.second)
    assert len(next(iterator)) == 2, "the next one is good"


def test_wrong_data_of_the_first_record_is_found_at_once(damaged):
    with pytest.raises(stoker.DataLossError, match="checksum of the record's data") as error:
        damaged(flipped(-1))
    assert (error.value.file, error.value.offset) == (damaged.path, 0)


def test_a_damaged_image_is_named_by_its_place_in_the_file(samples, tmp_path):
    image = bytearray(samples[1]["image/encoded"])
    image[:1000] = bytes(1000)
    records = [example_of(samples[0]), example_of({**samples[1], "image/encoded": bytes(image)})]
    path = write(tmp_path / "a.tfrecord", records)
    iterator = iter(stoker.Loader(stoker.tfrecord(path), TRAIN, batch_size=1))
    next(iterator)
    with pytest.raises(stoker.Error) as error:
        next(iterator)
    assert error.value.file == str(path)
    assert error.value.offset == path.read_bytes().index(bytes(image))


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_file_is_refused_with_a_command_that_helps(samples, tmp_path, kind):
    path = write(tmp_path / "packed.tfrecord", [example_of(samples[0])], kind)
    with pytest.raises(stoker.UnimplementedError, match=rf"compressed \({kind}\)") as error:
        stoker.tfrecord(path)
    told = str(error.value).split("`")[1]
    plain = tmp_path / "plain.tfrecord"
    command = told.replace("FILE", shlex.quote(str(path))).replace("NEW", shlex.quote(str(plain)))
    subprocess.run(command, shell=True, check=True)
    assert stoker.tfrecord(plain)._image(0) == samples[0]["image/encoded"]


def test_files_of_another_kind(samples, made, shards, tmp_path):
    photo = stoker.image_folder(made).path(0)
    with pytest.raises(stoker.DataLossError, match="not a TFRecord file") as error:
        stoker.tfrecord([shards / "train-00000-of-00006", photo])
    assert (error.value.file, error.value.offset) == (photo, 0)
    text = write(tmp_path / "text", [b"a line of text", b"another"])
    with pytest.raises(stoker.DataLossError, match=r"not a tf\.train\.Example"):
        stoker.tfrecord(text)
    other = write(tmp_path / "other", [example_of({"image": b"x", "label": 1})])
    with pytest.raises(stoker.InvalidArgumentError, match=r"it has .*image \(bytes\)"):
        stoker.tfrecord(other)
    mixed = stoker.tfrecord([shards / "train-00001-of-00006", other])
    assert len(mixed) == 2
    with pytest.raises(stoker.UnimplementedError, match="no feature 'image/encoded'") as error:
        taken(make(mixed, shuffle=False))
    assert (error.value.file, error.value.offset) == (str(other), 0)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"image": "none"}, ValueError, r"no feature 'none'; it has .*image/filename \(bytes\)"),
        ({"image": "image/height"}, ValueError, "not an encoded image"),
        ({"image": None}, TypeError, "image must be"),
        ({"label": "image/channels"}, ValueError, "is not a label"),
        ({"label": ""}, TypeError, "label must be"),
        ({"columns": "image/height"}, TypeError, "columns must be a list"),
        ({"columns": [5]}, TypeError, r"columns\[0\] must be a string"),
        ({"columns": ["image"]}, ValueError, "the name 'image'"),
        ({"columns": ["a\nb"]}, ValueError, "line break"),
        ({"class_names": []}, ValueError, "class_names is empty"),
        ({"label": None, "class_names": ["a"]}, ValueError, "no label"),
        ({"threads": 300}, ValueError, "threads"),
    ],
)
def test_wrong_arguments(shards, options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.tfrecord(f"{shards}/train-*", **options)


# --- the index files ------------------------------------------------------------------------------------


def test_an_index_is_kept_and_checked(samples, tmp_path):
    records = [example_of(sample) for sample in samples[:4]]
    path = write(tmp_path / "a.tfrecord", records)
    rest()
    first = stoker.tfrecord(path)
    index = index_of(path)
    before = index.stat()
    assert stoker.tfrecord(path)._native.fingerprint == first._native.fingerprint
    assert index.stat().st_ino == before.st_ino, "it is not written again"
    write(path, records[:2])
    rest()
    assert len(stoker.tfrecord(path)) == 2
    index = index_of(path)
    assert index.stat().st_ino != before.st_ino
    for damage in (b"", b"?" * 100, index.read_bytes()[:-1]):
        index.write_bytes(damage)
        assert len(stoker.tfrecord(path)) == 2
    index.unlink()
    index.mkdir()  # where none can be written
    assert len(stoker.tfrecord(path)) == 2
