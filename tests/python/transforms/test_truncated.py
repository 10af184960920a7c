"""accept_truncated: the result equals Pillow's for a JPEG that ends early, with
ImageFile.LOAD_TRUNCATED_IMAGES; such files are counted, every interface has the option, and it is off by
default.
"""

import io
import json
import pickle
import subprocess

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
ImageFile = pytest.importorskip("PIL.ImageFile")

EVALUATION = [stoker.Resize(32), stoker.CenterCrop(32)]


@pytest.fixture
def pillow(monkeypatch):
    """Pillow's pixels, as stored, of a file that may lack its end."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)

    def pixels(data):
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))

    return pixels


def encoded(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def accepting(data, **options):
    return stoker.decode_image(data, accept_truncated=True, exif_orientation=False, **options)


def segments(data):
    """Returns (begin, end) of each marker's segment; the bytes between them are data of scans."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF or data[at + 1] in (0x00, 0xFF, *range(0xD0, 0xD8)):
            at += 1
        elif data[at + 1] == 0xD9:
            return
        else:
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
            yield at, end
            at = end


def places(data):
    """Where to cut: after the header of the first scan, and not in a later segment, of which Pillow makes a
    black image (test_a_segment_that_is_cut_counts_as_missing)."""
    inside = [(begin + 2, end) for begin, end in segments(data)]
    first = next(end for begin, end in segments(data) if data[begin + 1] == 0xDA)
    return [n for n in range(first + 1, len(data)) if not any(b <= n < e for b, e in inside if e > first)]


def some_of(count, values, seed):
    return np.random.default_rng(seed).choice(values, min(count, len(values)), replace=False).tolist()


def expect_pillows(data, cuts, pillow, seed=0, estimated=False):
    """`estimated`: the libjpeg-turbo of Pillow may estimate missing coefficients otherwise than ours."""
    rng = np.random.default_rng(seed)
    for cut in cuts:
        part = data[:cut]
        wanted, got = pillow(part), accepting(part)
        where = f"cut at {cut} of {len(data)}"
        if estimated:
            assert np.abs(got.astype(int) - wanted).mean() < 0.5, where
            wanted = got
        np.testing.assert_array_equal(got, wanted, err_msg=where)
        top, left = (int(rng.integers(side)) for side in wanted.shape[:2])
        height = int(rng.integers(1, wanted.shape[0] - top + 1))
        width = int(rng.integers(1, wanted.shape[1] - left + 1))
        region = accepting(part, region=(top, left, height, width))
        np.testing.assert_array_equal(region, wanted[top : top + height, left : left + width])


# --- pixels -----------------------------------------------------------------------------------------


def test_photographs(photos, pillow):
    for seed, path in enumerate(sorted(photos.rglob("*.[jJ]*"))[::60]):
        data = path.read_bytes()
        expect_pillows(data, some_of(8, places(data), seed), pillow, seed)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
def test_baseline_and_progressive(made, pillow, progressive, subsampling):
    for seed, path in enumerate(sorted(made.rglob("*.jpg"))[:3]):
        with Image.open(path) as image:
            data = encoded(image, progressive=progressive, subsampling=subsampling, quality=90)
        # Versions 2 and 3 differ at the edges of MCU rows of 16 pixels.
        estimated = progressive and subsampling == "4:2:0"
        expect_pillows(data, some_of(25, places(data), seed), pillow, seed, estimated)


