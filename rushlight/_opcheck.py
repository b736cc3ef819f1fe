"""`torch.library.opcheck`: whether an operation of one's own does what it says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor, _autograd_fallback
from rushlight._operators import Operator, _tensors
from rushlight._ops import OpOverload, OpOverloadPacket
from rushlight.utils._pytree import tree_map_only

_CHECKS = (
    "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)  # fmt: skip


class OpCheckError(Exception):
    """An operation does not do what it says."""


class _OfTorch:
    """One of torch's own operations, to be looked at as those of a program are."""

    differentiable = True

    def __init__(self, handle: OpOverload) -> None:
        self.schema, self.key, self._handle = handle._schema, handle.name(), handle
        self.owner = self.autograd_kernel = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._handle(*args, **kwargs)


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict:
    """Checks that an operation writes and returns what its schema says, that its gradient is registered,
    that it is the same on the meta device, and that it runs twice alike forward and backward (torch compiles
    it for the last; nothing is compiled here).

    >>> @rushlight.library.custom_op("docs::double", mutates_args=())
    ... def double(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     return x * 2
    >>> rushlight.library.opcheck(double, (rushlight.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(chosen) <= set(_CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={chosen}), expected test_utils to be subset of {_CHECKS} but it "
            "was not"
        )
    from rushlight.library import CustomOpDef, _operator

    if isinstance(op, OpOverloadPacket):
        op = op.default
    if not isinstance(op, (OpOverload, CustomOpDef)):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
            f"torch.ops.aten.sin.default, got {type(op)}"
        )
    if isinstance(op, OpOverload) and op.namespace == "aten":
        found: Any = _OfTorch(op)
    else:
        found = _operator(op)
    results: dict[str, Any] = {}
    for name in chosen:
        checks: dict[str, Callable] = {
            "test_schema": _check_schema,
            "test_autograd_registration": _check_autograd_registration,
            "test_faketensor": _check_fake,
        }
        check = checks.get(name, functools.partial(_check_twice, atol=atol, rtol=rtol))
        try:
            check(found, args, kwargs or {})
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
        else:
            results[name] = "SUCCESS"
    return results


def _copied(value: Any, records: bool = True) -> Any:
    def copied(tensor: Tensor) -> Tensor:
        return tensor.detach().clone().requires_grad_(records and tensor.requires_grad)

    return tree_map_only(Tensor, copied, value)


def _check_schema(op: Operator, args: tuple, kwargs: dict) -> None:
    placed, named = op.schema.bind(_copied(args, False), _copied(kwargs, False))
    names = [a.name for a in op.schema.arguments]
    given = dict(zip(names, placed, strict=False)) | named
    before = {name: [t.clone() for t in _tensors(value)] for name, value in given.items()}
    result = op(*placed, **named)
    returned = [t.untyped_storage()._cdata for t in _tensors([result]) if t.numel()]
    shared = [a.name for a in op.schema.arguments if a.alias_info is not None]
    for name, value in given.items():
        if name not in shared and any(t.untyped_storage()._cdata in returned for t in _tensors(value)):
            raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
    allowed = {id(t) for t in op.schema.written(placed, named)}
    for name, value in given.items():
        for tensor, old in zip(_tensors(value), before[name], strict=True):
            if id(tensor) not in allowed and not rushlight.equal(tensor, old):
                raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")


def _check_autograd_registration(op: Operator, args: tuple, kwargs: dict) -> None:
    """Raises if the kernel itself records: what is registered for a device is below autograd."""
    given = _tensors([list(args), list(kwargs.values())])
    registered = op.owner is not None or op.differentiable or op.autograd_kernel is not None
    if registered or not any(tensor.requires_grad for tensor in given):
        return
    before = _autograd_fallback._get_autograd_fallback_mode()
    _autograd_fallback._set_autograd_fallback_mode("nothing")
    try:
        outputs = _tensors([op(*args, **kwargs)])
    finally:
        _autograd_fallback._set_autograd_fallback_mode(before)
    if any(output.requires_grad and all(output is not tensor for tensor in given) for output in outputs):
        raise AssertionError(
            f"{op.key}: at least one output of this operator has requires_grad=True but the operator does "
            "not have an autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could "
            "mean that you have incorrectly registered an autograd kernel to a non-Autograd DispatchKey, "
            "which may lead to silently incorrect results. If your operator consists of regular PyTorch "
            "operations, consider not using an operator at all or registering your operator as "
            "CompositeImplicitAutograd. If you have an autograd.Function registered to a backend "
            "(CPU/CUDA/XPU) key, the correct location for it is the Autograd key."
        )


def _on_meta(value: Any) -> Any:
    return tree_map_only(Tensor, lambda tensor: tensor.detach().to("meta"), value)


def _check_fake(op: Operator, args: tuple, kwargs: dict) -> None:
    with rushlight.no_grad():
        real = _tensors([op(*_copied(args), **_copied(kwargs))])
        fake = _tensors([op(*_on_meta(args), **_on_meta(kwargs))])
    for a, b in zip(real, fake, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise AssertionError(
                f"Real and fake outputs differ: {tuple(a.shape)}, {a.dtype} and {tuple(b.shape)}, {b.dtype}"
            )


def _check_twice(op: Operator, args: tuple, kwargs: dict, atol: float | None, rtol: float | None) -> None:
    runs = []
    for _ in range(2):
        given = _copied(args), _copied(kwargs)
        outputs = _tensors([op(*given[0], **given[1])])
        leaves = [t for t in _tensors([list(given[0]), list(given[1].values())]) if t.requires_grad]
        recorded = [o for o in outputs if o.requires_grad]
        grads: Any = ()
        if recorded and leaves:
            weights = [rushlight.ones_like(o) for o in recorded]
            grads = rushlight.autograd.grad(recorded, leaves, weights, allow_unused=True)
        runs.append([*outputs, *(g for g in grads if g is not None)])
    for a, b in zip(*runs, strict=True):
        rushlight.testing.assert_close(a, b, atol=atol, rtol=rtol)
