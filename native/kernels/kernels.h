// What a kernel sees of a tensor, and the signatures of all kernels.
//
// Kernels know nothing of Python, autograd, storage or devices: they get Spans (a pointer and a geometry that
// the caller has checked) and write results. They never throw for bad input, except for values that only the
// loop can see (an index out of range): those are reported through the return value.
// Files under kernels/simd/ are compiled twice, for baseline x86-64 and for AVX2+FMA (see `kernels()`).
#pragma once
#include "../tensor/dtype.h"

namespace rl {

constexpr int MAX_DIMS = 64;

struct Span {
  void* data;  // of the first element
  DType dtype;
  int ndim;
  const int64_t* sizes;
  const int64_t* strides;  // in elements; 0 where broadcast

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= sizes[d];
    return n;
  }
};

// The inner loop of an elementwise kernel: n elements of every operand, data[0] being the output;
// strides in bytes. `params` is whatever the operation defines (a Scalar pair for clamp, ...).
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const void* params);

}  // namespace rl
