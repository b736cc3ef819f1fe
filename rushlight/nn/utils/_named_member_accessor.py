"""Tensors of a module by name, as `functional_call` exchanges them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight import Tensor

_MISSING = object()


def swap_tensor(module: Any, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Any:
    """Puts `tensor` in the place of a parameter, buffer or attribute and returns what was there."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for place in (module._parameters, module._buffers):
        if name in place:
            before = place[name]
            if tensor is _MISSING:
                del place[name]
            else:
                place[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before


def set_tensor(module: Any, name: str, tensor: Tensor | None) -> None:
    """Puts `tensor` in the place of a parameter, buffer or attribute, which need not be there."""
    if not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Puts a module in the place of a child and returns the child."""
    from rushlight.nn.module import Module

    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if not isinstance(before, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Submodules and tensors of a module by their full names, each path looked up once.

    >>> accessor = NamedMemberAccessor(rushlight.nn.Sequential(rushlight.nn.Linear(2, 1)))
    >>> accessor.get_tensor("0.weight").shape
    torch.Size([1, 2])
    """

    def __init__(self, module: Any) -> None:
        self.module, self.memo = module, {"": module}

    def get_submodule(self, name: str) -> Any:
        """The submodule of this name."""
        from rushlight.nn.module import Module

        if name not in self.memo:
            prefix, _, leaf = name.rpartition(".")
            owner = self.get_submodule(prefix)
            try:
                found = getattr(owner, leaf)
            except AttributeError as error:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{leaf}`") from error
            if not isinstance(found, Module):
                raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Puts a module in the place of the one of this name and returns that."""
        prefix, _, leaf = path.rpartition(".")
        return swap_submodule(self.get_submodule(prefix), leaf, value)

    def _place(self, name: str) -> tuple[Any, str]:
        prefix, _, leaf = name.rpartition(".")
        return self.get_submodule(prefix), leaf

    def get_tensor(self, name: str) -> Tensor:
        """The parameter, buffer or attribute of this name."""
        owner, leaf = self._place(name)
        try:
            found: Any = getattr(owner, leaf)
        except AttributeError as error:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`") from error
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found  # type: ignore[return-value]

    def set_tensor(self, name: str, value: Tensor | None) -> None:
        """Puts a tensor under this name."""
        owner, leaf = self._place(name)
        set_tensor(owner, leaf, value)

    def del_tensor(self, name: str) -> None:
        """Takes the tensor of this name away."""
        owner, leaf = self._place(name)
        swap_tensor(owner, leaf, _MISSING)  # type: ignore[arg-type]

    def swap_tensor(self, name: str, value: Tensor | None, allow_missing: bool = False) -> Any:
        """Puts a tensor under this name and returns what was there."""
        owner, leaf = self._place(name)
        return swap_tensor(owner, leaf, value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of these names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor | None]) -> None:
        """Puts tensors under these names."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise AssertionError("names and values must have the same length")
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Puts tensors under their names."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Takes the tensors of these names away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor | None], allow_missing: bool = False
    ) -> list[Any]:
        """Puts tensors under these names and returns what was there."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise AssertionError("names and values must have the same length")
        return [
            self.swap_tensor(n, v, allow_missing=allow_missing) for n, v in zip(names, values, strict=True)
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Puts tensors under their names; what was there, and the names where nothing was."""
        before, missing = {}, []
        try:
            for name, value in named_tensors.items():
                try:
                    before[name] = self.swap_tensor(name, value, allow_missing=True)
                except AttributeError:
                    missing.append(name)
                    continue
                if before[name] is _MISSING:
                    missing.append(name)
        except Exception as error:
            for name, value in before.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise RuntimeError(f"Failed to swap tensors: {error}.") from error
        if missing and not allow_missing:
            for name, value in before.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names of tensors of the module that are not among the keys, and keys that are no such names."""
        given = set(keys)
        there = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(there - given), sorted(given - there)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names, parameters and buffers."""
        yield from self.named_parameters(remove_duplicate=remove_duplicate)
        yield from self.named_buffers(remove_duplicate=remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Names and submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
