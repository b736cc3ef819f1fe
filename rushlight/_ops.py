"""`torch.ops`: operations by torch's internal names, as handles that can be compared, listed and called.

`torch.ops.aten.mm` is a packet, `torch.ops.aten.mm.default` an overload of it. They are what a
TorchDispatchMode is told about and what policies of selective checkpoints decide on. A handle calls the
public function of its name; inside a mode, which is told about a primitive, it runs that primitive.
"""

from __future__ import annotations

import threading
import types
from typing import Any

from rushlight import _C

# Overloads beyond `default` and `out`, as torch names them.
_OVERLOADS = """
_foreach_add:List,Scalar,ScalarList,Tensor acos:default,Scalar acosh:default,Scalar
add:default,Scalar,Tensor add_:Scalar,Tensor addmm:default,dtype all:default,dim,dims
angle:default,Scalar any:default,dim,dims arange:default,start,start_step argsort:default,stable
asin:default,Scalar asinh:default,Scalar atan:default,Scalar atanh:default,Scalar
atleast_1d:default,Sequence atleast_2d:default,Sequence atleast_3d:default,Sequence
backward:default,TensorList baddbmm:default,dtype bartlett_window:default,periodic
bernoulli:default,Tensor,p bernoulli_:Tensor bitwise_and:Scalar,Scalar_Tensor,Tensor
bitwise_and_:Scalar,Tensor bitwise_left_shift:Scalar_Tensor,Tensor,Tensor_Scalar
bitwise_left_shift_:Tensor,Tensor_Scalar bitwise_or:Scalar,Scalar_Tensor,Tensor
bitwise_or_:Scalar,Tensor bitwise_right_shift:Scalar_Tensor,Tensor,Tensor_Scalar
bitwise_right_shift_:Tensor,Tensor_Scalar bitwise_xor:Scalar,Scalar_Tensor,Tensor
bitwise_xor_:Scalar,Tensor blackman_window:default,periodic bmm:default,dtype bucketize:Scalar,Tensor
ceil:default,Scalar clamp:default,Tensor clamp_:default,Tensor clamp_max:default,Tensor
clamp_max_:default,Tensor clamp_min:default,Tensor clamp_min_:default,Tensor clip:default,Tensor
clip_:default,Tensor conv1d:default,padding conv2d:default,padding conv3d:default,padding
conv_transpose2d:input conv_transpose3d:input
copy:default,Dict_Tensor,Dict_bool,Dict_complex,Dict_float,Dict_str copy_:default,Tensor
copysign:default,Scalar,Tensor copysign_:Scalar,Tensor cos:default,Scalar cosh:default,Scalar
count_nonzero:default,dim_IntList ctc_loss:IntList,Tensor cumulative_trapezoid:dx,x
device:default,with_index div:default,Scalar,Scalar_mode,Tensor,Tensor_mode,out_mode
div_:Scalar,Scalar_mode,Tensor,Tensor_mode divide:Scalar,Scalar_mode,Tensor,Tensor_mode,out_mode
divide_:Scalar,Scalar_mode,Tensor,Tensor_mode dsplit:array,int einsum:default,sublist
embedding_bag:default,padding_idx empty:memory_format
eq:default,Scalar,Tensor,Tensor_list,bool_list,device,enum,float_list,int_list,str_list
eq_:Scalar,Tensor erf:default,Scalar erfc:default,Scalar exp:default,Scalar expm1:default,Scalar
eye:default,m fill:Scalar,Tensor fill_:Scalar,Tensor flatten:using_ints
float_power:Scalar,Tensor_Scalar,Tensor_Tensor float_power_:Scalar,Tensor floor:default,Scalar
floor_divide:default,Scalar floor_divide_:Scalar,Tensor fmod:default,Scalar,Tensor fmod_:Scalar,Tensor
fractional_max_pool2d:default,output fractional_max_pool3d:default,output frexp:default,Tensor
frobenius_norm:dim gcd:default,int ge:default,Scalar,Tensor ge_:Scalar,Tensor
gelu_backward:default,grad_input geqrf:default,a
gradient:array,scalararray,scalarint,scalarrayarray,scalarrayint,tensorarray,tensorarrayint
greater:Scalar,Tensor greater_:Scalar,Tensor greater_equal:Scalar,Tensor greater_equal_:Scalar,Tensor
gru:data,input gt:default,Scalar,Tensor gt_:Scalar,Tensor
hamming_window:default,periodic,periodic_alpha,periodic_alpha_beta hann_window:default,periodic
histogram:bin_ct,bins_tensor histogramdd:default,TensorList_bins,int_bins hsplit:array,int
index:Tensor,Tensor_hacked_twin,list_Tensor,list_bool,list_float,list_str
index_fill:int_Scalar,int_Tensor index_fill_:int_Scalar,int_Tensor index_put:default,hacked_twin
index_put_:default,hacked_twin is_contiguous:default,memory_format
isin:Scalar_Tensor,Tensor_Scalar,Tensor_Tensor kaiser_window:default,beta,periodic
kthvalue:default,values ldexp:default,Tensor le:default,Scalar,Tensor le_:Scalar,Tensor
leaky_relu_backward:default,grad_input lerp:Scalar,Tensor lerp_:Scalar,Tensor less:Scalar,Tensor
less_:Scalar,Tensor less_equal:Scalar,Tensor less_equal_:Scalar,Tensor lgamma:default,Scalar
linalg_cholesky_ex:default,L linalg_cond:default,p_str linalg_eigh:default,eigvals
linalg_inv_ex:default,inverse linalg_matrix_norm:default,str_ord
linalg_matrix_rank:default,atol_rtol_float,atol_rtol_tensor,out_tol_tensor,tol_tensor
linalg_norm:default,ord_str
linalg_pinv:default,atol_rtol_float,atol_rtol_tensor,out_rcond_tensor,rcond_tensor linalg_svd:default,U
linspace:default,Scalar_Tensor,Tensor_Scalar,Tensor_Tensor
log:default,Scalar,complex_complex,float_float log10:default,Scalar log1p:default,Scalar log_softmax:int
logspace:default,Scalar_Tensor,Tensor_Scalar,Tensor_Tensor lstm:data,input lt:default,Scalar,Tensor
lt_:Scalar,Tensor masked_fill:Scalar,Tensor masked_fill_:Scalar,Tensor max:default,dim,dim_max,other
mean:default,dim median:default,dim,dim_values meshgrid:default,indexing min:default,dim,dim_min,other
mm:default,dtype mode:default,values moveaxis:int,intlist movedim:int,intlist
mul:default,Scalar,Tensor,left_t,right_ mul_:Scalar,Tensor multiply:Scalar,Tensor
multiply_:Scalar,Tensor nanmedian:default,dim,dim_values nanquantile:default,scalar
narrow:default,Tensor
ne:default,Scalar,Tensor,Tensor_list,bool_list,device,enum,float_list,int_list,str_list
ne_:Scalar,Tensor neg:default,Scalar norm:Scalar,ScalarOpt_dim,ScalarOpt_dim_dtype,ScalarOpt_dtype
normal:Tensor_Tensor,Tensor_float,float_Tensor,float_float not_equal:Scalar,Tensor
not_equal_:Scalar,Tensor pow:Scalar,Tensor_Scalar,Tensor_Tensor pow_:Scalar,Tensor prod:default,dim_int
qr:default,Q quantile:default,scalar randint:default,low randint_like:default,Tensor,low_dtype
random:default,from,to random_:default,from,to range:default,out_,step
remainder:default,Scalar,Scalar_Tensor,Tensor remainder_:Scalar,Tensor
repeat_interleave:Tensor,self_Tensor result_type:Scalar,Scalar_Tensor,Tensor rnn_relu:data,input
rnn_tanh:data,input round:default,Scalar,decimals round_:default,decimals rsub:Scalar,Tensor
scatter:reduce,src,value,value_reduce scatter_:reduce,src,value,value_reduce scatter_reduce:two
scatter_reduce_:two searchsorted:Scalar,Tensor select:int select_copy:int
set_:default,source_Storage,source_Storage_storage_offset,source_Tensor,source_Tensor_storage_offset
sigmoid_backward:default,grad_input silu_backward:default,grad_input sin:default,Scalar
sinh:default,Scalar size:default,int slice:Tensor slice_copy:Tensor softmax:int
sort:default,Tensor,any,stable,values,values_stable
special_chebyshev_polynomial_t:default,n_scalar,x_scalar
special_chebyshev_polynomial_u:default,n_scalar,x_scalar
special_chebyshev_polynomial_v:default,n_scalar,x_scalar
special_chebyshev_polynomial_w:default,n_scalar,x_scalar
special_hermite_polynomial_h:default,n_scalar,x_scalar
special_hermite_polynomial_he:default,n_scalar,x_scalar
special_laguerre_polynomial_l:default,n_scalar,x_scalar
special_legendre_polynomial_p:default,n_scalar,x_scalar
special_shifted_chebyshev_polynomial_t:default,n_scalar,x_scalar
special_shifted_chebyshev_polynomial_u:default,n_scalar,x_scalar
special_shifted_chebyshev_polynomial_v:default,n_scalar,x_scalar
special_shifted_chebyshev_polynomial_w:default,n_scalar,x_scalar
special_xlog1py:default,other_scalar,self_scalar special_xlogy:default,other_scalar,self_scalar
special_zeta:default,other_scalar,self_scalar split:default,Tensor,sizes split_copy:Tensor
sqrt:default,Scalar squeeze:default,dim,dims squeeze_:default,dim,dims squeeze_copy:default,dim,dims
std:default,correction,dim std_mean:default,correction,dim stft:default,center stride:default,int
sub:default,Scalar,Tensor sub_:Scalar,Tensor subtract:Scalar,Tensor subtract_:Scalar,Tensor
sum:default,dim_IntList svd:default,U sym_size:default,int sym_stride:default,int tan:default,Scalar
tanh:default,Scalar tanh_backward:default,grad_input
tensor_split:indices,sections,tensor_indices_or_sections threshold_backward:default,grad_input
to:device,dtype,dtype_layout,other,prim_Device,prim_dtype,prim_other topk:default,values transpose:int
transpose_copy:int trapezoid:dx,x trapz:dx,x triangular_solve:default,X true_divide:Scalar,Tensor
true_divide_:Scalar,Tensor unbind:int unbind_copy:int unflatten:int unsafe_split:Tensor
upsample_bicubic2d:default,vec upsample_bilinear2d:default,vec upsample_linear1d:default,vec
upsample_nearest1d:default,vec upsample_nearest2d:default,vec upsample_nearest3d:default,vec
upsample_trilinear3d:default,vec values:default,Tensor var:default,correction,dim
var_mean:default,correction,dim view:default,dtype view_copy:default,dtype vsplit:array,int
where:default,Scalar,ScalarOther,ScalarSelf,self
xlogy:OutScalar_Other,OutScalar_Self,OutTensor,Scalar_Other,Scalar_Self,Tensor
xlogy_:Scalar_Other,Tensor
"""

