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
_OUT, _OUTS = "tensor? out=None", "tensors? out=None"
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
    "view": "tensor self,sizes size -> view(self,size)",
    "reshape": "contiguous input,sizes shape -> view(input,shape)",
    "permute": "tensor input,sizes dims -> permute(input,dims)",
    **_each("transpose swapdims", "tensor input,int dim0,int dim1 -> transpose(input,dim0,dim1)"),
    "swapaxes": "tensor input,int axis0,int axis1 -> transpose(input,axis0,axis1)",
    "t": "tensor input -> t(input)",
    "expand": "tensor self,sizes size -> expand(self,size)",
    "unsqueeze": "tensor input,int dim -> unsqueeze(input,dim)",
    "squeeze": "tensor input -> squeeze(input)|tensor input,int dim -> squeeze_dim(input,dim)",
    "select": "tensor input,int dim,int index -> select(input,dim,index)",
    "diagonal": "tensor input,int offset=0,int dim1=0,int dim2=1 -> diagonal(input,offset,dim1,dim2)",
    "unfold": "tensor self,int dimension,int size,int step -> unfold(self,dimension,size,step)",
    "real": "real input -> input",
    "unbind": "tensor input,int dim=0 -> unbind(input,dim)",
    "contiguous": "contiguous self -> self",
}
COPIES = {
    "clone": "tensor input -> clone(input)",
    **_each("cat concat concatenate", f"tensors tensors,int dim=0,*,{_OUT} -> cat(tensors,dim)"),
    "stack": f"tensors tensors,int dim=0,*,{_OUT} -> stack(tensors,dim)",
    "repeat": "tensor self,sizes repeats -> repeat(self,repeats)",
    "roll": "filled input,int shifts,int dims -> roll(input,[shifts],[dims])",
    "index_select": "filled input,int dim,tensor index -> index_select(input,index,dim)",
    "flip": "tensor input,sizes dims -> flip(input,dims)",
    **_each("tril triu", "tensor input,int diagonal=0 -> {}(input,diagonal)"),
    "gather": "tensor input,int dim,tensor index -> gather(input,index,dim)",
    "scatter": "tensor input,int dim,tensor index,tensor src -> scatter(input,index,src,dim)"
    "|tensor input,int dim,tensor index,number value -> scatter_value(input,index,value,dim)",
    "scatter_add": "tensor input,int dim,tensor index,tensor src -> scatter_add(input,index,src,dim)",
    "index_add": "floats input,int dim,tensor index,tensor source,*,number alpha=1"
    " -> index_add(input,index,source,dim,alpha)",
    "masked_fill": "tensor input,tensor mask,operand value -> masked_fill(input,mask,value)",
    "masked_select": "tensor input,tensor mask -> masked_select(input,mask)",
    "nonzero": "tensor input -> nonzero(input)",
    "where": f"mask condition,tensor input,tensor other,*,{_OUT} -> where(condition,input,other)"
    "|mask condition,tensor input,operand other -> where(condition,input,other)"
    "|mask condition,number self,tensor other -> where(condition,self,other)",  # by name it is no input
    ".where": "tensor self,mask condition,operand other -> where(condition,self,other)",
}
REDUCTIONS = {
    **_each(
        "sum mean",
        "tensor input,*,dtype? dtype=None -> {}(input,dtype)"
        "|tensor input,dims dim,bool keepdim=False,*,dtype? dtype=None -> {}_dim(input,dim,keepdim,dtype)"
        "|tensor input,dims dim,bool keepdim=False,*,tensor out -> {}_dim(input,dim,keepdim,None)",
    ),
    "prod": "tensor input,*,dtype? dtype=None -> prod(input,dtype)"
    "|tensor input,int dim,bool keepdim=False,*,dtype? dtype=None -> prod_dim(input,dim,keepdim,dtype)"
    "|tensor input,int dim,bool keepdim=False,*,tensor out -> prod_dim(input,dim,keepdim,None)",
    "max": f"tensor input,*,{_OUT} -> max(input)|real input,real other,*,{_OUT} -> maximum(input,other)"
    f"|tensor input,int dim,bool keepdim=False,*,{_OUTS} -> return_types.max: max_dim(input,dim,keepdim)",
    "min": f"tensor input,*,{_OUT} -> min(input)|real input,real other,*,{_OUT} -> minimum(input,other)"
    f"|tensor input,int dim,bool keepdim=False,*,{_OUTS} -> return_types.min: min_dim(input,dim,keepdim)",
    **_each("amax amin", f"tensor input,dims dim=(),bool keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)"),
    **_each(
        "argmax argmin",
        f"tensor input,int? dim=None,bool keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)",
    ),
    **_each("any all", f"tensor input,dims? dim=None,bool keepdim=False,*,{_OUT} -> {{}}(input,dim,keepdim)"),
    "count_nonzero": "tensor input,dims? dim=None -> count_nonzero(input,dim)",
    **_each(
        "var std",
        "tensor input -> {}(input,None,None,False)"
        "|tensor input,dims dim,*,bool keepdim=False -> {}(input,dim,1,keepdim)",
    ),
    "norm": "tensor input,number p=2,int? dim=None,bool keepdim=False"
    " -> vector_norm(input,p,dim,keepdim,None)",
    "logsumexp": "real input,int dim,bool keepdim=False -> logsumexp(input,dim,keepdim)",
    **_each(
        "cumsum cumprod",
        "tensor input,int dim,*,dtype? dtype=None -> {}(input,dim,dtype,False)"
        "|tensor input,int dim,*,tensor out -> {}(input,dim,None,False)",
    ),
    **_each("softmax log_softmax", "tensor input,int dim -> {}(input,dim)"),
    "argsort": "tensor input,int dim=-1,bool descending=False -> sort(input,dim,descending)[1]",
    "sort": f"tensor input,int dim=-1,bool descending=False,*,{_OUTS}"
    " -> return_types.sort: sort(input,dim,descending)",
    "topk": f"tensor input,int k,int dim=-1,bool largest=True,bool sorted=True,*,{_OUTS}"
    " -> return_types.topk: topk(input,k,dim,largest,sorted)",
    "kthvalue": f"tensor input,int k,int dim=-1,bool keepdim=False,*,{_OUTS}"
    " -> return_types.kthvalue: kthvalue(input,k,dim,keepdim)",
    "median": "tensor input -> median(input)"
    f"|tensor input,int dim,bool keepdim=False,*,{_OUTS}"
    " -> return_types.median: median_dim(input,dim,keepdim)",
}
ELEMENTWISE = {
    **_each(_UNARY, f"tensor input,*,{_OUT} -> {{}}(input)"),
    **_each("isinf isfinite isnan relu", "tensor input -> {}(input)"),
    **_each(_UNARY_.replace(" ", "_ ") + "_", "tensor self -> {}(self)"),
    **_each(
        "mul div",
        f"tensor input,operand other,*,{_OUT} -> {{}}(input,other)"
        f"|number input,tensor other,*,{_OUT} -> {{}}(input,other)",
    ),
    "add": f"tensor input,operand other,*,one alpha=1,{_OUT} -> add(input,other)"
    f"|tensor input,operand other,*,scale alpha,{_OUT} -> add_alpha(input,other,alpha)"
    f"|number input,tensor other,*,{_OUT} -> add(input,other)",
    "add_": "tensor self,operand other,*,one alpha=1 -> add_(self,other)"
    "|tensor self,operand other,*,scale alpha -> add_alpha_(self,other,alpha)",
    **_each("mul_ div_", "tensor self,operand other -> {}(self,other)"),
    "sub": f"numbers input,term other,*,one alpha=1,{_OUT} -> sub(input,other)"
    f"|numbers input,term other,*,scale alpha,{_OUT} -> sub_alpha(input,other,alpha)",
    "sub_": "numbers self,term other,*,one alpha=1 -> sub_(self,other)"
    "|numbers self,term other,*,scale alpha -> sub_alpha_(self,other,alpha)",
    **_each(
        "eq ne lt le gt ge remainder fmod floor_divide copysign xlogy bitwise_and bitwise_or bitwise_xor "
        "bitwise_left_shift bitwise_right_shift",
        f"tensor input,operand other,*,{_OUT} -> {{}}(input,other)",
    ),
    **_each(
        "maximum minimum fmax fmin atan2 hypot nextafter logaddexp logaddexp2 gcd lcm logical_and logical_or "
        "logical_xor",
        f"real input,real other,*,{_OUT} -> {{}}(input,other)",
    ),
    "pow": f"tensor input,tensor exponent,*,{_OUT} -> pow(input,exponent)"
    f"|tensor input,exponent exponent,*,{_OUT} -> pow_scalar(input,exponent)",
    **_each(
        "clamp clip",
        f"real input,number min,number max,*,{_OUT} -> clamp_scalar(input,min,max)"
        f"|real input,number min,*,{_OUT} -> clamp_min_scalar(input,min)"
        f"|real input,*,number max,{_OUT} -> clamp_max_scalar(input,max)"
        f"|real input,real min,real max,*,{_OUT} -> clamp(input,min,max)",
    ),
    "clamp_": "floats self,number min,number max -> clamp_scalar_(self,min,max)"
    "|floats self,number min -> clamp_min_scalar_(self,min)",
    "clamp_min": f"real input,number min,*,{_OUT} -> clamp_min_scalar(input,min)",
    "clamp_max": f"real input,number max,*,{_OUT} -> clamp_max_scalar(input,max)",
    "lerp": f"floats input,alike end,number weight,*,{_OUT} -> lerp_scalar(input,end,weight)"
    f"|floats input,alike end,alike weight,*,{_OUT} -> lerp(input,end,weight)",
    "lerp_": "floats self,alike end,number weight -> lerp_scalar_(self,end,weight)",
    **_each(
        "addcmul addcdiv",
        f"floats input,floats tensor1,floats tensor2,*,number value=1,{_OUT}"
        f" -> {{}}(input,tensor1,tensor2,value)",
    ),
    **_each(
        "addcmul_ addcdiv_",
        "floats self,floats tensor1,floats tensor2,*,number value=1 -> {}(self,tensor1,tensor2,value)",
    ),
    "fill_": "tensor self,number value -> fill_(self,value)",
    "zero_": "tensor self -> fill_(self,0)",
    "copy_": "tensor self,tensor other,bool non_blocking=False -> copy_(self,other)",
    "masked_fill_": "contiguous self,tensor mask,operand value -> masked_fill_(self,mask,value)",
}
PRODUCTS = {
    **_each("mm bmm", f"tensor input,tensor mat2,*,{_OUT} -> {{}}(input,mat2)"),
    "mv": f"tensor input,tensor vec,*,{_OUT} -> mv(input,vec)",
    "dot": f"tensor input,tensor tensor,*,{_OUT} -> dot(input,tensor)",
    "matmul": f"matrix input,matrix other,*,{_OUT} -> mm(input,other)"
    f"|matrix input,vector other,*,{_OUT} -> mv(input,other)"
    "|batch input,tensor other,*,tensor out -> matmul_nd(input,other)|native matmul",
    "addmm": f"tensor input,tensor mat1,tensor mat2,*,number beta=1,number alpha=1,{_OUT}"
    " -> addmm(input,mat1,mat2,beta,alpha)",
    "addmv": f"tensor input,tensor mat,tensor vec,*,number beta=1,number alpha=1,{_OUT}"
    " -> addmv(input,mat,vec,beta,alpha)",
    **_each(
        "baddbmm addbmm",
        f"tensor input,tensor batch1,tensor batch2,*,number beta=1,number alpha=1,{_OUT}"
        " -> {}(input,batch1,batch2,beta,alpha)",
    ),
}
RANDOM = {
    "normal_": "tensor self,number mean=0.0,number std=1.0 -> normal_(self,mean,std,None)",
    "uniform_": "tensor self,number from=0.0,number to=1.0 -> uniform_(self,from,to,None)",
    "bernoulli": "tensor input -> bernoulli(input,None)",
    "bernoulli_": "tensor self,number p=0.5 -> bernoulli_number_(self,p,None)",
    "multinomial": "tensor input,int num_samples,bool replacement=False"
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
    "numel promote_types nan_to_num backward detach tolist chunk",
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
    **_each("sigmoid tanh", "tensor input -> {}(input)"),
    "relu": "tensor input,off inplace=False -> relu(input)",
    "layer_norm": "tensor input,ints normalized_shape,tensor? weight=None,tensor? bias=None,number eps=1e-05"
    " -> native_layer_norm(input,weight,bias,normalized_shape,eps)[0]",
    "embedding": "tensor input,floats weight,none padding_idx=None,none max_norm=None,number norm_type=2.0,"
    "off scale_grad_by_freq=False,off sparse=False -> embedding(weight,input,-1,False)",
    **_each(
        "linear dropout nll_loss cross_entropy glu hardtanh relu6 one_hot group_norm batch_norm pad "
        "avg_pool2d",
        "native {}",
    ),
    "silu": "floats input,off inplace=False -> silu(input)",
    "gelu": "floats input -> gelu(input)",
    "leaky_relu": "tensor input,number negative_slope=0.01,off inplace=False"
    " -> leaky_relu(input,negative_slope)",
    "elu": "tensor input,number alpha=1.0,off inplace=False -> elu(input,alpha,1,1)",
    "softplus": "tensor input,number beta=1,number threshold=20 -> softplus(input,beta,threshold)",
    **_each("softmax log_softmax", "tensor input,int dim,int _stacklevel=3,none dtype=None -> {}(input,dim)"),
}

LINALG = {  # of torch.linalg
    "norm": "floats input -> vector_norm(input,2.0,None,False,None)"
    "|floats input,*,int dim,bool keepdim=False -> vector_norm(input,2.0,[dim],keepdim,None)",
    "vector_norm": "floats input,number ord=2,dims? dim=None,bool keepdim=False"
    " -> vector_norm(input,ord,dim,keepdim,None)",
}
