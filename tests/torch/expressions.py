"""Evaluates an expression with ``torch`` meaning one library or the other, for comparison."""

import re
import warnings


def outcome(library, text, setup):
    """What the expression gives: its value as text, or the error's type and first line; and the warnings."""
    namespace = {"torch": library}
    library.manual_seed(0)
    exec(setup, namespace)
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(eval(text, namespace))
        except Exception as error:
            result = f"{type(error).__name__}: {error}".split("\n\n")[0]
    said = [f"{w.category.__name__}: {str(w.message).split(' (Triggered')[0]}" for w in caught]
    text = "\n".join([result, *said])
    text = re.sub(r"(torch|rushlight)\.(nn|utils)\.(modules\.)?", r"\2.", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)
