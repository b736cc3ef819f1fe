"""What nodes show of what torch saves: gradients of activations, statistics of batch_norm, factors of lu."""

from corners import same_in_torch, short_names
from outcomes import collector

ACTIVATIONS = {
    "relu": (), "threshold": (0.3, 0.1), "sigmoid": (), "tanh": (), "softplus": (2.0, 3.0), "elu": (0.5,),
    "selu": (), "celu": (2.0,), "leaky_relu": (0.1,), "gelu": (), "hardtanh": (-0.5, 2.0), "relu6": (),
    "hardswish": (),
}  # fmt: skip


def cases(torch):
    found, case = collector()
    R = short_names(torch).R
    functional = torch.nn.functional

    def told(value):
        if not isinstance(value, torch.Tensor):
            return value
        return [round(float(number), 3) for number in value.detach().flatten()]

    def shown(tensor):
        node = tensor.grad_fn
        names = [name for name in dir(node) if name.startswith("_saved_")]
        return node.name(), {name: told(getattr(node, name)) for name in names}

    for name, args in ACTIVATIONS.items():

        @case(f"the gradient of {name}")
        def _(name=name, args=args):
            x = torch.tensor([0.5, -1.0, 2.5, 0.25], requires_grad=True) * 1
            result = getattr(functional, name)(x, *args)
            (g,) = torch.autograd.grad(result.sum(), x, create_graph=True)
            return shown(result), shown(g)

    @case("running statistics, as they are now")
    def _():
        layer, x = torch.nn.BatchNorm1d(2), R(4, 2)
        first = layer(x)
        versions = [layer.running_mean._version, layer.running_var._version]
        layer(x * 2)
        told = shown(first), [layer.running_mean._version, layer.running_var._version] == versions
        return told, shown(functional.batch_norm(x, None, None, training=True)), shown(layer.eval()(x))

    @case("the factors of lu")
    def _():
        matrix = torch.tensor([[0.5, 1.0], [2.0, 3.0]], requires_grad=True)
        return [shown(part) for part in torch.linalg.lu(matrix)[1:]]

    @case("parts of complex numbers")
    def _():
        x = R(2)
        return [shown(torch.complex(*parts)) for parts in ((x, x), (x, x.detach()), (x.detach(), x))]

    @case("a cell's last step")
    def _():
        return torch.nn.LSTMCell(2, 2)(torch.ones(1, 2))[0].grad_fn.name()

    return found


test_as_in_torch = same_in_torch(cases)
