"""PNG and WebP as Pillow writes them: its pixels, whatever the files are called."""

import io

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")

SIZES = [(1, 1), (3, 2), (17, 9), (64, 48), (131, 97)]  # width, height


def pixels(width, height, channels, seed=0):
    """Smooth, with noise."""
    random = np.random.default_rng(seed)
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    values = x * (c + 2) + y * (5 - c) + random.integers(0, 40, (height, width, channels))
    return (values % 256).astype(np.uint8)


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def decoded(data, width, height):
    """All of it, untouched."""
    return stoker.Compose([stoker.CenterCrop((height, width))])(data)


def expect_pillows(data, wanted=None):
    with Image.open(io.BytesIO(data)) as image:
        wanted = np.asarray(image.convert("RGB")) if wanted is None else wanted
        np.testing.assert_array_equal(decoded(data, *image.size), wanted)


def image_of(mode, size, seed=0):
    if mode == "1":
        return Image.fromarray(pixels(*size, 1, seed)[:, :, 0] > 100)
    if mode == "P":
        return Image.fromarray(pixels(*size, 3, seed)).quantize(37)
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
    array = pixels(*size, channels, seed)
    return Image.fromarray(array[:, :, 0] if channels == 1 else array, mode)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_png(mode, size):
    expect_pillows(encoded(image_of(mode, size), "PNG"))


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")  # it is left out, as is wanted
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palette(bits):
    image = Image.fromarray(pixels(40, 30, 3)).quantize(1 << bits)
    expect_pillows(encoded(image, "PNG", bits=bits))
    expect_pillows(encoded(image, "PNG", bits=bits, transparency=1))
    expect_pillows(encoded(image, "PNG", bits=bits, transparency=bytes(range(1 << bits))))


@pytest.mark.parametrize("mode, transparency", [("L", 7), ("RGB", (1, 2, 3))])
def test_transparent_colors_are_ignored(mode, transparency):
    expect_pillows(encoded(image_of(mode, (20, 20)), "PNG", transparency=transparency))


def test_gray_of_16_bits():
    """The upper 8, where Pillow clips at 255 (docs/formats.md)."""
    values = np.arange(61 * 67, dtype=np.uint16).reshape(61, 67) * 16
    upper = np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    expect_pillows(encoded(Image.fromarray(values), "PNG"), upper)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize(
    "options",
    [{"quality": q} for q in (0, 30, 75, 100)] + [{"lossless": True}, {"lossless": True, "exact": True}],
    ids=str,
)
def test_webp(mode, size, options):
    expect_pillows(encoded(image_of(mode, size), "WEBP", **options))


def test_quality_range():
    for quality in range(0, 101, 7):
        expect_pillows(
            encoded(image_of("RGB", (150, 110), quality), "WEBP", quality=quality, method=quality % 7)
        )


@pytest.mark.parametrize("kind, options", [("PNG", {}), ("WEBP", {"lossless": True}), ("JPEG", {})])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(kind, options, orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(image_of("RGB", (60, 40)), kind, exif=exif, **options)
    with Image.open(io.BytesIO(data)) as image:
        turned = ImageOps.exif_transpose(image).convert("RGB")
        got = decoded(data, *turned.size)
        if kind == "JPEG":  # decoded by another build of libjpeg-turbo
            assert np.abs(got.astype(int) - np.asarray(turned)).max() <= 2
        else:
            np.testing.assert_array_equal(got, np.asarray(turned))


def test_other_formats_are_named():
    """Sound images: never is the advice to remove them."""
    image = image_of("RGB", (60, 40))
    kinds = {"GIF": "GIF", "BMP": "BMP", "TIFF": "TIFF", "PPM": "PNM", "ICO": "ICO", "AVIF": "AVIF"}
    kinds |= {"JPEG2000": "JPEG 2000", "DDS": "DDS", "QOI": "QOI"}
    for kind, name in kinds.items():
        try:
            data = encoded(image, kind)
        except (KeyError, OSError):  # this Pillow cannot write it
            continue
        with pytest.raises(stoker.UnimplementedError, match=f"{name} images are not supported.*Convert"):
            stoker.Compose([stoker.CenterCrop(8)])(data)


def test_animations():
    frames = [image_of("RGB", (30, 20), seed) for seed in range(3)]
    apng = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(decoded(apng, 30, 20), np.asarray(frames[0]))
    webp = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    with pytest.raises(stoker.UnimplementedError, match="animated WebP"):
        decoded(webp, 30, 20)


def test_truncated():
    for kind in ("PNG", "WEBP"):
        data = encoded(image_of("RGB", (60, 40)), kind)
        with pytest.raises(stoker.DataLossError, match="truncated"):
            decoded(data[: len(data) // 2], 60, 40)


def test_mixed_directory(tmp_path):
    """All formats, some under another's name: order, labels and pixels are right."""
    size, wanted = (40, 30), []
    kinds = [("PNG", {}), ("WEBP", {"lossless": True}), ("JPEG", {"quality": 95}), ("WEBP", {"quality": 80})]
    names = [".jpg", ".png", ".webp", ".jpeg"]
    for label, folder in enumerate(["ants", "bees", "cats"]):
        (tmp_path / folder).mkdir()
        for i in range(8):
            kind, options = kinds[(i + label) % 4]
            data = encoded(image_of("RGB", size, 10 * label + i), kind, **options)
            (tmp_path / folder / f"{i}{names[i % 4]}").write_bytes(data)
            wanted.append((label, decoded(data, *size)))
    crop = [stoker.CenterCrop((size[1], size[0]))]
    loader = stoker.Loader(stoker.image_folder(tmp_path), crop, batch_size=5)
    position = 0
    for images, labels in loader:
        for image, label in zip(images, labels):
            assert label == wanted[position][0]
            np.testing.assert_array_equal(image, wanted[position][1])
            position += 1
    assert position == len(wanted)
