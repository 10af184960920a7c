"""stoker.from_dataset: samples that a Python object gives, called on threads. NumPy only."""

import pathlib
import re
import threading
import time
import weakref

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
import ends  # noqa: E402
import odd_exceptions  # noqa: E402
from epochs import same, taken  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48), stoker.RandomHorizontalFlip()]


class Photos:
    """Gives the photographs of a folder, in a form of the test's choice."""

    def __init__(self, folder, sample=lambda path, label: (path.read_bytes(), label)):
        source = stoker.image_folder(folder)
        self.paths = [pathlib.Path(source.path(i)) for i in range(len(source))]
        self.labels = source.labels.tolist()
        self.sample = sample
        self.called = []

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        self.called.append(i)
        return self.sample(self.paths[i], self.labels[i])


def number_of(path):
    return int(path.stem.split("_")[1])


def make(source, transforms=None, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 7, **options}
    return stoker.Loader(source, transforms or TRAIN, **options)


# --- the samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 3, 8])
@pytest.mark.parametrize("threads", [1, 4])
def test_the_same_bytes_as_the_folder(made, world, threads):
    for rank in range(world):
        options = {"rank": rank, "world": world, "batch_size": 7}
        folder = make(stoker.image_folder(made), **options)
        called = make(stoker.from_dataset(Photos(made), threads=threads), **options)
        for _ in range(2):
            theirs, ours = iter(folder), iter(called)
            same(taken(ours), taken(theirs))
            np.testing.assert_array_equal(ours.sample_ids, theirs.sample_ids)


FORMS = {
    "bytes": lambda path, label: path.read_bytes(),
    "bytearray": lambda path, label: bytearray(path.read_bytes()),
    "memoryview": lambda path, label: memoryview(path.read_bytes()),
    "strided": lambda path, label: memoryview(bytes(x for b in path.read_bytes() for x in (b, 0)))[::2],
    "array": lambda path, label: np.fromfile(path, np.uint8),
    "path": lambda path, label: path,
    "str": lambda path, label: str(path),
    "tuple of one": lambda path, label: (path,),
    "dictionary": lambda path, label: {"image": path.read_bytes()},
    "Hugging Face's bytes": lambda path, label: {"image": {"bytes": path.read_bytes(), "path": "x"}},
    "Hugging Face's path": lambda path, label: {"image": {"bytes": None, "path": str(path)}},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_images(made, form):
    want = [images for images, _ in taken(make(stoker.image_folder(made)))]
    got = taken(make(stoker.from_dataset(Photos(made, FORMS[form]))))
    same([(images,) for images in got], [(images,) for images in want])


class TensorLike:
    """What PyTorch's tensors are to stoker: (channels, height, width)."""

    def __init__(self, array):
        self.array = array

    def permute(self, *axes):
        return TensorLike(self.array.transpose(axes))

    def detach(self):
        return self

    def __array__(self, dtype=None, copy=None):
        return self.array


def pillow(pixels):
    return pytest.importorskip("PIL.Image").fromarray(pixels)


PIXELS = {
    "array": lambda pixels: pixels,
    "array that is not contiguous": lambda pixels: pixels[::-1, ::-1].copy()[::-1, ::-1],
    "tensor": lambda pixels: TensorLike(pixels.transpose(2, 0, 1)),
    "Pillow": pillow,
    "Pillow with alpha": lambda pixels: pillow(np.dstack([pixels, pixels[:, :, :1]])),
}


@pytest.mark.parametrize("form", PIXELS)
def test_pixels_are_those_of_arrays(form):
    """By the same transforms; also where images have different sizes, which arrays cannot."""
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (20, 37, 23, 3), dtype=np.uint8)
    labels = np.arange(20)
    made = [(PIXELS[form](image), label) for image, label in zip(pixels, labels)]
    for recipe in (TRAIN, [stoker.RandomCrop((40, 40), padding=9)]):
        want = taken(make(stoker.arrays(pixels, labels), recipe))
        same(taken(make(stoker.from_dataset(made), recipe)), want)
    shapes = [(int(h), int(w), 3) for h, w in rng.integers(1, 60, (20, 2))]
    images = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    source = stoker.from_dataset([PIXELS[form](image) for image in images])
    (batch,) = stoker.Loader(source, [stoker.PadTo(60)], batch_size=20)
    for row, image in zip(batch["image"], images):
        np.testing.assert_array_equal(row[: image.shape[0], : image.shape[1]], image)


