"""stoker.manifest: files that list images with labels and further columns. NumPy only."""

import csv
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def listed(folder):
    """Returns a folder's paths below it, and labels, in its order."""
    source = stoker.image_folder(folder)
    return [os.path.relpath(source.path(i), folder) for i in range(len(source))], source.labels.tolist()


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


def write(file, names, *columns, **options):
    """Writes columns as Python's csv module does."""
    with open(file, "w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, **options)
        writer.writerow(names)
        writer.writerows(zip(*columns))
    return file


def text(file, content):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


# --- content of manifests ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"quoting": csv.QUOTE_ALL}, {"lineterminator": "\n", "quoting": csv.QUOTE_NONNUMERIC}]
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "CSV"])
def test_what_the_csv_module_writes(tmp_path, ending, options):
    random = np.random.default_rng(3)
    whole = [int(v) for v in random.integers(-(2**63), 2**63 - 1, 200)]
    real = [float(v) for v in random.normal(size=200) * 10.0 ** random.integers(-300, 300, 200)]
    letters = list("ab,;\t\"\n\r'  ä😀") + ["\r\n", '""']
    words = ["".join(random.choice(letters, random.integers(0, 9))) for _ in range(200)]
    paths = [f"/photos/{i}" + "".join(random.choice(letters, 3)) for i in range(200)]
    delimiter = "\t" if ending == "tsv" else ","
    columns = ([i % 7 for i in range(200)], whole, real, words)
    names = ["path", "label", "whole", "real", "words"]
    file = write(tmp_path / f"a.{ending}", names, paths, *columns, delimiter=delimiter, **options)
    source = stoker.manifest(file)
    assert [source.path(i) for i in range(200)] == paths
    assert [source._beside(i) for i in range(200)] == [list(row) for row in zip(*columns)]


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, tmp_path, world):
    paths, labels = listed(made)
    ages = np.random.default_rng(0).integers(0, 99, len(paths))
    file = write(tmp_path / "train.csv", ["age", "path", "label"], ages, paths, labels)
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        folder = make(stoker.image_folder(made), **options)
        manifest = make(stoker.manifest(file, root=made), **options)
        for _ in range(2):
            theirs, ours = iter(folder), iter(manifest)
            batches = list(ours)
            same([batch[:2] for batch in batches], taken(theirs))
            np.testing.assert_array_equal(ours.sample_ids, theirs.sample_ids)
        assert all(batch["age"].dtype == np.int64 for batch in batches)
    iterator = iter(make(stoker.manifest(file, root=made)))
    for batch in iterator:
        np.testing.assert_array_equal(batch.age, ages[iterator.sample_ids.astype(int)])


def test_paths_are_relative_to_the_file(made, monkeypatch):
    paths, labels = listed(made)
    file = write(made / "listed.csv", ["path", "label"], paths, labels)
    try:
        wanted = taken(make(stoker.image_folder(made)))
        same(taken(make(stoker.manifest(file))), wanted)
        monkeypatch.chdir(made)
        source = stoker.manifest("listed.csv")
        monkeypatch.chdir("/")
        same(taken(make(source)), wanted)
    finally:
        file.unlink()


def test_labels_that_are_text_are_classes(made, tmp_path):
    paths, labels = listed(made)
    folder = stoker.image_folder(made)
    file = write(
        tmp_path / "a.csv", ["file_name", "label"], paths, [folder.classes[label] for label in labels]
    )
    source = stoker.manifest(file, root=made)
    assert source.classes == folder.classes and source.has_labels
    same(taken(make(source)), taken(make(folder)))


def test_types_of_columns(tmp_path):
    file = text(
        tmp_path / "a.csv",
        "path,i,f,t,late,id,big\na,-1,1,x,1,007,18446744073709551615\n"
        "b, +2 ,1e3,,2,1,1\nc,3,nan,7,three,2,2\n",
    )
    source = stoker.manifest(file)
    rows = [source._beside(i) for i in range(3)]
    assert [row[0] for row in rows] == [-1, 2, 3]
    assert [row[1] for row in rows[:2]] == [1.0, 1000.0] and np.isnan(rows[2][1])
    assert [row[2] for row in rows] == ["x", "", "7"]
    assert [row[3] for row in rows] == ["1", "2", "three"]
    assert [row[4] for row in rows] == [7, 1, 2]
    assert [row[5] for row in rows] == ["18446744073709551615", "1", "2"]
    assert not source.has_labels and source.classes == []


