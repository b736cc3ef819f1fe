"""torch.sparse, for programs that ask about it: Rushlight's tensors are dense."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight._absent import absent_class


def _missing(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.sparse.{name} is not implemented: Rushlight has no sparse tensors")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Not implemented."
    return function


mm, addmm, sampled_addmm, sum, softmax, log_softmax, spdiags, spsolve, as_sparse_gradcheck = map(
    _missing,
    ["mm", "addmm", "sampled_addmm", "sum", "softmax", "log_softmax", "spdiags", "spsolve",
     "as_sparse_gradcheck"],
)  # fmt: skip
to_sparse_semi_structured = _missing("to_sparse_semi_structured")

for _name in (
    "BFloat16",
    "Byte",
    "Char",
    "Double",
    "Float",
    "Half",
    "Int",
    "Long",
    "Short",
    "SparseSemiStructured",
):
    globals()[f"{_name}Tensor"] = absent_class("torch.sparse", f"{_name}Tensor")


class check_sparse_tensor_invariants:
    """Whether sparse tensors are checked when they are made: a switch without effect, there are none."""

    _on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable

    @staticmethod
    def is_enabled() -> bool:
        """What was last asked for."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Asks for checks."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Asks for no checks."""
        check_sparse_tensor_invariants._on = False

    def __enter__(self) -> None:
        self._before = check_sparse_tensor_invariants._on
        check_sparse_tensor_invariants._on = self.state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._on = self._before

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapped
