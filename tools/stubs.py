"""Writes the type stubs of what is put together when Rushlight is imported: `make coverage`.

Functions and Tensor methods are registered from Python (rushlight/ops/_public.py), which no type checker
follows. Their signatures are read here from the running package; what they return is seen by running the
samples of the test suite. Parameters are typed where their name says enough, and are Any otherwise.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import rushlight  # noqa: E402
from rushlight.ops._public import FUNCTIONS  # noqa: E402

Tensor = rushlight.Tensor

# By the name of a parameter.
PARAMETERS = {
    "keepdim": "_bool", "requires_grad": "_bool", "inplace": "_bool", "training": "_bool", "p": "_float",
    "dtype": "_dtype | None", "out": "Any", "generator": "Generator | None", "retain_graph": "_bool | None",
    "create_graph": "_bool", "non_blocking": "_bool", "copy": "_bool", "align_corners": "_bool | None",
    "pin_memory": "_bool", "largest": "_bool", "sorted": "_bool", "descending": "_bool", "stable": "_bool",
}  # fmt: skip
# What the samples do not show.
RETURNS = {
    "backward": "None", "item": "_int | _float | _bool", "tolist": "list[Any]", "size": "Any",
    "numpy": "Any", "is_tensor": "_bool", "is_floating_point": "_bool", "is_complex": "_bool",
    "is_nonzero": "_bool", "is_contiguous": "_bool", "is_inference": "_bool", "is_same_size": "_bool",
    "is_set_to": "_bool", "is_shared": "_bool", "is_pinned": "_bool", "is_conj": "_bool", "is_neg": "_bool",
    "is_signed": "_bool", "equal": "_bool", "allclose": "_bool", "numel": "_int", "dim": "_int",
    "ndimension": "_int", "nelement": "_int", "element_size": "_int", "data_ptr": "_int",
    "storage_offset": "_int", "get_device": "_int", "stride": "Any", "retain_grad": "None",
    "is_storage": "_bool", "broadcast_shapes": "Size", "result_type": "dtype", "promote_types": "dtype",
    "can_cast": "_bool", "type": "Any", "storage": "Any", "untyped_storage": "Any", "typename": "str",
    "shape_as_tensor": "Tensor", "register_hook": "Any", "register_post_accumulate_grad_hook": "Any",
    "apply_": "Tensor", "map_": "Tensor", "map2_": "Tensor", "requires_grad_": "Tensor", "detach_": "Tensor",
    "split": "tuple[Tensor, ...]", "chunk": "tuple[Tensor, ...]", "unbind": "tuple[Tensor, ...]",
    "broadcast_tensors": "tuple[Tensor, ...]", "meshgrid": "tuple[Tensor, ...]", "to_dlpack": "Any",
    "einsum": "Tensor", "where": "Any", "dim_order": "tuple[_int, ...]", "storage_type": "Any",
    "max": "Any", "min": "Any", "mode": "Any", "sort": "Any", "size_of": "_int",
}  # fmt: skip
CREATED = (
    "arange as_tensor bartlett_window bernoulli blackman_window cartesian_prod cat complex empty empty_like "
    "empty_strided eye from_dlpack from_file from_numpy frombuffer full full_like hamming_window hann_window "
    "kaiser_window linspace logspace normal ones ones_like polar poisson rand rand_like randint randint_like "
    "randn randn_like randperm scalar_tensor stack tensor asarray tril_indices triu_indices zeros zeros_like "
    "multinomial new_empty new_full new_ones new_zeros new_tensor clone detach to cpu cuda float double half "
    "bfloat16 int long short char byte bool cfloat cdouble view reshape expand contiguous requires_grad_ "
    "dropout rot90 view_as reshape_as expand_as mean sum prod all any std var argmax argmin T new type_as "
    "type_to median nanmedian"
)
RETURNS |= dict.fromkeys(CREATED.split(), "Tensor")
RETURNS |= dict.fromkeys(("median", "nanmedian", "type_to"), "Any")
ATTRIBUTES = {
    "shape": "Size", "dtype": "_dtype", "device": "_device", "grad": "Tensor | None", "grad_fn": "Any",
    "requires_grad": "_bool", "is_leaf": "_bool", "retains_grad": "_bool", "ndim": "_int", "nbytes": "_int",
    "itemsize": "_int", "output_nr": "_int", "layout": "Any", "name": "str | None", "names": "Any",
    "grad_dtype": "_dtype | None",
}  # fmt: skip
ATTRIBUTES |= dict.fromkeys(("T", "mT", "H", "mH", "data", "real", "imag"), "Tensor")

HEAD = '''"""The native core for type checkers, and Tensor with what is attached to it. By tools/stubs.py."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Iterator
from typing import Any, overload

