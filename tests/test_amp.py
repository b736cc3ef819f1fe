"""autocast and GradScaler."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F

LOW, FULL = torch.bfloat16, torch.float32


def test_which_functions_are_lowered():
    x, weight = torch.randn(4, 4), torch.nn.Parameter(torch.randn(4, 4))
    with torch.autocast("cpu", dtype=LOW):
        products = [x @ x, torch.mm(x, x), x.matmul(x), F.linear(x, weight), torch.bmm(x[None], x[None])]
        assert all(product.dtype == LOW for product in products)
        assert (x + x).dtype == FULL and torch.exp(x).dtype == FULL
        assert F.mse_loss(products[0], x).dtype == FULL and products[0].prod().dtype == FULL
        assert torch.cat([products[0], x]).dtype == FULL
        assert (x.double() @ x.double()).dtype == torch.float64
        with torch.autocast("cpu", enabled=False):
            assert (x @ x).dtype == FULL
        assert (x @ x).dtype == LOW
    assert (x @ x).dtype == FULL and torch.mm(x, x).dtype == FULL
    # how many slots are others than the native ones
    assert torch._C.keep_native_operators(torch.Tensor) == 0
    assert torch._C.keep_native_operators(torch.nn.Parameter) == 0


def test_gradients_are_those_of_the_casts():
    layer = torch.nn.Linear(8, 3)
    x = torch.randn(5, 8)
    with torch.autocast("cpu", dtype=LOW):
        out = layer(x) + layer(x)  # the second time with the weight kept in bfloat16
        loss = F.mse_loss(out, torch.zeros(5, 3))
    loss.backward()
    assert layer.weight.grad.dtype == FULL
    low = [p.detach().to(LOW).requires_grad_() for p in layer.parameters()]
    twice = F.linear(x.to(LOW), *low) + F.linear(x.to(LOW), *low)
    F.mse_loss(twice.float(), torch.zeros(5, 3)).backward()
    torch.testing.assert_close(layer.weight.grad, low[0].grad.float(), rtol=2e-2, atol=1e-2)


def test_state_and_decorator():
    @torch.autocast("cpu")
    def product(x):
        return x @ x

    assert product(torch.ones(2, 2)).dtype == LOW and not torch.is_autocast_enabled("cpu")
    with torch.amp.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == LOW
    with pytest.warns(UserWarning, match="CUDA is not available"):
        torch.autocast("cuda")
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        torch.autocast("cpu", dtype=torch.float32)


def test_grad_scaler():
    param = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([param], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for step in range(2):
        optimizer.zero_grad()
        scaler.scale((param * 2).sum()).backward()
        assert param.grad.tolist() == [16.0, 16.0]
        scaler.unscale_(optimizer)
        assert param.grad.tolist() == [2.0, 2.0]
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == (8.0, 16.0)[step]
    before = param.tolist()
    param.grad = torch.tensor([float("inf"), 1.0])
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == before and scaler.get_scale() == 8.0
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()


def test_custom_functions():
    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g @ x.t() + x.t() @ g

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        assert Square.apply(x).dtype == FULL
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_block_that_a_hook_entered_ends_with_the_backward():
    torch.autocast_increment_nesting()
    open_before = torch.autocast_decrement_nesting()
    x = torch.ones(2, 2, requires_grad=True)
    (y := x * 2).register_hook(lambda g: torch.autocast("cpu").__enter__() and None)
    operator = torch.Tensor.__matmul__
    y.sum().backward(retain_graph=True)
    assert torch.Tensor.__matmul__ is operator and not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu"):
        assert (x @ x).dtype == torch.bfloat16
        y.sum().backward()
        assert (x @ x).dtype == torch.bfloat16
    assert torch.Tensor.__matmul__ is operator
    # Nobody left the two blocks: they count on, as in torch, and would keep the cache of every later block.
    assert [torch.autocast_decrement_nesting() - open_before for _ in range(2)] == [1, 0]
