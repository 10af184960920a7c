"""PyTorch's DataLoader with torchvision. A core has one worker process, with one thread."""

from math import ceil

from workload import BATCH, MEAN, SIZE, STD, center

NAME = "torch DataLoader"
DISTRIBUTION = "torch"
PACKAGES = ("torch", "torchvision", "numpy", "pillow")
IMPORTS = ("torch", "torchvision")
VARIANTS = {
    "tensor": "antialiased; torchvision's decode_jpeg, transforms.v2 of tensors",
    "pillow": "antialiased; Pillow, transforms.v2 of its images",
}
NAMED = {"pillow-draft": "antialiased; Pillow, decoded at 1/2, 1/4 or 1/8 of the size by draft()"}
WORKLOADS = ("train", "train-f32", "train-f16", "eval", "recipe")


def transform(workload, variant):
    import torch
    from torchvision.transforms import v2

    if variant == "pillow-draft":
        chosen = [v2.RandomHorizontalFlip()] if workload.train else []
    elif workload.train:
        chosen = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
    else:
        chosen = [v2.Resize(256, antialias=True), v2.CenterCrop(SIZE)]
    if workload.transform == "recipe":
        chosen.append(v2.RandAugment(2, 7))
    if variant.startswith("pillow"):
        chosen.append(v2.PILToTensor())
    if workload.normalized:
        chosen += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    if workload.transform == "recipe":
        chosen.append(v2.RandomErasing(0.25))
    if workload.dtype == "float16":
        chosen.append(v2.ToDtype(torch.float16))
    return v2.Compose(chosen)


def drafted(image, workload):
    """Returns the crop of a file that Pillow has opened, resized, and decoded at no more than it needs."""
    from PIL import Image
    from torchvision.transforms import RandomResizedCrop

    width, height = image.size
    if workload.train:
        top, left, h, w = RandomResizedCrop.get_params(image, (0.08, 1), (3 / 4, 4 / 3))
    else:
        whole_width, whole_height, left, top = center(width, height)
        across, along = width / whole_width, height / whole_height
        left, top, w, h = left * across, top * along, SIZE * across, SIZE * along
    image.draft("RGB", (ceil(SIZE * width / w), ceil(SIZE * height / h)))  # at least this size
    across, along = image.width / width, image.height / height
    box = (left * across, top * along, (left + w) * across, (top + h) * along)
    return image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR, box)


def dataset(data, workload, variant):
    import torch
    import torchvision.io
    from PIL import Image

    apply = transform(workload, variant)

    class Photos(torch.utils.data.Dataset):
        def __init__(self):
            self.files = data.files()

        def __len__(self):
            return len(self.files)

        def __getitem__(self, place):
            if variant == "pillow-draft":
                return apply(drafted(Image.open(self.files[place]), workload))
            if variant == "pillow":
                return apply(Image.open(self.files[place]).convert("RGB"))
            content = torchvision.io.read_file(self.files[place])
            return apply(torchvision.io.decode_jpeg(content, mode=torchvision.io.ImageReadMode.RGB))

    return Photos()


def batches(data, workload, variant):
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        dataset(data, workload, variant),
        batch_size=BATCH,
        shuffle=workload.train,
        num_workers=data.cores,
        drop_last=True,
        persistent_workers=True,
    )
    while True:
        yield from loader
