"""What the documents say about gradients in prose; where they err, what torch does."""

import pytest

import rushlight as torch


def test_backward_needs_a_tensor_that_requires_grad():
    """001: without requires_grad, "you'll get an error attempting to call .backward()"."""
    y = 2 * torch.tensor(2.0) ** 2 + 3
    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ):
        y.backward()


def test_grad_is_filled_only_by_backward():
    """001: "the .grad attribute is only populated *after* backward is called"."""
    x = torch.tensor(2.0, requires_grad=True)
    y = 2 * x**2 + 3
    assert x.grad is None
    y.backward()
    assert x.grad.item() == 8


def test_without_zeroing_gradients_add_up():
    """001: 6 and 27 give 33."""
    x = torch.tensor(3.0, requires_grad=True)
    (x**2).backward()
    (x**3).backward()
    assert x.grad.item() == 33


def test_detach_leaves_the_gradient_alone():
    """001: "detach() does not reset a tensors gradient but removes the tensor from the [...] graph"."""
    x = torch.tensor(3.0, requires_grad=True)
    (x**2).backward()
    detached = x.detach()
    assert x.grad.item() == 6
    assert not detached.requires_grad
    assert detached.grad_fn is None
    assert detached.data_ptr() == x.data_ptr()


def test_backward_of_a_hidden_activation_is_refused():
    """000: its gradient "would be equal to one"; torch refuses a matrix without an upstream gradient."""
    x = torch.randn(10, 3, requires_grad=True)
    w = torch.randn(3, 5, requires_grad=True)
    activated_hidden = torch.relu(x @ w)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        activated_hidden.backward()
    assert x.grad is None
    assert w.grad is None


def test_vector_backward_is_refused_before_anything_is_written():
    """002 and 003: a vector has no gradient of its own; 002 says so, 003 prints one."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = x.pow(2) + torch.sin(x)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        loss.backward()
    assert x.grad is None
    loss.sum().backward()
    assert torch.allclose(x.grad, 2 * x + torch.cos(x))


def test_mixed_devices_are_refused():
    """000: tensors on different devices raise; the meta device stands for the GPU where there is none."""
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        torch.ones(2) @ torch.ones(2, device="meta")


def test_in_place_change_of_a_saved_value_is_noticed():
    """002: "the old value of x was needed": the case that is not a leaf fails in backward."""
    leaf = torch.randn(3, requires_grad=True)
    x = leaf * 1
    y = x**2
    x.add_(1.0)
    with pytest.raises(
        RuntimeError, match="one of the variables needed for gradient computation has been modified"
    ):
        y.sum().backward()


def test_the_gradient_of_a_matrix_has_its_shape():
    """002: a tensor gradient has the same shape as the tensor it differentiates."""
    w = torch.randn(3, 4, requires_grad=True)
    (w**2).sum().backward()
    assert w.grad.shape == w.shape
    assert torch.equal(w.grad, 2 * w.detach())
