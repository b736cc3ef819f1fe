"""Running one small program in both libraries: what it gave, warned of or refused, as comparable text."""

import warnings


def collector():
    """A dict, and a decorator that puts a function into it under a name."""
    found = {}

    def case(name):
        return lambda function: found.setdefault(name, function)

    return found, case


def outcome(function):
    """The result's repr, or the error's type and first sentence; then the first lines of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(function())
        except Exception as error:
            first = str(error).splitlines()[0] if str(error) else ""
            result = f"{type(error).__name__}: {first.split('. ')[0]}"
    # torch's own use of its compiler is none of the program's business.
    caught = [w for w in caught if "torch.jit" not in str(w.message)]
    lines = [str(w.message).strip().splitlines()[0].split(" (Triggered")[0] for w in caught]
    return [result, *(f"{w.category.__name__}: {line}" for w, line in zip(caught, lines, strict=True))]


def err(function, *args, **kwargs):
    """What a call gives, or the type and first line of its error: for several calls in one program."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        return f"{type(error).__name__}: {first}".replace("rushlight", "torch")


def function_of(torch, forward, backward=None, *, name="F", **others):
    """An autograd.Function of these functions."""
    methods = {"forward": forward, "backward": backward, **others}
    methods = {name: staticmethod(method) for name, method in methods.items() if method is not None}
    return type(name, (torch.autograd.Function,), methods)


def passing_on(torch):
    """A decorator: a Function that passes its input on and has the decorated function as its backward."""
    return lambda backward: function_of(torch, lambda ctx, x: x * 1, backward, name=backward.__name__)
