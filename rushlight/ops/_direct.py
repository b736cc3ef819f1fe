"""The calls that need no Python: by the name of a public function, which arguments go straight to a
primitive.

Note [direct calls] in native/python/direct_calls.h explains the descriptions. A function whose name is not
here, and every call that no description fits, runs as Python; a description says nothing that its function
does not.
"""

from __future__ import annotations


def _each(names: str, description: str) -> dict[str, str]:
    """The same description for several functions, `{}` standing for the name."""
    return {name: description.replace("{}", name) for name in names.split()}


# What the functions with an `out` say of it: one tensor, and a tuple of them.
_OUT, _OUTS = "T? out=None", "L? out=None"
_UNARY = (
    "neg abs sign sgn exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma i0 sinc floor ceil trunc "
    "frac deg2rad rad2deg isposinf isneginf signbit logical_not bitwise_not round"
)
_UNARY_ = (
    "neg sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan "
    "sinh cosh tanh sigmoid erf erfc floor ceil trunc frac relu"
)

VIEWS = {
    "view": "T self,U size -> view(self,size)",
    "reshape": "C input,U shape -> view(input,shape)",
    "permute": "T input,U dims -> permute(input,dims)",
    **_each("transpose swapdims", "T input,i dim0,i dim1 -> transpose(input,dim0,dim1)"),
    "swapaxes": "T input,i axis0,i axis1 -> transpose(input,axis0,axis1)",
    "t": "T input -> t(input)",
    "expand": "T self,U size -> expand(self,size)",
    "unsqueeze": "T input,i dim -> unsqueeze(input,dim)",
    "squeeze": "T input -> squeeze(input)|T input,i dim -> squeeze_dim(input,dim)",
    "select": "T input,i dim,i index -> select(input,dim,index)",
    "diagonal": "T input,i offset=0,i dim1=0,i dim2=1 -> diagonal(input,offset,dim1,dim2)",
    "unfold": "T self,i dimension,i size,i step -> unfold(self,dimension,size,step)",
    "real": "R input -> input",
    "unbind": "T input,i dim=0 -> unbind(input,dim)",
    "contiguous": "C self -> self",
}
COPIES = {
    "clone": "T input -> clone(input)",
    **_each("cat concat concatenate", f"L tensors,i dim=0,*,{_OUT} -> cat(tensors,dim)"),
    "stack": f"L tensors,i dim=0,*,{_OUT} -> stack(tensors,dim)",
    "repeat": "T self,U repeats -> repeat(self,repeats)",
    "roll": "E input,i shifts,i dims -> roll(input,[shifts],[dims])",
    "index_select": "E input,i dim,T index -> index_select(input,index,dim)",
    "flip": "T input,U dims -> flip(input,dims)",
    **_each("tril triu", "T input,i diagonal=0 -> {}(input,diagonal)"),
    "gather": "T input,i dim,T index -> gather(input,index,dim)",
    "scatter": "T input,i dim,T index,T src -> scatter(input,index,src,dim)"
    "|T input,i dim,T index,f value -> scatter_value(input,index,value,dim)",
    "scatter_add": "T input,i dim,T index,T src -> scatter_add(input,index,src,dim)",
    "index_add": "F input,i dim,T index,T source,*,f alpha=1 -> index_add(input,index,source,dim,alpha)",
    "masked_fill": "T input,T mask,n value -> masked_fill(input,mask,value)",
    "masked_select": "T input,T mask -> masked_select(input,mask)",
    "nonzero": "T input -> nonzero(input)",
    "where": f"B condition,T input,T other,*,{_OUT} -> where(condition,input,other)"
    "|B condition,T input,n other -> where(condition,input,other)"
    "|B condition,f self,T other -> where(condition,self,other)",  # by name it is no input
    ".where": "T self,B condition,n other -> where(condition,self,other)",
}
REDUCTIONS = {
    **_each(
        "sum mean",
        "T input,*,d? dtype=None -> {}(input,dtype)"
        "|T input,I1 dim,b keepdim=False,*,d? dtype=None -> {}_dim(input,dim,keepdim,dtype)"
        "|T input,I1 dim,b keepdim=False,*,T out -> {}_dim(input,dim,keepdim,None)",
    ),
    "prod": "T input,*,d? dtype=None -> prod(input,dtype)"
    "|T input,i dim,b keepdim=False,*,d? dtype=None -> prod_dim(input,dim,keepdim,dtype)"
    "|T input,i dim,b keepdim=False,*,T out -> prod_dim(input,dim,keepdim,None)",
    "max": f"T input,*,{_OUT} -> max(input)|R input,R other,*,{_OUT} -> maximum(input,other)"
    f"|T input,i dim,b keepdim=False,*,{_OUTS} -> return_types.max: max_dim(input,dim,keepdim)",
    "min": f"T input,*,{_OUT} -> min(input)|R input,R other,*,{_OUT} -> minimum(input,other)"
    f"|T input,i dim,b keepdim=False,*,{_OUTS} -> return_types.min: min_dim(input,dim,keepdim)",
    **_each("amax amin", f"T input,I1 dim=(),b keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)"),
    **_each("argmax argmin", f"T input,i? dim=None,b keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)"),
    **_each("any all", f"T input,I1? dim=None,b keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)"),
    "count_nonzero": "T input,I1? dim=None -> count_nonzero(input,dim)",
    **_each(
        "var std",
        "T input -> {}(input,None,None,False)|T input,I1 dim,*,b keepdim=False -> {}(input,dim,1,keepdim)",
    ),
    "norm": "T input,f p=2,i? dim=None,b keepdim=False -> vector_norm(input,p,dim,keepdim,None)",
    "logsumexp": "R input,i dim,b keepdim=False -> logsumexp(input,dim,keepdim)",
    **_each(
        "cumsum cumprod",
        "T input,i dim,*,d? dtype=None -> {}(input,dim,dtype,False)"
        "|T input,i dim,*,T out -> {}(input,dim,None,False)",
    ),
    **_each("softmax log_softmax", "T input,i dim -> {}(input,dim)"),
    "argsort": "T input,i dim=-1,b descending=False -> sort(input,dim,descending)[1]",
    "sort": f"T input,i dim=-1,b descending=False,*,{_OUTS} -> return_types.sort: sort(input,dim,descending)",
    "topk": f"T input,i k,i dim=-1,b largest=True,b sorted=True,*,{_OUTS}"
    " -> return_types.topk: topk(input,k,dim,largest)",
    "kthvalue": f"T input,i k,i dim=-1,b keepdim=False,*,{_OUTS}"
    " -> return_types.kthvalue: kthvalue(input,k,dim,keepdim)",
    "median": "T input -> median(input)"
    f"|T input,i dim,b keepdim=False,*,{_OUTS} -> return_types.median: median_dim(input,dim,keepdim)",
}
ELEMENTWISE = {
    **_each(_UNARY, f"T input,*,{_OUT} -> {{}}(input)"),
    **_each("isinf isfinite isnan relu", "T input -> {}(input)"),
    **_each(_UNARY_.replace(" ", "_ ") + "_", "T self -> {}(self)"),
    **_each(
        "mul div",
        f"T input,n other,*,{_OUT} -> {{}}(input,other)|f input,T other,*,{_OUT} -> {{}}(input,other)",
    ),
    "add": f"T input,n other,*,o alpha=1,{_OUT} -> add(input,other)"
    f"|T input,n other,*,w alpha,{_OUT} -> add_alpha(input,other,alpha)"
    f"|f input,T other,*,{_OUT} -> add(input,other)",
    "add_": "T self,n other,*,o alpha=1 -> add_(self,other)"
    "|T self,n other,*,w alpha -> add_alpha_(self,other,alpha)",
    **_each("mul_ div_", "T self,n other -> {}(self,other)"),
    "sub": f"A input,a other,*,o alpha=1,{_OUT} -> sub(input,other)"
    f"|A input,a other,*,w alpha,{_OUT} -> sub_alpha(input,other,alpha)",
    "sub_": "A self,a other,*,o alpha=1 -> sub_(self,other)"
    "|A self,a other,*,w alpha -> sub_alpha_(self,other,alpha)",
    **_each(
        "eq ne lt le gt ge remainder fmod floor_divide copysign xlogy bitwise_and bitwise_or bitwise_xor "
        "bitwise_left_shift bitwise_right_shift",
        f"T input,n other,*,{_OUT} -> {{}}(input,other)",
    ),
    **_each(
        "maximum minimum fmax fmin atan2 hypot nextafter logaddexp logaddexp2 gcd lcm logical_and logical_or "
        "logical_xor",
        f"R input,R other,*,{_OUT} -> {{}}(input,other)",
    ),
    "pow": f"T input,T exponent,*,{_OUT} -> pow(input,exponent)"
    f"|T input,e exponent,*,{_OUT} -> pow_scalar(input,exponent)",
    **_each(
        "clamp clip",
        f"R input,f min,f max,*,{_OUT} -> clamp_scalar(input,min,max)"
        f"|R input,f min,*,{_OUT} -> clamp_min_scalar(input,min)"
        f"|R input,*,f max,{_OUT} -> clamp_max_scalar(input,max)"
        f"|R input,R min,R max,*,{_OUT} -> clamp(input,min,max)",
    ),
    "clamp_": "F self,f min,f max -> clamp_scalar_(self,min,max)|F self,f min -> clamp_min_scalar_(self,min)",
    "clamp_min": f"R input,f min,*,{_OUT} -> clamp_min_scalar(input,min)",
    "clamp_max": f"R input,f max,*,{_OUT} -> clamp_max_scalar(input,max)",
    "lerp": f"F input,S end,f weight,*,{_OUT} -> lerp_scalar(input,end,weight)"
    f"|F input,S end,S weight,*,{_OUT} -> lerp(input,end,weight)",
    "lerp_": "F self,S end,f weight -> lerp_scalar_(self,end,weight)",
    **_each(
        "addcmul addcdiv",
        f"F input,F tensor1,F tensor2,*,f value=1,{_OUT} -> {{}}(input,tensor1,tensor2,value)",
    ),
    **_each("addcmul_ addcdiv_", "F self,F tensor1,F tensor2,*,f value=1 -> {}(self,tensor1,tensor2,value)"),
    "fill_": "T self,f value -> fill_(self,value)",
    "zero_": "T self -> fill_(self,0)",
    "copy_": "T self,T other,b non_blocking=False -> copy_(self,other)",
    "masked_fill_": "C self,T mask,n value -> masked_fill_(self,mask,value)",
}
PRODUCTS = {
    **_each("mm bmm", f"T input,T mat2,*,{_OUT} -> {{}}(input,mat2)"),
    "mv": f"T input,T vec,*,{_OUT} -> mv(input,vec)",
    "dot": f"T input,T tensor,*,{_OUT} -> dot(input,tensor)",
    "matmul": f"M input,M other,*,{_OUT} -> mm(input,other)|M input,V other,*,{_OUT} -> mv(input,other)"
    "|H input,T other,*,T out -> matmul_nd(input,other)|native matmul",
    "addmm": f"T input,T mat1,T mat2,*,f beta=1,f alpha=1,{_OUT} -> addmm(input,mat1,mat2,beta,alpha)",
    "addmv": f"T input,T mat,T vec,*,f beta=1,f alpha=1,{_OUT} -> addmv(input,mat,vec,beta,alpha)",
    **_each(
        "baddbmm addbmm",
        f"T input,T batch1,T batch2,*,f beta=1,f alpha=1,{_OUT} -> {{}}(input,batch1,batch2,beta,alpha)",
    ),
}
RANDOM = {
    "normal_": "T self,f mean=0.0,f std=1.0 -> normal_(self,mean,std,None)",
    "uniform_": "T self,f from=0.0,f to=1.0 -> uniform_(self,from,to,None)",
    "bernoulli": "T input -> bernoulli(input,None)",
    "multinomial": "T input,i num_samples,b replacement=False"
    " -> multinomial(input,num_samples,replacement,None)",
}
FACTORIES = _each(
    "zeros ones full empty eye empty_like zeros_like ones_like full_like new_zeros new_ones new_empty "
    "new_full arange linspace tensor as_tensor rand randn rand_like randn_like randint randperm",
    "native {}",
)
COMPOSED = _each("outer trace hstack vstack broadcast_tensors complex bincount", "native {}")
LOOKING = _each(
    "to float double half bfloat16 long int bool cpu type_as item is_contiguous requires_grad_ type equal "
    "expand_as view_as flatten narrow movedim split is_floating_point is_complex numpy from_numpy "
    "numel promote_types nan_to_num",
    "native {}",
)
OPERATIONS = {
    **FACTORIES,
    **LOOKING,
    **COMPOSED,
    **VIEWS,
    **COPIES,
    **REDUCTIONS,
    **ELEMENTWISE,
    **PRODUCTS,
    **RANDOM,
}

