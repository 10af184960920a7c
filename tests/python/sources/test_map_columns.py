"""Columns that a function of the program adds: captions become tokens in the workers, on every way to take
batches. Arrays in .npy members of tars come along."""

import json
import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from test_tar import members_of  # noqa: E402
from test_tar_arrays import caption, embedding, opened, write_shards  # noqa: E402

LENGTH = 7
TOKENS = {"caption": ("int32", LENGTH), "mask": ("bool", (LENGTH,)), "words": "int64"}


def tokens_of(text):
    made = np.zeros(LENGTH, "int32")
    codes = list(text.encode())[:LENGTH]
    made[: len(codes)] = codes
    return made


def tokenize(batch):
    tokens = np.stack([tokens_of(text) for text in batch["caption"]])
    words = np.array([len(text.split()) for text in batch["caption"]], "int64")
    return {"caption": tokens, "mask": tokens != 0, "words": words}


def tokenize_row(image, label, text, emb):
    tokens = tokens_of(text)
    return image, label, tokens, emb, tokens != 0, len(text.split())


FORMS = {
    "batches": {"function": tokenize},
    "threads": {"function": tokenize, "threads": 3},
    "rows": {"function": tokenize_row, "rows": True},
}


def mapped(form="batches"):
    return stoker.Map(**FORMS[form], columns=TOKENS)


def make(source, *after, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, [stoker.RandomResizedCrop(24), *after], **options)


@pytest.fixture(scope="module")
def shards(made, tmp_path_factory):
    return write_shards(made, tmp_path_factory.mktemp("captioned"))


def check(batch, ids):
    """Checks the columns that are made of captions, and the arrays."""
    for row, i in enumerate(int(i) for i in ids):
        wanted = tokens_of(caption(i))
        np.testing.assert_array_equal(np.asarray(batch["caption"])[row], wanted)
        np.testing.assert_array_equal(np.asarray(batch["mask"])[row], wanted != 0)
        assert int(np.asarray(batch["words"])[row]) == len(caption(i).split())
        np.testing.assert_array_equal(np.asarray(batch["emb"])[row], embedding(i))


# --- every way to take batches ----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_captions_become_tokens(shards, form):
    source = opened(shards)
    plain = make(source)
    iterator = iter(make(source, mapped(form)))
    for before, batch in zip(plain, iterator):
        assert batch.keys() == ("image", "label", "caption", "emb", "mask", "words")
        assert batch.caption.dtype == "int32" and batch.mask.dtype == bool and batch.words.ndim == 1
        check(batch, iterator.sample_ids)
        np.testing.assert_array_equal(before.image, batch.image)
        np.testing.assert_array_equal(before.label, batch.label)
        np.testing.assert_array_equal(before.emb, batch.emb)


def test_states_ranks_and_pickles(shards):
    wanted = taken(make(opened(shards), mapped()))
    one = make(opened(shards), mapped("threads"))
    first = iter(one)
    same([next(first), next(first)], wanted[:2])
    two = pickle.loads(pickle.dumps(make(opened(shards), mapped())))
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    same(taken(two), wanted[2:])
    other = stoker.Map(tokenize, columns={**TOKENS, "words": "int32"})
    with pytest.raises(stoker.FailedPreconditionError, match="'words'"):
        make(opened(shards), other).load_state_dict(one.state_dict())
    again = pickle.loads(pickle.dumps(opened(shards)))
    assert again._native.fingerprint == opened(shards)._native.fingerprint
    ranks = [make(opened(shards), mapped(), rank=rank, world=2, sample_ids=True) for rank in range(2)]
    for loader in ranks:
        for batch in loader:
            check(batch, batch["sample_id"])


def test_tensorflow(shards):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed here")
    dataset = make(opened(shards), mapped(), sample_ids=True).as_tf_dataset()
    spec = dataset.element_spec
    assert spec["caption"].shape.as_list() == [None, LENGTH] and spec["caption"].dtype.name == "int32"
    assert spec["mask"].dtype.name == "bool" and spec["words"].shape.as_list() == [None]
    assert spec["emb"].shape.as_list() == [None, 2, 3] and spec["emb"].dtype.name == "float32"
    for batch in dataset:
        check(batch, batch["sample_id"].numpy())


def test_torch(shards):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    transforms = [stoker.RandomResizedCrop(24), mapped()]
    loader = stoker.torch.DataLoader(opened(shards), transforms=transforms, batch_size=8, sample_ids=True)
    for batch in loader:
        assert batch["caption"].dtype == torch.int32 and batch["mask"].dtype == torch.bool
        check(batch, batch["sample_id"])


def test_jax(shards):
    jax = pytest.importorskip("jax", reason="JAX is not installed here")
    loader = make(opened(shards), mapped(), sample_ids=True)
    for batch in loader.to_jax():
        assert isinstance(batch["caption"], jax.Array) and batch["emb"].shape[1:] == (2, 3)
        check(batch, batch["sample_id"])


def test_devices(shards):
    for device in ("cpu", "host", ["host", "host"]):
        for batch in make(opened(shards), mapped(), sample_ids=True).to_device(device):
            for part in batch if isinstance(device, list) else [batch]:
                check({name: np.from_dlpack(part[name]) for name in TOKENS | {"emb": 0}}, part["sample_id"])


