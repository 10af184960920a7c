"""Samples of any number of images as rows of a processor: sources of lists, batches, states, faults."""

import io
import itertools
import json
import os
import pathlib
import pickle
import shutil
import tarfile

import numpy as np
import processor_golden
import pytest
import stoker
from stoker import _pixels

QWEN, CLIP, NAFLEX = (processor_golden.CONFIGS[name] for name in ("qwen2-vl", "clip", "siglip2"))
SIZES = [*processor_golden.SIZES, (400, 90), (31, 260), (224, 224)]
COUNTS = [2, 0, 1, 3, 8, 0, 1, 4, 2, 5, 0, 7, 6, 1, 2]


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    paths = []
    for i, size in enumerate(SIZES):
        paths.append(str(folder / f"{i}.png"))
        pathlib.Path(paths[-1]).write_bytes(_pixels.encoded(processor_golden.picture(*size)))
    names = itertools.cycle(paths)
    return [list(itertools.islice(names, count)) for count in COUNTS]


def source_of(lists, sized=True):
    source = stoker.files(
        lists, list(range(len(lists))), columns={"text": [f"{len(each)} images" for each in lists]}
    )
    return stoker.sized(source) if sized else source


def make(lists, config=QWEN, before=(), sized=True, of=(), **options):
    processor = stoker.processor(config, **dict(of))
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True, "depth": 1, **options}
    if "batch_tokens" in options and options["batch_size"] == 4:
        del options["batch_size"]
    return stoker.Loader(source_of(lists, sized), [*before, processor], **options), processor


def check(batch, source, wanted, within=0):
    """Compares a batch with what `wanted` makes of the images of each sample. Returns the ids."""
    ids = batch.sample_id.tolist()
    assert batch._fields[:3] == ("pixel_values", "label", "text")
    assert len(batch.pixel_values) == len(ids)
    for row, sample in enumerate(ids):
        count = int(source._native.image_counts[sample])
        got = batch.pixel_values[row]
        assert batch.label[row] == sample and batch.text[row] == f"{count} images"
        made = [dict(wanted(source.path(sample, frame=i))) for i in range(count)]
        pixels = [each.pop("pixel_values") for each in made]
        pixels = [each[0] if each.ndim == got.ndim + 1 else each for each in pixels]
        for name in set(batch._fields) - {"pixel_values", "label", "text", "sample_id"}:
            figures = [each[name] for each in made] or [batch[name].values[:0]]
            assert batch[name][row].dtype == figures[0].dtype
            assert np.array_equal(batch[name][row], np.concatenate(figures))
        if count == 0:
            assert len(got) == 0
            continue
        pixels = np.concatenate(pixels)
        assert got.dtype == pixels.dtype and got.shape == pixels.shape
        assert np.array_equal(got, pixels) if within == 0 else np.abs(got - pixels).max() <= within
    return ids


def check_epoch(loader, processor):
    return [check(batch, loader.source, processor) for batch in loader]


def bytes_of(batch):
    parts = []
    for name in batch._fields:
        column = batch[name]
        if isinstance(column, list):
            parts.append(repr(column).encode())
            continue
        arrays = [column.values, column.offsets] if isinstance(column, stoker.Ragged) else [column]
        parts += [array.tobytes() for array in arrays]
    return b"".join(parts)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("family", processor_golden.CONFIGS)
def test_rows_are_those_of_the_processor(lists, family, sized):
    """With known sizes, and without; the number of images is known anyway."""
    of = {} if sized or not family.startswith("qwen") else {"max_pixels": 65536}
    loader, processor = make(lists, processor_golden.CONFIGS[family], of=of, sized=sized, batch_size=2)
    ids = list(itertools.chain(*check_epoch(loader, processor)))
    assert sorted(ids) == list(range(len(lists)))
    figures = set(loader._native.ragged)
    assert "pixel_values" in figures and "label" not in figures
    loader.close()


def test_rows_are_those_of_a_list(lists):
    """The arrays of a row are what the processor makes of the list, and cu_seqlens takes them."""
    for config in (QWEN, CLIP, NAFLEX):
        loader, processor = make(lists, config, batch_size=len(lists), shuffle=False)
        (batch,) = loader
        whole = processor(list(itertools.chain(*lists)))
        assert np.array_equal(batch.pixel_values.values, whole.pop("pixel_values"))
        for name, figures in whole.items():
            assert isinstance(batch[name], stoker.Ragged)
            assert np.array_equal(batch[name].values, figures)
            assert batch[name].counts.tolist() == COUNTS
        if config is QWEN:
            ends = stoker.cu_seqlens(batch.image_grid_thw)
            assert len(ends) == sum(COUNTS) + 1 and ends[-1] == len(batch.pixel_values.values)


