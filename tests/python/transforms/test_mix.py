"""Compares MixUp and CutMix with NumPy, and with torchvision if it is installed."""

import pickle

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

SAMPLES, CLASSES, SIDE = 21, 5, 16
DTYPES = ["uint8", "float16", "float32"]


@pytest.fixture(scope="module")
def source():
    """21 images of 5 classes, which differ from their neighbours nearly everywhere."""
    images = np.random.default_rng(1).integers(0, 256, (SAMPLES, 20, 24, 3)).astype(np.uint8)
    return stoker.arrays(images, np.arange(SAMPLES) % CLASSES)


def pairs(source, mix, **options):
    """Returns (mixed, labels, images, classes): the same batches with and without mixing."""
    options = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    crop = [stoker.RandomResizedCrop(SIDE)]
    mixed = stoker.Loader(source, [*crop, mix], **options)
    plain = stoker.Loader(source, crop, **options)
    for epoch in range(4):
        for (images, labels), (before, classes) in zip(mixed.epoch(epoch), plain.epoch(epoch)):
            yield images, labels, before, classes


def one_hot(classes):
    return np.eye(CLASSES, dtype=np.float32)[classes]


def blended(values, own, others):
    """Mixes in float32, as torchvision does."""
    values = values.astype(np.float32)
    return values * np.float32(own) + np.roll(values, 1, axis=0) * np.float32(others)


def rounded(values, dtype):
    return np.rint(values).astype(dtype) if dtype == np.uint8 else values.astype(dtype)


def weights_of(labels, classes):
    """Returns the two weights of a batch to the bit, from a row whose neighbour has another class."""
    for row in range(len(classes)):
        if classes[row] != classes[row - 1]:
            return labels[row, classes[row]], labels[row, classes[row - 1]]
    raise AssertionError("all classes are the same")


def lam_of(own, others):
    """Returns a double that has these weights."""
    near = [float(own), 1 - float(others)]
    shares = (0, 0.2, -0.2, 0.45, -0.45)
    steps = [share * float(np.spacing(weight)) for weight in (own, others) for share in shares]
    for lam in (start + step for start in near for step in steps):
        if np.float32(lam) == own and np.float32(1 - lam) == others:
            return lam
    raise AssertionError(f"{own} and {others} do not add up to 1")


