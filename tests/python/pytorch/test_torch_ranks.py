"""The samples of each process, whenever it learns its rank. Skips if PyTorch is missing."""

import collections
import json
import os
import subprocess
import sys
import textwrap

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
import stoker.torch  # noqa: E402, F811

HEAD = """
import faulthandler, json, os, pathlib, sys
faulthandler.dump_traceback_later(290, exit=True)
import torch, stoker.torch

def make(**options):
    transforms = [stoker.RandomResizedCrop(32)]
    options = {"batch_size": 4, "shuffle": True, "seed": 1, **options}
    return stoker.torch.DataLoader(stoker.image_folder(sys.argv[1]), transforms, **options)

def ids(loader):
    iterator = iter(loader)
    return [iterator.sample_ids.tolist() for _ in iterator]

def join():
    torch.distributed.init_process_group("gloo")

def tell(**found):
    rank = os.environ.get("RANK", torch.distributed.get_rank() if torch.distributed.is_initialized() else "")
    pathlib.Path(sys.argv[2], f"of-{rank}").write_text(json.dumps(found))
"""


def run(tmp_path, folder, program, launch=()):
    """Returns what each process reported, by its rank."""
    script = tmp_path / "program.py"
    script.write_text(HEAD + textwrap.dedent(program))
    (tmp_path / "told").mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    done = subprocess.run(
        [sys.executable, *launch, script, folder, tmp_path / "told"],
        capture_output=True, text=True, timeout=300, env={**environment, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(told.read_text()) for told in sorted((tmp_path / "told").iterdir())]


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def reference(folder, rank, world, epochs=1, **options):
    """Returns the ids of all batches, of a loader that was told its rank."""
    options = {"batch_size": 4, "shuffle": True, "seed": 1, "rank": rank, "world": world, **options}
    loader = stoker.torch.DataLoader(stoker.image_folder(folder), [stoker.RandomResizedCrop(32)], **options)
    found = []
    for _ in range(epochs):
        iterator = iter(loader)
        found.append([iterator.sample_ids.tolist() for _ in iterator])
    return found


# --- torchrun ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["loader = make(); join()", "join(); loader = make()"])
def test_processes_of_torchrun_share_the_samples(made, tmp_path, order):
    """Each sample once in an epoch, whether the loader or the process group was there first."""
    program = order + "; tell(epochs=[ids(loader), ids(loader)], length=len(loader))"
    told = run(tmp_path, made, program, TORCHRUN)
    assert len(told) == 2
    for epoch in range(2):
        seen = collections.Counter(i for rank in told for batch in rank["epochs"][epoch] for i in batch)
        assert seen == dict.fromkeys(range(60), 1)
    for rank in range(2):
        assert told[rank]["epochs"] == reference(made, rank, 2, epochs=2)
        assert told[rank]["length"] == len(told[rank]["epochs"][0]) == 8


def test_torchrun_without_a_process_group(made, tmp_path):
    """RANK and WORLD_SIZE set the rank; rank= and world= override them."""
    program = """
        loader, alone = make(), make(rank=0, world=1)
        tell(length=len(loader), epoch=ids(loader), alone=ids(alone))
    """
    told = run(tmp_path, made, program, TORCHRUN)
    assert [rank["epoch"] for rank in told] == [reference(made, rank, 2)[0] for rank in range(2)]
    assert all(rank["alone"] == reference(made, 0, 1)[0] for rank in told)
    assert all(rank["length"] == 8 for rank in told)


def test_a_state_goes_from_one_run_to_another(made, tmp_path):
    """Loaders made before the process group, states saved and loaded after it."""
    program = """
        loader, again = make(), make()
        join()
        iterator = iter(loader)
        for _ in range(3): next(iterator)
        state = loader.state_dict()
        again.load_state_dict(state)
        tell(state=state, rest=[*ids(again), *ids(again)])
    """
    for rank, told in enumerate(run(tmp_path, made, program, TORCHRUN)):
        first, second = reference(made, rank, 2, epochs=2)
        assert (told["state"]["epoch"], told["state"]["batch"]) == (0, 3)
        assert told["rest"] == [*first[3:], *second]


# --- what is known, and when ------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """There is no process group, and no environment variable for one."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def join(alone, tmp_path):
    """Makes a process group of this process, which says that it is rank `rank` of `world`."""

    def joined(rank, world):
        store = f"file://{tmp_path}/store"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        alone.setattr(torch.distributed, "get_rank", lambda: rank)
        alone.setattr(torch.distributed, "get_world_size", lambda: world)

    yield joined
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def make(folder, **options):
    options = {"batch_size": 4, "shuffle": True, "seed": 1, **options}
    return stoker.torch.DataLoader(stoker.image_folder(folder), [stoker.RandomResizedCrop(32)], **options)


def ids(loader):
    iterator = iter(loader)
    return [iterator.sample_ids.tolist() for _ in iterator]


def test_the_process_group_decides(made, join):
    early, asked, begun, told = make(made), make(made), make(made), make(made, rank=0, world=1)
    assert len(asked) == 15  # schedules ask for it before there is a group
    iterator = iter(begun)  # Lightning makes one, to see whether that can be done
    join(2, 4)
    wanted = reference(made, 2, 4)[0]
    assert len(early) == len(asked) == 4 and len(told) == 15
    assert ids(early) == ids(asked) == ids(make(made)) == wanted
    assert [iterator.sample_ids.tolist() for _ in iterator] == wanted
    assert ids(told) == reference(made, 0, 1)[0]
    torch.distributed.destroy_process_group()
    assert len(early) == 4 and ids(early) == reference(made, 2, 4, epochs=2)[1]


def test_epochs_where_the_rank_turns_out(made, join):
    """All ranks begin with the same one: what one of them has iterated alone does not count."""
    loader, told = make(made), make(made)
    ids(loader), ids(loader)
    told.set_epoch(1)
    ids(told)
    join(1, 3)
    first, second = reference(made, 1, 3, epochs=2)
    assert ids(loader) == first and ids(loader) == second
    assert ids(told) == second


def test_an_iteration_ends_where_the_rank_turns_out(made, join):
    """It would go on with samples of other ranks, and neither the state nor `close` would know of it."""
    loader = make(made)
    old = iter(loader)
    next(old)
    join(1, 3)
    assert len(loader) == 5
    with pytest.raises(stoker.CancelledError):
        while True:
            next(old)
    assert ids(loader) == reference(made, 1, 3)[0]


def test_stats_ask_for_no_rank(made, alone):
    loader = make(made)
    ids(loader)
    alone.setenv("WORLD_SIZE", "2")
    assert loader.stats()["batches"] == 15


def test_a_state_of_another_rank_is_loaded_again(made, join):
    """Processes that were one when it was saved have what is left of its epoch between them."""
    loader = make(made)
    next(iter(loader))
    state = loader.state_dict()
    loader.load_state_dict(state)
    join(1, 2)
    with pytest.raises(stoker.FailedPreconditionError, match=r"was rank 0 of 1, and .* is rank 1 of 2"):
        next(iter(loader))
    loader.load_state_dict(state)
    left = [i for batch in reference(made, 0, 1)[0][1:] for i in batch]
    assert [i for batch in ids(loader) for i in batch] == left[1::2]
    assert ids(loader) == reference(made, 1, 2, epochs=2)[1]


def test_a_batch_sampler_goes_on_in_an_epoch_that_others_began(made, alone):
    state = {**make(made, rank=0, world=1).state_dict(), "epoch": 2, "batch": 5}
    one, other = (make(made, rank=1, world=3, batch_size=3) for _ in range(2))
    one.load_state_dict(state)
    other.load_state_dict(state)
    assert list(other.batch_sampler) == ids(one)
    assert list(other.batch_sampler) == ids(one) == reference(made, 1, 3, epochs=4, batch_size=3)[3]


def test_the_sampler_lists_what_is_left_of_an_epoch_that_others_began(made, alone):
    uneven = {"remainder": "uneven"}
    state = {**make(made, rank=0, world=1, batch_size=7, **uneven).state_dict(), "epoch": 2, "batch": 2}
    loader = make(made, rank=1, world=3, **uneven)
    loader.load_state_dict(state)
    left = [i for batch in reference(made, 0, 1, epochs=3, batch_size=7, **uneven)[2] for i in batch][14:]
    assert list(loader.sampler) == left[1::3]
    assert [i for batch in ids(loader) for i in batch] == left[1::3]
    assert list(loader.sampler) == [
        i for batch in reference(made, 1, 3, epochs=4, **uneven)[3] for i in batch
    ]


def test_a_rank_alone_and_a_world_alone_are_refused(made, alone):
    """Each process would have the share of rank 0."""
    for options in ({"world": 2}, {"rank": 0}, {"rank": 1}):
        with pytest.raises(ValueError, match="rank= and world= belong together"):
            make(made, **options)


def test_options_are_checked_at_once(made, alone):
    """Also where the rank is known later."""
    alone.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="batch_size"):
        make(made, batch_size=0)
    with pytest.raises(ValueError, match="rank"):
        make(made, rank=2, world=2)
    with pytest.raises(stoker.FailedPreconditionError, match="RANK"):
        make(made).state_dict()


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK='2', which is not a number from 0 to 1"),
        ({"WORLD_SIZE": "2", "RANK": "-1"}, "RANK='-1'"),
        ({"WORLD_SIZE": "2", "RANK": "one"}, "RANK='one'"),
        ({"WORLD_SIZE": "two", "RANK": "0"}, "WORLD_SIZE='two', which is not a number of processes"),
        ({"WORLD_SIZE": "0", "RANK": "0"}, "WORLD_SIZE='0'"),
        ({"WORLD_SIZE": "1.0", "RANK": "0"}, "WORLD_SIZE='1.0'"),
    ],
)
def test_an_environment_that_does_not_say_it(made, alone, join, environment, says):
    loader, told = make(made), make(made, rank=1, world=2)
    for name, value in environment.items():
        alone.setenv(name, value)
    for use in (len, lambda loader: next(iter(loader)), lambda loader: loader.state_dict()):
        with pytest.raises(stoker.FailedPreconditionError) as caught:
            use(loader)
        assert says in str(caught.value) and "rank= and world=" in str(caught.value)
    wanted = reference(made, 1, 2)[0]
    assert ids(told) == wanted
    join(1, 2)
    assert ids(loader) == wanted


