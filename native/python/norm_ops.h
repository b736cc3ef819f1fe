// What the primitives of normalisation share: the types of parameters, and operands ready for the kernels.
#pragma once
#include <algorithm>
#include <vector>

#include "../kernels/norm.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "arguments.h"

namespace rl {

const NormLoops& norm_loops();

// The type that statistics and parameters are computed in.
inline DType norm_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

inline Tensor* optional_tensor(const char* function, const char* name, PyObject* o, int position) {
  if (o == Py_None) return nullptr;
  if (!is_tensor(o)) {
    failf(PyExc_TypeError, "%s(): argument '%s' (position %d) must be Tensor, not %s", function, name,
          position, Py_TYPE(o)->tp_name);
  }
  return as_tensor(o);
}

inline Tensor* norm_input(const char* function, const char* kernel, PyObject* o) {
  Tensor* x = tensor_argument(function, o);
  if (!is_floating(x->dtype)) fail_not_implemented(kernel, x->dtype);
  return x;
}

// x is of floating-point numbers; parameters have its type, or are Float beside a half type.
void check_norm_types(const char* kernel, const Tensor* x, std::initializer_list<const Tensor*> parameters);
// x and all of `others` (or null) on one device.
void check_devices(const Tensor* x, std::initializer_list<const Tensor*> others);

// t's numbers in order, as the type that x's statistics have; null for null.
inline TensorRef parameter_values(Tensor* t, DType dtype) {
  return t ? contiguous(cast(t, norm_type(dtype)).get()) : TensorRef();
}
inline void* data_or_null(const TensorRef& t) { return t ? t->data() : nullptr; }

inline double eps_argument(const char* function, PyObject* o) {
  double eps = PyFloat_AsDouble(o);
  if (eps == -1 && PyErr_Occurred()) {
    forget_error(PyExc_TypeError);
    failf(PyExc_TypeError, "%s(): argument 'eps' must be float, not %s", function, Py_TYPE(o)->tp_name);
  }
  return eps;
}

inline PyObject* tuple_of(std::initializer_list<Tensor*> tensors) {
  Ref<PyObject> tuple = checked(PyTuple_New(Py_ssize_t(tensors.size())));
  Py_ssize_t i = 0;
  for (Tensor* t : tensors) PyTuple_SET_ITEM(tuple.get(), i++, Py_NewRef(t->object()));
  return tuple.release();
}

// Writes n numbers of the compute type `dtype`.
void store_numbers(DType dtype, void* to, const double* from, int64_t n);

// Runs rows of a NormRows task, and of its gradient: the gradients of the parameters go to dw and db (or
// null).
void run_norm_rows(const NormRows& task, int64_t rows);
void run_norm_rows_backward(const NormRowsBackward& task, int64_t rows, Tensor* dw, Tensor* db);

// In place, without history and, as in torch, without being counted: a graph shows them as they are now.
void update_running_statistics(Tensor* running_mean, Tensor* running_var, Tensor* mean, Tensor* var,
                               double count, double momentum);

}  // namespace rl
