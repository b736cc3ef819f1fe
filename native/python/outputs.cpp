// Writing to a plain `out=` at once.
//
// Note [plain outputs]
// Of a call with an `out` much is asked, before (rushlight/_outputs.py) and after the result is computed and
// copied there (write_out, rushlight/ops/_public.py). Most are plain: tensors without gradients, an `out` of
// the right size and dtype that overlaps nothing. Where a direct call (direct_calls.h) takes an `out`, it is
// asked all at once here, and primitives that can (elementwise ones, and those with the option WRITES_OUT)
// compute into it, without memory for a result of their own: torch.add(a, b, out=c) of 4 x 4 floats took 7 us
// and takes 0.15. For the functions that have no direct call two shortcuts are left: is_plain_output in front
// of _outputs.py, and copy_to_output in front of write_out.
//
// What is not plain, and what would be refused, is none of ours: it goes the way of all others. So nothing
// may have happened before that is known; what forward functions refuse, they refuse before they write.
#include "outputs.h"

#include "../graph/modes.h"
#include "../graph/watching.h"
#include "../tensor/hold.h"
#include "../tensor/twins.h"
#include "../tensor/unlocked.h"
#include "elementwise_ops.h"
#include "rare_ops.h"

namespace rl {
namespace {

bool is_differentiable_view(const Tensor* t) { return t->base() && t->extra->differentiable_view; }

// Whether a gradient is wanted of it, or may be once its base is asked.
bool may_want_grad(const Tensor* t) {
  return t->requires_grad() || (is_differentiable_view(t) && t->base()->requires_grad());
}

std::pair<const char*, const char*> memory_of(const Tensor* t) {
  int64_t last = 0;
  for (int d = 0; d < t->ndim; d++) last += (t->size(d) - 1) * t->stride(d);
  const char* start = t->address();
  return {start, start + (last + 1) * t->itemsize()};
}

bool apart(const Tensor* a, const Tensor* b) {
  if (a->numel == 0 || b->numel == 0) return true;
  auto [a0, a1] = memory_of(a);
  auto [b0, b1] = memory_of(b);
  return a1 <= b0 || b1 <= a0;
}

bool same_elements(const Tensor* a, const Tensor* b) {
  return a->address() == b->address() && a->dtype == b->dtype && a->ndim == b->ndim &&
         std::equal(a->geometry, a->geometry + 2 * a->ndim, b->geometry);
}

bool is_read(const Tensor* t) {
  return !t->is_lazy() && !is_rare(t->dtype) && t->device().type == DeviceType::cpu &&
         !(modes.grad && may_want_grad(t));
}

// Whether `out` may be written at all without anything being asked.
bool is_written(const Tensor* out) {
  return out->is_contiguous() && !is_rare(out->dtype) && out->numel &&
         out->device().type == DeviceType::cpu && !(modes.grad && may_want_grad(out)) &&
         !(out->flags & Tensor::SPREAD) && (modes.inference || counts_writes(out)) && !dual_level &&
         !writes_watched();
}

// Whether the inputs are plain and apart from `out`; elementwise ones may be the very elements of it.
bool are_read(const Primitive& op, PyObject* const* args, const Tensor* out) {
  bool elementwise = real_forward(op) == elementwise_forward;
  auto right = [&](PyObject* o) {
    const Tensor* t = as_tensor(o);
    return is_read(t) && (apart(t, out) || (elementwise && same_elements(t, out)));
  };
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1) {
      if (!PyTuple_CheckExact(args[i])) return false;  // of a list nobody knows how long it is in a moment
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); k++)
        if (!is_plain_tensor(PyTuple_GET_ITEM(args[i], k)) || !right(PyTuple_GET_ITEM(args[i], k)))
          return false;
    } else if (is_tensor(args[i]) && !(is_plain_tensor(args[i]) && right(args[i]))) {
      return false;
    }
  }
  return true;
}

