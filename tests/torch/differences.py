"""Where a mutated call may end otherwise than in torch: a list of rules.

docs/design/differences.md gives the reason of each; test_mutations.py asserts that every difference it finds
falls under one of them, and that the document knows them all.
"""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What became of a call: "taken" with the result, or the type of the exception with its first line.
    `changed` says of every tensor given what it is now, or 0 if it is as it was."""

    kind: str
    text: Any
    changed: tuple = ()

    @property
    def taken(self):
        return self.kind == "taken"

    def says(self, *words):
        return not self.taken and any(word in self.text for word in words)


RULES = {}
RARE = re.compile(r"\b(uint16|uint32|uint64|complex32|float8_\w+)\(")
HUGE = re.compile(r"(?<![\w.])-?\d{9,}\b(?!\.)|[\d.]e\+\d\d")
EMPTY = re.compile(r"[a-z0-9]\((0|[^()]*, 0)\b")


def rule(name):
    def add(predicate):
        RULES[name] = predicate
        return predicate

    return add


def name_of(call):
    return call.partition("mistakes: ")[2].partition("(")[0]


def both_refuse(theirs, ours):
    return not theirs.taken and not ours.taken


@rule("a failure inside torch")
def _(call, theirs, ours):
    if not theirs.taken and re.search(r"overflowed with sizes=\[[^]]*-", theirs.text):  # negative ones
        return True
    if theirs.kind == "AttributeError" and theirs.says("object has no attribute"):
        return ours.kind in ("AttributeError", "TypeError")
    private = re.compile(
        r"INTERNAL ASSERT FAILED|^Expected [\w.:!<>=()*, \[\]]+ to be true, but got false\.$"
        r"|SymIntArrayRef expected to contain only concrete integers"  # a size of -2**63
        r"|^numel: integer multiplication overflow|^setStorage: sizes"
        r"|^aten::\w+: attempted to run|'aten::|The register_meta function"
        r"|aten::\w+\(\) Expected a value of type"
        r"|^Attempting to cast from \S+ to out tensor with dtype torch\."
        r"|The truth value of an empty array|^step must be nonzero|^Expected bool, got"
        r"|^Autograd not support dtype|^mvlgamma: result type|in the tensor list but got:"
        r"|^Expected dim to be int|^could not create a primitive descriptor"
    )
    return not theirs.taken and private.search(theirs.text) is not None


@rule("halves without oneDNN")
def _(call, theirs, ours):
    from comparing import BY_ONEDNN  # here, because it loads both libraries

    halves = [dtype for dtype, taken in BY_ONEDNN.items() if not taken]
    return (
        "conv" in name_of(call) and both_refuse(theirs, ours) and any(f"{half}(" in call for half in halves)
    )


@rule("an operand without data")
def _(call, theirs, ours):
    return " meta" in call


@rule("a copy where torch wants a view")
def _(call, theirs, ours):
    return theirs.says("view size is not compatible with input tensor's size and stride")


@rule("a refused call that changed something in torch")
def _(call, theirs, ours):
    same = theirs.kind == ours.kind and theirs.text == ours.text
    return same and not ours.taken and not any(ours.changed) and any(theirs.changed)


@rule("an output that is read while it is written")
def _(call, theirs, ours):
    return "out=" in call and ours.taken and (theirs.taken or theirs.says("to a single memory location"))


@rule("a leaf that an undifferentiable write replaces")
def _(call, theirs, ours):
    return ours.says("a leaf Variable that requires grad") and name_of(call).endswith("_")


@rule("numbers beyond 32 bits")
def _(call, theirs, ours):
    names = ("polygamma", "kaiser_window", "pdist", "nn.functional.pdist", "ldexp", "nn.functional.lp_pool1d",
             "nn.functional.lp_pool2d", "nn.functional.lp_pool3d", "norm", "dist",
             "nn.functional.pairwise_distance")  # fmt: skip
    both = theirs.taken and ours.taken
    return HUGE.search(call) is not None and (not both or name_of(call).removesuffix("_") in names)


@rule("strides of results")
def _(call, theirs, ours):
    return theirs.taken and ours.taken and only_strides_differ(theirs.text, ours.text, overlaps_itself(call))


def only_strides_differ(a, b, any_dim):
    """Whether some strides differ, of dimensions of size 1 unless `any_dim`."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if len(a) > 3 and isinstance(a[0], str) and isinstance(b[0], str):
            steps = [[step for step, size in zip(t[3], t[1]) if size > 1 or any_dim] for t in (a, b)]
            return a[:3] == b[:3] and a[3] != b[3] and (any_dim or steps[0] == steps[1])
        return any(only_strides_differ(x, y, any_dim) for x, y in zip(a, b))
    return False