def test_other_sources(made, tmp_path):
    """A column may be added to images alone, to a folder's, to padded ones, and to views."""

    def mean(batch):
        images = getattr(batch, "image", batch)
        return {"label": images.reshape(len(images), -1).mean(1).astype("float32")}

    alone = np.arange(5 * 4 * 4 * 3, dtype="uint8").reshape(5, 4, 4, 3)
    add = stoker.Map(mean, columns={"label": "float32"})
    for transforms in ([add], [stoker.Resize((4, 4)), add], [stoker.PadTo(6), add]):
        batch = next(iter(stoker.Loader(stoker.arrays(alone), transforms, batch_size=5)))
        wanted = batch.image.reshape(5, -1).mean(1).astype("float32")
        assert batch.keys()[-1] == "label"
        np.testing.assert_array_equal(batch.label, wanted)
    crop = [stoker.RandomResizedCrop(4)]
    pairs = stoker.Loader(stoker.arrays(alone), [add], views=[crop, crop], batch_size=5)
    assert next(iter(pairs)).keys() == ("image", "image_1", "label")

    def brightness(image, label):
        return {"brightness": image.mean()}

    rows = stoker.Map(brightness, rows=True, columns={"brightness": "float64"})
    for batch in make(stoker.image_folder(made), rows):
        np.testing.assert_array_equal(batch.brightness, [image.mean() for image in batch.image])


def test_strings_that_are_read_with_the_images(made, tmp_path):
    """Of TFRecord files, whose strings belong to the batch; rows are dropped before the function's turn."""
    from tfrecords import example, record

    members = list(members_of(made))[:20]
    samples = [
        {
            "image/encoded": b"no image" if i % 5 == 1 else sample[1][1],
            "image/class/label": i,
            "text": caption(i).encode(),
        }
        for i, sample in enumerate(members)
    ]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(record(example(sample)) for sample in samples))
    source = stoker.tfrecord(tmp_path / "a.tfrecord", columns=["text"])

    def tokenize_bytes(batch):
        return {"text": np.stack([tokens_of(text.decode()) for text in batch["text"]])}

    function = stoker.Map(tokenize_bytes, columns={"text": ("int32", LENGTH)})
    loader = make(source, function, on_bad="drop", max_bad_fraction=1.0)
    for way in (loader, loader.to_device("cpu"), loader.to_device("host")):
        rows = 0
        for batch in way:
            label, text = (np.from_dlpack(batch[name]) for name in ("label", "text"))
            rows += len(label)
            for i, tokens in zip(label.tolist(), text):
                np.testing.assert_array_equal(tokens, tokens_of(caption(i)))
        assert rows == 16
    with pytest.raises(stoker.UnimplementedError, match="let a function of yours replace it by numbers"):
        make(source).to_device("host")


# --- what is wrong with a function ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda b: None, "it returned a NoneType; it must return a tuple of 5, or a dictionary with t"),
        (lambda b: {"image": b.image}, "it did not return 't', a column that it adds"),
        (lambda b: {"t": b.caption}, r"it returned 't' as <U\d+ of shape \(8,\)"),
        (lambda b: {"t": np.zeros((8, 3), "int64")}, r"int64 of .*: return it by \.astype\(.int32.\)"),
        (lambda b: {"t": np.zeros((8, 4), "int32")}, r"int32 of shape \(8, 4\)"),
        (lambda b: (b.image, b.label, b.caption, b.emb), "a tuple of 4; it must return a tuple of 5"),
        (lambda b: {"u": 1}, "it returned 'u'; a batch has image, label, caption, emb, t"),
    ],
)
def test_what_it_returns_is_checked(shards, returned, words):
    loader = make(opened(shards), stoker.Map(returned, columns={"t": ["int32", 3]}))
    with pytest.raises(stoker.UnavailableError, match=words):
        next(iter(loader))


def test_ids_need_a_name_that_the_function_did_not_take(shards):
    function = stoker.Map(lambda b: {"sample_id": np.zeros(8, "int64")}, columns={"sample_id": "int64"})
    assert next(iter(make(opened(shards), function))).keys()[-1] == "sample_id"
    with pytest.raises(ValueError, match="a column with the name 'sample_id' already: give that"):
        make(opened(shards), function, sample_ids=True)


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        (["t"], TypeError, "Map.columns must be types by name"),
        ({5: "int32"}, TypeError, "Map.columns must have names, not 5"),
        ({"": "int32"}, ValueError, "Map.columns has the name ''"),
        ({"t": "text"}, ValueError, r"Map.columns\['t'\] is 'text'"),
        ({"t": ("int32", 3, 4)}, TypeError, r"\(type, shape\)"),
        ({"t": ("int32", 0)}, ValueError, "dimension 0 is 0"),
        ({"t": ("int32", (2, -1))}, ValueError, "dimension 1 is -1"),
        ({"t": ("int32", (1,) * 8)}, ValueError, "8 dimensions; at most 7"),
        ({"t": ("int32", (2**31,) * 3)}, ValueError, "too large for any memory"),
        ({"image": "int32"}, ValueError, "adds a column 'image', and batches have one"),
        ({"label": "int32"}, ValueError, "adds a column 'label', and batches have one"),
    ],
)
def test_wrong_declarations(shards, columns, kind, words):
    with pytest.raises(kind, match=words):
        make(opened(shards), stoker.Map(tokenize, columns=columns))


def test_the_repr_shows_the_columns():
    assert "columns={'t': ('int32', (3,))}" in repr(stoker.Map(tokenize, columns={"t": ("int32", 3)}))
