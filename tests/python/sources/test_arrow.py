"""stoker.arrow: samples in Arrow IPC files, as pyarrow and Hugging Face's datasets write them."""

import json
import os
import pathlib
import pickle
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
from epochs import same, same_for_ranks, taken  # noqa: E402
from pyarrow import feather, parquet  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


def write(path, table, rows=7, form=pa.ipc.new_stream, **options):
    """Writes a table with that many rows in each record batch."""
    with pa.OSFile(str(path), "wb") as file, form(file, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def table_of(folder, **columns):
    """Returns a folder's samples: the images, the labels and further columns."""
    source = stoker.image_folder(folder)
    images = [pathlib.Path(source.path(i)).read_bytes() for i in range(len(source))]
    return pa.table({"image": images, "label": source.labels.tolist(), **columns})


@pytest.fixture(scope="module")
def table(made):
    return table_of(made)


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """Writes the photographs of `made`, in its order, into four files of both forms."""
    folder = tmp_path_factory.mktemp("arrow")
    for i in range(4):
        form = pa.ipc.new_stream if i % 2 else pa.ipc.new_file
        write(folder / f"data-{i:05d}-of-00004.arrow", table.slice(i * 17, 17), 5 + i, form)
    return folder


# --- the samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, files, world):
    source = stoker.arrow(f"{files}/data-{{00000..00003}}-of-00004.arrow")
    same_for_ranks(partial(make, source), partial(make, stoker.image_folder(made)), world)


def test_the_same_bytes_with_any_threads_and_depth(made, files):
    wanted = taken(make(stoker.image_folder(made)))
    for threads, depth in [(1, 1), (3, 2), (8, 9)]:
        runtime = stoker.Runtime(threads=threads)
        same(taken(make(stoker.arrow(f"{files}/*.arrow"), runtime=runtime, depth=depth)), wanted)


def test_pyarrow_reads_the_same(table, files):
    source = stoker.arrow(f"{files}/*.arrow")
    assert len(source) == len(table) == 60
    for i, row in enumerate(table.to_pylist()):
        assert source._image(i) == row["image"]
        assert source._beside(i) == [row["label"]]
        assert source.path(i) == f"{files}/data-{i // 17:05d}-of-00004.arrow"


@pytest.mark.parametrize("images", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("form", [pa.ipc.new_stream, pa.ipc.new_file])
def test_types_of_images_and_columns(table, tmp_path, images, form):
    count = len(table)
    rng = np.random.default_rng(5)
    values = {
        **{name: pa.array(rng.integers(0, 100, count), name) for name in ("uint8", "int16", "uint64")},
        **{name: pa.array(rng.normal(size=count).astype(name)) for name in ("float16", "float32", "double")},
        "flag": pa.array(rng.integers(0, 2, count).astype(bool)),
        "text": pa.array(["", "ä", "x" * 1000] * 20),
        "large": pa.array(["b", "", "c"] * 20, pa.large_string()),
        "bytes": pa.array([b"", b"\xff", b"\0"] * 20, pa.large_binary()),
        "box": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * count)), 4),
        "flags": pa.FixedSizeListArray.from_arrays(pa.array([True, False, True] * count), 3),
    }
    matrix = pa.FixedSizeListArray.from_arrays(pa.array(range(6 * count), pa.int32()), 3)
    values["matrix"] = pa.FixedSizeListArray.from_arrays(matrix, 2)
    others = {  # columns that are not read
        "null": pa.nulls(count),
        "list": pa.array([[1], None, [2, 3]] * 20),
        "map": pa.array([[("a", 1)]] * count, pa.map_(pa.string(), pa.int8())),
        "struct": pa.array([{"x": 1, "y": {"z": None}}] * count),
        "words": pa.array(["a", "b", None] * 20).dictionary_encode(),
        "view": pa.array([b"x" * 20, b"", None] * 20, pa.binary_view()),
        "time": pa.array(range(count), pa.timestamp("us")),
        "decimal": pa.array([1] * count, pa.decimal128(10)),
        "union": pa.UnionArray.from_dense(
            pa.array([0, 1] * 30, pa.int8()),
            pa.array([i // 2 for i in range(count)], pa.int32()),
            [pa.array(range(30)), pa.array(["x"] * 30)],
        ),
        "run": pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int32()), pa.array([7])),
    }
    everything = pa.table({**others, **values, "image": table["image"].cast(images), "label": table["label"]})
    path = write(tmp_path / "a.arrow", everything, 13, form)
    source = stoker.arrow(path, columns=list(values))
    read = everything.to_pylist()
    for i, row in enumerate(read):
        assert source._image(i) == row["image"]
        got = source._beside(i)
        for name, value in zip(["label", *values], got):
            np.testing.assert_array_equal(value, row[name], name)
    iterator = iter(make(source))
    for batch in iterator:
        rows = [read[i] for i in iterator.sample_ids[-len(batch.label) :]]
        assert list(batch.keys()) == ["image", "label", *values]
        assert batch["matrix"].shape[1:] == (2, 3) and batch["uint64"].dtype == np.uint64
    assert rows


