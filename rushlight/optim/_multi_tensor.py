"""The optimizers with ``foreach=True``, as torch once had them apart."""

from functools import partialmethod

from rushlight import optim

for _name in [
    "ASGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
]:
    _base = getattr(optim, _name)
    globals()[_name] = type(
        _name, (_base,), {"__init__": partialmethod(_base.__init__, foreach=True), "__module__": __name__}
    )
