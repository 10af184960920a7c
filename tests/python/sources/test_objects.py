"""Sources of remote objects, on a local server that also misbehaves."""

import importlib.util
import io
import os
import pathlib
import pickle
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
from functools import partial

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, same_for_ranks, taken  # noqa: E402
from object_server import ObjectServer  # noqa: E402
from tfrecords import example, record  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]
RETRIED = ["reset", "cut", "wrong length", "wrong range", "500", "503"]


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


def of_image(path, label):
    return example({"image/encoded": path.read_bytes(), "image/class/label": label})


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """60 photographs in five archives, in TFRecord files, and one by one, with a manifest."""
    folder = tmp_path_factory.mktemp("objects")
    source = stoker.image_folder(made)
    samples = [(pathlib.Path(source.path(i)), source.labels[i]) for i in range(len(source))]
    for shard in range(5):
        part = samples[shard * 12 : (shard + 1) * 12]
        with tarfile.open(folder / f"{shard}.tar", "w") as tar:
            for i, (path, label) in enumerate(part):
                for name, data in ((f"{i}.jpg", path.read_bytes()), (f"{i}.cls", b"%d" % label)):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        (folder / f"{shard}.tfrecord").write_bytes(b"".join(record(of_image(*sample)) for sample in part))
    (folder / "images").mkdir()
    lines = ["path,label"]
    for i, (path, label) in enumerate(samples):
        (folder / "images" / f"{i}.jpg").write_bytes(path.read_bytes())
        lines.append(f"images/{i}.jpg,{label}")
    (folder / "train.csv").write_text("\n".join(lines))
    np.arange(3000, dtype="<i4").tofile(folder / "tokens.bin")
    return folder


