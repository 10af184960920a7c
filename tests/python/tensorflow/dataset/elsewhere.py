"""A dataset as a graph, in another process. OP write|read FOLDER FILE"""

import pathlib
import sys

import stoker
import stoker.tensorflow
import tensorflow as tf

op, act, folder, path = sys.argv[1:]
spec = (tf.TensorSpec((None, 32, 32, 3), tf.uint8), tf.TensorSpec((None,), tf.int64))


@tf.function(input_signature=[])
def batches():
    result = tf.constant(0)
    for images, _ in dataset:
        result += tf.shape(images)[0]
    return result


if act == "write":
    loader = stoker.Loader(stoker.image_folder(folder), [stoker.Resize((32, 32))], batch_size=8)
    dataset = loader.as_tf_dataset(op=op)
    graph = dataset._as_serialized_graph()
    pathlib.Path(path).write_bytes(graph.numpy())
    print("written")
else:
    stoker.tensorflow.load_ops(op)
    graph = tf.constant(pathlib.Path(path).read_bytes())
    variant = tf.raw_ops.DatasetFromGraph(graph_def=graph)
    dataset = tf.data.experimental.from_variant(variant, spec)
    try:
        print(len(list(dataset)), "batches")
    except tf.errors.OpError as error:
        print(type(error).__name__, error.message)
