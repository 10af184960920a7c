"""Channels and 16 bits: those of Pillow, OpenCV, torchvision and TensorFlow, where they are installed."""

import io
import struct
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")


def encoded(image, format="png", **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def png16(pixels):
    """A PNG of 16 bits a channel, without filters, by the standard's few lines."""
    import zlib

    height, width = pixels.shape[:2]
    color = {1: 0, 2: 4, 3: 2, 4: 6}[pixels.shape[2]]
    rows = pixels.astype(">u2").reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def tiff(pixels, planar=False, photometric=1):
    """An uncompressed TIFF of one strip for each plane; by default black is zero."""
    height, width, channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    planes = [pixels[..., c] for c in range(channels)] if planar else [pixels]
    strips = [np.ascontiguousarray(plane).astype(plane.dtype.newbyteorder("<")).tobytes() for plane in planes]
    at, offsets = 8, []
    for strip in strips:
        offsets.append(at)
        at += len(strip)
    entries = {
        256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * channels), 259: (3, [1]),
        262: (3, [photometric]),
        273: (4, offsets), 277: (3, [channels]), 278: (4, [height]), 279: (4, [len(s) for s in strips]),
        284: (3, [2 if planar else 1]), 338: (3, [0] * (channels - 1)),
    }  # fmt: skip
    more, directory = b"", b""
    later = at + 2 + 12 * len(entries) + 4
    for tag, (kind, values) in sorted(entries.items()):
        data = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(data) > 4:
            directory += struct.pack("<HHII", tag, kind, len(values), later + len(more))
            more += data
        else:
            directory += struct.pack("<HHI", tag, kind, len(values)) + data.ljust(4, b"\0")
    body = b"".join(strips) + struct.pack("<H", len(entries)) + directory + struct.pack("<I", 0) + more
    return b"II*\0" + struct.pack("<I", at) + body


@pytest.fixture
def jpegs(made):
    return sorted(made.rglob("*.jpg"))[:12]


# ---- gray


def test_the_luma_of_a_jpeg_is_libjpegs(jpegs):
    for path in jpegs:
        with Image.open(path) as image:
            image.draft("L", None)  # decoded to gray by libjpeg
            if image.mode not in ("L", "RGB"):
                continue
            want = np.asarray(image.convert("L"))
        np.testing.assert_array_equal(stoker.decode_image(path, "gray", exif_orientation=False), want)
        packed = stoker.decode_image(path, "gray", region=(3, 5, 20, 30), exif_orientation=False)
        np.testing.assert_array_equal(packed, want[3:23, 5:35])


def gray_decoders():
    """Functions of the libraries that are installed here; each decodes a JPEG's bytes to luma."""
    decoders = []
    try:
        import torch
        from torchvision.io import ImageReadMode, decode_image

        decoders.append(
            lambda data: decode_image(
                torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.GRAY
            ).numpy()[0]
        )
    except ImportError:
        pass
    try:
        import cv2

        flags = cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION
        decoders.append(lambda data: cv2.imdecode(np.frombuffer(data, np.uint8), flags))
    except ImportError:
        pass
    return decoders


def test_gray_is_torchvisions_and_opencvs(jpegs):
    decoders = gray_decoders()
    if not decoders:
        pytest.skip("neither torchvision nor OpenCV is installed here")
    for path in jpegs:
        gray = stoker.decode_image(path, "gray", exif_orientation=False)
        for decode in decoders:
            np.testing.assert_array_equal(gray, decode(path.read_bytes()))


# ---- alpha and 16 bits


