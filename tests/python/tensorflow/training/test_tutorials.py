"""Models of TensorFlow's tutorials train on stoker's datasets as on the usual ones (tutorials.py)."""

import numpy as np
import pytest
import tutorials


@pytest.mark.long
def test_tutorials_train_with_only_the_input_replaced(made):
    """Transfer learning has the datasets of image classification, and a model that takes much longer."""
    found = {}
    for tutorial, name, history in tutorials.histories(made, 2, [tutorials.image_classification]):
        found.setdefault(tutorial, {})[name] = history
    assert list(found) == ["image_classification", "segmentation"]
    for histories in found.values():
        usual, stoker = histories["usual"], histories["stoker"]
        assert {name: len(values) for name, values in stoker.items()} == {
            name: len(values) for name, values in usual.items()
        }
        assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= stoker.keys()
        assert all(np.isfinite(values).all() for values in stoker.values())


def test_their_datasets_have_the_same_elements(made, tmp_path):
    usual, stoker = tutorials.usual_classes(made), tutorials.stoker_classes(made)
    assert usual[2] == stoker[2]
    pairs = tutorials.with_masks(made, str(tmp_path))
    ways = [(usual[:2], stoker[:2]), (tutorials.usual_masks(pairs), tutorials.stoker_masks(pairs))]
    for theirs, ours in ways:
        for wanted, dataset in zip(theirs, ours):
            assert len(dataset) == len(wanted)
            for one, other in zip(next(iter(wanted)), next(iter(dataset))):
                assert one.dtype == other.dtype
                assert one.shape[1:] == other.shape[1:]
    # Training and validation together have the same classes and the same pixels, apart from the decoders.
    assert np.bincount(column(usual[:2], 1)).tolist() == np.bincount(column(stoker[:2], 1)).tolist()
    assert abs(column(usual[:2], 0).mean() - column(stoker[:2], 0).mean()) < 1
    (_, all_usual), (_, all_stoker) = ways[1]
    assert abs(column([all_usual], 0).mean() - column([all_stoker], 0).mean()) < 1 / 255
    assert (column([all_usual], 1) == column([all_stoker], 1)).all()


def column(datasets, index):
    """The values of a column of all batches."""
    return np.concatenate([np.asarray(batch[index]) for dataset in datasets for batch in dataset])
