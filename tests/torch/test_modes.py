"""no_grad, inference mode and their kin: the same results, warnings and refusals in both libraries."""

import threading

import pytest
import torch as torch_itself
import torch.autograd.forward_ad
from outcomes import err, outcome

import rushlight
import rushlight.autograd.forward_ad


def cases(torch):
    found = {}
    lambda *s: torch.ones(*s, requires_grad=True)

    def case(function):
        return found.setdefault(function.__name__, function)

    @case
    def dec_fn():
        @torch.no_grad()
        def f():
            return torch.is_grad_enabled()

        return f(), torch.is_grad_enabled(), f.__name__

    @case
    def dec_class_made():
        def made(decorate):
            class Kept:
                def __init__(self):
                    self.mode = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

                def ask(self):
                    return torch.is_grad_enabled()

            found = decorate(Kept)
            return found is Kept, type(found).__name__, found().mode, found().ask(), Kept().mode

        modes = [
            torch.no_grad,
            torch.no_grad(),
            torch.enable_grad(),
            torch.inference_mode,
            torch.inference_mode(),
        ]
        with torch.autograd.set_grad_enabled(True):
            return [made(mode) for mode in modes], made(lambda cls: torch.set_grad_enabled(False)(cls))

    @case
    def inference_guards():
        modes = torch.autograd.grad_mode
        guard = modes._enter_inference_mode(True)
        told = [torch.is_inference_mode_enabled()]
        modes._exit_inference_mode(guard)
        told.append(torch.is_inference_mode_enabled())
        guard = modes._enter_inference_mode(True)
        inner = modes._enter_inference_mode(False)
        told.append(torch.is_inference_mode_enabled())
        del inner  # as good as left
        told.append(torch.is_inference_mode_enabled())
        del guard
        return told, torch.is_inference_mode_enabled()

    @case
    def dec_bare():
        @torch.no_grad
        def f():
            return torch.is_grad_enabled()

        return f()

    @case
    def dec_bare_inf():
        @torch.inference_mode
        def f():
            return torch.is_inference_mode_enabled()

        return f()

    @case
    def dec_gen():
        @torch.no_grad()
        def g():
            r = yield torch.is_grad_enabled()
            yield torch.is_grad_enabled(), r
            return 3

        it = g()
        a = next(it)
        m = torch.is_grad_enabled()
        b = it.send(5)
        return a, m, b, torch.is_grad_enabled()

    @case
    def dec_gen_throw():
        out = []

        @torch.no_grad()
        def g():
            try:
                yield 1
            except ValueError:
                out.append(torch.is_grad_enabled())
                yield 2
            finally:
                out.append(("fin", torch.is_grad_enabled()))

        it = g()
        next(it)
        x = it.throw(ValueError())
        it.close()
        return x, out, torch.is_grad_enabled()

    @case
    def dec_gen_return():
        @torch.no_grad()
        def g():
            yield 1
            return 7

        it = g()
        next(it)
        try:
            next(it)
        except StopIteration as e:
            return e.value

    @case
    def dec_class():
        @torch.no_grad()
        class F:
            def __init__(self):
                self.m = torch.is_grad_enabled()

        return F().m

    @case
    def dec_class2():
        @torch.set_grad_enabled(False)
        class F:
            def __init__(self):
                self.m = torch.is_grad_enabled()

        r = F().m
        torch.set_grad_enabled(True)
        return r, torch.is_grad_enabled()

    @case
    def dec_set_grad():
        @torch.set_grad_enabled(False)
        def f():
            return torch.is_grad_enabled()

        return torch.is_grad_enabled(), f(), torch.is_grad_enabled()

    @case
    def sge_fn():
        torch.set_grad_enabled(False)
        a = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        return a, torch.is_grad_enabled()

    @case
    def sge_clone():
        return (
            type(torch.set_grad_enabled(True).clone()).__name__,
            type(torch.inference_mode(True).clone()).__name__,
            torch.inference_mode(False).clone().mode,
        )

    @case
    def sgebad():
        return torch.set_grad_enabled("a")

    @case
    def infmode_basics():
        with torch.inference_mode():
            r = [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
            with torch.inference_mode(False):
                r += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
            with torch.enable_grad():
                r += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
        return r

    @case
    def inf_false_nograd():
        with torch.no_grad(), torch.inference_mode(False):
            return torch.is_grad_enabled()

    @case
    def inf_create():
        with torch.inference_mode():
            a = torch.ones(2, requires_grad=True)
            b = torch.ones(2)
            c = torch.tensor([1.0, 2.0], requires_grad=True)
        return a, b, c, a.is_inference(), b.requires_grad

    @case
    def inf_version():
        with torch.inference_mode():
            c = torch.ones(2, 3)
            r = [err(lambda: c._version)]
        return (
            r,
            err(lambda: c._version),
            err(lambda: c.grad),
            err(lambda: c.grad_fn),
            err(lambda: c.output_nr),
            err(lambda: c.is_leaf),
            err(lambda: c._base),
            err(lambda: c._is_view()),
        )

    @case
    def inf_mul_saved():
        with torch.inference_mode():
            c = torch.ones(2)
        x = torch.ones(2, requires_grad=True)
        return (
            err(lambda: c * x),
            err(lambda: x * c),
            err(lambda: x + c),
            err(lambda: (x + c).sum().backward()),
            err(lambda: x.exp().mul(c)),
            err(lambda: torch.mul(x, x, out=c)),
            err(lambda: torch.mm(x[None], c[:, None])),
        )

    @case
    def inf_inplace_normal():
        with torch.inference_mode():
            c = torch.ones(2)
        x = torch.ones(2, requires_grad=True)
        return (
            err(lambda: c.mul_(x)),
            err(lambda: c.copy_(x)),
            err(lambda: c.zero_()),
            err(lambda: torch.add(torch.ones(2), torch.ones(2), out=c)),
            err(lambda: c.fill_(3)),
            err(lambda: c.__setitem__(0, 1.0)),
        )

    @case
    def normal_inplace_leaf_in_inf():
        x = torch.ones(2, requires_grad=True)
        with torch.inference_mode():
            r = err(lambda: x.add_(1))
        return r, x

    @case
    def normal_inplace_in_inf():
        x = torch.ones(2, requires_grad=True)
        a = x.clone()
        with torch.inference_mode():
            a.add_(2)
            r = a
        return r, a.add_(2), a._version

    @case
    def normal_inplace_in_inf_save():
        x = torch.ones(2, requires_grad=True)
        a = x.clone()
        b = a * a
        with torch.inference_mode():
            a.add_(2)
        return err(lambda: b.sum().backward())

    @case
    def view_in_inf():
        x = torch.ones(2, 3, requires_grad=True)
        a = x.clone()
        with torch.inference_mode():
            v = a.view(-1)
            r = [v, v.is_inference(), v._is_view()]
            w = v.view(6)
        return (
            r,
            err(lambda: v + 1),
            err(lambda: v.add_(1)),
            err(lambda: w.add_(2)),
            err(lambda: (v * x.view(-1)).sum().backward()),
            err(lambda: v.requires_grad_()),
        )

    @case
    def view_in_inf2():
        a = torch.ones(2, 3)
        with torch.inference_mode():
            v = a.view(-1)
        return (
            v,
            err(lambda: v.add_(1)),
            err(lambda: v.mul_(torch.ones(6, requires_grad=True))),
            err(lambda: v.requires_grad_()),
        )

    @case
    def rebase_direct():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        with torch.inference_mode():
            v = b.view_as(b)
        b.add_(2)
        return b, err(lambda: v.grad_fn), err(lambda: v.add_(1)), err(lambda: v + 1)

    @case
    def rebase_indirect():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        with torch.inference_mode():
            v = b.view(6)
        b.add_(2)
        return err(lambda: v.grad_fn), err(lambda: v * 2)

    @case
    def no_grad_view():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        with torch.no_grad():
            v = b.view(6)
        return v, err(lambda: v.add_(1)), err(lambda: v.grad_fn)

    @case
    def inf_backward():
        a = torch.ones(2, requires_grad=True)
        l = (a * a).sum()
        with torch.inference_mode():
            r = err(lambda: l.backward())
        return r, a.grad, a.grad is not None and a.grad.is_inference()

    @case
    def inf_backward2():
        with torch.inference_mode():
            x = torch.ones(2, requires_grad=True)
            return err(lambda: (x * 2).sum().backward())

    @case
    def inf_dec():
        @torch.inference_mode()
        def f(x):
            return x * 2

        return f(torch.ones(2, requires_grad=True))

    @case
    def inf_data():
        with torch.inference_mode():
            c = torch.ones(2)
        x = torch.ones(2)
        return (
            err(lambda: setattr(x, "data", c)),
            err(lambda: c.data),
            err(lambda: setattr(c, "data", torch.zeros(2))),
        )

    @case
    def inf_save_hook():
        with torch.inference_mode():
            c = torch.ones(2)

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, c):
                ctx.save_for_backward(c)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g, None

        x = torch.ones(2, requires_grad=True)
        return err(lambda: F.apply(x, c)), err(lambda: F.apply(x, c.clone()))

    @case
    def inf_ver_unsafe():
        x = torch.ones(2)
        with torch.autograd._unsafe_preserve_version_counter(x):
            x.add_(1)
        with torch.autograd._unsafe_preserve_version_counter((x,)):
            x.add_(1)
        return x._version, err(lambda: torch._C._autograd._unsafe_set_version_counter((x,), (5,))), x._version

    @case
    def inc_version():
        x = torch.ones(2)
        torch.autograd.graph.increment_version(x)
        torch.autograd.graph.increment_version([x, x])
        with torch.inference_mode():
            c = torch.ones(2)
        return x._version, err(lambda: torch.autograd.graph.increment_version(c))

    @case
    def underscored():
        x, plain, core = torch.ones(2, requires_grad=True), torch.ones(2), torch._C
        r = [core._set_grad_enabled(False), torch.is_grad_enabled(), core._any_requires_grad(x)]
        r += [core._set_grad_enabled(True), torch.is_grad_enabled(), err(lambda: core._set_grad_enabled(1))]
        return r, [core._any_requires_grad(*a) for a in ((), (plain, 1), (plain, x), ([plain, x], None))]

    @case
    def multithr():
        r = [torch._C._is_multithreading_enabled()]
        with torch.autograd.set_multithreading_enabled(False):
            r.append(torch._C._is_multithreading_enabled())
        torch.autograd.set_multithreading_enabled(False)
        r.append(torch._C._is_multithreading_enabled())
        torch.autograd.set_multithreading_enabled(True)
        r.append(torch._C._is_multithreading_enabled())
        return r

    @case
    def switches_as_decorators():
        r = []
        for switch, asked, on in (
            ("set_multithreading_enabled", "_is_multithreading_enabled", False),
            ("_force_original_view_tracking", "_is_view_replay_enabled", True),
            ("enforce_grad_layout_policy", "_is_grad_layout_enforcement_enabled", False),
        ):
            is_on, mode = getattr(torch._C, asked), getattr(torch.autograd.grad_mode, switch)

            @mode(on)
            def told(is_on=is_on):
                return is_on()

            r += [switch, is_on(), told(), is_on()]
            mode(not on)
        return r

    @case
    def viewreplay():
        r = [torch._C._is_view_replay_enabled()]
        with torch.autograd._force_original_view_tracking(True):
            r.append(torch._C._is_view_replay_enabled())
        torch.autograd._force_original_view_tracking(True)
        r.append(torch._C._is_view_replay_enabled())
        torch.autograd._force_original_view_tracking(False)
        r.append(torch._C._is_view_replay_enabled())
        return r

    @case
    def viewreplay2():
        def f(x):
            v = x.clone().view(1, 1)
            w = v.squeeze()
            w.mul_(2)
            return v

        x = torch.ones(1, requires_grad=True)
        r = [type(f(x).grad_fn).__name__]
        with torch.autograd._force_original_view_tracking(True):
            o = f(x)
            r.append(type(o.grad_fn).__name__)
            r.append(torch.autograd.grad(o.sum(), x))
        return r

    @case
    def fwdmode():
        return torch._C._is_fwd_grad_enabled()

    @case
    def nest_exc():
        try:
            with torch.no_grad():
                raise ValueError
        except ValueError:
            pass
        return torch.is_grad_enabled()

    @case
    def reuse():
        g = torch.no_grad()
        with g, g:  # the same object twice: it forgets what was before
            pass
        on = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        return on

    @case
    def lambdas():
        return torch.no_grad()(lambda x: x * 2)(torch.ones(1, requires_grad=True)), torch.enable_grad()(
            lambda: torch.is_grad_enabled()
        )()

    @case
    def is_inference_fn():
        return torch.is_inference(torch.ones(1)), torch.is_inference_mode_enabled()

    @case
    def inf_print():
        with torch.inference_mode():
            c = torch.ones(2)
        return str(c), repr(c)

    @case
    def inf_copy():
        import copy
        import pickle

        with torch.inference_mode():
            c = torch.ones(2)
        return copy.deepcopy(c).is_inference(), pickle.loads(pickle.dumps(c)).is_inference()

    @case
    def inf_out():
        x = torch.ones(2)
        with torch.inference_mode():
            torch.add(x, x, out=x)
        return x, x._version

    @case
    def inf_set_():
        with torch.inference_mode():
            c = torch.ones(2)
        x = torch.ones(2)
        return (
            err(lambda: x.set_(c)),
            err(lambda: c.set_(x)),
            err(lambda: c.resize_(3)),
            err(lambda: c.as_strided_((1,), (1,))),
            err(lambda: c.t_()),
            err(lambda: c.unsqueeze_(0)),
        )

    @case
    def inf_function():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

        x = torch.ones(2, requires_grad=True)
        with torch.inference_mode():
            return F.apply(x)

    @case
    def inference_tensors_are_written_through_aliases_made_outside():
        with torch.inference_mode():
            c = torch.ones(2)
            inside = c.detach(), c.data
        # As lists: torch refuses after it has written.
        seen = [t.tolist() for t in (c.detach().add_(1), c.data.mul_(3), c.view(-1).detach().sub_(1))]
        alias = c.detach()
        seen += [alias._version, alias.add_(1)._version, alias.is_inference(), c.data._version]
        refused = (
            lambda: c.detach()[0].add_(1),
            lambda: c.data[0].add_(1),
            lambda: c.detach().requires_grad_(),
            lambda: inside[0]._version,
            lambda: inside[1]._version,
            lambda: inside[0].add_(1),
            lambda: inside[1].add_(1),
            lambda: c.add_(1),
        )
        return seen, [err(call) for call in refused]

    @case
    def nothing_is_recorded_in_inference_mode_whatever_enable_grad_says():
        at, mask = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[True, False], [False, True]])
        writes = (
            lambda e: e.add_(1),
            lambda e: e.mul_(e.detach()),
            lambda e: e.pow_(2),
            lambda e: e.clamp_(0),
            lambda e: e.__setitem__(0, 1.0),
            lambda e: e.__setitem__(mask, 1.0),
            lambda e: e[0].add_(1),
            lambda e: e.copy_(torch.ones(2, 2)),
            lambda e: e.scatter_(0, at, 0.25),
            lambda e: e.cumsum_(0),
            lambda e: e.renorm_(2, 0, 1.0),
            lambda e: e.addmm_(e.detach(), e.detach()),
            lambda e: torch.add(torch.ones(2, 2), 1, out=e),
            lambda e: torch._foreach_add_([e], 1.0),
            lambda e: torch.nn.functional.dropout(e, inplace=True),
            lambda e: e.set_(torch.ones(2, 2)),
            lambda e: e.t_(),
            lambda e: e.unsqueeze_(0),
        )
        seen = []
        for write in writes:
            leaf = torch.ones(2, 2, requires_grad=True)
            for e in (leaf * 1, leaf):
                with torch.inference_mode(), torch.enable_grad():
                    told = err(lambda e=e, write=write: write(e) and None)
                seen.append((told, e.grad_fn and e.grad_fn.name(), e.requires_grad, e._version))
        return seen

    @case
    def devices_chosen_around_and_in_a_backward():
        meta, seen = torch.device("meta"), []

        def see():
            seen.append((torch.ones(1).device, torch.get_default_device()))

        def backward(hook):
            y = torch.ones(2, requires_grad=True) * 2
            y.register_hook(lambda g: hook())
            y.sum().backward()

        backward(lambda: (meta.__enter__(), see())[1])
        see()
        backward(lambda: (torch.set_default_device("meta"), see())[1])
        see()
        with meta:
            see()
            y = torch.ones(2, device="cpu", requires_grad=True) * 2
            y.register_hook(lambda g: see())
            y.backward(torch.ones(2, device="cpu"))
            other = threading.Thread(target=see)
            other.start()
            other.join()
            see()
        see()
        return seen

    @case
    def the_layout_policy_is_a_bool():
        return [err(torch.autograd.enforce_grad_layout_policy, value) for value in ("a", 1, None)]

    @case
    def what_retained_its_gradient_says_so_when_it_is_detached():
        y = torch.ones(2, requires_grad=True) * 2
        y.retain_grad()
        z = y * 3
        y.detach_()
        z.sum().backward()
        return y.retains_grad, y.grad, y.is_leaf

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    ours, theirs = outcome(cases(rushlight)[name]), outcome(cases(torch_itself)[name])
    assert ours == theirs
