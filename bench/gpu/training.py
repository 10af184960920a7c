"""Trains for a while, and measures how long the training waited for its batches.

    python bench/gpu/training.py PHOTOS --framework torch --loader stoker
    python bench/gpu/training.py PHOTOS --loader usual --workers 16 --model resnet18
    python bench/gpu/training.py PHOTOS --loader dali --workers 8
    python bench/gpu/training.py PHOTOS --model gemm:32x8192
    python bench/gpu/training.py PHOTOS --trace
    python bench/gpu/training.py PHOTOS --loader decode_jpeg

A step is first timed on a batch that is on the device already. Then the training runs for a while, until no
batch is left that was made meanwhile, and is then timed; the time beyond that of its steps is its wait. With
PyTorch, the steps' own time is measured on the device too, so that it shows whether copies slow them down:
the step of gemm:COUNTxSIZE is COUNT matrix products, whatever the batch holds.

Prints one JSON object. `usual` is torch's DataLoader with torchvision's transforms, pinned memory and copies
that do not block (for JAX: its arrays, put on the device). `dali` decodes on the GPU. --trace adds the share
of the copies' time to the device during which a kernel of the training ran, from torch.profiler's trace.
`decode_jpeg` trains nothing: torchvision.io.decode_jpeg decodes photographs, from memory, on the device.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = 224


class Training(NamedTuple):
    """`mark` returns a moment of the device's, and `between` the seconds from one to another."""

    step: Callable[[Any], None]
    finish: Callable[[], None]  # waits until the device has done all steps
    loader: Iterable[Any]
    mark: Callable[[], Any] | None = None
    between: Callable[[Any, Any], float] | None = None


# --- loaders --------------------------------------------------------------------------------------


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


def dali_batches(args: argparse.Namespace, on_gpu: bool) -> Any:
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

    ordinal = int(args.device.partition(":")[2] or 0) if on_gpu else None

    @pipeline_def(batch_size=args.batch_size, num_threads=args.workers, device_id=ordinal)
    def pipeline() -> Any:
        encoded, labels = fn.readers.file(file_root=args.photos, random_shuffle=True, name="photos")
        images = fn.decoders.image_random_crop(
            encoded, device="mixed" if on_gpu else "cpu", output_type=types.RGB
        )
        images = fn.crop_mirror_normalize(
            fn.resize(images, size=(SIZE, SIZE)),
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * x for x in MEAN],
            std=[255 * x for x in STD],
            mirror=fn.random.coin_flip(),
        )
        return images, labels.gpu() if on_gpu else labels

    batches = DALIClassificationIterator(
        pipeline(), reader_name="photos", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
    )

    class Dali:
        def __iter__(self) -> Iterator[Any]:
            for (batch,) in batches:
                yield batch["data"], batch["label"].squeeze(-1).long()

    return Dali()


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


