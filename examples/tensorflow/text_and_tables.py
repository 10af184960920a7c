"""Trains on arrays that are no images: rows of token ids, and a table with columns of several types.

Then it times an epoch of reading, without a model.

Replaces from_tensor_slices(...).shuffle(n).batch(b), which makes a tensor of each value of each row before
batch() copies them together. fit(x=arrays) gathers the rows of a batch by their numbers; so does a pipeline
here. Takes no folder. Text comes as token ids, from a tokenizer that has run before.
"""

import pathlib
import statistics
import tempfile

import keras
import numpy as np
import stoker
import tensorflow as tf
import timing

ROWS, TOKENS, WORDS, CITIES, BATCH = 50_000, 64, 5_000, 30, 256

random = np.random.default_rng(1)
tokens = random.integers(0, WORDS, (ROWS, TOKENS), np.int32)
topics = (tokens[:, 0] % 2).astype(np.int64)
table = np.empty(ROWS, [("age", "f4"), ("income", "f4"), ("city", "i4"), ("label", "i8")])
table["age"], table["income"] = random.uniform(18, 90, ROWS), random.lognormal(10, 1, ROWS)
table["city"] = random.integers(0, CITIES, ROWS)
table["label"] = table["age"] > 50


def loader(source: stoker.Source) -> stoker.Loader:
    return stoker.Loader(source, batch_size=BATCH, shuffle=True, seed=1)


def slices(arrays) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays).shuffle(ROWS).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def gather(arrays) -> tf.data.Dataset:
    whole = tf.nest.map_structure(tf.constant, arrays)
    numbers = tf.data.Dataset.range(ROWS).shuffle(ROWS).batch(BATCH)
    rows = numbers.map(
        lambda some: tf.nest.map_structure(lambda array: tf.gather(array, some), whole), tf.data.AUTOTUNE
    )
    return rows.prefetch(tf.data.AUTOTUNE)


def inputs_and_label(row):
    return {name: row[name] for name in ("age", "income", "city")}, row["label"]


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "table.bin"  # rows one after the other, as any program can write them
    table.tofile(path)
    rows = stoker.records(path, table.dtype)  # reads the file into memory

fields = {name: table[name] for name in table.dtype.names}
texts = {
    "stoker": loader(stoker.arrays(tokens, topics)).as_tf_dataset(),
    "from_tensor_slices": slices((tokens, topics)),
    "gather": gather((tokens, topics)),
}
tables = {
    "stoker": loader(rows).as_tf_dataset(names=True).map(inputs_and_label, tf.data.AUTOTUNE),
    "from_tensor_slices": slices(fields).map(inputs_and_label, tf.data.AUTOTUNE),
    "gather": gather(fields).map(inputs_and_label, tf.data.AUTOTUNE),
}

text_model = keras.Sequential(
    [
        keras.layers.Embedding(WORDS, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(2, activation="softmax"),
    ]
)
columns = {
    name: keras.Input((), name=name, dtype=table.dtype[name].name) for name in ("age", "income", "city")
}
numbers = keras.ops.stack([columns["age"] / 100, keras.ops.log(columns["income"]) / 10], axis=1)
place = keras.layers.Embedding(CITIES, 4)(columns["city"])
table_model = keras.Model(
    columns, keras.layers.Dense(2, "softmax")(keras.layers.Concatenate()([numbers, place]))
)
for model, dataset in ((text_model, texts["stoker"]), (table_model, tables["stoker"])):
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(dataset, epochs=1, verbose=2)


def rows_of(dataset: tf.data.Dataset) -> list[bytes]:
    """Every row as its bytes, sorted: two datasets of the same rows give the same list."""
    parts = [[np.asarray(part) for part in tf.nest.flatten(batch)] for batch in dataset]
    return sorted(
        b"".join(part[row].tobytes() for part in batch) for batch in parts for row in range(len(batch[0]))
    )


verdicts = []
for kind, pipelines in (("text", texts), ("table", tables)):
    same = len({b"".join(rows_of(dataset)) for dataset in pipelines.values()}) == 1
    print(f"{kind}: the pipelines have the same {ROWS:,} rows: {same}")
    seconds = timing.in_turns(
        {name: lambda each=each: sum(1 for _ in each) for name, each in pipelines.items()}
    )
    for name, each in seconds.items():
        print(f"  {name:20}{ROWS / statistics.median(each):12,.0f} rows/s")
    verdicts += [
        f"{kind}: {timing.verdict(seconds, 'stoker', other)}" for other in ("from_tensor_slices", "gather")
    ]
print(f"verdict: {'; '.join(verdicts)}")
