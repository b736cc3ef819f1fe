"""Samples of linear algebra. Results that are only fixed up to a sign or a phase are compared through what
does not depend on it, such as U * U.conj() or Q @ R."""

import warnings

from families import const, op, x
from sampling import Of, call


def hermitian(lib, a):
    return a + a.mH


def positive(lib, a):
    return a @ a.mH + lib.eye(a.shape[-1], dtype=a.dtype)


def regular(lib, a):
    return a + 4 * lib.eye(a.shape[-1], dtype=a.dtype)


def plain(lib, a):
    return a


def sizes(t):
    return (t * t.conj()).real if t.is_complex() else t * t


def found(name):
    def function(lib):
        value = lib
        for part in name.split("."):
            value = getattr(value, part)

        def quietly(*args, **kwargs):
            with warnings.catch_warnings():  # the older names are deprecated
                warnings.simplefilter("ignore")
                return value(*args, **kwargs)

        return quietly

    return function


def matrices(name, samples, prepare=plain, after=lambda lib, result: result, **properties):
    """An operation on prepared matrices; `after` makes the result comparable."""

    def run(lib):
        def function(a, *args, **kwargs):
            return after(lib, found(name)(lib)(prepare(lib, a), *args, **kwargs))

        return function

    properties = {"dtypes": "sc", "grad": "sc", "method": False, "tolerance": 20.0} | properties
    op(name, samples, run=run, **properties)


# Expanded matrices have rank 1: their factors are not unique.
UNIQUE = ("transposed", "strided", "offset")
SQUARE = [(3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2)]
# torch takes empty matrices of any dtype, having nothing to compute.
square = [call(x(*shape), only=None if all(shape) else "sc") for shape in SQUARE]

matrices(
    "linalg.cholesky",
    [*square, call(x(3, 3), upper=True)],
    positive,
    covers=("linalg_cholesky",),
    same_strides=True,
)
matrices("linalg.cholesky_ex", [call(x(3, 3)), call(x(2, 2), check_errors=True)], positive)
matrices("cholesky", [call(x(3, 3)), call(x(2, 2), upper=True)], positive)
matrices("linalg.inv", square, regular, covers=("linalg_inv",))
matrices("linalg.inv_ex", [call(x(2, 2, 2))], regular)
matrices("inverse", [call(x(2, 2, 2))], regular)
matrices("linalg.det", square, regular, covers=("linalg_det",))
matrices("det", square, regular)
matrices("linalg.slogdet", square, regular, covers=("linalg_slogdet",))
matrices("slogdet", [call(x(2, 2))], regular)
matrices("logdet", [call(x(3, 3)), call(x(2, 2, 2))], positive)
matrices(
    "linalg.solve",
    [
        call(x(3, 3), x(3, 2)),
        call(x(2, 2, 2), x(2, 2, 1)),
        call(x(2, 2), x(2)),
        call(x(2, 2, 2), x(2, 2)),
        call(x(2, 2, 2), x(2)),
        call(x(2, 2), x(3, 2, 1)),
        call(x(3, 3), x(2, 3), left=False),
        call(x(2, 2), x(0, 2, 1)),
    ],
    regular,
    covers=("linalg_solve",),
)
matrices("linalg.solve_ex", [call(x(2, 2), x(2, 1)), call(x(2, 2), x(1, 2), left=False)], regular)
matrices(
    "linalg.solve_triangular",
    [
        call(x(3, 3), x(3, 2), upper=True),
        call(x(3, 3), x(3, 2), upper=False),
        call(x(3, 3), x(2, 3), upper=False, left=False),
        call(x(2, 2), x(2, 2, 1), upper=True, unitriangular=True),
        call(x(2, 2, 2), x(1, 2, 1), upper=True),
        call(x(0, 0), x(0, 2), upper=True),
    ],
    regular,
    covers=("linalg_solve_triangular",),
)
matrices(
    "linalg.lu_factor",
    [call(x(3, 3)), call(x(2, 3, 2)), call(x(2, 4)), call(x(0, 2), only="sc")],
    covers=("linalg_lu_factor", "lu_permutation"),
    layouts=UNIQUE,
)
matrices("linalg.lu_factor_ex", [call(x(3, 3)), call(x(3, 2))])
matrices(
    "linalg.lu",
    [call(x(3, 3)), call(x(2, 3, 2)), call(x(2, 4)), call(x(0, 2), only="sc"), call(x(2, 0), only="sc")],
    after=lambda lib, result: result[1:],
)


