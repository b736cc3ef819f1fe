"""Every name that torch's modules about gradients define is here, with its signature."""

import functools
import inspect
import types
from importlib import import_module

import pytest

MODULES = """
autograd autograd.graph autograd.forward_ad autograd.functional autograd.function autograd.grad_mode
autograd.variable autograd.anomaly_mode autograd.profiler autograd.profiler_util autograd.profiler_legacy
autograd.gradcheck autograd._functions autograd._functions.tensor autograd._functions.utils
utils.checkpoint utils.hooks _C._autograd _C._functions
"""
# What stays out: types for annotations, compilers, other devices, classes that torch itself cannot use.
MISSING = """
TYPE_CHECKING _P _R _T _Ts _iter_jit_values _jit_unwrap_structured _maybe_load_decompositions
_run_fn_with_dynamo_disabled _register_py_tensor_class_for_device _cupti_monitor_checked
_cupti_monitor_module _maybe_cupti_monitor TensorGeometry _ITraceActivity
"""
MEMBERS = """
_compiled_autograd_backward_state _compiled_autograd_key _get_compiled_autograd_symints _do_forward
_do_backward _pybind11_conduit_v1_ name value
_lazy_init_old_dispatch_mode_flags _default_device_type custom_profiler_config trace_only
"""


def module(library, name):
    return (
        functools.reduce(getattr, name.split(".")[1:], import_module(library)._C)
        if name[:2] == "_C"
        else (import_module(f"{library}.{name}"))
    )


def pairs():
    for name in MODULES.split():
        yield name, module("torch", name), module("rushlight", name)


def own(module):
    for name, value in vars(module).items():
        if name.startswith("__") or isinstance(value, types.ModuleType):
            continue
        if getattr(value, "__module__", module.__name__) == module.__name__:
            yield name, value


def parameters(function):
    if isinstance(function, types.WrapperDescriptorType):  # the slot of a native class tells nothing
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = int, float, str, bool, type(None)
    return [
        (p.name, p.kind.name, p.default if isinstance(p.default, plain) else type(p.default).__name__)
        for p in found
    ]


def test_every_name():
    missing = {f"{at}.{name}" for at, torchs, ours in pairs() for name, _ in own(torchs)
               if not hasattr(ours, name) and name not in MISSING.split()}  # fmt: skip
    assert not missing


def test_every_signature():
    count, differing = 0, {}
    for at, torchs, ours in pairs():
        for name, value in own(torchs):
            if inspect.isfunction(value) and name not in MISSING.split():
                count += 1
                expected, found = parameters(value), parameters(getattr(ours, name))
                if found is not None and expected != found:  # None: it is native
                    differing[f"{at}.{name}"] = (expected, found)
    assert count > 150
    assert not differing


def test_every_member():
    count, differing = 0, []
    for at, torchs, ours in pairs():
        for name, value in own(torchs):
            if not inspect.isclass(value) or name in MISSING.split() or name == "NestedIOFunction":
                continue
            for member in vars(value):
                if member in MEMBERS.split() or (
                    member.startswith("__") and member not in ("__init__", "__call__")
                ):
                    continue
                count += 1
                if not hasattr(getattr(ours, name), member):
                    differing.append(f"{at}.{name}.{member}")
                    continue
                expected, found = (
                    parameters(getattr(value, member)),
                    parameters(getattr(getattr(ours, name), member)),
                )
                if inspect.isfunction(getattr(value, member)) and found is not None and found != expected:
                    differing.append((f"{at}.{name}.{member}", expected, found))
    assert count > 300
    assert not differing


@pytest.mark.parametrize("name", MODULES.split())
def test_what_torch_exports(name):
    torchs, ours = module("torch", name), module("rushlight", name)
    assert set(getattr(torchs, "__all__", ())) <= set(dir(ours))