def test_rgba():
    rng = np.random.default_rng(5)
    for shape in ((21, 35, 3), (21, 35, 4), (21, 35), (21, 35, 2)):
        image = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
        want = np.asarray(image.convert("RGBA"))
        np.testing.assert_array_equal(stoker.decode_image(encoded(image), "rgba"), want)
    jpeg = encoded(image.convert("RGB"), "jpeg")
    rgba = stoker.decode_image(jpeg, "rgba")
    np.testing.assert_array_equal(rgba[..., :3], stoker.decode_image(jpeg))
    assert (rgba[..., 3] == 255).all()
    half = stoker.decode_image(encoded(Image.new("RGBA", (8, 6), (10, 20, 30, 40))), "rgba", size=(3, 4))
    np.testing.assert_array_equal(half, np.broadcast_to(np.uint8([10, 20, 30, 40]), (3, 4, 4)))


def test_colours_are_blended_in_proportion_to_alpha_as_by_pillow():
    rng = np.random.default_rng(6)
    pixels = rng.integers(0, 256, (40, 60, 4), dtype=np.uint8)
    pixels[:, 20:40, 3] = rng.choice([0, 255], (40, 20))
    image = Image.fromarray(pixels)
    want = np.asarray(image.resize((23, 17), Image.Resampling.BILINEAR)).astype(int)
    small = stoker.decode_image(encoded(image), "rgba", size=(17, 23)).astype(int)
    assert np.abs(small - want)[..., 3].max() <= 1
    assert (np.abs(small - want)[..., :3] * want[..., 3:] / 255).max() <= 2  # Pillow rounds products


@pytest.mark.parametrize("options", [{"lossless": True}, {}, {"alpha_quality": 50}])
def test_the_alpha_of_a_webp(options):
    rng = np.random.default_rng(8)
    pixels = rng.integers(0, 256, (40, 60, 4), dtype=np.uint8)
    pixels[:, 20:40, 3] = rng.choice([0, 255], (40, 20))
    images = [Image.fromarray(pixels), Image.fromarray(pixels[::-1])]
    for more in ({}, {"save_all": True, "append_images": images[1:]}):  # of an animation the first frame
        data = encoded(images[0], "webp", exact=True, **options, **more)
        with Image.open(io.BytesIO(data)) as image:
            want = np.asarray(image.convert("RGBA"))
        np.testing.assert_array_equal(stoker.decode_image(data, "rgba"), want)
        np.testing.assert_array_equal(stoker.decode_image(data, "unchanged"), want)
        part = stoker.decode_image(data, "rgba", region=(3, 5, 20, 30))
        np.testing.assert_array_equal(part, want[3:23, 5:35])
        np.testing.assert_array_equal(stoker.decode_image(data), want[..., :3])


def test_transparent_colours_are_refused_as_alpha():
    palette = Image.new("P", (8, 6), 1)
    palette.putpalette([255, 0, 0, 0, 255, 0])
    palette.putpixel((2, 3), 0)
    files = [encoded(palette, transparency=0), encoded(palette, "gif", transparency=0)]
    files.append(encoded(Image.new("RGB", (8, 6)), transparency=(1, 2, 3)))
    for data in files:
        with pytest.raises(stoker.UnimplementedError, match="transparent colour"):
            stoker.decode_image(data, "rgba")
        assert stoker.decode_image(data, "unchanged").shape == (6, 8, 3)
    assert (stoker.decode_image(encoded(palette, "gif"), "rgba")[..., 3] == 255).all()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_uint16_and_floats(channels):
    rng = np.random.default_rng(channels)
    deep = rng.integers(0, 65536, (19, 23, channels), dtype=np.uint16)
    data = png16(deep)
    colours = np.broadcast_to(deep[..., :1], (19, 23, 3)) if channels < 3 else deep[..., :3]
    np.testing.assert_array_equal(stoker.decode_image(data, dtype="uint16"), colours)
    floats = stoker.decode_image(data, dtype="float32")
    np.testing.assert_allclose(floats, colours.astype(np.float64) / 65535, rtol=2e-7)
    alpha = deep[..., -1:] if channels % 2 == 0 else np.full((19, 23, 1), 65535)
    rgba = stoker.decode_image(data, "rgba", dtype=np.uint16)
    np.testing.assert_array_equal(rgba, np.concatenate([colours, alpha], 2))
    unchanged = stoker.decode_image(data, "unchanged")
    np.testing.assert_array_equal(unchanged, deep[..., 0] if channels == 1 else deep)
    with pytest.raises(stoker.UnimplementedError, match="16 bits"):
        stoker.decode_image(data)
    upper = stoker.decode_image(data, accept_16_bits=True)
    np.testing.assert_array_equal(upper, colours >> 8)
    np.testing.assert_array_equal(
        stoker.decode_image(data, dtype="float32", accept_16_bits=True),
        upper.astype(np.float32) * np.float32(1 / 255),
    )


