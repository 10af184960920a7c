"""Trains for a while, and measures how long the training waited for its batches.

    python bench/gpu/training.py PHOTOS --framework torch --loader stoker
    python bench/gpu/training.py PHOTOS --framework torch --loader usual --workers 16
    python bench/gpu/training.py PHOTOS --framework jax --loader stoker

A step is first timed on a batch that is on the device already. Then the training runs for a while, until no
batch is left that was made meanwhile, and is then timed; the time beyond that of its steps is its wait.
Prints one JSON object. `usual` is torch's DataLoader with
torchvision's transforms, pinned memory and copies that do not block (for JAX: its arrays, put on the
device).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = 224


def stoker_batches(args: argparse.Namespace, layout: str, dtype: str) -> Any:
    import stoker

    loader = stoker.Loader(
        stoker.image_folder(args.photos),
        [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip(), stoker.Normalize(MEAN, STD)],
        batch_size=args.batch_size,
        shuffle=True,
        drop_remainder=True,
        dtype=dtype,
        layout=layout,
    )
    return loader.to_device(args.device)


class OnDevice:
    """Yields torch's batches, copied without blocking."""

    def __init__(self, loader: Iterable[Any], device: Any) -> None:
        self.loader, self.device = loader, device

    def __iter__(self) -> Iterator[Any]:
        for images, labels in self.loader:
            yield images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)


def usual_batches(args: argparse.Namespace, pinned: bool) -> Any:
    import torch
    import torchvision
    from torchvision.transforms import v2

    transforms = v2.Compose(
        [
            v2.RGB(),
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    return torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(args.photos, transforms),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        pin_memory=pinned,
        # A child forked from JAX's threads may hang.
        multiprocessing_context="spawn" if args.framework == "jax" and args.workers > 0 else None,
    )


def forever(loader: Iterable[Any]) -> Iterator[Any]:
    """Yields batches of one epoch after another."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise SystemExit("an epoch has no batch: are there fewer photographs than --batch-size?")


# --- torch ----------------------------------------------------------------------------------------


def torch_training(args: argparse.Namespace) -> tuple[Callable[[Any], None], Callable[[], None], Any]:
    import torch
    import torchvision

    device = torch.device("cpu" if args.device == "host" else args.device)
    model = getattr(torchvision.models, args.model)(num_classes=1000).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(batch: Any) -> None:
        images, labels = batch
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = loss_of(model(images.to(memory_format=torch.channels_last)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    if args.loader == "stoker":
        tensors = stoker_batches(args, "NCHW", "float32")

        class Torch:
            def __iter__(self) -> Iterator[Any]:
                for images, labels in tensors:
                    if device.type == "cuda":
                        images.record_stream(torch.cuda.current_stream())
                    yield torch.from_dlpack(images), torch.from_dlpack(labels)

        return step, finish, Torch()
    return step, finish, OnDevice(usual_batches(args, device.type == "cuda"), device)


# --- JAX ------------------------------------------------------------------------------------------


def jax_training(args: argparse.Namespace) -> tuple[Callable[[Any], None], Callable[[], None], Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    widths, blocks = (64, 128, 256, 512), 2
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return jnp.asarray(random.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape), jnp.bfloat16)

    parameters: dict[str, Any] = {"stem": weights(7, 7, 3, widths[0]), "head": weights(widths[-1], 1000)}
    before = widths[0]
    for s, width in enumerate(widths):
        for b in range(blocks):
            parameters[f"{s}.{b}"] = (
                weights(3, 3, before, width),
                weights(3, 3, width, width),
                weights(1, 1, before, width),
            )
            before = width

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def logits(p: Any, x: Any) -> Any:
        x = jax.nn.relu(conv(x.astype(jnp.bfloat16), p["stem"], 4))
        for s in range(len(widths)):
            for b in range(blocks):
                first, second, short = p[f"{s}.{b}"]
                stride = 2 if b == 0 and s > 0 else 1
                x = jax.nn.relu(
                    conv(jax.nn.relu(conv(x, first, stride)), second) * 0.5 + conv(x, short, stride)
                )
        return (x.mean((1, 2)) @ p["head"]).astype(jnp.float32)

    def loss(p: Any, images: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits(p, images)), labels[:, None], 1).mean()

    @jax.jit
    def update(p: Any, images: Any, labels: Any) -> Any:
        gradients = jax.grad(loss)(p, images, labels)
        return jax.tree.map(lambda a, g: a - 1e-4 * g, p, gradients)

    state = [parameters]

    def step(batch: Any) -> None:
        images, labels = batch
        state[0] = update(state[0], images, labels)

    def finish() -> None:
        jax.block_until_ready(state[0])

    if args.loader == "stoker":
        tensors = stoker_batches(args, "NHWC", "float32")

        class Jax:
            def __iter__(self) -> Iterator[Any]:
                for images, labels in tensors:
                    yield jax.dlpack.from_dlpack(images), jax.dlpack.from_dlpack(labels)

        return step, finish, Jax()
    loader = usual_batches(args, False)

    class Put:
        def __iter__(self) -> Iterator[Any]:
            for images, labels in loader:
                yield jax.device_put(images.numpy().transpose(0, 2, 3, 1)), jax.device_put(labels.numpy())

    return step, finish, Put()


# --- measuring ------------------------------------------------------------------------------------


def copy_of(batch: Any) -> Any:
    """Returns the framework's own memory to the device: stoker's measurement needs it."""
    return tuple(x.clone() if hasattr(x, "clone") else x.copy() for x in batch)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--framework", choices=["torch", "jax"], default="torch")
    parser.add_argument("--loader", choices=["stoker", "usual"], default="stoker")
    parser.add_argument("--device", default="cuda:0", help="cuda:N; cpu to try the script")
    parser.add_argument("--model", default="resnet50", help="torchvision's name")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=8)
    parser.add_argument("--workers", type=int, default=16, help="of torch's DataLoader")
    args = parser.parse_args()

    step, finish, loader = (torch_training if args.framework == "torch" else jax_training)(args)
    batches = forever(loader)
    resident = copy_of(next(batches))
    for _ in range(args.warmup):
        step(next(batches))
    for _ in range(3):  # JAX compiles again for an array that it has made itself
        step(resident)
    finish()

    def steps(take: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        for _ in range(args.steps):
            step(take())
        finish()
        return time.perf_counter() - begun

    bare = steps(lambda: resident)
    for _ in range(max(args.warmup, 40)):  # uses up the batches that were made ahead while nothing was taken
        step(next(batches))
    finish()
    trained = steps(lambda: next(batches))
    print(
        json.dumps(
            {
                "framework": args.framework,
                "loader": args.loader,
                "device": args.device,
                "batch_size": args.batch_size,
                "step_ms": 1e3 * bare / args.steps,
                "images_per_second": args.steps * args.batch_size / trained,
                "step_alone_images_per_second": args.steps * args.batch_size / bare,
                "waited_share": max(0.0, 1 - bare / trained),
            }
        )
    )


if __name__ == "__main__":
    main()
