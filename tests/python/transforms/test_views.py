"""Several views of each image: `views` of Loader."""

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import stoker

GLOBAL = [stoker.RandomResizedCrop(64, scale=(0.4, 1)), stoker.RandomHorizontalFlip()]
LOCAL = [stoker.RandomResizedCrop((24, 32), scale=(0.05, 0.4)), stoker.ColorJitter(brightness=0.4)]
EVAL = [stoker.Resize(70), stoker.CenterCrop(60)]
VIEWS = [GLOBAL, GLOBAL, LOCAL, EVAL]


@pytest.fixture(scope="module")
def source(made):
    return stoker.image_folder(made)


def test_columns_follow_those_of_the_source(source):
    loader = stoker.Loader(source, views=VIEWS, batch_size=5, sample_ids=True)
    batch = next(iter(loader))
    assert batch.keys() == ("image", "label", "image_1", "image_2", "image_3", "sample_id")
    assert [column.shape for column in batch[:5]] == [
        (5, 64, 64, 3),
        (5,),
        (5, 64, 64, 3),
        (5, 24, 32, 3),
        (5, 60, 60, 3),
    ]
    image, _, *others, ids = batch
    assert len(others) == 3 and not np.array_equal(image, others[0])
    assert np.array_equal(ids, np.arange(5))


@pytest.mark.parametrize(("dtype", "layout"), [("uint8", "NHWC"), ("float32", "NCHW"), ("float16", "NHWC")])
def test_the_first_view_and_those_without_random_draws_are_what_a_loader_makes_alone(source, dtype, layout):
    options = {"batch_size": 7, "shuffle": True, "seed": 3, "dtype": dtype, "layout": layout}
    together = stoker.Loader(source, views=VIEWS, **options)
    first = stoker.Loader(source, GLOBAL, **options)
    last = stoker.Loader(source, EVAL, **options)
    for batch, alone, fixed in itertools.zip_longest(together, first, last):
        assert np.array_equal(batch.label, alone.label)
        assert np.array_equal(batch.image, alone.image)
        assert np.array_equal(batch.image_3, fixed.image)


def test_batches_do_not_depend_on_threads_or_on_the_other_views(source):
    def images(views, column, **runtime):
        loader = stoker.Loader(
            source, views=views, batch_size=6, shuffle=True, seed=9, runtime=stoker.Runtime(**runtime)
        )
        return np.concatenate([batch[column] for batch in loader])

    wanted = images(VIEWS, "image_2", threads=1)
    assert np.array_equal(images(VIEWS, "image_2", threads=3, reader="pread"), wanted)
    assert np.array_equal(images([EVAL, EVAL, LOCAL], "image_2"), wanted)
    assert not np.array_equal(images([EVAL, LOCAL], "image_1"), wanted), "each view has its own draws"


def test_one_view_is_the_same_as_transforms(source):
    together = stoker.Loader(source, views=[GLOBAL], batch_size=len(source))
    alone = stoker.Loader(source, GLOBAL, batch_size=len(source))
    assert together.explain() == alone.explain() and together.state_dict() == alone.state_dict()
    (one,), (same,) = together, alone
    assert one.keys() == same.keys() == ("image", "label")
    assert np.array_equal(one.image, same.image)


def test_images_alone(made):
    paths = sorted(map(str, made.rglob("*.jp*g")))[:4]
    (batch,) = stoker.Loader(stoker.files(paths), views=[GLOBAL, LOCAL], batch_size=4)
    assert batch.keys() == ("image", "image_1")


def test_arrays_in_memory():
    pixels = np.random.default_rng(1).integers(0, 256, (9, 80, 90, 3), np.uint8)
    source = stoker.arrays(pixels, np.arange(9))
    batches = list(stoker.Loader(source, views=[GLOBAL, EVAL], batch_size=4))
    alone = list(stoker.Loader(source, EVAL, batch_size=4))
    assert [len(batch.label) for batch in batches] == [4, 4, 1]
    for batch, fixed in zip(batches, alone):
        assert np.array_equal(batch.image_1, fixed.image)


def test_bad_samples_are_dropped_from_all_views(made, tmp_path):
    paths = sorted(map(str, made.rglob("*.jp*g")))[:6]
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 no photograph")
    listed = [*paths[:3], str(broken), *paths[3:]]
    (batch,) = stoker.Loader(
        stoker.files(listed, list(range(7))), views=[EVAL, GLOBAL, EVAL], batch_size=7, on_bad="drop"
    )
    assert batch.label.tolist() == [0, 1, 2, 4, 5, 6]
    (whole,) = stoker.Loader(stoker.files(paths), EVAL, batch_size=6)
    assert np.array_equal(batch.image, whole) and np.array_equal(batch.image_2, whole)


