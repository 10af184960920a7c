"""stoker.tar: samples in tar archives, as WebDataset writes them."""

import io
import json
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import tarfile
import warnings
from functools import partial

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, same_for_ranks, same_for_settings, taken  # noqa: E402
from indexes import index_of, rest  # noqa: E402
from stoker import _sources  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


def make(source, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, TRAIN, **options)


def members_of(folder):
    """Returns a folder's samples as members of an archive: lists of (name, bytes)."""
    source = stoker.image_folder(folder)
    for i in range(len(source)):
        name = f"train/{i:05d}"
        image = pathlib.Path(source.path(i)).read_bytes()
        yield [
            (f"{name}.cls", str(source.labels[i]).encode()),
            (f"{name}.jpg", image),
            (f"{name}.json", b"{}"),
        ]


def archive(path, members, form=tarfile.PAX_FORMAT):
    """Writes members, (name, bytes), into a tar archive."""
    with tarfile.open(path, "w", format=form) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture(scope="module")
def shards(made, tmp_path_factory):
    """Writes the photographs of `made`, in its order, into seven archives of three kinds."""
    folder = tmp_path_factory.mktemp("shards")
    samples = list(members_of(made))
    forms = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
    for i in range(7):
        part = [member for sample in samples[i * 9 : (i + 1) * 9] for member in sample]
        archive(folder / f"{i:03d}.tar", part, forms[i % 3])
    return folder


# --- the samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_same_bytes_as_the_folder(made, shards, world):
    tars = stoker.tar(f"{shards}/{{000..006}}.tar")
    same_for_ranks(partial(make, tars), partial(make, stoker.image_folder(made)), world)


def test_the_same_bytes_with_any_threads_and_depth(made, shards):
    wanted = taken(make(stoker.image_folder(made)))
    same_for_settings(make, lambda: stoker.tar(f"{shards}/*.tar"), wanted)


def test_a_state_goes_on_with_the_archives_elsewhere(shards, tmp_path):
    loader = make(stoker.tar(f"{shards}/*.tar"))
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = taken(iterator)
    for path in shards.glob("*.tar"):
        shutil.copy(path, tmp_path / f"moved-{path.name}")
    again = make(stoker.tar(f"{tmp_path}/moved-*.tar"))
    again.load_state_dict(state)
    same(taken(again), rest)
    fewer = make(stoker.tar(f"{shards}/{{000..005}}.tar"))
    with pytest.raises(stoker.FailedPreconditionError, match="has 54 samples, the state was saved on 60"):
        fewer.load_state_dict(state)


def test_archives_of_webdataset(made, tmp_path):
    """WebDataset writes; it and stoker read the same bytes back."""
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed here")
    with wds.ShardWriter(f"{tmp_path}/%06d.tar", maxcount=25, verbose=0) as writer:
        for sample in members_of(made):
            fields = {name.split(".", 1)[1]: data for name, data in sample}
            writer.write({"__key__": sample[0][0].split(".")[0], **fields, "seg.png": b"not this one"})
    urls = f"{tmp_path}/{{000000..000002}}.tar"
    source = stoker.tar(urls)
    read = list(wds.WebDataset(urls, shardshuffle=False))
    assert len(read) == len(source) == 60
    for i, sample in enumerate(read):
        assert source._image(i) == sample["jpg"]
        assert source._beside(i) == [int(sample["cls"])]
        assert source.path(i) == sample["__url__"]
    same(taken(make(source)), taken(make(stoker.image_folder(made))))


def test_ranges_are_those_of_tarfile(tmp_path):
    names = ["a.jpg", "ä/b.jpg", "long/" * 60 + "c.jpg", "n" * 150 + ".jpg"]
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        rng = random.Random(form)
        path = archive(
            tmp_path / f"{form}.tar", [(n, rng.randbytes(rng.randrange(2000))) for n in names], form
        )
        source = stoker.tar(path)
        with tarfile.open(path) as tar:
            wanted = [(member.offset_data, member.size) for member in tar]
        assert [source._native.range(i) for i in range(len(source))] == wanted


