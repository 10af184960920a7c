"""A packed set as a tf.data.Dataset: the tensors of the folder that was packed."""

import subprocess
import sys

import stoker
from tensors import SIZE, arrays, same


def test_the_same_tensors_as_the_folder(made, make, op, tmp_path):
    packed = tmp_path / "set"
    pack = [sys.executable, "-m", "stoker", "pack", str(made), str(packed), "--shard-size", "100KB"]
    subprocess.run(pack, check=True, capture_output=True)
    ours = stoker.Loader(
        stoker.packed(packed), [stoker.RandomResizedCrop(SIZE)], batch_size=8, shuffle=True, seed=5
    )
    same(arrays(ours.as_tf_dataset(op=op)), arrays(make().as_tf_dataset(op=op)))
