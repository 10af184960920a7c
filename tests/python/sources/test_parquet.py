"""stoker.parquet: samples in Parquet files that hold the images."""

import json
import os
import pathlib
import pickle
import threading
import warnings
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
from epochs import same_for_ranks, taken  # noqa: E402
from pyarrow import parquet as pq  # noqa: E402
from stoker import _parquet_rows, _tables  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


@pytest.fixture(scope="module")
def table(made):
    source = stoker.image_folder(made)
    images = [pathlib.Path(source.path(i)).read_bytes() for i in range(len(source))]
    rows = [{"bytes": image, "path": f"{i}.jpg"} for i, image in enumerate(images)]
    box = [[i, i + 1] for i in range(len(source))]
    made = pa.table({"image": rows, "label": source.labels.tolist(), "plain": images, "box": box})
    label = {"_type": "ClassLabel", "names": source.classes}
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"label": label}}})})


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """Writes the photographs of `made`, in its order, into three files of several row groups."""
    folder = tmp_path_factory.mktemp("parquet")
    for i, compression in enumerate(["snappy", "zstd", "none"]):
        pq.write_table(table.slice(25 * i, 25), folder / f"{i}.parquet", 7, compression=compression)
    return folder


@pytest.mark.parametrize("world", [1, 3, 8])
@pytest.mark.parametrize("image", ["image", "plain"])
def test_the_same_bytes_as_the_folder(made, files, image, world):
    source = stoker.parquet(f"{files}/*.parquet", image=image)
    assert source.classes == stoker.image_folder(made).classes
    same_for_ranks(partial(make, source), partial(make, stoker.image_folder(made)), world)


def test_pyarrow_reads_the_same(table, files):
    source = stoker.parquet([files / f"{i}.parquet" for i in range(3)], columns=["box"])
    assert len(source) == 60 and source.labels.tolist() == table["label"].to_pylist()
    assert repr(source) == f"stoker.parquet('{files}/0.parquet' and 2 more)"
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again._native.fingerprint == source._native.fingerprint
    for i, row in enumerate(table.to_pylist()):
        assert again._image(i) == source._image(i) == row["plain"]
        label, box = source._beside(i)
        assert label == row["label"] and box.tolist() == row["box"]
    for batch in make(source):
        assert batch["box"].shape == (len(batch.label), 2)


def test_labels_that_are_text(table, tmp_path):
    words = [f"class {label}" for label in table["label"].to_pylist()]
    pq.write_table(pa.table({"image": table["plain"], "kind": words}), tmp_path / "a.parquet")
    source = stoker.parquet(tmp_path / "a.parquet", label="kind")
    assert source.classes == ["class 0", "class 1", "class 2"]
    assert source.labels.tolist() == table["label"].to_pylist()
    assert not stoker.parquet(tmp_path / "a.parquet").has_labels


def count_reads(monkeypatch):
    read = []
    whole = _parquet_rows.ParquetImages._read

    def counted(self, group):
        read.append(group)
        return whole(self, group)

    monkeypatch.setattr(_parquet_rows.ParquetImages, "_read", counted)
    return read


def test_row_groups_are_read_once_and_remembered(files, monkeypatch):
    read = count_reads(monkeypatch)
    source = stoker.parquet(f"{files}/*.parquet")
    for _ in range(2):
        assert len(taken(make(source))) == 8
    assert sorted(read) == list(range(10))  # 4, 4 and 2


