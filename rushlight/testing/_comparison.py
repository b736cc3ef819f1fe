"""assert_close: are two results equal up to rounding, and if not, where do they differ most?

Two structures are taken apart into pairs of leaves (`originate_pairs`); each kind of pair knows whether it
can compare two values, and how. Test suites add kinds of their own (`not_close_error_metas`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import rushlight
from rushlight import _C
from rushlight.ops import create
from rushlight.testing._mismatch import numbers_match, scalar_text, tensor_text

_DTYPE_PRECISIONS = {
    _C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7), _C.complex32: (1e-3, 1e-5), _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}  # fmt: skip
_WIDE_UNSIGNED = _C.uint16, _C.uint32, _C.uint64


class ErrorMeta(Exception):
    """A comparison failed: the type of the error, what to say, and at which keys or indices."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple = ()) -> None:
        super().__init__("If you are a user and see this message, this is a bug: it is handled internally.")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error to raise; `msg` replaces the text, or makes one of it."""
        if msg is not None and not callable(msg):
            return self.type(msg)
        where = "".join(f"[{key!r}]" for key in self.id)
        text = self.msg + (f"\n\nThe failure occurred for item {where}" if where else "")
        return self.type(msg(text) if callable(msg) else text)


class UnsupportedInputs(Exception):
    """A kind of pair cannot compare these two values; another may."""


def default_tolerances(*inputs: Any, dtype_precisions: dict | None = None) -> tuple[float, float]:
    """The larger rtol and atol of the dtypes (or tensors); whole numbers have none.

    >>> rushlight.testing._comparison.default_tolerances(rushlight.float32)
    (1.3e-06, 1e-05)
    """
    dtypes = [value.dtype if isinstance(value, _C.Tensor) else value for value in inputs]
    for dtype in dtypes:
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(dtype)} instead.")
    known = [(dtype_precisions or _DTYPE_PRECISIONS).get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(rtol for rtol, _ in known), max(atol for _, atol in known)


def get_tolerances(*inputs: Any, rtol: Any, atol: Any, id: tuple = ()) -> tuple[float, float]:
    """The tolerances that were given, or those of the dtypes; one without the other is an error."""
    if (rtol is None) ^ (atol is None):
        missing = "rtol" if rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise ErrorMeta(ValueError, text, id=id)
    return (rtol, atol) if rtol is not None else default_tolerances(*inputs)


class Pair:
    """Two values to be compared. A subclass refuses what it cannot compare when it is made."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: tuple = ()) -> NoReturn:
        # While it is being made a pair has no place yet: then the caller names it.
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    def compare(self) -> None:
        """Raises an ErrorMeta if the values differ."""
        raise NotImplementedError

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or names with values, to be printed."""
        return []

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}(", f"    id={self.id!r},"]
        for item in ["actual", "expected", *self.extra_repr()]:
            name, value = (item, getattr(self, item)) if isinstance(item, str) else item
            lines.append(f"    {name}={value!r},")
        return "\n".join([*lines, ")"])


class ObjectPair(Pair):
    """Any two values, compared with `==`."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(
                ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.", id=self.id
            ) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values of which one is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _numpy_type(name: str) -> Any:
    import sys

    numpy = sys.modules.get("numpy")  # if nobody has imported it there is nothing of it to compare
    return (getattr(numpy, name),) if numpy is not None else ()


class BooleanPair(Pair):
    """Two booleans, of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, *_numpy_type("bool_"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple) -> bool:
        if isinstance(bool_like, bool):
            return bool_like
        if isinstance(bool_like, _numpy_type("bool_")):
            return bool_like.item()
        raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers, of Python or NumPy."""

    _TYPE_TO_DTYPE = {int: _C.int64, float: _C.float64, complex: _C.complex128}
    _NUMBER_TYPES: Any = tuple(_TYPE_TO_DTYPE)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = (self._TYPE_TO_DTYPE[type(value)] for value in (actual, expected))
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, *_numpy_type("number"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple) -> Any:
        if isinstance(number_like, _numpy_type("number")):
            return number_like.item()
        if isinstance(number_like, self._NUMBER_TYPES):  # a subclass of float is a float
            plain = next(kind for kind in (bool, *self._NUMBER_TYPES) if isinstance(number_like, kind))
            return int(number_like) if plain is bool else plain(number_like)
        raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)

    def compare(self) -> None:
        if self.check_dtype and type(self.actual) is not type(self.expected):
            self._fail(
                AssertionError, f"The (d)types do not match: {type(self.actual)} != {type(self.expected)}."
            )
        tolerances: Any = {"rtol": self.rtol, "atol": self.atol}
        if not numbers_match(self.actual, self.expected, equal_nan=self.equal_nan, **tolerances):
            self._fail(AssertionError, scalar_text(self.actual, self.expected, **tolerances))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


