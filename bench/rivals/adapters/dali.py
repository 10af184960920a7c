"""NVIDIA DALI on the CPU."""

from workload import BATCH, MEAN, SIZE, STD

NAME = "DALI"
DISTRIBUTION = "nvidia-dali-cuda130"
PACKAGES = ("nvidia-dali-cuda130", "numpy")
IMPORTS = ("nvidia.dali",)
VARIANTS = {
    "antialiased": "antialiased; train crops before it decodes",
    "plain": "not antialiased; train crops before it decodes",
}
WORKLOADS = ("train", "train-f32", "train-f16", "eval", "recipe")
CROP = {"random_area": [0.08, 1.0], "random_aspect_ratio": [3 / 4, 4 / 3]}


def erased(image):
    """RandomErasing(0.25)."""
    from nvidia.dali import fn
    from nvidia.dali import math as dali_math

    side = dali_math.sqrt(fn.random.uniform(range=[0.02, 0.33]))
    root = fn.random.uniform(range=[0.3**0.5, 3.3**0.5])
    return fn.erase(
        image,
        anchor=fn.random.uniform(range=[0.0, 0.6], shape=(2,)),
        shape=fn.stack(side * root, side / root),
        axis_names="HW",
        normalized=True,
        fill_value=0,
    )


def train(encoded, workload, antialias):
    from nvidia.dali import fn, types
    from nvidia.dali.auto_aug import rand_augment

    image = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB, **CROP)
    image = fn.resize(image, size=(SIZE, SIZE), antialias=antialias)
    flip = fn.random.coin_flip()
    if not workload.normalized:
        return fn.flip(image, horizontal=flip)
    if workload.transform == "recipe":  # its operations have no direction, so the flip may follow them
        image = rand_augment.rand_augment(image, n=2, m=7, shape=[SIZE, SIZE], fill_value=0)
    image = fn.crop_mirror_normalize(
        image,
        mirror=flip,
        dtype=types.FLOAT16 if workload.dtype == "float16" else types.FLOAT,
        output_layout="CHW",
        mean=[255 * m for m in MEAN],
        std=[255 * s for s in STD],
    )
    if workload.transform == "recipe" and fn.random.coin_flip(probability=0.25, dtype=types.BOOL):
        image = erased(image)
    return image


def evaluated(encoded, antialias):
    from nvidia.dali import fn, types

    image = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
    image = fn.resize(image, resize_shorter=256, antialias=antialias)
    return fn.crop_mirror_normalize(
        image, crop=(SIZE, SIZE), dtype=types.UINT8, output_layout="HWC", mean=0, std=1
    )


def batches(data, workload, variant):
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(
        batch_size=BATCH,
        num_threads=data.cores,
        device_id=None,
        prefetch_queue_depth=2,
        enable_conditionals=True,
    )
    def pipeline():
        encoded, _ = fn.readers.file(
            files=data.files(), shuffle_after_epoch=workload.train, dont_use_mmap=False
        )
        antialias = variant == "antialiased"
        return train(encoded, workload, antialias) if workload.train else evaluated(encoded, antialias)

    made = pipeline()
    made.build()
    while True:
        yield made.run()[0]
