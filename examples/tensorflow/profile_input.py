"""Profiles training: does the model wait for its input, and what is the input doing meanwhile?

Replaces guessing from tf.data's rows, which end at the op: stoker adds rows for reading, decoding and
waiting to TensorFlow's trace. Look at them in TensorBoard's Profile tab (pip install tensorboard xprof),
or as here. (The prebuilt fallback op has rows for itself only.)

Not named profile.py: in the folder of a running script that would hide the standard library's module.
"""

import collections
import pathlib
import tempfile

import keras
import photographs
import stoker
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

SIZE, BATCH = 64, 16

loader = stoker.Loader(
    stoker.image_folder(photographs.folder(__doc__)),
    [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
    batch_size=BATCH,
    shuffle=True,
    seed=1,
)
dataset = loader.as_tf_dataset()


def rows(directory: pathlib.Path) -> dict[str, tuple[int, float]]:
    """Count and total milliseconds over all threads for each kind of stoker's events."""
    found = collections.defaultdict(lambda: (0, 0.0))
    for file in directory.rglob("*.xplane.pb"):
        for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
            for line in plane.lines:
                for event in line.events:
                    name = plane.event_metadata[event.metadata_id].name
                    if "stoker" in name.lower():
                        times, spent = found[name]
                        found[name] = times + 1, spent + event.duration_ps / 1e9
    return dict(found)


def report(title: str, directory: pathlib.Path) -> None:
    print(title)
    for name, (times, spent) in sorted(rows(directory).items()):
        print(f"  {name:40}{times:6} times{spent:10.1f} ms")


with tempfile.TemporaryDirectory() as scratch:
    directory = pathlib.Path(scratch)  # one to keep, where TensorBoard shall show it

    model = keras.Sequential(
        [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(len(loader.classes))]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    tensorboard = keras.callbacks.TensorBoard(directory / "fit", profile_batch=(2, 5))
    model.fit(dataset, epochs=1, callbacks=[tensorboard], verbose=0)
    report("TensorBoard(profile_batch=(2, 5)):", directory / "fit")

    tf.profiler.experimental.start(str(directory / "loop"))
    for step, (images, labels) in enumerate(dataset):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            model.train_on_batch(images, labels)
    tf.profiler.experimental.stop()
    report("tf.profiler.experimental:", directory / "loop")
