"""Classifies every photograph of a folder with one model.predict(dataset), and prints the class of each file.

Replaces model.predict(image_dataset_from_directory(..., shuffle=False)), which resizes without antialiasing,
and a Python loop that loads, resizes and classifies one image at a time. All three are timed.
"""

import statistics

import keras
import numpy as np
import photographs
import stoker
import timing

SIZE, BATCH = 96, 32

folder = photographs.folder(__doc__)
photos = stoker.image_folder(folder)
usual = keras.utils.image_dataset_from_directory(
    folder, image_size=(SIZE, SIZE), batch_size=BATCH, shuffle=False, verbose=False
)

keras.utils.set_random_seed(1)  # instead of training
model = keras.Sequential(
    [
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.Rescaling(1 / 127.5, offset=-1),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(photos.classes), activation="softmax"),
    ]
)


def with_stoker() -> np.ndarray:
    """The scores of the whole folder, in its order."""
    with stoker.Loader(photos, [stoker.Resize((SIZE, SIZE))], batch_size=BATCH) as loader:
        return model.predict(loader.as_tf_dataset(), verbose=0)


def with_usual() -> np.ndarray:
    return model.predict(usual, verbose=0)


def one_by_one() -> np.ndarray:
    rows = []
    for sample in range(len(photos)):
        image = keras.utils.load_img(photos.path(sample), target_size=(SIZE, SIZE), interpolation="bilinear")
        rows.append(model.predict_on_batch(np.asarray(image)[np.newaxis])[0])
    return np.stack(rows)


ways = {"predict(stoker)": with_stoker, "predict(usual)": with_usual, "the loop": one_by_one}
first, *others = ways
rows = with_stoker()
for sample in range(3):
    label = rows[sample].argmax()
    print(f"{photos.path(sample)}: {photos.classes[label]} ({rows[sample][label]:.0%})")
for other in others:
    print(f"{other}: scores differ from {first}'s by at most {np.abs(rows - ways[other]()).max():.1e}")

seconds = timing.in_turns(ways)
for name, each in seconds.items():
    print(f"{name}: {len(photos) / statistics.median(each):,.0f} photographs/s")
print(f"verdict: {'; '.join(timing.verdict(seconds, first, other) for other in others)}")
