"""The schedule of measure.py lease: what runs, and until when.

A slot ends at its second of the clock, which started with the program; a step in it also has a stop-loss, and
does not start with less time than `least`, in which it would show nothing. A slot that ends early leaves its
time to the next ones; the first slots have more time than they need, because all others need what they make.
The clock times are those of a lease of SECONDS, and are scaled to that of another length.
"""

from __future__ import annotations

import pathlib
import sys
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).parent
SECONDS = 505
REPORT_SECONDS = 15  # the end of the lease, which no step gets
KNOWN_AT = 20  # a GPU that the driver has not found by then is taken to be there if the system has its file
PREPARING = 3  # slots at the beginning that make what the others need
DRIVER_LINKS = "driver"  # folder in WORK, for links to the driver's libraries

GTESTS = ("gpu_crops_test", "gpu_deferred_ops_test", "stager_test", "device_loader_test",
          "device_decode_test", "gpu_device_test")  # fmt: skip
SIMULATED_ONLY = ("gpu_device_test",)  # shows that program and machine go together
KERNEL_TESTS = ("gpu_crops_test", "gpu_deferred_ops_test")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Each test of test_gpu.py runs in a process of its own: after one fault of the GPU all CUDA calls of its
# process fail.
PYTHON_TESTS = {
    "torch": (
        "test_values_are_those_of_the_cpu",
        "test_torch_sees_the_same_memory",
        "test_other_streams_see_whole_batches",
        "test_a_slow_stream_does_not_hold_up_batches_with_named_streams",
        "test_another_thread_captures_a_graph",
        "test_a_tensor_outlives_its_loader",
        "test_a_graph_can_be_captured_meanwhile",
    ),
    "jax": ("test_jax_lets_go_of_what_it_still_computes_with", "test_jax_sees_the_same_memory"),
    "cupy": ("test_cupy_sees_the_same_memory",),
    "numpy": ("test_no_context_on_the_cpu_and_one_where_asked", "test_it_ends_with_batches_in_hand"),
}
DIGESTS = ("digest-workers", "digest-device", "digest-decode-indexed", "digest-decode-packed")
DECODED_BY = ("device", "workers")
FILES = ("packed", "indexed")
FEEDERS = ("stoker", "stoker-decode", "usual")
EPOCH_FIGURES = (
    "options.threads", "images_per_second", "cpu_seconds_per_1000_images", "waited.share", "digest", "images",
    "decoded.on_device", "decoded.left_to_workers", "device.device", "device.copy_bytes_per_second",
    "device.bare_copy_bytes_per_second", "device.copies_hidden_at_least", "device.pinned_bytes",
    "device.pinning_s", "memory_warnings", "warning",
)  # fmt: skip
KERNELS = "UnpackKernel|EntropyKernel|ResampleKernel|DeferredOpsKernel"
METRICS = (
    "gpu__time_duration.sum", "smsp__inst_executed.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes.sum",
)  # fmt: skip


class Settings(NamedTuple):
    device: str
    pack: pathlib.Path
    work: pathlib.Path
    results: pathlib.Path
    seconds: float
    effort: int
    quick: bool
    cores: tuple[int, ...]

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    @property
    def ordinal(self) -> str:
        return self.device.partition(":")[2] or "0"

    @property
    def site(self) -> pathlib.Path:
        return self.work / "pack" / "site"

    @property
    def photos(self) -> pathlib.Path:
        return self.work / "photographs"

    @property
    def few(self) -> pathlib.Path:
        return self.work / "few-photographs"

    @property
    def index(self) -> pathlib.Path:
        return self.work / "crop-index"

    @property
    def few_index(self) -> pathlib.Path:
        return self.work / "few-crop-index"

    @property
    def few_packed(self) -> pathlib.Path:
        return self.work / "few-packed"

    def program(self, name: str) -> str:
        return str(self.work / "pack" / "bin" / name)

    def bench(self, table: str, *options: object) -> Command:
        quick = ["--quick"] if self.quick else []
        return [self.program("device_bench"), self.device, table, *map(str, options), *quick]

    def script(self, name: str, *options: object) -> Command:
        return [sys.executable, str(FOLDER / name), *map(str, options)]


Command = list[str]


class Step(NamedTuple):
    name: str
    least: float  # seconds without which it does not start
    stop: float  # seconds after which it is killed
    commands: list[Command]  # one after another
    needs: tuple[str, ...] = ()  # "device", "gpu": a real one, "module:NAME", "program:NAME", "file:PATH"
    proven_by: tuple[str, ...] = ()  # tests; if one fails, its figures mean nothing
    doubted_by: tuple[str, ...] = ()  # tests; if one fails, the report says so
    keep: tuple[str, ...] = ()  # paths of the values to keep of JSON that is printed; empty means all
    prints: str = "json"  # how to read the output, too (reading.py)
    env: tuple[tuple[str, str], ...] = ()
    lasts: bool = False  # it is meant to run until it is killed


class Slot(NamedTuple):
    until: float  # second of the clock
    what: str
    steps: list[Step]
    together: bool = False  # the steps run at the same time


def background(s: Settings) -> list[Step]:
    """Returns what runs in the background of the slots, from the first second on."""
    context = s.script("background.py", "context", "--ordinal", s.ordinal, "--links", s.work / DRIVER_LINKS)
    memory = s.script("background.py", "memory", "--gib", 0.25 if s.quick else 32)
    return [
        *([Step("context", 0, s.seconds, [context], lasts=True)] if s.on_gpu else []),
        Step("machine", 0, 60, [s.script("machine.py", "--work", s.work)]),
        Step("memory", 0, 30, [memory]),
        Step("libraries", 0, 60, [s.script("background.py", "libraries")]),
    ]


def schedule(s: Settings) -> list[Slot]:
    return [
        Slot(30, "unpack", [unpack(s)]),
        Slot(40, "photographs", [photographs(s)]),
        Slot(60, "packed, indexed", [packing(s), indexing(s)], together=True),
        Slot(95, "correctness", [*python_tests(s), *gtests(s), *digests(s), *sanitizers(s)], together=True),
        Slot(140, "copies, finish kernel", [copies(s), finish(s), hidden(s), small(s)]),
        Slot(185, "kernels that decode", [*all_crops(s), *(ncu(s, files) for files in FILES)]),
        Slot(240, "loader to device", [loader(s, files, by) for by in DECODED_BY for files in FILES]),
        Slot(262, "torchvision's decoder", [decode_jpeg(s)]),
        Slot(300, "copies under kernels", [overlap(s), gemm(s)]),
        Slot(390, "ResNet-18 on 4 cores", [resnet18(s, feeder) for feeder in FEEDERS]),
        Slot(420, "recording, JAX", [record(s), jax(s)]),
        Slot(SECONDS - REPORT_SECONDS, "epochs", [epochs(s), epochs_by_cores(s)]),
    ]


# --- what the others need -----------------------------------------------------------------------------------


def unpack(s: Settings) -> Step:
    command = s.script("pack.py", "--unpack", s.work, "--folder", s.pack)
    return Step("unpack", 1, 28, [command], (f"file:{s.pack}",))


def photographs(s: Settings) -> Step:
    given = ["--from", s.work / "photos", "--stoker", s.program("stoker")]
    counts = ["--copies", 1, "--made", 64] if s.quick else ["--copies", 40, "--made", 16000]
    command = s.script("photographs.py", s.photos, s.few, *given, *counts)
    return Step("photographs", 1, 20, [command], (f"file:{s.program('stoker')}",))


def packing(s: Settings) -> Step:
    """Packs each photograph once: what reads the set repeats it, and packing 40 names of each would take most
    of a minute of CPU time."""
    commands = [["rm", "-rf", str(s.few_packed)],
                [s.program("stoker"), "pack", str(s.few), str(s.few_packed)]]  # fmt: skip
    return Step("packed", 2, 25, commands, ("device", f"file:{s.few}"))


def indexing(s: Settings) -> Step:
    commands = [[s.program("stoker"), "index", str(folder), "--out", str(index)]
                for folder, index in ((s.few, s.few_index), (s.photos, s.index))]  # fmt: skip
    return Step("index", 2, 25, commands, ("device", f"file:{s.photos}"))


def there(s: Settings, files: str) -> str:
    """Returns what a step needs that reads such files. A set has its index when it is complete."""
    return f"file:{s.few_packed / 'index.stoker' if files == 'packed' else s.few_index}"


# --- correctness --------------------------------------------------------------------------------------------


def given(s: Settings) -> tuple[tuple[str, str], ...]:
    """The kernels' tests have gone through all their cases on the CPU, as compiled."""
    return (("STOKER_EFFORT", "10" if s.quick else "25"), ("STOKER_PHOTOS", str(s.few)))


def of_device(s: Settings) -> str:
    return f"--gtest_filter=*/{'Cuda' if s.on_gpu else 'Host'}"


