"""GradScaler: losses scaled up so that small gradients survive half precision; overflows are skipped."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimiser has come since the last update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What is known of an optimiser that has not been seen since the last update()."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _amp_foreach_non_finite_check_and_unscale_(tensors: Any, found_inf: Any, inv_scale: Any) -> None:
    """Multiplies tensors in place and sets `found_inf` to 1 if one of them has an element that is not finite.

    >>> grad, found = rushlight.tensor([4.0, float("inf")]), rushlight.zeros(1)
    >>> rushlight._amp_foreach_non_finite_check_and_unscale_([grad], found, rushlight.tensor(0.5))
    >>> grad, found
    (tensor([2., inf]), tensor([1.]))
    """
    factor = inv_scale.item()
    with rushlight.no_grad():
        for tensor in tensors:
            values = tensor._values() if tensor.is_sparse else tensor
            if not bool(rushlight.isfinite(values).all()):
                found_inf.fill_(1.0)
            if factor != 1.0:
                tensor.mul_(factor)


def _amp_update_scale_(
    scale: Any,
    growth_tracker: Any,
    found_inf: Any,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Any:
    """Lowers the scale after an overflow, raises it after `growth_interval` steps without one; in place.

    >>> scale, good = rushlight.tensor(4.0), rushlight.tensor(1, dtype=rushlight.int32)
    >>> rushlight._amp_update_scale_(scale, good, rushlight.tensor(0.0), 2.0, 0.5, 2)
    tensor(8.)
    """
    with rushlight.no_grad():
        if found_inf.item():
            growth_tracker.fill_(0)
            return scale.mul_(scale_backoff_factor)
        good = growth_tracker.item() + 1
        growth_tracker.fill_(0 if good == growth_interval else good)
        if good == growth_interval:
            grown = scale * scale_growth_factor
            if bool(rushlight.isfinite(grown).all()):
                scale.copy_(grown)
        return scale


class GradScaler:
    """Scales a loss, unscales gradients before the optimiser's step, and adapts the scale.

    >>> scaler = rushlight.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(rushlight.tensor(2.0))
    tensor(8.)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2
            )
            self._enabled = False
        if self._enabled:
            if not growth_factor > 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None  # made with the first loss, where that is
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = rushlight.full((), self._init_scale, dtype=_C.float32, device=dev)
        self._growth_tracker = rushlight.full((), self._init_growth_tracker, dtype=_C.int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) "
        fix += "earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  {fix}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None.  {fix}")
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or every tensor of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
    ) -> dict[Any, Any]:
        """Divide the gradients; whether one was not finite, by device."""
        grads: dict[Any, list[Any]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype == _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if param.grad.is_sparse and param.grad.dtype == _C.float16:
                    param.grad = param.grad.coalesce()  # a sum of entries may overflow where none does
                grads.setdefault(param.grad.device, []).append(param.grad)
        found = {device: found_inf.to(device, copy=True) for device in grads}
        for device, tensors in grads.items():
            _amp_foreach_non_finite_check_and_unscale_(tensors, found[device], inv_scale)
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimiser's parameters by the scale, to clip them, say."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal of a large scale has its digits in double only.
        inverse = self._scale.double().reciprocal().float()
        found = rushlight.full((), 0.0, dtype=_C.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        self._check_scale_growth_tracker("_check_inf_per_device")
        one, found = rushlight.ones(()), rushlight.zeros(())
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found, True)
        return state["found_inf_per_device"]

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if sum(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's step, unless a gradient is infinite or not a number."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._scaling_step(optimizer, state, *args, **kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _scaling_step(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The step of an optimiser that divides by the scale itself, and does nothing after an overflow."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. "
                "In the near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the "
                "passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        total = sum(found.item() for found in state["found_inf_per_device"].values())
        optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else self._scale
        optimizer.found_inf = rushlight.tensor(float(total), device=self._scale.device)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Lowers the scale after an overflow, raises it after `growth_interval` steps without one."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                        "torch.FloatTensor with requires_grad=False."
                    )
                scale.copy_(new_scale)
            else:
                scale.fill_(float(new_scale))
        else:
            found = [
                each
                for state in self._per_optimizer_states.values()
                for each in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            total = rushlight.tensor(float(sum(each.item() for each in found)))
            options = (self._growth_factor, self._backoff_factor, self._growth_interval)
            _amp_update_scale_(scale, tracker, total, *options)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _get_scale_async(self) -> Any:
        return self._scale

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the "
                    "end after scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def get_scale(self) -> float:
        """The scale, 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Chooses by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Chooses by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Chooses after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state, to go on from later."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of "
                "GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])
