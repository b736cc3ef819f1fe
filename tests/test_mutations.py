"""What must hold of any call, however bad its arguments: no crash, an exception that says what is wrong, and
a call that fails changes nothing. `make asan` runs this under AddressSanitizer."""

import warnings

import pytest
from mutations import mutated_calls

import rushlight

# What torch raises for bad input. A SystemError or an assertion of the core would be a defect.
SANE = (TypeError, ValueError, RuntimeError, IndexError, AttributeError, KeyError,
        AssertionError, ArithmeticError, MemoryError)  # fmt: skip


def tensors_in(value):
    if isinstance(value, rushlight.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one)


def state(t):
    """What a failed call must leave as it was."""
    numbers = None if t.is_meta else repr(t.detach().tolist())  # as text: a NaN is like itself there
    return tuple(t.shape), t.stride(), t.dtype, t.requires_grad, t._version, numbers


@pytest.mark.parametrize("seed", range(4))
def test_bad_arguments_raise_and_change_nothing(seed):
    refused, wrong = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told, function, args, kwargs in mutated_calls(rushlight, seed, 500):
            given = list(tensors_in([args, list(kwargs.values())]))
            before = [state(t) for t in given]
            try:
                function(*args, **kwargs)
            except SANE as error:
                refused += 1
                if "INTERNAL" in str(error) or not str(error):
                    wrong.append(f"{told} raised {error!r}")
                if before != [state(t) for t in given]:
                    wrong.append(f"{told} wrote, and then raised {error!r}")
            except Exception as error:
                wrong.append(f"{told} raised {error!r}")
    assert not wrong, "\n".join(wrong)
    assert 150 < refused < 450  # most mutations are refused, and not all