// A result that the forward function could not put there itself.
bool may_copy(const Tensor* out, const Tensor* result) {
  return is_written(out) && result->dtype == out->dtype && same_sizes(result, out);
}

bool write_several(Primitive& op, PyObject* const* args, PyObject* outs) {
  Py_ssize_t count = Py_ssize_t(op.outputs.size());
  if (PyTuple_GET_SIZE(outs) != count) return false;
  auto place = [&](Py_ssize_t i) { return as_tensor(PyTuple_GET_ITEM(outs, i)); };
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!is_plain_tensor(PyTuple_GET_ITEM(outs, i)) || !is_written(place(i))) return false;
    if (!are_read(op, args, place(i))) return false;
    for (Py_ssize_t k = 0; k < i; k++)
      if (!apart(place(k), place(i))) return false;
  }
  Ref<PyObject> results = checked(real_forward(op)(op, args, nullptr));
  if (!PyTuple_Check(results.get()) || PyTuple_GET_SIZE(results.get()) != count) return false;
  auto result = [&](Py_ssize_t i) { return as_tensor(PyTuple_GET_ITEM(results.get(), i)); };
  for (Py_ssize_t i = 0; i < count; i++)
    if (!may_copy(place(i), result(i))) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    copy_into(place(i), result(i));
    note_write(place(i));
  }
  return true;
}

bool write_one(Primitive& op, PyObject* const* args, Tensor* out) {
  if (!is_written(out) || !are_read(op, args, out)) return false;
  Forward forward = real_forward(op);
  if (forward == elementwise_forward) {
    if (!write_elementwise(op, args, out)) return false;
  } else {
    Ref<PyObject> result = checked(forward(op, args, op.options & Primitive::WRITES_OUT ? out : nullptr));
    if (result.get() != out->object()) {
      if (!may_copy(out, as_tensor(result.get()))) return false;
      copy_into(out, as_tensor(result.get()));
    }
  }
  note_write(out);
  return true;
}

}  // namespace

bool write_directly(Primitive& op, PyObject* const* args, PyObject* out) {
  // Nobody rewrites the calls of the primitive (autocast), measures them or is asked about them.
  if (op.vectorcall != primitive_vectorcall || (op.forward != real_forward(op) && !only_classes_asked))
    return false;
  if (may_be_rare(op) && needs_rare(op, args)) return false;
  try {
    if (PyTuple_CheckExact(out)) return op.outputs.size() > 1 && write_several(op, args, out);
    return op.outputs.size() == 1 && is_plain_tensor(out) && write_one(op, args, as_tensor(out));
  } catch (const Error&) {
    return false;  // the function itself tells why, in its words
  }
}

bool is_plain_output(PyObject* const* args, Py_ssize_t count, Py_ssize_t at) {
  if (dual_level) return false;
  PyObject* out = args[at];
  auto all = [](PyObject* o, auto right) {
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return !is_tensor(o) || right(o);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
      PyObject* element = PySequence_Fast_GET_ITEM(o, i);
      if (is_tensor(element) && !right(element)) return false;
    }
    return true;
  };
  auto constant = [](PyObject* o) {
    return is_plain_tensor(o) && !as_tensor(o)->is_meta() && !(modes.grad && may_want_grad(as_tensor(o)));
  };
  if (!all(out, constant)) return false;
  const Tensor* single = is_tensor(out) ? as_tensor(out) : nullptr;
  for (int d = 0; single && d < single->ndim; d++) {
    if (!single->stride(d) && single->size(d) > 1) return false;
  }
  auto beside = [&](PyObject* o) {
    return constant(o) && (!single || as_tensor(o)->storage != single->storage);
  };
  for (Py_ssize_t i = 0; i < count; i++) {
    if (i != at && !all(args[i], beside)) return false;
  }
  return true;
}

