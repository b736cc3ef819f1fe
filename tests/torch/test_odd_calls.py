"""Odd values where a number, a size, a device, a storage or a tensor belongs: both libraries give the same,
or refuse with the same type and first sentence. These were found by odd_programs.py and mended.

Every line is an expression that both libraries evaluate, with `T` for the library, `np` for NumPy, `F`
and `N` for nn.functional and nn."""

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

NUMBERS = """
F.softplus(T.ones(2),1e300)
F.softplus(T.ones(2),1,1e300)
F.softplus(T.ones(2).half(),1e300)
F.softplus(T.ones(2).double(),1e300)
F.softplus(T.ones(0),1e300)
F.leaky_relu(T.ones(2),1e300)
F.leaky_relu(T.ones(0),1e300)
F.leaky_relu(T.ones(2).half(),1e300)
F.leaky_relu(T.ones(2),float('inf'))
F.elu(T.ones(2),1e300)
F.elu(T.ones(2).half(),1e300)
F.elu(T.ones(2),-1)
F.elu(T.zeros(2),-1)
F.elu(T.zeros(2),float('inf'))
F.celu(T.ones(2),1e300)
F.celu(T.zeros(2),float('inf'))
F.celu(T.tensor([0.,-1.,1.]),float('inf'))
F.celu(T.tensor([0.,-1.,1.]),1e300)
F.celu(T.tensor([0.,-1.,1.]),1e-300)
F.celu(T.tensor([0.,-1.,1.]),-2)
F.elu(T.tensor([0.,-1.,1.]),float('nan'))
F.selu(T.tensor([0.,-1.,1.]))
F.threshold(T.ones(2),1e300,1)
F.threshold(T.ones(2),1,1e300)
F.threshold(T.ones(2).half(),1,1e5)
F.softshrink(T.ones(2),1e300)
T.add(T.ones(2),T.ones(2),alpha=1e300)
T.add(T.ones(2).half(),T.ones(2).half(),alpha=1e300)
T.add(T.ones(2).half(),T.ones(2).half(),alpha=1e5)
T.add(T.ones(0),T.ones(0),alpha=1e300)
T.sub(T.ones(2),T.ones(2),alpha=1e300)
T.add(T.ones(2),1,alpha=1e300)
T.add(T.ones(2),1e300)
T.ones(2)+1e300
T.ones(2)*1e300
T.ones(2).half()*1e300
T.ones(2).add_(True,alpha=1e300)
T.ones(2,dtype=T.complex64).add(1,alpha=1e300)
T.addcmul(T.ones(2),T.ones(2),T.ones(2),value=1e300)
T.addcdiv(T.ones(2),T.ones(2),T.ones(2),value=1e300)
T.addcmul(T.ones(2).half(),T.ones(2).half(),T.ones(2).half(),value=1e300)
T.addcmul(T.ones(2).int(),T.ones(2).int(),T.ones(2).int(),value=float('inf'))
T.addcmul(T.ones(2).int(),T.ones(2).int(),T.ones(2).int(),value=1.5)
T.addcmul(T.ones(2).int(),T.ones(2).int(),T.ones(2).int(),value=2**40)
T.addmm(T.ones(2,2),T.ones(2,2),T.ones(2,2),alpha=1e300)
T.addmm(T.ones(2,2),T.ones(2,2),T.ones(2,2),beta=1e300)
T.addmv(T.ones(2),T.ones(2,2),T.ones(2),alpha=1e300)
T.addmv(T.ones(2).byte(),T.ones(2,2).byte(),T.ones(2).byte(),alpha=-1)
T.addmm(T.ones(2,2).byte(),T.ones(2,2).byte(),T.ones(2,2).byte(),alpha=-1)
T.addr(T.ones(2,2),T.ones(2),T.ones(2),alpha=1e300)
T.baddbmm(T.ones(1,2,2),T.ones(1,2,2),T.ones(1,2,2),alpha=1e300)
T.lerp(T.ones(2),T.ones(2),1e300)
T.clamp(T.ones(2),1e300)
T.clamp(T.ones(2),max=1e300)
T.pow(T.ones(2),1e300)
T.nan_to_num(T.tensor([float('nan')]),1e300)
T.full((2,),1e300)
T.ones(2).fill_(1e300)
T.ones(2).index_fill(0,T.tensor([0]),1e300)
T.ones(2).masked_fill(T.tensor([True,False]),1e300)
T.where(T.tensor([True,False]),T.ones(2),1e300)
T.index_add(T.ones(2),0,T.tensor([0]),T.ones(1),alpha=1e300)
F.huber_loss(T.ones(2),T.zeros(2),delta=1e300)
F.huber_loss(T.ones(2),T.zeros(2),delta=2**63)
F.huber_loss(T.ones(2).half(),T.zeros(2).half(),delta=1e30)
F.smooth_l1_loss(T.ones(2),T.zeros(2),beta=1e300)
F.smooth_l1_loss(T.ones(2),T.zeros(2),beta=float('nan'))
F.smooth_l1_loss(T.ones(2),T.zeros(2),beta=float('inf'))
F.linear_cross_entropy(T.ones(3,4),T.ones(5,4),T.tensor([0,1,-2**63]),reduction='none')
F.linear_cross_entropy(T.ones(3,4),T.ones(5,4),T.tensor([0,1,7]),reduction='none')
F.linear_cross_entropy(T.ones(3,4),T.ones(5,2,4),T.tensor([[0,1],[1,0],[-2**63,2]]),reduction='none')
F.linear_cross_entropy(T.ones(3,4),T.ones(5,2,4),T.tensor([[0,1],[1,0],[-100,2]]),reduction='none')
F.cross_entropy(T.ones(3,5),T.tensor([0,1,-2**63]))
F.cross_entropy(T.ones(3,5),T.tensor([0,1,-2**63]),reduction='none')
F.nll_loss(T.ones(3,5,2),T.tensor([[0,1],[1,0],[-2**63,2]]),reduction='none')
F.cross_entropy(T.ones(3,5,2),T.tensor([[0,1],[1,0],[-2**63,2]]),reduction='none')
T.bucketize(T.arange(3.),T.tensor([float('nan'),1.]))
T.bucketize(T.arange(3.),T.tensor([float('nan'),1.]),right=True)
T.searchsorted(T.tensor([0.,float('nan'),1.,2.]),T.tensor([1.,float('nan')]))
"""

