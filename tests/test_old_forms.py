"""Calls with the factors between the tensors: x.add_(alpha, other), torch.addmm(beta, m, alpha, a, b)."""

import pytest

import rushlight as torch

pytestmark = pytest.mark.filterwarnings("ignore:This overload of .* is deprecated")
A, B, C, M = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0]), torch.eye(2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: torch.add(A, 2, B), lambda: A + 2 * B),
        (lambda: A.clone().add_(-0.5, B), lambda: A - 0.5 * B),
        (lambda: A.sub(2, B), lambda: A - 2 * B),
        (lambda: A.clone().sub_(2, B), lambda: A - 2 * B),
        (lambda: torch.addcmul(A, 2, B, C), lambda: A + 2 * B * C),
        (lambda: A.clone().addcmul_(2, B, C), lambda: A + 2 * B * C),
        (lambda: A.clone().addcdiv_(-2, B, C), lambda: A - 2 * B / C),
        (lambda: torch.addmm(2, M, 3, M, M), lambda: 2 * M + 3 * M @ M),
        (lambda: torch.addmm(2, M, M, M), lambda: 2 * M + M @ M),
        (lambda: M.clone().addmm_(2, 3, M, M), lambda: 2 * M + 3 * M @ M),
        (lambda: M.addmm(2, M, M), lambda: 2 * M + M @ M),
        (lambda: A.addmv(2, 3, M, B), lambda: 2 * A + 3 * M @ B),
        (lambda: torch.addr(2, M, 3, A, B), lambda: 2 * M + 3 * torch.outer(A, B)),
        (lambda: M[None].clone().baddbmm_(2, M[None], M[None]), lambda: 2 * M[None] + (M @ M)[None]),
    ],
)
def test_old_form(old, new):
    torch.testing.assert_close(old(), new())


def test_gradient_and_warning():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch._warn._warned.discard("old forms")
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        y = x.add(3, x)
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: A.add_(1, 2, B),
            r"add_\(\) received .* - got \(!int!, !int!, !Tensor!\), but expected \(Tensor",
        ),
        (lambda: A.add(B, B), r"add\(\) takes 1 positional argument but 2 were given"),
        (lambda: A.addcmul_(2, B, 3), r"addcmul_\(\) takes 2 positional arguments but 3 were given"),
        (lambda: A.add_(2, B, alpha=3), r"add_\(\) .* - got unrecognized keyword arguments: alpha"),
        (lambda: torch.addmm(M, M, M, M), r"addmm\(\) .* - got \(Tensor, .*\), but expected one of:"),
        (
            lambda: M.addmm_(1, 2, 3, M, M),
            r"addmm_\(\) .* - got \(!int!, !int!, !int!, !Tensor!, !Tensor!\), but",
        ),
    ],
)
def test_what_is_no_old_form_is_refused(call, words):
    before = A.clone(), M.clone()
    with pytest.raises(TypeError, match=words):
        call()
    assert torch.equal(A, before[0]) and torch.equal(M, before[1])