def test_which_column_is_what(tmp_path):
    file = write(
        tmp_path / "a.csv", ["", "image", "species", "label", "path", "x"], *[[f"{i}1"] for i in range(6)]
    )
    options = {"columns": ["x"]}
    assert stoker.manifest(file, **options).path(0) == str(tmp_path / "41")
    assert stoker.manifest(file, **options)._beside(0) == [31, 51]
    assert stoker.manifest(file, path_column="image", **options).path(0) == str(tmp_path / "11")
    assert stoker.manifest(file, label_column="species", **options)._beside(0) == [21, 51]
    assert stoker.manifest(file, label_column=None, columns=["x", "path"])._beside(0) == [51, 41]
    assert stoker.manifest(file, columns=[])._beside(0) == [31]
    assert stoker.manifest(file, path_column="image")._beside(0) == [31, 21, 41, 51]
    assert stoker.manifest(file, path_column="image", label_column=None)._beside(0) == [21, 41, 51]
    with pytest.raises(ValueError, match="column 'image' cannot be a further column"):
        stoker.manifest(file)


def test_columns_with_odd_names(tmp_path):
    names = ['a,"b"', "ä", "auto", "off"]
    file = write(tmp_path / "a.csv", ["path", *names], ["x"], [1], [2], [3], [4])
    assert stoker.manifest(file, columns=names[::-1])._beside(0) == [4, 3, 2, 1]
    assert stoker.manifest(file, label_column="off", columns=[])._beside(0) == [4]


def test_a_byte_order_mark_and_empty_lines(tmp_path):
    file = text(tmp_path / "a.csv", b"\xef\xbb\xbf\r\npath,x\r\n\r\n\na,1\r\n\r\n")
    assert stoker.manifest(file)._beside(0) == [1]


