"""stoker.files with boxes, keypoints and further values of objects."""

import copy
import pickle

import numpy as np
import pytest
import stoker

COUNTS = [2, 0, 3]
PATHS = ["/a", "/b", "/c"]


def rows_of(shape, dtype=np.float32, seed=1):
    random = np.random.default_rng(seed)
    return [random.integers(0, 100, (count, *shape)).astype(dtype) for count in COUNTS]


def pair_of(rows):
    return np.concatenate(rows), np.cumsum([0, *COUNTS])


def source_of(**columns):
    return stoker.files(PATHS, columns=columns)


def assert_objects(source, **expected):
    """Checks the objects of each sample."""
    assert source._native.objects == list(expected)
    names = [name for name in source._native.names if name != "image"]
    for sample in range(len(source)):
        values = dict(zip(names, source._native.row(sample), strict=True))
        for name, rows in expected.items():
            np.testing.assert_array_equal(values[name], rows[sample], strict=True)


def test_all_kinds():
    boxes, points = rows_of((4,)), rows_of((5, 3), seed=2)
    labels, crowds = rows_of((), np.int64), rows_of((), bool)
    source = stoker.files(
        PATHS,
        [7, 8, 9],
        columns={
            "boxes": stoker.Boxes(boxes, "xywh"),
            "pose": stoker.Keypoints(points, flip_pairs=[(1, 2)]),
            "labels": stoker.PerObject(labels),
            "crowd": stoker.PerObject(crowds),
        },
    )
    assert source.labels.tolist() == [7, 8, 9]
    assert source._native.names == ["image", "label", "boxes", "pose", "labels", "crowd"]
    for sample in range(3):
        label, *values = source._native.row(sample)
        assert label == 7 + sample
        for value, rows in zip(values, (boxes, points, labels, crowds), strict=True):
            np.testing.assert_array_equal(value, rows[sample], strict=True)


def test_ways_to_give_them():
    rows = rows_of((4,))
    values, offsets = pair_of(rows)
    for given in (
        rows,
        [row.tolist() for row in rows],
        [row.astype(np.float64) for row in rows],
        [row.astype(np.int32) for row in rows],
        [np.asfortranarray(row) for row in rows],
        (values, offsets),
        (values.tolist(), offsets.tolist()),
        (values[:, ::-1][:, ::-1], offsets.astype(np.uint16)),
        (values.astype(">f4"), offsets.astype(">i8")),
        stoker.Ragged(values, offsets),
        iter(rows),
    ):
        assert_objects(source_of(boxes=stoker.Boxes(given)), boxes=rows)
    dense = np.arange(24.0, dtype=np.float32).reshape(3, 2, 4)
    assert_objects(source_of(boxes=stoker.Boxes(dense)), boxes=dense)


def test_types_of_other_values():
    for dtype in ("bool", "uint8", "int64", "float16", "float64"):
        rows = rows_of((2, 3), dtype)
        assert_objects(source_of(x=stoker.PerObject(rows)), x=rows)
    # An empty list is an array of floats to NumPy, and says nothing about the objects' type.
    source = source_of(x=stoker.PerObject([[1, 2], [], [3]]))
    assert source._native.row(1)[0].dtype == source._native.row(0)[0].dtype == np.int64


def test_types_are_not_mixed():
    for rows, words in (
        ([np.array([2**63 + 1], np.uint64), np.array([1])], "int64 in sample 1, and of uint64 in sample 0"),
        ([[], [7], [0.5]], "float64 in sample 2, and of int64 in sample 1"),
        ([[True], [1]], "int64 in sample 1, and of bool in sample 0"),
    ):
        with pytest.raises(ValueError, match=words):
            stoker.files(PATHS[: len(rows)], columns={"x": stoker.PerObject(rows)})
    boxes = [[[1, 2, 3, 4]], [[0.5, 1, 2, 3]], np.array([[1, 2, 3, 4]], np.uint8)]
    assert_objects(source_of(x=stoker.Boxes(boxes)), x=[np.array(row, np.float32) for row in boxes])


