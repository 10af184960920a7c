"""What holds from every source and on every way to take batches: a photograph and its mask have the same
crops and flips, although only the photograph's list has transforms that change pixels; and a PNG of 16 bits
is refused, unless its upper 8 are asked for."""

import functools
import pathlib
import shutil
import subprocess
import tarfile

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from tfrecords import example, record  # noqa: E402

DARKER = stoker.ColorJitter(brightness=(0.5, 0.9))
CROP, FLIP, TURN = stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip(), stoker.RandomVerticalFlip()
NOTHING = stoker.RandomApply([])
OF_MASKS = [CROP, FLIP, stoker.RandomOrder([stoker.RandomChoice([FLIP, NOTHING, TURN], p=[1, 1, 2])]), TURN]
OF_PHOTOGRAPHS = [
    *(CROP, DARKER, FLIP, stoker.RandomApply([DARKER, stoker.RandomChoice([stoker.ColorJitter()])])),
    stoker.RandomOrder([DARKER, stoker.RandomChoice([FLIP, DARKER, TURN], p=[1, 1, 2])]),
    TURN,
]
ROWS = 16


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """Some photographs in class folders."""
    folder = tmp_path_factory.mktemp("masks") / "folder"
    for path in sorted(made.rglob("*.jpg"))[::3]:
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.parent.name)
    return folder


@pytest.fixture(scope="module")
def pngs(tmp_path_factory):
    """Returns two class folders: PNGs of gray with 16 bits, and the same with their upper 8."""
    deep, upper = (tmp_path_factory.mktemp("pngs") / name / "class" for name in ("deep", "upper"))
    for folder in (deep, upper):
        folder.mkdir(parents=True)
    rng = np.random.default_rng(4)
    for number in range(5):
        values = rng.integers(0, 65536, (80, 100), dtype=np.uint16)
        Image.fromarray(values).save(deep / f"{number}.png")
        Image.fromarray((values >> 8).astype(np.uint8)).save(upper / f"{number}.png")
    return deep.parent, upper.parent


class Photographs:
    """A data set of the program's own."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return pathlib.Path(self.paths[index]).read_bytes()


def tar(paths, folder):
    with tarfile.open(folder / "all.tar", "w") as archive:
        for number, path in enumerate(paths):
            archive.add(path, f"{number:04}.jpg")
    return stoker.tar(folder / "all.tar")


def tfrecord(paths, folder):
    samples = [{"image/encoded": pathlib.Path(path).read_bytes(), "image/class/label": 1} for path in paths]
    (folder / "all.tfrecord").write_bytes(b"".join(record(example(sample)) for sample in samples))
    return stoker.tfrecord(folder / "all.tfrecord")


def manifest(paths, folder):
    (folder / "all.csv").write_text("path\n" + "".join(f"{path}\n" for path in paths))
    return stoker.manifest(folder / "all.csv")


def arrow(paths, folder):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed here")
    table = pa.table({"image": [pathlib.Path(path).read_bytes() for path in paths]})
    with pa.OSFile(str(folder / "all.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return stoker.arrow(folder / "all.arrow")


def arrays(paths, folder):
    return stoker.arrays(np.stack(list(stoker.decode_images(paths, size=(80, 100)))))


# Returns the source, from (paths, an empty folder).
SOURCES = {
    "files": lambda paths, folder: stoker.files(paths),
    "subset": lambda paths, folder: stoker.files(paths).subset(range(len(paths))[::-1]),
    "manifest": manifest,
    "tar": tar,
    "tfrecord": tfrecord,
    "arrow": arrow,
    "arrays": arrays,
    "from_dataset": lambda paths, folder: stoker.from_dataset(Photographs(paths)),
}


def images_of(loader):
    """Returns all images of an epoch. A batch without other columns is the images."""
    return np.concatenate([np.asarray(b[0] if isinstance(b, tuple) else b) for b in loader])


def rows_of(source, transforms, **options):
    return images_of(stoker.Loader(source, transforms, batch_size=ROWS, shuffle=True, seed=3, **options))


def of_torch(source, transforms, **options):
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    options |= {"batch_size": ROWS, "shuffle": True, "seed": 3}
    return images_of(stoker.torch.DataLoader(source, transforms=transforms, **options))


def on_device(device, source, transforms, **options):
    loader = stoker.Loader(source, transforms, batch_size=ROWS, shuffle=True, seed=3, **options)
    return images_of(loader.to_device(device))


def of_tensorflow(source, transforms, **options):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed here")
    loader = stoker.Loader(source, transforms, batch_size=ROWS, shuffle=True, seed=3, **options)
    elements = loader.as_tf_dataset(names=True).take(len(loader)).as_numpy_iterator()
    return np.concatenate([element["image"] for element in elements])


def second_view(source, transforms, **options):
    views = [[stoker.Resize((8, 8))], transforms]
    loader = stoker.Loader(source, views=views, batch_size=ROWS, shuffle=True, seed=3, **options)
    return np.concatenate([batch["image_1"] for batch in loader])


# Returns all rows of an epoch, from (a source, a list of transforms, options of the loader).
WAYS = {
    "Loader": rows_of,
    "float32, NCHW": functools.partial(rows_of, dtype="float32", layout="NCHW"),
    "decode=scaled": functools.partial(rows_of, decode="scaled"),
    "cache": functools.partial(rows_of, cache="ram:16MiB"),
    "to_device(cpu)": functools.partial(on_device, "cpu"),
    "to_device(host)": functools.partial(on_device, "host"),
    "second view": second_view,
    "TensorFlow": of_tensorflow,
    "PyTorch": of_torch,
}


def files_of(folder):
    return [str(path) for path in sorted(folder.rglob("*.*"))]


def indexed_and_packed(folder, command, empty):
    """Returns the sources of a folder's copy with a crop index, and of the packed folder."""
    indexed, packed = empty / "indexed", empty / "packed"
    shutil.copytree(folder, indexed)
    for arguments in (("index", indexed), ("pack", folder, packed)):
        subprocess.run([command, *arguments], check=True, capture_output=True, timeout=60)
    return stoker.image_folder(indexed), stoker.packed(packed)