@pytest.fixture
def server(folder, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "STOKER_HTTP"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with ObjectServer(folder) as server:
        yield server


def local(folder):
    return stoker.tar(f"{folder}/{{0..4}}.tar")


def remote(server):
    return stoker.tar(f"{server.url}/{{0..4}}.tar")


# --- the same samples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 3, 8])
def test_tars_give_the_bytes_of_local_ones(server, folder, world):
    same_for_ranks(partial(make, remote(server)), partial(make, local(folder)), world)


def test_tfrecords_give_the_bytes_of_local_ones(server, folder):
    ours, theirs = [stoker.tfrecord(f"{root}/{{0..4}}.tfrecord") for root in (server.url, folder)]
    same(taken(make(ours)), taken(make(theirs)))
    assert ours._image(3) == theirs._image(3)


def pack(photos, folder):
    stoker_command = [sys.executable, "-m", "stoker", "pack", photos, folder, "--shard-size", "200KB"]
    subprocess.run(stoker_command, check=True, capture_output=True, timeout=120)


def test_a_packed_set_gives_the_bytes_of_a_local_one(server, made, tmp_path):
    server.folder = tmp_path
    pack(made, tmp_path / "packed")
    ours, theirs = [stoker.packed(f"{root}/packed") for root in (server.url, tmp_path)]
    assert len(ours) == 60 and ours.classes == theirs.classes and ours.name(7) == theirs.name(7)
    assert ours.path(0) == f"{server.url}/packed/00000.stoker"
    same_for_ranks(partial(make, ours), partial(make, theirs), 3)
    same(taken(make(pickle.loads(pickle.dumps(ours)))), taken(make(stoker.image_folder(made))))


def test_a_packed_set_without_a_shard(server, made, tmp_path):
    server.folder = tmp_path
    pack(made, tmp_path / "packed")
    (tmp_path / "packed" / "00001.stoker").unlink()
    with pytest.raises(stoker.NotFoundError, match=r"00001\.stoker"):
        stoker.packed(f"{server.url}/packed")


def test_a_manifest_and_its_images(server, folder):
    ours, theirs = [stoker.manifest(f"{root}/train.csv") for root in (server.url, folder)]
    assert ours.path(2) == f"{server.url}/images/2.jpg"
    same(taken(make(ours)), taken(make(theirs)))
    same(taken(make(pickle.loads(pickle.dumps(ours)))), taken(make(theirs)))


@pytest.mark.parametrize("store", ["http", "s3"])
def test_relative_names_are_names(server, folder, tmp_path, monkeypatch, store):
    """The same list gives the samples of local files: no character of a name is syntax of a URL."""
    names = ["x", "a b", "a+b", "a%20b", "a%b", "a#b", "a?b", "é", "[a]", "a&b=c", "a:b", "-", "a;b,c~!@'()"]
    for i, name in enumerate([*names, "a"]):  # "a": where "a#b" and "a?b" would lead
        (tmp_path / name).write_bytes((folder / "images" / f"{i}.jpg").read_bytes())
    lines = "".join(f'"{name}",{i}\n' for i, name in enumerate(names))
    (tmp_path / "list.csv").write_text("path,label\n" + lines)
    (tmp_path / "list.jsonl").write_text("".join(f'{{"path": "{name}"}}\n' for name in names))
    server.folder = tmp_path
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    root = server.url if store == "http" else "s3://bucket"
    makers = [
        lambda folder: stoker.manifest(f"{folder}/list.csv"),
        lambda folder: stoker.manifest(f"{folder}/list.jsonl"),
        lambda folder: stoker.manifest(tmp_path / "list.csv", root=folder),
        lambda folder: stoker.files(names, range(len(names)), root=folder),
    ]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow.parquet

        table = pyarrow.table({"path": names, "label": list(range(len(names)))})
        pyarrow.parquet.write_table(table, tmp_path / "list.parquet")
        makers.append(lambda folder: stoker.manifest(tmp_path / "list.parquet", root=folder))
    for make_source in makers:
        same(taken(make(make_source(root))), taken(make(make_source(tmp_path))))
    with pytest.raises(stoker.NotFoundError, match=r"a%23"):
        taken(make(stoker.files(["a#"], root=server.url)))
    with pytest.raises(ValueError, match=r"fragment.*%23"):
        taken(make(stoker.files([f"{server.url}/a#b"])))
    for make_source in (stoker.packed, lambda folder: stoker.files(["a"], root=folder)):
        with pytest.raises(ValueError, match="query or a fragment"):
            make_source(f"{server.url}/d?x=1")


def test_arrow_files(server, folder, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
    source = local(folder)
    images = [source._image(i) for i in range(len(source))]
    table = pa.table({"image": images, "label": [source._beside(i)[0] for i in range(len(source))]})
    server.folder = tmp_path
    for i, form in enumerate([pa.ipc.new_stream, pa.ipc.new_file]):
        with pa.OSFile(str(tmp_path / f"{i}.arrow"), "wb") as file, form(file, table.schema) as writer:
            writer.write_table(table.slice(i * 30, 30), max_chunksize=7)
    ours = stoker.arrow(f"{server.url}/{{0..1}}.arrow", cache=tmp_path / "kept", cache_bytes=1 << 26)
    same(taken(make(ours)), taken(make(source)))
    again = pickle.loads(pickle.dumps(ours))
    server.tried.clear()
    same(taken(make(again)), taken(make(source)))
    assert not server.tried
    source = stoker.arrow(f"{server.url}/{{0..1}}.arrow")
    server.etag = '"2"'
    with pytest.raises(stoker.DataLossError, match="has changed"):
        taken(make(source))


def test_an_image_without_bytes_is_the_same_error(server, tmp_path):
    server.folder = tmp_path
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("0.jpg"), io.BytesIO())
    causes = []
    for root in (tmp_path, server.url):
        with pytest.raises(stoker.DataLossError) as raised:
            taken(make(stoker.tar(f"{root}/0.tar"), batch_size=1))
        causes.append((raised.value.cause, raised.value.offset))
    assert causes[0] == causes[1]


@pytest.mark.parametrize("command", ["bench", "explain", "verify"])
def test_commands_read_objects(server, command):
    program = pathlib.Path(stoker.__file__).parent / "stoker"
    done = subprocess.run([program, command, f"{server.url}/0.tar"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_list_of_urls_and_paths(server, folder):
    mixed = [f"{server.url if i % 2 else folder}/images/{i}.jpg" for i in range(60)]
    same(
        taken(make(stoker.files(mixed))),
        taken(make(stoker.files([f"images/{i}.jpg" for i in range(60)], root=folder))),
    )


def test_records(server, folder):
    ours, theirs = [stoker.records(f"{root}/tokens.bin", "i4", shape=10) for root in (server.url, folder)]
    assert len(ours) == 300
    same(*[[(batch.copy(),) for batch in stoker.Loader(source, batch_size=7)] for source in (ours, theirs)])


def test_derived_sources(server, folder):
    def derived(source):
        first, second = source.split(0.5, seed=1)
        return stoker.combine([first, second.subset([3, 1])])

    same(taken(make(derived(remote(server)))), taken(make(derived(local(folder)))))


def test_the_report_names_the_reader(server):
    loader = make(remote(server))
    next(iter(loader))
    assert loader.stats()["reader"] == "objects"


# --- indexes ------------------------------------------------------------------------------------------


def test_archives_are_indexed_once(server, tmp_path):
    remote(server)
    before = sum(server.answered.values())
    indexes = list((tmp_path / "cache" / "stoker" / "index").glob("*.stoker-index"))
    assert len(indexes) == 5
    remote(server)
    assert sum(server.answered.values()) - before == 5  # their sizes


def test_indexes_may_be_copied_to_another_machine(server, tmp_path, monkeypatch):
    ours = remote(server)
    shutil.copytree(tmp_path / "cache", tmp_path / "copied")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "copied"))
    server.answered.clear()
    assert remote(server)._native.fingerprint == ours._native.fingerprint
    assert sum(server.answered.values()) == 5  # their sizes


# --- faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", RETRIED)
def test_a_fault_loses_nothing_and_repeats_nothing(server, folder, fault):
    source = remote(server)
    server.answered.clear()
    server.fault = lambda path, first, tried: fault if tried < 2 and first % 3 == 0 else None
    same(taken(make(source)), taken(make(local(folder))))
    assert len(server.answered) == 60  # a range for each sample
    faulty = [key for key in server.answered if key[1] % 3 == 0]
    assert faulty and all(server.tried[key] >= 3 for key in faulty)


@pytest.mark.long
def test_a_slow_server_is_waited_for(server, folder):
    (folder / "slow").symlink_to(folder)  # loaders of other tests may still read ahead
    source = stoker.tar(f"{server.url}/slow/{{0..4}}.tar")
    server.fault = lambda path, first, tried: "slow"
    server.tried.clear()
    assert [source._image(i) for i in range(60)] == [local(folder)._image(i) for i in range(60)]
    slow = [count for (path, first), count in server.tried.items() if path.startswith("slow/") and first > 0]
    assert len(slow) >= 55 and set(slow) == {1}
    same(taken(make(source).epoch(0)), taken(make(local(folder)).epoch(0)))


def test_faults_while_archives_are_indexed(server, folder):
    server.fault = lambda path, first, tried: RETRIED[first % 6] if tried == 0 else None
    same(taken(make(remote(server))), taken(make(local(folder))))


def test_retry_after_is_kept(server, folder):
    source = remote(server)
    server.fault = lambda path, first, tried: "429" if tried == 0 and path == "1.tar" else None
    same(taken(make(source)), taken(make(local(folder))))
    assert sum(count for key, count in server.tried.items() if key[0] == "1.tar" and count > 1) > 0


@pytest.mark.long
def test_a_transfer_that_stalls_is_begun_again(server, folder, monkeypatch):
    monkeypatch.setenv("STOKER_HTTP_TIMEOUT", "1")
    source = remote(server)
    stalled = []

    def fault(path, first, tried):
        if not stalled:
            stalled.append(path)
            return "stall"
        return None

    server.fault = fault
    same(taken(make(source)), taken(make(local(folder))))
    assert stalled


def test_an_error_that_stays_is_the_batchs(server, monkeypatch):
    monkeypatch.setenv("STOKER_HTTP_TRIES", "2")
    source = remote(server)
    server.fault = lambda path, first, tried: "503"
    with pytest.raises(stoker.UnavailableError, match=r"answers 503 \(SlowDown\), 2 times") as raised:
        next(iter(make(source)))
    assert raised.value.file.startswith(server.url)
    assert raised.value.offset > 0


def test_a_refusal_is_not_tried_again(server):
    source = remote(server)
    server.tried.clear()
    server.fault = lambda path, first, tried: "403"
    with pytest.raises(stoker.PermissionDeniedError, match=r"AccessDenied.*signed one"):
        next(iter(make(source)))
    assert set(server.tried.values()) == {1}


def test_an_object_that_is_not_there(server):
    with pytest.raises(stoker.NotFoundError, match=r"/5\.tar.*404") as raised:
        stoker.tar(f"{server.url}/{{0..5}}.tar")
    assert isinstance(raised.value, FileNotFoundError)
    assert server.tried["5.tar", 0] == 1


def test_a_server_without_ranges(server):
    source = remote(server)
    server.fault = lambda path, first, tried: "whole"
    with pytest.raises(stoker.UnimplementedError, match="ignores Range"):
        next(iter(make(source)))


@pytest.mark.parametrize("etag", [None, 'W/"1"'])
def test_an_object_that_changes(server, etag):
    server.etag = etag
    source = remote(server)
    server.etag = '"2"' if etag is None else 'W/"2"'
    with pytest.raises(stoker.DataLossError, match="has changed since the source was opened") as raised:
        next(iter(make(source)))
    assert "Open the source again" in str(raised.value)


def test_an_object_that_becomes_shorter(server, folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "0.tar").write_bytes((folder / "0.tar").read_bytes())
    server.folder = copy
    server.etag = '"same"'
    source = stoker.tar(f"{server.url}/0.tar")
    (copy / "0.tar").write_bytes((folder / "0.tar").read_bytes()[:20000])
    with pytest.raises(stoker.DataLossError, match=r"ends|changed"):
        taken(make(source, shuffle=False))


def test_closing_does_not_wait_for_a_server_that_hangs(server):
    source = remote(server)
    hangs = threading.Event()

    def fault(path, first, tried):
        if path != "4.tar":
            return None
        hangs.set()
        return "stall"

    server.fault = fault
    loader = make(source, shuffle=False, depth=8)
    next(iter(loader))
    hangs.wait()
    loader.close()  # otherwise it takes STOKER_HTTP_TRIES times STOKER_HTTP_TIMEOUT
    assert not server.released.is_set()


def test_a_server_that_is_gone(server, monkeypatch):
    monkeypatch.setenv("STOKER_HTTP_TRIES", "2")
    with pytest.raises(stoker.UnavailableError, match=r"127\.0\.0\.1:1/x\.tar.*2 times"):
        stoker.tar("http://127.0.0.1:1/x.tar")


# --- URLs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url, error, words",
    [
        ("http://h/*.tar", stoker.UnimplementedError, "objects are not listed"),
        ("ftp://h/x.tar", stoker.UnimplementedError, "http://, https://, s3:// or gs://"),
        ("s3://bucket", stoker.InvalidArgumentError, "no object in it"),
        ("http://me:pass@h/x.tar", stoker.InvalidArgumentError, "password"),
    ],
)
def test_urls_that_are_refused(server, url, error, words):
    with pytest.raises(error, match=words):
        stoker.tar(url)


