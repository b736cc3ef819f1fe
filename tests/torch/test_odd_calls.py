"""Odd values where a number, a size, a device, a storage or a tensor belongs: both libraries give the same,
or refuse with the same type and first sentence. These were found by odd_programs.py and mended.

Every line is an expression that both libraries evaluate, with `T` for the library and `np` for NumPy."""

import warnings

import numpy
import pytest

import rushlight

torch = pytest.importorskip("torch")

STORAGES = """
(lambda s: s[2**64])(T.ones(2).untyped_storage())
(lambda s: s[np.int64(1)])(T.ones(2).untyped_storage())
(lambda s: s[True])(T.ones(2).untyped_storage())
(lambda s: s.__setitem__(True, 1))(T.ones(2).untyped_storage())
(lambda s: s.__setitem__(-1, 1))(T.ones(2).untyped_storage())
(lambda s: s.__setitem__(1.5, 1))(T.ones(2).untyped_storage())
(lambda s: s.__setitem__(np.int64(1), 1))(T.ones(2).untyped_storage())
(lambda s: s.__setitem__(slice(0, 2, 2), 1))(T.ones(2).untyped_storage())
(lambda s: s.fill_(np.int64(1)))(T.ones(2).untyped_storage())
(lambda s: s.copy_(T.ones(2)))(T.ones(2).untyped_storage())
(lambda s: s.copy_([1, 2]))(T.ones(2).untyped_storage())
(lambda s: s.copy_(T.ones(2).storage()).tolist())(T.ones(2).untyped_storage())
T.UntypedStorage(np.int64(2)).nbytes()
T.UntypedStorage(T.tensor(2)).nbytes()
T.UntypedStorage(True)
T.UntypedStorage([np.int64(3)])
T.UntypedStorage(np.array([1, 2]))
T.ones(2).set_(1)
T.ones(2).set_(None)
T.ones(2).set_(T.ones(3), 0)
T.ones(2).set_(T.ones(3), 0, 2)
T.ones(2).set_(T.ones(3), 0, (2,), 1)
T.ones(2).set_(T.ones(3).untyped_storage(), 0, 2)
T.ones(2).set_(T.ones(3).untyped_storage(), 0, None, (3,))
T.ones(2).set_(T.ones(3).untyped_storage(), 'x', (2,), (1,))
T.ones(2).set_(T.ones(3).untyped_storage(), 0, (2,), (1, 1))
T.ones(2).set_(T.ones(3).untyped_storage(), 0, (2.5,))
T.ones(2).set_(T.ones(3).untyped_storage(), 2**62, (1,))
T.ones(2).set_(T.ones(3).untyped_storage(), 0, (2,), (2**62,))
T.ones(2).set_(T.ones(3).storage(), 0, (2,), None)
"""

OBJECTS = """
T.Size([2, 3]) * 2.0
T.Size([2, 3]) * 'a'
2.0 * T.Size([2])
T.Size([2]).numel(1)
T.Size([2]).numel(x=1)
T.Size(np.ones(2))
setattr(T.finfo(T.float32), 'max', 1)
setattr(T.finfo(T.float32), 'foo', 1)
delattr(T.iinfo(T.int32), 'max')
T.no_grad(None)
T.set_default_dtype(object)
T.set_default_dtype(complex)
T.set_default_dtype('float32')
T.Generator([])
T.Generator(b'cpu').device
T.Generator('cpu', 'cpu')
T.Generator(device=1.5)
T.Generator(foo=1)
T.Generator().manual_seed(np.array(1))
T.Generator().manual_seed(np.array([1, 2]))
T.device(type=None, index=1)
T.device('cpu', index='x')
T.device(index=1)
T.device('cpu:999999999999')
T.device(':0')
T.device('foo:x')
T.device(T.int16)
T.device('cpu', np.array([0, 1]))
T.device('cpu', np.array(0))
T.device('cpu', T.tensor(0))
setattr(T.zeros(2), 'T', 1)
setattr(T.zeros(2), 'dtype', 1)
setattr(T.zeros(2), 'grad_fn', None)
setattr(T.zeros(2), 'volatile', True)
delattr(T.zeros(2), 'dtype')
"""

