"""Loaders whose batches have rows of SigLIP2's processor in lengths of buckets."""

import copy
import itertools
import json
import pathlib
import pickle

import numpy as np
import processor_golden
import pytest
import stoker
from processor_rows import COUNT, SIZES, bytes_of

NAFLEX, CLIP, QWEN = (processor_golden.CONFIGS[name] for name in ("siglip2", "clip", "qwen2-vl"))
LENGTHS = (16, 64, 128, 576)
BUDGET = 600


def make(folder, config=NAFLEX, before=(), buckets=LENGTHS, **options):
    options = {"shuffle": True, "seed": 5, "sample_ids": True, "batch_tokens": BUDGET, "depth": 1, **options}
    buckets = stoker.Buckets(buckets) if isinstance(buckets, tuple) else buckets
    processor = stoker.processor(config)
    return stoker.Loader(stoker.image_folder(folder), [*before, processor], buckets=buckets, **options)


def check(batch, source, config=NAFLEX):
    """Compares each row with what the processor of this length makes of its file. Returns the ids."""
    rows, length, _ = batch.pixel_values.shape
    assert length in LENGTHS and rows * length <= BUDGET
    processor = stoker.processor(config, max_num_patches=length)
    for row, sample in enumerate(batch.sample_id.tolist()):
        for name, array in processor(source.path(sample)).items():
            assert batch[name].dtype == array.dtype and np.array_equal(batch[name][row], array[0]), name
        assert batch.label[row] == "ab".index(pathlib.Path(source.path(sample)).parent.name)
    assert batch.pixel_values.flags.c_contiguous
    return batch.sample_id.tolist()


@pytest.mark.parametrize("known", ["plain", "indexed"])
def test_rows_are_those_of_the_processor(folders, known):
    """Sizes of images need not be known."""
    loader = make(folders[known])
    for epoch in range(3):
        batches = list(loader.epoch(epoch))
        ids = itertools.chain(*(check(batch, loader.source) for batch in batches))
        assert sorted(ids) == list(range(COUNT)) and len(batches) == len(loader)
    assert batches[0]._fields[:4] == ("pixel_values", "label", "pixel_attention_mask", "spatial_shapes")
    assert loader.stats()["batch_fill"] == pytest.approx(
        sum(batch.pixel_attention_mask.size for batch in batches) / len(batches) / BUDGET
    )


def test_rows_are_those_of_transformers(folders):
    """Rows of the pictures of which there are digests."""
    golden = json.loads(processor_golden.FILE.read_text())
    for length in (128, 576):
        loader = make(folders["plain"], buckets=(length,))
        digests = golden[f"siglip2-{length}, torchvision"]
        seen = set()
        for batch in loader:
            assert batch.pixel_values.shape[1] == length
            for row, sample in enumerate(batch.sample_id.tolist()):
                picture = int(pathlib.Path(loader.source.path(sample)).stem) % len(SIZES)
                if picture >= len(digests):
                    continue
                names = ("pixel_values", "pixel_attention_mask", "spatial_shapes")
                arrays = {name: batch[name][row : row + 1] for name in names}
                assert processor_golden.digest(arrays) == digests[picture]
                seen.add(picture)
        assert len(seen) == len(digests)


def test_flips(folders):
    flip = [stoker.RandomHorizontalFlip(1), stoker.RandomVerticalFlip(0)]
    loader = make(folders["plain"], before=flip, buckets=(128,))
    processor = stoker.processor(NAFLEX, max_num_patches=128)
    for batch in loader:
        for row, sample in enumerate(batch.sample_id.tolist()):
            image = stoker.decode_image(loader.source.path(sample))[:, ::-1]
            want = processor(stoker._pixels.encoded(np.ascontiguousarray(image)))
            assert np.array_equal(batch.pixel_values[row], want["pixel_values"][0])


@pytest.mark.parametrize("executor", ["threads", "tbb"])
def test_bytes_are_the_same_for_any_threads_and_depth(folders, executor):
    wanted = None
    for threads, depth in itertools.product((1, 3), (1, 3)):
        runtime = stoker.Runtime(threads=threads, executor=executor)
        loader = make(folders["plain"], before=[stoker.RandomHorizontalFlip()], runtime=runtime, depth=depth)
        got = [bytes_of(batch) for epoch in range(2) for batch in loader.epoch(epoch)]
        wanted = wanted or got
        assert got == wanted and len(got) == 2 * len(loader)
        loader.close()