def lines(file, rows):
    return text(file, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("ending", ["jsonl", "ndjson"])
def test_what_the_json_module_writes(tmp_path, ending):
    random = np.random.default_rng(3)
    rows = [
        {
            "path": f'/photos/ä{i}\n"',
            "label": i % 7,
            "whole": int(random.integers(-(2**63), 2**63 - 1)),
            "real": float(random.normal()) * 10.0 ** int(random.integers(-300, 300)),
            "both": [0.5, 3][i % 2],
            "truth": bool(i % 3),
            "words": "".join(random.choice(list('aä😀"\0\n'), 5)),
            "vector": [float(v) for v in random.normal(size=5)],
            "whole_vector": [i, -i],
        }
        for i in range(200)
    ]
    source = stoker.manifest(lines(tmp_path / f"a.{ending}", rows))
    assert [source.path(i) for i in range(200)] == [row["path"] for row in rows]
    for i, row in enumerate(rows):
        *scalars, vector, whole_vector = source._beside(i)
        assert scalars == [row[name] for name in ("label", "whole", "real", "both", "truth", "words")]
        assert [type(value) for value in scalars] == [int, int, float, float, bool, str]
        assert vector.dtype == np.float64 and vector.tolist() == row["vector"]
        assert whole_vector.dtype == np.int64 and whole_vector.tolist() == row["whole_vector"]


@pytest.mark.parametrize("world", [1, 3, 8])
def test_json_lines_give_the_same_bytes_as_csv(made, tmp_path, world):
    paths, labels = listed(made)
    table = write(tmp_path / "a.csv", ["path", "label", "age"], paths, labels, range(len(paths)))
    keys = [("age", "path", "label"), ("label", "age", "path")]  # in any order
    rows = [
        {key: {"path": path, "label": int(label), "age": i}[key] for key in keys[min(i, 1)]}
        for i, (path, label) in enumerate(zip(paths, labels))
    ]
    listing = lines(tmp_path / "a.jsonl", rows)
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        same(
            taken(make(stoker.manifest(listing, root=made), **options)),
            taken(make(stoker.manifest(table, root=made), **options)),
        )


def test_keys_that_are_not_wanted_may_be_anything(tmp_path):
    rows = [
        {"path": "a", "x": 1, "y": {"path": [None, {"x": 3}]}, "z": []},
        {"z": "w", "x": 2, "path": "b", "new": None},
        {"path": "c", "z": 1, "x": 3},
    ]
    source = stoker.manifest(lines(tmp_path / "a.jsonl", rows), columns=["x"])
    assert [source._beside(i) for i in range(3)] == [[1], [2], [3]]


def test_what_pyarrow_writes(made, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed here")
    paths, labels = listed(made)
    random = np.random.default_rng(5)
    vectors = random.random((len(paths), 3)).astype(np.float32)
    table = pyarrow.table(
        {
            "vector": pyarrow.FixedSizeListArray.from_arrays(vectors.ravel(), 3),
            "list": [[i, i + 1] for i in range(len(paths))],
            "path": paths,
            "small": pyarrow.array(range(len(paths)), pyarrow.uint8()),
            "label": pyarrow.array([f"class {label}" for label in labels]).dictionary_encode(),
            "truth": [i % 2 == 0 for i in range(len(paths))],
            "text": [f"ä {i}" for i in range(len(paths))],
            "bytes": [bytes([i, 0]) for i in range(len(paths))],
            "time": pyarrow.array(range(len(paths)), pyarrow.timestamp("s")),
        }
    )
    file = tmp_path / "a.parquet"
    parquet.write_table(table, file, row_group_size=17)
    wanted = ["vector", "list", "small", "truth", "text", "bytes"]
    source = stoker.manifest(file, root=made, columns=wanted)
    assert source.classes == ["class 0", "class 1", "class 2"]
    for world in (1, 3, 8):
        for rank in range(world):
            theirs = make(stoker.image_folder(made), rank=rank, world=world)
            ours = make(source, rank=rank, world=world)
            same([batch[:2] for batch in ours], taken(theirs))
    iterator = iter(make(source))
    for batch in iterator:
        ids = iterator.sample_ids.astype(int)
        np.testing.assert_array_equal(batch["vector"], vectors[ids])
        assert batch["list"].tolist() == [[i, i + 1] for i in ids]
        assert batch["small"].dtype == np.uint8 and batch["small"].tolist() == ids.tolist()
        assert batch["truth"].dtype == bool
        assert batch["text"] == [f"ä {i}" for i in ids] and batch["bytes"] == [bytes([i, 0]) for i in ids]
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._native.fingerprint == source._native.fingerprint
    with pytest.raises(ValueError, match=r"column 'time' is timestamp.*Name the wanted columns"):
        stoker.manifest(file)
    with pytest.raises(ValueError, match=r"a\.parquet: there is no column 'x'; the columns are 'vector'"):
        stoker.manifest(file, columns=["x"])


def test_wrong_parquet_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed here")
    file = tmp_path / "a.parquet"

    def refused(words, columns=None):
        if columns is not None:
            parquet.write_table(pyarrow.table(columns), file)
        with pytest.raises(ValueError, match=words) as error:
            stoker.manifest(file)
        assert error.value.file == str(file)

    refused("column 'x' has no value in row 1", {"path": ["a", "b"], "x": [1, None]})
    refused("column 'path' has no value in row 0", {"path": [None, "b"]})
    refused("column 'path' is int64, and does not hold paths", {"path": [1, 2]})
    refused("column 'label' is binary; labels are", {"path": ["a"], "label": [b"a"]})
    refused("column 'x' is list.* of 1 to 2 elements", {"path": ["a", "b"], "x": [[1], [1, 2]]})
    refused("column 'x' is list", {"path": ["a"], "x": [["b"]]})
    refused("the file has no rows", {"path": pyarrow.array([], pyarrow.string())})
    whole = file.read_bytes()
    text(file, whole[:-20])
    refused("pyarrow cannot read this")
    text(file, b"")
    refused("pyarrow cannot read this")
    file.unlink()
    with pytest.raises(stoker.NotFoundError, match=r"a\.parquet: no such file"):
        stoker.manifest(file)


def test_a_parquet_file_behind_a_url_is_refused():
    with pytest.raises(stoker.UnimplementedError, match=r"local file.*root"):
        stoker.manifest("https://host/a.parquet", root="https://host/images")


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        stoker.manifest(tmp_path / "a.parquet")


# --- the source -------------------------------------------------------------------------------------


def test_a_source_tells_of_itself(tmp_path):
    file = write(tmp_path / "a.csv", ["path", "label"], ["x", "y"], ["dog", "cat"])
    source = stoker.manifest(file)
    assert repr(source) == f"stoker.manifest({str(file)!r})"
    assert repr(stoker.manifest(file, columns=[])) == f"stoker.manifest({str(file)!r}, columns=[])"
    assert len(source) == 2 and source.classes == ["cat", "dog"]
    assert source.labels.tolist() == [1, 0]


def test_a_source_can_be_pickled(made, tmp_path):
    paths, labels = listed(made)
    file = write(tmp_path / "a.csv", ["p", "l", "age"], paths, labels, range(len(paths)))
    source = stoker.manifest(file, root=made, path_column="p", label_column="l", columns=["age"])
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._native.fingerprint == source._native.fingerprint
    same(taken(make(again)), taken(make(source)))


def test_a_state_notices_changes(made, tmp_path):
    paths, labels = listed(made)
    file = write(tmp_path / "a.csv", ["path", "label"], paths, labels)
    loader = make(stoker.manifest(file, root=made))
    next(iter(loader))
    state = loader.state_dict()
    make(stoker.manifest(file, root=made)).load_state_dict(state)
    write(file, ["path", "label"], paths, [0, *labels[1:-1], 7])
    with pytest.raises(stoker.FailedPreconditionError, match="the data set's fingerprint was"):
        make(stoker.manifest(file, root=made)).load_state_dict(state)


def test_a_missing_image_is_its_samples_error(made, tmp_path):
    paths, _ = listed(made)
    loader = stoker.Loader(
        stoker.manifest(write(tmp_path / "a.csv", ["path"], [paths[0], "gone.jpg"]), root=made),
        TRAIN,
        batch_size=2,
    )
    with pytest.raises(FileNotFoundError, match=r"gone\.jpg"):
        next(iter(loader))


def test_the_command_reads_manifests(made, tmp_path):
    paths, labels = listed(made)
    folder = stoker.image_folder(made)
    file = write(tmp_path / "a.csv", ["path", "label"], [folder.path(i) for i in range(len(paths))], labels)
    digests = [run_bench(str(where))["digest"] for where in (made, file)]
    assert digests[0] == digests[1]


def run_bench(where):
    command = [sys.executable, "-m", "stoker", "bench", where, "--json", "--digest", "--size", "32"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_lines_of_blanks_are_skipped_as_by_pandas(tmp_path):
    content = "\n  \npath,label\na,1\n \t \r\nb,2\n\t\nc,3\n  "
    source = stoker.manifest(text(tmp_path / "a.csv", content))
    assert source.labels.tolist() == [1, 2, 3] and source.path(2) == f"{tmp_path}/c"
    source = stoker.manifest(text(tmp_path / "a.tsv", "path\tlabel\na\t1\n  \nb\t2\n"))
    assert source.labels.tolist() == [1, 2]


def test_labels_that_are_true_or_false_are_integers(tmp_path):
    lines = '{"path": "a", "label": true}\n{"path": "b", "label": 3}\n{"path": "c", "label": false}\n'
    source = stoker.manifest(text(tmp_path / "a.jsonl", lines))
    assert source.labels.tolist() == [1, 3, 0] and len(source.filter(labels=[1])) == 1


# --- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: the file is empty"),
        (b"path,x\n", "ends without a row"),
        (b"path,x\na,1\n  \t   \nb\n", "at byte 18: line 4: 1 field for 2 columns"),
        (b"path,x\na,1,2\n", "at byte 7: line 2: 3 fields for 2 columns"),
        (b'path,x\n"a\nb",1\nc\n', "at byte 15: line 4: 1 field"),
        (b'path,x\na,"1\nb,2\n', "at byte 9: line 2: the quote that opens here is not closed"),
        (b'path,x\na,5" disk\n', "at byte 10: line 2: a quote inside a field"),
        (b'path,x\na,"5"0\n', "at byte 12: line 2: text after the closing quote"),
        (b"path,x\ra,1\r", "at byte 6: line 1: a carriage return without a line feed"),
        (b"path,x\na,\x001\n", "at byte 9: line 2: a NUL"),
        (b"path,x\n,1\n", "line 2: no path in column 'path'"),
        (b"path,x\na,1\nb,\nc,3\n", "at byte 11: line 3: no value in column 'x'"),
        (b"path,label\na,cat\nb,\n", "line 3: no value in column 'label'"),
        (b"\xff\xfep\0a\0", "UTF-16"),
        (b"a,b\n1,2\n", "no column has a usual name of paths.*'a', 'b'"),
        (b"path,a,a\nx,1,2\n", "column 'a' occurs twice"),
        (b"path, a\nx,1\n", "column ' a' has a blank"),
        (b"path,\xff\nx,1\n", "the name of column 2"),
        (b"path,image\nx,1\n", "column 'image' cannot be"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "train.csv"),
    ],
)
def test_wrong_files(tmp_path, content, words):
    file = text(tmp_path / "train.csv", content)
    with pytest.raises(stoker.InvalidArgumentError, match=words) as error:
        stoker.manifest(file)
    assert error.value.file == str(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1: the file is empty"),
        ('{"path": "a"}\n[1]\n', "at byte 14: line 2: this line is a list, not an object"),
        ('{"path": "a"}\n{"path": "b\n', "at byte 25: line 2: this is not JSON: the line ends here"),
        (
            '{"path": "a"} {"path": "b"}\n',
            'at byte 14: line 1: this is not JSON: found {"path": "b"}',
        ),
        (
            '{"path": "a", "x": 1}\n\n{"path": "b"}\n',
            r"at byte 23: line 3: key 'x' is missing\. Write the key on each line; or",
        ),
        ('{"path": "a"}\n{"path": "b", "x": 1}\n', "line 2: key 'x' is not in the first line"),
        ('{"path": "a"}\n{"path": "b", "\\n": 1}\n', "line 2: a key is not in the first line"),
        ('{"path": "a", "path": "b"}\n', "line 1: key 'path' occurs twice"),
        ('{"path": "a"}\n{"path": "a", "path": "b"}\n', "line 2: key 'path' occurs twice"),
        ('{"path": 1}\n', "key 'path' is a number, not a path"),
        ('{"path": ["a", 1]}\n', "key 'path' has something other than paths"),
        ('{"path": ["a", ""]}\n', "key 'path' is an empty path"),
        ('{"path": "a"}\n{"path": []}\n', "line 2: key 'path' is a list; on the lines before it is a path"),
        ('{"path": []}\n{"path": "a"}\n', "line 2: key 'path' is a path; on the lines before it is a list"),
        ('{"path": []}\n{"path": []}\n', "no path was given"),
        ('{"path": ""}\n', "key 'path' is an empty path"),
        ('{"path": "a\\u0000"}\n', "key 'path' is a path with a NUL"),
        ('{"path": "a", "label": ""}\n', "key 'label' is an empty label"),
        ('{"path": "a", "x": null}\n', "key 'x' is null. Fill it in"),
        ('{"path": ["a"]}\n{"path": null}\n', r"line 2.*key 'path' is null.*write \[\] here"),
        ('{"path": []}\n{"path": [' + '"a", ' * 1024 + '"a"]}\n', "line 2.*more than 1024 paths"),
        ('{"path": "a", "x": {}}\n', "key 'x' is an object. Write it as text"),
        ('{"path": "a", "x": [[1]]}\n', "key 'x' is a list of more than numbers"),
        ('{"path": "a", "x": ["b"]}\n', "key 'x' is a list of more than numbers"),
        ('{"path": "a", "x": [1, null]}\n', "key 'x' is a list of more than numbers"),
        ('{"path": "a", "x": [1, nan]}\n', "at byte 23: line 1: nan is not JSON"),
        ('{"path": "a"}\n{"path": nothing}\n', "at byte 23: line 2: this is not JSON: found nothing}"),
        ('{"path": "a", "x": []}\n', "key 'x' is an empty list. Pad"),
        (
            '{"path": "a", "x": [1]}\n{"path": "b", "x": [1, 2]}\n',
            r"line 2: key 'x' is a list of 2; on the lines before it is a list of 1\. Pad .* \(json\.dumps\)",
        ),
        (
            '{"path": "a", "x": [1]}\n{"path": "b", "x": 1}\n',
            "line 2: key 'x' is a number; on the lines before it is a list of 1",
        ),
        (
            '{"path": "a", "x": 1}\n{"path": "b", "x": [1]}\n',
            "line 2: key 'x' is a list; on the lines before it is a number",
        ),
        (
            '{"path": "a", "x": 1}\n{"path": "b", "x": "1"}\n',
            "line 2: key 'x' is text; on the lines before it is a number",
        ),
        (
            '{"path": "a", "x": true}\n{"path": "b", "x": 1}\n',
            "line 2: key 'x' is a number; on the lines before it is true or false",
        ),
        ('{"path": "a", "x": 9223372036854775808}\n', "that int64 can hold. Write it as text, in quotes"),
        ('{"path": "a", "x": 99999999999999999999}\n', "key 'x' is not an integer that int64 can hold"),
        ('{"path": "a", "x": 1e999}\n', "key 'x' is a number that float64 cannot hold"),
        ('{"path": "a", "x": NaN}\n', "at byte 19: line 1: NaN is not JSON"),
        (
            '{"path": "a", "x": [-Infinity]}\n',
            "at byte 20: line 1: -Infinity is not JSON.*a .csv manifest may have nan and inf",
        ),
        (
            '{"path": "\\ud83d\\ude00\\udce9"}\n',
            r"at byte 22: .*'\\udce9' is half of a surrogate pair; Python's json .* stoker\.files",
        ),
        (
            '{"path": "a", "caption": "\\ud83dx"}\n',
            r"at byte 26: line 1: '\\ud83d' is half of a surrogate pair\. Write the whole character, or",
        ),
        ('{"path": "a", "caption": "\\udc7f"}\n', r"'\\udc7f' is half of a surrogate pair\. Write the whole"),
        (
            '{"path": "a", "label": true}\n{"path": "b", "label": "x"}\n',
            "key 'label' is text; on the lines before it is a number, true or false",
        ),
        (b'{"path": "\xe4"}\n', "at byte 9: line 1: a string is not UTF-8"),
        ("{'path': 'a'}\n", r"this is not JSON: found 'path': 'a'}\..*json\.dumps"),
        ('{"path": "a",}\n', r"this is not JSON: found }\..*json\.dumps"),
        ('{\n"path": "a"}\n', r"line 1: this is not JSON: the line ends here\..*json\.dumps"),
        ('"a"\n', "line 1: this line is a single value, not an object"),
        ('{"a": "b"}\n', "no column has a usual name of paths.*'a'"),
    ],
)
def test_wrong_json_lines(tmp_path, content, words):
    file = text(tmp_path / "train.jsonl", content)
    with pytest.raises(stoker.InvalidArgumentError, match=words) as error:
        stoker.manifest(file)
    assert error.value.file == str(file)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"path_column": "p"}, ValueError, "no column 'p'; the columns are 'path', 'label', 'x'"),
        ({"label_column": "l"}, ValueError, "no column 'l'"),
        ({"columns": ["y"]}, ValueError, "no column 'y'"),
        ({"columns": ["x", "x"]}, ValueError, "columns names 'x' twice"),
        ({"columns": ["label"]}, ValueError, "column 'label' cannot be a further column"),
        ({"columns": "x"}, TypeError, "columns must be a list of names"),
        ({"columns": {"x"}}, TypeError, "columns must be a list of names"),
        ({"columns": [1]}, TypeError, r"columns\[0\] must be a string"),
        ({"columns": [""]}, ValueError, r"columns\[0\] is ''"),
        ({"path_column": ""}, ValueError, "path_column is ''"),
        ({"path_column": 1}, TypeError, "path_column must be a string"),
        ({"label_column": 0}, TypeError, "label_column must be a string"),
        ({"root": 5}, TypeError, "root must be a path"),
    ],
)
def test_wrong_options(tmp_path, options, kind, words):
    file = text(tmp_path / "a.csv", "path,label,x\na,1,2\n")
    with pytest.raises(kind, match=words):
        stoker.manifest(file, **options)


def test_files_that_are_no_manifests(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        stoker.manifest(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="not end as a manifest's"):
        stoker.manifest(text(tmp_path / "a.txt", "path\na\n"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="a directory, not a file"):
        stoker.manifest(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="a FIFO, not a file"):
        stoker.manifest(tmp_path / "pipe.csv")
    with pytest.raises(TypeError, match="path must be a path"):
        stoker.manifest(5)