SHARED_AND_SPLIT = """
T.ones(1,3).expand(3,3).tril_()
T.arange(9.).reshape(3,3).expand(2,3,3).tril_(1)
T.arange(9.).reshape(3,3).expand(2,3,3).triu_(-1)
T.arange(3.).expand(3,3).triu_()
T.arange(3.).expand(3,3).triu_(1)
T.arange(3.).reshape(3,1).expand(3,3).tril_(-1)
T.arange(3.).reshape(3,1).expand(3,3).triu_(1)
T.ones(1).expand(3).tril_()
T.zeros(0,1).expand(0,3).tril_()
T.threshold_(T.arange(3.).expand(2,3),1,5)
F.threshold(T.arange(3.).expand(2,3),1,5,True)
F.threshold_(T.arange(3).reshape(3,1).expand(3,2),1,0)
T.threshold_(T.ones(1).expand(3).requires_grad_(),1,5)
T.ones(2)==1
T.zeros(0) in T.ones(2,3)
1 in T.ones(2)
N.Parameter(T.ones(2),1)
N.Parameter(T.ones(2),None)
N.Parameter(None,[])
T.ones(6).untyped_storage()[T.tensor(1)]
T.ones(6).untyped_storage()[np.array(1)]
T.ones(6).untyped_storage().resize_(1.0)
T.ones(6).untyped_storage().resize_([1])
T.ones(6).untyped_storage().resize_(np.array(1))
T.ones(6).untyped_storage().resize_(np.int64(1)).nbytes()
T.ones(6).untyped_storage().resize_(T.tensor([1]))
T.ones(6).untyped_storage().resize_(2**64)
T.ones(6).untyped_storage().resize_(True)
T.ones(3,3).fill_diagonal_(np.float32(0.5))
T.ones(3,3).fill_diagonal_(T.tensor(True))
T.ones(3,3).fill_diagonal_(T.tensor(2))
T.ones(3,3).long().fill_diagonal_(2.5)
T.ones(2,3).split(('a',))
T.ones(2,3).split((1j,))
T.ones(2,3).split((2**63,))
T.ones(2,3).split(None)
T.ones(2,3).split({2},3)
T.ones(2,3).split([[2,3]],3)
T.ones(2,3).split(2.5)
T.ones(2,3).split((1.5,))
T.ones(2,3).split((True,1))
T.ones(2,3).split((np.int64(1),1))
T.ones(2,3).split((T.tensor(1),1))
T.ones(2,3).split(np.array([1,1]))
T.split(T.ones(2,3),'x')
T.split(T.ones(2,3),[1,'x'])
T.full((3,),1+1j)+complex(float('inf'),1)
T.full((3,),1+1j)-T.full((3,),complex(1,float('inf')))
T.full((3,),complex(1,float('inf')))+1
complex(1,float('inf'))-T.full((3,),1+1j)
1-T.full((3,),complex(1,float('inf')))
T.ones(3)+complex(float('inf'),1)
T.ones(3).add(T.full((3,),complex(float('inf'),1)))
T.full((3,),1+1j).add_(float('inf'))
T.full((9,),1+1j).sub_(T.full((9,),complex(float('-inf'),1)))
T.where(T.tensor([True,False]),T.ones(2).half(),1e5)
T.where(T.tensor([True,False]),T.ones(2).half(),float('inf'))
T.where(T.tensor([True,False]),T.ones(2).int(),3)
T.where(T.tensor([True,False]),T.ones(2).byte(),-3)
T.where(T.tensor([True,False]),1e300,T.ones(2))
T.add(T.ones(2).byte(),T.ones(2).byte(),alpha=-1)
T.add(T.ones(2).byte(),T.ones(2).byte(),alpha=300)
T.sub(T.ones(2).byte(),T.ones(2).byte(),alpha=300)
T.add(T.ones(2).byte(),T.ones(2).byte(),alpha=-300)
T.add(T.ones(2).int(),T.ones(2).int(),alpha=2**40)
T.addcmul(T.ones(2).byte(),T.ones(2).byte(),T.ones(2).byte(),value=-1)
T.addcmul(T.ones(2).byte(),T.ones(2).byte(),T.ones(2).byte(),value=2.7)
F.elu(T.tensor([0.,-0.,float('nan'),-1,1]),-2.0)
F.huber_loss(T.ones(2).half(),T.zeros(2).half(),delta=1e4)
F.huber_loss(T.ones(2).bfloat16(),T.zeros(2).bfloat16(),delta=0.3)
F.huber_loss(T.ones(2)*5,T.zeros(2),delta=1e-5)
F.huber_loss(T.ones(2)*5,T.zeros(2),delta=2.5)
F.huber_loss(T.ones(2)*5,T.zeros(2),delta=2**40)
F.elu(T.ones(2).half(),1e5)
F.leaky_relu(T.ones(2).half(),1e5)
"""