@pytest.mark.parametrize("remainder", ["uneven", "drop", "pad"])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_ranks_have_one_length_in_a_step(folders, world, remainder):
    loaders = [
        make(folders["plain"], rank=rank, world=world, remainder=remainder, buckets=(16, 64, 128))
        for rank in range(world)
    ]
    ranks = [list(loader) for loader in loaders]
    for step in itertools.zip_longest(*ranks):
        assert len({batch.pixel_values.shape[1] for batch in step if batch is not None}) == 1
    ids = sorted(itertools.chain(*(check(batch, loaders[0].source) for rank in ranks for batch in rank)))
    assert [len(loader) for loader in loaders] == [len(rank) for rank in ranks]
    if remainder == "uneven":
        assert ids == list(range(COUNT))
    else:
        assert len({len(rank) for rank in ranks}) == 1
    if remainder == "pad":
        assert set(ids) == set(range(COUNT)) and len(ids) < COUNT + world
    if remainder == "drop":
        assert len(set(ids)) == len(ids) > COUNT - world


def test_a_multiple(folders):
    loader = make(folders["plain"], buckets=stoker.Buckets((16, 64), multiple=4), batch_tokens=300,
                  drop_remainder=True)  # fmt: skip
    rows = [len(batch.sample_id) for batch in loader]
    assert rows and all(row % 4 == 0 for row in rows)


