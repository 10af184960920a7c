"""Every code block of every page runs, or the page says why it does not.

The treatment of a block follows from the word after its fence:

    python    executed, on small folders; the blocks of a page share their names, in order
    sh        stoker's commands are run; of others the script, options, presets and packages are looked up
    console   the same for the lines that begin with `$ `; the others are what a command prints
    json      parsed; recipes and loader specs are opened, too
    cmake     finds an installed stoker for a program; a page that does not have it is given it
    cpp       the program, which is compiled and run
    text      left alone: drawings, formulas, what a program prints. No commands

`<!-- not run: REASON -->` on the line before says that a block cannot be run where the tests are: its
commands are looked up all the same, and Python that needs a GPU runs on the device "host". A block without a
language fails.

A page imports what it uses. What else its blocks take for granted (a model, a function that trains) is in
ASSUMED.
"""

import ast
import contextlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

import forks
import pytest
import tfrecords

pytest.importorskip("stoker", reason="the package is not installed here")

import numpy as np
import stoker
from gray_png import write_episodes, write_stereo, write_street
from pages import BLOCKS, PAGES, ROOT, commands_of, look_up
from snippets import ARROW, imports_of, installed, lacking, lacks, names_in, parsed, write_saved_dataset

LANGUAGES = ("python", "sh", "console", "json", "cmake", "cpp", "text")
REASONS = (
    "built by tests/install",
    "installs packages",
    "needs a GPU",
    "takes minutes",
    "tests/bindings/c makes these calls",
)
MOST_NOT_RUN = 15


def of(*languages):
    """For parametrize: of each page that has some, its blocks of these languages."""
    pages = {page: [b for b in blocks if b.language in languages] for page, blocks in BLOCKS.items()}
    return [pytest.param(blocks, id=page) for page, blocks in pages.items() if blocks]


def test_every_block_has_a_language():
    assert sum(map(len, BLOCKS.values())) > 50
    others = [str(b) for blocks in BLOCKS.values() for b in blocks if b.language not in LANGUAGES]
    assert others == []


def test_blocks_that_are_not_run_give_a_reason():
    marked = sorted((b.not_run, str(b)) for blocks in BLOCKS.values() for b in blocks if b.not_run)
    print(*(f"not run, {reason}: {block}" for reason, block in marked), sep="\n")
    assert [block for reason, block in marked if reason not in REASONS] == []
    assert len(marked) <= MOST_NOT_RUN
    markers = sum(path.read_text().count("\n<!-- not run") for path in PAGES)
    assert markers == len(marked), "a marker stands on the line before its block"


COMMAND = re.compile(
    r"\s*(\$|(\S*/)?(stoker|python3?|pip|pytest|cmake|ctest|ninja|taskset|sudo|dev|import|from)) [^|]"
)


@pytest.mark.parametrize("blocks", of("text"))
def test_text_hides_no_commands(blocks):
    assert [f"{b}: {line}" for b in blocks for line in b.text.split("\n") if COMMAND.match(line)] == []


# --- a place to run them in ----------------------------------------------------------------------------


