// Tensors as nested lists of Python's numbers.
#include <cstring>

#include "../tensor/iterate.h"
#include "direct_calls.h"
#include "lazy_views.h"

namespace rl {
namespace {

// Nothing of the tensor itself: every new list may collect garbage, and what is called then may change it.
PyObject* nested_list(const Span& span, int dim, const char* at) {
  if (dim == span.ndim) return load(span.dtype, at).to_python();
  const int64_t n = span.sizes[dim], step = span.strides[dim] * dtype_size(span.dtype);
  Ref<PyObject> list = checked(PyList_New(n));
  auto put = [&](auto made) {
    for (int64_t i = 0; i < n; i++) PyList_SET_ITEM(list.get(), i, checked(made(at + i * step)).release());
  };
  auto read = []<class T>(const char* from) { return *reinterpret_cast<const T*>(from); };
  bool last = dim == span.ndim - 1;
  if (last && span.dtype == DType::f32) {
    put([&](const char* from) { return PyFloat_FromDouble(read.operator()<float>(from)); });
  } else if (last && span.dtype == DType::f64) {
    put([&](const char* from) { return PyFloat_FromDouble(read.operator()<double>(from)); });
  } else if (last && span.dtype == DType::i64) {
    put([&](const char* from) { return PyLong_FromLongLong(read.operator()<int64_t>(from)); });
  } else {
    put([&](const char* from) { return nested_list(span, dim + 1, from); });
  }
  return list.release();
}

PyObject* listed(Tensor* t, char* values) {
  int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
  std::copy_n(t->sizes().begin(), t->ndim, sizes);
  std::copy_n(t->strides().begin(), t->ndim, strides);
  return nested_list({values, t->dtype, t->ndim, sizes, strides}, 0, values);
}

PyObject* py_tolist(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(PyExc_TypeError, "tolist(): expected a Tensor");
    Tensor* t = as_tensor(o);
    if (t->is_meta()) fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (t->flags & Tensor::ZERO)
      fail(PyExc_RuntimeError, "tolist() shouldn't be called on a tensor with unallocated storage");
    TensorRef values = t->is_lazy() ? resolved(t) : t->ndim ? clone(t) : share(t);
    return listed(values.get(), values->data());
  });
}

// The same of few numbers, which are copied here.
PyObject* tolist_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  constexpr int64_t FEW_BYTES = 4096;
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || !t->is_contiguous() || t->flags & Tensor::ZERO || t->numel * t->itemsize() > FEW_BYTES)
    return nullptr;
  alignas(16) char values[FEW_BYTES];
  std::memcpy(values, t->data(), size_t(t->numel * t->itemsize()));
  return listed(t, values);
}

const NativeCallInit direct_call{"tolist", tolist_call, CASTS_NOTHING};

PyMethodDef functions[] = {{"tolist", py_tolist, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
