"""IterDataPipe and MapDataPipe: datasets that are built of other datasets, one step after the other.

A step is a class; `functional_datapipe("name")` also makes it a method of every pipe. A stream has one live
iterator: `IterDataPipe.__init_subclass__` wraps `__iter__` so that a new one starts the pipe over (`reset`)
and ends the older one.
"""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, ClassVar, TypeVar

from rushlight.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


# Steps from data frames to something else: what they make is not treated as if it were one frame.
UNTRACABLE_DATAFRAME_PIPES = ["batch", "groupby", "_dataframes_as_tuples", "trace_as_dataframe"]


class _SnapshotState(Enum):
    NotStarted = 0
    Restored = 1
    Iterating = 2


class _Pipe:
    """What both kinds share: steps as methods, and pickling that can be hooked."""

    functions: ClassVar[dict[str, Callable]]
    reduce_ex_hook: ClassVar[Callable | None] = None
    getstate_hook: ClassVar[Callable | None] = None
    str_hook: ClassVar[Callable | None] = None
    repr_hook: ClassVar[Callable | None] = None

    def __getattr__(self, attribute_name: str) -> Any:
        functions = type(self).functions
        if attribute_name in functions:
            made = functools.partial(functions[attribute_name], self)
            functools.update_wrapper(made, functions[attribute_name], assigned=("__doc__",))
            return made
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Makes a function a method of every pipe."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a step a method of every pipe."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            made = cls_to_register(source, *args, **kwargs)
            frames = enable_df_api_tracing or isinstance(source, DFIterDataPipe)
            if frames and function_name not in UNTRACABLE_DATAFRAME_PIPES:
                return made.trace_as_dataframe()
            return made

        functools.update_wrapper(make, cls_to_register, assigned=("__doc__",), updated=())
        cls.functions[function_name] = make

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable | None) -> None:
        """Replaces what a pipe gives to be pickled."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable | None) -> None:
        """Replaces how a pipe is pickled."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return str(type(self).__qualname__) if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return str(type(self).__qualname__) if hook is None else hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """A stream of samples.

    >>> pipe = rushlight.utils.data.datapipes.iter.IterableWrapper(range(5))
    >>> list(pipe.map(str).batch(2))
    [['0', '1'], ['2', '3'], ['4']]
    """

    functions: ClassVar[dict[str, Callable]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _one_at_a_time(cls.__dict__["__iter__"])
        if "__next__" in cls.__dict__:
            cls.__next__ = _counted(cls.__dict__["__next__"])  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[_T_co]:
        return self

    def reset(self) -> None:
        """Called when a new iterator starts: a step with a state begins anew here."""

    def _is_child_datapipe(self) -> bool:
        return False


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


def _one_at_a_time(function: Callable) -> Callable:
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def iterate(self: Any) -> Iterator:
            return _stream(self, function)

    else:

        @functools.wraps(function)
        def iterate(self: Any) -> Iterator:
            made = function(self)
            if self._fast_forward_iterator is not None:
                return _rest(self)
            return IteratorDecorator(made, self, _start(self))

    return iterate


def _counted(function: Callable) -> Callable:
    """A pipe's own ``__next__``, which counts what it gives."""

    @functools.wraps(function)
    def give(self: Any) -> Any:
        item = function(self)
        self._number_of_samples_yielded += 1
        return item

    return give


class IteratorDecorator:
    """What ``iter(pipe)`` is where the pipe's ``__iter__`` returns an iterator, perhaps the pipe itself."""

    def __init__(self, iterator: Any, datapipe: Any, iterator_id: int) -> None:
        self.iterator, self.datapipe, self.iterator_id = iterator, datapipe, iterator_id

    def __iter__(self) -> IteratorDecorator:
        return self

    def __next__(self) -> Any:
        _check_valid(self.datapipe, self.iterator_id)
        item = next(self.iterator)
        if self.iterator is not self.datapipe:  # which counts itself
            self.datapipe._number_of_samples_yielded += 1
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def _rest(pipe: Any) -> Iterator:
    """What a restored snapshot has left of an iterator."""
    rest, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
    pipe._snapshot_state = _SnapshotState.Iterating
    return rest


def _stream(pipe: Any, function: Callable) -> Iterator:
    if pipe._fast_forward_iterator is not None:
        yield from _rest(pipe)
        return
    own = _start(pipe)
    try:
        iterator = function(pipe)
        while True:
            try:
                item = next(iterator)
            except StopIteration:
                return
            pipe._number_of_samples_yielded += 1
            yield item
            _check_valid(pipe, own)
    except Exception as error:
        _explain(pipe, error)
        raise


def _start(pipe: Any) -> int:
    """A new iterator: it alone is valid from now on."""
    if pipe._is_child_datapipe():
        own = pipe._set_main_datapipe_valid_iterator_id()
    else:
        own = pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
        pipe.reset()
    pipe._number_of_samples_yielded = 0
    pipe._snapshot_state = _SnapshotState.Iterating
    return own


_FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this "
    "issue: https://github.com/pytorch/data/issues/45."
)


def _check_valid(pipe: Any, own: int) -> None:
    if pipe._is_child_datapipe():
        if not pipe._check_valid_iterator_id(own):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {_signature(pipe.main_datapipe)}.{_FEEDBACK}"
            )
    elif own != pipe._valid_iterator_id:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same "
            f"IterDataPipe: {_signature(pipe)}\nThis may be caused by multiple references to the same "
            f"IterDataPipe. We recommend using `.fork()` if that is necessary.{_FEEDBACK}"
        )


def _signature(pipe: Any) -> str:
    """The step with those of its arguments that it keeps."""
    kept = sorted(set(inspect.signature(type(pipe).__init__).parameters) & set(vars(pipe)))
    shown = []
    for name in kept:
        value = getattr(pipe, name)
        shown.append(f"{name}={getattr(value, '__name__', None) or repr(value)}")
    return f"{type(pipe).__name__}({', '.join(shown)})"


def _explain(pipe: Any, error: Exception) -> None:
    """Adds to an error which step it came from."""
    note = "This exception is thrown by __iter__ of"
    first = error.args[0] if error.args else ""
    said = any(note in str(each) or "has been invalidated" in str(each) for each in error.args)
    if not said:
        error.args = (
            f"{first if isinstance(first, str) else ''}\n{note} {_signature(pipe)}",
            *error.args[1:],
        )


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """Samples by index.

    >>> pipe = rushlight.utils.data.datapipes.map.SequenceWrapper(["a", "b"])
    >>> pipe.map(str.upper)[1]
    'B'
    """

    functions: ClassVar[dict[str, Callable]] = {}


class _DataPipeSerializationWrapper:
    """A pipe that crosses to a worker process as its pickle."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> Any:
        return pickle.dumps(self._datapipe)

    def __setstate__(self, state: Any) -> None:
        self._datapipe = pickle.loads(state)

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __iter__(self) -> Iterator:
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, idx: Any) -> Any:
        return self._datapipe[idx]


class DataChunk(list[_T]):
    """A batch that is a list and can be taken apart again."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples in brackets."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator:
        """The samples."""
        yield from self.items
