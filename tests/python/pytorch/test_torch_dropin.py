"""stoker.torch.DataLoader where programs expect torch's: its options, its attributes, others' programs.

Skips where PyTorch, or the other's package, is missing.
"""

import importlib.util
import inspect
import json
import multiprocessing
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811
from stoker import _options  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip()]
EVAL = [stoker.Resize(36), stoker.CenterCrop(32)]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def make(folder, transforms=TRAIN, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 1, **options}
    return stoker.torch.DataLoader(stoker.image_folder(folder), transforms, **options)


def same(some, others):
    some, others = list(some), list(others)
    assert len(some) == len(others)
    for batch, wanted in zip(some, others):
        for tensor, expected in zip(batch, wanted):
            assert torch.equal(tensor, expected)


def at(loader, epoch):
    loader.set_epoch(epoch)
    return loader


# --- options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        *({"num_workers": n} for n in (0, 1, 8, np.int64(4))),
        *({name: it} for name in ("persistent_workers", "pin_memory", "in_order") for it in (False, True)),
        *({"prefetch_factor": n} for n in (None, 2)),
        *({"multiprocessing_context": it} for it in (None, "spawn", multiprocessing.get_context("fork"))),
        *({"pin_memory_device": it} for it in ("", "cuda")),
        *({"collate_fn": it} for it in (None, torch.utils.data.default_collate)),
        *({name: None} for name in ("sampler", "batch_sampler", "generator", "worker_init_fn", "shuffle")),
        {"timeout": 0},
        {"timeout": 0.0},
    ],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
def test_options_that_do_no_harm(made, options):
    wanted = {"shuffle": bool(options.get("shuffle", True))} if "shuffle" in options else {}
    same(make(made, **options), make(made, **wanted))


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("sampler", [1, 2, 3], "shuffle="),
        ("sampler", torch.utils.data.SequentialSampler(range(60)), "shuffle="),
        ("batch_sampler", [[1, 2], [3]], "batch_size="),
        ("collate_fn", list, "MixUp"),
        ("generator", torch.Generator(), "seed="),
        ("worker_init_fn", print, "seed="),
        ("timeout", 5, "Ctrl-C"),
        ("num_workers", -1, r"stoker\.Runtime"),
        ("num_workers", None, r"stoker\.Runtime"),
        ("num_workers", True, r"stoker\.Runtime"),
        ("prefetch_factor", "2", "depth="),
        ("persistent_workers", 1, "True or False"),
        ("in_order", None, "True or False"),
        ("multiprocessing_context", 3, "context"),
        ("pin_memory_device", 0, "string"),
    ],
)
def test_options_that_would_lose_their_meaning(made, name, value, instead):
    with pytest.raises(TypeError, match=rf"has no {name}=.*{instead}"):
        make(made, **{name: value})


def test_options_of_a_loader_are_passed_on(made):
    ours, loaders = (inspect.signature(kind).parameters for kind in (stoker.torch.DataLoader, stoker.Loader))
    assert loaders.keys() - ours.keys() == {"drop_remainder"}  # drop_last here
    others = {name for name in loaders.keys() & ours.keys() if loaders[name].default != ours[name].default}
    assert others == {"batch_size", "dtype", "layout", "rank", "world", "remainder"}
    given = {
        **{"seed": 5, "remainder": "drop", "exif_orientation": False, "max_pixels": 10**6, "max_scans": 50},
        **{"decode": "scaled"},
        **{"depth": 3, "wait_target": 0.02, "weight": 2.0, "lent_batches": 3, "accept_truncated": True},
    }
    used = make(made, **given)._share.loader._options
    assert {name: used[name] for name in given} == given


def test_unknown_options_are_refused(made):
    with pytest.raises(TypeError, match="no option 'num_worker'"):
        make(made, num_worker=1)
    with pytest.raises(TypeError, match="no option 'drop_remainder'; its name here is drop_last"):
        make(made, drop_remainder=True)
    with pytest.raises(TypeError, match="pin_memory"):
        make(made, pin_memory="yes")


