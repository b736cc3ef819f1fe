// The operators of Tensor: slots that go straight to primitives.
//
// Operands that are plain tensors or numbers take the fast path. A subclass or a foreign type with
// __torch_function__ is handed to Python under the name of the method that torch would name.
#include <string_view>

#include "../graph/dispatching.h"
#include "../graph/errors.h"
#include "../graph/modes.h"
#include "../graph/reuse.h"
#include "../kernels/elementwise.h"
#include "call_hooks.h"
#include "elementwise_ops.h"
#include "explain.h"
#include "forwards.h"
#include "functions.h"
#include "levels.h"
#include "matmul_ops.h"
#include "primitive.h"
#include "profiler.h"
#include "tensor_type.h"

namespace rl {

namespace {

bool plain_operand(PyObject* o) {
  return is_plain_tensor(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o);
}

// a <op> b through __torch_function__, under the name that torch gives it; with a number or a foreign object
// on the left it is the reflected method of the tensor. If nobody answers, Python may ask the other operand.
// NotImplemented in the place of the error that is set if it says that nobody had an answer, else throws it.
PyObject* not_implemented() {
  static PyObject* unanswered = nullptr;
  if (!unanswered) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.overrides"));
    unanswered = checked(PyObject_GetAttrString(module.get(), "_Unanswered")).release();
    PyErr_Restore(type, value, traceback);
  }
  forget_error(unanswered);
  return Py_NewRef(Py_NotImplemented);
}

PyObject* operator_through_protocol(const char* method, const char* reflected, PyObject* a, PyObject* b) {
  bool swap = !is_tensor(a);
  try {
    return through_protocol(swap ? reflected : method, swap ? b : a, swap ? &a : &b, 1);
  } catch (const PythonError&) {
    return not_implemented();
  }
}

// `true` if the operands can be computed on directly; otherwise *result says what to return.
bool ready(const char* method, const char* reflected, PyObject* a, PyObject* b, PyObject** result) {
  if (plain_operand(a) && plain_operand(b) && !modes.function_mode) return true;
  if (modes.function_mode ||
      (modes.torch_function && (overrides_torch_function(a) || overrides_torch_function(b)))) {
    *result = operator_through_protocol(method, reflected, a, b);
    return false;
  }
  if ((is_tensor(a) || is_number(a)) && (is_tensor(b) || is_number(b))) return true;
  *result = Py_NewRef(Py_NotImplemented);
  return false;
}

// The tensor on the memory of a NumPy array, or an empty reference if `o` is none. NumPy leaves an array's
// division by a tensor and their equality to the tensor.
Ref<PyObject> from_array(PyObject* o) {
  if (std::string_view(Py_TYPE(o)->tp_name) != "numpy.ndarray") return {};
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight"));
  return checked(PyObject_CallMethod(module.get(), "as_tensor", "O", o));
}

// An operand to which only the interpreter's stack refers: the result of an inner expression, see Note
// [reusing buffers]. From 3.14 on a name on the stack is borrowed as well, so it cannot be told apart.
#if PY_VERSION_HEX < 0x030e0000
PyObject* over_a_temporary(Primitive& op, PyObject* const* args) {
  if (op.forward != elementwise_forward && !(only_classes_asked && real_forward(op) == elementwise_forward))
    return nullptr;
  if (static_cast<const Elementwise*>(op.payload)->out != OutType::same) return nullptr;
  if (!is_plain_tensor(args[0]) || !is_plain_tensor(args[1]) || args[0] == args[1]) return nullptr;
  Tensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
  if (!a->is_contiguous() || !b->is_contiguous() || !is_floating(a->dtype)) return nullptr;
  Tensor* into = may_overwrite(a, 1, b) ? a : may_overwrite(b, 1, a) ? b : nullptr;
  if (!into || a->storage == b->storage) return nullptr;
  return elementwise_forward(op, args, as_new(into));
}
#endif

PyObject* call2(Primitive& op, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
#if PY_VERSION_HEX < 0x030e0000
  if (modes.unrecorded) {
    if (PyObject* result = over_a_temporary(op, args)) return result;
    if (PyErr_Occurred()) return nullptr;
  }
#endif
  return call(op, args);
}

void check_subtract(PyObject* a, PyObject* b) {
  auto boolean = [](PyObject* o) {
    return PyBool_Check(o) || (is_tensor(o) && as_tensor(o)->dtype == DType::b1);
  };
  if (boolean(a) && boolean(b)) {
    fail(PyExc_RuntimeError,
         "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
         "`logical_xor()` "
         "operator instead.");
  }
  if (boolean(a) || boolean(b)) {
    fail(PyExc_RuntimeError,
         "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
         "mask, "
         "use the `~` or `logical_not()` operator instead.");
  }
}

template <const char* name, const char* method = name, const char* reflected = method>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready(method, reflected, a, b, &other)) return other;
    static Primitive& op = primitive(name);
    // The tensor comes first, as in torch's __radd__ and __rmul__: its history is the first of the node's.
    constexpr bool symmetric = std::string_view(name) == "mul" || std::string_view(name) == "add";
    bool turned = symmetric && Py_TYPE(a) != TensorType && !is_tensor(a);
    PyObject *first = turned ? b : a, *second = turned ? a : b;
    if (!dispatching_classes) return call2(op, first, second);
    try {
      return call2(op, first, second);
    } catch (const PythonError&) {
      return not_implemented();
    }
  });
}

