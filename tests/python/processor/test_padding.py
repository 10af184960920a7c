"""Loaders that pad the rows of a processor to the longest of their batch."""

import copy
import itertools
import math
import pathlib
import pickle

import numpy as np
import processor_golden
import pytest
import stoker
from processor_rows import COUNT, bytes_of, index, write

CONFIGS = processor_golden.CONFIGS
QWEN, NAFLEX, CLIP = CONFIGS["qwen2-vl"], CONFIGS["siglip2"], CONFIGS["clip"]
VARYING = ("siglip2", "qwen2-vl", "qwen3-vl", "llava-next", "llava-onevision", "internvl")


def make(folder, config=QWEN, of=(), before=(), **options):
    options = {"shuffle": True, "seed": 5, "sample_ids": True, "depth": 1, **options}
    processor = stoker.processor(config, **dict(of))
    return stoker.Loader(stoker.image_folder(folder), [*before, processor], padding="longest", **options)


def check(batch, source, processor, longest=None):
    """Compares each row with what the processor makes of its file: then zeros. Returns the ids."""
    ids = batch.sample_id.tolist()
    pixels, mask = batch.pixel_values, batch.pixel_attention_mask
    assert mask.shape == pixels.shape[:2] and mask.dtype == np.int32
    assert pixels.flags.c_contiguous and len(pixels) == len(ids)
    counts = []
    for row, sample in enumerate(ids):
        want = dict(processor(source.path(sample)))
        values = want.pop("pixel_values")
        own = want.pop("pixel_attention_mask", None)
        if own is not None:
            values = values[0][: own.sum()]
        elif values.ndim == 5:
            values = values[0]
        counts.append(len(values))
        assert pixels.dtype == values.dtype
        assert np.array_equal(pixels[row, : len(values)], values) and not pixels[row, len(values) :].any()
        assert mask[row, : len(values)].all() and not mask[row, len(values) :].any()
        for name, figures in want.items():
            assert np.array_equal(batch[name][row], figures[0])
        assert batch.label[row] == "ab".index(pathlib.Path(source.path(sample)).parent.name)
    assert pixels.shape[1] == (longest or max(counts))
    return ids


@pytest.mark.parametrize("family", VARYING)
@pytest.mark.parametrize("by", ["batch_size", "batch_tokens"])
def test_rows_are_those_of_the_processor(folders, family, by):
    """All families whose images differ in the number of rows, in batches of rows and of tokens."""
    processor = stoker.processor(CONFIGS[family])
    tokens = 4700 if family.startswith(("siglip", "qwen")) else 30
    loader = make(folders["indexed"], CONFIGS[family], **{by: 4 if by == "batch_size" else tokens})
    ids = []
    for batch in loader:
        ids.append(check(batch, loader.source, processor))
        assert batch._fields[:3] == ("pixel_values", "label", "pixel_attention_mask")
        if by == "batch_tokens":
            assert math.prod(batch.pixel_values.shape[:2]) <= tokens
    assert sorted(itertools.chain(*ids)) == list(range(COUNT)) and len(ids) == len(loader)
    assert loader._native.ragged == []


def test_llava_is_padded_as_transformers_pads_it(folders):
    """The processor pads the images of a call as the loader pads those of a batch."""
    config = CONFIGS["llava-next"]
    loader, processor = make(folders["indexed"], config, batch_size=5), stoker.processor(config)
    for batch in loader:
        want = processor([loader.source.path(sample) for sample in batch.sample_id.tolist()])
        assert np.array_equal(batch.pixel_values, want["pixel_values"])


def test_unknown_sizes(folders):
    """Rows are as long as the longest that the processor makes; batch_tokens needs sizes."""
    small = {"max_pixels": 56 * 56 * 4}
    processor = stoker.processor(QWEN, **small)
    loader = make(folders["plain"], of=small, batch_size=4)
    (most,) = {batch.pixel_values.shape[1] for batch in loader}
    for batch in loader:
        check(batch, loader.source, processor, longest=most)
    assert most >= 64
    naflex = make(folders["plain"], NAFLEX, batch_size=4)
    assert {batch.pixel_values.shape[1] for batch in naflex} == {256}
    with pytest.raises(stoker.FailedPreconditionError, match="no known size"):
        make(folders["plain"], batch_tokens=4700)


def test_tokens_of_a_column(folders):
    """A column says what counts; pixel_values are padded to the most patches of the batch."""
    loader = make(folders["indexed"], batch_tokens=6, tokens="label", batch_size=6)
    processor = stoker.processor(QWEN)
    ids = [check(batch, loader.source, processor) for batch in loader]
    assert sorted(itertools.chain(*ids)) == list(range(COUNT))
    for batch in loader:
        assert len(batch.label) * batch.label.max() <= 6


