"""Sample ids and paths as columns of batches, if they are requested."""

import threading

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

SMALL = [stoker.Resize((8, 8))]


def make(source, **options):
    return stoker.Loader(
        source, SMALL, batch_size=7, shuffle=True, seed=3, sample_ids=True, paths=True, **options
    )


def check(source, batch, ids):
    """Asserts that a batch has these ids, and the images and labels that belong to them."""
    assert batch.keys()[-2:] == ("sample_id", "path")
    found = np.asarray(batch["sample_id"])
    assert found.dtype == np.int64 and found.tolist() == ids.tolist() == list(np.asarray(batch[-2]))
    assert batch["path"] == [source.path(i) for i in ids] and batch.path is batch["path"]
    np.testing.assert_array_equal(np.asarray(batch["label"]), source.labels[ids])


def test_ids_and_paths_are_columns(made):
    folder = stoker.image_folder(made)
    for source in (folder, folder.subset(range(40, 10, -1)), folder.weighted(np.arange(60))):
        loader = make(source)
        for batches in (loader, loader.to_device("cpu"), loader.to_device("host")):
            iterator = iter(batches)
            count = 0
            for batch in iterator:
                check(source, batch, iterator.sample_ids)
                count += len(batch["path"])
            assert count == len(source)


def test_each_alone(made):
    source = stoker.image_folder(made)
    ids = next(iter(stoker.Loader(source, SMALL, batch_size=4, sample_ids=True)))
    assert ids.keys() == ("image", "label", "sample_id") and ids["sample_id"].tolist() == [0, 1, 2, 3]
    ids["sample_id"][0] = 7  # it belongs to the program
    paths = next(iter(stoker.Loader(source, SMALL, batch_size=4, paths=True)))
    assert paths.keys() == ("image", "label", "path") and paths["path"][3] == source.path(3)
    images = stoker.arrays(np.zeros((4, 8, 8, 3), np.uint8))
    batch = next(iter(stoker.Loader(images, batch_size=4, shuffle=True, sample_ids=True)))
    assert batch.keys() == ("image", "sample_id") and sorted(batch["sample_id"]) == [0, 1, 2, 3]


def test_names_that_are_no_text(tmp_path, made):
    name = b"\xff.jpg"
    (tmp_path / "x.jpg").write_bytes((made / "class00").iterdir().__next__().read_bytes())
    (tmp_path / "x.jpg").rename(tmp_path / name.decode(errors="surrogateescape"))
    source = stoker.image_folder(tmp_path)
    batch = next(iter(stoker.Loader(source, SMALL, batch_size=1, paths=True)))
    assert batch["path"] == [source.path(0)] and batch["path"][0].endswith("\udcff.jpg")


def test_threads_that_share_an_iterator_have_the_ids_of_their_batches(made):
    source = stoker.image_folder(made)
    loader = make(source)
    images = {}
    for batch in loader.epoch(0):
        images.update(zip(batch["sample_id"].tolist(), batch["image"].copy()))
    iterator = iter(loader.epoch(0))
    wrong = []

    def take():
        for batch in iterator:
            for i, image in zip(batch["sample_id"].tolist(), batch["image"]):
                if not np.array_equal(image, images[i]):
                    wrong.append(i)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_state_does_not_depend_on_them(made):
    source = stoker.image_folder(made)
    with_them = make(source)
    next(iter(with_them))
    without = stoker.Loader(source, SMALL, batch_size=7, shuffle=True, seed=3)
    without.load_state_dict(with_them.state_dict())
    wanted = next(iter(with_them.epoch(0)))  # batch 0
    second = next(iter(without))
    assert not np.array_equal(second["image"], wanted["image"])


def test_what_cannot_be(made):
    images = stoker.arrays(np.zeros((4, 8, 8, 3), np.uint8))
    with pytest.raises(ValueError, match="in memory and has no files"):
        stoker.Loader(images, batch_size=2, paths=True)
    with pytest.raises(TypeError, match="sample_ids"):
        stoker.Loader(images, batch_size=2, sample_ids=1)
    paths = [stoker.image_folder(made).path(0)]
    for name in ("path", "sample_id"):
        named = stoker.files(paths, columns={name: ["x"]})
        with pytest.raises(ValueError, match=f"a column with the name '{name}'"):
            make(named)
        assert next(iter(stoker.Loader(named, SMALL, batch_size=1)))[name] == ["x"]


def test_in_torch(made):
    torch = pytest.importorskip("torch")
    import stoker.torch as stt

    source = stoker.image_folder(made)
    loader = stt.DataLoader(source, SMALL, batch_size=7, sample_ids=True, paths=True)
    iterator = iter(loader)
    for batch in iterator:
        assert batch["sample_id"].dtype == torch.int64
        check(source, batch, iterator.sample_ids.numpy())


def test_in_tensorflow(made):
    tf = pytest.importorskip("tensorflow", minversion="2")
    source = stoker.image_folder(made)
    loader = make(source)
    spec = loader.as_tf_dataset(op="fallback").element_spec
    assert {name: part.dtype for name, part in spec.items()} == {
        "image": tf.uint8,
        "label": tf.int64,
        "sample_id": tf.int64,
        "path": tf.string,
    }
    assert len(loader.as_tf_dataset(op="fallback", sample_ids=False, paths=False).element_spec) == 2
