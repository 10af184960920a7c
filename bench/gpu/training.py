"""Trains for a while, and measures how long the training waited for its batches.

    python bench/gpu/training.py PHOTOS --framework torch --loader stoker
    python bench/gpu/training.py PHOTOS --loader stoker --decode device --index FILE
    python bench/gpu/training.py PHOTOS --loader usual --workers 16 --model resnet18
    python bench/gpu/training.py PHOTOS --model gemm:8x8192 --alternate
    python bench/gpu/training.py PHOTOS --trace
    python bench/gpu/training.py PHOTOS --loader decode_jpeg

A step is first timed on a batch that is on the device already. Then the training runs until no batch is left
that was made meanwhile, and is then timed, --turns times; the time beyond that of its steps is its wait. With
PyTorch, the steps' own time is measured on the device too. The step of gemm:COUNTxSIZE is COUNT matrix
products, and does not depend on the batch, which is of bytes, so that no kernel finishes it; --alternate
times it in short blocks with and without copies to the device and compares neighbours, so that a change of
the GPU's clock affects both.

Prints JSON objects, the first ones early. `usual` is torch's DataLoader with torchvision's transforms, pinned
memory and copies that do not block (for JAX: its arrays, put on the device). Its batches lie in /dev/shm, so
it has no more workers and batches ahead than fit there. --trace adds the share of the copies' time to the
device during which a kernel of the training ran, from torch.profiler's trace.
`decode_jpeg` trains nothing: torchvision.io.decode_jpeg decodes photographs, from memory, on the device;
alone, and with what a training needs after it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = 224
GAP_US = 5
AHEAD = 12  # batches that stoker may have made ahead: its slots, and its buffers on the device


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


class Training(NamedTuple):
    """`mark` returns a moment of the device's, and `between` the seconds from one to another."""

    step: Callable[[Any], None]
    finish: Callable[[], None]  # waits until the device has done all steps
    loader: Iterable[Any]
    mark: Callable[[], Any] | None = None
    between: Callable[[Any, Any], float] | None = None
    ahead: int = AHEAD  # batches that may have been made ahead
    copied: Callable[[], int] = int  # bytes that stoker has copied to the device


# --- loaders --------------------------------------------------------------------------------------


def stoker_batches(args: argparse.Namespace, layout: str, dtype: str) -> Any:
    import stoker

    normalize = [] if dtype == "uint8" else [stoker.Normalize(MEAN, STD)]
    loader = stoker.Loader(
        stoker.image_folder(args.photos, crop_index=args.index or "off"),
        [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip(), *normalize],
        batch_size=args.batch_size,
        shuffle=True,
        drop_remainder=True,
        dtype=dtype,
        layout=layout,
    )
    return loader.to_device(args.device, decode=args.decode)


class OnDevice:
    """Yields torch's batches, copied without blocking."""

    def __init__(self, loader: Iterable[Any], device: Any) -> None:
        self.loader, self.device = loader, device

    def __iter__(self) -> Iterator[Any]:
        for images, labels in self.loader:
            yield images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)


def workers_that_fit(free: int, workers: int, batch: int) -> tuple[int, int]:
    """Returns how many workers of torch's DataLoader have room for their batches in /dev/shm, where `free`
    bytes are free, and how many batches each may make ahead; (0, 0) if none has.
    """
    for count in range(workers, 0, -1):
        for ahead in (2, 1):
            if (count * ahead + 2) * batch <= free:  # two more are being handed over
                return count, ahead
    return 0, 0


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
    free = shutil.disk_usage("/dev/shm").free
    workers, ahead = workers_that_fit(free, args.workers, args.batch_size * 3 * SIZE * SIZE * 4)
    say(workers=workers, prefetch_factor=ahead, shm_free_bytes=free)
    if workers == 0:
        raise SystemExit(f"/dev/shm has room for no worker's batches: {free} bytes are free")
    return torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(args.photos, transforms),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        prefetch_factor=ahead,
        persistent_workers=True,
        pin_memory=pinned,
        # A child forked from JAX's threads may hang.
        multiprocessing_context="spawn" if args.framework == "jax" else None,
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

    if args.loader == "stoker":
        tensors = stoker_batches(args, "NCHW", "uint8" if args.model.startswith("gemm:") else "float32")

        class Torch:
            def __iter__(self) -> Iterator[Any]:
                for images, labels in tensors:
                    if on_gpu:
                        images.record_stream(torch.cuda.current_stream())
                    yield torch.from_dlpack(images), torch.from_dlpack(labels)

        return training(Torch())._replace(copied=lambda: tensors.stats()["copied_bytes"])
    loader = usual_batches(args, on_gpu)
    ahead = loader.num_workers * loader.prefetch_factor + 2
    return training(OnDevice(loader, device))._replace(ahead=ahead)


