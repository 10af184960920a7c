"""stoker.torch.DataLoader, and stoker's tensors in PyTorch. Skips if PyTorch is missing."""

import gc
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811
from interrupts import interrupted  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()]


def make(folder, transforms=TRAIN, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 1, **options}
    return stoker.torch.DataLoader(stoker.image_folder(folder), transforms, **options)


def kept(batches):
    """Returns copies of all batches, as NumPy arrays of bytes."""
    return [tuple(t.view(torch.uint8).numpy().copy() for t in batch) for batch in batches]


def same(some, others):
    assert len(some) == len(others)
    for columns, expected in zip(some, others):
        for column, wanted in zip(columns, expected):
            np.testing.assert_array_equal(column, wanted)


def test_an_interrupt_loses_no_batch(made):
    options = {"batch_size": 4, "sample_ids": True, "runtime": stoker.Runtime(threads=1), "depth": 1}
    loader = make(made, **options)
    numpys = stoker.Loader(stoker.image_folder(made), TRAIN, batch_size=4, shuffle=True, seed=1)

    def wanted(epoch):
        iterator = iter(numpys.epoch(epoch))
        return [iterator.sample_ids.tolist() for _ in iterator]

    def state():
        now = loader.state_dict()
        return now["epoch"], now["batch"]

    interrupted(lambda: iter(loader), lambda batch: batch[2].tolist(), wanted, state)


def test_single_samples_do_not_have_geometry(made):
    loader = make(made, [stoker.Resize((32, 32))], geometry=True)
    assert "geometry" in next(iter(loader))._fields
    with pytest.raises(stoker.UnimplementedError, match="geometry=True"):
        loader.dataset[0]


# --- tensors ----------------------------------------------------------------------------------------


def test_the_defaults(made):
    loader = stoker.torch.DataLoader(stoker.image_folder(made), [stoker.Resize((32, 32))])
    assert len(loader) == 60 and loader.batch_size == 1 and loader.device == torch.device("cpu")
    images, labels = next(iter(loader))
    assert images.shape == (1, 3, 32, 32) and images.dtype == torch.float32
    assert images.is_contiguous() and 0 <= images.min() < images.max() <= 1
    assert labels.shape == (1,) and labels.dtype == torch.int64 and labels.tolist() == [0]
    assert loader.classes == stoker.image_folder(made).classes


def test_padded_batches_have_sizes(made):
    loader = make(made, [stoker.Resize(30, max_size=44), stoker.PadTo(44)], dtype="uint8")
    for batch in loader:
        images, _, sizes = batch
        assert batch.image_size is sizes and sizes.dtype == torch.int32
        listed = stoker.unpadded(images, sizes, "NCHW")
        assert [image.shape for image in listed] == [(3, *size) for size in sizes.tolist()]
        assert listed[0].data_ptr() == images.data_ptr()
        for image, row in zip(listed, images):
            assert image.sum() == row.sum()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_the_loaders_own_bytes(made, dtype, layout):
    options = {"batch_size": 8, "shuffle": True, "seed": 1, "dtype": dtype, "layout": layout}
    plain = stoker.Loader(stoker.image_folder(made), TRAIN, **options)
    for given in (dtype, getattr(torch, dtype)):
        loader = make(made, dtype=given, layout=layout)
        batches = list(loader)
        assert {images.dtype for images, _ in batches} == {getattr(torch, dtype)}
        tensors = plain.to_device("cpu").epoch(0)
        same(kept(batches), kept(tuple(map(torch.from_dlpack, batch)) for batch in tensors))


def test_channels_last(made):
    images, _ = next(iter(make(made, layout="NHWC")))
    assert images.permute(0, 3, 1, 2).is_contiguous(memory_format=torch.channels_last)


def test_nothing_is_copied(made):
    loader = stoker.Loader(stoker.image_folder(made), TRAIN, batch_size=8)
    for images, labels in loader.to_device("cpu"):
        for tensor in (images, labels):
            address = np.asarray(tensor).ctypes.data
            assert torch.from_dlpack(tensor).data_ptr() == address
            assert torch.asarray(tensor).data_ptr() == address
    copied = torch.from_dlpack(images, copy=True)
    assert copied.data_ptr() != np.asarray(images).ctypes.data
    assert torch.equal(copied, torch.from_dlpack(images))


