"""torch's second path to the layers: ``nn.modules.linear`` is ``nn.linear``, and so on."""

import sys

from rushlight.nn import (
    activation,
    batchnorm,
    container,
    distance,
    dropout,
    flatten,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    multihead,
    normalization,
    sparse,
    transformer,
)

# So that ``import rushlight.nn.modules.linear`` finds the same module and no second copy of its classes.
__path__: list = []
_FAMILIES = (
    activation,
    batchnorm,
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
    sparse,
)
for _family in _FAMILIES:
    _name = _family.__name__.rpartition(".")[2]
    sys.modules[f"{__name__}.{_name}"] = _family
    for _exported in _family.__all__:
        globals()[_exported] = getattr(_family, _exported)