# Primitives that torch knows under another name, and of which overload.
_OF_PRIMITIVE = {
    "add_alpha": "add.Tensor", "sub_alpha": "sub.Tensor", "rsub_number": "rsub.Scalar",
    "pow": "pow.Tensor_Tensor", "pow_scalar": "pow.Tensor_Scalar", "scalar_pow": "pow.Scalar",
    "div_trunc": "div.Tensor_mode", "div_floor": "div.Tensor_mode",
    "clamp": "clamp.Tensor", "clamp_scalar": "clamp.default",
    "clamp_min_scalar": "clamp_min.default", "clamp_max_scalar": "clamp_max.default",
    "lerp": "lerp.Tensor", "lerp_scalar": "lerp.Scalar", "fill": "fill.Tensor", "index": "index.Tensor",
    "sum_dim": "sum.dim_IntList", "mean_dim": "mean.dim", "prod_dim": "prod.dim_int", "max_dim": "max.dim",
    "min_dim": "min.dim", "median_dim": "median.dim", "nanmedian_dim": "nanmedian.dim", "all": "all.dim",
    "any": "any.dim", "var": "var.correction", "std": "std.correction", "var_mean": "var_mean.correction",
    "std_mean": "std_mean.correction", "softmax": "_softmax.default", "log_softmax": "_log_softmax.default",
    "softmax_backward": "_softmax_backward_data.default", "transpose": "transpose.int",
    "log_softmax_backward": "_log_softmax_backward_data.default", "select": "select.int",
    "slice": "slice.Tensor", "squeeze_dim": "squeeze.dim", "squeeze_dims": "squeeze.dims",
    "unbind": "unbind.int", "split": "split.Tensor", "to_dtype": "_to_copy.default",
    "to_device": "_to_copy.default", "contiguous_copy": "clone.default", "where": "where.self",
    "scatter": "scatter.src", "scatter_value": "scatter.value", "scatter_reduce": "scatter_reduce.two",
    "index_fill": "index_fill.int_Tensor", "masked_fill": "masked_fill.Tensor",
    "round_decimals": "round.decimals", "linear_nd": "linear.default", "matmul_nd": "matmul.default",
    "gelu_tanh": "gelu.default", "bernoulli_number": "bernoulli.p", "bernoulli_tensor": "bernoulli.Tensor",
    "embedding_backward": "embedding_dense_backward.default", "random": "random.from",
    "conv_transpose": "convolution.default", "conv_input_gradient": "convolution_backward.default",
    "conv_weight_gradient": "convolution_backward.default", "random_to": "random.to",
    "attention": "scaled_dot_product_attention.default",
}  # fmt: skip
_PUBLIC = {"_softmax": "softmax", "_log_softmax": "log_softmax", "_unsafe_view": "reshape"}