def test_tensors_are_writable_and_keep_their_memory(made):
    loader = make(made)
    wanted = kept(make(made))
    tensors = list(loader)
    assert loader.stats()["lent_batches"] == len(loader)
    first = tensors[0][0][0].clone()
    tensors[0][0][0].add_(1)
    assert torch.equal(tensors[0][0][0], first + 1)
    tensors[0][0][0].copy_(first)
    views = [(images[:], labels) for images, labels in tensors]
    del loader, tensors
    gc.collect()
    same(kept(views), wanted)


def test_tensors_give_back(made):
    loader = make(made)
    for _ in range(3):
        for images, labels in loader:
            (images.mean() + labels.sum()).item()
    del images, labels
    gc.collect()
    assert loader.stats()["lent_batches"] == 0


def test_a_step_with_gradients(made):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in make(made):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def test_soft_labels_and_no_labels(made):
    _, labels = next(iter(make(made, [*TRAIN, stoker.MixUp()])))
    assert labels.shape == (8, 3) and labels.dtype == torch.float32
    assert torch.allclose(labels.sum(1), torch.ones(8))
    rows = np.arange(12, dtype="int32").reshape(6, 2)
    alone = list(stoker.torch.DataLoader(stoker.arrays(rows), batch_size=4))
    assert [type(t) for t in alone] == [torch.Tensor] * 2
    np.testing.assert_array_equal(torch.cat(alone).numpy(), rows)


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_further_columns(made, device):
    paths = sorted(map(str, made.rglob("*.jpg")))
    weights = np.linspace(0, 1, 60, dtype=np.float32)
    source = stoker.files(paths, range(60), columns={"weight": weights})
    loader = stoker.torch.DataLoader(source, TRAIN, batch_size=8, shuffle=True, device=device)
    batches = 0
    for batch in loader:
        batches += 1
        images, labels, some = batch
        assert batch["label"] is labels and batch["weight"] is some and batch.image is images
        np.testing.assert_array_equal(some, weights[labels])
    assert batches == 8
    images, label, weight = loader.dataset[7]
    assert images.shape == (3, 32, 32) and label == 7 and weight == weights[7]


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_strings_are_lists(made, device):
    paths = sorted(map(str, made.rglob("*.jpg")))
    captions = [f"photo {i}" for i in range(60)]
    source = stoker.files(paths, range(60), columns={"caption": captions})
    loader = stoker.torch.DataLoader(source, TRAIN, batch_size=8, device=device, pin_memory=True)
    seen = []
    for batch in loader:
        assert isinstance(batch["label"], torch.Tensor) and isinstance(batch["image"], torch.Tensor)
        assert batch["caption"] == [captions[i] for i in batch["label"]]
        seen += batch["caption"]
    assert sorted(seen) == sorted(captions)
    assert loader.dataset[7][1:] == (7, "photo 7")


def test_torch_keeps_the_type_of_batches(made):
    from torch.utils.data import default_collate, default_convert

    batch = next(iter(make(made)))
    assert type(default_convert(batch)) is type(batch)
    both = default_collate([batch, batch])
    assert type(both) is type(batch) and both["label"].shape == (2, 8)
    leaves, structure = torch.utils._pytree.tree_flatten(batch)
    assert len(leaves) == 2
    assert type(torch.utils._pytree.tree_unflatten(leaves, structure)) is type(batch)


def test_from_a_device(made):
    """The host as one: copied, on streams of its own; PyTorch has what was made by then."""
    loader, wanted = make(made, device="host", dtype="float16"), make(made, dtype="float16")
    assert loader.device == torch.device("cpu")
    for _ in range(2):
        same(kept(loader), kept(wanted))
    images, _ = next(iter(loader))
    copied = images.clone()
    for _ in range(3):
        for other, _ in loader:
            other.zero_()
    assert torch.equal(images, copied)


def test_the_current_stream_is_named(monkeypatch):
    """On a GPU, which is made up here: each tensor is recorded on PyTorch's current stream of its device."""
    from stoker.torch._iterator import _tensor

    class OnGpu:
        is_cuda, device = True, torch.device("cuda", 1)
        named = ()

        def record_stream(self, stream):
            self.named += (stream,)

    tensor = OnGpu()
    monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", lambda tensor: tensor)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"the stream of {device}")
    assert _tensor(tensor) is tensor and tensor.named == ("the stream of cuda:1",)


@pytest.mark.parametrize("device", ["cpu", "host"])
@pytest.mark.parametrize("mix", [[], [stoker.MixUp()]])
def test_labels_keep_no_images(made, device, mix):
    loader = make(made, [*TRAIN, *mix], device=device, buffers=2)
    labels = [labels for _, labels in loader]  # more of them than there are buffers
    for kept, (_, wanted) in zip(labels, make(made, [*TRAIN, *mix])):
        assert torch.equal(kept, wanted)
    gc.collect()
    assert len(labels) == len(loader)
    if device == "cpu":  # on devices these are the copying thread's
        assert loader.stats()["lent_batches"] == 0


