"""The Python package refuses all wrong arguments, early and by name."""

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

TRAIN = [stoker.RandomResizedCrop(32)]
RESIZE_OF_ANOTHER = type("Resize", (), {"__module__": "torchvision.transforms.v2"})()


def construct(made, **options):
    options = {"transforms": TRAIN, "batch_size": 4, **options}
    return stoker.Loader(stoker.image_folder(made), options.pop("transforms"), **options)


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"batch_size": 0}, ValueError),
        ({"batch_size": -1}, ValueError),
        ({"batch_size": 1 << 21}, ValueError),
        ({"batch_size": 1 << 70}, ValueError),
        ({"batch_size": 4.0}, TypeError),
        ({"batch_size": "4"}, TypeError),
        ({"batch_size": None}, TypeError),
        ({"batch_size": True}, TypeError),
        ({"batch_size": np.True_}, TypeError),
        ({"batch_size": [4]}, TypeError),
        ({"shuffle": 1}, TypeError),
        ({"shuffle": "yes"}, TypeError),
        ({"seed": -1}, ValueError),
        ({"seed": 1 << 64}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"dtype": "float64"}, ValueError),
        ({"layout": "nchw"}, ValueError),
        ({"layout": "HWC"}, ValueError),
        ({"layout": None}, TypeError),
        ({"dtype": np.int64}, ValueError),
        ({"dtype": "uint 8"}, ValueError),
        ({"dtype": 8}, TypeError),
        ({"dtype": []}, TypeError),
        ({"dtype": None}, TypeError),
        ({"dtype": stoker.Loader}, ValueError),
        ({"drop_remainder": None}, TypeError),
        ({"rank": 1}, ValueError),
        ({"rank": -1}, ValueError),
        ({"world": 0}, ValueError),
        ({"world": 1 << 21}, ValueError),
        ({"remainder": "keep"}, ValueError),
        ({"remainder": None}, TypeError),
        ({"exif_orientation": "no"}, TypeError),
        ({"max_pixels": 0}, ValueError),
        ({"max_pixels": 65535**2 + 1}, ValueError),
        ({"max_pixels": 1e6}, TypeError),
        ({"max_scans": 0}, ValueError),
        ({"max_scans": None}, TypeError),
        ({"accept_truncated": 1}, TypeError),
        ({"depth": 0}, ValueError),
        ({"depth": 5000}, ValueError),
        ({"lent_batches": 0}, ValueError),
        ({"lent_batches": 1e3}, TypeError),
        ({"runtime": "default"}, TypeError),
    ],
)
def test_bad_options_are_named_at_construction(made, options, kind):
    with pytest.raises(kind) as caught:
        construct(made, **options)
    assert next(iter(options)) in str(caught.value)


def test_numpy_scalars_are_fine(made):
    loader = construct(
        made, batch_size=np.int32(4), shuffle=np.True_, seed=np.uint64(2**64 - 1), dtype=np.dtype("float32")
    )
    assert next(iter(loader))[0].dtype == np.float32
    assert stoker.Resize(np.int64(5)) == stoker.Resize(5)
    assert stoker.CenterCrop(np.array([5, 6])) == stoker.CenterCrop((5, 6))
    assert stoker.Normalize(np.array([1, 2, 3], np.float32), [1, 1, 1]).mean == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("transforms", "kind", "word"),
    [
        (None, TypeError, "transforms"),
        (3, TypeError, "transforms"),
        (stoker.Resize(5), TypeError, r"transforms must be a list of transforms; try \[Resize\(…\)\]$"),
        (stoker.Compose(TRAIN), TypeError, "pass the list"),
        ("Resize", TypeError, "transforms"),
        ([lambda image: image], TypeError, r"transforms\[0\]"),
        ([stoker.Resize((5, 5)), "flip"], TypeError, r"transforms\[1\]"),
        ([stoker.RandomHorizontalFlip], TypeError, "did you mean RandomHorizontalFlip"),
        ([RESIZE_OF_ANOTHER], TypeError, "it is torchvision.transforms.v2.Resize; use stoker.Resize$"),
        ([stoker.RandomHorizontalFlip()], ValueError, "same size"),
        ([stoker.Resize(5)], ValueError, "shorter side"),
        ([*TRAIN, stoker.Resize((5, 5))], ValueError, "second resampling"),
        ([*TRAIN, stoker.Normalize((0, 0, 0), (1, 1, 1))], ValueError, "float32"),
    ],
)
def test_bad_lists_of_transforms(made, transforms, kind, word):
    with pytest.raises(kind, match=word):
        construct(made, transforms=transforms)
    with pytest.raises(kind, match=word):
        stoker.Compose(transforms)


def test_a_loader_needs_transforms(made):
    with pytest.raises(ValueError, match="same size"):
        construct(made, transforms=[])


