"""The mistakes everybody makes with gradients, one function each.

Each function fails (or warns) on purpose; the tour shows it under its docstring, and what Rushlight says.
"""

import rushlight as torch


def vector_loss():
    """backward() on a vector"""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = x.pow(2) + torch.sin(x)
    loss.backward()


def forgotten_requires_grad():
    """nothing requires a gradient"""
    weight = torch.tensor([1.0, 2.0])
    loss = (weight * 3).sum()
    loss.backward()


def cut_by_detach():
    """the graph was cut by detach()"""
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    prediction = (weight * 3).detach()
    loss = prediction.sum()
    loss.backward()


def cut_by_no_grad():
    """the graph was never recorded: no_grad()"""
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        prediction = weight * 3
    loss = prediction.sum()
    loss.backward()


def backward_twice():
    """backward() twice through one graph"""
    x = torch.tensor(3.0, requires_grad=True)
    y = x**2
    y.backward()
    y.backward()


def leaf_in_place():
    """writing into a parameter"""
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    weight -= 0.1 * torch.ones(2)


def saved_value_changed():
    """changing a value that backward() still needs"""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    scale = x.exp()
    y = scale * scale
    scale += 1
    y.sum().backward()


def changed_behind_the_back():
    """the same through .data, which nobody watches (a warning, because torch allows it)"""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = torch.tensor([3.0, 4.0])
    y = x * weight
    weight.data.mul_(10)
    y.sum().backward()


def unused_input():
    """asking for a gradient with respect to something that was not used"""
    x = torch.tensor(1.0, requires_grad=True)
    unrelated = torch.tensor(1.0, requires_grad=True)
    torch.autograd.grad(x * 2, [x, unrelated])


def gradient_of_wrong_shape():
    """an upstream gradient of the wrong shape"""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x**2).backward(torch.ones(2))


def integer_gradient():
    """a gradient for integers"""
    torch.tensor([1, 2, 3], requires_grad=True)


def broadcasting():
    """shapes that do not broadcast"""
    torch.ones(3, 4) + torch.ones(3, 5)


def matrix_shapes():
    """matrices that do not fit"""
    torch.ones(3, 4) @ torch.ones(3, 4)


def two_devices():
    """tensors on two devices"""
    torch.ones(2) + torch.ones(2, device="meta")


def numpy_of_a_recorded_tensor():
    """numpy() on a tensor that requires a gradient"""
    torch.ones(3, requires_grad=True).numpy()


def index_out_of_range():
    """an index out of range"""
    torch.arange(5)[7]


def truth_of_several():
    """the truth value of several elements"""
    x = torch.tensor([1.0, 2.0])
    if x > 0:
        pass


ALL = [
    vector_loss,
    forgotten_requires_grad,
    cut_by_detach,
    cut_by_no_grad,
    backward_twice,
    leaf_in_place,
    saved_value_changed,
    changed_behind_the_back,
    unused_input,
    gradient_of_wrong_shape,
    integer_gradient,
    broadcasting,
    matrix_shapes,
    two_devices,
    numpy_of_a_recorded_tensor,
    index_out_of_range,
    truth_of_several,
]