def test_a_source_tells_of_itself(shards, monkeypatch):
    source = stoker.tar(f"{shards}/*.tar")
    assert len(source) == 60 and source.has_labels and source.classes == []
    assert source.path(0) == f"{shards}/000.tar" and source.path(59) == f"{shards}/006.tar"
    assert source._image(0).startswith(b"\xff\xd8")
    assert repr(source) == f"stoker.tar('{shards}/*.tar')"
    assert source.skipped == {}
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == repr(source)
    monkeypatch.chdir(shards)
    here = stoker.tar("{000..003}.tar::00{4,5,6}.tar")
    listed = stoker.tar([f"{i:03d}.tar" for i in range(7)])
    as_path = stoker.tar(pathlib.Path("*.tar"))
    monkeypatch.chdir("/")
    for other in (here, listed, as_path):
        assert other._native.fingerprint == source._native.fingerprint
        assert other.path(59) == source.path(59)
        assert pickle.loads(pickle.dumps(other))._native.fingerprint == source._native.fingerprint


def test_relative_paths_are_found_by_braces(tmp_path, monkeypatch):
    for name in ("one", "{2}"):
        (tmp_path / name).mkdir()
        archive(tmp_path / name / "x.tar", [("1.jpg", name.encode())])
    monkeypatch.chdir(tmp_path / "{2}")
    sources = [
        stoker.tar(f"{{{tmp_path}/one,../one}}/x.tar::x.tar::*.tar"),
        stoker.tar([tmp_path / "one/x.tar", "../one/x.tar", "x.tar", pathlib.Path("x.tar")]),
    ]
    monkeypatch.chdir("/")
    for source in [*sources, *pickle.loads(pickle.dumps(sources))]:
        assert [source._image(i) for i in range(4)] == [b"one", b"one", b"{2}", b"{2}"]
        assert os.path.isabs(source.path(3))
        assert source._spec["root"] == str(tmp_path / "{2}")
    assert "root" not in stoker.tar(f"{tmp_path}/{{one,?2?}}/x.tar")._spec


def test_a_long_list(shards, tmp_path, monkeypatch):
    wanted = stoker.tar(f"{shards}/*.tar")
    paths = sorted(shards.glob("*.tar"))
    monkeypatch.setattr(_sources, "_MOST_SHARDS", 2 * len(str(shards)) + 100)
    source = stoker.tar(paths)  # the folder occurs once in its pattern
    assert source._spec["shards"].count(str(shards)) == 1
    assert source._native.fingerprint == wanted._native.fingerprint and source.path(59) == wanted.path(59)
    assert stoker.tar([paths[0]] * 9).path(80) == str(paths[0])
    names = [r"{a", r"b,", "*", "1..3", "\\"]
    for name in names:
        shutil.copy(paths[0], tmp_path / name)
    monkeypatch.setattr(_sources, "_MOST_SHARDS", len(str(tmp_path)) + 50)
    listed = stoker.tar([tmp_path / name for name in names])
    assert [listed.path(9 * i) for i in range(5)] == [str(tmp_path / name) for name in names]
    with pytest.raises(stoker.InvalidArgumentError, match=r"shards has 7 paths of \d+ bytes.*Give a pattern"):
        stoker.tar([f"/{i}{'x' * 100}" for i in range(7)])
    monkeypatch.setattr(_sources, "_MOST_SHARDS", 1000)
    with pytest.raises(stoker.InvalidArgumentError, match="shards has 2 paths of 404 bytes"):  # 1,200 in JSON
        stoker.tar([f"/{i}{'é' * 100}" for i in range(2)])