def test_folders_of_objects_are_refused():
    with pytest.raises(stoker.UnimplementedError, match="not listed"):
        stoker.image_folder("s3://bucket/train")


def test_the_query_of_a_signed_url_is_sent_and_not_shown(server, monkeypatch):
    source = stoker.tar(f"{server.url}/0.tar?signature=secret")
    assert len(source) == 12
    server.fault = lambda path, first, tried: "403"
    with pytest.raises(stoker.PermissionDeniedError) as raised:
        next(iter(make(source)))
    assert "secret" not in str(raised.value)


BAD = {
    "bad.tar": stoker.tar,
    "bad.tfrecord": stoker.tfrecord,
    "bad.arrow": stoker.arrow,
    "bad.csv": stoker.manifest,
    "bad.bin": partial(stoker.records, dtype="i4", shape=1000),
    "none.tar": stoker.tar,
    "{2..1.tar": stoker.tar,
    "*.tar": stoker.tar,
}


@pytest.mark.parametrize("name", BAD)
def test_no_error_shows_a_signature(server, tmp_path, name):
    server.folder = tmp_path
    for bad in BAD:
        if bad.startswith("bad"):
            (tmp_path / bad).write_bytes(b"no, such\n" * 1000)
    with pytest.raises(stoker.Error) as raised:
        BAD[name](f"{server.url}/{name}?signature=secret")
    assert "secret" not in f"{raised.value} {raised.value!r} {raised.value.file} {raised.value.cause}"