@pytest.mark.parametrize("family", ["qwen2-vl", "siglip2", "clip", "llava-next", "dinov3"])
def test_flips_are_the_same_for_all_images_of_a_sample(lists, family):
    flips = [stoker.RandomHorizontalFlip(), stoker.RandomVerticalFlip()]
    loader, processor = make(lists, processor_golden.CONFIGS[family], flips)
    drawn = set()

    def flipped(path, rows, columns):
        picture = stoker.decode_image(path)[:: -1 if rows else 1, :: -1 if columns else 1]
        return processor(_pixels.encoded(np.ascontiguousarray(picture)))

    for batch in loader:
        for row, sample in enumerate(batch.sample_id.tolist()):
            got, paths = batch.pixel_values[row], lists[sample]
            fits = []
            for rows, columns in itertools.product((0, 1), repeat=2):
                want = [flipped(path, rows, columns)["pixel_values"] for path in paths]
                want = [each[0] if each.ndim == got.ndim + 1 else each for each in want]
                if paths and np.abs(got - np.concatenate(want)).max() <= 1e-5 * (family == "dinov3"):
                    fits.append((rows, columns))
            assert fits or not paths
            drawn.update(fits)
    assert len(drawn) == 4


@pytest.mark.parametrize("options", [{}, {"batch_tokens": 8000}, {"batch_tokens": 5, "tokens": "label2"}])
@pytest.mark.parametrize("config", [QWEN, NAFLEX, CLIP])
def test_bytes_are_the_same_for_any_threads_and_depth(lists, config, options):
    wanted = None
    source = stoker.sized(stoker.files(lists, columns={"label2": [1] * len(lists)}))
    flips = [stoker.RandomHorizontalFlip(), stoker.processor(config)]
    for threads, depth in itertools.product((1, 3), (1, 3)):
        runtime = stoker.Runtime(threads=threads)
        more = options if options else {"batch_size": 4}
        loader = stoker.Loader(source, flips, shuffle=True, seed=3, runtime=runtime, depth=depth, **more)
        got = [bytes_of(batch) for batch in loader] + [bytes_of(batch) for batch in loader]
        wanted = wanted or got
        assert got == wanted and len(got) == 2 * len(loader)
        loader.close()


def test_batches_of_patches(lists):
    """All images of a sample count; one without images costs nothing, or what a column says."""
    loader, processor = make(lists, batch_tokens=9000)
    tokens = [sum(int(np.prod(processor(p)["image_grid_thw"])) for p in each) for each in lists]
    for _ in range(2):
        ids = check_epoch(loader, processor)
        assert sorted(itertools.chain(*ids)) == list(range(len(lists)))
        assert all(sum(tokens[i] for i in of) <= 9000 for of in ids)
    assert loader.stats()["batch_fill"] > 0.6
    assert len(loader) < len(lists) / 2
    with pytest.raises(
        ValueError, match=rf"sample \d+ has \d+ patches, and batch_tokens is {max(tokens) - 1}"
    ):
        make(lists, batch_tokens=max(tokens) - 1)
    with pytest.raises(stoker.FailedPreconditionError, match=r"12 of 15 samples of .* have no known size"):
        make(lists, batch_tokens=9000, sized=False)
    counted, _ = make(lists, CLIP, batch_tokens=8)
    assert all(sum(COUNTS[i] for i in of) <= 8 for of in check_epoch(counted, stoker.processor(CLIP)))
    text_only = source_of(lists).subset([i for i, count in enumerate(COUNTS) if count == 0])
    (batch,) = stoker.Loader(text_only, [processor], batch_tokens=10)
    assert batch.text == ["0 images"] * 3 and len(batch.pixel_values.values) == 0
    assert len(stoker.cu_seqlens(batch.image_grid_thw)) == 1