def factored(name, reorder):
    def run(lib):
        def function(a, b, **kwargs):
            LU, pivots = lib.linalg.lu_factor(regular(lib, a))
            return found(name)(lib)(*reorder(LU, pivots, b), **kwargs)

        return function

    return run


op(
    "linalg.lu_solve",
    [
        call(x(3, 3), x(3, 2)),
        call(x(2, 2, 2), x(2, 1)),
        call(x(3, 3), x(3, 2), adjoint=True),
        call(x(3, 3), x(2, 3), left=False),
        call(x(3, 3), x(2, 3), left=False, adjoint=True),
        call(x(0, 0), x(0, 2), only="sc"),
    ],
    run=factored("linalg.lu_solve", lambda LU, pivots, b: (LU, pivots, b)),
    dtypes="sc",
    grad="sc",
    tolerance=20.0,
    covers=("linalg_lu_solve",),
)
op(
    "lu_solve",
    [call(x(3, 3), x(3, 2))],
    run=factored("lu_solve", lambda LU, pivots, b: (b, LU, pivots)),
    dtypes="sc",
    grad="sc",
    tolerance=20.0,
    method=False,
)
op(
    "lu_unpack",
    [call(x(3, 3)), call(x(2, 3, 2)), call(x(2, 3)), call(x(3, 3), unpack_data=False)],
    run=lambda lib: lambda a, **kwargs: lib.lu_unpack(a, lib.linalg.lu_factor(a.detach())[1], **kwargs)[:3],
    dtypes="sc",
    grad="",
    method=False,
    layouts=UNIQUE,
)
matrices("lu", [call(x(3, 3)), call(x(3, 2), get_infos=True)])
matrices(
    "linalg.ldl_factor",
    [call(x(3, 3)), call(x(2, 2, 2))],
    hermitian,
    grad="",
    covers=("linalg_ldl_factor",),
    layouts=UNIQUE,
)
matrices(
    "linalg.ldl_factor_ex",
    [call(x(3, 3)), call(x(3, 3), hermitian=True)],
    hermitian,
    grad="",
    layouts=UNIQUE,
)
op(
    "linalg.ldl_solve",
    [call(x(3, 3), x(3, 2)), call(x(2, 2, 2), x(2, 1)), call(x(3, 3), x(3, 1), hermitian=True)],
    run=lambda lib: (
        lambda a, b, hermitian=False: lib.linalg.ldl_solve(
            *lib.linalg.ldl_factor(positive(lib, a), hermitian=hermitian), b, hermitian=hermitian
        )
    ),
    dtypes="sc",
    grad="",
    tolerance=20.0,
    covers=("linalg_ldl_solve",),
)

RECTANGULAR = [(3, 3), (2, 3, 2), (2, 4), (0, 2), (2, 0), (2, 0, 2, 2)]
rectangular = [call(x(*shape), only=None if all(shape) else "sc") for shape in RECTANGULAR]


def product(lib, result):
    Q, R = result
    return Q @ R, sizes(Q), sizes(R)


matrices(
    "linalg.qr",
    [*rectangular, call(x(2, 3), "complete")],
    after=product,
    covers=("linalg_qr",),
    layouts=UNIQUE,
    same_strides=False,
)
matrices("qr", [call(x(3, 2)), call(x(2, 3), some=False)], after=product, layouts=UNIQUE, same_strides=False)
matrices(
    "geqrf",
    [call(x(3, 3)), call(x(2, 3, 2)), call(x(2, 4))],
    after=lambda lib, result: sizes(result[0].triu()),
    grad="",
    same_strides=False,
)
op(
    "linalg.householder_product",
    [call(x(3, 3), x(3)), call(x(2, 4, 2), x(2, 2)), call(x(3, 2), x(1))],
    dtypes="sc",
    grad="sc",
    tolerance=20.0,
    covers=("linalg_householder_product",),
)
op("orgqr", [call(x(3, 2), x(2))], dtypes="sc", grad="sc", tolerance=20.0)
op(
    "ormqr",
    [
        call(x(3, 3), x(3), x(3, 2)),
        call(x(2, 3, 2), x(2, 2), x(2, 3, 1), transpose=True),
        call(x(3, 2), x(2), x(2, 3), left=False),
        call(x(3, 2), x(2), x(2, 3), left=False, transpose=True),
    ],
    dtypes="sc",
    grad="sc",
    tolerance=20.0,
)