class _Dispatching(threading.local):
    """What a TorchDispatchMode of this thread is being asked about: (handle, primitive, out)."""

    calls: tuple = ()


_dispatching = _Dispatching()


class OpOverload:
    """One overload of an operation: `torch.ops.aten.mm.default`."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket, self._overloadname = packet, overload
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.name()
        self.__module__ = f"torch._ops.{self.namespace}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operation of which this is an overload."""
        return self._overloadpacket

    @property
    def op(self) -> Any:
        """What runs when it is called."""
        return self._overloadpacket.op

    def name(self) -> str:
        """`aten::max.dim`; a default overload is not named."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{ending}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _dispatching.calls:
            handle, primitive, out = _dispatching.calls[-1]
            if handle is self:
                return _C.run_forward(primitive, (*args, *kwargs.values()), out)
        return self._overloadpacket(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._overloadpacket}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _find, (self.namespace, self._overloadpacket.__name__, self._overloadname)


class OpOverloadPacket:
    """All overloads of an operation: `torch.ops.aten.mm`."""

    # Without overloads: an operation of torch that only its name is known of.
    def __init__(self, namespace: str, name: str, op: Any, overloads: list[str]) -> None:
        self._namespace, self.__name__, self.op = namespace, name, op
        self._qualified_op_name = f"{namespace}::{name}"
        self._overload_names = overloads
        self.__module__ = f"torch.ops.{namespace}"

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overload_names)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or (self._overload_names and name not in self._overload_names):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        overload = OpOverload(self, name)
        setattr(self, name, overload)
        return overload

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.op is None:
            raise NotImplementedError(f"torch.ops.{self} is not implemented: it is known by name only")
        return self.op(*args, **kwargs)

    def __dir__(self) -> list[str]:
        return [*self._overload_names, *super().__dir__()]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _find, (self._namespace, self.__name__)


class _OpNamespace(types.ModuleType):
    """`torch.ops.aten` and the like: the operations of a library, found when first named."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name

    def __getattr__(self, op_name: str) -> Any:
        if not op_name.startswith("__"):
            packet = _packet(self.name, op_name)
            if packet is not None:
                setattr(self, op_name, packet)
                return packet
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")


