"""utils.checkpoint: the same results, warnings and refusals in both libraries."""

import pytest
import torch as torch_itself
import torch.utils.checkpoint
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    C = torch.utils.checkpoint
    checkpoint = C.checkpoint
    L = lambda *s: torch.ones(*s, requires_grad=True)

    def variants(re_, kw):
        @case(f"{re_} basic")
        def _():
            n = [0]

            def f(x, y):
                n[0] += 1
                return (x * y).exp().sin()

            x, y = L(2), L(2)
            checkpoint(f, x, y, **kw).sum().backward()
            return n, x.grad, y.grad

        @case(f"{re_} no grad inputs")
        def _():
            w = L(2)
            y = checkpoint(lambda x: x * w, torch.ones(2), **kw)
            return y.requires_grad

        @case(f"{re_} tuple out")
        def _():
            x = L(2)
            a, b, c = checkpoint(lambda x: (x * 2, None, x.exp()), x, **kw)
            (a.sum() + c.sum()).backward()
            return b, x.grad

        @case(f"{re_} nontensor args")
        def _():
            x = L(2)
            checkpoint(lambda x, n, d: x * n * d["k"], x, 3, {"k": 2}, **kw).sum().backward()
            return x.grad

        @case(f"{re_} kwargs")
        def _():
            x = L(2)
            checkpoint(lambda x, n=1: x * n, x, n=5, **kw).sum().backward()
            return x.grad

        @case(f"{re_} rng")
        def _():
            torch.manual_seed(0)
            x = L(4)
            s = []

            def f(x):
                r = torch.rand(4)
                s.append(r)
                return (x * r).exp()

            y = checkpoint(f, x, **kw)
            torch.rand(3)
            st = torch.get_rng_state().sum()
            y.sum().backward()
            return bool((s[0] == s[1]).all()), bool(torch.get_rng_state().sum() == st)

        @case(f"{re_} no rng")
        def _():
            torch.manual_seed(0)
            x = L(4)
            s = []

            def f(x):
                r = torch.rand(4)
                s.append(r)
                return (x * r).exp()

            y = checkpoint(f, x, preserve_rng_state=False, **kw)
            y.sum().backward()
            return bool((s[0] == s[1]).all())

        @case(f"{re_} grad()")
        def _():
            x = L(2)
            y = checkpoint(lambda x: x.exp(), x, **kw)
            return torch.autograd.grad(y.sum(), x)

        @case(f"{re_} inputs=")
        def _():
            x = L(2)
            y = checkpoint(lambda x: x.exp(), x, **kw)
            y.sum().backward(inputs=[x])
            return x.grad

        @case(f"{re_} double")
        def _():
            x = L(2)
            y = checkpoint(lambda x: x.exp() * x, x, **kw)
            (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            g.sum().backward()
            return x.grad

        @case(f"{re_} twice")
        def _():
            x = L(2)
            y = checkpoint(lambda x: x.exp(), x, **kw).sum()
            y.backward()
            y.backward()

        @case(f"{re_} retain")
        def _():
            n = [0]

            def f(x):
                n[0] += 1
                return x.exp()

            x = L(2)
            y = checkpoint(f, x, **kw).sum()
            y.backward(retain_graph=True)
            y.backward()
            return x.grad, n

        @case(f"{re_} no_grad")
        def _():
            with torch.no_grad():
                return checkpoint(lambda x: x * 2, L(2), **kw).requires_grad

        @case(f"{re_} nested")
        def _():
            n = [0]

            def g(x):
                n[0] += 1
                return x.exp()

            def f(x):
                return checkpoint(g, x.sin(), **kw).cos()

            x = L(2)
            checkpoint(f, x, **kw).sum().backward()
            return n, x.grad

        @case(f"{re_} extra kw")
        def _():
            return checkpoint(lambda x: x * 2, L(2), foo=3, **kw)

        @case(f"{re_} early stop")
        def _():
            n = [0, 0]

            def f(x):
                n[0] += 1
                y = x.exp()
                z = y.sin()
                n[1] += 1
                return z

            x = L(2)
            checkpoint(f, x, **kw).sum().backward()
            return n

        @case(f"{re_} module params")
        def _():
            m = torch.nn.Linear(2, 2)
            torch.nn.init.ones_(m.weight)
            x = L(1, 2)
            checkpoint(m, x, **kw).sum().backward()
            return x.grad, m.weight.grad

        @case(f"{re_} seq")
        def _():
            m = torch.nn.Sequential(*[torch.nn.Tanh() for _ in range(5)])
            x = L(2)
            C.checkpoint_sequential(m, 2, x, **kw).sum().backward()
            return x.grad

        @case(f"{re_} raise in recompute")
        def _():
            n = [0]

            def f(x):
                n[0] += 1
                if n[0] == 2:
                    raise ValueError("again")
                return x.exp()

            checkpoint(f, L(2), **kw).sum().backward()

    for re_ in (True, False, None):
        variants(re_, {} if re_ is None else {"use_reentrant": re_})

    @case("mismatch count")
    def _():
        n = [0]

        def f(x):
            n[0] += 1
            return x.exp().sin() if n[0] == 1 else x.exp()

        checkpoint(f, L(2), use_reentrant=False).sum().backward()

    @case("mismatch count2")
    def _():
        n = [0]

        def f(x):
            n[0] += 1
            return x.exp() if n[0] == 1 else x.exp().sin().cos()

        x = L(2)
        checkpoint(f, x, use_reentrant=False).sum().backward()
        return x.grad

    @case("mismatch meta")
    def _():
        n = [0]

        def f(x):
            n[0] += 1
            return (x.exp() if n[0] == 1 else torch.cat([x, x]).exp()).sum()

        checkpoint(f, L(2), use_reentrant=False).backward()

    @case("mismatch meta none")
    def _():
        n = [0]

        def f(x):
            n[0] += 1
            return (x.exp() if n[0] == 1 else torch.cat([x, x]).exp()).sum()

        checkpoint(f, L(2), use_reentrant=False, determinism_check="none").backward()

    @case("bad determinism")
    def _():
        checkpoint(lambda x: x, L(2), use_reentrant=False, determinism_check="foo")

    @case("context_fn")
    def _():
        s = []

        class A:
            def __init__(s_, n):
                s_.n = n

            def __enter__(s_):
                s.append("enter " + s_.n)

            def __exit__(s_, *a):
                s.append("exit " + s_.n)

        x = L(2)
        checkpoint(
            lambda x: x.exp(), x, use_reentrant=False, context_fn=lambda: (A("f"), A("r"))
        ).sum().backward()
        return s

    @case("context_fn reentrant")
    def _():
        checkpoint(lambda x: x.exp(), L(2), use_reentrant=True, context_fn=lambda: (1, 2))

    @case("early stop off")
    def _():
        n = [0, 0]

        def f(x):
            n[0] += 1
            y = x.exp()
            z = y.sin()
            n[1] += 1
            return z

        x = L(2)
        with C.set_checkpoint_early_stop(False):
            y = checkpoint(f, x, use_reentrant=False)
        y.sum().backward()
        return n

    @case("inplace on input")
    def _():
        x = L(2)
        y = x * 1

        def f(y):
            return y.mul_(2).exp()

        z = checkpoint(f, y, use_reentrant=False)
        z.sum().backward()
        return x.grad

    @case("set default device")
    def _():
        return C.DefaultDeviceType.get_device_type()

    @case("save list")
    def _():
        x = L(2)
        out = checkpoint(lambda x: [x * 2, {"a": x.exp()}], x, use_reentrant=False)
        (out[0] + out[1]["a"]).sum().backward()
        return x.grad

    @case("partial backward")
    def _():
        x = L(2)
        a, b = checkpoint(lambda x: (x.sin(), x.exp()), x, use_reentrant=False)
        a.sum().backward(retain_graph=True)
        b.sum().backward()
        return x.grad

    @case("saved access")
    def _():
        x = L(2)
        y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        return y.grad_fn._saved_result

    @case("around what the caller runs")
    def _():
        x, seen = L(2), []

        def f(x, scale):
            seen.append("f")
            return (x * scale).sin().exp()

        steps = C._checkpoint_without_reentrant_generator(
            f, True, C.noop_context_fn, "none", False, True, x, scale=3
        )
        next(steps)
        y = f(x, scale=3)
        left = next(steps, "done")
        y.sum().backward()
        return left, seen, x.grad

    @case("what is compared")
    def _():
        C._allowed_determinism_checks_to_fns["sum"] = lambda t: t.sum().item()
        scale = [2]

        def f(x):
            scale[0] += 1
            return (x * scale[0]).sin().exp()

        try:
            checkpoint(f, L(2), use_reentrant=False, determinism_check="sum").sum().backward()
        except C.CheckpointError as error:
            return "Recomputed values" in str(error), "Tip: To see a more detailed error message" in str(
                error
            )
        finally:
            del C._allowed_determinism_checks_to_fns["sum"]

    @case("private helpers")
    def _():
        t = L(2)
        settings = C._get_autocast_kwargs("cpu")
        with torch.autocast("cpu", dtype=torch.float16):
            within = C._get_autocast_kwargs()
        return (
            C._default_meta_extractor(t), C._policy_from_bool(True).name, C._policy_from_bool(False).name,
            C._detach_helper(t).requires_grad, C._detach_helper(3), str(C._get_device_module("meta")),
            C._get_device_module("cpu").__name__.rpartition(".")[2], settings, within,
            C._enable_checkpoint_early_stop, C._checkpoint_debug_enabled,
        )  # fmt: skip

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