def test_no_source_shows_a_signature(server, folder):
    urls = [f"{server.url}/{i}.tar?signature=it's,secret" for i in range(2)]
    one, two = stoker.tar(urls[0]), stoker.tar(urls)
    for source in (one, two, stoker.combine([one, two])):
        assert "secret" not in f"{source!r} {source} {make(source)!r}"
        assert f"{server.url}/" in repr(source)
    for source in (one, two):  # they need the signature to be opened again
        assert len(pickle.loads(pickle.dumps(source))) == len(source)


@pytest.mark.parametrize("endpoint", ["http://me:secret@h", "http://me:sec ret@h", "me:secret@h"])
def test_no_endpoint_shows_a_password(server, monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(stoker.InvalidArgumentError, match="AWS_ENDPOINT_URL") as raised:
        stoker.tar("s3://bucket/0.tar")
    assert "ret" not in str(raised.value)


def test_no_error_of_a_record_shows_a_signature(server, folder, tmp_path):
    server.folder = tmp_path
    records = (folder / "0.tfrecord").read_bytes()
    (tmp_path / "0.tfrecord").write_bytes(records[:-30] + b"!" + records[-29:])
    with pytest.raises(stoker.DataLossError) as raised:
        taken(make(stoker.tfrecord(f"{server.url}/0.tfrecord?signature=secret")))
    assert raised.value.file == f"{server.url}/0.tfrecord?…"
    assert "secret" not in str(raised.value)


# --- libcurl and certificates ---------------------------------------------------------------------------


def test_without_libcurl(server, tmp_path):
    """A copy of the package that looks for libraries which no machine has."""
    package = pathlib.Path(stoker.__file__).parent
    copy = pathlib.Path(shutil.copytree(package, tmp_path / "stoker"))
    (tmp_path / "stoker.libs").symlink_to(package.with_name("stoker.libs"))  # is there in a wheel
    (library,) = copy.glob("libstoker.so*")
    content = library.read_bytes()
    for name in (b"libcurl.so.4\0", b"libcurl-gnutls.so.4\0"):
        assert content.count(name) == 1
        content = content.replace(name, name[:-2] + b"9\0")
    library.write_bytes(content)
    program = f"import stoker; stoker.tar('{server.url}/0.tar')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    line = done.stderr.splitlines()[-1]
    assert line.startswith("stoker._errors.UnavailableError: ") or line.startswith(
        "stoker.UnavailableError: "
    )
    assert "libcurl.so.9: cannot open shared object file" in line
    assert "apt-get install libcurl4" in line


def tls(tmp_path):
    """Returns a context for a local server, and its certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed here")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def test_certificates(server, folder, tmp_path, monkeypatch):
    context, certificate = tls(tmp_path)
    with ObjectServer(folder, context) as secure:
        url = f"{secure.url}/0.tar"
        assert url.startswith("https://")
        with pytest.raises(stoker.UnavailableError, match="AWS_CA_BUNDLE to a file") as raised:
            stoker.tar(url)
        assert "certificate" in raised.value.cause
        monkeypatch.setenv("AWS_CA_BUNDLE", "/none.pem")
        with pytest.raises(stoker.UnavailableError, match=r"AWS_CA_BUNDLE is /none\.pem"):
            stoker.tar(url)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        same(taken(make(stoker.tar(url))), taken(make(stoker.tar(f"{folder}/0.tar"))))


# --- credentials --------------------------------------------------------------------------------------


def credentials(path, key):
    path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = s\n")


def test_expired_credentials_are_read_again(server, folder, tmp_path, monkeypatch):
    file = tmp_path / "credentials"
    credentials(file, "OLD")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    source = stoker.tar("s3://bucket/{0..4}.tar")

    loader = make(source)
    batches = iter(loader)
    first = tuple(column.copy() for column in next(batches))
    credentials(file, "NEW")
    server.expired_key = "OLD"
    wanted = taken(make(local(folder)))
    same([first, *taken(batches)], wanted)
    assert "Credential=NEW/" in server.headers[-1]["authorization"]


def test_expired_credentials_that_are_not_renewed(server, folder, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OLD")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.fault = lambda path, first, tried: "expired"
    with pytest.raises(stoker.PermissionDeniedError, match=r"ExpiredToken.*read again"):
        stoker.tar("s3://bucket/0.tar")


def test_a_token_of_google(folder, tmp_path, monkeypatch):
    context, certificate = tls(tmp_path)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with ObjectServer(folder, context) as secure:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", secure.url)
        assert len(stoker.tar("gs://bucket/0.tar")) == 12
        assert secure.headers[-1]["authorization"] == "Bearer ya29"


def test_a_token_is_not_sent_in_clear_text(server, monkeypatch):
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    assert len(stoker.tar("gs://bucket/0.tar")) == 12
    assert not any("authorization" in headers for headers in server.headers)


# --- memory -------------------------------------------------------------------------------------------


def test_memory_is_bounded(server, folder):
    runtime = stoker.Runtime(memory_budget=48 << 20)
    loader = make(remote(server), runtime=runtime)
    server.fault = lambda path, first, tried: RETRIED[first % 6] if tried == 0 else None
    same(taken(loader), taken(make(local(folder))))
    assert loader.stats()["memory_peak"] <= 48 << 20
