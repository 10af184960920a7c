"""Formats that are decoded whole, as Pillow and their own programs write them: the pixels are Pillow's."""

import io
import itertools
import shutil
import struct
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")

SIZES = [(1, 1), (3, 2), (17, 9), (131, 97)]  # width, height
LIBRARIES = ("giflib", "libtiff", "libavif", "libheif", "OpenJPEG")


def image_of(mode, size, seed=0):
    """Returns a smooth image with noise."""
    random = np.random.default_rng(seed)
    y, x, c = np.mgrid[0 : size[1], 0 : size[0], 0:4]
    noise = random.integers(0, 40, (size[1], size[0], 4))
    pixels = ((x * (c + 2) + y * (5 - c) + noise) % 256).astype(np.uint8)
    if mode == "RGBA":
        return Image.fromarray(pixels)
    if mode == "I;16":
        return Image.fromarray(pixels[:, :, 0].astype(np.uint16) * 256 + pixels[:, :, 1])
    rgb = Image.fromarray(np.ascontiguousarray(pixels[:, :, :3]))
    return rgb.quantize(37) if mode == "P" else rgb.convert(mode)


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def decoded(data, **options):
    """Returns the image, or skips the test if this machine does not have the library."""
    try:
        return stoker.decode_image(data, **options)
    except stoker.UnimplementedError as error:
        if any(f"decoded by {library}" in str(error) for library in LIBRARIES):
            pytest.skip(str(error))
        raise


