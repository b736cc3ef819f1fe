"""Private steps of gradcheck and autograd.functional that programs import: the same results and words."""

import pytest
import torch as torch_itself
from expressions import outcome

import rushlight

SETUP = """
from importlib import import_module
G, A = (import_module(f'{torch.__name__}.autograd.{name}') for name in ('gradcheck', 'functional'))
z = torch.tensor([1+2j, 3-1j], dtype=torch.complex128, requires_grad=True)
x = torch.tensor([1., 3.], dtype=torch.float64, requires_grad=True)
w, y, s, o = x.detach().clone().requires_grad_(), x ** 2, torch.eye(2).to_sparse(), torch.ones
e = o(1, dtype=torch.float64).requires_grad_().expand(3)
F = import_module(f'{torch.__name__}.autograd.forward_ad')
with F.dual_level(): F.make_dual(o(1), o(1))  # the first time torch compiles something, and warns
limits = 1e-6, 1e-3, 1e-5, True, 0.0
wide, loose = (1e-6, 1e-3, 1e-5, True, True, True, 0.0, True), (1e-6, 1e-5, 1e-3, 0.0, False, False)
def half(x): return x * x.detach()
class Unsure(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x ** 2
    @staticmethod
    def backward(ctx, g): return g * torch.rand(2, dtype=g.dtype)
def rounded(j): return (torch.view_as_real(j) if j.is_complex() else j).round(decimals=4)
def near(found): return [list(map(rounded, row)) for row in found]
def kinds(found): return [(t.requires_grad, t.is_leaf, tuple(t.shape), t.dtype) for t in found]
"""
LINES = """
near(G._get_numerical_jacobian(lambda t: (t * t.conj()).real, (z,), eps=1e-6))
near(G._get_numerical_jacobian(lambda a, b: (a * b, a + b), (x, w)))
near(G._get_numerical_jacobian(lambda a, b: (a * b, a + b), (x, 3.0), target=x))
G._get_numerical_jacobian(lambda t: t * 1j, (z,))
near([G.get_numerical_jacobian_wrt_specific_input(lambda a: a ** 2, 0, (x,), (y,), 1e-6, is_forward_ad=True)])
[G._adjusted_atol(1e-5, u, v) for u in (o(3), (o(3), o(3))) for v in (None, o(2) * 3)]
[G._vec_from_tensor(t, torch.Generator().manual_seed(0), down) for t in (x, z) for down in (True, False)]
G._get_inp_tensors((x, 3, o(2), z))
G._transpose([[1, 2], [3, 4]]), G._to_real_dtype(torch.complex64), G._to_real_dtype(torch.float16)
[t[1:] for t in G._iter_tensor(x.view(1, 2))]
kinds(G._allocate_jacobians_with_inputs((x, z), 4))
kinds(G._allocate_jacobians_with_outputs((x, z), 4, dtype=z.dtype))
G._get_analytical_jacobian((3, x), (y,), 0, 0)
G._compute_analytical_jacobian_rows(lambda g: torch.autograd.grad(y, x, g, True), y)
G._get_analytical_jacobian_forward_ad(lambda x: (x ** 2, x.sum()), (x,), (y, x.sum()))
[G._check_inputs((x,))]
G._check_inputs((o(2),))
G._check_inputs((o(2, requires_grad=True),))
G._check_inputs((e,))
G._check_outputs((s,))
G._test_backward_mul_by_grad_output((y,), (x,), True), G._dot_with_type_promotion(o(2), x)
G._test_backward_mul_by_grad_output((y,), (o(1),), True)
[f(t) for f in G._real_and_imag_output(lambda z: z * 2) for t in (x, z)]
[f(x) for f in G._real_and_imag_input(lambda z: z * 2, [0], (z,))]
[G._allclose_with_type_promotion(o(2), o(2) * 1.5 ** k, 1e-3, 1e-3) for k in range(2)]
G._mul_tensor_or_tuple(x, 2), G._mul_tensor_or_tuple((x, x), 2), G._reshape_tensor_or_tuple((x, x), (2, 1))
[G._check_jacobians_equal([x], [x + far], 1e-2) for far in (1e-3, 1e-1)]
G._to_flat_dense_if_sparse(s), G._is_sparse_any_tensor(x), G._is_sparse_any_tensor(s)
[A._as_tuple_nocheck(t) for t in ((1,), [1], 3)], A._as_tuple(x), A._as_tuple((x,), 'i', 'f')
A._as_tuple(3, 'inputs', 'fn')
A._as_tuple((3,), 'inputs', 'fn')
[kinds(A._grad_preprocess((x, w.detach()), c, n)) for c in (True, False) for n in (True, False)]
A._autograd_grad((y, w.detach()), (x,), (o(2).double(),) * 2), A._autograd_grad((w.detach(),), (x,))
A._autograd_grad([y], (x,))
A._autograd_grad((y,), (x,), [x])
A._autograd_grad((y,), (x,), (x, x))
A._validate_v((x,), (x, x), True)
A._validate_v((x,), (x, x), False)
A._validate_v((x,), (x[:1],), True)
[A._jacfwd(lambda a, b: (a * b, a.sum()), (w.data, w.data * 3), vectorize=True)]
A._jacfwd(torch.exp, x.data, False, True)
A._jacfwd(torch.exp, x)
A._jacfwd(torch.exp, x, True, True)
[G._check_outputs_same_dtype_and_shape(o(2), o(2), 1e-6)]
G._check_outputs_same_dtype_and_shape(o(2), o(3), 1e-6)
G._check_outputs_same_dtype_and_shape(o(2), o(2).double(), 1e-6, (1,))
[G._check_no_differentiable_outputs(lambda x: x.long(), (x,), (x.long(),), 1e-6, is_forward_ad=False)]
G._check_no_differentiable_outputs(lambda x: x.detach() * 2, (x,), (w.detach(),), 1e-6, is_forward_ad=False)
[rounded(t) for t in G._check_analytical_jacobian_attributes((x, w), x ** 2 * w, 0.0, False)]
G._check_analytical_jacobian_attributes((x,), Unsure.apply(x), 0.0, False)
"""
for _step in ("_slow_gradcheck", "_fast_gradcheck"):
    LINES += f"""
[G.{_step}(lambda x: x ** 2, y, (x,), (y,), *limits, use_forward_ad=k) for k in (False, True)]
G.{_step}(half, v := half(x), (x,), (v,), *limits)
G.{_step}(half, v := half(x), (x,), (v,), *limits, complex_indices=[0], test_imag=True)
G.{_step}(half, v := half(x), (x,), (v,), *limits, complex_indices=[0])
G.{_step}(Unsure.apply, v := Unsure.apply(x), (x,), (v,), *limits)
G.{_step}(half, v := half(x), (x,), (v,), *limits, use_forward_ad=True)
G.{_step}(half, v := half(x), (x,), (v,), *limits, use_forward_ad=True, complex_indices=[0])
[G._gradcheck_real_imag(G.{_step}, lambda z: z * z, v := z * z, (z,), (v,), *wide)]
G._gradcheck_real_imag(G.{_step}, half, v := half(z), (z,), (v,), *wide)
"""
LINES += """
[G._gradcheck_helper(lambda z: z * z, (z,), *loose, True, False, True, True, k, k) for k in (False, True)]
G._gradcheck_helper(half, (z,), *loose, True, False, True, True, True, False)
isinstance(G.FAILED_BATCHED_GRAD_MSG, str), isinstance(G.FAILED_BATCHED_GRAD_MSG_FWD_AD, str)
"""
LINES = [line for line in LINES.splitlines() if line]
for _kind in ("outputs", "grad_inputs", "jacobian", "other"):
    LINES += [
        f"A._check_requires_grad(({one},), '{_kind}', {_kind != one})" for one in ("x", "None", "x.detach()")
    ]