def test_pinned_memory(made, monkeypatch):
    """A copy, as torch's DataLoader makes, and only where there is a GPU."""
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    wanted = list(make(made))
    same(make(made, pin_memory=True), wanted)
    assert len(pinned) == 0 or torch.cuda.is_available()
    pinned.clear()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    same(make(made), wanted)
    assert not pinned
    same(make(made, pin_memory=True), wanted)
    assert len(pinned) == 2 * len(wanted)
    # torch's loader of its parts would pin what is on a GPU, which is an error.
    assert make(made, pin_memory=True, device="cuda").pin_memory is False
    assert make(made, pin_memory=True, device="host").pin_memory is True
    rows = stoker.torch.DataLoader(stoker.arrays(np.zeros((4, 3))), batch_size=2, pin_memory=True)
    assert len(list(rows)) == 2 and len(pinned) == 2 * len(wanted) + 2


# --- attributes -------------------------------------------------------------------------------------


def test_attributes_are_those_of_torch(made):
    """Each that torch's DataLoader without workers has, with its type and, but for ours, its value."""
    loader = make(made, num_workers=4, persistent_workers=True, prefetch_factor=2, drop_last=True, timeout=0)
    torchs = torch.utils.data.DataLoader(range(60), batch_size=8, shuffle=True, drop_last=True)
    names = {name for name in vars(torchs) if not name.startswith("_")} | {"multiprocessing_context"}
    assert {"sampler", "num_workers", "prefetch_factor", "generator", "in_order"} <= names
    ours = {"dataset", "sampler", "batch_sampler", "collate_fn"}
    for name in names - ours:
        assert getattr(loader, name) == getattr(torchs, name), name
    for name in ours - {"dataset"}:
        assert isinstance(getattr(loader, name), type(getattr(torchs, name))), name
    assert isinstance(loader.dataset, torch.utils.data.Dataset)
    assert make(made, pin_memory=True).pin_memory is True
    assert not hasattr(loader, "nothing_of_this_name")
    for name in [*names, "drop_last"]:
        with pytest.raises(AttributeError):
            setattr(loader, name, None)
    loader.name = "train"  # as on any object


def test_the_dataset_has_torchvisions_names(made):
    source = stoker.image_folder(made)
    dataset = make(made).dataset
    assert dataset.source is not None and len(dataset) == 60 and dataset.root == str(made)
    assert dataset.classes == source.classes == sorted(source.classes) and len(dataset.classes) == 3
    assert dataset.class_to_idx == {name: n for n, name in enumerate(dataset.classes)}
    assert [path for path, _ in dataset.samples] == [source.path(i) for i in range(60)]
    assert dataset.targets == [label for _, label in dataset.samples]
    for path, label in dataset.imgs:
        assert path.startswith(f"{made}/{dataset.classes[label]}/")
    assert "60 samples" in repr(dataset)


def test_the_dataset_cannot_be_changed(made):
    """The loader would not see the change."""
    dataset = make(made).dataset
    for name in ("transform", "targets", "samples", "root", "classes", "anything"):
        with pytest.raises(AttributeError, match=rf"dataset\.{name} cannot be set: .*transforms="):
            setattr(dataset, name, [])
    assert len(dataset.targets) == len(dataset.samples) == 60


def test_the_dataset_is_torchvisions(made):
    datasets = pytest.importorskip("torchvision.datasets", reason="torchvision is not installed here")
    wanted, dataset = datasets.ImageFolder(str(made)), make(made).dataset
    for name in ("classes", "class_to_idx", "samples", "imgs", "targets", "root"):
        assert getattr(dataset, name) == getattr(wanted, name), name


def test_targets_are_a_list_or_the_array_that_was_given(made):
    source, labels = stoker.image_folder(made), np.arange(60) % 4
    paths = [source.path(i) for i in range(60)]
    for of, wanted in (
        (stoker.arrays(np.zeros((60, 4), np.uint8), labels), labels),
        (stoker.files(paths, labels), labels.tolist()),
        (stoker.from_dataset(list(zip(paths, labels))), labels.tolist()),
        (source, source.labels.tolist()),
    ):
        transforms = [] if wanted is labels else EVAL
        targets = stoker.torch.DataLoader(of, transforms, batch_size=8).dataset.targets
        if wanted is labels:
            assert np.shares_memory(targets, labels) and targets.flags.writeable
        else:
            assert targets == wanted and type(targets[0]) is int