# --- JAX ------------------------------------------------------------------------------------------


def jax_training(args: argparse.Namespace) -> Training:
    import jax
    import jax.numpy as jnp
    import numpy as np

    widths, blocks = ((8, 16), 1) if args.device == "host" else ((64, 128, 256, 512), 2)
    draws = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return jnp.asarray(draws.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape), jnp.bfloat16)

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


def cpu_seconds(root: pathlib.Path = pathlib.Path("/proc")) -> float:
    """Returns the CPU time of this process and of its children that are running: the loader's workers."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for children in (root / "self" / "task").glob("*/children"):
        for child in children.read_text().split():
            try:
                fields = (root / child / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            ticks += int(fields[11]) + int(fields[12])
    return own.ru_utime + own.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def memory_warnings() -> list[str]:
    """Returns a list that gets stoker's warnings about memory, which would make figures of copies
    worthless."""
    texts, show = [], warnings.showwarning

    def keep(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if category.__name__ == "MemoryWarning":
            texts.append(str(message))
        show(message, category, *rest, **more)

    warnings.showwarning = keep
    return texts


def decoding(args: argparse.Namespace) -> None:
    """Prints the rate of torchvision's decoder for the device, alone and with what a training needs after
    it."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    device = "cpu" if args.device == "host" else args.device
    paths = sorted(p for p in pathlib.Path(args.photos).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    random.Random(1).shuffle(paths)  # one photograph may have many names, one after another
    encoded = [read_file(str(path)) for path in paths[: 16 * args.batch_size]]
    batches = forever([encoded[i : i + args.batch_size] for i in range(0, len(encoded), args.batch_size)])
    crop = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])
    finish = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])

    def decode() -> list[Any]:
        return decode_jpeg(next(batches), mode=ImageReadMode.RGB, device=device)

    def whole() -> Any:
        return finish(torch.stack([crop(image) for image in decode()]))

    def run(work: Callable[[], Any], seconds: float) -> tuple[int, float]:
        images, begun = 0, time.perf_counter()
        while images == 0 or time.perf_counter() - begun < seconds:
            images += len(work())
            if device != "cpu":
                torch.cuda.synchronize()
        return images, time.perf_counter() - begun

    for name, work in (("decode_jpeg", decode), ("decode_jpeg, crop, resize, normalise", whole)):
        run(work, 0)
        for _ in range(args.turns):
            cpu = cpu_seconds()
            images, seconds = run(work, args.seconds / args.turns / 2)
            say(work=name, batch_size=args.batch_size, images_per_second=images / seconds,
                cpu_us=1e6 * (cpu_seconds() - cpu) / images)  # fmt: skip


