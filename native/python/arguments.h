// Reading the common arguments of operations along dimensions, with torch's sentences where they are wrong.
#pragma once
#include "primitive.h"

namespace rl {

inline Tensor* tensor_argument(const char* function, PyObject* o) {
  if (!is_tensor(o)) {
    failf(PyExc_TypeError, "%s(): argument 'input' (position 1) must be Tensor, not %s", function,
          Py_TYPE(o)->tp_name);
  }
  return as_tensor(o);
}

inline bool bool_argument(const char* function, const char* name, PyObject* o) {
  if (!PyBool_Check(o)) {
    failf(PyExc_TypeError, "%s(): argument '%s' must be bool, not %s", function, name, Py_TYPE(o)->tp_name);
  }
  return o == Py_True;
}

inline int64_t int_argument(const char* function, const char* name, PyObject* o,
                            const char* expected = "int") {
  if (PyBool_Check(o) || (!PyIndex_Check(o) && !is_tensor(o))) {
    failf(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", function, name, expected,
          Py_TYPE(o)->tp_name);
  }
  return read_int(o);
}

// An int of a list, where torch lets booleans pass.
inline int64_t int_element(const char* function, const char* name, PyObject* o) {
  return PyBool_Check(o) ? o == Py_True : int_argument(function, name, o);
}

inline int dim_argument(const char* function, PyObject* o, const Tensor* x) {
  return wrap_dim(int_argument(function, "dim", o), x->ndim);
}

inline uint64_t all_dims(int ndim) { return ndim >= 64 ? ~uint64_t(0) : (uint64_t(1) << ndim) - 1; }

// One dimension as a set; of a zero-dimensional tensor there is none to reduce.
inline uint64_t one_dim(int dim, int ndim) { return ndim ? uint64_t(1) << dim : 0; }

// None, an int or a sequence of ints to a bit per dimension.
inline uint64_t dims_argument(const char* function, PyObject* o, int ndim, bool empty_means_all = true) {
  if (o == Py_None) return all_dims(ndim);
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    return one_dim(wrap_dim(int_argument(function, "dim", o, "tuple of ints"), ndim), ndim);
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  if (n == 0 && empty_means_all) return all_dims(ndim);
  uint64_t dims = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    int d = wrap_dim(int_element(function, "dim", item_of(o, i).get()), ndim);
    if (dims >> d & 1) failf(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims", d);
    dims |= uint64_t(1) << d;
  }
  return ndim ? dims : 0;
}

[[noreturn]] inline void fail_not_implemented(const char* kernel, DType dtype) {
  failf(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", kernel, dtype_class_name(dtype));
}

// The one element of a tensor of no dimension and where it stands: no order is needed to choose it, and torch
// chooses it also in dtypes that have none.
inline PyObject* itself_at_zero(Tensor* x) {
  TensorRef value = clone(x), place = zeros({}, DType::i64, x->device());
  return checked(PyTuple_Pack(2, value->object(), place->object())).release();
}

}  // namespace rl