def test_datasets_of_torchvision_work_as_they_are():
    torch = pytest.importorskip("torch")
    datasets = pytest.importorskip("torchvision.datasets")
    v2 = pytest.importorskip("torchvision.transforms.v2")

    def fake(transform):
        return datasets.FakeData(20, (3, 40, 30), 7, transform)

    samples = [fake(None)[i] for i in range(20)]
    pixels = np.stack([np.asarray(image) for image, _ in samples])
    want = taken(make(stoker.arrays(pixels, np.array([label for _, label in samples])), TRAIN))
    for transform in (None, v2.PILToTensor(), v2.ToImage()):
        same(taken(make(stoker.from_dataset(fake(transform)), TRAIN)), want)
    floats = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    with pytest.raises(TypeError, match=r"a tensor of float32 \(3, 40, 30\); pixels are uint8"):
        stoker.from_dataset(fake(floats))


def test_gray_pixels_have_three_equal_channels():
    gray = np.random.default_rng(3).integers(0, 256, (9, 7), dtype=np.uint8)
    forms = [gray, gray[:, :, None], TensorLike(gray), TensorLike(gray[None]), pillow(gray)]
    (got,) = stoker.Loader(stoker.from_dataset(forms), [stoker.Resize((9, 7))], batch_size=5)
    for row in got:
        np.testing.assert_array_equal(row, np.dstack([gray] * 3))
    with pytest.raises(
        TypeError, match=r"a tensor of uint8 \(9, 7, 3\); pixels are \(channels, height, width"
    ):
        stoker.from_dataset([TensorLike(np.dstack([gray] * 3))])
    with pytest.raises(TypeError, match=r"Pillow's mode 'I;16'; convert it to .*scale it before"):
        stoker.from_dataset([pillow(gray.astype(np.uint16))])


def test_ragged_rows_say_what_to_do(made):
    photos = Photos(made)
    photos.sample = lambda path, label: {"image": path, "box": [1] * len(photos.called)}
    with pytest.raises(stoker.UnavailableError, match=r"'box' is int64 .*; pad it to one shape"):
        next(iter(make(stoker.from_dataset(photos))))
    with pytest.raises(ValueError, match=r"give values of each image.s objects as stoker\.PerObject"):
        stoker.files(["a", "b"], columns={"box": [[1], [1, 2]]})


def test_columns(made):
    def sample(path, label):
        number = number_of(path)
        return {
            "image": path,
            "number": number,
            "half": np.float32(number / 2),
            "box": [number, number + 1, number + 2, number + 3],
            "flag": number % 2 == 0,
            "label": label,  # the first in a batch, as with other sources
        }

    photos = Photos(made, sample)
    source = stoker.from_dataset(photos, class_names=["a", "b", "c"])
    assert source.has_labels and source.classes == ["a", "b", "c"] and len(source) == 60
    iterator = iter(make(source))
    rows = 0
    for batch in iterator:
        assert list(batch.keys()) == ["image", "label", "number", "half", "box", "flag"]
        numbers = [number_of(photos.paths[i]) for i in iterator.sample_ids]
        rows += len(numbers)
        np.testing.assert_array_equal(batch["label"], [photos.labels[i] for i in iterator.sample_ids])
        np.testing.assert_array_equal(batch["number"], numbers)
        np.testing.assert_array_equal(batch["half"], np.array(numbers, np.float32) / 2)
        np.testing.assert_array_equal(batch["box"], np.array(numbers)[:, None] + np.arange(4))
        np.testing.assert_array_equal(batch["flag"], np.array(numbers) % 2 == 0)
        assert [column.dtype.name for column in batch] == [
            "uint8", "int64", "int64", "float32", "int64", "bool",
        ]  # fmt: skip
    assert rows == 60


