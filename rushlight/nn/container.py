"""Modules that hold other modules, or parameters, in order or by name."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from rushlight import Tensor
from rushlight._warn import warn
from rushlight.nn.module import Module, _addindent, typename
from rushlight.nn.parameter import Parameter

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _absolute_index(index, length):
    """The position of an existing element from a possibly negative index."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class Container(Module):
    """A module made of the keyword arguments, deprecated in torch."""

    def __init__(self, **kwargs):
        super().__init__()
        warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
            "Subclass that instead.",
            FutureWarning,
        )
        for key, value in kwargs.items():
            self.add_module(key, value)


class _Numbered(Module):
    """Modules whose names are their positions. `_key` finds the name of a position."""

    def _renumber(self, modules):
        self._modules = dict(_numbered(modules))

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def pop(self, key):
        """Take out and return the module at ``key``."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Calls its modules one after the other.

    >>> import rushlight as torch
    >>> torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else _numbered(args)
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def _key(self, index):
        return next(islice(self._modules, _absolute_index(index, len(self)), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def __mul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*list(self) * times)

    __rmul__ = __mul__

    def __imul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        self.extend(list(self) * (times - 1))
        return self

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before the one at ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential):
        """Add all modules of an iterable at the end."""
        for module in sequential:
            self.append(module)
        return self


def _numbered(values):
    return [(str(i), value) for i, value in enumerate(values)]


class ModuleList(_Numbered):
    """A list whose modules are registered.

    >>> import rushlight.nn as nn
    >>> nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    ModuleList(
      (0-1): 2 x ReLU()
      (2): Tanh()
    )
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _key(self, index):
        return str(_absolute_index(index, len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def __repr__(self):
        """Equal neighbours are printed once, with their range and number."""
        texts = [repr(module) for module in self]
        if not texts:
            return self._get_name() + "()"
        lines = []
        first = 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[first]:
                count = i - first
                line = (
                    f"({first}): {texts[first]}"
                    if count == 1
                    else f"({first}-{i - 1}): {count} x {texts[first]}"
                )
                lines.append(_addindent(line, 2))
                first = i
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module):
        """Put a module before the one at ``index``."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add all modules of an iterable at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dictionary whose modules are registered.

    >>> import rushlight.nn as nn
    >>> list(nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()}))
    ['a', 'b']
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key):
        """Take out and return the module of the key."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        """The keys."""
        return self._modules.keys()

    def items(self):
        """Key and module pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add all modules of a mapping or of (key, module) pairs."""
        for key, module in _checked_pairs("ModuleDict", modules):
            self[key] = module


def _checked_pairs(owner, values):
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(values, Iterable):
        spelled = (
            "ParametersDict" if owner == "ParameterDict" else owner
        )  # torch's spelling, which code may match
        raise TypeError(
            f"{spelled}.update should be called with an iterable of key/value pairs, but got "
            f"{type(values).__name__}"
        )
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    return _checked_each(owner, values)


def _checked_each(owner, values):
    """One pair after the other, as they are taken over."""
    for i, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{owner} update sequence element #{i} should be Iterable; is{type(pair).__name__}"
            )
        if isinstance(pair, Tensor) and not pair.dim():
            raise TypeError("len() of a 0-d tensor")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield pair


def _describe(value, kind):
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(length) for length in value.size())
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind} of size {size}{where}]"


class ParameterList(Module):
    """A list; tensors put into it become registered parameters.

    >>> import rushlight as torch
    >>> len(list(torch.nn.ParameterList([torch.ones(1), torch.ones(2)]).parameters()))
    2
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(_absolute_index(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_absolute_index(index, len(self))), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add a value at the end."""
        position = len(self)
        self._size += 1
        self[position] = value
        return self

    def extend(self, values):
        """Add all values of an iterable at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(
            f"  ({i}): {_describe(value, getattr(value, 'dtype', None))}" for i, value in enumerate(self)
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterDict(Module):
    """A dictionary; tensors put into it become registered parameters.

    >>> import rushlight as torch
    >>> [name for name, _ in torch.nn.ParameterDict({"scale": torch.ones(1)}).named_parameters()]
    ['scale']
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._attribute(key))

    def __setitem__(self, key, value):
        # Marked as a key first: torch also keeps the place of an entry that is replaced.
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new ParameterDict with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value of the key, which is set to ``default`` if absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Take out and return the value of the key."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take out and return the last (key, value) pair."""
        key, _ = self._keys.popitem()
        # As a key again, so that deleting goes the common way.
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of the key, or ``default``."""
        if key not in self:
            return default
        return self[key]

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with the same value under all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """Key and value pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add all entries of a mapping (a plain dict sorted, as torch does it) or of (key, value) pairs."""
        pairs = _checked_pairs("ParameterDict", parameters)
        if type(parameters) is dict and all(isinstance(key, str) for key, _ in pairs):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self):
        return "\n".join(
            f"  ({key}): {_describe(value, typename(value) if isinstance(value, Tensor) else None)}"
            for key, value in self.items()
        )

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self
