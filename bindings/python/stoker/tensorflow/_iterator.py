"""TensorFlow's eager iterator over stoker's dataset, which loses no batch when a signal handler raises."""

from __future__ import annotations

import functools
from typing import Any

from stoker.tensorflow import _ops


def losing_nothing(iterator: Any) -> Any:
    """Makes TensorFlow's iterator take a batch back that an exception in Python's code kept from the program.

    That code runs after the dataset op has delivered the batch. With the prebuilt ops nothing can be taken
    back, nor if the handler itself took batches from another dataset of stoker.
    """
    if _ops.next_functions() is not None:
        owned: Any = type(iterator)
        iterator.__class__ = _type_of(owned)
        # TensorFlow's C++ code calls methods of a TensorShape, and an exception that a signal handler raises
        # in them corrupts its memory; lists have no Python code.
        shapes = iterator._flat_output_shapes
        iterator._flat_output_shapes = [None if s.rank is None else s.as_list() for s in shapes]
    return iterator


@functools.cache
def _type_of(owned: Any) -> type:
    functions: Any = _ops.next_functions()
    expect, take_back = functions

    class Iterator(owned):  # type: ignore[misc]
        __doc__ = owned.__doc__

        def __next__(self) -> Any:
            expect()
            try:
                return super().__next__()
            except BaseException:
                take_back()
                raise

        def get_next(self) -> Any:
            expect()
            try:
                return super().get_next()
            except BaseException:
                take_back()
                raise

    return Iterator
