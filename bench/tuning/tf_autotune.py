"""tf.data's AUTOTUNE on the workloads of tuner_bench: how long it takes, waits, and its peak memory.

    python bench/tuning/tf_autotune.py PHOTOS [--batches 200]

The fastest tf.data pipeline known for the same recipe (decode_and_crop_jpeg, plain bilinear), all calls
AUTOTUNE, batches of 32. Each workload runs in a process of its own, which stoker, tuned, has as well, in
turns. "made" is what tf.data takes for a batch at its fastest; steps are multiples of what stoker takes,
so that both have the same consumer. The slow disk is a sleep of 12 ms in each element's map function
(tf.numpy_function) here, and the reader's there. Memory is VmHWM less what the process had before.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("photos", help="a folder with class folders of JPEGs")
parser.add_argument("--batches", type=int, default=200)
parser.add_argument("--loader", choices=("stoker", "tf.data"), help=argparse.SUPPRESS)  # of one process
parser.add_argument("--workload", help=argparse.SUPPRESS)
parser.add_argument("--made", type=float, default=0, help=argparse.SUPPRESS)
args = parser.parse_args()

BATCH, SIZE = 32, 224
WORKLOADS = ("faster", "equal", "slower", "bursts", "slow disk")


def step(index):
    if args.workload == "bursts":
        return 12 * args.made if index % 8 == 7 else 0
    return {"faster": 0, "slower": 3}.get(args.workload, 1) * args.made


def stoker_batches():
    import stoker

    loader = stoker.Loader(
        stoker.image_folder(args.photos),
        [stoker.RandomResizedCrop(SIZE), stoker.RandomHorizontalFlip()],
        batch_size=BATCH,
        shuffle=True,
        drop_remainder=True,
    )
    while True:
        yield from loader


def tf_batches():
    import tensorflow as tf

    def decode(path):
        if args.workload == "slow disk":
            path = tf.numpy_function(lambda p: (time.sleep(0.012), p)[1], [path], tf.string)
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data),
            tf.zeros([0, 0, 4]),
            area_range=(0.08, 1),
            aspect_ratio_range=(3 / 4, 4 / 3),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, [SIZE, SIZE], "bilinear"))
        return tf.saturate_cast(image + 0.5, tf.uint8)

    paths = sorted(str(path) for path in pathlib.Path(args.photos).rglob("*.[jJ]*"))
    dataset = tf.data.Dataset.from_tensor_slices(paths).shuffle(1000).repeat()
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return iter(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE))


def high_water_mib():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def run():
    batches = stoker_batches() if args.loader == "stoker" else tf_batches()
    next(batches)
    before, begin, waited = high_water_mib(), time.perf_counter(), 0.0
    for index in range(args.batches):
        asked = time.perf_counter()
        next(batches)
        waited += time.perf_counter() - asked
        time.sleep(step(index))
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "waited": waited / seconds, "mib": high_water_mib() - before}))


def process(loader, workload, made):
    command = [sys.executable, __file__, args.photos, "--batches", str(args.batches), "--loader", loader]
    command += ["--workload", workload, "--made", str(made)]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return json.loads(text.splitlines()[-1])


if args.loader:
    run()
    sys.exit()
made = process("stoker", "faster", 0)["seconds"] / args.batches
print(f"a batch of {BATCH} takes stoker {1e3 * made:.1f} ms")
for workload in WORKLOADS:
    for loader in ("stoker", "tf.data"):
        if loader == "stoker" and workload == "slow disk":
            continue  # see tuner_bench
        result = process(loader, workload, made)
        print(
            f"{workload:10} {loader:8} {result['seconds']:7.2f} s   waited {result['waited']:6.1%}"
            f"   memory {result['mib']:7.1f} MiB more than with the first batch"
        )
