"""Every operation of the table without torch: values, dtypes, derivatives, in-place forms, layouts."""

import itertools
import re

import pytest
from gradcheck import gradcheck, gradgradcheck
from samples import LACKS, OPS
from sampling import DTYPES, Op, Sample, build, dtype_names, tensors_in

import rushlight
from rushlight.ops._public import FUNCTIONS

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def ops(keep=lambda op: True):
    return pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values() if keep(op)])


def same(a, b, tolerance=0.0):
    """Whether two numbers, lists of numbers or results are equal, nan being equal to itself."""
    if isinstance(a, rushlight.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and same(a.tolist(), b.tolist(), tolerance)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(p, q, tolerance) for p, q in zip(a, b))
    return a == b or (a != a and b != b) or (tolerance > 0 and abs(a - b) <= tolerance * (1 + abs(b)))


def explain(op: Op, sample: Sample, detail: str = "") -> str:
    return f"{op.name}{sample} {detail}"


@ops(lambda op: op.reference is not None)
def test_values_agree_with_python_numbers(op):
    dtype = "float64" if "float64" in dtype_names(op.dtypes) else "int64"
    for sample in op.for_dtype(dtype):
        if sample.kwargs or any(item.dtype for item in sample.inputs()):
            continue
        args, kwargs = build(rushlight, sample, dtype)
        result = op.function(rushlight)(*args, **kwargs)
        broadcast = [
            arg.expand(result.shape).reshape(-1).tolist()
            if isinstance(arg, rushlight.Tensor)
            else [arg] * result.numel()
            for arg in args
        ]
        for numbers, got in zip(zip(*broadcast), result.reshape(-1).tolist(), strict=True):
            want = op.reference(*numbers)
            assert abs(got - want) <= 1e-12 * (1 + abs(want)), explain(
                op, sample, f"of {numbers}: {got}, not {want}"
            )


@ops()
def test_every_dtype_runs_or_raises(op):
    supported = dtype_names(op.dtypes)
    for dtype in DTYPES:
        refused = []
        samples = list(op.for_dtype(dtype))
        for sample in samples:
            args, kwargs = build(rushlight, sample, dtype)
            try:
                op.function(rushlight)(*args, **kwargs)
            except REFUSALS as error:
                refused.append(error)
                assert dtype not in supported, explain(op, sample, f"refuses {dtype}: {error}")
        if samples and op.strict:
            assert dtype in supported or refused, f"{op.name} accepts {dtype}"


def as_function_of_inputs(op, sample, dtype):
    """The call as a function of its differentiable inputs, and those inputs."""
    inputs = []
    args, kwargs = build(rushlight, sample, dtype, leaves=inputs)

    def function(*tensors):
        given = iter(tensors)

        def swap(tree):
            if any(tree is leaf for leaf in inputs):
                return next(given)
            if type(tree) in (list, tuple):
                return type(tree)(swap(item) for item in tree)
            if type(tree) is dict:
                return {name: swap(item) for name, item in tree.items()}
            return tree

        return op.function(rushlight)(*swap(args), **swap(kwargs))

    return function, inputs


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@ops(lambda op: op.grad)
def test_gradients(op, dtype):
    if dtype not in dtype_names(op.grad):
        pytest.skip(f"not differentiable in {dtype}")
    refused = False
    for sample in op.for_dtype(dtype):
        if not sample.grad:
            continue
        function, inputs = as_function_of_inputs(op, sample, dtype)
        try:
            gradcheck(rushlight, function, inputs, tolerance=op.tolerance)
            if op.second:
                gradgradcheck(rushlight, function, inputs, tolerance=op.tolerance)
        except Exception as error:
            if is_refusal(op, "second", error):
                refused = True
                continue
            error.add_note(explain(op, sample, dtype))
            raise
    assert refused == ("second" in LACKS.get(op.name, ""))


def is_refusal(op, which, error):
    """Whether the error says that there is no such derivative, and there is none."""
    said = re.match(r"(the )?derivative for .* is not implemented|Trying to use forward AD with", str(error))
    return said is not None and which in LACKS.get(op.name, "")