def overlaps_itself(call):
    """Whether a tensor of the call has an element at two places."""
    for sizes, steps in re.findall(r"\w\(([\d, ]*)\) by \(([\d, ]*)\)", call):
        pairs = zip(steps.split(","), sizes.split(","))
        reach = 0
        for step, size in sorted((int(a), int(b)) for a, b in pairs if a.strip() and b.strip()):
            if size > 1 and step <= reach:
                return True
            reach += step * (size - 1)
    return False


@rule("arguments of masked operations")
def _(call, theirs, ours):
    # Torch hands a dim that is none to sum() where it counts the elements of a mask, and takes an empty
    # list for no dimension there and for all of them here.
    if not name_of(call).startswith("masked."):
        return False
    counted = name_of(call) in ("masked.mean", "masked.var", "masked.std") and "mask=" in call
    told = theirs.says("failed to unpack the object", "doesn't match the broadcast shape")
    return (both_refuse(theirs, ours) and (counted or told)) or told


@rule("places among equal elements")
def _(call, theirs, ours):
    return theirs.taken and ours.taken and name_of(call) in ("sort", "argsort", "kthvalue", "mode")


@rule("medians of elements that share their place")
def _(call, theirs, ours):
    names = ("median", "nanmedian", "masked.median")
    return theirs.taken and ours.taken and name_of(call) in names and overlaps_itself(call)


@rule("statistics of infinities")
def _(call, theirs, ours):
    names = ("std", "var", "std_mean", "var_mean", "cov", "corrcoef")
    return theirs.taken and ours.taken and name_of(call) in names and "nan" in str(theirs.text)


@rule("nodes without a derivative")
def _(call, theirs, ours):
    names = (
        "detach_copy",
        "histogramdd",
        "Tensor.fill_",
        "nn.functional.embedding_bag",
    )
    return theirs.taken and ours.taken and name_of(call) in names


@rule("words for lists and overloads")
def _(call, theirs, ours):
    if not both_refuse(theirs, ours) or not (theirs.kind == "TypeError" or theirs.kind == ours.kind):
        return False
    return name_of(call) in (
        "tensor",
        "as_tensor",
        "asarray",
        "split",
    ) or "_foreach_" in name_of(call)


@rule("an index that names its dimension")
def _(call, theirs, ours):
    told = theirs.says("out of bounds for dimension", "Expected idx >= 0")
    told |= ours.says("Index tensor must have the same number of dimensions")
    return both_refuse(theirs, ours) and told


@rule("memory read outside a tensor")
def _(call, theirs, ours):
    return theirs.taken and ours.says(
        "out of bounds", "out of range", "should be a scalar", "sum to data.size"
    )


@rule("memory that torch did not write")
def _(call, theirs, ours):
    nothing = ours.says("Negative padding value is resulting in an empty dimension")
    wrapped = ours.taken and re.search(r"tuple\([^()]*-\d", call) is not None
    circular = "circular" in call and (nothing or wrapped)
    modes = name_of(call).startswith("grid_sampler") and ours.says("no such mode")
    return theirs.taken and (modes or circular)


@rule("sizes and strides that torch does not look at")
def _(call, theirs, ours):
    name = name_of(call)
    told = ("cannot be multiplied", "must match the size of tensor", "doesn't match the broadcast shape",
            "must be a matrix, got", "size mismatch, got")  # fmt: skip
    sized = name == "lstm" and "float64" not in call and (ours.says(*told) or has_odd_parameters(call))
    lengths = re.search(r"int64\((\d+), ?\d*\) by \((\d+),", call)
    packed = name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and lengths and lengths[2] != "1"
    scales = name == "native_group_norm" and re.search(r"\(\d+,\) by \((?!1,)", call)
    statistics = name == "native_batch_norm" and ours.says("should contain")
    if packed and theirs.says("is invalid for input of size"):
        return True
    return theirs.taken and bool(sized or packed or scales or statistics)


