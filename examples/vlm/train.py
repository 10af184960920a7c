"""Trains a small model of Qwen2-VL's kind to name what pictures show, from a tar archive with captions.

    python examples/vlm/train.py [--steps 60]

Batches have as many samples as fit into 1,024 patches, packed without padding: `pixel_values` has the
patches of all images one after another, and attention stays within an image by `cu_seqlens`, as that of
Qwen2-VL does. The language model gets each image's tokens and then the words of its caption. The program
makes its data set, of pictures in many sizes; the model learns in seconds on two cores, so what it learns is
not the point.
"""

import argparse
import io
import itertools
import pathlib
import tarfile
import tempfile

import numpy as np
import stoker
import stoker.torch
import torch
from PIL import Image, ImageDraw
from torch import nn
from torch.nn import functional

CONFIG = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 56 * 56, "max_pixels": 224 * 224}
WORDS = ["<end>", "a", "red", "green", "blue", "box", "diamond"]
WIDTH = 64


def make(path, count=256):
    """Writes a tar archive of pictures, 00000.png, and captions, 00000.txt."""
    random = np.random.default_rng(1)
    with tarfile.open(path, "w") as archive:

        def add(name, data):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

        for number in range(count):
            width, height = map(int, random.integers(56, 224, 2))
            image = Image.fromarray(random.integers(90, 170, (height, width, 3), np.uint8))
            colour, shape = map(int, random.integers(0, (3, 2)))
            points = [[(0, 0), (1, 0), (1, 1), (0, 1)], [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)]][shape]
            fill = [40, 40, 40]
            fill[colour] = 240
            scaled = [(x * width, y * height) for x, y in points]
            ImageDraw.Draw(image).polygon(scaled, tuple(fill))
            file = io.BytesIO()
            image.save(file, "PNG")
            add(f"{number:05}.png", file.getvalue())
            add(f"{number:05}.txt", f"a {WORDS[2 + colour]} {WORDS[5 + shape]}".encode())


class Block(nn.Module):
    """Attention where the mask allows it, and a layer of neurons."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.neurons = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        """Returns rows as x, (tokens, WIDTH). mask: (tokens, tokens) bool."""
        query, key, value = self.heads(self.first(x)).view(len(x), 3, 4, WIDTH // 4).permute(1, 2, 0, 3)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.out(seen.transpose(0, 1).reshape(len(x), WIDTH))
        return x + self.neurons(self.second(x))


class Model(nn.Module):
    """Patches become tokens, four to one, and words follow the tokens of their image."""

    def __init__(self):
        super().__init__()
        self.patch, self.merge = nn.Linear(1176, WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.vision, self.language = Block(), nn.ModuleList([Block(), Block()])
        self.words, self.places = nn.Embedding(len(WORDS), WIDTH), nn.Embedding(8, WIDTH)
        self.named = nn.Linear(WIDTH, len(WORDS))

    def forward(self, patches, ends, words):
        """Returns the scores of each word's successor, (samples, words, WORDS).

        patches: (patches, 1176). ends: cu_seqlens. words: (samples, words).
        """
        lengths = ends.diff()
        image = torch.arange(len(words)).repeat_interleave(lengths)
        seen = self.vision(self.patch(patches), image[:, None] == image)
        tokens = self.merge(seen.view(len(seen) // 4, 4 * WIDTH))  # Qwen2-VL's order: by groups of 2 x 2
        spoken = self.words(words) + self.places.weight[: words.shape[1]]
        x = torch.cat([tokens, spoken.flatten(0, 1)])
        sample = torch.cat([image[::4], torch.arange(len(words)).repeat_interleave(words.shape[1])])
        place = torch.cat([torch.zeros(len(tokens)), torch.arange(1, words.shape[1] + 1).repeat(len(words))])
        mask = (sample[:, None] == sample) & (place[:, None] >= place)  # words see images and earlier words
        for block in self.language:
            x = block(x, mask)
        return self.named(x[len(tokens) :]).view(*words.shape, len(WORDS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pictures.tar"
        make(path)
        source = stoker.sized(stoker.tar(str(path), columns={"caption": ".txt"}))  # the sizes of its images
        transforms = [stoker.processor(CONFIG)]
        loader = stoker.torch.DataLoader(source, transforms, batch_tokens=1024, shuffle=True)
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        epochs = itertools.chain.from_iterable(loader for _ in itertools.count())
        for step, batch in enumerate(itertools.islice(epochs, args.steps)):
            words = torch.tensor([[WORDS.index(w) for w in text.split()] + [0] for text in batch.caption])
            scores = model(batch.pixel_values.values, stoker.cu_seqlens(batch.image_grid_thw), words)
            loss = functional.cross_entropy(scores[:, :-1].flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0 or step == args.steps - 1:
                patches = len(batch.pixel_values.values)
                print(f"step {step}: {len(words)} samples, {patches} patches, loss {loss.item():.3f}")
        print(f"batches were {loader.stats()['batch_fill']:.1%} full")


if __name__ == "__main__":
    main()