def test_a_dataset_of_arrays_or_without_labels(made):
    images, labels = np.arange(24, dtype="uint8").reshape(6, 4), np.arange(6)
    arrays = stoker.torch.DataLoader(stoker.arrays(images, labels)).dataset
    assert arrays.targets.tolist() == list(range(6)) and arrays.classes == []
    assert arrays[-1][0].tolist() == [20, 21, 22, 23] and arrays[-1][1] == 5
    alone = stoker.torch.DataLoader(stoker.arrays(images)).dataset
    assert alone[2].tolist() == [8, 9, 10, 11]
    for dataset in (arrays, alone):
        assert not any(hasattr(dataset, name) for name in ("samples", "imgs", "root"))
    assert not hasattr(alone, "targets")
    one_class = make(next(path for path in made.iterdir() if path.is_dir())).dataset
    assert one_class.classes == [] and not hasattr(one_class, "targets") and not hasattr(one_class, "samples")
    assert one_class[0].shape == (3, 32, 32)


def test_a_dataset_of_another_kind_of_source(made):
    """The dataset does not know the kinds of sources: it works for files that are not an image folder's."""
    folder = stoker.image_folder(made)
    listed = stoker.Source(folder._native, folder._spec, "a list")
    dataset, wanted = (stoker.torch.DataLoader(source, EVAL).dataset for source in (listed, folder))
    assert dataset.samples == wanted.samples and dataset.targets == wanted.targets
    assert torch.equal(dataset[40][0], wanted[40][0]) and dataset[40][1] == wanted[40][1]
    with pytest.raises(AttributeError, match="a list has no root"):
        dataset.root  # noqa: B018


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_single_samples(made, dtype):
    """Returns the pixels of a batch's row, where nothing is random."""
    loader = make(made, EVAL, shuffle=False, dtype=dtype)
    dataset = loader.dataset
    for first, (images, labels) in zip(range(0, 60, 8), loader):
        for row, (image, label) in enumerate(zip(images, labels)):
            sample, target = dataset[first + row]
            assert torch.equal(sample, image) and sample.dtype == image.dtype and target == label
    for wrong in (60, -61):
        with pytest.raises(IndexError):
            dataset[wrong]


def test_single_samples_are_rows_with_all_columns(made):
    """Also of what the loader adds: the sizes of padded images, further views, ids and paths."""
    folder = stoker.image_folder(made)
    source = stoker.files([folder.path(i) for i in range(8)], range(8), columns={"age": np.arange(8) / 2})
    padded = [stoker.Resize(30, max_size=44), stoker.PadTo((44, 48))]
    further = {"batch_size": 8, "sample_ids": True, "paths": True}
    for options in (
        {"transforms": padded},
        {"transforms": padded, "layout": "NHWC"},
        {"views": [EVAL, EVAL]},
    ):
        loader = stoker.torch.DataLoader(source, **options, **further)
        (batch,) = loader
        made_there = torch.utils.data.default_collate([loader.dataset[i] for i in range(8)])
        assert len(made_there) == len(batch) == 6
        for name, column, wanted in zip(batch.keys(), made_there, batch):
            assert list(column) == wanted if name == "path" else torch.equal(column, wanted), name


# For each option of images: transforms, another value, and whether sample 0 can then be made.
OPTIONS = {
    "dtype": (EVAL, torch.uint8, True),
    "layout": (EVAL, "NHWC", True),
    "channels": ([stoker.Resize((20, 20))], "gray", True),
    "exif_orientation": (EVAL, False, True),
    "decode": ([stoker.Resize((20, 20))], "scaled", True),
    "max_pixels": (EVAL, 1000, False),
    "max_scans": (EVAL, 1, False),
    "accept_truncated": (EVAL, True, True),
    "accept_16_bits": (EVAL, True, True),
}