@pytest.mark.parametrize("options", [{"batch_tokens": 5500}, {"batch_size": 2}])
def test_ranks_and_states(lists, options):
    """The ranks have each sample once; a loader that loads a state gives the rest."""
    whole = [bytes_of(batch) for batch in make(lists, **options)[0]]
    for world in (1, 2, 3):
        ids = []
        for rank in range(world):
            loader, processor = make(lists, rank=rank, world=world, **options)
            ids += itertools.chain(*check_epoch(loader, processor))
        assert sorted(ids) == list(range(len(lists)))
    loader, _ = make(lists, **options)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    for resumed in (make(lists, **options)[0], pickle.loads(pickle.dumps(loader))):
        resumed.load_state_dict(state)
        assert [bytes_of(batch) for batch in resumed] == whole[1:]
    moved = [lists[0][:1], lists[0][1:] + lists[1], *lists[2:]]
    with pytest.raises(stoker.FailedPreconditionError, match="samples are different"):
        make(moved, **options)[0].load_state_dict(state)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("fault", ["damaged", "missing", "larger"])
def test_faults_of_an_image(lists, tmp_path, fault, place, sized):
    """An error names the image's file, which may be followed by others; other policies replace or leave out
    the sample.
    """
    if fault == "larger" and not sized:
        pytest.skip("a row of unknown sizes has room for any")
    shutil.copy(lists[0][1], tmp_path / "bad.png")
    own = [list(each) for each in lists]
    own[3][place] = str(tmp_path / "bad.png")
    of = {"max_pixels": 65536}
    processor = stoker.processor(QWEN, **of)
    source = source_of(own, sized)
    if fault == "missing":
        os.remove(tmp_path / "bad.png")
    elif fault == "damaged":
        (tmp_path / "bad.png").write_bytes(b"no image")
    else:
        (tmp_path / "bad.png").write_bytes(_pixels.encoded(processor_golden.picture(1000, 900)))

    def loader_of(**options):
        shuffled = {"shuffle": True, "seed": 5, "sample_ids": True, "depth": 1, "max_bad_fraction": 1}
        return stoker.Loader(source, [processor], **{"batch_size": 2, **shuffled, **options})

    with pytest.raises(stoker.Error, match=r"bad\.png"):
        list(loader_of())
    dropped = loader_of(on_bad="drop")
    ids = list(itertools.chain(*check_epoch(dropped, processor)))
    assert sorted(ids) == [i for i in range(len(own)) if i != 3]
    assert dropped.stats()["dropped"] == 1
    batches = [{}, {"batch_size": None, "batch_tokens": 3000}] if sized else [{}]
    for options in batches:
        loader = loader_of(on_bad="substitute", **options)
        ids = list(itertools.chain(*check_epoch(loader, processor)))
        assert len(ids) + loader.stats()["dropped"] == len(own)
        assert 3 not in ids


def test_sources_made_of_lists(lists):
    """Subsets, combinations and orders have the same images."""
    source, processor = source_of(lists), stoker.processor(QWEN)
    short = source_of(lists[:3])
    for made in (
        source.subset([4, 1, 2]),
        stoker.combine([short, source]),
        stoker.sized(stoker.combine([source_of(lists[:3], False), source_of(lists, False)])),
        source.repeated(2),
        source.weighted([1] * len(lists)),
        pickle.loads(pickle.dumps(source)),
        pickle.loads(pickle.dumps(source_of(lists, False))),
    ):
        loader = stoker.Loader(made, [processor], batch_size=3, sample_ids=True, depth=1)
        for batch in loader:
            for row, sample in enumerate(batch.sample_id.tolist()):
                count = made._native.image_counts[sample]
                paths = [made.path(sample, frame=i) for i in range(count)]
                assert batch.text[row] == f"{count} images"
                want = [processor(path)["pixel_values"] for path in paths]
                assert np.array_equal(batch.pixel_values[row], np.concatenate([*want, np.empty((0, 1176))]))
    with pytest.raises(ValueError, match="any number of encoded images"):
        stoker.combine([source, stoker.files(lists[0], [0, 1], columns={"text": ["", ""]})])


