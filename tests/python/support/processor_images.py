"""Images for the tests of processors: any size and aspect ratio, and every mode that files have."""

import io
import random
import struct
import zlib

import numpy as np
from PIL import Image

ORIENTATION = 0x0112  # the tag of EXIF


def pixels(width, height, channels, seed):
    """Returns smooth colours with some noise, as photographs have."""
    if width * height > 10**7:  # of repeated parts
        part = pixels(width // 10, height // 10, channels, seed)
        return np.tile(part, (10, 10, 1))
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    waves = [128 + 100 * np.sin(x / (3 + 5 * c) + seed) * np.cos(y / (4 + 3 * c)) for c in range(channels)]
    noisy = np.stack(waves, axis=-1) + rng.integers(-20, 20, (height, width, 1))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def encoded(width, height, mode, form, seed, orientation=None):
    """Returns an image file."""
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    array = pixels(width, height, channels, seed)
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array, mode)
    options = {}
    if orientation is not None:
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        options["exif"] = exif
    if form == "JPEG":
        options.update(quality=90, subsampling=seed % 3 if mode == "RGB" else -1)
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def files(count, seed=0):
    """Yields (name, bytes) of images; the first have the extreme sizes."""
    draws = random.Random(seed)
    sizes = [(1, 1), (1, 2000), (2000, 1), (8000, 6000), (3, 3), (27, 29), (224, 224), (640, 480), (2, 300)]
    kinds = [("RGB", "JPEG"), ("RGB", "PNG"), ("L", "JPEG"), ("L", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"),
             ("CMYK", "JPEG")]  # fmt: skip
    for i in range(count):
        if i < len(sizes):
            width, height = sizes[i]
        else:
            area, aspect = 10 ** draws.uniform(2, 6.2), 2 ** draws.uniform(-3, 3)
            width, height = (max(1, round((area * by) ** 0.5)) for by in (aspect, 1 / aspect))
        mode, form = ("RGB", "JPEG") if i == 3 else kinds[draws.randrange(len(kinds))]
        turned = draws.randrange(1, 9) if form == "JPEG" and i % 4 == 0 else None
        yield (
            f"{i}: {width} x {height} {mode} {form} {turned}",
            encoded(width, height, mode, form, i, turned),
        )


def few_bits_png(width, height, bits, transparent, seed):
    """Returns a gray PNG of 2 or 4 bits with tRNS, which Pillow does not write."""
    values = np.random.default_rng(seed).integers(0, 1 << bits, (height, width))
    rows = b""
    for row in values:
        digits = "".join(f"{value:0{bits}b}" for value in row)
        digits += "0" * (-len(digits) % 8)
        rows += b"\0" + int(digits, 2).to_bytes(len(digits) // 8, "big")
    parts = b"\x89PNG\r\n\x1a\n"
    for kind, content in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)),
        (b"tRNS", struct.pack(">H", transparent)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ):
        checksum = zlib.crc32(kind + content)
        parts += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    return parts


def transparent_files():
    """Yields (name, bytes) of PNGs whose tRNS makes colours transparent, and of WebPs with alpha."""
    for i, (width, height) in enumerate([(1, 1), (57, 41), (300, 211), (640, 480)]):
        rng = np.random.default_rng(i)
        rgba = pixels(width, height, 4, i)
        rgba[: height // 3, :, 3] = 0
        rgba[height // 3 : height // 2, :, 3] = 255
        colours = Image.fromarray(rgba[:, :, :3], "RGB")
        gray = Image.fromarray(rgba[:, :, 0], "L")
        palette = colours.quantize(64)
        coarse = Image.fromarray(rgba[:, :, :3] // 64 * 64, "RGB")
        exif = Image.Exif()
        exif[ORIENTATION] = 1 + (i + 5) % 8
        each = rng.integers(0, 256, 40).astype(np.uint8).tobytes()
        for name, image, form, options in (
            ("P, one transparent", palette, "PNG", {"transparency": 3}),
            ("P, alpha of 40", palette, "PNG", {"transparency": each, "exif": exif}),
            ("P, alpha of 256 opaque", palette, "PNG", {"transparency": b"\xff" * 64}),
            ("L", gray, "PNG", {"transparency": int(gray.getpixel((0, 0)))}),
            ("L, beyond 8 bits", gray, "PNG", {"transparency": 256 + int(gray.getpixel((0, 0)))}),
            ("1, white", gray.convert("1"), "PNG", {"transparency": 1}),
            ("1, black", gray.convert("1"), "PNG", {"transparency": 0}),
            ("RGB", coarse, "PNG", {"transparency": coarse.getpixel((0, 0)), "exif": exif}),
            ("RGBA", Image.fromarray(rgba, "RGBA"), "WEBP", {"quality": 70, "exif": exif}),
            ("RGBA, exact", Image.fromarray(rgba, "RGBA"), "WEBP", {"quality": 90, "exact": True}),
            ("RGBA, rough alpha", Image.fromarray(rgba, "RGBA"), "WEBP", {"alpha_quality": 20}),
            ("RGBA, lossless", Image.fromarray(rgba, "RGBA"), "WEBP", {"lossless": True}),
        ):
            file = io.BytesIO()
            image.save(file, form, **options)
            yield f"{name}, {width} x {height} {form}", file.getvalue()
        for bits in (2, 4):
            for transparent in (0, 1, (1 << bits) - 1):
                yield (
                    f"gray of {bits} bits, {transparent}, {width} x {height}",
                    few_bits_png(width, height, bits, transparent, i),
                )