def gtests(s: Settings) -> list[Step]:
    made = []
    for name in GTESTS:
        command = [s.program(name), *([] if name in SIMULATED_ONLY else [of_device(s)])]
        needs = ("device", f"file:{command[0]}")
        made.append(Step(name, 5, 75, [command], needs, prints="gtest", env=given(s)))
    return made


def digests(s: Settings) -> list[Step]:
    """Returns runs whose batches are equal to the byte: decoded by workers or by the device, of any files,
    and finished as float16 by workers or by the device."""
    folder = [str(s.few), "--crop-index", str(s.few_index)]
    to_device, decode = ["--device", s.device], ["--device", s.device, "--decode-on-device"]
    runs = [folder, [*folder, *to_device], [*folder, *decode], [str(s.few_packed), *decode]]
    made = []
    for name, options in zip(DIGESTS, runs):
        command = [s.program("stoker"), "bench", *options, "--transform", "train", "--json", "--digest"]
        command += ["--normalize", "--dtype", "f16"]
        command += ["--batch-size", "8"] if s.quick else ["--batch-size", "256", "--epochs", "20"]
        files = "packed" if name == "digest-decode-packed" else "indexed"
        needs = ("device", f"file:{command[0]}", there(s, files))
        made.append(Step(name, 5, 60, [command], needs, keep=EPOCH_FIGURES))
    return made


def sanitizers(s: Settings) -> list[Step]:
    made = []
    for program in KERNEL_TESTS:
        for tool in SANITIZERS:
            check = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", "--launch-timeout", "60"]
            needs = ("gpu", "program:compute-sanitizer", f"file:{s.program(program)}")
            command = [*check, s.program(program), of_device(s)]
            env = (("STOKER_EFFORT", str(s.effort)), ("STOKER_PHOTOS", str(s.few)))
            made.append(Step(f"{tool} {program}", 5, 75, [command], needs, prints="sanitizer", env=env))
    return made


def python_tests(s: Settings) -> list[Step]:
    made = []
    for framework, names in PYTHON_TESTS.items():
        for name in names:
            command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                       "--timeout", "40", f"tests/python/device/test_gpu.py::{name}"]  # fmt: skip
            modules = [f"module:{module}" for module in ("pytest", "pytest_timeout", framework)]
            needs = ("gpu", *modules, f"file:{s.site}")
            made.append(Step(name, 5, 60, [command], needs, prints="pytest", env=given(s)))
    return made


# --- copies and kernels -------------------------------------------------------------------------------------


def measured(s: Settings, name: str, least: float, stop: float, *options: object) -> Step:
    command = s.bench(name, *options)
    return Step(name, least, stop, [command], ("device", f"file:{command[0]}"))


def copies(s: Settings) -> Step:
    return measured(s, "copies", 8, 35)


def finish(s: Settings) -> Step:
    return measured(s, "kernels", 4, 20)._replace(proven_by=("gpu_deferred_ops_test",))


def small(s: Settings) -> Step:
    return measured(s, "small", 4, 15)


def record(s: Settings) -> Step:
    return measured(s, "record", 3, 10)


def hidden(s: Settings) -> Step:
    return measured(s, "steps", 4, 15)


def of_files(s: Settings, files: str) -> list[object]:
    return [s.few_packed] if files == "packed" else ["--photos", s.few, "--index", s.few_index]


def crops(s: Settings, files: str) -> Step:
    """It compares the pixels itself, so no test has to prove its figures."""
    step = measured(s, "crops", 6, 20, *of_files(s, files))
    return step._replace(name=f"crops-{files}", needs=(*step.needs, there(s, files)))


def all_crops(s: Settings) -> list[Step]:
    return [crops(s, files) for files in FILES]


def ncu(s: Settings, files: str) -> Step:
    """Profiles each kernel once: device_bench launches 12 of them, for 4 batches, before it checks each
    alone. By default ncu would lock the GPU's clocks, which are its owner's."""
    look = ["ncu", "--clock-control", "none", "--csv", "--print-units", "base",
            "--metrics", ",".join(METRICS), "--kernel-name", f"regex:{KERNELS}",
            "--launch-skip", "12", "--launch-count", "3"]  # fmt: skip
    command = [*look, *s.bench("crops", *of_files(s, files), "--batch", 256, "--rounds", 1)]
    needs = ("gpu", "program:ncu", *crops(s, files).needs)
    return Step(f"ncu-{files}", 8, 20, [command], needs, prints="ncu")