def test_other_forms_of_labels(table, tmp_path):
    words = pa.array([f"class {label}" for label in table["label"].to_pylist()])
    for kind in ("int8", "uint32", "uint64"):
        path = write(tmp_path / "a.arrow", table.set_column(1, "label", table["label"].cast(kind)))
        source = stoker.arrow(path)
        assert source.labels.tolist() == table["label"].to_pylist() and source.labels.dtype == np.int64
    named = pa.table({"img": table["image"], "kind": words})
    source = stoker.arrow(write(tmp_path / "b.arrow", named), image="img", label="kind")
    assert source.classes == ["class 0", "class 1", "class 2"]
    assert source.labels.tolist() == table["label"].to_pylist()
    assert not stoker.arrow(tmp_path / "b.arrow", image="img").has_labels
    assert not stoker.arrow(path, label=None).has_labels


def test_a_state_goes_on_with_the_files_elsewhere(files, tmp_path):
    loader = make(stoker.arrow(f"{files}/*.arrow"))
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = taken(iterator)
    for path in files.glob("*.arrow"):
        shutil.copy(path, tmp_path / f"moved-{path.name}")
    again = make(stoker.arrow(f"{tmp_path}/moved-*.arrow"))
    again.load_state_dict(state)
    same(taken(again), rest)


def test_the_digest_knows_content_and_no_batches(table, files, tmp_path):
    source = stoker.arrow(f"{files}/*.arrow")
    one = stoker.arrow(write(tmp_path / "one.arrow", table, 60))
    assert source._native.fingerprint == one._native.fingerprint
    other = table.set_column(1, "label", pa.array([0] * 60))
    assert (
        source._native.fingerprint != stoker.arrow(write(tmp_path / "other.arrow", other))._native.fingerprint
    )


def test_a_source_tells_of_itself(files, monkeypatch):
    source = stoker.arrow(f"{files}/*.arrow")
    assert len(source) == 60 and source.has_labels and source.classes == []
    assert repr(source) == f"stoker.arrow('{files}/*.arrow', image='image')"
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == repr(source)
    monkeypatch.chdir(files)
    listed = stoker.arrow([f"data-{i:05d}-of-00004.arrow" for i in range(4)])
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(listed))._native.fingerprint == source._native.fingerprint
    assert listed._spec["root"] == str(files)
    assert not list(files.glob("*.stoker-index"))


def test_the_command_has_the_same_digest(command, made, files):
    digests = set()
    for data in (made, f"{files}/*.arrow"):
        done = subprocess.run(
            [command, "bench", data, "--size", "64", "--batch-size", "8", "--digest", "--json"],
            capture_output=True,
            check=True,
        )
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1