def test_dtype_of_other_values():
    large = np.array([2**63 + 1], np.uint64)
    for rows, dtype in (
        ([large, [1], []], "uint64"),
        ([[7], [], [2.0]], np.int64),
        ([[True], [0], [1.0]], bool),
        ([[1], [0.5], []], "float16"),
        ([[1], [2], [3]], np.dtype("uint8")),
        ([[], [], []], "float32"),
    ):
        column = stoker.PerObject(rows, dtype=dtype)
        wanted = [np.array(row, dtype) for row in rows]
        assert_objects(source_of(x=column), x=wanted)
        pair = np.concatenate([np.array(row, dtype) for row in rows]), np.cumsum([0, *map(len, rows)])
        assert_objects(source_of(x=stoker.PerObject(pair, dtype=dtype)), x=wanted)
        assert_objects(pickle.loads(pickle.dumps(source_of(x=column))), x=wanted)
        assert f"dtype='{np.dtype(dtype).name}'" in repr(column)
    for value, dtype in (
        (0.5, "int64"), (256, "uint8"), (-1, "uint64"), (2, "bool"), (2.0**63, "int64"),
        (np.nan, "int32"), (np.uint64(2**63 + 1), "int64"), (np.inf, "uint8"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"which {dtype} cannot hold"):
            source_of(x=stoker.PerObject([[value], [], []], dtype=dtype))
    with pytest.raises(ValueError, match="dtype"):
        stoker.PerObject([[1]], dtype="complex64")


def test_a_part_without_objects_has_the_columns_of_others():
    def part(labels, boxes):
        columns = {"labels": stoker.PerObject(labels), "boxes": stoker.Boxes(boxes)}
        return stoker.files(PATHS[: len(labels)], columns=columns, class_names=["cat", "dog"])

    both = stoker.combine([part([[], []], [[], []]), part([[1], []], [[[1, 2, 3, 4]], []])])
    for values in ([[], np.empty(0)], ([], [0, 0, 0]), np.empty((2, 0))):
        assert part(values, [[], []])._native.row(0)[0].dtype == np.int64
    assert both._native.row(0)[0].dtype == both._native.row(2)[0].dtype == np.int64
    kept = stoker.PerObject((np.empty(0, np.float32), [0, 0, 0]))
    assert stoker.files(PATHS[:2], columns={"x": kept})._native.row(0)[0].dtype == np.float32


@pytest.mark.filterwarnings("error")
def test_numbers_that_float32_cannot_hold():
    for value in (1e300, -1e39):
        with pytest.raises(ValueError, match=r"has -?1e\+?[0-9]+, which float32 cannot hold"):
            source_of(boxes=stoker.Boxes([[[0, 0, 1, value]], [], []]))
        with pytest.raises(ValueError, match="which float32 cannot hold"):
            source_of(pose=stoker.Keypoints([[[[0, value, 1]]], [], []]))
        with pytest.raises(ValueError, match="which float16 cannot hold"):
            source_of(x=stoker.PerObject([[value], [], []], dtype="float16"))
    row = np.array([[np.nan, np.inf, -np.inf, 1e-300]])
    assert_objects(
        source_of(boxes=stoker.Boxes([row, [], []])),
        boxes=[row.astype(np.float32), *[np.empty((0, 4), np.float32)] * 2],
    )


def test_the_most_points_that_can_be_mirrored():
    for points, pairs in ((65_535, [(0, 65_534)]), (65_536, None)):
        rows = [np.zeros((1, points, 3), np.float32), [], []]
        source_of(pose=stoker.Keypoints(rows, pairs))
    with pytest.raises(ValueError, match="65536 points for an object; flip_pairs takes at most 65535"):
        source_of(pose=stoker.Keypoints(rows, [(0, 1)]))


def test_object_counts():
    source = source_of(pose=stoker.Keypoints(rows_of((5, 3))), x=stoker.PerObject(rows_of((2, 2), "uint8")))
    assert source.object_counts.tolist() == COUNTS and source.object_counts.dtype == np.int64
    assert source.subset([2, 1, 2]).object_counts.tolist() == [3, 0, 3]
    assert source.repeated(2).object_counts.tolist() == COUNTS
    assert stoker.combine([source, source.subset([0])]).object_counts.tolist() == [*COUNTS, 2]
    assert pickle.loads(pickle.dumps(source)).object_counts.tolist() == COUNTS
    assert len(source.filter(source.object_counts > 0)) == 2
    assert source_of(x=stoker.PerObject([[], [], []])).object_counts.tolist() == [0, 0, 0]
    assert source_of(x=[1, 2, 3]).object_counts is None


def test_advice_names_columns_of_objects():
    with pytest.raises(ValueError, match=r"give values of each image's objects as stoker\.PerObject or"):
        source_of(x=[[1, 2], [], [3]])
    labelled = source_of(labels=stoker.PerObject([[1, 2], [], [3]]))
    for use in (
        lambda: labelled.labels,
        lambda: labelled.filter(labels=[1]),
        lambda: labelled.balanced(),
        lambda: labelled.split(0.5, stratify=True),
    ):
        with pytest.raises(ValueError, match="has no label for each image; its column 'labels' has one for"):
            use()
    parts = [
        stoker.files(PATHS, columns={"labels": stoker.PerObject([[0], [], []])}, class_names=names)
        for names in (["cat"], ["dog"])
    ]
    with pytest.raises(ValueError) as refused:
        stoker.combine(parts)
    assert "the same class names" in refused.value.advice


def test_no_sample_has_objects():
    empty = [[], np.empty((0, 4)), []]
    for column, shape in (
        (stoker.Boxes(empty), (0, 4)),
        (stoker.PerObject([[], [], []]), (0,)),
        (stoker.PerObject([[], np.empty((0, 2)), []]), (0, 2)),
        (stoker.Keypoints([[], [], []], flip_pairs=[(0, 3)]), (0, 4, 3)),
        (stoker.Keypoints([np.empty((0, 17, 3))] * 3), (0, 17, 3)),
    ):
        source = source_of(x=column)
        assert source._native.row(0)[0].shape == shape


def test_offsets_are_copied():
    values, offsets = pair_of(rows_of((4,)))
    source = source_of(boxes=stoker.Boxes((values, offsets)))
    before = [source._native.row(i)[0].tolist() for i in range(3)]
    offsets[:] = 10**9
    assert [source._native.row(i)[0].tolist() for i in range(3)] == before


def test_pickle_copy_and_repr():
    boxes, points = rows_of((4,)), rows_of((5, 3), seed=2)
    source = source_of(
        boxes=stoker.Boxes(boxes, "cxcywh", normalized=True),
        pose=stoker.Keypoints(pair_of(points), flip_pairs=[(0, 4)], normalized=True),
    )
    for again in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source)):
        assert_objects(again, boxes=boxes, pose=points)
        assert again._native.fingerprint == source._native.fingerprint
        assert repr(again) == repr(source) == "stoker.files('/a' and 2 more)"
    for column in (stoker.Boxes(boxes, "xywh"), stoker.Keypoints(points, [(0, 1)]), stoker.PerObject([[1]])):
        assert repr(pickle.loads(pickle.dumps(column))) == repr(column)
    assert repr(stoker.Boxes(boxes, normalized=True)) == (
        "stoker.Boxes(<3 samples>, format='xyxy', normalized=True)"
    )
    assert repr(stoker.Keypoints(pair_of(points), [(0, 1)])) == (
        "stoker.Keypoints(<3 samples>, flip_pairs=[(0, 1)])"
    )


