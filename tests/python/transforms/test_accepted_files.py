"""Checks the table in docs/formats.md of files that Pillow and stoker accept: makes each file, and opens it
with both.
"""

import io
import json
import re
import struct
import subprocess
import zlib

import numpy as np
import pytest
from pages import ROOT

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
pytest.importorskip("PIL", minversion="13", reason="the table is of Pillow 13")
Image = pytest.importorskip("PIL.Image")
PngImagePlugin = pytest.importorskip("PIL.PngImagePlugin")

WIDTH, HEIGHT = 64, 48


def photograph():
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:3]
    noise = np.random.default_rng(0).integers(0, 20, y.shape)
    return Image.fromarray(((x * (4 - c) + y * (c + 1) + noise) % 256).astype(np.uint8))


PHOTOGRAPH = photograph()


def encoded(kind, mode="RGB", image=PHOTOGRAPH, **options):
    file = io.BytesIO()
    image.convert(mode).save(file, kind, **options)
    return file.getvalue()


def put(data, at, new):
    return data[:at] + new + data[at + len(new) :]


# --- JPEG -------------------------------------------------------------------------------------------

JPEG = encoded("JPEG", quality=90)
RESTARTS = encoded("JPEG", quality=90, restart_marker_blocks=3)
PROGRESSIVE = encoded("JPEG", progressive=True)
SEVERAL = {"save_all": True, "append_images": [PHOTOGRAPH.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]}


def segments(jpeg):
    """Returns (marker, begin, end) of each segment, up to the header of the first scan."""
    at, marker = 2, 0
    while marker != 0xDA:
        marker, end = jpeg[at + 1], at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
        yield marker, at, end
        at = end


def segment(jpeg, wanted):
    """Returns the segment's begin."""
    return next(begin for marker, begin, _ in segments(jpeg) if marker == wanted)


def without(jpeg, unwanted):
    *_, (_, _, data) = segments(jpeg)
    return (
        jpeg[:2] + b"".join(jpeg[b:e] for marker, b, e in segments(jpeg) if marker != unwanted) + jpeg[data:]
    )


def jpegs():
    *_, (_, _, data) = segments(JPEG)
    frame, scans = segment(JPEG, 0xC0), [m.start() for m in re.finditer(b"\xff\xda", PROGRESSIVE)]
    restart, middle = RESTARTS.index(b"\xff\xd1"), (data + len(JPEG)) // 2
    cmyk = encoded("JPEG", "CMYK")
    made = ROOT / "tests/fuzz/corpus/jpeg"  # files that Pillow cannot write
    return {
        "progressive JPEG": PROGRESSIVE,
        "progressive JPEG without its last scans": PROGRESSIVE[: scans[3]] + b"\xff\xd9",
        "JPEG of gray": encoded("JPEG", "L"),
        "JPEG of RGB": encoded("JPEG", keep_rgb=True),
        "JPEG of CMYK": cmyk,
        "JPEG of YCCK": put(cmyk, cmyk.index(b"Adobe") + 11, b"\2"),
        "JPEG with arithmetic coding": (made / "arithmetic.jpg").read_bytes(),
        "JPEG with restart markers": RESTARTS,
        "JPEG without Huffman tables": without(JPEG, 0xC4),
        "JPEG with other bytes before a marker": JPEG[:frame] + b"\1\2\3\xff\xff" + JPEG[frame:],
        "JPEG with bytes after its end": JPEG + b"text" * 100,
        "JPEG of several images (MPO)": encoded("MPO", **SEVERAL),
        "JPEG with zeros for its end marker": JPEG[:-2] + bytes(100),
        "JPEG with a wrong restart marker": put(RESTARTS, restart + 1, b"\xd5"),
        "JPEG without one of its restart markers": RESTARTS[:restart] + RESTARTS[restart + 2 :],
        "JPEG with an end marker too early": JPEG[:middle] + b"\xff\xd9",
        "JPEG with another marker in its data": put(JPEG, middle, b"\xff\xe5\0\2"),
        "JPEG with an invalid code": put(JPEG, data + 600, b"\xff\0" * 10),
        "truncated JPEG": JPEG[:middle],
        "JPEG of 12 bits": put(JPEG, frame + 4, b"\x0c"),
        "lossless JPEG": put(JPEG, frame + 1, b"\xc3"),
        "JPEG whose header has no height": put(JPEG, frame + 5, b"\0\0"),
        "JPEG without quantisation tables": without(JPEG, 0xDB),
        "JPEG with two start markers": JPEG[:2] + JPEG,
        "JPEG with bytes before its start": b"\n" + JPEG,
    }


# --- PNG, WebP and others ---------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def chunks(png):
    """Returns (kind, begin, end) of each chunk."""
    at = 8
    while at < len(png):
        end = at + 12 + int.from_bytes(png[at : at + 4], "big")
        yield png[at + 4 : at + 8], at, end
        at = end


def with_wrong_checksum(png, wanted):
    end = next(end for kind, _, end in chunks(png) if kind == wanted)
    return put(png, end - 1, bytes([png[end - 1] ^ 1]))