def test_a_device_decodes(made):
    options = {"device": "host", "decode": "device", "cache": "ram:64MiB"}
    loaders = make(made), make(made, **options), make(made, crop_bytes=500, **options)
    for _ in range(2):
        wanted, *others = map(kept, loaders)
        for other in others:
            same(other, wanted)
    _, usual, little = (loader.stats() for loader in loaders)
    assert usual["decoded_on_device"] >= 120 and not any(usual["left_to_workers"].values())
    assert little["left_to_workers"]["no_room"] > 60
    for wrong, options in (
        ("the device is the CPU", {"decode": "device"}),
        ("crop_bytes is 0; it must be", {"crop_bytes": 0, "device": "host", "decode": "device"}),
        ("crop_bytes is given", {"crop_bytes": 1000, "device": "host"}),
        ("must be one of 'full', 'scaled', 'device'", {"decode": "workers"}),
    ):
        with pytest.raises(ValueError, match=wrong):
            make(made, **options)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu"), torch.device("cpu", 0)])
def test_names_of_the_cpu(made, device):
    loader = make(made, device=device)
    images, labels = next(iter(loader))
    assert loader.device == images.device == labels.device == torch.device("cpu")


# --- PyTorch's names --------------------------------------------------------------------------------


def test_drop_last(made):
    assert len(make(made)) == 8 and len(make(made, drop_last=True)) == 7
    assert {len(images) for images, _ in make(made, drop_last=True)} == {8}
    assert make(made, drop_last=True).drop_last is True and make(made).drop_last is False


def test_set_epoch(made):
    loader, other = make(made), make(made)
    epochs = [kept(loader) for _ in range(3)]  # each `for` takes the next one
    other.set_epoch(2)
    same(kept(other), epochs[2])
    for epoch in (1, 1, 0):
        other.set_epoch(epoch)
        same(kept(other), epochs[epoch])
    with pytest.raises(ValueError, match="epoch"):
        other.set_epoch(-1)
    assert not np.array_equal(epochs[0][0][0], epochs[1][0][0])


def test_ranks_share_the_samples(made):
    """As with DistributedSampler: equally many batches for each, some samples twice."""
    loaders = [make(made, rank=rank, world=7) for rank in range(7)]
    assert {len(loader) for loader in loaders} == {2}
    seen = []
    for loader in loaders:
        iterator = iter(loader)
        for images, _ in iterator:
            assert len(iterator.sample_ids) == len(images)
            seen.extend(iterator.sample_ids.tolist())
    assert len(seen) == 63 and set(seen) == set(range(60))
    dropped = [make(made, rank=rank, world=7, remainder="drop") for rank in range(7)]
    assert sum(len(images) for loader in dropped for images, _ in loader) == 56


def test_wrong_options(made):
    tensors = torch.utils.data.TensorDataset(torch.zeros(1))
    with pytest.raises(TypeError, match=r"TensorDataset, .* give stoker\.image_folder"):
        stoker.torch.DataLoader(tensors, batch_size=1)
    with pytest.raises(TypeError, match=r"Subset, .* give source\.split\(…\)"):
        stoker.torch.DataLoader(torch.utils.data.Subset(tensors, [0]), batch_size=1)
    with pytest.raises(TypeError, match="image_folder"):
        stoker.torch.DataLoader(str(made))
    with pytest.raises(ValueError, match="dtype"):
        make(made, dtype=torch.float64)
    with pytest.raises(TypeError, match="drop_last"):
        make(made, drop_last="yes")
    for device in ("meta", "mps", "xpu:0", torch.device("meta"), torch.device("cpu", 1)):
        with pytest.raises(ValueError, match=r'no device is called .* "cpu"'):
            make(made, device=device)
    with pytest.raises(TypeError, match="device"):
        make(made, device=0)


# --- state ------------------------------------------------------------------------------------------


def test_resuming_in_the_middle(made):
    """Like torchdata's StatefulDataLoader: the next `for` has the rest, and the one after it is whole."""
    loader = make(made)
    list(loader)
    for step, _ in enumerate(loader):
        if step == 2:
            state = json.loads(json.dumps(loader.state_dict()))
            break
    rest = [*kept(make_at(made, 1))[3:], *kept(make_at(made, 2))]
    again = make(made, depth=1)
    again.load_state_dict({})
    again.load_state_dict(state)
    assert again.state_dict() == state
    same([*kept(again), *kept(again)], rest)
    # A loop that says its epoch resumes where it was, too.
    again = make(made)
    again.load_state_dict(state)
    epochs = []
    for epoch in (1, 2):
        again.set_epoch(epoch)
        epochs += kept(again)
    same(epochs, rest)
    # A loop that says another epoch continues there.
    again.load_state_dict(state)
    again.set_epoch(2)
    assert again.state_dict() == {**state, "epoch": 2, "batch": 0}
    same(kept(again), rest[5:])


