"""Samples that cannot be used: fail, substitute or drop; their counts and their list. NumPy only."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from object_server import ObjectServer  # noqa: E402
from tfrecords import example, record  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(24), stoker.RandomHorizontalFlip()]
BAD = {5: "undecodable", 20: "truncated", 33: "vanished", 41: "truncated"}


def make(source, **options):
    return stoker.Loader(source, TRAIN, **{"batch_size": 8, "seed": 3, "shuffle": True, **options})


@pytest.fixture
def folder(made, tmp_path):
    """Sixty photographs, of which four are damaged after they were listed."""
    shutil.copytree(made, tmp_path / "photos")
    return tmp_path / "photos"


def listed_and_damaged(folder):
    source = stoker.image_folder(folder)
    paths = [pathlib.Path(source.path(i)) for i in range(len(source))]
    paths[5].write_bytes(b"no photograph")
    paths[20].write_bytes(paths[20].read_bytes()[:600])
    paths[33].unlink()
    paths[41].write_bytes(b"")
    return source


def ids_of(loader):
    iterator = iter(loader)
    ids = []
    for _ in iterator:
        ids += iterator.sample_ids.tolist()
    return ids


def test_the_advice_on_a_missing_file_is_that_of_a_dataset(folder):
    source = stoker.image_folder(folder)
    pathlib.Path(source.path(0)).unlink()
    with pytest.raises(FileNotFoundError, match="restore the file, or open the dataset again without it"):
        list(make(source))


def test_substitutes_have_the_draws_of_their_position(folder):
    source = listed_and_damaged(folder)
    compose = stoker.Compose(TRAIN)
    loader = make(source, shuffle=False, on_bad="substitute", max_bad_fraction=1)
    position = 0
    iterator = iter(loader.epoch(1))
    for images, labels in iterator:
        for image, label, sample in zip(images, labels, iterator.sample_ids):
            assert (sample == position) == (position not in BAD) and int(sample) not in BAD
            encoded = pathlib.Path(source.path(int(sample))).read_bytes()
            wanted = compose(encoded, seed=3, epoch=1, position=position)
            np.testing.assert_array_equal(image, wanted)
            assert label == source.labels[int(sample)]
            position += 1
    assert position == 60
    assert loader.stats()["substituted"] == 4 and loader.stats()["dropped"] == 0
    assert sum(loader.stats()["bad"].values()) >= 4


def test_dropped_rows_are_missing_and_the_others_in_order(folder):
    order = ids_of(make(stoker.image_folder(folder)).epoch(2))
    loader = make(listed_and_damaged(folder), on_bad="drop")
    assert ids_of(loader.epoch(2)) == [sample for sample in order if sample not in BAD]
    stats = loader.stats()
    assert stats["dropped"] == 4 and stats["bad"]["truncated"] == 2 and stats["bad"]["vanished"] == 1
    assert 'class="truncated"} 2' in loader.prometheus()


def test_the_list_names_each(folder, tmp_path):
    source = listed_and_damaged(folder)
    loader = make(source, on_bad="drop", bad_samples_file=tmp_path / "bad.jsonl")
    taken(loader.epoch(0))
    lines = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert {line["id"]: line["class"] for line in lines} == BAD
    for line in lines:
        assert list(line) == ["path", "offset", "id", "epoch", "batch", "start", "class", "cause", "action"]
        assert line["path"] == source.path(line["id"]) and line["epoch"] == 0 and line["action"] == "drop"


def test_other_ranks_go_on_as_one_would(folder, tmp_path):
    """Substitutes are those of their positions, and the list has the batches' full names."""
    source = listed_and_damaged(folder)
    options = {"on_bad": "substitute", "max_bad_fraction": 1}
    alone = make(source, **options)
    order = ids_of(alone.epoch(0))
    next(iter(alone))
    listed = set()
    for rank in range(3):
        bad = tmp_path / f"{rank}.jsonl"
        loader = make(source, **options, batch_size=5, rank=rank, world=3, bad_samples_file=bad)
        loader.load_state_dict(alone.state_dict())
        assert ids_of(loader) == order[8 + rank :: 3]
        for line in bad.read_text().splitlines():
            found = json.loads(line)
            assert (found["epoch"], found["start"]) == (0, 8)
            listed.add(found["id"])
    assert listed and listed <= set(BAD)


