"""Runs torchvision's references/classification/train.py, unchanged, with its two data loaders replaced.

    python tests/python/torchvision_references.py REFERENCES/classification --data-path PHOTOS …

The script's data sets, presets and samplers are made by torchvision as ever; what its DataLoader would have
done with them is done by stoker.torch.DataLoader. What stoker would not do as torchvision does is refused.
"""

import inspect
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
SHUFFLES = {torch.utils.data.RandomSampler: True, torch.utils.data.SequentialSampler: False}


def translated(transform):
    """Returns stoker's transform; None for one that only changes the data type, which the loader does."""
    name = type(transform).__name__
    if name == "PILToTensor" or (name == "ConvertImageDtype" and transform.dtype == torch.float32):
        return None
    if name not in OPTIONS:
        raise NotImplementedError(f"{transform}")
    for option, parameter in inspect.signature(type(transform)).parameters.items():
        if option not in OPTIONS[name] and getattr(transform, option) != parameter.default:
            raise NotImplementedError(f"{name} with {option}={getattr(transform, option)}")
    return getattr(stoker, name)(**{option: getattr(transform, option) for option in OPTIONS[name]})


def shuffles(sampler, dataset):
    each_once = len(sampler) == len(dataset) and not getattr(sampler, "replacement", False)
    if type(sampler) not in SHUFFLES or not each_once:
        raise NotImplementedError(f"{type(sampler).__name__} of {len(sampler)} of {len(dataset)} samples")
    return SHUFFLES[type(sampler)]


def data_loader(dataset, batch_size, sampler, num_workers, pin_memory, collate_fn=None):
    if type(dataset) is not torchvision.datasets.ImageFolder or dataset.target_transform or collate_fn:
        raise NotImplementedError("only ImageFolder, without target_transform and collate_fn")
    transforms = [translated(transform) for transform in dataset.transform.transforms.transforms]
    loader = stoker.torch.DataLoader(
        stoker.image_folder(dataset.root),
        [transform for transform in transforms if transform],
        batch_size=batch_size,
        shuffle=shuffles(sampler, dataset),
        num_workers=num_workers,
        pin_memory=pin_memory and torch.cuda.is_available(),
        exif_orientation=False,  # ImageFolder ignores it
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
