"""Text members of tars as columns, and tars whose labels are left out."""

import json
import pickle
import subprocess
import tarfile
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from test_tar import archive, make, members_of  # noqa: E402

COLUMNS = {"caption": ".txt", "meta": ".json", "raw": "features.bin"}


def caption(i):
    return f"ein Käse, Nummer {i}" if i % 3 else ""


def beside(i):
    """Returns the texts of a sample by extension, as they are in its archive."""
    rows = np.random.default_rng(i).bytes(i)
    return {"txt": caption(i).encode(), "json": json.dumps({"i": i}).encode(), "features.bin": rows}


@pytest.fixture(scope="module")
def captioned(made, tmp_path_factory):
    """The photographs of `made` in three archives, with texts and labels that are names."""
    folder = tmp_path_factory.mktemp("captioned")
    samples = []
    for i, sample in enumerate(members_of(made)):
        (key, _), image, _ = sample
        key = key.split(".")[0]
        texts = [(f"{key}.{name}", data) for name, data in beside(i).items()]
        samples.append([image, *texts, (f"{key}.cls", b"cat" if i % 2 else b"dog")])
    for shard in range(3):
        part = samples[shard * 20 : (shard + 1) * 20]
        archive(folder / f"{shard}.tar", [member for sample in part for member in sample])
    return folder


def test_columns_come_with_their_samples(captioned, made):
    source = stoker.tar(f"{captioned}/*.tar", label=None, columns=COLUMNS)
    loader = make(source)
    for _ in range(2):
        iterator = iter(loader)
        for batch in iterator:
            assert batch.keys() == ("image", "caption", "meta", "raw")
            for row, i in enumerate(iterator.sample_ids.tolist()):
                assert batch["caption"][row] == caption(i)
                assert json.loads(batch["meta"][row]) == {"i": i}
                assert batch["raw"][row] == beside(i)["features.bin"]
    images = taken(make(stoker.tar(f"{captioned}/*.tar", label=None)))
    folder = taken(make(stoker.image_folder(made)))
    same(images, [batch[0] for batch in folder])


def test_a_source_with_columns_tells_of_itself(captioned):
    pattern = f"{captioned}/*.tar"
    source = stoker.tar(pattern, label=None, columns=COLUMNS)
    assert not source.has_labels and source._beside(4) == [caption(4), '{"i": 4}', beside(4)["features.bin"]]
    assert repr(source) == f"stoker.tar({pattern!r}, label=None, columns={COLUMNS!r})"
    again = pickle.loads(pickle.dumps(source))
    assert again._native.fingerprint == source._native.fingerprint and repr(again) == repr(source)
    assert source._spec["label"] == "" and source._spec["columns"].startswith("caption .txt\nmeta")
    for other in ({}, {"columns": {"caption": "txt"}}, {"columns": {**COLUMNS, "raw": "cls"}}):
        assert stoker.tar(pattern, label=None, **other)._native.fingerprint != source._native.fingerprint
    chosen = source.subset([50, 3])
    assert chosen._beside(0)[0] == caption(50)
    loader = make(chosen, batch_size=2, shuffle=False)
    assert next(iter(loader))["caption"] == [caption(50), caption(3)]


def test_columns_of_webdataset(made, tmp_path):
    """WebDataset writes texts; it and stoker read the same back."""
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed here")
    with wds.ShardWriter(f"{tmp_path}/%06d.tar", maxcount=25, verbose=0) as writer:
        for i, sample in enumerate(members_of(made)):
            texts = {"txt": caption(i), "json": {"i": i, "text": "ü"}, "id": i}
            writer.write({"__key__": f"{i:06d}", "jpg": sample[1][1], **texts})
    urls = f"{tmp_path}/{{000000..000002}}.tar"
    source = stoker.tar(urls, columns={"caption": "txt", "meta": "json", "id": "id"})
    for i, sample in enumerate(wds.WebDataset(urls, shardshuffle=False).decode()):
        text, meta, number = source._beside(i)
        assert (text, json.loads(meta), int(number)) == (sample["txt"], sample["json"], sample["id"])