def of_16_bits(color_type, channels):
    """Returns a PNG; Pillow writes only gray without alpha."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, color_type, 0, 0, 0)
    row = b"\0" + bytes(range(256)) * (WIDTH * channels * 2 // 256 + 1)
    rows = row[: 1 + WIDTH * channels * 2] * HEIGHT
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def pngs():
    png = encoded("PNG")
    header, rest, end = png[:33], png[33:], chunk(b"IEND", b"")
    data = b"".join(png[begin + 8 : end - 4] for kind, begin, end in chunks(png) if kind == b"IDAT")
    rows = zlib.decompress(data)
    palette = encoded("PNG", "P", PHOTOGRAPH.quantize(37))
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "none")
    deep = Image.fromarray(np.arange(WIDTH * HEIGHT, dtype=np.uint16).reshape(HEIGHT, WIDTH) * 20)
    return {
        "PNG of 1 bit": encoded("PNG", "1"),
        "PNG of gray": encoded("PNG", "L"),
        "PNG of gray with alpha": encoded("PNG", "LA"),
        "PNG with a palette": palette,
        "PNG of RGBA": encoded("PNG", "RGBA"),
        "animated PNG": encoded("PNG", **SEVERAL),
        "PNG of 16 bits of gray": encoded("PNG", "I;16", deep),
        "PNG of 16 bits of gray with alpha": of_16_bits(4, 2),
        "PNG of 16 bits of RGB": of_16_bits(2, 3),
        "PNG of 16 bits of RGBA": of_16_bits(6, 4),
        "PNG without its end chunk": png[:-12],
        "PNG with bytes after its end": png + b"text",
        "PNG with an unknown chunk": header + chunk(b"abCd", b"x") + rest,
        "PNG with an unknown critical chunk": header + chunk(b"ABCD", b"x") + rest,
        "PNG with a wrong checksum of pixels": with_wrong_checksum(png, b"IDAT"),
        "PNG with a wrong checksum of text": with_wrong_checksum(encoded("PNG", pnginfo=text), b"tEXt"),
        "PNG with a wrong checksum in its zlib data": header
        + chunk(b"IDAT", put(data, len(data) - 1, bytes([data[-1] ^ 1])))
        + end,
        "PNG with a wrong checksum of its palette": with_wrong_checksum(palette, b"PLTE"),
        "PNG with an unknown filter": header + chunk(b"IDAT", zlib.compress(b"\x09" + rows[1:])) + end,
        "PNG with chunks between its pixels": header
        + chunk(b"IDAT", data[:500])
        + chunk(b"tEXt", b"a\0b")
        + chunk(b"IDAT", data[500:])
        + end,
        "truncated PNG": png[: len(png) // 2],
    }


def of_one_frame(still, width, height):
    """Returns an animation of the image on a canvas of this size."""

    def part(name, data):
        return name + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)

    def sides(width, height):
        return (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")

    parts = part(b"VP8X", b"\x02\0\0\0" + sides(width, height)) + part(b"ANIM", bytes(6))
    parts += part(b"ANMF", bytes(6) + sides(WIDTH, HEIGHT) + b"\x64\0\0\0" + still[12:])
    return b"RIFF" + (len(parts) + 4).to_bytes(4, "little") + b"WEBP" + parts


def others():
    webp = encoded("WEBP")
    files = {
        "animated WebP of several frames": encoded("WEBP", **SEVERAL),
        "WebP whose only frame fills the canvas": of_one_frame(webp, WIDTH, HEIGHT),
        "WebP whose only frame is smaller than its canvas": of_one_frame(webp, WIDTH + 8, HEIGHT),
        "truncated WebP": webp[: len(webp) // 2],
    }
    for name in ("GIF", "BMP", "TIFF", "PPM", "ICO", "AVIF", "JPEG 2000", "DDS", "QOI", "TGA", "PCX", "SGI"):
        try:
            files[name] = encoded(name.replace(" ", ""))
        except (KeyError, OSError):  # this Pillow cannot write it
            files[name] = None
    return files


FILES = {**jpegs(), **pngs(), **others()}


def table():
    """Returns (file, Pillow, stoker) of each row."""
    page = (ROOT / "docs/formats.md").read_text()
    (section,) = re.findall(r"## What Pillow and stoker accept\n(.*?)\n## ", page, re.S)
    for line in section.splitlines():
        if line.startswith("|") and not line.startswith(("| file ", "|---")):
            files, pillow, ours = (cell.strip() for cell in line.split("|")[1:4])
            yield from ((file, pillow, ours) for file in files.split("; "))


TABLE = list(table())


@pytest.fixture(scope="module")
def classes(command, tmp_path_factory):
    """Returns for each bad file, by name, what `stoker verify` says."""
    folder = tmp_path_factory.mktemp("accepted")
    for i, (name, _, _) in enumerate(TABLE):
        if FILES[name] is not None:
            (folder / f"{i}.jpg").write_bytes(FILES[name])
    done = subprocess.run(
        [command, "verify", folder, "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    bad = json.loads(done.stdout)["bad"]
    return {
        TABLE[int(sample["path"].split("/")[-1].removesuffix(".jpg"))][0]: sample["class"] for sample in bad
    }


def pillows(data):
    """Returns the file's pixels, or None."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))
    except OSError:  # UnidentifiedImageError is one
        return None


def test_each_file_is_in_the_table():
    assert sorted(FILES) == sorted(file for file, _, _ in TABLE)


@pytest.mark.parametrize("file, pillow, ours", TABLE)
def test_it_is_as_the_table_says(classes, file, pillow, ours):
    data = FILES[file]
    if data is None:
        pytest.skip("this Pillow cannot write it")
    theirs = pillows(data)
    assert {"accepts": True, "refuses": False}[pillow] == (theirs is not None)
    if ours in ("the same", "other pixels", "accepts"):
        assert file not in classes
        image = stoker.decode_image(data, exif_orientation=False)
        if ours != "accepts":
            assert np.array_equal(image, theirs) == (ours == "the same")
    else:
        with pytest.raises(stoker.Error):
            stoker.decode_image(data)
        assert ours == f"`{classes[file]}`"
