"""Sources that know the sizes of their images: from an array, from headers, from an index file."""

import io
import pathlib
import pickle
import tarfile
import threading
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
import tfrecords  # noqa: E402

WHOLE = [stoker.Resize((16, 16))]
ORIENTATION = 0x0112


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of the indexes of tar archives."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sizes_of(source):
    return [source.image_size(i) for i in range(len(source))]


@pytest.fixture
def photos(tmp_path):
    """Returns (paths, sizes as viewed) of JPEGs, PNGs and a WebP, some of them turned by their EXIF tags."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths, sizes = [], []
    for i in range(14):
        width, height = int(rng.integers(20, 90)), int(rng.integers(20, 90))
        form = ("jpg", "jpg", "png", "webp")[i % 4]
        exif = image.Exif()
        exif[ORIENTATION] = 1 + i % 8
        path = tmp_path / "photos" / f"{i:02d}.{form}"
        path.parent.mkdir(exist_ok=True)
        picture = image.fromarray(rng.integers(0, 255, (height, width, 3)).astype(np.uint8))
        more = {"icc_profile": bytes(90_000)} if i == 1 else {}  # the size comes after 64 KiB
        picture.save(path, exif=exif, **more)
        paths.append(str(path))
        sizes.append((width, height) if 1 + i % 8 >= 5 else (height, width))
    return paths, sizes


def kinds(paths, folder):
    """Returns a source of each kind, of the same images."""
    encoded = [pathlib.Path(path).read_bytes() for path in paths]
    with tarfile.open(folder / "a.tar", "w") as archive:
        for i, data in enumerate(encoded):
            member = tarfile.TarInfo(f"{i:02d}{pathlib.Path(paths[i]).suffix}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    records = [tfrecords.record(tfrecords.example({"image/encoded": data})) for data in encoded]
    (folder / "a.tfrecord").write_bytes(b"".join(records))
    (folder / "a.csv").write_text("path\n" + "".join(path + "\n" for path in paths))
    made = {
        "folder": stoker.image_folder(folder / "photos"),
        "files": stoker.files(paths, list(range(len(paths)))),
        "manifest": stoker.manifest(folder / "a.csv"),
        "tar": stoker.tar(str(folder / "a.tar"), label=None),
        "tfrecord": stoker.tfrecord(str(folder / "a.tfrecord"), label=None),
        "dataset": stoker.from_dataset([(data, i) for i, data in enumerate(encoded)]),
        "paths": stoker.from_dataset([(path, i) for i, path in enumerate(paths)]),
    }
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        return made
    table = arrow.table({"image": arrow.array(encoded, arrow.binary())})
    parquet.write_table(table, folder / "a.parquet")
    with arrow.ipc.new_file(str(folder / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    made["parquet"] = stoker.parquet(str(folder / "a.parquet"))
    made["arrow"] = stoker.arrow(str(folder / "a.arrow"))
    return made


def test_headers_of_each_kind_of_source(photos, tmp_path):
    paths, sizes = photos
    made = kinds(paths, tmp_path)
    for kind, source in made.items():
        index = tmp_path / f"sizes of {kind}"
        for threads, kept in ((1, None), (3, None), (3, index), (1, index)):
            sized = stoker.sized(source, index=kept, runtime=stoker.Runtime(threads=threads))
            assert sizes_of(sized) == sizes, kind
        assert sized.unsized.tolist() == [] and list(source.unsized) == list(range(len(sizes)))
        assert sized._native.fingerprint == source._native.fingerprint
        wanted = [b[0].copy() for b in stoker.Loader(source, WHOLE, batch_size=5, shuffle=True, seed=3)]
        got = [b[0].copy() for b in stoker.Loader(sized, WHOLE, batch_size=5, shuffle=True, seed=3)]
        assert all(np.array_equal(one, other) for one, other in zip(got, wanted)), kind
    assert {path.name for path in tmp_path.glob("sizes*")} == {f"sizes of {kind}" for kind in made}


def test_a_state_is_that_of_the_plain_source(photos):
    paths, _ = photos
    source = stoker.files(paths, list(range(len(paths))))
    options = {"batch_size": 3, "shuffle": True, "seed": 5}
    plain, sized = (stoker.Loader(each, WHOLE, **options) for each in (source, stoker.sized(source)))
    batches = iter(plain)
    next(batches)
    sized.load_state_dict(plain.state_dict())
    rest = [batch[0].copy() for batch in batches]
    assert sum(len(images) for images in rest) == 11
    got = [batch[0].copy() for batch in sized]
    assert len(got) == len(rest) and all(np.array_equal(one, other) for one, other in zip(got, rest))


def large_files(folder):
    """Writes files of more than 64 KiB, some of them with their EXIF tag after that."""
    image = pytest.importorskip("PIL.Image")
    features = pytest.importorskip("PIL.features")
    picture = image.fromarray(np.random.default_rng(1).integers(0, 255, (240, 330, 3)).astype(np.uint8))
    exif = image.Exif()
    exif[ORIENTATION] = 6
    forms = ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"] + ["AVIF"] * features.check("avif")
    options = {
        "JPEG": {"quality": 95, "exif": exif},
        "PNG": {"exif": exif},
        "WEBP": {"lossless": True, "exif": exif},
        "AVIF": {"quality": 100, "exif": exif},
    }
    for form in forms:
        file = io.BytesIO()
        picture.save(file, form, **options.get(form, {}))
        data = file.getvalue()
        assert len(data) > 1 << 16, form
        (folder / f"a.{form.lower()}").write_bytes(data)
        if form == "JPEG":  # two segments before that of the tag
            segment = b"\xff\xe9" + (60_002).to_bytes(2, "big") + bytes(60_000)
            (folder / "late.jpeg").write_bytes(data[:2] + 2 * segment + data[2:])
        if form == "PNG":
            at = data.index(b"eXIf") - 4
            end = at + 12 + int.from_bytes(data[at : at + 4], "big")
            (folder / "late.png").write_bytes(data[:at] + data[end:-12] + data[at:end] + data[-12:])
    return sorted(folder.iterdir())


def test_files_longer_than_a_first_read(tmp_path):
    """Their sizes are those that Pillow has for the whole file."""
    operations = pytest.importorskip("PIL.ImageOps")
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "large").mkdir()
    files = large_files(tmp_path / "large")
    wanted = [operations.exif_transpose(image.open(path)).size[::-1] for path in files]
    assert wanted.count((330, 240)) >= 5 and wanted.count((240, 330)) >= 3
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for i, path in enumerate(files):
            archive.add(path, f"{i}{path.suffix}")
    for source in (
        stoker.files([str(path) for path in files]),
        stoker.tar(str(tmp_path / "a.tar"), image="jpeg;png;webp;tiff;gif;bmp;avif", label=None),
    ):
        assert dict(zip(files, sizes_of(stoker.sized(source)))) == dict(zip(files, wanted))


def test_sizes_that_are_given(photos):
    paths, _ = photos
    source = stoker.files(paths, list(range(len(paths))))
    given = np.stack([np.arange(len(paths)) + 30, np.arange(len(paths)) + 70], axis=1)
    for dtype in (np.int64, np.uint8, np.uint64, ">i4"):
        sized = stoker.sized(source, given.astype(dtype))
        assert sizes_of(sized) == [tuple(each) for each in given.tolist()]
    assert sizes_of(stoker.sized(source, given.tolist())) == [tuple(each) for each in given.tolist()]
    held = given.copy()
    sized = stoker.sized(source, held)
    held[:] = 1
    assert sizes_of(sized) == [tuple(each) for each in given.tolist()]
    assert sizes_of(sized.subset([3, 1])) == [(33, 73), (31, 71)]
    assert sizes_of(stoker.combine([sized, sized]))[len(paths) + 2] == (32, 72)
    assert sized.weighted(np.ones(len(paths))).image_size(1) == (31, 71)
    assert sized.labels.tolist() == list(range(len(paths))) and sized.path(2) == paths[2]
    assert repr(sized) == f"stoker.sized({source!r})"


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ([[1, 2]], ValueError, "1 sizes were given, and .* has 14 samples"),
        (np.ones((15, 2), int), ValueError, "15 sizes"),
        (np.ones((0, 2), int), ValueError, "0 sizes"),
        (np.ones((14, 3), int), ValueError, "shape"),
        (np.ones((28,), int), ValueError, "shape"),
        (np.ones((14, 2)), TypeError, "integers"),
        (np.ones((14, 2), bool), TypeError, "integers"),
        ("sizes", TypeError, "integers"),
        ([], TypeError, "integers"),
        (np.zeros((14, 2), int), ValueError, r"sizes\[0\] has height 0 and width 0.* 1 to 65535"),
        (
            np.array([[5, 5]] * 9 + [[5, -1]] + [[5, 5]] * 4),
            ValueError,
            r"sizes\[9\] has height 5 and width -1",
        ),
        (np.array([[5, 5]] * 13 + [[65536, 5]]), ValueError, r"sizes\[13\] has height 65536 and width 5"),
        (
            np.array([[5, 5]] * 13 + [[2**64 - 1, 5]], np.uint64),
            ValueError,
            "sizes are 5 to 18446744073709551615",
        ),
        (np.array([[5, 5]] * 13 + [[2**32 + 5, 5]]), ValueError, "sizes are 5 to 4294967301"),
        (np.array([[5, 5]] * 13 + [[-(2**63), 5]]), ValueError, "sizes are -9223372036854775808 to 5"),
    ],
)
def test_hostile_sizes(photos, sizes, error, words):
    with pytest.raises(error, match=words):
        stoker.sized(stoker.files(photos[0]), sizes)


def test_refused_sources_and_arguments(photos, tmp_path):
    paths, _ = photos
    source = stoker.files(paths)
    with pytest.raises(ValueError, match="order of its own"):
        stoker.sized(source.weighted(np.ones(len(paths))))
    with pytest.raises(ValueError, match="not encoded images"):
        stoker.sized(stoker.arrays(np.arange(4)))
    with pytest.raises(ValueError, match="several images"):
        stoker.sized(stoker.clips(source, frames=2))
    with pytest.raises(TypeError, match="source must be"):
        stoker.sized(paths)
    with pytest.raises(TypeError, match="runtime"):
        stoker.sized(source, runtime=3)
    with pytest.raises(TypeError, match="index"):
        stoker.sized(source, index=3)
    with pytest.raises(ValueError, match="sizes are given"):
        stoker.sized(source, np.ones((len(paths), 2), int), index=tmp_path / "a")


def test_unreadable_images_are_counted_and_listed(photos, tmp_path):
    paths, sizes = photos
    held = pathlib.Path(paths[2]).read_bytes()
    pathlib.Path(paths[2]).unlink()
    pathlib.Path(paths[5]).write_bytes(b"")
    pathlib.Path(paths[9]).write_bytes(b"no image")
    source = stoker.files(paths)
    index = tmp_path / "sizes"
    for _ in range(2):  # also when the index knows the others
        with pytest.warns(
            UserWarning, match=r"3 of 14 samples .* known size; the first is sample 2: .*02\.png"
        ):
            sized = stoker.sized(source, index=index)
        assert sized.unsized.tolist() == [2, 5, 9] and sized.unsized.dtype == np.uint64
        assert sizes_of(sized) == [None if i in (2, 5, 9) else size for i, size in enumerate(sizes)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = sized.subset(np.setdiff1d(np.arange(14), sized.unsized))
        stoker.sized(good, index=tmp_path / "good")
        assert pickle.loads(pickle.dumps(sized)).unsized.tolist() == [2, 5, 9]
    assert good.unsized.tolist() == []
    pathlib.Path(paths[2]).write_bytes(held)  # the cause has passed
    with pytest.warns(UserWarning, match=r"2 of 14 samples .* known size; the first is sample 5: .*05\.jpg"):
        assert stoker.sized(source, index=index).unsized.tolist() == [5, 9]
    pathlib.Path(paths[2]).unlink()
    with pytest.warns(UserWarning, match="2 of 14 samples"):
        assert stoker.sized(source, index=index).image_size(2) == sizes[2]


def test_headers_are_read_each_time(photos, tmp_path):
    """Nothing is written without `index`."""
    paths, sizes = photos
    source = stoker.files(paths)
    before = sorted(tmp_path.iterdir())
    assert sizes_of(stoker.sized(source)) == sizes
    pathlib.Path(paths[0]).write_bytes(pathlib.Path(paths[1]).read_bytes())
    assert sizes_of(stoker.sized(source)) == [sizes[1], *sizes[1:]]
    assert sorted(tmp_path.iterdir()) == before


def test_the_index_of_other_images(photos, tmp_path):
    """Equal names in other folders have equal fingerprints; some headers are compared."""
    paths, sizes = photos
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "others").mkdir()
    for path in paths:
        image.new("RGB", (7, 5)).save(tmp_path / "others" / pathlib.Path(path).name)
    one, other = stoker.image_folder(tmp_path / "photos"), stoker.image_folder(tmp_path / "others")
    assert one._native.fingerprint == other._native.fingerprint
    index = tmp_path / "sizes"
    assert sizes_of(stoker.sized(one, index=index)) == sizes
    with pytest.raises(
        stoker.FailedPreconditionError, match=r"sample 0 .* height 5, width 7 and .*it is written again"
    ):
        stoker.sized(other, index=index)
    index.unlink()
    assert sizes_of(stoker.sized(other, index=index)) == [(5, 7)] * len(paths)
    assert sizes_of(stoker.sized(stoker.combine([one, other]))) == sizes + [(5, 7)] * len(paths)


def test_an_index_that_is_given(photos, tmp_path):
    paths, sizes = photos
    source = stoker.files(paths)
    index = tmp_path / "sizes.index"
    assert sizes_of(stoker.sized(source, index=index)) == sizes
    sound = index.read_bytes()
    for path in paths[:5]:
        pathlib.Path(path).unlink()
    assert sizes_of(stoker.sized(source, index=str(index))) == sizes
    again = pickle.loads(pickle.dumps(stoker.sized(source, index=index)))
    assert sizes_of(again) == sizes

    index.chmod(0o400)
    assert sizes_of(stoker.sized(source, index=index)) == sizes
    with pytest.raises(stoker.FailedPreconditionError, match="index of other samples"):
        stoker.sized(stoker.files(paths[1:]), index=index)
    index.chmod(0o600)
    index.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(stoker.DataLossError, match=r"sizes\.index.*Remove the file"):
        stoker.sized(source, index=index)
    index.write_bytes(b"this is a file of the user's, and not an index" * 9)
    with pytest.raises(ValueError, match=r"sizes\.index"):
        stoker.sized(source, index=index)
    assert index.read_bytes().startswith(b"this is"), "it is not replaced"
    with pytest.raises(stoker.Error, match="nowhere"):
        stoker.sized(stoker.files(["/nowhere/a.jpg"]), index="/proc/nowhere/a")
    index.write_bytes(sound)
    with pytest.raises(ValueError, match="not a folder"):
        stoker.image_folder(tmp_path / "photos", crop_index=index)


def test_the_index_of_a_folder(photos, tmp_path, command):
    """Sizes come from it, and nothing is read."""
    import subprocess

    paths, sizes = photos
    subprocess.run([command, "index", tmp_path / "photos"], check=True, capture_output=True)
    folder = stoker.image_folder(tmp_path / "photos")
    assert sizes_of(folder) == sizes
    assert sizes_of(stoker.sized(folder)) == sizes
    with pytest.raises(
        ValueError, match=r"sizes\[0\] has height 9 and width 8, and .* knows height .*as stored"
    ):
        stoker.sized(folder, np.tile((9, 8), (len(paths), 1)))
    plain = stoker.image_folder(tmp_path / "photos", crop_index="off")
    partly = stoker.combine([folder, plain])  # knows some sizes, and the headers of others are read
    assert sizes_of(stoker.sized(partly)) == sizes * 2
    for path in paths:
        pathlib.Path(path).unlink()
    assert sizes_of(stoker.sized(plain, index=tmp_path / "photos" / ".stoker-index")) == sizes


def test_many_threads_open_at_once(photos, tmp_path):
    paths, sizes = photos
    source = stoker.files(paths)
    found = []

    def open_it():
        found.append(sizes_of(stoker.sized(source, index=tmp_path / "one" / "sizes")))

    (tmp_path / "one").mkdir()
    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [sizes] * 8
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["sizes"]


def test_pickled_sizes_are_of_the_same_samples(photos):
    paths, sizes = photos
    given = np.full((len(paths), 2), 50)
    sized = stoker.sized(stoker.files(paths), given)
    again = pickle.loads(pickle.dumps(sized))
    assert sizes_of(again) == [(50, 50)] * len(paths)
    read = stoker.sized(stoker.files(paths))
    facts = read._native.facts
    pickled = pickle.dumps(read)
    for path in paths:
        pathlib.Path(path).unlink()
    again = pickle.loads(pickled)  # reads nothing
    assert (again._native.facts == facts).all() and sizes_of(again) == sizes
    with pytest.raises(ValueError, match="other samples"):
        stoker._stoker.sized_by_facts(read._native, facts[1:])
    loader = pickle.loads(pickle.dumps(stoker.Loader(sized, WHOLE, batch_size=4)))
    assert len(loader) == 4
