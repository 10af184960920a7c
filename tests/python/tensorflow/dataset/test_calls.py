"""stoker.from_dataset and stoker.Map in tf.data."""

import pathlib

import stoker
from tensors import SIZE, arrays, same


def test_the_same_batches_as_the_folder(made, make, op):
    folder = stoker.image_folder(made)
    labels = folder.labels.tolist()

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


def test_mapped_batches(made, make, op):
    def change(batch):
        batch.image[...] = 255 - batch.image
        batch.label[...] += 10

    recipe = [stoker.RandomResizedCrop(SIZE), stoker.Map(change, threads=2)]
    loader = stoker.Loader(stoker.image_folder(made), recipe, batch_size=8, shuffle=True, seed=5)
    plain = arrays(make().as_tf_dataset(op=op))
    same(arrays(loader.as_tf_dataset(op=op)), [(255 - images, labels + 10) for images, labels in plain])