def variants(s: Settings) -> list[Step]:
    """Returns a step for each packed variant of the kernels: its test, and then its times."""
    check = [s.program("gpu_crops_test"), of_device(s)]
    timed = all_crops(s)
    commands = [check, *(command for step in timed for command in step.commands)]
    needs = tuple(dict.fromkeys(need for step in timed for need in step.needs))
    made = []
    for library in sorted((s.work / "pack" / "variants").glob("*.so")):
        env = (*given(s), ("LD_PRELOAD", str(library)))
        made.append(Step(f"variant-{library.stem}", 6, 60, commands, needs, env=env))
    return made


# --- loaders ------------------------------------------------------------------------------------------------


def loader(s: Settings, files: str, decoded_by: str) -> Step:
    options = [*of_files(s, files), "--device", s.device, "--decode", decoded_by]
    options += ["--batch-size", 8, "--seconds", 0.2, "--turns", 1] if s.quick else ["--seconds", 2.5]
    needs = ("device", f"file:{s.site}", there(s, files))
    command = s.script("decoding.py", *options)
    step = Step(f"loader-{files}-{decoded_by}", 8, 20, [command], needs)
    return decoding(step) if decoded_by == "device" else step


def decoding(step: Step) -> Step:
    """device_decode_test has cases of forks, faults and memory, too, which say nothing of a figure."""
    return step._replace(proven_by=("gpu_crops_test",), doubted_by=("device_decode_test",))


def decode_jpeg(s: Settings) -> Step:
    needs = ("device", "module:torchvision", f"file:{s.photos}")
    return Step("decode_jpeg", 8, 30, [trained(s, "--loader", "decode_jpeg")], needs)


def trained(s: Settings, *options: object) -> Command:
    quick = ["--batch-size", 8, "--seconds", 0.3, "--turns", 1, "--warmup", 1] if s.quick else []
    return s.script("training.py", s.photos, "--device", s.device, *options, *quick)


def of_torch(s: Settings) -> tuple[str, ...]:
    return ("device", "module:torch", "module:torchvision", f"file:{s.site}", f"file:{s.photos}")


def overlap(s: Settings) -> Step:
    needs = ("gpu", *of_torch(s))
    return Step("overlap", 12, 25, [trained(s, "--model", "resnet18", "--trace")], needs)


def gemm(s: Settings) -> Step:
    product = "gemm:8x8192" if s.on_gpu else "gemm:2x256"
    return Step("gemm", 12, 25, [trained(s, "--model", product, "--alternate")], of_torch(s))


def on(cores: tuple[int, ...], command: Command) -> Command:
    return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]


def resnet18(s: Settings, feeder: str) -> Step:
    four = s.cores[:4]
    options = ["--model", "resnet18" if s.on_gpu else "shufflenet_v2_x0_5", "--workers", len(four)]
    needs = (*of_torch(s), "program:taskset")
    if feeder == "usual":
        options += ["--loader", "usual"]
    else:
        options += ["--loader", "stoker", "--index", s.index]
        options += ["--decode", "device"] if feeder == "stoker-decode" else []
        needs = (*needs, f"file:{s.index}")
    step = Step(f"resnet18-{feeder}", 15, 35, [on(four, trained(s, *options))], needs)
    return decoding(step) if feeder == "stoker-decode" else step


def jax(s: Settings) -> Step:
    needs = ("device", "module:jax", f"file:{s.site}", f"file:{s.photos}")
    env = (("XLA_FLAGS", "--xla_gpu_autotune_level=0"),)  # which would take longer than all that is measured
    return Step("jax", 15, 35, [trained(s, "--framework", "jax")], needs, env=env)


def epoch(s: Settings, count: int, *options: str) -> Command:
    options = ("--transform", "train", "--json", *options)
    command = [s.program("stoker"), "bench", str(s.photos), "--crop-index", "off", *options]
    command += ["--batch-size", "8"] if s.quick else ["--batch-size", "256", "--epochs", str(count)]
    return command


def epochs(s: Settings) -> Step:
    """In turns, so that what else happens on the machine hits both."""
    turns = [epoch(s, 6, *to) for _ in range(3) for to in ([], ["--device", s.device])]
    return Step("epochs", 6, 35, turns, ("device", f"file:{s.photos}"), keep=EPOCH_FIGURES)


def epochs_by_cores(s: Settings) -> Step:
    commands = [on(s.cores[:cores], epoch(s, count, *to)) for cores, count in ((4, 2), (1, 1))
                if cores <= len(s.cores) for to in ([], ["--device", s.device])]  # fmt: skip
    needs = ("device", "program:taskset", f"file:{s.photos}")
    return Step("epochs-by-cores", 6, 45, commands, needs, keep=EPOCH_FIGURES)