MAKING = """
T.tensor([1.0], requires_grad=1)
T.tensor([1.0], requires_grad=None)
T.tensor([1.0], dtype=np.float32)
T.tensor([1.0], dtype=np.ones(2))
T.tensor([1.0], device=1.5)
T.tensor([1.0], pin_memory=1)
T.tensor()
T.tensor([[1], 2])
T.tensor([[1, 2], 3, [4]])
T.as_tensor([1], dtype=T.device('cpu'))
T.asarray([1], copy=np.bool_(1))
T.asarray([1], requires_grad=1)
T.asarray([1], device=1.5)
T.frombuffer(bytearray(8), dtype=T.int8, count=1.0)
T.frombuffer(bytearray(8), dtype=T.int8, count=np.bool_(True))
T.frombuffer(bytearray(8), dtype=int)
T.frombuffer(bytearray(8), dtype=1)
T.frombuffer(bytearray(8), dtype=None)
T.frombuffer(memoryview(bytearray(8))[::2], dtype=T.int8)
T.frombuffer(bytearray(8), dtype=T.int8, count=2**64)
T.frombuffer(bytearray(8), dtype=T.float32, requires_grad=1)
T.frombuffer(bytearray(8), dtype=T.int8, offset=1.0)
T.Tensor(T.float32)
T.ones(2, 3).numpy(force=1)
T.ones(2, 3).numpy(True)
"""

WRITING = """
setattr(T.zeros(2, dtype=T.complex64), 'real', None)
setattr(T.zeros(2, dtype=T.complex64), 'real', np.float32(1))
setattr(T.zeros(2, dtype=T.complex64), 'imag', [1, 2])
setattr(T.zeros(2, dtype=T.complex64), 'real', 1j)
setattr(T.zeros(2).bool(), 'real', None)
T.zeros(2).__setitem__(0, np.float32(1))
T.zeros(2).__setitem__(0, np.bool_(1))
T.zeros(2).__setitem__(0, np.int32(1))
T.zeros(2).__setitem__(0, np.float64(1))
T.zeros(2).__setitem__(T.tensor([0, 1]), np.complex64(1))
T.zeros(1, 3).expand(2, 3).copy_(2.5)
T.zeros(1, 3).expand(2, 3).copy_(T.ones(4))
T.zeros(1, 3).expand(2, 3).fill_(2.5)
(lambda t: T.max(t, 0, out=(t[0], T.zeros(3).long())))(T.zeros(2, 3))
(lambda t: T.min(t, 0, out=(T.zeros(3).long(), t[0])))(T.zeros(2, 3).long())
(lambda t: T.where(t > 1, t, t, out=t.T))(T.ones(3, 3))
(lambda t: T.where(t > 1, t[:1], T.ones(3, 3), out=t))(T.ones(3, 3))
(lambda t: T.cross(t, T.ones(3, 3), dim=1, out=t))(T.eye(3))
(lambda t: T.linalg.cross(t, T.ones(3, 3), dim=1, out=t))(T.eye(3))
"""


def outcome(library, text):
    try:
        return repr(eval(text, {"T": library, "np": numpy})).replace("rushlight", "torch")
    except Exception as error:
        first = str(error).partition("\n")[0]
        return f"{type(error).__name__}: {first}".replace("rushlight", "torch")
    finally:
        library.set_default_dtype(library.float32)


TABLES = {"storages": STORAGES, "objects": OBJECTS, "making": MAKING, "writing": WRITING}


@pytest.mark.parametrize("name", TABLES)
def test_odd_calls(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = TABLES[name].strip().splitlines()
        ours = {line: outcome(rushlight, line) for line in lines}
        assert ours == {line: outcome(torch, line) for line in lines}


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16"])
@pytest.mark.parametrize("through", ["leaf", "product"])
def test_a_gradient_given_in_another_dtype_is_cast(dtype, through):
    def run(library):
        x = library.ones(3, requires_grad=True)
        y = x if through == "leaf" else x * 2
        seen = []
        y.register_hook(lambda g: seen.append(str(g.dtype)))
        y.backward(library.ones(3, dtype=getattr(library, dtype)))
        given = library.ones(3, dtype=getattr(library, dtype))
        z = x if through == "leaf" else x * 2
        (g,) = library.autograd.grad(z, x, given)
        return str(x.grad), str(g), seen

    assert run(rushlight) == run(torch)


@pytest.mark.parametrize("grad_dtype", [None, "float64"])
def test_a_leaf_with_a_dtype_for_its_gradient_is_a_root(grad_dtype):
    def run(library):
        x = library.ones(3, requires_grad=True)
        x.grad_dtype = grad_dtype and getattr(library, grad_dtype)
        x.backward(library.ones(3, dtype=library.float64))
        return str(x.grad)

    assert run(rushlight) == run(torch)
