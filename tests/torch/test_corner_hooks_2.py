"""Hooks: their order, what they see and may return, how they follow in-place writes, when they go."""

from corners import same_in_torch, short_names
from outcomes import collector, err


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R = short.L, short.R
    Function = torch.autograd.Function

    @case("dont materialize")
    def _():
        r = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x

            @staticmethod
            def backward(ctx, g):
                r.append(g)
                return g

        x = L(1)
        torch._C._functions.UndefinedGrad()(F.apply(x)).backward()
        return (r, x.grad)

    for number, materialize in (("", False), ("2", True)):

        @case(f"set materialize nondiff{number}")
        def _(materialize=materialize):
            r = []

            class F(Function):
                @staticmethod
                def forward(ctx, x):
                    out0, out1 = (x.clone(), x.clone())
                    ctx.mark_non_differentiable(out1)
                    if not materialize:
                        ctx._materialize_non_diff_grads = False
                    return (out0, out1)

                @staticmethod
                def backward(ctx, a, b):
                    r.append((a, b))
                    return a

            a = L(1)
            F.apply(a)[0].backward()
            return r

    @case("legacy fn")
    def _():

        class F(Function):
            def forward(self, x):
                return x

            def backward(self, g):
                return g

        F()(torch.randn(2))

    @case("legacy fn2")
    def _():

        class F(Function):
            def forward(self, x):
                return x

            def backward(self, g):
                return g

        return F.apply(torch.ones(2))

    @case("invalid grads")
    def _():

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return torch.randn(10)

        F.apply(torch.randn(5, requires_grad=True)).sum().backward()

    @case("unrelated")
    def _():
        a = L(2)
        b = L(2)
        return torch.autograd.gradcheck(
            lambda a, b: a * a, (a.double().detach().requires_grad_(), b.double().detach().requires_grad_())
        )

    @case("accum grad modes")
    def _():
        r = []
        go = torch.ones(5, 5)
        for create in (False, True):
            x = torch.arange(25.0).view(5, 5).requires_grad_()
            y = x + 2
            y.backward(go, retain_graph=True)
            g0 = x.grad
            gc_ = x.grad.clone()
            y.backward(go, create_graph=create)
            r.append((x.grad is g0, torch.equal(g0, gc_ * 2), x.grad.requires_grad))
        return r

    @case("accum tensor reference")
    def _():
        r = []

        def t(pgrad, bgrad, create):
            p = torch.zeros(5, requires_grad=True)
            p.grad = pgrad
            p._backward_hooks
            before = p.grad
            p.backward(bgrad, retain_graph=create, create_graph=create)
            return (p.grad is before, p.grad is bgrad, p.grad)

        for create in (False, True):
            r.append(t(torch.ones(5), torch.ones(5), create))
            r.append(t(None, torch.ones(5), create))
        return r

    @case("grad nonleaf many")
    def _():
        x = R(2, 2)
        y = x.split(1)
        a, b = y
        r = []

        def hook(*g):
            r.append("ran")

        x.register_hook(hook)
        go = torch.ones(1, 2)
        return (torch.autograd.grad(y, (a, b), (go, go), retain_graph=True), r)

    @case("grad nonleaf register hook")
    def _():
        x = L(5)
        xs = x.unbind()
        x0 = xs[0]
        x0.retain_grad()
        (xs[0].sum() + xs[1].sum()).backward()
        r = [x0.grad]

        def h(g):
            r.append(("h", g))
            return g * 2

        x1 = L(5)
        z = x1.unbind()[0]
        z.register_hook(h)
        z.retain_grad()
        z.sum().backward()
        r.append((z.grad, x1.grad))
        return r

    @case("grad badcalls1")
    def _():
        x = L(1)
        y = x**2
        torch.autograd.grad(x, y)

    @case("grad badcalls2")
    def _():
        x = torch.ones(1)
        y = L(1)
        torch.autograd.grad(y, x)

    @case("grad badcalls3")
    def _():
        x = L(1)
        y = x**2
        torch.autograd.grad(y, x)
        torch.autograd.grad(y, x)

    @case("grad empty inputs")
    def _():
        x = L(1)
        torch.autograd.grad(2 * x, [], grad_outputs=torch.tensor([1.0]))

    @case("bw empty inputs")
    def _():
        x = L(1)
        (2 * x).backward(inputs=[])

    @case("bw empty inputs2")
    def _():
        x = L(1)
        torch.autograd.backward(2 * x, inputs=())

    @case("grad fn badcalls1")
    def _():
        x = L(1)
        y = x.pow(2)
        return y.grad_fn(x.detach(), x.detach())

    @case("grad fn badcalls2")
    def _():
        x = L(1)
        y = x.pow(2)
        return y.grad_fn()

    @case("grad fn badcalls3")
    def _():
        x = L(1)
        y = x.pow(2)
        return y.grad_fn("x")

    @case("grad fn badcalls4")
    def _():
        x = L(1)
        y = x.pow(2)
        return y.grad_fn(0)

    @case("grad fn kw")
    def _():
        x = L(1)
        y = x.pow(2)
        return y.grad_fn(grad=x)

    @case("grad materialize create")
    def _():
        x = L(1)
        y = torch.tensor([0.5], requires_grad=True)
        (dy,) = torch.autograd.grad(y * 2, x, materialize_grads=True, create_graph=True)
        return (dy, dy.requires_grad, dy.grad_fn)

    @case("reg hook noncallable")
    def _():
        L(2).register_hook(3)

    @case("reg hook noncallable2")
    def _():
        (L(2) * 2).register_hook(None)

    @case("reg hook noncallable3")
    def _():
        y = L(2) * 2
        y.register_hook(None)
        y.sum().backward()

    @case("hook none2")
    def _():

        class NoneGrad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                assert ctx.needs_input_grad[0]
                assert not ctx.needs_input_grad[1]
                return (x, y)

            @staticmethod
            def backward(ctx, gx, gy):
                return (gx, None)

        r = []
        fn = NoneGrad.apply
        x = L(5)
        y = torch.randn(5)
        rx, ry = fn(x, y)
        rx.register_hook(lambda g: r.append("rx"))
        try:
            ry.register_hook(lambda g: r.append("ry"))
        except RuntimeError as e:
            r.append(str(e))
        (rx + ry).sum().backward()
        return r

    @case("hook with no name")
    def _():

        class My:
            def __call__(self, g):
                return g.clone()

        x = L(5)
        h = x.clone()
        h.register_hook(My())
        h.sum().backward()
        return x.grad

    @case("retain grad all")
    def _():
        i = R(1, 3)
        h1 = i * 3
        out = (h1 * h1).sum()
        h1.retain_grad()
        h1.retain_grad()
        out.backward(retain_graph=True)
        r = [h1.grad.clone()]
        out.backward(retain_graph=True)
        r.append(h1.grad.clone())
        with torch.no_grad():
            i.grad.zero_()
        i.retain_grad()
        r.append((i.retains_grad, h1.retains_grad))
        out.backward()
        r.append(i.grad)
        return r

    @case("retain noreq")
    def _():
        torch.ones(2).retain_grad()

    @case("retains grad inplace")
    def _():
        a = R(1)
        b = a + 1
        b.retain_grad()
        b.mul_(2)
        b.sum().backward()
        r = [b.retains_grad, b.grad]
        a = R(1)
        b = a + 1
        b.retain_grad()
        b.exp_()
        b.exp_()
        b.backward()
        r += [b.grad]
        a = R(4)
        b = a + 1
        b.retain_grad()
        c = b.view(2, 2)
        c.mul_(3)
        b.sum().backward()
        r += [b.grad, b.retains_grad, c.retains_grad]
        return r

    @case("retains grad can always observe tensor prehook")
    def _():
        r = []

        def pre(g):
            return g + 2

        a = torch.tensor(1.0, requires_grad=True)
        b = a.clone()
        b.register_hook(pre)
        b.retain_grad()
        b.register_hook(pre)
        b.clone().backward()
        r.append((b.grad, a.grad))
        a = torch.tensor(1.0, requires_grad=True)
        b = a.clone()
        b.retain_grad()
        b.register_hook(pre)
        b.clone().backward()
        r.append((b.grad, a.grad))
        return r

    @case("hook inplace")
    def _():
        r = []

        def h(i):
            return lambda g: r.append((i, g)) or g * 2

        a = torch.tensor(1.0, requires_grad=True)
        b = a.clone()
        b.register_hook(h(0))
        b.mul_(2)
        b.register_hook(h(1))
        b.mul_(3)
        b.register_hook(h(2))
        b.backward()
        return (r, a.grad)

    @case("hook inplace multi out")
    def _():
        r = []

        class D(Function):
            @staticmethod
            def forward(ctx, x):
                return (x.exp(), x.exp())

            @staticmethod
            def backward(ctx, a, b):
                r.append((a, b))
                return a + b

        a = torch.tensor(1.0, requires_grad=True)
        b, c = D.apply(a)
        c.register_hook(lambda g: r.append(("c", g)) or g * 2)
        b.register_hook(lambda g: r.append(("b", g)) or g * 2)
        b.mul_(2)
        (b + c).backward()
        return (r, a.grad)

    @case("hook over view")
    def _():
        r = []
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        base = a.clone()
        base.register_hook(lambda g: r.append(("base", g)) or g * 2)
        v = base[:]
        v.register_hook(lambda g: r.append(("v", g)) or g * 3)
        v.mul_(2)
        v.register_hook(lambda g: r.append(("v2", g)) or g * 5)
        base.register_hook(lambda g: r.append(("base2", g)) or g * 7)
        base.sum().backward()
        return (r, a.grad)

    @case("what a hook enters ends with the backward")
    def _():
        functions, dispatch = torch.overrides, torch.utils._python_dispatch

        class Functions(functions.TorchFunctionMode):
            pass

        class Dispatch(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        def by_hand():
            torch.set_autocast_enabled("cpu", True)
            torch.set_autocast_dtype("cpu", torch.float16)

        def state():
            return (
                torch.is_grad_enabled(),
                torch.is_inference_mode_enabled(),
                torch.is_autocast_enabled("cpu"),
                torch.get_autocast_dtype("cpu"),
                len(functions._get_current_function_mode_stack()),
                len(dispatch._get_current_dispatch_mode_stack()),
                torch._C._is_torch_function_enabled(),
            )

        held = []  # torch leaves inference mode when the object dies
        r = [state()]
        enters = (
            lambda: held.append(torch.inference_mode()) or held[-1].__enter__(),
            lambda: torch.autocast("cpu", torch.float16).__enter__(),
            lambda: Functions().__enter__(),
            lambda: (Dispatch().__enter__(), Dispatch().__enter__()),
            lambda: torch._C.DisableTorchFunctionSubclass().__enter__(),
            by_hand,
        )
        for enter in enters:
            for fails in (False, True):
                x = torch.ones(2, requires_grad=True)
                y = x * 2

                def hook(g, enter=enter, fails=fails):
                    enter()
                    r.append(state())
                    if fails:
                        raise ValueError("no")

                y.register_hook(hook)
                try:
                    y.sum().backward()
                except ValueError as error:
                    r.append(str(error))
                r.append((state(), x.grad))
        held.clear()
        torch.set_grad_enabled(True)
        mode = Dispatch()
        mode.__enter__()
        y = torch.ones(2, requires_grad=True) * 2
        y.register_hook(lambda g: mode.__exit__(None, None, None))
        y.sum().backward()
        r.append(state())
        dispatch._pop_mode()
        return [*r, state(), err(dispatch._pop_mode)]

    @case("record_function ends with a future")
    def _():
        record = torch.autograd.profiler.record_function

        def recorded(complete, times=1):
            future = torch.futures.Future() if complete is not None else 1
            with record("block") as block:
                for _ in range(times):
                    last = block._call_end_callbacks_on_future(future)
            before = last.done()
            complete(future)
            return before, err(last.wait)

        r = [recorded(lambda f: f.set_result(3))]
        r += [err(recorded, lambda f: None, 2), err(recorded, None)]
        r += [err(record("x")._call_end_callbacks_on_future, torch.futures.Future())]
        enter = torch.ops.profiler._record_function_enter_new
        r += [err(enter, 1), err(enter, "a", 1), err(enter).split(" Decl")[0]]
        pop = torch._C._autograd._pop_saved_tensors_default_hooks
        return [*r, err(enter, "a", "b", "c").split(" Decl")[0], err(pop).split(":")[0]]

    @case("what differed when a checkpoint ran again")
    def _():
        checkpoint = torch.utils.checkpoint

        def told(first, second):
            runs = iter((first, second))
            with checkpoint.set_checkpoint_early_stop(False):
                y = checkpoint.checkpoint(lambda x: next(runs)(x), R(2), use_reentrant=False)
            try:
                y.sum().backward()
            except checkpoint.CheckpointError as error:
                return str(error).split("\n\n")[0]  # then comes advice

        once, twice = (lambda x: x.sin()), (lambda x: x.sin().cos())
        return told(once, twice), told(twice, once), told(once, lambda x: x.double().sin())

    return found


test_as_in_torch = same_in_torch(cases)
