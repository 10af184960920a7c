"""The steps of measure.py, in order."""

import pathlib
import sys
from typing import NamedTuple, Optional

FOLDER = pathlib.Path(__file__).parent
PHASES = ("probe", "build", "test", "bench", "train")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
EPOCHS = ("options.threads", "images_per_second", "cpu_seconds_per_1000_images", "device.device",
          "device.copy_bytes_per_second", "device.bare_copy_bytes_per_second",
          "device.copies_hidden_at_least")  # fmt: skip


class Settings(NamedTuple):
    device: str
    pack: pathlib.Path
    work: pathlib.Path
    results: pathlib.Path
    photos: pathlib.Path
    makes_photos: bool
    seconds: int
    effort: int
    quick: bool
    cores: list

    @property
    def on_gpu(self):
        return self.device.startswith("cuda")

    def program(self, name):
        return str(self.work / "bin" / name)


class Step(NamedTuple):
    name: str
    phase: str
    seconds: int  # that it should take; it is ended after twice as many
    commands: list
    needs: tuple = ()  # "gpu", "cores:N", "module:NAME", "program:NAME", "file:PATH"
    keep: tuple = ()  # paths of the values to keep, of the JSON objects that are printed; empty: all
    makes: Optional[str] = None  # a path, without which the step is not done
    tests: bool = False  # a test that is skipped is a failure


def steps(s):
    return [*building(s), *testing(s), *measuring(s), *training(s)]


def building(s):
    def prepare(what):
        options = ["--work", s.work, *(["--cuda"] if s.on_gpu else [])]
        return [[sys.executable, FOLDER / "prepare.py", what, *options]]

    stoker, count = s.program("stoker"), "64" if s.quick else "16000"
    pack = s.work / "pack"
    # Removes the programs and the package that were made of another pack, too.
    unpack = [["rm", "-rf", pack, s.work / "bin", s.work / "site"], ["mkdir", "-p", pack]]
    unpack += [["tar", "-C", pack, "-xf", s.pack]]
    yield Step("unpack", "probe", 30, unpack, (f"file:{s.pack}", "program:tar"), makes=pack)
    copy = [pack / "bin" / "device_bench", s.device, "copies", "--quick"]
    yield Step("first-copy", "probe", 20, [copy], (f"file:{copy[0]}",))
    yield Step("machine", "probe", 40, prepare("machine"))
    yield Step("programs", "build", 300, prepare("programs"), makes=s.work / "bin")
    yield Step("package", "build", 200, prepare("package"), makes=s.work / "site")
    if s.makes_photos:
        synth = [stoker, "synth", s.photos, "--count", count, "--seed", "1"]
        yield Step("photographs", "build", 60, [synth], (f"file:{stoker}",), makes=s.photos)
    packing = [stoker, "pack", s.photos, packed(s)]
    yield Step("packed", "build", 60, [packing], (f"file:{stoker}", f"file:{s.photos}"), makes=packed(s))
    indexing = [stoker, "index", s.photos, "--out", indexed(s)]
    yield Step("index", "build", 60, [indexing], (f"file:{stoker}", f"file:{s.photos}"), makes=indexed(s))
    yield Step("doctor", "build", 20, [[stoker, "doctor", "--json"]], (f"file:{stoker}",))


def testing(s):
    given = [f"STOKER_EFFORT={10 if s.quick else 100}", f"STOKER_PHOTOS={s.photos}"]
    mine = f"--gtest_filter=*/{'Cuda' if s.on_gpu else 'Host'}"
    # gpu_device_test has simulated devices only: it shows that program and machine go together.
    for name, filters in [
        ("gpu_device_test", []),
        ("stager_test", [mine]),
        ("device_loader_test", [mine]),
        ("device_decode_test", [mine]),
        ("gpu_deferred_ops_test", [mine]),
        ("gpu_crops_test", [mine]),
    ]:
        command = ["env", *given, s.program(name), *filters]
        yield Step(name, "test", 60, [command], (f"file:{s.program(name)}",), tests=True)
    pytest = ["env", *given, sys.executable, "-m", "pytest", "-q", "-rs"]
    needs = ("gpu", "module:pytest", f"file:{s.work / 'site'}", f"file:{s.photos}")
    yield Step("python", "test", 120, [[*pytest, "tests/python/test_gpu.py"]], needs, tests=True)
    dataset, needs = (
        "tests/python/tensorflow/test_gpu_dataset.py",
        (*needs, "module:tensorflow", "program:g++"),
    )
    yield Step("tensorflow", "test", 180, [[*pytest, dataset]], needs, tests=True)
    kernels = [s.program(name) for name in ("gpu_deferred_ops_test", "gpu_crops_test")]
    needs = ("gpu", "program:compute-sanitizer", *(f"file:{program}" for program in kernels))
    for tool in SANITIZERS:
        check = ["env", f"STOKER_EFFORT={s.effort}", "compute-sanitizer", "--tool", tool]
        check += ["--error-exitcode", "1"]
        yield Step(tool, "test", 120, [[*check, program, mine] for program in kernels], needs, tests=True)