template <const char* method, const char* name>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready(method, method, a, b, &other)) return other;
    static Primitive& op = primitive(name);
    PyObject* args[] = {a, b};
    return call_in_place(op, args);
  });
}

#define NAME(n) constexpr char n##_[] = #n
NAME(add);
NAME(mul);
NAME(remainder);
NAME(floor_divide);
NAME(bitwise_and);
NAME(bitwise_or);
NAME(bitwise_xor);
NAME(bitwise_left_shift);
NAME(bitwise_right_shift);
NAME(div);
NAME(eq);
NAME(ne);
NAME(lt);
NAME(le);
NAME(gt);
NAME(ge);
#undef NAME
#define NAME(n) constexpr char n##_in_place[] = #n "_"
NAME(add);
NAME(mul);
NAME(remainder);
NAME(floor_divide);
NAME(div);
#undef NAME
#define NAME(n) constexpr char n##__[] = "__" #n "__"
NAME(floordiv);
NAME(rfloordiv);
NAME(rmod);
NAME(and);
NAME(or);
NAME(xor);
NAME(lshift);
NAME(rshift);
NAME(rlshift);
NAME(rrshift);
NAME(iand);
NAME(ior);
NAME(ixor);
NAME(ilshift);
NAME(irshift);
NAME(eq);
#undef NAME

PyObject* subtract(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready("sub", "__rsub__", a, b, &other)) return other;
    static Primitive& op = primitive("sub");
    static Primitive& reflected = primitive("rsub_number");
    check_subtract(a, b);
    return call2(is_tensor(a) ? op : reflected, a, b);
  });
}

PyObject* subtract_in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready("sub_", "sub_", a, b, &other)) return other;
    static Primitive& op = primitive("sub");
    if (modes.grad && as_tensor(a)->requires_grad()) check_inplace(as_tensor(a));
    check_subtract(a, b);
    PyObject* args[] = {a, b};
    return call_in_place(op, args);
  });
}

PyObject* divide(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready("div", "__rtruediv__", a, b, &other)) {
      if (other != Py_NotImplemented || !is_tensor(b)) return other;
      Ref<PyObject> left = from_array(a);
      return left ? divide(left.get(), b) : other;
    }
    static Primitive& op = primitive("div");
    static Primitive& reciprocal = primitive("reciprocal");
    static Primitive& multiply = primitive("mul");
    if (is_tensor(a)) return call2(op, a, b);
    // As torch does: a number over a tensor is reciprocal(tensor) * number, also in the last bit.
    Ref<PyObject> inverse(call(reciprocal, &b));
    return call2(multiply, inverse.get(), a);
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  return guarded([&]() -> PyObject* {
    if (modulus != Py_None) fail(PyExc_TypeError, "pow() 3rd argument not allowed for tensors");
    PyObject* other = nullptr;
    if (!ready("__pow__", "__rpow__", a, b, &other)) return other;
    return power_of(a, b);
  });
}

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready("__ipow__", "__ipow__", a, b, &other)) return other;
    static Primitive& scalar = primitive("pow_scalar");
    static Primitive& tensor = primitive("pow");
    PyObject* args[] = {a, b};
    return call_in_place(is_tensor(b) ? tensor : scalar, args);
  });
}

PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* other = nullptr;
    if (!ready("matmul", "__rmatmul__", a, b, &other)) return other;
    if (!is_tensor(a) || !is_tensor(b)) return Py_NewRef(Py_NotImplemented);
    if (hooked_product) {
      PyObject* both[] = {a, b};
      return PyObject_Vectorcall(hooked_product, both, 2, nullptr);
    }
    if (profiling()) {
      PyObject* both[] = {a, b};
      PartTiming timing("aten::matmul", both, 2);
      return matmul(as_tensor(a), as_tensor(b));
    }
    return matmul(as_tensor(a), as_tensor(b));
  });
}

template <const char* name, const char* method = name>
PyObject* unary(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (asks_protocol(a)) return through_protocol(method, a);
    static Primitive& op = primitive(name);
    return call(op, &a);
  });
}
constexpr char neg_[] = "neg", abs_[] = "abs", bitwise_not_[] = "bitwise_not", invert_[] = "__invert__";

PyObject* negative(PyObject* a) {
  if (!asks_protocol(a) && as_tensor(a)->dtype == DType::b1) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
        "mask, use the `~` or `logical_not()` operator instead.");
    return nullptr;
  }
  return unary<neg_>(a);
}

PyObject* positive(PyObject* a) {
  if (asks_protocol(a)) return guarded([&] { return through_protocol("positive", a); });
  if (as_tensor(a)->dtype == DType::b1) {
    PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return nullptr;
  }
  return Py_NewRef(a);
}

PyObject* equal(PyObject* a, PyObject* b) {
  // Of a tensor that asks for itself torch tells __eq__, else eq.
  PyObject* result = asks_protocol(a) ? binary<eq_, eq__>(a, b) : binary<eq_>(a, b);
  if (result != Py_NotImplemented) return result;
  return guarded([&]() -> PyObject* {
    Ref<PyObject> right = from_array(b);
    return right ? binary<eq_, eq__>(a, right.get()) : result;
  });
}

PyObject* rich_compare(PyObject* a, PyObject* b, int comparison) {
  switch (comparison) {
    case Py_EQ: return equal(a, b);
    case Py_NE: return binary<ne_>(a, b);
    case Py_LT: return binary<lt_>(a, b);
    case Py_LE: return binary<le_>(a, b);
    case Py_GT: return binary<gt_>(a, b);
    default: return binary<ge_>(a, b);
  }
}

PyObject* invert(PyObject* self) {
  if (!asks_protocol(self) && is_differentiable(as_tensor(self)->dtype)) {
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary<bitwise_not_, invert_>(self);
}

// ---- conversions to Python numbers

int truth(PyObject* self) {
  return guarded([&]() -> int {
    if (asks_protocol(self)) {
      Ref<PyObject> answer(through_protocol("__bool__", self));
      return is_true(answer.get());
    }
    Tensor* t = as_tensor(self);
    if (t->numel == 0) fail(PyExc_RuntimeError, "Boolean value of Tensor with no values is ambiguous");
    if (t->numel > 1)
      fail_with_tensor(PyExc_RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", t,
                       "Say which elements count: (...).all() or (...).any(); compare shapes or values with "
                       "torch.equal().");
    refuse_reading(t, "aten::is_nonzero");
    Scalar s = number_of(t);
    if (s.kind == Scalar::complex_) return s.d != 0 || s.imag != 0;
    return s.kind == Scalar::floating ? s.d != 0 : s.i != 0;
  });
}

// float(t), int(t): unlike item(), these refuse several elements with a ValueError.
Scalar sole_number(PyObject* self) {
  Tensor* t = as_tensor(self);
  if (t->numel != 1) fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  return number_of(t);
}

PyObject* to_float(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (asks_protocol(self)) return through_protocol("__float__", self);
    warn_of_lost_history(as_tensor(self));
    Scalar s = sole_number(self);
    if (s.kind == Scalar::complex_ && s.imag != 0)
      fail(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(s.real_value());
  });
}

PyObject* to_int(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (asks_protocol(self)) return through_protocol("__int__", self);
    Scalar s = sole_number(self);
    if (s.kind == Scalar::complex_ && s.imag != 0)
      fail(PyExc_RuntimeError, "value cannot be converted to type int64_t without overflow");
    return s.kind == Scalar::floating || s.kind == Scalar::complex_ ? PyLong_FromDouble(s.d)
                                                                    : PyLong_FromLongLong(s.i);
  });
}

PyObject* to_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (asks_protocol(self)) return through_protocol("__index__", self);
    Tensor* t = as_tensor(self);
    if (t->numel != 1 || is_differentiable(t->dtype)) {
      fail(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    }
    return PyLong_FromLongLong(number_of(t).i);
  });
}

}  // namespace

