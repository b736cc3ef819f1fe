"""Small methods and attributes of tensors: what they are, where they live, element-by-element callbacks."""

from __future__ import annotations

import math
import operator

from rushlight import _C
from rushlight._versions import uncounted
from rushlight.ops._public import (
    attribute,
    function,
    method,
    public,
    stumble,
    type_name,
    wrap_dim,
    write_out,
)
from rushlight.ops.layout import channels_last, channels_last_3d, is_arranged, memory_format


@public
def is_signed(input):
    """Whether the dtype has negative numbers.

    >>> rushlight.ones(1).is_signed()
    True
    """
    return input.dtype.is_signed


@public
def is_distributed(input):
    """Whether the tensor is spread over processes; it never is."""
    return False


@function
def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@function
def get_device(input):
    """The index of the GPU a tensor is on, -1 on the CPU."""
    return input.get_device()


@function
def is_storage(obj):
    """Whether an object is a storage.

    >>> rushlight.is_storage(rushlight.ones(1).untyped_storage())
    True
    """
    from rushlight.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


@method
def pin_memory(self, device=None):
    """A copy in page-locked memory, for which a GPU is needed."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


@method
def is_shared(self):
    """Whether other processes can see the memory.

    >>> rushlight.ones(2).share_memory_().is_shared()
    True
    """
    return self.is_cuda or _C.shared_memory_of(self) is not None


@method
def share_memory_(self):
    """Moves the memory to where other processes reach it: sent to one, the tensor is the same memory there.

    >>> t = rushlight.ones(2)
    >>> t.share_memory_() is t
    True
    """
    if not self.is_cuda:  # a GPU's memory is not moved
        from rushlight.multiprocessing._memory import share

        share(self)
    return self


@method
def _fix_weakref(self):
    """Nothing: weak references here are always whole."""


@method
def storage_type(self):
    """The class of this tensor's typed storage, by its old name.

    >>> rushlight.ones(1).storage_type()
    <class 'torch.FloatStorage'>
    """
    from rushlight.storage import LEGACY, STORAGE_NAMES

    return LEGACY.get(STORAGE_NAMES.get(self.dtype))


@function
def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False):
    """A tensor of the first `size` elements of a file, mapped into memory. With shared=True writes go to the
    file, which is made as large as needed; otherwise they stay in memory.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     rushlight.from_file(file.name, shared=True, size=2).fill_(1)
    tensor([1., 1.])
    """
    from rushlight.storage import UntypedStorage

    if device is not None and _C.as_device(device).type != "cpu":
        raise NotImplementedError(f"from_file: a file is mapped to main memory, not to {device}")
    dtype = dtype or _C.get_default_dtype()
    storage = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return _C.on_storage(storage._bytes, dtype, 0, (size,), (1,))


@method
def module_load(self, other, assign=False):
    """What ``load_state_dict`` puts in the place of ``self`` when tensors are to be swapped.

    >>> rushlight.zeros(2).module_load(rushlight.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()


def _positions(dim, ndim):
    given = [wrap_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for d in given:
        if given.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return sorted(given) if ndim else []


_UINT64 = "Expected result to be of dtype uint64, but got {out}"


@public
def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):
    """A checksum: the elements as 64-bit floats or integers, joined by exclusive or, as uint64.

    >>> rushlight.hash_tensor(rushlight.tensor([[1, 2], [4, 8]]), 1)
    tensor([ 3, 12], dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    kind = str(input.dtype)[6:]
    if input.dtype.is_complex or kind.startswith("float8") or kind in ("uint16", "uint32", "uint64"):
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{type_name(input.dtype)}'")
    everything = dim in ((), [], None)
    over = list(range(input.ndim)) if everything else _positions(dim, input.ndim)
    if input.numel() == 0:
        if everything:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        for d in over:
            if input.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    words = _C.detach(input).to(_C.float64 if input.dtype.is_floating_point else _C.int64)
    words = words.contiguous().resolve_neg().view(_C.int64)
    if input.ndim:
        rest = [d for d in range(input.ndim) if d not in over]
        shape = (
            [1 if d in over else n for d, n in enumerate(input.shape)]
            if keepdim
            else [input.shape[d] for d in rest]
        )
        length = math.prod(input.shape[d] for d in over)
        words = words.permute(*rest, *over).reshape(*(input.shape[d] for d in rest), length)
        while words.shape[-1] > 1:
            half = words.shape[-1] // 2
            words, odd = words[..., :half] ^ words[..., half : 2 * half], words[..., 2 * half :]
            if odd.shape[-1]:
                words[..., :1] ^= odd
        words = words.reshape(shape)
    result = words.view(_C.uint64)
    return result if out is None else write_out(out, result, exact=_UINT64)


@method
def dim_order(self, *, ambiguity_check=False):
    """The dimensions in the order in which they lie in memory, the outermost first.

    >>> rushlight.empty(2, 3).t().dim_order()
    (1, 0)
    """
    formats = ()
    if not isinstance(ambiguity_check, bool):
        formats = ambiguity_check
        if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    stumble(self, "is_sparse")
    strides = self.stride()
    several = 1 in self.shape or any(map(operator.eq, strides, strides[1:]))  # orders describe this layout
    if ambiguity_check is not False and several and sum(is_arranged(self, f) for f in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
            "formats."
        )
    if self.is_contiguous():
        return tuple(range(self.dim()))
    if is_arranged(self, channels_last) or is_arranged(self, channels_last_3d):
        return (0, *range(2, self.dim()), 1)
    order = list(reversed(range(self.dim())))
    for i in range(1, len(order)):
        # Inwards past larger steps; a step of zero says nothing and is passed over.
        at = i
        for inner in reversed(range(i)):
            d, e = order[at], order[inner]
            silent = 0 in (strides[d], strides[e])
            if not silent and strides[e] < strides[d]:
                break
            if not silent and (strides[e], self.size(e)) > (strides[d], self.size(d)):
                order[at], order[inner], at = e, d, inner
            elif ambiguity_check:
                raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(reversed(order))


@method
def const_data_ptr(self):
    """The address of the first element."""
    return self.data_ptr()


def _callback(self, others, callable, name):
    """Writes callable(element, ...) to every element of this tensor."""
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )
    for place, other in zip(("'other'",) if len(others) == 1 else ("argument 'x'", "argument 'y'"), others):
        if other.dtype != self.dtype:
            kinds = self.type(), other.type()
            raise TypeError(f"{name}: expected {kinds[0]} for {place} (got {kinds[1]})")
    lists = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    values = [callable(*elements) for elements in zip(*lists)]
    from rushlight.autograd.grad_mode import inference_mode

    # Torch does not count this write, nor refuse it outside of inference mode; that it happened is noted like
    # one to .data.
    with inference_mode() if self.is_inference() else uncounted(self):
        self.copy_(_C.from_data(values, self.dtype, None).reshape(self.shape) if values else self)
    _C.silent_writes(self, _C.silent_writes(self) + 1)
    return self


@method
def apply_(self, callable):
    """Replaces every element by callable(element); slow, as every Python loop.

    >>> rushlight.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    return _callback(self, (), callable, "apply_")


@method
def map_(self, tensor, callable):
    """Replaces every element by callable(element, the one of `tensor`).

    >>> rushlight.tensor([1., 2.]).map_(rushlight.tensor([3., 4.]), max)
    tensor([3., 4.])
    """
    return _callback(self, (tensor,), callable, "map_")


@method
def map2_(self, x, y, callable):
    """Replaces every element by callable(element, the one of x, the one of y).

    >>> rushlight.tensor([1.]).map2_(rushlight.tensor([3.]), rushlight.tensor([2.]), max)
    tensor([3.])
    """
    return _callback(self, (x, y), callable, "map2_")


@method
def hardshrink(self, lambd=0.5):
    """0 between -lambd and lambd, the element itself elsewhere."""
    from rushlight.nn.functional import hardshrink

    return hardshrink(self, lambd)


@method
def prelu(self, weight):
    """The element where positive, weight times it elsewhere."""
    from rushlight.nn.functional import prelu

    return prelu(self, weight)


@method
def reinforce(self, reward):
    """Was removed from torch."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


# ---- what there is not


def _absent(name, lacking):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{name}: Rushlight does not have {lacking}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not implemented: Rushlight does not have {lacking}."
    method(refuse)


def _only_nested(name):
    def refuse(self, *args, **kwargs):
        from rushlight._sparse.table import refuse

        refuse(f"aten::{name}", "CPU")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Not implemented: only nested tensors have it (see torch.nested)."
    method(refuse)


for _each in ("int_repr", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points",
              "q_scale", "q_zero_point", "qscheme"):  # fmt: skip
    _absent(_each, "quantised tensors")
for _each in ("to_padded_tensor", "_nested_tensor_size", "_nested_tensor_storage_offsets",
              "_nested_tensor_strides"):  # fmt: skip
    _only_nested(_each)
for _each in ("_philox_normal_", "_philox_uniform_"):
    _absent(_each, "the generator Philox")
for _each in ("_autocast_to_full_precision", "_autocast_to_reduced_precision"):
    _absent(_each, "TorchScript's autocast")
for _each in ("_lazy_clone", "slice_inverse"):
    _absent(_each, "copies made at the first write, nor functionalisation")
_absent("record_stream", "streams of a GPU")


@method
def dequantize(self):
    """The numbers themselves, which are not quantised.

    >>> rushlight.ones(2).dequantize()
    tensor([1., 1.])
    """
    return self.to(_C.float32)


def _other_device(kind, error, sentence):
    def refuse(self, device=None, non_blocking=False, **kwargs):
        raise error(sentence)  # a new one: an error keeps all the tracebacks it was ever raised with

    refuse.__name__ = refuse.__qualname__ = kind
    refuse.__doc__ = f"Would move this tensor to a device of the kind {kind}."
    method(refuse)


_other_device("xpu", AssertionError, "Torch not compiled with XPU enabled")
_other_device("mtia", AssertionError, "Torch not compiled with MTIA enabled.")
_other_device("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")


def _removed(name):
    def refuse(self, *args, **kwargs):
        import rushlight

        return getattr(rushlight, name)(self, *args, **kwargs)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Was removed from torch, like torch.{name}."
    method(refuse)


def _same_as(name):
    def forward(self, *args, **kwargs):
        import rushlight

        return getattr(rushlight, name)(self, *args, **kwargs)

    forward.__name__ = forward.__qualname__ = name
    forward.__doc__ = f"torch.{name} of this tensor."
    method(forward)


for _each in (
    "_addmm_activation",
    "_conj",
    "_conj_physical",
    "_is_all_true",
    "_is_any_true",
    "_is_zerotensor",
    "_neg_view",
):
    _same_as(_each)
for _each in ("eig", "lstsq", "solve", "symeig"):
    _removed(_each)

for _kind in ("xla", "mps", "xpu", "ipu", "maia", "mtia", "vulkan"):
    attribute(f"is_{_kind}", lambda self: False, doc=f"Whether this tensor is on {_kind}; no.")
