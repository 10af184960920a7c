"""Profiles training: does the model wait for its input, and what is the input doing meanwhile?

Replaces guessing from tf.data's rows, which end at the op: stoker adds rows for reading, decoding and
waiting to TensorFlow's trace. Look at them in TensorBoard's Profile tab (pip install tensorboard xprof),
or as here. (The prebuilt fallback op has rows for itself only.)

Not named profile.py: in the folder of a running script that would hide the standard library's module.
"""

import json
import pathlib
import tempfile

import keras
import photographs
import profiles
import stoker
import tensorflow as tf
import timing

try:
    from xprof.convert import raw_to_tool_data
except ImportError as missing:
    raw_to_tool_data = None
    print(f"skipped: the overview page, which pip install xprof brings ({missing})")

SIZE, BATCH, EPOCHS = 64, 16, 2

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


def report(title: str, events: list[profiles.Event]) -> None:
    print(title)
    for name, (times, spent) in sorted(profiles.totals(events).items()):
        if "stoker" in name.lower():
            print(f"  {name:40}{times:6} times{spent:10.1f} ms")


def conclusion(directory: str) -> str:
    """What TensorBoard's overview page says."""
    files = [str(file) for file in pathlib.Path(directory).rglob("*.xplane.pb")]
    page = json.loads(raw_to_tool_data.xspace_to_tool_data(files, "overview_page", {})[0])
    return next(part["p"]["input_conclusion"] for part in page if "input_conclusion" in part["p"])


def profile(name: str, directory: str) -> list[profiles.Event]:
    if name == "usual":
        return profiles.training(model, usual.repeat(EPOCHS), directory)
    with stokers() as loader:  # closed in its turn: it produces nothing while the other is profiled
        return profiles.training(model, loader.as_tf_dataset().repeat(EPOCHS), directory)


with tempfile.TemporaryDirectory() as scratch:  # a folder to keep, where TensorBoard shall show it
    tensorboard = keras.callbacks.TensorBoard(f"{scratch}/fit", profile_batch=(2, 5))
    with stokers() as loader:
        model.fit(loader.as_tf_dataset(), epochs=1, callbacks=[tensorboard], verbose=0)
        stats = loader.stats()
    report("TensorBoard(profile_batch=(2, 5)):", profiles.read(pathlib.Path(scratch, "fit")))

    waited = {"usual": [], "stoker": []}
    for number in range(timing.ROUNDS):
        found = {name: profile(name, f"{scratch}/{name}/{number}") for name in waited}
        for name, events in found.items():
            waited[name].append(profiles.waited(events))
    for name, events in found.items():
        report(f"tf.profiler.experimental, {name} pipeline, the last profile:", events)
        print(f"  the steps waited for input for {waited[name][-1]:.1%} of their time")
        print(f"  TensorFlow's allocators gave out {profiles.peak(events) / 1e6:.1f} MB at the peak")
        if raw_to_tool_data is not None:
            print(f"  {conclusion(f'{scratch}/{name}/{number}')}")

print(f"stoker's memory is not in TensorFlow's profile: {stats['memory_peak'] / 1e6:.1f} MB at the peak")
print(f"stoker's advice: {stats['advice']}")
shares = ", ".join(f"{min(each):.0%} to {max(each):.0%} with {name}" for name, each in waited.items())
print(
    f"verdict: decoding in every epoch, steps wait for input for {shares}; "
    f"{timing.verdict(waited, 'stoker', 'usual', 'share of waiting in the steps')}"
)