@pytest.mark.parametrize("mode", ["L", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_other_colours(made, pillow, progressive, mode):
    with Image.open(min(made.rglob("*.jpg"))) as image:
        data = encoded(image.convert(mode), progressive=progressive)
    expect_pillows(data, some_of(25, places(data), 5), pillow)


def test_a_segment_that_is_cut_counts_as_missing(made, pillow):
    with Image.open(min(made.rglob("*.jpg"))) as image:
        data = encoded(image, progressive=True)
    scans = [begin for begin, _ in segments(data) if data[begin + 1] == 0xDA]
    later = [(begin, end) for begin, end in segments(data) if begin > scans[0]]
    for begin, end in later:
        before = accepting(data[:begin])
        for cut in range(begin + 1, end):
            np.testing.assert_array_equal(accepting(data[:cut]), before)
    begin, end = later[-1]
    assert pillow(data[:begin]).any() and not pillow(data[: end - 1]).any()  # all black


def test_zeros_in_place_of_data(made, pillow):
    """As of an interrupted download into a file of its final size: zeros are valid codes."""
    data = min(made.rglob("*.jpg")).read_bytes()
    data = data[: len(data) // 2] + bytes(len(data) // 2)
    with pytest.raises(stoker.DataLossError, match="truncated"):
        stoker.decode_image(data)
    np.testing.assert_array_equal(accepting(data), pillow(data))


# --- what stays an error ----------------------------------------------------------------------------


def test_the_default_is_strict_and_names_the_option(made):
    data = min(made.rglob("*.jpg")).read_bytes()[:-100]
    with pytest.raises(stoker.DataLossError, match=r"truncated JPEG.*or use accept_truncated"):
        stoker.decode_image(data)
    with pytest.raises(stoker.DataLossError, match="truncated JPEG"):
        stoker.Compose(EVALUATION)(data)


def test_without_data_it_is_an_error(made):
    data = min(made.rglob("*.jpg")).read_bytes()
    first = next(end for begin, end in segments(data) if data[begin + 1] == 0xDA)
    for cut in (3, 20, first - 1, first):
        with pytest.raises(stoker.DataLossError, match="truncated"):
            accepting(data[:cut])
    assert accepting(data[: first + 1]).std() < 10  # hardly more than gray


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_other_formats(made, kind):
    file = io.BytesIO()
    with Image.open(min(made.rglob("*.jpg"))) as image:
        image.save(file, kind)
    with pytest.raises(stoker.DataLossError, match="truncated"):
        accepting(file.getvalue()[: len(file.getvalue()) // 2])


def test_decode_images(made):
    parts = [path.read_bytes()[:-1000] for path in sorted(made.rglob("*.jpg"))[:4]]
    for part, image in zip(parts, stoker.decode_images(parts, accept_truncated=True)):
        np.testing.assert_array_equal(image, stoker.decode_image(part, accept_truncated=True))
    with pytest.raises(stoker.DataLossError, match="truncated"):
        stoker.decode_images(parts)


def test_it_must_be_a_boolean(made):
    source = stoker.image_folder(made)
    for call in (
        lambda: stoker.Loader(source, EVALUATION, batch_size=4, accept_truncated="yes"),
        lambda: stoker.Compose(EVALUATION, accept_truncated=1),
        lambda: stoker.decode_image(b"", accept_truncated=None),
    ):
        with pytest.raises(TypeError, match="accept_truncated"):
            call()


# --- where it is given ------------------------------------------------------------------------------


@pytest.fixture
def folder(made, tmp_path):
    """Two whole photographs, and two that are cut."""
    (tmp_path / "photos" / "class").mkdir(parents=True)
    for i, path in enumerate(sorted(made.rglob("*.jpg"))[:4]):
        data = path.read_bytes()
        (tmp_path / "photos" / "class" / f"{i}.jpg").write_bytes(data[: len(data) // (1 + i % 2)])
    return tmp_path / "photos"


def test_a_loader_counts_them(folder):
    source = stoker.image_folder(folder)
    with pytest.raises(stoker.DataLossError, match="truncated"):
        list(stoker.Loader(source, EVALUATION, batch_size=4))
    loader = stoker.Loader(source, EVALUATION, batch_size=4, accept_truncated=True, depth=1)
    images, _ = next(iter(loader))
    compose = stoker.Compose(EVALUATION, accept_truncated=True)
    again = pickle.loads(pickle.dumps(compose))
    for i, row in enumerate(images):
        data = (folder / "class" / f"{i}.jpg").read_bytes()
        np.testing.assert_array_equal(row, compose(data))
        np.testing.assert_array_equal(row, again(data))
    assert "accept_truncated=True" in repr(loader) and "accept_truncated=True" in repr(compose)
    stats = loader.stats()
    # The next epoch's batch may be in production.
    assert stats["accepted_truncated"] >= 2 and stats["accepted_truncated"] * 2 <= stats["samples"] + 2
    assert "stoker_jpeg_accepted_truncated_total" in loader.prometheus()


def test_a_state_goes_on_with_it(made):
    """A run that met a truncated photograph can be resumed as the error advises."""
    source = stoker.image_folder(made)
    state = stoker.Loader(source, EVALUATION, batch_size=4).state_dict()
    stoker.Loader(source, EVALUATION, batch_size=4, accept_truncated=True).load_state_dict(state)


def test_an_index_made_before_the_cut_changes_nothing(made, command, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted(made.rglob("*.jpg"))[:2]:
        (folder / path.name).write_bytes(path.read_bytes())
    subprocess.run([command, "index", folder], check=True, capture_output=True, timeout=60)
    for path in folder.glob("*.jpg"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 2 // 3])
    crops = [stoker.RandomResizedCrop(40)]
    batches = [
        next(iter(stoker.Loader(source, crops, batch_size=2, seed=7, accept_truncated=True)))
        for source in (stoker.image_folder(folder), stoker.image_folder(folder, crop_index="off"))
    ]
    np.testing.assert_array_equal(*(np.asarray(batch[0]) for batch in batches))


def test_torch(folder):
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    loader = stoker.torch.DataLoader(
        stoker.image_folder(folder), EVALUATION, batch_size=4, accept_truncated=True
    )
    assert next(iter(loader))[0].shape == (4, 3, 32, 32)
    assert loader.dataset[1][0].shape == (3, 32, 32)
    assert loader.stats()["accepted_truncated"] >= 2


def run(command, *arguments):
    return subprocess.run(
        [command, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


def test_bench_and_a_recipe(folder, command, tmp_path):
    bench = ("bench", folder, "--batch-size", 4, "--json")
    assert run(command, *bench).returncode == 1
    report = json.loads(run(command, *bench, "--accept-truncated").stdout)
    assert report["decoded"]["accepted_truncated"] == 2
    text = run(command, *bench[:-1], "--accept-truncated").stdout
    assert "2 truncated, and accepted" in text
    file = tmp_path / "recipe.json"
    crop = {"name": "RandomResizedCrop", "height": 32, "width": 32}
    file.write_text(json.dumps({"transforms": [crop], "accept_truncated": True}))
    assert run(command, *bench, "--recipe", file).returncode == 0


def test_verify(folder, command):
    done = run(command, "verify", folder, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["accepted_truncated"] == 0
    assert [(bad["id"], bad["class"]) for bad in report["bad"]] == [(1, "truncated"), (3, "truncated")]
    assert all("--accept-truncated" in bad["advice"] for bad in report["bad"])
    done = run(command, "verify", folder, "--json", "--accept-truncated")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["bad"] == [] and report["accepted_truncated"] == 2
    assert "truncated, and accepted: 2 JPEGs" in run(command, "verify", folder, "--accept-truncated").stdout
