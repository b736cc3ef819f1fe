"""Functions on lists: the nodes that they record, and lists that overwrite what they compute with."""

import warnings

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

import rushlight

UNARY = "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg"
UNARY += " reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc max norm"


def cases(torch):
    found, case = collector()
    R = short_names(torch).R

    def told(value):
        if isinstance(value, torch.Tensor):
            return value.detach()
        return tuple(map(told, value)) if isinstance(value, tuple) else value

    def node(tensor):
        grad_fn = tensor.grad_fn
        saved = {name: told(getattr(grad_fn, name)) for name in dir(grad_fn) if name.startswith("_saved_")}
        saved.pop("_saved_result", None)
        return grad_fn.name(), [after and after.name() for after, _ in grad_fn.next_functions], saved

    def both(name, *args, **kwargs):
        """The node of a result and of what is written in place."""
        start = R(2)
        new = getattr(torch, f"_foreach_{name}")([start * 2], *args, **kwargs)[0]
        nodes = [node(new)]
        if hasattr(torch, f"_foreach_{name}_"):
            old = start * 2
            getattr(torch, f"_foreach_{name}_")([old], *args, **kwargs)
            nodes.append(node(old))
        return nodes, torch.autograd.grad(new.sum(), start)

    @case("nodes of functions of one list")
    def _():
        return [both(name) for name in UNARY.split()]

    @case("nodes of functions of two")
    def _():
        y, number = R(2), torch.tensor(2.0, requires_grad=True)
        names = ["add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min"]
        made = [both(name, other) for name in names for other in (2.0, [3.0], [y])]
        made += [both(name, number) for name in ("add", "mul", "div")]
        extremes = [both(name, [y]) for name in ("maximum", "minimum")]
        return made, extremes, both("add", [y], alpha=3), both("norm", 1)

    @case("a maximum shares the gradient of a tie in place, too")
    def _():
        x, y = R(2), R(2)
        e = x * 1
        torch._foreach_maximum_([e], [x.detach()])
        f = y * 1
        torch._foreach_minimum_([f], [y.detach()])
        return torch.autograd.grad(e.sum() + f.sum(), [x, y])

    @case("nodes of functions of three")
    def _():
        y, z = R(2), R(2)
        weights = [both("lerp", [y], weight) for weight in (0.5, [0.25], [z])]
        made = [both(name, [y], [z], *rest) for name in ("addcmul", "addcdiv") for rest in ((), ([2.0],))]
        return weights, made

    @case("operands that the list overwrites are refused later, as their histories were before")
    def _():
        found = []
        for name in ("mul", "div", "pow", "maximum"):
            x, y = R(2), R(2)
            e, f = x * 2, (y * 3).exp()
            getattr(torch, f"_foreach_{name}_")([e, f], [f, e])
            nodes = [[after.name() for after, _ in t.grad_fn.next_functions] for t in (e, f)]
            found.append((nodes, e.detach(), f.detach(), e._version, f._version))
            found += [err(torch.autograd.grad, t.sum(), [x, y], retain_graph=True)[:60] for t in (e, f)]
        return found

    @case("one that did not require grad")
    def _():
        x, c = R(2), torch.full((2,), 0.5)
        e = x.exp()
        torch._foreach_mul_([c, e], [e, c])
        return (
            [t.grad_fn.name() for t in (c, e)],
            torch.autograd.grad(c.sum(), x, retain_graph=True),
            err(torch.autograd.grad, e.sum(), x)[:60],
        )

    @case("a view and its base, each by itself")
    def _():
        x = R(2, 2)
        e = x * 1
        part = e[0]
        torch._foreach_mul_([part, e], [part, e])
        return e.detach(), e.grad_fn.name(), err(torch.autograd.grad, e.sum(), x)[:60]

    @case("what norms and powers keep of all results")
    def _():
        y, z, found = R(2), R(3), []
        for made in (
            torch._foreach_norm([y, z], 1),
            torch._foreach_pow([y, z], [y, z]),
            torch._foreach_pow(2.0, [y, z]),
        ):
            node = made[0].grad_fn
            found.append((node.name(), [t.detach() for t in node._saved_result]))
            made[1].detach().add_(1)
            found.append(err(lambda node=node: node._saved_result)[:60])
        found.append(torch._foreach_addcmul([y], [y], [y], 0.5)[0].grad_fn.name())
        return found

    @case("a view that is written stays one, also where nobody holds its base")
    def _():
        found = []
        for write in (
            lambda v: torch._foreach_add_([v], 2.0),
            lambda v: torch._foreach_mul_([v], 2.0),
            lambda v: torch._foreach_div_([v], 2),
            lambda v: v.conj_physical_(),
        ):
            for view in (
                lambda x: (x * 1)[1:],
                lambda x: (x * 1).view(2, 2)[1],
                lambda x: torch.zeros(4)[1:],
            ):
                x = R(4)
                v = view(x)
                write(v)
                found.append((v._is_view(), v._version, v.grad_fn and v.grad_fn.name()))
                write(v)
                if v.requires_grad:
                    found.append(torch.autograd.grad(v._base.sum(), x))
        return found

    of_two = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min", "mm")
    LISTS = [(name, 2, ()) for name in of_two] + [(name, 3, ()) for name in ("addcmul", "addcdiv", "lerp")]
    LISTS += [(name, 1, (2.0,)) for name in ("add", "mul", "div", "pow", "clamp_min", "maximum")]
    LISTS += [(name, 1, ([2.0, 3.0],)) for name in ("sub", "mul", "div", "pow", "clamp_max", "minimum")]
    LISTS += [(name, 1, (torch.tensor(2.0),)) for name in ("add", "mul", "div")]
    LISTS += [("lerp", 2, (0.3,)), ("addcmul", 3, ([2.0, 3.0],)), ("norm", 1, (1,)), ("add", 2, (2,))]

    def written(name, count, rest, wanted, which):
        """What becomes of gradients of the first result after a write into an operand or result."""
        lists = [[torch.full((2, 2), first + at / 10) for first in (0.4, 0.2)] for at in range(count)]
        leaves = [tensor.requires_grad_() for at in wanted for tensor in lists[at]]
        extra = {"alpha": rest[0]} if name == "add" and count == 2 and rest else {}
        results = getattr(torch, f"_foreach_{name}")(*lists, *(() if extra else rest), **extra)
        places = [tensor for each in [*lists, rest, results] for tensor in each if hasattr(tensor, "numel")]
        if which >= len(places):
            return None
        torch.autograd.graph.increment_version(places[which].detach())
        return err(torch.autograd.grad, results[0].sum(), leaves, allow_unused=True)

    @case("a write into any operand or result of any of the list")
    def _():
        told = [(name, 1, ()) for name in UNARY.split()] + LISTS
        found = []
        for name, count, rest in told:
            for wanted in [[at] for at in range(count)] + [list(range(count))]:
                made = [written(name, count, rest, wanted, which) for which in range(10)]
                # Of a refusal, up to the version: torch's rest is about anomaly detection.
                said = [one.split(" is at version")[0] if isinstance(one, str) else one for one in made]
                found.append((name, rest, wanted, said))
        return found

    @case("all results are of one node, which is freed as a whole")
    def _():
        a, b, c = R(2), torch.ones(2), R(2)
        product = torch._foreach_mul([a, b], [b, b])
        node = product[0].grad_fn
        told = [(t.requires_grad, t.is_leaf, t._is_view(), t.output_nr) for t in product]
        after = [last and last.name() for last, _ in node.next_functions]
        result = torch._foreach_exp([a * 1, c * 1])
        result[0].sum().backward()
        again = err(result[1].sum().backward)
        free = torch._foreach_neg([a * 1, c * 1])
        free[0].sum().backward()
        free[1].sum().backward()
        return told, after, node is product[1].grad_fn, again, a.grad, c.grad

    @case("anomaly mode names the node")
    def _():
        found = []
        for call in (torch._foreach_div, torch._foreach_mul, torch._foreach_norm):
            a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
            with warnings.catch_warnings(), torch.autograd.detect_anomaly(check_nan=True):
                warnings.simplefilter("ignore")
                given = ([a, b], [b, a]) if call is not torch._foreach_norm else ([a, b], 0.5)
                made = call(*given)
                found.append(err((made[0].sum() * float("inf") * 0 + made[1].sum()).backward))
        return found

    @case("second derivatives through a list, and a result that is written")
    def _():
        a, c = R(2), R(2)
        product = torch._foreach_mul([a, c], [c, a])
        first = torch.autograd.grad(product[0].sum() + (product[1] ** 2).sum(), [a, c], create_graph=True)
        kept = torch._foreach_add([a * 1, c * 1], 2.0)
        kept[0].mul_(3)
        written = torch.autograd.grad(kept[0].sum() + kept[1].sum(), [a, c])
        return first, torch.autograd.grad(first[0].sum(), [a, c]), written

    @case("switches that are no bool")
    def _():
        graph = torch.autograd.graph
        switches = graph.set_warn_on_accumulate_grad_stream_mismatch, graph.set_override_stale_capture_stream
        return [err(switch, value) for switch in switches for value in (1, None, "on")]

    @case("the derivative of a new memory")
    def _():
        x = R(2)
        e = x * 1
        e.set_(torch.ones(2))
        return err(torch.autograd.grad, e.sum(), x)

    return found


def test_a_list_that_is_refused_keeps_its_history():
    x = rushlight.ones(2, 2, requires_grad=True)
    whole = x * 3
    part = whole.diagonal()
    before = whole.grad_fn
    with pytest.raises(RuntimeError, match="match the broadcast shape"):
        rushlight._foreach_mul_([part, whole], [whole, part])
    assert whole.grad_fn is before and whole.tolist() == [[3.0, 3.0], [3.0, 3.0]]


test_as_in_torch = same_in_torch(cases)