def test_processes_that_index_at_once(shards, tmp_path, monkeypatch):
    """They write the same index files at the same time; each has all samples, and the files are sound."""
    for path in shards.glob("*.tar"):
        shutil.copy(path, tmp_path)
    rest()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = (
        "import sys, stoker; sys.stdin.readline(); "
        "print(stoker.tar(sys.argv[1], columns={'meta': 'json'})._native.fingerprint)"
    )
    run = [sys.executable, "-c", code, f"{tmp_path}/*.tar"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(run, **pipes) for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    digests = {process.communicate(timeout=100)[0] for process in processes}
    assert digests == {stoker.tar(f"{tmp_path}/*.tar", columns={"meta": "json"})._native.fingerprint + "\n"}
    indexes = tmp_path / "cache" / "stoker" / "index"
    before = {path: path.stat().st_ino for path in indexes.iterdir() if path.name != ".swept"}
    assert len(before) == 2 * 7, "no temporary file is left"
    stoker.tar(f"{tmp_path}/*.tar", columns={"meta": "json"})
    assert {path: path.stat().st_ino for path in indexes.iterdir() if path.name != ".swept"} == before


def test_special_characters_in_a_list(tmp_path):
    name = r"{a,b}*?\::.tar"
    archive(tmp_path / name, [("1.jpg", b"x")])
    assert stoker.tar([tmp_path / name]).path(0) == str(tmp_path / name)


def test_the_command_has_the_same_digest(command, made, shards):
    digests = set()
    for data in (made, f"{shards}/{{000..006}}.tar"):
        done = subprocess.run(
            [command, "bench", data, "--size", "64", "--batch-size", "8", "--digest", "--cold", "--json"],
            capture_output=True,
            check=True,
        )
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1
    explained = [command, "explain", f"{shards}/*.tar", "--images", "5", "--json"]
    done = subprocess.run(explained, capture_output=True, check=True)
    assert json.loads(done.stdout)["refused"] == 0
    wrong = [command, "bench", f"{shards}/*.tar", "--crop-index", "x"]
    assert subprocess.run(wrong, capture_output=True, check=False).returncode == 2


# --- faults of archives -------------------------------------------------------------------------------


def refused(kind, words, path, **options):
    """Returns the error of opening an archive that is wrong."""
    with pytest.raises(kind, match=words) as error:
        stoker.tar(path, **options)
    assert error.value.file == str(path)
    return error.value


def test_archives_that_are_wrong(shards, tmp_path):
    whole = (shards / "001.tar").read_bytes()
    path = tmp_path / "a.tar"
    path.write_bytes(whole[:70_000])
    assert refused(stoker.DataLossError, "cut off", path).offset <= 70_000
    path.write_bytes(b"not a tar archive " * 1000)
    assert refused(stoker.DataLossError, "not an intact tar archive", path).offset == 0
    path.write_bytes(whole + whole)
    refused(stoker.DataLossError, "joined", path)
    subprocess.run(["gzip", "--keep", "--force", path], check=True)
    refused(stoker.UnimplementedError, "compressed by gzip.*gunzip", tmp_path / "a.tar.gz")
    refused(stoker.NotFoundError, "cannot open", tmp_path / "b.tar")
    refused(stoker.InvalidArgumentError, "a directory", tmp_path)
    archive(path, [("1.jpg", b"x"), ("1.cls", b"3"), ("2.jpg", b"y")])
    assert refused(stoker.InvalidArgumentError, r"'2' has no label", path).offset == 2560
    archive(path, [("1.jpg", b"x"), ("1.jpg", b"y")])
    refused(stoker.InvalidArgumentError, "two members with the extension 'jpg'", path)
    archive(path, [("1.jpg", b"x"), ("1.cls", b"cat")])
    refused(stoker.InvalidArgumentError, r"'1\.cls' is not an integer", path)


LFS = {
    "0.tar": stoker.tar,
    "0.tfrecord": stoker.tfrecord,
    "0.arrow": stoker.arrow,
    "0.csv": stoker.manifest,
    "0.jsonl": stoker.manifest,
    "0.bin": partial(stoker.records, dtype="uint8"),
    "index.stoker": lambda path: stoker.packed(path.parent),
    "classes.txt": lambda path: stoker.image_folder(path.parent, class_names=path),
    "0.index": lambda path: stoker.image_folder(path.parent, crop_index=path),
    "0.parquet": stoker.parquet,
}


@pytest.mark.parametrize("name", LFS)
def test_a_pointer_of_git_lfs_is_named(tmp_path, name):
    if name == "0.parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0\n"
    path.write_bytes(text + b"size 12345\n")
    with pytest.raises(stoker.DataLossError, match="git lfs pull"):
        LFS[name](path)


def test_a_sparse_member_is_refused(tmp_path):
    if shutil.which("tar") is None:
        pytest.skip("tar is not installed here")
    with open(tmp_path / "1.jpg", "wb") as file:
        file.write(b"x")
        file.seek(1 << 20)
        file.write(b"y")
    for form in ("gnu", "posix"):
        done = ["tar", f"--format={form}", "--sparse", "-cf", "a.tar", "1.jpg"]
        subprocess.run(done, cwd=tmp_path, check=True)
        refused(stoker.InvalidArgumentError, "a sparse file.*without --sparse", tmp_path / "a.tar")


def test_samples_without_an_image_are_counted(tmp_path):
    path = archive(tmp_path / "a.tar", [("1.gif", b"x"), ("2.jpg", b"y"), ("3.json", b"{}")])
    with pytest.warns(stoker.SkippedFilesWarning, match=r"2 samples are skipped.*\.gif 1, \.json 1") as told:
        source = stoker.tar(path)
    assert told[0].filename == __file__ and "for example in " in str(told[0].message)
    assert len(source) == 1 and source.skipped == {".gif": 1, ".json": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(stoker.tar(path, image="gif;jpg")) == 2


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "words"),
    [
        ((5,), {}, TypeError, "shards must be a pattern or a list of paths"),
        (([],), {}, ValueError, "shards is empty"),
        (([5],), {}, TypeError, r"shards\[0\] must be a path"),
        (("",), {}, ValueError, "is empty"),
        (("/a{1..3",), {}, ValueError, "brace"),
        (("/a{0..9999999}",), {}, ValueError, "more than 1048576"),
        (("/no/such/*.tar",), {}, FileNotFoundError, r"/no/such/\*\.tar: no file matches"),
        (("/a\0",), {}, ValueError, "NUL"),
        (
            ("ftp://host/{0..9}.tar",),
            {},
            stoker.UnimplementedError,
            "ftp://host/0.tar: .*Give paths, or URLs",
        ),
        ((["pipe:cat a.tar"],), {}, stoker.UnimplementedError, "or remote objects"),
        (("~/a.tar",), {}, ValueError, "home folder"),
        (("/a.tar",), {"image": 5}, TypeError, "image must be"),
        (("/a.tar",), {"image": ""}, ValueError, "list of extensions"),
        (("/a.tar",), {"threads": 300}, ValueError, "threads"),
        (("/a.tar",), {"columns": ".txt"}, TypeError, 'as {"caption": ".txt"}'),
        ((r"C:\a.tar",), {}, ValueError, "begins with a drive"),
        (("file:///a.tar",), {}, stoker.UnimplementedError, "Give paths, or URLs.*without file://"),
    ],
)
def test_wrong_arguments(arguments, options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.tar(*arguments, **options)


def test_a_damaged_image_names_its_archive_and_offset(shards, tmp_path):
    data = bytearray((shards / "000.tar").read_bytes())
    with tarfile.open(shards / "000.tar") as tar:
        damaged = next(member for member in tar if member.name == "train/00003.jpg")
    data[damaged.offset_data : damaged.offset_data + 1000] = bytes(1000)
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    iterator = iter(stoker.Loader(stoker.tar(path), TRAIN, batch_size=2))
    next(iterator)
    with pytest.raises(stoker.Error) as error:
        next(iterator)
    assert (error.value.file, error.value.offset) == (str(path), damaged.offset_data)


def test_an_archive_that_changes_while_it_is_used(shards, tmp_path):
    path = shutil.copy(shards / "000.tar", tmp_path / "a.tar")
    source = stoker.tar(path)
    begin, length = source._native.range(5)
    os.truncate(path, begin + length - 1)
    with pytest.raises(stoker.DataLossError, match="ends at byte") as error:
        taken(stoker.Loader(source, TRAIN, batch_size=2))
    assert (error.value.file, error.value.offset) == (str(path), begin)
    refused(stoker.DataLossError, "cut off", path)  # opened again


# --- the index files ------------------------------------------------------------------------------------


def test_an_index_is_kept_and_checked(shards, tmp_path):
    path = pathlib.Path(shutil.copy(shards / "000.tar", tmp_path / "a.tar"))
    rest()
    first = stoker.tar(path)
    index = index_of(path)
    before = index.stat()
    assert stoker.tar(path)._native.fingerprint == first._native.fingerprint
    assert index.stat().st_ino == before.st_ino, "it is not written again"
    archive(path, [("1.jpg", b"other")])
    rest()
    assert len(stoker.tar(path)) == 1
    index = index_of(path)
    assert index.stat().st_ino != before.st_ino
    for damaged in (b"", b"?" * 100, index.read_bytes()[:-1]):
        index.write_bytes(damaged)
        assert len(stoker.tar(path)) == 1
    index.unlink()
    index.mkdir()  # where none can be written
    assert len(stoker.tar(path)) == 1


def test_many_keys_open_by_their_indexes(tmp_path):
    """20,000 samples in 20 archives: bytes a sample, and the same list from the indexes."""
    for shard in range(20):
        blocks = []
        for i in range(1000):
            for name, data in ((f"{shard:03d}{i:06d}.jpg", b"x"), (f"{shard:03d}{i:06d}.cls", b"7")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                blocks += [info.tobuf(tarfile.USTAR_FORMAT), data.ljust(512, b"\0")]
        path = tmp_path / f"{shard:02d}.tar"
        path.write_bytes(b"".join([*blocks, bytes(1024)]))
        os.utime(path, (1000, 1000))
    first = stoker.tar(f"{tmp_path}/*.tar")
    again = stoker.tar(f"{tmp_path}/{{00..19}}.tar")
    assert len(first) == len(again) == 20_000
    assert first._native.fingerprint == again._native.fingerprint