def measuring(s):
    quick = ["--quick"] if s.quick else []
    for table in ("copies", "small", "steps", "kernels"):
        command = [s.program("device_bench"), s.device, table, *quick]
        yield Step(table, "bench", 60, [command], (f"file:{command[0]}",))

    bench = [s.program("stoker"), "bench", s.photos, "--transform", "train", "--json"]
    needs = ("program:taskset", f"file:{bench[0]}", f"file:{s.photos}")
    bench += ["--batch-size", "8"] if s.quick else ["--batch-size", "256", "--epochs", "2"]
    to_device = ["--device", s.device]
    # In turns, so that what else happens on the machine hits both.
    turns = [[*bench, *to] for _ in range(3) for to in ([], to_device)]
    yield Step("epochs", "bench", 60, turns, needs, EPOCHS)
    by_cores = [
        on(s.cores[:count], [*bench, *to_device]) for count in (1, 2, 4, 8, 16) if count <= len(s.cores)
    ]
    yield Step("epochs-by-cores", "bench", 90, by_cores, needs, EPOCHS)

    decoding = [sys.executable, FOLDER / "decoding.py", packed(s), "--device", s.device]
    decoding += ["--photos", s.photos, "--index", indexed(s)]
    decoding += ["--batch-size", "8", "--seconds", "0.2", "--turns", "1"] if s.quick else []
    needs = tuple(f"file:{path}" for path in (s.work / "site", packed(s), indexed(s)))
    yield Step("decode-on-device", "bench", 120, [decoding], needs)
    needs = ("module:torch", "module:torchvision", f"file:{s.photos}")
    yield Step("decode_jpeg", "bench", 40, [trained(s, "--loader", "decode_jpeg")], needs)
    needs += (f"file:{s.work / 'site'}",)
    gemm = "gemm:32x8192" if s.on_gpu else "gemm:2x256"
    yield Step("gemm", "bench", 60, [trained(s, "--model", gemm)], needs)
    yield Step("overlap", "bench", 60, [trained(s, "--trace")], ("gpu", *needs))


def training(s):
    torch = ("module:torch", "module:torchvision", f"file:{s.work / 'site'}", f"file:{s.photos}")
    model = "resnet18" if s.on_gpu else "shufflenet_v2_x0_5"
    small = ["--model", model, "--steps", "40", "--warmup", "4"]
    for count in (2, 4, 8):
        for loader, module in (("stoker", ()), ("usual", ()), ("dali", ("module:nvidia.dali",))):
            command = on(s.cores[:count], trained(s, "--loader", loader, *small, workers=count))
            needs = (f"cores:{count}", "program:taskset", *module, *torch)
            yield Step(f"small-{count}-{loader}", "train", 45, [command], needs)
    for framework, module in (("torch", ()), ("jax", ("module:jax",))):
        for loader in ("stoker", "usual"):
            command = trained(s, "--framework", framework, "--loader", loader)
            yield Step(f"{framework}-{loader}", "train", 60, [command], ("gpu", *module, *torch))
    needs = ("module:tensorflow", "program:g++", f"file:{s.work / 'site'}", f"file:{s.photos}")
    command = [sys.executable, FOLDER / "tensorflow_op.py", s.photos, "--device", s.device]
    command += ["--batch-size", "8", "--steps", "2", "--rounds", "1"] if s.quick else []
    yield Step("tensorflow_op", "train", 90, [command], ("gpu", *needs))


def packed(s):
    return s.work / "packed"


def indexed(s):
    return s.work / "crop-index"


def on(cores, command):
    return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]


def trained(s, *options, workers=None):
    command = [sys.executable, FOLDER / "training.py", s.photos, "--device", s.device, *options]
    quick = ["--batch-size", "8", "--steps", "2", "--warmup", "1"] if s.quick else []
    return [*command, "--workers", str(workers or len(s.cores)), *quick]
