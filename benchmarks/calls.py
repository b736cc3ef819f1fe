"""What everyday calls on small tensors cost beside torch: `python benchmarks/calls.py [words in names]`.

Each line of CALLS is timed in alternating rounds with torch, one thread. The table is printed in the order of
the ratios (torch's time divided by Rushlight's), those that need work first. benchmarks/run.py has the
figures that are promised.
"""

import argparse
import importlib
import warnings

import measure

CALLS = """
# operations and their gradients: b has none, a wants one
torch.add(b, b, out=c)
torch.exp(b, out=c)
torch.mm(b, b, out=c)
torch.add(b, b, alpha=2)
b > 0
b**2
b @ b
b.clamp(0, 1)
torch.where(m, b, c)
torch.equal(b, b)
torch.allclose(b, b)
c.add_(b)
b.sum()
b.sum(1)
b.mean(dim=-1, keepdim=True)
b.max(1)
b.argmax(1)
b.var()
b.norm()
b.softmax(-1)
b.cumsum(0)
b.sort()
b.topk(2)
torch.linalg.inv(b)
torch.linalg.solve(b, b)
torch.einsum("ij,jk->ik", b, b)
(a * a).sum().backward()
a.softmax(1).sum().backward()
a.max(1)[0].sum().backward()
a.cumsum(0).sum().backward()
a.std().backward()
torch.stack(a.unbind()).sum().backward()
torch.cat([a, a]).sum().backward()
torch.where(m, a, 0.0).sum().backward()
torch.linalg.inv(a).sum().backward()
# views, indices, copies
b.view(16)
b.reshape(2, 8)
b.transpose(0, 1)
b.permute(1, 0)
b.unsqueeze(0)
b.split(2)
a.chunk(2)
b.unbind()
torch.cat([b, b])
torch.stack([b, b])
b.clone()
b.detach()
b[1:3]
b[1, 2]
b[m]
b[i]
c.__setitem__((1, 2), 1.0)
a[i].sum().backward()
b.gather(0, g)
c.scatter_add(0, g, b)
list(v)
# factories, numbers, conversions
torch.zeros(4, 4)
torch.zeros_like(b)
torch.tensor([1.0, 2.0, 3.0])
torch.arange(10)
torch.randn(4, 4)
b.to(torch.float64)
b.to("cpu")
b.numpy()
b[0, 0].item()
b.tolist()
repr(b)
# layers and losses
F.linear(x, w)
F.relu(x)
F.dropout(x)
F.layer_norm(x, (8,))
F.cross_entropy(x @ w, t).backward()
F.mse_loss(x @ w, x).backward()
F.embedding(t, w)
net(x)
net(x).mean().backward()
norm(x)
lstm(x[:, None])[0].sum().backward()
attention(s, s, s)[0].sum().backward()
# autograd
torch.autograd.grad((a * a).sum(), a)
torch.autograd.grad((a**3).sum(), a, create_graph=True)
torch.autograd.grad((a * a).sum(0), a, torch.eye(4), is_grads_batched=True)
torch.autograd.functional.jacobian(cube, v)
torch.autograd.functional.jacobian(cube, v, vectorize=True)
torch.autograd.functional.hessian(total, v)
torch.autograd.functional.hvp(total, v, v)
torch.autograd.functional.jvp(cube, v, v)
Square.apply(a).sum().backward()
hooked(a)
checkpoint(cube, a, use_reentrant=False).sum().backward()
checkpoint(cube, a, use_reentrant=True).sum().backward()
in_no_grad()
without_gradients()
lowered(x)
dual(b)
# transforms of functions
torch.vmap(torch.sin)(x)
torch.vmap(torch.dot)(x, x)
torch.func.grad(total)(v)
torch.func.grad(torch.func.grad(cubed))(v[0])
torch.func.vjp(cube, v)[1](v)
torch.func.jvp(cube, (v,), (v,))
torch.func.jacrev(cube)(v)
torch.func.jacfwd(cube)(v)
torch.func.hessian(total)(v)
torch.func.hessian(loss_of)(parameters, x, t)
per_example(parameters, x, t)
# training
sgd.step()
adam.step()
net.zero_grad()
torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
net.state_dict()
net.train()
torch.func.functional_call(net, dict(net.named_parameters()), (x,))
"""


def namespace(torch):
    """The names that the calls use, made of one library."""
    torch.manual_seed(0)
    functional, nn = importlib.import_module(f"{torch.__name__}.nn.functional"), torch.nn
    forward_ad = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    def hooked(a):
        y = a * 2
        y.register_hook(lambda g: g * 2)
        y.sum().backward()

    def in_no_grad():
        with torch.no_grad():
            pass

    def lowered(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            net(x)

    def dual(b):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual((forward_ad.make_dual(b, b) * b).exp()).tangent

    def loss_of(parameters, x, t):
        return functional.cross_entropy(torch.func.functional_call(net, parameters, (x,)), t)

    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    x = torch.randn(5, 8)
    net(x).sum().backward()
    b = torch.randn(4, 4) + 4 * torch.eye(4)
    return {
        "torch": torch, "F": functional, "a": b.clone().requires_grad_(), "b": b, "c": torch.zeros(4, 4),
        "m": b > 0, "i": torch.tensor([0, 2, 1]), "g": torch.zeros(1, 4, dtype=torch.int64),
        "v": torch.randn(16), "x": x, "w": torch.randn(8, 8, requires_grad=True), "t": torch.arange(5),
        "s": torch.randn(2, 3, 8), "net": net, "norm": nn.BatchNorm1d(8), "lstm": nn.LSTM(8, 8),
        "attention": nn.MultiheadAttention(8, 2, batch_first=True), "checkpoint": checkpoint,
        "cube": lambda x: x**3, "total": lambda x: (x**3).sum(), "Square": Square, "hooked": hooked,
        "in_no_grad": in_no_grad, "without_gradients": torch.no_grad()(lambda: None), "lowered": lowered,
        "cubed": lambda x: x**3, "loss_of": loss_of, "parameters": dict(net.named_parameters()),
        "per_example": torch.vmap(torch.func.grad(loss_of), (None, 0, 0)),
        "dual": dual, "sgd": torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9),
        "adam": torch.optim.AdamW(net.parameters(), lr=1e-3),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only the calls in which one of these stands")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    import torch

    import rushlight

    warnings.simplefilter("ignore")
    spaces = []
    for library in (rushlight, torch):
        library.set_num_threads(1)
        spaces.append(namespace(library))
    rows = []
    for call in CALLS.strip().splitlines():
        if call.startswith("#") or (options.words and not any(word in call for word in options.words)):
            continue
        work = [eval(f"lambda: {call}", space) for space in spaces]
        ours, theirs = measure.alternate(*work, options.rounds, 0.25)
        rows.append((theirs / ours, theirs, ours, call))
    for ratio, theirs, ours, call in sorted(rows):
        print(f"{ratio:7.2f}  torch {theirs * 1e6:9.2f} us  Rushlight {ours * 1e6:8.2f} us  {call}")


if __name__ == "__main__":
    main()
