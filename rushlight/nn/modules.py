"""torch's second path to the layers: ``nn.modules.linear`` is ``nn.linear``, and so on."""

import sys

from rushlight.nn import (
    _functions,
    _tuples,
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    multihead,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)

# So that ``import rushlight.nn.modules.linear`` finds the same module and no second copy of its classes.
__path__: list = []
_FAMILIES = (
    activation,
    batchnorm,
    channelshuffle,
    conv,
    fold,
    padding,
    pixelshuffle,
    pooling,
    upsampling,
    container,
    distance,
    dropout,
    flatten,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    normalization,
    multihead,
    transformer,
    rnn,
    adaptive,
    sparse,
)
__all__: list = []
for _family in _FAMILIES:
    _name = _family.__name__.rpartition(".")[2]
    sys.modules[f"{__name__}.{_name}"] = _family
    for _exported in _family.__all__:
        globals()[_exported] = getattr(_family, _exported)
    __all__ += [_layer for _layer in _family.__all__ if isinstance(globals()[_layer], type)]

sys.modules[f"{__name__}.utils"] = utils = _tuples
sys.modules[f"{__name__}._functions"] = _functions