def box_of(mixed, before):
    """Returns (rows, columns) that were pasted, from where pixels have changed; (0, 0) if none have."""
    changed = (mixed != before).any(axis=(0, 3))
    lines, columns = changed.any(axis=1), changed.any(axis=0)
    if not changed.any():
        return slice(0, 0), slice(0, 0)
    spans = [(int(np.argmax(along)), len(along) - int(np.argmax(along[::-1]))) for along in (lines, columns)]
    return slice(*spans[0]), slice(*spans[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_mixup_is_numpys(source, dtype, layout):
    lams = set()
    options = {"dtype": dtype, "layout": layout}
    for images, labels, before, classes in pairs(source, stoker.MixUp(0.8, num_classes=CLASSES), **options):
        own, others = weights_of(labels, classes)
        assert own + others == pytest.approx(1)
        assert labels.dtype == np.float32 and images.dtype == before.dtype
        np.testing.assert_array_equal(labels, blended(one_hot(classes), own, others))
        np.testing.assert_array_equal(images, rounded(blended(before, own, others), before.dtype))
        lams.add(own)
    assert len(lams) == 12, "each batch has a lam of its own"


@pytest.mark.parametrize("dtype", DTYPES)
def test_cutmix_is_numpys(source, dtype):
    cut = 0
    for images, labels, before, classes in pairs(
        source, stoker.CutMix(num_classes=CLASSES), dtype=dtype, layout="NHWC"
    ):
        lines, columns = box_of(images, before)
        expected = before.copy()
        expected[:, lines, columns] = np.roll(before, 1, axis=0)[:, lines, columns]
        np.testing.assert_array_equal(images, expected)
        area = (lines.stop - lines.start) * (columns.stop - columns.start)
        lam = 1 - area / (SIDE * SIDE)
        np.testing.assert_array_equal(labels, blended(one_hot(classes), lam, 1 - lam))
        cut += area > 0
    assert cut > 6


@pytest.mark.parametrize("kind", ["MixUp", "CutMix"])
def test_mixing_matches_torchvision(source, kind, monkeypatch):
    """Given the same lam, or the same box: equal to the bit."""
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    theirs = getattr(v2, kind)(num_classes=CLASSES)
    mix = getattr(stoker, kind)(num_classes=CLASSES)
    for images, labels, before, classes in pairs(source, mix, dtype="float32", layout="NCHW"):
        if kind == "MixUp":
            params = {"lam": lam_of(*weights_of(labels, classes))}
        else:
            lines, columns = box_of(images.transpose(0, 2, 3, 1), before.transpose(0, 2, 3, 1))
            area = (lines.stop - lines.start) * (columns.stop - columns.start)
            box = (columns.start, lines.start, columns.stop, lines.stop)
            params = {"box": box, "lam_adjusted": 1 - area / (SIDE * SIDE)}
        monkeypatch.setattr(theirs, "make_params", lambda _, params=params: params)
        expected, soft = theirs(torch.from_numpy(before), torch.from_numpy(classes))
        np.testing.assert_array_equal(images, expected.numpy())
        np.testing.assert_array_equal(labels, soft.numpy())


def test_random_choice_is_one_of_them_for_each_batch(source):
    """The chosen transform has the lam that it would have alone."""

    def labels(mix):
        return [labels.tobytes() for _, labels, *_ in pairs(source, mix)]

    mixup, cutmix = stoker.MixUp(0.4, num_classes=CLASSES), stoker.CutMix(num_classes=CLASSES)
    ups, cuts = labels(mixup), labels(cutmix)
    either = labels(stoker.RandomChoice([mixup, cutmix], p=[0.5, 0.5]))
    chosen = [batch == up for batch, up in zip(either, ups)]
    assert all(batch in (up, cut) for batch, up, cut in zip(either, ups, cuts))
    assert 0 < sum(chosen) < len(chosen)
    assert labels(stoker.RandomChoice([mixup, cutmix], p=[0, 2])) == cuts
    assert labels(stoker.RandomChoice([mixup])) == ups


def test_folders_know_their_number_of_classes(made):
    source = stoker.image_folder(made)
    transforms = [stoker.RandomResizedCrop(SIDE), stoker.MixUp()]
    loader = stoker.Loader(source, transforms, batch_size=7, dtype="float32")
    for images, labels in loader:
        assert labels.shape == (len(images), 3)
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
    assert loader.stats()["mix_seconds"] > 0
    with pytest.raises(ValueError, match=r"MixUp.num_classes is 2, but image_folder.* has 3 classes"):
        stoker.Loader(source, [*transforms[:1], stoker.MixUp(num_classes=2)], batch_size=7)


def test_rows_that_are_copied_are_mixed():
    images = np.random.default_rng(2).standard_normal((8, 5)).astype(np.float32)
    loader = stoker.Loader(
        stoker.arrays(images, np.arange(8, dtype=np.uint8)), [stoker.MixUp(num_classes=8)], batch_size=8
    )
    mixed, labels = next(iter(loader))
    np.testing.assert_array_equal(mixed, blended(images, labels[0, 0], labels[0, 7]))


def test_a_state_is_of_the_same_mix(source):
    def loader(*mix):
        return stoker.Loader(source, [stoker.RandomResizedCrop(SIDE), *mix], batch_size=8)

    mixed = loader(stoker.MixUp(num_classes=CLASSES))
    whole = [images.tobytes() for images, _ in mixed.epoch(0)]
    next(iter(mixed))
    resumed = loader(stoker.MixUp(num_classes=CLASSES))
    resumed.load_state_dict(mixed.state_dict())
    assert [images.tobytes() for images, _ in resumed] == whole[1:]
    for other in (), (stoker.MixUp(0.5, num_classes=CLASSES),), (stoker.CutMix(num_classes=CLASSES),):
        with pytest.raises(stoker.FailedPreconditionError):
            loader(*other).load_state_dict(mixed.state_dict())


def test_labels_out_of_range(source):
    loader = stoker.Loader(source, [stoker.RandomResizedCrop(8), stoker.CutMix(num_classes=4)], batch_size=21)
    with pytest.raises(ValueError, match=r"the label of sample \d+ is 4; with CutMix .* between 0 and 3"):
        next(iter(loader))


def test_mixes_compare_pickle_and_print():
    assert stoker.MixUp() == stoker.MixUp(alpha=1, num_classes=None)
    assert stoker.MixUp() != stoker.CutMix()
    choice = stoker.RandomChoice([stoker.MixUp(0.2), stoker.CutMix(num_classes=7)], p=(1, 2))
    assert pickle.loads(pickle.dumps(choice)) == choice
    assert repr(choice) == (
        "RandomChoice(transforms=(MixUp(alpha=0.2, num_classes=None), CutMix(alpha=1.0, num_classes=7)), "
        "p=(1.0, 2.0))"
    )


@pytest.mark.parametrize(
    ("make", "kind", "word"),
    [
        (lambda: stoker.MixUp(0), ValueError, "MixUp.alpha is 0"),
        (lambda: stoker.CutMix(alpha=float("nan")), ValueError, "CutMix.alpha is nan"),
        (lambda: stoker.CutMix("1"), TypeError, "CutMix.alpha must be a number"),
        (lambda: stoker.MixUp(num_classes=0), ValueError, "MixUp.num_classes is 0"),
        (lambda: stoker.MixUp(num_classes=1.5), TypeError, "MixUp.num_classes must be an integer"),
        (lambda: stoker.RandomChoice([]), ValueError, "RandomChoice.transforms has 0"),
        (
            lambda: stoker.RandomChoice(stoker.MixUp()),
            TypeError,
            "RandomChoice.transforms must be a sequence",
        ),
        (
            lambda: stoker.RandomChoice([stoker.PadTo(3)]),
            ValueError,
            r"RandomChoice.transforms\[0\] is PadTo",
        ),
        (
            lambda: stoker.RandomChoice([stoker.MixUp(), stoker.RandomGrayscale()]),
            TypeError,
            r"RandomChoice.transforms\[1\] is RandomGrayscale.*must be a MixUp or a CutMix",
        ),
        (
            lambda: stoker.RandomChoice([stoker.MixUp(num_classes=2), stoker.CutMix(num_classes=3)]),
            ValueError,
            "num_classes 2 and 3",
        ),
        (lambda: stoker.Compose([stoker.Resize(8), stoker.MixUp()]), TypeError, "Compose has one image"),
    ],
)
def test_bad_values_are_named(make, kind, word):
    with pytest.raises(kind, match=word):
        make()


CHOICE = "RandomChoice(transforms=(MixUp(alpha=1.0, num_classes=None),), p=None)"
NOT_HELD = "which mixes whole batches; put it last in the loader's list"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda choice: stoker.RandomChoice([choice]),
            f"RandomChoice.transforms[0] is {CHOICE}; it must be a MixUp or a CutMix",
        ),
        (
            lambda choice: stoker.RandomOrder([stoker.RandomGrayscale(), choice]),
            f"RandomOrder.transforms[1] is {CHOICE}, {NOT_HELD}",
        ),
        (
            lambda choice: stoker.RandomApply(choice.transforms),
            f"RandomApply.transforms[0] is MixUp(alpha=1.0, num_classes=None), {NOT_HELD}",
        ),
    ],
)
def test_batches_are_mixed_once_and_by_no_other_transform(make, text):
    with pytest.raises(TypeError) as said:
        make(stoker.RandomChoice([stoker.MixUp()]))
    assert str(said.value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        ([1], "RandomChoice.p has 1 element; it must have 2, one for each transform"),
        ([1, -2], "RandomChoice.p[1] is -2; it must be a finite number from 0 on"),
        ([float("inf"), 1], "RandomChoice.p[0] is inf; it must be a finite number from 0 on"),
        ([float("nan"), 1], "RandomChoice.p[0] is nan; it must be a finite number from 0 on"),
        ([1, 1e301], "RandomChoice.p[1] is 1e+301; it must be a finite number from 0 on"),
        ([0, 0], "RandomChoice.p is 0 for every transform; one must be positive"),
    ],
)
@pytest.mark.parametrize("kind", [stoker.MixUp, stoker.RandomGrayscale])
def test_weights_are_refused_in_the_words_of_the_library(kind, p, text):
    """Those of draw_mix_test.cc."""
    with pytest.raises(ValueError) as said:
        stoker.RandomChoice([kind(), kind()], p=p)
    assert str(said.value) == text + "."


@pytest.mark.parametrize(
    ("transforms", "kind", "word"),
    [
        (
            [stoker.MixUp(), stoker.RandomResizedCrop(8)],
            ValueError,
            r"transforms\[0\] is MixUp.*the last one",
        ),
        ([stoker.MixUp(), stoker.CutMix()], ValueError, r"mixed once; try stoker.RandomChoice"),
        (stoker.MixUp(), TypeError, r"try \[MixUp"),
        ([stoker.RandomResizedCrop(8), stoker.MixUp()], ValueError, "MixUp.num_classes is not given"),
        ([stoker.RandomResizedCrop(8), stoker.MixUp], TypeError, r"did you mean MixUp\(…\)"),
    ],
)
def test_bad_lists_are_named(source, transforms, kind, word):
    with pytest.raises(kind, match=word):
        stoker.Loader(source, transforms, batch_size=2)


def test_no_labels():
    images = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(ValueError, match=r"MixUp mixes labels, and .* has none"):
        stoker.Loader(stoker.arrays(images), [stoker.MixUp(num_classes=3)], batch_size=2)
