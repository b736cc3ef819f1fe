"""torch._logging: which of torch's loggers say how much, by `set_logs` or the variable TORCH_LOGS.

What is logged here is autograd (rushlight/autograd/_logged.py). The other names belong to compilers and to
distributed training, which have nothing to say.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any

_LOGGERS = {
    "all": ("torch",), "autograd": ("torch.autograd",), "dynamo": ("torch._dynamo",),
    "aot": ("torch._functorch.aot_autograd",), "inductor": ("torch._inductor",),
    "dynamic": ("torch.fx.experimental.symbolic_shapes",), "distributed": ("torch.distributed",),
    "c10d": ("torch.distributed.distributed_c10d",), "ddp": ("torch.nn.parallel.distributed",),
    "fsdp": ("torch.distributed.fsdp",), "dtensor": ("torch.distributed.tensor",), "onnx": ("torch.onnx",),
    "export": ("torch.export",),
}  # fmt: skip
# Kinds of messages of compilers, which may be asked for.
_ARTIFACTS = """
bytecode aot_graphs aot_joint_graph ddp_graphs graph graph_code graph_code_verbose graph_breaks side_effects
graph_sizes guards recompiles recompiles_verbose trace_source trace_call trace_bytecode output_code
kernel_code schedule perf_hints pre_grad_graphs post_grad_graphs ir_pre_fusion ir_post_fusion onnx_diagnostics
fusion overlap cudagraphs sym_node compiled_autograd compiled_autograd_verbose cudagraph_static_inputs
benchmarking autotuning incremental graph_region_expansion inductor_metrics hierarchical_compile
compute_dependencies caching
"""
_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET)
_FORMAT = "%(levelname).1s%(asctime)s %(process)d %(pathname)s:%(lineno)d] %(message)s"
_changed: dict[str, int] = {}  # what the loggers said before


def _set(name: str, level: int) -> None:
    logger = logging.getLogger(name)
    _changed.setdefault(name, logger.level)
    logger.setLevel(level)
    _add_handler(logger)


def _add_handler(logger: logging.Logger) -> None:
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT, "%m%d %H:%M:%S"))
        logger.addHandler(handler)
        logger.propagate = False


def set_logs(*, modules: dict[str, int | bool] | None = None, **levels: Any) -> None:
    """Lets the named loggers say what has at least the given level, and all others what they said before.

    >>> import logging
    >>> rushlight._logging.set_logs(autograd=logging.INFO)
    >>> logging.getLogger("torch.autograd").level
    20
    >>> rushlight._logging.set_logs()
    """
    for name, level in levels.items():
        if name not in _LOGGERS and name not in _ARTIFACTS.split():
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
        if name in _LOGGERS and level is not None and (isinstance(level, bool) or level not in _LEVELS):
            raise ValueError(
                f"Unrecognized log level for log {name}: {level}, valid level values are: "
                + ",".join(map(str, _LEVELS))
            )
    for name in modules or {}:
        importlib.import_module(name.replace("torch", "rushlight", 1) if name.startswith("torch") else name)
    while _changed:
        name, before = _changed.popitem()
        logging.getLogger(name).setLevel(before)
    for name, level in levels.items():
        if level is not None:
            for logger in _LOGGERS.get(name, ()):
                _set(logger, level)
    for name, level in (modules or {}).items():
        _set(name, int(level))


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of one kind of message of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


class LazyString:
    """A string that is made when it is needed: an argument of a message that may never be written."""

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """`logger_obj.warning`, the first time it is called so."""
    said = (logger_obj, args, tuple(kwargs.items()))
    if said not in _said:
        _said.add(said)
        logger_obj.warning(*args, **kwargs)


_said: set = set()


def _init_logs() -> None:
    """Does what TORCH_LOGS says: names after commas, + in front for DEBUG, - for ERROR, else INFO."""
    levels: dict[str, Any] = {}
    for setting in filter(None, os.environ.get("TORCH_LOGS", "").replace(" ", "").split(",")):
        sign = {"+": logging.DEBUG, "-": logging.ERROR}.get(setting[0])
        name = setting[1:] if sign else setting
        if name in _LOGGERS:
            levels[name] = sign or logging.INFO
        elif name not in _ARTIFACTS.split():
            raise ValueError(f"Invalid log settings: {setting}, must be a comma separated list of names.")
    set_logs(**levels)