def test_sizes_of_lists(lists, tmp_path):
    """From headers, an index, or given: in a list for each sample, or in one array."""
    source = source_of(lists, sized=False)
    shape = {str(i): (height, width) for i, (width, height) in enumerate(SIZES)}
    given = [np.array([shape[pathlib.Path(path).stem] for path in each]) for each in lists]
    flat = np.concatenate([each.reshape(-1, 2).astype(int) for each in given])
    assert source.unsized.tolist() == [i for i, count in enumerate(COUNTS) if count]
    assert source.image_size(0, 1) is None
    index = tmp_path / "sizes"
    for made in (
        stoker.sized(source),
        stoker.sized(source, given),
        stoker.sized(source, (each for each in given)),
        stoker.sized(source, flat),
        stoker.sized(source, index=index),
        stoker.sized(source, index=index),
    ):
        assert made.unsized.tolist() == []
        for sample, each in enumerate(given):
            for image, size in enumerate(each.tolist()):
                assert made.image_size(sample, image) == tuple(size)
            with pytest.raises(IndexError):
                made.image_size(sample, len(each))
    for wrong, words in (
        (given[:-1], "sizes are of 14 samples, and .* has 15"),
        (
            [*given[:3], given[3][:1], *given[4:]],
            r"sizes\[3\] has the shape \(1, 2\), and sample 3 has 3 images: give \(3, 2\)",
        ),
        ([[480, 640], *given[1:]], r"sizes\[0\] has the shape \(2,\), and sample 0 has 2 images"),
        ([*given[:1], 5, *given[2:]], r"sizes\[1\] has the shape \(\), and sample 1 has 0 images"),
        ([*given[:3], [[9, 9], [9, 9], [0, 9]], *given[4:]], "the size of image 2 of sample 3 has height 0"),
        (flat[:-1], "41 sizes were given, and .* 42 images"),
    ):
        with pytest.raises(ValueError, match=words):
            stoker.sized(source, wrong)
    with pytest.raises(ValueError, match="knows height"):
        stoker.sized(stoker.sized(source), flat[:, ::-1])


