"""Complex numbers: conjugates, their parts, and making them of two real tensors."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._public import (
    FOUND_DTYPE,
    FUNCTIONS,
    attribute,
    check_tensor,
    function,
    method,
    public,
    type_name,
    write_out,
)

ops = _C.ops


@public
def conj(input):
    """The complex conjugate, as a view that conjugates when it is read; a real tensor is returned as it is.

    >>> x = rushlight.tensor([1 + 2j])
    >>> x.conj(), x.conj().is_conj(), x.conj().data_ptr() == x.data_ptr()
    (tensor([1.-2.j]), True, True)
    """
    return ops.conj_view(input) if input.is_complex() else input


@public
def conj_physical(input, *, out=None):
    """The complex conjugate, computed at once.

    >>> rushlight.conj_physical(rushlight.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    result = ops.conj(input) if input.is_complex() else input
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


@method
def conj_physical_(self):
    """In-place version of conj_physical."""
    if self.is_complex():
        return _C.in_place(ops.conj, self)
    # Nothing to do, but torch counts and records it all the same.
    if not (self.requires_grad and _C.is_grad_enabled()):
        _C.check_inplace(self)
        _C.note_write(self)
        return self
    _C.in_place(ops.mul, self, 1)
    return self if self._is_view() else _C.name_node(self, "ConjPhysicalBackward1")


@public
def resolve_conj(input):
    """The tensor itself, or the values of a conjugate view in memory of their own.

    >>> rushlight.resolve_conj(rushlight.tensor([1 + 2j]).conj()).is_conj()
    False
    """
    return ops.clone(input) if _C.is_conj(input) else input


@public
def resolve_neg(input):
    """The tensor itself, or the values of a negative view in memory of their own.

    >>> rushlight.resolve_neg(rushlight.tensor([1 + 2j]).conj().imag)
    tensor([-2.])
    """
    return ops.clone(input) if _C.is_neg(input) else input


@public
def is_conj(input):
    """Whether the tensor reads as the conjugate of what its memory holds.

    >>> rushlight.is_conj(rushlight.tensor(1j).conj())
    True
    """
    return _C.is_conj(input)


@public
def is_neg(input):
    """Whether the tensor reads as the negative of what its memory holds.

    >>> rushlight.is_neg(rushlight.tensor(1j).conj().imag)
    True
    """
    return _C.is_neg(input)


def _pairs(input):
    """The complex numbers as pairs, without reading them; and whether the second is to be negated."""
    conjugate = _C.is_conj(input)
    return ops.view_as_real(ops.conj_view(input) if conjugate else input), conjugate


@public
def real(input):
    """The real part, as a view; real tensors are returned as they are.

    >>> rushlight.real(rushlight.tensor([1 + 2j]))
    tensor([1.])
    """
    return ops.select(_pairs(input)[0], input.dim(), 0) if input.is_complex() else input


@public
def imag(input):
    """The imaginary part, as a view.

    >>> rushlight.imag(rushlight.tensor([1 + 2j]))
    tensor([2.])
    """
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs, conjugate = _pairs(input)
    return ops.select(ops.neg_view(pairs) if conjugate else pairs, input.dim(), 1)


@public
def angle(input, *, out=None):
    """The angle of every element in the complex plane.

    >>> rushlight.angle(rushlight.tensor([1 + 1j]))
    tensor([0.7854])
    """
    result = ops.angle(input)
    return result if out is None else write_out(out, result)


def _write(part, value):
    """Tensors are broadcast as copy_() does, which insists on the part's shape; numbers are taken."""
    if isinstance(value, _C.Tensor):
        part.copy_(value)
    else:
        part[...] = value


attribute("real", lambda self: real(self), lambda self, value: _write(real(self), value))
attribute("imag", lambda self: imag(self), lambda self, value: _write(imag(self), value))


_PARTS = (_C.float16, _C.float32, _C.float64)


@function
def complex(real, imag, *, out=None):
    """The complex numbers with the given real and imaginary parts.

    >>> rushlight.complex(rushlight.tensor([1.0]), rushlight.tensor([2.0]))
    tensor([1.+2.j])
    """
    check_tensor(real, "complex", "real", 1)
    check_tensor(imag, "complex", "imag", 2)
    _check_parts(real, imag)
    parts = FUNCTIONS["broadcast_tensors"](real, imag)
    if all(part.is_contiguous() for part in parts):
        result = ops.view_as_complex(FUNCTIONS["stack"](parts, -1))
    else:  # its dimensions lie in memory as those of an elementwise result
        order = (parts[0].detach() + parts[1].detach()).dim_order()
        pair = FUNCTIONS["stack"]([part.permute(order) for part in parts], -1)
        result = ops.view_as_complex(pair).permute(sorted(range(len(order)), key=order.__getitem__))
    return (
        result
        if out is None
        else write_out(
            out,
            result,
            exact="Expected object of scalar type {result} but got scalar type {out} for argument 'out'",
        )
    )


def _check_parts(a, b):
    kind = a.dtype
    if kind is b.dtype and kind in _PARTS:
        return
    names = [type_name(t.dtype) for t in (a, b)]
    if kind not in _PARTS or b.dtype not in _PARTS:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if kind != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


@function
def polar(abs, angle, *, out=None):
    """The complex numbers with the given sizes and angles.

    >>> rushlight.polar(rushlight.tensor([2.0]), rushlight.tensor([0.0]))
    tensor([2.+0.j])
    """
    check_tensor(abs, "polar", "abs", 1)
    check_tensor(angle, "polar", "angle", 2)
    _check_parts(abs, angle)
    if abs.dtype == _C.float16:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    if _C.is_grad_enabled() and (abs.requires_grad or angle.requires_grad):
        # Torch's node keeps the result alone, so that both may be written: what is kept here are copies.
        abs, angle = ops.clone(abs), ops.clone(angle)
    return complex(abs * ops.cos(angle), abs * ops.sin(angle), out=out)
