"""The cache of objects on a local disk: ranges come from the server once."""

import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from object_server import ObjectServer  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]
SIZE = 64 << 20


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "shuffle": True, "seed": 7, **options})


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """60 photographs in five archives."""
    folder = tmp_path_factory.mktemp("cached")
    source = stoker.image_folder(made)
    for shard in range(5):
        with tarfile.open(folder / f"{shard}.tar", "w") as tar:
            for i in range(shard * 12, shard * 12 + 12):
                data = pathlib.Path(source.path(i)).read_bytes()
                info = tarfile.TarInfo(f"{i}.jpg")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return folder


@pytest.fixture(scope="module")
def wanted(folder, tmp_path_factory):
    copy = tmp_path_factory.mktemp("local")
    for path in folder.glob("*.tar"):
        (copy / path.name).write_bytes(path.read_bytes())
    return taken(make(stoker.tar(f"{copy}/{{0..4}}.tar")))


@pytest.fixture
def server(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with ObjectServer(folder) as server:
        yield server


def remote(server, cache, cache_bytes=SIZE):
    return stoker.tar(f"{server.url}/{{0..4}}.tar", cache=cache, cache_bytes=cache_bytes)


def test_ranges_come_from_the_server_once(server, tmp_path, wanted):
    source = remote(server, tmp_path / "cache")
    same(taken(make(source)), wanted)
    server.tried.clear()
    same(taken(make(source)), wanted)
    again = remote(server, tmp_path / "cache")
    server.tried.clear()
    same(taken(make(again)), wanted)
    assert not server.tried


def test_faults_while_ranges_are_cached(server, tmp_path, wanted):
    faults = ["reset", "cut", "wrong length", "wrong range", "500", "503"]
    source = remote(server, tmp_path / "cache")
    server.fault = lambda path, first, tried: faults[first % 6] if tried == 0 else None
    same(taken(make(source)), wanted)
    server.tried.clear()
    same(taken(make(source)), wanted)
    assert not server.tried


def test_derived_sources_share_the_cache(server, tmp_path):
    def halves():
        return stoker.combine([remote(server, tmp_path / "cache").subset(range(30)) for _ in range(2)])

    first = taken(make(halves()))
    source = halves()
    server.tried.clear()
    same(taken(make(source)), first)
    assert not server.tried


def test_what_is_cached_of_another_version_is_not_used(server, tmp_path, folder, wanted):
    server.etag = '"1"'
    source = remote(server, tmp_path / "cache")
    same(taken(make(source)), wanted)
    server.etag = '"2"'
    server.tried.clear()
    source = remote(server, tmp_path / "cache")
    server.tried.clear()
    same(taken(make(source)), wanted)
    assert len(server.tried) == 60


def test_a_cache_that_is_too_small(server, tmp_path, wanted):
    source = remote(server, tmp_path / "cache", 1 << 17)
    for _ in range(2):
        same(taken(make(source)), wanted)
    kept = sum(path.stat().st_blocks * 512 for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert kept <= 1 << 17


def test_a_full_disk(server, tmp_path, wanted):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        source = remote(server, disk / "cache")
        with pytest.warns(stoker.CacheWarning, match=r"disk error.*No space left.*Free some space"):
            for _ in range(2):
                same(taken(make(source)), wanted)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_cache_that_is_damaged(server, tmp_path, wanted):
    source = remote(server, tmp_path / "cache")
    same(taken(make(source)), wanted)
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file() and path.stat().st_size > 4096:
            data = bytearray(path.read_bytes())
            data[2000::3000] = bytes(value ^ 1 for value in data[2000::3000])
            path.write_bytes(data)
    same(taken(make(source)), wanted)
    same(taken(make(remote(server, tmp_path / "cache"))), wanted)


def test_a_cache_that_is_removed(server, tmp_path, wanted):
    source = remote(server, tmp_path / "cache")
    for path in sorted((tmp_path / "cache").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    with pytest.warns(stoker.CacheWarning, match="was removed while it was in use"):
        same(taken(make(source)), wanted)


def test_processes_that_are_killed_while_they_cache(server, tmp_path, wanted):
    """kill -9 at any time leaves a correct cache."""
    program = (
        "import stoker, sys\n"
        "source = stoker.tar(sys.argv[1], cache=sys.argv[2], cache_bytes=1 << 26)\n"
        "print('open', flush=True)\n"
        "for batch in stoker.Loader(source, [stoker.RandomResizedCrop(48)], batch_size=8, shuffle=True,\n"
        "                           seed=int(sys.argv[3])):\n"
        "    print('batch', flush=True)\n"
    )
    url = f"{server.url}/{{0..4}}.tar"
    for batches in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", program, url, str(tmp_path / "cache"), str(batches)],
            stdout=subprocess.PIPE,
        )
        for _ in range(1 + batches):
            assert process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    same(taken(make(remote(server, tmp_path / "cache"))), wanted)
    source = remote(server, tmp_path / "cache")
    server.tried.clear()
    same(taken(make(source)), wanted)
    assert not server.tried


def test_it_is_in_the_spec(server, tmp_path, wanted):
    import pickle

    source = remote(server, tmp_path / "cache")
    assert source._spec["cache"] == str(tmp_path / "cache")
    assert source._native.fingerprint == stoker.tar(f"{server.url}/{{0..4}}.tar")._native.fingerprint
    same(taken(make(pickle.loads(pickle.dumps(source)))), wanted)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cache": "/tmp/x"}, "no cache_bytes"),
        ({"cache_bytes": 1 << 20}, "no cache"),
        ({"cache": "/tmp/x", "cache_bytes": 5}, "cache_bytes"),
        ({"cache": "s3://bucket/x", "cache_bytes": 1 << 20}, "not a URL"),
    ],
)
def test_wrong_options(server, options, words):
    with pytest.raises(ValueError, match=words):
        stoker.tar(f"{server.url}/0.tar", **options)


def test_a_folder_that_cannot_be_made(server):
    with pytest.raises((OSError, ValueError), match="/proc/none"):
        stoker.tar(f"{server.url}/0.tar", cache="/proc/none", cache_bytes=1 << 20)
