// Reading the arguments of operations that slide a window over the last dimensions: kernel, stride, padding,
// dilation, one number for all of them or a number each. Used by convolutions, pooling and unfold.
#pragma once
#include "arguments.h"

namespace rl {

// Numbers for depth, height and width. Of an operation on fewer dimensions the leading ones keep `unused`.
struct Triple {
  int64_t at[3];
  int64_t operator[](int d) const { return at[d]; }
};

// An int, or a sequence of `dims` ints (or of one). False if the length is wrong.
inline bool read_triple(PyObject* o, int dims, int64_t unused, Triple& out, const char* function,
                        const char* name) {
  for (int64_t& n : out.at) n = unused;
  int first = 3 - dims;
  if (PyLong_CheckExact(o)) {
    int64_t n = PyLong_AsLongLong(o);
    if (n == -1 && PyErr_Occurred()) throw PythonError{};
    for (int d = first; d < 3; d++) out.at[d] = n;
    return true;
  }
  Shape list;
  if (PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) <= 3) {
    list.ndim = int(PyTuple_GET_SIZE(o));
    for (int i = 0; i < list.ndim; i++) list.sizes[i] = read_int(PyTuple_GET_ITEM(o, i));
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    read_sizes(o, list, function, name);
  } else {
    list.ndim = 1;
    list.sizes[0] = int_argument(function, name, o, "tuple of ints");
  }
  if (list.ndim != 1 && list.ndim != dims) return false;
  for (int d = 0; d < dims; d++) out.at[first + d] = list.sizes[list.ndim == 1 ? 0 : d];
  return true;
}

// "(5 x 5)" of the last `dims` numbers, or with other signs around and between them.
inline std::string sizes_between(const int64_t* sizes, int dims, const char* separator) {
  std::string text;
  for (int d = 3 - dims; d < 3; d++) {
    if (!text.empty()) text += separator;
    text += std::to_string(sizes[d]);
  }
  return text;
}

// Larger windows would make the arithmetic on positions overflow; torch refuses them in other ways.
inline void check_moderate(const Triple& values, const char* function, const char* name) {
  for (int64_t n : values.at)
    if (n > INT32_MAX || n < INT32_MIN)
      failf(PyExc_RuntimeError, "%s(): %s of %lld is too large", function, name, (long long)n);
}

}  // namespace rl
