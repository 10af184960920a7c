"""PNG and WebP as Pillow writes them: the pixels are Pillow's, whatever the files are called."""

import io
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")

SIZES = [(1, 1), (3, 2), (17, 9), (64, 48), (131, 97)]  # width, height


def pixels(width, height, channels, seed=0):
    """Returns a smooth image with noise."""
    random = np.random.default_rng(seed)
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    values = x * (c + 2) + y * (5 - c) + random.integers(0, 40, (height, width, channels))
    return (values % 256).astype(np.uint8)


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def decoded(data, width, height):
    """Returns the whole image, unchanged."""
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


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")  # it is left out on purpose
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palette(bits):
    image = Image.fromarray(pixels(40, 30, 3)).quantize(1 << bits)
    expect_pillows(encoded(image, "PNG", bits=bits))
    expect_pillows(encoded(image, "PNG", bits=bits, transparency=1))
    expect_pillows(encoded(image, "PNG", bits=bits, transparency=bytes(range(1 << bits))))


@pytest.mark.parametrize("mode, transparency", [("L", 7), ("RGB", (1, 2, 3))])
def test_transparent_colors_are_ignored(mode, transparency):
    expect_pillows(encoded(image_of(mode, (20, 20)), "PNG", transparency=transparency))


def test_16_bits_are_refused_unless_the_upper_8_or_all_are_asked_for(tmp_path, command):
    """Loaders, Compose and decode_image agree; Pillow clips at 255 (docs/formats.md)."""
    values = np.arange(61 * 67, dtype=np.uint16).reshape(61, 67) * 16
    upper = np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    path = tmp_path / "depth.png"
    path.write_bytes(data := encoded(Image.fromarray(values), "PNG"))
    crop = [stoker.CenterCrop((61, 67))]

    def loaded(**options):
        return next(iter(stoker.Loader(stoker.files([str(path)]), crop, batch_size=1, **options)))[0]

    for read in (
        loaded,
        lambda **options: stoker.Compose(crop, **options)(data),
        lambda **options: stoker.decode_image(path, **options),
        lambda **options: stoker.decode_images([data], **options)[0],
    ):
        with pytest.raises(stoker.UnimplementedError, match=r"16 bits.*dtype uint16.*accept_16_bits"):
            read()
        with pytest.raises(TypeError, match="accept_16_bits"):
            read(accept_16_bits=1)
        np.testing.assert_array_equal(read(accept_16_bits=True), upper)
    gray = stoker.decode_image(data, "gray", accept_16_bits=True)
    np.testing.assert_array_equal(gray, upper[:, :, 0])
    np.testing.assert_array_equal(stoker.decode_image(data, "unchanged"), values)

    for flags, words in (((), "unsupported: a PNG of 16 bits"), (("--accept-16-bits",), "bad: none")):
        done = subprocess.run([command, "verify", tmp_path, *flags], capture_output=True, text=True)
        assert words in done.stdout


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


def xmp_of(orientation, element):
    """Returns an XMP packet; the orientation as an element or as an attribute."""
    if element:
        return f"<rdf:Description><tiff:Orientation>{orientation}</tiff:Orientation></rdf:Description>"
    return f'<x:xmpmeta><rdf:Description tiff:Orientation="{orientation}"/></x:xmpmeta>'


def exif_of(orientation):
    exif = Image.Exif()
    if orientation is None:
        exif[0x0110] = "a camera"
    else:
        exif[0x0112] = orientation
    return exif.tobytes()


def raw_profile(orientation):
    """As ImageMagick writes EXIF into a PNG's text."""
    data = exif_of(orientation)
    lines = "\n".join(data.hex()[i : i + 72] for i in range(0, 2 * len(data), 72))
    return f"\nexif\n{len(data):8}\n{lines}\n"


def with_text(image, exif=None, **texts):
    """A PNG; `texts` are (kind, text) by keyword, whose underscores are spaces."""
    from PIL import PngImagePlugin

    info = PngImagePlugin.PngInfo()
    for keyword, (kind, text) in texts.items():
        name = {"xmp": "XML:com.adobe.xmp", "raw": "Raw profile type exif"}[keyword]
        if kind.startswith("i"):
            info.add_itxt(name, text, zip=kind == "izip")
        else:
            info.add_text(name, text, zip=kind == "zip")
    return encoded(image, "PNG", pnginfo=info, **({} if exif is None else {"exif": exif}))


def expect_turned_as_by_pillow(data, tolerance=0):
    from PIL import ImageOps

    with Image.open(io.BytesIO(data)) as image:
        wanted = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    got = decoded(data, wanted.shape[1], wanted.shape[0])
    assert np.abs(got.astype(int) - wanted).max() <= tolerance