def test_what_the_fingerprint_covers():
    boxes, points = rows_of((4,)), rows_of((5, 3))
    other = [row + 1 for row in boxes]
    values, _ = pair_of(boxes)
    sources = [
        source_of(x=stoker.Boxes(boxes)),
        source_of(x=stoker.Boxes(other)),
        source_of(x=stoker.Boxes(boxes, "xywh")),
        source_of(x=stoker.Boxes(boxes, normalized=True)),
        source_of(x=stoker.Boxes((values, [0, 1, 2, 5]))),
        source_of(x=stoker.PerObject(boxes)),
        source_of(x=stoker.Keypoints(points)),
        source_of(x=stoker.Keypoints(points, [(0, 1)])),
    ]
    assert len({source._native.fingerprint for source in sources}) == len(sources)


def test_subset_and_combine():
    boxes, labels = rows_of((4,)), rows_of((), np.int64)
    source = source_of(boxes=stoker.Boxes(boxes), labels=stoker.PerObject(labels))
    subset = source.subset([2, 1])
    assert_objects(subset, boxes=[boxes[2], boxes[1]], labels=[labels[2], labels[1]])
    assert_objects(pickle.loads(pickle.dumps(subset)), boxes=[boxes[2], boxes[1]], labels=labels[:0:-1])
    both = stoker.combine([source, subset])
    assert_objects(both, boxes=[*boxes, boxes[2], boxes[1]], labels=[*labels, labels[2], labels[1]])
    for other in (
        source_of(boxes=stoker.Boxes(boxes, "xywh"), labels=stoker.PerObject(labels)),
        source_of(boxes=stoker.Boxes(boxes, normalized=True), labels=stoker.PerObject(labels)),
        source_of(boxes=stoker.PerObject(boxes), labels=stoker.PerObject(labels)),
    ):
        with pytest.raises(ValueError, match="boxes"):
            stoker.combine([source, other])


def test_rows_in_memory_are_of_samples():
    source = source_of(boxes=stoker.Boxes(rows_of((4,))))
    with pytest.raises(ValueError, match="the column is ragged"):
        source._native.rows(1)


