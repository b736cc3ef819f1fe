// Reading the arguments of operations that slide a window over the last dimensions: kernel, stride, padding,
// dilation, one number for all of them or a number each. Used by convolutions, pooling and unfold.
#pragma once
#include <algorithm>
#include <string_view>

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
    list.resize(size_t(PyTuple_GET_SIZE(o)));
    for (int i = 0; i < list.ndim; i++) list.sizes[i] = read_int(PyTuple_GET_ITEM(o, i));
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    read_sizes(o, list, function, name);
  } else {
    list.append(int_argument(function, name, o, "tuple of ints"));
  }
  if (list.ndim != 1 && list.ndim != dims) return false;
  for (int d = 0; d < dims; d++) out.at[first + d] = list.sizes[list.ndim == 1 ? 0 : d];
  return true;
}

// Whether images or volumes lie channels last in memory, by torch's rule (which leaves doubt to the usual
// order).
inline bool is_channels_last(const Tensor* x) {
  if (x->ndim != 4 && x->ndim != 5) return false;
  static constexpr int orders[2][5] = {{1, 3, 2, 0, -1}, {1, 4, 3, 2, 0}};
  int64_t least = 0;
  if (x->stride(1) == 0) return false;
  for (int i = 0; i < x->ndim; i++) {
    int d = orders[x->ndim - 4][i];
    if (x->size(d) == 0 || x->stride(d) < least || (d == 0 && least == x->stride(1))) return false;
    least = x->stride(d) * (x->size(d) > 1 ? x->size(d) : 1);
  }
  return true;
}

// Strides of a dense tensor of 4 or 5 dimensions with channels last.
inline void channels_last_strides(Sizes sizes, int64_t* strides) {
  numel_of(sizes);  // refuses sizes whose product overflows
  int64_t step = 1;
  int ndim = int(sizes.size());
  for (int i = 0; i < ndim; i++) {
    int d = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
    strides[d] = step;
    step *= std::max<int64_t>(sizes[size_t(d)], 1);
  }
}

inline TensorRef new_channels_last(Sizes sizes, DType dtype, Device device) {
  int64_t strides[5];
  channels_last_strides(sizes, strides);
  return new_strided(sizes, {strides, sizes.size()}, dtype, device);
}

// Whether the images lie channels last and nothing lies between their elements.
inline bool is_dense_channels_last(const Tensor* x) {
  if (!is_channels_last(x)) return false;
  int64_t step = x->size(1);
  for (int d = x->ndim - 1; d >= 2; d--) {
    if (x->size(d) > 1 && x->stride(d) != step) return false;
    step *= x->size(d);
  }
  return (x->size(1) == 1 || x->stride(1) == 1) && (x->size(0) == 1 || x->stride(0) == step);
}

// The result itself, or the same with channels last.
inline PyObject* laid_out(TensorRef result, bool channels_last) {
  if (!channels_last || (result->ndim != 4 && result->ndim != 5) || result->numel == 0)
    return result.release_object();
  TensorRef moved = new_channels_last(result->sizes(), result->dtype, result->device());
  if (!result->is_meta()) copy_into(moved.get(), result.get());
  return moved.release_object();
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

// A stride beyond every image leaves one window, however large it is.
inline void limit_stride(Triple& stride) {
  for (int64_t& n : stride.at) n = std::min(n, int64_t(1) << 48);
}

// Larger windows would make the arithmetic on positions overflow; torch refuses them in other ways.
inline void check_moderate(const Triple& values, const char* function, const char* name) {
  for (int64_t n : values.at)
    if (n > INT32_MAX || n < INT32_MIN) {
      if (std::string_view(function).starts_with("max_pool"))
        fail(PyExc_RuntimeError, "value cannot be converted to type int without overflow");
      failf(PyExc_RuntimeError, "%s(): %s of %lld is too large", function, name, (long long)n);
    }
}

}  // namespace rl