@pytest.mark.parametrize("options", [{"batch_size": 4}, {"batch_tokens": 4700}])
@pytest.mark.parametrize("config", [QWEN, NAFLEX])
def test_bytes_are_the_same_for_any_threads_and_depth(folders, config, options):
    wanted = None
    for threads, depth in itertools.product((1, 3), (1, 3)):
        runtime = stoker.Runtime(threads=threads)
        flips = [stoker.RandomHorizontalFlip()]
        loader = make(
            folders["indexed"], config, before=flips, runtime=runtime, **{**options, "depth": depth}
        )
        got = [bytes_of(batch) for batch in loader] + [bytes_of(batch) for batch in loader]
        wanted = wanted or got
        assert got == wanted and len(got) == 2 * len(loader)
        loader.close()


@pytest.mark.parametrize("options", [{"batch_tokens": 4700}, {"batch_size": 2}])
def test_ranks_and_states(folders, options):
    loader = make(folders["indexed"], **options)
    whole = [bytes_of(batch) for batch in loader.epoch(0)]
    batches = [batch.sample_id.tolist() for batch in loader.epoch(0)]
    for world in (1, 2, 3, 8):
        ids = []
        for rank in range(world):
            if rank < len(batches) or "batch_size" in options:
                part = make(folders["indexed"], rank=rank, world=world, **options)
                ids += itertools.chain(*(batch.sample_id.tolist() for batch in part))
        assert sorted(ids) == list(range(COUNT))
    iterator = iter(loader)
    for taken in range(1, 3):
        next(iterator)
        state = loader.state_dict()
        for resumed in (make(folders["indexed"], **options), copy.deepcopy(loader),
                        pickle.loads(pickle.dumps(loader))):  # fmt: skip
            resumed.load_state_dict(state)
            assert [bytes_of(batch) for batch in resumed] == whole[taken:]
    ids = []
    for rank in range(2):
        resumed = make(folders["indexed"], rank=rank, world=2, **options)
        resumed.load_state_dict(state)
        ids += itertools.chain(*(batch.sample_id.tolist() for batch in resumed))
    assert sorted(ids) == sorted(itertools.chain(*batches[2:]))
    packed = stoker.Loader(loader.source, [stoker.processor(QWEN)], shuffle=True, seed=5, **options)
    with pytest.raises(stoker.FailedPreconditionError, match="padding was longest and is none") as caught:
        packed.load_state_dict(state)
    assert "hash" not in str(caught.value)


@pytest.mark.parametrize("options", [{"batch_size": 5}, {"batch_tokens": 4700}])
def test_an_index_that_lies(indexed, options):
    """Nothing is written outside a row: an error, no row, or a substitute that fits; smaller files do."""
    source, bad = stoker.image_folder(indexed), 1
    large = pathlib.Path(source.path(bad))
    write(large, 3000, 2700)
    more = {"of": {"max_pixels": 2**23}, "max_bad_fraction": 1, **options}
    if "batch_tokens" in options:
        more["batch_tokens"] = 20_000
    with pytest.raises(stoker.DataLossError, match=r"02\.png.*more than the \d+ that its row has room for"):
        list(make(indexed, **more))
    processor = stoker.processor(QWEN, max_pixels=2**23)
    longest = {}
    for on_bad in ("drop", "substitute"):
        loader = make(indexed, on_bad=on_bad, **more)
        ids = []
        for number, batch in enumerate(loader):
            longest.setdefault(number, batch.pixel_values.shape[1])
            ids += check(batch, source, processor, longest[number])  # the index's, for each policy
        assert bad not in ids and len(ids) == COUNT - (on_bad == "drop")
    write(large, 3, 2)
    batches = list(make(indexed, **more))
    for number, batch in enumerate(batches):
        check(batch, source, processor, longest[number])


@pytest.mark.parametrize("options", [{"batch_size": 1}, {"batch_size": 2}, {"batch_tokens": 4700}])
def test_substitutes_for_small_images(indexed, options):
    """Few images are small enough for the row of a small one, and one of them is found."""
    source, processor = stoker.image_folder(indexed), stoker.processor(QWEN)
    by_size = sorted(range(COUNT), key=lambda i: math.prod(source.image_size(i)))
    for bad in by_size[:2]:
        pathlib.Path(source.path(bad)).write_bytes(b"")
    loader = make(indexed, on_bad="substitute", max_bad_fraction=1, **options)
    ids = list(itertools.chain(*(batch.sample_id.tolist() for batch in loader)))
    assert not {*by_size[:2]} & {*ids} and len(ids) == COUNT
    assert [check(batch, source, processor, batch.pixel_values.shape[1]) for batch in loader]


