"""stoker.from_dataset in tf.data."""

import pathlib

import stoker
from conftest import SIZE, arrays, same


def test_the_same_batches_as_the_folder(made, make, op):
    folder = stoker.image_folder(made)
    labels = folder._labels()

    class Rows:
        def __len__(self):
            return len(folder)

        def __getitem__(self, i):
            return {"image": pathlib.Path(folder.path(i)).read_bytes(), "label": labels[i]}

    source = stoker.from_dataset(Rows(), threads=3)
    recipe = [stoker.RandomResizedCrop(SIZE)]
    loader = stoker.Loader(source, recipe, batch_size=8, shuffle=True, seed=5)
    files = make()
    for _ in range(2):
        same(arrays(loader.as_tf_dataset(op=op)), arrays(files.as_tf_dataset(op=op)))