def test_actions_by_class(folder):
    source = listed_and_damaged(folder)
    loader = make(source, on_bad={"vanished": "drop", "truncated": "substitute"})
    errors = []
    iterator = iter(loader.epoch(0))
    while True:
        try:
            next(iterator)
        except StopIteration:
            break
        except stoker.DataLossError as error:
            errors.append(error.file)
    assert errors == [source.path(5)]
    assert "on_bad='vanished=drop,truncated=substitute'" in repr(loader)


@pytest.mark.parametrize(
    ("options", "kind", "word"),
    [
        ({"on_bad": "skip"}, ValueError, "substitute"),
        ({"on_bad": {"broken": "drop"}}, ValueError, "undecodable"),
        ({"on_bad": {"truncated": "skip"}}, ValueError, "Give truncated one of fail"),
        ({"on_bad": 3}, TypeError, "on_bad"),
        ({"bad_samples_file": {"a": "b"}}, TypeError, "bad_samples_file"),
        ({"bad_samples_file": "\udcff"}, ValueError, "UTF-8"),
        ({"max_bad_fraction": 1.5}, ValueError, "max_bad_fraction"),
        ({"bad_samples_file": 3}, TypeError, "bad_samples_file"),
        ({"bad_samples_file": "none/bad.jsonl"}, FileNotFoundError, "none/bad.jsonl"),
    ],
)
def test_wrong_options(made, options, kind, word):
    with pytest.raises(kind, match=word):
        make(stoker.image_folder(made), **options)


def test_a_run_ends_when_there_are_too_many(folder):
    loader = make(listed_and_damaged(folder), on_bad="substitute", max_bad_fraction=0.05)
    with pytest.raises(
        stoker.DataLossError,
        match=r"more than the share of 0\.05 that may be .*first: .*or raise max_bad_fraction",
    ) as raised:
        for _ in range(20):
            taken(loader)
    assert "stoker verify" in str(raised.value)
    with pytest.raises(stoker.DataLossError, match="max_bad_fraction"):
        next(iter(loader))


def test_resuming_finds_the_same_substitutes(folder):
    source = listed_and_damaged(folder)
    options = {"on_bad": "substitute", "max_bad_fraction": 1}
    whole = taken(make(source, **options).epoch(0))
    for batches in (1, 3, 6):
        loader = make(source, **options)
        iterator = iter(loader)
        begun = [tuple(column.copy() for column in next(iterator)) for _ in range(batches)]
        resumed = make(source, **options)
        resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        same([*begun, *taken(resumed)], whole)
    with pytest.raises(stoker.FailedPreconditionError, match="on_bad"):
        make(source).load_state_dict(loader.state_dict())


def test_a_policy_has_one_form(made):
    source = stoker.image_folder(made)
    state = make(source, on_bad={"vanished": "drop", "truncated": "substitute"}).state_dict()
    same_policy = {"unreadable": "fail", "truncated": "substitute", "vanished": "drop"}
    make(source, on_bad=same_policy).load_state_dict(state)
    assert make(source, on_bad={}).state_dict() == make(source).state_dict()
    assert "on_bad" not in repr(make(source, on_bad={"truncated": "fail"}))


@pytest.mark.parametrize("world", [1, 3, 8])
def test_substitutes_do_not_depend_on_the_world(folder, world):
    source = listed_and_damaged(folder)
    options = {"on_bad": "substitute", "max_bad_fraction": 1}
    whole = ids_of(make(source, **options).epoch(1))
    got = {}
    for rank in range(world):
        ids = ids_of(make(source, rank=rank, world=world, **options).epoch(1))
        got |= {rank + i * world: sample for i, sample in enumerate(ids)}
    assert [got[position] for position in range(60)] == whole


def test_no_line_shows_a_signature(folder, tmp_path):
    source = listed_and_damaged(folder)
    with ObjectServer(folder) as server:
        urls = [
            f"{server.url}/{pathlib.Path(source.path(i)).relative_to(folder)}?signature=secret"
            for i in range(60)
        ]
        loader = make(stoker.files(urls), on_bad="drop", bad_samples_file=tmp_path / "bad.jsonl")
        taken(loader.epoch(0))
        text = (tmp_path / "bad.jsonl").read_text()
        assert text.count("\n") == 4 and "?…" in text and "secret" not in text


def test_a_server_that_refuses_all_is_no_bad_sample(folder):
    source = stoker.image_folder(folder)
    with ObjectServer(folder) as server:
        urls = [f"{server.url}/{pathlib.Path(source.path(i)).relative_to(folder)}" for i in range(60)]
        loader = make(stoker.files(urls), on_bad="drop", max_bad_fraction=1)
        server.fault = lambda path, first, tried: "403"
        with pytest.raises(stoker.PermissionDeniedError):
            taken(loader.epoch(0))
    assert loader.stats()["dropped"] == 0


