"""Arrays in .npy members of tars."""

import io
import pickle
import tarfile
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from test_tar import archive, members_of  # noqa: E402


def caption(i):
    return " ".join(f"wort{k}" for k in range(i % 9)) + ("ä" if i % 2 else "")


def embedding(i):
    return np.random.default_rng(i).standard_normal((2, 3)).astype("float32")


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), **options)
    return file.getvalue()


def write_shards(made, folder):
    """Writes the photographs of `made` into two archives, with captions and embeddings."""
    samples = []
    for i, ((_, label), (_, image), _) in enumerate(members_of(made)):
        key = f"{i:04}"
        samples.append([(f"{key}.txt", caption(i).encode()), (f"{key}.jpg", image), (f"{key}.cls", label)])
        samples[-1].insert(i % 4, (f"{key}.npy", npy(embedding(i))))
    for shard in range(2):
        members = [member for sample in samples[shard * 30 : (shard + 1) * 30] for member in sample]
        archive(folder / f"{shard}.tar", members)
    return folder


def opened(shards):
    return stoker.tar(f"{shards}/*.tar", columns={"caption": ".txt", "emb": ".npy"})


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, [stoker.RandomResizedCrop(24)], **options)


@pytest.fixture(scope="module")
def shards(made, tmp_path_factory):
    return write_shards(made, tmp_path_factory.mktemp("arrays"))


def test_arrays_come_with_their_samples(made, shards):
    source = opened(shards)
    iterator = iter(make(source))
    for batch in iterator:
        assert batch.keys() == ("image", "label", "caption", "emb") and batch.emb.dtype == "float32"
        for i, text, emb in zip(iterator.sample_ids.tolist(), batch.caption, batch.emb):
            assert text == caption(i)
            np.testing.assert_array_equal(emb, embedding(i))
    images = [batch[:2] for batch in taken(make(source))]
    same(images, taken(make(stoker.image_folder(made))))
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == repr(source)
    without = stoker.tar(f"{shards}/*.tar", columns={"caption": ".txt"})
    assert without._native.fingerprint != source._native.fingerprint


def spoiled(made, path, number, data):
    """Writes an archive; one sample has these bytes for its array."""
    members = []
    for i, (_, (_, image), _) in zip(range(12), members_of(made)):
        members += [(f"{i}.jpg", image), (f"{i}.npy", data if i == number else npy(embedding(i)))]
    return archive(path, members)


BAD = {
    "truncated": (npy(embedding(0))[:-3], "truncated"),
    "another shape": (npy(embedding(0).T.copy()), "unsupported"),
    "another type": (npy(embedding(0).astype("float64")), "unsupported"),
    "no npy": (b"emb", "undecodable"),
    "bytes after it": (npy(embedding(0)) + b"x", "undecodable"),
    "Fortran order": (npy(np.asfortranarray(embedding(0))), "unsupported"),
    "big-endian": (npy(embedding(0).astype(">f4")), "unsupported"),
    "no elements": (npy(embedding(0)[:0]), "unsupported"),
    "objects": (npy(np.array([[{}]], object), allow_pickle=True), "unsupported"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_array_is_a_bad_sample(made, tmp_path, bad):
    data, fault = BAD[bad]
    path = spoiled(made, tmp_path / "a.tar", 5, data)
    source = stoker.tar(path, columns={"emb": ".npy"})
    assert source._beside(4)[0].tolist() == embedding(4).tolist()
    options = {"batch_size": 4, "shuffle": False}
    with pytest.raises(stoker.Error, match="column 'emb': ") as error:
        taken(make(source, **options))
    assert error.value.file == str(path)
    with tarfile.open(path) as tar:
        begin = tar.getmember("5.npy").offset_data
    assert begin <= error.value.offset <= begin + len(data)
    loader = make(source, **options, on_bad=f"{fault}=drop", max_bad_fraction=1.0, sample_ids=True)
    ids = np.concatenate([batch.sample_id for batch in loader])
    assert ids.tolist() == [i for i in range(12) if i != 5]
    assert loader.stats()["bad"][fault] == 1
    first = spoiled(made, tmp_path / "b.tar", 0, data)
    if bad.startswith("another"):  # what the first one is determines what others have to be
        rest = next(iter(make(stoker.tar(first, columns={"emb": ".npy"}), batch_size=1, shuffle=False)))
        assert rest.emb.shape == (1, *np.load(io.BytesIO(data)).shape)
        return
    with pytest.raises(stoker.Error, match=r"column 'emb': .* the first sample, '0', determines") as error:
        stoker.tar(first, columns={"emb": ".npy"})
    assert error.value.file == str(first)


def test_arrays_of_all_types(made, tmp_path):
    image = next(iter(members_of(made)))[1][1]
    types = [*"?bBhHiIqQefd"]
    arrays = {f"{i}.npy": np.arange(6).astype(t).reshape(1, 6) % 2 for i, t in enumerate(types)}
    arrays["s.npy"] = np.float32(3)
    for version in ((1, 0), (2, 0), (3, 0)):
        members = [(f"a.{name}", npy(array, version=version)) for name, array in arrays.items()]
        path = archive(tmp_path / f"{version[0]}.tar", [*members, ("a.jpg", image)])
        source = stoker.tar(path, columns={name[0] + "th": name for name in arrays if len(name) == 5})
        batch = next(iter(make(source, batch_size=1)))
        for name, array in arrays.items():
            if len(name) == 5:
                got = batch[name[0] + "th"]
                assert got.dtype == array.dtype and got.shape == (1, *array.shape)
                np.testing.assert_array_equal(got[0], array)


def test_headers_mean_what_numpy_reads(tmp_path):
    """Of changed headers, those that are taken have NumPy's type, shape and values."""
    rng = np.random.default_rng(11)
    whole = npy(np.arange(12, dtype="int16").reshape(3, 4))
    marks = [*b"' ( ) , 3 1 < > | True False { } : 4 2".split(), b" ", b"\n"]
    taken_ones = 0
    for _ in range(900):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 3)):
            place, mark = rng.integers(0, 75), marks[rng.integers(len(marks))]
            data[place : place + len(mark)] = mark
        path = archive(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.npy", bytes(data))])
        try:
            source = stoker.tar(path, columns={"a": ".npy"})
            got = source._beside(0)[0]
        except (stoker.DataLossError, stoker.UnimplementedError):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = np.lib.format.read_array(io.BytesIO(bytes(data)))
        taken_ones += 1
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_array_equal(got, wanted)
    assert taken_ones > 10


def test_derived_sources_have_the_arrays(shards):
    source = opened(shards)
    both = stoker.combine([source.subset([50, 3]), source])
    label, text, emb = both._beside(0)
    assert text == caption(50) and isinstance(label, int)
    np.testing.assert_array_equal(emb, embedding(50))
    for batch in make(both, sample_ids=True, batch_size=31):
        for i, emb in zip(batch.sample_id.tolist(), batch.emb):
            np.testing.assert_array_equal(emb, embedding([50, 3][i] if i < 2 else i - 2))
    with pytest.raises(stoker.UnimplementedError, match="are records, which it does not keep"):
        make(source, cache="ram:1MiB")
