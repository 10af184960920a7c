"""A training loop in PyTorch over a folder of photographs, stopped and resumed in the middle of an epoch.

python examples/torch/train.py photos/train [--device cuda:0]
"""

import argparse
import subprocess
import sys
import tempfile

import stoker
import stoker.torch
import torch

EPOCHS, BATCH, SIDE = 2, 16, 64


def make_loader(folder: str, device: str) -> stoker.torch.DataLoader:
    transforms = [
        stoker.RandomResizedCrop(SIDE),
        stoker.RandomHorizontalFlip(),
        stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    source = stoker.image_folder(folder)
    return stoker.torch.DataLoader(
        source, transforms, batch_size=BATCH, shuffle=True, drop_last=True, device=device, seed=1
    )


def make_model(classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 4 * 4, classes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", help="photographs in class folders; made when left out")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if arguments.folder is None:
            synth = [sys.executable, "-m", "stoker", "synth", made, "--count", "120", "--classes", "4"]
            subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)
        train(arguments.folder or made, arguments.device)


def train(folder: str, device: str) -> None:
    loader = make_loader(folder, device)
    model = make_model(len(loader.classes)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    checkpoint = {}
    for epoch in range(EPOCHS):
        losses = []
        for step, (images, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if epoch == EPOCHS - 1 and step == 1:
                checkpoint = {"model": model.state_dict(), "data": loader.state_dict()}
        print(f"epoch {epoch}: {len(losses)} batches, mean loss {sum(losses) / len(losses):.3f}")

    # Another process would begin here.
    resumed = make_loader(folder, device)
    resumed.load_state_dict(checkpoint["data"])
    left = sum(1 for _ in resumed)
    print(f"resumed at batch {checkpoint['data']['batch']}: {left} of {len(resumed)} batches left")


if __name__ == "__main__":
    main()