void warn_of_lost_history(const Tensor* t) {
  if (!t->requires_grad() || !modes.grad) return;
  warn_once(
      "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
      "Consider using tensor.detach() first.");
}

Scalar number_of(Tensor* t) {
  if (t->numel != 1) {
    failf(PyExc_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
          (long long)t->numel);
  }
  refuse_reading(t, "aten::item");
  if (asks_dispatch(t)) {
    Ref<PyObject> answer = dispatched_item(t);
    Scalar number;
    if (scalar_from_python(answer.get(), number)) return number;
    failf(PyExc_RuntimeError, "Unable to cast %s to a number", Py_TYPE(answer.get())->tp_name);
  }
  if (t->is_meta()) fail(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
  return item(t);
}

PyObject* power_of(PyObject* a, PyObject* b) {
  static Primitive& by_scalar = primitive("pow_scalar");
  static Primitive& of_scalar = primitive("scalar_pow");
  static Primitive& tensor = primitive("pow");
  if (!is_tensor(a)) return call2(of_scalar, b, a);
  if (is_tensor(b)) return call2(tensor, a, b);
  Scalar exponent;
  DType dtype = as_tensor(a)->dtype;
  if ((is_integral(dtype) || dtype == DType::b1) && scalar_from_python(b, exponent) &&
      exponent.kind == Scalar::integer && exponent.i < 0) {
    if (exponent.is_unsigned)
      fail(PyExc_RuntimeError, "value cannot be converted to type int64_t without overflow");
    fail(PyExc_RuntimeError, "Integers to negative integer powers are not allowed.");
  }
  return call2(by_scalar, a, b);
}

void add_operator_slots(std::vector<PyType_Slot>& slots) {
  auto add = [&](int slot, auto* function) { slots.push_back({slot, reinterpret_cast<void*>(function)}); };
  add(Py_nb_add, binary<add_>);
  add(Py_nb_subtract, subtract);
  add(Py_nb_multiply, binary<mul_>);
  add(Py_nb_true_divide, divide);
  add(Py_nb_floor_divide, binary<floor_divide_, floordiv__, rfloordiv__>);
  add(Py_nb_remainder, binary<remainder_, remainder_, rmod__>);
  add(Py_nb_power, power);
  add(Py_nb_matrix_multiply, matrix_multiply);
  add(Py_nb_and, binary<bitwise_and_, and__, bitwise_and_>);
  add(Py_nb_or, binary<bitwise_or_, or__, bitwise_or_>);
  add(Py_nb_xor, binary<bitwise_xor_, xor__, bitwise_xor_>);
  add(Py_nb_lshift, binary<bitwise_left_shift_, lshift__, rlshift__>);
  add(Py_nb_rshift, binary<bitwise_right_shift_, rshift__, rrshift__>);
  add(Py_nb_inplace_add, in_place<add_in_place, add_>);
  add(Py_nb_inplace_subtract, subtract_in_place);
  add(Py_nb_inplace_multiply, in_place<mul_in_place, mul_>);
  add(Py_nb_inplace_true_divide, in_place<div_in_place, div_>);
  add(Py_nb_inplace_floor_divide, in_place<floor_divide_in_place, floor_divide_>);
  add(Py_nb_inplace_remainder, in_place<remainder_in_place, remainder_>);
  add(Py_nb_inplace_power, power_in_place);
  add(Py_nb_inplace_and, in_place<iand__, bitwise_and_>);
  add(Py_nb_inplace_or, in_place<ior__, bitwise_or_>);
  add(Py_nb_inplace_xor, in_place<ixor__, bitwise_xor_>);
  add(Py_nb_inplace_lshift, in_place<ilshift__, bitwise_left_shift_>);
  add(Py_nb_inplace_rshift, in_place<irshift__, bitwise_right_shift_>);
  add(Py_nb_negative, negative);
  add(Py_nb_positive, positive);
  add(Py_nb_absolute, unary<abs_>);
  add(Py_nb_invert, invert);
  add(Py_nb_bool, truth);
  add(Py_nb_float, to_float);
  add(Py_nb_int, to_int);
  add(Py_nb_index, to_index);
  add(Py_tp_richcompare, rich_compare);
  add(Py_mp_subscript, tensor_subscript);
  add(Py_mp_ass_subscript, tensor_assign_subscript);
}

}  // namespace rl