@pytest.mark.parametrize("world", [1, 2])
def test_refused_images_are_no_batch_of_their_own(indexed, world):
    """An image that the processor refuses is among the largest, and all samples can be its substitutes."""
    source = stoker.image_folder(indexed)
    write(pathlib.Path(source.path(2)), 1000, 3)  # Qwen refuses aspect ratios above 200
    index(indexed)
    for on_bad in ("drop", "substitute"):
        ranks = [
            make(
                indexed,
                rank=rank,
                world=world,
                remainder="pad",
                batch_tokens=4700,
                on_bad=on_bad,
                max_bad_fraction=1,
            )
            for rank in range(world)
        ]
        batches = [list(loader) for loader in ranks]
        assert len({len(each) for each in batches}) == 1
        assert all(len(batch.sample_id) for batch in itertools.chain(*batches))
        ids = [i for batch in itertools.chain(*batches) for i in batch.sample_id.tolist()]
        assert 2 not in ids
        if world == 1:
            assert len(ids) == COUNT - (on_bad == "drop")


def test_batches_that_lose_all_rows(indexed):
    for path in indexed.glob("*/*.png"):
        path.write_bytes(b"")
    loader = make(indexed, batch_tokens=4700, on_bad="drop", max_bad_fraction=1)
    assert all(batch.pixel_values.shape[0] == 0 for batch in loader)


def test_errors(folders):
    with pytest.raises(
        ValueError, match=r'padding is "longest", and all rows of this processor have the same'
    ):
        make(folders["indexed"], CLIP, batch_size=4)
    with pytest.raises(ValueError, match=r'padding is "longest", and there is no processor'):
        stoker.Loader(stoker.image_folder(folders["plain"]), [stoker.Resize((8, 8))], batch_size=4,
                      padding="longest")  # fmt: skip
    with pytest.raises(ValueError, match="padding is 'shortest'; it must be one of 'none', 'longest'"):
        stoker.Loader(stoker.image_folder(folders["plain"]), [stoker.processor(QWEN)], batch_size=4,
                      padding="shortest")  # fmt: skip
    with pytest.raises(ValueError, match=r"sample 1 has \d+ patches, and batch_tokens is 100"):
        make(folders["indexed"], batch_tokens=100)


def test_maps_of_batches(folders):
    seen = []
    source, processor = stoker.image_folder(folders["indexed"]), stoker.processor(QWEN)
    own = stoker.Map(lambda batch: seen.append(batch.pixel_values.shape))
    with stoker.Loader(source, [processor, own], batch_tokens=4700, padding="longest") as loader:
        batches = list(loader)
    assert seen[: len(batches)] == [batch.pixel_values.shape for batch in batches]


def test_a_function_of_rows(folders):
    """It gets padded rows, and may change them."""
    source, processor = stoker.image_folder(folders["indexed"]), stoker.processor(QWEN)

    def negate(pixels, label, mask, grid):
        assert pixels.shape == (len(mask), 1176) and mask.sum() == grid.prod()
        np.negative(pixels, out=pixels)

    options = {"batch_tokens": 4700, "padding": "longest", "paths": True}
    for batch in stoker.Loader(source, [processor, stoker.Map(negate, rows=True)], **options):
        for row, path in enumerate(batch.path):
            values = processor(path)["pixel_values"]
            assert np.array_equal(batch.pixel_values[row, : len(values)], -values)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch(folders, dtype):
    torch = pytest.importorskip("torch")
    torch_loaders = pytest.importorskip("stoker.torch")
    source = stoker.image_folder(folders["indexed"])
    options = {"batch_size": None, "batch_tokens": 4700, "padding": "longest", "shuffle": True}
    processor = stoker.processor(QWEN, dtype=dtype)
    for batch in torch_loaders.DataLoader(source, [processor], sample_ids=True, **options):
        assert batch.pixel_values.dtype == getattr(torch, dtype)
        assert batch.pixel_values.shape[:2] == batch.pixel_attention_mask.shape
        assert torch.equal(batch.pixel_attention_mask.sum(1), batch.image_grid_thw.prod(1))


def test_jax(folders):
    jax = pytest.importorskip("jax")
    loader = make(folders["indexed"], batch_tokens=4700)
    for made, batch in zip(loader.to_jax().epoch(0), loader.epoch(0), strict=True):
        assert isinstance(made.pixel_values, jax.Array)
        np.testing.assert_array_equal(made.pixel_values, batch.pixel_values)
        np.testing.assert_array_equal(made.pixel_attention_mask, batch.pixel_attention_mask)


def test_tensorflow(folders):
    tf = pytest.importorskip("tensorflow")
    loader = make(folders["indexed"], batch_tokens=4700)
    dataset = loader.as_tf_dataset(epoch=0)
    assert dataset.element_spec["pixel_values"] == tf.TensorSpec((None, None, 1176), tf.float32)
    assert dataset.element_spec["pixel_attention_mask"] == tf.TensorSpec((None, None), tf.int32)
    assert dataset.cardinality() == len(loader)
    for element, batch in zip(dataset, loader.epoch(0), strict=True):
        np.testing.assert_array_equal(element["pixel_values"], batch.pixel_values)
        np.testing.assert_array_equal(element["pixel_attention_mask"], batch.pixel_attention_mask)
