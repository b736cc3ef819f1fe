// Conjugates and negatives that are computed when they are read.
//
// Note [lazy views]
// x.conj() of a complex tensor is a view of x with the flag CONJ, the imaginary part of that one with NEG:
// whoever reads such a tensor must conjugate or negate what its memory holds, whoever writes it must do so
// first. Three rules keep this away from the operations of ordinary tensors, which have not one test more:
//   - A lazy tensor always has a base (`set_lazy` sees to it). `call` and the engine ask for one anyway,
//   since
//     views need more care; only behind that question do they look for the flags, and resolve.
//   - A lazy tensor never has the flag CONTIGUOUS, whatever its strides, so that every path for contiguous
//     memory leaves it alone. `contiguous`, `clone`, `cast` and `copy_into` give its values.
//   - View primitives pass the flags on (`new_view`). All others see resolved copies of their inputs
//     (`forward_resolved`), and a lazy target of an in-place write is computed aside and copied back. History
//     is recorded with the tensors as they were given, so that what is saved is the lazy view.
// A bool laid on bytes that are not a bool's (`x.view(torch.bool)`) has the flag LOOSE: what reads it sees
// a copy with 0 and 1 only, as loops over bools take it for granted.
// A tensor of zeros for good (`torch._efficientzerotensor`) has the flag ZERO, and zeros in its memory, which
// nobody may write: products with it are of its kind, all else reads it.
// Memory is only looked at through Tensor::data(), which refuses lazy views in builds with the address
// sanitizer.
#include "lazy_views.h"

#include <algorithm>
#include <string_view>

#include "levels.h"
#include "rare_ops.h"

namespace rl {

void check_writable(Tensor* out);

namespace {

bool is_lazy(PyObject* o) { return is_tensor(o) && as_tensor(o)->is_lazy(); }
bool is_zero(PyObject* o) { return is_tensor(o) && as_tensor(o)->flags & Tensor::ZERO; }

// These read and write through copy_into and fill, which see to it.
bool only_copies(const Primitive& op) {
  constexpr std::string_view names[] = {
      "clone", "clone_strided", "contiguous_copy", "rows_copy", "to_dtype", "to_device", "copy", "fill"};
  return std::ranges::find(names, op.name) != std::end(names);
}

// A list of tensors with the lazy ones resolved; null if there are none.
PyObject* resolved_list(PyObject* list) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
  bool any = false;
  for (Py_ssize_t k = 0; k < n; k++) any |= is_lazy(PySequence_Fast_GET_ITEM(list, k));
  if (!any) return nullptr;
  Ref<PyObject> tuple = checked(PyTuple_New(n));
  for (Py_ssize_t k = 0; k < n; k++) {
    PyObject* o = PySequence_Fast_GET_ITEM(list, k);
    PyTuple_SET_ITEM(tuple.get(), k, is_lazy(o) ? resolved(as_tensor(o)).release_object() : Py_NewRef(o));
  }
  return tuple.release();
}

Tensor* input(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

PyObject* flipped_view(Tensor* t, uint16_t bit) {
  TensorRef view = new_view(t, t->sizes(), t->strides(), t->offset);
  set_lazy(view.get(), (t->flags ^ bit) & Tensor::LAZY);
  return view.release_object();
}

PyObject* conj_view_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args[0]);
  if (!is_complex(t->dtype)) fail(PyExc_RuntimeError, "only complex tensors have a conjugate view");
  return flipped_view(t, Tensor::CONJ);
}
PyObject* neg_view_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return flipped_view(input(args[0]), Tensor::NEG);
}

// Whether torch's rules for zeros give zeros for good, whatever the other operand holds.
bool stays_zero(const Primitive& op, PyObject* const* args) {
  bool first = is_zero(args[0]), second = op.input_count > 1 && is_zero(args[1]);
  if (op.name == "mul" || op.name == "dot" || op.name == "vdot") return first || second;
  if (op.name == "div") return first && !second;
  return (op.name == "add" || op.name == "sub") && first && second;
}

// set_lazy(tensor, conj, neg): how the tensor reads its memory from now on.
PyObject* py_set_lazy(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) fail(PyExc_TypeError, "set_lazy(tensor, conj, neg) expected");
    Tensor* t = input(args[0]);
    bool conj = args[1] == Py_True, neg = args[2] == Py_True;
    if (conj && !is_complex(t->dtype)) fail(PyExc_RuntimeError, "only complex tensors have a conjugate bit");
    uint16_t loose = t->flags & Tensor::LOOSE;
    set_lazy(t, uint16_t(loose | (conj ? Tensor::CONJ : 0) | (neg ? Tensor::NEG : 0)));
    Py_RETURN_NONE;
  });
}
PyObject* py_is_conj(PyObject*, PyObject* o) {
  return guarded([&] { return PyBool_FromLong(lowest(input(o))->flags & Tensor::CONJ); });
}
PyObject* py_is_neg(PyObject*, PyObject* o) {
  return guarded([&] { return PyBool_FromLong(lowest(input(o))->flags & Tensor::NEG); });
}

