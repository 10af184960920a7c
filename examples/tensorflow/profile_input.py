"""Profiles training: does the model wait for its input, and what is the input doing meanwhile?

Replaces guessing from tf.data's rows, which end at the op: stoker adds rows for reading, decoding and
waiting to TensorFlow's trace. Look at them in TensorBoard's Profile tab (pip install tensorboard xprof),
or as here. (The prebuilt fallback op has rows for itself only.)

Not named profile.py: in the folder of a running script that would hide the standard library's module.
"""

import collections
import json
import pathlib
import tempfile

import keras
import photographs
import stoker
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

try:
    from xprof.convert import raw_to_tool_data
except ImportError as missing:
    raw_to_tool_data = None
    print(f"skipped: the overview page and the memory profile, which pip install xprof brings ({missing})")

SIZE, BATCH, EPOCHS, ROUNDS = 64, 16, 4, 3

folder = photographs.folder(__doc__)
source = stoker.image_folder(folder)


def stokers() -> stoker.Loader:
    resize_and_flip = [stoker.Resize((SIZE, SIZE)), stoker.RandomHorizontalFlip()]
    return stoker.Loader(source, resize_and_flip, batch_size=BATCH, shuffle=True, seed=1, drop_remainder=True)


usual = (
    keras.utils.image_dataset_from_directory(folder, image_size=(SIZE, SIZE), batch_size=None, verbose=False)
    .batch(BATCH, drop_remainder=True)
    .map(lambda images, labels: (tf.image.random_flip_left_right(images), labels), tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)
model = keras.Sequential(
    [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(len(source.classes))]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def rows(directory: pathlib.Path) -> dict[str, tuple[int, float]]:
    """Count and total milliseconds over all threads for each kind of event."""
    found = collections.defaultdict(lambda: (0, 0.0))
    for file in directory.rglob("*.xplane.pb"):
        for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
            for line in plane.lines:
                for event in line.events:
                    name = plane.event_metadata[event.metadata_id].name
                    times, spent = found[name]
                    found[name] = times + 1, spent + event.duration_ps / 1e9
    return dict(found)


def report(title: str, directory: pathlib.Path) -> None:
    print(title)
    for name, (times, spent) in sorted(rows(directory).items()):
        if "stoker" in name.lower():
            print(f"  {name:40}{times:6} times{spent:10.1f} ms")


def profile_loop(dataset: tf.data.Dataset, directory: pathlib.Path) -> float:
    """Profiles a training loop. Returns the part of the steps that it waited for input."""
    batches = iter(dataset.repeat(1 + EPOCHS))
    for _ in range(len(dataset)):  # an epoch that traces and starts what is not to be measured
        model.train_on_batch(*next(batches))
    steps = EPOCHS * len(dataset)
    tf.profiler.experimental.start(str(directory))
    for step in range(steps):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            with tf.profiler.experimental.Trace("input"):
                images, labels = next(batches)
            model.train_on_batch(images, labels)
    tf.profiler.experimental.stop()
    found = rows(directory)
    return found["input"][1] / found["train"][1]


def overview(directory: pathlib.Path) -> None:
    """Prints what TensorBoard's overview page says, and the most memory that TensorFlow's allocators had."""
    files = [str(file) for file in directory.rglob("*.xplane.pb")]
    tools = ("overview_page", "memory_profile")
    page, memory = (json.loads(raw_to_tool_data.xspace_to_tool_data(files, tool, {})[0]) for tool in tools)
    print("  " + next(part["p"]["input_conclusion"] for part in page if "input_conclusion" in part["p"]))
    peaks = [each["profileSummary"]["peakStats"] for each in memory["memoryProfilePerAllocator"].values()]
    print(
        f"  TensorFlow's allocators had up to {sum(int(p['heapAllocatedBytes']) for p in peaks) / 1e6:.1f} MB"
    )


with tempfile.TemporaryDirectory() as scratch:
    directory = pathlib.Path(scratch)  # one to keep, where TensorBoard shall show it
    tensorboard = keras.callbacks.TensorBoard(directory / "fit", profile_batch=(2, 5))
    with stokers() as loader:
        model.fit(loader.as_tf_dataset(), epochs=1, callbacks=[tensorboard], verbose=0)
    report("TensorBoard(profile_batch=(2, 5)):", directory / "fit")

    waited = {"usual": [], "stoker": []}
    for number in range(ROUNDS):
        waited["usual"].append(profile_loop(usual, directory / "usual" / str(number)))
        with stokers() as loader:  # closed in its turn: it produces nothing while the other is profiled
            waited["stoker"].append(profile_loop(loader.as_tf_dataset(), directory / "stoker" / str(number)))
    for name in waited:
        last = directory / name / str(ROUNDS - 1)
        report(f"tf.profiler.experimental, {name} pipeline:", last)
        print(f"  the steps waited for input for {waited[name][-1]:.1%} of their time")
        if raw_to_tool_data is not None:
            overview(last)

stats = loader.stats()
print(f"stoker's memory is not in TensorFlow's profile: up to {stats['memory_peak'] / 1e6:.1f} MB")
print(f"stoker's advice: {stats['advice']}")
shares = {name: f"{min(each):.0%} to {max(each):.0%}" for name, each in waited.items()}
less, more = sorted(waited, key=lambda name: max(waited[name]))
if max(waited[less]) < min(waited[more]):
    comparison = f"less of their time with {less} ({shares[less]}) than with {more} ({shares[more]})"
else:
    comparison = f"{shares[less]} of their time with {less}, {shares[more]} with {more}: the ranges overlap"
print(
    f"verdict: decoding in every epoch, steps wait for input for {comparison}, in {ROUNDS} profiles of each"
)