class OnlyItems:
    """Items in order, without a length."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, number):
        return self.items[number]


def test_what_lists_must_be(lists):
    a = lists[0][0]
    for wrong, error, words in (
        ([[a], a], TypeError, r"paths\[1\] must be a list of paths"),
        ([a, [a]], TypeError, r"paths\[1\] must be a path"),
        ([[a], [a, 3]], TypeError, r"paths\[1\]\[1\] must be a path"),
        ([[a], [a, ""]], ValueError, r"paths\[1\]\[1\] is empty"),
        ([[], []], ValueError, "no path was given"),
        ([[a] * 1025], ValueError, r"paths\[0\] has 1025 images; at most 1024"),
    ):
        with pytest.raises(error, match=words):
            stoker.files(wrong)
    with pytest.raises(ValueError, match="'label' has 1 row for 2 lists of paths"):
        stoker.files([[a], []], [0])
    with pytest.raises(ValueError, match="'depth' has one file for each sample"):
        stoker.files([[a], []], columns={"depth": stoker.Mask([a, a])})
    listed = [stoker.files(each).image_size for each in ([[a], []], iter([[a], []]), OnlyItems([[a], []]))]
    assert len(listed) == 3 and stoker.files(OnlyItems([a])).path(0) == a
    for frame in (-1, 1):
        with pytest.raises(IndexError):
            listed[0](0, frame)
    source = stoker.files([(a,), np.array([a, a])])
    assert source.path(1, frame=1) == a and len(source) == 2
    with pytest.raises(stoker.UnimplementedError, match=r"any number of images.*is a processor"):
        stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=1)


@pytest.mark.parametrize("most", [1, 2])
def test_what_refuses_lists(lists, most):
    """Also lists of at most one image."""
    source = stoker.files([each[:most] for each in lists])
    refused = pytest.raises(stoker.UnimplementedError, match="have any number of images")
    with refused:
        stoker.clips(source, frames=2)
    for config in (QWEN, NAFLEX):
        with refused:
            stoker.Loader(source, [stoker.processor(config)], batch_size=1, padding="longest")
    with refused:
        stoker.Loader(source, [stoker.Resize((8, 8))], batch_size=1)
    loader = stoker.Loader(source, [stoker.processor(CLIP)], batch_size=1)
    assert "any number of images a row" in loader.explain()


def test_other_libraries(lists):
    """Ragged columns of tensors."""
    loader, _ = make(lists, batch_size=5, shuffle=False)
    batches = list(loader)
    torch = pytest.importorskip("torch")
    import stoker.torch

    tensors = stoker.torch.DataLoader(source_of(lists), [stoker.processor(QWEN)], batch_size=5)
    assert not hasattr(tensors.dataset, "samples") and tensors.dataset.targets == list(range(len(lists)))
    for batch, got in zip(batches, tensors, strict=True):
        assert torch.equal(got.image_grid_thw.values, torch.tensor(batch.image_grid_thw.values))
        assert torch.equal(got.image_grid_thw.offsets, torch.tensor(batch.image_grid_thw.offsets))
        assert torch.equal(got.pixel_values.values, torch.tensor(batch.pixel_values.values))
        assert torch.equal(
            stoker.cu_seqlens(got.image_grid_thw), torch.tensor(stoker.cu_seqlens(batch.image_grid_thw))
        )


def test_tensorflow_and_jax(lists):
    tf = pytest.importorskip("tensorflow")
    loader, _ = make(lists, batch_size=5, shuffle=False)
    batches = list(loader)
    source = source_of(lists)
    for config in (QWEN, CLIP, NAFLEX):  # ragged columns, of all kinds, are before these
        options = {"batch_size": 4, "paths": True, "sample_ids": True}
        named = stoker.Loader(source, [stoker.processor(config)], **options)
        for batch, got in zip(named, named.as_tf_dataset(epoch=0), strict=True):
            assert got["sample_id"].numpy().tolist() == batch.sample_id.tolist()
            assert [path.decode() for path in got["path"].numpy()] == batch.path
            for name in set(batch._fields) - {"label", "text", "path", "sample_id"}:
                assert np.array_equal(got[name].values.numpy(), batch[name].values)
    for batch, got in zip(batches, make(lists, batch_size=5, shuffle=False)[0].as_tf_dataset(), strict=True):
        assert isinstance(got["image_grid_thw"], tf.RaggedTensor)
        assert np.array_equal(got["image_grid_thw"].values.numpy(), batch.image_grid_thw.values)
        assert np.array_equal(got["image_grid_thw"].row_splits.numpy(), batch.image_grid_thw.offsets)
        assert np.array_equal(got["pixel_values"].values.numpy(), batch.pixel_values.values)
    pytest.importorskip("jax")
    source = stoker.sized(stoker.files(lists))
    for batch, got in zip(
        batches, stoker.Loader(source, [stoker.processor(QWEN)], batch_size=5).to_jax(), strict=True
    ):
        assert np.array_equal(np.asarray(got.image_grid_thw.values), batch.image_grid_thw.values)
        assert np.array_equal(np.asarray(got.pixel_values.values), batch.pixel_values.values)


def test_manifests_of_lists(lists, tmp_path):
    """JSON lines have a list of paths for each sample, perhaps an empty one."""
    manifest = tmp_path / "train.jsonl"
    rows = [{"path": each, "label": i, "text": f"{len(each)} images"} for i, each in enumerate(lists)]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = stoker.manifest(manifest)
    assert source._native.image_counts.tolist() == COUNTS
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True}
    loader = stoker.Loader(stoker.sized(source), [stoker.processor(QWEN)], **options)
    whole = [bytes_of(batch) for batch in make(lists)[0]]
    assert [bytes_of(batch) for batch in loader] == whole
    assert [bytes_of(batch) for batch in pickle.loads(pickle.dumps(loader))] == whole


def write_shard(path, members):
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_archives_with_numbered_images(lists, tmp_path):
    """7.0.png, 7.1.png, … of a sample, in the order of their numbers; one without images has its text."""
    half = len(lists) // 2
    for shard, (begin, end) in enumerate(((0, half), (half, len(lists)))):
        members = []
        for i in range(begin, end):
            images = [(f"{i}.{n}.png", pathlib.Path(path).read_bytes()) for n, path in enumerate(lists[i])]
            rest = [(f"{i}.txt", b"%d images" % len(images)), (f"{i}.cls", b"%d" % i), (f"{i}.left.png", b"")]
            members += [*reversed(images), *rest]
        write_shard(tmp_path / f"{shard}.tar", members)
    with pytest.warns(stoker.SkippedFilesWarning, match=r"'\d+\.left\.png', whose extension"):
        source = stoker.tar(str(tmp_path / "{0..1}.tar"), image="*.jpg;*.png", columns={"text": ".txt"})
    assert source._native.image_counts.tolist() == COUNTS
    assert source.skipped == {"*.png": COUNTS.count(0)}  # left.png, where there is no other image
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True}
    whole = [bytes_of(batch) for batch in make(lists)[0]]
    for made in (source, stoker.sized(source), pickle.loads(pickle.dumps(stoker.sized(source)))):
        loader = stoker.Loader(made, [stoker.processor(QWEN)], **options)
        assert [bytes_of(batch) for batch in loader] == whole
    batches = list(stoker.Loader(stoker.sized(source), [stoker.processor(QWEN)], batch_tokens=5500))
    assert sorted(itertools.chain(*(batch.label for batch in batches))) == list(range(len(lists)))
    with pytest.raises(stoker.UnimplementedError, match="a processor takes them"):
        stoker.Loader(source, [stoker.Resize(8)], batch_size=1)
    moved = [("a.0.png", b"1"), ("a.txt", b"x"), ("b.txt", b"x"), ("b.1.png", b"2")]
    write_shard(tmp_path / "one.tar", moved)
    text = {"columns": {"text": ".txt"}, "label": None}
    one = stoker.tar(tmp_path / "one.tar", image="*.png", **text)
    write_shard(
        tmp_path / "one.tar", [("a.0.png", b"1"), ("a.1.png", b"2"), ("a.txt", b"x"), ("b.txt", b"x")]
    )
    other = stoker.tar(tmp_path / "one.tar", image="*.png", **text)
    assert other._native.fingerprint != one._native.fingerprint
    write_shard(tmp_path / "one.tar", [("a.0.png", b"1"), ("a.1.webp", b"2"), ("README.md", b"")])
    with pytest.warns(stoker.SkippedFilesWarning, match=r"1 image is left out of its sample.*\*\.webp 1"):
        assert stoker.tar(tmp_path / "one.tar", image="*.png").skipped == {"*.webp": 1, ".md": 1}
    for members, more, words in (
        ([("a.0.png", b"1"), ("a.0.jpg", b"1")], {}, "has the images 'a.0.png' and 'a.0.jpg'"),
        ([("a.0.png", b"1"), ("b.0.png", b"1"), ("b.cls", b"1")], {}, "'b' has a label"),
        ([("a.0.png", b"1")], {"image": "*.png;jpg"}, "and others without"),
        ([("a.0.png", b"1")], {"columns": {"x": ".npy"}}, "'x' has arrays"),
        ([("a.webp", b"1")], {}, "no sample in 1 archive has an image .*they have .*webp 1"),
        ([("a.0.png", b"1"), ("b.0.png", b"1"), ("a.1.png", b"1")], {}, "'a' lie apart"),
        ([("a.0.png", b"1")], {"image": "*."}, "an extension that has"),
        ([(f"a.{i}.png", b"1") for i in range(1025)], {}, "more than 1024 images"),
    ):
        write_shard(tmp_path / "bad.tar", members)
        with pytest.raises(ValueError, match=words):
            stoker.tar(tmp_path / "bad.tar", **{"image": "*.jpg;*.png", **more})


def column_of(lists, kind):
    """Returns the lists of images as a column of pyarrow; those without images are empty or null in turn."""
    pa = pytest.importorskip("pyarrow")
    types = {
        "binary": pa.list_(pa.binary()),
        "large": pa.large_list(pa.large_binary()),
        "struct": pa.list_(pa.struct({"bytes": pa.binary(), "path": pa.string()})),
    }
    images = [[pathlib.Path(path).read_bytes() for path in each] for each in lists]
    if kind == "struct":
        images = [[{"bytes": image, "path": "a.png"} for image in each] for each in images]
    images[1] = None
    return pa.array(images, types[kind])


def write_arrow(path, **columns):
    pa = pytest.importorskip("pyarrow")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, pa.table(columns).schema) as stream:
        stream.write_table(pa.table(columns), max_chunksize=4)


@pytest.fixture(scope="module")
def arrow_files(lists, tmp_path_factory):
    """Returns the pattern of two files for each type of the column."""
    folder = tmp_path_factory.mktemp("arrow")
    texts = [f"{len(each)} images" for each in lists]
    for kind in ("binary", "large", "struct"):
        column = column_of(lists, kind)
        for shard, rows in enumerate((slice(0, 7), slice(7, None))):
            beside = {"label": list(range(len(lists)))[rows], "text": texts[rows]}
            write_arrow(folder / f"{kind}-{shard}.arrow", images=column[rows], **beside)
    return str(folder / "%s-?.arrow")


def of_arrow(pattern, sized=True):
    source = stoker.arrow(pattern, image="images", columns=["text"])
    return stoker.sized(source) if sized else source


@pytest.mark.parametrize("kind", ["binary", "large", "struct"])
def test_arrow_files_of_lists(lists, arrow_files, kind):
    """Batches are those of lists of files, whatever the type of the column."""
    source = of_arrow(arrow_files % kind, sized=False)
    assert source._native.image_counts.tolist() == COUNTS
    assert source.path(0, frame=1) == (arrow_files % kind).replace("?", "0")
    named = stoker.Loader(source, [stoker.processor(CLIP)], batch_size=len(lists), paths=True)
    assert [path == "" for path in next(iter(named)).path] == [count == 0 for count in COUNTS]
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True}
    whole = [bytes_of(batch) for batch in make(lists)[0]]
    for made in (source, stoker.sized(source), pickle.loads(pickle.dumps(stoker.sized(source)))):
        loader = stoker.Loader(made, [stoker.processor(QWEN)], **options)
        assert [bytes_of(batch) for batch in loader] == whole
    for before, after in itertools.pairwise((source, source.subset([3, 1]), source.subset([1, 3]))):
        assert before._native.fingerprint != after._native.fingerprint


@pytest.mark.parametrize("options", [{"batch_tokens": 5500}, {"batch_size": 2}])
def test_arrow_lists_in_ranks_and_states(lists, arrow_files, options):
    source = of_arrow(arrow_files % "struct")
    options = {"shuffle": True, "seed": 5, "sample_ids": True, **options}
    for threads, depth, world in ((1, 1, 1), (3, 3, 1), (2, 2, 2)):
        for rank in range(world):
            ranked = {**options, "rank": rank, "world": world}
            files, _ = make(lists, **ranked)
            whole = [bytes_of(batch) for _ in range(2) for batch in files]
            ranked |= {"depth": depth, "runtime": stoker.Runtime(threads=threads)}
            loader = stoker.Loader(source, [stoker.processor(QWEN)], **ranked)
            iterator = iter(loader)
            got = [bytes_of(next(iterator))]
            resumed = stoker.Loader(source, [stoker.processor(QWEN)], **ranked)
            resumed.load_state_dict(loader.state_dict())
            rest = [bytes_of(batch) for _ in range(2) for batch in resumed]
            assert got + rest[: len(whole) - 1] == whole
            got += [bytes_of(batch) for batch in iterator] + [bytes_of(batch) for batch in loader]
            assert got == whole


@pytest.mark.parametrize("bad", [b"no image", b"", None])
def test_a_bad_image_of_an_arrow_list(lists, tmp_path, bad):
    column = column_of(lists, "binary").to_pylist()
    column[3][2] = bad
    texts = [f"{count} images" for count in COUNTS]
    write_arrow(tmp_path / "0.arrow", images=column, label=list(range(len(lists))), text=texts)
    source = of_arrow(str(tmp_path / "0.arrow"), sized=False)
    assert source._native.image_counts.tolist() == COUNTS
    options = {"batch_size": 2, "sample_ids": True, "max_bad_fraction": 1}
    with pytest.raises(stoker.Error, match=r"\(image 2 of its sample\)") as raised:
        list(stoker.Loader(source, [stoker.processor(CLIP)], **options))
    assert raised.value.file == str(tmp_path / "0.arrow")
    loader = stoker.Loader(source, [stoker.processor(CLIP)], on_bad="drop", **options)
    ids = list(itertools.chain(*(batch.sample_id.tolist() for batch in loader)))
    assert ids == [i for i in range(len(lists)) if i != 3]
    with pytest.warns(UserWarning, match="1 of 15 samples .* has no known size; .*image 2 of its sample"):
        assert stoker.sized(source).unsized.tolist() == [3]


def test_only_chosen_rows_count(lists, tmp_path):
    """A row of too many images is refused by its number, and does no harm where it was not chosen."""
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"images": datasets.List(datasets.Image())})
    many = [lists[0], [lists[3][0]] * 1025, *lists[3:6]]
    datasets.Dataset.from_dict({"images": many}, features=features).save_to_disk(tmp_path / "many")
    dataset = datasets.load_from_disk(tmp_path / "many")
    with pytest.raises(
        ValueError, match="row 1 of column 'images' has 1025 images; at most 1024 are possible"
    ):
        stoker.from_hf(dataset)
    some = stoker.from_hf(dataset.select([0, 2, 3, 4]))
    assert some._native.counts == [max(map(len, lists[3:6]))]
    wanted = stoker.files([lists[0], *lists[3:6]])
    batches = [
        [bytes_of(batch) for batch in stoker.Loader(source, [stoker.processor(CLIP)], batch_size=2)]
        for source in (some, wanted)
    ]
    assert batches[0] == batches[1]


def test_what_arrow_lists_must_be(lists, arrow_files, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    source = of_arrow(arrow_files % "binary")
    for wrong, options in ((stoker.Resize((8, 8)), {}), (stoker.processor(QWEN), {"padding": "longest"})):
        with pytest.raises(stoker.UnimplementedError, match="have any number of images"):
            stoker.Loader(source, [wrong], batch_size=1, **options)
    with pytest.raises(stoker.UnimplementedError, match="have any number of images"):
        stoker.clips(source, frames=2)
    many = pa.array([[b"x"], [b""] * 10**6], pa.list_(pa.binary()))
    write_arrow(tmp_path / "many.arrow", images=many)
    with pytest.raises(ValueError, match="row 1 of column 'images' has 1000000 images; at most 1024"):
        stoker.arrow(tmp_path / "many.arrow", image="images")
    only_path = pa.array([[], [{"bytes": b"x", "path": None}, {"bytes": None, "path": "a.jpg"}]])
    write_arrow(tmp_path / "path.arrow", images=only_path)
    with pytest.raises(ValueError, match="image 1 of row 1 of column 'images' has no bytes"):
        stoker.arrow(tmp_path / "path.arrow", image="images")
    parquet.write_table(pa.table({"images": many}), tmp_path / "many.parquet")
    with pytest.raises(ValueError, match=r"is list<.*Lists of images are taken from Arrow files"):
        stoker.parquet(tmp_path / "many.parquet", image="images")
    write_arrow(tmp_path / "text.arrow", images=pa.array([[], None], pa.list_(pa.binary())), text=["a", "b"])
    (batch,) = stoker.Loader(of_arrow(tmp_path / "text.arrow"), [stoker.processor(QWEN)], batch_size=2)
    assert batch.text == ["a", "b"] and len(batch.pixel_values.values) == 0


def test_hugging_face_lists(lists, tmp_path):
    datasets = pytest.importorskip("datasets")
    kinds = {"images": datasets.List(datasets.Image()), "label": datasets.Value("int64")}
    features = datasets.Features({**kinds, "text": datasets.Value("string")})
    texts = [f"{count} images" for count in COUNTS]
    columns = {"images": lists, "label": range(len(lists)), "text": texts}
    of_paths = datasets.Dataset.from_dict(columns, features=features)
    with_null = datasets.Dataset.from_dict(
        {**columns, "images": [lists[0], None, *lists[2:]]}, features=features
    )
    with_null.save_to_disk(tmp_path / "files", num_shards=3)
    of_files = datasets.load_from_disk(tmp_path / "files")
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "sample_ids": True}
    whole = [bytes_of(batch) for batch in make(lists)[0]]
    order = [8, 1, 3, 3, 14, 0]
    chosen = [
        bytes_of(batch)
        for batch in stoker.Loader(source_of(lists).subset(order), [stoker.processor(QWEN)], batch_size=4)
    ]
    for dataset, where in ((of_paths, "in files"), (of_files, "in 3 Arrow files")):
        source = stoker.from_hf(dataset, columns=["text"])
        assert repr(source) == f"stoker.from_hf(15 samples {where})"
        assert source._native.image_counts.tolist() == COUNTS
        for made in (stoker.sized(source), pickle.loads(pickle.dumps(source))):
            loader = stoker.Loader(made, [stoker.processor(QWEN)], **options)
            assert [bytes_of(batch) for batch in loader] == whole
        some = stoker.sized(stoker.from_hf(dataset.select(order), image="images", columns=["text"]))
        assert [
            bytes_of(batch) for batch in stoker.Loader(some, [stoker.processor(QWEN)], batch_size=4)
        ] == chosen
        (batch,) = stoker.Loader(
            stoker.from_hf(dataset.select([1, 5])), [stoker.processor(QWEN)], batch_size=2
        )
        assert len(batch.pixel_values) == 2 and len(batch.pixel_values.values) == 0
    in_memory = datasets.load_from_disk(tmp_path / "files", keep_in_memory=True)
    with pytest.raises(ValueError, match=r"lists of images in memory.*save_to_disk\(\)"):
        stoker.from_hf(in_memory)
    url = [lists[0], ["a.png", "https://example.com/a.jpg"]]
    of_urls = datasets.Dataset.from_dict(
        {"images": url}, features=datasets.Features({"images": kinds["images"]})
    )
    with pytest.raises(ValueError, match="image 1 of row 1 of column 'images' is at 'https"):
        stoker.from_hf(of_urls)
    nothing = [lists[0], [None]]
    of_nothing = datasets.Dataset.from_dict({"images": nothing}, features=of_urls.features)
    with pytest.raises(ValueError, match="image 0 of row 1 of column 'images' has no image"):
        stoker.from_hf(of_nothing)