for _stage in ("back", "back_trick", "double_back", "double_back_trick", "other"):
    LINES += [
        f"A._fill_in_zeros(({one},), (x,), True, True, '{_stage}')" for one in ("x", "None", "x.detach()")
    ]
    LINES += [f"A._fill_in_zeros((None, x.detach()), (x, x), False, True, '{_stage}')"]
LINES += [
    f"A.{name}(lambda x: {function}, x.detach(), {v}, {graph}, strict=True)"
    for name, v in (("vjp", "o(2).double()"), ("jvp", "o(2).double()"))
    for function in ("x * 2", "x.detach() * 2", "o(2).double().requires_grad_()", "x ** 2")
    for graph in (True, False)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", LINES)
def test_as_in_torch(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch_itself, text, SETUP)


NAMES = """
[str(C._dispatch_keys(t)) for t in (x, o(2, device='meta'), (o(2) * 1j).conj(), torch.eye(2).to_sparse())]
str(K(D.AutogradCPU) | K(D.CPU)), (K(D.CPU) | K(D.Meta)).has(D.Meta), repr(D.CPU), int(D.CPU), str(D.Meta)
str(K(D.CPU).add(D.Conjugate)), str((K(D.CPU) | K(D.AutogradCPU)).remove(D.CPU)), K(D.CPU) == K(D.CPU)
(K(D.CPU) | K(D.ADInplaceOrView)).highestPriorityTypeId(), C._dispatch_key_parse('Meta')
below(C._ExcludeDispatchKeyGuard(K(D.AutogradCPU))), below(C._AutoDispatchBelowAutograd())
[C._dispatch_tls_is_dispatch_key_excluded(name) for name in ('AutogradCPU', 'AutocastCPU')]
[steps(C._ExcludeDispatchKeyGuard(K(getattr(D, name)))) for name in ('AutogradCPU', 'Python', 'AutocastCPU')]
[steps(C._IncludeDispatchKeyGuard(getattr(D, name))) for name in ('AutogradCPU', 'AutocastCPU', 'CPU')]
steps(C._SetExcludeDispatchKeyGuard(D.AutogradCPU, True)), steps(C._PreserveDispatchKeyGuard())
steps(C._ExcludeDispatchKeyGuard(K(D.AutogradCPU)), C._SetExcludeDispatchKeyGuard(D.AutogradCPU, False))
steps(lambda: C._ForceDispatchKeyGuard(local()[0], local()[1] | K(D.AutogradCPU)))
steps(lambda: C._ForceDispatchKeyGuard(*local()))
steps(*(lambda e=each: C._ForceDispatchKeyGuard(local()[0], e) for each in forced()))
left_out('AutogradCPU'), steps(C._PreserveDispatchKeyGuard())
[list(f._iter_tensors([x, (x, None), {'a': x}])), list(f._iter_tensors_permissive([x, 3, 'a']))]
list(f._iter_tensors([3]))
[f._unflatten([1, 2, 3, 4], [0, (0, [0])]), f._unflatten([1, None], [0, None]), f._map_tensor_data([x, (x,)])]
g._get_tid(x)[0] == id(x), g._get_tid(x)[1:] == g._get_sid(x) == (x.data_ptr(), 0)
[callable(g._register_logging_hooks_on_whole_graph([y])), g.Variable.__name__, g.TorchDispatchMode.__name__]
P.any_torch_dispatch_mode_on_stack(), P._len_torch_dispatch_stack()
P.TorchDispatchMode.supports_higher_order_operators, P.TorchDispatchMode.ignore_compile_internals()
O._len_torch_function_stack(), O._is_torch_function_mode_enabled(), O._has_torch_function_variadic(x, 3)
[C.is_autocast_enabled(), C.get_autocast_cpu_dtype(), C.finfo(torch.float32).eps, C._has_storage(x)]
[C._enter_dual_level(), C._exit_dual_level(level=0)]
dict(C._autograd.CreationMeta.__members__), C._autograd._get_creation_meta(x.detach()[:1])
C._autograd.CreationMeta(3), C._autograd.CreationMeta.DEFAULT == 0
[p._run_on_profiler_start(), p._is_profiler_enabled, p._set_is_profiler_enabled(0), p._is_profiler_enabled]
[getattr(p, name) is getattr(C._autograd, name) for name in ('_enable_profiler', '_prepare_profiler')]
[n.__name__ for n in (p.ProfilerActivity, p.ProfilerConfig, p.ProfilerState, p._ExperimentalConfig)]
p._what_is_not_there
mutating(lambda ctx: g._allow_mutation_on_saved_tensors_enabled), g._allow_mutation_on_saved_tensors_enabled
mutating(swapped), issubclass(g._swap_with_cloned, g.saved_tensors_hooks)
cloned(True), cloned(False)
[(t := o(2)).apply_(lambda v: v + 1), t.map_(o(2), max), t.map2_(o(2), o(2), lambda a, b, c: a), t._version]
[(t := o(2), u := t[:1], u.apply_(lambda v: v + 1))[0], t._version, u._version]
[inferred().apply_(lambda v: v + 1), inferred().map_(o(2), lambda a, b: a + b), inferred().is_inference()]
[B._pack_with_none([0, 2], (5, 6), 4), B._unpack_none([1, 0], (5, 6))]
seen_by_hooks(1), seen_by_hooks(2)
[k._is_compiling(None, (), {}), k._sac_storage_key('mul', (1, 2))]
k._checkpoint_error_template.format(forward_traces=1, recompute_traces=2, forward_ops=3, recompute_ops=4)[:28]
y.grad_fn.register_hook(hook=print)
y.grad_fn.register_prehook(print, hook=print)
"""
SETUP_NAMES = (
    SETUP
    + """
import contextlib
C, f, g, P, O, p, k, H = (import_module(f'{torch.__name__}.{name}') for name in
    '_C autograd.function autograd.graph utils._python_dispatch overrides autograd.profiler utils.checkpoint '
    'utils.hooks'.split())
B = H.BackwardHook(None, [], [])
def seen_by_hooks(count):
    hooks, seen = H.BackwardHook('m', [lambda m, i, g: seen.append((m, i, g))] * count, []), []
    (a, n), where = hooks._apply_on_tensors(hooks._set_user_hook, (x * 1, 3))
    hooks.input_tensors_index, hooks.n_inputs, hooks.grad_outputs = where, 2, ('out',)
    (a * 2).sum().backward()
    return seen, where, hooks.grad_outputs, type(a.grad_fn).__name__
def cloned(inside):
    ctx = g._AllowMutationOnSavedContext()
    with g._swap_with_cloned(ctx):
        v = x * 1
        z = v ** 2
        if inside:
            with g._CloneArgBeforeMutateMode(ctx): v.mul_(2)
        else:
            v.mul_(2)
    return len(ctx.original), len(ctx.cloned)
D, K = C.DispatchKey, C.DispatchKeySet
F = torch.autograd.forward_ad
def local(): return C._dispatch_tls_local_include_set(), C._dispatch_tls_local_exclude_set()
def steps(*guards):
    # What is recorded, carried, cast and asked within guards, and whether a step is left out; and after.
    found, asked = [], []
    class Mode(P.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return func(*args, **(kwargs or {}))
    def look():
        product, twice = o(2, 2) @ o(2, 2), dual * 2
        found.append(((x * 1).requires_grad, twice, product.dtype, len(asked)))
        found.append([C._dispatch_tls_is_dispatch_key_excluded(name) for name in ('AutogradCPU', 'Python')])
        found.append(C._dispatch_tls_is_dispatch_key_included('AutogradCPU'))
        asked.clear()
    with F.dual_level(), torch.autocast('cpu'):
        dual = F.make_dual(o(2), o(2))
        with Mode():
            with contextlib.ExitStack() as stack:
                for guard in guards: stack.enter_context(guard() if callable(guard) else guard)
                look()
            look()
        tangent = lambda t: F.unpack_dual(t).tangent
        return [(a[0], tangent(a[1]), a[2], a[3] > 0) if isinstance(a, tuple) else a for a in found]
def forced():
    with torch.autocast('cpu'):
        present = local()[1]
    return present | K(D.AutogradCPU), present
def left_out(name):
    found = []
    with C._PreserveDispatchKeyGuard():
        C._dispatch_tls_set_dispatch_key_excluded(getattr(D, name), True)
        found += steps()[:2]
        C._dispatch_tls_set_dispatch_key_included(D.AutogradCPU, True)
        found += steps()[:2]
    return found, steps()
def mutating(function):
    with g.allow_mutation_on_saved_tensors() as ctx: return function(ctx)
def swapped(ctx):
    with g._swap_with_cloned(ctx): z = x ** 2
    return len(ctx.original), torch.autograd.grad(z.sum(), x)
@torch.inference_mode()
def inferred(): return o(2) * 1
def below(guard):
    with guard: return (x * 2).requires_grad
"""
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [line for line in NAMES.splitlines() if line])
def test_names_behind_the_public_ones(text):
    assert outcome(rushlight, text, SETUP_NAMES) == outcome(torch_itself, text, SETUP_NAMES)


def test_the_keys_are_torchs():
    ours, theirs = (
        {name: int(key) for name, key in lib._C.DispatchKey.__members__.items()}
        for lib in (rushlight, torch_itself)
    )
    assert ours == theirs


def test_steps_that_cannot_be_left_out():
    C = rushlight._C
    with pytest.raises(NotImplementedError, match="ADInplaceOrView"):
        C._ExcludeDispatchKeyGuard(C.DispatchKeySet(C.DispatchKey.ADInplaceOrView))


MORE = """
C._check_sparse_tensor_invariants(), C._get_deterministic_fill_uninitialized_memory()
C._from_dlpack(C._to_dlpack(o(2)))
[C._swap_tensor_impl(a := o(2), b := o(3) * 2), a, b]
sorted(map(str, C._group_tensors_by_device_and_dtype([[o(1), o(1).double()]], True).items()))
[U.get_tensor_metadata(o(2)), U.get_tensor_metadata((o(2) * 1j).conj().imag), U.cpu_count() > 0]
[T._convert([o(1)], Q), T._rebuild_from_type_v2(torch.zeros, torch.Tensor, (2,), {'a': 1}).a]
T._rebuild_from_type(torch.zeros, Q, (2,), {'a': 1}).a
torch.autograd.variable(3)
"""
SETUP_MORE = (
    SETUP
    + """
C, U, T = (import_module(f'{torch.__name__}.{name}') for name in ('_C', '_utils', '_tensor'))
import_module(f'{torch.__name__}.utils.deterministic')
class Q(torch.Tensor): pass
"""
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [line for line in MORE.splitlines() if line])
def test_more_names_behind_the_public_ones(text):
    assert outcome(rushlight, text, SETUP_MORE) == outcome(torch_itself, text, SETUP_MORE)
