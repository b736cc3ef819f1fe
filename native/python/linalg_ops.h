// What the files of linear algebra share: torch's checks and sentences, column-major tensors, and the loop
// over the matrices of a batch.
//
// Every routine works on dense column-major batches: results are made by `column_major`, inputs copied into
// them by `column_major_copy`, so matrix i of a batch begins at data + i * rows * cols. Start at
// `over_batch`.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "../kernels/blas.h"
#include "../kernels/small_matrix.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "arguments.h"
#include "matmul_ops.h"

namespace rl {

extern PyObject* LinAlgError;  // linalg_checks.cpp

void check_matrix(const char* name, const Tensor* x, const char* what = "A");
void check_square(const char* name, const Tensor* x, const char* what = "A");
// "Expected a floating point or complex tensor as input."; half precision is refused too if `low` is false.
void check_floating(const char* name, const Tensor* x, bool low = true);
void check_kernel(const char* kernel, DType dtype);  // single and double precision only
// The same, but of an empty tensor torch runs no kernel.
inline void check_kernel(const char* kernel, const Tensor* x) {
  if (x->numel) check_kernel(kernel, x->dtype);
}
void check_same_dtype(const char* name, const Tensor* a, const Tensor* b, const char* a_name,
                      const char* b_name);
const char* text_argument(PyObject* o);  // null for None

inline int64_t rows(const Tensor* x) { return x->size(x->ndim - 2); }
inline int64_t cols(const Tensor* x) { return x->size(x->ndim - 1); }
inline Sizes batch_sizes(const Tensor* x, int matrix_dims = 2) {
  return {x->geometry, size_t(x->ndim - matrix_dims)};
}
inline int64_t batch_count(const Tensor* x) { return numel_of(batch_sizes(x)); }

// batch followed by m and n (or m alone).
Shape with_batch(Sizes batch, std::initializer_list<int64_t> tail);
// Uninitialised, the matrices in the last two dimensions column-major.
TensorRef column_major(Sizes sizes, DType dtype, Device device);
TensorRef column_major_copy(Tensor* x);
// The same, x's batch dimensions broadcast to `batch`.
TensorRef column_major_copy(Tensor* x, Sizes batch);
TensorRef infos_like(Tensor* x);  // int32 zeros, one per matrix
Shape broadcast_batches(const Tensor* a, const Tensor* b);

// Calls f(TypeTag<T>{}, routines) with the C++ type of a single or double precision dtype.
template <class T>
const Lapack<T>& routines() {
  const Lapack<T>* found = lapack<T>();
  if (!found) {
    fail(
        PyExc_RuntimeError,
        std::string("linear algebra needs the OpenBLAS library, which could not be opened: ") + blas_error());
  }
  return *found;
}
template <class F>
void with_lapack(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(TypeTag<float>{}, routines<float>());
    case DType::f64: return f(TypeTag<double>{}, routines<double>());
    case DType::c64: return f(TypeTag<std::complex<float>>{}, routines<std::complex<float>>());
    default: return f(TypeTag<std::complex<double>>{}, routines<std::complex<double>>());
  }
}

// Dimensions are 32-bit for LAPACK.
int lapack_int(int64_t size);

// Calls f(i, memory) for every matrix, in parallel and without the GIL where `work` (operations per matrix)
// makes it worth it; `memory` points to `bytes` of scratch of the calling thread. f must not throw.
template <class F>
void over_batch(int64_t count, double work, size_t bytes, const F& f) {
  std::atomic<bool> exhausted = false;
  double total = double(count) * (work + 200);
  int64_t grain = std::max<int64_t>(1, int64_t(200000 / (work + 200)));
  MaybeNoGil release(is_long_product(total) ? INT64_MAX : 0);
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char few[2048];
    std::unique_ptr<char[]> many;
    char* memory = few;
    if (bytes > sizeof few) {
      many.reset(new (std::nothrow) char[bytes]);
      memory = many.get();
      if (!memory) {
        exhausted = true;
        return;
      }
    }
    for (int64_t i = begin; i < end; i++) f(i, memory);
  });
  if (exhausted) throw std::bad_alloc();
}

// Scratch memory divided into arrays; `bytes` first, `take` in the same order inside the loop.
struct Scratch {
  char* at;
  template <class T>
  T* take(int64_t count) {
    T* result = reinterpret_cast<T*>(at);
    at += bytes<T>(count);
    return result;
  }
  template <class T>
  static size_t bytes(int64_t count) {
    return (size_t(std::max<int64_t>(count, 0)) * sizeof(T) + 15) / 16 * 16;
  }
  template <class T>
  static size_t bytes(const WorkSizes& sizes) {
    return bytes<T>(sizes.work) + bytes<real_t<T>>(sizes.real) + bytes<int>(sizes.integer);
  }
  template <class T>
  Work<T> take_work(const WorkSizes& sizes) {
    T* work = take<T>(sizes.work);
    real_t<T>* real = take<real_t<T>>(sizes.real);
    return {work, real, take<int>(sizes.integer)};
  }
};

// LAPACK complains on the terminal about what is not finite, or never ends.
template <class T>
inline bool is_finite(T x) {
  return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
}
template <class T>
inline bool is_finite(const T* data, int64_t n) {
  return std::all_of(data, data + n, [](T x) { return is_finite(x); });
}

// The number of elements in workspace a query answered with, but at least `least`: LAPACK counts in 32 bits
// and may have wrapped round. Throws if that is beyond 32 bits.
template <class T>
int work_length(T answer, int64_t least) {
  double size = std::max(std::real(std::complex<double>(answer)) * (1 + 1e-6) + 1, double(least));
  if (!(size < 2147483647.0)) fail(PyExc_RuntimeError, "the matrix is too large for LAPACK");
  return int(size);
}
void check_work(const WorkSizes& sizes);

// The index of the first matrix whose info is not zero, or -1.
int64_t first_failure(const Tensor* infos);
// "name: (Batch element i): " or "name: ".
std::string failure_prefix(const char* name, const Tensor* infos, int64_t i);

}  // namespace rl