def test_an_environment_without_a_rank(made, alone, join):
    """Lightning's. The length is the same for all ranks: schedules ask for it before there is a group."""
    alone.setenv("WORLD_SIZE", "2")
    loader, uneven = make(made), make(made, remainder="uneven")
    assert len(loader) == 8
    uses = [(loader, iter), (loader, lambda it: it.state_dict()), (uneven, len), (uneven, iter)]
    for used, use in uses:
        with pytest.raises(
            stoker.FailedPreconditionError, match=r"WORLD_SIZE=2 and no RANK.*rank= and world="
        ):
            next(use(used))
    join(1, 2)
    assert len(loader) == len(uneven) == 8 and ids(loader) == reference(made, 1, 2)[0]


def test_an_environment_of_one(made, alone):
    for world in ("1", ""):
        alone.setenv("WORLD_SIZE", world)
        assert ids(make(made)) == reference(made, 0, 1)[0]


def test_an_iterator_alone_takes_nothing(made, alone):
    """Neither an epoch nor the place of a state."""
    loader = make(made)
    first, second = reference(made, 0, 1, epochs=2)
    iter(loader), iter(loader)
    assert ids(loader) == first
    state = {**loader.state_dict(), "epoch": 0, "batch": 5}
    loader.load_state_dict(state)
    iter(loader)
    assert loader.state_dict() == state
    assert ids(loader) == first[5:] and ids(loader) == second
    assert iter(loader).sample_ids.tolist() == []