def test_the_command_goes_by_names(command, made, table, tmp_path):
    def bench(data):
        return subprocess.run([command, "bench", data, "--size", "64", "--json"], capture_output=True)

    feather.write_feather(table, tmp_path / "a.feather", compression="uncompressed")
    assert json.loads(bench(tmp_path / "a.feather").stdout)
    parquet.write_table(table, tmp_path / "a.parquet")
    done = bench(tmp_path / "a.parquet")
    assert done.returncode != 0 and b"a Parquet file" in done.stderr and b"stoker.parquet" in done.stderr
    photographs = shutil.copytree(made, tmp_path / "photographs")
    (photographs / "state.json").write_text('{"epoch": 3}')
    assert json.loads(bench(photographs).stdout)


# --- other packages ---------------------------------------------------------------------------------


def test_files_of_polars(table, tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed here")
    frame = polars.DataFrame({**table.to_pydict(), "text": ["", "ä", "x" * 1000] * 20})
    path = tmp_path / "a.arrow"
    options = {"compression": "uncompressed", "compat_level": polars.CompatLevel.oldest()}
    written = [
        partial(frame.write_ipc, path, **options),
        partial(frame.write_ipc, path, record_batch_size=7, **options),
        partial(frame.write_ipc_stream, path, **options),
    ]
    for write_file in written:
        write_file()
        source = stoker.arrow(path, columns=["text"])
        assert len(source) == 60
        for i, row in enumerate(frame.iter_rows(named=True)):
            assert source._image(i) == row["image"] and source._beside(i) == [row["label"], row["text"]]
    frame.write_ipc(path, compression="uncompressed")
    refused(stoker.InvalidArgumentError, r"'image' is binary_view.*CompatLevel\.oldest", path)
    frame.write_ipc(path, **{**options, "compression": "zstd"})
    refused(stoker.UnimplementedError, "compressed.*polars", path)
    words = frame.with_columns(polars.col("text").cast(polars.Categorical))
    words.write_ipc(path, **options)
    refused(stoker.InvalidArgumentError, r"'text' is dictionary.*polars\.String", path, label="text")
    words.with_columns(polars.col("text").cast(polars.String)).write_ipc(path, **options)
    assert len(stoker.arrow(path, label="text").classes) == 3


def test_files_of_pandas(table, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed here")
    frame = pandas.DataFrame({**table.to_pydict(), "text": ["", "ä", "x" * 1000] * 20})
    path = tmp_path / "a.feather"
    frame.to_feather(path, compression="uncompressed")
    source = stoker.arrow(path, columns=["text"])
    for i, row in enumerate(frame.to_dict("records")):
        assert source._image(i) == row["image"] and source._beside(i) == [row["label"], row["text"]]


@pytest.mark.parametrize("form", [pa.ipc.new_stream, pa.ipc.new_file])
def test_files_before_version_0_15(table, tmp_path, form):
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    path = write(tmp_path / "a.arrow", table, form=form, options=options)
    refused(stoker.UnimplementedError, "before version 0.15.*use_legacy_format", path)


# --- Hugging Face's datasets ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    """Saves the photographs of `made` by datasets in three files."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed here")
    source = stoker.image_folder(made)
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=source.classes)}
    )
    columns = {"image": [source.path(i) for i in range(len(source))], "label": source.labels.tolist()}
    dataset = datasets.Dataset.from_dict(columns, features=features)
    folder = tmp_path_factory.mktemp("saved")
    dataset.save_to_disk(folder / "one", num_shards=3)
    datasets.DatasetDict({"train": dataset, "test": dataset.select([1])}).save_to_disk(folder / "dict")
    return folder


@pytest.mark.parametrize("world", [1, 3, 8])
def test_a_saved_dataset(made, saved, world):
    source = stoker.arrow(saved / "one")
    assert source.classes == stoker.image_folder(made).classes
    same_for_ranks(partial(make, source), partial(make, stoker.image_folder(made)), world)