@pytest.mark.parametrize("element", [False, True])
@pytest.mark.parametrize("exif", [None, "no tag", 1, 3, 9])
@pytest.mark.parametrize("orientation", range(10))
def test_orientation_of_xmp(orientation, exif, element):
    """The orientation where EXIF has none; 0 and 9 are not orientations."""
    image, xmp = image_of("RGB", (60, 40)), xmp_of(orientation, element)
    options = {} if exif is None else {"exif": exif_of(None if exif == "no tag" else exif)}
    expect_turned_as_by_pillow(encoded(image, "JPEG", xmp=xmp.encode(), **options), tolerance=2)
    expect_turned_as_by_pillow(encoded(image, "WEBP", lossless=True, xmp=xmp.encode(), **options))
    for kind in ("i", "izip", "text", "zip"):
        expect_turned_as_by_pillow(with_text(image, xmp=(kind, xmp), **options))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_of_a_raw_profile(orientation):
    image = image_of("RGB", (60, 40))
    for kind in ("i", "izip", "text", "zip"):
        raw, other = (kind, raw_profile(orientation)), ("izip", xmp_of(7, False))
        expect_turned_as_by_pillow(with_text(image, raw=raw))
        expect_turned_as_by_pillow(with_text(image, raw=raw, xmp=other))
        expect_turned_as_by_pillow(with_text(image, raw=raw, exif=exif_of(2)))
        expect_turned_as_by_pillow(with_text(image, raw=raw, exif=exif_of(None), xmp=other))


def test_orientation_of_several_exif_parts():
    """Pillow takes a JPEG's segments for one, and a WebP's first chunk: one directory counts."""
    image, xmp = image_of("RGB", (60, 40)), xmp_of(6, False).encode()
    for first, second in ((None, 6), (None, 3), (3, 6), (9, 6)):
        part = exif_of(second)
        segment = b"\xff\xe1" + (len(part) + 2).to_bytes(2, "big") + part
        chunk = b"EXIF" + len(part).to_bytes(4, "little") + part + bytes(len(part) % 2)
        for options in ({}, {"xmp": xmp}):
            jpeg = encoded(image, "JPEG", exif=exif_of(first), **options)
            after = jpeg.index(b"Exif\0\0") - 2
            after += int.from_bytes(jpeg[after : after + 2], "big")
            expect_turned_as_by_pillow(jpeg[:after] + segment + jpeg[after:], tolerance=2)
            webp = encoded(image, "WEBP", lossless=True, exif=exif_of(first), **options) + chunk
            webp = webp[:4] + (len(webp) - 8).to_bytes(4, "little") + webp[8:]
            expect_turned_as_by_pillow(webp)


def test_other_formats_are_named():
    """For sound images the advice is never to remove them."""
    image = image_of("RGB", (60, 40))
    kinds = {"DDS": "DDS", "QOI": "QOI"}
    for kind, name in kinds.items():
        try:
            data = encoded(image, kind)
        except (KeyError, OSError):  # this Pillow cannot write it
            continue
        with pytest.raises(stoker.UnimplementedError, match=f"{name} images are not supported.*Convert"):
            stoker.Compose([stoker.CenterCrop(8)])(data)


@pytest.mark.parametrize(
    "data",
    [b"\xff\x0a" + bytes(20), b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl " + bytes(20)],
    ids=["codestream", "container"],
)
def test_jpeg_xl_is_named(data, tmp_path):
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(stoker.UnimplementedError, match=r"JPEG XL images are not supported.*`djxl FILE"):
        stoker.decode_image(tmp_path / "a.jpg")


def test_zeros_in_place_of_the_end_marker():
    data = encoded(image_of("RGB", (60, 40)), "JPEG")
    padded = data[:-2] + bytes(500)
    np.testing.assert_array_equal(decoded(padded, 60, 40), decoded(data, 60, 40))
    with Image.open(io.BytesIO(padded)) as image:
        image.load()  # Pillow accepts it, too
    for damaged in (data[:-2], data[: len(data) // 2] + bytes(5000)):
        with pytest.raises(stoker.DataLossError, match="truncated"):
            decoded(damaged, 60, 40)


def test_lost_end_markers_are_counted(tmp_path):
    """Counts cover everything that was decoded: the loader is ahead of the batches that are taken."""
    data = encoded(image_of("RGB", (60, 40)), "JPEG")
    for name, content, counted in (("lost", data[:-2] + bytes(500), True), ("whole", data, False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(content)
        loader = stoker.Loader(stoker.image_folder(tmp_path / name), [stoker.CenterCrop(8)], batch_size=1)
        assert len(list(loader)) == 1
        assert (loader.stats()["no_end_marker"] > 0) == counted


def test_animations():
    frames = [image_of("RGB", (30, 20), seed) for seed in range(3)]
    apng = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(decoded(apng, 30, 20), np.asarray(frames[0]))
    webp = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    np.testing.assert_array_equal(decoded(webp, 30, 20), np.asarray(frames[0]))


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [False, True])
def test_animation_of_one_frame(mode, lossless):
    """Some programs write still images like that; Pillow shows the frame."""
    still = encoded(image_of(mode, (30, 20)), "WEBP", lossless=lossless)
    image = still[12:] if still[12:16] != b"VP8X" else still[30:]

    def chunk(name, data):
        return name + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)

    sides = (29).to_bytes(3, "little") + (19).to_bytes(3, "little")
    chunks = chunk(b"VP8X", b"\x12\0\0\0" + sides) + chunk(b"ANIM", bytes(6))
    chunks += chunk(b"ANMF", bytes(6) + sides + b"\x64\0\0\0" + image)
    webp = b"RIFF" + (len(chunks) + 4).to_bytes(4, "little") + b"WEBP" + chunks
    with Image.open(io.BytesIO(webp)) as shown:
        np.testing.assert_array_equal(decoded(webp, 30, 20), np.asarray(shown.convert("RGB")))
    np.testing.assert_array_equal(decoded(webp, 30, 20), decoded(still, 30, 20))


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
