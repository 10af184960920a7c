"""Processors as the last transform of a Loader: rows, batches of patches, states, bad samples, errors."""

import copy
import io
import itertools
import json
import pathlib
import pickle
import subprocess
import sys
import tarfile

import numpy as np
import processor_golden
import pytest
import stoker
from processor_rows import COUNT, bytes_of, index, write
from stoker import _pixels

QWEN, CLIP, NAFLEX = (processor_golden.CONFIGS[name] for name in ("qwen2-vl", "clip", "siglip2"))


def make(folder, config=QWEN, before=(), of=(), **options):
    processor = stoker.processor(config, **dict(of))
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True, "depth": 1, **options}
    if "batch_tokens" in options and options["batch_size"] == 4:
        del options["batch_size"]
    return stoker.Loader(stoker.image_folder(folder), [*before, processor], **options), processor


def check(batch, source, wanted, within=0):
    """Compares a batch with what `wanted` makes of each of its files. Returns the ids."""
    ids = batch.sample_id.tolist()
    assert batch._fields[:2] == ("pixel_values", "label")
    for row, sample in enumerate(ids):
        want = dict(wanted(source.path(sample)))
        pixels, got = want.pop("pixel_values"), batch.pixel_values[row]
        pixels = pixels[0] if pixels.ndim == got.ndim + 1 else pixels
        assert got.dtype == pixels.dtype and got.shape == pixels.shape
        assert np.array_equal(got, pixels) if within == 0 else np.abs(got - pixels).max() <= within
        assert set(batch._fields) - {"pixel_values", "label", "sample_id"} == want.keys()
        for name, figures in want.items():
            assert batch[name].dtype == figures.dtype and np.array_equal(batch[name][row], figures[0])
        assert batch.label[row] == "ab".index(pathlib.Path(source.path(sample)).parent.name)
    return ids


def check_epoch(loader, processor):
    return [check(batch, loader.source, processor) for batch in loader]


@pytest.mark.parametrize("known", ["plain", "indexed"])
@pytest.mark.parametrize("family", processor_golden.CONFIGS)
def test_rows_are_those_of_the_processor(folders, family, known):
    """With sizes from the index, and without."""
    loader, processor = make(
        folders[known], processor_golden.CONFIGS[family], drop_remainder=family == "clip"
    )
    ids = check_epoch(loader, processor)
    assert len(ids) == len(loader)
    assert family == "clip" or sorted(itertools.chain(*ids)) == list(range(COUNT))
    assert ("pixel_values" in loader._native.ragged) == family.startswith(("qwen", "llava", "internvl"))
    loader.close()


