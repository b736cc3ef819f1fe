"""A smoke suite that runs in a second: if something here fails, nothing else matters."""

import rushlight as torch


def test_arithmetic():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (a + a * 2 - 1).tolist() == [[2.0, 5.0], [8.0, 11.0]]
    assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert (a > 2).tolist() == [[False, False], [True, True]]
    assert (2 / a).tolist() == [[2.0, 1.0], [2 / torch.tensor(3.0).item(), 0.5]] or (2 / a)[
        1, 1
    ].item() == 0.5


def test_reductions():
    a = torch.arange(6).reshape(2, 3)
    assert a.sum().item() == 15
    assert a.sum(0).tolist() == [3, 5, 7]
    assert a.float().mean(1, keepdim=True).tolist() == [[1.0], [4.0]]
    values, places = a.max(1)
    assert (values.tolist(), places.tolist()) == ([2, 5], [2, 2])


def test_views_share_memory():
    a = torch.zeros(2, 3)
    a.T[0] = 1
    a[1:, 1:].fill_(2)
    a[:, -1] += 3
    assert a.tolist() == [[1.0, 0.0, 3.0], [1.0, 2.0, 5.0]]


def test_indexing():
    a = torch.arange(12).reshape(3, 4)
    assert a[1, 2].item() == 6
    assert a[:, ::2].tolist() == [[0, 2], [4, 6], [8, 10]]
    assert a[torch.tensor([2, 0]), torch.tensor([1, 3])].tolist() == [9, 3]
    assert a[a > 8].tolist() == [9, 10, 11]


def test_backward():
    x = torch.tensor(3.0, requires_grad=True)
    y = 2 * x**2 + 3
    y.backward()
    assert (y.item(), x.grad.item()) == (21.0, 12.0)


def test_backward_through_broadcast_and_reuse():
    w = torch.ones(3, requires_grad=True)
    x = torch.arange(6.0).reshape(2, 3)
    ((w * x).sum() + w.sum()).backward()
    assert w.grad.tolist() == [4.0, 6.0, 8.0]


def test_second_derivative():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_no_grad():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert (x * 2).requires_grad


def test_printing():
    x = torch.tensor([1.0, 2.5], requires_grad=True)
    assert repr(x) == "tensor([1.0000, 2.5000], requires_grad=True)"
    assert repr((x * 2).sum()) == "tensor(7., grad_fn=<SumBackward0>)"


def test_training_goes_down():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(16, 2)
    targets = inputs.sum(1, keepdim=True)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