def test_a_truncated_photograph_in_all_views(made, tmp_path):
    paths = sorted(map(str, made.rglob("*.jp*g")))[:6]
    half = tmp_path / "half.jpg"
    half.write_bytes(Path(paths[0]).read_bytes()[: Path(paths[0]).stat().st_size // 2])
    listed = [*paths[1:4], str(half), *paths[4:]]
    options = {"batch_size": 6, "shuffle": True, "seed": 2}
    for more in ({"on_bad": "substitute"}, {"on_bad": "drop"}, {"accept_truncated": True}):
        (batch,) = stoker.Loader(stoker.files(listed), views=[GLOBAL, EVAL, EVAL], **options, **more)
        (first,) = stoker.Loader(stoker.files(listed), GLOBAL, **options, **more)
        (last,) = stoker.Loader(stoker.files(listed), EVAL, **options, **more)
        assert len(last) == 6 - (more.get("on_bad") == "drop")
        assert np.array_equal(batch.image, first)
        assert np.array_equal(batch.image_1, last) and np.array_equal(batch.image_2, last)


def test_a_map_gets_all_views(source):
    def stack(batch):
        assert batch.keys() == ("image", "label", "image_1")
        batch.image_1[:] = 255 - batch.image

    loader = stoker.Loader(source, [stoker.Map(stack)], views=[EVAL, EVAL], batch_size=8)
    for batch in loader:
        assert np.array_equal(batch.image_1, 255 - batch.image)


def test_states_name_the_view_that_differs(source):
    loader = stoker.Loader(source, views=VIEWS, batch_size=5, shuffle=True)
    epoch = [batch.image_2.copy() for batch in loader.epoch(0)]
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    again = stoker.Loader(source, views=VIEWS, batch_size=5, shuffle=True)
    again.load_state_dict(state)
    assert np.array_equal(next(iter(again)).image_2, epoch[1])
    changed = [*VIEWS[:3], [stoker.Resize(70), stoker.CenterCrop(59)]]
    other = stoker.Loader(source, views=changed, batch_size=5)
    with pytest.raises(stoker.FailedPreconditionError, match=r"views\[3\]\[1\].height was 60 and is 59"):
        other.load_state_dict(state)


def test_the_device_loader_has_all_views(source):
    loader = stoker.Loader(source, views=VIEWS, batch_size=5, dtype="float32", layout="NCHW")
    wanted = [[column.copy() for column in batch] for batch in loader.epoch(0)]
    for device in ("cpu", "host"):
        for batch, columns in itertools.zip_longest(loader.to_device(device).epoch(0), wanted):
            assert batch.keys() == ("image", "label", "image_1", "image_2", "image_3")
            for tensor, column in itertools.zip_longest(batch, columns):
                assert np.array_equal(np.from_dlpack(tensor), column)


def test_explain_and_repr_name_each_view(source):
    loader = stoker.Loader(source, views=VIEWS, batch_size=5)
    text = loader.explain()
    assert [line for line in text.splitlines() if line.startswith("view")] == [f"view {k}:" for k in range(4)]
    assert "views=[[RandomResizedCrop(" in repr(loader)
    next(iter(loader))
    assert "decoded once" in loader.stats()["plan"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"transforms": EVAL, "views": [EVAL]}, ValueError, "both transforms and views"),
        ({"views": [EVAL, [stoker.PadTo(2000)]]}, stoker.UnimplementedError, r"views\[1\]: PadTo"),
        ({"views": [EVAL, [stoker.Resize(9)]]}, ValueError, r"views\[1\]: "),
        ({"views": [EVAL, [stoker.CenterCrop]]}, TypeError, r"views\[1\]\[0\] is not one of"),
        ({"views": [EVAL, stoker.CenterCrop(3)]}, TypeError, r"views\[1\] must be a list of transforms"),
        ({"views": stoker.CenterCrop(3)}, TypeError, "views must be a sequence"),
        ({"views": [EVAL] * 65}, ValueError, "at most 64"),
        ({"transforms": [stoker.MixUp()], "views": [[*EVAL, stoker.PadTo(90)]]}, ValueError, "PadTo"),
        ({"transforms": [stoker.MixUp()], "views": [EVAL, EVAL]}, ValueError, "MixUp"),
    ],
)
def test_errors(source, arguments, error, message):
    with pytest.raises(error, match=message):
        stoker.Loader(source, batch_size=4, **arguments)


def test_a_field_with_the_name_of_a_view(made):
    paths = sorted(map(str, made.rglob("*.jp*g")))[:4]
    source = stoker.files(paths, list(range(4)), columns={"image_1": np.arange(4)})
    with pytest.raises(ValueError, match="image_1"):
        stoker.Loader(source, views=[EVAL, EVAL], batch_size=4)


def test_the_command_reads_recipes_with_views(command, made, tmp_path):
    recipe = tmp_path / "recipe.json"
    view = {"transforms": [{"name": "RandomResizedCrop", "height": 32, "width": 32}]}
    recipe.write_text(json.dumps({"views": [view, view]}))
    run = [command, "bench", made, "--recipe", recipe, "--json"]
    result = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert "view 1: RandomResizedCrop" in result.stdout
    result = subprocess.run(
        [command, "explain", "--recipe", recipe], capture_output=True, text=True, timeout=60
    )
    assert result.returncode != 0 and "several views" in result.stderr


@pytest.mark.parametrize("op", ["native", "fallback"])
def test_tensorflow(source, op):
    tf = pytest.importorskip("tensorflow", minversion="2")
    loader = stoker.Loader(source, views=[GLOBAL, LOCAL], batch_size=6, drop_remainder=True)
    wanted = [[column.copy() for column in batch] for batch in loader.epoch(0)]
    dataset = loader.as_tf_dataset(epoch=0, op=op)
    assert {name: spec.shape.as_list() for name, spec in dataset.element_spec.items()} == {
        "image": [6, 64, 64, 3],
        "label": [6],
        "image_1": [6, 24, 32, 3],
    }
    pairs = dataset.map(lambda batch: ((batch["image"], batch["image_1"]), batch["label"]))
    for ((image, other), label), columns in itertools.zip_longest(pairs, wanted):
        for tensor, column in zip((image, label, other), columns):
            assert np.array_equal(tensor.numpy(), column)
    assert isinstance(dataset, tf.data.Dataset)
    named = next(iter(loader.as_tf_dataset(epoch=0, names=True)))
    assert set(named) == {"image", "label", "image_1"}