@pytest.mark.parametrize(
    ("transform", "arguments", "kind", "word"),
    [
        ("Resize", (0,), ValueError, "Resize.size"),
        ("Resize", (65536,), ValueError, "Resize.size"),
        ("Resize", ("big",), TypeError, "Resize.size must be an integer, not 'big'"),
        ("Resize", (5, 6), TypeError, r"interpolation must be .* are one argument: \(height, width\)"),
        ("Resize", ((1, 2, 3),), ValueError, "Resize.size"),
        ("Resize", (5.5,), TypeError, "Resize.size"),
        ("Resize", (5, "bilinear", True), TypeError, "Resize.max_size"),
        ("Resize", (5, "bilinear", None, 1), TypeError, "Resize.antialias"),
        ("CenterCrop", ((5, -5),), ValueError, r"CenterCrop.size\[1\]"),
        ("CenterCrop", (None,), TypeError, "CenterCrop.size"),
        ("RandomResizedCrop", (5, 0.5), TypeError, "RandomResizedCrop.scale"),
        ("RandomResizedCrop", (5, (1, 0.5)), ValueError, "RandomResizedCrop.scale"),
        ("RandomResizedCrop", (5, (0.5,)), ValueError, "RandomResizedCrop.scale"),
        ("RandomResizedCrop", (5, (0.5, float("nan"))), ValueError, "RandomResizedCrop.scale"),
        ("RandomResizedCrop", (5, (0.1, 1), ("a", 1)), TypeError, "RandomResizedCrop.ratio"),
        ("RandomHorizontalFlip", (1.5,), ValueError, "RandomHorizontalFlip.p"),
        ("RandomHorizontalFlip", ("half",), TypeError, "RandomHorizontalFlip.p"),
        ("Normalize", ((0, 0, 0), 1), TypeError, "Normalize.std"),
        ("Normalize", ((0, 0, 0), (1, 1, 0)), ValueError, r"Normalize.std\[2\]"),
    ],
)
def test_bad_transforms(transform, arguments, kind, word):
    with pytest.raises(kind, match=word):
        getattr(stoker, transform)(*arguments)


@pytest.mark.parametrize(("mean", "std"), [((0, 0), (1, 1, 1)), ((0, 0), (1, 1)), ((0,) * 4, (1,) * 4)])
def test_normalize_with_numbers_for_other_channels(mean, std):
    with pytest.raises(ValueError, match="Give one for each channel, or one for all"):
        stoker.Compose([stoker.Resize(8), stoker.Normalize(mean, std)], dtype="float32")


def test_transforms_are_values():
    crop = stoker.RandomResizedCrop(32, scale=[0.5, 1])
    assert crop == stoker.RandomResizedCrop((32, 32), (0.5, 1.0)) and hash(crop)
    assert pickle.loads(pickle.dumps(crop)) == copy.deepcopy(crop) == crop
    with pytest.raises(AttributeError):
        crop.size = 5


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"threads": -1}, ValueError),
        ({"threads": 2000}, ValueError),
        ({"threads": "two"}, TypeError),
        ({"memory_budget": -1}, ValueError),
        ({"memory_budget": 1 << 64}, ValueError),
        ({"memory_budget": "1GB"}, TypeError),
        ({"reader": "fast"}, ValueError),
        ({"executor": "fibers"}, ValueError),
    ],
)
def test_bad_runtimes(options, kind):
    with pytest.raises(kind, match=next(iter(options))):
        stoker.Runtime(**options)


def test_a_budget_below_one_batch(made):
    with pytest.raises(stoker.ResourceExhaustedError, match="memory"):
        construct(made, batch_size=1000, runtime=stoker.Runtime(memory_budget=1 << 20))


def test_epochs(made):
    loader = construct(made)
    for bad, kind in ((-1, ValueError), (1 << 32, ValueError), (1.0, TypeError), (None, TypeError)):
        with pytest.raises(kind, match="epoch"):
            loader.epoch(bad)
    next(iter(loader.epoch(2**32 - 1)))


# --- folders and files ----------------------------------------------------------------------------


