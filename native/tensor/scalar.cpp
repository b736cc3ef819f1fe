#include "scalar.h"

#include <string_view>

#include "../kernels/rare_cast.h"

namespace rl {
namespace {

DType default_float = DType::f32;

int combine(int higher, int lower) {
  if (higher < 0) return lower;
  if (lower < 0) return higher;
  DType h = DType(higher), l = DType(lower);
  if (is_complex(h)) return higher;
  if (is_floating(h)) {
    if (!is_complex(l)) return higher;
    if (is_float8(h)) failf(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", dtype_class_name(h));
    return int(to_complex(h));
  }
  if (is_wide_unsigned(h) && is_complex(l)) return lower;
  if (is_bool(h) || is_floating(l) || is_complex(l)) return int(promote(h, l));
  return higher;
}

}  // namespace

void fail_rare(DType dtype) {
  failf(PyExc_NotImplementedError, "not implemented for '%s'", dtype_class_name(dtype));
}

void fail_promotion(DType a, DType b) {
  failf(PyExc_RuntimeError, "Promotion for %s is not supported, attempted to promote %s and %s",
        is_float8(a) || is_float8(b) ? "Float8 Types" : "uint16, uint32, uint64 types", dtype_class_name(a),
        dtype_class_name(b));
}

DType default_dtype() { return default_float; }
void set_default_dtype(DType dtype) { default_float = dtype; }

DType Promotion::result() const { return DType(combine(combine(dims, zero), number)); }

DType Scalar::dtype() const {
  switch (kind) {
    case boolean: return DType::b1;
    case integer: return is_unsigned ? DType::u64 : DType::i64;
    case floating: return default_float;
    default: return to_complex(default_float);
  }
}

void Scalar::store(DType to, void* element) const {
  if (is_rare(to) || is_unsigned) [[unlikely]] {
    const std::complex<double> both(d, imag);
    DType from = kind == complex_ ? DType::c128 : kind == floating ? DType::f64 : DType::i64;
    if (is_unsigned) from = DType::u64;
    const void* value = from == DType::c128  ? static_cast<const void*>(&both)
                        : from == DType::f64 ? &d
                                             : static_cast<const void*>(&i);
    return cast_element(to, element, from, value);
  }
  visit(to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    if (kind == complex_) value = convert<T>(std::complex<double>(d, imag));
    else if (kind == floating) value = convert<T>(d);
    else value = convert<T>(i);
    std::memcpy(element, &value, sizeof value);
  });
}

PyObject* Scalar::to_python() const {
  switch (kind) {
    case boolean: return PyBool_FromLong(i != 0);
    case integer: return is_unsigned ? PyLong_FromUnsignedLongLong(uint64_t(i)) : PyLong_FromLongLong(i);
    case floating: return PyFloat_FromDouble(d);
    default: return PyComplex_FromDoubles(d, imag);
  }
}

Scalar load(DType dtype, const void* element) {
  Scalar s;
  if (is_rare(dtype)) [[unlikely]] {
    alignas(16) char wide[16];
    DType as = dtype == DType::c32 ? DType::c128 : is_integral(dtype) ? DType::i64 : DType::f64;
    cast_element(as, wide, dtype, element);
    s = load(as, wide);
    s.is_unsigned = dtype == DType::u64 && s.i < 0;
    return s;
  }
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Bytes that are seen as booleans may hold anything.
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> value;
    std::memcpy(&value, element, sizeof value);
    if constexpr (std::is_same_v<T, bool>) value = value != 0;
    if constexpr (is_complex_v<T>) {
      s.kind = Scalar::complex_;
      s.d = value.real();
      s.imag = value.imag();
    } else if constexpr (is_floating_v<T>) {
      s.kind = Scalar::floating;
      s.d = double(compute_t<T>(value));
    } else {
      s.kind = std::is_same_v<T, bool> ? Scalar::boolean : Scalar::integer;
      s.i = int64_t(value);
    }
  });
  return s;
}