BOXES = [[[1, 2, 3, 4]], [], []]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: stoker.Boxes(5), TypeError, "stoker.Boxes takes a list of arrays"),
        (lambda: stoker.PerObject("abc"), TypeError, "stoker.PerObject takes a list of arrays"),
        (
            lambda: stoker.Boxes(BOXES, "yxyx"),
            ValueError,
            "format is 'yxyx'; it must be one of 'xyxy', 'xywh'",
        ),
        (lambda: stoker.Boxes(BOXES, normalized=1), TypeError, "normalized must be True or False"),
        (
            lambda: stoker.Boxes([[[1, 2]], [], []]),
            ValueError,
            r"'x' has boxes of float32 \(2\)",
        ),
        (
            lambda: stoker.Boxes([[], [[1, 2, 3, 4]], [1, 2, 3, 4]]),
            ValueError,
            r"columns\['x'\] has objects of the shape \(\) in sample 2, and of \(4,\) in sample 1",
        ),
        (lambda: stoker.Boxes([5, [], []]), TypeError, r"columns\['x'\]\[0\] must be an array of objects"),
        (
            lambda: stoker.Boxes([[], ["a"], []]),
            TypeError,
            r"columns\['x'\]\[1\] is an array of <U1; it must be of numbers",
        ),
        (lambda: stoker.Boxes([[], [], [[1, 2], [3]]]), ValueError, r"columns\['x'\]\[2\] is not an array"),
        (lambda: stoker.Boxes([[[True] * 4], [], []]), TypeError, r"columns\['x'\]\[0\] is an array of bool"),
        (lambda: stoker.Boxes((1, 2, 3)), ValueError, r"columns\['x'\] has a tuple of 3"),
        (lambda: stoker.Boxes(BOXES[:2]), ValueError, "'x' has 2 rows for 3 paths"),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [0, 0, 0, 2])), ValueError, "offsets from 0 to 2"),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [1, 1, 1, 1])), ValueError, "offsets from 1 to 1"),
        (
            lambda: stoker.Boxes(([[1, 2, 3, 4]], [0, 9, 0, 1])),
            ValueError,
            "'x' has offsets 9 and 0 for sample 1",
        ),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [0.0, 0, 0, 1])), TypeError, "a list of integers"),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [])), TypeError, "a list of integers"),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [[0, 1]])), TypeError, "a list of integers"),
        (lambda: stoker.Boxes(([[1, 2, 3, 4]], [0, 0, 2**70, 1])), TypeError, "a list of integers"),
        (
            lambda: stoker.PerObject([[1j], [], []]),
            TypeError,
            r"columns\['x'\]\[0\] is an array of complex128",
        ),
        (lambda: stoker.Keypoints([[[1, 2, 3]], [], []]), ValueError, r"'x' has keypoints of float32 \(3\)"),
        (
            lambda: stoker.Keypoints([[[[1, 2]]], [], []]),
            ValueError,
            r"'x' has keypoints of float32 \(1, 2\)",
        ),
        (
            lambda: stoker.Keypoints([[[[1, 2, 2]] * 2], [], []], [(0, 2)]),
            ValueError,
            r"columns\['x'\] has 2 points, and a pair \(0, 2\) in flip_pairs",
        ),
        (lambda: stoker.Keypoints([], [(0, 0)]), ValueError, r"flip_pairs\[0\] is \(0, 0\)"),
        (lambda: stoker.Keypoints([], [(0, 1), (1, 2)]), ValueError, r"flip_pairs\[1\] is \(1, 2\)"),
        (lambda: stoker.Keypoints([], [(0, 1, 2)]), ValueError, r"flip_pairs\[0\] has 3 points"),
        (lambda: stoker.Keypoints([], [0, 1]), TypeError, r"flip_pairs\[0\] must be a sequence"),
        (lambda: stoker.Keypoints([], [(0, -1)]), ValueError, r"flip_pairs\[0\] is -1"),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        source_of(x=make())


def test_columns_describe_the_same_objects():
    with pytest.raises(ValueError, match="'y' has 2 objects in sample 1, but 'x' has 0"):
        source_of(x=stoker.PerObject([[1], [], []]), y=stoker.PerObject([[1], [2, 3], []]))
    with pytest.raises(ValueError, match="'y' is a second field of boxes, after 'x'"):
        source_of(x=stoker.Boxes(BOXES), y=stoker.Boxes(BOXES))


def test_objects_are_no_labels():
    with pytest.raises(TypeError):
        stoker.files(PATHS, stoker.PerObject([[1], [], []]))
