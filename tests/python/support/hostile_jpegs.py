"""Hostile JPEG files, built marker by marker."""


def segment(marker, body):
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body


SOI, EOI = b"\xff\xd8", b"\xff\xd9"
QUANTISATION = segment(0xDB, bytes([0]) + bytes([1] * 64))
# One code of one bit, for symbol 0: "no difference" for DC, "end of block" for AC.
HUFFMAN = b"".join(segment(0xC4, bytes([table, 1]) + bytes(15) + bytes([0])) for table in (0x00, 0x10))


def frame(marker, width, height):
    """Returns a frame header of one gray component."""
    sides = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return segment(marker, bytes([8]) + sides + bytes([1, 1, 0x11, 0]))


def scan(first, last, high_low):
    return segment(0xDA, bytes([1, 1, 0x00, first, last, high_low]))


def baseline(width, height, size=None):
    """Returns a file of `size` bytes whose header says width × height; by default, enough for 8 × 8."""
    data = SOI + QUANTISATION + frame(0xC0, width, height) + HUFFMAN + scan(0, 63, 0) + b"\x3f"
    return data + EOI if size is None else (data + bytes(size))[: size - 2] + EOI


def many_scans(count, width=64, height=64):
    """Returns a progressive file of `count` scans: the DC, then the same refinement again and again."""
    blocks = (width // 8) * (height // 8)
    data = SOI + QUANTISATION + frame(0xC2, width, height) + HUFFMAN
    data += scan(0, 0, 0x01) + bytes(blocks // 8)
    data += (scan(0, 0, 0x10) + bytes(blocks // 8)) * (count - 1)
    return data + EOI


QOI = b"qoif" + bytes(100)
