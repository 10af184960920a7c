"""stoker. It is measured in the environment of the Python that runs compare.py."""

import ctypes
import itertools
import subprocess
import sys

from workload import BATCH, MEAN, SIZE, STD

NAME = "stoker"
DISTRIBUTION = "stoker"
PACKAGES = ()
IMPORTS = ("stoker",)
VARIANTS = {
    "files": "antialiased",
    "index": "antialiased; with a crop index, made before",
    "packed": "antialiased; a packed set, made before",
    "plain": "not antialiased",
    "cache": 'antialiased; with cache="ram:8GiB", after the first epoch',
    "tensorflow": "antialiased; as a tf.data.Dataset",
    "packed-tensorflow": "antialiased; a packed set, made before, as a tf.data.Dataset",
}
NAMED = {
    "scaled": 'antialiased; with decode="scaled"',
    "packed-scaled": 'antialiased; a packed set, made before, with decode="scaled"',
    **{f"{name}-avx2": f"{VARIANTS[name]}; without AVX-512" for name in ("files", "index", "packed")},
}
WORKLOADS = ("train", "train-f32", "train-f16", "eval", "recipe")
AVX512 = 1 << 6 | 1 << 7 | 1 << 8  # Highway's HWY_AVX3_ZEN4, HWY_AVX3_DL and HWY_AVX3


def command(*words):
    subprocess.run([sys.executable, "-m", "stoker", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def prepare(data, variant):
    if variant.startswith("index"):
        command("index", data.photos, "--out", data.prepared / "crop_index")
    if variant.startswith("packed"):
        command("pack", data.photos, data.prepared / "packed")


def transforms(workload, antialias):
    import stoker

    if workload.train:
        chosen = [stoker.RandomResizedCrop(SIZE, antialias=antialias), stoker.RandomHorizontalFlip()]
    else:
        chosen = [stoker.Resize(256, antialias=antialias), stoker.CenterCrop(SIZE)]
    if workload.transform == "recipe":
        chosen.append(stoker.RandAugment(2, 7))
    if workload.normalized:
        chosen.append(stoker.Normalize(MEAN, STD))
    if workload.transform == "recipe":
        chosen.append(stoker.RandomErasing(0.25))
    return chosen


def source(data, variant):
    import stoker

    if variant.startswith("packed"):
        return stoker.packed(data.prepared / "packed")
    return stoker.image_folder(
        data.photos, crop_index=data.prepared / "crop_index" if variant.startswith("index") else "off"
    )


def disable_avx512():
    """Has Highway choose its kernels again. (In 1.0.3 hwy::SupportedTargets undoes hwy::DisableTargets.)"""
    highway = ctypes.CDLL("libhwy.so.1")
    supported_targets = highway._ZN3hwy16SupportedTargetsEv
    supported_targets.restype = ctypes.c_int64
    highway._ZN3hwy26SetSupportedTargetsForTestEl(ctypes.c_int64(supported_targets() & ~AVX512))


def batches(data, workload, variant):
    import stoker

    if variant.endswith("avx2"):
        disable_avx512()
    loader = stoker.Loader(
        source(data, variant),
        transforms(workload, antialias=variant != "plain"),
        batch_size=BATCH,
        shuffle=workload.train,
        drop_remainder=True,
        dtype=workload.dtype,
        layout="NCHW" if workload.planar else "NHWC",
        cache="ram:8GiB" if variant == "cache" else None,
        decode="scaled" if variant.endswith("scaled") else "full",
        runtime=stoker.Runtime(threads=data.cores),
    )
    epochs = [loader.as_tf_dataset().repeat()] if variant.endswith("tensorflow") else itertools.repeat(loader)
    for epoch in epochs:
        for batch in epoch:
            yield batch[0]
