"""Layers, losses and everything else a network is made of."""

from rushlight.nn import (
    _reduction,
    attention,
    common_types,
    functional,
    grad,
    init,
    modules,
    parallel,
    parameter,
    utils,
)
from rushlight.nn.activation import *
from rushlight.nn.activation import __all__ as _activation
from rushlight.nn.adaptive import *
from rushlight.nn.adaptive import __all__ as _adaptive
from rushlight.nn.batchnorm import *
from rushlight.nn.batchnorm import __all__ as _batchnorm
from rushlight.nn.channelshuffle import *
from rushlight.nn.channelshuffle import __all__ as _channelshuffle
from rushlight.nn.container import *
from rushlight.nn.container import __all__ as _container
from rushlight.nn.conv import *
from rushlight.nn.conv import __all__ as _conv
from rushlight.nn.distance import *
from rushlight.nn.distance import __all__ as _distance
from rushlight.nn.dropout import *
from rushlight.nn.dropout import __all__ as _dropout
from rushlight.nn.flatten import *
from rushlight.nn.flatten import __all__ as _flatten
from rushlight.nn.fold import *
from rushlight.nn.fold import __all__ as _fold
from rushlight.nn.instancenorm import *
from rushlight.nn.instancenorm import __all__ as _instancenorm
from rushlight.nn.linear import *
from rushlight.nn.linear import __all__ as _linear
from rushlight.nn.loss import *
from rushlight.nn.loss import __all__ as _loss
from rushlight.nn.module import Module
from rushlight.nn.multihead import *
from rushlight.nn.multihead import __all__ as _multihead
from rushlight.nn.normalization import *
from rushlight.nn.normalization import __all__ as _normalization
from rushlight.nn.padding import *
from rushlight.nn.padding import __all__ as _padding
from rushlight.nn.parallel import DataParallel
from rushlight.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from rushlight.nn.pixelshuffle import *
from rushlight.nn.pixelshuffle import __all__ as _pixelshuffle
from rushlight.nn.pooling import *
from rushlight.nn.pooling import __all__ as _pooling
from rushlight.nn.rnn import *
from rushlight.nn.rnn import __all__ as _rnn
from rushlight.nn.sparse import *
from rushlight.nn.sparse import __all__ as _sparse
from rushlight.nn.transformer import *
from rushlight.nn.transformer import __all__ as _transformer
from rushlight.nn.upsampling import *
from rushlight.nn.upsampling import __all__ as _upsampling

__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *_activation,
    *_container,
    *_distance,
    *_dropout,
    *_flatten,
    *_linear,
    *_loss,
    *_batchnorm,
    *_instancenorm,
    *_normalization,
    *_multihead,
    *_transformer,
    *_rnn,
    *_adaptive,
    *_sparse,
    *_channelshuffle,
    *_conv,
    *_fold,
    *_padding,
    *_pixelshuffle,
    *_pooling,
    *_upsampling,
]


def factory_kwargs(kwargs):
    """The arguments device, dtype and memory_format of a layer, as one dict.

    >>> import rushlight as torch
    >>> torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": torch.float64}})
    {'dtype': torch.float64, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - {*names, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in ("device", "dtype", "memory_format"):
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found


# torch.nn.functional names these two as well.
functional._Reduction = _reduction
functional.grad = grad