def make_at(folder, epoch):
    loader = make(folder)
    loader.set_epoch(epoch)
    return loader


def test_a_state_at_the_end_of_an_epoch(made):
    loader = make(made)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    states.append(loader.state_dict())
    assert [(s["epoch"], s["batch"]) for s in states] == [*((0, n) for n in range(8)), (1, 0), (1, 0)]
    again = make(made)
    again.load_state_dict(states[-1])
    same(kept(again), kept(loader))
    with pytest.raises(stoker.FailedPreconditionError, match="other options"):
        make(made, seed=2).load_state_dict(states[0])
    with pytest.raises(TypeError):
        again.load_state_dict(None)


# --- the end ----------------------------------------------------------------------------------------


def test_close(made):
    with make(made) as loader:
        iterator = iter(loader)
        images, _ = next(iterator)
    with pytest.raises(stoker.CancelledError):
        next(iterator)
    assert images.sum() > 0


@pytest.mark.parametrize(
    "program",
    [
        "kept = list(loader)",
        "iterator = iter(loader); batch = next(iterator); sys.modules['kept'] = batch",
        "for images, labels in loader: model(images).sum().backward()",
    ],
)
def test_leaving_with_live_tensors(made, program):
    head = """
        import faulthandler, sys
        faulthandler.dump_traceback_later(100, exit=True)
        import torch, stoker.torch
        source = stoker.image_folder(sys.argv[1])
        loader = stoker.torch.DataLoader(source, [stoker.RandomResizedCrop(32)], batch_size=4)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 3))
    """
    command = [sys.executable, "-c", textwrap.dedent(head) + program, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_stoker_alone_imports_no_torch():
    there = "print('torch' in sys.modules)"
    program = f"import sys, stoker; {there}; import stoker.torch; {there}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\nTrue\n"


def test_the_example_trains_and_resumes(root, made):
    command = [sys.executable, root / "examples" / "torch" / "train.py", made]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second, resumed = done.stdout.splitlines()
    for epoch, line in enumerate((first, second)):
        assert line.startswith(f"epoch {epoch}: 3 batches, mean loss ")
        assert 0 < float(line.split()[-1]) < 10
    assert resumed == "resumed at batch 2: 1 of 3 batches left"


# --- worker processes -------------------------------------------------------------------------------


def test_a_loader_in_each_of_pytorchs_forked_workers(made):
    """The parent has used one, and its workers' threads did not come along."""
    program = """
        import signal, sys
        import stoker, torch
        class Shards(torch.utils.data.IterableDataset):
            def __iter__(self):
                signal.alarm(60)  # a hang becomes a signal
                worker = torch.utils.data.get_worker_info()
                for _, labels in make(worker.id, worker.num_workers):
                    yield from map(int, labels)
        def make(rank=0, world=1):
            return stoker.Loader(stoker.image_folder(sys.argv[1]), [stoker.Resize((8, 8))],
                                 batch_size=4, rank=rank, world=world)
        seen = sorted(int(label) for _, labels in make() for label in labels)
        workers = torch.utils.data.DataLoader(
            Shards(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
        print(sorted(workers) == seen, len(seen))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), made], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"True {len(stoker.image_folder(made))}\n"


VIEWS = [
    [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()],
    [stoker.Resize(40), stoker.CenterCrop(24)],
]


def test_views_are_further_tensors(made):
    source = stoker.image_folder(made)
    loader = stoker.torch.DataLoader(source, views=VIEWS, batch_size=5)
    for images, labels, others in loader:
        assert images.shape[1:] == (3, 32, 32) and others.shape[1:] == (3, 24, 24)
        assert images.dtype == others.dtype == torch.float32 and labels.dtype == torch.int64
    image, _, other = loader.dataset[3]
    (fixed, _) = stoker.torch.DataLoader(source, VIEWS[1]).dataset[3]
    assert image.shape == (3, 32, 32) and torch.equal(other, fixed)
    with pytest.raises(TypeError, match="views must be a sequence"):
        stoker.torch.DataLoader(source, views=VIEWS[1][0])
