"""EXIF turns images as Pillow's exif_transpose does, also where the EXIF is unusual or damaged."""

import io
import random
import struct
import warnings
import zlib

import numpy as np
import pytest
import stoker

pytest.importorskip("PIL")
from PIL import Image, ImageOps

PREFIX = b"Exif\0\0"
ORIENTATION = 0x112
BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}  # of a type
PIXELS = np.add.outer(np.arange(4) * 40, np.arange(8) * 9)[..., None] + np.arange(3) * 20


def encoded(kind, **options):
    file = io.BytesIO()
    Image.fromarray(PIXELS.astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


def value_of(draw, order, kind):
    value = draw.choice([6, 6, 6, 1, 2, 3, 4, 5, 7, 8, 0, 9, 65535, -6])
    if kind in (5, 10):
        divisor = draw.choice([1, 1, 1, 2, 7, 0] + [-1] * (kind == 10))
        pair = (draw.choice([value * divisor, value]), divisor)
        return struct.pack(order + "II", *(number % 2**32 for number in pair))
    if kind in (11, 12):
        value = draw.choice([value, value, value + 0.5, float("nan"), float("inf")])
        return struct.pack(order + ("f" if kind == 11 else "d"), value)
    size = BYTES.get(kind, 4)
    return (value % 256**size).to_bytes(size, "big" if order == ">" else "little")


def tiff(draw):
    magic = draw.choice([b"MM\0*", b"II*\0"])
    if draw.random() < 0.3:
        magic = draw.choice([b"MM*\0", b"II\0*", b"MM\0+", b"II+\0", b"II**", b"IM*\0", b"MI\0*"])
    order = ">" if magic.startswith(b"M") else "<"
    directory = draw.choice([8] * 12 + [0, 2, 6, 9, 20, 200, 2**32 - 1])
    entries, values = [], b""
    number = draw.choice([0, 1, 1, 2, 3, 5, 9])
    for _ in range(number):
        tag = draw.choice([ORIENTATION, ORIENTATION, 0x100, 0x10F, 0x11A, 0x8769])
        kind = draw.choice([3] * 8 + [4] * 2 + list(BYTES) + [0, 14, 15, 17, 200, 65535])
        count = draw.choice([1] * 8 + [0, 2, 3, 4, 5, 9, 2**29, 2**31, 2**32 - 1])
        data = b"".join(value_of(draw, order, kind) for _ in range(max(1, min(count, 12))))
        if BYTES.get(kind, 1) * count > 4:
            offset = directory + 2 + 12 * number + 4 + len(values)
            values += data
            offset = draw.choice([offset] * 6 + [offset + 1, 0, 60000, 2**31, 2**32 - 1])
            data = struct.pack(order + "I", offset % 2**32)
        entries.append(struct.pack(order + "HHI", tag, kind, count) + data[:4].ljust(4, b"\0"))
    claimed = draw.choice([number] * 8 + [number + 1, max(number - 1, 0), 65535])
    whole = magic + struct.pack(order + "I", directory) + bytes(max(0, min(directory, 300) - 8))
    whole += struct.pack(order + "H", claimed) + b"".join(entries) + bytes(4) + values
    if draw.random() < 0.2:
        whole = whole[: draw.randrange(len(whole) + 1)]
    if whole and draw.random() < 0.1:
        at = draw.randrange(len(whole))
        whole = whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1 :]
    return whole + bytes(draw.choice([0] * 4 + [1, 10, 1000, 30000]))


def exif(draw):
    return PREFIX * draw.choice([0] + [1] * 6 + [2, 2, 3]) + draw.choice([tiff(draw)] * 8 + [b""])


def xmp(draw):
    value = draw.randrange(10)
    packets = [f'<x tiff:Orientation="{value}"/>', f"<tiff:Orientation>{value}<", "", "none"]
    return draw.choice(packets).encode()


