"""Classifies every photograph of a folder with one model.predict(dataset), and prints the class of each file.

Replaces a Python loop that loads, resizes and classifies one image at a time. Both are timed.
"""

import statistics

import keras
import numpy as np
import photographs
import stoker
import timing

SIZE, BATCH = 96, 32

photos = stoker.image_folder(photographs.folder(__doc__))
loader = stoker.Loader(photos, [stoker.Resize((SIZE, SIZE))], batch_size=BATCH)  # in the folder's order

keras.utils.set_random_seed(1)  # stands for a trained model
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


def all_at_once() -> np.ndarray:
    return model.predict(loader.as_tf_dataset(), verbose=0)


def one_by_one() -> np.ndarray:
    rows = []
    for sample in range(len(photos)):
        image = keras.utils.load_img(photos.path(sample), target_size=(SIZE, SIZE), interpolation="bilinear")
        rows.append(model.predict_on_batch(np.asarray(image)[np.newaxis])[0])
    return np.stack(rows)


rows, others = all_at_once(), one_by_one()
for sample in range(3):
    label = rows[sample].argmax()
    print(f"{photos.path(sample)}: {photos.classes[label]} ({rows[sample][label]:.0%})")
print(f"the loop's scores differ by at most {np.abs(rows - others).max():.1e}")

seconds = timing.in_turns({"predict(dataset)": all_at_once, "the loop": one_by_one})
for name, each in seconds.items():
    print(f"{name}: {len(photos) / statistics.median(each):,.0f} photographs/s")
print(f"verdict: {timing.verdict(seconds, *seconds)}")
