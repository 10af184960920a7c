"""Writes PNGs of one channel without an image library."""

import struct
import zlib


def gray_png(width, height, values=None):
    """Returns a PNG with 8 bits; `values`: of each pixel, or None for 0."""
    values = bytes(width * height) if values is None else bytes(values)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + values[y * width : (y + 1) * width] for y in range(height))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def write_street(folder):
    """Writes two images and their masks, as pages and docstrings name them."""
    for name in ("a/7", "b/8"):
        for path in (folder / "images" / f"{name}.jpg", folder / "masks" / f"{name}.png"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gray_png(300, 280))  # bytes decide what an image is, and not its name


def write_stereo(folder):
    """Writes two pairs of images, as pages name them."""
    for side in ("left", "right"):
        (folder / side).mkdir(parents=True)
        for i in range(2):
            (folder / side / f"{i}.jpg").write_bytes(gray_png(300, 280))


def write_episodes(folder):
    """Writes two episodes of 20 frames, of two cameras, as pages and docstrings name them."""
    for camera in ("front", "wrist"):
        for episode in ("episode0", "episode1"):
            (folder / camera / episode).mkdir(parents=True)
            for frame in range(20):
                (folder / camera / episode / f"{frame:04d}.jpg").write_bytes(gray_png(64, 48))
