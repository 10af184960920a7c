"""decode_image, decode_images: the same pixels as Pillow's, and errors for everything else."""

import gc
import io
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from pages import BLOCKS

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
ImageOps = pytest.importorskip("PIL.ImageOps")


@pytest.fixture
def paths(made):
    return sorted(made.rglob("*.jpg"))


def encoded(image, format="png", **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def photograph(path, mode="RGB"):
    """In mode "L", the luma of a JPEG as it is stored."""
    with Image.open(path) as image:
        if mode == "L":
            image.draft("L", None)
        image = ImageOps.exif_transpose(image)
        return np.asarray(image if image.mode == "L" and mode == "L" else image.convert("RGB").convert(mode))


# ---- pixels


def test_the_pixels_are_pillows(paths):
    for path in paths[:20]:
        image = stoker.decode_image(path)
        np.testing.assert_array_equal(image, photograph(path))
        assert image.dtype == np.uint8 and image.flags.c_contiguous and image.flags.writeable
        assert image.ctypes.data % 64 == 0
        np.testing.assert_array_equal(stoker.decode_image(path, "gray"), photograph(path, "L"))


def test_photographs_too(photos):
    for path in sorted(photos.rglob("*.[jJ]*"))[:25]:
        np.testing.assert_array_equal(stoker.decode_image(path), photograph(path))


@pytest.mark.parametrize("mode", ["rgb", "gray"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_regions_and_orientations(paths, orientation, mode):
    with Image.open(paths[0]) as image:
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = encoded(image, "jpeg", exif=exif, quality=95)
    with Image.open(io.BytesIO(data)) as image:
        if mode == "gray":
            image.draft("L", None)
        stored = np.asarray(image.convert("L" if mode == "gray" else "RGB"))
    upright = photograph(io.BytesIO(data), "L" if mode == "gray" else "RGB")
    np.testing.assert_array_equal(stoker.decode_image(data, mode), upright)
    np.testing.assert_array_equal(stoker.decode_image(data, mode, exif_orientation=False), stored)
    height, width = upright.shape[:2]
    for top, left, rows, columns in ((0, 0, 1, 1), (7, 11, 40, 30), (0, width // 2, height, 5)):
        part = stoker.decode_image(data, mode, region=(top, left, rows, columns))
        np.testing.assert_array_equal(part, upright[top : top + rows, left : left + columns])


def test_sizes_are_those_of_resize(paths):
    data = paths[3].read_bytes()
    for size in (50, (40, 70), [90], np.array([30, 20])):
        for interpolation in ("bilinear", "nearest"):
            image = stoker.decode_image(data, size=size, interpolation=interpolation)
            height, width = image.shape[:2]
            resize = stoker.Resize((height, width), interpolation)
            np.testing.assert_array_equal(image, stoker.Compose([resize])(data))
    image = stoker.decode_image(data, region=(10, 20, 100, 80), size=(33, 44), antialias=False)
    part = photograph(paths[3])[10:110, 20:100]
    np.testing.assert_array_equal(image, stoker.Compose([stoker.Resize((33, 44), antialias=False)])(part))


def test_png_and_webp():
    rng = np.random.default_rng(3)
    for shape, mode in (((31, 45, 3), "RGB"), ((31, 45, 4), "RGBA"), ((31, 45), "L"), ((31, 45, 2), "LA")):
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        image = Image.fromarray(pixels)
        assert image.mode == mode
        colours = pixels[..., :3] if mode.startswith("RGB") else np.atleast_3d(pixels)[..., :1]
        colours = np.broadcast_to(colours, (31, 45, 3))
        np.testing.assert_array_equal(stoker.decode_image(encoded(image)), colours)
        luma = np.asarray(Image.fromarray(np.ascontiguousarray(colours)).convert("L"))
        np.testing.assert_array_equal(stoker.decode_image(encoded(image), "gray"), luma)
        if mode == "RGB":
            webp = encoded(image, "webp", lossless=True)
            np.testing.assert_array_equal(stoker.decode_image(webp), colours)


def test_unchanged(paths):
    rng = np.random.default_rng(4)
    for shape in ((31, 45, 3), (31, 45, 4), (31, 45), (31, 45, 2)):
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        data = encoded(Image.fromarray(pixels))
        image = stoker.decode_image(data, "unchanged")
        assert image.dtype == np.uint8
        np.testing.assert_array_equal(image, pixels)
        part = stoker.decode_image(data, "unchanged", region=(4, 5, 6, 7))
        np.testing.assert_array_equal(part, pixels[4:10, 5:12])
    deep = rng.integers(0, 65536, (31, 45), dtype=np.uint16)
    image = stoker.decode_image(encoded(Image.fromarray(deep)), "unchanged")
    assert image.dtype == np.uint16
    np.testing.assert_array_equal(image, deep)
    (image,) = stoker.decode_images([encoded(Image.fromarray(deep))], "unchanged")
    np.testing.assert_array_equal(image, deep)
    np.testing.assert_array_equal(stoker.decode_image(paths[0], "unchanged"), photograph(paths[0]))
    gray = photograph(paths[0], "L")
    with Image.open(io.BytesIO(jpeg := encoded(Image.fromarray(gray), "jpeg"))) as opened:
        np.testing.assert_array_equal(stoker.decode_image(jpeg, "unchanged"), np.asarray(opened))


def test_unchanged_is_resized():
    image = Image.new("RGBA", (20, 30), (10, 20, 30, 40))
    small = stoker.decode_image(encoded(image), "unchanged", size=10)
    np.testing.assert_array_equal(small, np.broadcast_to(np.uint8([10, 20, 30, 40]), (15, 10, 4)))
    deep = encoded(Image.fromarray(np.full((20, 30), 300, np.uint16)))
    np.testing.assert_array_equal(
        stoker.decode_image(deep, "unchanged", size=10), np.full((10, 15), 300, np.uint16)
    )
    assert stoker.decode_image(deep, "gray", size=10, accept_16_bits=True).shape == (10, 15)
    webp = stoker.decode_image(encoded(image, "webp", lossless=True), "unchanged", size=10)
    np.testing.assert_array_equal(webp, small)


# ---- inputs


def test_inputs(paths):
    path, data = paths[0], paths[0].read_bytes()
    want = stoker.decode_image(data)
    array = np.frombuffer(data, np.uint8)
    for given in (str(path), path, bytearray(data), memoryview(data), array, np.repeat(array, 2)[::2]):
        np.testing.assert_array_equal(stoker.decode_image(given), want)


@pytest.mark.parametrize(
    ("image", "kind", "word"),
    [
        (None, TypeError, "image must be bytes or a path, not NoneType"),
        (3, TypeError, "bytes or a path"),
        (io.BytesIO(b"x"), TypeError, r"try its read\(\)"),
        ("", ValueError, "not a path"),
        ("a\0b", ValueError, "not a path"),
        (np.zeros((4, 4, 3), np.uint8), ValueError, "one dimension"),
        (np.zeros(4), ValueError, "array of float64"),
        (memoryview(b"abcdef")[::2], ValueError, "gaps"),
    ],
)
def test_what_is_no_image(image, kind, word):
    with pytest.raises(kind, match=word):
        stoker.decode_image(image)
    with pytest.raises(kind, match=word.replace("image must", r"images\[0\] must")):
        stoker.decode_images([image])


@pytest.mark.parametrize(
    ("options", "kind", "word"),
    [
        ({"mode": "bgr"}, ValueError, "mode is 'bgr'"),
        ({"mode": 3}, TypeError, "mode"),
        ({"region": (0, 0, 5)}, ValueError, "region"),
        ({"region": (0, 0, 0, 5)}, ValueError, r"region\[2\]"),
        ({"region": (-1, 0, 5, 5)}, ValueError, r"region\[0\]"),
        ({"region": (0, 0, 5.5, 5)}, TypeError, r"region\[2\]"),
        ({"region": (0, 0, 60000, 5)}, ValueError, "not inside the image, which has height"),
        ({"size": 0}, ValueError, "size"),
        ({"size": (5, 5, 5)}, ValueError, "size"),
        ({"size": "big"}, TypeError, "size"),
        ({"size": 5, "interpolation": "area"}, ValueError, "interpolation"),
        ({"size": 5, "antialias": 1}, TypeError, "antialias"),
        ({"exif_orientation": 1}, TypeError, "exif_orientation"),
        ({"max_pixels": 0}, ValueError, "max_pixels"),
        ({"max_scans": "x"}, TypeError, "max_scans"),
    ],
)
def test_bad_options_are_named(paths, options, kind, word):
    with pytest.raises(kind, match=word):
        stoker.decode_image(paths[0], **options)
    with pytest.raises(kind, match=word):
        stoker.decode_images([paths[0]], **options)


# ---- errors


def test_errors_name_file_and_offset(paths, tmp_path):
    data = paths[0].read_bytes()
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(stoker.DataLossError) as caught:
        stoker.decode_image(cut)
    assert caught.value.file == str(cut) and caught.value.offset == len(data) // 2
    with pytest.raises(stoker.DataLossError) as caught:
        stoker.decode_image(cut.read_bytes())
    assert caught.value.file is None and caught.value.offset == len(data) // 2
    with pytest.raises(FileNotFoundError) as caught:
        stoker.decode_image(tmp_path / "none.jpg")
    assert caught.value.file == str(tmp_path / "none.jpg")
    with pytest.raises(stoker.Error, match="a directory, not a file"):
        stoker.decode_image(tmp_path)
    with pytest.raises(stoker.DataLossError, match="no bytes"):
        stoker.decode_image(b"")
    with pytest.raises(stoker.UnimplementedError, match="QOI"):
        stoker.decode_image(b"qoif and so on")
    with pytest.raises(stoker.ResourceExhaustedError, match="max_pixels"):
        stoker.decode_image(data, max_pixels=100)


def test_a_thin_image_does_not_become_a_huge_one():
    data = encoded(Image.new("RGB", (20000, 1)))
    with pytest.raises(stoker.ResourceExhaustedError, match="resized image would be"):
        stoker.decode_image(data, size=2000)
    assert stoker.decode_image(data, size=(2000, 10)).shape == (2000, 10, 3)


def test_of_several_failures_the_first_is_raised(paths, tmp_path):
    good, bad = paths[0].read_bytes(), paths[1].read_bytes()[:-200]
    images = [good] * 5 + [bad] + [good] * 20 + [b"no image"]
    for _ in range(10):
        with pytest.raises(stoker.DataLossError, match=r"^images\[5\]: "):
            stoker.decode_images(images)
    missing = tmp_path / "none.jpg"
    with pytest.raises(FileNotFoundError) as caught:
        stoker.decode_images([good, missing])
    assert caught.value.file == str(missing)


# ---- many


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("options", [{}, {"mode": "gray", "size": 48}, {"region": (1, 2, 30, 40)}])
def test_many_are_what_one_is(paths, options, threads):
    runtime = stoker.Runtime(threads=threads)
    images = [path if i % 3 else path.read_bytes() for i, path in enumerate(paths)]
    arrays = stoker.decode_images(images, **options, runtime=runtime)
    assert isinstance(arrays, list) and len(arrays) == len(paths)
    for path, array in zip(paths, arrays):
        np.testing.assert_array_equal(array, stoker.decode_image(path, **options))


def test_many_of_other_kinds(paths):
    assert stoker.decode_images([]) == []
    arrays = stoker.decode_images(path for path in paths[:3])
    assert [array.shape for array in arrays] == [stoker.decode_image(path).shape for path in paths[:3]]
    for one in (str(paths[0]), paths[0], b"abc"):
        with pytest.raises(TypeError, match="list of images, not one"):
            stoker.decode_images(one)
    with pytest.raises(TypeError, match="runtime"):
        stoker.decode_images(paths, runtime=4)


def test_memory_is_freed_with_the_arrays():
    data = encoded(Image.new("RGB", (2000, 2000)), "jpeg")

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    stoker.decode_images([data] * 4)
    gc.collect()
    before = resident()
    arrays = stoker.decode_images([data] * 40)  # 480 MB
    held = [weakref.ref(array) for array in arrays]
    assert resident() - before > 300e6
    last = arrays[-1][:2]
    del arrays
    gc.collect()
    assert [ref() for ref in held] == [None] * 39 + [last.base]
    assert resident() - before < 200e6
    assert (last == last[0, 0]).all()


def test_threads(paths):
    want = [stoker.decode_image(path) for path in paths]
    wrong = []

    def run():
        for path, array in zip(paths, want):
            if not np.array_equal(stoker.decode_image(path), array):
                wrong.append(path)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_after_a_fork(paths):
    want = stoker.decode_image(paths[0])
    stoker.decode_images(paths[:4])
    child = os.fork()
    if child == 0:
        same = np.array_equal(stoker.decode_image(paths[0]), want)
        same &= np.array_equal(stoker.decode_images(paths[:2])[0], want)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


INTERRUPTED = """
import os, signal, sys, threading
import stoker
paths = [sys.argv[1]] * 200_000
stoker.decode_images(paths[:4])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    stoker.decode_images(paths, size=1)
except KeyboardInterrupt:
    print("interrupted", len(stoker.decode_images(paths[:3])))
"""


def test_ctrl_c_ends_the_wait(paths):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, paths[0]], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "interrupted 3\n", done.stderr
    assert done.returncode == 0


# ---- recipes


@pytest.fixture(scope="module")
def recipes():
    """The functions of docs/decode.md that replace other libraries'."""
    names = {"np": np, "stoker": stoker}
    for block in BLOCKS["docs/decode.md"]:
        if block.language == "python" and "def imdecode" in block.text:
            exec(block.text, names)
    return names


def test_the_recipe_for_pillow(paths, recipes):
    for path in paths[:6]:
        with Image.open(path) as image:
            np.testing.assert_array_equal(recipes["from_pillow"](path), np.array(image.convert("RGB")))


def test_the_recipe_for_opencv(paths, recipes):
    for path in paths[:6]:
        data = np.fromfile(path, np.uint8)
        image = recipes["imdecode"](data)
        assert image.flags.c_contiguous
        np.testing.assert_array_equal(image[:, :, ::-1], photograph(path))
    cv2 = pytest.importorskip("cv2")
    np.testing.assert_array_equal(image, cv2.imdecode(data, cv2.IMREAD_COLOR))


def test_the_recipe_for_hugging_face(paths, recipes):
    column = [{"bytes": None, "path": str(paths[0])}, {"bytes": paths[1].read_bytes(), "path": "b.jpg"}]
    batch = recipes["decode_batch"]({"image": column, "label": [3, 4]})
    assert list(batch) == ["image", "label"] and batch["label"] == [3, 4]
    for path, image in zip(paths, batch["image"]):
        np.testing.assert_array_equal(image, photograph(path))


def test_dlpack(paths):
    image = stoker.decode_image(paths[0])
    taken = np.from_dlpack(image)
    assert taken.ctypes.data == image.ctypes.data
    np.testing.assert_array_equal(taken, image)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"mode": ["rgb"]}, "mode"),
        ({"interpolation": ["bilinear"]}, "interpolation"),
        ({"size": ([1], 2)}, "size"),
        ({"size": (17.0, 19.0)}, "size"),
        ({"antialias": [True]}, "antialias"),
        ({"exif_orientation": 1}, "exif_orientation"),
        ({"max_pixels": [5]}, "max_pixels"),
        ({"max_scans": 2.0}, "max_scans"),
    ],
)
def test_wrong_types_are_named_whatever_was_asked_before(made, options, name):
    photo = next(made.rglob("*.jpg"))
    stoker.decode_image(photo, size=(17, 19), max_scans=2)
    with pytest.raises(TypeError, match=name):
        stoker.decode_image(photo, **options)
