"""Trains with batches of 8 to 256 photographs: images for a second of CPU time, memory, time of a step.

A larger batch shares the cost of a step among more images, until the work on the images themselves is what
counts. The memory of a step grows with the batch, and so does that of the batches that stoker has ready.
"""

import statistics

import keras
import photographs
import profiles
import stoker
import timing

SIZE, IMAGES, EPOCHS = 64, 256, 1 if timing.QUICK else 4
SIZES = (8, 32, 128, 256)

source = stoker.image_folder(photographs.folder(__doc__, count=IMAGES))
crop = [stoker.RandomCrop(SIZE), stoker.RandomHorizontalFlip()]
with stoker.Loader(source, [stoker.Resize((72, 72))], batch_size=len(source)) as loader:
    decoded = stoker.arrays(*next(iter(loader)))  # so that decoding does not hide the step


def classifier() -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 127.5, offset=-1),
            keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(source.classes), activation="softmax"),
        ]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def loader_of(batch: int) -> stoker.Loader:
    return stoker.Loader(decoded, crop, batch_size=batch, shuffle=True, seed=1, drop_remainder=True)


def fitting(model: keras.Model, batch: int):
    """Returns a function that trains for some epochs."""

    def fit() -> None:
        with loader_of(batch) as loader:
            model.fit(loader.as_tf_dataset().repeat(EPOCHS), verbose=0)

    return fit


def memory(model: keras.Model, batch: int) -> tuple[float, float]:
    """MB: TensorFlow's at the peak of a step, and stoker's."""
    with loader_of(batch) as loader:
        events = profiles.training(model, loader.as_tf_dataset().take(1))
        return profiles.peak(events) / 1e6, loader.stats()["memory_used"] / 1e6


sizes = [size for size in SIZES if size <= len(source)]
models = {batch: classifier() for batch in sizes}
seconds = timing.in_turns({f"batches of {batch}": fitting(model, batch) for batch, model in models.items()})
told = []
for (name, each), (batch, model) in zip(seconds.items(), models.items()):
    used = EPOCHS * (len(source) // batch) * batch
    step, stokers = memory(model, batch)
    ms = 1000 * statistics.median(each) * batch / used
    told.append(
        f"{name}: {used / statistics.median(each):,.0f} images/s, {ms:.0f} ms and {step:.1f} MB for a step"
    )
    print(f"{told[-1]}; stoker's memory: {stokers:.1f} MB")
pairs = [(f"batches of {larger}", f"batches of {smaller}") for smaller, larger in zip(sizes, sizes[1:])]
print(
    f"verdict: of CPU time, {'; '.join(told)}; {'; '.join(timing.verdict(seconds, *pair) for pair in pairs)}"
)
