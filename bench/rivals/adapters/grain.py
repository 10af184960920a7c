"""Google's Grain with Pillow, as its documentation shows it."""

import io

from workload import BATCH, SIZE, center, normalize, random_crop

NAME = "Grain"
DISTRIBUTION = "grain"
PACKAGES = ("grain", "numpy", "pillow")
IMPORTS = ("grain", "PIL.Image")
VARIANTS = {
    "threads": "antialiased; Pillow in threads",
    "processes": "antialiased; Pillow in processes",
}
WORKLOADS = ("train", "train-f32", "eval")


class Photos:
    """The bytes of each file."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, place):
        with open(self.files[place], "rb") as file:
            return file.read()


def decoded(content):
    from PIL import Image

    return Image.open(io.BytesIO(content)).convert("RGB")


def train(content, draws):
    import numpy as np
    from PIL import Image

    image = decoded(content)
    left, top, width, height = random_crop(*image.size, draws)
    box = (left, top, left + width, top + height)
    pixels = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box))
    return pixels[:, ::-1] if draws.random() < 0.5 else pixels


def evaluated(content):
    import numpy as np
    from PIL import Image

    image = decoded(content)
    width, height, left, top = center(*image.size)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIZE, top + SIZE)))


def batches(data, workload, variant):
    import grain

    dataset = grain.MapDataset.source(Photos(data.files()))
    if workload.train:
        dataset = dataset.seed(0).shuffle().repeat().random_map(train)
    else:
        dataset = dataset.repeat().map(evaluated)
    if workload.normalized:
        dataset = dataset.map(normalize)
    dataset = dataset.batch(BATCH, drop_remainder=True)
    if variant == "threads":
        return iter(
            dataset.to_iter_dataset(
                grain.ReadOptions(num_threads=data.cores, prefetch_buffer_size=2 * data.cores)
            )
        )
    iterated = dataset.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2))
    workers = grain.MultiprocessingOptions(num_workers=data.cores, per_worker_buffer_size=2)
    return iter(iterated.mp_prefetch(workers))
