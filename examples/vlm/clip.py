"""Trains a small CLIP from a WebDataset, as open_clip does, with one of two loaders; the rest is the same.

    python examples/vlm/clip.py --photos FOLDER [--loader webdataset] [--epochs 3] [--cores 1] [--no-model]

The photographs of a folder are written to tar archives, KEY.jpg and KEY.txt, with captions that say which
colour each has on average. `webdataset` is the pipeline of open_clip, with seeds: shards are shuffled and
split among --cores worker processes, and samples are shuffled through buffers, decoded by Pillow, transformed
by torchvision, and batched; each worker drops its own samples that fill no batch. `stoker` makes tensors of
the same shapes and range of values, in another order, and drops the samples that fill no batch once an epoch.
A line for each epoch: images, images per second and the loss; with --no-model, of the loader alone.
"""

import argparse
import io
import os
import pathlib
import tarfile
import tempfile
import time
import zlib

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SCALE = (0.9, 1.0)  # of open_clip's random crops
WIDTH, WORDS, LENGTH = 128, 4096, 8


def write_shards(files, folder, shards):
    """Writes tar archives of photographs with captions, and returns their paths."""
    paths = [pathlib.Path(folder, f"{shard:03}.tar") for shard in range(shards)]
    for shard, path in enumerate(paths):
        with tarfile.open(path, "w") as archive:
            for number in range(shard, len(files), shards):
                data = files[number].read_bytes()
                colours = np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize((8, 8))).mean((0, 1))
                levels = [
                    f"{name}{level // 16:.0f}" for name, level in zip(("red", "green", "blue"), colours)
                ]
                caption = f"a photo of {' '.join(levels)}"
                for kind, content in ((".jpg", data), (".txt", caption.encode())):
                    member = tarfile.TarInfo(f"{number:06}{kind}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return [str(path) for path in paths]


def tokens_of(text):
    """Returns the numbers of a caption's words, a tensor of int64 (LENGTH,), with zeros after them."""
    numbers = [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in text.split()][:LENGTH]
    return torch.tensor(numbers + [0] * (LENGTH - len(numbers)))


def of_webdataset(shards, args):
    """Returns an iterable of (images, tokens), an epoch each time."""
    import webdataset
    from torchvision.transforms import v2

    transform = v2.Compose(
        [
            v2.RandomResizedCrop(args.size, scale=SCALE, interpolation=v2.InterpolationMode.BICUBIC),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    dataset = webdataset.DataPipeline(
        webdataset.SimpleShardList(shards),
        webdataset.detshuffle(len(shards)),  # the same in all workers
        webdataset.split_by_node,
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        webdataset.detshuffle(5000, initial=1000),
        webdataset.decode("pilrgb"),
        webdataset.to_tuple("jpg", "txt"),
        webdataset.map_tuple(transform, tokens_of),
        webdataset.batched(args.batch_size, partial=False),
    )
    return webdataset.WebLoader(
        dataset, batch_size=None, num_workers=args.cores, persistent_workers=args.cores > 0
    )


def of_stoker(shards, args):
    """Returns the same of stoker."""
    import stoker
    import stoker.torch

    source = stoker.tar(shards, label=None, columns={"caption": ".txt"})
    transforms = [
        stoker.RandomResizedCrop(args.size, scale=SCALE, interpolation="bicubic"),
        stoker.Normalize(MEAN, STD),
        stoker.Map(
            lambda batch: {"caption": torch.stack([tokens_of(text) for text in batch.caption]).numpy()},
            columns={"caption": ("int64", LENGTH)},
        ),
    ]
    options = {"batch_size": args.batch_size, "shuffle": True, "seed": 1, "drop_last": True}
    return stoker.torch.DataLoader(source, transforms, **options)


class Tower(nn.Module):
    """Makes features of unit length, (rows, WIDTH), of the tokens that `embed` makes of its input."""

    def __init__(self, embed):
        super().__init__()
        self.embed = embed
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        """Returns the features of images, (rows, 3, height, width), or of numbers of words."""
        x = self.embed(x)
        tokens = x.flatten(2).transpose(1, 2) if x.ndim == 4 else x
        return functional.normalize(self.out(self.blocks(tokens).mean(1)), dim=1)


class Clip(nn.Module):
    """The contrastive loss of images and their captions (Radford et al., 2021)."""

    def __init__(self):
        super().__init__()
        self.images = Tower(nn.Conv2d(3, WIDTH, 32, 32))
        self.texts = Tower(nn.Embedding(WORDS, WIDTH))
        self.scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def forward(self, images, tokens):
        """Returns the loss of images, each with its own caption."""
        scores = self.scale.exp() * self.images(images) @ self.texts(tokens).T
        pairs = torch.arange(len(images))
        return (functional.cross_entropy(scores, pairs) + functional.cross_entropy(scores.T, pairs)) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--loader", choices=["stoker", "webdataset"], default="stoker")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--no-model", action="store_true")
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    torch.set_num_threads(args.cores)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        suffixes = (".jpg", ".jpeg")
        files = sorted(
            file for file in pathlib.Path(args.photos).rglob("*") if file.suffix.lower() in suffixes
        )
        shards = write_shards(files, folder, max(4, args.cores))  # no worker is without one
        loader = {"stoker": of_stoker, "webdataset": of_webdataset}[args.loader](shards, args)
        model = Clip()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.2)
        for epoch in range(args.epochs):
            count, losses, begun = 0, [], time.perf_counter()
            for images, tokens in loader:
                count += len(images)
                if args.no_model:
                    continue
                loss = model(images, tokens)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            rate = count / (time.perf_counter() - begun)
            learnt = f", loss {sum(losses) / len(losses):.3f}" if losses else ""
            images = f"{count} of {len(files)} images"
            print(f"{args.loader}, epoch {epoch}: {images}, {rate:.1f} images/s{learnt}", flush=True)


if __name__ == "__main__":
    main()