def stoker_command(*words, cwd=None, code=0):
    """Returns what the package's command prints."""
    if words[0] in ("build-tf-plugin", "doctor"):  # which import TensorFlow
        done = forks.run("-m", "stoker", *words, cwd=cwd, timeout=300)
    else:
        command = [sys.executable, "-m", "stoker", *map(str, words)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """Makes the files that pages mention: photographs, shards, the recipe that docs/transforms.md
    explains.
    """
    folder = tmp_path_factory.mktemp("documents")
    for name, count in (("train", 20), ("val", 6)):
        stoker_command("synth", folder / "photos" / name, "--count", count, "--classes", 3)
    stoker_command("pack", folder / "photos" / "train", folder / "packed" / "train")
    transforms = [
        {"name": "RandomResizedCrop", "height": 224, "width": 224},
        {"name": "RandomHorizontalFlip"},
        {"name": "RandAugment", "num_ops": 2, "magnitude": 7},
        {"name": "Normalize"},
        {"name": "RandomErasing", "p": 0.25},
    ]
    write_street(folder / "street")
    write_stereo(folder / "stereo")
    write_episodes(folder / "episodes")
    (folder / "shards").mkdir()
    images = sorted((folder / "photos" / "val").rglob("*.jpg"))
    for shard in range(4):
        with tarfile.open(folder / "shards" / f"{shard:03d}.tar", "w") as archive:
            for image in images:
                archive.add(image, image.name)
    features = [
        {"image/encoded": image.read_bytes(), "image/class/label": i % 3, "image/height": 300 + i}
        for i, image in enumerate(images)
    ]
    records = [tfrecords.record(tfrecords.example(sample)) for sample in features]
    (folder / "train-0.tfrecord").write_bytes(b"".join(records))
    scene = tfrecords.scene(features[0]["image/encoded"])
    (folder / "coco-0.tfrecord").write_bytes(tfrecords.record(scene))
    write_saved_dataset(folder / "imagenet" / "train")
    shutil.copy(ARROW / "named", folder / "data-0.arrow")
    with contextlib.suppress(ImportError):  # pages' blocks that need it are then left out
        import pyarrow.parquet

        rows = [{"bytes": image.read_bytes(), "path": image.name} for image in images]
        table = pyarrow.table({"image": rows, "label": [i % 3 for i in range(len(rows))]})
        pyarrow.parquet.write_table(table, folder / "train-0.parquet")
    (folder / "recipe.json").write_text(json.dumps({"transforms": transforms, "dtype": "float32"}))
    return folder


@pytest.fixture
def here(scratch, monkeypatch):
    monkeypatch.chdir(scratch)
    return scratch


# --- Python --------------------------------------------------------------------------------------------


def keras_model(classes, loss):
    keras = pytest.importorskip("keras")
    layers = [keras.layers.Rescaling(1 / 255), keras.layers.GlobalAveragePooling2D()]
    model = keras.Sequential([*layers, keras.layers.Dense(classes, activation="softmax")])
    model.compile(loss=loss)
    return model


def train(*batch):
    """A step on a batch, or a loop over a loader."""
    for images, labels in batch[0] if isinstance(batch[0], stoker.Loader) else [batch]:
        assert len(images) == len(labels) > 0


def jpeg_bytes():
    return next(pathlib.Path("photos/train/class00").iterdir()).read_bytes()


def batches_to_digest():
    loader = stoker.Loader(stoker.image_folder("photos/val"), [stoker.Resize((8, 8))], batch_size=4)
    iterator = iter(loader.epoch(0))
    return [(0, index, iterator.sample_ids, *batch) for index, batch in enumerate(iterator)]


# Names that the Python of a page takes for granted, and how each is made when a block first uses it.
ASSUMED = {
    "README.md": {"jpeg_bytes": jpeg_bytes, "train": lambda: train},
    "docs/batches.md": {"step": lambda: train},
    "docs/cli.md": {"batches": batches_to_digest},
    "docs/data.md": {
        "images": lambda: np.zeros((20, 240, 240, 3), np.uint8),
        "labels": lambda: np.arange(20),
    },
    "docs/decode.md": {"jpeg_bytes": jpeg_bytes},
    "docs/processors.md": {"jpeg_bytes": jpeg_bytes},
    "docs/from-tf-data.md": {"model": lambda: keras_model(1000, "categorical_crossentropy")},
    "docs/gpu.md": {"model": lambda: keras_model(3, "sparse_categorical_crossentropy")},
    "docs/pytorch.md": {
        "mean": lambda: (0.485, 0.456, 0.406),
        "std": lambda: (0.229, 0.224, 0.225),
    },
    "docs/tensorflow.md": {
        "jpeg_bytes": jpeg_bytes,
        "model": lambda: keras_model(3, "sparse_categorical_crossentropy"),
    },
    "docs/tuning.md": {"train": lambda: train},
}


class OnTheHost(ast.NodeTransformer):
    """The device "host", which stands in for a GPU where there is none."""

    def visit_Constant(self, node):
        on_gpu = node.value in ("cuda:0", "cuda:1")
        return ast.copy_location(ast.Constant("host"), node) if on_gpu else node


@pytest.mark.parametrize("blocks", of("python"))
def test_python(blocks, here):
    page = blocks[0].page
    names, missing = {"__name__": page}, set()
    for block in blocks:
        tree = parsed(block)
        absent = [(name, module) for name, module in imports_of(tree) if lacks(module)]
        missing |= {name for name, module in absent if "." not in module}
        if lacking(tree) or names_in(tree) & missing:
            print(f"not run, a package is not installed: {block}")
            continue
        for name in (names_in(tree) & set(ASSUMED.get(page, {}))) - set(names):
            names[name] = ASSUMED[page][name]()
        if block.not_run:
            assert block.not_run == "needs a GPU", f"{block}: of Python nothing else is left out"
            tree = OnTheHost().visit(tree)
        exec(compile(tree, str(ROOT / page), "exec"), names)


def test_the_graph_that_serves_has_the_pixels_of_the_loader(photos):
    """Runs what docs/tensorflow.md prints and describes, on every photograph."""
    tf = pytest.importorskip("tensorflow", minversion="2")
    (block,) = [b for b in BLOCKS["docs/tensorflow.md"] if "def serving_pixels" in b.text]
    definition = next(node for node in parsed(block).body if isinstance(node, ast.FunctionDef))
    names = {"tf": tf}
    exec(compile(ast.Module([definition], []), str(ROOT / block.page), "exec"), names)
    recipe = [stoker.Resize(256), stoker.CenterCrop(224)]
    loader = stoker.Loader(stoker.image_folder(photos), recipe, batch_size=1, exif_orientation=False)
    iterator = iter(loader.epoch(0))
    apart, values = 0, 0
    for batch in iterator:
        images = batch[0] if isinstance(batch, tuple) else batch
        path = loader.source.path(iterator.sample_ids[0])
        made = names["serving_pixels"](tf.io.read_file(path)).numpy()
        assert np.abs(made - images[0]).max() < 0.52, path
        assert np.abs(np.rint(made) - images[0]).max() <= 1, path
        apart += np.count_nonzero(np.rint(made) != images[0])
        values += made.size
    assert values > 0 and apart / values < 0.005


# --- commands ------------------------------------------------------------------------------------------

PLACES = {"DIR": "photos/train", "PHOTOS": "photos/train", "OUT": "packed/train", "NEW": "new", "N": "8"}
MOST = {"--count": 8, "--epochs": 1, "--threads": 2}


def run_stoker(words, where):
    """Runs a page's command on the small folders and with less to do; returns what it prints."""
    elsewhere = {"DIR": "made/dir", "photos/train": "made/train", "photos/val": "made/val"}
    places = {**PLACES, **elsewhere} if words[0] == "synth" else PLACES
    words = [places.get(word, word) for word in words]
    for at, word in enumerate(words):
        if word in MOST:
            words[at + 1] = str(min(int(words[at + 1]), MOST[word]))
    return stoker_command(*words, cwd=where)


@pytest.mark.parametrize("blocks", of("sh", "console"))
def test_commands(blocks, here):
    for block in blocks:
        for words in commands_of(block):
            line = shlex.join(words)
            if words[0] == "taskset":  # its cores may not be allotted to us
                words = words[3:]
            try:
                if words[0] not in ("stoker", "build/stoker"):
                    look_up(words)
                elif not block.not_run and (words[1] != "build-tf-plugin" or installed("tensorflow")):
                    run_stoker(words[1:], here)
            except AssertionError as error:
                raise AssertionError(f"{block}: {line}: {error}") from error


# --- JSON ----------------------------------------------------------------------------------------------


def open_recipe(recipe, where):
    (where / "page.json").write_text(json.dumps(recipe))
    explained = run_stoker(["explain", "--recipe", "page.json"], where)
    for transform in recipe["transforms"]:
        assert transform["name"] in explained


def open_spec(spec, where):
    """Opens a loader spec as the package does, over photographs that exist here."""
    photos = where / "photos" / "train"
    source = stoker.image_folder(photos)
    spec["source"].update(directory=str(photos), samples=len(source))
    native = stoker._stoker.Loader("a page", json.dumps(spec), source._native, stoker._stoker.Runtime())
    assert native.batches_per_epoch == -(-len(source) // spec["batch_size"])


def compare_error(said, where):
    printed = json.loads(stoker_command("inspect", "nowhere", "--json", cwd=where, code=1))
    assert printed["error"].keys() == said["error"].keys()


@pytest.mark.parametrize("blocks", of("json"))
def test_json(blocks, here):
    for block in blocks:
        value = json.loads(block.text)
        if "error" in value:
            compare_error(value, here)
        elif "source" in value:
            open_spec(value, here)
        elif "choices" in value:
            crop = {"name": "RandomResizedCrop", "height": 8, "width": 8}
            open_recipe({"transforms": [crop], "mix": value, "dtype": "float32"}, here)
        else:
            open_recipe(value, here)


# --- C++ -----------------------------------------------------------------------------------------------

TRAIN = """#include <cstdint>
#include <cstdio>
#include <span>
void Train(std::span<const uint8_t> images, std::span<const int64_t> labels) {
  std::printf("%zu %zu\\n", images.size(), labels.size());
}
"""

LINKED = "find_package(stoker REQUIRED)\ntarget_link_libraries(program PRIVATE stoker::stoker)"


def write_program(blocks, folder):
    """A CMake project of a page's blocks: #include lines first, the other lines are main() or have one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = [line for b in blocks if b.language == "cpp" for line in b.text.split("\n")]
    includes = "\n".join(line for line in lines if line.startswith("#include"))
    body = "\n".join(line for line in lines if not line.startswith("#include"))
    main = body if "int main() {" in body else f"{TRAIN}int main() {{\n{body}\n}}"
    (folder / "program.cc").write_text(f"{includes}\n{main}\n")
    start = "cmake_minimum_required(VERSION 3.22)\nproject(page CXX)\nadd_executable(program program.cc)\n"
    linked = [b.text for b in blocks if b.language == "cmake"] or [LINKED]
    (folder / "CMakeLists.txt").write_text(start + "".join(text + "\n" for text in linked))


@pytest.mark.long
@pytest.mark.parametrize("blocks", of("cpp", "cmake"))
def test_cpp(blocks, build, here):
    """With a stoker that is installed from the build folder, over photos/train."""
    if not (build / "stoker").is_file():
        pytest.skip(f"{build} has nothing to install")
    cache = (build / "CMakeCache.txt").read_text()
    if not re.search(r"^STOKER_SANITIZE:\w+=$", cache, re.M):
        pytest.skip("a user's program is not linked with sanitizers")
    blocks = [block for block in blocks if not block.not_run]
    if not blocks:
        pytest.skip("no block of this page is run here")

    def run(*words):
        words = [str(word) for word in words]
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, f"{blocks[0]}: {shlex.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    write_program(blocks, here / "program")
    run("cmake", "--install", build, "--prefix", here / "prefix")
    run(
        *("cmake", "-S", "program", "-B", "program/build", f"-DCMAKE_PREFIX_PATH={here / 'prefix'}"),
        "-DCMAKE_CXX_COMPILER=" + re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1],
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror",
    )
    run("cmake", "--build", "program/build")
    batches = [tuple(map(int, line.split())) for line in run("program/build/program").splitlines()]
    trains = any("Train(" in block.text for block in blocks)
    assert batches == (3 * [(20 * 224 * 224 * 3, 20)] if trains else [])
