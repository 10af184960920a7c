"""to_device(decode="device"): the same batches, whatever the photographs and the recipe are."""

import itertools
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same  # noqa: E402

NORMALIZE = stoker.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
TRAIN = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip(), NORMALIZE]
EVAL = [stoker.Resize(72), stoker.CenterCrop(64), NORMALIZE]
REASONS = ["not_prepared", "unsupported", "damaged", "no_room"]


def pack(folder, packed):
    command = [sys.executable, "-m", "stoker", "pack", os.fspath(folder), os.fspath(packed)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return packed


def indexed(folder, index):
    """Returns the folder with a crop index, which this writes."""
    command = [sys.executable, "-m", "stoker", "index", os.fspath(folder), "--out", os.fspath(index)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return stoker.image_folder(folder, crop_index=index)


@pytest.fixture(scope="module")
def packed(made, tmp_path_factory):
    return pack(made, tmp_path_factory.mktemp("packed") / "set")


@pytest.fixture(scope="module")
def sources(made, packed, tmp_path_factory):
    """Returns the made photographs as sources that a device decodes."""
    return {
        "packed": stoker.packed(packed),
        "indexed": indexed(made, tmp_path_factory.mktemp("indexed") / "index"),
    }


def make(source, transforms=TRAIN, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 3, "dtype": "float32", **options}
    return stoker.Loader(source, transforms, **options)


def arrays(batches):
    """Returns the columns of tensors as arrays that are kept."""
    return [tuple(np.array(column) for column in batch) for batch in batches]


def pair(source, *arguments, **options):
    """Returns two device loaders: one whose workers decode, and one whose device does."""
    loaders = [make(source, *arguments, **options) for _ in range(2)]
    return loaders[0].to_device("host"), loaders[1].to_device("host", decode="device")


def counts(loader):
    stats = loader.stats()
    assert list(stats["left_to_workers"]) == REASONS
    return stats["decoded_on_device"], stats["left_to_workers"]


def nothing_left(loader):
    return not any(counts(loader)[1].values())


RECIPES = {
    "train": (TRAIN, {}),
    "eval": (EVAL, {"shuffle": False}),
    "uint8": ([stoker.RandomResizedCrop((40, 56)), stoker.RandomVerticalFlip()], {"dtype": "uint8"}),
    "half": (TRAIN, {"dtype": "float16", "layout": "NCHW"}),
    "erased": ([*TRAIN, stoker.RandomErasing(0.7)], {"dtype": "bfloat16", "layout": "NCHW"}),
    "mixed": ([*TRAIN, stoker.CutMix()], {}),
    "resized": ([stoker.Resize((50, 60), antialias=False)], {"dtype": "uint8", "layout": "NCHW"}),
}


@pytest.mark.parametrize("kind", ["packed", "indexed"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_same_bytes(sources, kind, recipe):
    if recipe == "erased":
        pytest.importorskip("ml_dtypes")
    transforms, options = RECIPES[recipe]
    workers, device = pair(sources[kind], transforms, **options)
    for _ in range(2):
        same(arrays(map(as_arrays, device)), arrays(map(as_arrays, workers)))
    assert counts(device)[0] >= 120 and nothing_left(device)
    assert device.stats()["packed"] == device.stats()["indexed"] == 0
    assert counts(workers)[0] == 0 and nothing_left(workers)


def as_arrays(batch):
    return tuple(np.asarray(column) for column in batch)


@pytest.mark.parametrize("devices", [["host"], ["host"] * 2, ["host"] * 4])
@pytest.mark.parametrize("recipe", ["train", "mixed"])
def test_several_devices_have_the_rows_of_one(packed, devices, recipe):
    transforms, options = RECIPES[recipe]
    loaders = [make(stoker.packed(packed), transforms, **options) for _ in range(2)]
    whole, split = loaders[0].to_device("host"), loaders[1].to_device(devices, decode="device")
    together = [tuple(np.concatenate(columns) for columns in zip(*map(as_arrays, parts))) for parts in split]
    same(together, arrays(map(as_arrays, whole)))
    on_device, left = counts(split)
    # Two devices mix the last row of each part.
    shared = 8 * len(devices) if recipe == "mixed" and len(devices) > 1 else 0
    assert shared <= left["unsupported"] == sum(left.values()) and on_device >= 60 - shared
    assert shared > 0 or left["unsupported"] == 0


def test_photographs(photos, tmp_path):
    chosen = sorted(path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[::7]
    (tmp_path / "photos" / "a").mkdir(parents=True)
    for path in chosen:
        shutil.copy(path, tmp_path / "photos" / "a")
    packed = stoker.packed(pack(tmp_path / "photos", tmp_path / "set"))
    plain = indexed(tmp_path / "photos", tmp_path / "index")
    for source, transforms in itertools.product(
        (packed, plain),
        (
            [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip(), NORMALIZE],
            [stoker.Resize(256), stoker.CenterCrop(224), NORMALIZE],
        ),
    ):
        workers, device = pair(source, transforms, dtype="float16", batch_size=16)
        same(arrays(device), arrays(workers))
        assert counts(device)[0] >= len(source) and nothing_left(device)


@pytest.mark.parametrize("threads, depth", [(1, 1), (4, 3)])
def test_any_threads_and_depth(packed, threads, depth):
    runtime = stoker.Runtime(threads=threads)
    workers, device = pair(stoker.packed(packed), runtime=runtime, depth=depth, batch_size=7)
    same(arrays(device.epoch(5)), arrays(workers.epoch(5)))


def test_the_device_decodes_packed_progressive_jpegs_and_the_workers_pngs(made, tmp_path):
    image = pytest.importorskip("PIL.Image")
    shutil.copytree(made, tmp_path / "photos")
    paths = sorted((tmp_path / "photos").rglob("*.jpg"))
    for path in paths[::10]:
        with image.open(path) as photo:
            photo.save(path.with_suffix(".png"))
        path.unlink()
    for path in set(paths) - set(paths[::10]):
        with image.open(path) as photo:
            photo.save(path, progressive=True)
    workers, device = pair(stoker.packed(pack(tmp_path / "photos", tmp_path / "set")), EVAL)
    same(arrays(device.epoch(0)), arrays(workers.epoch(0)))
    on_device, left = counts(device)
    assert left["not_prepared"] >= 6 and on_device >= 54


def test_photographs_that_have_changed_since_they_were_indexed(made, tmp_path):
    shutil.copytree(made, tmp_path / "photos")
    source = indexed(tmp_path / "photos", tmp_path / "index")
    for path in sorted((tmp_path / "photos").rglob("*.jpg"))[::6]:
        path.write_bytes(path.read_bytes() + b"more")
    workers, device = pair(source, EVAL)
    same(arrays(device.epoch(0)), arrays(workers.epoch(0)))
    on_device, left = counts(device)
    assert left["not_prepared"] >= 10 and on_device >= 48
    assert device.stats()["index_stale"] == left["not_prepared"]


def test_a_folder_that_is_neither_packed_nor_indexed(made):
    workers, device = pair(stoker.image_folder(made, crop_index="off"))
    same(arrays(device), arrays(workers))
    on_device, left = counts(device)
    assert on_device == 0 and left["not_prepared"] >= 60


def test_a_cache_packs_for_the_device(made):
    source = stoker.image_folder(made)
    time.sleep(0.03)  # a file that has just been written is not kept
    workers, device = pair(source, cache="ram:64MiB")
    for _ in range(2):
        same(arrays(device), arrays(workers))
    assert counts(device)[0] >= 120 and nothing_left(device)


def test_steps_on_the_host_are_left_to_the_workers(packed):
    gray = [stoker.RandomResizedCrop(48), stoker.RandomGrayscale(0.3), NORMALIZE]
    workers, device = pair(stoker.packed(packed), gray)
    same(arrays(device), arrays(workers))
    on_device, left = counts(device)
    assert on_device > 20 and left["unsupported"] > 5
    assert sum(left.values()) == left["unsupported"]


def test_padding_is_left_to_the_workers(packed):
    source = stoker.packed(packed)
    workers, device = pair(source, [stoker.Resize(40), stoker.CenterCrop(64)], dtype="uint8")
    same(arrays(device), arrays(workers))
    assert counts(device)[0] == 0 and counts(device)[1]["unsupported"] >= 60
    workers, device = pair(source, [stoker.CenterCrop(600)], dtype="uint8")  # needs no resampling
    same(arrays(device), arrays(workers))
    assert counts(device)[0] >= 60 and nothing_left(device)


def damage(packed, folder):
    """Copies a packed set and damages a few of its photographs."""
    shutil.copytree(packed, folder)
    shard = next(iter(sorted(folder.glob("0*.stoker"))))
    data = bytearray(shard.read_bytes())
    for place in range(1, 4):
        at = len(data) * place // 5
        data[at] ^= 0x55
    shard.write_bytes(data)
    return folder


def outcomes(loader):
    """Returns each batch of an epoch, or its error."""
    iterator, all_of_them = iter(loader.epoch(0)), []
    while True:
        try:
            all_of_them.append(tuple(np.array(column) for column in next(iterator)))
        except StopIteration:
            return all_of_them
        except stoker.Error as error:
            all_of_them.append(str(error))


@pytest.mark.parametrize("on_bad", ["fail", "substitute", "drop"])
def test_damaged_photographs(packed, tmp_path, on_bad):
    source = stoker.packed(damage(packed, tmp_path / "set"))
    workers, device = pair(source, [stoker.Resize((60, 60)), NORMALIZE], on_bad=on_bad)
    ours, theirs = outcomes(device), outcomes(workers)
    assert [type(outcome) for outcome in ours] == [type(outcome) for outcome in theirs]
    for outcome, wanted in zip(ours, theirs):
        if isinstance(wanted, str):
            assert outcome == wanted
        else:
            same([outcome], [wanted])
    assert counts(device)[1]["damaged"] >= 3
    assert any(isinstance(outcome, str) for outcome in ours) == (on_bad == "fail")
    stats, wanted = device.stats(), workers.stats()
    assert (stats["substituted"], stats["dropped"]) == (wanted["substituted"], wanted["dropped"])


def test_states_go_on_either_way(packed):
    for first, second in itertools.permutations(("workers", "device")):
        loader, other, whole = (make(stoker.packed(packed)) for _ in range(3))
        iterator = iter(loader.to_device("host", decode=first))
        next(iterator), next(iterator)
        other.load_state_dict(loader.state_dict())
        rest = arrays(other.to_device("host", decode=second))
        same(rest, arrays(whole.to_device("cpu"))[2:])


def test_leaving_early(packed):
    loader = make(stoker.packed(packed), batch_size=4)
    with loader.to_device("host", decode="device") as device:
        for _ in range(3):
            for batch in device:
                kept = batch
                break
        before = np.array(kept[0])
    with pytest.raises(stoker.CancelledError):
        next(iter(device))
    del device, batch, loader
    np.testing.assert_array_equal(np.asarray(kept[0]), before)


def test_less_is_copied(packed):
    large = [stoker.Resize((400, 400))]
    workers, device = pair(stoker.packed(packed), large, dtype="uint8")
    assert sum(1 for _ in workers) == sum(1 for _ in device) == 8
    a_batch, less = (
        stats["copied_bytes"] / stats["copied_batches"] for stats in (workers.stats(), device.stats())
    )
    assert a_batch > 7 * 400 * 400 * 3 > 2 * less


def test_it_takes_memory(packed):
    workers, device = pair(stoker.packed(packed))
    next(iter(workers)), next(iter(device))
    more = {
        key: device.stats()[key] - workers.stats()[key]
        for key in ("batch_bytes", "device_bytes", "pinned_bytes")
    }
    assert more["batch_bytes"] >= 16 * 128 * 1024  # 16 rows' crops, at least
    assert more["device_bytes"] >= 8 * 16 * 128 * 1024
    assert more["pinned_bytes"] > 0


def test_crop_bytes_is_the_room_for_crops(packed):
    source = stoker.packed(packed)
    workers = make(source).to_device("host")
    devices = [make(source).to_device("host", decode="device", crop_bytes=n) for n in (1000, 131072, 262144)]
    wanted = arrays(workers)
    for device in devices:
        same(arrays(device), wanted)
    little, usual, twice = (device.stats() for device in devices)
    assert little["left_to_workers"]["no_room"] > 20
    assert usual["left_to_workers"]["no_room"] == 0
    assert twice["batch_bytes"] - usual["batch_bytes"] == 16 * 131072
    for wrong in (0, -1, (1 << 28) + 1):
        with pytest.raises(ValueError, match=f"crop_bytes is {wrong}; it must be between 1 and"):
            make(source).to_device("host", decode="device", crop_bytes=wrong)
    with pytest.raises(ValueError, match='crop_bytes is given, and decode is not "device"'):
        make(source).to_device("host", crop_bytes=1000)


def test_a_budget_without_room_says_so(packed):
    runtime = stoker.Runtime(memory_budget=4 << 20, threads=1)
    loader = make(stoker.packed(packed), runtime=runtime)
    with pytest.raises(stoker.ResourceExhaustedError, match="budget"):
        loader.to_device("host", decode="device")
    next(iter(loader.to_device("host")))


def test_refusals(packed, made):
    def refused(why, loader, device="host", **options):
        with pytest.raises(ValueError, match=why):
            loader.to_device(device, decode="device", **options)

    source = stoker.packed(packed)
    refused("the device is the CPU. Leave decode out", make(source), device="cpu")
    refused("in memory", stoker.Loader(stoker.arrays(np.zeros((4, 2), "u1")), batch_size=2))
    jitter = [stoker.RandomResizedCrop(32), stoker.ColorJitter(0.4)]
    refused(
        r"transforms\[1\], ColorJitter: workers change the pixels.*to_device\(…, decode=\"workers\"\)",
        make(source, jitter),
    )
    rotation = [stoker.RandomResizedCrop(32), stoker.RandomRotation(9)]
    refused(r"transforms\[1\], RandomRotation: workers change the pixels", make(source, rotation))
    bicubic = [stoker.RandomResizedCrop(32, interpolation="bicubic")]
    refused("does not resample them by bicubic", make(source, bicubic))
    for resampler in ("pillow_exact", "torchvision"):
        exact = [stoker.RandomResizedCrop(32, resampler=resampler)]
        refused(rf"does not resample them by bilinear \({resampler}\)", make(source, exact))
    refused("PadTo", make(source, [stoker.Resize(size=20, max_size=40), stoker.PadTo(40)]))
    views = stoker.Loader(source, views=[TRAIN, TRAIN], batch_size=4, dtype="float32")
    refused("several views", views)
    mapped = make(source, [*TRAIN, stoker.Map(lambda images, labels: None)])
    refused("needs the images on the host", mapped)
    for wrong in ("gpu", "host", ""):
        with pytest.raises(ValueError, match=r"decode is .* 'workers', 'device'"):
            make(source).to_device("host", decode=wrong)
    with pytest.raises(TypeError, match="decode must be a string"):
        make(source).to_device("host", decode=None)


def test_what_is_reported(packed):
    device = make(stoker.packed(packed)).to_device("host", decode="device")
    for _ in device:
        pass
    assert ", JPEGs decoded on the device" in device.stats()["plan"]
    text = device.prometheus()
    assert 'stoker_images_for_device_total{loader="loader",by="device",reason=""}' in text
    assert 'by="worker",reason="not_prepared"} 0' in text
