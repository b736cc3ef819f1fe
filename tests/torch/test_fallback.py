"""Operations of a torch.library that say nothing about their gradient: both libraries warn of the same."""

import warnings

import pytest
import torch as torch_itself
from outcomes import err

import rushlight


def _quietly(torch, mutable):
    def kernel(x, *rest):
        with torch.no_grad():
            return x.sin_() if mutable else x.sin()

    return kernel


# name: (schema, the kernel for a library)
KERNELS = {
    "computes": ("f(Tensor x) -> Tensor", lambda torch: lambda x: x.sin()),
    "quiet": ("f(Tensor x) -> Tensor", lambda torch: _quietly(torch, False)),
    "itself": ("f(Tensor x) -> Tensor", lambda torch: lambda x: x),
    "written": ("f(Tensor(a!) x) -> Tensor(a!)", lambda torch: _quietly(torch, True)),
    "nothing": ("f(Tensor(a!) x) -> ()", lambda torch: lambda x: None),
    "mixed": (
        "f(Tensor x) -> (Tensor, Tensor, Tensor)",
        lambda torch: lambda x: (x.detach() * 2, x * 3, x.long()),
    ),
    "leaf": ("f(Tensor x) -> Tensor", lambda torch: lambda x: x.detach().clone().requires_grad_()),
    "lists": ("f(Tensor[] x) -> Tensor[]", lambda torch: lambda x: [t.detach() + 1 for t in x]),
}


def tell(torch, kernel, mode, view):
    """What the call gives, and what each result's backward does and warns of."""
    schema, make = KERNELS[kernel]
    told = []
    before = torch._C._get_autograd_fallback_mode()
    torch._C._set_autograd_fallback_mode(mode)
    try:
        with torch.library._scoped_library("tests_fallback", "FRAGMENT") as lib:
            lib.define(schema)
            lib.impl("f", make(torch), "CPU")
            x = torch.ones(3, requires_grad=True)
            base = x.clone()
            value = base[:2] if view else base
            results = torch.ops.tests_fallback.f.default([value] if kernel == "lists" else value)
            results = results if isinstance(results, (tuple, list)) else [results]
            for result in (*results, value, base):
                if result is None:
                    told.append(None)
                    continue
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    x.grad = None
                    error = err(lambda r=result: r.sum().backward(retain_graph=True))
                # Hooks of a view and of its base may both warn: how often is no matter.
                heard = sorted({str(w.message).split(" (Triggered")[0] for w in caught})
                told.append((result.requires_grad, error, x.grad, heard))
    finally:
        torch._C._set_autograd_fallback_mode(before)
    return repr(told)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("mode", ["nothing", "warn"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_same(kernel, mode, view):
    assert tell(rushlight, kernel, mode, view) == tell(torch_itself, kernel, mode, view)


@pytest.mark.parametrize("key", ["CPU", "CompositeImplicitAutograd", "Autograd"])
def test_what_kernels_may_return(key):
    def told(torch):
        seen = []
        for result in (lambda x: None, lambda x: 3, lambda x: (x, x), lambda x: x.detach() * 2):
            for schema in ("f(Tensor x) -> Tensor", "f(Tensor(a!) x) -> Tensor(a!)"):
                with torch.library._scoped_library("tests_returns", "FRAGMENT") as lib:
                    lib.define(schema)
                    lib.impl("f", result, key)
                    given = err(lambda: torch.ops.tests_returns.f(torch.ones(2, requires_grad=True).clone()))
                name = given.grad_fn and given.grad_fn.name() if isinstance(given, torch.Tensor) else None
                seen.append((repr(given).split("<")[0], name))
        return seen

    assert told(rushlight) == told(torch_itself)


def test_modes():
    for torch in (rushlight, torch_itself):
        assert torch._C._get_autograd_fallback_mode() == "warn"
        with pytest.raises(RuntimeError, match="NYI"):
            torch._C._set_autograd_fallback_mode("error")
