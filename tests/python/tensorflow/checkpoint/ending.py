"""Ways in which a process ends while it iterates. OP HOW PHOTOS"""

import os
import signal
import sys
import threading
import time

import stoker

op, how, photos = sys.argv[1:]
loader = stoker.Loader(
    stoker.image_folder(photos), [stoker.RandomResizedCrop(32)], batch_size=8, shuffle=True
)
dataset = loader.as_tf_dataset(op=op).repeat()
if how == "prefetch":
    dataset = dataset.map(lambda x, y: (x, y + 0), num_parallel_calls=2).prefetch(2)
iterator = iter(dataset)
next(iterator)


def forever():
    while True:
        next(iterator)


if how == "daemon":
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.2)
elif how == "exit in the loop":
    for step, _ in enumerate(dataset):
        if step == 3:
            sys.exit(0)
elif how == "Ctrl-C":
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        forever()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
elif how == "fork":
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print("done", flush=True)
