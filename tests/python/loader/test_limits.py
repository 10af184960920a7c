"""max_pixels, max_scans and memory_budget: every interface has the options that errors advise, and following
the advice helps.
"""

import json
import pickle
import subprocess

import hostile_jpegs
import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

EVALUATION = [stoker.Resize(32), stoker.CenterCrop(32)]
SIDE = 64
PIXELS = SIDE * SIDE
SCANS = 210  # 200 are allowed by default

# A file, the limit that refuses it, and one that does not.
CASES = {
    "pixels": (hostile_jpegs.many_scans(2), {"max_pixels": PIXELS - 1}, {"max_pixels": PIXELS}),
    "scans": (hostile_jpegs.many_scans(SCANS), {}, {"max_scans": SCANS}),
}
ADVICE = {
    "pixels": "or raise max_pixels.",
    "scans": "or raise max_scans or max_pixels.",
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """Makes a folder with one such file; returns the limit that refuses it, one that does not, and how the
    error must end.
    """
    data, too_low, enough = CASES[request.param]
    (tmp_path / "photos" / "class").mkdir(parents=True)
    (tmp_path / "photos" / "class" / "a.jpg").write_bytes(data)
    return tmp_path / "photos", too_low, enough, ADVICE[request.param]


def flags(limits):
    return [str(word) for name, n in limits.items() for word in (f"--{name.replace('_', '-')}", n)]


def run(command, *arguments):
    return subprocess.run(
        [command, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


# --- Python -----------------------------------------------------------------------------------------


def test_a_loader_refuses_images_beyond_its_limits(case):
    folder, too_low, enough, advice = case
    source = stoker.image_folder(folder)
    with pytest.raises(stoker.ResourceExhaustedError) as caught:
        next(iter(stoker.Loader(source, EVALUATION, batch_size=1, **too_low)))
    assert str(caught.value).endswith(advice) and caught.value.file.endswith("a.jpg")
    loader = stoker.Loader(source, EVALUATION, batch_size=1, **enough)
    assert next(iter(loader))[0].shape == (1, 32, 32, 3)
    assert all(f"{name}={value}" in repr(loader) for name, value in enough.items())


def test_compose(case):
    folder, too_low, enough, advice = case
    image = (folder / "class" / "a.jpg").read_bytes()
    with pytest.raises(stoker.ResourceExhaustedError) as caught:
        stoker.Compose(EVALUATION, **too_low)(image)
    assert str(caught.value).endswith(advice)
    compose = stoker.Compose(EVALUATION, **enough)
    assert compose(image).shape == (32, 32, 3)
    again = pickle.loads(pickle.dumps(compose))
    assert repr(again) == repr(compose)
    np.testing.assert_array_equal(again(image), compose(image))


def test_torch(case):
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    folder, too_low, enough, advice = case
    source = stoker.image_folder(folder)
    with pytest.raises(stoker.ResourceExhaustedError) as caught:
        next(iter(stoker.torch.DataLoader(source, EVALUATION, **too_low)))
    assert str(caught.value).endswith(advice)
    assert next(iter(stoker.torch.DataLoader(source, EVALUATION, **enough)))[0].shape == (1, 3, 32, 32)


def test_a_state_goes_on_with_other_limits(made):
    """A run that met a large photograph can be resumed as the error advises."""
    source = stoker.image_folder(made)
    state = stoker.Loader(source, EVALUATION, batch_size=4).state_dict()
    stoker.Loader(source, EVALUATION, batch_size=4, max_pixels=10**9, max_scans=300).load_state_dict(state)


# --- serving's budget -------------------------------------------------------------------------------


def test_composes_budget():
    image = hostile_jpegs.many_scans(2, width=2048, height=2048)
    small = stoker.Compose(EVALUATION, memory_budget=2**20)
    assert "memory_budget=1048576" in repr(small)
    with pytest.raises(stoker.ResourceExhaustedError) as caught:
        small(image)
    assert "JPEG, or raise memory_budget." in str(caught.value)
    assert stoker.Compose(EVALUATION, memory_budget=2**26)(image).shape == (32, 32, 3)
    assert pickle.loads(pickle.dumps(small))._native.memory_budget == 2**20


def test_the_encoded_bytes_are_in_composes_budget():
    with pytest.raises(stoker.ResourceExhaustedError, match=r"Raise memory_budget\.$"):
        stoker.Compose(EVALUATION, memory_budget=2**20)(hostile_jpegs.baseline(8, 8, size=2**21))


def test_composes_budget_is_by_default_that_of_a_runtime():
    made = stoker.Compose(EVALUATION)._native.memory_budget
    assert made == pytest.approx(stoker.Runtime()._native.describe()["memory_budget"], rel=0.5)
    assert made <= 4 << 30


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"max_pixels": 0}, ValueError),
        ({"max_pixels": "many"}, TypeError),
        ({"max_scans": 10**6 + 1}, ValueError),
        ({"memory_budget": -1}, ValueError),
        ({"memory_budget": 1.5}, TypeError),
    ],
)
def test_bad_options_of_compose_are_named(options, kind):
    with pytest.raises(kind, match=next(iter(options))):
        stoker.Compose(EVALUATION, **options)


# --- the command ------------------------------------------------------------------------------------


def test_bench(case, command):
    folder, too_low, enough, advice = case
    advice = advice.replace("max_pixels", "--max-pixels").replace("max_scans", "--max-scans")
    done = run(command, "bench", folder, "--batch-size", 1, *flags(too_low))
    assert done.returncode == 1 and done.stderr.rstrip().endswith(advice)
    assert run(command, "bench", folder, "--batch-size", 1, *flags(enough)).returncode == 0


def test_a_recipe_has_limits_and_the_options_go_before_it(case, command, tmp_path):
    folder, too_low, enough, _ = case
    file = tmp_path / "recipe.json"
    crop = {"transforms": [{"name": "RandomResizedCrop", "height": 32, "width": 32}]}
    bench = ("bench", folder, "--batch-size", 1, "--recipe", file)
    file.write_text(json.dumps({**crop, **enough}))
    assert run(command, *bench).returncode == 0
    file.write_text(json.dumps({**crop, **too_low}))
    assert run(command, *bench).returncode == 1
    assert run(command, *bench, *flags(enough)).returncode == 0


def test_explain(case, command):
    folder, too_low, enough, _ = case
    done = run(command, "explain", folder, *flags(too_low))
    assert done.returncode == 1 and "--max-" in done.stderr
    assert run(command, "explain", folder, *flags(enough)).returncode == 0


def test_verify(case, command):
    folder, too_low, enough, advice = case
    advice = advice.replace("max_pixels", "--max-pixels").replace("max_scans", "--max-scans")
    done = run(command, "verify", folder, *flags(too_low))
    assert done.returncode == 1 and advice in done.stdout
    done = run(command, "verify", folder, "--json", *flags(too_low))
    (bad,) = json.loads(done.stdout)["bad"]
    assert bad["advice"].endswith(advice.rstrip(".")) and bad["class"] == "over_limits"
    assert run(command, "verify", folder, *flags(enough)).returncode == 0


def test_bad_options_of_the_command(command, made):
    for option, value in (("--max-pixels", "0"), ("--max-pixels", "1e9"), ("--max-scans", "1000001")):
        done = run(command, "bench", made, option, value)
        assert done.returncode == 2 and option in done.stderr