def eigenpairs(lib, result):
    return result[0], sizes(result[1])


matrices("linalg.eigh", [*square, call(x(3, 3), "U")], hermitian, eigenpairs, covers=("linalg_eigh",))
matrices("linalg.eigvalsh", [*square, call(x(3, 3), UPLO="U")], hermitian)


def ordered(lib, a):
    """A matrix whose eigenvalues are real and far apart, so that every library gives them in one order."""
    n = a.shape[-1]
    return 0.1 * a + lib.diag(lib.arange(n).to(a.dtype) * 3) if n else a


def sorted_pairs(lib, result):
    values, vectors = result
    order = values.detach().real.argsort(-1)
    columns = order.unsqueeze(-2).expand(vectors.shape)
    return values.gather(-1, order), sizes(vectors.gather(-1, columns))


matrices("linalg.eig", square, ordered, sorted_pairs, covers=("linalg_eig",), strict=False)
matrices(
    "linalg.eigvals",
    square,
    ordered,
    lambda lib, values: values.gather(-1, values.detach().real.argsort(-1)),
    strict=False,
)


def singular(lib, result):
    U, S, Vh = result
    k = S.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    return S, sizes(U), sizes(Vh), (U[..., :1] * Vh[..., :1, :] if k else S)


matrices(
    "linalg.svd",
    [*rectangular, call(x(3, 2), full_matrices=False), call(x(2, 3), False), call(x(4, 2))],
    after=singular,
    covers=("linalg_svd",),
    layouts=UNIQUE,
    same_strides=False,
)
matrices("linalg.svdvals", rectangular)
matrices(
    "svd",
    [call(x(3, 2)), call(x(2, 3), some=False)],
    after=lambda lib, result: singular(lib, (result[0], result[1], result[2].mH)),
    layouts=UNIQUE,
    same_strides=False,
)
op(
    "linalg.matrix_exp",
    square,
    dtypes="fc",
    grad="sc",
    tolerance=50.0,
    strict=False,
    covers=("linalg_matrix_exp",),
)
op("matrix_exp", [call(x(2, 2))], dtypes="sc", grad="sc", tolerance=50.0, strict=False)
op(
    "linalg.matrix_power",
    [*(call(x(2, 2), n) for n in (0, 1, 2, 3, 5)), call(x(2, 3, 3), 4)],
    dtypes="fci",
    grad="fc",
    tolerance=50.0,
    strict=False,
)
matrices("matrix_power", [call(x(2, 2), -2)], regular)