Scalar item(Tensor* t) {
  if (t->is_meta()) fail(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
  if (t->is_lazy()) return item(resolved(t).get());
  return load(t->dtype, t->data());
}

// Whether Python can make a number of it.
static bool converts(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PySequence_Check(o)) return false;
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  return number && (number->nb_index || number->nb_float);
}

// Python's numbers, those of NumPy, which know their dtype, and those of tracing: torch takes no others for
// operands, only for elements of a tensor whose dtype is given.
bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  return converts(o) &&
         (attribute_or_null(o, "dtype") || std::string_view(Py_TYPE(o)->tp_name).starts_with("Sym"));
}

namespace {

// An integer beyond int64; up to uint64 it is taken.
void take_wide_integer(PyObject* o, bool negative, Scalar& out) {
  if (negative) fail(PyExc_OverflowError, "can't convert negative int to unsigned");
  out.i = int64_t(PyLong_AsUnsignedLongLong(o));
  out.is_unsigned = true;
  if (!PyErr_Occurred()) return;
  PyErr_Clear();
  fail(PyExc_OverflowError, "int too big to convert");
}

}  // namespace

bool scalar_from_python(PyObject* o, Scalar& out) {
  if (PyFloat_Check(o)) {
    out.kind = Scalar::floating;
    out.d = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyBool_Check(o)) {
    out.kind = Scalar::boolean;
    out.i = o == Py_True;
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    out.kind = Scalar::integer;
    out.i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) [[unlikely]]
      take_wide_integer(o, overflow < 0, out);
    return true;
  }
  if (PyComplex_Check(o)) {
    out.kind = Scalar::complex_;
    out.d = PyComplex_RealAsDouble(o);
    out.imag = PyComplex_ImagAsDouble(o);
    return true;
  }
  if (!converts(o)) return false;
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  if (number->nb_index) {
    Ref<PyObject> index = checked(PyNumber_Index(o));
    return scalar_from_python(index.get(), out);
  }
  // numpy.complex64 would lose its imaginary part; numpy.bool_ is a float, as in torch.
  if (attribute_or_null(o, "__complex__") && !attribute_or_null(o, "is_integer")) {
    Py_complex value = PyComplex_AsCComplex(o);
    if (value.real == -1.0 && PyErr_Occurred()) throw PythonError{};
    out.kind = Scalar::complex_;
    out.d = value.real;
    out.imag = value.imag;
    return true;
  }
  out.kind = Scalar::floating;
  out.d = PyFloat_AsDouble(o);
  if (out.d == -1.0 && PyErr_Occurred()) throw PythonError{};
  return true;
}

Scalar scalar_argument(PyObject* o, const char* function, const char* name) {
  Scalar s;
  if (is_tensor(o)) {
    Tensor* t = as_tensor(o);
    if (t->numel == 1 && !t->is_meta() && !t->requires_grad()) return item(t);
  } else if (scalar_from_python(o, s)) {
    return s;
  }
  failf(PyExc_TypeError, "%s(): argument '%s' must be Number, not %s", function, name, Py_TYPE(o)->tp_name);
}

// The bounds of the integers that an integer dtype takes; torch lets uint8 be given the negative of what it
// holds.
IntegerRange integer_range(DType t) {
  switch (t) {
    case DType::u8: return {-255, 255};
    case DType::i8: return {-128, 127};
    case DType::i16: return {-32768, 32767};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    case DType::u16: return {-65535, 65535};
    case DType::u32: return {-int64_t(UINT32_MAX), UINT32_MAX};
    default: return {INT64_MIN, INT64_MAX};
  }
}

