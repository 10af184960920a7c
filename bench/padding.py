"""Photographs in their own sizes on one core: rows of one size for all batches, and rows of the size of each
batch's largest image.

    python bench/padding.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 800] [--only NAME,…]

PHOTOS is a folder of photographs. Each is resized so that its shorter side is one of 480, 512, …, size and
the longer one at most 5 / 3 of size, as DETR and torchvision's detection models train, and is padded to the
longest side, or to its batch's largest image, both rounded up to a multiple of 32. Batches have 8 images, of
uint8, or normalized, of float32 and with the channels first. Also prints the bytes of an average batch.

How they are compared: bench/in_turns.py.
"""

import functools
import statistics

from in_turns import compare, endless, photographs

BATCH = 8
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def paths_of(photos, _):
    return [str(path) for path in photographs(photos)]


def loader_of(paths, size, largest, fractions):
    import stoker

    most = size * 5 // 3
    return stoker.Loader(
        stoker.files(paths),
        [
            stoker.RandomShortestSize([*range(480, size + 1, 32)], max_size=most),
            stoker.RandomHorizontalFlip(),
            *([stoker.Normalize(MEAN, STD)] if fractions else []),
            stoker.PadTo("batch", multiple=32) if largest else stoker.PadTo(-(-most // 32) * 32),
        ],
        batch_size=BATCH,
        shuffle=True,
        **({"dtype": "float32", "layout": "NCHW"} if fractions else {}),
        runtime=stoker.Runtime(threads=1),
    )


def batches_of(paths, size, **how):
    yield from (len(batch[0]) for batch in endless(loader_of(paths, size, **how)))


HOW = {
    "uint8 fixed": {"largest": False, "fractions": False},
    "uint8 batch": {"largest": True, "fractions": False},
    "float32 fixed": {"largest": False, "fractions": True},
    "float32 batch": {"largest": True, "fractions": True},
}
LOADERS = {name: functools.partial(batches_of, **how) for name, how in HOW.items()}

if __name__ == "__main__":
    options = compare(__file__, __doc__, LOADERS, {}, paths_of, size=800)
    for name, how in HOW.items() if options else ():
        loader = loader_of(paths_of(options.photos, None), options.size, **how)
        print(f"{name}: {statistics.mean(batch[0].nbytes for batch in loader) / 1e6:.1f} MB")
