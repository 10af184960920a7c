"""Saves or restores an iterator inside a shuffled second epoch: OP KIND save|restore PHOTOS FOLDER."""

import hashlib
import os
import sys

import numpy as np
import stoker
import tensorflow as tf

op, kind, act, photos, folder = sys.argv[1:]
loader = stoker.Loader(
    stoker.image_folder(photos), [stoker.RandomResizedCrop(32)], batch_size=8, shuffle=True, seed=5
)
dataset = loader.as_tf_dataset(op=op).repeat(3)
if "prefetch" in kind:
    dataset = dataset.map(lambda x, y: (x, y + 0), num_parallel_calls=2).prefetch(3)
if "symbolic" in kind:
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    dataset = dataset.with_options(options)
iterator = iter(dataset)
checkpoint = tf.train.Checkpoint(iterator=iterator)
path = os.path.join(folder, "saved")
if act == "save":
    for _ in range(6 + 2):
        next(iterator)
    path = checkpoint.write(path)
else:
    checkpoint.read(path).assert_consumed()
for images, labels in iterator:
    print(hashlib.sha256(np.asarray(images).tobytes()).hexdigest()[:12], np.asarray(labels).tolist())