def test_states(folders):
    loader = make(folders["plain"])
    whole = [bytes_of(batch) for batch in loader.epoch(0)]
    iterator = iter(loader)
    for taken in range(1, len(whole)):
        next(iterator)
        state = loader.state_dict()
        for resumed in (make(folders["plain"]), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
            resumed.load_state_dict(state)
            assert [bytes_of(batch) for batch in resumed] == whole[taken:]
            resumed.close()
    ranks = [make(folders["plain"], rank=rank, world=2, remainder="drop") for rank in range(2)]
    batches = iter(ranks[1])
    next(batches)
    state = ranks[1].state_dict()
    ranks[0].load_state_dict(state)
    want = [bytes_of(batch) for batch in make(folders["plain"], world=2, remainder="drop")]
    assert [bytes_of(batch) for batch in ranks[0]] == want[1:]
    for options, words in (
        ({"buckets": stoker.Buckets(LENGTHS, (1, 1, 1, 2))}, "buckets was .* and is"),
        ({"buckets": stoker.Buckets(LENGTHS, multiple=1)}, None),
        ({"batch_tokens": BUDGET + 1}, "batch_tokens was 600 and is 601"),
        ({"buckets": None}, "buckets was 16,64,128,576 and is none"),
        ({"world": 3}, "world was 2 and is 3"),
        ({"world": 3, "seed": 6}, "seed was 5 and is 6; world was 2 and is 3"),
    ):
        options = {"world": 2, "remainder": "drop", **options}
        other = make(folders["plain" if options.get("buckets", 1) else "indexed"], **options)
        if words is None:
            other.load_state_dict(state)
            continue
        with pytest.raises(stoker.FailedPreconditionError, match=words) as caught:
            other.load_state_dict(state)
        assert "hash" not in str(caught.value)
    without = make(folders["indexed"], buckets=None, world=3).state_dict()
    with pytest.raises(
        stoker.FailedPreconditionError, match="buckets was none and is 16,64,128,576; world was 3 and is 2"
    ):
        make(folders["indexed"], world=2).load_state_dict(without)


@pytest.mark.parametrize("remainder", ["uneven", "pad"])
def test_states_before_a_step_of_too_few_samples(folders, remainder):
    def ranks():
        return [
            make(folders["plain"], buckets=(128, 576), rank=rank, world=4, remainder=remainder)
            for rank in range(4)
        ]

    first = ranks()
    whole = [[bytes_of(batch) for batch in loader.epoch(0)] for loader in first]
    steps = len(whole[0])
    assert [len(batches) for batches in whole[1:]] == [steps - (remainder == "uneven")] * 3
    iterator = iter(first[0])
    for _ in range(steps - 1):
        next(iterator)
    state = first[0].state_dict()
    for resumed, batches in zip(ranks(), whole, strict=True):
        resumed.load_state_dict(state)
        assert [bytes_of(batch) for batch in resumed] == batches[steps - 1 :]


def test_states_begin_with_a_step(folders):
    """The batches of a step have one length, also after a state that was changed by hand."""
    loader = make(folders["plain"], world=2, rank=1, remainder="drop")
    whole = [bytes_of(batch) for batch in loader.epoch(0)]
    state = make(folders["plain"], world=2, remainder="drop").state_dict()
    with pytest.raises(ValueError, match="the state's start 1 is not that of a step"):
        loader.load_state_dict({**state, "start": 1})
    loader.load_state_dict({**state, "start": 2})
    assert [bytes_of(batch) for batch in loader] == whole[1:]


def test_bad_samples(indexed):
    """Any sample is a substitute: it gets the length of the batch."""
    source = stoker.image_folder(indexed)
    bad = (1, 4)
    for sample in bad:
        pathlib.Path(source.path(sample)).write_bytes(b"")
    with pytest.raises(stoker.DataLossError):
        list(make(indexed))
    for on_bad in ("drop", "substitute"):
        ids = []
        for batch in make(indexed, on_bad=on_bad, max_bad_fraction=1):
            ids += check(batch, source)
        assert not {*bad} & {*ids} and len(ids) == COUNT - (len(bad) if on_bad == "drop" else 0)
    for path in indexed.glob("*/*.png"):
        path.write_bytes(b"")
    assert all(len(batch.sample_id) == 0 for batch in make(indexed, on_bad="drop", max_bad_fraction=1))


def refused(kind, words, source, transforms, **options):
    with pytest.raises(kind, match=words):
        stoker.Loader(
            source, transforms, **{"buckets": stoker.Buckets((64,)), "batch_tokens": 600, **options}
        )


def test_errors(folders):
    source, naflex = stoker.image_folder(folders["indexed"]), stoker.processor(NAFLEX)
    for config in (CLIP, QWEN, {**NAFLEX, "do_resize": False}):
        refused(ValueError, "there are buckets, and no processor", source, [stoker.processor(config)])
    refused(ValueError, "no processor resizes", source, [stoker.Resize((8, 8))], batch_size=4,
            batch_tokens=None)  # fmt: skip
    refused(ValueError, "there is no batch_tokens", source, [naflex], batch_size=4, batch_tokens=None)
    refused(ValueError, 'padding is "longest"', source, [naflex], padding="longest")
    refused(ValueError, "tokens is 'label'", source, [naflex], tokens="label")
    refused(ValueError, "batch_tokens is 63, which leaves no room for 1 row of 64 patches", source, [naflex],
            batch_tokens=63)  # fmt: skip
    words = "600, which leaves no room for 10 rows of 64 patches.*shorter length or a lower multiple"
    refused(ValueError, words, source, [naflex], buckets=stoker.Buckets((64,), multiple=10))
    refused(ValueError, "batch_size 4, which leaves no room for 8 rows of 64 patches", source, [naflex],
            buckets=stoker.Buckets((64,), multiple=8), batch_size=4)  # fmt: skip
    large = stoker.processor(NAFLEX, patch_size=64)
    refused(stoker.ResourceExhaustedError, "4 GiB.*shorter length", source, [large],
            buckets=stoker.Buckets((2**20,)), batch_tokens=2**20)  # fmt: skip
    several = stoker.files([[source.path(0), source.path(1)], []])
    refused(stoker.UnimplementedError, "buckets.*any number of images", several, [naflex])
    words = 'buckets must be a str, such as "128,256", or a stoker.Buckets, not'
    refused(TypeError, words, source, [naflex], buckets=(64,))
    refused(ValueError, 'buckets is "64,"', source, [naflex], buckets="64,")
    most = stoker.Buckets((1,) * 255 + (2**20,), multiple=2**20)
    refused(ValueError, "1048576 rows of 1 patches", source, [naflex], buckets=most)
    refused(ValueError, "1 to 1048576", source, [naflex], buckets="9" * 5000)


@pytest.mark.parametrize(
    "arguments, kind, words",
    [
        (((),), ValueError, "lengths has 0 elements"),
        (((1,) * 257,), ValueError, "lengths has 257 elements"),
        (((0,),), ValueError, r"lengths\[0\] is 0"),
        (((-5,),), ValueError, r"lengths\[0\] is -5"),
        (((2**20 + 1,),), ValueError, r"lengths\[0\] is 1048577"),
        (((1.5,),), TypeError, r"lengths\[0\] must be an integer"),
        (((True,),), TypeError, r"lengths\[0\] must be an integer"),
        ((("a",),), TypeError, r"lengths\[0\] must be an integer"),
        ((5,), TypeError, "lengths must be a sequence"),
        (((1, 2), (1,)), ValueError, "weights has 1 element; it must have 2, one for each length"),
        (((1, 2), (0, 0)), ValueError, "weights is 0 for every length"),
        (((1, 2), (1, -1)), ValueError, r"weights\[1\] is -1"),
        (((1, 2), (1, float("nan"))), ValueError, r"weights\[1\] is nan"),
        (((1, 2), (1, float("inf"))), ValueError, r"weights\[1\] is inf"),
        (((1, 2), ("a", 1)), TypeError, "weights"),
        (((1, 2), None, 0), ValueError, "multiple is 0"),
        (((1, 2), None, 1.0), TypeError, "multiple must be an integer"),
    ],
)
def test_hostile_buckets(arguments, kind, words):
    with pytest.raises(kind, match=words):
        stoker.Buckets(*arguments)


def test_buckets_are_values(folders):
    one = stoker.Buckets(np.array([128, 256]), weights=[1, np.float32(2)], multiple=np.int64(8))
    assert one == stoker.Buckets((128, 256), (1, 2), 8) and hash(one) == hash(copy.deepcopy(one))
    assert pickle.loads(pickle.dumps(one)) == one != stoker.Buckets((128, 256))
    assert stoker.Buckets().lengths == (128, 256, 576, 784, 1024)
    text = [bytes_of(batch) for batch in make(folders["plain"], buckets="16:1,64,128,576")]
    assert text == [bytes_of(batch) for batch in make(folders["plain"])]


def test_maps_of_batches(folders):
    seen = []
    source, processor = stoker.image_folder(folders["plain"]), stoker.processor(NAFLEX)
    own = stoker.Map(lambda batch: seen.append(batch.pixel_values.shape))
    options = {"batch_tokens": BUDGET, "buckets": stoker.Buckets(LENGTHS)}
    with stoker.Loader(source, [processor, own], **options) as loader:
        batches = list(loader)
    assert seen[: len(batches)] == [batch.pixel_values.shape for batch in batches]


def test_a_function_of_rows(folders):
    """It gets rows of the length of their batch, and may change them."""
    source, processor = stoker.image_folder(folders["plain"]), stoker.processor(NAFLEX)

    def negate(pixels, label, mask, shape):
        assert pixels.shape == (len(mask), 768) and mask.sum() == shape.prod()
        np.negative(pixels, out=pixels)

    options = {"batch_tokens": BUDGET, "buckets": stoker.Buckets(LENGTHS)}
    changed = stoker.Loader(source, [processor, stoker.Map(negate, rows=True)], **options)
    for batch, other in zip(changed, stoker.Loader(source, [processor], **options), strict=True):
        assert np.array_equal(batch.pixel_values, -other.pixel_values)


def test_torch(folders):
    torch = pytest.importorskip("torch")
    torch_loaders = pytest.importorskip("stoker.torch")
    source, processor = stoker.image_folder(folders["plain"]), stoker.processor(NAFLEX)
    options = {"batch_tokens": BUDGET, "buckets": stoker.Buckets(LENGTHS), "shuffle": True, "seed": 5}
    loader = torch_loaders.DataLoader(source, [processor], sample_ids=True, **options)
    for batch, other in zip(loader, make(folders["plain"]), strict=True):
        assert torch.equal(batch.pixel_values, torch.from_numpy(other.pixel_values))
        assert torch.equal(batch.pixel_attention_mask.sum(1), batch.spatial_shapes.prod(1))
    assert len(loader) == len(make(folders["plain"]))
    assert sorted(loader.sampler) == list(range(COUNT))


def test_jax(folders):
    jax = pytest.importorskip("jax")
    loader = make(folders["plain"])
    for made, batch in zip(loader.to_jax().epoch(0), loader.epoch(0), strict=True):
        assert isinstance(made.pixel_values, jax.Array)
        np.testing.assert_array_equal(made.pixel_values, batch.pixel_values)


def test_tensorflow(folders):
    tf = pytest.importorskip("tensorflow")
    loader = make(folders["plain"])
    dataset = loader.as_tf_dataset(epoch=0)
    assert dataset.element_spec["pixel_values"] == tf.TensorSpec((None, None, 768), tf.float32)
    assert dataset.element_spec["pixel_attention_mask"] == tf.TensorSpec((None, None), tf.int32)
    assert dataset.element_spec["spatial_shapes"] == tf.TensorSpec((None, 2), tf.int64)
    assert dataset.cardinality() == len(loader)
    for element, batch in zip(dataset, loader.epoch(0), strict=True):
        np.testing.assert_array_equal(element["pixel_values"], batch.pixel_values)