def test_single_samples_have_every_option(made, tmp_path):
    """The first image has all that the options are about."""
    assert set(OPTIONS) == {row["name"] for row in _options.TABLES["loader"] if row["of_images"]}
    pillow = pytest.importorskip("PIL.Image")
    image = pillow.open(stoker.image_folder(made).path(0))
    turned = image.getexif()
    turned[0x112] = 6
    image.resize((640, 480)).save(tmp_path / "0.jpg", progressive=True, exif=turned)
    whole = (tmp_path / "0.jpg").read_bytes()
    pillow.fromarray(np.full((48, 64), 1000, np.uint16)).save(tmp_path / "16.png")
    files = {"accept_truncated": whole[:-9000], "accept_16_bits": (tmp_path / "16.png").read_bytes()}
    (tmp_path / "16.png").unlink()
    for name, (transforms, value, can_be_made) in OPTIONS.items():
        (tmp_path / "0.jpg").write_bytes(files.get(name, whole))
        made_by = []
        for options in ({}, {name: value}):
            loader = stoker.torch.DataLoader(stoker.image_folder(tmp_path), transforms, **options)
            results = []
            for make_it in (
                lambda loader=loader: next(iter(loader))[0],
                lambda loader=loader: loader.dataset[0],
            ):
                try:
                    results.append(make_it())
                except stoker.Error as error:
                    results.append(type(error))
            if isinstance(results[0], torch.Tensor):
                assert torch.equal(*results), name
            else:
                assert results[0] is results[1], name
            made_by.append(results[0])
        default, other = made_by
        assert isinstance(other, torch.Tensor) == can_be_made, name
        both = isinstance(default, torch.Tensor) and can_be_made
        assert not both or default.dtype != other.dtype or not torch.equal(default, other), name


def test_single_samples_have_the_memory_of_the_runtime(made):
    with pytest.raises(stoker.ResourceExhaustedError):
        make(made, runtime=stoker.Runtime(memory_budget=4 << 20)).dataset[0]


def test_single_samples_are_drawn_anew(made):
    dataset = make(made).dataset
    torch.manual_seed(1)
    drawn = [dataset[0][0] for _ in range(4)]
    assert not any(torch.equal(drawn[0], other) for other in drawn[1:])
    torch.manual_seed(1)
    assert all(torch.equal(dataset[0][0], wanted) for wanted in drawn)


def test_another_order_of_single_samples(made):
    """Slow, in Python, and right: with torch's own loader, its samplers and its processes."""
    dataset = make(made, EVAL).dataset
    some = torch.utils.data.Subset(dataset, [5, 40, 3])
    images, labels = next(iter(torch.utils.data.DataLoader(some, batch_size=3)))
    assert torch.equal(images, torch.stack([dataset[i][0] for i in (5, 40, 3)]))
    assert labels.tolist() == [dataset.targets[i] for i in (5, 40, 3)]
    copy = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(copy[7][0], dataset[7][0])
    forked = torch.utils.data.DataLoader(dataset, batch_size=30, num_workers=2)
    assert torch.equal(torch.cat([labels for _, labels in forked]), torch.tensor(dataset.targets))
    mixes = make(made, [*EVAL, stoker.MixUp()]).dataset
    assert mixes[0][1] == 0
    with pytest.raises(TypeError, match="MixUp"):
        next(iter(torch.utils.data.DataLoader(mixes, batch_size=2)))


def test_a_loader_of_the_same_samples(made):
    loader = make(made, EVAL)
    again = stoker.torch.DataLoader(loader.dataset, EVAL, batch_size=8, shuffle=True, seed=1)
    assert again.source is loader.source
    same(again, loader)


# --- the order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_samplers(made, shuffle, drop_last):
    """Returns which samples this process has, in which order, and how many."""
    for rank in range(2):
        loader = make(made, shuffle=shuffle, drop_last=drop_last, rank=rank, world=2)
        sampler, batches = loader.sampler, loader.batch_sampler
        kind = torch.utils.data.RandomSampler if shuffle else torch.utils.data.SequentialSampler
        assert isinstance(sampler, kind) and isinstance(batches, torch.utils.data.BatchSampler)
        assert batches.sampler is sampler and (batches.batch_size, batches.drop_last) == (8, drop_last)
        assert len(batches) == len(loader) and len(sampler) == (24 if drop_last else 30)
        for epoch in (0, 1, 4):
            sampler.set_epoch(epoch)
            coming = list(sampler)
            assert coming == list(sampler)  # looking takes nothing
            iterator = iter(loader)
            wanted = [iterator.sample_ids.tolist() for _ in iterator]
            assert [i for batch in wanted for i in batch] == coming and len(coming) == len(sampler)
            batches.set_epoch(epoch)
            assert list(batches) == wanted
        following = list(sampler)  # each iteration over batches takes an epoch
        sampler.set_epoch(5)
        assert list(sampler) == following