def test_a_forbidden_object_is_handled_by_name(folder):
    """S3 answers 403 for a missing key, and for every key where access is denied."""
    source = stoker.image_folder(folder)
    with ObjectServer(folder) as server:
        urls = [f"{server.url}/{pathlib.Path(source.path(i)).relative_to(folder)}" for i in range(60)]
        server.fault = lambda path, first, tried: "403" if urls[7].endswith(path) else None
        loader = make(stoker.files(urls), on_bad={"forbidden": "drop"}, max_bad_fraction=1)
        assert sum(len(batch) for batch in loader.epoch(0)) == 59
        assert loader.stats()["bad"]["forbidden"] == loader.stats()["dropped"] == 1
        with pytest.raises(stoker.PermissionDeniedError, match=r"or there is no such object.*forbidden=drop"):
            taken(make(stoker.files(urls), on_bad="drop", max_bad_fraction=1).epoch(0))


def test_a_source_that_gives_nothing_any_more_ends_the_run(made):
    source = stoker.image_folder(made)

    class Gone:
        def __len__(self):
            return 800

        def __getitem__(self, i):
            if i == 0:  # it is requested when the source is made
                return source.path(0)
            raise NameError("a mistake of the program's own")

    loader = make(stoker.from_dataset(Gone()), on_bad="drop")
    with pytest.raises(stoker.DataLossError, match=r"one after the other.*a mistake"):
        taken(loader.epoch(0))
    assert loader.stats()["dropped"] < 120


@pytest.mark.parametrize("world", [3, 8])
def test_ranks_share_the_samples_that_are_left(folder, world):
    source = listed_and_damaged(folder)
    got = []
    for rank in range(world):
        got += ids_of(make(source, rank=rank, world=world, on_bad="drop").epoch(0))
    assert sorted(got) == [i for i in range(60) if i not in BAD]


def test_a_batch_without_rows_is_left_out(folder):
    loader = make(listed_and_damaged(folder), batch_size=1, shuffle=False, on_bad="drop")
    assert ids_of(loader.epoch(0)) == [i for i in range(60) if i not in BAD]


def test_records_of_tfrecord_files(made, tmp_path):
    source = stoker.image_folder(made)
    images = [pathlib.Path(source.path(i)).read_bytes() for i in range(60)]
    images[7] = b"no photograph"
    (tmp_path / "0.tfrecord").write_bytes(
        b"".join(
            record(example({"image/encoded": image, "image/class/label": i, "name": f"n{i}".encode()}))
            for i, image in enumerate(images)
        )
    )
    records = stoker.tfrecord(tmp_path / "0.tfrecord", columns=["name"])
    for images, labels, names in make(records, on_bad="drop", max_bad_fraction=1).epoch(0):
        assert len(images) == len(labels) == len(names)
        assert [f"n{label}".encode() for label in labels] == list(names)
        assert 7 not in labels


def test_objects_of_a_program_that_raise(made):
    source = stoker.image_folder(made)

    class Photos:
        def __len__(self):
            return 60

        def __getitem__(self, i):
            if i in BAD:
                raise OSError(5, f"sample {i} is on a bad disk")
            return source.path(i)

    loader = make(stoker.from_dataset(Photos()), on_bad="drop")
    assert ids_of(loader.epoch(0)) == [i for i in ids_of(make(source).epoch(0)) if i not in BAD]
    assert loader.stats()["dropped"] == 4


def test_the_command(folder, tmp_path, command):
    listed_and_damaged(folder)
    options = ["--on-bad", "substitute", "--max-bad-fraction", "1"]
    listed = ["--bad-samples-file", tmp_path / "bad.jsonl"]
    given = [command, "bench", folder, "--epochs", "1", "--digest", "--json", *options, *listed]
    runs = [subprocess.run(given, capture_output=True, text=True, timeout=120, check=False) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert len({json.loads(run.stdout)["digest"] for run in runs}) == 1
    assert json.loads(runs[0].stdout)["bad"]["classes"]["truncated"] >= 2
    lines = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert lines and len(lines) % 2 == 0 and lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    given = [command, "bench", folder, "--on-bad", "skip"]
    wrong = subprocess.run(given, capture_output=True, text=True, timeout=120, check=False)
    assert wrong.returncode == 2 and "substitute" in wrong.stderr
