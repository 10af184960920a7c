"""Sources are pickled as what they were made of, and loaders as their options."""

import copy
import io
import json
import multiprocessing
import pathlib
import pickle
import shutil
import tarfile
import zlib

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
import tfrecords  # noqa: E402
from annotated import write_voc  # noqa: E402

SMALL = [stoker.RandomResizedCrop(8)]


class Photos:
    """What a program gives to `from_dataset`."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.paths[i], i % 2


def inverted(batch):
    """What a program gives to `Map`."""
    batch["image"][...] = 255 - batch["image"]


@pytest.fixture(scope="module")
def paths(made):
    folder = stoker.image_folder(made)
    return [folder.path(i) for i in range(12)]


@pytest.fixture(scope="module")
def sources(made, paths, tmp_path_factory):
    """A source of each kind, and what can be made of one."""
    folder = tmp_path_factory.mktemp("sources")
    encoded = [pathlib.Path(path).read_bytes() for path in paths]
    with tarfile.open(folder / "a.tar", "w") as archive:
        for i, image in enumerate(encoded):
            member = tarfile.TarInfo(f"{i:02d}.jpg")
            member.size = len(image)
            archive.addfile(member, io.BytesIO(image))
    records = [tfrecords.record(tfrecords.example({"image/encoded": image})) for image in encoded]
    (folder / "a.tfrecord").write_bytes(b"".join(records))
    (folder / "a.jsonl").write_text("".join(json.dumps({"path": path}) + "\n" for path in paths))
    np.arange(12, dtype="uint8").tofile(folder / "a.bin")
    whole = stoker.image_folder(made)
    relative = [str(pathlib.Path(path).relative_to(made)) for path in paths]
    listed = stoker.files(
        [*relative[:11], paths[11]],
        np.arange(12) % 3,
        columns={"text": [f"ä{i}" for i in range(12)], "box": np.ones((12, 2), "float32")},
        root=made,
        class_names=["a", b"\xff", "ä"],
    )
    rare = whole.filter(labels=[1])
    annotations = [
        {"id": i, "image_id": i % 5, "category_id": 1, "bbox": [i, 2, 9, 7], "area": 63, "iscrowd": 0}
        for i in range(14)
    ]
    listed_images = [{"id": i, "file_name": path} for i, path in enumerate(relative)]
    document = {
        "images": listed_images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}],
    }
    (folder / "coco.json").write_text(json.dumps(document))
    for i, path in enumerate(paths):
        for name in ("images", "labels"):
            (folder / "yolo" / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / "yolo" / "images" / f"{i}.jpg")
        (folder / "yolo" / "labels" / f"{i}.txt").write_text("0 0.5 0.5 0.25 0.5\n" * (i % 3))
    (folder / "yolo" / "data.yaml").write_text("path: .\ntrain: images\nnames: [cat]\n")
    write_voc(folder / "VOC2012", [pathlib.Path(path) for path in paths])
    objects = {
        "boxes": stoker.Boxes([[[1, 2, 3, 4]] * (i % 3) for i in range(12)]),
        "labels": stoker.PerObject([np.arange(i % 3) for i in range(12)]),
    }
    made_of = {
        "image_folder": whole,
        "tar": stoker.tar(folder / "a.tar", label=None),
        "tfrecord": stoker.tfrecord(folder / "a.tfrecord", label=None),
        "manifest": stoker.manifest(folder / "a.jsonl"),
        "records": stoker.records(folder / "a.bin", "uint8", (3,)),
        "files": listed,
        "files without labels": stoker.files(paths),
        "files with objects": stoker.files(paths, columns=objects),
        "coco": stoker.coco(folder / "coco.json", made),
        "yolo": stoker.yolo(folder / "yolo" / "data.yaml"),
        "voc": stoker.voc(folder),
        "from_dataset": stoker.from_dataset(Photos(paths), threads=2, class_names=["x", "y"]),
        "subset": listed.subset([3, 3, 1]),
        "split": whole.split(0.25, seed=3)[1],
        "filter by labels": rare,
        "filter by mask": whole.filter(np.arange(len(whole)) % 7 == 0),
        "subset of a subset": rare.subset([5, 2]).filter(labels=[1]),
        "weighted": rare.weighted(np.arange(len(rare)), samples=20),
        "balanced": whole.balanced(replacement=True, samples=10),
        "combine": stoker.combine([rare, whole.subset([1])]),
        "combine with weights": stoker.combine([rare, whole], [0.25, 0.75], samples=24),
        "repeated": rare.repeated(3),
        "repeated and weighted": whole.weighted(np.ones(len(whole))).repeated(2),
    }
    assert set(made_of) == set(KINDS)
    return made_of


KINDS = [
    "image_folder", "tar", "tfrecord", "manifest", "records", "files", "files without labels",
    "files with objects", "coco", "yolo", "voc",
    "from_dataset", "subset", "split", "filter by labels", "filter by mask", "subset of a subset",
    "weighted", "balanced", "combine", "combine with weights", "repeated", "repeated and weighted",
]  # fmt: skip


def loader_of(source, **options):
    transforms = [] if source._columns.get("image") is not None else SMALL
    return stoker.Loader(source, transforms, batch_size=5, shuffle=True, seed=3, **options)


def taken(loader):
    """The columns of each batch, as bytes or lists of text."""
    batches = [batch if isinstance(batch, tuple) else (batch,) for batch in loader]
    return [[in_bytes(c) for c in batch] for batch in batches]


def in_bytes(column):
    if isinstance(column, stoker.Ragged):
        return column.values.tobytes(), column.offsets.tobytes()
    return column if isinstance(column, list) else column.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_is_pickled_as_what_it_was_made_of(sources, kind):
    source = sources[kind]
    again = pickle.loads(pickle.dumps(source))
    assert again is not source and type(again) is type(source)
    assert (repr(again), again.classes, len(again)) == (repr(source), source.classes, len(source))
    loader = loader_of(again)
    assert taken(loader) == taken(loader_of(source))
    loader_of(source).load_state_dict(loader.state_dict())  # the fingerprints are equal
    assert copy.deepcopy(source) is copy.copy(source) is source
    assert taken(loader_of(pickle.loads(pickle.dumps(again)))) == taken(loader_of(source))


def test_the_working_folder_and_the_arrays_may_change(made, paths, monkeypatch):
    monkeypatch.chdir(made)
    relative = [str(pathlib.Path(path).relative_to(made)) for path in paths]
    weights = np.ones(12)
    source = stoker.files(relative).weighted(weights)
    weights[:] = 0
    monkeypatch.chdir("/")
    assert taken(loader_of(pickle.loads(pickle.dumps(source)))) == taken(loader_of(source))


def test_a_subset_is_pickled_without_the_subsets_that_it_was_made_of():
    numbers = stoker.from_dataset(Photos(["none"] * 100_000))
    chosen = numbers.subset(np.arange(90_000)).subset([7, 70_000])
    assert len(pickle.dumps(chosen)) < len(pickle.dumps(numbers)) + 1000


def test_what_was_chosen_by_number_refuses_other_samples(paths, tmp_path):
    (tmp_path / "a").mkdir()
    for i, path in enumerate(paths[:4]):
        shutil.copy(path, tmp_path / "a" / f"{i}.jpg")
    source = stoker.image_folder(tmp_path)
    pickled = [pickle.dumps(made) for made in (source.subset([1, 2]), source.weighted([1, 2, 3, 4]))]
    for each in pickled:
        pickle.loads(each)
    (tmp_path / "a" / "0.jpg").rename(tmp_path / "a" / "9.jpg")
    for each in pickled:
        with pytest.raises(stoker.FailedPreconditionError, match="other samples"):
            pickle.loads(each)


def test_arrays_are_not_pickled_along(tmp_path):
    """Nor what is made of them; a deep copy has the same arrays."""
    source = stoker.arrays(np.arange(5)).subset([1, 2])
    with pytest.raises(TypeError, match=r"call stoker\.arrays in each process"):
        pickle.dumps(source)
    assert copy.deepcopy(source) is source


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_loader_is_pickled_as_its_options_without_its_place(sources, copied, tmp_path):
    runtime = stoker.Runtime(threads=2, memory_budget=2**28, reader="pread")  # "auto" measures again
    options = {
        "dtype": np.float32, "layout": "NCHW", "drop_remainder": True, "rank": 1, "world": 2,
        "remainder": "pad", "on_bad": {"truncated": "drop"}, "bad_samples_file": tmp_path / "bad.jsonl",
        "depth": 3, "lent_batches": 7, "runtime": runtime, "sample_ids": True, "paths": True,
    }  # fmt: skip
    for given, transforms, views in (
        (options, [*SMALL, stoker.MixUp(), stoker.Map(inverted)], ()),
        ({"cache": f"dir:{tmp_path}/cache:2MB"}, (), [SMALL, [stoker.Resize((9, 9))]]),
    ):
        loader = stoker.Loader(sources["image_folder"], transforms, views=views, batch_size=6, **given)
        next(iter(loader))
        again = copied(loader)
        assert repr(again) == repr(loader) and again.state_dict()["batch"] == 0
        assert json.loads(again._spec) == json.loads(loader._spec)
        assert taken(again) == taken(loader.epoch(0))
        if copied in (copy.copy, copy.deepcopy):
            assert again._runtime is loader._runtime
        for device in ("cpu", ["host", "host"]):
            assert repr(copied(loader.to_device(device, buffers=3))) == repr(loader.to_device(device))
        again.load_state_dict(loader.state_dict())
        assert taken(again) == taken(loader.epoch(0))[1:]


def test_loaders_share_a_runtime_after_pickling_if_they_did_before(sources):
    runtime = stoker.Runtime(threads=1, stall_seconds=0, reader="pread")
    loaders = [loader_of(sources["files"], runtime=runtime) for _ in range(2)]
    one, other = pickle.loads(pickle.dumps(loaders))
    assert one._runtime is other._runtime is not runtime and repr(one._runtime) == repr(runtime)


def checksums(loaders, results):
    """Runs in another process."""
    results.put([zlib.crc32(str(taken(loader)).encode()) for loader in loaders])


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_another_process_takes_loaders_as_arguments(sources, start):
    loaders = [loader_of(sources[kind]) for kind in ("files", "combine with weights", "from_dataset")]
    context = multiprocessing.get_context(start)
    results = context.Queue()
    process = context.Process(target=checksums, args=(loaders, results))
    process.start()
    found = results.get(timeout=120)
    process.join()
    assert found == [zlib.crc32(str(taken(loader)).encode()) for loader in loaders]