def rebuilt(loader, batch_sampler=None, **options):
    """Makes torch's DataLoader of the parts of ours, as other programs do."""
    names = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator",
             "multiprocessing_context", "prefetch_factor", "persistent_workers")  # fmt: skip
    options = {**{name: getattr(loader, name) for name in names}, **options}
    batch_sampler = loader.batch_sampler if batch_sampler is None else batch_sampler
    return torch.utils.data.DataLoader(loader.dataset, batch_sampler=batch_sampler, **options)


@pytest.mark.parametrize("mix", [[], [stoker.MixUp()]])
def test_a_loader_made_of_the_parts(made, mix):
    """The same batches, epoch after epoch; the state is theirs, too."""
    loader, wanted = make(made, [*TRAIN, *mix], num_workers=4), make(made, [*TRAIN, *mix])
    parts = rebuilt(loader)
    assert len(parts) == 8
    for _ in range(2):
        same(parts, wanted)
    same(loader, wanted)
    iterator = iter(parts)
    for _ in range(3):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["batch"]) == (3, 3)
    again = make(made, [*TRAIN, *mix])
    again.load_state_dict(state)
    same(rebuilt(again), list(at(wanted, 3))[3:])
    same(rebuilt(again), at(wanted, 4))


def test_batches_that_samplers_skip_are_not_made(made):
    loader = make(made, depth=1)

    class Some(torch.utils.data.BatchSampler):
        def __init__(self, batches, chosen):
            self.batches, self.chosen = batches, chosen

        def __iter__(self):
            batches = list(self.batches)
            return iter([batches[i] for i in self.chosen])

        def __len__(self):
            return len(self.chosen)

    wanted = list(at(make(made), 0))
    same(rebuilt(loader, Some(loader.batch_sampler, [6, 2, 3])), [wanted[i] for i in (6, 2, 3)])
    assert loader.stats()["batches"] == 3
    with pytest.raises(TypeError, match="num_workers=0"):
        next(iter(rebuilt(loader, num_workers=1, multiprocessing_context="fork")))


def test_a_batch_that_was_changed_is_refused(made):
    """In place: its rows would not follow. A new list is made of single samples."""

    class Filtered(torch.utils.data.BatchSampler):
        def __init__(self, batches, filtered):
            self.batches, self.filtered = batches, filtered

        def __iter__(self):
            return map(self.filtered, self.batches)

        def __len__(self):
            return len(self.batches)

    def in_place(batch):
        batch[:] = batch[:4]
        return batch

    loader = make(made, EVAL)
    with pytest.raises(TypeError, match=r"were changed .* make a new list"):
        list(rebuilt(loader, Filtered(loader.batch_sampler, in_place)))
    wanted = [labels[:4] for _, labels in at(loader, 1)]
    found = rebuilt(loader, Filtered(at(loader, 1).batch_sampler, lambda batch: batch[:4]))
    assert torch.equal(torch.cat([labels for _, labels in found]), torch.cat(wanted))


def damaged(made, tmp_path, *bad):
    """Makes a copy of the folder whose samples of these ids are not photographs."""
    shutil.copytree(made, tmp_path / "photos")
    source = stoker.image_folder(tmp_path / "photos")
    for sample in bad:
        pathlib.Path(source.path(sample)).write_bytes(b"no photograph")
    return tmp_path / "photos"


@pytest.mark.parametrize("on_bad", ["substitute", "drop"])
def test_a_loader_made_of_the_parts_has_the_policies(made, tmp_path, on_bad):
    folder = damaged(made, tmp_path, 7, 40)
    loader, wanted = (make(folder, on_bad=on_bad, max_bad_fraction=1) for _ in range(2))
    same(rebuilt(loader), wanted)
    assert loader.stats()["substituted" if on_bad == "substitute" else "dropped"] >= 2