def test_the_current_device_is_asked_when_it_counts(made, alone):
    """torch.cuda.set_device may come later: there is no GPU here, and nothing asks for one before."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    alone.setattr(torch.cuda, "current_device", lambda: 3)
    loader = make(made, device="cuda")
    assert loader.device == torch.device("cuda", 3) and len(loader) == 15
    with pytest.raises(stoker.Error):
        next(iter(loader))


# --- accelerate -------------------------------------------------------------------------------------


def test_accelerate_on_two_processes(made, tmp_path):
    """Its process group begins with its Accelerator; what it prepares is shared once, not twice."""
    pytest.importorskip("accelerate", reason="accelerate is not installed here")
    program = """
        import accelerate
        loader = make()
        accelerator = accelerate.Accelerator(cpu=True)
        prepared = accelerator.prepare(loader)
        epoch = ids(prepared)
        skipped = accelerator.skip_first_batches(prepared, 6)
        gathered = [accelerator.gather_for_metrics(labels).tolist() for _, labels in skipped]
        tell(epoch=epoch, world=accelerator.num_processes, gathered=gathered)
    """
    told = run(tmp_path, made, program, TORCHRUN)
    assert [rank["epoch"] for rank in told] == [reference(made, rank, 2)[0] for rank in range(2)]
    assert all(rank["world"] == 2 for rank in told)
    targets = make(made).dataset.targets
    batches = [reference(made, rank, 2, epochs=2)[1][6:] for rank in range(2)]
    wanted = [[targets[i] for i in first + second] for first, second in zip(*batches)]
    assert all(rank["gathered"] == wanted for rank in told)


# --- Lightning --------------------------------------------------------------------------------------

LIGHTNING = """
    import lightning, warnings
    warnings.filterwarnings("ignore")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)
            self.seen = {"training": [], "validation": []}
        def training_step(self, batch, index):
            images, labels = batch
            self.seen["training"].append(images.double().sum((1, 2, 3)).tolist())
            return torch.nn.functional.cross_entropy(self.layer(images.flatten(1)), labels)
        def validation_step(self, batch, index):
            if not self.trainer.sanity_checking:
                self.seen["validation"].append(batch[0].double().sum((1, 2, 3)).tolist())
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    train, validation = make(), make(shuffle=False)  # before there is a process group, as users do
    len(train)  # before `fit` the first process does not know of the second one: 15 here, 8 there
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=sys.argv[2] + "/..")
    trainer.fit(module, train, validation)
    pathlib.Path(sys.argv[2], f"of-{trainer.global_rank}").write_text(
        json.dumps({"now": len(train), **module.seen}))
"""


def sums(folder, rank, epoch, **options):
    """Returns the sums of the images of an epoch's batches."""
    loader = make(folder, rank=rank, world=2, **options)
    loader.set_epoch(epoch)
    return [images.double().sum((1, 2, 3)).tolist() for images, _ in loader]


def test_lightning_on_two_processes(made, tmp_path):
    """Its processes and their group begin in `fit`; loaders are there before."""
    pytest.importorskip("lightning", reason="Lightning is not installed here")
    told = run(tmp_path, made, LIGHTNING)
    assert len(told) == 2
    for rank, seen in enumerate(told):
        assert seen["training"] == [*sums(made, rank, 0), *sums(made, rank, 1)]
        assert len(seen["training"]) == 2 * seen["now"] == 16
        assert len(seen["validation"]) == 16
