"""torchvision's training of segmentation models (references/segmentation) with only the loader swapped.

    python examples/torch/segmentation.py [--device cuda:0]

The preset is that of references/segmentation/presets.py: each image is resized to between half and twice
the base size, flipped, cropped, and normalized, and its mask likewise, by nearest pixels. An image that is
smaller than the crop is padded with 0, and its mask with 255, which the loss leaves out. The reference pads
right and below; here the image is at a random place.
"""

import argparse
import pathlib
import tempfile

import shapes
import stoker
import stoker.torch
import torch
import torchvision

EPOCHS, BATCH, BASE_SIZE, CROP_SIZE = 3, 8, 70, 64  # the reference: 520, 480


def make_loader(folder: pathlib.Path) -> stoker.torch.DataLoader:
    transforms = [
        stoker.RandomShortestSize(list(range(BASE_SIZE // 2, BASE_SIZE * 2 + 1))),
        stoker.RandomHorizontalFlip(),
        stoker.RandomCrop(CROP_SIZE, pad_if_needed=True),
        stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    source = stoker.masks(folder / "images", folder / "masks", fill=255)
    return stoker.torch.DataLoader(source, transforms, batch_size=BATCH, shuffle=True, drop_last=True, seed=1)


def criterion(outputs: dict[str, torch.Tensor], masks: torch.Tensor) -> torch.Tensor:
    """The reference's: an auxiliary head, if the model has one, counts half."""
    losses = [torch.nn.functional.cross_entropy(each, masks, ignore_index=255) for each in outputs.values()]
    return losses[0] + sum(0.5 * loss for loss in losses[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        shapes.make(folder)
        loader = make_loader(folder)
        model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
            weights=None, weights_backbone=None, num_classes=len(shapes.CLASSES) + 1
        ).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
        steps = EPOCHS * len(loader)
        schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps, power=0.9)
        for epoch in range(EPOCHS):
            losses, shares = [], []
            for images, masks in loader:
                images, masks = images.to(device), masks.to(device, torch.int64)
                outputs = model(images)
                loss = criterion(outputs, masks)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss)
                shares.append((outputs["out"].argmax(1) == masks)[masks != 255].float().mean())
            loss, share = torch.stack(losses).mean(), torch.stack(shares).mean()
            print(f"epoch {epoch}: mean loss {loss:.3f}, {share:.1%} of the pixels are right")


if __name__ == "__main__":
    main()