def expect_pillows(data):
    with Image.open(io.BytesIO(data)) as image:
        image.load()  # a TIFF is turned
        np.testing.assert_array_equal(decoded(data), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "kind, mode",
    [("BMP", mode) for mode in ("1", "L", "P", "RGB", "RGBA")]
    + [("GIF", mode) for mode in ("1", "L", "P", "RGB")]
    + [("PPM", mode) for mode in ("1", "L", "RGB")]
    + [("JPEG2000", mode) for mode in ("L", "LA", "RGB", "RGBA")]
    + [("TIFF", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK")],
)
def test_modes(kind, mode, size):
    expect_pillows(encoded(image_of(mode, size), kind))


@pytest.mark.parametrize("mode", ["L", "RGB", "P", "CMYK"])
@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits"])
def test_tiff_compression(compression, mode):
    expect_pillows(encoded(image_of(mode, (131, 97)), "TIFF", compression=compression))


@pytest.mark.parametrize("compression", ["tiff_ccitt", "group3", "group4"])
def test_tiff_fax(compression):
    expect_pillows(encoded(image_of("1", (131, 97)), "TIFF", compression=compression))


def test_tiff_jpeg():
    """Pillow has a libjpeg-turbo of its own."""
    data = encoded(image_of("RGB", (131, 97)), "TIFF", compression="jpeg", quality=90)
    with Image.open(io.BytesIO(data)) as image:
        assert np.abs(decoded(data).astype(int) - np.asarray(image.convert("RGB"))).max() <= 2


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("kind", ["bmp", "png"])
def test_icons(kind, mode, size):
    """Pillow gives a bitmap alpha, from its mask or its pixels."""
    sizes = [size, (max(1, size[0] // 2), max(1, size[1] // 2))]
    data = bytearray(encoded(image_of(mode, size), "ICO", sizes=sizes, bitmap_format=kind))
    if kind == "bmp" and mode != "RGBA":
        length, offset = struct.unpack_from("<2I", data, 6 + 16 * (data[4] - 1) + 8)  # the larger one is last
        mask = (size[0] + 31) // 32 * 4 * size[1]
        rng = np.random.default_rng(1)
        data[offset + length - mask : offset + length] = rng.bytes(mask)
    with Image.open(io.BytesIO(data)) as icon:
        wanted = np.asarray(icon.convert("RGBA"))
    np.testing.assert_array_equal(decoded(bytes(data), mode="rgba"), wanted)
    np.testing.assert_array_equal(decoded(bytes(data)), wanted[..., :3])
    if size != (1, 1):
        with pytest.raises(stoker.ResourceExhaustedError, match="more than the limit"):
            stoker.decode_image(bytes(data), max_pixels=size[0] * size[1] - 1)


def test_the_largest_icon_of_fewest_bits():
    """As Pillow takes it; the directory's order does not matter."""
    images = [(image_of("RGB", (16, 16), seed), kind) for seed, kind in enumerate(("bmp", "png", "bmp"))]
    images += [(image_of("P", (16, 16), 3), "bmp"), (image_of("RGBA", (8, 24), 4), "bmp")]
    entries = []
    for image, kind in images:
        data = encoded(image, "ICO", sizes=[image.size], bitmap_format=kind)
        entries.append((data[6:18], data[22:]))
    for order in itertools.permutations(entries):
        at, directory, body = 6 + 16 * len(order), b"", b""
        for entry, content in order:
            directory += entry + struct.pack("<I", at + len(body))
            body += content
        data = struct.pack("<3H", 0, 1, len(order)) + directory + body
        expect_pillows(data)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_orientation(orientation):
    expect_pillows(encoded(image_of("RGB", (60, 40)), "TIFF", tiffinfo={274: orientation}))


@pytest.mark.parametrize(
    "options", [{"irreversible": True}, {"tile_size": (32, 16)}, {"no_jp2": True}], ids=str
)
def test_jpeg2000(options):
    data = encoded(image_of("RGB", (131, 97)), "JPEG2000", **options)
    expect_pillows(data)
    part = decoded(data, region=(20, 30, 40, 50))
    np.testing.assert_array_equal(part, decoded(data)[20:60, 30:80])


def expect_almost_pillows(data, most=0):
    with Image.open(io.BytesIO(data)) as image:
        wanted = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(decoded(data, exif_orientation=False) - wanted).max() <= most


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:2:2", "4:4:4", "4:0:0"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_avif(mode, subsampling):
    for size in SIZES:
        data = encoded(image_of(mode, size), "AVIF", quality=90, subsampling=subsampling)
        expect_almost_pillows(data)
        if mode == "RGBA":
            with Image.open(io.BytesIO(data)) as image:
                alpha = np.asarray(image)[:, :, 3]
            np.testing.assert_array_equal(decoded(data, mode="unchanged")[:, :, 3], alpha)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_avif_orientation(orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(image_of("RGB", (60, 40)), "AVIF", quality=100, subsampling="4:4:4", exif=exif)
    with Image.open(io.BytesIO(data)) as image:
        wanted = np.asarray(ImageOps.exif_transpose(image).convert("RGB")).astype(int)
    np.testing.assert_array_equal(decoded(data), wanted)
    expect_almost_pillows(data)


def program(*order):
    if shutil.which(order[0]) is None:
        pytest.skip(f"{order[0]} is not installed here")
    subprocess.run(order, check=True, capture_output=True)


@pytest.mark.parametrize(
    "options", [("-d", "10"), ("-d", "12", "-y", "422"), ("--grid", "2x2"), ("-r", "limited")], ids=str
)
def test_avif_of_avifenc(options, tmp_path):
    """libavif 0.11 rounds more bits to 8 before it converts to RGB, Pillow's afterwards."""
    image_of("RGBA", (256, 192)).save(tmp_path / "a.png")
    program("avifenc", *options, str(tmp_path / "a.png"), str(tmp_path / "a.avif"))
    expect_almost_pillows((tmp_path / "a.avif").read_bytes(), most=3 if "-d" in options else 0)


def test_avif_of_frames():
    frames = [image_of("RGB", (60, 40), seed) for seed in range(3)]
    data = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:])
    expect_almost_pillows(data)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("size", [(130, 98), (131, 97), (1100, 300)])
def test_heic(mode, size, tmp_path):
    """Pillow does not read HEIC: the pixels are the source's, which x265 coded with loss."""
    (image := image_of(mode, size)).save(tmp_path / "a.png")
    options = ["-q", "100", "-p", "chroma=444"]
    program("heif-enc", str(tmp_path / "a.png"), "-o", str(tmp_path / "a.heic"), *options)
    got = decoded((tmp_path / "a.heic").read_bytes())
    assert np.abs(got.astype(int) - np.asarray(image.convert("RGB"))).max() <= 8


def box(kind, content):
    return (len(content) + 8).to_bytes(4, "big") + kind + content


def boxes(data):
    at = 0
    while at < len(data):
        end = at + int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at + 8 : end]
        at = end


def number(value, size):
    return value.to_bytes(size, "big")


def test_heic_of_tiles(tmp_path):
    """As telephones write them: a grid that is larger than the image, and turned."""
    draw = np.random.default_rng(0)
    pixels = np.kron(draw.integers(0, 255, (16, 16, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    ispe = [box(b"ispe", number(0, 4) + number(w, 4) + number(h, 4)) for w, h in ((120, 100), (64, 64))]
    items = [(b"grid", b"\0\0\1\1" + number(120, 2) + number(100, 2), [1, 3])]
    properties = b"".join(ispe) + box(b"irot", b"\1")
    for y, x in ((0, 0), (0, 64), (64, 0), (64, 64)):
        Image.fromarray(pixels[y : y + 64, x : x + 64]).save(tmp_path / "a.png")
        options = ["-q", "95", "-p", "chroma=444"]
        program("heif-enc", str(tmp_path / "a.png"), "-o", str(tmp_path / "a.heic"), *options)
        top = dict(boxes((tmp_path / "a.heic").read_bytes()))
        inner = dict(boxes(dict(boxes(top[b"meta"][4:]))[b"iprp"]))
        properties += box(b"hvcC", dict(boxes(inner[b"ipco"]))[b"hvcC"])
        items.append((b"hvc1", top[b"mdat"], [2, 3 + len(items)]))

    def meta(at):
        infe = iloc = ipma = b""
        for i, (kind, data, indices) in enumerate(items):
            infe += box(b"infe", number(2 << 24, 4) + number(i + 1, 2) + number(0, 2) + kind + b"\0")
            iloc += number(i + 1, 2) + number(1, 4) + number(at, 4) + number(len(data), 4)
            ipma += number(i + 1, 2) + number(2, 1) + bytes(indices)
            at += len(data)
        parts = box(b"hdlr", number(0, 8) + b"pict" + bytes(13)) + box(b"pitm", number(1, 6))
        parts += box(b"iinf", number(5, 6) + infe) + box(b"iloc", number(0x4400, 6) + number(5, 2) + iloc)
        tiles = box(b"dimg", number(1, 2) + number(4, 2) + b"\0\2\0\3\0\4\0\5")
        parts += box(b"iref", number(0, 4) + tiles)
        return box(
            b"meta",
            number(0, 4) + parts + box(b"iprp", box(b"ipco", properties) + box(b"ipma", number(5, 8) + ipma)),
        )

    header = box(b"ftyp", b"heic" + number(0, 4) + b"mif1heic")
    data = header + meta(len(header) + len(meta(0)) + 8)
    got = decoded(data + box(b"mdat", b"".join(data for _, data, _ in items)))
    wanted = np.rot90(pixels[:100, :120])
    assert got.shape == wanted.shape and np.abs(got.astype(int) - wanted).max() <= 8


@pytest.mark.parametrize("kind", ["TIFF", "PPM", "JPEG2000"])
def test_16_bits(kind):
    data = encoded(image := image_of("I;16", (60, 40)), kind)
    with pytest.raises(stoker.UnimplementedError, match=r"16 bits a channel|decoded by (libtiff|OpenJPEG)"):
        stoker.decode_image(data)
    values = np.asarray(image)
    np.testing.assert_array_equal(decoded(data, accept_16_bits=True)[:, :, 0], values >> 8)
    np.testing.assert_array_equal(stoker.decode_image(data, "unchanged"), values)


def test_alpha_is_kept_unchanged():
    for mode in ("LA", "RGBA"):
        data = encoded(image := image_of(mode, (60, 40)), "TIFF")
        np.testing.assert_array_equal(decoded(data, mode="unchanged"), np.asarray(image))
        part = decoded(data, mode="unchanged", region=(3, 5, 20, 31))
        np.testing.assert_array_equal(part, np.asarray(image)[3:23, 5:36])


@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize("options", [{}, {"transparency": 3}, {"optimize": True}], ids=str)
def test_gif(options, interlace):
    expect_pillows(encoded(image_of("P", (131, 97)), "GIF", interlace=interlace, **options))


@pytest.mark.parametrize("kind", ["GIF", "TIFF"])
def test_the_first_of_several_is_decoded(kind):
    images = [image_of("P", (30, 20), seed) for seed in range(3)]
    expect_pillows(encoded(images[0], kind, save_all=True, append_images=images[1:]))


def changed(data, at, value):
    return data[:at] + value + data[at + len(value) :]


def test_a_frame_smaller_than_its_canvas():
    for transparency in ({}, {"transparency": 3}):
        data = encoded(image_of("P", (30, 20)), "GIF", **transparency)
        frame = data.index(b"\x2c\0\0\0\0\x1e\0\x14\0")
        for left, top in ((0, 0), (5, 7), (20, 1)):  # the last is partly outside
            place = left.to_bytes(2, "little") + top.to_bytes(2, "little")
            moved = changed(changed(data, frame + 1, place), 6, b"\x28\0\x1e\0")
            expect_pillows(moved)


@pytest.mark.parametrize("maximum", [1, 3, 100, 254, 255])
def test_pnm_maximum(maximum):
    values = np.random.default_rng(0).integers(0, maximum, (9, 7, 3), endpoint=True)
    expect_pillows(f"P6 # comment\n7 9\n{maximum}\n".encode() + values.astype(np.uint8).tobytes())
    text = " ".join(map(str, values.ravel()))
    expect_pillows(f"P3\n7 9 {maximum} {text}".encode())
    expect_pillows(f"P2\n7 27 # the rest\n{maximum} {text}\n".encode())


def test_bmp_top_down_and_fields():
    data = encoded(image_of("RGB", (17, 9)), "BMP")
    expect_pillows(changed(data, 22, (-9).to_bytes(4, "little", signed=True)))
    random = np.random.default_rng(0)
    for masks in ((0x7C00, 0x3E0, 0x1F), (0xF800, 0x7E0, 0x1F)):
        header = b"BM" + (66 + 2 * 18 * 9).to_bytes(4, "little") + bytes(4) + (66).to_bytes(4, "little")
        numbers = (40, 17, 9, 1 | 16 << 16, 3, 2 * 18 * 9, 0, 0, 0, 0, *masks)
        header += b"".join(number.to_bytes(4, "little") for number in numbers)
        expect_pillows(header + random.bytes(2 * 18 * 9))


@pytest.mark.parametrize("kind", ["BMP", "GIF", "PPM", "TIFF", "JPEG2000", "AVIF"])
def test_truncated_and_damaged(kind, tmp_path, command):
    data = encoded(image_of("P" if kind == "GIF" else "RGB", (60, 40)), kind)
    decoded(data)
    with pytest.raises((stoker.DataLossError), match=f"(truncated|damaged) {NAMES.get(kind, kind)}"):
        stoker.decode_image(data[: len(data) * 2 // 3])
    (tmp_path / "part.bmp").write_bytes(data[: len(data) * 2 // 3])
    done = subprocess.run([command, "verify", tmp_path], capture_output=True, text=True)
    assert "bad: 1 (" in done.stdout


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "TIFF", "AVIF"])
def test_images_of_several_frames_are_counted(kind, tmp_path):
    frames = [image_of("RGB", (60, 40), seed) for seed in range(3)]
    moving = {"save_all": True, "append_images": frames[1:]}
    lossless = {"lossless": True} if kind == "WEBP" else {}
    for name, others in (("still", {}), ("moving", moving)):
        data = encoded(frames[0], kind, **others, **lossless)
        if kind == "AVIF":
            expect_almost_pillows(data)
        else:
            expect_pillows(data)
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(data)
        loader = stoker.Loader(stoker.image_folder(tmp_path / name), [stoker.CenterCrop(8)], batch_size=1)
        assert len(list(loader)) == len(list(loader)) == 1
        stats = loader.stats()  # of two epochs, and of what was decoded ahead
        assert stats["several_frames"] == (stats["samples"] if name == "moving" else 0)
    (tmp_path / "moving/1.png").write_bytes(data[: len(data) // 8])
    loader = stoker.Loader(stoker.image_folder(tmp_path / "moving"), [stoker.CenterCrop(8)], batch_size=1)
    with pytest.raises(stoker.DataLossError):
        list(loader)
    assert loader.stats()["several_frames"] == 0


NAMES = {"PPM": "PNM", "JPEG2000": "JPEG 2000"}


def test_max_pixels():
    for kind in ("BMP", "GIF", "PPM", "TIFF", "JPEG2000", "AVIF"):
        data = encoded(image_of("L", (60, 40)), kind)
        decoded(data, max_pixels=2400)
        with pytest.raises(stoker.ResourceExhaustedError, match="60 × 40 pixels, more than the limit"):
            stoker.decode_image(data, max_pixels=2399)


def test_a_folder_of_all(tmp_path):
    """Keras' formats and torchvision's: every file is a sample."""
    kinds = {".bmp": "BMP", ".gif": "GIF", ".ppm": "PPM", ".pgm": "PPM", ".tif": "TIFF", ".tiff": "TIFF"}
    kinds |= {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".webp": "WEBP"}
    for seed, (extension, kind) in enumerate(kinds.items()):
        data = encoded(image_of("L" if extension == ".pgm" else "RGB", (40, 30), seed), kind)
        decoded(data)
        (tmp_path / f"{seed}{extension}").write_bytes(data)
    loader = stoker.Loader(
        stoker.image_folder(tmp_path), [stoker.CenterCrop((30, 40))], batch_size=len(kinds)
    )
    (images,) = loader
    for seed, extension in enumerate(kinds):
        np.testing.assert_array_equal(
            np.asarray(images)[seed], stoker.decode_image(tmp_path / f"{seed}{extension}")
        )
