"""Map: a function of the program's own, which runs after the transforms."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from stoker import _checks, _user_code
from stoker._batch import batch_type
from stoker._errors import InvalidArgumentError
from stoker._ragged import Ragged

_MOST_THREADS = 256
_MOST_DIMENSIONS = 7

Array = npt.NDArray[Any]


class Map:
    """A function of the program's own, last in a `Loader`'s transforms: it is called with each batch.

        def invert(batch):
            batch["image"][...] = 255 - batch["image"]

        loader = stoker.Loader(source, [stoker.Resize((224, 224)), stoker.Map(invert)], batch_size=64)

    `function(batch)` gets what an iteration would give, without `sample_id` and `path`: a `Batch` of NumPy
    arrays, or the images alone. The arrays are the batch's own memory, so it may change them in place and
    return None. Or it returns the new columns: an array for each column in a tuple or list, with None for
    unchanged columns, or a dictionary of some of them. The transforms determine shapes and types; other ones
    are an error. Columns of strings can be read. Of a `Ragged`, values change, and the numbers of objects do
    not: what it returns for one must have the same offsets.

    With `rows`, `function(image, label, …)` is called for each row: with views of it, or NumPy numbers for
    columns of single numbers; of a `Ragged`, with its objects, (objects, …). It may change arrays in place,
    or return the row's columns likewise; numbers and strings change only by what is returned.

    With `columns`, batches have further columns, of declared types, that the function returns:

        def tokenize(batch):
            made = tokenizer(
                batch["caption"], padding="max_length", truncation=True, max_length=77, return_tensors="np")
            return {"caption": made["input_ids"].astype("int32"), "mask": made["attention_mask"] != 0}

        columns = {"caption": ("int32", 77), "mask": ("bool", 77)}
        transforms = [stoker.Resize((224, 224)), stoker.Map(tokenize, columns=columns)]
        loader = stoker.Loader(source, transforms, batch_size=64)

    A column with the name of one of strings replaces it: the function gets the strings, and the batch
    has what it returns. Other ones follow the columns that the function gets, in this order. The function has
    to return all of them, with their types and shapes, by name or with the others in a tuple.

    The calls are made ahead of the program, on threads of their own, while the next samples are decoded. Each
    batch that is made is mapped once, after `MixUp` and `CutMix`; batches that were made ahead are mapped
    even if nobody takes them. Calls begin in the order of the batches; with one thread each ends before the
    next one begins. (Iterations that run side by side have threads of their own.) Python runs one thread at a
    time, except where NumPy and other libraries let others run: pure Python competes with the training loop.

    An exception of the function becomes the `UnavailableError` of its batch, with function, batch, exception
    and line. Parts of a batch that it keeps stay valid and count as held by the program, also on a device
    (`lent_batches`, `MemoryWarning`). The function may iterate another loader, but not its own, whose batches
    would wait for it: FailedPreconditionError. It must not wait for closing or seeking a loader. A loader
    that is closed waits for the calls in progress.

    Args:
        function: must be thread-safe if `threads` is more than 1.
        rows: call it with each row instead of with whole batches.
        rng: call it with a further argument, a `numpy.random.Generator` for each batch that depends on the
            loader's seed and the batch alone (its epoch, and its first position in the order): the same
            values for any number of threads, and other ones for each batch of all ranks.
        threads: how many calls are made at a time, 1 to 256.
        columns: the columns that the function adds, by name: a type, or (type, shape) with the shape of a
            row, which may be a number for one dimension. Types are those of `arrays`. Names, types, shapes
            and their order are part of a loader's state.

    Raises:
        ValueError, TypeError: naming the parameter; or, by the loader, a column that batches have already
            and that is not one of strings.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        rows: bool = False,
        rng: bool = False,
        threads: int = 1,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"Map.function must be a function, not {function!r:.80}")
        self.function = function
        self.rows = _checks.boolean("Map.rows", rows)
        self.rng = _checks.boolean("Map.rng", rng)
        self.threads = _checks.integer("Map.threads", threads, 1, _MOST_THREADS)
        self.columns = _declared({} if columns is None else columns)

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return _user_code.name_of(self.function)

    def _identity(self) -> str:
        """Identifies the function in a loader's state, without its code, which may change."""
        flags = [f"{name}=True" for name in ("rows", "rng") if getattr(self, name)]
        flags += [f"columns={self.columns}"] if self.columns else []
        return ", ".join([self.name, *flags])

    def __repr__(self) -> str:
        threads = "" if self.threads == 1 else f", threads={self.threads}"
        return f"Map({self._identity()}{threads})"


