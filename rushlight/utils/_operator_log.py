"""What ran in the two runs of a checkpointed function, for the error that says they differ."""

from __future__ import annotations

import traceback
from typing import Any

from rushlight import _C
from rushlight.utils._dtype_abbrs import dtype_abbrs
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.weak import WeakIdKeyDictionary


class OperatorLog(TorchDispatchMode):
    """Notes every operation below autograd, its arguments by number, and the lines it came from."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stacks: list[list[str]] = []
        self._numbers = WeakIdKeyDictionary()
        self._next = 0

    def _name(self, value: Any, result: bool = False) -> str:
        if isinstance(value, _C.Tensor):
            if result or value not in self._numbers:
                self._numbers[value] = self._next
                self._next += 1
            shape = f": {dtype_abbrs[value.dtype]}[{', '.join(map(str, value.shape))}]" if result else ""
            return f"${self._numbers[value]}{shape}"
        if isinstance(value, (tuple, list)):
            inner = ", ".join(self._name(one, result) for one in value)
            return inner if result else f"[{inner}]"
        return str(value)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [self._name(value) for value in args]
        given += [f"{name}={self._name(value)}" for name, value in (kwargs or {}).items()]
        result = func(*args, **(kwargs or {}))
        self.lines.append(f"{self._name(result, True)} = torch._ops.{func}({', '.join(given)})")
        stack = traceback.extract_stack()[:-1]
        self.stacks.append([f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in reversed(stack)])
        return result

    def shown(self, which: str) -> str:
        """Every operation, followed by where it was called."""
        parts = [
            f"{line}   ({i} of {len(self.lines)} in {which})\n\n" + "\n".join(stack)
            for i, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True), 1)
        ]
        return "\n\n".join(parts)