def test_other_orders_of_bytes(made):
    def sample(path, label):
        return {"image": path, "label": np.int16(label).astype(">i2"), "box": np.array([1, 2.5], ">f4")}

    for batch in make(stoker.from_dataset(Photos(made, sample))):
        assert batch["label"].dtype == np.dtype("int16") and set(batch["label"]) <= {0, 1, 2}
        np.testing.assert_array_equal(batch["box"], np.tile(np.float32([1, 2.5]), (len(batch[0]), 1)))


def test_errors_of_stoker_keep_their_class_and_file(made):
    error = stoker.DataLossError("wrong \udcff", "/data/\udcffä", 17, "Make it again")

    def sample(path, label):
        if len(photos.called) > 1:
            raise error
        return path

    photos = Photos(made, sample)

    def raised(kind):
        with pytest.raises(kind) as got:
            taken(make(stoker.from_dataset(photos), batch_size=1))
        photos.called.clear()
        return got.value

    got = raised(stoker.DataLossError)
    assert (got.file, got.offset, got.advice) == ("/data/\udcffä", 17, "Make it again")
    assert re.match(r"Photos\[\d+\]: wrong ", got.cause)
    error = stoker.NotFoundError("gone", "/a/b.jpg")
    assert re.match(r"/a/b\.jpg: Photos\[\d+\]: gone\.", str(raised(stoker.NotFoundError)))
    error = stoker.NotFoundError("no such thing")
    got = raised(stoker.NotFoundError)
    assert got.file.startswith("Photos[") and got.cause.startswith("no such thing")
    error = stoker.CancelledError("closed")  # it would mean something to the loader
    assert raised(stoker.UnavailableError).cause.startswith("closed")
    error = stoker.ResourceExhaustedError("too much")
    assert raised(stoker.UnavailableError).cause.startswith("too much")


def test_integers_of_other_types_fit_or_are_errors(made):
    photos = Photos(made)
    photos.sample = lambda path, label: (path, np.uint8(7) if len(photos.called) == 1 else 255)
    labels = next(iter(make(stoker.from_dataset(photos))))["label"]
    assert labels.dtype == np.uint8 and set(labels) == {255}
    for first, value in [(np.uint8(0), 256), (np.uint8(0), -1), (np.int64(0), 2**63), (np.uint64(0), -1)]:
        given = [first, value]
        photos = Photos(made)
        photos.sample = lambda path, label, photos=photos, given=given: (path, given[len(photos.called) > 1])
        with pytest.raises(stoker.UnavailableError, match=f"'label' is {value}, which {first.dtype}"):
            next(iter(make(stoker.from_dataset(photos))))


def test_numbers_take_the_type_of_sample_0(made):
    photos = Photos(made, lambda path, label: (path, 1.5 if number_of(path) == 0 else number_of(path)))
    labels = np.concatenate([labels for _, labels in make(stoker.from_dataset(photos), shuffle=False)])
    assert labels.dtype == np.float64 and sorted(labels) == sorted([1.5, *range(1, 60)])


def test_labels_are_mixed(made):
    recipe = [*TRAIN, stoker.MixUp(num_classes=3)]
    same(
        taken(make(stoker.from_dataset(Photos(made)), recipe)),
        taken(make(stoker.image_folder(made), recipe)),
    )


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_on_devices(made, device):
    loader = make(stoker.from_dataset(Photos(made))).to_device(device)
    got = [tuple(np.from_dlpack(tensor).copy() for tensor in batch) for batch in loader]
    same(got, taken(make(stoker.image_folder(made))))


# --- the calls --------------------------------------------------------------------------------------