from rushlight._size import Size

class Generator:
    def __init__(self, device: Any = ...) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Node:
    def __getattr__(self, name: str) -> Any: ...

class Primitive:
    def __getattr__(self, name: str) -> Any: ...
    def __call__(self, *args: Any) -> Any: ...

class device:
    type: str
    index: Any
    def __init__(self, type: Any = ..., index: Any = ...) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *error: object) -> None: ...

class dtype:
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    abbr: str
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

def __getattr__(name: str) -> Any: ...

_dtype = dtype
_device = device

class Tensor:
    def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
'''
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"


def operators() -> list[str]:
    forms = [form for name in BINARY.split() for form in (f"__{name}__", f"__r{name}__", f"__i{name}__")]
    forms += [f"__{name}__" for name in ("lt", "le", "gt", "ge")]
    return [
        *(f"def {form}(self, other: Any) -> Tensor: ..." for form in forms),
        *(f"def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")),
        "def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]",
        "def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]",
        "def __hash__(self) -> _int: ...",
        "def __len__(self) -> _int: ...",
        "def __bool__(self) -> _bool: ...",
        "def __int__(self) -> _int: ...",
        "def __float__(self) -> _float: ...",
        "def __complex__(self) -> _complex: ...",
        "def __index__(self) -> _int: ...",
        "def __contains__(self, item: Any) -> _bool: ...",
        "def __iter__(self) -> Iterator[Tensor]: ...",
        "def __getitem__(self, index: Any) -> Tensor: ...",
        "def __setitem__(self, index: Any, value: Any) -> None: ...",
        "@overload\n    def size(self, dim: None = ...) -> Size: ...",
        "@overload\n    def size(self, dim: _int) -> _int: ...",
        "@overload\n    def stride(self, dim: None = ...) -> tuple[_int, ...]: ...",
        "@overload\n    def stride(self, dim: _int) -> _int: ...",
        "_backward_hooks: Any\n    _grad: Any\n    _base: Any",
        "def __array__(self, dtype: Any = ...) -> Any: ...",
        "def __deepcopy__(self, memo: Any) -> Tensor: ...",
        "def __reduce_ex__(self, protocol: Any) -> Any: ...",
        "def as_subclass(self, cls: Any) -> Any: ...",
        "def __array_wrap__(self, array: Any) -> Any: ...",
        "def __dlpack__(self, **kwargs: Any) -> Any: ...",
        "def __dlpack_device__(self) -> Any: ...",
        "def __reversed__(self) -> Tensor: ...",
        "@classmethod\n    def __torch_function__(cls, func: Any, types: Any, args: Any = ..., "
        "kwargs: Any = ...) -> Any: ...",
    ]


def seen_returns() -> dict[str, str]:
    """What the operations of the samples return, by their names."""
    from samples import OPS
    from sampling import build

    kinds = defaultdict(set)
    for operation in OPS.values():
        if operation.run is not None:  # it may return only a part
            continue
        for dtype in ("float64", "int64", "bool"):
            for sample in operation.for_dtype(dtype):
                try:
                    args, kwargs = build(rushlight, sample, dtype)
                    result = operation.function(rushlight)(*args, **kwargs)
                except Exception:
                    continue
                kinds[operation.name].add(kind_of(result))
                break
            else:
                continue
            break
    return {name: next(iter(found)) for name, found in kinds.items() if len(found) == 1}


def kind_of(result: object) -> str:
    if isinstance(result, Tensor):
        return "Tensor"
    if isinstance(result, tuple) and result and all(isinstance(each, Tensor) for each in result):
        kind = type(result).__name__
        return "tuple[Tensor, ...]" if kind == "tuple" else "Any"
    if isinstance(result, bool):
        return "_bool"
    return "Any"


def signature(name: str, function: object, returns: str, method: bool) -> str:
    parts = []
    marked = False
    given = inspect.signature(function).parameters
    tensors = () if method or {"other", "condition", "exponent"} & set(given) else ("input", "tensor")
    for at, parameter in enumerate(given.values()):
        label = parameter.name
        if method and at == 0 and parameter.kind is not parameter.VAR_POSITIONAL:
            parts.append("self")
            continue
        kind = PARAMETERS.get(label, "Tensor" if label in tensors else "Any")
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{label}: Any")
            marked = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{label}: Any")
        else:
            if parameter.kind is parameter.KEYWORD_ONLY and not marked:
                parts.append("*")
                marked = True
            default = "" if parameter.default is parameter.empty else " = ..."
            parts.append(f"{label}: {kind}{default}")
    if method and (not parts or parts[0] != "self"):
        parts.insert(0, "self")
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


def returned(name: str, seen: dict[str, str], *prefixes: str) -> str:
    if name in RETURNS:
        return RETURNS[name]
    for prefix in prefixes:
        if prefix + name in seen:
            return seen[prefix + name]
    return "Tensor" if name.endswith("_") and not name.startswith("_") else "Any"


def wrapped(lines: list[str], indent: str = "") -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


def attribute(name: str, kind: str) -> str:
    if name in ("grad", "data", "requires_grad"):
        return f"{name}: {kind}"
    return f"@property\n    def {name}(self) -> {kind}: ..."


def tensor_stub(seen: dict[str, str]) -> str:
    lines = [attribute(name, kind) for name, kind in sorted(ATTRIBUTES.items())]
    lines += operators()
    written = {line.split("(")[0].split("def ")[-1] for line in lines} | set(ATTRIBUTES)
    written |= {"_backward_hooks", "_grad", "_base"}
    for name in sorted(dir(Tensor)):
        value = inspect.getattr_static(Tensor, name)
        if name in written or (name.startswith("__") and name.endswith("__")):
            continue
        if type(value).__name__ in ("property", "getset_descriptor"):
            lines.append(attribute(name, "_bool" if name.startswith("is_") else "Any"))
        elif type(value).__name__ in ("Function", "function"):
            lines.append(signature(name, value, returned(name, seen, "", "Tensor."), method=True))
        elif isinstance(value, staticmethod):
            lines.append(f"@staticmethod\n    def {name}(*args: Any, **kwargs: Any) -> Any: ...")
        elif callable(value):
            lines.append(f"def {name}(self, *args: Any, **kwargs: Any) -> {RETURNS.get(name, 'Any')}: ...")
        else:
            lines.append(f"{name}: Any")
    return HEAD + wrapped(lines, "    ")


def package_stub(seen: dict[str, str]) -> str:
    source = (ROOT / "rushlight/__init__.py").read_text()
    lines = [
        '"""The names of the package for type checkers. Written by tools/stubs.py."""\n',
        "from builtins import bool as _bool\nfrom builtins import float as _float",
        "from builtins import int as _int",
        "from typing import Any\n",
        "from rushlight import _C as _C",
    ]
    submodules = sorted(rushlight._LAZY | {"autograd", "random"})
    lines += [f"from rushlight import {name} as {name}" for name in submodules]
    lines += [
        "from rushlight._C import Generator as Generator",
        "from rushlight._C import Tensor as Tensor",
        "from rushlight._C import device as device",
        "from rushlight._C import dtype as dtype",
        "from rushlight._dtype_info import finfo as finfo",
        "from rushlight._dtype_info import iinfo as iinfo",
        "from rushlight._size import Size as Size",
    ]
    # Names of other modules stay in this one once they have been asked for.
    own = [pair for pair in sorted(vars(rushlight).items()) if pair[0] not in rushlight._LAZY_NAMES]
    for name, value in own:
        module = getattr(value, "__module__", "") or ""
        if name.startswith("_") or not isinstance(value, type) or f"{name} as {name}" in " ".join(lines):
            continue
        if module.startswith("rushlight.") and not module.startswith("rushlight._C"):
            lines.append(f"from {module} import {name} as {name}")
    of_functional = []
    for name, module in sorted(rushlight._LAZY_NAMES.items()):
        if module == "_functional_names":
            kind = returned(name, seen, "nn.functional.", "")
            of_functional.append(signature(name, getattr(rushlight, name), kind, method=False))
        else:
            lines.append(f"from rushlight.{module} import {name} as {name}")
    lines += ["\n_dtype = dtype", "__version__: str", *of_functional]
    done = {line.split(" as ")[-1] for line in lines} | {"Generator"}
    for name, value in own:
        if name.startswith("_") or name in done or name in submodules:
            continue
        if isinstance(value, rushlight.dtype):
            lines.append(f"{name}: dtype")
        elif name in FUNCTIONS:
            lines.append(signature(name, value, returned(name, seen, ""), method=False))
        elif inspect.isfunction(value):
            lines.append(signature(name, value, annotated(value, name), method=False))
        elif isinstance(value, float):
            lines.append(f"{name}: _float")
        else:
            lines.append(f"{name}: Any")
    if "class OutOfMemoryError" in source:
        lines = [
            line for line in lines if "OutOfMemoryError:" not in line and "AcceleratorError:" not in line
        ]
        lines += ["class OutOfMemoryError(RuntimeError): ...", "class AcceleratorError(RuntimeError): ..."]
    return "\n".join(lines) + "\n"


def annotated(function: object, name: str) -> str:
    """The return type a plain function declares, where it is a word that the stub knows."""
    declared = getattr(function, "__annotations__", {}).get("return")
    known = {"None": "None", "bool": "_bool", "int": "_int", "str": "str", "_C.dtype": "dtype"}
    known |= {
        "Generator": "Generator",
        "_C.Generator": "Generator",
        "Tensor": "Tensor",
        "_C.Tensor": "Tensor",
    }
    return RETURNS.get(name, known.get(str(declared), "Any"))


def functional_stub(seen: dict[str, str]) -> str:
    names = rushlight.nn.functional
    lines = [
        '"""torch.nn.functional for type checkers. Written by tools/stubs.py."""\n',
        "from builtins import bool as _bool\nfrom builtins import float as _float",
        "from builtins import int as _int",
        "from typing import Any\n",
        "from rushlight._C import Generator, Tensor",
        "from rushlight._C import dtype as _dtype\n",
    ]
    for name, value in sorted(vars(names).items()):
        if name.startswith("__"):
            continue
        if inspect.ismodule(value):
            if not value.__name__.startswith(names.__name__):
                lines.append(f"{name}: Any")
            continue
        if callable(value) and not isinstance(value, type):
            kind = returned(name, seen, "nn.functional.", "")
            lines.append(
                signature(name, value, "Tensor" if kind == "Any" and name in LOSSES else kind, False)
            )
        elif not name.startswith("_"):
            lines.append(f"{name}: Any")
    return "\n".join(lines) + "\n"


LOSSES = {"dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"}


def stubs() -> dict[Path, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = seen_returns()
    package = ROOT / "rushlight"
    return {
        package / "_C.pyi": tensor_stub(seen),
        package / "__init__.pyi": package_stub(seen),
        package / "nn/functional/__init__.pyi": functional_stub(seen),
    }


def main() -> None:
    for path, text in stubs().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date: run `make coverage`")


if __name__ == "__main__":
    main()