def test_a_batch_without_rows_is_an_error_behind_a_batch_sampler(made, tmp_path):
    """The batch cannot be left out there, as an iteration over the loader does."""
    folder = damaged(made, tmp_path, 3, 59)
    loader = make(folder, batch_size=1, shuffle=False, on_bad="drop", max_bad_fraction=1)
    assert len(list(loader)) == 58
    made_of_parts = iter(rebuilt(loader))
    batches, refused = 0, []
    for _ in range(60):
        try:
            next(made_of_parts)
            batches += 1
        except stoker.DataLossError as error:
            refused.append(str(error))
    assert batches == 58 and len(refused) == 2
    assert "all samples of batch 3 of epoch 1 were dropped" in refused[0]


# --- others' programs -------------------------------------------------------------------------------


def model(classes=3):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))


def test_accelerate(made):
    """`prepare` returns it unchanged: its order is that of the process, and its device was given."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed here")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = make(made, device=accelerator.device)
    network, optimizer, prepared = accelerator.prepare(network, optimizer, loader)
    assert prepared is loader
    wanted = [list(at(make(made), epoch)) for epoch in range(3)]
    for epoch in range(2):
        seen = []
        for images, labels in prepared:
            with accelerator.accumulate(network):
                accelerator.backward(torch.nn.functional.cross_entropy(network(images), labels))
                optimizer.step()
                optimizer.zero_grad()
            seen.append((images, accelerator.gather_for_metrics(labels)))
        same(seen, wanted[epoch])
    rest = accelerator.skip_first_batches(prepared, 5)
    assert len(rest) == 3
    same(rest, wanted[2][5:])
    batches = loader.stats()["batches"]
    same(accelerate.skip_first_batches(at(prepared, 1), 6), wanted[1][6:])
    assert loader.stats()["batches"] == batches + 2
    same(accelerate.skip_first_batches(at(prepared, 1), 0), wanted[1])


def test_accelerate_makes_a_step_at_the_end_of_an_epoch(made):
    """As with torch's loader, also in an epoch that was resumed, and with a loader in the loop of another."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed here")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=3)
    network = accelerator.prepare(model())
    ours, state, inner = make(made), accelerator.gradient_state, make(made, batch_size=30)
    theirs = accelerator.prepare(torch.utils.data.DataLoader(torch.arange(60), batch_size=8))

    def steps(loader):
        made_in = []
        for _ in loader:
            with accelerator.accumulate(network):
                made_in.append(accelerator.sync_gradients)
            for _ in inner:
                pass
        return made_in

    wanted = [False, False, True, False, False, True, False, True]
    assert steps(ours) == steps(ours) == steps(theirs) == wanted
    assert not state.in_dataloader
    for _ in zip(range(5), ours):
        pass
    again = make(made)
    again.load_state_dict(ours.state_dict())
    assert steps(again) == [False, False, True] and not state.in_dataloader


