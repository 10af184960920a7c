"""stoker's batches as PyTorch's tensors. stoker is added to the environment of torch_loader."""

from workload import BATCH

from adapters import stoker_loader

NAME = "stoker.torch"
DISTRIBUTION = "stoker"
PACKAGES = ()
IMPORTS = ("stoker.torch",)
BORROWS = ("torch_loader", "stoker_loader")
VARIANTS = {
    "files": "antialiased",
    "packed": "antialiased; a packed set, made before",
}
WORKLOADS = stoker_loader.WORKLOADS
prepare = stoker_loader.prepare


def batches(data, workload, variant):
    import stoker
    import stoker.torch

    loader = stoker.torch.DataLoader(
        stoker_loader.source(data, variant),
        stoker_loader.transforms(workload, antialias=True),
        batch_size=BATCH,
        shuffle=workload.train,
        drop_last=True,
        dtype=workload.dtype,
        runtime=stoker.Runtime(threads=data.cores),
    )
    while True:
        for images, _ in loader:
            yield images
