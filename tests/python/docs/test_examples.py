"""The examples run, each in a process of its own, and print what they should."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import forks
import pytest
from repository import ROOT

for needed in ("stoker", "tensorflow"):
    found = importlib.util.find_spec(needed)
    if found is None or found.origin is None:  # no origin: a mere folder, such as this one's tensorflow/
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

EXAMPLES = ROOT / "examples" / "tensorflow"
PHOTOS, CLASSES = 96, 4
SECONDS = 600  # for an example
EVERY = sorted(path.stem for path in EXAMPLES.glob("*.py") if "verdict: " in path.read_text())
NODES = r"^([a-z].+): (\d+) nodes, (\d+) after 40 steps$"
WAITED = r"^waited for stoker: [0-9.]+ s storage, [0-9.]+ s decode, .*$"
OPS = pytest.mark.parametrize("op", ["native", pytest.param("fallback", marks=pytest.mark.long)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """96 made photographs in 4 classes."""
    made = tmp_path_factory.mktemp("examples") / "photos"
    synth = [sys.executable, "-m", "stoker", "synth", made, "--count", PHOTOS, "--classes", CLASSES]
    subprocess.run([str(word) for word in synth], check=True, capture_output=True, timeout=60)
    return made


@pytest.fixture(scope="module")
def native():
    """Skips if the dataset op cannot be built; otherwise it is built now, and not in an example's time."""
    done = forks.run("-m", "stoker", "build-tf-plugin", timeout=300)
    if done.returncode != 0:
        pytest.skip(f"no dataset op here: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture
def op():
    """The op that the example is to use; tests that want it with both have the mark OPS."""
    return "auto"


@pytest.fixture
def run(request, op):
    """Returns run(script, arguments...), which returns what the example prints."""
    if op != "fallback":
        request.getfixturevalue("native")

    def run_example(script, *arguments):
        environment = {**os.environ, "STOKER_TF_OP": op, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = forks.run(EXAMPLES / script, *arguments, "--quick", env=environment, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "FallbackWarning" not in done.stderr
        return done.stdout

    return run_example


def number(pattern, text):
    """Returns the match of the pattern's group as a number; the pattern must occur once."""
    found = re.findall(pattern, text, re.M)
    assert len(found) == 1, (pattern, text)
    return float(found[0].replace(",", ""))


@pytest.mark.long
def test_keras_fit(run, folder):
    out = run("keras_fit.py", folder)
    cached = ("stoker, cached", "stoker.arrays", "usual input, cached")
    ways = ("stoker", "usual input", *cached, "model alone")
    for way in ways:
        assert re.search(rf"^{way}: losses [0-9.]+, [0-9.]+$", out, re.M), out
        assert number(rf"^{way}: ([0-9.]+) s of CPU time for 2 epochs", out) > 0
    assert out.count("val_loss") == len(ways) * 2
    assert re.search(r"^verdict: in float32, .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_precision(run):
    out = run("precision.py")
    for way in ("float32", "mixed_bfloat16", "jit_compile", "set_jit", "NCHW with XLA"):
        assert number(rf"^{way} +([0-9,]+) images for a second of CPU time", out) > 0
    assert re.search(r"^verdict: with bfloat16 instructions: .*: .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
@OPS
def test_custom_loop(run, folder):
    out = run("custom_loop.py", folder)
    assert "shape=(16, 64, 64, 3), dtype=tf.uint8" in out
    for epoch in (0, 1):
        assert 0 < number(rf"epoch {epoch}: mean loss ([0-9.]+)", out) < 10
    assert "after the restore the next batch is the same one: True" in out
    for name in ("stoker", "image_dataset_from_directory"):
        sizes = re.findall(rf"([0-9,]+) bytes \(([0-9,]+) if symbolic\) with {name}", out)
        assert len(sizes) == 1, out
        assert name != "stoker" or all(int(size.replace(",", "")) < 5_000 for size in sizes[0])


@pytest.mark.long
def test_retracing(run, folder):
    out = run("retracing.py", folder)
    rows = re.findall(r"^(usual|stoker) +(True|False) +(True|False) +(\d) +(\d) ", out, re.M)
    for pipeline in ("usual", "stoker"):
        counts = {(drop, signature): (s, t) for name, drop, signature, s, t in rows if name == pipeline}
        assert counts == {  # shapes and traces: 96 photographs in batches of 25
            ("False", "False"): ("2", "2"),
            ("False", "True"): ("2", "1"),
            ("True", "False"): ("1", "1"),
            ("True", "True"): ("1", "1"),
        }
    verdict = r"^verdict: with all samples: up to 2 traces, .*; with drop_remainder: up to 1 trace, "
    assert re.search(verdict, out, re.M), out


@pytest.mark.long
def test_accumulate(run, folder):
    out = run("accumulate.py", folder)
    for pipeline in ("usual", "stoker"):
        differ = number(rf"{pipeline} +4 steps of 48 and of 4 × 12: the weights differ by (\S+)", out)
        assert 0 < differ < 1e-3
    verdict = r"^verdict: accumulating trains the large batch's weights with: usual, stoker; .+; .+"
    assert re.search(verdict, out, re.M), out
    large, small = (number(rf"([0-9.]+) MB {way}", out) for way in ("with one large batch", "accumulating"))
    assert 0 < 2 * small < large  # a batch is a quarter


@pytest.mark.long
def test_casts(run):
    out = run("casts.py")
    casts = dict(re.findall(r"^(.+?) +[0-9.]+ MB in a batch; the model casts (.+)$", out, re.M))
    assert casts == {
        "float64 from NumPy": "float64 to bfloat16",
        "map(tf.cast)": "float32 to bfloat16",
        'dtype="float32"': "float32 to bfloat16",
        'dtype="bfloat16"': "nothing",
        "uint8, Rescaling": "uint8 to bfloat16",
    }
    megabytes = [number(rf"{re.escape(name)} +([0-9.]+) MB", out) for name in casts]
    assert [round(each / megabytes[-1]) for each in megabytes] == [8, 4, 4, 2, 1]
    for name in (*casts, 'layout="NCHW"', r"map\(tf.transpose\)"):
        name = name.replace("map(tf.cast)", r"map\(tf.cast\)")
        assert number(rf"^{name} +([0-9,]+) images for a second", out) > 0
    assert re.search(r"^verdict: .*; .*; .*; .*; .*", out, re.M), out


@pytest.mark.long
def test_graphs(run, folder):
    out = run("graphs.py", folder)
    found = dict(re.findall(r"^(.+?)  +(\d traces? of [0-9 and]+) nodes$", out, re.M))
    traces = {name: int(told[0]) for name, told in found.items()}
    assert traces == {
        "tf.range": 1,  # for vectors of three lengths
        "range": 3,
        "reduce_sum": 1,
        "if on a tensor": 1,
        "if on a Python value": 2,
        "a loop over the batch's images": 1,
        "the whole batch": 1,
    }
    nodes = {name: int(re.findall(r"\d+", told)[-1]) for name, told in found.items()}
    assert nodes["reduce_sum"] < nodes["tf.range"] < 200 < nodes["range"]  # the longest vector has 200 values
    assert nodes["the whole batch"] < nodes["a loop over the batch's images"]
    assert re.search(r"^verdict: .*; .*; .*; .*; .*; .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_graph_structure(run):
    out = run("graph_structure.py")
    line = r"^(.+): (\d) matrix products? in the graph, (\d) in the profile; ([0-9,]+) weights$"
    found = {name: tuple(counts) for name, *counts in re.findall(line, out, re.M)}
    assert found == {
        "plain": ("1", "1", "65,536"),
        "unused layer": ("2", "1", "131,072"),
        "layer called twice": ("2", "2", "65,536"),
        "product written twice": ("2", "1", "65,536"),
    }
    made = r"{}: ([0-9.]+) allocations of the tensor's size in a step, "
    assert number("^" + made.format("in place"), out) == 0
    assert number("^" + made.format("new tensors"), out) == 1
    assert re.search(r"^verdict: plain: .*; .*; .*; .*; .*; .*; .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_batch_sizes(run, folder):
    out = run("batch_sizes.py", folder)
    line = r"^batches of (\d+): .* images/s, \d+ ms and (.+) MB for a step; stoker's memory: (.+) MB$"
    (small, *of_small), (large, *of_large) = re.findall(line, out, re.M)
    assert (small, large) == ("8", "32")  # 96 photographs have no larger ones
    assert all(0 < float(less) < float(more) for less, more in zip(of_small, of_large))
    assert re.search(r"^verdict: of CPU time, batches of 8: .*; batches of 32: .*; .*$", out, re.M), out


@pytest.mark.long
def test_segmentation(run, folder):
    out = run("segmentation.py", folder)
    for way in ("stoker", "usual"):  # resizing mixes colours and not classes
        assert number(rf"^{way}: ([0-9.]+)% of a mask's pixels are those of its photograph$", out) > 85
    before, after = re.search(
        r"^IoU of the bright pixels: ([0-9.]+), after training ([0-9.]+)$", out, re.M
    ).groups()
    assert 0 <= float(before) <= 1 and 0 <= float(after) <= 1
    assert re.search(WAITED, out, re.M), out
    verdict = r"^verdict: reading pairs: .*; the U-Net's steps wait for input for .*; .*$"
    assert re.search(verdict, out, re.M), out


@pytest.mark.long
@OPS
def test_retinanet(run, folder):
    out = run("retinanet.py", folder)
    assert "boxes: RaggedTensorSpec(TensorShape([16, None, 4]), tf.float32, 1, tf.int64)" in out
    assert number(r"losses from ([0-9.]+) to", out) > number(r"losses from [0-9.]+ to ([0-9.]+)$", out)
    found = r"^the likeliest box is an object's in {} of the images, after training in {}$"
    assert number(found.format(r"(\d+)%", r"\d+%"), out) < 20
    assert number(found.format(r"\d+%", r"(\d+)%"), out) > 50  # boxes are where objects are
    assert re.search(WAITED, out, re.M), out
    assert re.search(r"^verdict: the RetinaNet's steps wait for input for \d+% to \d+%$", out, re.M), out


@pytest.mark.long
def test_prefetch(run, folder):
    out = run("prefetch.py", folder)
    steps = re.findall(r"^(.+?) +[0-9.]+ ms of CPU time outside a step$", out, re.M)
    usual = ["no prefetch", "TensorFlow's own", "prefetch(AUTOTUNE)"]
    assert steps == [*usual, "stoker", "stoker with prefetch(AUTOTUNE)"]
    assert re.search(r"^verdict: .* CPU time outside steps .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_sessions(run):
    out = run("sessions.py")
    growth = {name: (int(first), int(last)) for name, first, last in re.findall(NODES, out, re.M)}
    assert len(growth) == 6
    grown = growth.pop("constants in the loop")
    assert grown[1] == grown[0] + 3 * 40  # two constants and a product in each step
    assert all(first == last for first, last in growth.values())
    assert re.search(r"^verdict: constants in the loop: .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_graph_v1(run, folder):
    out = run("graph_v1.py", folder)
    for epoch in (0, 1):
        assert number(rf"epoch {epoch}: (\d+) batches, mean loss [0-9.]+", out) == PHOTOS / 16
    megabytes = {}
    for way in ("constants", "placeholders", "stoker_arrays"):
        megabytes[way] = number(rf"{way}: a graph of ([0-9.]+) MB; 20,000 rows in an epoch", out)
    assert megabytes["constants"] > 20_000 * 32 * 32 * 3 / 1e6
    assert max(megabytes["placeholders"], megabytes["stoker_arrays"]) < 0.01
    assert re.search(r"^verdict: reading an epoch of whole arrays: .*; .*", out, re.M), out


@pytest.mark.long
@OPS
def test_profile_input(run, folder, op):
    out = run("profile_input.py", folder)
    fit, loop = out.split("tf.profiler.experimental, stoker pipeline, the last profile:")
    rows = ("stoker.read", "stoker.decode", "stoker.wait") if op == "native" else ("StokerBatchAt",)
    for row in rows:
        assert row in fit, fit
        assert number(rf"{row}\S* +(\d+) times", loop) > 0
    assert len(re.findall(r"^  the steps waited for input for [0-9.]+% of their time$", out, re.M)) == 2
    memory = re.findall(r"^  TensorFlow's allocators gave out ([0-9.]+) MB at the peak$", out, re.M)
    memory += re.findall(r"^stoker's memory is .*: ([0-9.]+) MB at the peak$", out, re.M)
    assert len(memory) == 3 and all(float(each) > 0 for each in memory)
    if not out.startswith("skipped: the overview page"):
        assert len(re.findall(r"^  Your program is .*input-bound", out, re.M)) == 2
    verdict = r"^verdict: .*, steps wait for input for .* with usual, .* with stoker; .* share of waiting .*$"
    assert re.search(verdict, out, re.M), out


@pytest.mark.long
def test_predict(run, folder):
    out = run("predict.py", folder)
    named = re.findall(r"^(/.*\.jpg): class\d\d \(\d+%\)$", out, re.M)
    assert named == sorted(map(str, (folder / "class00").iterdir()))[:3]
    for other in ("predict\\(usual\\)", "the loop"):  # resized a little differently
        assert number(rf"{other}: scores differ from predict\(stoker\)'s by at most (\S+)", out) < 0.05
    assert re.search(r"^verdict: .*; .*$", out, re.M), out


@pytest.mark.long
def test_predict_makes_photographs_and_takes_them_away(run):
    out = run("predict.py")
    named = re.findall(r"^(/.*\.jpg): ", out, re.M)
    assert len(named) == 3 and not any(pathlib.Path(path).parents[1].exists() for path in named)


@pytest.mark.long
def test_from_arrays(run):
    out = run("from_arrays.py")
    for name in ("stoker.arrays", "from_tensor_slices", "gather", "from_generator"):
        assert number(rf"{name} +([0-9,]+) samples/s", out) > 0
    assert re.search(r"^verdict: .*; .*; .*", out, re.M), out


@pytest.mark.long
def test_text_and_tables(run):
    out = run("text_and_tables.py")
    for kind in ("text", "table"):
        assert f"{kind}: the pipelines have the same 50,000 rows: True" in out
    assert re.search(r"^verdict: text: .*; text: .*; table: .*; table: .*", out, re.M), out


@pytest.mark.long
def test_distributed(run, folder):
    out = run("distributed.py", folder)
    assert "trained on 2 devices; epoch 2 is next" in out  # of the loader: epochs 0 and 1 were trained
    assert f"verdict: {PHOTOS} photographs from 2 worker processes, 0 of them decoded in this one" in out


@pytest.mark.long
def test_quantize(run, folder):
    out = run("quantize.py", folder)
    assert "at serving the pixels are the loader's: True" in out
    whole = number(r"float32: ([0-9,]+) bytes", out)
    for name, part in (("float16", 0.6), ("int8", 0.4)):
        assert number(rf"{name}: ([0-9,]+) bytes", out) < part * whole
        assert number(rf"^{name}: .* (\d+) of {PHOTOS} answers as before", out) >= 0.8 * PHOTOS
        assert number(rf"^{name}: (\d+) µs of CPU time for an answer", out) > 0
    assert number(r"(\d+)% of the photographs are classified correctly", out) >= 60
    share = rf"\d+% \(\d+ of {PHOTOS} answers as before, \d+% correct\)"
    sizes = rf"float32 {share}, float16 {share}, int8 {share}"
    verdict = rf"^verdict: bytes of the models: {sizes}; .*; .*; pixels .* the loader's$"
    assert re.search(verdict, out, re.M), out


@pytest.mark.long
def test_prune(run, folder):
    out = run("prune.py", folder)
    if out.startswith("skipped: "):
        pytest.skip(out.strip())
    after = [int(percent) for percent in re.findall(r"^after epoch \d+: (\d+)% zeros", out, re.M)]
    assert len(after) == 20 and 50 < after[0] < after[1] < after[2] and after == sorted(after)
    assert after[-1] == 90
    assert len(re.findall(r"^\S*kernel\S*: 9[01]% zeros", out, re.M)) == 3
    verdict = r"^verdict: with 90% zeros \(without pruning: 0%\), .*, by chance 0\.69$"  # it learned
    assert re.search(verdict, out, re.M), out


@pytest.mark.long
def test_two_workers(run, folder):
    out = run("two_workers.py", folder)
    line = r"^(.+), process (\d): trained (\d+) rows, decoded (\d+) photographs; weights (\S+)$"
    found = re.findall(line, out, re.M)
    own = [row for row in found if row[0] == "rank and world"]
    sharded = [row for row in found if row[0] == "auto-sharding"]
    for rows in (own, sharded):
        assert sorted(row[1] for row in rows) == ["0", "1"], out
        assert {int(row[2]) for row in rows} == {PHOTOS}  # half of the photographs, in two epochs
        assert len({row[4] for row in rows}) == 1
    assert all(int(row[3]) >= 2 * PHOTOS for row in sharded), out  # all of them, in each process
    assert re.search(r"^verdict: .*; equal weights: True$", out, re.M), out


@pytest.mark.long
def test_distill(run, folder):
    out = run("distill.py", folder)
    batches = 2 * PHOTOS // 16  # in two epochs
    for way in ("stoker, one batch", "usual, one batch"):
        assert number(rf"{way}: .* the same pixels in (\d+) of {batches} batches", out) == batches
    assert number(rf"usual, zipped: .* the same pixels in (\d+) of {batches} batches", out) == 0
    weights = [number(rf"^{name}: ([0-9,]+) weights, \d+% correct;", out) for name in ("teacher", "student")]
    assert weights[0] > 10 * weights[1]
    assert re.search(r"^verdict: decoding in every epoch, .*; .*; .*; .*; .*$", out, re.M), out


@pytest.mark.long
def test_serve(run, folder):
    out = run("serve.py", folder)
    for size in ("64 × 64", "224 × 224"):
        for way in ("stoker.Compose", "matched ops", "default ops"):
            assert number(rf"^{size}, {way} +one request: p50 ([0-9.]+) ms, p90 \S+ ms, p99 \S+ ms", out) > 0
        differs = {way: rf"^{size}, {way} .* by up to (\S+)" for way in ("stoker.Compose", "matched ops")}
        assert number(differs["stoker.Compose"], out) < 1e-5  # the loader's pixels, in a batch of one
        assert number(differs["matched ops"], out) < 0.01  # pixels that are not rounded to integers
        assert f"at {size}, stoker.Compose gives training's scores" in out
    verdict = r"^verdict: after training with stoker, .*; .*; at 224 × 224, .*; .*; .*$"
    assert re.search(verdict, out, re.M), out


def test_memory_growth(run, folder):
    out = run("memory_growth.py", folder)
    gpus = number(r"after a batch of stoker's loader: \d+ of (\d+) GPUs are visible", out)
    taken = r"\d+ bytes" if gpus else "no GPU: not measured"
    assert re.search(rf"^{PHOTOS // 16} batches, .*; GPU memory that they take: {taken}$", out, re.M), out
    assert (
        "after a batch of a tf.data pipeline: " in out and "cannot be modified after being initialized" in out
    )
    assert "2 logical CPUs" in out  # what was set after a batch of stoker's
    assert "verdict: devices can be set after a batch of stoker's loader: yes, after one of a tf.data" in out
    assert re.search(rf" pipeline: no; GPU memory that batches take: {taken}$", out, re.M), out


def test_verdicts_of_invented_seconds(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    timing = importlib.import_module("timing")
    one = [1.0] * 9

    def verdict(other):
        return timing.verdict({"one": one, "other": other}, "one", "other")

    twice = "takes 2.00 times the CPU time of"
    assert verdict([1.5, *[2.0] * 7, 4.0]) == f"other {twice} one (2.00 to 2.00 in 9 rounds)"
    assert verdict([0.5] * 9) == f"one {twice} other (2.00 to 2.00 in 9 rounds)"
    tie = "no difference in CPU time that 9 rounds can tell: one takes 1.00 to 1.00 times that of other"
    assert verdict(one) == tie
    assert verdict([0.1, *[2.0] * 8]).startswith(f"other {twice} one")  # one outlier
    assert verdict([0.1, 0.5, *[2.0] * 7]) == (
        "no difference in CPU time that 9 rounds can tell: one takes 0.50 to 2.00 times that of other"
    )


def test_every_other_round_goes_backwards(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    timing = importlib.import_module("timing")
    calls = []
    ways = {name: lambda name=name: calls.append(name) for name in "ab"}
    seconds = timing.in_turns(ways, rounds=2, clock=lambda: 2.0 * len(calls))
    assert "".join(calls) == "ab" + "ba" + "ab"  # the first round warms up
    assert seconds == {"a": [2.0, 2.0], "b": [2.0, 2.0]}


@pytest.mark.long
def test_verdicts(run, folder):
    out = run("verdicts.py", "memory_growth", "--", folder)
    assert re.search(r"^memory_growth \| \d+ s \| verdict: .*", out, re.M), out


def test_every_example_has_a_test():
    assert [script for script in EVERY if f"test_{script}" not in globals()] == []