def _declared(columns: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Returns the types and shapes of `Map.columns`."""
    if not isinstance(columns, Mapping):
        raise TypeError(
            f'Map.columns must be types by name, as {{"tokens": ("int32", 77)}}, not {columns!r:.80}'
        )
    declared = {}
    for name, given in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"Map.columns must have names, not {name!r:.80}")
        if not name or not _checks.is_unicode(name):
            raise InvalidArgumentError(f"Map.columns has the name {name!r:.80}")
        what = f"Map.columns[{name!r:.80}]"
        pair = given if isinstance(given, (tuple, list)) else (given, ())
        if len(pair) != 2:
            raise TypeError(f"{what} must be a type, or (type, shape), not {given!r:.80}")
        dtype = _checks.dtype(what, pair[0], _checks.ELEMENTS)
        _checks.numpy_has(dtype)
        shape = tuple(pair[1]) if _checks.several(pair[1]) else (pair[1],)
        if len(shape) > _MOST_DIMENSIONS:
            raise InvalidArgumentError(
                f"{what} has {len(shape)} dimensions; at most {_MOST_DIMENSIONS} are possible"
            )
        declared[name] = (
            dtype,
            tuple(_checks.integer(f"{what}, dimension {i}", side, 1, 2**31) for i, side in enumerate(shape)),
        )
    return declared


class MapCalls:
    """The calls of a `Map` by a loader's threads."""

    def __init__(self, of: Map, seed: int) -> None:
        self._map = of
        self._type = batch_type(("image",))
        self._seed = seed

    def set_names(self, names: Sequence[str]) -> None:
        """Sets the columns of a batch, which a loader knows when it is made."""
        self._type = batch_type(tuple(names))

    def native(self) -> tuple[Any, str, str, int, list[tuple[str, Array, tuple[int, ...]]]]:
        """Returns the function that the library calls. It keeps no reference to the user's function; the
        loader does.
        """
        added = [(name, np.empty(0, dtype), shape) for name, (dtype, shape) in self._map.columns.items()]
        return weakref.ref(self), self._map.name, self._map._identity(), self._map.threads, added

    def __call__(
        self, given: tuple[Any, ...], columns: tuple[Any, ...], epoch: int, position: int, ids: Array
    ) -> bytes | None:
        """Maps a batch; returns None, or an error message in UTF-8.

        Args:
            given: for each column itself, the strings that it replaces, or None for another added one.
            position: the position of its first sample in the epoch's order, which no other batch of any rank
                has.
        """
        try:
            extra = [self._generator(epoch, position)] if self._map.rng else []
            if self._map.rows:
                self._map_rows(given, columns, ids, extra)
            else:
                views = _views(given)
                batch = self._batch_of(views)
                self._put(_user_code.called(self._map.function, batch, *extra), columns, views, "")
            return None
        except BaseException as error:  # of the user's code, on one of stoker's threads
            text = str(error) if isinstance(error, _InSample) else _user_code.described(error)
            return text.encode(errors="backslashreplace")

    def _generator(self, epoch: int, position: int) -> np.random.Generator:
        counter = [0, 0, position, epoch]
        return np.random.Generator(np.random.Philox(key=[self._seed, 0], counter=counter))

    def _batch_of(self, given: tuple[Any, ...]) -> Any:
        """Returns what an iteration would give without the columns that the function adds."""
        names = [name for name, column in zip(self._type._names, given) if column is not None]
        held = tuple(column for column in given if column is not None)
        return held[0] if len(held) == 1 else batch_type(tuple(names))._make(held)

    def _map_rows(
        self, given: tuple[Any, ...], columns: tuple[Any, ...], ids: Array, extra: list[Any]
    ) -> None:
        for i, sample in enumerate(ids):
            row = tuple(None if column is None else column[i] for column in given)
            try:
                held = (value for value, column in zip(row, given) if column is not None)
                returned = _user_code.called(self._map.function, *held, *extra)
                if returned is not None or self._map.columns:
                    views = tuple(c[i, ...] if isinstance(c, np.ndarray) else c[i] for c in columns)
                    self._put(returned, views, row, "its row of ")
            except BaseException as error:
                raise _InSample(int(sample), error) from None

    def _put(self, returned: Any, columns: tuple[Any, ...], given: tuple[Any, ...], of: str) -> None:
        """Writes the function's results to the columns; these are its views of them."""
        if returned is None and not self._map.columns:
            return
        values = self._by_column(returned, len(columns))
        for name, value in zip(self._type._names, values):
            if value is None and name in self._map.columns:
                raise TypeError(f"it did not return {name!r}, a column that it adds")
        changed = [
            i
            for i, (name, value) in enumerate(zip(self._type._names, values))
            if value is not None and (value is not given[i] or name in self._map.columns)
        ]
        new = [_fitting(values[i], columns[i], f"{of}{self._type._names[i]!r}") for i in changed]
        for place, i in enumerate(changed):
            others = (_array_of(c) for c in columns if c is not columns[i] and not isinstance(c, list))
            if len(changed) > 1 and any(np.may_share_memory(new[place], other) for other in others):
                new[place] = new[place].copy()  # a view of another column, which changes here
        for i, value in zip(changed, new):
            np.copyto(_array_of(columns[i]), value)

    def _by_column(self, returned: Any, count: int) -> list[Any]:
        names = self._type._names
        if isinstance(returned, dict):
            unknown = [name for name in returned if name not in names]
            if unknown:
                raise TypeError(f"it returned {unknown[0]!r:.50}; a batch has {', '.join(names)}")
            return [returned.get(name) for name in names]
        if isinstance(returned, (tuple, list)) and len(returned) == count:
            return list(returned)
        if count == 1 and not isinstance(returned, (tuple, list)):
            return [returned]
        length = f" of {len(returned)}" if isinstance(returned, (tuple, list)) else ""
        wanted = "None or an array" if count == 1 else f"None, a tuple of {count}, or a dictionary"
        if self._map.columns:
            wanted = f"a tuple of {count}, or a dictionary with {', '.join(self._map.columns)}"
        raise TypeError(f"it returned a {type(returned).__name__}{length}; it must return {wanted}")


def _views(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns arrays whose shape and type a function may change without changing the columns' own."""
    return tuple(_view(column) for column in columns)


def _view(column: Any) -> Any:
    if isinstance(column, Ragged):
        offsets = column.offsets.view()
        offsets.setflags(write=False)
        return Ragged(column.values.view(), offsets)
    return column.view() if isinstance(column, np.ndarray) else column


def _array_of(column: Any) -> Array:
    """Returns the array that has a column's values."""
    array: Array = column.values if isinstance(column, Ragged) else column
    return array


class _InSample(Exception):
    """The exception that the function raised for a row."""

    def __init__(self, sample: int, error: BaseException) -> None:
        super().__init__(f"sample {sample}: {_user_code.described(error)}")


def _fitting(value: Any, column: Any, what: str) -> Array:
    """Returns the value as an array that fits into the column; a number may have another type."""
    if isinstance(column, Ragged):
        if not isinstance(value, Ragged) or not np.array_equal(value.offsets, column.offsets):
            raise TypeError(f"it returned {what}, which must be a stoker.Ragged with the offsets that it had")
        return _fitting(value.values, column.values, f"the values of {what}")
    if not isinstance(column, np.ndarray):
        raise TypeError(f"it returned {what}, which is text and cannot be changed")
    array = np.asarray(value)
    if array.shape == column.shape:
        if array.dtype == column.dtype:
            return array
        integers = array.dtype.kind in "iu" and column.dtype.kind in "iu"
        if array.ndim == 0 and (integers or np.can_cast(array.dtype, column.dtype, "same_kind")):
            cast = array.astype(column.dtype)
            if not integers or cast == array:
                return cast
    way_out = f': return it by .astype("{column.dtype}")' if array.shape == column.shape else ""
    raise TypeError(
        f"it returned {what} as {array.dtype} of shape {array.shape}; it must be {column.dtype} of shape "
        f"{column.shape}{way_out}"
    )


def split_off(transforms: Iterable[Any]) -> tuple[Any, Map | None]:
    """Returns the transforms without the last one, if that is a `Map`."""
    if isinstance(transforms, Map):
        raise TypeError(
            f"transforms must be a sequence of transforms, not {transforms!r}; try [{transforms!r}]"
        )
    if not hasattr(transforms, "__iter__"):
        return transforms, None
    listed = list(transforms)
    for place, transform in enumerate(listed[:-1]):
        if isinstance(transform, Map):
            raise TypeError(
                f"transforms[{place}] is {transform!r:.80}; a function of your own must be the last one"
            )
    return (listed[:-1], listed[-1]) if listed and isinstance(listed[-1], Map) else (listed, None)