def test_accelerate_with_rows_that_vary(made, tmp_path):
    """Batches of patches: a step with the last one, all rows for metrics, and the rest of an epoch."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed here")
    folder = shutil.copytree(made, tmp_path / "indexed")
    subprocess.run([sys.executable, "-m", "stoker", "index", folder], check=True, capture_output=True)
    qwen = stoker.processor({"image_processor_type": "Qwen2VLImageProcessor"}, max_pixels=112 * 112)
    options = {"batch_size": None, "batch_tokens": 300, "sample_ids": True}
    loader, other = (make(folder, [stoker.RandomHorizontalFlip(), qwen], **options) for _ in range(2))
    wanted = [list(at(other, epoch)) for epoch in range(2)]
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=3)
    network = accelerator.prepare(torch.nn.Linear(1176, 1))
    assert accelerator.prepare(loader) is loader
    steps, ids, rows = [], [], set()
    for batch, expected in zip(loader, wanted[0], strict=True):
        with accelerator.accumulate(network):
            steps.append(accelerator.sync_gradients)
            accelerator.backward(network(batch.pixel_values.values).mean())
        assert torch.equal(batch.pixel_values.values, expected.pixel_values.values)
        ids += accelerator.gather_for_metrics(batch.sample_id).tolist()
        rows.add(len(batch.sample_id))
    assert sorted(ids) == list(range(len(loader.dataset))) and len(rows) > 1
    assert steps == [n % 3 == 2 or n == len(loader) - 1 for n in range(len(loader))]
    rest = accelerator.skip_first_batches(loader, 2)
    for batch, expected in zip(rest, wanted[1][2:], strict=True):
        assert torch.equal(batch.pixel_values.values, expected.pixel_values.values)
        assert torch.equal(batch.sample_id, expected.sample_id)


def test_accelerate_prepares_what_is_made_of_the_parts(made):
    """For what `prepare` adds, the end of the loader and the place of batches, on one process."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed here")
    accelerator = accelerate.Accelerator(cpu=True)
    loader, wanted = make(made), make(made)
    prepared = accelerator.prepare(rebuilt(loader))
    for _ in range(2):
        ends, seen = [], []
        for batch in prepared:
            ends.append(accelerator.gradient_state.end_of_dataloader)
            seen.append(batch)
        same(seen, wanted)
        assert ends == [False] * 7 + [True]
    same(accelerator.skip_first_batches(prepared, 5), list(at(make(made), 2))[5:])


def lightning_of(seen):
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed here")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = model()

        def training_step(self, batch, index):
            images, labels = batch
            seen.append((images.clone(), labels.clone()))
            loss = torch.nn.functional.cross_entropy(self.network(images), labels)
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("score", self.network(batch[0]).mean())

        test_step = validation_step

        def predict_step(self, batch, index):
            return self.network(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def trainer(folder, **options):
        return lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                                 enable_model_summary=False, default_root_dir=folder, **options)  # fmt: skip

    return lightning, Module, trainer


@pytest.mark.filterwarnings("ignore")
def test_lightning(made, tmp_path):
    seen = []
    _, module, trainer = lightning_of(seen)
    loader, validation = make(made, num_workers=4, pin_memory=True), make(made, EVAL, shuffle=False)
    network, fits = module(), trainer(tmp_path, max_epochs=2, enable_checkpointing=False)
    fits.fit(network, loader, validation)
    same(seen, [*at(make(made), 0), *at(make(made), 1)])
    (scores,) = fits.validate(network, validation, verbose=False)
    assert set(scores) == {"score"} and fits.test(network, validation, verbose=False) == [scores]
    made_of = fits.predict(network, validation)
    assert sum(len(rows) for rows in made_of) == 60


@pytest.mark.filterwarnings("ignore")
def test_lightning_goes_on_in_the_middle_of_an_epoch(made, tmp_path):
    """Its checkpoints have the loader's state, which comes back before it makes and drops iterators."""
    seen = []
    lightning, module, trainer = lightning_of(seen)
    saves = lightning.pytorch.callbacks.ModelCheckpoint(
        tmp_path, "{step}", every_n_train_steps=11, save_top_k=-1
    )
    trainer(tmp_path, max_epochs=2, callbacks=[saves]).fit(module(), make(made))
    whole = list(seen)
    same(whole, [*at(make(made), 0), *at(make(made), 1)])
    seen.clear()
    resumes = trainer(tmp_path, max_epochs=2, enable_checkpointing=False)
    resumes.fit(module(), make(made), ckpt_path=tmp_path / "step=11.ckpt", weights_only=False)
    same(seen, whole[11:])


@pytest.mark.filterwarnings("ignore")
def test_lightning_fits_a_few_batches_over_and_over(made, tmp_path):
    seen = []
    _, module, trainer = lightning_of(seen)
    options = {"max_epochs": 2, "enable_checkpointing": False, "overfit_batches": 2}
    trainer(tmp_path, **options).fit(module(), make(made, EVAL, shuffle=False))
    wanted = list(make(made, EVAL, shuffle=False))[:2]
    same(seen, [*wanted, *wanted])