bool fits_integer(const Scalar& s, DType to) {
  auto [low, high] = integer_range(to);
  if (s.kind == Scalar::boolean || s.kind == Scalar::integer) {
    return s.is_unsigned ? to == DType::u64 : s.i >= low && s.i <= high;
  }
  if (is_wide_unsigned(to)) return s.d >= 0 && s.d <= (to == DType::u64 ? 0x1p64 : double(high));
  // A fraction is not cut off first: 255.5 is no uint8. 2**63, to which the highest int64 is rounded, fits.
  return s.d >= (to == DType::u8 ? 0 : double(low)) && s.d <= double(high);
}

namespace {

// A number that fills many elements: within the range of a float8, or of the complex64 that loops compute in.
void check_for_many(const Scalar& s, DType to) {
  constexpr double highest[] = {448, 57344, 240, 57344, 0x1p127};
  double high = to == DType::c32 ? 3.4028234663852886e38 : highest[int(to) - int(DType::f8e4m3fn)];
  double low = to == DType::f8e8m0fnu ? 0x1p-127 : -high;
  // Integers are not held against the smallest number, which is above 0 there.
  if (to == DType::f8e8m0fnu && s.kind <= Scalar::integer) low = -high;
  bool infinite_too = to == DType::c32 || to == DType::f8e5m2;
  double parts[] = {s.real_value(), s.kind == Scalar::complex_ ? s.imag : 0.0};
  bool fits = to == DType::c32 || parts[1] == 0;
  for (int i = 0; i < (to == DType::c32 ? 2 : 1); i++) {
    fits = fits && (std::isnan(parts[i]) || (infinite_too && std::isinf(parts[i])) ||
                    (parts[i] >= low && parts[i] <= high));
  }
  if (fits) return;
  std::string name = to == DType::c32 ? "complex<float>" : dtype_class_name(to);
  fail(PyExc_RuntimeError, "value cannot be converted to type c10::" + name + " without overflow");
}

}  // namespace

void store_checked(const Scalar& s, DType to, void* element, bool single) {
  if (!single && (is_float8(to) || to == DType::c32)) {
    check_for_many(s, to);
    return s.store(to, element);
  }
  constexpr const char* names[] = {"uint8_t",
                                   "int8_t",
                                   "int16_t",
                                   "int",
                                   "int64_t",
                                   "c10::Half",
                                   "float",
                                   "double",
                                   "c10::complex<float>",
                                   "c10::complex<double>",
                                   "bool",
                                   "c10::BFloat16",
                                   "uint16_t",
                                   "uint32_t",
                                   "uint64_t",
                                   "c10::complex<c10::Half>"};
  auto overflow = [&] {
    failf(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
          is_float8(to) ? "double" : names[int(to)]);
  };
  if (is_integral(to)) {
    if (s.kind == Scalar::complex_ && s.imag != 0) overflow();
    if (!fits_integer(s, to)) overflow();
  } else if (is_floating(to)) {
    double limit = to == DType::f16    ? 65504.0
                   : to == DType::f32  ? 3.4028234663852886e38
                   : to == DType::bf16 ? 3.3895313892515355e38
                                       : 1.7976931348623157e308;
    if (s.kind == Scalar::complex_ && s.imag != 0) overflow();
    if (std::isfinite(s.real_value()) && std::abs(s.real_value()) > limit) overflow();
  } else if (to == DType::c32 || to == DType::c64) {
    double limit = to == DType::c32 ? 65504.0 : 3.4028234663852886e38;
    for (double part : {s.real_value(), s.kind == Scalar::complex_ ? s.imag : 0.0}) {
      if (std::isfinite(part) && std::abs(part) > limit) overflow();
    }
  }
  s.store(to, element);
}

void store_filling(const Scalar& s, DType to, void* element, int64_t count) {
  bool half = to == DType::f16 || to == DType::bf16;
  if (!half || count != 1) return store_checked(s, to, element, count == 1);
  alignas(16) char wide[16];
  store_checked(s, DType::f64, wide);
  s.store(to, element);
}

}  // namespace rl
