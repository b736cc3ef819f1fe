"""What a TorchDispatchMode is asked about, forward and backward, by layers that programs are made of: torch's
operations with torch's arguments."""

import importlib

import pytest
import torch as torch_itself

import rushlight

LAYERS = """
nn.BatchNorm1d(3) | (4, 3)
nn.BatchNorm2d(3) | (2, 3, 4, 4)
nn.BatchNorm1d(3).eval() | (4, 3)
nn.BatchNorm1d(3, affine=False, track_running_stats=False) | (4, 3)
nn.InstanceNorm2d(3) | (2, 3, 4, 4)
nn.Linear(3, 4) | (2, 3)
nn.Linear(3, 4) | (2, 2, 3)
nn.Linear(3, 4, bias=False) | (2, 3)
nn.Dropout(0.5) | (4, 3)
nn.Dropout(0.5).eval() | (4, 3)
nn.Dropout2d(0.5) | (2, 3, 2, 2)
nn.AlphaDropout(0.5) | (4, 3)
nn.FeatureAlphaDropout(0.5) | (2, 3, 2, 2)
nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)) | (2, 3)
nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)) | (2, 2, 5, 5)
lambda x: F.leaky_relu_(x * 1) | (3,)
lambda x: F.dropout(x * 1, 0.5, True, True) | (3,)
lambda x: x.mm(x.t()) | (2, 3)
lambda x: x.t().mm(x) | (2, 3)
lambda x: torch.addmm(x[0], x, x.t(), beta=2, alpha=3) | (3, 3)
"""


def asked(torch, expression, size):
    """[operation, shapes and numbers it was given] in the order in which they were asked about."""
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    seen = []

    def told(value):
        if isinstance(value, torch.Tensor):
            return list(value.shape)
        return [told(each) for each in value] if isinstance(value, (list, tuple)) else str(value)

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            keywords = {name: told(value) for name, value in (kwargs or {}).items()}
            seen.append(str([str(func), told(args), keywords]).replace("rushlight", "torch"))
            return func(*args, **(kwargs or {}))

    torch.manual_seed(0)
    known = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    layer, x = eval(expression, known), torch.rand(size, requires_grad=True)
    with Log():
        result = layer(x)
        result.sum().backward()
    node = result.grad_fn and result.grad_fn.name()
    return seen, node, [round(n, 4) for n in x.grad.flatten().tolist()]


@pytest.mark.parametrize("line", LAYERS.strip().splitlines())
def test_torchs_operations_are_seen(line):
    expression, size = line.rsplit("|", 1)
    assert asked(rushlight, expression, eval(size)) == asked(torch_itself, expression, eval(size))


def test_a_number_put_under_a_mask():
    x = rushlight.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with quiet():
        y = x * 2
        y[x > 1.5] = 0.0
        y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def quiet():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    class Quiet(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    return Quiet()


def test_second_derivatives_leave_running_statistics_alone():
    layer = rushlight.nn.BatchNorm1d(2).double()
    x = rushlight.rand(4, 2, dtype=rushlight.float64, requires_grad=True)
    with quiet():
        (g,) = rushlight.autograd.grad(layer(x).pow(3).sum(), x, create_graph=True)
        mean = layer.running_mean.clone()
        (again,) = rushlight.autograd.grad(g.pow(2).sum(), x)
    assert rushlight.equal(layer.running_mean, mean)
    plain = rushlight.nn.BatchNorm1d(2).double()
    (g,) = rushlight.autograd.grad(plain(x).pow(3).sum(), x, create_graph=True)
    rushlight.testing.assert_close(again, rushlight.autograd.grad(g.pow(2).sum(), x)[0])


def test_what_schemas_say_of_shared_memory():
    import torch.utils._python_dispatch as theirs

    from rushlight.utils._python_dispatch import get_alias_info

    names = "add_.Tensor view.default add.out split.Tensor t_.default max.dim_max _foreach_add_.Scalar"
    for name in names.split(" "):
        packet, overload = name.split(".")
        mine, other = (getattr(getattr(lib.ops.aten, packet), overload) for lib in (rushlight, torch_itself))
        assert repr(get_alias_info(mine)) == repr(theirs.get_alias_info(other))


def test_reentrant_dispatch_belongs_into_a_handler():
    for lib in (rushlight, torch_itself):
        with pytest.raises(RuntimeError, match="Accessing torch dispatch state outside of"):  # noqa: SIM117
            with lib.overrides.enable_reentrant_dispatch():
                pass
        with lib._C.DisableTorchFunctionSubclass(), lib.overrides._enable_torch_function():
            assert lib._C._is_torch_function_enabled()