def torch_step(args: argparse.Namespace, device: Any) -> Callable[[Any], None]:
    import torch
    import torchvision

    if args.model.startswith("gemm:"):
        count, size = map(int, args.model[len("gemm:") :].split("x"))
        left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
        product = torch.empty_like(left)

        def multiply(batch: Any) -> None:
            for _ in range(count):
                torch.mm(left, right, out=product)

        return multiply

    model = getattr(torchvision.models, args.model)(num_classes=1000).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def train(batch: Any) -> None:
        images, labels = batch
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = loss_of(model(images.to(memory_format=torch.channels_last)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return train


def torch_training(args: argparse.Namespace) -> Training:
    import torch

    device = torch.device("cpu" if args.device == "host" else args.device)
    on_gpu = device.type == "cuda"
    if not on_gpu:
        torch.set_num_threads(1)  # its own wait for each other actively
    step = torch_step(args, device)

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def training(loader: Iterable[Any]) -> Training:
        if on_gpu:
            between = lambda begin, end: begin.elapsed_time(end) / 1e3  # noqa: E731
            return Training(step, torch.cuda.synchronize, loader, mark, between)
        return Training(step, lambda: None, loader, time.perf_counter, lambda begin, end: end - begin)

    if args.loader == "dali":
        return training(dali_batches(args, on_gpu))
    if args.loader == "stoker":
        tensors = stoker_batches(args, "NCHW", "float32")

        class Torch:
            def __iter__(self) -> Iterator[Any]:
                for images, labels in tensors:
                    if on_gpu:
                        images.record_stream(torch.cuda.current_stream())
                    yield torch.from_dlpack(images), torch.from_dlpack(labels)

        return training(Torch())
    return training(OnDevice(usual_batches(args, on_gpu), device))


# --- JAX ------------------------------------------------------------------------------------------


def jax_training(args: argparse.Namespace) -> Training:
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

        return Training(step, finish, Jax())
    loader = usual_batches(args, False)

    class Put:
        def __iter__(self) -> Iterator[Any]:
            for images, labels in loader:
                yield jax.device_put(images.numpy().transpose(0, 2, 3, 1)), jax.device_put(labels.numpy())

    return Training(step, finish, Put())


# --- measuring ------------------------------------------------------------------------------------


def decoding(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the rate of torchvision's decoder for the device."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    device = "cpu" if args.device == "host" else args.device
    paths = sorted(p for p in pathlib.Path(args.photos).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    encoded = [read_file(str(path)) for path in paths[: 16 * args.batch_size]]
    batches = forever([encoded[i : i + args.batch_size] for i in range(0, len(encoded), args.batch_size)])

    def decoded(count: int) -> int:
        images = 0
        for _ in range(count):
            images += len(decode_jpeg(next(batches), mode=ImageReadMode.RGB, device=device))
        if device != "cpu":
            torch.cuda.synchronize()
        return images

    decoded(args.warmup)
    begun = time.perf_counter()
    images = decoded(args.steps)
    return {"images_per_second": images / (time.perf_counter() - begun)}


def copies_under_kernels(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Returns the milliseconds of copies to the device in a trace of torch.profiler, and the share of them
    during which a kernel ran that is not stoker's.
    """
    copies, kernels = [], []
    for event in events:
        if event.get("cat") == "gpu_memcpy" and "HtoD" in event["name"]:
            copies.append((event["ts"], event["ts"] + event["dur"]))
        elif event.get("cat") == "kernel" and "stoker" not in event["name"]:
            kernels.append((event["ts"], event["ts"] + event["dur"]))
    busy: list[list[float]] = []  # the time of kernels, without overlaps
    for begin, end in sorted(kernels):
        if busy and begin <= busy[-1][1]:
            busy[-1][1] = max(busy[-1][1], end)
        else:
            busy.append([begin, end])
    copied = sum(end - begin for begin, end in copies)
    if not copied:
        raise SystemExit("the trace has no copy to the device")
    covered = sum(max(0, min(end, e) - max(begin, b)) for begin, end in copies for b, e in busy)
    return {"copy_ms": copied / 1e3, "copies_under_kernels": covered / copied}


def traced(training: Training, batches: Iterator[Any], steps: int) -> dict[str, float]:
    from torch import profiler

    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(steps):
            training.step(next(batches))
        training.finish()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "trace.json")
        profile.export_chrome_trace(str(path))
        return copies_under_kernels(json.loads(path.read_text())["traceEvents"])


def copy_of(batch: Any) -> Any:
    """Returns the framework's own memory to the device: stoker's measurement needs it."""
    return tuple(x.clone() if hasattr(x, "clone") else x.copy() for x in batch)


def timed(training: Training, steps: int, take: Callable[[], Any]) -> tuple[float, float | None]:
    """Returns the seconds that the steps took, and the device's seconds within them."""
    marks = []
    begun = time.perf_counter()
    for _ in range(steps):
        batch = take()
        begin = training.mark and training.mark()
        training.step(batch)
        marks.append((begin, training.mark and training.mark()))
    training.finish()
    seconds = time.perf_counter() - begun
    return seconds, training.between and sum(training.between(*pair) for pair in marks)


def trained(args: argparse.Namespace) -> dict[str, Any]:
    training = (torch_training if args.framework == "torch" else jax_training)(args)
    batches = forever(training.loader)
    resident = copy_of(next(batches))
    for _ in range(args.warmup):
        training.step(next(batches))
    for _ in range(3):  # JAX compiles again for an array that it has made itself
        training.step(resident)
    training.finish()

    bare, bare_steps = timed(training, args.steps, lambda: resident)
    for _ in range(5 * args.warmup):  # uses up the batches that were made ahead while nothing was taken
        training.step(next(batches))
    training.finish()
    whole, steps = timed(training, args.steps, lambda: next(batches))
    figures = {
        "step_ms": 1e3 * bare / args.steps,
        "images_per_second": args.steps * args.batch_size / whole,
        "step_alone_images_per_second": args.steps * args.batch_size / bare,
        "waited_share": max(0.0, 1 - bare / whole),
    }
    if steps is not None:
        figures["steps_slower"] = steps / bare_steps - 1
    if args.trace:
        figures.update(traced(training, batches, args.steps))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos")
    parser.add_argument("--framework", choices=["torch", "jax"], default="torch")
    parser.add_argument("--loader", choices=["stoker", "usual", "dali", "decode_jpeg"], default="stoker")
    parser.add_argument("--device", default="cuda:0", help="cuda:N; host to try the program without a GPU")
    parser.add_argument("--model", default="resnet50", help="torchvision's name, or gemm:COUNTxSIZE")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=8)
    parser.add_argument("--workers", type=int, default=16, help="of torch's DataLoader and DALI")
    parser.add_argument("--trace", action="store_true")
    args = parser.parse_args()
    told = {"loader": args.loader, "device": args.device, "batch_size": args.batch_size}
    if args.loader == "decode_jpeg":
        told.update(decoding(args))
    else:
        told.update(model=args.model if args.framework == "torch" else args.framework, **trained(args))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
