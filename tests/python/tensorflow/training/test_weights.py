"""Which column Keras takes for the samples' weights: the one that the program names, and no other."""

import io
import json
import pathlib
import tarfile

import numpy as np
import pytest
import stoker
import tensorflow as tf
import tfrecords
from tensors import arrays, same

SAMPLES = 8
WEIGHTS = [1000 * i for i in range(SAMPLES)]  # what pandas' "Unnamed: 0" would do to a loss
LABELS = [i % 2 for i in range(SAMPLES)]
SMALL = [stoker.Resize((8, 8))]


@pytest.fixture(scope="module")
def paths(made):
    folder = stoker.image_folder(made)
    return [folder.path(i) for i in range(SAMPLES)]


def encoded(paths):
    return [pathlib.Path(path).read_bytes() for path in paths]


def csv(paths, folder):
    rows = [f"{weight},{path},{label}" for weight, path, label in zip(WEIGHTS, paths, LABELS)]
    (folder / "a.csv").write_text("\n".join(["Unnamed: 0,path,label", *rows]) + "\n")
    return stoker.manifest(folder / "a.csv")


def json_lines(paths, folder):
    rows = [
        {"path": path, "label": label, "Unnamed: 0": weight}
        for weight, path, label in zip(WEIGHTS, paths, LABELS)
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return stoker.manifest(folder / "a.jsonl")


def parquet_manifest(paths, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"path": paths, "label": LABELS, "Unnamed: 0": WEIGHTS}), folder / "a.parquet")
    return stoker.manifest(folder / "a.parquet")


def parquet(paths, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"image": encoded(paths), "label": LABELS, "Unnamed: 0": WEIGHTS})
    pq.write_table(table, folder / "images.parquet")
    return stoker.parquet(folder / "images.parquet", columns=["Unnamed: 0"])


def arrow(paths, folder):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"image": encoded(paths), "label": LABELS, "Unnamed: 0": WEIGHTS})
    with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return stoker.arrow(folder / "a.arrow", columns=["Unnamed: 0"])


def hugging_face(paths, folder):
    datasets = pytest.importorskip("datasets")
    columns = {"image": paths, "label": LABELS, "Unnamed: 0": WEIGHTS}
    dataset = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
    return stoker.from_hf(dataset, columns=["Unnamed: 0"])