// _set_conj(tensor, on), _set_neg(tensor, on): torch's names for it.
template <uint16_t bit>
PyObject* py_set_bit(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "a tensor and a bool expected");
    Tensor* t = input(args[0]);
    bool on = is_true(args[1]);
    if (on && bit == Tensor::CONJ && !is_complex(t->dtype))
      fail(PyExc_RuntimeError, "only complex tensors have a conjugate bit");
    set_lazy(t, uint16_t(((t->flags & Tensor::LAZY) & ~bit) | (on ? bit : 0)));
    Py_RETURN_NONE;
  });
}

// zero_for_good(zeros): the same tensor, which nobody may write from now on.
PyObject* py_zero_for_good(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = input(o);
    set_lazy(t, uint16_t((t->flags & Tensor::LAZY) | Tensor::ZERO));
    return Py_NewRef(o);
  });
}
PyObject* py_is_zero(PyObject*, PyObject* o) {
  return guarded([&] { return PyBool_FromLong(input(o)->flags & Tensor::ZERO); });
}

PyMethodDef functions[] = {
    {"zero_for_good", py_zero_for_good, METH_O, nullptr},
    {"is_zero_for_good", py_is_zero, METH_O, nullptr},
    {"_set_conj", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_set_bit<Tensor::CONJ>)),
     METH_FASTCALL, nullptr},
    {"_set_neg", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_set_bit<Tensor::NEG>)),
     METH_FASTCALL, nullptr},
    {"set_lazy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_set_lazy)), METH_FASTCALL, nullptr},
    {"is_conj", py_is_conj, METH_O, "Whether the tensor reads as the conjugate of what its memory holds."},
    {"is_neg", py_is_neg, METH_O, "Whether the tensor reads as the negative of what its memory holds."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  define("conj_view(x)", conj_view_forward, Primitive::VIEW | Primitive::CONVERTS);
  define("neg_view(x)", neg_view_forward, Primitive::VIEW | Primitive::CONVERTS);
  PyModule_AddFunctions(module, functions);
});

}  // namespace

PyObject* forward_resolved(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (out && out->flags & Tensor::ZERO) fail_zero_write(op.name == "copy");
  if (op.options & Primitive::VIEW || only_copies(op)) return run_forward(op, args, out);
  std::vector<Ref<PyObject>> held;
  std::vector<PyObject*> values(args, args + op.args.size());
  TensorRef target;
  if (out && out->is_lazy()) {
    if (op.name != "fill") check_writable(out);
    target = resolved(out);
  }
  for (PyObject*& value : values) {
    if (target && value == out->object()) {
      value = target->object();
    } else if (is_lazy(value)) {
      held.emplace_back(resolved(as_tensor(value)).release_object());
      value = held.back().get();
    } else if (PyTuple_Check(value) || PyList_Check(value)) {
      PyObject* list = resolved_list(value);
      if (!list) continue;
      held.emplace_back(list);
      value = list;
    }
  }
  if (!target) {
    PyObject* result = run_forward(op, values.data(), out);
    if (!result || out || !stays_zero(op, args)) return result;
    Ref<PyObject> computed(result);  // for its sizes and dtype
    Tensor* like = as_tensor(result);
    TensorRef zero = zeros(like->sizes(), like->dtype, like->device());
    set_lazy(zero.get(), Tensor::ZERO);
    return zero.release_object();
  }
  Ref<PyObject> result(run_forward(op, values.data(), target.get()));
  if (!result) return nullptr;
  copy_into(out, target.get());
  return Py_NewRef(out->object());
}

void fail_zero_write(bool copies) {
  fail(PyExc_RuntimeError,
       copies ? "ZeroTensors are immutable. Please materialize the tensor using `.clone()`, "
                "if you want a mutable zero tensor."
              : "ZeroTensors are immutable. Please use the materialized zero tensor obtained "
                "using .clone() if you want a mutable tensor.");
}

TensorRef flip_lazy(Tensor* t, uint16_t bits) {
  static Primitive& conj = primitive("conj_view");
  static Primitive& neg = primitive("neg_view");
  TensorRef view = share(t);
  if (bits & Tensor::CONJ) view = call_on(conj, view.get());
  if (bits & Tensor::NEG) view = call_on(neg, view.get());
  return view;
}

TensorRef flipped(Tensor* t, uint16_t bits) {
  static Primitive& conj = primitive("conj");
  static Primitive& neg = primitive("neg");
  TensorRef result = share(t);
  if (bits & Tensor::CONJ) result = call_on(conj, result.get());
  if (bits & Tensor::NEG) result = call_on(neg, result.get());
  return result;
}

}  // namespace rl
