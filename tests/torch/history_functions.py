"""Functions of all kinds that the programs of histories.py apply."""


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

    class Sub(torch.Tensor):
        pass

    return {
        made.__name__: made
        for made in (
            Cube,
            Late,
            Pair,
            Write,
            View,
            Same,
            Part,
            Parts,
            Mixed,
            Sub,
            Setup,
            Unneeded,
            Once,
            Twice,
            Within,
            Attribute,
            Both,
            Half,
            Unsaid,
            Rounded,
            Empty,
            Wrong,
            Failing,
        )
    }
