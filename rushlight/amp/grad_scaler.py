"""GradScaler: losses scaled up so that small gradients survive half precision; overflows are skipped."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["GradScaler", "OptState"]

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class OptState:
    """How far an optimiser has come since the last update()."""

    READY, UNSCALED, STEPPED = _READY, _UNSCALED, _STEPPED


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
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._states: dict[int, dict[str, Any]] = {}  # per optimiser: its stage and whether it overflowed

    def _state(self, optimizer: Any) -> dict[str, Any]:
        return self._states.setdefault(id(optimizer), {"stage": _READY, "overflow": None})

    def _scale_tensor(self) -> Any:
        if self._scale is None:
            self._scale = rushlight.tensor(self._init_scale)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or every tensor of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale_tensor()
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            scaled = (self.scale(one) for one in outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimiser's parameters by the scale, to clip them, say."""
        if not self._enabled:
            return
        state = self._state(optimizer)
        if state["stage"] == _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._check_scaled("unscale_")
        inverse = 1.0 / self._scale.double().item()
        overflow = None
        with rushlight.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if param.grad.dtype == _C.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    overflow = bool(overflow) or not bool(rushlight.isfinite(param.grad).all())
                    param.grad.mul_(inverse)
        state["overflow"] = overflow
        state["stage"] = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's step, unless a gradient is infinite or not a number."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scaled("step")
        state = self._state(optimizer)
        if state["stage"] == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._fused_step(optimizer, state, *args, **kwargs)
        if state["stage"] == _READY:
            self.unscale_(optimizer)
        if state["overflow"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        state["stage"] = _STEPPED
        return None if state["overflow"] else optimizer.step(*args, **kwargs)

    def _fused_step(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """A step that divides by the scale and looks for overflows itself."""
        unscaled = state["stage"] == _UNSCALED
        if not unscaled:
            grads = [
                p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
            ]
            state["overflow"] = (
                not all(bool(rushlight.isfinite(grad).all()) for grad in grads) if grads else None
            )
        if state["overflow"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        optimizer.grad_scale = None if unscaled else self._scale
        optimizer.found_inf = rushlight.tensor(float(state["overflow"]))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            state["stage"] = _STEPPED
            del optimizer.grad_scale
            del optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Lowers the scale after an overflow, raises it after `growth_interval` steps without one."""
        if not self._enabled:
            return
        self._check_scaled("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                        "torch.FloatTensor with requires_grad=False."
                    )
                self._scale = rushlight.tensor(new_scale.item())
            else:
                self._scale = rushlight.tensor(float(new_scale))
        else:
            overflows = [
                state["overflow"] for state in self._states.values() if state["overflow"] is not None
            ]
            if not overflows:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(overflows):
                self._scale = self._scale * self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    self._scale = grown if bool(rushlight.isfinite(grown)) else self._scale
                    self._growth_tracker = 0
        self._states.clear()

    def _check_scaled(self, what: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        overflow = self._state(optimizer)["overflow"]
        return {} if overflow is None else {_C.device("cpu"): rushlight.tensor(float(overflow))}

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end "
                "after scaler.update()."
            )
        return self.__dict__.copy()

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
        return self._growth_tracker if self._enabled else 0

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
            "_growth_tracker": self._growth_tracker,
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
            self._scale = rushlight.tensor(float(state_dict["scale"]))
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