def test_8_bits_times_257():
    rng = np.random.default_rng(9)
    image = Image.fromarray(rng.integers(0, 256, (17, 31, 3), dtype=np.uint8))
    for data in (encoded(image), encoded(image, "jpeg"), encoded(image, "webp"), encoded(image, "bmp")):
        narrow = stoker.decode_image(data)
        np.testing.assert_array_equal(stoker.decode_image(data, dtype="uint16"), narrow * np.uint16(257))
        floats = stoker.decode_image(data, dtype="float32")
        np.testing.assert_array_equal(floats, narrow.astype(np.float32) * np.float32(1 / 255))


def test_the_16_bits_of_tensorflow_opencv_and_torchvision():
    rng = np.random.default_rng(11)
    deep = rng.integers(0, 65536, (40, 50, 3), dtype=np.uint16)
    data, tested = png16(deep), 0
    ours = stoker.decode_image(data, dtype="uint16")
    try:
        import tensorflow as tf
    except ImportError:
        pass
    else:
        tested += 1
        np.testing.assert_array_equal(ours, tf.io.decode_png(data, channels=3, dtype=tf.uint16).numpy())
    try:
        import cv2
    except ImportError:
        pass
    else:
        tested += 1
        theirs = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(ours, theirs[..., ::-1])
    try:
        import torch
        from torchvision.io import decode_image
        from torchvision.transforms.v2 import functional
    except ImportError:
        pass
    else:
        tested += 1
        theirs = decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        np.testing.assert_array_equal(ours, theirs.permute(1, 2, 0).numpy())
        resized = functional.resize(theirs.to(torch.float32), [17, 23], antialias=True)
        small = stoker.decode_image(data, dtype="uint16", size=(17, 23)).astype(np.int64)
        assert np.abs(small - resized.permute(1, 2, 0).numpy()).max() <= 0.51
    if tested == 0:
        pytest.skip("no other library that keeps 16 bits is installed here")


def test_16_bits_are_resized_as_by_pillow():
    ramp = (np.add.outer(np.arange(60) * 700, np.arange(80) * 211) % 65536).astype(np.uint16)
    for name in ("bilinear", "bicubic", "lanczos", "box"):
        small = stoker.decode_image(png16(ramp[..., None]), "unchanged", size=(25, 31), interpolation=name)
        floats = Image.fromarray(ramp.astype(np.float32))
        want = np.asarray(floats.resize((31, 25), getattr(Image.Resampling, name.upper())))
        assert small.dtype == np.uint16
        assert np.abs(small - np.clip(want, 0, 65535)).max() <= 0.51, name


