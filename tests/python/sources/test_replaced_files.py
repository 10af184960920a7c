"""Files that are replaced by others of their size and time: nothing of the old ones is seen again."""

import io
import os
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
image = pytest.importorskip("PIL.Image")
import object_server  # noqa: E402
import tfrecords  # noqa: E402

FIRST, SECOND = [(0, 0), (1, 1), (2, 0), (3, 1)], [(9, 1), (8, 0), (7, 1), (6, 0)]  # (number, label)


def photo(number):
    """A JPEG whose red value says which one it is, in as many bytes as all others."""
    content = io.BytesIO()
    image.new("RGB", (64, 64), (20 * number, 100, 100)).save(content, "jpeg")
    return content.getvalue().ljust(4000, b"\0")


def put(path, content):
    """Renames a file with a constant time to `path`."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(".new")
    new.write_bytes(content)
    os.utime(new, (1000, 1000))
    new.rename(path)


def write_tar(folder, samples):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i, (number, label) in enumerate(samples):
            for name, data in (
                (f"{i}.jpg", photo(number)),
                (f"{i}.cls", b"%d" % label),
                (f"{i}.txt", b"%d" % label),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    put(folder / "x.tar", content.getvalue())


def write_tfrecord(folder, samples):
    features = [{"image/encoded": photo(number), "image/class/label": label} for number, label in samples]
    content = b"".join(tfrecords.record(tfrecords.example(one)) for one in features)
    put(folder / "x.tfrecord", content)


def write_folder(folder, samples):
    for label in (0, 1):
        numbers = [number for number, of in samples if of == label]
        for i, number in enumerate(numbers):
            put(folder / f"{label}/{i}.jpg", photo(number))
        os.utime(folder / f"{label}", (1000, 1000))


def write_indexed(folder, samples):
    write_folder(folder, samples)
    if samples is FIRST:
        subprocess.run([sys.executable, "-m", "stoker", "index", folder], check=True, capture_output=True)


def write_manifest(folder, samples):
    for i, (number, _) in enumerate(samples):
        put(folder / f"images/{i}.jpg", photo(number))
    rows = [f"images/{i}.jpg,{label}" for i, (_, label) in enumerate(samples)]
    put(folder / "x.csv", "\n".join(["path,label", *rows]).encode())


KINDS = {
    "tar": (write_tar, lambda folder: stoker.tar(f"{folder}/x.tar")),
    "texts": (write_tar, lambda folder: stoker.tar(f"{folder}/x.tar", label=None, columns={"text": ".txt"})),
    "tfrecord": (write_tfrecord, lambda folder: stoker.tfrecord(f"{folder}/x.tfrecord")),
    "folder": (write_folder, stoker.image_folder),
    "indexed": (write_indexed, stoker.image_folder),
    "manifest": (write_manifest, lambda folder: stoker.manifest(folder / "x.csv")),
}


def loader_of(source, **options):
    return stoker.Loader(source, [stoker.RandomResizedCrop(8)], batch_size=4, **options)


def in_tensorflow(source, _):
    pytest.importorskip("tensorflow")
    return [(images.numpy(), labels.numpy()) for images, labels in loader_of(source).as_tf_dataset()]


def in_torch(source, _):
    pytest.importorskip("torch")
    from stoker.torch import DataLoader

    batches = DataLoader(source, [stoker.RandomResizedCrop(8)], batch_size=4)
    return [(images.numpy(), labels) for images, labels in batches]


WAYS = {
    "loader": lambda source, _: list(loader_of(source)),
    "ram": lambda source, _: list(loader_of(source, cache="ram:4MiB")),
    "dir": lambda source, folder: list(loader_of(source, cache=f"dir:{folder}:4MiB")),
    "tensorflow": in_tensorflow,
    "torch": in_torch,
}


def numbered(batches):
    """The samples that come, as (number, label)."""
    samples = []
    for images, labels in batches:
        numbers = np.round(np.asarray(images)[:, 4, 4, 0] / 20).astype(int)
        samples += zip(numbers.tolist(), [int(label) for label in labels])
    return sorted(samples)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_replaced_files_is_seen(kind, way, tmp_path):
    if way in ("ram", "dir") and kind in ("tar", "texts", "tfrecord"):
        pytest.skip("is not cached")
    if way == "tensorflow" and kind == "texts":
        pytest.skip("its columns are lists")
    folder = tmp_path / "data"
    folder.mkdir()
    for samples in (FIRST, SECOND, FIRST, SECOND):
        KINDS[kind][0](folder, samples)
        time.sleep(0.03)  # so that indexes and caches are kept
        for _ in range(2):
            batches = WAYS[way](KINDS[kind][1](folder), tmp_path / "cache")
            assert numbered(batches) == sorted(samples)


def test_an_object_is_known_by_its_content_where_its_etag_is_a_time(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with object_server.ObjectServer(folder) as server:
        server.etag = "nginx"
        for samples in (FIRST, SECOND, FIRST):
            write_tar(folder, samples)
            for _ in range(2):
                source = stoker.tar(f"{server.url}/x.tar", cache=tmp_path / "kept", cache_bytes=1 << 26)
                assert numbered(loader_of(source)) == sorted(samples)


def test_a_pack_goes_on_with_the_same_photographs_only(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    pack = [sys.executable, "-m", "stoker", "pack", str(folder), str(tmp_path / "packed")]
    write_folder(folder, FIRST)
    time.sleep(0.03)
    for _ in range(2):
        subprocess.run(pack, check=True, capture_output=True)
    put(folder / "0/0.jpg", photo(5))
    refused = subprocess.run(pack, capture_output=True, text=True)
    assert refused.returncode != 0 and "another sample under this path" in refused.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_reading_changes_nothing_next_to_the_data(kind, tmp_path):
    write, opened = KINDS[kind]
    write(tmp_path, FIRST)
    time.sleep(0.03)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    list(loader_of(opened(tmp_path)))
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_old_index_files_are_left_out_of_lists(tmp_path):
    write_tar(tmp_path, FIRST)
    write_tfrecord(tmp_path, FIRST)
    for name in ("x.tar.stoker-index", "x.tar.txt.stoker-index", "x.tfrecord.stoker-index"):
        (tmp_path / name).write_bytes(b"old")
    for opened, pattern in ((stoker.tar, "x.tar*"), (stoker.tfrecord, "x.tfr*")):
        assert len(opened(f"{tmp_path}/{pattern}")) == 4
        assert len(opened(sorted(map(str, tmp_path.glob(pattern))))) == 4