@pytest.mark.filterwarnings("ignore")
def test_fabric_saves_the_place(made, tmp_path):
    fabric = pytest.importorskip("lightning.fabric", reason="Lightning is not installed here")
    loader, again = make(made), make(made)
    fabric = fabric.Fabric(accelerator="cpu", devices=1)
    with pytest.raises(TypeError, match="Only PyTorch DataLoader"):
        fabric.setup_dataloaders(loader)
    for _ in zip(range(3), loader):
        pass
    fabric.save(tmp_path / "saved", {"loader": loader})
    fabric.load(tmp_path / "saved", {"loader": again})
    same(again, list(at(make(made), 0))[3:])


KERAS = """
import sys
import torch, keras, stoker, stoker.torch
loader = stoker.torch.DataLoader(stoker.image_folder(sys.argv[1]), [stoker.Resize((8, 8))], batch_size=8)
real = torch.utils.data.DataLoader(
    loader.dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn)
def loss_of(given):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    return model.fit(given, verbose=0).history["loss"][0]
assert abs(loss_of(real) - loss_of(batch[:2] for batch in loader)) < 1e-5
try:
    loss_of(loader)
except ValueError as error:
    assert "Unrecognized data type" in str(error)
else:
    raise SystemExit("fit takes the loader itself")
"""


def test_keras_on_pytorch(made):
    if importlib.util.find_spec("keras") is None:  # its import needs a backend
        pytest.skip("Keras is not installed here")
    environment = {**os.environ, "KERAS_BACKEND": "torch", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", KERAS, made], check=True, env=environment, timeout=120)


@pytest.mark.filterwarnings("ignore")
def test_transformers(made, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed here")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = model()

        def forward(self, image, label):
            scores = self.network(image)
            return {"loss": torch.nn.functional.cross_entropy(scores, label), "logits": scores}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return make(made)

    options = transformers.TrainingArguments(
        tmp_path, use_cpu=True, num_train_epochs=2, report_to=[], save_strategy="no", disable_tqdm=True,
        gradient_accumulation_steps=3,
    )  # fmt: skip
    trainer = Trainer(model=Network(), args=options)
    trainer.train()
    assert trainer.state.global_step == 6


def test_timm(made):
    """Its mixing, losses, metrics and schedules, and what its scripts ask of a loader."""
    timm = pytest.importorskip("timm", reason="timm is not installed here")
    for part in ("data", "loss", "scheduler", "utils"):
        importlib.import_module(f"timm.{part}")
    loader, validation = make(made, drop_last=True), make(made, EVAL, shuffle=False)
    network = timm.create_model("test_vit", num_classes=len(loader.dataset.classes), img_size=32)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    schedule, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=2, updates_per_epoch=len(loader))
    mixes = timm.data.Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=3)
    loss_of = timm.loss.SoftTargetCrossEntropy()
    wanted = [list(at(make(made, drop_last=True), epoch)) for epoch in range(2)]
    for epoch in range(2):
        for it in (loader.dataset, loader.batch_sampler, loader.sampler):
            if hasattr(it, "set_epoch"):
                it.set_epoch(epoch)
        for (images, labels), (image, label) in zip(loader, wanted[epoch]):
            assert torch.equal(images, image) and torch.equal(labels, label)
            images, labels = mixes(images, labels)
            loss_of(network(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
        schedule.step(epoch + 1)
    top = timm.utils.AverageMeter()
    network.eval()
    with torch.inference_mode():
        for images, labels in validation:
            (accuracy,) = timm.utils.accuracy(network(images), labels, topk=(1,))
            top.update(accuracy.item(), len(labels))
    assert top.count == 60 and 0 <= top.avg <= 100


def test_batch_norm_of_an_averaged_model(made):
    network = torch.nn.Sequential(torch.nn.BatchNorm2d(3), *model())
    averaged = torch.optim.swa_utils.AveragedModel(network)
    loader = make(made)
    torch.optim.swa_utils.update_bn(loader, averaged)
    assert averaged.module[0].num_batches_tracked == len(loader)


def test_it_is_not_a_subclass_of_dataloader(made):
    """Code that checks for one would shard its order among processes, and it is sharded already."""
    assert not isinstance(make(made), torch.utils.data.DataLoader)
