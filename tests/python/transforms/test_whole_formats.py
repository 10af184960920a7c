"""BMP, GIF, PNM and TIFF as Pillow writes them: the pixels are Pillow's."""

import io
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")

SIZES = [(1, 1), (3, 2), (17, 9), (131, 97)]  # width, height
LIBRARIES = {"GIF": "giflib", "TIFF": "libtiff"}


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
        if any(f"decoded by {library}" in str(error) for library in LIBRARIES.values()):
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


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_orientation(orientation):
    expect_pillows(encoded(image_of("RGB", (60, 40)), "TIFF", tiffinfo={274: orientation}))


@pytest.mark.parametrize("kind", ["TIFF", "PPM"])
def test_16_bits(kind):
    data = encoded(image := image_of("I;16", (60, 40)), kind)
    with pytest.raises(stoker.UnimplementedError, match=r"16 bits a channel|decoded by libtiff"):
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


@pytest.mark.parametrize("kind", ["BMP", "GIF", "PPM", "TIFF"])
def test_truncated_and_damaged(kind, tmp_path, command):
    data = encoded(image_of("P" if kind == "GIF" else "RGB", (60, 40)), kind)
    decoded(data)
    with pytest.raises((stoker.DataLossError), match=f"(truncated|damaged) {NAMES.get(kind, kind)}"):
        stoker.decode_image(data[: len(data) * 2 // 3])
    (tmp_path / "part.bmp").write_bytes(data[: len(data) * 2 // 3])
    done = subprocess.run([command, "verify", tmp_path], capture_output=True, text=True)
    assert "bad: 1 (" in done.stdout


NAMES = {"PPM": "PNM"}


def test_max_pixels():
    for kind in ("BMP", "GIF", "PPM", "TIFF"):
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
