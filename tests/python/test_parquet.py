"""stoker.parquet: samples in Parquet files that hold the images."""

import json
import pathlib
import threading
import warnings
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
from epochs import same_for_ranks, taken  # noqa: E402
from pyarrow import parquet as pq  # noqa: E402
from stoker import _parquet_rows  # noqa: E402

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
    made = pa.table({"image": rows, "label": source._labels(), "plain": images, "box": box})
    label = {"_type": "ClassLabel", "names": source.classes}
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"label": label}}})})


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """The photographs of `made`, in its order, in three files of several row groups."""
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
    assert len(source) == 60 and source._labels() == table["label"].to_pylist()
    assert repr(source) == f"stoker.parquet('{files}/0.parquet' and 2 more)"
    for i, row in enumerate(table.to_pylist()):
        assert source._image(i) == row["plain"]
        label, box = source._beside(i)
        assert label == row["label"] and box.tolist() == row["box"]
    for batch in make(source):
        assert batch["box"].shape == (len(batch.label), 2)


def test_labels_that_are_text(table, tmp_path):
    words = [f"class {label}" for label in table["label"].to_pylist()]
    pq.write_table(pa.table({"image": table["plain"], "kind": words}), tmp_path / "a.parquet")
    source = stoker.parquet(tmp_path / "a.parquet", label="kind")
    assert source.classes == ["class 0", "class 1", "class 2"]
    assert source._labels() == table["label"].to_pylist()
    assert not stoker.parquet(tmp_path / "a.parquet").has_labels


def count_reads(monkeypatch):
    read = []
    whole = _parquet_rows.ParquetRows._read

    def counted(self, group):
        read.append(group)
        return whole(self, group)

    monkeypatch.setattr(_parquet_rows.ParquetRows, "_read", counted)
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
    read.clear()
    rows = _parquet_rows.ParquetRows(source._rows._paths, "image", None, [], 1)
    assert len({rows[i]["image"].tobytes() for i in range(60)}) == 60
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
    refused(stoker.InvalidArgumentError, "'gap' is int64, no encoded images", image="gap")
    refused(stoker.InvalidArgumentError, "'gap' has no value in row 59", columns=["gap"])
    refused(stoker.InvalidArgumentError, "'word' is text", columns=["word"])
    refused(ValueError, "cache_bytes", cache_bytes=0)
    refused(stoker.InvalidArgumentError, "columns differ|class names differ", [files / "0.parquet", path])
    pq.write_table(table.slice(0, 0), path)
    refused(stoker.InvalidArgumentError, "no rows")
    pq.write_table(pa.table({"image": [table["plain"][0].as_py(), None]}), path)
    with pytest.raises(stoker.UnavailableError, match="row 1 of all, in column 'image', has no image"):
        taken(stoker.Loader(stoker.parquet(path), [stoker.Resize((8, 8))], batch_size=2))


def test_a_file_that_is_cut_later(table, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, 7)
    source = stoker.parquet(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(stoker.UnavailableError, match=r"a\.parquet: pyarrow cannot read this"):
        taken(stoker.Loader(source, TRAIN, batch_size=2))