# ---- norms, rank, pseudoinverse, least squares
ORDERS = ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))
op(
    "linalg.matrix_norm",
    [
        *(call(x(3, 2), order) for order in ORDERS),
        *(call(x(2, 3, 2), order, dim=(2, 0), keepdim=True) for order in ORDERS),
        call(x(2, 2)),
        call(x(2, 2), 2, dtype=Of(lambda lib: lib.float64), only="s"),
        call(x(0, 3), 1),
        call(x(0, 3), "nuc"),
    ],
    dtypes="sc",
    grad="sc",
    strict=False,
    tolerance=20.0,
)
op(
    "linalg.norm",
    [
        call(x(3)),
        call(x(2, 3, 2)),
        call(x(3, 2), 1),
        call(x(3, 2), "nuc"),
        call(x(3, 2), 1, dim=1),
        call(x(2, 3, 2), 2, dim=(0, 1)),
        call(x(3), float("inf")),
        call(x(3, 2), dim=(0, 1), keepdim=True),
        call(x()),
    ],
    dtypes="sc",
    grad="sc",
    strict=False,
    tolerance=20.0,
)
CONDITIONS = (None, 2, -2, 1, -1, float("inf"), "fro", "nuc")
matrices(
    "linalg.cond",
    [*(call(x(3, 3), p) for p in CONDITIONS), call(x(2, 2, 2)), call(x(0, 0), nograd=True)],
    regular,
    tolerance=100.0,
)
matrices(
    "linalg.matrix_rank",
    [
        call(x(3, 3)),
        call(x(2, 3, 2)),
        call(x(3, 3), 0.5),
        call(x(3, 3), atol=0.1, rtol=0.2),
        call(x(3, 3), hermitian=True),
        call(x(0, 2)),
        call(x(2, 2, 2), rtol=const(2, low=0.1, high=0.5), only="s"),
    ],
    grad="",
)
matrices(
    "linalg.pinv",
    [
        call(x(3, 3)),
        call(x(2, 3, 2)),
        call(x(2, 3)),
        call(x(2, 2), rcond=0.01),
        call(x(2, 2), atol=1e-3),
        call(x(2, 0)),
        call(x(3, 3), rtol=1e-3),
    ],
    covers=("linalg_pinv",),
    tolerance=100.0,
)
matrices("pinverse", [call(x(3, 2))], tolerance=100.0, layouts=UNIQUE)
op(
    "linalg.lstsq",
    [
        call(x(4, 2), x(4, 3)),
        call(x(4, 2), x(4, 1), driver="gelsd"),
        call(x(4, 2), x(4, 1), driver="gelss"),
        call(x(2, 4, 2), x(2, 4, 1), driver="gels"),
        call(x(2, 3), x(2, 1)),
        call(x(4, 2), x(4)),
        call(x(2, 3, 2), x(1, 3, 1)),
        call(x(4, 2), x(4), driver="gelsd"),
    ],
    dtypes="sc",
    grad="sc",
    tolerance=100.0,
    covers=("linalg_lstsq_given", "linalg_lstsq"),
    layouts=UNIQUE,
    run=lambda lib: lambda a, b, **kwargs: lib.linalg.lstsq(a, b, **kwargs)[:2],
)
op(
    "linalg.tensorinv",
    [call(x(4, 4))],
    run=lambda lib: lambda a: lib.linalg.tensorinv(regular(lib, a).reshape(2, 2, 4), ind=2),
    dtypes="sc",
    grad="sc",
    tolerance=50.0,
)
op(
    "linalg.tensorsolve",
    [call(x(4, 4), x(2, 2)), call(x(4, 4), x(4))],
    run=lambda lib: (
        lambda a, b: lib.linalg.tensorsolve(
            regular(lib, a).reshape(*b.shape, 4), b, dims=(2,) if b.ndim == 2 else None
        )
    ),
    dtypes="sc",
    grad="sc",
    tolerance=50.0,
)
op(
    "linalg.vander",
    [call(x(3)), call(x(2, 3), N=4), call(x(2), N=2)],
    dtypes="sci",
    strict=False,
    tolerance=4.0,
)
op(
    "linalg.vecdot",
    [call(x(3), x(3)), call(x(2, 3), x(3)), call(x(2, 3), x(2, 3), dim=0)],
    dtypes="fc",
    strict=False,
    tolerance=4.0,
)
op("linalg.diagonal", [call(x(3, 2)), call(x(2, 3, 3), offset=1)], view=True, dtypes="fcib")

# ---- older names
op(
    "cholesky_solve",
    [call(x(2, 1), x(2, 2)), call(x(2, 3, 1), x(3, 3), upper=True)],
    run=lambda lib: (
        lambda b, a, **kwargs: lib.cholesky_solve(
            b, lib.linalg.cholesky(positive(lib, a), upper=bool(kwargs)), **kwargs
        )
    ),
    dtypes="sc",
    grad="sc",
    covers=("solve_factor",),
    tolerance=50.0,
    method=False,
)
op(
    "cholesky_inverse",
    [call(x(3, 3)), call(x(2, 2, 2), upper=True)],
    run=lambda lib: (
        lambda a, **kwargs: lib.cholesky_inverse(
            lib.linalg.cholesky(positive(lib, a), upper=bool(kwargs)), **kwargs
        )
    ),
    dtypes="sc",
    grad="sc",
    tolerance=50.0,
    method=False,
    same_strides=False,
)
op(
    "triangular_solve",
    [
        call(x(2, 1), x(2, 2)),
        call(x(3, 2), x(3, 3), upper=False, transpose=True),
        call(x(2, 1), x(2, 2), unitriangular=True),
    ],
    run=lambda lib: lambda b, a, **kwargs: found("triangular_solve")(lib)(b, regular(lib, a), **kwargs)[0],
    dtypes="sc",
    grad="sc",
    tolerance=50.0,
    method=False,
)