TRIANGLES_AND_ENDS = """
T.tril_indices(3,3)
T.tril_indices(3,4,1)
T.tril_indices(3,4,-1)
T.tril_indices(4,2,-3)
T.tril_indices(4,2,5)
T.tril_indices(0,2)
T.tril_indices(2,0)
T.tril_indices(2,3,-9)
T.triu_indices(3,3)
T.triu_indices(3,4,1)
T.triu_indices(3,4,-1)
T.triu_indices(4,2,-3)
T.triu_indices(4,2,5)
T.triu_indices(0,2)
T.triu_indices(2,0)
T.triu_indices(2,3,-9)
T.triu_indices(5,3,dtype=T.int32)
T.tril_indices(1,2**62)
T.tril_indices(2,2**62,1)
T.triu_indices(2**62,3,70000)
T.LongTensor([True,1.5,1j])
delattr(T.ones(2),"name")
F.mse_loss(T.tensor([True,False]),T.ones(2))
F.mse_loss(T.ones(2),T.tensor([True,False]))
F.mse_loss(T.tensor([True]),T.tensor([True]))
T.ldexp(T.ones(3),T.tensor([1,2,3]).byte())
T.ldexp(T.ones(3),T.tensor([1,-2,3]).char())
T.ldexp(T.ones(3).half(),T.tensor([1,-2,3]).short())
T.device(T.tensor(-3))
T.device(T.tensor(0))
T.unravel_index(T.tensor([1]),True)
T.unravel_index(T.tensor([1,2]),(3,2,True))
T.tensordot(2, T.ones(2), ([0], [0]))
T.tensordot(T.ones(2), 2, ([0], [0]))
T.cdist(np.array(2.5), T.ones(2, 4))
T.linspace(0,1e300,5)
T.linspace(0,1e300,1)
T.linspace(1e300,0,5,dtype=T.float64)
T.linspace(0,float('inf'),3)
T.linspace(0,1,3)
T.linspace(0,1e5,3,dtype=T.float16)
T.linspace(0,1e300,0)
T.argmax(T.zeros(0,3).to(T.float8_e5m2),-1).dtype
T.argmax(T.zeros(0,3).to(T.uint16),-1).dtype
T.masked.median(T.ones(3,4),0,keepdim=1)
T.masked.median(T.ones(3,4),0,keepdim=True)
T.masked.logaddexp(T.ones(2).bfloat16(),T.ones(2).double())
T.masked.logaddexp(T.ones(2),T.ones(2))
"""


def outcome(library, text):
    try:
        return repr(
            eval(text, {"T": library, "np": numpy, "F": library.nn.functional, "N": library.nn})
        ).replace("rushlight", "torch")
    except Exception as error:
        first = str(error).partition("\n")[0]
        return f"{type(error).__name__}: {first}".replace("rushlight", "torch")
    finally:
        library.set_default_dtype(library.float32)


TABLES = {
    "storages": STORAGES,
    "objects": OBJECTS,
    "making": MAKING,
    "writing": WRITING,
    "numbers": NUMBERS,
    "shared_and_split": SHARED_AND_SPLIT,
    "triangles_and_ends": TRIANGLES_AND_ENDS,
}


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
