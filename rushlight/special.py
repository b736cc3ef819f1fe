"""Special functions, under the names of torch.special."""

import rushlight
from rushlight import _C
from rushlight.ops._public import public, write_out

digamma = psi = rushlight.digamma
erf = rushlight.erf
erfc = rushlight.erfc
erfinv = rushlight.erfinv
exp2 = rushlight.exp2
expit = rushlight.sigmoid
expm1 = rushlight.expm1
gammaln = rushlight.lgamma
i0 = rushlight.i0
log1p = rushlight.log1p
logit = rushlight.logit
round = rushlight.round
sinc = rushlight.sinc
xlogy = rushlight.xlogy


@public(method=False, namespace=False)
def xlog1py(input, other, *, out=None):
    """input * log1p(other), and 0 where input is 0.

    >>> rushlight.special.xlog1py(rushlight.tensor([0.0, 2.0]), rushlight.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """
    result = _C.ops.xlog1py(input, other)
    return result if out is None else write_out(out, result)
