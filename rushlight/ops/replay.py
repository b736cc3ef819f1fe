"""A view again on another base: `Tensor._view_func` and its kin, which programs that trace views call.

A view is its geometry here, whatever operations led to it, so it is repeated by that geometry. What the
operations were given is remembered where that is asked for (`_force_original_view_tracking`): visitors may
then change their arguments on the way.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.ops._public import Tensor, method

ops = _C.ops


def _strided(base: Tensor, size, stride, offset):
    return ops.as_strided(base, tuple(size), tuple(stride), offset, base.stride(), base.storage_offset())


def _read_like(memory: Tensor, tensor: Tensor):
    """`memory` conjugated and negated as `tensor` does it with its own when it is read, or the other way."""
    if tensor.is_conj():
        memory = ops.conj_view(memory)
    return ops.neg_view(memory) if tensor.is_neg() else memory


def _geometry(tensor: Tensor):
    return tensor.shape, tensor.stride(), tensor.storage_offset()


@method
def _view_func_unsafe(self, new_base=None, symint_visitor_fn=None, tensor_visitor_fn=None):
    """This view's counterpart on `new_base`, whose geometry is not looked at. None if this is no view."""
    if new_base is None:
        raise TypeError('_view_func() missing 1 required positional arguments: "new_base"')
    if not isinstance(new_base, Tensor):
        raise TypeError(
            f"_view_func(): argument 'new_base' (position 1) must be Tensor, not {class_name(new_base)}"
        )
    base = self._base
    if base is not None and (symint_visitor_fn or tensor_visitor_fn or _C.dispatches(self)):
        from rushlight.autograd._view_steps import repeated

        if (view := repeated(self, new_base, symint_visitor_fn, tensor_visitor_fn)) is not None:
            return view
    if base is None or (self.dtype != base.dtype and self.is_complex() == base.is_complex()):
        return None
    size, stride, offset = _geometry(self)
    start = base.storage_offset()
    new_base = _read_like(new_base, base)
    if self.is_complex() and not base.is_complex():
        pairs = _strided(new_base, (new_base.numel() // 2, 2), (2, 1), new_base.storage_offset())
        whole, start = ops.view_as_complex(pairs), start // 2
    elif base.is_complex() and not self.is_complex():
        whole, start = ops.view_as_real(new_base), 2 * start
    else:
        whole = new_base
    return _read_like(_strided(whole, size, stride, offset - start + whole.storage_offset()), self)


@method
def _view_func(self, new_base, symint_visitor_fn=None, tensor_visitor_fn=None):
    """This view's counterpart on `new_base`; None if that is laid out otherwise, or if this is no view."""
    base = self._base
    if isinstance(new_base, Tensor) and base is not None:
        room = [t.untyped_storage().nbytes() // t.element_size() for t in (base, new_base)]
        if _geometry(new_base) != _geometry(base) or room[0] != room[1]:
            return None
    return self._view_func_unsafe(new_base, symint_visitor_fn, tensor_visitor_fn)


@method
def _rev_view_func_unsafe(self, *new_view):
    """The base of which a new view would be this one: a view of the memory behind it. As in torch only views
    that are more than a geometry know the way back, those that remember how they were made, and those of
    classes with a `__torch_dispatch__`."""
    if len(new_view) != 1:
        raise TypeError(
            f"TensorBase._rev_view_func_unsafe() takes exactly one argument ({len(new_view)} given)"
        )
    (new_view,) = new_view
    if not isinstance(new_view, Tensor):
        raise RuntimeError("_rev_view_func expect a single argument that is a Tensor")
    base = self._base
    if base is None:
        return None
    if (self.is_complex(), self.is_conj(), self.is_neg()) == (
        base.is_complex(),
        base.is_conj(),
        base.is_neg(),
    ):
        from rushlight.autograd._view_steps import is_tracked

        if not (is_tracked(self) or _C.dispatches(self)):
            raise RuntimeError("No _rev_view_func() found")
    whole = new_view = _read_like(new_view, self)
    if self.is_complex() and not base.is_complex():
        whole = ops.view_as_real(_strided(new_view, (base.numel() // 2,), (1,), 0))
    elif base.is_complex() and not self.is_complex():
        whole = ops.view_as_complex(_strided(new_view, (base.numel(), 2), (2, 1), 0))
    return _read_like(_strided(whole, *_geometry(base)), base)