# ---- TIFF


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [2, 4, 5, 13])
def test_bands_of_a_tiff(channels, dtype, planar):
    rng = np.random.default_rng(channels)
    bands = rng.integers(0, np.iinfo(dtype).max, (29, 41, channels), dtype=dtype, endpoint=True)
    data = tiff(bands, planar)
    image = stoker.decode_image(data, "unchanged")
    assert image.dtype == dtype
    np.testing.assert_array_equal(image, bands)
    part = stoker.decode_image(data, "unchanged", region=(4, 7, 11, 13))
    np.testing.assert_array_equal(part, bands[4:15, 7:20])
    nearest = stoker.decode_image(data, "unchanged", size=(58, 82), interpolation="nearest")
    np.testing.assert_array_equal(nearest, bands.repeat(2, 0).repeat(2, 1))
    if channels > 6:
        for mode in ("rgb", "gray", "rgba"):
            for kind in ("uint8", "uint16", "float32"):
                with pytest.raises(stoker.UnimplementedError, match=r"13 channels.*unchanged"):
                    stoker.decode_image(data, mode, dtype=kind, accept_16_bits=True)
    else:
        gray = stoker.decode_image(data, "gray", dtype="uint16")
        first = bands[..., 0].astype(np.uint16) * (257 if dtype == np.uint8 else 1)
        np.testing.assert_array_equal(gray, first)


def test_bands_of_an_inverted_tiff():
    bands = np.dstack([np.full((5, 7), value, np.uint8) for value in (10, 20, 30)])
    for planar in (False, True):
        image = stoker.decode_image(tiff(bands, planar, photometric=0), "unchanged")
        np.testing.assert_array_equal(image[0, 0], [245, 20, 30])


def test_bands_count_towards_the_limit():
    data = tiff(np.zeros((20, 30, 64), np.uint16))  # 128 bytes a pixel
    assert stoker.decode_image(data, "unchanged", max_pixels=16 * 600).shape == (20, 30, 64)
    with pytest.raises(stoker.ResourceExhaustedError, match="each pixel counts as 16"):
        stoker.decode_image(data, "unchanged", max_pixels=16 * 600 - 1)
    with pytest.raises(stoker.ResourceExhaustedError, match="resized image"):
        stoker.decode_image(data, "unchanged", size=(25, 30), max_pixels=16 * 600)


def test_arguments_that_do_not_fit():
    data = encoded(Image.new("RGB", (8, 6)))
    with pytest.raises(ValueError, match="unchanged"):
        stoker.decode_image(data, "unchanged", dtype="uint8")
    with pytest.raises(ValueError, match="dtype"):
        stoker.decode_image(data, dtype="int64")
    with pytest.raises(ValueError, match="mode"):
        stoker.decode_image(data, "cmyk")


# ---- batches


def batch_of(source, transforms, **options):
    loader = stoker.Loader(source, transforms, batch_size=len(source), **options)
    batch = next(iter(loader))
    return (batch["image"] if isinstance(batch, tuple) else batch).copy()


def test_gray_batches(jpegs):
    source = stoker.files([str(path) for path in jpegs])
    resize = [stoker.Resize((40, 56))]
    gray = batch_of(source, resize, channels="gray")
    assert gray.shape == (len(source), 40, 56, 1) and gray.dtype == np.uint8
    compose = stoker.Compose(resize, channels="gray")
    rgb = stoker.Compose(resize)
    for row, path in zip(gray, jpegs, strict=True):
        np.testing.assert_array_equal(row, compose(path.read_bytes()))
        np.testing.assert_array_equal(row[..., 0], stoker.decode_image(path, "gray", size=(40, 56)))
        luma = np.asarray(Image.fromarray(rgb(path.read_bytes())).convert("L")).astype(int)
        assert np.abs(luma - row[..., 0]).mean() < 2
        assert stoker.Compose([], channels="gray", layout="NCHW")(path.read_bytes()).shape[0] == 1
    planes = batch_of(source, resize, channels="gray", layout="NCHW", dtype="float32")
    assert planes.shape == (len(source), 1, 40, 56)
    np.testing.assert_array_equal(planes[:, 0], gray[..., 0].astype(np.float32) * np.float32(1 / 255))


def test_transforms_of_gray_batches(made):
    source = stoker.image_folder(made)
    crop = stoker.RandomResizedCrop(32)
    flip = stoker.RandomHorizontalFlip()
    plain = batch_of(source, [crop, flip], channels="gray", seed=3)
    inverted = batch_of(source, [crop, flip, stoker.RandomInvert(p=1)], channels="gray", seed=3)
    np.testing.assert_array_equal(inverted, 255 - plain)
    normalized = batch_of(
        source,
        [crop, flip, stoker.Normalize([0.5] * 3, [0.25] * 3), stoker.RandomErasing(p=1)],
        channels="gray",
        seed=3,
        dtype="float32",
    )
    want = (plain.astype(np.float32) / 255 - 0.5) / 0.25
    same = np.isclose(normalized, want, atol=1e-5)
    assert normalized.shape == plain.shape and 0.3 < same.mean() < 1
    padded = batch_of(source, [stoker.Resize(24, max_size=32), stoker.PadTo((32, 32), 7)], channels="gray")
    assert padded.shape[1:] == (32, 32, 1) and (padded == 7).any()
    sizes = np.full((len(padded), 2), (20, 30))
    assert stoker.unpadded(padded, sizes)[0].shape == (20, 30, 1)
    views = stoker.Loader(source, views=[[crop], [stoker.Resize((8, 9))]], batch_size=2, channels="gray")
    batch = next(iter(views))
    assert [batch[name].shape for name in ("image", "image_1")] == [(2, 32, 32, 1), (2, 8, 9, 1)]
    with pytest.raises(ValueError, match=r"transforms\[1\], Normalize: mean differs by channel"):
        unequal = stoker.Normalize([0.1, 0.2, 0.3], [1, 1, 1])
        batch_of(source, [crop, unequal], channels="gray", dtype="float32")
    with pytest.raises(ValueError, match="fill differs by channel"):
        batch_of(source, [crop, stoker.RandomApply([stoker.Pad(2, (1, 2, 3))])], channels="gray")
    with pytest.raises(ValueError, match=r"rows of a batch have one shape.*number of channels"):
        batch_of(source, [crop], channels="unchanged")
    with pytest.raises(ValueError, match=r'channels.*"bgr"'):
        batch_of(source, [crop], channels="bgr")
    for wrong in (0, 65, 2.5, True, None):
        with pytest.raises((ValueError, TypeError), match="channels"):
            batch_of(source, [crop], channels=wrong)


@pytest.fixture
def with_alpha(tmp_path):
    """A folder of images with alpha and without, and their pixels as Pillow's RGBA."""
    rng = np.random.default_rng(4)
    (tmp_path / "a").mkdir()
    wanted = []
    for i, (kind, channels) in enumerate(
        [("png", 4), ("png", 2), ("webp", 4), ("webp", 3), ("tiff", 4), ("bmp", 3), ("png", 1)]
    ):
        pixels = rng.integers(0, 256, (40, 50, channels), dtype=np.uint8)
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        data = encoded(image, kind, **({"exact": True} if kind == "webp" else {}))
        (tmp_path / "a" / f"{i}.{kind}").write_bytes(data)
        with Image.open(io.BytesIO(data)) as stored:
            wanted.append(np.asarray(stored.convert("RGBA")))
    return tmp_path, wanted


