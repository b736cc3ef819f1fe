"""The functional forms of optimizers: ``adam(params, grads, exp_avgs, ...)``, one step of lists of tensors.

``functional`` makes them from the class: a stand-in of it without groups of its own, whose gradients and
state are the lists of the call, moves them. ``_single_tensor_adam`` and its siblings are implementations of
the same step in torch; here they are the one that there is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight import Tensor
from rushlight.optim.optimizer import GroupOptimizer, check_fused, take_scale

if TYPE_CHECKING:
    from inspect import Signature

# Options that one name of the group holds several of.
_TOGETHER = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "eps": ("eps1", "eps2"),
}
_SCALING = ("grad_scale", "found_inf")


class _Given:
    """In front of an optimizer's class: the gradients are those of the call."""

    given: list[tuple[Tensor, Tensor]]

    def _graded(self, group: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
        return self.given

    def _columns(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
        return [param for param, _ in self.given], [grad for _, grad in self.given]


def _step(
    cls: type[GroupOptimizer],
    lists: dict[str, list[Any]],
    params: list[Tensor],
    grads: list[Tensor],
    options: dict[str, Any],
) -> None:
    """Move ``params``; ``lists`` holds their state by its name in the class."""
    for group_name, names in _TOGETHER.items():
        if names[0] in options:
            options[group_name] = tuple(options.pop(name) for name in names)
    stand_in: Any = object.__new__(type(cls.__name__, (_Given, cls), {}))
    stand_in.defaults = {}
    stand_in.given = list(zip(params, grads, strict=True))
    stand_in.state = {
        param: {key: values[i] for key, values in lists.items() if i < len(values) and values[i] is not None}
        for i, param in enumerate(params)
    }
    stand_in._update({"params": params, **options})
    for key, values in lists.items():
        for i, param in enumerate(params):
            if i < len(values) and values[i] is None and key in stand_in.state[param]:
                values[i] = stand_in.state[param][key]


def _signature(first: list[str], options: str) -> Signature:
    """Parameters in torch's order; ``options`` reads ``foreach=None capturable=False * beta1 beta2``."""
    from inspect import Parameter, Signature

    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(name, kind) for name in first]
    for option in options.split():
        if option == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        name, _, default = option.partition("=")
        value = {"": Parameter.empty, "None": None, "False": False}[default]
        parameters.append(Parameter(name, kind, default=value))
    return Signature(parameters)


def functional(
    cls: type[GroupOptimizer],
    name: str,
    state: str,
    options: str,
    inner: str,
    kinds: tuple[str, ...] = ("single_tensor", "multi_tensor"),
    grads: str = "grads",
    **fixed: Any,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the class's module, which then has the functional form and torch's
    implementations of it by ``kinds``. They are made when they are first named: hardly any program does, and
    ``inspect`` alone would take as long to import as all of ``optim``.

    ``state`` maps the lists of the call to the keys of the class, ``exp_avgs=exp_avg``; ``options`` and
    ``inner`` are the parameters of the form and of the implementations; ``fixed`` are options of the class
    that neither has.
    """
    keys = dict(entry.split("=") for entry in state.split())
    needs_steps = keys.get("state_steps") == "step"

    def make(kind: str) -> Callable[..., None]:
        private = kind != "form"
        first = ["params", grads if not private else "grads", *keys]
        signature = _signature(first, inner if private else options)

        def form(*args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{form.__name__}() {error}") from None
            bound.apply_defaults()
            given = {**fixed, **bound.arguments}
            params, gradients = given.pop("params"), given.pop(first[1])
            lists = {key: given.pop(list_name) for list_name, key in keys.items()}
            scale, found = (given.pop(key, None) for key in _SCALING)
            for key in ("has_complex", "has_sparse_grad"):
                given.pop(key, None)
            if needs_steps and not all(isinstance(step, Tensor) for step in lists["step"]):
                raise RuntimeError(
                    "API has changed, `state_steps` argument must contain a list of singleton tensors"
                )
            if kind == "multi_tensor" and params:
                if given.get("differentiable"):
                    raise AssertionError("_foreach ops don't support autograd")
                if isinstance(given.get("lr"), Tensor) and "capturable" in given and not given["capturable"]:
                    raise RuntimeError(
                        "lr as a Tensor is not supported for capturable=False and foreach=True"
                    )
            if kind == "fused" or given.get("fused"):
                check_fused(params)
                if not take_scale(gradients, scale, found):
                    return
            given.setdefault("foreach", None)
            given.setdefault("fused", None)
            given.setdefault("differentiable", False)
            given.setdefault("capturable", False)
            _step(cls, lists, params, gradients, given)

        form.__name__ = form.__qualname__ = called(kind)
        form.__module__ = module.__name__
        form.__doc__ = f"One step of {cls.__name__} for parameters, gradients and state given as lists."
        form.__signature__ = signature  # type: ignore[attr-defined]
        return form

    def called(kind: str) -> str:
        return name if kind == "form" else f"_{kind}_{name}"

    forms = {called(kind): kind for kind in ("form", *kinds)}
    module = sys.modules[sys._getframe(1).f_globals["__name__"]]  # the class may name another

    def find(asked: str) -> Any:
        if asked in forms:
            return vars(module).setdefault(asked, make(forms[asked]))
        raise AttributeError(f"module {module.__name__!r} has no attribute {asked!r}", name=asked, obj=module)

    return find, lambda: sorted({*vars(module), *forms})
