"""`SummaryWriter` for TensorBoard: that of the library tensorboardX, which is given arrays for tensors."""

from __future__ import annotations

import functools
from typing import Any

from rushlight import _C

try:
    import tensorboardX
except ImportError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard writes through the library tensorboardX, which is not installed: "
        "pip install tensorboardX",
        name=error.name,
    ) from None

__all__ = ["SummaryWriter"]


def _as_arrays(value: Any) -> Any:
    if isinstance(value, _C.Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {key: _as_arrays(one) for key, one in value.items()}
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def taking_tensors(function: Any) -> Any:
    """The function, given arrays where it is called with tensors."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*_as_arrays(args), **_as_arrays(kwargs))

    return wrapped


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes scalars, histograms, images and the rest of what tensorboardX offers to `logdir`."""

    def add_graph(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """The graph of a model needs a tracer, which there is none of."""
        raise NotImplementedError("add_graph: models cannot be traced")


for _name in dir(tensorboardX.SummaryWriter):
    if _name.startswith("add_") and _name != "add_graph":
        setattr(SummaryWriter, _name, taking_tensors(getattr(tensorboardX.SummaryWriter, _name)))