class TensorLikePair(Pair):
    """Two tensors, or what makes tensors of the same type."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple, allow_subclasses: bool
    ) -> tuple[Any, Any]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        actual, expected = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in (actual, expected):
            self._check_supported(tensor, id=id)
        return actual, expected

    def _to_tensor(self, tensor_like: Any) -> Any:
        if isinstance(tensor_like, _C.Tensor):
            return tensor_like
        try:
            return rushlight.as_tensor(tensor_like)
        except Exception:  # whatever the reason, it is nothing this kind of pair compares
            self._inputs_not_supported()

    def _check_supported(self, tensor: Any, *, id: tuple) -> None:
        if tensor.layout not in (create.strided, *create.SPARSE):
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        actual, expected = self.actual.detach(), self.expected.detach()
        self._compare_attributes(actual, expected)
        if actual.device.type == "meta" or expected.device.type == "meta":
            return
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual: Any, expected: Any) -> None:
        def must_match(name: str, one: Any, other: Any) -> None:
            if one != other:
                text = f"The values for attribute '{name}' do not match: {one} != {other}."
                self._fail(AssertionError, text)

        must_match("shape", actual.shape, expected.shape)
        if self.check_layout:
            must_match("layout", actual.layout, expected.layout)
        if self.check_device:
            must_match("device", actual.device, expected.device)
        if self.check_dtype:
            must_match("dtype", actual.dtype, expected.dtype)
        if self.check_stride:
            must_match("stride()", actual.stride(), expected.stride())

    def _equalize_attributes(self, actual: Any, expected: Any) -> tuple[Any, Any]:
        """Both on the CPU, of one dtype and layout, coalesced if one of them is."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            # Wide unsigned integers promote with nothing: compared as torch compares them, as int64.
            signed = [rushlight.int64 if d in _WIDE_UNSIGNED else d for d in (actual.dtype, expected.dtype)]
            wider = rushlight.promote_types(*signed)
            actual, expected = actual.to(wider), expected.to(wider)
        if actual.is_sparse and expected.is_sparse:
            if actual.is_coalesced() != expected.is_coalesced():
                actual, expected = actual.coalesce(), expected.coalesce()
        elif actual.layout != expected.layout:
            actual, expected = actual.to_dense(), expected.to_dense()
        return actual, expected

    def _compare_values(self, actual: Any, expected: Any) -> None:
        if actual.is_sparse:
            self._compare_sparse_coo_values(
                actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan
            )
            return
        if _C.is_compressed(actual):
            self._compare_sparse_compressed_values(
                actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan
            )
            return
        self._compare_regular_values_close(
            actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan
        )

    def _compare_sparse_compressed_values(
        self, actual: Any, expected: Any, *, rtol: float, atol: float, equal_nan: bool
    ) -> None:
        form = actual.form
        if actual._nnz() != expected._nnz():
            self._fail(
                AssertionError,
                f"The number of specified values in sparse {form.title} tensors does not match: "
                f"{actual._nnz()} != {expected._nnz()}",
            )
        for name in (form.compressed, form.plain):
            self._compare_regular_values_equal(
                getattr(actual, name)(), getattr(expected, name)(), identifier=f"Sparse {form.title} {name}"
            )
        self._compare_regular_values_close(
            actual.detach().values(), expected.detach().values(), rtol=rtol, atol=atol, equal_nan=equal_nan,
            identifier=f"Sparse {form.title} values",
        )  # fmt: skip

    def _compare_sparse_coo_values(
        self, actual: Any, expected: Any, *, rtol: float, atol: float, equal_nan: bool
    ) -> None:
        if actual._nnz() != expected._nnz():
            self._fail(
                AssertionError,
                "The number of specified values in sparse COO tensors does not match: "
                f"{actual._nnz()} != {expected._nnz()}",
            )
        self._compare_regular_values_equal(
            actual._indices(), expected._indices(), identifier="Sparse COO indices"
        )
        self._compare_regular_values_close(
            actual._values(), expected._values(), rtol=rtol, atol=atol, equal_nan=equal_nan,
            identifier="Sparse COO values",
        )  # fmt: skip

    def _compare_regular_values_equal(
        self, actual: Any, expected: Any, *, equal_nan: bool = False, identifier: Any = None
    ) -> None:
        self._compare_regular_values_close(
            actual, expected, rtol=0, atol=0, equal_nan=equal_nan, identifier=identifier
        )

    def _compare_regular_values_close(
        self, actual: Any, expected: Any, *, rtol: float, atol: float, equal_nan: bool, identifier: Any = None
    ) -> None:
        matches = rushlight.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if bool(matches.all()):
            return
        tolerances: Any = {"rtol": rtol, "atol": atol, "identifier": identifier}
        if actual.dim() == 0:
            self._fail(AssertionError, scalar_text(actual.item(), expected.item(), **tolerances))
        self._fail(AssertionError, tensor_text(actual, expected, matches, **tolerances))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """Distributed tensors as local ones: there are none."""
    return actual, expected


