"""torchvision's training of object detectors (references/detection) with only the loader swapped.

    python examples/torch/detection.py [--data-augmentation ssdlite] [--device cuda:0]

The presets are those of references/detection/presets.py, and the loop is that of its engine.py.
`stoker.coco` takes the place of CocoDetection and its filters, and `images_and_targets` that of collate_fn:
it makes a list of images and a list of dictionaries, which are views of the batch. Batches are not grouped
by aspect ratio.
"""

import argparse
import pathlib
import tempfile

import shapes
import stoker
import stoker.torch
import torch
import torchvision

EPOCHS, BATCH = 3, 4
MEAN = (123, 117, 104)
SMALL = {  # so that it trains in seconds on a CPU
    "min_size": 128,
    "max_size": shapes.LARGEST,
    "rpn_pre_nms_top_n_train": 100,
    "box_batch_size_per_image": 32,
}

flip = stoker.RandomHorizontalFlip()
PRESETS = {
    "hflip": [flip, stoker.PadTo(shapes.LARGEST)],  # of COCO's images: 640
    "lsj": [stoker.ScaleJitter((1024, 1024)), stoker.RandomCrop(1024, pad_if_needed=True, fill=MEAN), flip],
    "multiscale": [
        stoker.RandomShortestSize(list(range(480, 801, 32)), max_size=1333),
        flip,
        stoker.PadTo("batch"),
    ],
    # The models of SSD resize to one size: here the presets do, so that colours have fewer pixels to change.
    # RandomZoomOut adds black; in the reference, MEAN.
    "ssd": [
        stoker.RandomZoomOut(),
        stoker.RandomIoUCrop(),
        flip,
        stoker.Resize((300, 300)),
        stoker.RandomPhotometricDistort(),
    ],
    "ssdlite": [stoker.RandomIoUCrop(), flip, stoker.Resize((320, 320))],
}


def make_loader(folder: pathlib.Path, preset: str) -> stoker.torch.DataLoader:
    source = stoker.coco(folder / "boxes.json", folder / "images", keep_crowd=False, keep_empty=False)
    transforms = [*PRESETS[preset], stoker.ConvertBoundingBoxFormat("xyxy"), stoker.SanitizeBoundingBoxes()]
    return stoker.torch.DataLoader(source, transforms, batch_size=BATCH, shuffle=True, drop_last=True, seed=1)


def train_one_epoch(model, optimizer, loader, device: str) -> float:
    model.train()
    total = 0.0
    for batch in loader:
        images, targets = stoker.torch.images_and_targets(batch)
        images = [image.to(device) for image in images]
        targets = [{name: value.to(device) for name, value in target.items()} for target in targets]
        loss = sum(model(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-augmentation", choices=PRESETS, default="hflip")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        shapes.make(folder)
        loader = make_loader(folder, arguments.data_augmentation)
        model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=len(shapes.CLASSES) + 1, **SMALL
        ).to(arguments.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        for epoch in range(EPOCHS):
            loss = train_one_epoch(model, optimizer, loader, arguments.device)
            print(f"epoch {epoch}: {len(loader)} batches, mean loss {loss:.3f}")


if __name__ == "__main__":
    main()