# --- masks ------------------------------------------------------------------------------------------


def similar(a, b):
    return np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1]


def check_masks(source, way):
    masks, photographs = (way(source, transforms) for transforms in (OF_MASKS, OF_PHOTOGRAPHS))
    assert len(masks) == len(photographs) == len(source)
    assert not np.array_equal(masks, photographs)
    for mask, photograph in zip(masks, photographs):
        assert similar(mask, photograph) > 0.99  # the same pixels, but darker


@pytest.mark.parametrize("kind", SOURCES)
def test_masks_follow_from_every_source(kind, folder, tmp_path):
    check_masks(SOURCES[kind](files_of(folder), tmp_path), rows_of)


@pytest.mark.parametrize("way", WAYS)
def test_masks_follow_on_every_way(way, folder):
    check_masks(stoker.image_folder(folder), WAYS[way])


def test_masks_follow_with_a_crop_index_and_packed(folder, command, tmp_path):
    for source in indexed_and_packed(folder, command, tmp_path):
        check_masks(source, rows_of)
        check_masks(source, WAYS["to_device(host)"])


def test_masks_follow_in_compose(folder):
    compose = [stoker.Compose(transforms) for transforms in (OF_MASKS, OF_PHOTOGRAPHS)]
    for position, path in enumerate(sorted(folder.rglob("*.jpg"))):
        mask, photograph = (one(path.read_bytes(), position=position) for one in compose)
        assert similar(mask, photograph) > 0.99


# --- PNGs of 16 bits --------------------------------------------------------------------------------


def check_16_bits(deep, upper, way):
    with pytest.raises(Exception, match=r"a (packed )?PNG of 16 bits"):
        way(deep, OF_MASKS)
    accepted = way(deep, OF_MASKS, accept_16_bits=True)
    np.testing.assert_array_equal(accepted, way(upper, OF_MASKS))


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "arrays"])  # arrays are decoded
def test_16_bits_are_refused_from_every_source(kind, pngs, tmp_path):
    sources = []
    for folder in pngs:
        (empty := tmp_path / folder.name).mkdir()
        sources.append(SOURCES[kind](files_of(folder), empty))
    check_16_bits(*sources, rows_of)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "float32, NCHW"])
def test_16_bits_are_refused_on_every_way(way, pngs):
    check_16_bits(*(stoker.image_folder(folder) for folder in pngs), WAYS[way])


def test_floats_keep_16_bits(pngs):
    deep, upper = (stoker.image_folder(folder) for folder in pngs)
    way = WAYS["float32, NCHW"]
    all_bits, upper_bits = way(deep, OF_MASKS), way(upper, OF_MASKS)
    np.testing.assert_array_equal(way(deep, OF_MASKS, accept_16_bits=True), upper_bits)
    assert 0 < np.abs(all_bits - upper_bits).max() < 2 * abs(upper_bits).max() / 255


def test_16_bits_are_refused_with_a_crop_index_and_packed(pngs, command, tmp_path):
    deep, upper = (indexed_and_packed(folder, command, tmp_path / folder.name) for folder in pngs)
    for sources in zip(deep, upper):
        check_16_bits(*sources, rows_of)
        check_16_bits(*sources, WAYS["to_device(host)"])