def test_a_cache_that_is_too_small(files, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.parquet(f"{files}/*.parquet")
    read = count_reads(monkeypatch)
    with pytest.warns(stoker.MemoryWarning, match=r"cache_bytes is 0 MiB.*raise cache_bytes") as told:
        source = stoker.parquet(f"{files}/*.parquet", cache_bytes=1, threads=1)
    assert told[0].filename == __file__
    assert len({source._image(i) for i in range(60)}) == 60
    assert read == list(range(10)), "in order each is read once"
    assert len(taken(make(source))) == 8
    assert len(read) > 20


def test_the_cache_keeps_to_its_bytes():
    class Array:
        nbytes = 10

    rng = np.random.default_rng(5)
    reads = []

    def read(number):
        reads.append(number)
        return Array()

    cache = _parquet_rows._Cache(read, 35)
    for number in (1, 2, 3, 1, 4):  # 2 is the one that was used least recently
        cache.get(number)
    assert list(cache._kept) == [3, 1, 4] and cache._bytes == 30
    numbers = rng.integers(0, 6, (8, 200)).tolist()

    def get_all(own):
        for number in own:
            cache.get(number)

    threads = [threading.Thread(target=get_all, args=(own,)) for own in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache._bytes == 10 * len(cache._kept) <= 35


def test_what_is_wrong(table, files, tmp_path):
    path = tmp_path / "a.parquet"

    def refused(kind, words, given=path, **options):
        with pytest.raises(kind, match=words) as error:
            stoker.parquet(given, **options)
        return error.value

    refused(stoker.NotFoundError, "no such file")
    refused(stoker.NotFoundError, "no file matches", f"{tmp_path}/*.parquet")
    refused(ValueError, "files is empty", [])
    refused(TypeError, "files must be a path", 5)
    path.write_bytes((files / "0.parquet").read_bytes()[:-20])
    assert refused(stoker.InvalidArgumentError, "pyarrow cannot read").file == str(path)
    columns = {"image": table["plain"], "gap": pa.array([1] * 59 + [None]), "word": ["x"] * 60}
    pq.write_table(pa.table(columns), path)
    refused(stoker.InvalidArgumentError, "no column 'x'; there is image, gap", image="x")
    refused(stoker.InvalidArgumentError, "'gap' is int64, and does not hold encoded images", image="gap")
    refused(stoker.InvalidArgumentError, "'gap' has no value in row 59", columns=["gap"])
    refused(stoker.InvalidArgumentError, "columns has 'gap' twice", columns=["gap", "gap"])
    refused(stoker.InvalidArgumentError, "columns has 'label'", columns=["label"])
    refused(ValueError, "cache_bytes", cache_bytes=0)
    refused(stoker.InvalidArgumentError, "no column 'plain'", [files / "0.parquet", path], image="plain")
    refused(stoker.InvalidArgumentError, r"is a folder\. Name its files: .*/\*\.parquet", tmp_path)
    pq.write_table(table.slice(0, 0), path)
    refused(stoker.InvalidArgumentError, "no rows")
    pq.write_table(pa.table({"image": [table["plain"][0].as_py(), None]}), path)
    with pytest.raises(stoker.InvalidArgumentError, match="row 1 of the source has no image") as error:
        taken(stoker.Loader(stoker.parquet(path), [stoker.Resize((8, 8))], batch_size=2))
    assert error.value.file == str(path)


def test_labels_are_integers_or_text(table, tmp_path):
    images, path = table["plain"][:4], tmp_path / "a.parquet"

    def with_labels(labels):
        pq.write_table(pa.table({"image": images, "label": labels}), path)
        return stoker.parquet(path)

    for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64()):
        (batch,) = stoker.Loader(with_labels(pa.array([3, 1, 2, 0], kind)), TRAIN, batch_size=4)
        assert batch["label"].dtype == np.int64 and batch["label"].tolist() == [3, 1, 2, 0]
    assert with_labels([True, False, False, True]).labels.tolist() == [1, 0, 0, 1]
    for labels, words in (
        ([0.5] * 4, "has float64 in it"),
        ([[1, 2]] * 4, "has vectors in it"),
        ([b"a"] * 4, "is binary"),
        (pa.array([1, 2, 2**63, 0], pa.uint64()), f"has {2**63} in row 2"),
        ([1, None, 2, 3], "has no value in row 1"),
    ):
        with pytest.raises(stoker.InvalidArgumentError, match=f"a.parquet: column 'label' {words}"):
            with_labels(labels)
    classes = table.replace_schema_metadata(table.schema.metadata).set_column(1, "label", [[7] * 60])
    pq.write_table(classes, path)
    with pytest.raises(stoker.InvalidArgumentError, match=r"label 7 of row 0 has no class name.*label=None"):
        stoker.parquet(path)
    pq.write_table(pa.table({"label": images}), path)
    assert not stoker.parquet(path, image="label").has_labels


def test_files_of_several_writers(table, tmp_path):
    images = table["plain"][:4]
    for i, kind in enumerate([pa.int32(), pa.int64()]):
        labels = pa.array(range(i, i + 4), kind)
        pq.write_table(
            pa.table({"image": images, "label": labels, "box": [[i, 1]] * 4}), tmp_path / f"{i}.pq"
        )
    pq.write_table(pq.read_table(tmp_path / "0.pq").slice(0, 0), tmp_path / "empty.pq")
    files = [tmp_path / name for name in ("empty.pq", "0.pq", "empty.pq", "1.pq")]
    source = stoker.parquet(files, columns=["box"])
    assert source.labels.tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    assert [row[1].tolist() for row in map(source._beside, range(8))] == [[0, 1]] * 4 + [[1, 1]] * 4
    for pattern in (f"{tmp_path}/{{0,1}}.pq", f"{tmp_path}/0.pq::{tmp_path}/1.pq", f"{tmp_path}/?.pq"):
        assert stoker.parquet(pattern).labels.tolist() == source.labels.tolist()
    pq.write_table(pa.table({"image": images, "label": [1] * 4, "box": [[1, 2, 3]] * 4}), tmp_path / "1.pq")
    with pytest.raises(stoker.InvalidArgumentError, match=r"'box' is int64\[3\], and before it int64\[2\]"):
        stoker.parquet(files, columns=["box"])
    pq.write_table(pa.table({"image": images, "label": ["a"] * 4}), tmp_path / "1.pq")
    with pytest.raises(stoker.InvalidArgumentError, match=r"1\.pq: .*'label' is str, and before it int64"):
        stoker.parquet(files)


def test_columns_of_all_types(table, tmp_path):
    matrices = pa.array([[[i, 2], [3, 4]] for i in range(60)], pa.list_(pa.list_(pa.int16(), 2), 2))
    words, tokens = [f"ä{i}" for i in range(60)], [bytes([i, 0]) for i in range(60)]
    columns = {"matrix": matrices, "word": words, "token": tokens, "flag": [i % 3 == 0 for i in range(60)]}
    pq.write_table(pa.table({"image": table["plain"], **columns}), tmp_path / "a.parquet", 7)
    source = stoker.parquet(tmp_path / "a.parquet", columns=list(columns))
    iterator = iter(make(source))
    for batch in iterator:
        ids = [int(i) for i in iterator.sample_ids]
        assert batch["word"] == [words[i] for i in ids] and batch["token"] == [tokens[i] for i in ids]
        assert batch["matrix"].tolist() == [[[i, 2], [3, 4]] for i in ids]
        assert batch["flag"].tolist() == [i % 3 == 0 for i in ids]


@pytest.mark.parametrize("of", ["pandas", "polars"])
def test_what_others_write(table, tmp_path, of):
    module = pytest.importorskip(of, reason=f"{of} is not installed here")
    images, path = table["plain"].to_pylist()[:4], tmp_path / "a.parquet"
    frame = module.DataFrame({"image": images, "label": list("abca"), "vector": [[0.5, 1.0]] * 4})
    (frame.to_parquet if of == "pandas" else frame.write_parquet)(path)
    source = stoker.parquet(path, columns=["vector"])
    assert source.classes == ["a", "b", "c"] and source.labels.tolist() == [0, 1, 2, 0]
    assert [source._image(i) for i in range(4)] == images and source._beside(3)[1].tolist() == [0.5, 1.0]


def test_a_state_knows_labels_and_row_groups(table, tmp_path):
    def digest(name, rows=table, group=7, **options):
        pq.write_table(rows, tmp_path / name, group)
        return stoker.parquet(tmp_path / name, **options).subset(range(20))._native.fingerprint

    same = digest("a.parquet")
    assert digest("b.parquet") == same
    other = table.set_column(1, "label", [[0] * 59 + [1]])
    different = [digest("b.parquet", other), digest("b.parquet", group=8), digest("b.parquet", label=None)]
    assert len({same, *different, digest("b.parquet", columns=["box"])}) == 5


@pytest.mark.long
@pytest.mark.parametrize("is_struct", [False, True])
def test_a_row_group_of_more_than_2_gib(tmp_path, is_struct):
    images = pa.DictionaryArray.from_arrays(pa.array([0] * 22 + [1, 0], pa.int32()), [bytes(100 << 20), b"x"])
    if is_struct:
        images = pa.StructArray.from_arrays([images], ["bytes"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": images}), path, store_schema=False, compression="zstd")
    source = stoker.parquet(path, cache_bytes=4 << 30)
    assert [len(source._calls.dataset[i]) for i in range(21, 24)] == [100 << 20, 1, 100 << 20]


def test_a_file_that_changes_later(table, tmp_path):
    path = tmp_path / "a.parquet"

    def failed():
        with pytest.raises(stoker.DataLossError, match="has changed since it was opened") as error:
            taken(stoker.Loader(source, TRAIN, batch_size=2))
        assert error.value.file == str(path)

    pq.write_table(table, path, 7)
    source = stoker.parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:5000])
    failed()
    path.write_bytes(whole)
    source = stoker.parquet(path)
    (tmp_path / "b.parquet").write_bytes(whole)  # as long, and with other labels, which nothing else reveals
    (tmp_path / "b.parquet").replace(path)
    failed()
    path.unlink()
    with pytest.raises(stoker.NotFoundError, match=r"a\.parquet: no such file"):
        taken(stoker.Loader(source, TRAIN, batch_size=2))


def test_damage_has_a_file(table, tmp_path):
    path = tmp_path / "a.parquet"

    def damage(column):
        pq.write_table(table, path, compression="snappy")
        metadata = pq.ParquetFile(path).metadata.row_group(0)
        chunk = next(c for c in map(metadata.column, range(5)) if c.path_in_schema == column)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        content = bytearray(path.read_bytes())
        for at in range(begin, begin + chunk.total_compressed_size):
            content[at] ^= 0x5A
        path.write_bytes(content)

    damage("label")
    with pytest.raises(stoker.DataLossError, match=r"a\.parquet: pyarrow cannot read this") as error:
        stoker.parquet(path)
    assert error.value.file == str(path)
    damage("image.bytes")
    source = stoker.parquet(path)
    with pytest.raises(stoker.DataLossError, match=r"a\.parquet: pyarrow cannot read this") as error:
        taken(stoker.Loader(source, TRAIN, batch_size=2))
    assert error.value.file == str(path)


@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (pa.ArrowNotImplementedError, stoker.UnimplementedError),
        (pa.ArrowInvalid, stoker.DataLossError),
        (OSError, stoker.DataLossError),
    ],
)
def test_what_pyarrow_lacks_is_no_damage(table, tmp_path, raised, wanted):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)

    def read():
        with _tables.opened(str(path)) as file:
            assert file.metadata.num_rows == len(table)
            raise raised("nested lists")

    with pytest.raises(wanted, match=r"a\.parquet: pyarrow cannot read this: nested") as error:
        read()
    assert error.value.file == str(path)


def test_names_of_columns_and_files(table, tmp_path):
    plain, path = table["plain"], tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([plain, plain], ["image", "image"]), path)
    with pytest.raises(stoker.InvalidArgumentError, match=r"a\.parquet: there are 2 columns 'image'"):
        stoker.parquet(path)
    pq.write_table(pa.Table.from_arrays([plain, plain[::-1]], ["image.bytes", "image"]), path)
    assert stoker.parquet(path)._image(0) == plain[59].as_py()
    odd = bytes(tmp_path) + b"/{\xff}.parquet"
    os.rename(path, odd)
    assert stoker.parquet(odd)._image(0) == plain[59].as_py()
    assert len(taken(stoker.Loader(stoker.parquet([odd]), TRAIN, batch_size=30))) == 2


def test_a_file_that_may_not_be_read(table, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")  # the tests may be root's, who may read all

    pq.write_table(table, tmp_path / "a.parquet")
    monkeypatch.setattr(pa, "OSFile", refuse)
    with pytest.raises(stoker.PermissionDeniedError, match=r"a\.parquet: the file may not be read"):
        stoker.parquet(tmp_path / "a.parquet")
