"""L-BFGS with an optional strong Wolfe line search."""

import rushlight
from rushlight.optim._authors import _to_scalar
from rushlight.optim.optimizer import Optimizer, as_number, check_at_least_zero, check_tensor_lr, real_view

__all__ = ["LBFGS"]

# What one step leaves to the next, in the order of torch's state dicts.
_MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last gradients; the closure is called several times a step.

    >>> import rushlight as torch
    >>> x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> x.detach().round(decimals=3)
    tensor([1., 1.])
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure):
        """Iterate until ``max_iter``, ``max_eval`` or a tolerance; return the loss before."""
        with rushlight.no_grad():
            return self._minimize(closure)

    def _minimize(self, closure):
        group = self.param_groups[0]
        params = group["params"]
        lr, max_iter, max_eval = _to_scalar(group["lr"]), group["max_iter"], group["max_eval"]
        # One state for all parameters, kept with the first so that loading casts it.
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate():
            with rushlight.enable_grad():
                loss = closure()
            state["func_evals"] += 1
            return loss, _flat_gradient(params)

        first_loss, grad = evaluate()
        loss = float(first_loss)
        evaluations, before = 1, state["func_evals"] - 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss
        # Taken back into the state at the end: a closure that fails leaves it as it was.
        memory = {name: state.get(name) for name in _MEMORY}
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = self._direction(state, memory, grad, group["history_size"])
            memory["prev_flat_grad"] = grad.clone()
            previous_loss = memory["prev_loss"] = loss
            step = lr if state["n_iter"] > 1 else min(1.0, 1.0 / grad.abs().sum()) * lr
            slope = grad.dot(direction)
            memory["d"], memory["t"] = direction, step
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [param.clone() for param in params]

                def at(step, start=start, direction=direction):
                    _move(params, direction, step)
                    loss, grad = evaluate()
                    for param, value in zip(params, start):
                        param.copy_(value)
                    return _Point(step, float(loss), grad, grad.dot(direction))

                here = _Point(0, loss, grad, slope)
                search = _WolfeSearch(at, here, _largest(direction), max_eval - evaluations)
                point = search.run(step)
                loss, grad, step = point.loss, point.grad, point.step
                memory["t"] = step
                _move(params, direction, step)
            else:
                _move(params, direction, step)
                # In a stochastic setting the value after the last move is of no use.
                if iteration != max_iter:
                    new_loss, grad = evaluate()
                    loss = float(new_loss)
            evaluations = state["func_evals"] - before
            if (
                evaluations >= max_eval
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction.mul(step)) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        state.update(memory)
        return first_loss

    @staticmethod
    def _direction(state, memory, grad, history_size):
        """Minus the approximate inverse Hessian times the gradient (the two-loop recursion)."""
        if state["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        changes, steps, inverses = memory["old_dirs"], memory["old_stps"], memory["ro"]
        change = grad.sub(memory["prev_flat_grad"])
        step = memory["d"].mul(memory["t"])
        # Curvatures and factors stay tensors, rounded as the gradients are.
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(changes) == history_size:
                for history in (changes, steps, inverses):
                    history.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            memory["H_diag"] = curvature / change.dot(change)
        factors = state.setdefault("al", [None] * history_size)
        direction = grad.neg()
        for i in reversed(range(len(changes))):
            factors[i] = steps[i].dot(direction) * inverses[i]
            direction.add_(changes[i], alpha=-factors[i].item())
        direction = direction.mul(memory["H_diag"])
        for i in range(len(changes)):
            back = changes[i].dot(direction) * inverses[i]
            direction.add_(steps[i], alpha=(factors[i] - back).item())
        return direction


def _flat_gradient(params):
    pieces = []
    for param in params:
        grad = rushlight.zeros_like(param) if param.grad is None else param.grad
        grad = grad.to_dense() if grad.is_sparse else grad
        pieces.append(real_view(grad).reshape(-1))
    return rushlight.cat(pieces)


def _move(params, direction, step):
    offset = 0
    for param in params:
        view = real_view(param)
        view.add_(direction[offset : offset + view.numel()].view_as(view), alpha=as_number(step))
        offset += view.numel()


def _largest(tensor):
    return tensor.abs().max()


class _Point:
    """A point of the line: how far along, its loss, gradient, and slope along the line."""

    __slots__ = ("grad", "loss", "slope", "step")

    def __init__(self, step, loss, grad, slope):
        self.step, self.loss, self.grad, self.slope = step, loss, grad, slope


class _WolfeSearch:
    """Looks for a step with enough decrease and a flat enough slope (Nocedal and Wright, algorithm 3.5)."""

    decrease, flatness, tolerance = 1e-4, 0.9, 1e-9

    def __init__(self, at, start, direction_size, max_iter):
        self.at = at
        self.start = start
        self.direction_size = direction_size
        self.max_iter = max_iter
        self.iteration = 0

    def run(self, step):
        low, high, done = self._bracket(step)
        return low if done else self._zoom(low, high)

    def _too_high(self, point):
        return point.loss > self.start.loss + self.decrease * point.step * self.start.slope

    def _flat(self, point):
        return abs(point.slope) <= -self.flatness * self.start.slope

    def _bracket(self, step):
        """Go further and further until a minimum lies between the last two points."""
        previous, point = self.start, self.at(step)
        while self.iteration < self.max_iter:
            if self._too_high(point) or (self.iteration > 1 and point.loss >= previous.loss):
                return previous, point, False
            if self._flat(point):
                return point, None, True
            if point.slope >= 0:
                return previous, point, False
            bounds = (point.step + 0.01 * (point.step - previous.step), point.step * 10)
            step = _cubic_minimum(previous, point, bounds)
            previous, point = point, self.at(step)
            self.iteration += 1
        return self.start, point, False

    def _zoom(self, first, second):
        """Narrow the interval; ``low`` is the better end."""
        ends = [first, second]
        low = 0 if first.loss <= second.loss else 1
        stalled = False
        while self.iteration < self.max_iter:
            left, right = sorted(end.step for end in ends)
            if (right - left) * self.direction_size < self.tolerance:
                break
            step = _cubic_minimum(ends[0], ends[1], (left, right))
            margin = 0.1 * (right - left)
            near_an_end = min(right - step, step - left) < margin
            if near_an_end and (stalled or step >= right or step <= left):
                step = right - margin if abs(step - right) < abs(step - left) else left + margin
                near_an_end = False
            stalled = near_an_end
            point = self.at(step)
            self.iteration += 1
            if self._too_high(point) or point.loss >= ends[low].loss:
                ends[1 - low] = point
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            if self._flat(point):
                return point
            if point.slope * (ends[1 - low].step - ends[low].step) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = point
        return ends[low]


def _cubic_minimum(one, other, bounds):
    """Where the cubic through two points and their slopes is smallest, within the bounds."""
    left, right = (one, other) if one.step <= other.step else (other, one)
    width = right.step - left.step
    bend = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.step - right.step)
    square = bend**2 - left.slope * right.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2.0
    root = square**0.5
    place = right.step - width * ((right.slope + root - bend) / (right.slope - left.slope + 2 * root))
    return min(max(place, bounds[0]), bounds[1])


# Minimisers of other libraries use the search under torch's names.
def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """The search from `x` along `d`, first with step `t`: loss, gradient, step, number of evaluations."""
    evaluations = 0

    def at(step):
        nonlocal evaluations
        evaluations += 1
        loss, grad = obj_func(x, step, d)
        return _Point(step, loss, grad, grad.dot(d))

    search = _WolfeSearch(at, _Point(0, f, g, gtd), _largest(d), max_ls)
    search.decrease, search.flatness, search.tolerance = c1, c2, tolerance_change
    found = search.run(t)
    return found.loss, found.grad, found.step, evaluations


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with these values and slopes is least; between them by default."""
    one, other = _Point(x1, f1, None, g1), _Point(x2, f2, None, g2)
    return _cubic_minimum(one, other, bounds or (min(x1, x2), max(x1, x2)))