def test_labels_that_are_text(captioned, tmp_path):
    with pytest.raises(stoker.InvalidArgumentError, match=r"\.cls' is not an integer") as error:
        stoker.tar(captioned / "0.tar")
    with tarfile.open(captioned / "0.tar") as tar:
        first = next(member for member in tar if member.name.endswith(".cls"))
    assert (error.value.file, error.value.offset) == (str(captioned / "0.tar"), first.offset_data)
    assert "label=None" in str(error.value)
    named = stoker.tar(captioned / "0.tar", label=None, columns={"class": ".cls"})
    assert [named._beside(i)[0] for i in range(3)] == ["dog", "cat", "dog"]
    one = archive(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.cls", b"7"), ("2.jpg", b"y")])
    assert len(stoker.tar(one, label=None)) == 2


def test_columns_that_are_wrong(tmp_path):
    one = [("1.jpg", b"x"), ("1.txt", b"text")]
    path = tmp_path / "a.tar"

    def refused(words, members):
        archive(path, members)
        with pytest.raises(stoker.InvalidArgumentError, match=words) as error:
            stoker.tar(path, columns={"caption": ".txt"})
        assert error.value.file == str(path)
        return error.value.offset

    assert refused("'2' has no member with the extension 'txt'", [*one, ("2.jpg", b"y")]) == 2560
    assert refused(r"'2\.txt' is not UTF-8", [*one, ("2.txt", b"\xe4"), ("2.jpg", b"y")]) == 2560
    assert refused(r"'1\.txt' has 1048577 bytes", [("1.txt", bytes(2**20 + 1)), one[0]]) == 512
    assert refused("two members", [*one, ("1.TXT", b"x")]) == 2560
    archive(path, [("1.txt", b"x"), ("2.txt", b"y"), ("2.jpg", b"z")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = stoker.tar(path, columns={"caption": ".txt"})
    assert source._beside(0) == ["y"]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"label": 5}, TypeError, "label must be"),
        ({"label": ""}, ValueError, "label is empty"),
        ({"label": ".txt"}, ValueError, r"label is '\.txt'"),
        ({"columns": [".txt"]}, TypeError, "extensions by name"),
        ({"columns": {"a": 5}}, TypeError, "not 5 by 'a'"),
        ({"columns": {5: ".txt"}}, TypeError, "not '.txt' by 5"),
        ({"columns": {"a\nb": ".txt"}}, ValueError, "not one line"),
        ({"columns": {"a\ud800": ".txt"}}, ValueError, "not one line of Unicode"),
        ({"columns": {"a": ""}}, ValueError, "must be an extension"),
        (
            {"columns": {"a": "."}},
            ValueError,
            "the column 'a' must have one extension, not '.'.*caption .txt",
        ),
        ({"columns": {"a": "txt;json"}}, ValueError, "must be an extension"),
        ({"columns": {"": "txt"}}, ValueError, "the name ''"),
        ({"columns": {"image": "txt"}}, ValueError, "the name 'image'"),
        ({"columns": {"a": "txt", "b": ".TXT"}}, ValueError, "two columns"),
    ],
)
def test_wrong_columns(options, kind, words):
    with pytest.raises(kind, match=words):
        stoker.tar("/a.tar", **options)


def test_the_command_has_the_same_digest(command, captioned):
    def bench(data, *options):
        run = [command, "bench", data, "--size", "64", "--batch-size", "8", "--digest", "--json"]
        done = subprocess.run([*run, *options], capture_output=True, check=True)
        return json.loads(done.stdout)["digest"]

    pattern = f"{captioned}/*.tar"
    option = "--source-option"
    without = bench(pattern, option, "label=")
    texts = ("columns=caption txt", "columns=m json")
    assert bench(pattern, option, "label=", option, texts[0], option, texts[1]) != without
    explained = [command, "explain", pattern, option, "label=", "--images", "5", "--json"]
    done = subprocess.run(explained, capture_output=True, check=True)
    assert json.loads(done.stdout)["refused"] == 0
    for wrong in ("shards=x", "label", "colums=x y"):
        done = subprocess.run([command, "bench", pattern, option, wrong], capture_output=True, check=False)
        assert done.returncode == 2
        assert b"must be NAME=VALUE" in done.stderr and b"image label columns" in done.stderr
    given = [command, "bench", pattern, option, "label=", option, "columns=.txt"]
    done = subprocess.run(given, capture_output=True, check=False)
    assert (
        done.returncode == 2
        and b"column '.txt' must have one extension, and has none. Give a name" in done.stderr
    )
    done = subprocess.run([command, "bench", pattern], capture_output=True, check=False)
    assert done.returncode == 1 and b"is not an integer" in done.stderr


def test_names_may_have_spaces(captioned):
    source = stoker.tar(f"{captioned}/*.tar", label=None, columns={"the caption": ".txt"})
    assert make(source)._elements is not None
    assert next(iter(make(source)))["the caption"]
    assert repr(pickle.loads(pickle.dumps(source))) == repr(source)


def test_two_loaders_give_pairs_of_images(made, tmp_path):
    """A left and a right image of each sample, from one archive: the same samples, crops and flips."""
    members = []
    for i, sample in enumerate(members_of(made)):
        image = sample[1][1]
        members += [(f"{i:04d}.left.jpg", image), (f"{i:04d}.right.jpg", image)]
    path = archive(tmp_path / "pairs.tar", members)
    left, right = (make(stoker.tar(path, image=f"{side}.jpg")) for side in ("left", "right"))
    pairs = 0
    for _ in range(2):
        of_left, of_right = iter(left), iter(right)
        for lefts, rights in zip(of_left, of_right):
            assert of_left.sample_ids.tolist() == of_right.sample_ids.tolist()
            np.testing.assert_array_equal(lefts, rights)
            pairs += len(lefts)
    assert pairs == 2 * 60