def test_each_sample_is_asked_for_once_an_epoch(made):
    photos = Photos(made)
    loader = make(stoker.from_dataset(photos))
    assert photos.called == [0]
    iterator = iter(loader)
    wanted = []
    for _ in iterator:
        wanted += list(iterator.sample_ids)
    assert sorted(wanted) == list(range(60))
    # The next epoch may have begun.
    assert all(photos.called.count(i) >= 1 + (i == 0) for i in range(60))


def test_as_many_threads_as_were_asked_for(made):
    meeting = threading.Barrier(5)  # passed only if five calls are made at a time
    main = threading.get_ident()
    kept = threading.local()

    def sample(path, label):
        if threading.get_ident() != main and not hasattr(kept, "met"):
            kept.met = True  # lasts from call to call
            meeting.wait(timeout=60)
        return path

    assert len(taken(make(stoker.from_dataset(Photos(made, sample), threads=5)))) == 8


def test_stats_and_advice_name_the_calls(made):
    def slow(path, label):
        time.sleep(0.01)
        return path

    loader = make(stoker.from_dataset(Photos(made, slow), threads=1))
    taken(loader)
    stats = loader.stats()
    assert stats["reader"] == "calls" and stats["samples"] >= 60
    assert "Calling the source is the limit" in stats["advice"]
    assert "Call the source on more threads" in stats["advice"]


# --- errors -----------------------------------------------------------------------------------------


def test_what_a_call_raises_names_sample_and_function(made):
    def sample(path, label):
        if number_of(path) == 17:
            raise KeyError("no such row")
        return path, label

    photos = Photos(made, sample)
    bad = next(i for i in range(60) if number_of(photos.paths[i]) == 17)
    iterator = iter(make(stoker.from_dataset(photos)))
    errors, rows = [], 0
    while True:
        try:
            rows += len(next(iterator)[0])
        except stoker.UnavailableError as error:
            errors.append(error)
        except StopIteration:
            break
    assert rows == 52 and len(errors) == 1
    assert errors[0].file == f"Photos[{bad}]"
    assert errors[0].cause.startswith("KeyError: 'no such row' (")
    assert "test_from_dataset.py" in errors[0].cause and "in sample)" in errors[0].cause


