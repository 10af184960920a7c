"""An iterator continues exactly where it was, in a new process."""

import pathlib

import numpy as np
import pytest
import stoker
import tensorflow as tf
from tensors import SIZE, arrays, same


@pytest.mark.long
@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("native", "plain"),
        ("native", "symbolic prefetch"),
        ("fallback", "prefetch"),
        ("fallback", "symbolic"),
    ],
)
def test_the_rest_is_identical_in_a_new_process(op, kind, made, python, tmp_path):
    rest = python("checkpoint.py", op, kind, "save", made, tmp_path).splitlines()
    assert len(rest) == 3 * 6 - 8
    restored = python("checkpoint.py", op, kind, "restore", made, tmp_path).splitlines()
    if op == "fallback" and "symbolic" not in kind:
        # TensorFlow may have stored the epoch's last batches themselves (it adds a prefetch() of its
        # own): no op runs then that tells the new process which epoch it was, and the next is 0 there.
        assert restored[:4] == rest[:4] and len(restored) == len(rest)
    else:
        assert restored == rest


def test_saving_takes_no_epoch(make, op, tmp_path):
    dataset = make().as_tf_dataset(op=op)
    tf.train.Checkpoint(iterator=iter(dataset)).write(str(tmp_path / "unused"))
    iterator = iter(dataset)
    tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "unused"))
    tf.train.Checkpoint(iterator=iterator).read(str(tmp_path / "unused"))
    same(arrays(iterator), arrays(make().epoch(0)))


def test_restoring_decodes_nothing_twice(make, tmp_path):
    loader = make()
    iterator = iter(loader.as_tf_dataset(op="native"))
    for _ in range(4):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = make(depth=1)
    iterator = iter(other.as_tf_dataset(op="native"))
    tf.train.Checkpoint(iterator=iterator).read(path)
    same([tuple(map(np.array, next(iterator)))], arrays(loader.epoch(0))[4:5])
    assert other.stats()["samples"] <= 8 * 3  # the two that were left, and one of the next epoch


def bytes_of(dataset, folder, inject_prefetch, symbolic):
    """Of a checkpoint after three batches. TensorFlow's buffers may be full or not: nothing waits."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = inject_prefetch
    options.experimental_symbolic_checkpoint = symbolic
    iterator = iter(dataset.with_options(options))
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(folder / "saved"))
    return sum(file.stat().st_size for file in folder.glob(pathlib.Path(path).name + "*"))


BATCH = 8 * SIZE * SIZE * 3


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("step", ["nothing", "repeat", "take", "map"])
def test_without_the_prefetch_that_is_added_it_is_a_few_numbers(make, op, tmp_path, step, symbolic):
    dataset = make().as_tf_dataset(op=op)
    dataset = {
        "nothing": lambda: dataset,
        "repeat": lambda: dataset.repeat(3),
        "take": lambda: dataset.take(5),
        "map": lambda: dataset.map(lambda *columns: columns),
    }[step]()
    assert bytes_of(dataset, tmp_path, inject_prefetch=False, symbolic=symbolic) < 2_000 < BATCH


def test_checkpoints_store_later_shuffle_buffers(make, op, tmp_path):
    """As docs/tensorflow.md has it: symbolic checkpoints leave out a prefetch's, and not a shuffle's."""
    dataset = make().as_tf_dataset(op=op)
    assert bytes_of(dataset.prefetch(2), tmp_path, inject_prefetch=False, symbolic=True) < 2_000
    for symbolic in (False, True):
        assert bytes_of(dataset.shuffle(3), tmp_path, inject_prefetch=False, symbolic=symbolic) > 2 * BATCH


def test_a_checkpoint_of_other_options_is_refused(make, tmp_path):
    iterator = iter(make().as_tf_dataset(op="native"))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = iter(make(seed=6).as_tf_dataset(op="native"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="other options"):
        tf.train.Checkpoint(iterator=other).read(path)
    depth = iter(make(depth=1).as_tf_dataset(op="native"))
    tf.train.Checkpoint(iterator=depth).read(path)
    same(arrays(depth), arrays(make().epoch(0))[1:])


def without_buffers(dataset):
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return dataset.with_options(options)


def symbolic(dataset):
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    return dataset.with_options(options)


def saved_after(steps, dataset, folder):
    iterator = iter(dataset)
    for _ in range(steps):
        next(iterator)
    return tf.train.Checkpoint(iterator=iterator).write(str(folder / "saved"))


def test_another_world_goes_on_with_what_is_left(make, tmp_path):
    """Eight ranks have delivered 16 of 48 samples."""
    eight = symbolic(make(batch_size=1, world=8).as_tf_dataset(op="native"))
    path = saved_after(2, eight, tmp_path)
    order = np.concatenate([ids for *_, ids in make(sample_ids=True).epoch(0)])
    found = []
    for rank in range(3):
        loader = make(batch_size=5, world=3, rank=rank, sample_ids=True)
        iterator = iter(symbolic(loader.as_tf_dataset(op="native")))
        tf.train.Checkpoint(iterator=iterator).read(path)
        mine = [ids for *_, ids in arrays(iterator, "image", "label", "sample_id")]
        assert [len(ids) for ids in mine] == ([5, 5, 1] if rank < 2 else [5, 5])
        found += [*np.concatenate(mine)]
        assert len(arrays(loader.as_tf_dataset(op="native"))) == len(loader)
    assert sorted(found) == sorted(order[16:])


def piped(dataset):
    """After steps with buffers, two epochs."""

    def passed(*batch):
        return batch if len(batch) > 1 else batch[0]

    return dataset.repeat(2).map(passed, num_parallel_calls=2).prefetch(2)


def test_another_world_goes_on_behind_buffers_with_symbolic_checkpoints(make, tmp_path):
    one = make(sample_ids=True, batch_size=7)
    path = saved_after(3, symbolic(piped(one.as_tf_dataset(op="native"))), tmp_path)
    wanted = [*np.concatenate([ids for *_, ids in make(sample_ids=True).epoch(0)])[21:], *range(48)]
    found = []
    for rank in range(3):
        loader = make(batch_size=5, world=3, rank=rank, sample_ids=True)
        iterator = iter(symbolic(piped(loader.as_tf_dataset(op="native"))))
        tf.train.Checkpoint(iterator=iterator).read(path)
        found += [i for batch in iterator for i in batch["sample_id"].numpy()]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("epoch", [None, 2])
def test_what_is_left_can_be_saved_and_restored_again(make, tmp_path, epoch):
    """By the ranks that finish the epoch. The next one is whole, also where it is the same."""

    def iterate(**options):
        loader = make(batch_size=5, world=3, rank=1, **options)
        return iter(symbolic(loader.as_tf_dataset(op="native", epoch=epoch).repeat(2)))

    one = symbolic(make(batch_size=7).as_tf_dataset(op="native", epoch=epoch).repeat(2))
    path = saved_after(2, one, tmp_path)
    iterator = iterate()
    tf.train.Checkpoint(iterator=iterator).read(path)
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "again"))
    again = iterate(depth=1)
    tf.train.Checkpoint(iterator=again).read(path)
    rest = arrays(again)
    same(rest, arrays(iterator))
    whole = make(batch_size=5, world=3, rank=1).epoch(1 if epoch is None else epoch)
    assert len(rest) == 2 + 4
    same(rest[2:], arrays(whole))


@pytest.mark.parametrize("pipeline", [lambda dataset: dataset, piped, without_buffers])
def test_another_world_is_refused_where_buffers_may_be_in_the_checkpoint(make, tmp_path, pipeline):
    """Each of the ranks would deliver what is in them."""
    path = saved_after(2, pipeline(make(batch_size=7).as_tf_dataset(op="native")), tmp_path)
    other = iter(pipeline(make(batch_size=7, world=3).as_tf_dataset(op="native")))
    words = "world was 1 and is 3.*experimental_symbolic_checkpoint"
    with pytest.raises(tf.errors.FailedPreconditionError, match=words):
        tf.train.Checkpoint(iterator=other).read(path)


def test_a_rest_with_a_short_batch_is_refused_where_shapes_are_static(make, tmp_path):
    """Whole epochs are four batches of four for each of three ranks; 43 samples are left."""
    path = saved_after(1, symbolic(make(batch_size=5).as_tf_dataset(op="native")), tmp_path)
    dataset = make(batch_size=4, world=3).as_tf_dataset(op="native")
    assert dataset.element_spec[0].shape[0] == 4
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"a batch of 3 rows, .* have 4 each"):
        tf.train.Checkpoint(iterator=iter(symbolic(dataset))).read(path)
    full = make(batch_size=5, drop_remainder=True)
    path = saved_after(1, symbolic(full.as_tf_dataset(op="native")), tmp_path)
    for rank in range(3):
        loader = make(batch_size=4, world=3, rank=rank, drop_remainder=True)
        iterator = iter(symbolic(loader.as_tf_dataset(op="native")))
        tf.train.Checkpoint(iterator=iterator).read(path)
        assert [len(labels) for _, labels in arrays(iterator)] == [4, 4, 4]


@pytest.mark.parametrize(
    ("options", "said"), [({"seed": 6}, "seed was 5 and is 6"), ({"world": 3}, "world was 1 and is 3")]
)
@pytest.mark.parametrize("epoch", [None, 1])
def test_the_fallback_says_which_options_are_others(make, tmp_path, options, said, epoch):
    """With its first batch. It goes on with the same ranks only."""
    dataset = make().as_tf_dataset(op="fallback", epoch=epoch)
    iterator = iter(without_buffers(dataset))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = iter(without_buffers(make(**options).as_tf_dataset(op="fallback", epoch=epoch)))
    tf.train.Checkpoint(iterator=other).read(path)
    with pytest.raises(tf.errors.FailedPreconditionError, match=f"other options or samples: {said}. Give"):
        next(other)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 6}, "seed was 5 and is 6"),
        ({"seed": 0}, "seed was 5 and is 0"),
        (
            {"remainder": "drop", "shuffle": False},
            "remainder was uneven and is drop; shuffle was true and is false",
        ),
        ({"dtype": "float32"}, "dtype was uint8 and is float32"),
    ],
)
def test_a_checkpoint_of_other_options_says_which(make, tmp_path, options, said):
    iterator = iter(make().as_tf_dataset(op="native"))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = iter(make(**options).as_tf_dataset(op="native"))
    with pytest.raises(tf.errors.FailedPreconditionError) as caught:
        tf.train.Checkpoint(iterator=other).read(path)
    assert f"other options or samples: {said}. Give this loader the same source" in str(caught.value)


def test_a_checkpoint_of_other_transforms_says_which(made, tmp_path):
    def iterate(*transforms):
        loader = stoker.Loader(stoker.image_folder(made), transforms, batch_size=8)
        return iter(loader.as_tf_dataset(op="native"))

    flip = stoker.RandomHorizontalFlip()
    iterator = iterate(stoker.RandomResizedCrop(32), flip)
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    for transforms, said in (
        (
            [stoker.RandomResizedCrop((16, 32)), flip],
            "transforms[0].height was 32 and is 16",
        ),
        ([stoker.Resize((32, 32)), flip], "transforms[0] was RandomResizedCrop and is Resize"),
        ([stoker.RandomResizedCrop(32)], "transforms[1] was RandomHorizontalFlip and is none"),
    ):
        with pytest.raises(tf.errors.FailedPreconditionError) as caught:
            tf.train.Checkpoint(iterator=iterate(*transforms)).read(path)
        assert f"other options or samples: {said}. Give" in str(caught.value)


def test_a_checkpoint_of_other_arrays_is_refused(tmp_path):
    def iterate(*arrays):
        return iter(stoker.Loader(stoker.arrays(*arrays), batch_size=4).as_tf_dataset(op="native"))

    a = np.arange(48).reshape(12, 4)
    iterator = iterate(a, a)
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="the data set's fingerprint was"):
        tf.train.Checkpoint(iterator=iterate(a + 1, a)).read(path)
    again = iterate(a.copy(), a.copy())
    tf.train.Checkpoint(iterator=again).read(path)
    np.testing.assert_array_equal(next(again)[0], a[4:8])


def test_checkpoint_at_the_end_of_an_epoch(make, op, tmp_path):
    dataset = make().as_tf_dataset(op=op)
    iterator = iter(dataset)
    for _ in range(6):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = make()
    restored = iter(other.as_tf_dataset(op=op))
    tf.train.Checkpoint(iterator=restored).read(path)
    assert list(restored) == []
    if op == "native":  # the fallback learns of an epoch with its first batch
        same(arrays(other.as_tf_dataset(op=op)), arrays(make().epoch(1)))


def test_a_state_in_the_middle_of_an_epoch_is_not_passed_by(make, op):
    loader = make()
    early = loader.as_tf_dataset(op=op)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    loader.load_state_dict(state)
    for ask in (lambda: loader.as_tf_dataset(op=op), lambda: iter(early)):
        with pytest.raises(stoker.FailedPreconditionError, match="batch 1 of epoch 0"):
            ask()
    same(arrays(loader.as_tf_dataset(epoch=0, op=op)), arrays(loader.epoch(0)))
    same(arrays(loader), arrays(make().epoch(0))[1:])
    same(arrays(early), arrays(make().epoch(1)))


@pytest.mark.parametrize(("saved", "restored"), [(3, 5), (3, None), (None, 3)])
def test_a_checkpoint_of_another_pinned_epoch_is_refused(make, tmp_path, saved, restored):
    iterator = iter(make().as_tf_dataset(epoch=saved, op="native"))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    other = iter(make().as_tf_dataset(epoch=restored, op="native"))
    with pytest.raises(tf.errors.FailedPreconditionError, match=f"epoch={saved or restored}"):
        tf.train.Checkpoint(iterator=other).read(path)


def test_restoring_a_pinned_iterator_leaves_the_count_of_epochs_alone(make, tmp_path):
    loader = make()
    pinned = iter(loader.as_tf_dataset(epoch=3, op="native"))
    next(pinned)
    path = tf.train.Checkpoint(iterator=pinned).write(str(tmp_path / "saved"))
    dataset = loader.as_tf_dataset(op="native")
    for _ in range(2):
        list(dataset)
    tf.train.Checkpoint(iterator=pinned).read(path)
    same(arrays(pinned), arrays(make().epoch(3))[1:])
    same(arrays(dataset), arrays(make().epoch(2)))