_overloads = {
    name: names.split(",") for name, _, names in (word.partition(":") for word in _OVERLOADS.split())
}
_namespaces: dict[str, _OpNamespace] = {}


def namespace(name: str) -> _OpNamespace:
    """`torch.ops.<name>`; an unknown one is empty."""
    return _namespaces.setdefault(name, _OpNamespace(name))


def _find(name: str, op_name: str, overload: str | None = None) -> Any:
    packet = getattr(namespace(name), op_name)
    return packet if overload is None else getattr(packet, overload)


def _public_function(name: str) -> Any:
    """The function that torch.ops.aten.<name> calls: one of the public ones."""
    import rushlight
    from rushlight import fft, linalg, special
    from rushlight._aten import FUNCTIONS as only_here
    from rushlight.nn import functional

    if name in only_here:
        return only_here[name]
    name = _PUBLIC.get(name, name)
    for prefix, module in (("linalg_", linalg), ("fft_", fft), ("special_", special)):
        if name.startswith(prefix) and hasattr(module, name.removeprefix(prefix)):
            return getattr(module, name.removeprefix(prefix))
    for space in (rushlight, _C.Tensor, functional):
        found = getattr(space, name, None)
        if callable(found):
            return found
    from rushlight._underscored import ATEN

    return ATEN.get(name)


def _packet(space: str, name: str) -> OpOverloadPacket | None:
    if space == "profiler":
        from rushlight.autograd.profiler import _PROFILER_OPS

        op = _PROFILER_OPS.get(name)
        return None if op is None else OpOverloadPacket(space, name, op, ["default", "_RecordFunction"])
    if space == "prim" and name == "device":
        return OpOverloadPacket(space, name, lambda tensor: tensor.device, ["default"])
    if space == "rushlight":
        op = getattr(_C.ops, name, None)
        return None if op is None else OpOverloadPacket(space, name, op, ["default"])
    if space != "aten":
        return None
    op = _public_function(name)
    if op is None and name not in _overloads and name not in _primitive_names():
        return OpOverloadPacket(space, name, None, [])
    names = _overloads.get(name, ["default"])
    return OpOverloadPacket(space, name, op, names if name.endswith("_") else [*names, "out"])


def _primitive_names() -> set[str]:
    """Operations of torch that exist here as primitives only: backward kernels, say."""
    named = {value.partition(".")[0] for value in _OF_PRIMITIVE.values()}
    return named | {"native_layer_norm", "native_group_norm", "native_layer_norm_backward", "convolution",
                    "sigmoid_backward", "tanh_backward", "threshold_backward", "detach", "alias", "sym_size",
                    "sym_numel", "sym_stride", "sym_storage_offset", "is_strides_like_format",
                    "is_non_overlapping_and_dense"}  # fmt: skip


_handles: dict[tuple[str, bool], OpOverload] = {}


def handle_of(primitive: _C.Primitive, in_place: bool) -> OpOverload:
    """The handle under which a primitive is shown: torch's, or one of `torch.ops.rushlight`."""
    key = (primitive.__name__, in_place)
    if key not in _handles:
        _handles[key] = _make_handle(primitive, in_place)
    return _handles[key]


def _make_handle(primitive: _C.Primitive, in_place: bool) -> OpOverload:
    named = _OF_PRIMITIVE.get(primitive.__name__)
    name, _, overload = (named or primitive.__name__).partition(".")
    packet = getattr(namespace("aten"), name + "_" * in_place)
    if not packet.overloads():
        return namespace("rushlight").__getattr__(primitive.__name__).default
    if not overload:
        overload = "Tensor" if primitive.input_count > 1 and "Tensor" in packet.overloads() else "default"
    if overload not in packet.overloads():
        overload = packet.overloads()[0]
    return getattr(packet, overload)
