"""A training recipe end to end: stoker beside torch's DataLoader with torchvision, and DALI on the CPU.

    python bench/recipe_end_to_end.py PHOTOS [--cores 1] [--rounds 5] [--images 1600] [--mix] [--dali PYTHON]

The recipe, as for ResNets "strikes back" (Wightman, Touvron, Jégou, 2021): RandomResizedCrop(224), a flip,
RandAugment(2, magnitude 7), Normalize, RandomErasing(p=0.25) to float32 NCHW batches of 64 with labels;
with --mix MixUp(0.1) or CutMix(1) of each batch (not in DALI). Antialiased, files in the page cache.

torch: torchvision.io.decode_jpeg and transforms.v2 on uint8 tensors, as many worker processes as cores, or
none ("torch, no worker"), one thread in each. DALI: the crop fused with decoding, its own rand_augment,
the flip fused with the normalisation (which only a policy with directions of equal chance allows), erasing
behind it; its Python is --dali, without which it is left out.

Programs take turns, each in a process of its own on the same cores (sched_setaffinity): a warm-up, then
--images are timed. Printed: CPU seconds of the process and its children for 1,000 images, images a second,
and ratios to stoker's of the same round: median (least - most).
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

BATCH, SIZE = 64, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def files_of(folder):
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.name[0] != ".")
    classes = sorted({p.parent.name for p in files})
    return [str(p) for p in files], [classes.index(p.parent.name) for p in files], len(classes)


# ---- Each returns an endless iterator of (images, labels).


def stoker_batches(args):
    import stoker

    transforms = [
        stoker.RandomResizedCrop(SIZE),
        stoker.RandomHorizontalFlip(),
        stoker.RandAugment(2, 7),
        stoker.Normalize(MEAN, STD),
        stoker.RandomErasing(0.25),
    ]
    if args.mix:
        transforms.append(stoker.RandomChoice([stoker.MixUp(alpha=0.1), stoker.CutMix(alpha=1.0)]))
    loader = stoker.Loader(
        stoker.image_folder(args.photos),
        transforms,
        batch_size=BATCH,
        shuffle=True,
        drop_remainder=True,
        dtype="float32",
        layout="NCHW",
    )
    while True:
        yield from loader


def torch_batches(args, workers):
    import torch
    import torchvision.io
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    files, labels, classes = files_of(args.photos)
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandAugment(2, 7),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
            v2.RandomErasing(0.25),
        ]
    )

    class Photos(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, place):
            data = torchvision.io.read_file(files[place % len(files)])
            image = torchvision.io.decode_jpeg(data, mode=torchvision.io.ImageReadMode.RGB)
            return transform(image), labels[place % len(files)]

    loader = torch.utils.data.DataLoader(
        Photos(), batch_size=BATCH, num_workers=workers, drop_last=True, shuffle=False
    )
    mix = v2.RandomChoice(
        [v2.MixUp(alpha=0.1, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)]
    )
    for images, targets in loader:
        yield mix(images, targets) if args.mix else (images, targets)


def dali_batches(args):
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali import math as dali_math
    from nvidia.dali.auto_aug import rand_augment

    files, labels, _ = files_of(args.photos)

    @pipeline_def(
        batch_size=BATCH,
        num_threads=args.cores,
        device_id=None,
        prefetch_queue_depth=2,
        enable_conditionals=True,
    )
    def recipe():
        data, label = fn.readers.file(
            files=files, labels=labels, random_shuffle=True, initial_fill=len(files), dont_use_mmap=False
        )
        area, ratio = [0.08, 1.0], [3 / 4, 4 / 3]
        image = fn.decoders.image_random_crop(
            data, device="cpu", output_type=types.RGB, random_area=area, random_aspect_ratio=ratio
        )
        image = fn.resize(image, size=(SIZE, SIZE), antialias=True)
        image = rand_augment.rand_augment(image, n=2, m=7, shape=[SIZE, SIZE], fill_value=0)
        image = fn.crop_mirror_normalize(
            image,
            mirror=fn.random.coin_flip(),
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * m for m in MEAN],
            std=[255 * s for s in STD],
        )
        if fn.random.coin_flip(probability=0.25, dtype=types.BOOL):
            side = dali_math.sqrt(fn.random.uniform(range=[0.02, 0.33]))
            root = fn.random.uniform(range=[0.3**0.5, 3.3**0.5])
            image = fn.erase(
                image,
                anchor=fn.random.uniform(range=[0.0, 0.6], shape=(2,)),
                shape=fn.stack(side * root, side / root),
                axis_names="HW",
                normalized=True,
                fill_value=0,
            )
        return image, label

    pipe = recipe()
    pipe.build()
    while True:
        yield pipe.run()


PROGRAMS = {
    "stoker": stoker_batches,
    "torch": lambda args: torch_batches(args, args.cores),
    "torch, no worker": lambda args: torch_batches(args, 0),
    "DALI": dali_batches,
}


# ---- Measuring.


def family():
    """Returns this process and those that it has started."""
    found, parents = {os.getpid()}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue  # it has ended
            parents[int(name)] = int(stat.rsplit(")", 1)[1].split()[1])
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def cpu_seconds():
    ticks = 0
    for process in family() - {os.getpid()}:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measure(args):
    """Runs in a process of its own."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    batches = PROGRAMS[args.program](args)
    for _ in range(math.ceil(args.images / BATCH / 3)):
        next(batches)
    count = math.ceil(args.images / BATCH)
    cpu, start = cpu_seconds(), time.perf_counter()
    for _ in range(count):
        next(batches)
    taken = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - cpu, "images": count * BATCH}
    print(json.dumps(taken), flush=True)
    os._exit(0)  # workers need no orderly end


def run(program, args):
    command = [args.dali if program == "DALI" else sys.executable, __file__, args.photos]
    command += ["--program", program, "--cores", str(args.cores), "--images", str(args.images)]
    done = subprocess.run(command + ["--mix"] * args.mix, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program}:\n{done.stderr}")
    taken = json.loads(done.stdout.splitlines()[-1])
    return {"cpu": taken["cpu"] / taken["images"] * 1000, "speed": taken["images"] / taken["seconds"]}


def spread(values, digits=2):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", help="a folder with class folders of JPEGs")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1600, help="timed in each turn")
    parser.add_argument("--mix", action="store_true", help="MixUp or CutMix, too")
    parser.add_argument("--dali", help="a Python that has nvidia.dali")
    parser.add_argument("--program", choices=PROGRAMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.program:
        return measure(args)
    programs = [p for p in PROGRAMS if p != "DALI" or (args.dali and not args.mix)]
    rounds = [{p: run(p, args) for p in programs} for _ in range(args.rounds)]
    print(f"{args.cores} core(s), {args.rounds} rounds of {args.images} images{', mixed' * args.mix}")
    print(f"{'':18}{'CPU s / 1,000':>24}{'×':>22}{'images / s':>28}{'×':>22}")
    for p in programs:
        cpu, speed = [r[p]["cpu"] for r in rounds], [r[p]["speed"] for r in rounds]
        more_cpu = [r[p]["cpu"] / r["stoker"]["cpu"] for r in rounds]
        slower = [r["stoker"]["speed"] / r[p]["speed"] for r in rounds]
        print(f"{p:18}{spread(cpu):>24}{spread(more_cpu):>22}{spread(speed, 0):>28}{spread(slower):>22}")
    return None


if __name__ == "__main__":
    main()
