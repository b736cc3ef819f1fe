// Primitives that are given a tensor of a rare dtype, see Note [rare dtypes], tensor/dtype.h.
//
// `run_forward` (rare_ops.h) stands before every forward function but that of the elementwise operations,
// which find no loop for such a dtype and come here by themselves. Views and copies go on as they are; all
// others are handed to Python together with their arguments.
#include "rare_ops.h"

#include <algorithm>
#include <string_view>

#include "../graph/errors.h"
#include "elementwise_ops.h"

namespace rl {
namespace {

// Views look at sizes and strides only; these copy through copy_into and fill, which know all dtypes.
bool takes_all_dtypes(const Primitive& op) {
  constexpr std::string_view names[] = {
      "clone", "clone_strided", "contiguous_copy", "rows_copy", "to_dtype", "to_device", "copy", "fill"};
  return op.options & Primitive::VIEW || real_forward(op) == elementwise_forward ||
         std::ranges::find(names, op.name) != std::end(names);
}

// Tensors stand in lists, not deeper.
bool is_rare_argument(PyObject* o, bool within = false) {
  if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) return false;
  if (is_tensor(o)) return is_rare(as_tensor(o)->dtype);
  if (!within && (PyTuple_Check(o) || PyList_Check(o))) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); k++) {
      if (is_rare_argument(PySequence_Fast_GET_ITEM(o, k), true)) return true;
    }
    return false;
  }
  return is_dtype(o) && is_rare(dtype_from(o));
}

// relabel(tensor, dtype): its memory as elements of another dtype of the same size; no history, no view.
PyObject* py_relabel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0]) || !is_dtype(args[1]))
      fail(PyExc_TypeError, "relabel(tensor, dtype) expected");
    Tensor* t = as_tensor(args[0]);
    DType dtype = dtype_from(args[1]);
    if (dtype_size(dtype) != t->itemsize() || t->is_lazy())
      fail(PyExc_RuntimeError, "relabel: elements of the same size expected");
    TensorRef alias = new_alias(t);
    alias->dtype = dtype;
    if (is_rare(dtype)) rare_dtypes_seen = true;
    return alias.release_object();
  });
}

PyMethodDef functions[] = {
    {"relabel", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_relabel)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  PyModule_AddFunctions(module, functions);
  note_rare_dtype = [](DType dtype) {
    rare_dtypes_seen = true;
    if (dtype == DType::c32)
      warn_once("ComplexHalf support is experimental and many operators don't support it yet.");
  };
});

}  // namespace

bool needs_rare(const Primitive& op, PyObject* const* args) {
  auto wished = [](PyObject* o) { return is_dtype(o) && is_rare(dtype_from(o)); };
  if (!rare_dtypes_seen && std::none_of(args, args + op.args.size(), wished)) return false;
  for (size_t i = 0; i < op.args.size(); i++) {
    if (is_rare_argument(args[i])) return !takes_all_dtypes(op);
  }
  return false;
}

PyObject* forward_rare(const Primitive& op, PyObject* const* args, Tensor* out) {
  static PyObject* handler = nullptr;
  if (!handler) {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._rare_dtypes"));
    handler = checked(PyObject_GetAttrString(module.get(), "forward")).release();
  }
  Ref<PyObject> given = checked(PyTuple_New(Py_ssize_t(op.args.size())));
  for (size_t i = 0; i < op.args.size(); i++) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  PyObject* self = const_cast<Primitive&>(op).object();
  PyObject* result =
      PyObject_CallFunctionObjArgs(handler, self, given.get(), out ? out->object() : Py_None, nullptr);
  return checked(result).release();
}

}  // namespace rl