def cut(draw, data):
    """The pieces of `data`, each after the first with a prefix of its own."""
    number = draw.choice([0, 0, 1, 2, 4]) if data else 0
    places = sorted(draw.randrange(min(6, len(data)), len(data) + 1) for _ in range(number))
    pieces = [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)])]
    return pieces[:1] + [PREFIX + piece for piece in pieces[1:]]


def jpeg(draw):
    base = encoded("JPEG", quality=95, **draw.choice([{}, {"dpi": (72, 72)}]))
    segments = [PREFIX] * (draw.random() < 0.2)
    for _ in range(draw.choice([1] * 5 + [2, 3])):
        segments += cut(draw, exif(draw))
    for _ in range(draw.choice([0, 0, 1, 2])):
        segments.insert(draw.randrange(len(segments) + 1), b"http://ns.adobe.com/xap/1.0/\0" + xmp(draw))
    at = draw.choice([2, 20])  # before or after JFIF's segment
    app1 = (b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment for segment in segments)
    return base[:at] + b"".join(app1) + base[at:]


def png(draw):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    chunks = [chunk(b"eXIf", exif(draw).removeprefix(PREFIX)) for _ in range(draw.choice([0, 1, 1, 1, 2]))]
    if draw.random() < 0.3:
        profile = exif(draw).hex()
        text = f"\nexif\n{len(profile) // 2:8}\n{profile[:72]}\n{profile[72:]}\n".encode()
        chunks.append(chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(text)))
    if draw.random() < 0.1:
        chunks.append(chunk(b"tEXt", b"exif\0" + exif(draw)))
    if draw.random() < 0.4:
        chunks.append(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(draw)))
    draw.shuffle(chunks)
    before = draw.randrange(len(chunks) + 1)  # the others are after the pixels
    base = encoded("PNG")
    return base[:33] + b"".join(chunks[:before]) + base[33:-12] + b"".join(chunks[before:]) + base[-12:]


def webp(draw):
    def chunk(name, data):
        return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

    chunks = [chunk(b"EXIF", exif(draw)) for _ in range(draw.choice([1, 1, 1, 2]))]
    chunks += [chunk(b"XMP ", xmp(draw))] * (draw.random() < 0.4)
    draw.shuffle(chunks)
    flags = draw.choice([12, 12, 12, 12, 8, 4])  # which of the two the header announces
    header = chunk(b"VP8X", bytes([flags, 0, 0, 0, 7, 0, 0, 3, 0, 0]))
    body = b"WEBP" + header + encoded("WEBP", lossless=True)[12:] + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def turn_of(pixels):
    for orientation in range(1, 9):
        turned = PIXELS.transpose(1, 0, 2) if orientation >= 5 else PIXELS
        turned = turned[:, ::-1] if orientation in (2, 3, 6, 7) else turned
        turned = turned[::-1] if orientation in (3, 4, 7, 8) else turned
        if turned.shape == pixels.shape and np.abs(turned - pixels.astype(int)).max() < 12:
            return orientation
    raise AssertionError("no turn makes these pixels")


def turn_by_pillow(data):
    """None if Pillow cannot read the EXIF and raises an error."""
    with Image.open(io.BytesIO(data)) as image:
        try:
            image.load()
            orientation = image.getexif().get(ORIENTATION, 1)
        except (SyntaxError, ValueError, struct.error):
            return None
        if orientation not in range(1, 9):
            return 1
    with Image.open(io.BytesIO(data)) as image:
        try:
            turned = ImageOps.exif_transpose(image)
        except Exception:  # it also writes the EXIF, which fails for some
            return int(orientation)
        return turn_of(np.asarray(turned.convert("RGB")))


@pytest.mark.parametrize("make", [jpeg, png, webp])
def test_turns_are_pillows(make):
    turned = 0
    for seed in range(400):
        data = make(random.Random(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of damaged EXIF
            wanted = turn_by_pillow(data)
        got = turn_of(stoker.decode_image(data))
        assert wanted is None or got == wanted, seed
        turned += got != 1
    assert turned > 40