def test_wrong_folders(made, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        stoker.image_folder(tmp_path / "none")
    error = caught.value
    assert isinstance(error, stoker.NotFoundError) and error.code == "NOT_FOUND"
    assert error.file == error.filename == str(tmp_path / "none") and error.errno == 2
    assert str(tmp_path / "none") in str(error)
    with pytest.raises(ValueError, match="image"):
        stoker.image_folder(tmp_path)
    with pytest.raises(ValueError):
        stoker.image_folder(next(made.rglob("*.jpg")))
    for bad in (None, 3, ["photos"]):
        with pytest.raises(TypeError, match="directory"):
            stoker.image_folder(bad)
    with pytest.raises(ValueError):
        stoker.image_folder("nul\0")
    with pytest.raises(TypeError, match="threads"):
        stoker.image_folder(made, threads="2")
    with pytest.raises(TypeError, match="image_folder"):
        stoker.Loader(str(made), TRAIN, batch_size=1)


def test_a_folder_whose_name_is_no_text(made, tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9", b"cl\xffss")
    os.makedirs(folder)
    photo = next(made.rglob("*.jpg")).read_bytes()
    for name in (b"1.jpg", b"\xfe.jpg"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(photo)
    source = stoker.image_folder(os.path.dirname(folder))
    assert [os.fsencode(name) for name in source.classes] == [b"cl\xffss"]
    assert os.fsencode(source.path(1)) == os.path.join(folder, b"\xfe.jpg")
    assert next(iter(stoker.Loader(source, TRAIN, batch_size=2)))[0].shape == (2, 32, 32, 3)
    with open(source.path(1), "wb") as file:
        file.write(b"bad")
    with pytest.raises(stoker.DataLossError) as caught:
        next(iter(stoker.Loader(source, TRAIN, batch_size=2)))
    assert caught.value.file == source.path(1)


@pytest.fixture
def damaged(made, tmp_path):
    """Nine photographs; the fifth is cut short."""
    (tmp_path / "class").mkdir()
    for n, path in enumerate(sorted(made.rglob("*.jpg"))[:9]):
        data = path.read_bytes()
        (tmp_path / "class" / f"{n}.jpg").write_bytes(data[: len(data) // 2] if n == 4 else data)
    return tmp_path


def test_a_corrupt_file_is_named_and_iteration_goes_on(damaged):
    iterator = iter(stoker.Loader(stoker.image_folder(damaged), TRAIN, batch_size=2))
    assert len([next(iterator), next(iterator)]) == 2
    with pytest.raises(stoker.DataLossError) as caught:
        next(iterator)
    error = caught.value
    assert error.code == "DATA_LOSS" and error.cause
    assert error.file == str(damaged / "class" / "4.jpg") and error.offset > 0
    assert str(error).startswith(f"{error.file} at byte {error.offset}: ")
    assert [len(labels) for _, labels in iterator] == [2, 1]


def test_a_file_that_is_gone(damaged):
    source = stoker.image_folder(damaged)
    (damaged / "class" / "4.jpg").unlink()
    iterator = iter(stoker.Loader(source, TRAIN, batch_size=5))
    with pytest.raises(stoker.NotFoundError) as caught:
        next(iterator)
    assert caught.value.filename == str(damaged / "class" / "4.jpg")
    assert len(next(iterator)[0]) == 4


def test_errors_are_values():
    error = stoker.DataLossError("truncated", "a.jpg", 5, "Remove it")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a.jpg at byte 5: truncated. Remove it."
    assert (again.cause, again.file, again.offset, again.advice) == ("truncated", "a.jpg", 5, "Remove it")
    missing = pickle.loads(pickle.dumps(stoker.NotFoundError("no such folder", "a")))
    assert missing.filename == "a" and isinstance(missing, OSError)
    for kind in stoker.Error.__subclasses__():
        assert kind("why").code != "UNKNOWN" and str(kind("why")) == "why."


def test_without_tensorflow_the_package_still_imports():
    program = "import sys; sys.modules['tensorflow'] = None; import stoker; print(stoker.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == stoker.__version__


# --- the command ----------------------------------------------------------------------------------


def stoker_command(*arguments, before=""):
    program = f"{before}\nimport sys, stoker.__main__\nsys.exit(stoker.__main__.main())"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_help_has_the_commands_in_python():
    done = stoker_command("--help")
    assert done.returncode == 0 and done.stderr == ""
    assert "bench" in done.stdout and "build-tf-plugin" in done.stdout


def test_help_of_a_command():
    assert stoker_command("help").stdout == stoker_command("--help").stdout
    assert "--epochs" in stoker_command("help", "bench").stdout
    assert stoker_command("help", "bnech").returncode == 2


def test_doctor_without_tensorflow():
    done = stoker_command("doctor", "--json", before="import sys; sys.modules['tensorflow'] = None")
    assert done.returncode == 0 and done.stderr == "" and json.loads(done.stdout)["tensorflow"] is None
    text = stoker_command("doctor", before="import sys; sys.modules['tensorflow'] = None").stdout
    assert text.endswith("tensorflow       not installed for this Python\n")
    assert stoker_command("doctor", "--jsn").returncode == 2
    assert "tensorflow  " not in stoker_command("doctor", "--help").stdout


def test_a_plugin_without_tensorflow():
    done = stoker_command("build-tf-plugin", before="import sys; sys.modules['tensorflow'] = None")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "TensorFlow is not installed" in done.stderr
