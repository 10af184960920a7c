"""WebDataset: tar files, Pillow, and PyTorch's DataLoader, which it borrows."""

import pathlib
import tarfile

from workload import BATCH

from adapters.torch_loader import transform

NAME = "WebDataset"
DISTRIBUTION = "webdataset"
PACKAGES = ("webdataset", "numpy")
IMPORTS = ("webdataset", "torchvision")
BORROWS = ("torch_loader",)
VARIANTS = {"pillow": "antialiased; tar files, written before; shuffled in a buffer of 500"}
WORKLOADS = ("train", "train-f32", "eval")


def prepare(data, variant):
    files, shards = data.files(), max(4, data.cores)
    for shard in range(shards):
        with tarfile.open(data.prepared / f"{shard:03d}.tar", "w") as tar:
            for place in range(len(files) * shard // shards, len(files) * (shard + 1) // shards):
                tar.add(files[place], f"{place:07d}.jpg")


def batches(data, workload, variant):
    import torch
    import webdataset

    torch.set_num_threads(1)
    urls = sorted(map(str, pathlib.Path(data.prepared).glob("*.tar")))
    dataset = webdataset.WebDataset(urls, shardshuffle=4 if workload.train else False, empty_check=False)
    if workload.train:
        dataset = dataset.shuffle(500)
    apply = transform(workload, "pillow")
    dataset = dataset.decode("pil").to_tuple("jpg").map_tuple(apply).batched(BATCH, partial=False)
    loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=data.cores, persistent_workers=True)
    while True:
        for batch in loader:
            yield batch[0]