def test_rgba_batches(with_alpha):
    folder, wanted = with_alpha
    source = stoker.image_folder(folder)
    crop = [stoker.CenterCrop((20, 30))]
    cropped = [image[10:30, 10:40] for image in wanted]
    batch = batch_of(source, crop, channels="rgba")
    assert batch.dtype == np.uint8
    np.testing.assert_array_equal(batch, cropped)
    flip = [*crop, stoker.RandomHorizontalFlip(p=1)]
    planes = batch_of(source, flip, channels="rgba", layout="NCHW")
    np.testing.assert_array_equal(planes, [np.moveaxis(image[:, ::-1], 2, 0) for image in cropped])
    mean, std = [0.1, 0.2, 0.3, 0.4], [0.5, 1, 2, 4]
    normalized = batch_of(source, [*crop, stoker.Normalize(mean, std)], channels="rgba", dtype="float32")
    want = (np.asarray(cropped, np.float64) / 255 - mean) / std
    np.testing.assert_allclose(normalized, want, atol=1e-6)
    half = batch_of(source, [*crop, stoker.Normalize([0.5], [0.25])], channels="rgba", dtype="float32")
    np.testing.assert_allclose(half, (np.asarray(cropped, np.float64) / 255 - 0.5) / 0.25, atol=1e-5)
    small = batch_of(source, [stoker.Resize((17, 19))], channels="rgba")
    compose = stoker.Compose([stoker.Resize((17, 19))], channels="rgba")
    for row, path in zip(small, sorted((folder / "a").iterdir()), strict=True):
        np.testing.assert_array_equal(row, stoker.decode_image(path, "rgba", size=(17, 19)))
        np.testing.assert_array_equal(row, compose(path.read_bytes()))
    assert stoker.Compose([], channels="rgba")(path.read_bytes()).shape == (40, 50, 4)
    with pytest.raises(ValueError, match=r'ColorJitter: it does not compute with channels "rgba".*or "gray"'):
        batch_of(source, [*crop, stoker.ColorJitter(0.5)], channels="rgba")
    with pytest.raises(ValueError, match="numbers for 3 channels, and images have 4"):
        batch_of(source, [*crop, stoker.Normalize([0] * 3, [1] * 3)], channels="rgba", dtype="float32")
    mixed = batch_of(source, [*crop, stoker.MixUp(num_classes=2)], channels="rgba")
    assert mixed.shape == batch.shape and mixed.dtype == np.uint8


def test_rgba_of_packed_jpegs_and_of_a_cache(made, tmp_path):
    """A JPEG has no alpha: it is 255."""
    resize = [stoker.Resize((40, 56))]
    plain = batch_of(stoker.image_folder(made), resize, channels="rgba")
    assert (plain[..., 3] == 255).all()
    subprocess.run([sys.executable, "-m", "stoker", "pack", made, tmp_path / "set"], check=True)
    np.testing.assert_array_equal(batch_of(stoker.packed(tmp_path / "set"), resize, channels="rgba"), plain)
    loader = stoker.Loader(
        stoker.image_folder(made), resize, batch_size=4, channels="rgba", cache="ram:100MB", shuffle=False
    )
    for _ in range(2):
        rows = np.concatenate([batch["image"].copy() for batch in loader])
        np.testing.assert_array_equal(rows, plain)


def test_bands_of_tiffs_in_batches(tmp_path):
    rng = np.random.default_rng(7)
    (tmp_path / "a").mkdir()
    bands = [rng.integers(0, 65536, (29, 41, 5), dtype=np.uint16) for _ in range(3)]
    for i, image in enumerate(bands):
        (tmp_path / "a" / f"{i}.tif").write_bytes(tiff(image, planar=i == 1))
    source = stoker.image_folder(tmp_path)
    crop = [stoker.CenterCrop((20, 30))]
    cropped = np.asarray(bands)[:, 4:24, 6:36]
    np.testing.assert_array_equal(batch_of(source, crop, channels=5, dtype="uint16"), cropped)
    mean = [0.1, 0.2, 0.3, 0.4, 0.5]
    normalize = [*crop, stoker.Normalize(mean, [1])]
    floats = batch_of(source, normalize, channels=5, dtype="float32", layout="NCHW")
    want = np.moveaxis(cropped / 65535 - mean, 3, 1)
    np.testing.assert_allclose(floats, want, atol=1e-6)
    with pytest.raises(stoker.UnimplementedError, match="16 bits"):
        batch_of(source, crop, channels=5)
    upper = batch_of(source, crop, channels=5, accept_16_bits=True)
    np.testing.assert_array_equal(upper, cropped >> 8)
    (tmp_path / "a" / "3.png").write_bytes(encoded(Image.new("RGBA", (41, 29))))
    source = stoker.image_folder(tmp_path)
    with pytest.raises(stoker.UnimplementedError, match=r"3\.png.*4 channels, where each must have 5"):
        batch_of(source, crop, channels=5, dtype="uint16")
    left = stoker.Loader(source, crop, batch_size=4, channels=5, dtype="uint16", on_bad="drop")
    assert [len(batch["image"]) for batch in left] == [3]


def test_arrays_become_gray():
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (5, 20, 30, 3), dtype=np.uint8)
    source = stoker.arrays(images)
    gray = batch_of(source, [stoker.CenterCrop((20, 30))], channels="gray")
    for row, image in zip(gray, images):
        np.testing.assert_array_equal(row[..., 0], np.asarray(Image.fromarray(image).convert("L")))
    with pytest.raises(ValueError, match="copied as they are"):
        batch_of(source, [], channels="gray")


@pytest.fixture
def deep(tmp_path):
    """A folder of PNGs of 16 bits, and their pixels."""
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 65536, (40, 50, 3), dtype=np.uint16) for _ in range(4)]
    (tmp_path / "a").mkdir()
    for i, image in enumerate(images):
        (tmp_path / "a" / f"{i}.png").write_bytes(png16(image))
    return tmp_path, images


def test_batches_of_uint16(deep):
    folder, images = deep
    source = stoker.image_folder(folder)
    batch = batch_of(source, [stoker.CenterCrop((20, 30))], dtype="uint16")
    assert batch.dtype == np.uint16
    cropped = [image[10:30, 10:40] for image in images]
    np.testing.assert_array_equal(batch, cropped)
    flips = [stoker.CenterCrop((20, 30)), stoker.RandomHorizontalFlip(p=1), stoker.RandomVerticalFlip(p=1)]
    flipped = batch_of(source, flips, dtype="uint16", layout="NCHW")
    np.testing.assert_array_equal(flipped, [np.moveaxis(image[::-1, ::-1], 2, 0) for image in cropped])
    wide = batch_of(source, [stoker.CenterCrop((44, 54))], dtype="uint16")  # padded with zeros
    np.testing.assert_array_equal(wide[:, 2:42, 2:52], images)
    assert wide[:, :2].max() == wide[..., :2, :].max() == 0
    floats = batch_of(source, [stoker.CenterCrop((20, 30))], dtype="float32")
    np.testing.assert_allclose(floats, np.asarray(cropped, np.float64) / 65535, rtol=2e-7)
    gray = batch_of(source, [stoker.CenterCrop((20, 30))], dtype="uint16", channels="gray")
    np.testing.assert_array_equal(
        gray[0, ..., 0], stoker.decode_image(png16(images[0]), "gray", dtype="uint16")[10:30, 10:40]
    )
    small = batch_of(source, [stoker.Resize((17, 19))], dtype="uint16")
    np.testing.assert_array_equal(
        small[1], stoker.decode_image(png16(images[1]), dtype="uint16", size=(17, 19))
    )
    normalized = [stoker.CenterCrop((20, 30)), stoker.Normalize([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])]
    np.testing.assert_allclose(
        batch_of(source, normalized, dtype="float32"),
        (np.asarray(cropped, np.float64) / 65535 - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7],
        atol=1e-6,
    )
    compose = stoker.Compose([stoker.CenterCrop((20, 30))], dtype="uint16")
    np.testing.assert_array_equal(compose(images[0].astype(np.uint8)), (images[0][10:30, 10:40] & 255) * 257)


def test_what_16_bits_cannot_do(deep):
    folder, _ = deep
    source = stoker.image_folder(folder)
    crop, jitter = stoker.CenterCrop((20, 30)), stoker.ColorJitter(0.5)
    for more in (jitter, stoker.Pad(2, 9), stoker.RandomErasing(), stoker.RandomRotation(9)):
        with pytest.raises(ValueError, match=r"transforms\[1\].*uint16"):
            stoker.Loader(source, [crop, more], batch_size=2, dtype="uint16")
    with pytest.raises(ValueError, match="uint16"):
        batch_of(source, [crop, stoker.Normalize([0.5] * 3, [0.5] * 3)], dtype="uint16")
    with pytest.raises(stoker.UnimplementedError, match="one view"):
        stoker.Loader(source, views=[[crop], [crop]], batch_size=2, dtype="uint16")
    with pytest.raises(ValueError, match="does not mix uint16"):
        stoker.Loader(source, [crop, stoker.MixUp()], batch_size=2, dtype="uint16")
    with pytest.raises(stoker.UnimplementedError, match=r"16 bits.*transforms\[1\], ColorJitter"):
        batch_of(source, [crop, jitter], dtype="float32")
    with pytest.raises(stoker.UnimplementedError, match="RandomGrayscale"):  # by the plan, not by the draw
        batch_of(source, [crop, stoker.RandomGrayscale(p=0)], dtype="float32")
    many = tiff(np.zeros((40, 50, 10), np.uint16))
    with pytest.raises(stoker.UnimplementedError, match="10 channels"):
        stoker.Compose([crop], dtype="float32")(many)
    with pytest.raises(stoker.UnimplementedError, match="16 bits"):
        batch_of(source, [crop])


def test_devices_take_uint16_and_gray(deep):
    folder, _ = deep
    source = stoker.image_folder(folder)
    crop = [stoker.CenterCrop((20, 30))]
    for options in ({"dtype": "uint16"}, {"dtype": "float32", "channels": "gray"}):
        loader = stoker.Loader(source, crop, batch_size=4, **options)
        image = next(iter(loader.to_device("host")))["image"]
        np.testing.assert_array_equal(np.from_dlpack(image), batch_of(source, crop, **options))
    loader = stoker.Loader(source, crop, batch_size=4, dtype="float32")
    with pytest.raises(stoker.UnimplementedError, match=r"16 bits.*that a device finishes.*dtype uint16"):
        next(iter(loader.to_device("host")))
    for options in ({"dtype": "uint16"}, {"channels": "gray", "accept_16_bits": True}):
        with pytest.raises(ValueError, match='decode is "device"'):
            stoker.Loader(source, crop, batch_size=4, **options).to_device("host", decode="device")


def test_a_state_of_other_bits(deep):
    folder, _ = deep
    crop = [stoker.CenterCrop((20, 30))]

    def loader(**options):
        return stoker.Loader(stoker.image_folder(folder), crop, batch_size=2, dtype="float32", **options)

    state = loader(accept_16_bits=True).state_dict()
    loader(accept_16_bits=True).load_state_dict(state)
    with pytest.raises(stoker.FailedPreconditionError, match="accept_16_bits"):
        loader().load_state_dict(state)


def test_what_takes_batches_takes_gray_and_uint16(deep):
    folder, _ = deep
    source = stoker.image_folder(folder)
    crop = [stoker.CenterCrop((20, 30))]
    for layout in ("NHWC", "NCHW"):
        for dtype in ("uint16", "float32"):
            gray = batch_of(source, crop, channels="gray", dtype=dtype, layout=layout)
            assert stoker.show(gray).png
            cut = stoker.unpadded(gray, np.full((4, 2), (7, 9)), layout)
            assert cut[0].shape == ((7, 9, 1) if layout == "NHWC" else (1, 7, 9))
    padded = [stoker.CenterCrop((20, 30)), stoker.PadTo("batch", multiple=32)]
    for layout in ("NHWC", "NCHW"):
        options = {"channels": "gray", "dtype": "float32", "layout": layout, "accept_16_bits": True}
        rows = batch_of(source, padded, **options)
        shown = rows[:, :20, :30] if layout == "NHWC" else rows[:, :, :20, :30]
        want = batch_of(source, crop, **options)
        np.testing.assert_array_equal(shown, want)
        assert np.count_nonzero(rows) == np.count_nonzero(shown)
