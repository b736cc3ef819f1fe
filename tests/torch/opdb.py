"""Running the sample inputs that torch keeps for its own operations (op_db) through both libraries.

`check(entry, form, dtype, count)` is where to start: it calls one operation in one form on the first `count`
samples of a dtype and yields what differs. Samples are made by torch and carried over with their strides and
their sharing of memory, so both libraries see the same bytes.
"""

import functools
import itertools
import random
import re
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from comparing import REFUSALS
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import SEED

import rushlight
import rushlight.autograd.forward_ad

torch.set_num_threads(1)  # the samples are small; threads that wait for work would only get in the way

DTYPES = ("float32", "float64", "int64", "bool", "bfloat16", "complex64")
# The ways to call an operation, and the ways to differentiate it.
FORMS = ("function", "method", "inplace", "out", "errors", "grad", "gradgrad", "forward", "vmap")
GRAD_DTYPES = ("float64", "complex128")
# Operations that return memory nobody has written to.
UNDEFINED = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
    "resize_as_",
}  # fmt: skip
# Where several elements are equal, which of them is meant is left open unless the order is to be stable.
TIED = {"sort", "argsort", "kthvalue", "mode", "median", "nanmedian"}
TOLERANCE = {
    "float64": 2e-7, "complex128": 2e-7, "float32": 1.3e-5, "complex64": 2e-5, "float16": 2e-3,
    "bfloat16": 1.6e-2,
}  # fmt: skip


EPSILONS = {2e-7: 1e-14, 1.3e-5: 1e-6, 2e-5: 1e-6, 2e-3: 8e-3, 1.6e-2: 3e-2}  # of dtypes, by tolerance
# Eigenvectors and singular vectors are determined up to a factor of modulus one.
PHASE = {"linalg.eig", "linalg.eigh", "linalg.svd", "svd", "svd_lowrank", "pca_lowrank"}


def entry_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


ENTRIES = {entry_name(op): op for op in op_db}


ABSENT = "Rushlight does not have"  # how a line about a missing name begins


class Absent(Exception):
    """Rushlight has no such name."""


class Unfit(Exception):
    """A sample that says nothing about Rushlight: sparse layouts, dtypes it does not have."""


# --- from torch to Rushlight --------------------------------------------------------------------------------


def our_dtype(dtype: torch.dtype) -> Any:
    found = getattr(rushlight, str(dtype).removeprefix("torch."), None)
    if found is None:
        raise Unfit(f"no {dtype}")
    return found


def numpy_of(tensor: torch.Tensor) -> np.ndarray:
    if tensor._is_zerotensor():
        tensor = tensor.clone()
    tensor = tensor.detach().to_dense().resolve_conj().resolve_neg()
    wider = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
    return tensor.to(wider.get(tensor.dtype, tensor.dtype)).numpy()


