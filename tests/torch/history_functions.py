"""Functions of all kinds that the programs of histories.py apply."""

import inspect
import threading


def functions(torch):
    """By their names."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, t):
            return 3 * t * ctx.saved_tensors[0] ** 2

    class Late(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b + 1

        @staticmethod
        def backward(ctx, g, h):
            return g * 2, h

    class Write(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g * 5

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    class Part(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, g):
            return torch.stack([g, g])

    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x), x.t()

        @staticmethod
        def backward(ctx, g, h):
            return g + h.t()

    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            rounded = x.round()
            ctx.mark_non_differentiable(rounded)
            ctx.set_materialize_grads(False)
            return x * n, rounded, None

        @staticmethod
        def backward(ctx, g, h, _):
            return (None if g is None else g * 3), None

    class Setup(torch.autograd.Function):
        """Saves what goes in and what comes out after the fact, and gives gradients where they are needed."""

        @staticmethod
        def forward(a, b):
            return a * b, a.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output[1])
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            a, b, _ = ctx.saved_tensors
            needed = ctx.needs_input_grad
            return g * b + h * a.cos() if needed[0] else None, g * a if needed[1] else None

        @staticmethod
        def jvp(ctx, s, t):
            a, b = ctx.saved_tensors
            return s * b + a * t, s * a.cos()

    class Unneeded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b.detach()

        @staticmethod
        def backward(ctx, g):
            return g, None

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**4

        @staticmethod
        def backward(ctx, g):
            return Cube.apply(ctx.saved_tensors[0]) * 4 * g

    class Within(torch.autograd.Function):
        """Differentiates inside of its forward."""

        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                (grad,) = torch.autograd.grad(inner.cos().sum(), inner)
            ctx.save_for_backward(grad)
            return x.cos()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    class Attribute(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = x
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.kept

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a, b)
            return a.add_(1), b.mul_(2)

        @staticmethod
        def backward(ctx, g, h):
            return g, h * 2

    class Half(torch.autograd.Function):
        """Writes one of two, and keeps what it made of it."""

        @staticmethod
        def forward(ctx, a, b):
            a.mul_(b)
            ctx.mark_dirty(a)
            ctx.save_for_backward(a, b)
            return a, a + b

        @staticmethod
        def backward(ctx, g, h):
            _, b = ctx.saved_tensors
            return (g + h) * b, h

    class Unsaid(torch.autograd.Function):
        """Writes without saying so."""

        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.round()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *others):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return None, None

    class Wrong(torch.autograd.Function):
        """Returns a gradient of another shape, and too many."""

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g.sum(), g

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no gradient today")

    class Vjp(torch.autograd.Function):
        """Named as torch names it, too, and told which gradients are needed."""

        @staticmethod
        def forward(ctx, a, scale, b):
            ctx.scale, ctx.both = scale, ctx.needs_input_grad[0] and ctx.needs_input_grad[2]
            ctx.save_for_backward(a, None, b)
            return {"a": a * scale, "b": b.sin()}["a"], a * b

        @staticmethod
        def vjp(ctx, g, h):
            a, nothing, b = ctx.saved_tensors
            assert nothing is None
            return g * ctx.scale + h * b, None, h * a if ctx.both else None

    class Seen(torch.autograd.Function):
        """Gives its saved values up as they are read, and one of them as the gradient."""

        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.cos(), x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    class Greedy(torch.autograd.Function):
        """Writes into the gradient that it is given, and returns it."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.mul_(2)

    class Stretched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.size = x.shape
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(ctx.size)

    class Other(torch.autograd.Function):
        """A gradient of another dtype, and of a size that can be summed."""

        @staticmethod
        def forward(ctx, x):
            ctx.size = x.shape
            return x + 1

        @staticmethod
        def backward(ctx, g):
            return g.double().expand(3, *ctx.size)

    class Again(torch.autograd.Function):
        """Differentiates anew in its backward, as a checkpoint does."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                inner = ctx.saved_tensors[0].detach().requires_grad_()
                inner.exp().backward(g)
            return inner.grad

    class Repeated(torch.autograd.Function):
        """One input twice among the outputs."""

        @staticmethod
        def forward(ctx, x):
            return x, x, x.clone()

        @staticmethod
        def backward(ctx, g, h, k):
            return g + 2 * h + 3 * k

    class Dirty(torch.autograd.Function):
        """Writes the second input and returns the first as it is."""

        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(b)
            return a, b.add_(a)

        @staticmethod
        def backward(ctx, g, h):
            return g + h, h

        @staticmethod
        def jvp(ctx, s, t):
            return s, t.add_(s)

    class Turned(torch.autograd.Function):
        """A view with a tangent."""

        @staticmethod
        def forward(ctx, x):
            return x.t()

        @staticmethod
        def backward(ctx, g):
            return g.t()

        @staticmethod
        def jvp(ctx, t):
            return t.t()

    class Doubled(torch.autograd.Function):
        """In place, with a tangent."""

        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    class Kept(torch.autograd.Function):
        """Keeps output and input, reads them twice, and what it keeps of nobody."""

        @staticmethod
        def forward(ctx, x):
            out = x.tanh()
            ctx.save_for_backward(x, out, out * 1)
            return out, out.detach()

        @staticmethod
        def backward(ctx, g, h):
            out, copy = ctx.saved_tensors[1:]
            return g * (1 - out * copy) + h * ctx.saved_tensors[0]

    class Listed(torch.autograd.Function):
        """A list of inputs, and outputs in one."""

        @staticmethod
        def forward(ctx, *xs):
            return tuple(x * (k + 1) for k, x in enumerate(xs))

        @staticmethod
        def backward(ctx, *gs):
            return tuple(g * (k + 1) for k, g in enumerate(gs))

    class Seldom(torch.autograd.Function):
        """Gradients that are not there stay away."""

        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * 2, b * 3, (a + b).long()

        @staticmethod
        def backward(ctx, g, h, _):
            return g, None if h is None else h * 3

        @staticmethod
        def jvp(ctx, s, t):
            return s if s is None else s * 2, t if t is None else t * 3, None

    class Sub(torch.Tensor):
        pass

    class Told(torch.nn.Module):
        """A layer that tells what its hooks are given."""

        def __init__(self, weight, log, change=None):
            super().__init__()
            self.weight = weight
            self.register_full_backward_pre_hook(lambda m, g: log("layer before", *told(g)))
            self.register_full_backward_hook(lambda m, i, o: log("layer", *told(i), *told(o)) or change)
            self.register_forward_hook(lambda m, args, out: None)

        def forward(self, x):
            return x * self.weight

    def told(values):
        return [v for v in values if v is not None]

    def steps(x):
        """A generator that works in no_grad, and its caller as it was."""
        while True:
            x = x * 2
            yield x, torch.is_grad_enabled()

    def elsewhere(work):
        """In another thread, with its modes."""
        result = []

        def run():
            try:
                result.append((work(), None))
            except Exception as error:
                result.append((None, error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        value, error = result[0]
        if error is not None:
            raise error
        return value

    return {
        made.__name__: made
        for made in locals().values()
        if isinstance(made, type) or inspect.isfunction(made)
    }