@pytest.mark.parametrize(("error", "words"), odd_exceptions.ODD)
def test_exceptions_with_odd_messages(made, error, words):
    def sample(path, label):
        if photos.called != [0]:
            raise error
        return path

    photos = Photos(made, sample)
    with pytest.raises(stoker.UnavailableError) as raised:
        next(iter(make(stoker.from_dataset(photos))))
    assert re.match(words, raised.value.cause), raised.value.cause


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (None, r"its image is None \(NoneType\).*or pixels"),
        (5, r"its image is 5 \(int\)"),
        (np.zeros((2, 2, 3), np.float32), r"an array of float32 \(2, 2, 3\); pixels are uint8.*ToTensor"),
        (np.zeros((3, 2, 2), np.uint8), r"\(3, 2, 2\); pixels are \(height, width, channels\)"),
        (np.zeros((0, 2, 3), np.uint8), r"\(0, 2, 3\); pixels are"),
        (np.zeros(5, np.float32), r"of shape \(5,\) and type 'f'; encoded bytes are"),
        ({"img": b"x", "label": 0}, "a dictionary with 'img', 'label', and no \"image\""),
        ({"path": "1.jpg", "label": 0}, "a dictionary with 'path', 'label', and no \"image\""),
        ("", "the path of its image is empty"),
        ("/a\0b.jpg", "the path of its image has a NUL byte"),
        ((b"x", 1, 2), "a tuple of 3"),
        (b"x", "it has image; sample 0 has image, label"),
        ((b"x", [1, 2]), r"'label' is int64 of shape \(2,\); that of sample 0 is int64 of shape \(\)"),
        ((b"x", 1.5), "'label' is float64"),
        ((b"x", "cat"), "'label' is <U3"),
        ({"image": b"x", "age": 3}, "it has image, age; sample 0 has image, label"),
    ],
)
def test_samples_unlike_the_first(made, wrong, words):
    photos = Photos(made)
    photos.sample = lambda path, label: (path, label) if len(photos.called) == 1 else wrong
    loader = make(stoker.from_dataset(photos), shuffle=False)
    with pytest.raises(stoker.UnavailableError, match=words) as error:
        next(iter(loader))
    assert error.value.file.startswith("Photos[")


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", stoker.DataLossError), (b"no image", stoker.DataLossError), ("/gone.jpg", FileNotFoundError)],
)
def test_bad_images_are_named(made, content, kind):
    photos = Photos(made, lambda path, label: content)
    with pytest.raises(kind, match=r"Photos\[0\]|gone\.jpg"):
        next(iter(make(stoker.from_dataset(photos), shuffle=False)))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"dataset": 5}, TypeError, "must have __len__ and __getitem__, which 5 has not"),
        ({"dataset": []}, ValueError, "list has 0 samples"),
        ({"dataset": [b"x", b"y"], "threads": 0}, ValueError, "threads is 0"),
        ({"dataset": [b"x", b"y"], "threads": 257}, ValueError, "threads is 257"),
        ({"dataset": [b"x", b"y"], "class_names": ["a"]}, ValueError, "have no label"),
        ({"dataset": [(b"x", "cat")]}, TypeError, "'label' of sample 0 is 'cat'"),
        ({"dataset": [(b"x", [])]}, ValueError, r"'label' of sample 0 has the shape \(0,\)"),
        ({"dataset": [{"image": b"x", 3: 4}]}, ValueError, "sample 0 has the name 3"),
        ({"dataset": [(1, 2, 3)]}, TypeError, "a tuple of 3"),
        ({"dataset": [(np.zeros((2, 2, 4), np.uint8), 1)]}, TypeError, r"list\[0\]: .* with 1 or 3 channels"),
        ({"dataset": [{"img": b"x"}]}, TypeError, r"list\[0\]: a dictionary with 'img', and no \"image\""),
        ({"dataset": [(object(), 1)]}, TypeError, r"list\[0\]: .* must be encoded bytes"),
        ({"dataset": "photos/train"}, TypeError, "must be an object that has samples, not 'photos/train'"),
    ],
)
def test_wrong_arguments(arguments, kind, words):
    with pytest.raises(kind, match=words):
        stoker.from_dataset(**arguments)


def test_a_source_tells_of_itself(made):
    source = stoker.from_dataset(Photos(made))
    assert repr(source) == "stoker.from_dataset(Photos, 60 samples)"
    with pytest.raises(ValueError, match="has no files"):
        source.path(0)


# --- states and ends --------------------------------------------------------------------------------


def test_resuming(made):
    def loader():
        return make(stoker.from_dataset(Photos(made)))

    first = iter(one := loader())
    next(first), next(first)
    two = loader()
    two.load_state_dict(one.state_dict())
    same(taken(two), taken(first))
    fewer = Photos(made)
    fewer.paths.pop()
    with pytest.raises(stoker.FailedPreconditionError, match="other options or samples"):
        make(stoker.from_dataset(fewer)).load_state_dict(one.state_dict())


def test_a_dataset_is_let_go(made):
    import gc

    photos = Photos(made)
    loader = make(stoker.from_dataset(photos))
    next(iter(loader))
    there = weakref.ref(photos)
    del photos, loader
    gc.collect()
    deadline = time.monotonic() + 60
    while there() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()
    assert there() is None


def test_a_call_may_release_a_loader_but_not_close_it(made):
    errors, holders = [], [[]]

    def sample(path, label):
        if holders and holders[0]:
            held = holders.pop()
            for call in (held[0].close, held[0].to_device("host").close):
                try:
                    call()
                except stoker.FailedPreconditionError as error:
                    errors.append(error)
            held.clear()  # the last references to the loader and its iterator
        return path

    loader = make(stoker.from_dataset(Photos(made, sample), threads=1))
    iterator = iter(loader)
    next(iterator)
    other = make(stoker.from_dataset(Photos(made), threads=1))
    holders[0] += [other, iter(other)]
    del other
    taken(loader)
    assert not holders and len(errors) == 2
    assert "cannot be closed from inside" in str(errors[0])