namespace {

bool surely_apart(const Tensor* out, PyObject* others) {
  if (!PyTuple_CheckExact(others) && !PyList_CheckExact(others)) return false;
  for (int d = 0; d < out->ndim; d++) {
    if (!out->stride(d) && out->size(d) > 1) return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(others); i++) {
    PyObject* o = PySequence_Fast_GET_ITEM(others, i);
    if (!is_plain_tensor(o) || as_tensor(o)->is_meta() || !apart(as_tensor(o), out)) return false;
  }
  return true;
}

PyObject* py_are_apart(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "a tensor and a list of tensors expected");
    bool plain = is_plain_tensor(args[0]) && !as_tensor(args[0])->is_meta();
    return PyBool_FromLong(plain && surely_apart(as_tensor(args[0]), args[1]));
  });
}

bool takes_copy(PyObject* place, PyObject* value, PyObject* others) {
  if (!is_plain_tensor(place) || !is_plain_tensor(value)) return false;
  const Tensor *out = as_tensor(place), *result = as_tensor(value);
  return out->dtype == result->dtype && same_sizes(out, result) && out->device().type == DeviceType::cpu &&
         result->device().type == DeviceType::cpu &&
         !(modes.grad && (may_want_grad(out) || may_want_grad(result))) && surely_apart(out, others);
}

// An `out` without elements, of which nobody else has any, becomes as large as the result; an `out` of other
// sizes is warned about or refused elsewhere.
void grow_empty(PyObject* place, PyObject* value) {
  if (!is_plain_tensor(place) || !is_plain_tensor(value)) return;
  Tensor *out = as_tensor(place), *result = as_tensor(value);
  auto on_cpu = [](const Tensor* t) { return t->device().type == DeviceType::cpu; };
  bool right = !out->numel && result->numel && out->dtype == result->dtype && on_cpu(out) && on_cpu(result) &&
               !out->extra && !out->requires_grad() && !(modes.grad && may_want_grad(result)) &&
               !(out->flags & (Tensor::INFERENCE | Tensor::LAZY | Tensor::DATA_ALIAS)) && !out->offset &&
               result->is_contiguous() && !(result->flags & Tensor::ODD_STRIDES) && out->storage->refs == 1 &&
               is_resizable(out->storage) && !writes_watched();
  if (!right) return;
  wait_for_kernels();
  if (out->numel || out->storage->refs != 1 || !is_resizable(out->storage)) return;  // by other threads
  grow_storage(out->storage, size_t(result->numel) * size_t(result->itemsize()));
  set_geometry(out, result->sizes(), result->strides());
}

PyObject* py_copy_to_output(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    static Primitive& copy = primitive("copy");
    if (n != 3) fail(PyExc_TypeError, "`out`, the result and a list of tensors expected");
    if ((dispatching_forwards() && !only_classes_asked) || dual_level) Py_RETURN_FALSE;
    bool several = PyTuple_CheckExact(args[0]) && PyTuple_CheckExact(args[1]);
    Py_ssize_t count = several ? PyTuple_GET_SIZE(args[0]) : 1;
    if (several && PyTuple_GET_SIZE(args[1]) != count) Py_RETURN_FALSE;
    if (!several) grow_empty(args[0], args[1]);
    auto at = [&](int k, Py_ssize_t i) { return several ? PyTuple_GET_ITEM(args[k], i) : args[k]; };
    for (Py_ssize_t i = 0; i < count; i++) {
      if (!takes_copy(at(0, i), at(1, i), args[2])) Py_RETURN_FALSE;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* pair[] = {at(0, i), at(1, i)};
      Py_DECREF(call_in_place(copy, pair));
    }
    Py_RETURN_TRUE;
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {
    {"are_apart", FAST(py_are_apart),
     "are_apart(out, tensors): whether they surely share no memory with `out`, nor its elements with each "
     "other."},
    {"copy_to_output", FAST(py_copy_to_output),
     "copy_to_output(out, result, apart): copies it there, a tensor or a tuple of some, and says so, if "
     "there "
     "is nothing to ask or to do but that and `out` shares no memory with the tensors `apart`."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
