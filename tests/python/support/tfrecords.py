"""Writes TFRecord files without TensorFlow."""

import struct


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = list(_table())


def masked_crc(data):
    """CRC-32C, masked as in TFRecord files."""
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    crc = state ^ 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    value = int(value) & (2**64 - 1)  # two's complement, as of int64
    data = bytearray()
    while value >= 128:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes(data) + bytes([value])


def message(field, content):
    """A field of a protobuf message, with its length."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def example(features):
    """A tf.train.Example with single values, bytes or integers from 0, and with lists of floats."""
    entries = b""
    for name, value in features.items():
        if isinstance(value, list):
            feature = message(2, message(1, struct.pack(f"<{len(value)}f", *value)))
        else:
            is_bytes = isinstance(value, bytes)
            feature = message(1 if is_bytes else 3, message(1, value if is_bytes else varint(value)))
        entries += message(1, message(1, name.encode()) + message(2, feature))
    return message(1, entries)


def scene(image):
    """An Example of an image with one object, as TensorFlow's Object Detection API writes it."""
    sides = {f"image/object/bbox/{side}": [0.25] for side in ("xmin", "ymin", "xmax", "ymax")}
    numbers = {"image/object/class/label": 7, "image/object/is_crowd": 0, "image/height": 480}
    return example({"image/encoded": image, **sides, **numbers})


def record(data):
    length = struct.pack("<Q", len(data))
    crcs = [struct.pack("<I", masked_crc(part)) for part in (length, data)]
    return length + crcs[0] + data + crcs[1]