def test_a_call_may_release_its_own_loader(made):
    last, go = [], threading.Event()

    def sample(path, label):
        if len(photos.called) > 12:
            go.wait(60)
            last.clear()
        return path

    photos = Photos(made, sample)
    loader = make(stoker.from_dataset(photos, threads=1))
    iterator = iter(loader)
    next(iterator)
    last += [loader, iterator]
    there = weakref.ref(loader)
    del loader, iterator
    go.set()
    deadline = time.monotonic() + 60
    while there() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert there() is None
    assert len(taken(make(stoker.from_dataset(Photos(made), threads=1)))) == 8


def test_stats_while_a_loader_closes(made):
    entered, go = threading.Event(), threading.Event()

    def sample(path, label):
        if len(photos.called) > 30:
            entered.set()
            go.wait(60)
        return path

    photos = Photos(made, sample)
    loader = make(stoker.from_dataset(photos, threads=2))

    def take():
        with pytest.raises(stoker.CancelledError):
            taken(loader)

    taking = threading.Thread(target=take)
    taking.start()
    assert entered.wait(60)
    closing = threading.Thread(target=loader.close)
    closing.start()
    time.sleep(0.05)
    assert loader.stats()["reader"] == "calls"
    assert "stoker_" in loader.prometheus()
    go.set()
    closing.join(60)
    taking.join(60)
    assert not closing.is_alive() and not taking.is_alive()


ENDS = {
    "leaving in the middle": "next(iter(loader))",
    "an exception": "next(iter(loader)); raise SystemExit(0)",
    "a thread that loads": """
def work():
    while True:
        for _ in loader: pass
threading.Thread(target=work, daemon=True).start()
next(iter(loader))""",
    "a child": """
next(iter(loader))
child = os.fork()
if child == 0:
    try:
        next(iter(loader))
    except stoker.FailedPreconditionError:
        again = stoker.Loader(stoker.from_dataset(paths), [stoker.Resize((16, 16))], batch_size=4)
        os._exit(len(next(iter(again))))
assert os.waitpid(child, 0)[1] == 4 << 8""",
    "calls that use stoker": """
class Decoded:
    def __len__(self): return 60
    def __getitem__(self, i):
        time.sleep(0.02)
        stoker.decode_image(open(paths[i], "rb").read())
        return paths[i]
busy = stoker.Loader(stoker.from_dataset(Decoded(), threads=4), [stoker.Resize((16, 16))], batch_size=4)
next(iter(busy))""",
    "a loader that is being released": """
class Slow(list):
    def __getitem__(self, i):
        time.sleep(0.1)
        return super().__getitem__(i)
def work():
    for _ in range(100):
        next(iter(stoker.Loader(stoker.from_dataset(Slow(paths)), [stoker.Resize((16, 16))], batch_size=4)))
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)""",
    "a child of a call": """
class Forking(list):
    def __getitem__(self, i):
        if started:
            child = os.fork()
            if child == 0:
                raise SystemExit(5)
            assert os.waitpid(child, 0)[1] == 5 << 8
        return super().__getitem__(i)
started = []
forking = stoker.Loader(stoker.from_dataset(Forking(paths)), [stoker.Resize((16, 16))], batch_size=4)
started.append(True)
assert len(next(iter(forking))) == 4""",
    "ten loaders": """
for _ in range(10):
    with stoker.Loader(stoker.from_dataset(paths), [stoker.Resize((16, 16))], batch_size=4) as one:
        next(iter(one))
assert threads_left("stoker/reader", 1) <= 1""",
}


@pytest.mark.parametrize("end", ENDS)
def test_ends(made, end):
    program = f"""
folder = stoker.image_folder({str(made)!r})
paths = [folder.path(i) for i in range(60)]
loader = stoker.Loader(stoker.from_dataset(paths), [stoker.Resize((16, 16))], batch_size=4)
{ENDS[end]}
"""
    ends.check(program)