def copies_under_kernels(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Returns the milliseconds of copies to the device in a trace of torch.profiler, and the share of them
    during which a kernel ran that is not stoker's. Only copies between the first such kernel's start and the
    last one's end count: before and after these there is nothing to hide them. Gaps below GAP_US, which the
    device needs between two kernels of a stream, count as part of the kernels.
    """
    copies, kernels = [], []
    for event in events:
        if event.get("cat") == "gpu_memcpy" and "HtoD" in event["name"]:
            copies.append((event["ts"], event["ts"] + event["dur"]))
        elif event.get("cat") == "kernel" and "stoker" not in event["name"]:
            kernels.append((event["ts"], event["ts"] + event["dur"]))
    busy: list[list[float]] = []  # the time of kernels, without overlaps and short gaps
    for begin, end in sorted(kernels):
        if busy and begin < busy[-1][1] + GAP_US:
            busy[-1][1] = max(busy[-1][1], end)
        else:
            busy.append([begin, end])
    if not busy:
        raise SystemExit("the trace has no kernel of the training")
    first, last = busy[0][0], busy[-1][1]
    copied = sum(max(0, min(end, last) - max(begin, first)) for begin, end in copies)
    if not copied:
        raise SystemExit("the trace has no copy to the device during the training")
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


class Run:
    """A training that is warm, its batches, and one that is on the device."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.warnings = memory_warnings()
        self.training = (torch_training if args.framework == "torch" else jax_training)(args)
        self.batches = forever(self.training.loader)
        self.resident = copy_of(next(self.batches))
        for _ in range(args.warmup):
            self.training.step(next(self.batches))
        for _ in range(3):  # JAX compiles again for an array that it has made itself
            self.training.step(self.resident)
        self.training.finish()

    def step(self, seconds: float) -> tuple[float, float | None]:
        """Returns the time of a step on the resident batch: all of it, and the device's."""
        first, _ = timed(self.training, 3, lambda: self.resident)
        count = max(3, round(seconds * 3 / first))
        whole, on_device = timed(self.training, count, lambda: self.resident)
        return whole / count, on_device and on_device / count

    def use_up(self) -> float:
        """Takes all batches that were made while none was taken; returns the seconds that one takes after
        that."""
        for _ in range(self.training.ahead):
            self.training.step(next(self.batches))
        self.training.finish()
        return timed(self.training, 3, lambda: next(self.batches))[0] / 3

    def turn(self, bare: float, bare_on_device: float | None, steps: int) -> None:
        cpu, images = cpu_seconds(), steps * self.args.batch_size
        whole, on_device = timed(self.training, steps, lambda: next(self.batches))
        figures = {
            **named(self.args),
            "images_per_second": images / whole,
            "waited_share": max(0.0, 1 - steps * bare / whole),
            "cpu_us": 1e6 * (cpu_seconds() - cpu) / images,
            "step_ms": 1e3 * bare,
            "step_alone_images_per_second": self.args.batch_size / bare,
            "memory_warnings": self.warnings,
        }
        if on_device is not None:
            figures["steps_slower"] = on_device / steps / bare_on_device - 1
        say(**figures)

    def turns(self) -> None:
        bare, on_device = self.step(self.args.seconds / 4)
        say(**named(self.args), step_ms=1e3 * bare)
        seconds = max(self.use_up(), bare)
        for _ in range(self.args.turns):
            self.turn(bare, on_device, max(3, round(self.args.seconds / self.args.turns / seconds)))

    def block(self, with_copies: bool, seconds: float) -> tuple[float, int]:
        """Returns the device's time for a step, and the bytes that were copied meanwhile."""
        bare, _ = self.step(seconds / 4)  # and by then the batches ahead are complete
        steps = max(3, round(seconds / bare))
        if with_copies:
            self.use_up()
        copied = self.training.copied()
        take = (lambda: next(self.batches)) if with_copies else (lambda: self.resident)
        _, on_device = timed(self.training, steps, take)
        return on_device / steps, self.training.copied() - copied

    def alternate(self) -> None:
        """Times pairs of blocks, with copies and without in turns; the second of one pair is like the next's
        first."""
        pairs = max(1, self.args.turns * 3)
        for pair in range(pairs):
            found = {}
            for with_copies in (pair % 2 == 0, pair % 2 != 0):
                found[with_copies] = self.block(with_copies, self.args.seconds / pairs / 2)
            (bare, bare_bytes), (whole, bytes_) = found[False], found[True]
            say(pair=pair, step_ms=1e3 * bare, with_copies_slower=whole / bare - 1, copied_bytes=bytes_,
                copied_bytes_without=bare_bytes, memory_warnings=self.warnings)  # fmt: skip


def named(args: argparse.Namespace) -> dict[str, Any]:
    model = args.model if args.framework == "torch" else args.framework
    return {"loader": args.loader, "decode": args.decode, "device": args.device, "model": model,
            "batch_size": args.batch_size}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("photos")
    made.add_argument("--framework", choices=["torch", "jax"], default="torch")
    made.add_argument("--loader", choices=["stoker", "usual", "decode_jpeg"], default="stoker")
    made.add_argument("--decode", choices=["workers", "device"], default="workers", help="of stoker")
    made.add_argument("--index", help="crop index of PHOTOS, for stoker; --decode device needs it")
    made.add_argument("--device", default="cuda:0", help="cuda:N; host to try the program without a GPU")
    made.add_argument("--model", default="resnet18", help="torchvision's name, or gemm:COUNTxSIZE")
    made.add_argument("--batch-size", type=int, default=256)
    made.add_argument("--seconds", type=float, default=8, help="to time for, of all turns [%(default)s]")
    made.add_argument("--turns", type=int, default=3)
    made.add_argument("--warmup", type=int, default=4)
    made.add_argument("--workers", type=int, default=16, help="of torch's DataLoader")
    made.add_argument("--trace", action="store_true")
    made.add_argument("--alternate", action="store_true")
    return made


def main() -> None:
    args = parser().parse_args()
    if args.loader == "decode_jpeg":
        return decoding(args)
    run = Run(args)
    if args.alternate:
        return run.alternate()
    if args.trace:
        run.use_up()
        return say(**named(args), **traced(run.training, run.batches, 40))
    return run.turns()


if __name__ == "__main__":
    main()