def _common_keys(actual: Mapping, expected: Mapping, id: tuple) -> list:
    missing, added = set(expected) - set(actual), set(actual) - set(expected)
    if missing or added:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(added)}",
            id=id,
        )
    keys: Any = list(actual)
    with contextlib.suppress(Exception):  # keys of mixed types stay in their order
        keys = sorted(keys)
    return keys


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: Any = (Sequence,),
    mapping_types: Any = (Mapping,),
    id: tuple = (),
    **options: Any,
) -> list[Pair]:
    """The pairs that two structures consist of, each of the first type that takes the two values."""
    kinds: Any = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}
    pairs: list[Pair] = []
    keys: Any
    if (
        isinstance(actual, sequence_types)
        and isinstance(expected, sequence_types)
        and not isinstance(actual, str)
        and not isinstance(expected, str)
    ):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys = range(len(actual))
    elif isinstance(actual, mapping_types) and isinstance(expected, mapping_types):
        keys = _common_keys(actual, expected, id)
    else:
        for kind in pair_types:
            try:
                return [kind(actual, expected, id=id, **options)]
            except UnsupportedInputs:
                continue
            except ErrorMeta:
                raise
            except Exception as error:
                raise RuntimeError(
                    f"Originating a {kind.__name__}() at item {''.join(f'[{i}]' for i in id)} with\n\n"
                    f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                    f"{type(expected).__name__}(): {expected}\n\nresulted in the unexpected exception above. "
                ) from error
        raise ErrorMeta(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            id=id,
        )
    for key in keys:
        pairs.extend(originate_pairs(actual[key], expected[key], **kinds, id=(*id, key), **options))
    return pairs


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """The differences between two structures; a structure that does not fit is raised at once."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(
            actual, expected, pair_types=pair_types, sequence_types=sequence_types,
            mapping_types=mapping_types, **options,
        )  # fmt: skip
    except ErrorMeta as difference:
        raise difference.to_error() from None
    found: list[ErrorMeta] = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as difference:
            found.append(difference)
        except Exception as error:
            raise RuntimeError(
                f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above. "
            ) from error
    return found


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises an AssertionError that says how and where unless both are equal up to rounding.

    Takes tensors, numbers, arrays, and sequences and mappings of them. The tolerances depend on the dtype
    unless rtol and atol are given.

    >>> rushlight.testing.assert_close(rushlight.tensor([1.0]), rushlight.tensor([1.0000001]))
    >>> rushlight.testing.assert_close([1, 2], [1, 3])
    Traceback (most recent call last):
    AssertionError: Scalars are not equal!
    <BLANKLINE>
    Expected 3 but got 2.
    Absolute difference: 1
    Relative difference: 0.3333333333333333
    <BLANKLINE>
    The failure occurred for item [1]
    """
    __tracebackhide__ = True
    differences = not_close_error_metas(
        actual, expected, pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan,
        check_device=check_device, check_dtype=check_dtype, check_layout=check_layout,
        check_stride=check_stride, msg=msg,
    )  # fmt: skip
    if differences:
        raise differences[0].to_error(msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """What assert_close came after: converts `expected` and ignores attributes.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     rushlight.testing.assert_allclose([1.0], [1.00001])
    """
    from rushlight._warn import warn

    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    actual, expected = (
        value if isinstance(value, _C.Tensor) else rushlight.tensor(value) for value in (actual, expected)
    )
    if rtol is None and atol is None:
        looser = {_C.float16: (1e-3, 1e-3), _C.float32: (1e-4, 1e-5), _C.float64: (1e-5, 1e-8)}
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=looser)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip
