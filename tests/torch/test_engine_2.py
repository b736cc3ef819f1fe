"""Anomaly detection, the engine in odd situations, complex numbers: both libraries agree."""

import threading
import weakref

import pytest
import torch as torch_itself
import torch.autograd.forward_ad
import torch.utils._python_dispatch
from outcomes import err, outcome, passing_on

import rushlight
import rushlight.autograd.forward_ad
import rushlight.utils._python_dispatch


def cases(torch):
    found = {}
    L = lambda *s: torch.ones(*s, requires_grad=True)
    passing = passing_on(torch)
    Function, Variable = torch.autograd.Function, torch.autograd.Variable
    detect_anomaly = torch.autograd.detect_anomaly

    def case(function):
        return found.setdefault(function.__name__, function)

    @case
    def anom_basic():
        x = L(2)
        with detect_anomaly():
            y = (x * 0) / 0.0
            y = torch.sqrt(x - 1)
            return err(y.sum().backward), x.grad

    @case
    def anom_nan():
        x = torch.zeros(2, requires_grad=True)
        with detect_anomaly():
            return err((x / x).sum().backward), err((torch.sqrt(x) * 0).sum().backward)

    @case
    def anom_fn():
        @passing
        def F(ctx, g):
            return g * float("nan")

        x = L(2)
        with detect_anomaly():
            return err(F.apply(x).sum().backward)

    @case
    def anom_second():
        @passing
        def F(ctx, g):
            return G.apply(g)

        @passing
        def G(ctx, g):
            return g * float("nan")

        x = L(2)
        with detect_anomaly():
            y = F.apply(x).sum()
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            return err(g.sum().backward)

    @case
    def anom_nocheck():
        @passing
        def F(ctx, g):
            return g * float("nan")

        x = L(2)
        with detect_anomaly(check_nan=False):
            F.apply(x).sum().backward()
        return x.grad

    @case
    def anom_raise():
        @passing
        def F(ctx, g):
            raise RuntimeError("boo")

        x = L(2)
        with detect_anomaly():
            return err(F.apply(x).sum().backward)

    @case
    def anom_state():
        r = [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        with torch.autograd.set_detect_anomaly(True, False):
            r += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        torch.autograd.set_detect_anomaly(True)
        r += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        torch.autograd.set_detect_anomaly(False)
        r += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
        return r

    @case
    def anom_parent():
        with detect_anomaly():
            x = L(2)
            y = x.exp()
            (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            n = g.grad_fn
            return type(n.metadata.get("parent_")).__name__

    @case
    def cb():
        log = []

        @passing
        def F(ctx, g):
            def c2():
                log.append("2")

            def c():
                log.append("cb")
                Variable._execution_engine.queue_callback(c2)

            Variable._execution_engine.queue_callback(c)
            log.append("bw")
            return g

        x = L(2)
        F.apply(x).sum().backward()
        log.append("end")
        return log

    @case
    def cb_out():
        return err(Variable._execution_engine.queue_callback, lambda: None)

    @case
    def cb_err():
        @passing
        def F(ctx, g):
            def c():
                raise RuntimeError("cb boo")

            Variable._execution_engine.queue_callback(c)
            return g

        x = L(2)
        return err(F.apply(x).sum().backward)

    @case
    def taskid():
        r = [torch._C._current_graph_task_id()]
        x = L(2)
        y = x * 2
        y.register_hook(lambda g: r.append(torch._C._current_graph_task_id() >= 0))
        y.sum().backward()
        r.append(torch._C._current_graph_task_id())
        return r

    @case
    def node_whose_hooks_run_and_whose_gradients_are_added_up():
        seen = []

        def note(what):
            node = torch._C._current_autograd_node()
            seen.append((what, None if node is None else node.name()))

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                note(str(func))
                return func(*args, **(kwargs or {}))

        x = torch.ones(2, requires_grad=True)
        y = x * 3
        z = y.exp() + y.clone()
        x.register_hook(lambda g: note("leaf"))
        y.register_hook(lambda g: note("tensor"))
        y.grad_fn.register_prehook(lambda g: note("before"))
        y.grad_fn.register_hook(lambda g, h: note("after"))
        x.register_post_accumulate_grad_hook(lambda p: note("accumulated"))
        with Watch():
            z.sum().backward(retain_graph=True)
            z.sum().backward()
        return seen

    @case
    def curnode():
        r = [torch._C._current_autograd_node()]
        x = L(2)
        y = x * 2
        z = y.exp()

        @passing
        def F(ctx, g):
            r.append(torch._C._current_autograd_node().name())
            return g

        F.apply(z).sum().backward()
        r.append(torch._C._current_autograd_node())
        return r

    @case
    def execorder():
        r = []
        a = L(1)
        b = a.exp()
        c = b.sin()

        @passing
        def F(ctx, g):
            r.append([n.name() for n in torch._C._current_graph_task_execution_order()])
            return g

        F.apply(c).backward()
        return r, err(torch._C._current_graph_task_execution_order)

    @case
    def reent():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.y = ctx.x**2
                return ctx.y.detach()

            @staticmethod
            def backward(ctx, g):
                with torch.enable_grad():
                    ctx.y.sum().backward()
                return ctx.x.grad * g

        x = L(2)
        F.apply(x).sum().backward()
        return x.grad

    @case
    def reent_err():
        @passing
        def F(ctx, g):
            with torch.enable_grad():
                z = torch.ones(1, requires_grad=True)
                E.apply(z).sum().backward()
            return g

        @passing
        def E(ctx, g):
            raise RuntimeError("inner")

        x = L(2)
        r = err(F.apply(x).sum().backward)
        (x * 2).sum().backward()
        return r, x.grad

    @case
    def deepreent():
        class F(Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.n = n
                return x * 1

            @staticmethod
            def backward(ctx, g):
                if ctx.n > 0:
                    with torch.enable_grad():
                        z = torch.ones(1, requires_grad=True)
                        F.apply(z, ctx.n - 1).sum().backward()
                return g, None

        x = L(1)
        F.apply(x, 150).sum().backward()
        return x.grad

    @case
    def thr_exc():
        @passing
        def F(ctx, g):
            raise ValueError("in thread")

        out = []

        def w():
            out.append(err(F.apply(L(2)).sum().backward))

        t = threading.Thread(target=w)
        t.start()
        t.join()
        return out

    @case
    def hooks_backward():
        x = L(2)
        y = x * 2
        log = []

        def h(g):
            z = torch.ones(1, requires_grad=True)
            (z * 2).backward()
            log.append(z.grad.item())

        y.register_hook(h)
        y.sum().backward()
        return log, x.grad

    @case
    def mid_exc_state():
        x = L(2)
        y = x * 2
        z = y.exp()
        h = y.register_hook(lambda g: 1 / 0)
        r = err(lambda: z.sum().backward(retain_graph=True))
        h.remove()
        return r, err(lambda: z.sum().backward()), x.grad

    @case
    def create_graph_warn():
        x = L(1)
        torch.set_warn_always(True)  # who ran before may have been warned
        try:
            (x * x).backward(create_graph=True)
        finally:
            torch.set_warn_always(False)
        return x.grad.requires_grad

    @case
    def free_saved():
        class Marker:
            pass

        x = L(2)
        t = torch.ones(2)
        t.o = Marker()
        w = weakref.ref(t.o)

        class F(Function):
            @staticmethod
            def forward(ctx, x, t):
                ctx.t = t
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g, None

        y = F.apply(x, t)
        del t
        a = w() is None
        y.sum().backward()
        b = w() is None
        del y
        import gc

        gc.collect()
        return a, b, w() is None

    @case
    def willexec():
        x = L(1)
        y = x.exp()
        z = y.sin()
        r = []
        z.register_hook(
            lambda g: r.append(
                (
                    torch._C._will_engine_execute_node(y.grad_fn),
                    torch._C._will_engine_execute_node(x.cos().grad_fn),
                )
            )
        )
        z.backward()
        return r

    @case
    def willexec2():
        x = L(1)
        x.exp()
        return err(torch._C._will_engine_execute_node, 3)

    @case
    def cplxback():
        z = torch.tensor([1 + 2j], requires_grad=True)
        return (
            err((z * 2).backward),
            err((z * 2).sum().backward),
            err((z * 2).backward, torch.ones(1)),
            err((z * 2).backward, torch.ones(1, dtype=torch.complex64)),
            z.grad,
        )

    @case
    def cplxviews():
        z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = z.clone()
        y.real.mul_(2)
        y.imag[0] = 5
        y.sum().abs().backward()
        return z.grad, type(y.grad_fn).__name__

    @case
    def rdtype():
        x = L(2)
        y = x * (1 + 1j)
        return err(y.sum().backward), err(lambda: y.abs().sum().backward()), x.grad

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    ours, theirs = outcome(cases(rushlight)[name]), outcome(cases(torch_itself)[name])
    assert ours == theirs