def real_product(a, b):
    """The real inner product that defines gradients: Re(conj(a) b)."""
    return sum((x.conj() * y).real.sum().item() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@ops(lambda op: op.grad)
def test_forward_mode_is_the_transpose_of_reverse_mode(op, dtype):
    if dtype not in dtype_names(op.grad):
        pytest.skip(f"not differentiable in {dtype}")
    import rushlight.autograd.forward_ad as fwAD

    generator = rushlight.Generator().manual_seed(7)

    def like(x):
        return rushlight.randn(x.shape, dtype=x.dtype, generator=generator)

    refused = False
    for sample in op.for_dtype(dtype):
        if not sample.grad:
            continue
        function, inputs = as_function_of_inputs(op, sample, dtype)
        outs = [o for o in tensors_in(rushlight, function(*inputs)) if o.requires_grad]
        if not outs:
            continue
        weights, directions = [like(o) for o in outs], [like(x) for x in inputs]
        pulled = rushlight.autograd.grad(outs, inputs, weights, allow_unused=True, materialize_grads=True)
        with fwAD.dual_level(), rushlight.no_grad():
            plain = [x.detach() for x in inputs]
            duals = [fwAD.make_dual(x, t) for x, t in zip(plain, directions, strict=True)]
            try:
                made = function(*duals)
            except NotImplementedError as error:
                if not is_refusal(op, "forward", error):
                    raise
                refused = True
                continue
            results = [o for o in tensors_in(rushlight, made) if o.is_floating_point() or o.is_complex()]
            assert len(results) >= len(outs)
            pushed = [
                rushlight.zeros_like(o) if t is None else t
                for o, t in ((o, fwAD.unpack_dual(o).tangent) for o in results[: len(outs)])
            ]
        left, right = real_product(weights, pushed), real_product(pulled, directions)
        if left == left or right == right:
            assert abs(left - right) <= 1e-8 * (1 + abs(right)), explain(op, sample, f"{left} {right}")
    assert refused == ("forward" in LACKS.get(op.name, ""))


@ops(lambda op: op.inplace)
def test_in_place_form_equals_the_function(op):
    for dtype in ("float32", "int64", "complex128", "bool"):
        if dtype not in dtype_names(op.dtypes if op.inplace is True else op.inplace):
            continue
        spread = () if op.view else op.layouts
        layouts = ("contiguous", *(layout for layout in spread if layout != "expanded"))
        for sample, layout in itertools.product(op.for_dtype(dtype), layouts):
            args, kwargs = build(rushlight, sample, dtype, layout)
            if not isinstance(args[0], rushlight.Tensor) or "dtype" in kwargs:
                continue
            expected = op.function(rushlight)(*args, **kwargs)
            target = rushlight.empty_strided(args[0].shape, args[0].stride(), dtype=args[0].dtype).copy_(
                args[0]
            )
            method = getattr(target, op.name + "_")
            fits = expected.shape == target.shape or op.view
            if not fits or not rushlight.can_cast(expected.dtype, target.dtype):
                with pytest.raises(RuntimeError):
                    method(*args[1:], **kwargs)
                    pytest.fail(explain(op, sample, f"{dtype} in place"))
                assert same(target, args[0]), explain(op, sample, "changed its tensor although it failed")
                continue
            version = target._version
            assert method(*args[1:], **kwargs) is target
            assert same(target, expected.to(target.dtype)), explain(op, sample, f"{dtype} in place")
            assert target._version > version or op.view or expected is args[0]


@ops(lambda op: op.method and "." not in op.name)
def test_method_equals_function(op):
    dtype = dtype_names(op.dtypes)[0]
    for sample in op.for_dtype(dtype):
        args, kwargs = build(rushlight, sample, dtype)
        if isinstance(args[0], rushlight.Tensor):
            expected = op.function(rushlight)(*args, **kwargs)
            assert same(getattr(args[0], op.name)(*args[1:], **kwargs), expected), explain(op, sample)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@ops(lambda op: op.layouts)
def test_memory_layout_makes_no_difference(op, dtype):
    """Transposed, strided, shifted, expanded inputs give what contiguous copies give, gradients too."""
    if dtype not in dtype_names(op.dtypes):
        pytest.skip(f"does not take {dtype}")
    function = op.function(rushlight)
    for sample in op.for_dtype(dtype):
        for layout in op.layouts:
            results, gradients = [], []
            for copy in (False, True):
                leaves = [] if dtype in dtype_names(op.grad) and sample.grad else None
                args, kwargs = build(rushlight, sample, dtype, layout, leaves, copy)
                results.append(function(*args, **kwargs))
                outputs = [out for out in tensors_in(rushlight, results[-1]) if out.requires_grad]
                loss = sum((out * out).abs().sum() for out in outputs)
                if leaves and outputs:
                    gradients.append(rushlight.autograd.grad(loss, leaves, allow_unused=True))
            assert same(*results, 1e-6 if dtype == "int64" else 1e-13), explain(
                op, sample, f"{dtype} {layout}"
            )
            for a, b in zip(*gradients):
                assert (a is None and b is None) or same(a, b, 1e-12), explain(
                    op, sample, f"gradient, {layout}"
                )


@ops(lambda op: op.view)
def test_views_share_memory(op):
    """Writing to the input shows in a view of it."""
    dtype = dtype_names(op.dtypes)[0]
    for sample in op.for_dtype(dtype):
        args, kwargs = build(rushlight, sample, dtype)
        views = tensors_in(rushlight, op.function(rushlight)(*args, **kwargs))
        for tensor in tensors_in(rushlight, args):
            tensor.zero_()
        for view in views:
            assert not view.any(), explain(op, sample)


def test_every_primitive_has_samples():
    covered = {op.name.rpartition(".")[2].strip("_") for op in OPS.values()}
    covered |= {name for op in OPS.values() for name in op.covers}
    primitives = {name: op for name, op in vars(rushlight._C.ops).items() if not name.startswith("_")}
    # What draws from a generator has no fixed result to compare: test_random.py sees to those.
    covered |= {name for name, op in primitives.items() if "generator" in op.args}
    sparse = {
        "coalesce",
        "compressed_at",
        "sampled_addmm",
        "to_compressed",
        "to_dense",
        "to_mkldnn",
        "to_sparse",
        "values",
    }  # test_sparse.py, test_sparse_training.py, test_compressed.py
    covered |= {name for name in primitives if name in sparse or re.match("sparse_|.*_sparse$", name)}
    # What is recorded otherwise where hooks look on: test_saved_again.py.
    covered |= {"again", "again_from_result", "linalg_lu", "masked_index", "masked_index_put"}
    covered |= {"embedding_bag", "max_pool_at", "safe_softmax"}
    covered |= {"listed"}  # rushlight/_foreach.py: tests/torch/test_foreach_nodes.py
    missing = [name for name in primitives if name not in covered]
    assert not missing, f"primitives without samples: {missing}"


# Functions that no table of deterministic calls on tensors can describe, and where they are tested.
ELSEWHERE = {
    "test_create.py": "arange as_tensor asarray empty empty_like empty_strided eye full linspace "
    "logspace ones scalar_tensor tensor zeros is_conj is_neg from_numpy from_dlpack frombuffer from_file "
    "numel is_complex is_floating_point is_nonzero is_same_size detach detach_ broadcast_shapes "
    "tril_indices triu_indices",
    "test_sparse.py": "_coalesce _sparse_sparse_matmul _sparse_sum _validate_sparse_coo_tensor_args dsmm "
    "hsmm hspmm saddmm smm sparse_coo_tensor spmm sspaddmm",
    "test_compressed.py": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
    "_sparse_csr_prod _sparse_csr_sum _validate_compressed_sparse_indices _validate_sparse_bsc_tensor_args "
    "_validate_sparse_bsr_tensor_args _validate_sparse_compressed_tensor_args "
    "_validate_sparse_csc_tensor_args _validate_sparse_csr_tensor_args sparse_bsc_tensor sparse_bsr_tensor "
    "sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor",
    "test_distributions.py": "_sample_dirichlet _standard_gamma",
    "test_matmul.py": "chain_matmul",
    "test_linalg.py": "svd_lowrank pca_lowrank lobpcg",
    "test_random.py": "bernoulli binomial multinomial normal poisson rand rand_like randint randint_like "
    "randn randn_like randperm",
    "test_index.py": "broadcast_shapes tril_indices triu_indices",
    "test_forms.py": "chalf empty_permuted get_device is_distributed is_inference is_signed is_storage "
    "can_cast promote_types put range result_type",
    "test_windows.py": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "test_nn.py": "dropout3d feature_alpha_dropout gumbel_softmax grouped_mm scaled_grouped_mm scaled_mm",
}
TESTED_ELSEWHERE = {name for names in ELSEWHERE.values() for name in names.split()}


def test_every_public_function_has_samples():
    covered = {op.name for op in OPS.values()} | {op.name.removeprefix("Tensor.") for op in OPS.values()}
    # What works in place is the method of that name, tested with the function it is the form of.
    forms = {name for name in FUNCTIONS if name.endswith("_")}
    missing = sorted(set(FUNCTIONS) - covered - forms - TESTED_ELSEWHERE)
    assert not missing, f"functions without samples: {missing}"


def test_every_function_of_nn_functional_has_samples():
    public = {name for name, value in vars(rushlight.nn.functional).items() if callable(value)}
    public = {name for name in public if not name.startswith("_") and not name.endswith("_")}
    covered = {op.name.removeprefix("nn.functional.") for op in OPS.values()}
    missing = sorted(public - covered - TESTED_ELSEWHERE)
    assert not missing, f"functions without samples: {missing}"