class Carrier:
    """Carries arguments over; tensors that share memory in torch share it in Rushlight."""

    def __init__(self, requires_grad: bool = True) -> None:
        self.storages: dict[Any, Any] = {}
        self.tensors: dict[int, Any] = {}
        self.kept: list[torch.Tensor] = []  # an address may not be given to another tensor meanwhile
        self.leaves: list[tuple[Any, torch.Tensor]] = []
        self.requires_grad = requires_grad

    def tensor(self, source: torch.Tensor) -> Any:
        if id(source) in self.tensors:
            return self.tensors[id(source)]
        if source.layout != torch.strided or source.is_quantized or type(source) is not torch.Tensor:
            raise Unfit("not a plain strided tensor")
        plain = source.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
            self.kept.append(plain)
        if plain.device.type == "meta":
            made = rushlight.empty_strided(
                tuple(plain.shape), plain.stride(), dtype=our_dtype(plain.dtype), device="meta"
            )
        elif plain.dim() > 64 or (plain.numel() and not plain.untyped_storage().nbytes()):
            raise Unfit("a tensor that Rushlight cannot hold")
        else:
            made = self.storage(plain).as_strided(plain.shape, plain.stride(), plain.storage_offset())
        made = made.detach()
        if source.requires_grad and self.requires_grad:
            made.requires_grad_()
            self.leaves.append((made, source))
        self.tensors[id(source)] = made
        return made

    def storage(self, plain: torch.Tensor) -> Any:
        key = (plain.untyped_storage().data_ptr(), plain.untyped_storage().nbytes(), plain.dtype)
        if key not in self.storages or key[0] == 0:
            flat = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
            if plain.dtype == torch.bfloat16:
                made = (
                    rushlight.from_numpy(flat.view(torch.int16).clone().numpy())
                    .clone()
                    .view(rushlight.bfloat16)
                )
            else:
                our_dtype(plain.dtype)
                made = rushlight.from_numpy(flat.clone().numpy()).clone()  # what NumPy sees is not resized
            self.storages[key] = made
        return self.storages[key]

    def __call__(self, item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return self.tensor(item)
        if isinstance(item, torch.Size):
            return rushlight.Size(item)
        if type(item) in (list, tuple):
            return type(item)(self(part) for part in item)
        if type(item) is dict:
            return {key: self(part) for key, part in item.items()}
        if isinstance(item, slice):
            return slice(self(item.start), self(item.stop), self(item.step))
        if isinstance(item, torch.dtype):
            return our_dtype(item)
        if isinstance(item, torch.device):
            return rushlight.device(str(item))
        if isinstance(item, (torch.memory_format, torch.layout)):
            return getattr(rushlight, str(item).removeprefix("torch."))
        if isinstance(item, torch.Generator):
            return rushlight.Generator().manual_seed(item.initial_seed())
        if isinstance(item, types.FunctionType):
            return rebind(item)
        if type(item).__module__.startswith("torch"):
            raise Unfit(f"a {type(item).__name__}")
        return item


def rebind(function: types.FunctionType) -> types.FunctionType:
    """A function of torch's tests with Rushlight where it says torch."""
    scope = dict(function.__globals__)
    scope["torch"] = rushlight
    for name in function.__code__.co_names:
        part = scope.get(name)
        if isinstance(part, types.FunctionType) and part.__module__.startswith("torch."):
            scope[name] = seeded if name == "wrapper_set_seed" else rebind(part)
    closure = function.__closure__
    if closure:
        closure = tuple(
            types.CellType(
                # An itemgetter has no name, and works for both.
                ours(cell.cell_contents) if hasattr(cell.cell_contents, "__name__") else cell.cell_contents
            )
            for cell in closure
        )
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def seeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    rushlight.manual_seed(42)
    return op(*args, **kwargs)


def named(path: str) -> Any:
    try:
        return functools.reduce(getattr, path.split("."), rushlight)
    except AttributeError as error:
        raise Absent(path) from error


def ours(function: Any, name: str = "") -> Any:
    """Rushlight's counterpart of a callable of torch."""
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        return rebind(function)
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return named(f"ops.{function}")
    plain = getattr(function, "__name__", "")
    if getattr(torch.Tensor, plain, None) is function:
        return named(f"Tensor.{plain}")
    return named(name or plain)


# --- comparing ----------------------------------------------------------------------------------------------


def array_of(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().to_dense()
    wider = {rushlight.bfloat16: rushlight.float32, rushlight.complex32: rushlight.complex64}
    if tensor.dtype in wider:
        tensor = tensor.to(wider[tensor.dtype])
    return tensor.resolve_conj().numpy()


def differences(mine: Any, theirs: Any, *, values: bool = True, strides: bool = True) -> Iterator[str]:
    """What distinguishes a result of Rushlight from torch's."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(mine, rushlight.Tensor):
            yield f"{type(mine).__name__} instead of a tensor"
        elif str(mine.dtype) != str(theirs.dtype):
            yield f"dtype {mine.dtype}, torch {theirs.dtype}"
        elif tuple(mine.shape) != tuple(theirs.shape):
            yield f"shape {tuple(mine.shape)}, torch {tuple(theirs.shape)}"
        elif str(mine.layout) != str(theirs.layout):
            yield f"layout {mine.layout}, torch {theirs.layout}"
        else:
            if values and theirs.device.type == "cpu" and theirs.numel():
                yield from value_differences(array_of(mine), numpy_of(theirs), str(theirs.dtype)[6:])
            if strides and theirs.numel() > 1 and layout(mine) != layout(theirs):
                yield f"strides {mine.stride()}, torch {theirs.stride()} for shape {tuple(theirs.shape)}"
    elif isinstance(theirs, (list, tuple)) and not isinstance(theirs, torch.Size):
        if type(theirs).__module__ == "torch.return_types":
            fields, named_fields = type(theirs).__match_args__, getattr(type(mine), "__match_args__", ())
            if tuple(fields) != tuple(named_fields):
                yield f"fields {named_fields}, torch {fields}"
        elif type(theirs).__name__ != type(mine).__name__:
            yield f"{type(mine).__name__}, torch {type(theirs).__name__}"
        if len(mine) != len(theirs):
            yield f"{len(mine)} results, torch {len(theirs)}"
        else:
            for a, b in zip(mine, theirs):
                yield from differences(a, b, values=values, strides=strides)
    elif isinstance(theirs, (torch.Size, torch.dtype)):
        if str(mine) != str(theirs):
            yield f"{mine}, torch {theirs}"
    elif type(mine) is not type(theirs):
        yield f"{type(mine).__name__}, torch {type(theirs).__name__}"
    elif values and theirs is not None:
        yield from value_differences(np.asarray(mine), np.asarray(theirs), "float32")


def tied_differences(mine: Any, theirs: Any) -> Iterator[str]:
    if isinstance(theirs, tuple):
        yield from differences(mine[:1], theirs[:1])
        mine, theirs = mine[1], theirs[1]
    yield from differences(mine, theirs, values=theirs.dtype != torch.int64)


def layout(tensor: Any) -> list[int]:
    """The strides that mean something: those of dimensions longer than one."""
    return [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1]


def value_differences(mine: np.ndarray, theirs: np.ndarray, dtype: str) -> Iterator[str]:
    tolerance = TOLERANCE.get(dtype, 0.0)
    with np.errstate(all="ignore"):
        if np.iscomplexobj(theirs):
            same = near(mine, theirs, tolerance) | (
                near(mine.real, theirs.real, tolerance) & near(mine.imag, theirs.imag, tolerance)
            )
        else:
            same = near(mine, theirs, tolerance)
    if not same.all():
        place = np.unravel_index(np.argmin(same), same.shape) if same.ndim else ()
        yield (
            f"{same.size - same.sum()} of {same.size} values differ, first at {tuple(map(int, place))}: "
            f"{mine[place]}, torch {theirs[place]}"
        )


def near(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """Equal within the tolerance, or by less than rounding errors of the largest element."""
    same = a == b
    if a.dtype.kind == "b":
        return same
    if a.dtype.kind in "fc":
        same |= np.isnan(a) & np.isnan(b)
    if tolerance:
        size = np.abs(b)
        largest = np.max(size, where=np.isfinite(size), initial=0.0)
        same |= np.abs(a - b) <= tolerance * (1 + size) + EPSILONS[tolerance] * largest
    return same


# --- one form of one operation ------------------------------------------------------------------------------


def samples(op: Any, dtype: str, count: int | None, requires_grad: bool = False) -> Iterator[Any]:
    """What op.sample_inputs gives, without its look at the stack for every sample: half of all the time."""
    _seed(0)
    inputs = iter(op.sample_inputs_func(op, "cpu", getattr(torch, dtype), requires_grad))
    for _ in range(count) if count is not None else itertools.count():
        _seed(SEED)
        try:
            yield next(inputs)
        except StopIteration:
            return


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)  # of this device alone
    random.seed(seed)
    np.random.seed(seed)


def first_sentence(error: BaseException) -> str:
    """The words of an error up to the end of its first sentence, without addresses and places."""
    text = str(error).split("\n")[0].strip()
    return re.split(r"(?<=[a-z\])'\"`0-9])\. ", text)[0].rstrip(". ")


def attempt(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **kwargs), None
    except AttributeError as error:
        missing = re.search(r"(?:module 'rushlight|'Tensor' object).* has no attribute '(\w+)'", str(error))
        if missing:
            raise Absent(missing[1]) from error
        return None, error
    except (*REFUSALS, ArithmeticError, AssertionError, KeyError) as error:
        return None, error


def supported(op: Any, form: str, dtype: str) -> bool:
    """Whether torch claims this form of the operation in this dtype."""
    if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
        return False
    if form == "method":
        return op.method_variant is not None
    if form == "inplace":
        return op.inplace_variant is not None
    if form == "out":
        return op.supports_out
    if form == "errors":
        return op.error_inputs_func is not None and dtype == "float32"
    if form == "grad":
        return op.supports_autograd and getattr(torch, dtype) in op.supported_backward_dtypes("cpu")
    if form == "gradgrad":
        return op.supports_gradgrad and supported(op, "grad", dtype)
    if form == "forward":
        return op.supports_forward_ad and supported(op, "grad", dtype)
    if form == "vmap":  # in one dtype: mapping is the same in all
        taken = op.supported_dtypes("cpu")
        return dtype == next(name for name in dtypes_of(form) if getattr(torch, name) in taken)
    return True


def dtypes_of(form: str) -> tuple[str, ...]:
    if form == "errors":
        return ("float32",)
    if form == "vmap":
        return ("float64", "int64", "complex128")
    return GRAD_DTYPES if form in ("grad", "gradgrad", "forward") else DTYPES


def check(entry: str, form: str, dtype: str, count: int | None = None) -> Iterator[str]:
    """What differs between the libraries; each line begins with the sample's number."""
    op = ENTRIES[entry]
    if not supported(op, form, dtype):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "errors":
            yield from check_errors(op, count)
            return
        run = {"grad": check_gradients, "gradgrad": check_gradients, "forward": check_forward}.get(
            form, check_call
        )
        if form == "vmap":
            run = _check_vmap(count)
        differentiable = form in ("grad", "gradgrad", "forward")
        for number, sample in enumerate(samples(op, dtype, count, differentiable)):
            try:
                for problem in run(op, form, sample):
                    yield f"{number}: {problem}    {shorten(sample)}"
            except Unfit:
                continue
            except Absent as absent:
                yield f"{ABSENT} {absent}"
                return


def _check_vmap(count: int | None) -> Any:
    """Each sample in another way, or in every one."""
    from opdb_vmap import WAYS, check_vmap

    turns = itertools.count()

    def run(op: Any, form: str, sample: Any) -> Iterator[str]:
        for way in WAYS if count is None else [WAYS[next(turns) % len(WAYS)]]:
            for problem in check_vmap(op, sample, way):
                yield f"{problem} ({way})"

    return run


def shorten(sample: Any) -> str:
    def show(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return f"<{str(item.dtype)[6:]}{list(item.shape)}>"
        if isinstance(item, (list, tuple)):
            return type(item)(map(show, item)) if type(item) in (list, tuple) else item
        return item

    kwargs = "".join(f", {name}={show(value)}" for name, value in sample.kwargs.items())
    return f"({show(sample.input)}, {', '.join(str(show(item)) for item in sample.args)}{kwargs})"[:300]


def check_call(op: Any, form: str, sample: Any) -> Iterator[str]:
    carry = Carrier()
    theirs_args = (sample.input, *sample.args)
    mine_args = carry(theirs_args)
    kwargs = carry(dict(sample.kwargs))
    if form == "method":
        # Such as Tensor.add; op.method_variant may be a function around it.
        function, mine = op.method_variant, ours(op.method_variant, f"Tensor.{op.name}")
    elif form == "inplace":
        if getattr(sample, "broadcasts_input", False):
            return
        name = getattr(op.inplace_variant, "__name__", op.name)
        function, mine = op.inplace_variant, ours(op.inplace_variant, f"Tensor.{name}")
    else:
        function, mine = op.op, ours(op.op, op.name)
    if form == "out":
        yield from check_out(
            function, mine, theirs_args, mine_args, sample.kwargs, kwargs,
            op.name not in UNDEFINED, op.name in TIED, op.name in PHASE,
        )  # fmt: skip
        return
    torch.manual_seed(0)
    theirs, refusal = attempt(function, *theirs_args, **sample.kwargs)
    rushlight.manual_seed(0)
    result, error = attempt(mine, *mine_args, **kwargs)
    if refusal is not None:
        if error is None and form != "inplace":
            yield f"accepted, torch: {type(refusal).__name__}: {first_sentence(refusal)}"
        return
    if error is not None:
        yield f"{type(error).__name__}: {first_sentence(error)}"
        return
    if op.name in PHASE:
        result, theirs = (
            [t.abs() for t in tensors_in(r, lib.Tensor)] for r, lib in ((result, rushlight), (theirs, torch))
        )
    if op.name in TIED and not sample.kwargs.get("stable"):
        yield from tied_differences(result, theirs)
    else:
        yield from differences(result, theirs, values=op.name not in UNDEFINED)
    if op.name in PHASE:
        return
    if form == "inplace":
        if isinstance(theirs, torch.Tensor) and theirs is sample.input and result is not mine_args[0]:
            yield "does not return the tensor itself"
        return
    yield from aliasing(result, theirs, mine_args, theirs_args)
    if form == "function":
        yield from aliases(op, mine_args, kwargs, theirs_args, sample.kwargs)


def aliases(op: Any, args: Any, kwargs: Any, theirs_args: Any, theirs_kwargs: Any) -> Iterator[str]:
    """Other names of the operation do the same, or what torch's own do."""
    for alias in op.aliases:
        try:
            rushlight.manual_seed(0)
            _, error = attempt(named(alias.name.removeprefix("torch.")), *args, **kwargs)
        except Absent as absent:
            yield f"no alias {absent}"
            continue
        if error is not None:
            _, expected = attempt(alias.op, *theirs_args, **theirs_kwargs)
            if type(error) is not type(expected) or first_sentence(error) != first_sentence(expected):
                yield f"alias {alias.name}: {type(error).__name__}: {first_sentence(error)}"


def aliasing(result: Any, theirs: Any, args: Any, theirs_args: Any) -> Iterator[str]:
    """A result shares memory with the first argument here if it does there."""
    if not isinstance(theirs, torch.Tensor) or not isinstance(theirs_args[0], torch.Tensor):
        return
    if not theirs.numel() or not theirs_args[0].numel() or theirs.device.type == "meta":
        return
    there = theirs.untyped_storage().data_ptr() == theirs_args[0].untyped_storage().data_ptr()
    here = result.untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr()
    if here != there:
        yield "a view, torch copies" if here else "a copy, torch makes a view"


def check_out(
    function: Any,
    mine: Any,
    theirs_args: Any,
    args: Any,
    theirs_kwargs: Any,
    kwargs: Any,
    values: bool,
    tied: bool,
    phase: bool,
) -> Iterator[str]:
    """out= with fitting tensors, and with a noncontiguous one; the results stay in the given memory."""
    torch.manual_seed(0)
    expected, refusal = attempt(function, *theirs_args, **theirs_kwargs)
    if refusal is not None:
        return
    several = isinstance(expected, (list, tuple))
    wanted = tuple(expected) if several else (expected,)
    if not all(isinstance(item, torch.Tensor) for item in wanted):
        return
    for spread in (False, True):
        if spread and not wanted[0].numel():
            continue
        # A noncontiguous output is every other element of a longer one.
        outs, places, theirs_outs = [], [], []
        for item in wanted:
            shape = (*item.shape, 2) if spread else tuple(item.shape)
            base, theirs_base = (lib.zeros(shape, dtype=dtype) for lib, dtype in
                                 ((rushlight, our_dtype(item.dtype)), (torch, item.dtype)))  # fmt: skip
            outs.append(base.select(-1, 0) if spread else base)
            theirs_outs.append(theirs_base.select(-1, 0) if spread else theirs_base)
            places.append(base.data_ptr())
        torch.manual_seed(0)
        _, refusal = attempt(
            function, *theirs_args, **theirs_kwargs, out=tuple(theirs_outs) if several else theirs_outs[0]
        )
        if refusal is not None:
            continue
        rushlight.manual_seed(0)
        result, error = attempt(mine, *args, **kwargs, out=tuple(outs) if several else outs[0])
        if error is not None:
            yield f"out=: {type(error).__name__}: {first_sentence(error)}"
            return
        if not several and result is not outs[0]:
            yield "out= is not what is returned"
        stays = [out.data_ptr() == place for out, place in zip(outs, places)]
        for out, item, stayed in zip(outs, theirs_outs, stays):
            if phase:
                out, item = out.abs(), item.abs()
            for problem in differences(out, item, values=values and not tied, strides=False):
                yield f"out=: {problem}"
            if out.numel() and not phase and not stayed:
                yield "out= moved to other memory"
    wrong = rushlight.zeros(wanted[0].shape, dtype=rushlight.int64 if wanted[0].is_floating_point() else
                            rushlight.float64)  # fmt: skip
    theirs = torch.zeros(wanted[0].shape, dtype=getattr(torch, str(wrong.dtype).split(".")[1]))
    if not several:
        torch.manual_seed(0)
        there, refusal = attempt(function, *theirs_args, **theirs_kwargs, out=theirs)
        rushlight.manual_seed(0)
        _, error = attempt(mine, *args, **kwargs, out=wrong)
        if (refusal is None) != (error is None):
            yield (
                f"out= of dtype {wrong.dtype}: {error and first_sentence(error)}, "
                f"torch: {refusal and first_sentence(refusal)}"
            )
        elif refusal is None:
            for problem in differences(wrong, there, values=values, strides=False):
                yield f"out= of dtype {wrong.dtype}: {problem}"


def check_errors(op: Any, count: int | None) -> Iterator[str]:
    torch.manual_seed(0)
    function = op.op
    for number, item in enumerate(itertools.islice(op.error_inputs("cpu"), count)):
        sample = item.sample_input
        try:
            mine = ours(op.op, op.name)
            carry = Carrier()
            args, kwargs = carry((sample.input, *sample.args)), carry(dict(sample.kwargs))
            _, error = attempt(mine, *args, **kwargs)
        except Unfit:
            continue
        except Absent as absent:
            yield f"{ABSENT} {absent}"
            return
        _, refusal = attempt(function, sample.input, *sample.args, **sample.kwargs)
        if refusal is None:
            continue
        here = f"{type(error).__name__}: {first_sentence(error)}" if error is not None else "accepted"
        there = f"{type(refusal).__name__}: {first_sentence(refusal)}"
        if here != there:
            yield f"{number}: {here} | torch: {there}    {shorten(sample)}"


# --- derivatives --------------------------------------------------------------------------------------------


def tensors_in(result: Any, kind: Any) -> list[Any]:
    if isinstance(result, kind):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in tensors_in(item, kind)]
    return []


def cotangent(number: int, shape: Any, dtype: str) -> np.ndarray:
    numbers = np.random.default_rng(number).uniform(-1, 1, (2, *shape))
    value = numbers[0] + 1j * numbers[1] if dtype.startswith("complex") else numbers[0]
    return value.astype(dtype)


def derivatives(
    lib: Any, function: Any, process: Any, args: Any, kwargs: Any, leaves: Any, second: bool
) -> Any:
    """The gradients of an operation's outputs, and those of these gradients."""
    lib.manual_seed(0)
    result = function(*args, **kwargs)
    if process is not None:
        result = process(result)
    outputs = [out for out in tensors_in(result, lib.Tensor) if out.requires_grad]
    if not outputs or not leaves:
        return None

    def upstream(number: int, like: Any) -> Any:
        dtype = str(like.dtype).split(".")[1]
        return lib.from_numpy(np.asarray(cotangent(number, tuple(like.shape), dtype)))

    grads = [upstream(number, out) for number, out in enumerate(outputs)]
    if second:
        grads = [grad.requires_grad_() for grad in grads]
    first = lib.autograd.grad(outputs, leaves, grads, allow_unused=True, create_graph=second)
    if not second:
        return first
    outputs = [grad for grad in first if grad is not None and grad.requires_grad]
    if not outputs:
        return None
    more = [upstream(100 + number, out) for number, out in enumerate(outputs)]
    return lib.autograd.grad(outputs, [*leaves, *grads], more, allow_unused=True)


def wrapped(op: Any) -> tuple[Any, Any]:
    """The operation in both libraries, made a function of unrestricted inputs (symmetric ones, say)."""
    wrapper = op.gradcheck_wrapper
    if wrapper is None:
        return op.op, ours(op.op, op.name)
    mine = seeded if wrapper.__name__ == "wrapper_set_seed" else rebind(wrapper)
    return functools.partial(wrapper, op.op), functools.partial(mine, ours(op.op, op.name))


def check_gradients(op: Any, form: str, sample: Any) -> Iterator[str]:
    carry = Carrier()
    theirs_args = (sample.input, *sample.args)
    args, kwargs = carry(theirs_args), carry(dict(sample.kwargs))
    function, mine = wrapped(op)
    process = sample.output_process_fn_grad
    theirs_leaves = [leaf for _, leaf in carry.leaves]
    leaves = [leaf for leaf, _ in carry.leaves]
    second = form == "gradgrad"
    theirs, refusal = attempt(
        derivatives, torch, function, process, theirs_args, sample.kwargs, theirs_leaves, second
    )
    mine_process = rebind(process) if isinstance(process, types.FunctionType) else process
    result, error = attempt(derivatives, rushlight, mine, mine_process, args, kwargs, leaves, second)
    if refusal is not None:
        return
    if error is not None:
        yield f"{type(error).__name__}: {first_sentence(error)}"
    elif theirs is None or result is None:
        felt = [t for t in (theirs or result or ()) if t is not None and (not second or is_felt(t))]
        if (theirs is None) != (result is None) and felt:
            yield f"{'no derivative' if result is None else 'a derivative'}, torch differs"
    else:
        for a, b in zip(result, theirs):
            # None and zeros mean the same one derivative further.
            if a is None or b is None:
                there = b if a is None else a
                if there is not None and (not second or is_felt(there)):
                    yield f"gradient is {'None' if a is None else 'a tensor'}, torch differs"
                continue
            yield from differences(a, b, strides=False)


def is_felt(tensor: Any) -> bool:
    """Whether a second derivative is more than rounding."""
    array = array_of(tensor) if isinstance(tensor, rushlight.Tensor) else numpy_of(tensor)
    return bool(array.size) and not bool((np.abs(array) < 1e-7).all())


def check_forward(op: Any, form: str, sample: Any) -> Iterator[str]:
    """Forward mode against torch's: the tangents of the outputs for given tangents of the inputs."""
    named("autograd.forward_ad")
    carry = Carrier(requires_grad=False)
    grads = Carrier()
    theirs_args = (sample.input, *sample.args)
    grads((theirs_args, dict(sample.kwargs)))
    theirs_leaves = [leaf for _, leaf in grads.leaves]
    pairs: list[Any] = []
    results = []
    process = sample.output_process_fn_grad
    for lib, function in zip((torch, rushlight), wrapped(op), strict=True):
        pairs = []
        with lib.autograd.forward_ad.dual_level():

            def dual(item: Any, lib: Any = lib, pairs: Any = pairs) -> Any:
                if isinstance(item, torch.Tensor):
                    primal = carry(item) if lib is rushlight else item.detach()
                    number = next((n for n, leaf in enumerate(theirs_leaves) if leaf is item), None)
                    if number is None:
                        return primal
                    dtype = str(item.dtype)[6:]
                    tangent = lib.from_numpy(np.asarray(cotangent(number, tuple(item.shape), dtype)))
                    return lib.autograd.forward_ad.make_dual(primal, tangent)
                if type(item) in (list, tuple):
                    return type(item)(map(dual, item))
                return carry(item) if lib is rushlight else item

            args = dual(theirs_args)
            kwargs = {name: dual(value) for name, value in sample.kwargs.items()}
            lib.manual_seed(0)
            result, error = attempt(function, *args, **kwargs)
            if error is None and process is not None:
                result, error = attempt(rebind(process) if lib is rushlight else process, result)
            tangents = None
            if error is None:
                tangents = [
                    lib.autograd.forward_ad.unpack_dual(out).tangent for out in tensors_in(result, lib.Tensor)
                ]
            results.append((tangents, error))
    (theirs, refusal), (mine, error) = results
    if refusal is not None:
        return
    if error is not None:
        yield f"{type(error).__name__}: {first_sentence(error)}"
        return
    for a, b in zip(mine, theirs):
        if a is None or b is None:
            # No tangent and a tangent of zeros mean the same.
            if (a is None) != (b is None) and is_felt(b if a is None else a):
                yield f"tangent is {'None' if a is None else 'a tensor'}, torch differs"
            continue
        yield from differences(a, b, strides=False)