def test_files_of_a_saved_dataset(saved, command):
    import datasets

    dataset = datasets.load_from_disk(saved / "one").cast_column("image", datasets.Image(decode=False))
    source = stoker.arrow(f"{saved}/one/*.arrow")
    for i, row in enumerate(dataset):
        assert source._image(i) == row["image"]["bytes"]
        assert source._beside(i) == [row["label"]]
    assert stoker.arrow(saved / "dict/train")._native.fingerprint == source._native.fingerprint
    with pytest.raises(stoker.InvalidArgumentError, match=r"several splits: train, test.*dict/train"):
        stoker.arrow(saved / "dict")
    done = subprocess.run([command, "bench", saved / "one", "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)


def test_images_that_are_paths_are_refused(made, saved, tmp_path):
    import datasets

    rows = [{"bytes": b"x", "path": None}, {"bytes": None, "path": "photos/2.jpg"}]
    schema = datasets.Features({"image": datasets.Image()}).arrow_schema
    path = write(tmp_path / "a.arrow", pa.table({"image": rows}, schema=schema))
    refused(stoker.InvalidArgumentError, "row 1 of column 'image' has no bytes.*save_to_disk", path)


# --- faults of files --------------------------------------------------------------------------------


def refused(kind, words, path, **options):
    """Returns the error of opening a file that is wrong."""
    with pytest.raises(kind, match=words) as error:
        stoker.arrow(path, **options)
    assert error.value.file == str(path)
    return error.value


@pytest.mark.parametrize("name", ["data-00000-of-00004.arrow", "data-00001-of-00004.arrow"])
def test_a_file_that_is_cut(files, tmp_path, name):
    whole = (files / name).read_bytes()
    path = tmp_path / "a.arrow"
    for size in [*range(0, 2000, 7), *range(2000, len(whole), 9973), *range(len(whole) - 20, len(whole))]:
        path.write_bytes(whole[:size])
        error = refused(stoker.DataLossError, "cut off|not an Arrow IPC file", path)
        assert error.offset <= size


def test_files_that_are_wrong(table, files, tmp_path):
    path = tmp_path / "a.arrow"
    whole = (files / "data-00001-of-00004.arrow").read_bytes()
    path.write_bytes(whole + whole)
    assert refused(stoker.DataLossError, "joined", path).offset == len(whole)
    path.write_bytes(b"not an Arrow file " * 1000)
    assert refused(stoker.DataLossError, "not an Arrow IPC file", path).offset == 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    write(path, table, options=options)
    refused(stoker.UnimplementedError, "compressed.*uncompressed", path)
    feather.write_feather(table, path)
    refused(stoker.UnimplementedError, "compressed.*uncompressed", path)
    feather.write_feather(table, path, compression="uncompressed")
    assert len(stoker.arrow(path)) == 60
    parquet.write_table(table, path)
    refused(stoker.UnimplementedError, "a Parquet file.*stoker.parquet", path)
    subprocess.run(["gzip", "--keep", "--force", path], check=True)
    refused(stoker.UnimplementedError, "compressed.*gunzip", tmp_path / "a.arrow.gz")
    refused(stoker.NotFoundError, "cannot open", tmp_path / "b.arrow")
    refused(stoker.InvalidArgumentError, "no state.json", tmp_path)
    write(path, table.slice(0, 0))
    refused(stoker.InvalidArgumentError, "no row in 1 file", path)


def test_columns_that_are_wrong(table, tmp_path):
    columns = {
        "words": pa.array(["a"] * 60).dictionary_encode(),
        "list": pa.array([[1]] * 60),
        "gap": pa.array([1] * 33 + [None] + [2] * 26),
        "vector": pa.array([[1, 2]] * 8 + [[3, None]] + [[4, 5]] * 51, pa.list_(pa.int8(), 2)),
        "view": pa.array([b"x"] * 60, pa.binary_view()),
        "number": pa.array([0.5] * 60),
    }
    path = write(tmp_path / "a.arrow", pa.table({**columns, "image": table["image"]}))

    def wrong(words, kind=stoker.InvalidArgumentError, **options):
        return refused(kind, words, path, **options)

    wrong("no column 'img'; there is words .dictionary.*image .binary", image="img")
    wrong("'number' is float64; encoded images are binary", image="number")
    wrong(r"'view' is binary_view; encoded images.*polars\.CompatLevel\.oldest", image="view")
    wrong(r"'words' is dictionary.*polars\.String.*dictionary_decode", columns=["words"])
    wrong("'list' is list<int64>; columns are", columns=["list"])
    wrong("row 33 of column 'gap' is null", columns=["gap"])
    wrong("row 33 of column 'gap' is null", label="gap")
    wrong("row 8 of column 'vector' is null", columns=["vector"])
    wrong("'number' is float64; labels are integers", label="number")
    with pytest.raises(stoker.InvalidArgumentError, match="'gap' twice"):
        stoker.arrow(path, columns=["gap", "gap"])


def test_files_that_do_not_belong_together(table, tmp_path):
    first = write(tmp_path / "a.arrow", table)
    path = tmp_path / "b.arrow"

    def wrong(words, other, **options):
        write(path, other)
        with pytest.raises(stoker.InvalidArgumentError, match=words) as error:
            stoker.arrow([first, path], **options)
        assert error.value.file == str(path)

    wrong("no labels, unlike", table.drop(["label"]))
    wrong("'label' is string, unlike the int64", table.set_column(1, "label", pa.array(["a"] * 60)))
    with_names = table.replace_schema_metadata(
        {
            "huggingface": json.dumps(
                {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["a"]}}}}
            )
        }
    )
    zeros = with_names.set_column(1, "label", pa.array([0] * 60))
    wrong("class names differ", zeros)
    write(path, table.set_column(1, "label", table["label"].cast("int32")))
    assert len(stoker.arrow([first, path])) == 120
    write(path, with_names)
    error = refused(stoker.DataLossError, "row 20 of column 'label' is 1, which has no class name", path)
    write(first, zeros)
    with pytest.raises(stoker.DataLossError, match=r"row 20 .*there are 1\b") as later:
        stoker.arrow([first, path])
    assert (later.value.file, later.value.offset) == (str(path), error.offset)
    write(path, table.set_column(1, "label", pa.array([2**63 - 1] * 59 + [2**63], pa.uint64())))
    refused(stoker.InvalidArgumentError, "row 59 of column 'label' is a label above", path)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "words"),
    [
        ((5,), {}, TypeError, "shards must be a pattern or a list of paths"),
        (([],), {}, ValueError, "shards is empty"),
        (("/no/such/*.arrow",), {}, FileNotFoundError, r"no file matches"),
        (("/a.arrow",), {"image": 5}, TypeError, "image must be"),
        (("/a.arrow",), {"image": ""}, ValueError, "image is ''"),
        (("/a.arrow",), {"label": b"x"}, TypeError, "label must be"),
        (("/a.arrow",), {"columns": "x"}, TypeError, "columns must be a list"),
        (("/a.arrow",), {"columns": ["x\ny"]}, ValueError, "line break"),
        (("/a.arrow",), {"threads": 300}, ValueError, "threads"),
    ],
)
def test_wrong_arguments(arguments, options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.arrow(*arguments, **options)


def test_a_damaged_image_names_its_file_and_offset(files, tmp_path):
    path = pathlib.Path(shutil.copy(files / "data-00001-of-00004.arrow", tmp_path / "a.arrow"))
    source = stoker.arrow(path)
    begin, length = source._native.range(3)
    data = bytearray(path.read_bytes())
    data[begin : begin + length] = bytes(length)
    path.write_bytes(data)
    iterator = iter(stoker.Loader(source, TRAIN, batch_size=2))
    next(iterator)
    with pytest.raises(stoker.Error) as error:
        next(iterator)
    assert (error.value.file, error.value.offset) == (str(path), begin)
    os.truncate(path, begin)
    with pytest.raises(stoker.DataLossError, match="ends at byte"):
        taken(stoker.Loader(source, TRAIN, batch_size=4))