def tar(paths, folder):
    with tarfile.open(folder / "a.tar", "w") as archive:
        for i, image in enumerate(encoded(paths)):
            texts = {"cls": str(LABELS[i]).encode(), "txt": str(WEIGHTS[i]).encode()}
            for name, data in {"jpg": image, **texts}.items():
                member = tarfile.TarInfo(f"{i}.{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return stoker.tar(folder / "a.tar", columns={"Unnamed: 0": ".txt"})


def tfrecord(paths, folder):
    examples = [
        {"image/encoded": image, "image/class/label": label, "Unnamed: 0": weight}
        for image, label, weight in zip(encoded(paths), LABELS, WEIGHTS)
    ]
    records = [tfrecords.record(tfrecords.example(one)) for one in examples]
    (folder / "a.tfrecord").write_bytes(b"".join(records))
    return stoker.tfrecord(folder / "a.tfrecord", columns=["Unnamed: 0"])


def files(paths, folder):
    return stoker.files(paths, LABELS, columns={"Unnamed: 0": WEIGHTS})


def called(paths, folder):
    class Rows:
        def __len__(self):
            return SAMPLES

        def __getitem__(self, i):
            return {"image": paths[i], "label": LABELS[i], "Unnamed: 0": WEIGHTS[i]}

    return stoker.from_dataset(Rows())


SOURCES = [
    csv, json_lines, parquet_manifest, parquet, arrow, hugging_face, tar, tfrecord, files, called,
]  # fmt: skip


@pytest.mark.parametrize("source_of", SOURCES)
def test_further_columns_come_by_name(paths, tmp_path, source_of):
    """Keras takes no column of a dictionary for weights, nor for labels."""
    loader = stoker.Loader(source_of(paths, tmp_path), SMALL, batch_size=4)
    (batch, _) = loader.epoch(0)
    assert batch.keys() == ("image", "label", "Unnamed: 0")
    is_text = isinstance(batch["Unnamed: 0"], list)  # tar has no numbers
    assert [int(weight) for weight in batch["Unnamed: 0"]] == WEIGHTS[:4]
    datasets = [loader.as_tf_dataset(0, op) for op in ("native", "fallback")]
    datasets += [loader.to_device(device).as_tf_dataset(0) for device in ("cpu", "host")[: 2 - is_text]]
    for dataset in datasets:
        assert set(dataset.element_spec) == {"image", "label", "Unnamed: 0"}
        for got, wanted in zip(dataset, loader.epoch(0)):
            for name, tensor in got.items():
                assert [str(row) for row in wanted[name]] == [
                    row.decode() if isinstance(row, bytes) else str(row) for row in tensor.numpy()
                ]


def layers():
    keras = tf.keras
    return [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(2, "softmax")]


def loss_of(dataset):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(layers())
    model.compile(tf.keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    return model.fit(dataset, verbose=0).history["loss"][0]


def test_keras_trains_with_the_weights_that_are_named(paths, tmp_path, op):
    loader = stoker.Loader(csv(paths, tmp_path), SMALL, batch_size=4)
    dataset = loader.as_tf_dataset(op=op)
    with pytest.raises((TypeError, ValueError), match="Unnamed: 0"):
        loss_of(dataset)
    plain = loss_of(dataset.map(lambda batch: (batch["image"], batch["label"])))
    assert 0.1 < plain < 10
    weighted = loss_of(loader.as_tf_dataset(op=op, sample_weight="Unnamed: 0"))
    assert weighted > 100 * plain
    chosen = stoker.Loader(stoker.manifest(tmp_path / "a.csv", columns=[]), SMALL, batch_size=4)
    assert loss_of(chosen.as_tf_dataset(op=op)) == plain


@pytest.mark.parametrize("where", ["native", "fallback", "cpu", "host"])
def test_elements_with_weights(paths, where):
    source = stoker.files(
        paths, LABELS, columns={"age": np.arange(SAMPLES) / 8, "weight": np.float32(WEIGHTS)}
    )
    loader = stoker.Loader(source, SMALL, batch_size=3, shuffle=True, sample_ids=True)
    taken = (
        (lambda **options: loader.to_device(where).as_tf_dataset(0, **options))
        if where in ("cpu", "host")
        else (lambda **options: loader.as_tf_dataset(0, where, **options))
    )
    weighted = taken(sample_weight="weight")
    same(arrays(weighted), [(image, label, weight) for image, label, _, weight, _ in loader.epoch(0)])
    if where != "host":
        named = taken(sample_weight="age", names=True)
        rows = [(inputs["image"], inputs["weight"], inputs["sample_id"], *rest) for inputs, *rest in named]
        same(rows, [(b["image"], b["weight"], b["sample_id"], b["label"], b["age"]) for b in loader.epoch(0)])


def test_weights_that_are_wrong(paths):
    columns = {"text": list("abcdefgh"), "box": np.zeros((SAMPLES, 2))}
    loader = stoker.Loader(stoker.files(paths, LABELS, columns=columns), SMALL, batch_size=4)
    for name, kind, words in (
        ("weights", ValueError, "has text, box"),
        ("label", ValueError, "has text, box"),
        ("text", ValueError, "a weight is a number"),
        ("box", ValueError, r"float64 of shape \(2,\); a weight is a number"),
        (3, TypeError, "sample_weight must be"),
    ):
        with pytest.raises(kind, match=words):
            loader.as_tf_dataset(op="fallback", sample_weight=name)
    with pytest.raises(ValueError, match="without what sample_ids adds"):
        loader.as_tf_dataset(op="fallback", sample_weight="text", sample_ids=True)
    weights = stoker.files(paths, LABELS, columns={"weight": WEIGHTS})
    for mix in (stoker.MixUp(num_classes=2), stoker.CutMix(num_classes=2)):
        mixed = stoker.Loader(weights, [*SMALL, mix], batch_size=4)
        for names in (False, True):
            with pytest.raises(ValueError, match=r"Mix.* mixes rows, but not their weights"):
                mixed.as_tf_dataset(op="fallback", sample_weight="weight", names=names)
    without = stoker.Loader(stoker.files(paths, columns=columns), SMALL, batch_size=4)
    assert set(without.as_tf_dataset(op="fallback").element_spec) == {"image", "text", "box"}
    with pytest.raises(ValueError, match="has no labels"):
        without.as_tf_dataset(op="fallback", sample_weight="box")
