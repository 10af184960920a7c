"""Runs torchvision's references/classification/train.py, unchanged, with its two data loaders replaced.

    python tests/python/torchvision_references.py REFERENCES/classification --data-path PHOTOS …

The script's data sets, presets and samplers are made by torchvision as ever; what its DataLoader would have
done with them is done by stoker.torch.DataLoader.
"""

import runpy
import sys

import stoker
import stoker.torch
import torch
import torchvision

# By the name of torchvision's transform; each takes its options from the attributes of the same names.
OPTIONS = {
    "RandomResizedCrop": ("size", "scale", "ratio", "interpolation"),
    "RandomHorizontalFlip": ("p",),
    "RandAugment": ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"),
    "TrivialAugmentWide": ("num_magnitude_bins", "interpolation", "fill"),
    "Resize": ("size", "interpolation"),
    "CenterCrop": ("size",),
    "Normalize": ("mean", "std"),
    "RandomErasing": ("p", "scale", "ratio", "value"),
}
OF_DTYPE = ("PILToTensor", "ConvertImageDtype")


def translated(preset):
    for transform in preset.transforms.transforms:
        name = type(transform).__name__
        if name in OPTIONS:
            yield getattr(stoker, name)(**{option: getattr(transform, option) for option in OPTIONS[name]})
        elif name not in OF_DTYPE:
            raise NotImplementedError(name)


def data_loader(dataset, batch_size, sampler, num_workers, pin_memory, collate_fn=None):
    assert isinstance(dataset, torchvision.datasets.ImageFolder) and collate_fn is None
    loader = stoker.torch.DataLoader(
        stoker.image_folder(dataset.root),
        list(translated(dataset.transform)),
        batch_size=batch_size,
        shuffle=isinstance(sampler, torch.utils.data.RandomSampler),
        num_workers=num_workers,
        pin_memory=pin_memory and torch.cuda.is_available(),
        dtype="float32",
        layout="NCHW",
    )
    assert loader.dataset.classes == dataset.classes and len(loader.dataset) == len(dataset)
    print(f"stoker loads {len(dataset)} images of {dataset.root}")
    return loader


class DataLoader:
    def __new__(cls, *args, **options):
        return data_loader(*args, **options)


if __name__ == "__main__":
    folder = sys.argv.pop(1)
    sys.path.insert(0, folder)
    torch.utils.data.DataLoader = DataLoader
    runpy.run_path(f"{folder}/train.py", run_name="__main__")