def test_rows_of_packed_and_of_archived_images(folders, tmp_path):
    """A packed set knows the sizes; an archive does not, and gives its texts with the images."""
    plain = stoker.image_folder(folders["plain"])
    command = [sys.executable, "-m", "stoker", "pack", folders["plain"], tmp_path / "packed"]
    subprocess.run(command, check=True, capture_output=True)
    processor = stoker.processor(QWEN)
    options = {"batch_tokens": 3000, "sample_ids": True}
    loader = stoker.Loader(stoker.packed(tmp_path / "packed"), [processor], **options)
    assert sum(len(check(batch, plain, processor)) for batch in loader) == COUNT
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for i in range(4):
            for kind, data in (("png", pathlib.Path(plain.path(i)).read_bytes()), ("txt", b"text %d" % i)):
                member = tarfile.TarInfo(f"{i}.{kind}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    source = stoker.tar(tmp_path / "shard.tar", label=None, columns={"caption": ".txt"})
    (batch,) = stoker.Loader(source, [processor], batch_size=4, depth=1)
    assert batch.caption == [f"text {i}" for i in range(4)]
    for i in range(4):
        assert np.array_equal(batch.pixel_values[i], processor(plain.path(i))["pixel_values"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8"])
def test_types(folders, dtype):
    pytest.importorskip("ml_dtypes")
    for config in (QWEN, CLIP, NAFLEX):
        check_epoch(*make(folders["indexed"], config, of={"dtype": dtype, "resampler": "pillow"}))


@pytest.mark.parametrize("family", processor_golden.CONFIGS)
@pytest.mark.parametrize("flips", [(1, 0), (0, 1), (1, 1)])
def test_flipped_images(folders, family, flips):
    """A row is what the processor makes of the flipped picture: to the bit, but for sums of floats."""
    before = [stoker.RandomHorizontalFlip(flips[0]), stoker.RandomVerticalFlip(flips[1])]
    loader, processor = make(folders["indexed"], processor_golden.CONFIGS[family], before)

    def wanted(path):
        picture = stoker.decode_image(path)[:: -1 if flips[1] else 1, :: -1 if flips[0] else 1]
        return processor(_pixels.encoded(np.ascontiguousarray(picture)))

    check(next(iter(loader)), loader.source, wanted, within=1e-5 if family == "dinov3" else 0)


def test_flips_are_those_of_other_loaders(folders):
    """The same numbers are drawn as without a processor."""
    flips = [stoker.RandomVerticalFlip(), stoker.RandomHorizontalFlip(0.5)]
    config = {"image_processor_type": "ViTImageProcessor", "size": 32}
    loader, _ = make(folders["plain"], config, flips, of={"resampler": "pillow", "dtype": "uint8"})
    resize = stoker.Resize((32, 32), resampler="pillow_exact")
    other = stoker.Loader(loader.source, [*flips, resize], batch_size=4, shuffle=True, seed=5, layout="NCHW")
    for batch, (images, _) in zip(loader, other, strict=True):
        assert np.array_equal(batch.pixel_values, images)


@pytest.mark.parametrize("options", [{}, {"batch_tokens": 4000}])
@pytest.mark.parametrize("config", [QWEN, NAFLEX])
def test_bytes_are_the_same_for_any_threads_and_depth(folders, config, options):
    wanted = None
    for threads, depth in itertools.product((1, 3), (1, 3)):
        runtime = stoker.Runtime(threads=threads)
        flips = [stoker.RandomHorizontalFlip()]
        loader, _ = make(folders["indexed"], config, flips, runtime=runtime, **{**options, "depth": depth})
        got = [bytes_of(batch) for batch in loader] + [bytes_of(batch) for batch in loader]
        wanted = wanted or got
        assert got == wanted and len(got) == 2 * len(loader)
        loader.close()


def test_batches_of_patches(folders):
    """Each sample once, within the budget; with a limit of rows, too."""
    budget = 3000
    loader, processor = make(folders["indexed"], batch_tokens=budget)
    for _ in range(2):
        ids = check_epoch(loader, processor)
        assert sorted(itertools.chain(*ids)) == list(range(COUNT))
    for batch in loader:
        assert len(batch.pixel_values.values) == batch.image_grid_thw.prod(axis=1).sum() <= budget
        np.testing.assert_array_equal(batch.pixel_values.counts, batch.image_grid_thw.prod(axis=1))
    limited, processor = make(folders["indexed"], batch_tokens=budget, batch_size=2)
    assert max(map(len, check_epoch(limited, processor))) == 2
    assert loader.stats()["batch_fill"] > 0.5
    largest = int(np.prod(processor.plan(481, 640)["image_grid_thw"]))
    words = rf"02\.png: sample 1 has \d+ patches, and batch_tokens is 100 \(and .*to {largest} or more"
    with pytest.raises(ValueError, match=words):
        make(folders["indexed"], batch_tokens=100)
    with pytest.raises(stoker.FailedPreconditionError, match=rf"{COUNT} of {COUNT} samples of .* have no "
                       r"known size; the first is sample 0: .*00\.png\. Run `stoker index`"):  # fmt: skip
        make(folders["plain"], batch_tokens=budget)


@pytest.mark.parametrize("options", [{"batch_tokens": 3000}, {"batch_size": 2}])
def test_ranks_and_states(folders, options):
    """The ranks have each sample once; a loader that loads a state gives the rest."""
    whole = [bytes_of(batch) for batch in make(folders["indexed"], **options)[0]]
    for world in (1, 2, 3):
        ids = []
        for rank in range(world):
            loader, processor = make(folders["indexed"], rank=rank, world=world, **options)
            ids += itertools.chain(*check_epoch(loader, processor))
        assert sorted(ids) == list(range(COUNT))
    loader, _ = make(folders["indexed"], **options)
    iterator = iter(loader)
    for _ in range(2):
        next(iterator)
    state = loader.state_dict()
    for resumed in (make(folders["indexed"], **options)[0], copy.deepcopy(loader),
                    pickle.loads(pickle.dumps(loader))):  # fmt: skip
        resumed.load_state_dict(state)
        assert [bytes_of(batch) for batch in resumed] == whole[2:]
    others = [
        ({"of": {"max_pixels": 200704}}, r"processor.size was 3136 to 1003520 pixels and is 3136 to 200704"),
        ({"of": {"image_std": [0.5] * 3}}, r"processor.std was 0.26862954 .* and is 0.5 0.5 0.5"),
        ({"of": {"dtype": "float16"}}, "dtype was float32 and is float16"),
        ({"of": {"exif_orientation": False}}, "exif_orientation was true and is false"),
        ({"config": NAFLEX}, "processor was qwen and is naflex"),
    ]
    for other, words in others:
        with pytest.raises(stoker.FailedPreconditionError, match=words) as caught:
            make(folders["indexed"], **{**options, **other})[0].load_state_dict(state)
        assert " and is " not in str(caught.value).partition(" and is ")[2]  # one difference


def test_limits_in_states(folders):
    """As those of a loader: compared only where on_bad covers the errors that they decide."""
    limits = [
        ("max_image_pixels", 2**20, "over_limits", "max_pixels was 268435456 and is 1048576"),
        ("max_scans", 7, "over_limits", "max_scans was 200 and is 7"),
        ("accept_truncated", True, "truncated", "accept_truncated was false and is true"),
    ]
    for name, value, fault, words in limits:
        for on_bad in ("fail", {fault: "drop"}):
            loader, _ = make(folders["indexed"], on_bad=on_bad)
            whole = [bytes_of(batch) for batch in loader.epoch(0)]
            next(iter(loader))
            other, _ = make(folders["indexed"], on_bad=on_bad, of={name: value})
            if on_bad == "fail":
                other.load_state_dict(loader.state_dict())
                assert [bytes_of(batch) for batch in other] == whole[1:]
            else:
                with pytest.raises(stoker.FailedPreconditionError, match=words):
                    other.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("family", processor_golden.CONFIGS)
def test_states_are_short(folders, family):
    loader, _ = make(folders["indexed"], processor_golden.CONFIGS[family])
    assert len(json.dumps(loader.state_dict())) < 1000
    assert len(loader.stats()["plan"]) < 400


def test_another_world_in_the_middle_of_an_epoch(folders):
    """The ranks of the new world share the batches of patches that were not delivered."""
    options = {"batch_tokens": 2000}
    whole = [batch.sample_id.tolist() for batch in make(folders["indexed"], **options)[0]]
    for world, others in ((1, 2), (2, 1), (2, 3)):
        loader, _ = make(folders["indexed"], world=world, **options)
        next(iter(loader))
        ids = []
        for rank in range(others):
            resumed, processor = make(folders["indexed"], rank=rank, world=others, **options)
            resumed.load_state_dict(loader.state_dict())
            ids += check_epoch(resumed, processor)
        assert sorted(ids) == sorted(whole[world:])


def test_states_of_other_sizes_are_refused(indexed):
    loader, _ = make(indexed, batch_tokens=3000)
    next(iter(loader))
    write(pathlib.Path(loader.source.path(2)), 500, 500)
    index(indexed)
    with pytest.raises(stoker.FailedPreconditionError, match="batches' hash was"):
        make(indexed, batch_tokens=3000)[0].load_state_dict(loader.state_dict())


@pytest.mark.parametrize(
    "options", [{"batch_size": 5}, {"batch_tokens": 4500}, {"batch_tokens": 9, "tokens": "label"}]
)
def test_an_index_that_lies(indexed, options):
    """A file that has become larger than its place: an error with both sizes, a substitute, or no row."""
    source, bad = stoker.image_folder(indexed), 1
    large = pathlib.Path(source.path(bad))
    write(large, 900, 700)

    def loader_of(**more):
        batches = {"shuffle": True, "seed": 5, "sample_ids": True, "depth": 1, "max_bad_fraction": 1}
        return stoker.Loader(source, [stoker.processor(QWEN)], **{**batches, **options, **more})

    want = r"02\.png.*900 × 700 pixels, which are \d+ patches, more than the \d+ that its row has room " \
           r"for; the source says that the image has 200 × 300 pixels. Run `stoker index` again"  # fmt: skip
    for on_bad in ("fail", {"vanished": "substitute"}):
        with pytest.raises(stoker.DataLossError, match=want):
            list(loader_of(on_bad=on_bad))
    processor = stoker.processor(QWEN)
    loader = loader_of(on_bad="drop")
    ids = list(itertools.chain(*check_epoch(loader, processor)))
    assert sorted(ids) == [i for i in range(COUNT) if i != bad]
    assert loader.stats()["dropped"] == 1 and loader.stats()["bad"]["undecodable"] == 1
    loader = loader_of(on_bad="substitute")
    ids = list(itertools.chain(*check_epoch(loader, processor)))
    assert len(ids) == COUNT and bad not in ids
    assert loader.stats()["substituted"] == 1
    write(large, 3, 2)  # smaller images have room
    assert len(list(itertools.chain(*check_epoch(loader_of(), processor)))) == COUNT


@pytest.mark.parametrize("small", [1, 6])
def test_substitutes_have_room(tmp_path, small):
    """A substitute is the first drawn that fits the row; if none of them does, the row is dropped."""
    (tmp_path / "a").mkdir()
    for i in range(24):
        write(tmp_path / "a" / f"{i:02}.png", *((8, 8) if i < small else (300, 300)))
    index(tmp_path)
    write(tmp_path / "a" / "00.png", 400, 300)
    source, processor = stoker.image_folder(tmp_path), stoker.processor(QWEN)
    options = {"batch_tokens": 6, "tokens": "label", "sample_ids": True, "on_bad": "substitute"}
    loader = stoker.Loader(source, [processor], max_bad_fraction=1, batch_size=6, **options)
    substitutes = []
    for epoch in range(8):
        batches = list(loader.epoch(epoch))
        ids = list(itertools.chain(*(batch.sample_id.tolist() for batch in batches)))
        for batch in batches:
            for row, sample in enumerate(batch.sample_id.tolist()):
                assert np.array_equal(batch.pixel_values[row], processor(source.path(sample))["pixel_values"])
        assert 0 not in ids
        substitutes += ids[: len(ids) - 23]
        assert ids[len(ids) - 23 :] == list(range(1, 24))
    assert all(1 <= sample < small for sample in substitutes)
    stats = loader.stats()
    assert (stats["substituted"], stats["dropped"]) == (len(substitutes), 8 - len(substitutes))
    assert len(substitutes) == 0 if small == 1 else len(substitutes) > 1


def test_bad_sizes_are_bad_samples(indexed):
    """An aspect ratio that the processor does not take is a fault of its sample."""
    write(indexed / "a" / "00.png", 1, 300)
    index(indexed)
    with pytest.raises(stoker.UnimplementedError, match=r"00\.png.*aspect ratios up to 200"):
        list(make(indexed, batch_tokens=4500)[0])
    loader, processor = make(indexed, batch_tokens=4500, on_bad={"unsupported": "drop"}, max_bad_fraction=1)
    assert sum(map(len, check_epoch(loader, processor))) == COUNT - 1


def test_unknown_sizes_have_a_limit(folders):
    """Memory for the largest possible rows of a batch is at most 1 GiB."""
    words = "up to 5120 patches.*at most 1 GiB is reserved .*: 21 of 21 samples .* have no known size.*Run `s"
    with pytest.raises(stoker.ResourceExhaustedError, match=words):
        make(folders["plain"], batch_size=64)
    check_epoch(*make(folders["plain"], batch_size=64, of={"max_pixels": 56 * 56 * 4}))
    check_epoch(*make(folders["indexed"], batch_size=64))
    with pytest.raises(stoker.ResourceExhaustedError, match="or give batch_size, the most rows") as caught:
        make(folders["plain"], batch_tokens=64, tokens="label", of={"max_pixels": 2**22})
    assert "ower batch_size" not in str(caught.value)


def test_partly_unknown_sizes(indexed):
    """A file that the index does not have takes the most patches; batch_tokens names it."""
    write(indexed / "b" / "new.png", 99, 88)
    loader, processor = make(indexed)
    assert len(list(itertools.chain(*check_epoch(loader, processor)))) == COUNT + 1
    with pytest.raises(
        stoker.FailedPreconditionError, match=r"1 of 22 samples of .* has no .*: .*new\.png\. Run"
    ):
        make(indexed, batch_tokens=5000)


@pytest.mark.parametrize("turns", [True, False])
def test_flips_of_turned_photographs(tmp_path, turns):
    """Each EXIF orientation and each flip, of rows whose places the index knows."""
    pytest.importorskip("PIL")
    import processor_images

    (tmp_path / "a").mkdir()
    for tag in range(1, 9):
        data = processor_images.encoded(150, 60, "RGB", "JPEG", tag, tag)
        (tmp_path / "a" / f"{tag}.jpg").write_bytes(data)
    index(tmp_path)
    source = stoker.image_folder(tmp_path)
    processor = stoker.processor(QWEN, exif_orientation=turns)
    for flips in itertools.product((0, 1), repeat=2):
        before = [stoker.RandomHorizontalFlip(flips[0]), stoker.RandomVerticalFlip(flips[1])]
        loader = stoker.Loader(source, [*before, processor], batch_tokens=300, sample_ids=True)
        for batch in loader:
            for row, sample in enumerate(batch.sample_id.tolist()):
                picture = stoker.decode_image(source.path(sample), exif_orientation=turns)
                picture = picture[:: -1 if flips[1] else 1, :: -1 if flips[0] else 1]
                want = processor(_pixels.encoded(np.ascontiguousarray(picture)))
                assert np.array_equal(batch.pixel_values[row], want["pixel_values"])
                assert np.array_equal(batch.image_grid_thw[row], want["image_grid_thw"][0])


def test_strings_of_rows_that_stay(folders, tmp_path):
    """Strings that come with the images keep their rows when others are dropped; names must be free."""
    plain = stoker.image_folder(folders["plain"])
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for i in range(8):
            data = b"no image" if i in (0, 3, 7) else pathlib.Path(plain.path(i)).read_bytes()
            for kind, part in (("png", data), ("txt", b"text %d" % i), ("cls", b"%d" % i)):
                member = tarfile.TarInfo(f"{i}.{kind}")
                member.size = len(part)
                archive.addfile(member, io.BytesIO(part))
    source = stoker.tar(tmp_path / "shard.tar", columns={"caption": ".txt"})
    processor = stoker.processor(QWEN)
    options = {"batch_size": 4, "sample_ids": True, "on_bad": "drop", "max_bad_fraction": 1}
    batches = list(stoker.Loader(source, [processor], depth=1, **options))
    assert [len(batch.label) for batch in batches] == [2, 3]
    for batch in batches:
        assert batch._fields == ("pixel_values", "label", "caption", "image_grid_thw", "sample_id")
        assert batch.caption == [f"text {i}" for i in batch.label]
        for row, label in enumerate(batch.label):
            assert np.array_equal(batch.pixel_values[row], processor(plain.path(label))["pixel_values"])
    for name in ("pixel_values", "image_grid_thw"):
        named = stoker.tar(tmp_path / "shard.tar", columns={name: ".txt"})
        with pytest.raises(ValueError, match=f"field '{name}', and the processor adds"):
            stoker.Loader(named, [processor], batch_size=4, depth=1)


@pytest.mark.parametrize(
    ("before", "options", "kind", "words"),
    [
        ([stoker.Resize(32)], {}, NotImplementedError, "Resize is before it, and the last of.*a processor"),
        ([stoker.RandomHorizontalFlip(), stoker.ColorJitter()], {}, NotImplementedError, "ColorJitter"),
        ([], {"dtype": "float32"}, ValueError, "dtype is float32, and the last of the transforms is a proc"),
        ([], {"layout": "NCHW"}, ValueError, "layout is NCHW"),
        ([], {"max_pixels": 10}, ValueError, "max_pixels is 10"),
        ([], {"geometry": True}, NotImplementedError, "geometry"),
        ([], {"cache": "ram:1MiB"}, NotImplementedError, "cache"),
        ([], {"views": [[stoker.Resize((8, 8))]] * 2}, NotImplementedError, "there are views"),
        ([], {"views": [[stoker.RandomHorizontalFlip()]]}, NotImplementedError, "there are views"),
    ],
)
def test_errors(folders, before, options, kind, words):
    with pytest.raises(kind, match=words):
        make(folders["plain"], before=before, **options)


def test_more_errors(folders):
    source, processor = stoker.image_folder(folders["plain"]), stoker.processor(QWEN)
    with pytest.raises(TypeError, match=r"transforms\[0\]"):
        stoker.Loader(source, [processor, stoker.RandomHorizontalFlip()], batch_size=4)
    with pytest.raises(NotImplementedError, match="MixUp"):
        stoker.Loader(source, [processor, stoker.MixUp()], batch_size=4)
    with pytest.raises(NotImplementedError, match="device"):
        make(folders["plain"])[0].to_device("host")
    with pytest.raises(NotImplementedError, match="in memory"):
        stoker.Loader(stoker.arrays(np.zeros((4, 8, 8, 3), np.uint8)), [processor], batch_size=4)
    with pytest.raises(ValueError, match="differ in size"):
        make(folders["plain"], CLIP, of={"do_center_crop": False})
    with pytest.raises(TypeError, match="Compose"):
        stoker.Compose([processor])
    with pytest.raises(ValueError, match=r"each image is one.*Give batch_size"):
        make(folders["indexed"], CLIP, batch_tokens=64)


def test_maps_and_kept_rows(folders):
    """A Map gets whole batches; arrays stay valid after the loader has gone."""
    seen = []
    source, processor = stoker.image_folder(folders["indexed"]), stoker.processor(QWEN)
    own = stoker.Map(lambda batch: seen.append(len(batch.pixel_values.values)))
    with stoker.Loader(source, [processor, own], batch_size=4, paths=True) as loader:
        assert "Qwen2VLImageProcessor" in loader.explain()
        assert loader.stats()["plan"].startswith("qwen")
        batches = list(loader)
    assert seen[: len(batches)] == [len(batch.pixel_values.values) for batch in batches]
    for batch in batches:
        for row, path in enumerate(batch.path):
            assert np.array_equal(batch.pixel_values[row], processor(path)["pixel_values"])


def test_a_function_of_rows(folders):
    """It gets the patches of each row in their place, and may change them."""
    source, processor = stoker.image_folder(folders["indexed"]), stoker.processor(QWEN)

    def negate(pixels, label, grid):
        assert pixels.shape == (grid.prod(), 1176)
        np.negative(pixels, out=pixels)

    loader = stoker.Loader(source, [processor, stoker.Map(negate, rows=True)], batch_tokens=3000, paths=True)
    for batch in loader:
        for row, path in enumerate(batch.path):
            assert np.array_equal(batch.pixel_values[row], -processor(path)["pixel_values"])


def test_cu_seqlens(folders):
    grid = np.array([[1, 2, 4], [3, 2, 2]])
    want = [0, 8, 12, 16, 20]
    assert stoker.cu_seqlens(grid).tolist() == want and stoker.cu_seqlens(grid).dtype == np.int32
    assert stoker.cu_seqlens(grid[:0]).tolist() == [0]
    for wrong in (grid[0], [[1, 2]], np.zeros((2, 2), int)):
        with pytest.raises((TypeError, ValueError), match="grid"):
            stoker.cu_seqlens(wrong)
    for batch in make(folders["indexed"], batch_tokens=3000)[0]:
        np.testing.assert_array_equal(stoker.cu_seqlens(batch.image_grid_thw), batch.pixel_values.offsets)


def test_cu_seqlens_of_torch():
    torch = pytest.importorskip("torch")
    made = stoker.cu_seqlens(torch.tensor([[1, 2, 4], [3, 2, 2]]))
    assert made.dtype == torch.int32 and made.tolist() == [0, 8, 12, 16, 20]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch(folders, dtype):
    torch = pytest.importorskip("torch")
    torch_loaders = pytest.importorskip("stoker.torch")
    source = stoker.image_folder(folders["indexed"])
    options = {"batch_size": None, "batch_tokens": 3000, "shuffle": True, "sample_ids": True}
    processor, plain = stoker.processor(QWEN, dtype=dtype), stoker.processor(QWEN)
    loader = torch_loaders.DataLoader(source, [processor], pin_memory=True, **options)
    ids = []
    for batch in loader:
        assert batch.pixel_values.values.dtype == getattr(torch, dtype)
        assert torch.equal(stoker.cu_seqlens(batch.image_grid_thw), batch.pixel_values.offsets.int())
        for row, sample in enumerate(batch.sample_id.tolist()):
            want = torch.from_numpy(plain(source.path(sample))["pixel_values"])
            assert torch.equal(batch.pixel_values[row], want.to(getattr(torch, dtype)))
            ids.append(sample)
    assert sorted(ids) == list(range(COUNT))
    with pytest.raises(NotImplementedError, match="single samples are not made by"):
        loader.dataset[0]
    images = [batch[0] for batch in torch_loaders.DataLoader(source, [stoker.processor(CLIP)], batch_size=4)]
    assert all(image.shape[1:] == (3, 224, 224) and image.dtype == torch.float32 for image in images)


def test_jax(folders):
    jax = pytest.importorskip("jax")
    loader, processor = make(folders["indexed"], batch_tokens=3000)
    batch = next(iter(loader.to_jax()))
    made = stoker.cu_seqlens(batch.image_grid_thw)
    assert isinstance(made, jax.Array) and made.dtype == np.int32
    np.testing.assert_array_equal(made, batch.pixel_values.offsets)
    want = processor(loader.source.path(int(batch.sample_id[0])))["pixel_values"]
    np.testing.assert_array_equal(batch.pixel_values[0], want)


def test_tensorflow(folders):
    tf = pytest.importorskip("tensorflow")
    loader, _ = make(folders["indexed"], batch_tokens=3000)
    dataset = loader.as_tf_dataset(epoch=0)
    spec = tf.RaggedTensorSpec((None, None, 1176), tf.float32, 1, tf.int64)
    assert dataset.element_spec["pixel_values"] == spec
    for element, batch in zip(dataset, loader.epoch(0), strict=True):
        np.testing.assert_array_equal(element["pixel_values"].values, batch.pixel_values.values)
        np.testing.assert_array_equal(element["image_grid_thw"], batch.image_grid_thw)
