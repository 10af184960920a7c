"""stoker.tfrecord reads the objects that TensorFlow's Object Detection API writes."""

import pickle

import numpy as np
import pytest
import stoker
import tensorflow as tf
from indexes import index_of, rest
from object_server import ObjectServer
from scenes import SAMPLES, batches, check_same, write_scenes

COLUMNS = {
    "height": "image/height",
    "boxes": stoker.Boxes("image/object/bbox", normalized=True),
    "labels": stoker.PerObject("image/object/class/label"),
    "area": stoker.PerObject("image/object/area"),
    "iscrowd": stoker.PerObject("image/object/is_crowd", dtype="uint8"),
}


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def integers(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def texts(values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def features_of(row, root):
    """The features that the API's scripts write, with boxes from 0 to 1."""
    boxes = np.float32(row["objects"]["bbox"]).reshape(-1, 4)
    corners = np.sort(boxes.reshape(-1, 2, 2), 1).reshape(-1, 4) / 50
    labels = row["objects"]["categories"]
    sides = zip(("xmin", "ymin", "xmax", "ymax"), corners.T)
    return corners, {
        "image/height": integers([row["w"]]),
        "image/width": integers([row["w"] + 1]),
        "image/encoded": texts([(root / row["file_name"]).read_bytes()]),
        **{f"image/object/bbox/{side}": floats(values) for side, values in sides},
        "image/object/class/label": integers(labels),
        "image/object/class/text": texts([b"dog" if label % 2 else b"cat" for label in labels]),
        "image/object/area": floats(row["objects"]["area"]),
        "image/object/is_crowd": integers([label % 2 for label in labels]),
    }


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for features in records:
            message = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(message.SerializeToString())
    return path


@pytest.fixture(scope="module")
def records(made, tmp_path_factory):
    """Returns the rows, their corners, the folder of their files, and a pattern of three files."""
    root = tmp_path_factory.mktemp("records")
    rows = write_scenes(made, root)
    corners, features = zip(*(features_of(row, root) for row in rows))
    for shard, (begin, end) in enumerate([(0, 1), (1, 7), (7, SAMPLES)]):
        write(root / f"{shard}.tfrecord", features[begin:end])
    rest()
    return rows, corners, root, f"{root}/*.tfrecord"


def expected(rows, corners, root):
    labels = [row["objects"]["categories"] for row in rows]
    return stoker.files(
        [row["file_name"] for row in rows],
        columns={
            "height": np.array([row["w"] for row in rows]),
            "boxes": stoker.Boxes(list(corners), normalized=True),
            "labels": stoker.PerObject(labels, dtype="int64"),
            "area": stoker.PerObject([row["objects"]["area"] for row in rows], dtype="float32"),
            "iscrowd": stoker.PerObject([[n % 2 for n in each] for each in labels], dtype="uint8"),
        },
        root=root,
    )


def test_the_same_batches_as_of_files(records):
    rows, corners, root, pattern = records
    source = stoker.tfrecord(pattern, label=None, columns=COLUMNS)
    check_same(source, expected(rows, corners, root))
    assert source.object_counts.tolist() == [i % 4 for i in range(SAMPLES)]


def test_the_second_opening_reads_the_index(records, tmp_path):
    """An index that is used is not written again; one that is damaged is."""
    rows, corners, root, _ = records
    features = [features_of(row, root)[1] for row in rows]
    file = write(tmp_path / "a.tfrecord", features)
    rest()
    first = stoker.tfrecord(file, label=None, columns=COLUMNS)
    folder = index_of(file).parent
    name = index_of(file).name.split("-")[0]
    indexes = sorted(folder.glob(f"{name}-*.stoker-index"))
    assert len(indexes) == 1 + 7  # the records, four sides, and three other features
    before = [index.stat().st_ino for index in indexes]
    again = stoker.tfrecord(file, label=None, columns=COLUMNS)
    assert [index.stat().st_ino for index in indexes] == before
    assert again._native.fingerprint == first._native.fingerprint
    check_same(again, expected(rows, corners, root))
    for index in indexes:  # damaged ones are made again
        index.write_bytes(index.read_bytes()[:-1])
        check_same(stoker.tfrecord(file, label=None, columns=COLUMNS), first)


def test_files_behind_urls(records):
    rows, corners, root, _ = records
    with ObjectServer(root) as server:
        source = stoker.tfrecord(f"{server.url}/{{0..2}}.tfrecord", label=None, columns=COLUMNS)
        check_same(source, expected(rows, corners, root))


def test_labels_of_text_are_classes(records):
    rows, _, _, pattern = records
    columns = {"labels": stoker.PerObject("image/object/class/text")}
    source = stoker.tfrecord(pattern, label=None, columns=columns)
    assert source.classes == ["cat", "dog"]
    labels = np.concatenate([batch["labels"][0] for batch in batches(source, shuffle=False)])
    assert labels.tolist() == [label % 2 for row in rows for label in row["objects"]["categories"]]
    with pytest.raises(ValueError, match="the images have a label"):
        stoker.tfrecord(pattern, label="image/height", columns=columns)


def test_records_without_the_features_have_no_objects(records, tmp_path):
    rows, _, root, _ = records
    plain = {
        "image/encoded": texts([(root / rows[0]["file_name"]).read_bytes()]),
        "image/height": integers([7]),
    }
    features = [features_of(row, root)[1] for row in rows[1:4]]
    file = write(tmp_path / "a.tfrecord", [plain, *features, plain])
    source = stoker.tfrecord(file, label=None, columns=COLUMNS)
    assert source.object_counts.tolist() == [0, 1, 2, 3, 0]


def test_a_source_tells_of_itself_and_can_be_pickled(records):
    source = stoker.tfrecord(records[3], label=None, columns=COLUMNS)
    assert "'boxes': stoker.Boxes('image/object/bbox', format='xyxy', normalized=True)" in repr(source)
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == repr(source)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image/object/bbox/ymax": floats([0.5])}, "ymax' has 1 value, and 'image/object/bbox/xmin' has 2"),
        ({"image/object/bbox/xmin": floats([])}, "ymin' has 2 values, and 'image/object/bbox/xmin' has 0"),
        ({"image/object/bbox/xmin": integers([1, 2])}, "is int64, and float in the records before"),
        ({"image/object/class/label": integers([1])}, "'boxes' has 2 objects, and 'labels' has 1 object"),
        ({"image/object/class/label": floats([1, 2])}, "is float, and int64 in the records before"),
        ({"image/object/is_crowd": integers([0, 300])}, "300, which uint8 cannot hold"),
    ],
)
def test_wrong_records(records, tmp_path, change, words):
    rows, _, root, _ = records
    good = features_of(rows[1], root)[1]
    file = write(tmp_path / "a.tfrecord", [good, {**features_of(rows[2], root)[1], **change}])
    with pytest.raises(ValueError, match=words) as caught:
        stoker.tfrecord(file, label=None, columns=COLUMNS)
    assert caught.value.file == str(file) and caught.value.offset > 0


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        ({"boxes": stoker.Boxes("image/object/bbox")}, ValueError, "lie between 0 and 1.*normalized=True"),
        ({"boxes": stoker.Boxes("image/object/bbox", format="xywh")}, ValueError, "xmin, ymin, xmax"),
        ({"boxes": stoker.Boxes("bbox")}, ValueError, "no record has the feature 'bbox/xmin'"),
        ({"mask": stoker.Mask("image/height")}, ValueError, "is of masks or keypoints"),
        ({"k": stoker.PerObject("image/object/class/text")}, ValueError, "'k' has text"),
        ({"boxes": stoker.Boxes([[]])}, TypeError, "must be the name of one of the features"),
        ({"x": "absent"}, ValueError, "the first record has no feature 'absent'"),
    ],
)
def test_wrong_columns(records, columns, kind, words):
    with pytest.raises(kind, match=words):
        stoker.tfrecord(records[3], label=None, columns=columns)


def test_damaged_records_are_noticed(records, tmp_path):
    rows, _, root, _ = records
    file = write(tmp_path / "a.tfrecord", [features_of(rows[1], root)[1]] * 2)
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    with pytest.raises(stoker.DataLossError, match="checksum") as caught:
        stoker.tfrecord(file, label=None, columns=COLUMNS)
    assert caught.value.offset == len(data) // 2
