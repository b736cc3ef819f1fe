"""Named tuples that operations with several results return, such as `torch.return_types.max`."""

from __future__ import annotations

from operator import itemgetter

from rushlight._annotations import Any


def _define(name: str, fields: tuple[str, ...]) -> type:
    def __new__(cls, values=()):
        values = tuple(values)
        if len(values) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(values)}-sequence given)"
            )
        return tuple.__new__(cls, values)

    def __repr__(self):
        values = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{values})"

    def __reduce__(self):
        return _make, (name, tuple(self))  # by its module the class would be looked up in torch

    members: dict[str, object] = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    members |= {"__slots__": (), "__repr__": __repr__, "__reduce__": __reduce__, "__new__": __new__}
    members |= {"__match_args__": fields, "__module__": "torch.return_types"}
    members |= {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
    return type(name, (tuple,), members)


def _make(name: str, values: tuple) -> tuple:
    return _named(name)(values)


_FIELDS = {
    **dict.fromkeys(
        ("max", "min", "cummax", "cummin", "sort", "topk", "kthvalue", "median", "nanmedian", "mode"),
        ("values", "indices"),
    ),
    "aminmax": ("min", "max"),
    "frexp": ("mantissa", "exponent"),
    **dict.fromkeys(("histogram", "histogramdd"), ("hist", "bin_edges")),
    **dict.fromkeys(("linalg_eigh", "linalg_eig"), ("eigenvalues", "eigenvectors")),
    **dict.fromkeys(("linalg_qr", "qr"), ("Q", "R")),
    **dict.fromkeys(("linalg_slogdet", "slogdet"), ("sign", "logabsdet")),
    **dict.fromkeys(("linalg_lu", "lu_unpack"), ("P", "L", "U")),
    **dict.fromkeys(("linalg_lu_factor_ex", "_lu_with_info"), ("LU", "pivots", "info")),
    "linalg_cholesky_ex": ("L", "info"),
    "linalg_inv_ex": ("inverse", "info"),
    "linalg_solve_ex": ("result", "info"),
    "linalg_svd": ("U", "S", "Vh"),
    "svd": ("U", "S", "V"),
    "linalg_lu_factor": ("LU", "pivots"),
    "linalg_ldl_factor": ("LD", "pivots"),
    "linalg_ldl_factor_ex": ("LD", "pivots", "info"),
    "linalg_lstsq": ("solution", "residuals", "rank", "singular_values"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "geqrf": ("a", "tau"),
    "_unpack_dual": ("primal", "tangent"),
}

# The form with `out=` has a type of its own.
__all__ = [each for name in _FIELDS for each in (name, f"{name}_out")]


def __getattr__(name: str) -> Any:
    """A type is made when it is first named: to make all would take a tenth of `import rushlight`."""
    fields = _FIELDS.get(name) or _FIELDS.get(name.removesuffix("_out"))
    if fields:
        return globals().setdefault(name, _define(name, fields))
    if name == "all_return_types":
        return globals().setdefault(name, [_named(each) for each in __all__])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _named(name: str) -> type:
    return globals().get(name) or __getattr__(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "all_return_types"})