FUNCTIONAL = {  # of torch.nn.functional
    **_each("sigmoid tanh", "T input -> {}(input)"),
    "relu": "T input,q inplace=False -> relu(input)",
    "layer_norm": "T input,I normalized_shape,T? weight=None,T? bias=None,f eps=1e-05"
    " -> native_layer_norm(input,weight,bias,normalized_shape,eps)[0]",
    "embedding": "T input,F weight,z? padding_idx=None,z? max_norm=None,f norm_type=2.0,"
    "q scale_grad_by_freq=False,q sparse=False -> embedding(weight,input,-1,False)",
    **_each("nll_loss cross_entropy glu hardtanh relu6 one_hot group_norm batch_norm pad", "native {}"),
    "silu": "F input,q inplace=False -> silu(input)",
    "gelu": "F input -> gelu(input)",
    "leaky_relu": "T input,f negative_slope=0.01,q inplace=False -> leaky_relu(input,negative_slope)",
    "elu": "T input,f alpha=1.0,q inplace=False -> elu(input,alpha,1,1)",
    "softplus": "T input,f beta=1,f threshold=20 -> softplus(input,beta,threshold)",
    **_each("softmax log_softmax", "T input,i dim,i _stacklevel=3,z? dtype=None -> {}(input,dim)"),
}

LINALG = {  # of torch.linalg
    "norm": "F input -> vector_norm(input,2.0,None,False,None)"
    "|F input,*,i dim,b keepdim=False -> vector_norm(input,2.0,[dim],keepdim,None)",
    "vector_norm": "F input,f ord=2,I1? dim=None,b keepdim=False -> vector_norm(input,ord,dim,keepdim,None)",
}