def has_odd_parameters(call):
    """Whether a parameter of a recurrent layer is neither a matrix nor a vector."""
    listed = re.search(r" list\((.*?)\), (True|False)", call)
    shapes = re.findall(r"float\d+\(([\d, ]*)\)", listed[1]) if listed else []
    return any(len(re.findall(r"\d+", shape)) not in (1, 2) for shape in shapes)


@rule("an image of one column")
def _(call, theirs, ours):
    if not (theirs.taken and ours.taken) or not ours.text or "interpolate" not in name_of(call):
        return False
    return ours.text[1][-1] == 1 and same_but_for_numbers(theirs.text, ours.text)


@rule("draws and writes of nothing")
def _(call, theirs, ours):
    return EMPTY.search(call) is not None and (theirs.taken or ours.taken)


# ---- what a library of linear algebra decides


def same_but_for_numbers(a, b):
    """Whether two results are of the same dtypes, sizes and strides."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if len(a) > 3 and isinstance(a[0], str):
            return a[:4] == b[:4]
        return all(map(same_but_for_numbers, a, b))
    return a == b


FACTORISED = ("linalg.svd", "svd", "linalg.qr", "qr", "geqrf", "lu", "linalg.lu", "linalg.lu_factor",
              "linalg.lu_factor_ex", "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.cholesky",
              "linalg.cholesky_ex", "cholesky", "linalg.eigh", "linalg.eigvalsh", "linalg.eig",
              "linalg.eigvals", "lu_unpack", "linalg.svdvals")  # fmt: skip
SOLVED = ("det", "linalg.det", "logdet", "slogdet", "linalg.slogdet", "cholesky_inverse", "inverse",
          "linalg.inv", "linalg.inv_ex", "linalg.solve", "linalg.solve_ex", "linalg.lu_solve", "lu_solve",
          "linalg.ldl_solve", "cholesky_solve", "linalg.tensorinv", "linalg.tensorsolve", "linalg.cond",
          "linalg.lstsq", "linalg.pinv", "pinverse", "linalg.matrix_power", "linalg.matrix_rank")  # fmt: skip


@rule("matrices without full rank")
def _(call, theirs, ours):
    # A product of a column, or rows that are one: pivots and singular values that are zero but for rounding.
    column = re.search(r"[a-z0-9]\((?:\d+, )*([2-9]), 1\)", call) is not None
    if name_of(call) not in FACTORISED + SOLVED or not (column or overlaps_itself(call)):
        return False
    if theirs.taken and ours.taken:
        return same_but_for_numbers(theirs.text, ours.text)
    zero = "is zero", "not positive-definite", "is singular"
    return (theirs.taken or theirs.says(*zero)) and (ours.taken or ours.says(*zero))


@rule("factorisations of what is not finite")
def _(call, theirs, ours):
    if " not finite" not in call or name_of(call) not in FACTORISED + SOLVED:
        return False
    if ours.taken:  # the same elements of the results may be NaN in one, and an infinite pivot go on
        factor = theirs.taken and same_but_for_numbers(theirs.text, ours.text)
        return factor or theirs.says("is not positive-definite")
    told = "failed to converge", "infs or NaNs", "There is no least squares solution"
    return ours.says(*told) and (theirs.taken or theirs.says("failed to converge", "INTERNAL ASSERT"))


@rule("exponentials of half precision")
def _(call, theirs, ours):
    halves = re.search(r"matrix_exp\(b?float16\(", call) is not None
    return halves and theirs.taken and ours.taken and same_but_for_numbers(theirs.text, ours.text)


# ---- the wide ones, asked last


@rule("dtypes without a kernel")
def _(call, theirs, ours):
    # Either the names of the kernels differ, or one library has none where the other goes on.
    words = ("not implemented for", "Promotion for", "Unsupported dtype", "scalar type")
    return RARE.search(call) is not None and (theirs.says(*words) or ours.says(*words))


@rule("two mistakes in one call")
def _(call, theirs, ours):
    return both_refuse(theirs, ours) and int(call.split()[2]) > 1


def explanation(call, theirs, ours):
    """The name of the rule under which a difference falls, or None."""
    return next((name for name, holds in RULES.items() if holds(call, theirs, ours)), None)
