#include "scalar.h"

namespace rl {
namespace {

DType default_float = DType::f32;

int combine(int higher, int lower) {
  if (higher < 0) return lower;
  if (lower < 0) return higher;
  DType h = DType(higher), l = DType(lower);
  if (is_complex(h)) return higher;
  if (is_floating(h)) return is_complex(l) ? int(to_complex(h)) : higher;
  if (is_bool(h) || is_floating(l) || is_complex(l)) return int(promote(h, l));
  return higher;
}

}  // namespace

DType default_dtype() { return default_float; }
void set_default_dtype(DType dtype) { default_float = dtype; }

DType Promotion::result() const { return DType(combine(combine(dims, zero), number)); }

DType Scalar::dtype() const {
  switch (kind) {
    case boolean: return DType::b1;
    case integer: return DType::i64;
    case floating: return default_float;
    default: return to_complex(default_float);
  }
}

void Scalar::store(DType to, void* element) const {
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
    case integer: return PyLong_FromLongLong(i);
    case floating: return PyFloat_FromDouble(d);
    default: return PyComplex_FromDoubles(d, imag);
  }
}

Scalar load(DType dtype, const void* element) {
  Scalar s;
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, element, sizeof value);
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

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PySequence_Check(o)) return false;
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  return number && (number->nb_index || number->nb_float);
}

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
    if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
    return true;
  }
  if (PyComplex_Check(o)) {
    out.kind = Scalar::complex_;
    out.d = PyComplex_RealAsDouble(o);
    out.imag = PyComplex_ImagAsDouble(o);
    return true;
  }
  if (!is_number(o)) return false;
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  if (number->nb_index) {
    Ref<PyObject> index = checked(PyNumber_Index(o));
    return scalar_from_python(index.get(), out);
  }
  // numpy.bool_ has nb_float but is not a float; numpy.complex64 would lose its imaginary part.
  if (std::string_view(Py_TYPE(o)->tp_name).starts_with("numpy.bool")) {
    out.kind = Scalar::boolean;
    int truth = PyObject_IsTrue(o);
    if (truth < 0) throw PythonError{};
    out.i = truth;
    return true;
  }
  if (PyObject_HasAttrString(o, "__complex__") && !PyObject_HasAttrString(o, "is_integer")) {
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

void store_checked(const Scalar& s, DType to, void* element) {
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
                                   "c10::BFloat16"};
  auto overflow = [&] {
    failf(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", names[int(to)]);
  };
  if (is_integral(to)) {
    if (s.kind == Scalar::complex_ && s.imag != 0) overflow();
    constexpr int64_t low[] = {-255, -128, -32768, INT32_MIN, INT64_MIN};
    constexpr int64_t high[] = {255, 127, 32767, INT32_MAX, INT64_MAX};
    if (s.kind == Scalar::boolean || s.kind == Scalar::integer) {
      if (s.i < low[int(to)] || s.i > high[int(to)]) overflow();
    } else if (!(s.d > double(low[int(to)]) - 1 && s.d < double(high[int(to)]) + 1)) {
      overflow();
    }
  } else if (to == DType::f32 || to == DType::f16 || to == DType::bf16) {
    double limit = to == DType::f16   ? 65504.0
                   : to == DType::f32 ? 3.4028234663852886e38
                                      : 3.3895313892515355e38;
    if (s.kind == Scalar::complex_ && s.imag != 0) overflow();
    if (std::isfinite(s.real_value()) && std::abs(s.real_value()) > limit) overflow();
  } else if (to == DType::f64) {
    if (s.kind == Scalar::complex_ && s.imag != 0) overflow();
  }
  s.store(to, element);
}

}  // namespace rl
