"""decode="scaled": the pixels are those of an image that libjpeg has reduced (Pillow's draft), and then
resized; every interface has the option, and it is off by default.
"""

import io
import json
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")

SIZE = (420, 300)


def jpeg(**options):
    """A smooth colour image with some detail."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    channels = [128 + 90 * np.sin(x / 31) + 30 * np.cos(y / 3), x * 255 / SIZE[0], (x * y) % 251]
    file = io.BytesIO()
    image = Image.fromarray(np.stack(channels, 2).astype(np.uint8))
    image.save(file, "JPEG", **{"quality": 90, **options})
    return file.getvalue()


def drafted(data, reduction):
    """The image as libjpeg reduces it."""
    with Image.open(io.BytesIO(data)) as image:
        image.draft("RGB", (SIZE[0] // reduction, SIZE[1] // reduction))
        pixels = np.asarray(image)
    assert pixels.shape == (-(-SIZE[1] // reduction), -(-SIZE[0] // reduction), 3)
    return pixels


def scaled(data, *transforms, **options):
    return stoker.Compose(transforms, decode="scaled", **options)(data)


@pytest.mark.parametrize(("mode", "options"), [("L", {}), ("CMYK", {}), ("RGB", {"subsampling": "4:2:2"})])
@pytest.mark.parametrize("orientation", [1, 6, 7])
def test_kinds_and_orientations(mode, options, orientation):
    with Image.open(io.BytesIO(jpeg(quality=100))) as image:
        exif = Image.Exif()
        exif[0x0112] = orientation
        file = io.BytesIO()
        image.convert(mode).save(file, "JPEG", exif=exif, **options)
    data = file.getvalue()
    # libjpeg upsamples 4:2:2 at an eighth by another rule, so it is decoded at a quarter.
    reduction = 4 if options else 8
    with Image.open(io.BytesIO(data)) as image:
        image.draft(None, (SIZE[0] // reduction, SIZE[1] // reduction))
        reduced = io.BytesIO()
        image.convert("RGB").save(reduced, "PNG", exif=exif)
    resize = stoker.Resize((9, 9))
    np.testing.assert_array_equal(scaled(data, resize), stoker.Compose([resize])(reduced.getvalue()))


@pytest.mark.parametrize("level", [170, 86])
@pytest.mark.parametrize("factor", [193, 194, 195])
@pytest.mark.parametrize("reduction", [2, 4, 8])
def test_extreme_blocks_are_libjpegs(level, factor, reduction, command, tmp_path):
    """A DC coefficient of 21 or -21, dequantised to more than 8-bit samples can give."""
    file = io.BytesIO()
    Image.new("L", SIZE, level).save(file, "JPEG", quality=50)
    data = bytearray(file.getvalue())
    table = data.index(b"\xff\xdb\x00\x43\x00") + 5
    assert data[table] == 16
    data[table] = factor
    with Image.open(io.BytesIO(data)) as image:
        image.draft("L", (SIZE[0] // reduction, SIZE[1] // reduction))
        pixels = np.asarray(image.convert("RGB"))
    resize = stoker.Resize((SIZE[1] // reduction, SIZE[0] // reduction))
    wanted = stoker.Compose([resize])(pixels)
    np.testing.assert_array_equal(scaled(bytes(data), resize), wanted)
    (tmp_path / "photos/a").mkdir(parents=True)
    (tmp_path / "photos/a/1.jpg").write_bytes(data)
    subprocess.run([command, "pack", tmp_path / "photos", tmp_path / "set"], check=True, capture_output=True)
    loader = stoker.Loader(stoker.packed(tmp_path / "set"), [resize], batch_size=1, decode="scaled")
    (batch,) = loader
    np.testing.assert_array_equal(np.asarray(batch["image"])[0], wanted)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize(
    ("side", "reduction"), [(200, 1), (149, 2), (100, 2), (74, 4), (38, 4), (37, 8), (9, 8)]
)
def test_resizes_the_reduced_image(subsampling, progressive, side, reduction):
    data = jpeg(subsampling=subsampling, progressive=progressive)
    resize = stoker.Resize((side, side))
    wanted = stoker.Compose([resize])(drafted(data, reduction))
    np.testing.assert_array_equal(scaled(data, resize), wanted)


def test_reduces_what_is_cropped_at_random():
    data = jpeg()
    crop = stoker.RandomResizedCrop(24, scale=(0.3, 0.6))
    full = stoker.Compose([crop])
    for position in range(20):
        got = stoker.Compose([crop], decode="scaled")(data, seed=3, position=position)
        wanted = full(data, seed=3, position=position)
        # The same crops: only the filter is another one, and the edges are rounded.
        assert np.abs(got.astype(int) - wanted).mean() < 6
        assert not np.array_equal(got, wanted)


@pytest.mark.parametrize(
    "resize",
    [
        stoker.Resize((40, 40), antialias=False),
        stoker.Resize((40, 40), interpolation="nearest"),
        stoker.Resize((20, 250)),
    ],
)
def test_reduces_only_where_nothing_is_lost(resize):
    data = jpeg()
    np.testing.assert_array_equal(scaled(data, resize), stoker.Compose([resize])(data))


def test_other_formats_are_not_reduced():
    file = io.BytesIO()
    Image.open(io.BytesIO(jpeg())).save(file, "PNG")
    resize = stoker.Resize((40, 40))
    np.testing.assert_array_equal(scaled(file.getvalue(), resize), stoker.Compose([resize])(file.getvalue()))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "photos/a").mkdir(parents=True)
    for i in range(6):
        (tmp_path / f"photos/a/{i}.jpg").write_bytes(jpeg(quality=60 + 5 * i))
    return tmp_path / "photos"


TRANSFORMS = [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()]


def images(source, **options):
    loader = stoker.Loader(source, TRANSFORMS, batch_size=6, shuffle=True, seed=4, **options)
    (batch,) = loader
    return np.asarray(batch["image"]).copy(), loader


def test_loaders_count_and_advise(folder):
    source = stoker.image_folder(folder)
    full, plain = images(source)
    assert plain.stats()["scaled"] == 0 and plain.stats()["scalable"] > 0
    reduced, loader = images(source, decode="scaled")
    assert loader.stats()["scaled"] > 0 and loader.stats()["scalable"] == 0
    assert not np.array_equal(full, reduced)
    assert "stoker_jpeg_scaled_total" in loader.prometheus()


def test_packed_sets_give_the_same_pixels(folder, command, tmp_path):
    subprocess.run([command, "pack", folder, tmp_path / "set"], check=True, capture_output=True, timeout=120)
    wanted, _ = images(stoker.image_folder(folder), decode="scaled")
    got, loader = images(stoker.packed(tmp_path / "set"), decode="scaled")
    np.testing.assert_array_equal(got, wanted)
    assert loader.stats()["scaled"] > 0


def test_crop_indexes_give_the_same_pixels(folder, command):
    wanted, _ = images(stoker.image_folder(folder), decode="scaled")
    subprocess.run([command, "index", folder], check=True, capture_output=True, timeout=120)
    got, loader = images(stoker.image_folder(folder), decode="scaled")
    np.testing.assert_array_equal(got, wanted)
    assert loader.stats()["indexed"] >= 6


def test_a_state_names_the_difference(folder):
    _, loader = images(stoker.image_folder(folder), decode="scaled")
    state = loader.state_dict()
    _, other = images(stoker.image_folder(folder))
    with pytest.raises(stoker.FailedPreconditionError, match="decode was scaled and is full"):
        other.load_state_dict(state)


def test_the_command_has_it(folder, command, tmp_path):
    def decoded(*arguments):
        size = [] if "--recipe" in arguments else ["--size", "32"]
        done = subprocess.run(
            [command, "bench", folder, "--json", *size, *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return json.loads(done.stdout)["decoded"]

    assert decoded()["scaled"] == 0
    assert decoded("--decode", "scaled")["scaled"] > 0
    recipe = tmp_path / "recipe.json"
    transforms = [{"name": "Resize", "height": 32, "width": 32}]
    recipe.write_text(json.dumps({"transforms": transforms, "decode": "scaled"}))
    assert decoded("--recipe", recipe)["scaled"] == 6
    assert decoded("--recipe", recipe, "--decode", "full")["scaled"] == 0


@pytest.mark.parametrize("wrong", ["half", 2, None])
def test_refuses_other_values(wrong):
    with pytest.raises((TypeError, ValueError), match="decode"):
        stoker.Compose(TRANSFORMS, decode=wrong)
